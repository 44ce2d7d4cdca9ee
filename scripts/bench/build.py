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
from _models import num_entries
from _output import print_table, write_rows

import aggmaze
import planners
from aggmaze.grid import Grid
from aggmaze.layouts.spanning_tree import GENERATORS
from aggmaze.recipes import Recipe, StandardRecipe, TerrainRecipe, maze_model

assert aggmaze.ENV_IDS  # registers the mazes

T = TypeVar("T")
Shape = tuple[int, ...]
Measure = Callable[[Shape], dict[str, float]]

#: The largest general table to make: one of six dimensions holds 144 entries a state.
MOST_TABLE_ENTRIES = 50_000_000


@dataclass(frozen=True)
class Maze:
    """A maze to build, in two shapes: one to measure, and a small one that compiles its kernels."""

    name: str
    recipe: Recipe
    shapes: tuple[Shape, Shape]
    p: float = 0.95


PLANE, SPACE = ((1000, 1000), (6, 6)), ((10,) * 6, (2,) * 6)
MAZES = (
    Maze("StandardMaze kruskal", StandardRecipe(), PLANE),
    Maze("StandardMaze depth_first", StandardRecipe("depth_first"), PLANE),
    Maze("TerrainMaze smooth", TerrainRecipe(), PLANE),
    Maze("TerrainMaze uniform", TerrainRecipe("uniform"), PLANE),
    Maze("NDMaze standard", StandardRecipe(), SPACE),
    Maze("NDMaze terrain", TerrainRecipe(), SPACE),
)


def timed(function: Callable[[], T]) -> tuple[T, float]:
    """Call a function; return what it returns and how many seconds that took."""
    start = time.perf_counter()
    value = function()
    return value, time.perf_counter() - start


def measure_maze(maze: Maze, shape: Shape) -> dict[str, float]:
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
    if num_entries(model) <= MOST_TABLE_ENTRIES:
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


def measure_tree(name: str, shape: Shape) -> dict[str, float]:
    """Draw one spanning tree."""
    grid = Grid(shape)
    return {"seconds": timed(lambda: GENERATORS[name](grid, np.random.default_rng(0)))[1]}


def measure_make(env_id: str, shape: Shape) -> dict[str, float]:
    """Make one environment, and reset it."""
    env, make_s = timed(lambda: gym.make(env_id, shape=shape))
    _, reset_s = timed(lambda: env.reset(seed=0))
    env.close()
    return {"seconds": make_s, "reset": reset_s}


def cases() -> dict[str, tuple[Measure, Shape, Shape]]:
    """Return what measures each case, by name, with the shape that counts and a small one."""
    found: dict[str, tuple[Measure, Shape, Shape]] = {
        maze.name: (partial(measure_maze, maze), *maze.shapes) for maze in MAZES
    }
    for generator in GENERATORS:
        for shapes in (PLANE, SPACE):
            name = f"tree {generator} {len(shapes[0])}-D"
            found[name] = (partial(measure_tree, generator), *shapes)
    for env_id in ("StandardMaze-v0", "TerrainMaze-v0"):
        found[f"gym.make {env_id}"] = (partial(measure_make, env_id), *PLANE)
    return found


def main() -> None:
    """Measure, and print a table for each kind of case."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=3, help="rounds, of which medians are taken")
    parser.add_argument("--only", default="", help="cases whose name holds this text, in any case")
    parser.add_argument("--csv", type=Path, help="also write the medians here")
    arguments = parser.parse_args()
    if arguments.repeats < 1:
        parser.error(f"--repeats must be at least 1, got {arguments.repeats}")
    chosen = {n: case for n, case in cases().items() if arguments.only.lower() in n.lower()}
    if not chosen:
        parser.error(f"--only {arguments.only!r} matches none of {', '.join(cases())}")
    print(machine_line())
    print("command:", Path(sys.executable).name, *sys.argv)
    for measure, _, small in chosen.values():
        measure(small)
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in chosen}
    for _ in range(arguments.repeats):
        for name, (measure, shape, _) in chosen.items():
            measured[name].append(measure(shape))
    medians = {
        name: {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        for name, rows in measured.items()
    }
    for group in ("Maze ", "tree ", "gym.make "):
        print_medians({n: row for n, row in medians.items() if group in n})
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
    if arguments.csv is not None:
        write_rows(
            arguments.csv,
            [
                {"case": name, "measure": measure, "median": median}
                for name, row in medians.items()
                for measure, median in row.items()
            ],
        )


def aim(name: str, measure: str) -> float:
    """Return what a measure of a case should stay below; infinity where nothing is set."""
    if measure == "seconds":
        return 1.0 if name.startswith("tree") else 3.0
    bytes_a_state = math.inf if name.startswith("NDMaze") else 80.0
    return {"built": 2.0, "bytes/state": bytes_a_state}.get(measure, math.inf)


def print_medians(medians: dict[str, dict[str, float]]) -> None:
    """Print a line for each case; what misses its aim is marked with an exclamation mark."""
    if not medians:
        return
    columns = list(dict.fromkeys(measure for row in medians.values() for measure in row))
    lines = [
        [name]
        + [
            f"{row[measure]:.3g}{'' if row[measure] < aim(name, measure) else ' !'}"
            if measure in row
            else "-"
            for measure in columns
        ]
        for name, row in medians.items()
    ]
    print("seconds, unless another unit is named")
    print_table(["case", *columns], lines)


if __name__ == "__main__":
    main()
