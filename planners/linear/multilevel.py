"""Elimination in many levels, of an M-matrix, exact but for small entries that are moved.

A level eliminates states of which none leads to another but with small probability: what is left
is again a chain, that of the visits to the other states.  About half of the states go, so that
there are as many levels as the number of states has binary digits.  A row that gets more than
`_MOST_ENTRIES` loses those below the last of them; they are taken off its diagonal too, so that
each level keeps the row sums of the matrix, and what is constant is solved for exactly, however
near to singular that makes the matrix.  Where no row gets that long (chains on a line, trees,
stars), nothing is moved and the elimination is exact.  Where states have so many neighbours that
hardly any can be eliminated, the rest is divided by its diagonal alone: such chains mix fast, and
what is constant is left to the Krylov method.

Matrices are kept as `linear.policy_matrix` does, so that no number is ever subtracted, and each
entry has nearly all of its digits.

Source: Notay, "A robust algebraic multilevel preconditioner for non-symmetric M-matrices",
Numerical Linear Algebra with Applications 7 (2000), for elimination by levels that keeps row sums;
Grassmann, Taksar, Heyman (1985) for elimination without subtractions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planners.linear.policy_matrix import PolicyMatrix

# A state is not eliminated with one that it leads to with more than this part of its largest entry.
_WEAK = 0.1
# Most entries of a row that is left, and the number of states from which on all are kept.
_MOST_ENTRIES, _FEW_STATES = 8, 64
# A state is not eliminated that would join so many pairs of states.
_MOST_PAIRS = 100
# Levels that eliminate less than this part of the states are the last.
_LEAST_PART = 0.05

_TINY = float(np.finfo(np.float64).tiny)


class _Chain(NamedTuple):
    """What `PolicyMatrix` has, of the states that are left."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int32]
    entries: NDArray[np.float64]
    slack: NDArray[np.float64]


class _Levels(NamedTuple):
    """All levels, one after another.

    The states of a level are listed with those first that it eliminates; each kind is numbered from
    0 on.

    Parameters
    ----------
    table : ndarray of int64, shape (num_levels + 1, 6)
        A row a level, and one for what is left of the last, which is diagonal: how many states it
        eliminates and leaves; where its list begins; and in vectors of work where those stand that
        it eliminates, all of its own, and those that it leaves.
    states : ndarray of int32
        The list of each level.
    starts : ndarray of int64
        Where the entries of each state of a list begin; one more a level, so that the list of level
        i begins here at i more.
    columns : ndarray of int32
        Of an eliminated state, among those left; of another, among those eliminated.
    entries : ndarray of float
        Of an eliminated state, divided by its diagonal.
    inverses : ndarray of float
        1 / the diagonal of eliminated states, and of what is left of the last.
    """

    table: NDArray[np.int64]
    states: NDArray[np.int32]
    starts: NDArray[np.int64]
    columns: NDArray[np.int32]
    entries: NDArray[np.float64]
    inverses: NDArray[np.float64]


