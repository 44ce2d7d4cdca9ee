"""How well policies of DiscretizedCartPole's chains balance CartPole-v1, by bins and sub-points.

For each: how often a step of the model changes cell along each axis, beside the same steps from
states uniform in their cells; then the steps that the greedy policy keeps the pole of CartPole-v1
up, one episode for each seed.  The table is in Markdown.

    python scripts/bench/cartpole.py [--gamma .99] [--seeds 8] [--max-steps 20000]
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
from _output import markdown, markdown_row
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from numpy.typing import NDArray

import planners
from aggmaze import DiscretizedCartPole, TabularMDP
from aggmaze.cartpole import AXES, DEFAULT_BINS, DEFAULT_SUB_POINTS, Cells, Physics

PHYSICS = Physics.of(CartPoleEnv())
TRIED: list[tuple[tuple[int, ...], Any]] = [
    (DEFAULT_BINS, DEFAULT_SUB_POINTS),
    (DEFAULT_BINS, (6, 3, 3, 3)),
    (DEFAULT_BINS, 7),
    (DEFAULT_BINS, 3),
    ((24, 8, 12, 13), 3),
    ((7, 7, 15, 15), DEFAULT_SUB_POINTS),
    ((7, 7, 15, 15), 7),
    ((7, 7, 15, 15), 3),
    ((10, 10, 10, 10), DEFAULT_SUB_POINTS),
    ((6, 6, 7, 8), DEFAULT_SUB_POINTS),
    ((5, 5, 9, 9), DEFAULT_SUB_POINTS),
    ((3, 3, 6, 3), (24, 7, 3, 7)),
    ((3, 3, 6, 3), 3),
    ((3, 3, 5, 5), 2),
]
# Starts in each cell, per action, for the rates of CartPole.
NUM_STARTS = 20


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--max-steps", type=int, default=20_000)
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # that an axis stands still is in the table
    print("Per cent of steps that change cell, model / CartPole, and steps that policies last.\n")
    header = ["bins", "sub_points", *AXES, "seconds", "shortest", "lasted"]
    print(markdown(header, []), end="")
    for bins, sub_points in TRIED:
        begin = time.perf_counter()
        env = DiscretizedCartPole(
            gym.make("CartPole-v1", max_episode_steps=args.max_steps),
            bins=bins,
            sub_points=sub_points,
        )
        model = env.transition_model()
        policy = planners.solve(model, gamma=args.gamma).policy
        seconds = time.perf_counter() - begin
        rates = zip(rates_of_model(env.cells, model), rates_of_cartpole(env.cells), strict=True)
        cells = [f"{100 * ours:.1f} / {100 * theirs:.1f}" for ours, theirs in rates]
        lengths = [
            int(
                planners.rollout(
                    env, policy.item, episodes=1, seed=k, max_steps=args.max_steps
                ).lengths[0]
            )
            for k in range(args.seeds)
        ]
        lasted = f"{sum(n == args.max_steps for n in lengths)} of {args.seeds}"
        row = [str(bins), str(sub_points), *cells, f"{seconds:.1f}", f"{min(lengths):,}", lasted]
        print(markdown_row(row), flush=True)


def rates_of_model(cells: Cells, model: TabularMDP) -> NDArray[np.float64]:
    """Return the share of steps that change cell along each axis, those that fail not among them.

    All cells and actions count alike.
    """
    transitions = model.transitions[: 2 * cells.num_cells].tocoo()
    inside = transitions.col != cells.failure
    before, after = (
        cells.grid.coords(states[inside]) for states in (transitions.row // 2, transitions.col)
    )
    return transitions.data[inside] @ (before != after) / (2 * cells.num_cells)


def rates_of_cartpole(cells: Cells) -> NDArray[np.float64]:
    """Return the same of CartPole, from random states that are uniform in their cells."""
    rng = np.random.default_rng(0)
    before = cells.grid.coords(np.arange(cells.num_cells))
    changed = np.zeros(len(AXES))
    for k in range(2 * NUM_STARTS):
        starts = (before + rng.random(before.shape)) * cells.widths - cells.limits
        after = PHYSICS.advance(starts, np.full(len(starts), k % 2))
        coords = cells.grid.coords(cells.states(after.points))
        changed += ((coords != before) & ~after.failed[:, np.newaxis]).sum(axis=0)
    return changed / (2 * NUM_STARTS * cells.num_cells)


if __name__ == "__main__":
    main()
