"""Gauss-Seidel value iteration.

    V(s) <- min_a [ c(s,a) + gamma sum_{s' != s} P(s'|s,a) V(s') ] / [ 1 - gamma P(s|s,a) ]

for one state after another, each from the new values of those before it and with its loops to
itself solved for.  On grids the sweeps take all combinations of directions along the axes in turn,
so that values travel far in each; elsewhere they alternate between the order of the states and its
reverse.  One iteration is one sweep, S updates.  The bounds are those of a sweep in place
(`planners.certificate`); a run to a tolerance returns their middle.

Source: Kushner and Kleinman, "Accelerated procedures for the solution of discrete Markov control
problems" (1971); Bertsekas, "Dynamic Programming and Optimal Control", vol. 2, section 2.2.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from planners.engine import LocalEngine
from planners.solvers.base import State, Step
from planners.sweeps.orders import directions, grid_shape


class GaussSeidel:
    """Gauss-Seidel value iteration."""

    by_state: Mapping[str, str] = {}

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._directions = directions(engine.model, grid_shape(engine.model))
        self._num_sweeps = 0

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        """Make one sweep."""
        out[:] = V
        sweep = self._engine.gauss_seidel(out, *next(self._directions))
        self._num_sweeps += 1
        return Step(len(V), sweep, num_sweeps=1)

    def state(self) -> State:
        """Return how many sweeps there were, which tells the direction of the next."""
        return State({"num_sweeps": self._num_sweeps})

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._num_sweeps = state.numbers["num_sweeps"]
        self._directions = itertools.islice(self._directions, self._num_sweeps, None)
