"""The linear equations v = c + gamma P v of a chain, by ordered Gauss-Seidel.

States are taken nearest to a terminal state first, so that values flow back along the ways that
lead there: one pass is exact where nothing slips, and where slips are rare a few are.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from planners.policies import distances_to

# After so many passes the change must have halved, or others do better.
_PATIENCE = 4


class OrderedChain:
    """A chain whose states are swept nearest to a terminal one first.

    Parameters
    ----------
    transitions : sparse array, shape (S, S)
    terminal : ndarray of bool, shape (S,)
        Keep the value 0.
    """

    def __init__(self, transitions: sp.csr_array, terminal: NDArray[np.bool_]) -> None:
        self._matrix = (
            transitions.indptr.astype(np.int64),
            transitions.indices.astype(np.int32, copy=False),
            transitions.data,
        )
        distances, _ = distances_to(transitions, np.flatnonzero(terminal))
        order = np.argsort(distances, kind="stable")  # first those that never arrive: at -1
        self._order = order[~terminal[order]]

    def solve(
        self,
        costs: NDArray[np.float64],
        gamma: float,
        *,
        among: NDArray[np.bool_] | None = None,
        tolerance: float = 1e-15,
        max_passes: int = 10_000,
        patient: bool = False,
    ) -> tuple[NDArray[np.float64], bool]:
        """Pass over the states until values settle.

        Parameters
        ----------
        costs : ndarray of float, shape (S,)
        gamma : float
            In [0, 1]; with 1 only among states that arrive.
        among : ndarray of bool, shape (S,), optional
            The states to solve for, which must lead to no other that is not terminal; the rest
            keep the value 0.
        tolerance : float
            Estimated distance from the end at which to stop, relative to the largest value.
        max_passes : int
        patient : bool
            Go on even where passes hardly improve any more.

        Returns
        -------
        values : ndarray of float, shape (S,)
            Where costs are not negative, a lower bound at any time.
        settled : bool
        """
        order = self._order if among is None else self._order[among[self._order]]
        values = np.zeros(len(costs))
        changes: list[float] = []
        for _ in range(max_passes):
            change, largest = _pass(*self._matrix, costs, gamma, order, values)
            changes.append(change)
            # Passes that shrink the change by this factor are that far from the end.
            ratio = change / changes[-2] if len(changes) > 1 else 0.0
            if change == 0 or (ratio < 1 and change <= tolerance * (1 - ratio) * largest):
                return values, True
            slow = len(changes) > _PATIENCE and change > 0.5 * changes[-1 - _PATIENCE]
            if slow and not patient:
                break
        return values, False

    @property
    def num_entries(self) -> int:
        """Number of transitions, the work of one pass."""
        return len(self._matrix[1])


@njit(cache=True)
def _pass(indptr, indices, probabilities, costs, gamma, order, values):  # type: ignore[no-untyped-def]
    change = 0.0
    largest = 0.0
    for s in order:
        total = 0.0
        stay = 0.0
        for entry in range(indptr[s], indptr[s + 1]):
            following = indices[entry]
            if following == s:
                stay += probabilities[entry]
            else:
                total += probabilities[entry] * values[following]
        value = (costs[s] + gamma * total) / (1.0 - gamma * stay)
        change = max(change, abs(value - values[s]))
        largest = max(largest, abs(value))
        values[s] = value
    return change, largest
