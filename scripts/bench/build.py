"""How long it takes to build large mazes, and how large they are.

    python scripts/bench/build.py
    python scripts/bench/build.py --only ndmaze --repeats 5 --csv build.csv

Every grid model of about a million states: seconds for its layout, its model and the model's
checks (aim: under 2 s together), bytes a state (aim: at most 80 in two dimensions), seconds and
bytes of the general table that `to_tabular` makes of it, seconds of `planners.evaluate` on a random
policy; seconds for a spanning tree alone (aim: under 1 s) and for `gymnasium.make` (aim: under
3 s).  Each is the median of several rounds, in each of which every case runs once, so that a slow
minute of the machine does not fall on one of them.  A first round on small mazes, not counted,
compiles the kernels.
"""

from __future__ import annotations

import argparse
import csv
import math
import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import gymnasium as gym
import numpy as np
from _machine import machine_line
from rich.console import Console
from rich.table import Table

import aggmaze
import planners
from aggmaze.grid import Grid
from aggmaze.layouts.spanning_tree import GENERATORS
from aggmaze.recipes import Recipe, StandardRecipe, TerrainRecipe, maze_model

assert aggmaze.ENV_IDS  # registers the mazes

T = TypeVar("T")
Measure = Callable[[], dict[str, float]]

#: The largest general table to make: one of six dimensions holds 144 entries a state.
MOST_TABLE_ENTRIES = 50_000_000


@dataclass(frozen=True)
class Maze:
    """A maze to build; ``small`` is the shape that compiles its kernels."""

    name: str
    recipe: Recipe
    shape: tuple[int, ...]
    small: tuple[int, ...]
    p: float = 0.95


PLANE, SPACE = ((1000, 1000), (6, 6)), ((10,) * 6, (2,) * 6)
MAZES = (
    Maze("StandardMaze kruskal", StandardRecipe(), *PLANE),
    Maze("StandardMaze depth_first", StandardRecipe("depth_first"), *PLANE),
    Maze("TerrainMaze smooth", TerrainRecipe(), *PLANE),
    Maze("TerrainMaze uniform", TerrainRecipe("uniform"), *PLANE),
    Maze("NDMaze standard", StandardRecipe(), *SPACE),
    Maze("NDMaze terrain", TerrainRecipe(), *SPACE),
)


def timed(function: Callable[[], T]) -> tuple[T, float]:
    """Call a function; return what it returns and how many seconds that took."""
    start = time.perf_counter()
    value = function()
    return value, time.perf_counter() - start


def measure_maze(maze: Maze, shape: tuple[int, ...]) -> dict[str, float]:
    """Build one maze."""
    grid = Grid(shape)
    layout, layout_s = timed(lambda: maze.recipe.layout(grid, np.random.default_rng(0)))
    model, model_s = timed(lambda: maze_model(layout, maze.recipe, p=maze.p))
    _, validate_s = timed(model.validate)
    arrays = (model.successors, model.move_costs, model.initial, model.available, model.terminal)
    row = {
        "layout": layout_s,
        "model": model_s,
        "validate": validate_s,
        "built": layout_s + model_s + validate_s,
        "bytes/state": sum(array.nbytes for array in arrays) / grid.num_states,
    }
    num_moves = model.available.sum(axis=1, dtype=np.int64)
    if int((num_moves * num_moves).sum()) <= MOST_TABLE_ENTRIES:
        table, row["to_tabular"] = timed(model.to_tabular)
        matrix = table.transitions
        parts = (matrix.data, matrix.indices, matrix.indptr, table.costs, table.outcome_costs)
        nbytes = [0 if part is None else part.nbytes for part in parts]
        row["bytes/state of that"] = sum(nbytes) / grid.num_states
    policy = np.where(
        model.action_mask, np.random.default_rng(1).random(model.action_mask.shape), 0
    )
    _, row["evaluate"] = timed(lambda: planners.evaluate(model, policy.argmax(axis=1), 0.95))
    return row


def measure_tree(name: str, shape: tuple[int, ...]) -> dict[str, float]:
    """Draw one spanning tree."""
    grid = Grid(shape)
    return {"seconds": timed(lambda: GENERATORS[name](grid, np.random.default_rng(0)))[1]}


