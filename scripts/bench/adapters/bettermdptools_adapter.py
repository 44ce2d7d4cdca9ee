"""bettermdptools' vectorised value iteration, from a Gymnasium table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from bettermdptools.algorithms.planner import Planner
from outcome import Outcome, Solve
from tables import Tables


def problem(tables: Tables, gamma: float) -> Solve:
    """Keep a model as Gymnasium's toy-text environments do.

    The arrays are made of that within the call that is timed: it offers no other way.  It keeps the
    values of every iteration that it might make, so no more are allowed than are needed.
    """
    columns, probabilities = tables.nested()
    rewards = (-tables.costs).tolist()
    table = {
        s: {
            a: [
                (probability, following, rewards[s][a], False)
                for probability, following in zip(probabilities[s][a], columns[s][a], strict=True)
            ]
            for a in range(tables.num_actions)
        }
        for s in range(tables.num_states)
    }

    def solve(variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        iterations = math.ceil(math.log(0.01 * tol) / math.log(gamma)) + 10
        V, track, _ = Planner(table).value_iteration_vectorized(
            gamma=gamma, n_iters=iterations, theta=epsilon * (1 - gamma) / gamma, dtype=np.float64
        )
        return Outcome(lambda: -V, len(track) - 1)

    return solve
