"""Environment steps a second, beside Gymnasium's fastest: CartPole's vector env and FrozenLake.

Each environment takes random actions, in rounds that take turns; what is printed, as tables in
Markdown, are medians of processor time and ratios to Gymnasium's environment in the same run.
`--first` adds the seconds of the first step in a new process: before anything is compiled, and with
what the disk keeps.

    python scripts/bench/steps.py [--num-envs 1 64 1024 4096] [--side 1000] [--rounds 15] [--first]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Any

import gymnasium as gym
import numpy as np
from _machine import machine_line
from _output import markdown, markdown_row

# Registers the environments.
import aggmaze  # noqa: F401  # isort: skip

Variant = tuple[str, dict[str, Any]]

OURS: list[Variant] = [
    ("StandardMaze-v0", {}),
    ("StandardMaze-v0", {"p": 0.9}),
    ("TerrainMaze-v0", {}),
    ("NDMaze-v0", {}),
    ("NDMaze-v0", {"p": 0.9, "start": "uniform"}),
    ("DiscretizedCartPole-v0", {}),
]
VECTOR_BASELINE: Variant = ("CartPole-v1", {})
SINGLE_BASELINE: Variant = ("FrozenLake-v1", {})

# Actions are drawn before the clock runs, and gone through again and again: more of them than a
# processor can learn by heart, in turns that are long beside the first steps with cold caches.
NUM_ACTIONS = 200_000
NUM_SINGLE_STEPS = 5_000
LEAST_STEPS = 100

FIRST_STEP = """
import sys, time
import gymnasium, aggmaze
make, env_id = sys.argv[1:]
env = gymnasium.make(env_id) if make == "make" else gymnasium.make_vec(env_id, num_envs=64)
begin = time.perf_counter()
env.reset(seed=0)
env.step(env.action_space.sample())
print(time.perf_counter() - begin)
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--num-envs", type=int, nargs="+", default=[1, 64, 1024, 4096])
    parser.add_argument("--side", type=int, help="also mazes of this many positions an axis")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--first", action="store_true", help="also first steps in new processes")
    options = parser.parse_args()
    print(machine_line() + f", gymnasium {gym.__version__}\n")
    variants = [*OURS]
    if options.side:
        large = {"shape": [options.side] * 2, "p": 0.9, "start": "uniform"}
        variants += [("StandardMaze-v0", large), ("TerrainMaze-v0", large)]
    print_single([SINGLE_BASELINE, *variants], options.rounds)
    print_vectors([VECTOR_BASELINE, *variants], options.num_envs, options.rounds)
    if options.first:
        print_first_steps()


def print_single(variants: Sequence[Variant], rounds: int) -> None:
    """Print microseconds of `step` without wrappers, the resets between episodes included."""
    walks = []
    for env_id, options in variants:
        env = gym.make(env_id, **options).unwrapped
        env.reset(seed=0)
        actions = random_actions(env.action_space, NUM_SINGLE_STEPS).tolist()
        walks.append(lambda env=env, actions=actions: walk(env, actions))
    seconds = medians(walks, rounds)
    rows = [
        [name(variant), f"{1e6 * second / NUM_SINGLE_STEPS:.2f}", f"{second / seconds[0]:.2f}"]
        for variant, second in zip(variants, seconds, strict=True)
    ]
    print(markdown(["one environment", "us a step", "share of FrozenLake's"], rows))


def print_vectors(variants: Sequence[Variant], sizes: Sequence[int], rounds: int) -> None:
    """Print millions of steps a second, and the ratio to CartPole's."""
    columns = [list(map(name, variants))]
    for num_envs in sizes:
        num_steps = max(LEAST_STEPS, NUM_ACTIONS // num_envs // rounds)
        walks = []
        for env_id, options in variants:
            vector = gym.make_vec(env_id, num_envs=num_envs, **options)
            vector.reset(seed=0)
            shape = (max(LEAST_STEPS, NUM_ACTIONS // num_envs), num_envs)
            actions = random_actions(vector.single_action_space, shape)
            walks.append(vector_walk(vector, actions, num_steps))
        seconds = medians(walks, rounds)
        millions = num_steps * num_envs / 1e6
        columns.append([f"{millions / s:.3g} ({seconds[0] / s:.2f})" for s in seconds])
    header = ["million steps a second (times CartPole)", *map(str, sizes)]
    print(markdown(header, zip(*columns, strict=True)))


def print_first_steps() -> None:
    """Print seconds of the first reset and step, in processes of their own."""
    header = ["first reset and step, seconds", "nothing compiled", "compiled before"]
    print(markdown(header, []), end="")
    for env_id in dict(OURS):
        for make in ("make", "make_vec"):
            with tempfile.TemporaryDirectory() as cache:
                environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
                command = [sys.executable, "-c", FIRST_STEP, make, env_id]
                cold, warm = (
                    float(subprocess.check_output(command, env=environment, text=True))
                    for _ in range(2)
                )
            row = [f"`{make}` {env_id}", f"{cold:.2f}", f"{warm:.3f}"]
            print(markdown_row(row), flush=True)


def medians(walks: Sequence[Callable[[], None]], rounds: int) -> list[float]:
    """Return the median processor time of each walk, in rounds in which all take turns."""
    times: list[list[float]] = [[] for _ in walks]
    for each in walks:
        each()
    for _ in range(rounds):
        for own, each in zip(times, walks, strict=True):
            begin = time.process_time()
            each()
            own.append(time.process_time() - begin)
    return [statistics.median(own) for own in times]


def walk(env: Any, actions: Sequence[int]) -> None:
    """Take the actions, with a reset after each episode."""
    for action in actions:
        if env.step(action)[2]:
            env.reset()


def vector_walk(vector: Any, actions: Any, num_steps: int) -> Callable[[], None]:
    """Return what takes the next actions at each call, from the first again after the last."""
    endless = cycle(actions)

    def go() -> None:
        for row in islice(endless, num_steps):
            vector.step(row)

    return go


def random_actions(space: Any, shape: Any) -> Any:
    """Return random actions, available or not."""
    return np.random.default_rng(0).integers(space.n, size=shape)


def name(variant: Variant) -> str:
    """Return an id and its arguments."""
    return " ".join([variant[0], *(f"{key}={value}" for key, value in variant[1].items())])


if __name__ == "__main__":
    main()
