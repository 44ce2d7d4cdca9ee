"""Is `auto` near the best of the project's own methods?  All of them on all models, without peers.

    python scripts/bench/methods.py
    python scripts/bench/methods.py --families birth-death-2e4 inventory-5e3 --gammas .99 .9999 \
        --tols 1e-6 --csv build/peers/methods.csv

A cell is a model, a discount and an accuracy.  `auto` and the methods solve it in turn in this
process, on one thread, certified; what is compared are medians of the seconds of processor.  A
method is given up at several times what the fastest before it took, and a run of over a second is
not repeated.  Printed are the cells as they come and, at the end, those where `auto` took more than
`--limit` times as long as the best, and how seconds grow with the horizon.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from _contest import Run
from _machine import machine_line
from _output import append_rows, print_table, read_rows
from _results import OURS, Cell, Results, horizon_slopes
from _workers import MOST_WAITING
from families import FAMILIES, HELD_OUT, Model, family
from peers import GAMMAS, GENERAL, SAMPLES, TOLS

import planners

#: What converges whatever the model; the aggregation of the paper does not, or not soon.
METHODS = (
    "multilevel_policy_iteration",
    "forest_policy_iteration",
    "modified_policy_iteration",
    "policy_iteration",
    "gauss_seidel",
    "value_iteration",
    "basin_aggregation",
)
#: Times the seconds of the fastest that another may take, and seconds that it always may.
TIMES, ALWAYS = 3.0, 0.2
#: A run that takes longer is not repeated; short ones are, until they come to so much together.
LONG, SHORT, MOST_REPEATS = 1.0, 0.05, 9


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument(
        "--families", nargs="+", choices=[*FAMILIES, *HELD_OUT], default=[*GENERAL], metavar="NAME"
    )
    parser.add_argument("--gammas", nargs="+", type=float, default=GAMMAS)
    parser.add_argument("--tols", nargs="+", type=float, default=TOLS)
    parser.add_argument(
        "--methods", nargs="+", choices=[*planners.METHODS], default=[*METHODS], help="beside auto"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=10.0, metavar="S", help="for one solve")
    parser.add_argument("--limit", type=float, default=1.25, help="that auto is to stay within")
    parser.add_argument("--csv", type=Path, help="also write the runs here")
    parser.add_argument("--resume", action="store_true", help="leave out what --csv holds already")
    return parser.parse_args(arguments)


def solve(
    model: Model, shared: dict[str, Any], method: str, tol: float, limit: float = math.inf
) -> Run:
    """Solve once, in so many seconds of processor at most, and say how that went."""
    start = time.process_time()
    # The project's own limit is one of the clock, which others' work drives as well.
    limits: dict[str, Any] = {}
    if limit < math.inf:
        limits["callback"] = lambda _: time.process_time() - start > limit
        limits["time_limit"] = MOST_WAITING * limit
    try:
        result = planners.solve(
            model,
            gamma=shared["gamma"],
            tol=tol,
            method=method,
            num_threads=1,
            **limits,
        )
    except ValueError as error:  # a method for models of moves alone
        return Run(**shared, tol=tol, solver=OURS, variant=method, status="-", note=str(error))
    seconds = time.process_time() - start
    scale = max(float(abs(result.values).max()), sys.float_info.min)
    return Run(
        **shared,
        tol=tol,
        solver=OURS,
        variant=method,
        status="ok" if result.status.success else f"over {limit:.3g} s",
        seconds=seconds,
        bound=result.bound / scale,
        max_value=scale,
        iterations=result.num_iterations,
        note=f"{result.method}: {result.reason}" if method == "auto" else "",
    )


def measure(
    model: Model, shared: dict[str, Any], tol: float, options: argparse.Namespace
) -> list[Run]:
    """Let auto and the methods solve one cell in turn; return a run of each, medians in it."""
    runs: dict[str, list[Run]] = {}
    best = math.inf
    for method in ("auto", *options.methods):
        limit = min(options.timeout, max(ALWAYS, TIMES * best))
        # A first run loads what it needs, and shows what takes too long to have it repeated.
        first = solve(model, shared, method, tol, limit)
        runs[method] = [first]
        if first.status == "ok":
            best = min(best, first.seconds)
    for _ in range(MOST_REPEATS):
        unsure = [
            done
            for done in runs.values()
            if done[0].status == "ok"
            and done[0].seconds < min(LONG, 2 * TIMES * best)
            and sum(run.seconds for run in done[1:]) < max(SHORT, 2 * best)
        ]
        for done in unsure:
            done.append(solve(model, shared, done[0].variant, tol))
    return [median(done) for done in runs.values()]


def median(runs: Sequence[Run]) -> Run:
    """Return one run with the median seconds of those after the first, if there are any."""
    measured = runs[1:] or runs
    seconds = statistics.median(run.seconds for run in measured)
    values = asdict(runs[-1]) | {"seconds": seconds, "repeats": len(measured)}
    return Run(**values)


def line(runs: Sequence[Run]) -> list[str]:
    """Return a cell as a line of the table: seconds of each, the least marked, and auto's ratio."""
    auto, *others = runs
    best = min((run.seconds for run in others if run.status == "ok"), default=math.nan)
    least = min((run.seconds for run in runs if run.status == "ok"), default=math.nan)
    times = [
        (f"{run.seconds:.3g}" + ("*" if run.seconds == least else ""))
        if run.status == "ok"
        else run.status.replace("over ", "> ")
        for run in runs
    ]
    if auto.status == "ok":
        ratio = f"{auto.seconds / best:.2f}" if best > 0 else "only auto"
    else:
        ratio = "auto fails" if best > 0 else "none"
    took = auto.note.partition(":")[0]
    return [auto.family, f"{auto.gamma:g}", f"{auto.tol:g}", *times, ratio, took]


