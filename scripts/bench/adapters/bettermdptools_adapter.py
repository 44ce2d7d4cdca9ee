"""bettermdptools' vectorised value iteration, from a Gymnasium table."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from bettermdptools.algorithms.planner import Planner
from outcome import Outcome
from tables import read_tables


class Problem:
    """A model as Gymnasium's toy-text environments keep it."""

    def __init__(self, path: Path, gamma: float) -> None:
        tables = read_tables(path)
        columns, probabilities = tables.nested()
        rewards = (-tables.costs).tolist()
        actions = range(tables.num_actions)
        self._table = {
            s: {
                a: [
                    (probability, following, rewards[s][a], False)
                    for probability, following in zip(
                        probabilities[s][a], columns[s][a], strict=True
                    )
                ]
                for a in actions
            }
            for s in range(tables.num_states)
        }
        self._gamma = gamma

    def solve(self, variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        """Solve; it keeps the values of every iteration that it might make, so no more than that.

        Its arrays are made of the table within the call that is timed: it offers no other way.
        """
        gamma = self._gamma
        iterations = math.ceil(math.log(0.01 * tol) / math.log(gamma)) + 10
        V, track, _ = Planner(self._table).value_iteration_vectorized(
            gamma=gamma, n_iters=iterations, theta=epsilon * (1 - gamma) / gamma, dtype=np.float64
        )
        return Outcome(lambda: -V, len(track) - 1)
