"""The linear equations v = c + gamma P v of a chain.

States are put in order along their likeliest moves, predecessors first, and ``A = I - gamma P`` is
factored incompletely in that order: no entry is added outside the pattern of A, but for those that
close the cycles of likeliest moves.  The factors are exact where every state has one successor
(p = 1), and where the moves form a tree (mazes with slip).  Elsewhere they precondition BiCGSTAB
(van der Vorst, 1992), which starts anew from the true residual until that is down to rounding.

A is an M-matrix, so the factors exist, and ``A = LU - N`` is a regular splitting (Meijerink and van
der Vorst, 1977): where costs are not negative, the plain iteration ``v + (LU)^-1 (c - Av)`` rises
from 0 towards the solution without ever passing it.

Nothing here can be wrong in silence: every `Solution` tells the residual of the values it holds.

This is for one chain whose value is wanted to the last digit, also undiscounted and for several
costs: `planners.evaluate`, expected steps, and what is too much for `linear.forest`, with which
solvers evaluate their policies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from aggmaze.arrays import readonly
from planners.kernels.pieces import UNIT_ROUNDOFF
from planners.kernels.vectors import sup_norm
from planners.linear.bicgstab import bicgstab
from planners.linear.paths import likely_outcomes, path_order
from planners.linear.rows import Rows, rows_of

# A round of BiCGSTAB ends at this part of the residual it began with, or after this many steps.
_REDUCTION = 1e-6
_MOST_STEPS = 200
# Rows with more entries beyond the diagonal are not used to eliminate: a bound on the work.
_LONG_ROW = 64


@dataclass(frozen=True, eq=False)
class Solution:
    """Values, and how well they solve the equations.

    Parameters
    ----------
    values : ndarray of float, shape (S,)
        0 in fixed states.
    residual_low, residual_high : float
        Extremes of ``c + gamma P v - v`` over all states, as computed.
    rounding : float
        Bound on the rounding error of each residual.
    """

    values: NDArray[np.float64]
    residual_low: float
    residual_high: float
    rounding: float


class _StoppedError(Exception):
    """Whoever watches has asked to stop."""


class ChainEquations:
    """``v = c + gamma P v`` in some states of a chain, v = 0 in the others, for any c.

    Parameters
    ----------
    transitions : sparse array, shape (S, S)
        P; the rows of fixed states are not read.
    fixed : ndarray of bool, shape (S,)
        States of value 0.
    gamma : float
        In [0, 1]; 1 only where every state that is not fixed reaches a fixed one.
    """

    def __init__(self, transitions: sp.csr_array, fixed: NDArray[np.bool_], gamma: float) -> None:
        chain, fixed_states = rows_of(transitions), readonly(fixed)
        following = np.empty(len(fixed), dtype=np.int32)
        likely_outcomes(chain, 1, np.zeros_like(following), fixed_states, following)
        self._fixed = fixed
        self._order, cycles = _predecessors_first(following)
        starts, columns, entries = _assemble(chain, fixed_states, gamma, self._order, cycles)
        # Products with it add up each row from its first entry to the last.
        self._matrix = sp.csr_array((entries, columns, starts), shape=transitions.shape)
        self._matrix.sort_indices()
        columns = self._matrix.indices.astype(np.int32, copy=False)
        matrix = Rows(starts, columns, self._matrix.data)
        self._diagonal = _diagonal(matrix)
        self._factors = matrix._replace(entries=_factors(matrix, self._diagonal))
        self._operations = 4 + int(np.diff(transitions.indptr).max())
        self._watch: Callable[[], object] | None = None

    def solve(
        self,
        costs: NDArray[np.float64],
        *,
        max_value: float = math.inf,
        watch: Callable[[], object] | None = None,
    ) -> Solution:
        """Solve for some costs, as far as float64 and BiCGSTAB go.

        Parameters
        ----------
        costs : ndarray of float, shape (S,)
        max_value : float
            Give up where corrections exceed this in size.
        watch : callable, optional
            Called before each product with the matrix; a true value returned ends it with what
            there is.

        Returns
        -------
        Solution
        """
        self._watch = watch
        right, scale = self._right_hand_side(costs)
        values, residual = np.zeros_like(right), right
        correction, enough = self._preconditioned(right), math.inf
        while True:
            trial = values + correction
            found = self._residual(right, trial)
            if not sup_norm(found) < enough:
                break
            values, residual = trial, found
            rounded = 0.5 * self._operations * UNIT_ROUNDOFF * sup_norm(values)
            if sup_norm(residual) <= rounded:
                break
            enough = 0.5 * sup_norm(residual)
            try:
                correction = self._bicgstab(residual, 0.1 * rounded, max_value / scale)
            except _StoppedError:
                break
        return self._solution(values, residual, scale)

    def rise(self, costs: NDArray[np.float64], num_steps: int) -> Solution:
        """Make steps of the iteration that rises from 0 to the solution for costs >= 0.

        Parameters
        ----------
        costs : ndarray of float, shape (S,)
        num_steps : int

        Returns
        -------
        Solution
        """
        right, scale = self._right_hand_side(costs)
        values, residual = np.zeros_like(right), right
        for _ in range(num_steps):
            trial = values + self._preconditioned(residual)
            found = self._residual(right, trial)
            if not sup_norm(found) < math.inf:
                break
            values, residual = trial, found
        return self._solution(values, residual, scale)

    def _right_hand_side(self, costs: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """Return the costs in order, below 2 in size, and the power of two they were divided by.

        So that squares of them neither overflow nor vanish.
        """
        right = np.where(self._fixed, 0.0, costs)[self._order]
        scale = math.ldexp(1.0, math.frexp(sup_norm(right))[1] - 1)
        return right / scale, scale

    def _solution(
        self, values: NDArray[np.float64], residual: NDArray[np.float64], scale: float
    ) -> Solution:
        unordered = np.empty_like(values)
        unordered[self._order] = scale * values
        return Solution(
            unordered,
            scale * float(residual.min()),
            scale * float(residual.max()),
            # As many terms as the longest row has, and those of c and v itself.
            scale * self._operations * UNIT_ROUNDOFF * (2.0 + 2.0 * sup_norm(values)),
        )

    def _residual(
        self, right: NDArray[np.float64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return right - self._matrix @ values

    def _preconditioned(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        solution = np.empty_like(vector)
        _substitute(self._factors, self._diagonal, vector, solution)
        return solution

    def _apply(
        self,
        direction: NDArray[np.float64],
        smoothed: NDArray[np.float64],
        image: NDArray[np.float64],
    ) -> None:
        if self._watch is not None and self._watch():
            raise _StoppedError
        _substitute(self._factors, self._diagonal, direction, smoothed)
        image[:] = self._matrix @ smoothed

    def _bicgstab(
        self, right: NDArray[np.float64], rounded: float, max_value: float
    ) -> NDArray[np.float64]:
        """Solve A x = right until the residual is a small part of what it was, or rounding."""
        return bicgstab(
            self._apply,
            right,
            reduction=_REDUCTION,
            most_steps=_MOST_STEPS,
            least_norm=math.sqrt(len(right)) * rounded,
            max_value=max_value,
        ).values


def _predecessors_first(
    following: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Order the states along the paths; note the length of each cycle at its last state.

    The states of a cycle follow each other; the length is 0 at all other states.
    """
    order = np.empty_like(following)
    path_order(following, order)
    order = order[::-1].copy()
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    # Only the last state of a cycle leads back.
    lengths = rank - rank[following] + 1
    return order, np.where(lengths > 1, lengths, 0)


