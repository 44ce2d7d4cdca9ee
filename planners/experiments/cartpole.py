"""CartPole: reward against updates at about 2000 and 10000 cells, and the sweep over bin counts.

The paper claims that aggregation reaches value iteration's reward with fewer updates, at both bin
counts, and prints no numbers.  It does not say how the model of the cells was made; here each
action averages the steps of 81 points of a cell (`aggmaze.cartpole`), three along each axis.  With
so few, position never changes cell, nor does velocity at the coarser bins: policies know nothing of
the ends of the track, and most balance for the 200 steps all the same.  To balance for longer, take
the default bins and points of `aggmaze.DiscretizedCartPole`.

Its remark that no global updates are needed cannot be taken literally: from V = 0 all states share
one bin, and a run without global iterations never splits it.  That run is shown beside those of one
and of two global iterations in turn with five aggregated ones.

Rewards are the steps, 200 at most, that greedy policies keep the pole up in Gymnasium's physics,
the mean over episodes.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from aggmaze.cartpole import Cells, Physics, cartpole_model
from planners.experiments.algorithm3 import STEPS, seeds
from planners.experiments.reporting import figures, verdicts
from planners.experiments.reporting.report import size_words
from planners.experiments.reporting.statistics import Estimate, estimate
from planners.experiments.study import (
    Configuration,
    Experiment,
    Outcome,
    Picture,
    Run,
    Summary,
    Table,
    grouped,
)
from planners.policies import q_values
from planners.record import Progress
from planners.solve import solve

TITLE = "CartPole"
GAMMA, EPSILON, NUM_AGGREGATED = 0.99, 0.2, 5
#: Points of a cell along each axis.
SUB_POINTS = 3
MAX_STEPS = 200
#: Mean reward that counts as balancing.
BALANCED = 195.0
# Points of a curve for each sweep over all states.
_RESOLUTION = 4

SWEEPS = "value iteration"
ONE_GLOBAL, NO_GLOBAL = "aggregation, 1 global", "aggregation, no global"
#: Global iterations of each method, None for value iteration.
METHODS: dict[str, int | None] = {
    SWEEPS: None,
    ONE_GLOBAL: 1,
    "aggregation, 2 global": 2,
    NO_GLOBAL: 0,
}


@dataclass(frozen=True)
class Args:
    """Parameters of the study.

    Parameters
    ----------
    bins : sequence
        Bins of position, velocity, angle and angular velocity whose curves are drawn.
    all_bins : sequence
        Bins among which to look for those that balance.
    num_sweeps : int
        Updates, in sweeps over all states.
    episodes : int
    repetitions : int
    """

    bins: Sequence[Sequence[int]] = ((5, 5, 9, 9), (8, 8, 12, 13))
    all_bins: Sequence[Sequence[int]] = ()
    num_sweeps: int = 12
    episodes: int = 100
    repetitions: int = 20


_SWEPT = (
    (3, 3, 6, 6),
    (4, 4, 7, 7),
    (5, 5, 9, 9),
    (6, 6, 7, 8),
    (7, 7, 9, 9),
    (6, 6, 11, 11),
    (7, 7, 15, 15),
    (8, 8, 12, 13),
    (10, 10, 10, 10),
)

SCALES = {
    "small": Args(repetitions=3, episodes=50, num_sweeps=8),
    "paper": Args(all_bins=_SWEPT),
}


def configurations(args: Args) -> list[Configuration]:
    """Return a run for each method and bins, and one of value iteration for each of the sweep."""
    common = {"num_sweeps": args.num_sweeps, "episodes": args.episodes}
    curves: list[Configuration] = [
        {"bins": list(bins), "method": method, **common} for bins in args.bins for method in METHODS
    ]
    others = [bins for bins in args.all_bins if bins not in args.bins]
    return [*curves, *({"bins": list(bins), "method": SWEEPS, **common} for bins in others)]


def run(configuration: Configuration, seed: np.random.SeedSequence) -> Outcome:
    """Follow a method, and try its greedy policies (`Experiment.run`)."""
    rng, method_seed = seeds(seed)
    cartpole: Any = gym.make("CartPole-v1").unwrapped
    physics = Physics.of(cartpole)
    cells = Cells.of(physics, configuration["bins"], None)
    with warnings.catch_warnings():
        # That some numbers never change cell, which the docstring says.
        warnings.simplefilter("ignore", UserWarning)
        model = cartpole_model(cells, physics, sub_points=SUB_POINTS)
    low, high = physics.start
    starts = rng.uniform(low, high, (configuration["episodes"], 4))
    updates, rewards = [], []
    known: dict[bytes, float] = {}

    def try_greedy(num_updates: int, values: NDArray[np.float64]) -> None:
        policy = q_values(model, values, GAMMA).argmin(axis=1)
        # Aggregated iterations often leave it as it was, and the starts are the same.
        if policy.tobytes() not in known:
            known[policy.tobytes()] = _reward(policy, cells, physics, starts)
        updates.append(num_updates)
        rewards.append(known[policy.tobytes()])

    def note(progress: Progress) -> None:
        try_greedy(progress.num_updates, progress.values)

    try_greedy(0, np.zeros(cells.num_states))

    num_global = METHODS[configuration["method"]]
    size = cells.num_states
    solve(
        model,
        gamma=GAMMA,
        method="adaptive_aggregation",
        epsilon=EPSILON,
        num_global=1 if num_global is None else num_global,
        # Without aggregated phases Algorithm 3 is value iteration to the letter.
        num_aggregated=0 if num_global is None else NUM_AGGREGATED,
        # Without global ones, an iteration is next to nothing.
        num_iterations=10 * configuration["num_sweeps"],
        num_updates=configuration["num_sweeps"] * size,
        seed=method_seed,
        num_threads=1,
        callback=note,
        **STEPS["phase from 1"],
    )
    ticks = np.arange(configuration["num_sweeps"] * _RESOLUTION + 1) * size / _RESOLUTION
    last = np.searchsorted(updates, ticks, side="right") - 1
    balanced = [n for n, reward in zip(updates, rewards, strict=True) if reward >= BALANCED]
    return Outcome(
        {
            "num_cells": cells.num_cells,
            "rewards": np.array(rewards)[last].tolist(),
            "best": max(rewards),
            "final": rewards[-1],
            "balanced_at": balanced[0] if balanced else None,
        }
    )


def _reward(
    policy: NDArray[np.int64], cells: Cells, physics: Physics, points: NDArray[np.float64]
) -> float:
    """Return the mean number of steps that a policy keeps the pole up, from given points."""
    up, steps = points, 0
    for _ in range(MAX_STEPS):
        steps += len(up)
        after = physics.advance(up, policy[cells.states(up)])
        up = after.points[~after.failed]
        if len(up) == 0:
            break
    return steps / len(points)


def work(configuration: Configuration) -> float:
    """Return the trials of policies, most of the time, and the model."""
    iterations = {None: 1, 0: 10, 1: 6, 2: 4}[METHODS[configuration["method"]]]
    cells = float(np.prod(configuration["bins"]))
    return 4e7 * iterations * configuration["num_sweeps"] + 1e5 * cells


def summarize(args: Args, runs: list[Run]) -> Summary:
    """Return the tables and the figure (`Experiment.summarize`)."""
    groups = grouped(runs, lambda about: (tuple(about["bins"]), about["method"]))
    shown = [x for x in (1, 2, 3, 4, 5, 6, 8, 10, 12) if x <= args.num_sweeps]
    rows: list[list[Any]] = []
    until: dict[str, dict[str, tuple[Estimate | None, int, int]]] = {}
    panels: dict[str, dict[str, tuple[list[float], list[Estimate]]]] = {}
    for (bins, method), group in groups.items():
        if bins not in {tuple(each) for each in args.bins}:
            continue
        num_cells = group[0].values["num_cells"]
        curves = [r.values["rewards"] for r in group]
        estimates = [estimate(samples) for samples in zip(*curves, strict=True)]
        x = [tick * (num_cells + 1) / _RESOLUTION for tick in range(len(estimates))]
        panels.setdefault(f"{num_cells:,} cells", {})[method] = (x, estimates)
        reached = [r.values["balanced_at"] for r in group if r.values["balanced_at"] is not None]
        balanced = estimate(reached) if reached else None
        until.setdefault(f"{num_cells:,} cells", {})[method] = (balanced, len(reached), len(group))
        row: list[Any] = [size_words(bins), num_cells, method, len(group), len(reached)]
        row += [None, None] if balanced is None else [balanced.mean, balanced.half_width]
        for at in shown:
            row += [estimates[at * _RESOLUTION].mean, estimates[at * _RESOLUTION].half_width]
        rows.append(row)
    columns = ["bins", "cells", "method", "runs", "balanced in"]
    columns += ["updates until then", "updates until then +-"]
    for at in shown:
        columns += [f"at {at} sweeps", f"at {at} sweeps +-"]
    tried = [
        (
            group[0].values["num_cells"],
            _all_balanced(group),
            min(r.values["final"] for r in group) >= BALANCED,
        )
        for (_, method), group in groups.items()
        if method == SWEEPS
    ]
    none = (None, 0, 0)
    sweep = [
        [
            size_words(bins),
            group[0].values["num_cells"],
            len(group),
            *_mean_and_width([r.values["best"] for r in group]),
            *_mean_and_width([r.values["final"] for r in group]),
            *_mean_and_width([r.values["balanced_at"] for r in group]),
        ]
        for (bins, method), group in groups.items()
        if method == SWEEPS
    ]
    sweep.sort(key=lambda row: row[1])
    pictures = []
    if panels:
        pictures = [
            Picture(
                "cartpole",
                TITLE,
                figures.rewards(panels, MAX_STEPS),
                "Mean reward of the greedy policy, with 95 % intervals over runs.",
            )
        ]
    return Summary(
        [
            "The paper claims fewer updates than value iteration at both bin counts, and prints no "
            "numbers. How its model was made, and how its phases were laid out, is not said.",
            f"The model here averages over {SUB_POINTS} points of a cell along each axis; with so "
            "few, position never changes cell, and policies know nothing of the ends of the track.",
        ],
        [
            Table(
                "cartpole",
                "Reward against updates",
                columns,
                rows,
                f"gamma {GAMMA:g}, epsilon {EPSILON:g}, steps within the phase from 1. Updates "
                f"until the mean reward over {args.episodes} episodes is first at least "
                f"{BALANCED:g} of {MAX_STEPS}, the mean over the runs where it is.",
                num_keys=3,
            ),
            Table(
                "cartpole_bins",
                "Value iteration at other numbers of bins",
                [
                    "bins",
                    "cells",
                    "runs",
                    "best reward",
                    "best reward +-",
                    f"after {args.num_sweeps} sweeps",
                    f"after {args.num_sweeps} sweeps +-",
                    "updates until balanced",
                    "updates until balanced +-",
                ],
                sweep,
                "Bins of position, velocity, angle and angular velocity.",
            ),
        ],
        pictures,
        [
            verdicts.fewer_updates(
                {
                    cells: (each.get(ONE_GLOBAL, none), each.get(SWEEPS, none))
                    for cells, each in until.items()
                }
            ),
            verdicts.no_global_needed(
                {cells: each[NO_GLOBAL][1:] for cells, each in until.items() if NO_GLOBAL in each}
            ),
            verdicts.best_at_2000(tried),
        ],
        (
            f"bins of {' and '.join(map(size_words, args.bins))}, {args.repetitions} runs of "
            f"{args.episodes} episodes",
            "the paper: about 2,000 and 10,000 cells, runs not told",
        ),
    )


def _all_balanced(group: Sequence[Run]) -> Estimate | None:
    """Return the updates until balanced, where all runs are at some time."""
    reached = [r.values["balanced_at"] for r in group]
    return None if None in reached else estimate(reached)


def _mean_and_width(samples: Sequence[float | None]) -> tuple[float | None, float | None]:
    known = [sample for sample in samples if sample is not None]
    if not known:
        return None, None
    found = estimate(known)
    return found.mean, found.half_width


EXPERIMENT = Experiment("cartpole", TITLE, SCALES, configurations, run, work, summarize)
