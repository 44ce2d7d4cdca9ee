"""How seconds and memory grow with the number of states and with the horizon 1/(1-gamma).

    python scripts/bench/scaling.py
    python scripts/bench/scaling.py --families slip-terrain --methods auto --csv scaling.csv

Every solve runs in a process of its own, on one thread, to a certified accuracy.  Slopes are those
of straight lines through the logarithms, by least squares: 1 means in proportion.  Memory is the
peak of the solve beyond the process before the model was read, the model included.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from _machine import machine_line
from _models import tables_of, write_model, write_moves
from _output import write_rows
from _results import slope
from _workers import FailedError, Worker
from families import (
    Model,
    birth_death,
    frozen_lake,
    garnet,
    grid_without_goal,
    inventory,
    maze,
    tandem_queue,
    terrain,
    torus_walk,
)

import planners
from aggmaze import MoveMDP

#: What makes a model of about so many states.
GROWING: dict[str, Callable[[int], Model]] = {
    "maze": lambda n: maze(round(n**0.5), 0),
    "slip-maze": lambda n: maze(round(n**0.5), 0, p=0.95),
    "terrain": lambda n: terrain(round(n**0.5), 0),
    "slip-terrain": lambda n: terrain(round(n**0.5), 0, p=0.95),
    "slip-terrain-6d": lambda n: terrain(round(n ** (1 / 6)), 0, num_axes=6, p=0.95),
    "garnet": partial(garnet, num_actions=4, branching=5, seed=0),
    "tandem-queue": lambda n: tandem_queue(round(n**0.5), 0),
    "birth-death": partial(birth_death, seed=0),
    "inventory": partial(inventory, seed=0),
    "frozen-lake": lambda n: frozen_lake(round(n**0.5), 0),
    "torus-walk": lambda n: torus_walk(round(n**0.5), 0),
    "grid-without-goal": lambda n: grid_without_goal(round(n**0.5), 0),
    "slip-grid-without-goal": lambda n: grid_without_goal(round(n**0.5), 0, p=0.9),
}


def measure(
    model: Model, gamma: float, method: str, options: argparse.Namespace
) -> dict[str, float]:
    """Return medians of seconds, peak bytes and sweeps' worth of updates of one solve."""
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(model, MoveMDP):
            path = write_moves(Path(folder), model)
        else:
            path, _ = write_model(Path(folder), model, tables_of(model))
        with Worker(
            sys.executable, "aggmaze_adapter", path, gamma, timeout=options.timeout
        ) as worker:
            answers = [
                worker.solve({"method": method, "num_threads": 1}, 0.0, options.tol)[1]
                for _ in range(options.repeats + 1)
            ][1:]  # the first loads what it needs
    return {
        "seconds": statistics.median(answer["cpu_seconds"] for answer in answers),
        "bytes": 1e6 * (max(answer["peak_mb"] for answer in answers) - worker.before_mb),
        "iterations": answers[-1]["iterations"],
    }


def slopes(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Say how each family and method grows, from the rows in which one thing alone does."""
    lines = []
    for family, method in dict.fromkeys((row["family"], row["method"]) for row in rows):
        mine = [
            {name: float(row[name]) for name in ("size", "states", "gamma", "seconds", "bytes")}
            for row in rows
            if (row["family"], row["method"]) == (family, method)
        ]
        gamma = statistics.mode(row["gamma"] for row in mine)
        size = statistics.mode(row["size"] for row in mine)
        grown = [row for row in mine if row["gamma"] == gamma]
        further = sorted((row for row in mine if row["size"] == size), key=lambda r: r["gamma"])
        parts = []
        if len(grown) > 1:
            states = [row["states"] for row in grown]
            for what in ("seconds", "bytes"):
                parts.append(f"{what} as S^{slope(states, [r[what] for r in grown]):.2f}")
        if len(further) > 1:
            horizons = [1 / (1 - row["gamma"]) for row in further]
            exponent = slope(horizons, [row["seconds"] for row in further])
            parts.append(f"seconds as (1/(1-gamma))^{exponent:.2f}")
        if parts:
            lines.append(f"{family}, `{method}`: " + ", ".join(parts))
    return lines


def main() -> None:
    """Measure, and print the figures and their slopes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--families", nargs="+", choices=[*GROWING], default=[*GROWING])
    parser.add_argument(
        "--methods", nargs="+", choices=["auto", *planners.METHODS], default=["auto"]
    )
    parser.add_argument("--states", nargs="+", type=float, default=[1e4, 1e5, 1e6])
    parser.add_argument("--gammas", nargs="+", type=float, default=[0.95, 0.99, 0.999, 0.9999])
    parser.add_argument("--gamma", type=float, default=0.99, help="at which states grow")
    parser.add_argument("--size", type=float, default=1e5, help="states at which gamma grows")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--csv", type=Path, help="also write the figures here")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")
    print(machine_line())
    rows: list[dict[str, Any]] = []
    for family in options.families:
        # Both at once where they meet.
        cells = [(n, options.gamma) for n in options.states]
        cells += [(options.size, gamma) for gamma in options.gammas if gamma != options.gamma]
        for n, gamma in cells:
            model = GROWING[family](round(n))
            for method in options.methods:
                row = {
                    "family": family,
                    "method": method,
                    "size": n,
                    "states": model.num_states,
                    "gamma": gamma,
                }
                try:
                    rows.append(row | measure(model, gamma, method, options))
                except FailedError as error:
                    print(f"  {family}, {method}, {n:g} states, gamma {gamma:g}: {error}")
                    continue
                found = rows[-1]
                print(
                    f"  {family:16} {method:26} {model.num_states:9,} states, gamma {gamma:<6g}"
                    f" {found['seconds']:9.4f} s {found['bytes'] / model.num_states:8.0f} B/state",
                    flush=True,
                )
        for line in slopes([row for row in rows if row["family"] == family]):
            print(line)
    if options.csv is not None:
        write_rows(options.csv, rows)


if __name__ == "__main__":
    main()
