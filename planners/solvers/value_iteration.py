"""Value iteration.

    V_t = T V_{t-1}

A run to a tolerance stops when MacQueen's bounds (`planners.certificate`) around V_t are narrow
enough, which needs the range of the residual TV - V to contract, not its size, and returns their
middle; a run of k iterations returns V_k itself.  One iteration is one sweep, S updates.

Source: Bellman (1957); MacQueen (1966) for the bounds; the reference method of Chen et al., "An
Adaptive State Aggregation Algorithm for Markov Decision Processes", section "Preliminaries".
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from planners.engine import Engine
from planners.solvers.base import State, Step


class ValueIteration:
    """Value iteration."""

    by_state: Mapping[str, str] = {}

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        """Make one sweep."""
        return Step(self._engine.num_states, self._engine.sweep(V, out), num_sweeps=1)

    def state(self) -> State:
        """Return what is known beside V: nothing."""
        return State()

    def restore(self, state: State) -> None:
        """Go on from there."""
