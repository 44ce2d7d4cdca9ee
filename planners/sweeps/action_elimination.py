"""Full sweeps of a general sparse model that read most states' best rows only, and are exact.

A state's margin is how much worse its second best action is than its best.  When V changes by d,
the difference between two actions changes by ``gamma |(P_a - P_b) d|``, at most gamma times the
span of d (rows sum to 1).  So while the changes since the margin was taken add up to less than it,
the best action is still the best, ``T_s V`` is what that action gives, and no other row needs to be
read.  What is computed is ``TV`` as ever: nothing is assumed, and certificates hold.

Source: the temporary elimination of actions of Hastings, van Nunen, "The action elimination
algorithm for Markov decision processes" (1977), with margins in the place of bounds.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.rows import ROW_SUM_TOLERANCE
from aggmaze.models.tabular import TabularMDP
from planners.bellman import joined
from planners.engine import LocalEngine, Sweep
from planners.kernels.pieces import UNIT_ROUNDOFF, row_rounding
from planners.kernels.sparse import Certainty, lazy_sweep
from planners.kernels.tables import Outcomes, unsigned
from planners.kernels.threads import over_blocks
from planners.kernels.vectors import sup_norm

# Covers the roundings of sums of a few numbers.
_SLIP = 16 * UNIT_ROUNDOFF


class SuccessiveSweeps:
    """Full sweeps in a row over one model, which are told how V changed since the last.

    These are plain ones.

    Parameters
    ----------
    engine : LocalEngine
    """

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine

    def changed(self, low: float, high: float, max_value: float) -> None:
        """Account for a change of V.

        Parameters
        ----------
        low, high : float
            Extremes of what was added to V.
        max_value : float
            Bounds |V| before and after.
        """

    def sweep(
        self, V: NDArray[np.float64], out: NDArray[np.float64], actions: NDArray[np.int32]
    ) -> Sweep:
        """Write TV into ``out`` and the best actions into ``actions``.

        Parameters
        ----------
        V, out, actions : ndarray, shape (S,)
            ``actions`` as the last sweep left them.
        """
        return self._engine.sweep(V, out, actions)


class LazySweeps(SuccessiveSweeps):
    """Sweeps that read the best rows only, of the states whose best action is sure to be the best.

    Parameters
    ----------
    engine : LocalEngine
        Of a general sparse model.
    """

    def __init__(self, engine: LocalEngine) -> None:
        super().__init__(engine)
        assert isinstance(engine.model, TabularMDP)
        assert isinstance(engine.tables, Outcomes)
        self._outcomes = unsigned(engine.tables)
        longest = engine.model.row_sums.longest
        # Relative rounding error of an action's value, and by how much two row sums can differ.
        self._rounding = row_rounding(longest)
        self._row_sums = 2 * (ROW_SUM_TOLERANCE + longest * UNIT_ROUNDOFF)
        self._sure_until = np.full(engine.num_states, -1.0)
        self._drift = 0.0

    def changed(self, low: float, high: float, max_value: float) -> None:
        """Account for a change of V."""
        # V + d is rounded where it is added up.
        span = (high - low) * (1 + _SLIP) + _SLIP * max_value
        size = max(-low, high)
        drift = self._engine.gamma * (span + self._row_sums * size) * (1 + _SLIP)
        # Rounded up: many changes, each far below the last digit of the sum, are not lost.
        self._drift = math.nextafter(self._drift + drift, math.inf)

    def sweep(
        self, V: NDArray[np.float64], out: NDArray[np.float64], actions: NDArray[np.int32]
    ) -> Sweep:
        """Write TV into ``out`` and the best actions into ``actions``."""
        engine = self._engine
        engine.checkpoint()
        certainty = Certainty(self._sure_until, self._drift, self._rounding, sup_norm(V))
        arguments = (self._outcomes, engine.gamma, V, out, actions, certainty)
        extremes = over_blocks(
            lambda lo, hi: lazy_sweep(*arguments, lo, hi), len(V), engine.num_threads, engine.work
        )
        return joined(extremes, image=out)


def successive_sweeps(engine: LocalEngine) -> SuccessiveSweeps:
    """Return the sweeps that go with the layout of a model: lazy ones where there is a kernel."""
    if isinstance(engine.tables, Outcomes):
        return LazySweeps(engine)
    return SuccessiveSweeps(engine)
