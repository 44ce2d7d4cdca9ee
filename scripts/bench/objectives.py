"""Objectives without a discount: this project beside the solvers that have them.

    python scripts/bench/objectives.py --small
    python scripts/bench/objectives.py --page docs/objectives_benchmark.md

Total costs are held against Storm (minimal expected rewards until the end, and probabilities to be
paid a prize; its default method, its sound one, and policy iteration), mean costs against
mdpsolver, pymdptoolbox and Storm, horizons against QuantEcon, pymdptoolbox and Storm; the smallest
models against linear programs as well.  Everybody is asked for an accuracy of 1e-6, relative to the
largest value or, by Storm, to each, and has one thread; only seconds of processor for solving
count, the median of runs that take turns.

The truth is the interval that this project certifies, solved once more as sharply as it can.
What a peer misses it by is its error: it cannot be less than that, whatever the exact answer is.
"""

from __future__ import annotations

import argparse
import math
import os
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from _environments import (
    Environment,
    NotMadeError,
    default_folder,
    environment,
    existing,
    find_python,
)
from _machine import machine_line
from _models import tables_of, write_model
from _output import markdown, write_rows
from _workers import FailedError, Worker
from families import (
    Model,
    absorbing_walk,
    birth_death,
    forest,
    frozen_lake,
    gambler,
    garnet,
    inventory,
    machine_replacement,
    maze,
    paid_roads,
    tandem_queue,
    terrain,
    wading_lake,
)
from numpy.typing import NDArray

#: Accuracy that is asked for, relative to the largest value; and that of the truth.
TOL, TRUE_TOL = 1e-6, 1e-10
#: Errors above this are wrong answers: ten times what was asked.
WRONG = 10 * TOL
#: Models up to this many states are given to linear programming.
MOST_FOR_LP = 130
#: Seconds that compiling, or the truth of one model, may take.
COMPILING, SHARPENING = 600.0, 20.0
#: Runs below so many seconds are repeated more often.
SHORT = 0.05
OURS = "ours"


@dataclass(frozen=True)
class Case:
    """A model and what is asked of it.

    Parameters
    ----------
    name : str
    make : callable
        Makes the model of a seed.
    objective : dict
        As ``adapters/worker.py`` takes it; ``prize`` may be -1 for the last state.
    """

    name: str
    make: Callable[[int], Model]
    objective: dict[str, Any]


@dataclass(frozen=True)
class Row:
    """What a solver made of a case; seconds and errors are NaN where there are none."""

    objective: str
    model: str
    states: int
    solver: str
    seconds: float
    own_seconds: float
    build_seconds: float
    error: float
    bound: float
    note: str

    @property
    def ratio(self) -> float:
        """How many times our seconds it took."""
        return self.seconds / self.own_seconds

    @property
    def is_right(self) -> bool:
        """Whether it came to an answer that can be true."""
        return not self.note and self.error <= WRONG


TOTAL: dict[str, Any] = {"name": "total"}
PRIZE: dict[str, Any] = {"name": "total", "prize": -1}
AVERAGE: dict[str, Any] = {"name": "average"}


def of_sizes(
    name: str, make: Callable[[int, int], Model], objective: dict[str, Any], *sizes: int
) -> Iterator[Case]:
    """Yield a case for each size."""
    for size in sizes:
        yield Case(f"{name} {size}", partial(make, size), objective)


def horizons(name: str, make: Callable[[int, int], Model], *shapes: tuple[int, int]) -> list[Case]:
    """Return a case for each size and number of steps."""
    return [
        Case(f"{name} {size}, {T} steps", partial(make, size), {"name": "horizon", "steps": T})
        for size, T in shapes
    ]


def random_model(num_states: int, seed: int) -> Model:
    """Return a Garnet of four actions and five outcomes."""
    return garnet(num_states, 4, 5, seed)


def corridor(num_states: int, seed: int) -> Model:
    """Return a walk of a thousand and more steps to either end, where nothing is paid."""
    return absorbing_walk(num_states, seed, prize=0.0)


