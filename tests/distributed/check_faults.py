"""Kill -9 one of two processes in the middle, go on with one and with three: the same answer.

Run by ``.ci/run`` after check_distributed.py, in the same environment:

    PATH=$PWD/distributed/bin:$PATH distributed/bin/python tests/distributed/check_faults.py

This process starts itself again under ``mpiexec``, kills one of two processes at a random moment,
and waits for the launcher to end the other; then copies of what is left in the folder are gone on
with by one process and by three.  They must come to what an undisturbed run of one process comes to
without PETSc, to the last bit.  Ten times; and SIGTERM, to all, once for each method.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import cases
import numpy as np
from check_distributed import Checks, run, start

import planners

#: Seconds after which what was started is taken to hang.
PATIENCE = 300.0
NUM_KILLS = 10
MODEL, EVERY = "terrain, slips", 3
RUNS: dict[str, dict[str, Any]] = {
    "sweeps": {"method": "value_iteration"},
    "Algorithm 3": {"method": "adaptive_aggregation", "num_iterations": 120, "epsilon": 0.2},
    "shrinking bins": {"method": "adaptive_aggregation", "epsilon": "shrink"},
}


def numbers(result: Any) -> np.ndarray:
    return np.array(
        [
            result.bound,
            result.policy_bound,
            result.num_iterations,
            result.num_sweeps,
            result.num_updates,
            result.num_certificate_sweeps,
        ]
    )


def arrays(result: Any) -> dict[str, np.ndarray]:
    """What must be the same."""
    history = result.history
    return {
        "values": result.values,
        "policy": result.policy,
        "numbers": numbers(result),
        "history": np.stack([history.bound, history.residual, history.num_updates]),
        "labels": np.empty(0, np.int32) if result.labels is None else result.labels,
    }


def side(name: str, folder: str, target: str, pause: str) -> None:
    """Solve in one of several processes, and say which one this is."""
    from planners.distributed.processes import world

    processes = world()
    place = Path(folder).parent / f"pid-{processes.rank}"
    place.with_suffix(".part").write_text(str(os.getpid()))
    place.with_suffix(".part").rename(place)

    def slowly(progress: planners.Progress) -> None:
        time.sleep(float(pause))

    result = planners.solve(
        cases.MODELS[MODEL][1](),
        gamma=cases.GAMMA,
        engine="petsc",
        checkpoint=planners.Checkpoint(folder, every_iterations=EVERY),
        callback=slowly,
        **RUNS[name],
    )
    whole = result.gathered()
    if processes.rank == 0:
        np.savez(target, message=whole.message, **arrays(whole))


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENCE
    while not path.exists():
        if process.poll() is not None or time.monotonic() > end:
            output, errors = process.communicate()
            raise AssertionError(f"no {path.name}:\n{output}{errors}")
        time.sleep(0.005)


def strike(name: str, number: int, victims: list[int], wait: float, folder: Path) -> Path:
    """Start two processes, end some of them after a while; return where their run was kept."""
    kept = folder / "kept"
    command = [__file__, "side", name, str(kept), str(folder / "never.npz"), "0.02"]
    with start(2, *command) as process:
        for rank in range(2):
            wait_for(folder / f"pid-{rank}", process)
        wait_for(kept / "a.json", process)
        time.sleep(wait)
        pids = [int((folder / f"pid-{rank}").read_text()) for rank in range(2)]
        for victim in victims:
            os.kill(pids[victim], number)
        try:
            process.communicate(timeout=60.0)
        except subprocess.TimeoutExpired:
            # A launcher that leaves the others waiting is ended as a scheduler would.
            process.kill()
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.communicate()
    return kept


def go_on(name: str, size: int, kept: Path) -> dict[str, np.ndarray]:
    """Return what so many processes make of a copy of what was kept."""
    with tempfile.TemporaryDirectory() as folder:
        copy, target = Path(folder) / "kept", Path(folder) / "result.npz"
        shutil.copytree(kept, copy)
        code, output, errors = run(size, __file__, "side", name, str(copy), str(target), "0")
        if code != 0:
            raise AssertionError(f"{size} processes ended with {code}:\n{output}{errors}")
        with np.load(target) as found:
            return dict(found)


def check(checks: Checks, words: str, found: dict[str, np.ndarray], expected: Any) -> None:
    differ = [
        key
        for key, array in arrays(expected).items()
        if not np.array_equal(found[key], array, equal_nan=True)
    ]
    message = str(found["message"])
    if "resumed at iteration" not in message:
        differ.append(f"what it says ({message})")
    checks.that(not differ, f"{words}: {message}", f"not of {', '.join(differ)}")


def main() -> int:
    checks = Checks()
    rng = np.random.default_rng(0)
    model = cases.MODELS[MODEL][0]()
    undisturbed = {
        name: planners.solve(model, gamma=cases.GAMMA, **run) for name, run in RUNS.items()
    }
    for count in range(NUM_KILLS):
        name, victim = list(RUNS)[count % len(RUNS)], count % 2
        with tempfile.TemporaryDirectory() as folder:
            wait = rng.uniform(0.0, 1.0)
            kept = strike(name, signal.SIGKILL, [victim], wait, Path(folder))
            for size in (1, 3):
                words = f"{name}: process {victim} of 2 killed after {wait:.2f} s, then {size}"
                check(checks, words, go_on(name, size, kept), undisturbed[name])
    for name, expected in undisturbed.items():
        with tempfile.TemporaryDirectory() as folder:
            kept = strike(name, signal.SIGTERM, [0, 1], 0.3, Path(folder))
            with np.load(Path(folder) / "never.npz") as ended:
                message = str(ended["message"])
            checks.that("terminated by SIGTERM; the checkpoint" in message, f"{name}: {message}")
            check(checks, f"{name}: SIGTERM to both, then 3", go_on(name, 3, kept), expected)
    print(f"{checks.num_passed} passed, {checks.num_failed} failed")
    return 1 if checks.num_failed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["side"]:
        side(*sys.argv[2:])
    else:
        sys.exit(main())
