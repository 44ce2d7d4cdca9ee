"""Which solver is how fast at a true accuracy: this project beside what else there is.

    python scripts/bench/peers.py --quick --out build/peers
    python scripts/bench/peers.py --families maze-316 garnet-1e5-5 --gammas .99 --tols 1e-6 \
        --peers quantecon --seeds 3 --out build/peers
    python scripts/bench/report.py build/peers

Every solver gets the same model from a file and solves it in a process of its own, on one thread;
each peer lives in an environment of its own, which this script makes.  What a solver returns is
held against optimal values found by policy iteration in the script itself, and only the seconds of
solving count: reading, converting and checking the model stand in a column of their own.

A peer's stopping parameter is moved by factors of ten, from the accuracy asked for, to the loosest
that truly reaches that accuracy, so that it is not charged for being careful, nor credited where it
stops too soon; where it has several methods, the fastest on the first seed runs on all.
This project's own solvers get no such help: they stop at what they certify.  Peer and own runs
alternate, and the medians of the seconds of processor are compared.  One of its own methods also
runs on two threads, in a column apart.

Writes ``runs.csv``, a line a solver and model, and ``setup.json``.
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from _contest import OURS, PEERS, Contest, History, Run
from _environments import Environment, NotMadeError, default_folder, environment, find_python
from _machine import machine
from _output import append_rows, read_rows
from families import FAMILIES, family

import planners

#: Options that are about the machine, not about what is measured.
PLACES = ("--out", "--envs", "--python")

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
        "garnet-1e4-5",
        "garnet-1e5-2",
        "garnet-1e5-5",
        "tandem-queue-316",
        "frozen-lake-300",
        "cartpole-1e4",
    ],
    "gammas": [0.95, 0.99, 0.999],
    "tols": [1e-2, 1e-6],
    "seeds": 3,
    "timeout": 60.0,
}


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command, those of the preset filled in."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    preset = parser.add_mutually_exclusive_group()
    preset.add_argument("--quick", action="store_true", help="small models, a few minutes")
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
    parser.add_argument("--timeout", type=float, metavar="S", help="seconds for one solve")
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
    for name, value in (FULL if options.full else QUICK).items():
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
    return options


def main() -> int:
    """Run the contests; return how many results were wrong."""
    options = parse()
    if options.list:
        print("families:", *FAMILIES, sep="\n  ")
        print("peers:", *PEERS, sep="\n  ")
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    environments: dict[str, Environment] = {}
    python = find_python(options.python) if options.peers else ""
    for name in options.peers:
        print(f"environment of {name} ...", end=" ", flush=True)
        try:
            environments[name] = environment(name, options.envs, python)
            print(environments[name].versions.get(name, "ready"))
        except NotMadeError as error:
            print(f"left out: {error}")
    write_setup(options, environments)
    path = options.out / "runs.csv"
    done = {(r["family"], int(r["seed"]), float(r["gamma"])) for r in read_rows(path)}
    if not options.resume:
        path.unlink(missing_ok=True)
        done = set()
    history = History()
    wrong = 0
    for name in options.families:
        for gamma in options.gammas:
            for seed in range(options.seeds):
                if (name, seed, gamma) in done:
                    continue
                start = time.perf_counter()
                try:
                    contest = Contest(name, seed, gamma, options, environments, history)
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
                    wrong += row.status in ("not accurate", "BOUND VIOLATED") and row.solver == OURS
                append_rows(path, [asdict(row) for row in rows])
    print(f"\n{path}")
    return int(wrong > 0)


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
        "commands": [*before.get("commands", []), command(sys.argv[1:])],
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
