"""Runs in several processes beside runs in one: the same bits, the same errors, and no hanging.

Run by ``.ci/run`` in an environment of its own, of Python 3.12 or newer:

    python3.12 -m venv distributed
    distributed/bin/python -m pip install . -r tests/distributed/requirements.txt
    PATH=$PWD/distributed/bin:$PATH distributed/bin/python tests/distributed/check_distributed.py

This process solves each of the cases by the engine of one process, which knows nothing of PETSc,
and starts `side.py` under ``mpiexec`` for 1, 2 and 3 processes, once for all cases.  Prints a line
for each check and how many passed and failed, and exits with 1 if one failed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cases
import gymnasium as gym
import numpy as np
import side

import planners
from aggmaze import MoveMDP

HERE = Path(__file__).parent
#: Seconds after which what was started is taken to hang.
PATIENCE = 300.0
SIZES = (1, 2, 3)
# More processes than cores wait for each other without taking the cores from those that work.
ENVIRONMENT = {
    **os.environ,
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "SDL_VIDEODRIVER": "dummy",
}


class Checks:
    """Counts what passed and what failed."""

    def __init__(self) -> None:
        self.num_passed = self.num_failed = 0

    def that(self, condition: bool, words: str, why: str = "") -> None:
        self.num_passed += bool(condition)
        self.num_failed += not condition
        print(f"{'passed' if condition else 'FAILED'}: {words}{'' if condition else f' ({why})'}")
        sys.stdout.flush()


def start(size: int, *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["mpiexec", "-n", str(size), sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )


def run(size: int, *command: str) -> tuple[int, str, str]:
    with start(size, *command) as process:
        try:
            output, errors = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
            errors += f"\nhung for {PATIENCE:g} s"
        return process.returncode, output, errors


def run_sides(folder: Path) -> None:
    """Run all that processes do to its end, in one start for each number of them."""
    for size in SIZES:
        place = folder / str(size)
        place.mkdir()
        what = ["bits", *(["evaluations"] if size < 3 else []), "refusals"]
        what += ["ends"] if size > 1 else []
        code, output, errors = run(size, str(HERE / "side.py"), str(place), *what)
        if code != 0:
            raise AssertionError(f"{size} processes ended with {code}:\n{output}{errors}")


def sides(size: int, what: str, folder: Path) -> Any:
    """Return what came out of what so many processes did."""
    path = folder / str(size) / what
    if what in ("bits", "evaluations"):
        return np.load(path.with_suffix(".npz"))
    return json.loads(path.with_suffix(".json").read_text())


def same(ours: np.ndarray, theirs: np.ndarray) -> bool:
    return ours.shape == theirs.shape and bool(np.array_equal(ours, theirs, equal_nan=True))


def check_bits(checks: Checks, folder: Path) -> None:
    found = {size: sides(size, "bits", folder) for size in SIZES}
    for name, (make, _) in cases.MODELS.items():
        model = make()
        for i, arguments in enumerate(cases.runs(name)):
            serial = planners.solve(model, gamma=cases.GAMMA, **arguments)
            labels = np.empty(0, np.int32) if serial.labels is None else serial.labels
            expected = {
                "values": serial.values,
                "policy": serial.policy,
                "labels": labels,
                "ended": serial.proof["ended"],
                "history": np.stack([serial.history.bound, serial.history.residual]),
                "numbers": np.array(
                    [
                        serial.bound,
                        serial.policy_bound,
                        serial.num_iterations,
                        serial.num_sweeps,
                        serial.num_updates,
                        serial.num_certificate_sweeps,
                    ]
                ),
            }
            words = ", ".join(f"{key}={value}" for key, value in arguments.items())
            for size in SIZES:
                told = found[size]
                differ = [
                    key
                    for key, array in expected.items()
                    if not same(array, told[f"{name}|{i}|{key}"])
                ]
                if str(told[f"{name}|{i}|words"]) != f"{serial.status}; {serial.message}":
                    differ.append("words")
                checks.that(
                    not differ,
                    f"{name}, {words}: {size} processes and one give the same bits",
                    f"not of {', '.join(differ)}",
                )


def check_evaluations(checks: Checks, folder: Path) -> None:
    truths = {}
    for name in cases.EVALUATED:
        model = cases.MODELS[name][0]()
        truths[name] = (
            model,
            planners.solve(model, gamma=cases.GAMMA, method="value_iteration", tol=1e-12),
        )
    for size in (1, 2):
        found = sides(size, "evaluations", folder)
        for name, (model, truth) in truths.items():
            for i, arguments in enumerate(cases.EVALUATING):
                values, policy = found[f"{name}|{i}|values"], found[f"{name}|{i}|policy"]
                bound, policy_bound = found[f"{name}|{i}|numbers"][:2]
                words = str(found[f"{name}|{i}|words"])
                error = float(np.abs(values - truth.values).max())
                lost = float((planners.evaluate(model, policy, cases.GAMMA) - truth.values).max())
                checks.that(
                    words.startswith("converged")
                    and error <= bound + truth.bound
                    and lost <= policy_bound + truth.bound,
                    f"{name}, {arguments}: {size} processes are within their bounds",
                    f"{words}; off by {error}, bound {bound}; policy {lost}, bound {policy_bound}",
                )


def message_of(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def check_refusals(checks: Checks, folder: Path) -> None:
    model = cases.MODELS["terrain"][0]()

    def spoilt(row: int, move: int, cost: float, successor: int | None = None) -> MoveMDP:
        successors, costs = model.successors.copy(), model.move_costs.copy()
        costs[row, move] = cost
        if successor is not None:
            successors[row, move] = successor
        return MoveMDP(successors, costs, p=model.p)

    def solve(source: Any = model, **arguments: Any) -> str:
        return message_of(lambda: planners.solve(source, **{"gamma": cases.GAMMA, **arguments}))

    plain = {"method": "value_iteration"}
    as_in_one = {
        "nan": message_of(lambda: spoilt(-1, 1, np.nan).validate()),
        "outside": message_of(lambda: spoilt(-1, 0, 1.0, -1)),
        "huge": solve(spoilt(-1, 0, 1e290), **plain),
        "gamma": solve(gamma=1.5),
        "tol": solve(tol=1e-18, **plain),
        "near 1": solve(gamma=1 - 1e-16, tol=1e-3, **plain),
        "V0": solve(V0=np.where(np.arange(model.num_states) == 0, np.nan, 0.0), **plain),
        "epsilon": solve(method="adaptive_aggregation", epsilon=1e-300, num_iterations=9),
        "callback": "RuntimeError: the callback of the last process",
    }
    words_of_others = {
        "total": ("ValueError", 'engine="petsc" solves for discounted costs'),
        "method": ("ValueError", "value_iteration, modified_policy_iteration, policy_iteration"),
        "noise": ("ValueError", "needs one process"),
        "largest": ("[nan, -inf]",),
        "store": ("the last process cannot write",),
    }
    for size in SIZES:
        found = sides(size, "refusals", folder)
        for name, message in as_in_one.items():
            checks.that(
                found[name] == message and message != "no error",
                f"{name}: {size} processes are refused it in the words of one",
                f"{found[name]!r}, not {message!r}",
            )
        for name, words in words_of_others.items():
            checks.that(
                all(word in found[name] for word in words),
                f"{name}: {size} processes are told",
                found[name],
            )
        if size > 1:
            checks.that(
                "all need the same" in found["different"],
                f"{size} processes with different models are told",
                found["different"],
            )


def check_ends(checks: Checks, folder: Path) -> None:
    for size in (2, 3):
        found = sides(size, "ends", folder)
        for name, status, message in (
            ("SIGINT", "interrupted", "interrupted from the keyboard"),
            ("SIGTERM", "interrupted", "terminated by SIGTERM"),
            ("callback", "interrupted", "stopped by the callback"),
            ("one callback", "interrupted", "stopped by the callback"),
            ("limit", "stopped_short", "time limit of 0.3 s reached"),
        ):
            told = found[name]
            checks.that(
                told["status"] == status
                and told["message"].startswith(message)
                and told["bound"] < np.inf,
                f"{name} in one of {size} processes ends all, with a bound",
                str(told),
            )
    for what, words in side.ALONE.items():
        started = time.monotonic()
        code, output, errors = run(2, str(HERE / "side.py"), str(folder), what)
        checks.that(
            code != 0 and words in errors and time.monotonic() - started < PATIENCE,
            f"{what}: what goes wrong in one process alone ends both",
            f"ended with {code}:\n{output}{errors}",
        )


def check_command(checks: Checks, folder: Path) -> None:
    command = ["-m", "planners", "solve"]
    maze = ["TerrainMaze-v0", "--engine", "petsc", "--set", "shape=60,50"]
    by_rows = [*maze, "--set", "terrain=noise"]
    stored = folder / "stored"
    code, output, errors = run(2, *command, *by_rows, "--gamma", ".9", "--store", str(stored))
    maze_whole = gym.make("TerrainMaze-v0", shape=(60, 50), terrain="noise")
    expected = planners.solve(maze_whole, gamma=0.9, method="value_iteration")
    checks.that(
        same(planners.open_result(stored).values, expected.values),
        "what the command stores is what one process computes",
    )
    checks.that(
        code == 0 and output.count("bound  ") == 1 and "3,000 with 4 actions" in output,
        "the command prints once",
        f"ended with {code}:\n{output}{errors}",
    )
    checks.that("note" not in errors, "what is made by rows is held by nobody", errors)
    code, output, errors = run(
        2, *command, *maze, "--gamma", ".9", "--method", "policy_iteration", "--option", "pc=gamg"
    )
    checks.that(
        code == 0 and errors.count("note: each process makes and holds all") == 1,
        "what is made whole is solved with a note",
        f"ended with {code}:\n{output}{errors}",
    )
    code, output, errors = run(
        2, *command, *by_rows, "--gamma", ".99", "--num-iterations", "9", "--tol", "1e-9"
    )
    checks.that(code == 1, "a run that stopped short ends with 1", f"{code}:\n{output}{errors}")
    for words, arguments in (
        ("gamma must be", ["--gamma", "-1"]),
        ("takes no 'shap'", ["--gamma", ".9", "--set", "shap=3"]),
        ("is no folder", ["--gamma", ".9", "--store", str(folder / "none" / "result")]),
    ):
        code, output, errors = run(2, *command, *by_rows, *arguments)
        said = [line for line in errors.splitlines() if line.startswith("error: ")]
        checks.that(
            code == 2 and len(said) == 1 and words in said[0],
            f"{' '.join(arguments)} is refused in a line",
            f"ended with {code}:\n{output}{errors}",
        )
    for number in (signal.SIGINT, signal.SIGTERM):
        long = ["--gamma", ".9999", "--tol", "1e-9", "--num-iterations", "100000000"]
        long += ["--method", "adaptive_aggregation", "--epsilon", ".1"]
        with start(2, *command, *by_rows, *long) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if line.startswith("iteration"):
                    break
            process.send_signal(number)
            output, errors = process.communicate(timeout=PATIENCE)
        checks.that(
            process.returncode == 130 and output.count("bound  ") == 1,
            f"{signal.Signals(number).name} to mpiexec ends with 130, and what was found",
            f"ended with {process.returncode}:\n{output}{errors}",
        )


def main() -> None:
    checks = Checks()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        started = time.monotonic()
        run_sides(folder)
        print(f"{', '.join(map(str, SIZES))} processes: {time.monotonic() - started:.0f} s")
        for check in (check_bits, check_evaluations, check_refusals, check_ends, check_command):
            started = time.monotonic()
            check(checks, folder)
            print(f"{check.__name__}: {time.monotonic() - started:.0f} s")
    print(f"{checks.num_passed} passed, {checks.num_failed} failed")
    sys.exit(checks.num_failed > 0)


if __name__ == "__main__":
    main()
