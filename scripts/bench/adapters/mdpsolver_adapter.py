"""mdpsolver, from nested lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mdpsolver
from outcome import Outcome
from tables import read_tables


class Problem:
    """A model as mdpsolver takes it."""

    def __init__(self, path: Path, gamma: float) -> None:
        tables = read_tables(path)
        columns, probabilities = tables.nested()
        self._model = mdpsolver.model()
        self._model.mdp(
            discount=gamma,
            rewards=(-tables.costs).tolist(),
            tranMatProbs=probabilities,
            tranMatColumns=columns,
        )
        self._zeros = [0.0] * tables.num_states

    def solve(self, variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        """Solve on one thread from 0."""
        self._model.solve(
            algorithm=variant["algorithm"],
            update=variant["update"],
            tolerance=epsilon,
            initValueVector=self._zeros,
            parallel=False,
        )
        return Outcome(lambda: [-value for value in self._model.getValueVector()])
