"""What total costs of mazes take beside discounted costs of the same mazes.

    python scripts/bench/undiscounted.py
    python scripts/bench/undiscounted.py --sides 100 1000 --repeats 9

The discount is 1 - 1 / (2 n) for a side of n, with which the far corner still counts.  Seconds are
of one processor on one thread, medians of solves in turn, the first of each left out.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time

import gymnasium as gym
from _machine import machine_line

import aggmaze  # registers the environments
import planners

MAZES: dict[str, tuple[str, int, dict[str, object]]] = {
    "maze": ("StandardMaze-v0", 2, {}),
    "maze with loops": ("StandardMaze-v0", 2, {"loops": 0.1}),
    "maze, p = .9": ("StandardMaze-v0", 2, {"p": 0.9}),
    "terrain": ("TerrainMaze-v0", 2, {}),
    "uniform terrain": ("TerrainMaze-v0", 2, {"terrain": "uniform"}),
    "terrain, p = .9": ("TerrainMaze-v0", 2, {"p": 0.9}),
    "three axes": ("NDMaze-v0", 3, {}),
}


def seconds_of(model: aggmaze.MoveMDP, gamma: float) -> tuple[float, planners.SolveResult]:
    """Return the processor's seconds of a solve, and its result."""
    begun = time.process_time()
    result = planners.solve(model, gamma=gamma, num_threads=1)
    return time.process_time() - begun, result


def row(name: str, side: int, repeats: int) -> str:
    """Return a row of the table."""
    env_id, num_axes, options = MAZES[name]
    shape = (round(side ** (2 / num_axes)),) * num_axes
    model = gym.make(env_id, shape=shape, **options).unwrapped.transition_model()
    pairs = []
    for _ in range(repeats + 1):
        discounted, _ = seconds_of(model, 1 - 1 / (2 * side))
        total, result = seconds_of(model, 1.0)
        pairs.append((discounted, total))
    first, second = (statistics.median(each) for each in zip(*pairs[1:], strict=True))
    bound = "exact" if result.bound == 0 else f"{result.bound:.1g}"
    sides = " x ".join(map(str, shape))
    cells = [f"{name}, {sides}", f"{math.prod(shape):,}", f"{first:.3g}", f"{second:.3g}"]
    return f"| {' | '.join([*cells, f'{second / first:.2f}', bound])} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sides", nargs="+", type=int, default=[500, 1000, 3162], metavar="N")
    parser.add_argument("--mazes", nargs="+", choices=MAZES, default=list(MAZES))
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="pairs of solves")
    arguments = parser.parse_args()
    print(machine_line(), "\n", sep="")
    print("| maze | states | discounted, s | total, s | ratio | bound |")
    print("|---|---|---|---|---|---|")
    for side in arguments.sides:
        for name in arguments.mazes:
            print(row(name, side, arguments.repeats), flush=True)


if __name__ == "__main__":
    main()