@njit(cache=True)
def _assemble(chain, fixed, gamma, order, cycles):
    """Return I - gamma P in order, each column once in a row, with zeros that close the cycles.

    Fixed states have rows of the identity and columns that are empty but for that.
    """
    given, successors, probabilities = chain
    num_states = len(order)
    rank = np.empty(num_states, dtype=np.int32)
    room = num_states
    for k in range(num_states):
        s = order[k]
        rank[s] = k
        room += given[s + 1] - given[s] + cycles[s]
    starts = np.zeros(num_states + 1, dtype=np.int64)
    columns = np.empty(room, dtype=np.int32)
    entries = np.empty(room)
    place = np.full(num_states, -1, dtype=np.int64)
    count = 0
    for k in range(num_states):
        s = order[k]
        first = count
        place[k] = count
        columns[count] = k
        entries[count] = 1.0
        count += 1
        if not fixed[s]:
            for i in range(given[s], given[s + 1]):
                if fixed[successors[i]] or probabilities[i] == 0.0:
                    continue
                column = rank[successors[i]]
                if place[column] < first:
                    place[column] = count
                    columns[count] = column
                    entries[count] = 0.0
                    count += 1
                entries[place[column]] -= gamma * probabilities[i]
            # As above: inlined, a function of its own would count references to the arrays.
            for column in range(k - cycles[s] + 1, k):
                if place[column] < first:
                    place[column] = count
                    columns[count] = column
                    entries[count] = 0.0
                    count += 1
        starts[k + 1] = count
    return starts, columns[:count].copy(), entries[:count].copy()


@njit(cache=True)
def _diagonal(matrix):
    """Return where each row keeps its diagonal entry."""
    starts, columns, _ = matrix
    diagonal = np.empty(len(starts) - 1, dtype=np.int64)
    for k in range(len(diagonal)):
        for entry in range(starts[k], starts[k + 1]):
            if columns[entry] == k:
                diagonal[k] = entry
    return diagonal


@njit(cache=True)
def _factors(matrix, diagonal):
    """Return the incomplete factors L and U in the pattern of A, the diagonal of U inverted."""
    starts, columns, entries = matrix
    num_rows = len(diagonal)
    factors = entries.copy()
    place = np.full(num_rows, -1, dtype=np.int64)
    for i in range(num_rows):
        for entry in range(starts[i], starts[i + 1]):
            place[columns[entry]] = entry
        for entry in range(starts[i], diagonal[i]):
            k = columns[entry]
            if starts[k + 1] - diagonal[k] > _LONG_ROW:
                factors[entry] = 0.0
            elif factors[entry] != 0.0:
                factors[entry] *= factors[diagonal[k]]
                for other in range(diagonal[k] + 1, starts[k + 1]):
                    target = place[columns[other]]
                    if target >= starts[i]:
                        factors[target] -= factors[entry] * factors[other]
        # Positive, but for rounding where gamma is 1.
        factors[diagonal[i]] = 1.0 / max(factors[diagonal[i]], UNIT_ROUNDOFF)
    return factors


@njit(cache=True)
def _substitute(factors, diagonal, right, out):
    """Solve L U out = right."""
    starts, columns, entries = factors
    for k in range(len(diagonal)):
        total = right[k]
        for entry in range(starts[k], diagonal[k]):
            total -= entries[entry] * out[columns[entry]]
        out[k] = total
    for k in range(len(diagonal) - 1, -1, -1):
        total = out[k]
        for entry in range(diagonal[k] + 1, starts[k + 1]):
            total -= entries[entry] * out[columns[entry]]
        out[k] = total * entries[diagonal[k]]
