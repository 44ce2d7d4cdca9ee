"""Which solver is how fast at a true accuracy: this project beside what else there is.

    python scripts/bench/peers.py --quick --out build/peers
    python scripts/bench/peers.py --general --peers quantecon scipy_lu --far 4 --powers 1 \
        --threads 1 --repeats 2 --out build/peers
    python scripts/bench/peers.py --families maze-316 garnet-1e5-5 --gammas .99 --tols 1e-6 \
        --peers quantecon --seeds 3 --out build/peers
    python scripts/bench/report.py build/peers

Every solver gets the same model from a file and solves it in a process of its own, on one thread;
each peer lives in an environment of its own, which this script makes.  What a solver returns is
held against optimal values found by policy iteration in the script itself, and only the seconds of
solving count: reading, converting and checking the model stand in a column of their own.

A peer's stopping parameter is moved by factors of ten, from the accuracy asked for, to the loosest
that truly reaches that accuracy, so that it is not charged for being careful, nor credited where it
stops too soon; where it has several methods, the fastest on the first seed runs on all.  Two peers
are no library's solver but what is soon written with one: policy iteration with scipy's sparse LU
(`scipy_lu`) and with pyamg's multigrid (`pyamg`).
This project's own solvers get no such help: they stop at what they certify.  Peer and own runs
alternate, and the medians of the seconds of processor are compared.  One of its own methods also
runs on two threads, in a column apart.

Limits are seconds of processor.  Writes ``runs.csv``, a line a solver and model, ``ratios.csv``, a
line a cell with the fastest peer, what is lost first, and ``setup.json``.  `--resume` runs what the
first of them does not hold: other models, discounts, accuracies, seeds or peers.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import shlex
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import product
from pathlib import Path

from _contest import OURS, PEERS, Contest, History, Run
from _environments import Environment, NotMadeError, default_folder, environment, find_python
from _machine import machine
from _models import tables_of, write_model
from _output import append_rows, read_rows
from _results import write_ratios
from _workers import FailedError, Worker
from families import FAMILIES, HELD_OUT, family

import planners

#: Small models of every kind, that all kernels are compiled for before anything is timed.
SAMPLES = ("maze-20", "slip-terrain-20", "garnet-1e3-5", "frozen-lake-10")
#: Seconds that this may take for one of them.
COMPILING = 1200.0
#: Seconds of a run of ours from which one seed is enough.
LONG = 10.0
#: Options that are about the machine, not about what is measured.
PLACES = ("--out", "--envs", "--python")

#: Models without the layout of a grid, and grids without a goal.
GENERAL = (
    "garnet-100-5",
    "garnet-1e3-5",
    "garnet-1e4-5",
    "garnet-1e4-20",
    "near-deterministic-1e4",
    "two-mode-1e4",
    "hub-graph-1e4",
    "cyclic-1e4",
    "components-1e4",
    "band-walk-1e4",
    "layered-2e4",
    "small-world-2e4",
    "star-2e4",
    "ring-2e4",
    "slip-ring-2e4",
    "grid-without-goal-100",
    "slip-grid-without-goal-100",
    "torus-walk-100",
    "birth-death-1e3",
    "birth-death-2e4",
    "tandem-queue-10",
    "tandem-queue-100",
    "tandem-queue-150",
    "routing-150",
    "inventory-5e3",
    "inventory-5e4",
    "machine-replacement-2e4",
    "age-2e4",
    "population-2e4",
    "car-rental-20",
    "gambler-100",
    "gambler-1000",
    "absorbing-walk-2e4",
    "frozen-lake-10",
    "frozen-lake-100",
    "frozen-lake-120",
    "sailing-40",
    "cartpole-1e4",
)
QUICK = {
    "families": [
        "maze-100",
        "slip-maze-100",
        "terrain-100",
        "slip-terrain-100",
        "garnet-1e4-5",
        "tandem-queue-150",
        "frozen-lake-120",
    ],
    "gammas": [0.99],
    "tols": [1e-6],
    "seeds": 1,
    "timeout": 10.0,
}
#: Discounts and accuracies that general models are measured at.
GAMMAS, TOLS = [0.95, 0.99, 0.999, 0.9999], [1e-2, 1e-6]
ON_GENERAL = {
    "families": [*GENERAL],
    "gammas": GAMMAS,
    "tols": TOLS,
    "seeds": 1,
    "timeout": 5.0,
}
FULL = {
    "families": [
        "maze-316",
        "maze-1000",
        "slip-maze-316",
        "slip-maze-1000",
        "looped-maze-316",
        "looped-slip-maze-316",
        "terrain-316",
        "terrain-1000",
        "slip-terrain-316",
        "slip-terrain-1000",
        "slippery-terrain-316",
        "rough-slip-terrain-316",
        "uniform-slip-terrain-316",
        "difference-terrain-316",
        "difference-slip-terrain-316",
        "mild-difference-slip-terrain-316",
        "rewarding-slip-terrain-316",
        "maze-3d-46",
        "slip-terrain-3d-46",
        "slip-maze-6d-6",
        "slip-terrain-6d-6",
        *GENERAL,
        "garnet-1e5-2",
        "garnet-1e5-5",
        "tandem-queue-316",
        "frozen-lake-300",
    ],
    "gammas": GAMMAS,
    "tols": TOLS,
    "seeds": 5,
    "timeout": 60.0,
}


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command, those of the preset filled in."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    preset = parser.add_mutually_exclusive_group()
    preset.add_argument("--quick", action="store_true", help="small models, a few minutes")
    preset.add_argument("--general", action="store_true", help="general models, some hours")
    preset.add_argument("--full", action="store_true", help="everything, many hours")
    parser.add_argument("--families", nargs="+", metavar="NAME", help="models; --list names them")
    parser.add_argument("--gammas", nargs="+", type=float, metavar="G", help="discounts")
    parser.add_argument(
        "--tols", nargs="+", type=float, metavar="T", help="accuracies relative to max|V*|"
    )
    parser.add_argument("--peers", nargs="*", choices=[*PEERS], default=[*PEERS])
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=["auto", *planners.METHODS],
        default=["auto"],
        help="of ours",
    )
    parser.add_argument("--seeds", type=int, metavar="N", help="models of each family: seeds 0 on")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="pairs of runs")
    parser.add_argument("--timeout", type=float, metavar="S", help="for one solve")
    parser.add_argument(
        "--far", type=float, default=math.inf, metavar="N", help="end a peer at N times our seconds"
    )
    parser.add_argument("--memory", type=float, default=12.0, metavar="GIB", help="of a peer")
    parser.add_argument("--threads", type=int, default=2, help="of the column for several")
    parser.add_argument("--powers", type=int, default=6, help="of ten to move a peer's epsilon by")
    parser.add_argument(
        "--envs", type=Path, default=default_folder(), help="where environments are kept"
    )
    parser.add_argument("--python", help="to make them with; by default python3.12 if it runs")
    parser.add_argument("--out", type=Path, default=Path("build/peers"), help="for results")
    parser.add_argument("--resume", action="store_true", help="leave out what --out holds already")
    parser.add_argument("--list", action="store_true", help="name families and peers, and end")
    options = parser.parse_args(arguments)
    chosen = FULL if options.full else ON_GENERAL if options.general else QUICK
    for name, value in chosen.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    for name in options.families:
        try:
            family(name)
        except ValueError as error:
            parser.error(str(error))
    for name in ("seeds", "repeats", "threads", "powers"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1")
    if not all(0 < gamma < 1 for gamma in options.gammas):
        parser.error("--gammas must lie between 0 and 1")
    if not all(0 < tol < 1 for tol in options.tols):
        parser.error("--tols must lie between 0 and 1")
    # What fails at a loose one is not tried at a tighter one.
    options.tols = sorted(options.tols, reverse=True)
    return options


def main() -> int:
    """Run the contests; return how many results were wrong."""
    options = parse()
    if options.list:
        print("families:", *FAMILIES, sep="\n  ")
        print("held out:", *HELD_OUT, sep="\n  ")
        print("peers:", *PEERS, sep="\n  ")
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    environments: dict[str, Environment] = {}
    python = find_python(options.python) if options.peers else ""
    for name in options.peers:
        print(f"environment of {name} ...", end=" ", flush=True)
        try:
            environments[name] = environment(PEERS[name].environment, options.envs, python)
            print(environments[name].versions.get(name, "ready"))
        except NotMadeError as error:
            print(f"left out: {error}")
    write_setup(options, environments)
    path = options.out / "runs.csv"
    if not options.resume:
        path.unlink(missing_ok=True)
    history = History()
    history.add(read_rows(path))
    done: dict[tuple[str, int, float], set[tuple[float, str]]] = defaultdict(set)
    for r in read_rows(path):
        done[r["family"], int(r["seed"]), float(r["gamma"])].add((float(r["tol"]), r["solver"]))
    wanted = {(tol, solver) for tol in options.tols for solver in (OURS, *environments)}
    compile_kernels(options)
    long: set[tuple[str, float]] = set()
    wrong = 0
    for name in options.families:
        for gamma in options.gammas:
            for seed in range(options.seeds):
                there = done[name, seed, gamma]
                if wanted <= there or (name, gamma) in long:
                    continue
                start = time.perf_counter()
                try:
                    contest = Contest(name, seed, gamma, options, environments, history, there)
                except ValueError as error:
                    print(f"{name}: left out: {error}")
                    continue
                print(
                    f"\n{name}, seed {seed}, gamma {gamma:g}: made and solved for reference in "
                    f"{time.perf_counter() - start:.1f} s, to "
                    f"{contest.reference.error / contest.reference.max_value:.0e}",
                    flush=True,
                )
                rows = []
                for row in contest.runs():
                    print(line(row), flush=True)
                    rows.append(row)
                    if row.solver == OURS and row.seconds > LONG:
                        long.add((name, gamma))  # and needs no other seeds
                    wrong += row.status in ("not accurate", "BOUND VIOLATED") and row.solver == OURS
                append_rows(path, [asdict(row) for row in rows])
                write_ratios(options.out)
    print(f"\n{path}")
    return int(wrong > 0)


def compile_kernels(options: argparse.Namespace) -> None:
    """Let the project compile what it has not compiled yet, so that no solve is ended for that."""
    print("compiling what is not compiled ...", flush=True)
    methods = dict.fromkeys([*options.methods, *planners.METHODS])
    for name in SAMPLES:
        model = family(name)(0)
        with tempfile.TemporaryDirectory() as folder:
            paths = write_model(Path(folder), model, tables_of(model))
            for path, threads in product(dict.fromkeys(paths), dict.fromkeys([1, options.threads])):
                with Worker(
                    sys.executable,
                    "aggmaze_adapter",
                    path,
                    0.99,
                    timeout=COMPILING,
                    threads=threads,
                ) as worker:
                    for method in methods:
                        with suppress(FailedError):
                            worker.solve({"method": method, "num_threads": threads}, 0.0, 1e-4)


def line(run: Run) -> str:
    """Return a run as one line of text."""
    who = f"{run.solver} {run.variant}" + (f", {run.threads} threads" if run.threads > 1 else "")
    if run.status != "ok":
        return f"  {run.tol:<6g} {who:50} {run.status} {run.note[:100]}"
    seconds = run.wall_seconds if run.threads > 1 else run.seconds
    ratio = f"  {run.seconds / run.own_seconds:.3g} times ours" if run.own_seconds > 0 else ""
    return (
        f"  {run.tol:<6g} {who:50} {seconds:9.4f} s  error {run.error:.1e}  "
        f"+{run.peak_mb - run.before_mb:.0f} MB{ratio}"
    )


def write_setup(options: argparse.Namespace, environments: dict[str, Environment]) -> None:
    """Write what the results depend on; a resumed run adds itself to those before it."""
    path = options.out / "setup.json"
    before = json.loads(path.read_text()) if options.resume and path.exists() else {}
    versions = {name: made.versions for name, made in environments.items()}
    setup = {
        "commands": [*dict.fromkeys([*before.get("commands", []), command(sys.argv[1:])])],
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "python": platform.python_version(),
        "options": {k: v for k, v in vars(options).items() if k not in ("envs", "python", "out")},
        "versions": before.get("versions", {}) | versions,
    }
    path.write_text(json.dumps(setup, indent=1, default=str))


def command(arguments: Sequence[str]) -> str:
    """Return the command as another machine would run it: without this one's folders."""
    kept, words = ["python", "scripts/bench/peers.py"], iter(arguments)
    for word in words:
        if word in PLACES:
            next(words, None)
        elif not word.startswith(tuple(f"{place}=" for place in PLACES)):
            kept.append(word)
    return shlex.join(kept)


if __name__ == "__main__":
    # Ends the workers as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except NotMadeError as problem:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("\ninterrupted; --resume goes on from here", file=sys.stderr)
        sys.exit(130)
