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
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from aggmaze.mdp import readonly
from planners.kernels.pieces import UNIT_ROUNDOFF, likely_outcome
from planners.kernels.vectors import sup_norm
from planners.linear.bicgstab import bicgstab

# A round of BiCGSTAB ends at this share of the residual it began with, or after so many steps.
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
        chain = (
            readonly(transitions.indptr.astype(np.int64)),
            readonly(transitions.indices.astype(np.int32, copy=False)),
            readonly(transitions.data),
            readonly(fixed),
        )
        self._fixed = fixed
        self._order, cycles = _path_order(*chain)
        indptr, indices, entries = _assemble(*chain, gamma, self._order, cycles)
        matrix = sp.csr_array((entries, indices, indptr), shape=transitions.shape)
        matrix.sort_indices()
        self._pattern = (indptr, matrix.indices.astype(np.int32, copy=False))
        self._entries = matrix.data
        self._diagonal = _diagonal(*self._pattern)
        self._factors = _factors(*self._pattern, self._entries, self._diagonal)
        self._operations = 4 + int(np.diff(transitions.indptr).max())
        self._watch: Callable[[], object] | None = None

    def solve(
        self,
        costs: NDArray[np.float64],
        *,
        max_value: float = math.inf,
        watch: Callable[[], object] | None = None,
    ) -> Solution:
        """Solve for costs of shape (S,), as far as float64 and BiCGSTAB go.

        Give up where corrections exceed ``max_value``.  ``watch`` is called before each product
        with the matrix; a true value returned ends it with what there is.
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
        """Make steps of the iteration that rises from 0 to the solution for costs >= 0."""
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
        residual = np.empty_like(values)
        _residual(*self._pattern, self._entries, right, values, residual)
        return residual

    def _preconditioned(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        solution = np.empty_like(vector)
        self._solve_factors(vector, solution)
        return solution

    def _solve_factors(self, vector: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        _substitute(*self._pattern, self._diagonal, self._factors, vector, out)

    def _multiply(self, vector: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        _product(*self._pattern, self._entries, vector, out)

    def _apply(
        self,
        direction: NDArray[np.float64],
        smoothed: NDArray[np.float64],
        image: NDArray[np.float64],
    ) -> None:
        if self._watch is not None and self._watch():
            raise _StoppedError
        self._solve_factors(direction, smoothed)
        self._multiply(smoothed, image)

    def _bicgstab(
        self, right: NDArray[np.float64], rounded: float, max_value: float
    ) -> NDArray[np.float64]:
        """Solve A x = right until the residual is a small share of what it was, or rounding."""
        return bicgstab(
            self._apply,
            right,
            reduction=_REDUCTION,
            most_steps=_MOST_STEPS,
            least_norm=math.sqrt(len(right)) * rounded,
            max_value=max_value,
        ).values


@njit(cache=True)
def _path_order(indptr, indices, probabilities, fixed):  # type: ignore[no-untyped-def]
    """Order the states by their likeliest moves to another, predecessors first.

    The states of a cycle follow each other; its length is noted at the last of them.
    """
    num_states = len(fixed)
    following = np.empty(num_states, dtype=np.int32)
    for s in range(num_states):
        following[s] = s
        if not fixed[s]:
            following[s] = likely_outcome(indptr, indices, probabilities, s, s)
    order = np.empty(num_states, dtype=np.int32)
    cycles = np.zeros(num_states, dtype=np.int32)
    path = np.empty(num_states, dtype=np.int32)
    walk = np.full(num_states, -1, dtype=np.int32)
    free = num_states
    for start in range(num_states):
        length = 0
        s = start
        while walk[s] < 0:
            walk[s] = start
            path[length] = s
            length += 1
            s = following[s]
        if length > 0 and walk[s] == start and following[s] != s:
            last = path[length - 1]
            first = length - 1
            while path[first] != s:
                first -= 1
            cycles[last] = length - first
        # Walks that are found later lead into those found before.
        for i in range(length):
            order[free - length + i] = path[i]
        free -= length
    return order, cycles


@njit(cache=True)
def _assemble(  # type: ignore[no-untyped-def]
    indptr, indices, probabilities, fixed, gamma, order, cycles
):
    """Return I - gamma P in order, each column once in a row, with zeros that close the cycles.

    Fixed states have rows of the identity and columns that are empty but for that.
    """
    num_states = len(order)
    rank = np.empty(num_states, dtype=np.int32)
    room = num_states
    for k in range(num_states):
        s = order[k]
        rank[s] = k
        room += indptr[s + 1] - indptr[s] + cycles[s]
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
            for entry in range(indptr[s], indptr[s + 1]):
                if fixed[indices[entry]] or probabilities[entry] == 0.0:
                    continue
                column = rank[indices[entry]]
                if place[column] < first:
                    place[column] = count
                    columns[count] = column
                    entries[count] = 0.0
                    count += 1
                entries[place[column]] -= gamma * probabilities[entry]
            for column in range(k - cycles[s] + 1, k):
                if place[column] < first:
                    place[column] = count
                    columns[count] = column
                    entries[count] = 0.0
                    count += 1
        starts[k + 1] = count
    return starts, columns[:count].copy(), entries[:count].copy()


@njit(cache=True)
def _diagonal(starts, columns):  # type: ignore[no-untyped-def]
    """Return where each row keeps its diagonal entry."""
    diagonal = np.empty(len(starts) - 1, dtype=np.int64)
    for k in range(len(diagonal)):
        for entry in range(starts[k], starts[k + 1]):
            if columns[entry] == k:
                diagonal[k] = entry
    return diagonal


@njit(cache=True)
def _factors(starts, columns, entries, diagonal):  # type: ignore[no-untyped-def]
    """Return the incomplete factors L and U in the pattern of A, the diagonal of U inverted."""
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
def _substitute(starts, columns, diagonal, factors, right, out):  # type: ignore[no-untyped-def]
    """Solve L U out = right."""
    for k in range(len(diagonal)):
        total = right[k]
        for entry in range(starts[k], diagonal[k]):
            total -= factors[entry] * out[columns[entry]]
        out[k] = total
    for k in range(len(diagonal) - 1, -1, -1):
        total = out[k]
        for entry in range(diagonal[k] + 1, starts[k + 1]):
            total -= factors[entry] * out[columns[entry]]
        out[k] = total * factors[diagonal[k]]


@njit(cache=True)
def _product(starts, columns, entries, vector, out):  # type: ignore[no-untyped-def]
    for k in range(len(vector)):
        total = 0.0
        for entry in range(starts[k], starts[k + 1]):
            total += entries[entry] * vector[columns[entry]]
        out[k] = total


@njit(cache=True)
def _residual(starts, columns, entries, right, vector, out):  # type: ignore[no-untyped-def]
    _product(starts, columns, entries, vector, out)
    for k in range(len(out)):
        out[k] = right[k] - out[k]
