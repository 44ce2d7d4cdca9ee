"""Value iteration.

    V_t = T V_{t-1}

Stops when MacQueen's bounds (`planners.certificate`) around V_t are narrow enough, which needs the
range of the residual TV - V to contract, not its size; the values returned are their middle.  One
iteration is one sweep, S updates.

Source: Bellman (1957); MacQueen (1966) for the bounds; the reference method of Chen et al., "An
Adaptive State Aggregation Algorithm for Markov Decision Processes", section "Preliminaries".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planners.bellman import Backups
from planners.iterate import Step


@dataclass(frozen=True, kw_only=True)
class ValueIterationOptions:
    """Value iteration has no options of its own."""


class ValueIteration:
    """Value iteration from a given V."""

    recentres = True

    def __init__(
        self,
        backups: Backups,
        V0: NDArray[np.float64],
        rng: np.random.Generator,
        options: ValueIterationOptions,
    ) -> None:
        self._backups = backups
        self._V = V0.copy()
        self._spare = np.empty_like(V0)

    def step(self) -> Step:
        """Make one sweep."""
        sweep = self._backups.sweep(self._V, self._spare)
        self._V, self._spare = self._spare, self._V
        return Step(len(self._V), sweep, num_sweeps=1)

    def values(self) -> NDArray[np.float64]:
        """Return the current V."""
        return self._V

    def labels(self) -> None:
        """Return None: states are not aggregated."""