CASES = [
    *chain(
        of_sizes("lake with a prize", frozen_lake, PRIZE, 10, 100, 300),
        of_sizes("lake, steps and falls cost", wading_lake, TOTAL, 10, 100, 300),
        of_sizes("slip maze", partial(maze, p=0.95), TOTAL, 10, 100, 316),
        of_sizes("slip terrain", partial(terrain, p=0.95), TOTAL, 10, 100, 316),
        of_sizes("gambler", gambler, PRIZE, 100, 1000),
        of_sizes("free cycles", paid_roads, TOTAL, 100, 10_000, 100_000),
        of_sizes("corridor", corridor, TOTAL, 100, 10_000, 100_000),
        of_sizes("inventory", inventory, AVERAGE, 100, 10_000, 100_000),
        of_sizes("tandem queue", tandem_queue, AVERAGE, 10, 100, 316),
        of_sizes("birth-death", birth_death, AVERAGE, 100, 10_000, 100_000),
        of_sizes("machine replacement", machine_replacement, AVERAGE, 100, 10_000, 100_000),
        of_sizes("garnet", random_model, AVERAGE, 100, 10_000, 100_000),
    ),
    *horizons("inventory", inventory, (100, 200), (10_000, 100), (100_000, 50)),
    *horizons("garnet", random_model, (100, 200), (10_000, 100), (100_000, 50)),
    *horizons("forest", forest, (100, 200), (10_000, 100), (1_000_000, 50)),
]
STORM: dict[str, dict[str, Any]] = {
    "default": {},
    "sound": {"sound": True},
    "policy iteration": {"method": "POLICY_ITERATION"},
}
#: Who has an objective: name of the adapter, that of the environment, and methods.
PEERS: dict[str, list[tuple[str, str, dict[str, dict[str, Any]]]]] = {
    "total": [("stormpy", "stormpy", STORM), ("scipy_lp", "scipy", {"HiGHS": {}})],
    "average": [
        (
            "mdpsolver",
            "mdpsolver",
            {name: {"algorithm": name} for name in ("mpi", "vi", "pi")},
        ),
        ("pymdptoolbox", "pymdptoolbox", {"relative VI": {}}),
        ("stormpy", "stormpy", {"default": {}}),
        ("scipy_lp", "scipy", {"HiGHS": {}}),
    ],
    "horizon": [
        ("quantecon", "quantecon", {"backward": {}}),
        ("pymdptoolbox", "pymdptoolbox", {"backward": {}}),
        ("stormpy", "stormpy", {"first step only": {}}),
    ],
}


def distance(found: NDArray[np.float64], lower: Any, upper: Any) -> float:
    """Return how far values lie outside an interval at most; infinite where either is alone."""
    with np.errstate(invalid="ignore"):
        outside = np.maximum(np.maximum(lower - found, found - upper), 0.0)
    outside[(found == lower) | (found == upper)] = 0.0
    return float(np.where(np.isnan(outside), np.inf, outside).max())


