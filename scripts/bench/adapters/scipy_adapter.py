"""What anybody writes in ten lines: value iteration on a scipy matrix, in plain numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from outcome import Outcome
from tables import read_tables


class Problem:
    """The rows of all pairs in one matrix."""

    def __init__(self, path: Path, gamma: float) -> None:
        self._tables = read_tables(path)
        self._gamma = gamma

    def solve(self, variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        """Sweep until the change promises the accuracy."""
        P, costs, gamma = self._tables.transitions, self._tables.costs, self._gamma
        V, iterations, change = np.zeros(len(costs)), 0, np.inf
        while change * gamma / (1 - gamma) > epsilon:
            updated = (costs + gamma * (P @ V).reshape(costs.shape)).min(axis=1)
            change = np.abs(updated - V).max()
            V, iterations = updated, iterations + 1
        return Outcome(lambda: V, iterations)
