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

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planners.engine import Engine
from planners.kernels.moves import gauss_seidel
from planners.kernels.pieces import IN_ORDER

# The moves of a regular cell are numbered as `aggmaze.grid` does: to the previous row, the next
# row, the column before and the column after; 0 to 3.


class RowSweeps:
    """Sweeps of one model along the rows of its grid.

    Parameters
    ----------
    engine : Engine
        Of a `MoveMDP`.
    shape : tuple of int
        Rows and columns: state ``row * columns + column``.
    retraced : int
        How many rows before each are swept again.
    """

    def __init__(self, engine: Engine, shape: tuple[int, int], retraced: int) -> None:
        successors, move_costs, chosen, every = engine.tables
        self._num_columns = shape[1]
        self._tables, self._gamma = engine.tables, engine.gamma
        # No row has more before it.
        self._retraced = min(retraced, shape[0])
        self._regular = np.zeros(shape[0], dtype=np.bool_)
        self._relaxation = 1.0
        self._count = 0
        # With p < 1/4 the largest value is the one to choose: left to the general backup.
        if len(chosen) == 5 and chosen[4] >= 0.0 and min(shape) > 2:
            _find_regular(successors, move_costs, self._num_columns, self._regular)
            self._relaxation = 1.0 / (1.0 - self._gamma * every[4])
        self._scratch = np.empty((2, 4, shape[1]))

    @property
    def share(self) -> float:
        """Share of the inner rows whose inner cells all have the four moves to their neighbours."""
        return float(self._regular.sum()) / max(1, len(self._regular) - 2)

    def sweep(self, V: NDArray[np.float64], *, relaxed: bool = True) -> int:
        """Sweep V in place, the bands towards each other or apart in turn.

        Without relaxation this is a contraction.  Returns how often states were backed up.
        """
        num_rows = len(self._regular)
        # Where bands meet values mix slowly, so they meet elsewhere each time.
        split = num_rows // 2 + min(16, num_rows // 4) * (self._count // 2 % 3 - 1)
        inward = self._count % 2 == 0
        self._count += 1
        successors, move_costs, chosen, every = self._tables
        _sweep_bands(
            successors,
            move_costs,
            chosen,
            every,
            self._gamma,
            self._relaxation if relaxed else 1.0,
            V,
            self._regular,
            self._num_columns,
            split,
            inward,
            self._retraced,
            self._scratch,
        )
        # But for the first rows, which have fewer before them.
        return 2 * (2 * self._retraced + 1)


@njit(cache=True, nogil=True)
def _find_regular(successors, move_costs, num_columns, regular):  # type: ignore[no-untyped-def]
    for row in range(1, len(regular) - 1):
        found = True
        for s in range(row * num_columns + 1, (row + 1) * num_columns - 1):
            for m in range(4):
                found = found and move_costs[s, m] < np.inf
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
def _back_up(successors, move_costs, chosen, every, gamma, V, s):  # type: ignore[no-untyped-def]
    """Back up a state of any kind in place."""
    gauss_seidel(successors, move_costs, chosen, every, gamma, V, IN_ORDER, False, s, s + 1)


@njit(cache=True, inline="always")
def _prepare(move_costs, weights, V, first, num_columns, notes):  # type: ignore[no-untyped-def]
    """Note what both ways along a regular row share, by column and already weighted.

    The best move out of the row; all slips but for the values within the row; the costs of the
    moves to the column before and after.
    """
    gamma, chosen, slip, _ = weights
    costs = move_costs[first : first + num_columns]
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
def _relaxed(weights, notes, column, back, ahead, old, v):  # type: ignore[no-untyped-def]
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
def _sweep_row(tables, gamma, weights, V, regular, row, num_columns, scratch):  # type: ignore[no-untyped-def]
    """Sweep one row there and back."""
    successors, move_costs, chosen, every = tables
    first = row * num_columns
    last = first + num_columns - 1
    if not regular[row]:
        for s in range(first, last + 1):
            _back_up(successors, move_costs, chosen, every, gamma, V, s)
        for s in range(last, first - 1, -1):
            _back_up(successors, move_costs, chosen, every, gamma, V, s)
        return
    _prepare(move_costs, weights, V, first, num_columns, scratch)
    _back_up(successors, move_costs, chosen, every, gamma, V, first)
    v = V[first]
    line = V[first : first + num_columns]
    for column in range(1, num_columns - 1):
        v = _relaxed(weights, scratch, column, 2, line[column + 1], line[column], v)
        line[column] = v
    _back_up(successors, move_costs, chosen, every, gamma, V, last)
    v = V[last]
    for column in range(num_columns - 2, 0, -1):
        v = _relaxed(weights, scratch, column, 3, line[column - 1], line[column], v)
        line[column] = v
    _back_up(successors, move_costs, chosen, every, gamma, V, first)


@njit(cache=True, inline="always")
def _sweep_two_rows(tables, gamma, weights, V, row, other_row, num_columns, scratch):  # type: ignore[no-untyped-def]
    """Sweep two regular rows there and back at the same time."""
    successors, move_costs, chosen, every = tables
    one, two = scratch[0], scratch[1]
    first, other = row * num_columns, other_row * num_columns
    width = num_columns - 1
    _prepare(move_costs, weights, V, first, num_columns, one)
    _prepare(move_costs, weights, V, other, num_columns, two)
    _back_up(successors, move_costs, chosen, every, gamma, V, first)
    _back_up(successors, move_costs, chosen, every, gamma, V, other)
    here, there = V[first : first + num_columns], V[other : other + num_columns]
    v, w = V[first], V[other]
    for column in range(1, width):
        v = _relaxed(weights, one, column, 2, here[column + 1], here[column], v)
        w = _relaxed(weights, two, column, 2, there[column + 1], there[column], w)
        here[column] = v
        there[column] = w
    _back_up(successors, move_costs, chosen, every, gamma, V, first + width)
    _back_up(successors, move_costs, chosen, every, gamma, V, other + width)
    v, w = V[first + width], V[other + width]
    for column in range(width - 1, 0, -1):
        v = _relaxed(weights, one, column, 3, here[column - 1], here[column], v)
        w = _relaxed(weights, two, column, 3, there[column - 1], there[column], w)
        here[column] = v
        there[column] = w
    _back_up(successors, move_costs, chosen, every, gamma, V, first)
    _back_up(successors, move_costs, chosen, every, gamma, V, other)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})
def _sweep_bands(  # type: ignore[no-untyped-def]
    successors,
    move_costs,
    chosen,
    every,
    gamma,
    relaxation,
    V,
    regular,
    num_columns,
    split,
    inward,
    retraced,
    scratch,
):
    """Sweep the two bands, rows before ``split`` and from there on."""
    tables = (successors, move_costs, chosen, every)
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
                _sweep_two_rows(tables, gamma, weights, V, row, other, num_columns, scratch)
                continue
            if here:
                _sweep_row(tables, gamma, weights, V, regular, row, num_columns, scratch[0])
            if there:
                _sweep_row(tables, gamma, weights, V, regular, other, num_columns, scratch[0])
