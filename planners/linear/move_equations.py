"""The linear equations of a policy on a model of moves that slip, straight from its tables.

``A v = c`` with ``A = I - gamma P``.  States are put in an order in which predecessors on the paths
of likeliest moves come first, and A is split into ``D - L - U``.  With pivots d the product
``M = (d - L) d^-1 (d - U)`` is an incomplete factorisation of A that needs nothing but these pivots
(D-ILU; Barrett et al., "Templates for the solution of linear systems", 1994, section 3.4.2).  On a
grid it is the one without fill, on mazes whose passages form a tree it is exact.  Most of the fill
that it leaves out is added to the pivots (Axelsson and Lindskog, 1986), and BiCGSTAB solves
``(d - L)^-1 A (d - U)^-1 d y = (d - L)^-1 c``.  Since ``A = (d - L) + (d - U) + (D - 2 d)``, that
takes one substitution backwards and one forwards and no product with A (Eisenstat, 1981):

    t = (d - U)^-1 d y,    (d - L)^-1 A t = t + (d - L)^-1 (d y + (D - 2 d) t).

On such mazes no step of it is needed, and states are in order path by path, which keeps together
what belongs together.  Elsewhere they are in order of the steps that are left to them: then the
next state seldom waits for the last, which makes half the time of a substitution.

Of a row only where its moves lead is kept, the chosen one first: how likely each is follows from
the number of moves.  All that makes it a third of the time of `linear.chain` and of its memory.

A is an M-matrix.  With no fill added, ``A = M - N`` is a regular splitting, so that the plain
iteration ``v + M^-1 (c - A v)`` rises from 0 towards the solution for costs that are not negative.

Nothing here can be wrong in silence: who solves is told the residual of what was found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planners.kernels.pieces import UNIT_ROUNDOFF
from planners.kernels.tables import Moves, num_available, weight
from planners.kernels.vectors import sup_norm
from planners.linear.bicgstab import bicgstab
from planners.linear.paths import likely_moves, path_order

# Share of the fill that is added to the pivots.
_ADDED_FILL = 0.8
# A round of BiCGSTAB ends where the mean square of the residual is down to the square of this part
# of what is enough for its largest entry, since a few are larger by far; where it is down to the
# next part of what it began with; or after so many steps.  Then it starts anew.
_MARGIN, _REDUCTION, _MOST_STEPS = 2e-3, 1e-9, 200
# A guess of expected steps is none where a step leads nearer by less than this on average.
_LEAST_PROGRESS = 0.1


class Residual(NamedTuple):
    """Extremes of ``c + gamma P v - v`` over all states, as computed."""

    low: float
    high: float

    @property
    def size(self) -> float:
        """The larger in size of the two; NaN where one is."""
        return -self.low if -self.low >= self.high else self.high


class _StoppedError(Exception):
    """Whoever watches has asked to stop."""


class MoveEquations:
    """``v = c + gamma P v`` for one policy, v = 0 in terminal states.

    Parameters
    ----------
    moves : Moves
        Each state that is not terminal has an available move.
    actions : ndarray of int32, shape (S,)
        An available move in each state that has one.
    gamma : float
        In [0, 1]; 1 only where every state reaches a terminal one.
    count_steps : bool
        Whether every step costs 1, whatever the model says.
    watch : callable, optional
        Called before each application of the equations; a true value returned ends the solution
        with what there is.
    """

    def __init__(
        self,
        moves: Moves,
        actions: NDArray[np.int32],
        gamma: float,
        *,
        count_steps: bool = False,
        watch: Callable[[], object] | None = None,
    ) -> None:
        num_states, num_moves = moves.successors.shape
        self._moves, self._actions, self._gamma = moves, actions, gamma
        self._count_steps, self._watch = count_steps, watch
        following, order = (np.empty(num_states, dtype=np.int32) for _ in range(2))
        likely_moves(moves, actions, following)
        path_order(following, order)
        self._order, rank = order[::-1].copy(), np.empty(num_states, dtype=np.int32)
        _find_rank(self._order, rank)
        self._is_exact = not _has_fill(moves, rank)
        if not self._is_exact:
            _order_by_depth(following, order)
            self._order[:] = order[::-1]
            _find_rank(self._order, rank)
        del following, order  # the rows may need the memory
        self._rows = _Rows(
            np.empty((num_states, num_moves), dtype=np.uint32),
            np.empty(num_states, dtype=np.min_scalar_type(num_moves)),
            gamma * moves.chosen,
            gamma * moves.every,
        )
        self._pivots, diagonal = np.empty(num_states), np.empty(num_states)
        is_one = _load(moves, actions, self._order, rank, self._rows, diagonal)
        # Where nothing stays in place a single entry stands for all.
        self._diagonal = np.ones(1) if is_one else diagonal
        self._factor(_ADDED_FILL)

    def solve(
        self,
        V: NDArray[np.float64],
        enough: Callable[[float], float],
        *,
        max_value: float = math.inf,
    ) -> Residual:
        """Bring V nearer to the solution, in place, as far as asked for and float64 allows.

        Parameters
        ----------
        V : ndarray of float, shape (S,)
            Where to start, 0 in terminal states.
        enough : callable
            Of the sup norm of V: the size of a residual that is small enough.
        max_value : float
            Give up where corrections exceed this in size.

        Returns
        -------
        Residual
            Of V as it is left.
        """
        residual, found = self._residual(V)
        while not found.size <= enough(sup_norm(V)):
            try:
                if self._is_exact:
                    self._look()
                    correction = self._substitute(residual)
                else:
                    right = np.empty_like(V)
                    _forward(self._rows, self._pivots, self._order, residual, right)
                    del residual  # a vector less while there are many
                    correction = self._bicgstab(right, _MARGIN * enough(sup_norm(V)), max_value)
            except _StoppedError:
                break
            trial = V.copy()
            _add_in_order(self._order, correction, trial)
            residual, following = self._residual(trial)
            if not following.size <= 0.5 * found.size:
                break
            V[:], found = trial, following
        return found

    def guess(self, distances: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return a guess of the expected steps, where costs are steps: a multiple of distances.

        The one whose residuals add up to 0; all 0 where distances say nothing of it.

        Parameters
        ----------
        distances : ndarray of int32, shape (S,)
            To a terminal state.
        """
        values = distances.astype(np.float64)
        residual, _ = self._residual(values)
        num_inside = np.count_nonzero(distances)
        progress = float(num_inside - residual.sum())
        is_sound = progress > _LEAST_PROGRESS * num_inside
        values *= num_inside / progress if is_sound else 0.0
        return values

    def rounding(self, max_value: float) -> float:
        """Bound the rounding error of each residual where costs are steps.

        Of the n <= M terms ``1 + V`` two roundings each, n for their sum, six for the weights and
        as many for what is left: of at most twice what they come to, as in `MoveEngine.rounding`.

        Parameters
        ----------
        max_value : float
            Bounds V in size.
        """
        return 2 * (self._moves.successors.shape[1] + 14) * UNIT_ROUNDOFF * (1.0 + 2.0 * max_value)

    def rise(self, num_steps: int) -> tuple[NDArray[np.float64], Residual]:
        """Make steps of the iteration that rises from 0 to the solution for costs >= 0.

        Nothing can be solved afterwards: its factors are others.

        Parameters
        ----------
        num_steps : int

        Returns
        -------
        values : ndarray of float, shape (S,)
        Residual
        """
        self._factor(0.0)
        values = np.zeros(len(self._order))
        residual, found = self._residual(values)
        for _ in range(num_steps):
            trial = values.copy()
            _add_in_order(self._order, self._substitute(residual), trial)
            residual, following = self._residual(trial)
            if not following.size < math.inf:
                break
            values, found = trial, following
        return values, found

    def _factor(self, added_fill: float) -> None:
        _find_pivots(self._rows, self._diagonal, added_fill, self._pivots)

    def _residual(self, V: NDArray[np.float64]) -> tuple[NDArray[np.float64], Residual]:
        """Return ``c + gamma P v - v``, states in their own order, and its extremes."""
        residual = np.empty_like(V)
        arguments = self._moves, self._actions, self._gamma, self._count_steps
        return residual, Residual(*_find_residual(*arguments, V, residual))

    def _substitute(self, residual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``M^-1 residual``, states in order."""
        smoothed, solution = np.empty_like(residual), np.empty_like(residual)
        _forward(self._rows, self._pivots, self._order, residual, smoothed)
        _backward(self._rows, self._pivots, smoothed, solution)
        return solution

    def _bicgstab(
        self, right: NDArray[np.float64], root_mean_square: float, max_value: float
    ) -> NDArray[np.float64]:
        """Solve until the residual is as small as that, or a small part of what it was.

        ``right`` is ``(d - L)^-1`` times the residual.
        """
        return bicgstab(
            self._apply,
            right,
            reduction=_REDUCTION,
            most_steps=_MOST_STEPS,
            least_norm=math.sqrt(len(right)) * root_mean_square,
            max_value=max_value,
        ).values

    def _apply(
        self,
        direction: NDArray[np.float64],
        smoothed: NDArray[np.float64],
        image: NDArray[np.float64],
    ) -> None:
        self._look()
        _backward(self._rows, self._pivots, direction, smoothed)
        _apply_forward(self._rows, self._diagonal, self._pivots, direction, smoothed, image)

    def _look(self) -> None:
        if self._watch is not None and self._watch():
            raise _StoppedError


class _Rows(NamedTuple):
    """The rows of L and U, states in their order.

    Parameters
    ----------
    columns : ndarray of uint32, shape (S, M)
        Where each move leads, the chosen one first; its own row where it leads nowhere else.
    counts : ndarray of unsigned int, shape (S,)
        How many moves are available.
    chosen, every : ndarray of float, shape (M + 1,)
        As in `Moves`, times gamma.
    """

    columns: NDArray[np.uint32]
    counts: NDArray[Any]
    chosen: NDArray[np.float64]
    every: NDArray[np.float64]


@njit(cache=True, nogil=True)
def _order_by_depth(following, order):
    """Sort an order along the paths by the steps that are left to each state, else as it is."""
    num_states = len(order)
    depths = np.zeros(num_states, dtype=np.int32)
    starts = np.zeros(num_states + 1, dtype=np.int32)
    for k in range(num_states):
        s = order[k]
        # The state that a cycle begins with leads to one whose depth is not known yet.
        depths[s] = depths[following[s]] + 1 if following[s] != s else 0
        starts[depths[s]] += 1
    first = 0
    for depth in range(num_states + 1):
        count = starts[depth]
        starts[depth] = first
        first += count
    by_path = order.copy()
    for k in range(num_states):
        s = by_path[k]
        order[starts[depths[s]]] = s
        starts[depths[s]] += 1


@njit(cache=True, nogil=True)
def _find_rank(order, rank):
    for k in range(len(order)):
        rank[order[k]] = k


@njit(cache=True, nogil=True)
def _has_fill(moves, rank):
    """Return whether elimination in order adds an entry: to a row from one that has two others."""
    successors, costs = moves.successors, moves.costs
    num_states, num_moves = costs.shape
    for s in range(num_states):
        for m in range(num_moves):
            t = successors[s, m]
            if costs[s, m] < np.inf and rank[t] < rank[s]:
                for other in range(num_moves):
                    u = successors[t, other]
                    if costs[t, other] < np.inf and rank[u] > rank[t] and u != s:
                        return True
    return False


@njit(cache=True, nogil=True)
def _load(moves, actions, order, rank, rows, diagonal):
    """Write the rows of the states in their order, and the diagonal of A.

    Returns whether that is 1 everywhere.
    """
    successors, costs = moves.successors, moves.costs
    columns, counts, chosen, every = rows
    num_states, num_moves = columns.shape
    is_one = True
    for k in range(num_states):
        s = order[k]
        action = actions[s]
        n = num_available(costs, s)
        entry = 1.0
        for m in range(num_moves):
            # The chosen move changes places with the first.
            place = 0 if m == action else (action if m == 0 else m)
            available = costs[s, m] < np.inf
            column = rank[successors[s, m]] if available else k
            columns[k, place] = column
            if available and column == k:
                entry -= weight(chosen, every, n, place, 0)
        counts[k] = n
        diagonal[k] = entry
        is_one = is_one and entry == 1.0
    return is_one


@njit(cache=True, nogil=True)
def _find_pivots(rows, diagonal, added_fill, pivots):
    """Write the inverses of the pivots d."""
    columns, counts, chosen, every = rows
    num_states, num_moves = columns.shape
    stride = 1 if len(diagonal) > 1 else 0
    for k in range(num_states):
        pivot = diagonal[stride * k]
        for m in range(num_moves):
            j = columns[k, m]
            if j < k:
                back = 0.0
                fill = 0.0
                for other in range(num_moves):
                    column = columns[j, other]
                    entry = weight(chosen, every, counts[j], other, 0)
                    back += entry if column == k else 0.0
                    fill += entry if column > j and column != k else 0.0
                entry = weight(chosen, every, counts[k], m, 0)
                pivot -= entry * pivots[j] * (back + added_fill * fill)
        # Positive, but for rounding where gamma is 1.
        pivots[k] = 1.0 / max(pivot, UNIT_ROUNDOFF)


@njit(cache=True, inline="always")
def _sum_before(columns, chosen, every, n, k, out):
    """Return the row of L of state k, which has n moves, times ``out``."""
    j = columns[k, 0]
    of_chosen = out[j] if j < k else 0.0
    total = of_chosen
    for m in range(1, columns.shape[1]):
        j = columns[k, m]
        total += out[j] if j < k else 0.0
    return every[n] * total + chosen[n] * of_chosen


@njit(cache=True, inline="always")
def _sum_behind(columns, chosen, every, n, k, out):
    """Return the row of U of state k, which has n moves, times ``out``."""
    j = columns[k, 0]
    of_chosen = out[j] if j > k else 0.0
    total = of_chosen
    for m in range(1, columns.shape[1]):
        j = columns[k, m]
        total += out[j] if j > k else 0.0
    return every[n] * total + chosen[n] * of_chosen


@njit(cache=True, nogil=True)
def _find_residual(moves, actions, gamma, count_steps, V, out):
    """Write the residuals of V; return their extremes, NaN where one is."""
    successors, costs, chosen, every = moves
    low = np.inf
    high = -np.inf
    num_lost = 0
    for s in range(len(out)):
        total = 0.0
        of_chosen = 0.0
        n = 0
        for m in range(successors.shape[1]):
            available = costs[s, m] < np.inf
            cost = 1.0 if count_steps else costs[s, m]
            q = cost + gamma * V[successors[s, m]] if available else 0.0
            total += q
            of_chosen = q if m == actions[s] else of_chosen
            n += 1 if available else 0
        value = (chosen[n] * of_chosen + every[n] * total if n > 0 else 0.0) - V[s]
        out[s] = value
        low = value if value < low else low
        high = value if value > high else high
        num_lost += 1 if value != value else 0
    return (low, high) if num_lost == 0 else (np.nan, np.nan)


@njit(cache=True, nogil=True)
def _forward(rows, pivots, order, right, out):
    """Write ``(d - L)^-1 right``, where ``right`` is in the order of the states."""
    columns, counts, chosen, every = rows
    for k in range(len(out)):
        total = _sum_before(columns, chosen, every, counts[k], k, out)
        out[k] = pivots[k] * (right[order[k]] + total)


@njit(cache=True, nogil=True)
def _backward(rows, pivots, y, out):
    """Write ``(d - U)^-1 d y``."""
    columns, counts, chosen, every = rows
    for k in range(len(out) - 1, -1, -1):
        total = _sum_behind(columns, chosen, every, counts[k], k, out)
        out[k] = y[k] + pivots[k] * total


@njit(cache=True, nogil=True)
def _apply_forward(rows, diagonal, pivots, y, t, out):
    """Write ``t + (d - L)^-1 (d y + (D - 2 d) t)``."""
    columns, counts, chosen, every = rows
    stride = 1 if len(diagonal) > 1 else 0
    for k in range(len(out)):
        total = _sum_before(columns, chosen, every, counts[k], k, out)
        total += diagonal[stride * k] * t[k]
        out[k] = (y[k] - 2.0 * t[k]) + pivots[k] * total
    # Afterwards, so that what is read of other states is one number each.
    for k in range(len(out)):
        out[k] += t[k]


@njit(cache=True, nogil=True)
def _add_in_order(order, vector, V):
    for k in range(len(order)):
        V[order[k]] += vector[k]
