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

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planners.engine import Engine
from planners.kernels.pieces import turn_around

# Visits below this are left out, and no basin is looked at in more states than so many.
_LEAST_VISITS = 1e-3
_MOST_STATES = 200
# Accuracy and sweeps of the small system, and entries a basin that there is room for on average.
_TOLERANCE = 1e-3
_MOST_SWEEPS = 60
_ENTRIES = 32


class BasinCorrection:
    """Makes the basin correction; its work space, made once, is 20 bytes a state.

    Parameters
    ----------
    engine : Engine
        Of a `MoveMDP`.
    """

    def __init__(self, engine: Engine) -> None:
        self._tables, self._gamma = engine.tables, engine.gamma
        num_states = engine.model.num_states
        #: The basin of each state at the last correction, shape (S,).
        self.labels = np.empty(num_states, dtype=np.int32)
        #: Their number.
        self.num_basins = 0
        self._roots = np.empty(num_states, dtype=np.int32)
        #: The states, each after the one that its greedy move leads to but for roots.
        self.order = np.arange(num_states, dtype=np.int32)
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
        successors, move_costs, chosen, every = self._tables
        count = _find_basins(successors, move_costs, actions, self.labels, self._roots, self.order)
        self.num_basins = int(count)
        # What does not fit is taken as not leaving its basin.
        capacity = 64 + min(_ENTRIES * count, len(V))
        columns, lost = np.empty(capacity, dtype=np.int32), np.empty(capacity)
        indptr = np.empty(count + 1, dtype=np.int64)
        diagonal, right, y = np.empty(count), np.empty(count), np.zeros(count)
        _assemble(
            successors,
            move_costs,
            chosen,
            every,
            self._gamma,
            actions,
            self.labels,
            self._roots,
            V,
            image,
            self._visits,
            indptr,
            columns,
            lost,
            diagonal,
            right,
        )
        if not math.isfinite(_solve(indptr, columns, lost, diagonal, right, y)):
            return 0.0
        return float(
            _carry(
                successors,
                move_costs,
                chosen,
                every,
                self._gamma,
                actions,
                self.labels,
                self._roots,
                self.order,
                y,
                V,
                image,
            )
        )


@njit(cache=True, nogil=True)
def _find_basins(successors, move_costs, actions, labels, roots, order):  # type: ignore[no-untyped-def]
    """Label the states by where the actions lead; return the number of basins.

    ``order`` receives the states, each after the one that its action leads to but for roots.
    """
    num_states = len(labels)
    labels[:] = -1
    count = begin = 0
    for start in range(num_states):
        if labels[start] >= 0:
            continue
        s = start
        end = begin
        while labels[s] == -1:
            labels[s] = -2
            order[end] = s
            end += 1
            # A terminal state has no move, whatever its action.
            if move_costs[s, actions[s]] == np.inf:
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
def _assemble(  # type: ignore[no-untyped-def]
    successors,
    move_costs,
    chosen,
    every,
    gamma,
    actions,
    labels,
    roots,
    V,
    image,
    visits,
    indptr,
    columns,
    lost,
    diagonal,
    right,
):
    """Write the equations of the basins; ``visits`` is zero before and after."""
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
            n = 0
            for m in range(num_moves):
                n += 1 if move_costs[s, m] < np.inf else 0
            for m in range(num_moves):
                if move_costs[s, m] == np.inf:
                    continue
                flow = gamma * w * (every[n] + (chosen[n] if m == actions[s] else 0.0))
                following = successors[s, m]
                if flow == 0.0 or following == root:
                    continue
                label = labels[following]
                if label != k:
                    entry = begin
                    while entry < end and columns[entry] != label:
                        entry += 1
                    if entry < end:
                        lost[entry] += flow
                        leaves += flow
                    elif end < len(columns):
                        columns[end] = label
                        lost[end] = flow
                        leaves += flow
                        end += 1
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
        if move_costs[root, actions[root]] == np.inf:
            diagonal[k], right[k] = 1.0, 0.0
            indptr[k + 1] = end = begin


@njit(cache=True, nogil=True)
def _solve(indptr, columns, lost, diagonal, right, y):  # type: ignore[no-untyped-def]
    """Solve the equations from y on by sweeps there and back; return the largest solution."""
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
def _carry(  # type: ignore[no-untyped-def]
    successors, move_costs, chosen, every, gamma, actions, labels, roots, order, y, V, image
):
    """Write ``V + y + t`` over ``image``, and t over V; return the largest change of ``image``."""
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
            n = 0
            for m in range(num_moves):
                n += 1 if move_costs[s, m] < np.inf else 0
            rest = pivots[n] * (image[s] - value - (1.0 - gamma) * y[label])
            following = successors[s, actions[s]]
            if following != roots[label]:
                rest += factors[n] * V[following]
        V[s] = rest
        value += y[label] + rest
        largest = max(largest, abs(value - image[s]))
        image[s] = value
    return largest
