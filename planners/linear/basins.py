"""The basin correction: what sweeps leave is solved for along the paths of the greedy moves.

The greedy moves of a model of moves lead every state into a cycle, or to a terminal state.  States
that end in the same cycle form a *basin*.  Of the error ``e = V* - V``, which as long as the greedy
moves are right obeys ``e = r + gamma P e`` with ``r = TV - V``, sweeps in place leave the smooth
part: what returns to the same few states decays by gamma a sweep and no faster, and what is to
travel along a winding path comes only a part of the way.  So ``e = y + t`` is estimated with

- y constant over each basin: adaptive aggregation, by where the policy goes.  Let w be the
  discounted visits of the states between two visits to one state of the cycle, the *root*.
  Weighted by w and summed over basin k, the equation becomes, one unknown a basin,

      ((1 - gamma) |w| + lost_k) y_k - sum_l lost_kl y_l = sum_s w(s) r(s),

  where ``lost_kl`` is what leaves for basin l.  Any w gives the right answer where the error is
  constant; few visits are left out.  In basins of terminal states, whose values are known, y = 0.
- t the rest, 0 at the roots and carried from there up the paths.  The slips, of weight b each, are
  taken to meet the error that the state itself has, which is exact but for differences of second
  order: ``t(s) = (r(s) - (1 - gamma) y + gamma (p - b) t(next)) / (1 - gamma n b)``.

It is an estimate; whoever uses it sweeps, and certifies, after it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planners.engine import LocalEngine
from planners.kernels.pieces import turn_around
from planners.kernels.tables import num_available, weight

# Visits below this are left out, and of each basin at most this many states are looked at.
_LEAST_VISITS = 1e-3
_MOST_STATES = 200
# Relative accuracy and most sweeps of the small system, and room for entries a basin, on average.
_TOLERANCE = 1e-3
_MOST_SWEEPS = 60
_ENTRIES = 32


class _Basins(NamedTuple):
    """Where the greedy moves lead.

    Parameters
    ----------
    labels : ndarray of int32, shape (S,)
        The basin of each state.
    roots : ndarray of int32, shape (S,)
        The root of each basin, as many as there are.
    order : ndarray of int32, shape (S,)
        The states, each after the one that its greedy move leads to but for roots.
    """

    labels: NDArray[np.int32]
    roots: NDArray[np.int32]
    order: NDArray[np.int32]


class _Equations(NamedTuple):
    """The equations of B basins, with ``lost_kl`` in the rows ``indptr[k]:indptr[k + 1]``.

    Parameters
    ----------
    indptr : ndarray of int64, shape (B + 1,)
    columns : ndarray of int32, shape (nnz,)
    lost : ndarray of float, shape (nnz,)
    diagonal, right : ndarray of float, shape (B,)
    """

    indptr: NDArray[np.int64]
    columns: NDArray[np.int32]
    lost: NDArray[np.float64]
    diagonal: NDArray[np.float64]
    right: NDArray[np.float64]


class BasinCorrection:
    """Makes the basin correction; its work space, made once, is 20 bytes a state.

    Parameters
    ----------
    engine : LocalEngine
        Of a `MoveMDP`.
    """

    def __init__(self, engine: LocalEngine) -> None:
        self._moves, self._gamma = engine.tables, engine.gamma
        num_states = engine.num_states
        #: The basin of each state at the last correction, shape (S,).
        self.labels = np.empty(num_states, dtype=np.int32)
        #: Their number.
        self.num_basins = 0
        #: The states, each after the one that its greedy move leads to but for roots.
        self.order = np.arange(num_states, dtype=np.int32)
        roots = np.empty(num_states, dtype=np.int32)
        self._basins = _Basins(self.labels, roots, self.order)
        self._visits = np.zeros(num_states)

    def apply(
        self, actions: NDArray[np.int32], V: NDArray[np.float64], image: NDArray[np.float64]
    ) -> float:
        """Write ``V + y + t`` over ``image``; return the largest change that makes.

        Parameters
        ----------
        actions : ndarray of int32, shape (S,)
            Greedy moves of V.
        V, image : ndarray of float, shape (S,)
            V and TV; V is used up.
        """
        moves, gamma, basins = self._moves, self._gamma, self._basins
        count = int(_find_basins(moves, actions, basins))
        self.num_basins = count
        # What does not fit is taken as not leaving its basin.
        capacity = 64 + min(_ENTRIES * count, len(V))
        equations = _Equations(
            np.empty(count + 1, dtype=np.int64),
            np.empty(capacity, dtype=np.int32),
            np.empty(capacity),
            np.empty(count),
            np.empty(count),
        )
        _assemble(moves, gamma, actions, basins, V, image, self._visits, equations)
        y = np.zeros(count)
        if not math.isfinite(_solve(equations, y)):
            return 0.0
        return float(_carry(moves, gamma, actions, basins, y, V, image))


@njit(cache=True, nogil=True)
def _find_basins(moves, actions, basins):
    """Write the basins of the actions; return their number.

    The order is that of `linear.paths.path_order`; labels are found on the way.
    """
    successors, costs = moves.successors, moves.costs
    labels, roots, order = basins
    labels[:] = -1
    count = begin = 0
    for start in range(len(labels)):
        if labels[start] >= 0:
            continue
        s = start
        end = begin
        while labels[s] == -1:
            labels[s] = -2
            order[end] = s
            end += 1
            # A terminal state has no move, whatever its action.
            if costs[s, actions[s]] == np.inf:
                break
            s = successors[s, actions[s]]
        label = labels[s]
        if label == -2:
            label = count
            roots[count] = s
            count += 1
        turn_around(order, begin, end)
        for i in range(begin, end):
            labels[order[i]] = label
        begin = end
    return count


@njit(cache=True, nogil=True)
def _assemble(moves, gamma, actions, basins, V, image, visits, equations):
    """Write the equations of the basins; ``visits`` is zero before and after."""
    successors, costs, chosen, every = moves
    labels, roots, _ = basins
    indptr, columns, lost, diagonal, right = equations
    num_moves = successors.shape[1]
    room = num_moves * _MOST_STATES + 8
    queue = np.empty(room, dtype=np.int32)
    touched = np.empty(room, dtype=np.int32)
    end = 0
    indptr[0] = 0
    for k in range(len(diagonal)):
        root = roots[k]
        begin = end
        queue[0] = root
        head, tail, num_touched = 0, 1, 1
        touched[0] = root
        visits[root] = 1.0
        size, weighted, leaves = 0.0, 0.0, 0.0
        while head < tail:
            s = queue[head]
            head += 1
            w = visits[s]
            visits[s] = 0.0
            size += w
            weighted += w * (image[s] - V[s])
            n = num_available(costs, s)
            for m in range(num_moves):
                if costs[s, m] == np.inf:
                    continue
                flow = gamma * w * weight(chosen, every, n, m, actions[s])
                following = successors[s, m]
                if flow == 0.0 or following == root:
                    continue
                label = labels[following]
                if label != k:
                    entry = begin
                    while entry < end and columns[entry] != label:
                        entry += 1
                    if entry == end and end < len(columns):
                        columns[end] = label
                        lost[end] = 0.0
                        end += 1
                    if entry < end:
                        lost[entry] += flow
                        leaves += flow
                    continue
                waiting = visits[following]
                if waiting == 0.0:
                    if num_touched == room:
                        continue
                    touched[num_touched] = following
                    num_touched += 1
                visits[following] = waiting + flow
                if waiting < _LEAST_VISITS <= waiting + flow and tail < room:
                    queue[tail] = following
                    tail += 1
            if head == _MOST_STATES:
                break
        for i in range(num_touched):
            visits[touched[i]] = 0.0
        diagonal[k] = (1.0 - gamma) * size + leaves
        right[k] = weighted
        indptr[k + 1] = end
        # Undiscounted, a basin of which no state was seen to leave says nothing.
        if costs[root, actions[root]] == np.inf or diagonal[k] == 0.0:
            diagonal[k], right[k] = 1.0, 0.0
            indptr[k + 1] = end = begin


@njit(cache=True, nogil=True)
def _solve(equations, y):
    """Solve the equations from y on by sweeps there and back; return the largest solution."""
    indptr, columns, lost, diagonal, right = equations
    largest = 0.0
    for sweep in range(_MOST_SWEEPS):
        change = largest = 0.0
        for i in range(len(y)):
            k = i if sweep % 2 == 0 else len(y) - 1 - i
            value = right[k]
            for entry in range(indptr[k], indptr[k + 1]):
                value += lost[entry] * y[columns[entry]]
            value /= diagonal[k]
            change = max(change, abs(value - y[k]))
            largest = max(largest, abs(value))
            y[k] = value
        if change <= _TOLERANCE * largest:
            break
    return largest


@njit(cache=True, nogil=True)
def _carry(moves, gamma, actions, basins, y, V, image):
    """Write ``V + y + t`` over ``image``, and t over V; return the largest change of ``image``."""
    labels, roots, order = basins
    successors, costs, chosen, every = moves
    num_moves = successors.shape[1]
    pivots, factors = np.ones(num_moves + 1), np.zeros(num_moves + 1)
    for n in range(1, num_moves + 1):
        # With p < 1/n the slips are the rule, and nothing is carried along the chosen move.
        if chosen[n] > 0.0:
            pivots[n] = 1.0 / (1.0 - gamma * n * every[n])
            factors[n] = gamma * chosen[n] * pivots[n]
    largest = 0.0
    for i in range(len(order)):
        s = order[i]
        label = labels[s]
        value = V[s]
        rest = 0.0
        if s != roots[label]:
            n = num_available(costs, s)
            rest = pivots[n] * (image[s] - value - (1.0 - gamma) * y[label])
            following = successors[s, actions[s]]
            if following != roots[label]:
                rest += factors[n] * V[following]
        V[s] = rest
        value += y[label] + rest
        largest = max(largest, abs(value - image[s]))
        image[s] = value
    return largest
