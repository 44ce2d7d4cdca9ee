"""What an aggregated phase costs beside a global sweep.

    python scripts/bench/aggregation.py
    python scripts/bench/aggregation.py --side 300 --cycles 20 --threads 2

Mazes and terrain of a million states, p = .95, on the paper's scale (max |V*| = 100 at gamma .95),
bins of width .1 and .5.  A phase is Algorithm 2, its representatives and five updates; the aim is
at most half a global sweep.  In the table:

- sweep, phase, next: medians over the cycles of a run of `planners.solve`, in milliseconds, as its
  history has them: sweeps, phases, and the sweeps after them, which form V~(W) first.  They are
  made in turn, so that a slow minute of the machine falls on all;
- CPU sweep, bins, draws, updates, forming V: a sweep and the pieces of a phase in milliseconds of
  one thread, which is what to look at where other programs are running.  Their ratio is without
  the forming of V, ``with V`` with it.

The first cycles, while V is nearly constant, are not counted.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import planners
from aggmaze.grid import Grid
from aggmaze.recipes import Recipe, StandardRecipe, TerrainRecipe, maze_model
from planners.aggregation import aggregate_by_value, draw_representatives
from planners.bellman import local_engine

RECIPES: dict[str, Recipe] = {"maze": StandardRecipe(), "terrain": TerrainRecipe()}
GAMMA, NUM_GLOBAL, NUM_AGGREGATED = 0.95, 2, 5
#: Cycles that are not counted.
SETTLING = 10
CYCLE = NUM_GLOBAL + NUM_AGGREGATED


def cycle_times(model: Any, epsilon: float, cycles: int, num_threads: int) -> dict[str, float]:
    """Return the medians of sweeps and phases in a run, in ms, and the last K."""
    history = planners.solve(
        model,
        gamma=GAMMA,
        method="adaptive_aggregation",
        epsilon=epsilon,
        num_iterations=CYCLE * (SETTLING + cycles),
        num_threads=num_threads,
    ).history
    spent = np.diff(history.seconds, prepend=0.0).reshape(-1, CYCLE)[SETTLING:] * 1e3
    phase = spent[:, NUM_GLOBAL:].sum(axis=1)
    return {
        "K": float(history.num_megastates[-1]),
        "sweep": float(np.median(spent[:, 1:NUM_GLOBAL])),
        "next": float(np.median(spent[:, 0])),
        "phase": float(np.median(phase)),
        "ratio": float(np.median(phase / spent[:, 1:NUM_GLOBAL].mean(axis=1))),
    }


def piece_times(model: Any, epsilon: float, rounds: int) -> dict[str, float]:
    """Return the medians of the pieces of a phase, in ms of this thread."""
    operators = local_engine(model, GAMMA)
    V = np.zeros(model.num_states)
    image = np.empty_like(V)
    for _ in range(2 * SETTLING):
        sweep = operators.sweep(V, image)
        V, image = image, V
    rng = np.random.default_rng(0)
    codes = np.empty(len(V), dtype=np.int32)
    spent: dict[str, list[float]] = {
        "CPU sweep": [],
        "bins": [],
        "draws": [],
        "updates": [],
        "forming V": [],
    }

    def timed(name: str, function: Callable[[], Any]) -> Any:
        start = time.thread_time()
        found = function()
        spent[name].append(1e3 * (time.thread_time() - start))
        return found

    for _ in range(rounds):
        operators.sweep(image, V)  # what stands in the cache before a phase
        sweep = timed("CPU sweep", lambda: operators.sweep(V, image))
        extremes = sweep.low, sweep.high
        aggregation = timed(
            "bins", lambda e=extremes: aggregate_by_value(image, epsilon, extremes=e, out=codes)
        )
        uniforms = rng.random((NUM_AGGREGATED, aggregation.num_megastates))
        states = timed("draws", lambda a=aggregation, u=uniforms: draw_representatives(a, u))
        W = np.zeros(aggregation.num_codes)
        W[aggregation.kept] = aggregation.midpoints
        out = np.empty(aggregation.num_megastates)

        def update(chosen: Any = states, table: Any = W, target: Any = out) -> None:
            for row in chosen:
                operators.aggregated(row, table, codes, target)

        timed("updates", update)
        timed("forming V", lambda a=aggregation, table=W: a.expand(table, V))
    found = {name: statistics.median(times) for name, times in spent.items()}
    phase = found["bins"] + found["draws"] + found["updates"]
    return found | {
        "CPU ratio": phase / found["CPU sweep"],
        "with V": (phase + found["forming V"]) / found["CPU sweep"],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--side", type=int, default=1000, help="positions along each of two axes")
    parser.add_argument("--cycles", type=int, default=30, help="cycles that are counted")
    parser.add_argument("--threads", type=int, default=1, help="threads of the sweeps")
    arguments = parser.parse_args()
    run = ("K", "sweep", "next", "phase", "ratio")
    pieces = ("CPU sweep", "bins", "draws", "updates", "forming V", "CPU ratio", "with V")
    names = run + pieces
    table = Table(
        "model",
        "epsilon",
        *names,
        title=f"S = {arguments.side**2:,}, {arguments.threads} thread(s), medians in ms",
    )
    for name, recipe in RECIPES.items():
        layout = recipe.layout(Grid((arguments.side,) * 2), np.random.default_rng(0))
        model, _ = planners.normalized(maze_model(layout, recipe, p=0.95), GAMMA)
        for epsilon in (0.1, 0.5):
            cycle_times(model, epsilon, 1, arguments.threads)  # compiles
            found = cycle_times(model, epsilon, arguments.cycles, arguments.threads)
            found |= piece_times(model, epsilon, arguments.cycles)
            numbers = [f"{found['K']:.0f}", *(f"{found[n]:.2f}" for n in names[1:])]
            table.add_row(name, f"{epsilon:g}", *numbers)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