class MultilevelElimination:
    """Approximate inverse of an M-matrix, exact where `num_moved` is 0.

    Parameters
    ----------
    matrix : PolicyMatrix
    checkpoint : callable
        Called between levels; may raise.
    """

    def __init__(self, matrix: PolicyMatrix, checkpoint: Callable[[], None]) -> None:
        #: Entries that were moved to the diagonal, or left out at the end.
        self.num_moved = 0
        mean_length = len(matrix.entries) // max(1, len(matrix.slack))
        most_entries = max(_MOST_ENTRIES, mean_length)
        most_pairs = max(_MOST_PAIRS, 2 * mean_length**2)
        sizes: list[tuple[int, int]] = []
        parts: list[tuple[NDArray[Any], ...]] = []
        left = _Chain(matrix.starts, matrix.columns, matrix.entries, matrix.slack)
        num_states = len(left.slack)
        while num_states > 0:
            few = num_states <= _FEW_STATES
            weak, pairs, entries = _WEAK, most_pairs, most_entries
            if few:
                weak, pairs, entries = 0.0, num_states**2, num_states
            states, places = (np.empty(num_states, dtype=np.int32) for _ in range(2))
            checkpoint()
            num_gone = int(_split(left, weak, pairs, states, places))
            if num_gone < _LEAST_PART * num_states and not few:
                break
            checkpoint()
            *level, num_moved = _factors(left, num_gone, states, places)
            self.num_moved += int(num_moved)
            sizes.append((num_gone, num_states - num_gone))
            parts.append((states, *level))
            checkpoint()
            *rows, num_moved = _left(left, states[num_gone:], places, level[-1], entries)
            self.num_moved += int(num_moved)
            left, num_states = _Chain(*rows), num_states - num_gone
        # What is left, if anything, counts as diagonal.
        self.num_moved += len(left.entries)
        sizes.append((0, num_states))
        none = (np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0))
        parts.append((*none, _inverses(left)))
        self._levels = _together(sizes, parts)
        self._work = np.empty(sum(gone + left for gone, left in sizes))

    @property
    def num_entries(self) -> int:
        """Entries and diagonals that an application goes over."""
        return len(self._levels.entries) + 2 * len(self._levels.states)

    def apply(self, right: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Write what the inverse makes of a vector into ``out``.

        Parameters
        ----------
        right, out : ndarray of float, shape (S,)
        """
        _substitute(self._levels, right, self._work, out)


def _together(sizes: list[tuple[int, int]], parts: list[tuple[NDArray[Any], ...]]) -> _Levels:
    """Put levels of so many states eliminated and left into arrays, one after another."""
    table = np.zeros((len(sizes), 6), dtype=np.int64)
    first = gone = num_entries = here = 0
    left = sum(num_gone for num_gone, _ in sizes)
    starts = []
    for level, (num_gone, num_left) in enumerate(sizes):
        table[level] = num_gone, num_left, first, gone, here, left
        starts.append(parts[level][1] + num_entries)
        first += num_gone + num_left
        num_entries += len(parts[level][2])
        gone += num_gone
        # The first level reads and writes the vectors of whoever asks.
        here, left = left, left + num_left
    states, _, columns, entries, inverses = (np.concatenate(c) for c in zip(*parts, strict=True))
    return _Levels(table, states, np.concatenate(starts), columns, entries, inverses)


@njit(cache=True, nogil=True)
def _split(matrix, weak, most_pairs, states, places):
    """List the states to eliminate, then the others; return how many are eliminated.

    ``places`` says where a state stands among those left, or is -1 minus its place among the
    eliminated.
    """
    starts, columns, entries, _ = matrix
    num_states = len(places)
    entered = np.zeros(num_states, dtype=np.int32)
    for place in range(starts[num_states]):
        entered[columns[place]] += 1
    # 0: free, 1: eliminated, 2: left
    kinds = np.zeros(num_states, dtype=np.int8)
    num_gone = 0
    for s in range(num_states):
        if kinds[s] != 0:
            continue
        largest = 0.0
        for place in range(starts[s], starts[s + 1]):
            largest = entries[place] if entries[place] > largest else largest
        limit = weak * largest
        goes = (starts[s + 1] - starts[s]) * entered[s] <= most_pairs
        if goes:
            for place in range(starts[s], starts[s + 1]):
                if kinds[columns[place]] == 1 and entries[place] > limit:
                    goes = False
                    break
        kinds[s] = 1 if goes else 2
        if goes:
            num_gone += 1
            for place in range(starts[s], starts[s + 1]):
                if entries[place] > limit and kinds[columns[place]] == 0:
                    kinds[columns[place]] = 2
    gone = 0
    for s in range(num_states):
        goes = kinds[s] == 1
        place = gone if goes else num_gone + s - gone
        states[place] = s
        places[s] = -1 - gone if goes else s - gone
        gone += goes
    return num_gone


@njit(cache=True, nogil=True)
def _factors(matrix, num_gone, states, places):
    """Return starts, columns, entries and inverses of a level, and how many entries were moved."""
    starts, columns, entries, slack = matrix
    num_states = len(states)
    level_starts = np.zeros(num_states + 1, dtype=np.int64)
    level_columns = np.empty(starts[num_states], dtype=np.int32)
    level_entries = np.empty(starts[num_states])
    inverses = np.empty(num_gone)
    count = 0
    num_moved = 0
    for i in range(num_gone):
        s = states[i]
        first = count
        total = slack[s]
        for place in range(starts[s], starts[s + 1]):
            t = places[columns[place]]
            if t < 0:
                num_moved += 1
                continue
            level_columns[count] = t
            level_entries[count] = entries[place]
            total += entries[place]
            count += 1
        inverses[i] = 1.0 / max(total, _TINY)
        for k in range(first, count):
            level_entries[k] *= inverses[i]
        level_starts[i + 1] = count
    for i in range(num_gone, num_states):
        s = states[i]
        for place in range(starts[s], starts[s + 1]):
            t = places[columns[place]]
            if t < 0:
                level_columns[count] = -1 - t
                level_entries[count] = entries[place]
                count += 1
        level_starts[i + 1] = count
    level_columns, level_entries = level_columns[:count].copy(), level_entries[:count].copy()
    return level_starts, level_columns, level_entries, inverses, num_moved


@njit(cache=True, nogil=True)
def _left(matrix, states, places, inverses, most_entries):
    """Return the chain of the states that are left, and how many entries were moved."""
    starts, columns, entries, slack = matrix
    num_left = len(states)
    new_starts = np.zeros(num_left + 1, dtype=np.int64)
    new_slack = np.empty(num_left)
    room = starts[-1] + 16
    new_columns, new_entries = np.empty(room, dtype=np.int32), np.empty(room)
    # A row, and where each column stands in it: at ``where - base`` if that is not negative.
    row_columns, row_entries = np.empty(num_left, dtype=np.int32), np.empty(num_left)
    where = np.full(num_left, -1, dtype=np.int64)
    largest = np.empty(most_entries)
    base = 0
    count = 0
    num_moved = 0
    for row in range(num_left):
        s = states[row]
        length = 0
        lost = slack[s]
        for place in range(starts[s], starts[s + 1]):
            j = columns[place]
            first, last, share = place, place + 1, 1.0
            if places[j] < 0:
                # In its place, what it leads to.
                first, last = starts[j], starts[j + 1]
                share = entries[place] * inverses[-1 - places[j]]
                lost += share * slack[j]
            for k in range(first, last):
                t = places[columns[k]]
                # Back to where it came from is no way on.
                if t < 0 or t == row:
                    continue
                if where[t] < base:
                    where[t] = base + length
                    row_columns[length] = t
                    row_entries[length] = 0.0
                    length += 1
                row_entries[where[t] - base] += share * entries[k]
        base += length
        new_slack[row] = lost
        if count + length > room:
            room = 2 * room + length
            new_columns, new_entries = _longer(new_columns, room), _longer(new_entries, room)
        limit = _least_kept(row_entries, length, largest)
        for k in range(length):
            if row_entries[k] >= limit:
                new_columns[count] = row_columns[k]
                new_entries[count] = row_entries[k]
                count += 1
            else:
                num_moved += 1
        new_starts[row + 1] = count
    new_columns, new_entries = new_columns[:count].copy(), new_entries[:count].copy()
    return new_starts, new_columns, new_entries, new_slack, num_moved


@njit(cache=True, nogil=True)
def _longer(array, room):
    longer = np.empty(room, dtype=array.dtype)
    longer[: len(array)] = array
    return longer


@njit(cache=True, inline="always")
def _least_kept(entries, length, largest):
    """Return the least entry to keep of the first ``length``: as many as ``largest`` has room."""
    most = len(largest)
    if length <= most:
        return 0.0
    kept = 0
    for k in range(length):
        value = entries[k]
        if kept == most and value <= largest[most - 1]:
            continue
        place = kept if kept < most else most - 1
        while place > 0 and largest[place - 1] < value:
            largest[place] = largest[place - 1]
            place -= 1
        largest[place] = value
        kept = min(kept + 1, most)
    return largest[most - 1]


@njit(cache=True, nogil=True)
def _inverses(matrix):
    """Return the inverses of the diagonal."""
    starts, _, entries, slack = matrix
    inverses = np.empty(len(slack))
    for s in range(len(slack)):
        total = slack[s]
        for place in range(starts[s], starts[s + 1]):
            total += entries[place]
        inverses[s] = 1.0 / max(total, _TINY)
    return inverses


@njit(cache=True, nogil=True)
def _substitute(levels, right, work, out):
    """Write what the levels make of ``right`` into ``out``."""
    table, states, starts, columns, entries, inverses = levels
    num_levels = len(table) - 1
    if num_levels == 0:
        for s in range(len(right)):
            out[s] = right[s] * inverses[s]
        return
    source = right
    for level in range(num_levels):
        num_gone, num_left, first, gone, here, left = table[level]
        for i in range(num_gone):
            work[gone + i] = source[here + states[first + i]] * inverses[gone + i]
        first += num_gone
        for i in range(num_left):
            total = source[here + states[first + i]]
            row = first + level + i
            for k in range(starts[row], starts[row + 1]):
                total += entries[k] * work[gone + columns[k]]
            work[left + i] = total
        source = work
    _, num_left, _, gone, here, _ = table[num_levels]
    for i in range(num_left):
        work[here + i] *= inverses[gone + i]
    for level in range(num_levels - 1, -1, -1):
        num_gone, num_left, first, gone, here, left = table[level]
        target = out if level == 0 else work
        for i in range(num_gone):
            total = work[gone + i]
            row = first + level + i
            for k in range(starts[row], starts[row + 1]):
                total += entries[k] * work[left + columns[k]]
            target[here + states[first + i]] = total
        first += num_gone
        for i in range(num_left):
            target[here + states[first + i]] = work[left + i]
