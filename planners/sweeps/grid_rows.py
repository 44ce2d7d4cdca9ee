"""Gauss-Seidel along the rows of a plane grid, over-relaxed, with rows retraced while in cache.

A sweep in place takes values along with it, but where moves slip, some of what a state depends on
lies ahead, still old.  Two things make up for that:

- A row is swept both ways, and the rows before it again, back and forth, before the sweep goes on.
- What a sweep does to one state it is about to do to the state ahead of it.  The slip ahead, of
  weight ``gamma b``, is therefore taken to change by as much as the state itself does; solved for
  the state, this lengthens its change by the factor ``1 / (1 - gamma b)``.

The serial chain of a pass is short: of the new value v of the cell before, the new value is
``min(A + a v, C + c v)``.  It still leaves most of a core idle, so the grid is cut in two bands of
rows, which are swept at the same time, in opposite directions: inwards or outwards.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planners.engine import LocalEngine
from planners.kernels.moves import gauss_seidel
from planners.kernels.pieces import IN_ORDER
from planners.kernels.tables import Moves

# The moves of a regular cell are numbered as `aggmaze.grid` does: to the previous row, the next
# row, the column before and the column after; 0 to 3.


class _Grid(NamedTuple):
    """The rows of a grid as kernels take them.

    Parameters
    ----------
    regular : ndarray of bool, shape (rows,)
        Whether all inner cells of an inner row have the four moves to their neighbours.
    num_columns : int
    retraced : int
        How many rows before each are swept again.
    """

    regular: NDArray[np.bool_]
    num_columns: int
    retraced: int


class RowSweeps:
    """Sweeps of one model along the rows of its grid.

    Parameters
    ----------
    engine : LocalEngine
        Of a `MoveMDP`.
    shape : tuple of int
        Rows and columns: state ``row * columns + column``.
    retraced : int
        How many rows before each are swept again.
    """

    def __init__(self, engine: LocalEngine, shape: tuple[int, int], retraced: int) -> None:
        moves = engine.tables
        assert isinstance(moves, Moves)
        self._moves, self._gamma = moves, engine.gamma
        # No row has more before it.
        retraced = min(retraced, shape[0])
        self._grid = _Grid(np.zeros(shape[0], dtype=np.bool_), shape[1], retraced)
        self._relaxation = 1.0
        self._count = 0
        # With p < 1/4 the largest value is the one to choose: left to the general backup.
        if len(moves.chosen) == 5 and moves.chosen[4] >= 0.0 and min(shape) > 2:
            _find_regular(moves, self._grid)
            self._relaxation = 1.0 / (1.0 - self._gamma * moves.every[4])
        self._scratch = np.empty((2, 4, shape[1]))

    @property
    def share(self) -> float:
        """Share of the inner rows whose inner cells all have the four moves to their neighbours."""
        regular = self._grid.regular
        return float(regular.sum()) / max(1, len(regular) - 2)

    def sweep(self, V: NDArray[np.float64], *, relaxed: bool = True) -> int:
        """Sweep V in place, the bands towards each other or apart in turn.

        Without relaxation this is a contraction.  Returns how often states were backed up.
        """
        num_rows = len(self._grid.regular)
        # Where bands meet values mix slowly, so they meet elsewhere each time.
        split = num_rows // 2 + min(16, num_rows // 4) * (self._count // 2 % 3 - 1)
        inward = self._count % 2 == 0
        self._count += 1
        relaxation = self._relaxation if relaxed else 1.0
        _sweep_bands(
            self._moves, self._gamma, relaxation, V, self._grid, split, inward, self._scratch
        )
        # But for the first rows, which have fewer before them.
        return 2 * (2 * self._grid.retraced + 1)


@njit(cache=True, nogil=True)
def _find_regular(moves, grid):
    """Write which rows are regular."""
    successors, costs = moves.successors, moves.costs
    regular, num_columns = grid.regular, grid.num_columns
    for row in range(1, len(regular) - 1):
        found = True
        for s in range(row * num_columns + 1, (row + 1) * num_columns - 1):
            for m in range(4):
                found = found and costs[s, m] < np.inf
            found = (
                found
                and successors[s, 0] == s - num_columns
                and successors[s, 1] == s + num_columns
                and successors[s, 2] == s - 1
                and successors[s, 3] == s + 1
            )
            if not found:
                break
        regular[row] = found


@njit(cache=True, inline="always")
def _back_up(moves, gamma, V, s):
    """Back up a state of any kind in place."""
    gauss_seidel(moves, gamma, V, IN_ORDER, False, s, s + 1)


@njit(cache=True, inline="always")
def _prepare(moves, weights, V, first, num_columns, notes):
    """Note what both ways along a regular row share, by column and already weighted.

    The best move out of the row; all slips but for the values within the row; the costs of the
    moves to the column before and after.
    """
    gamma, chosen, slip, _ = weights
    costs = moves.costs[first : first + num_columns]
    behind = V[first - num_columns : first]
    beyond = V[first + num_columns : first + 2 * num_columns]
    best, slips, before, after = notes[0], notes[1], notes[2], notes[3]
    for column in range(1, num_columns - 1):
        previous = costs[column, 0] + gamma * behind[column]
        following = costs[column, 1] + gamma * beyond[column]
        back, on = costs[column, 2], costs[column, 3]
        best[column] = chosen * (previous if previous < following else following)
        slips[column] = slip * (previous + following + back + on)
        before[column] = chosen * back
        after[column] = chosen * on


@njit(cache=True, inline="always")
def _relaxed(weights, notes, column, back, ahead, old, v):
    """Return the relaxed backup of a regular cell.

    Here v is the new value of the cell before, whose costs are in ``notes[back]``; ``ahead`` is
    the old value of the cell after, and ``old`` the cell's own.
    """
    gamma, chosen, slip, kept = weights
    best = notes[0, column]
    onward = notes[5 - back, column] + chosen * gamma * ahead
    best = best if best < onward else onward
    rest = notes[1, column] + slip * gamma * ahead - kept * old
    elsewhere = (best + rest) + slip * gamma * v
    backward = (notes[back, column] + rest) + (chosen + slip) * gamma * v
    return elsewhere if elsewhere < backward else backward


@njit(cache=True, inline="always")
def _sweep_row(moves, weights, V, grid, row, scratch):
    """Sweep one row there and back."""
    gamma, num_columns = weights[0], grid.num_columns
    first = row * num_columns
    last = first + num_columns - 1
    if not grid.regular[row]:
        gauss_seidel(moves, gamma, V, IN_ORDER, False, first, last + 1)
        gauss_seidel(moves, gamma, V, IN_ORDER, True, len(V) - 1 - last, len(V) - first)
        return
    _prepare(moves, weights, V, first, num_columns, scratch)
    _back_up(moves, gamma, V, first)
    v = V[first]
    line = V[first : first + num_columns]
    for column in range(1, num_columns - 1):
        v = _relaxed(weights, scratch, column, 2, line[column + 1], line[column], v)
        line[column] = v
    _back_up(moves, gamma, V, last)
    v = V[last]
    for column in range(num_columns - 2, 0, -1):
        v = _relaxed(weights, scratch, column, 3, line[column - 1], line[column], v)
        line[column] = v
    _back_up(moves, gamma, V, first)


@njit(cache=True, inline="always")
def _sweep_two_rows(moves, weights, V, num_columns, row, other_row, scratch):
    """Sweep two regular rows there and back at the same time."""
    gamma = weights[0]
    one, two = scratch[0], scratch[1]
    first, other = row * num_columns, other_row * num_columns
    width = num_columns - 1
    _prepare(moves, weights, V, first, num_columns, one)
    _prepare(moves, weights, V, other, num_columns, two)
    _back_up(moves, gamma, V, first)
    _back_up(moves, gamma, V, other)
    here, there = V[first : first + num_columns], V[other : other + num_columns]
    v, w = V[first], V[other]
    for column in range(1, width):
        v = _relaxed(weights, one, column, 2, here[column + 1], here[column], v)
        w = _relaxed(weights, two, column, 2, there[column + 1], there[column], w)
        here[column] = v
        there[column] = w
    _back_up(moves, gamma, V, first + width)
    _back_up(moves, gamma, V, other + width)
    v, w = V[first + width], V[other + width]
    for column in range(width - 1, 0, -1):
        v = _relaxed(weights, one, column, 3, here[column - 1], here[column], v)
        w = _relaxed(weights, two, column, 3, there[column - 1], there[column], w)
        here[column] = v
        there[column] = w
    _back_up(moves, gamma, V, first)
    _back_up(moves, gamma, V, other)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})
def _sweep_bands(moves, gamma, relaxation, V, grid, split, inward, scratch):
    """Sweep the two bands, rows before ``split`` and from there on."""
    chosen, every, regular, retraced = moves.chosen, moves.every, grid.regular, grid.retraced
    weights = (gamma, 0.0, 0.0, 0.0)
    if len(chosen) > 4:
        weights = (gamma, relaxation * chosen[4], relaxation * every[4], relaxation - 1.0)
    num_rows = len(regular)
    for i in range(max(split, num_rows - split)):
        for k in range(2 * retraced + 1):
            j = i - (k if k <= retraced else 2 * retraced - k)
            if j < 0:
                continue
            row = j if inward else split - 1 - j
            other = num_rows - 1 - j if inward else split + j
            here, there = j < split, j < num_rows - split
            if here and there and regular[row] and regular[other]:
                _sweep_two_rows(moves, weights, V, grid.num_columns, row, other, scratch)
                continue
            if here:
                _sweep_row(moves, weights, V, grid, row, scratch[0])
            if there:
                _sweep_row(moves, weights, V, grid, other, scratch[0])