def main() -> int:
    """Measure and print; return how many cells `auto` did not solve where a method did."""
    options = parse()
    print(machine_line())
    rows = read_rows(options.csv) if options.csv and options.resume else []
    if options.csv and not options.resume:
        options.csv.unlink(missing_ok=True)
    done = {(r["family"], float(r["gamma"]), float(r["tol"])) for r in rows}
    # Compiles what is not compiled, so that no method is given up for that.
    for name in SAMPLES:
        for method in ("auto", *options.methods):
            shared = {"family": name, "seed": 0, "gamma": 0.99}
            solve(family(name)(0), shared, method, 1e-4)
    header = ["model", "gamma", "accuracy", "auto", *options.methods, "auto / best", "auto took"]
    print(" ".join(header), flush=True)
    for name in options.families:
        cells = [
            (name, gamma, tol)
            for gamma in options.gammas
            for tol in options.tols
            if (name, gamma, tol) not in done
        ]
        if not cells:
            continue
        model = family(name)(options.seed)
        for _, gamma, tol in cells:
            shared = {
                "family": name,
                "seed": options.seed,
                "gamma": gamma,
                "states": model.num_states,
            }
            runs = measure(model, shared, tol, options)
            print("  ".join(line(runs)), flush=True)
            found = [asdict(run) for run in runs]
            rows += [{key: str(value) for key, value in row.items()} for row in found]
            if options.csv:
                append_rows(options.csv, found)
    results = Results(rows, {})
    return summarise(results, options.limit)


def summarise(results: Results, limit: float) -> int:
    """Print the matrix, where `auto` is behind, and the slopes; return how often it fails alone."""
    ratios: dict[Cell, float] = {where: results.behind(where) for where in results.cells}
    behind = sorted((c for c, ratio in ratios.items() if ratio > limit), key=ratios.__getitem__)
    table = []
    for cell in behind[::-1]:
        auto, *others = results.own(cell)
        solved = [pair for pair in zip(others, results.methods[1:], strict=True) if pair[0].is_ok]
        best, method = min(solved, key=lambda pair: pair[0].seconds)
        table.append(
            [
                *(cell[0], f"{cell[1]:g}", f"{cell[2]:g}"),
                f"{auto.seconds:.3g}" if auto.is_ok else auto.status,
                *(f"{best.seconds:.3g}", method, f"{ratios[cell]:.2f}"),
            ]
        )
    print_table(
        ["model", "gamma", "accuracy", "auto", "best", "by", "auto / best"],
        table,
        title=f"auto beyond {limit:g} times the best: {len(behind)} of {len(ratios)} cells",
    )
    print_table(
        ["model", "accuracy", "auto: slope", "best: slope"],
        [
            [name, f"{tol:g}", f"{auto:.2f}", f"{best:.2f}"]
            for (name, tol), (auto, best) in horizon_slopes(results).items()
        ],
        title="log seconds against log 1 / (1 - gamma)",
    )
    return sum(math.isinf(ratio) for ratio in ratios.values())


if __name__ == "__main__":
    try:
        sys.exit(int(main() > 0))
    except KeyboardInterrupt:
        print("\ninterrupted; --csv and --resume go on from here", file=sys.stderr)
        sys.exit(130)
