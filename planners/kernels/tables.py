"""The tables of a model as kernels take them, one NamedTuple for each layout.

Numba passes them like the arrays that they hold.  All arrays are read-only views.  Kernels and
what is inlined into them read the arrays that they use once, before any loop: within loops each
look at a NamedTuple may count references, which made sweeps ten times slower.  Inner loops count
in ``np.uint64``, and add nothing else to it: a number that may be negative is asked for its sign at
each entry, since it would count from the end, and that takes as long as the sum itself.
"""

from __future__ import annotations

import weakref
from typing import NamedTuple, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from aggmaze.arrays import readonly
from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP
from planners.kernels.pieces import ONE, value_of

# Rows of at least so many entries are summed up four entries at a time: one sum alone waits for
# each addition.
_LONG = np.uint64(16)
_TWO, _THREE, _FOUR = np.uint64(2), np.uint64(3), np.uint64(4)

#: Entries of a table from which it stays in no cache of a core's own between two sweeps.
MANY_ENTRIES = 1 << 20

StateNumbers = NDArray[np.int32] | NDArray[np.uint32]


class Moves(NamedTuple):
    """A model of moves that may slip (`aggmaze.move_mdp`).

    With n available moves in a state and ``q_m = costs[s, m] + gamma V(successors[s, m])``, action
    m is worth ``chosen[n] q_m + every[n] sum_k q_k`` over the available k.

    Parameters
    ----------
    successors : ndarray of int32, or of uint32, shape (S, M)
    costs : ndarray of float, shape (S, M)
        +inf where the move is unavailable.
    chosen, every : ndarray of float, shape (M + 1,)
        By the number of available moves.
    """

    successors: StateNumbers
    costs: NDArray[np.float64]
    chosen: NDArray[np.float64]
    every: NDArray[np.float64]


class FlatMoves(NamedTuple):
    """`Moves` for kernels that take several states at a time.

    Parameters
    ----------
    successors : ndarray of uint32, shape (S * M,)
    costs : ndarray of float, shape (S * M,)
    chosen, every : tuple of M + 1 floats
        Their length, which the compiler knows, unrolls the loops over moves.
    windows : ndarray of int64, shape (blocks, M)
        How far each move leads in each block of states, as `moves.find_windows` writes it.
    """

    successors: NDArray[np.uint32]
    costs: NDArray[np.float64]
    chosen: tuple[float, ...]
    every: tuple[float, ...]
    windows: NDArray[np.int64]


class Outcomes(NamedTuple):
    """A general sparse model: row ``s * A + a`` lists what action a may lead to in state s.

    Parameters
    ----------
    indptr : ndarray of int64, shape (S * A + 1,)
    indices : ndarray of int32, or of uint32, shape (nnz,)
    probabilities : ndarray of float, shape (nnz,)
    costs : ndarray of float, shape (S, A)
    mask : ndarray of bool, shape (S, A)
        Whether an action is available.
    terminal : ndarray of bool, shape (S,)
    num_rows : ndarray of int32, shape (S,)
        How many rows of each state there are up to its last available action, which are all that
        need to be read.
    """

    indptr: NDArray[np.int64]
    indices: StateNumbers
    probabilities: NDArray[np.float64]
    costs: NDArray[np.float64]
    mask: NDArray[np.bool_]
    terminal: NDArray[np.bool_]
    num_rows: NDArray[np.int32]


Tables = Moves | Outcomes
_Layout = TypeVar("_Layout", Moves, Outcomes, Moves | Outcomes)


def moves_of(model: MoveMDP, costs: NDArray[np.float64] | None = None) -> Moves:
    """Return the tables of a model of moves.

    Parameters
    ----------
    model : MoveMDP
    costs : ndarray of float, shape (S, M), optional
        In the place of its own.
    """
    costs = model.move_costs if costs is None else costs
    return Moves(readonly(model.successors), readonly(costs), *model.slip_weights)


def outcomes_of(model: TabularMDP, costs: NDArray[np.float64] | None = None) -> Outcomes:
    """Return the tables of a general sparse model.

    Parameters
    ----------
    model : TabularMDP
    costs : ndarray of float, shape (S, A), optional
        In the place of its own.
    """
    tables = _outcomes.get(model)
    if tables is None:
        matrix = model.transitions
        num_rows = np.empty(model.num_states, dtype=np.int32)
        count_rows(readonly(model.action_mask), num_rows)
        tables = Outcomes(
            readonly(matrix.indptr.astype(np.int64, copy=False)),
            readonly(matrix.indices.astype(np.int32, copy=False)),
            readonly(matrix.data),
            readonly(model.costs),
            readonly(model.action_mask),
            readonly(model.terminal),
            readonly(num_rows),
        )
        _outcomes[model] = tables
    return tables if costs is None else tables._replace(costs=readonly(costs))


# Those of models that are in use: one solve asks for them several times.
_outcomes: weakref.WeakKeyDictionary[TabularMDP, Outcomes] = weakref.WeakKeyDictionary()


@njit(cache=True, nogil=True)
def count_rows(mask, num_rows):
    """Write how many rows of each state there are up to its last available action, shape (S,)."""
    num_states, num_actions = mask.shape
    for s in range(num_states):
        count = num_actions
        while count > 0 and not mask[s, count - 1]:
            count -= 1
        num_rows[s] = count


def unsigned(tables: _Layout) -> _Layout:
    """Return tables with unsigned numbers of states: kernels then do not ask for the sign."""
    if isinstance(tables, Moves):
        return tables._replace(successors=readonly(tables.successors.view(np.uint32)))
    return tables._replace(indices=readonly(tables.indices.view(np.uint32)))


@njit(cache=True, inline="always")
def apart(indices, probabilities, V, s, start, end):
    """Return the part of the mean value over a row of s that other states have, and its loops."""
    elsewhere, stay = 0.0, 0.0
    for entry in range(start, end):
        following = indices[entry]
        if following == s:
            stay += probabilities[entry]
        else:
            elsewhere += probabilities[entry] * V[following]
    return elsewhere, stay


@njit(cache=True, inline="always")
def row_mean(indices, probabilities, V, labels, start, end):
    """Return the mean value over the outcomes from ``start`` to ``end``, both np.uint64."""
    total = 0.0
    entry = start
    if end - start >= _LONG:
        one = two = three = 0.0
        while entry + _THREE < end:
            total += probabilities[entry] * value_of(V, labels, indices[entry])
            one += probabilities[entry + ONE] * value_of(V, labels, indices[entry + ONE])
            two += probabilities[entry + _TWO] * value_of(V, labels, indices[entry + _TWO])
            three += probabilities[entry + _THREE] * value_of(V, labels, indices[entry + _THREE])
            entry += _FOUR
        total = (total + one) + (two + three)
    while entry < end:
        total += probabilities[entry] * value_of(V, labels, indices[entry])
        entry += ONE
    return total


@njit(cache=True, inline="always")
def num_available(costs, s):
    """Return the number of available moves in a state."""
    n = 0
    for m in range(costs.shape[1]):
        n += 1 if costs[s, m] < np.inf else 0
    return n


@njit(cache=True, inline="always")
def weight(chosen, every, n, m, action):
    """Return the probability that move m happens where ``action`` is chosen among n moves."""
    # As one sum, every[n] + (chosen[n] if ... else 0), this makes kernels four times slower.
    slip = every[n]
    return slip + chosen[n] if m == action else slip