class Contest:
    """Solvers that take turns on one model."""

    def __init__(
        self, case: Case, environments: dict[str, Environment], options: argparse.Namespace
    ) -> None:
        self.case, self._environments, self._options = case, environments, options

    def rows(self) -> list[Row]:
        """Return a row for every solver, ours first."""
        model = self.case.make(0)
        tables = tables_of(model)
        objective = dict(self.case.objective)
        if "prize" in objective:
            objective["prize"] %= model.num_states
        self._num_states = model.num_states
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            general, ours = write_model(Path(folder), model, tables)
            work = partial(Worker, gamma=1.0, objective=objective)
            own = stack.enter_context(
                work(sys.executable, "aggmaze_adapter", ours, timeout=COMPILING)
            )
            limit = self._options.timeout
            try:
                V, said = own.solve({"num_threads": 1}, 0.0, TOL)
            except FailedError as problem:
                rows = [self._row(OURS, own, [], [], math.nan, math.nan, str(problem)[:90])]
                V, said = np.zeros(model.num_states), {"bound": math.inf, "note": "failed"}
            else:
                rows = []
            lower, upper, scale = self._truth(own, V, said)
            if not own.is_alive:  # it was too long at it
                own = stack.enter_context(
                    work(sys.executable, "aggmaze_adapter", ours, timeout=COMPILING)
                )
            epsilon = TOL * scale
            for adapter, place, variants in PEERS[objective["name"]]:
                if place not in self._environments:
                    continue
                if adapter == "scipy_lp" and model.num_states > MOST_FOR_LP:
                    continue
                python = self._environments[place].python
                try:
                    peer = work(python, f"{adapter}_adapter", general, timeout=limit)
                except FailedError as problem:
                    rows.append(self._row(adapter, None, [], [], math.nan, math.nan, str(problem)))
                    continue
                for name, variant in variants.items():
                    if not peer.is_alive:
                        peer = work(python, f"{adapter}_adapter", general, timeout=limit)
                    title = f"{adapter}, {name}"
                    rows.append(
                        self._against(own, peer, title, variant, epsilon, (lower, upper, scale))
                    )
                peer.close()
            if not any(row.solver == OURS for row in rows):
                taken = [r.own_seconds for r in rows if not math.isnan(r.own_seconds)]
                seconds = taken or [self._own(own) for _ in range(3)]
                error = distance(V, lower, upper) / scale
                row = self._row(OURS, own, seconds, seconds, error, said["bound"] / scale, "")
                rows.insert(0, replace(row, note=said["note"][:120]))
        return rows

    def _truth(
        self, own: Worker, V: NDArray[np.float64], said: dict[str, Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Return the certified interval, as narrow as there is one, and the largest value."""
        bound = said["bound"]
        if not said["note"]:
            try:
                sharper, there = own.solve({"num_threads": 1}, 0.0, TRUE_TOL, SHARPENING)
            except FailedError:
                pass
            else:
                if there["bound"] < bound:
                    V, bound = sharper, there["bound"]
        finite = V[np.isfinite(V)]
        scale = float(np.abs(finite).max(initial=0.0)) or 1.0
        return V - bound, V + bound, scale

    def _against(
        self,
        own: Worker,
        peer: Worker,
        title: str,
        variant: dict[str, Any],
        epsilon: float,
        truth: tuple[NDArray[np.float64], NDArray[np.float64], float],
    ) -> Row:
        """Run a peer and ours in turn."""
        lower, upper, scale = truth
        theirs: list[float] = []
        ours: list[float] = []
        note, error, bound = "", math.nan, math.nan
        repeats = self._options.repeats
        try:
            peer.solve(variant, epsilon, TOL)  # compiles what it compiles, and is not counted
            while len(theirs) < (repeats if sum(theirs) > SHORT else 3 * repeats):
                found, said = peer.solve(variant, epsilon, TOL)
                theirs.append(said["cpu_seconds"])
                if own.is_alive:
                    ours.append(self._own(own))
                # Rows of a horizon are laid out one after the other; some return the first only.
                kept = slice(0, len(found))
                error = distance(found, lower.reshape(-1)[kept], upper.reshape(-1)[kept]) / scale
                if np.isneginf(lower).any():  # no bound: nothing to be held against
                    error = math.nan
                bound = math.nan if said["bound"] is None else said["bound"] / scale
                if theirs[-1] > 1.0:  # long enough for one
                    break
        except FailedError as problem:
            note = str(problem)[:90]
        return self._row(title, peer, theirs, ours, error, bound, note)

    def _own(self, own: Worker) -> float:
        return float(own.solve({"num_threads": 1}, 0.0, TOL)[1]["cpu_seconds"])

    def _row(
        self,
        solver: str,
        worker: Worker | None,
        theirs: list[float],
        ours: list[float],
        error: float,
        bound: float,
        note: str,
    ) -> Row:
        objective = self.case.objective["name"]
        return Row(
            objective,
            self.case.name,
            self._num_states,
            solver,
            statistics.median(theirs) if theirs else math.nan,
            statistics.median(ours) if ours else math.nan,
            worker.build_seconds if worker else math.nan,
            error,
            bound,
            note,
        )


def figure(number: float, form: str = ".2g") -> str:
    """Return a number, or a dash for none."""
    return "-" if math.isnan(number) else f"{number:{form}}"


def lines(rows: list[Row]) -> list[list[str]]:
    """Return a line of the table for each case: where we are slowest beside others first."""
    cases: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        cases.setdefault((row.objective, row.model), []).append(row)
    ranked = []
    for own, *peers in cases.values():
        right = [p for p in peers if p.is_right and not math.isnan(p.seconds)]
        best = min(right, key=lambda p: p.ratio if p.ratio == p.ratio else 0.0, default=None)
        rest = "; ".join(_told(p) for p in peers if p is not best)
        solved = not own.note
        ratio = (best.ratio if best else math.inf) if solved else 0.0
        cells = [
            own.objective,
            own.model,
            f"{own.states:,}",
            figure(own.seconds, ".3g"),
            figure(own.bound, ".0e") if solved else "NOT SOLVED",
            best.solver if best else "none right",
            figure(best.seconds, ".3g") if best else "-",
            _error(best) if best else "-",
            figure(best.bound, ".0e") if best else "-",
            (figure(ratio, ".3g") if best else "-") if solved else "lost",
            rest,
        ]
        ranked.append((ratio, cells))
    return [cells for _, cells in sorted(ranked, key=lambda pair: pair[0])]


def _error(row: Row) -> str:
    if math.isnan(row.error):
        return "-"
    return "0" if row.error == 0 else f"{row.error:.0e}"


def _told(row: Row) -> str:
    """Return a peer's other results in words: seconds, and what they are worth."""
    if math.isnan(row.seconds):
        return f"{row.solver}: {row.note}"
    what = f"{row.solver} {row.seconds:.3g} s"
    if row.note:
        return f"{what}, then {row.note}"
    if math.isnan(row.error):
        return f"{what}, unverified"
    return f"{what}, WRONG by {row.error:.0e}" if row.error > WRONG else what


def findings(rows: list[Row]) -> str:
    """Return in a few sentences what the numbers say, losses first."""
    table = lines(rows)
    ratios = [float(cells[9]) for cells in table if cells[9] not in ("-", "lost")]
    unsolved = [cells[1] for cells in table if cells[4] == "NOT SOLVED"]
    alone = [cells[1] for cells in table if cells[9] == "-"]
    slower = [cells for cells in table if cells[9] not in ("-", "lost") and float(cells[9]) < 1]
    said = [
        f"Of {len(table)} cells {len(unsolved)} are not solved by us"
        + (f" ({', '.join(unsolved)})" if unsolved else "")
        + f", and in {len(slower)} a peer that is right is faster"
        + f"; in {len(alone)} no peer is right"
        + (f" ({', '.join(alone)})" if alone else "")
        + "."
    ]
    if ratios:
        said.append(
            f"Where one is right, the fastest takes {statistics.median(ratios):.3g} times our "
            f"seconds in the median, {min(ratios):.3g} to {max(ratios):.3g}."
        )
    names = dict.fromkeys(row.solver for row in rows if row.solver != OURS)
    for name in names:
        of = [row for row in rows if row.solver == name]
        wrong = [row for row in of if row.error > WRONG]
        failed = sum(bool(row.note) for row in of)
        if wrong or failed:
            worst = max(wrong, key=lambda row: row.error, default=None)
            said.append(
                f"{name}: {len(of)} runs, {len(wrong)} wrong"
                + (f" (worst {worst.error:.0e}, {worst.model})" if worst else "")
                + f", {failed} without an answer in time."
            )
    return "\n".join(f"- {sentence}" for sentence in said)


def page(rows: list[Row], versions: str, taken: str, load: float, left_out: list[str]) -> str:
    """Return the page for the docs; ``load`` is what ran beside it at the start."""
    header = [
        "objective",
        "model",
        "states",
        "ours, s",
        "certified",
        "fastest right peer",
        "s",
        "error",
        "its bound",
        "ratio",
        "the others",
    ]
    return f"""# Objectives without a discount, beside other solvers

```sh
{taken}
```

{machine_line()};
peers: {versions}.
Load of the machine at the start: {load:.1f}. Not run: {", ".join(left_out) or "nothing"}.

Seconds are of one processor, medians of runs in turn, {TOL:g} asked of all. `certified` is our
bound, `error` what a peer misses our sharpest certified interval by (0: it lies inside), and
`its bound` what it vouches for itself, all relative to the largest value. `ratio` is the peer's
time over ours, our losses first; more than {WRONG:g} off is wrong, and "unverified" is what we have
no certified values for. mdpsolver returns no gain: both its gain and its bound are had from a sweep
that we add to its time. Linear programs are solved by HiGHS, Storm's finite horizon is of the first
step only, and a prize is asked of Storm as a probability. Where Storm returns bounds, they are as
wide as shown. Every run starts from no values and no policy; Storm keeps the graph of a model
between runs, which saves it up to half of its time at 100 states and nothing that shows at 10,000.
Its policy iteration is not its default; where it is wrong, an accuracy of 1e-12 did not help.

{findings(rows)}

{markdown(header, lines(rows))}"""


def compile_kernels() -> None:
    """Let the project compile what it has not compiled yet, so that no run is timed with that."""
    smallest = {(case.make.func, case.objective["name"]): case for case in reversed(CASES)}  # type: ignore[attr-defined]
    for case in smallest.values():
        model = case.make(0)
        with tempfile.TemporaryDirectory() as folder:
            _, ours = write_model(Path(folder), model, tables_of(model))
            adapter = ("aggmaze_adapter", ours, 1.0)
            with Worker(
                sys.executable, *adapter, timeout=COMPILING, objective=case.objective
            ) as worker:
                worker.solve({"num_threads": 1}, 0.0, TOL)


def parse() -> argparse.Namespace:
    """Return the options of the command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--small", action="store_true", help="models of about 100 states only")
    parser.add_argument("--only", default="", help="models whose name or objective holds this")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="pairs of runs")
    parser.add_argument("--timeout", type=float, default=5.0, metavar="S", help="for a peer's run")
    parser.add_argument("--budget", type=float, default=900.0, metavar="S", help="for everything")
    parser.add_argument("--envs", type=Path, default=default_folder(), help="of the peers")
    parser.add_argument("--python", help="to make them anew with; by default those there are taken")
    parser.add_argument("--page", type=Path, help="write the results here, in Markdown")
    parser.add_argument("--csv", type=Path, help="write every run here")
    options = parser.parse_args()
    if options.repeats < 1 or not min(options.timeout, options.budget) > 0:
        parser.error("--repeats must be at least 1, --timeout and --budget positive")
    return options


def main() -> None:
    """Run the contests; print and write what they come to."""
    options = parse()
    start, load = time.perf_counter(), os.getloadavg()[0]
    names = {place for peers in PEERS.values() for _, place, _ in peers}
    environments = {}
    for name in sorted(names):
        try:
            there = None if options.python else existing(name, options.envs)
            environments[name] = there or environment(
                name, options.envs, find_python(options.python)
            )
        except NotMadeError as problem:
            print(f"{name}: left out: {problem}")
    compile_kernels()
    chosen = [
        case
        for case in CASES
        if options.only.lower() in f"{case.objective['name']} {case.name}".lower()
    ]
    if options.small:
        first = {(case.make.func, case.objective["name"]): case for case in reversed(chosen)}  # type: ignore[attr-defined]
        chosen = [case for case in chosen if case in first.values()]
    rows: list[Row] = []
    for case in chosen:
        if time.perf_counter() - start > options.budget:
            print(f"{case.name}: left out: --budget is used up")
            continue
        for row in Contest(case, environments, options).rows():
            rows.append(row)
            print(f"{row.objective} {row.model}: {_told(row)}", flush=True)
    versions = ", ".join(
        f"{name} {made.versions.get(name, '')}" for name, made in environments.items()
    )
    words = shlex.join(["python", "scripts/bench/objectives.py", *sys.argv[1:]])
    done = {(row.objective, row.model) for row in rows}
    left_out = [c.name for c in CASES if (c.objective["name"], c.name) not in done]
    text = page(rows, versions, words, load, left_out)
    print(text)
    if options.page:
        options.page.write_text(text)
    if options.csv:
        options.csv.parent.mkdir(parents=True, exist_ok=True)
        write_rows(options.csv, [asdict(row) for row in rows])


if __name__ == "__main__":
    main()
