"""mdpsolver, from nested lists."""

from __future__ import annotations

from typing import Any

import mdpsolver
from outcome import Outcome, Solve
from tables import Tables


def problem(tables: Tables, gamma: float) -> Solve:
    """Solve on one thread from 0."""
    columns, probabilities = tables.nested()
    model = mdpsolver.model()
    model.mdp(
        discount=gamma,
        rewards=(-tables.costs).tolist(),
        tranMatProbs=probabilities,
        tranMatColumns=columns,
    )
    zeros = [0.0] * tables.num_states

    def solve(variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        model.solve(tolerance=epsilon, initValueVector=zeros, parallel=False, **variant)
        return Outcome(lambda: [-value for value in model.getValueVector()])

    return solve
