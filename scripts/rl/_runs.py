"""What is written down of a run: the regret while it learns, and a line about what came of it."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
from _problem import Judge, Task
from numpy.typing import NDArray

import planners
from aggmaze.files import atomic_file

#: A policy is called close if its regret at the start is at most this share of the optimal cost,
#: and optimal if it is no more than what rounding explains.
CLOSE, ROUNDING = 1e-2, 1e-9


@dataclass(frozen=True)
class Point:
    """How far from the optimum an agent's greedy policy was after so many steps.

    Regrets are as `Regret` has them; seconds are of the processor, without evaluations.
    """

    algorithm: str
    observation: str
    env_id: str
    side: int
    seed: int
    step: int
    start_regret: float
    mean_regret: float
    seconds: float


@dataclass(frozen=True)
class Run:
    """What came of a run; costs are discounted, and from the corner opposite the goal.

    ``close_since`` and ``optimal_since`` are the first step from which on all policies that were
    evaluated were close or optimal there, and ``optimal_seconds`` the time until then; None if the
    last was not. ``episode_cost`` is the mean of real episodes and ``standard_error`` its own;
    ``cost`` is its expectation, exact.
    """

    algorithm: str
    observation: str
    env_id: str
    side: int
    p: float
    gamma: float
    starts: str
    seed: int
    steps: int
    seconds: float
    close_since: int | None
    optimal_since: int | None
    optimal_seconds: float | None
    start_regret: float
    mean_regret: float
    optimal_cost: float
    cost: float
    episode_cost: float
    standard_error: float


class Watcher:
    """Judges the policies of one agent while it learns; what time that takes is not the agent's."""

    def __init__(self, task: Task, judge: Judge) -> None:
        self.points: list[Point] = []
        self._task, self._judge = task, judge
        self._begin = 0.0

    def __call__(self, step: int, policy: NDArray[np.int64]) -> None:
        """Note the regret of a policy, an action for each state, after so many steps."""
        now = time.process_time()
        if not self.points:
            self._begin = now
        self._policy, regret = policy, self._judge.regret(policy)
        seconds = round(now - self._begin, 3)
        task, problem = self._task, self._task.problem
        of = (task.algorithm, task.observation, problem.env_id, problem.side, task.seed)
        self.points.append(Point(*of, step, regret.start, regret.mean, seconds))
        self._begin += time.process_time() - now

    def result(self, num_episodes: int) -> Run:
        """Return what came of it; the last policy walks through so many real episodes."""
        problem, last = self._task.problem, self.points[-1]
        optimal_cost = float(self._judge.optimum[self._judge.start])
        close = _since(self.points, CLOSE * abs(optimal_cost))
        optimal = _since(self.points, ROUNDING * abs(optimal_cost))
        policy = self._policy
        found = planners.rollout(
            problem.make(),
            lambda state: int(policy[state]),
            episodes=num_episodes,
            seed=last.seed,
            gamma=problem.gamma,
        )
        assert found.discounted_returns is not None
        costs = -found.discounted_returns
        return Run(
            algorithm=last.algorithm,
            observation=last.observation,
            env_id=last.env_id,
            side=last.side,
            p=problem.p,
            gamma=problem.gamma,
            starts=self._task.start,
            seed=last.seed,
            steps=last.step,
            seconds=last.seconds,
            close_since=close.step if close else None,
            optimal_since=optimal.step if optimal else None,
            optimal_seconds=optimal.seconds if optimal else None,
            start_regret=last.start_regret,
            mean_regret=last.mean_regret,
            optimal_cost=optimal_cost,
            cost=optimal_cost + last.start_regret,
            episode_cost=float(costs.mean()),
            standard_error=float(costs.std(ddof=1) / np.sqrt(num_episodes)),
        )


def _since(points: Sequence[Point], regret: float) -> Point | None:
    """Return the first point from which on the regret at the start is no larger."""
    found = None
    for point in reversed(points):
        if point.start_regret > regret:
            break
        found = point
    return found


def write_csv(path: Path, rows: Sequence[Point] | Sequence[Run]) -> None:
    """Write a line for each row, whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(rows[0])])
    writer.writerows(astuple(row) for row in rows)
    with atomic_file(path) as file:
        file.write(text.getvalue().encode())
