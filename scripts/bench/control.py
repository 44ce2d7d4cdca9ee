"""How well policies of discretized MountainCar, Acrobot and Pendulum do on the real ones.

For each problem, both ways to make a model, and several grids: sizes, seconds to make and to solve
the model, the largest error that the solution can have, the discounted return that the model
promises and what its policy gets in Gymnasium's own environment, the mean return there with its
standard error, the least, and the mean of the policy that looks one step ahead.  Then for CartPole
the fewest steps that the pole of CartPole-v1 stays up from eight starts, 20,000 at most, and from
how many it lasts so long.  The tables are in Markdown.

    python scripts/bench/control.py [--episodes 200] [--seed 0] [--only Pendulum-v1]
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
from _output import markdown, markdown_row
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

import aggmaze
import planners
from aggmaze import cartpole
from aggmaze.cartpole import Physics
from aggmaze.cells import Corners, chain_of

# Id, discount, and ways to cut: method, bins and sub-points.
TRIED: list[tuple[str, float, list[tuple[str, tuple[int, ...], Any]]]] = [
    (
        "MountainCar-v0",
        1.0,
        [
            ("interpolate", (60, 50), None),
            ("interpolate", (120, 100), None),
            ("interpolate", (240, 200), None),
            ("average", (60, 50), None),
            ("average", (120, 100), None),
            ("average", (240, 200), None),
            ("average", (120, 100), 1),
        ],
    ),
    (
        "Acrobot-v1",
        0.99,
        [
            ("interpolate", (8, 8, 9, 9), None),
            ("interpolate", (12, 12, 15, 15), None),
            ("interpolate", (20, 20, 21, 21), None),
            ("average", (8, 8, 9, 9), None),
            ("average", (12, 12, 15, 15), None),
            ("average", (20, 20, 21, 21), 2),
        ],
    ),
    (
        "Pendulum-v1",
        0.99,
        [
            ("interpolate", (51, 41), None),
            ("interpolate", (101, 81), None),
            ("interpolate", (201, 161), None),
            ("average", (51, 41), None),
            ("average", (101, 81), None),
            ("average", (201, 161), None),
        ],
    ),
]
HEADER = [
    "environment",
    "method",
    "bins",
    "sub-points",
    "states",
    "transitions",
    "make, s",
    "solve, s",
    "bound",
    "promised",
    "got",
    "mean return",
    "least",
    "one step ahead",
]
METHODS = ("average", "interpolate")
CARTPOLE_BINS = [(8, 8, 12, 13), (7, 7, 15, 15), (9, 9, 11, 11), (10, 10, 10, 10), (5, 5, 9, 9)]
CARTPOLE_HEADER = ["make, s", "transitions", "shortest", "lasted"]
MOST_STEPS, NUM_SEEDS = 20_000, 8


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=[env_id for env_id, _, _ in TRIED])
    args = parser.parse_args()
    # That an axis stands still is seen in the table; a model is not what it is a model of.
    warnings.simplefilter("ignore", UserWarning)
    planners.solve(gym.make("FrozenLake-v1"), gamma=0.9)  # so that nothing is compiled below
    print(markdown(HEADER, []), end="")
    for env_id, gamma, ways in TRIED:
        for method, bins, sub_points in ways if args.only in (None, env_id) else ():
            row = measured(env_id, gamma, method, bins, sub_points, args.episodes, args.seed)
            print(markdown_row(row), flush=True)
    if args.only is None:
        print()
        header = ["bins", *(f"{method}: {what}" for method in METHODS for what in CARTPOLE_HEADER)]
        print(markdown(header, []), end="")
        for bins in CARTPOLE_BINS:
            print(markdown_row([str(bins), *held_up(bins)]), flush=True)


def measured(
    env_id: str,
    gamma: float,
    method: str,
    bins: tuple[int, ...],
    sub_points: Any,
    episodes: int,
    seed: int,
) -> list[str]:
    """Return a row of the table."""
    env = aggmaze.Discretized(gym.make(env_id), bins=bins, method=method, sub_points=sub_points)
    begin = time.perf_counter()
    model = env.transition_model()
    made = time.perf_counter()
    result = planners.solve(model, gamma=gamma)
    solved = time.perf_counter()
    walked = planners.rollout(env, result, episodes=episodes, seed=seed)
    assert walked.discounted_returns is not None
    ahead = "-"
    if method == "interpolate":
        found = aggmaze.discretize(env_id, bins=bins, method=method)
        act = found.lookahead(result.values, gamma)
        again = planners.rollout(gym.make(env_id), act, episodes=episodes, seed=seed)
        ahead = f"{again.returns.mean():.1f}"
    error = walked.returns.std() / math.sqrt(episodes)
    points = env.spec.additional_wrappers[-1].kwargs["sub_points"]  # type: ignore[index, union-attr]
    return [
        env_id,
        method,
        " x ".join(map(str, bins)),
        "-" if method == "interpolate" else " x ".join(map(str, points)),
        f"{model.num_states:,}",
        f"{model.transitions.nnz:,}",
        f"{made - begin:.2f}",
        f"{solved - made:.2f}",
        f"{result.bound:.1e}",
        f"{-float(model.initial @ result.values):.1f}",
        f"{walked.discounted_returns.mean():.1f}",
        f"{walked.returns.mean():.1f} ± {error:.1f}",
        f"{walked.returns.min():.0f}",
        ahead,
    ]


def held_up(bins: tuple[int, ...]) -> list[str]:
    """Return the row of CartPole's bins, by the steps of Gymnasium's vectorised one."""
    single = CartPoleEnv()
    physics = Physics.of(single)
    row = []
    for method in METHODS:
        if method == "average":
            cells, points = cartpole.Cells.of(physics, bins, None), cartpole.DEFAULT_SUB_POINTS
        else:
            cells, points = Corners(bins, physics.low, physics.high), (1,) * 4
        begin = time.perf_counter()
        model = chain_of(cells, physics, points).model
        seconds = time.perf_counter() - begin
        policy = planners.solve(model, gamma=0.99).policy
        up = np.array([[single.reset(seed=seed), single.state][1] for seed in range(NUM_SEEDS)])
        shortest, step = MOST_STEPS, 0
        while len(up) and step < MOST_STEPS:
            step += 1
            # Numbers of single precision, as CartPole shows them.
            after = physics.advance(up, policy[cells.states(up.astype(np.float32))])
            up = after.points[~after.terminated]
            if len(up) < NUM_SEEDS:
                shortest = min(shortest, step)
        lasted = f"{len(up)} of {NUM_SEEDS}"
        row += [f"{seconds:.2f}", f"{model.transitions.nnz:,}", f"{shortest:,}", lasted]
    return row


if __name__ == "__main__":
    main()
