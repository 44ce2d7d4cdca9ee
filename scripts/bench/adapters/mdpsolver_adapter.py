"""mdpsolver, from nested lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mdpsolver
from outcome import Outcome, Solve
from tables import read_tables


def problem(path: Path, gamma: float) -> Solve:
    """Solve on one thread from 0."""
    tables = read_tables(path)
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