def measure_make(env_id: str, shape: tuple[int, ...]) -> dict[str, float]:
    """Make one environment, and reset it."""
    env, make_s = timed(lambda: gym.make(env_id, shape=shape))
    _, reset_s = timed(lambda: env.reset(seed=0))
    env.close()
    return {"seconds": make_s, "reset": reset_s}


def cases() -> dict[str, tuple[Measure, Measure]]:
    """Return what to measure, by name: at full size, and small."""
    found: dict[str, tuple[Measure, Measure]] = {}
    for maze in MAZES:
        found[maze.name] = (
            partial(measure_maze, maze, maze.shape),
            partial(measure_maze, maze, maze.small),
        )
    for generator in GENERATORS:
        for shape, small in (PLANE, SPACE):
            found[f"tree {generator} {len(shape)}-D"] = (
                partial(measure_tree, generator, shape),
                partial(measure_tree, generator, small),
            )
    for env_id in ("StandardMaze-v0", "TerrainMaze-v0"):
        found[f"gym.make {env_id}"] = (
            partial(measure_make, env_id, PLANE[0]),
            partial(measure_make, env_id, PLANE[1]),
        )
    return found


def environment() -> str:
    """Return the machine, the versions and the command in a line each."""
    return f"{machine_line()}\ncommand: {' '.join([Path(sys.executable).name, *sys.argv])}"


def main() -> None:
    """Measure, and print a table for each kind of case."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=3, help="rounds, of which medians are taken")
    parser.add_argument("--only", default="", help="cases whose name holds this text, in any case")
    parser.add_argument("--csv", type=Path, help="also write the medians here")
    arguments = parser.parse_args()
    if arguments.repeats < 1:
        parser.error(f"--repeats must be at least 1, got {arguments.repeats}")
    chosen = {
        name: runs for name, runs in cases().items() if arguments.only.lower() in name.lower()
    }
    if not chosen:
        parser.error(f"--only {arguments.only!r} matches none of {', '.join(cases())}")
    console = Console(width=max(Console().width, 140))
    console.print(environment(), highlight=False, soft_wrap=True)
    for _, small in chosen.values():
        small()
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in chosen}
    for _ in range(arguments.repeats):
        for name, (full, _) in chosen.items():
            measured[name].append(full())
    medians = {
        name: {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        for name, rows in measured.items()
    }
    for group in ("Maze ", "tree ", "gym.make "):
        print_table(console, {n: row for n, row in medians.items() if group in n})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    console.print(f"peak memory {peak:.2f} GiB", highlight=False)
    if arguments.csv is not None:
        write_csv(arguments.csv, medians)


def aim(name: str, measure: str) -> float:
    """Return what a measure of a case should stay below; infinity where nothing is set."""
    if measure == "seconds":
        return 1.0 if name.startswith("tree") else 3.0
    bytes_a_state = math.inf if name.startswith("NDMaze") else 80.0
    return {"built": 2.0, "bytes/state": bytes_a_state}.get(measure, math.inf)


def print_table(console: Console, medians: dict[str, dict[str, float]]) -> None:
    """Print a line for each case; what misses its aim is marked with an exclamation mark."""
    if not medians:
        return
    columns = list(dict.fromkeys(measure for row in medians.values() for measure in row))
    console.print("seconds, unless another unit is named", highlight=False)
    table = Table()
    table.add_column("case", no_wrap=True)
    for measure in columns:
        table.add_column(measure, justify="right", no_wrap=True)
    for name, row in medians.items():
        cells = [
            f"{row[measure]:.3g}{'' if row[measure] < aim(name, measure) else ' !'}"
            if measure in row
            else "-"
            for measure in columns
        ]
        table.add_row(name, *cells)
    console.print(table)


def write_csv(path: Path, medians: dict[str, dict[str, float]]) -> None:
    """Write one line for each case and measure."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("case", "measure", "median"))
        for name, row in medians.items():
            writer.writerows((name, measure, value) for measure, value in row.items())


if __name__ == "__main__":
    main()
