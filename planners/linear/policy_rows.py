"""The rows of one policy, packed for many sweeps over them.

A sweep by a policy needs one row of the model's table in A, and what a row holds is scattered among
rows that it does not need.  Here the discounted rows ``gamma P_pi`` of the policy stand by
themselves, `LANES` states side by side: entry j of state ``LANES * i + l`` is at
``offsets[i] + LANES * j + l``, and rows shorter than the longest of their slice are padded with
zeros.  The sums of the states of a slice do not wait for each other, and there is no branch on the
length of a row, so a sweep takes a tenth to a twentieth of the time of a full one.

Rows are kept in single precision where the discount allows it: they serve corrections, whose
errors the next full sweep sees and certifies.  Vectors that go with them are padded to whole
slices and scaled by their user, so that single precision neither overflows nor loses small costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planners.engine import LocalEngine
from planners.kernels.pieces import ONE, prefetch_once
from planners.kernels.tables import MANY_ENTRIES, Moves, num_available, unsigned, weight
from planners.kernels.threads import num_blocks, over_blocks

#: States in a slice.
LANES = 8

#: Packed vectors and rows: float32 or float64.
Packed = NDArray[Any]

# How many entries a kernel goes over before it comes back, and how many ahead rows are read that
# are too large for the caches.
_MOST_WORK, _AHEAD = 1 << 21, np.uint64(512)
# What an entry counts for where work is shared out: sweeps follow each other so closely that
# threads need not be woken up, and less work is worth sharing than elsewhere.
_ENTRY_WORK = 3
_LANES = np.uint64(LANES)
# Numbers that processors multiply by one instruction where they lie side by side.
_VECTOR = 4
_1, _2, _3, _4, _5, _6, _7 = (np.uint64(lane) for lane in range(1, LANES))


class Range(NamedTuple):
    """Extremes of a vector."""

    low: float
    high: float

    @property
    def span(self) -> float:
        """Difference of the two."""
        return self.high - self.low

    @property
    def size(self) -> float:
        """Sup norm."""
        return max(-self.low, self.high)


class _Slices(NamedTuple):
    """Packed rows.

    Parameters
    ----------
    offsets : ndarray of int64, shape (num_slices + 1,)
        Where each slice begins.
    columns : ndarray of uint32, shape (room,)
    values : ndarray of float32 or float64, shape (room,)
    policy : ndarray of int32, shape (S,)
        The action whose row is packed; -1 for none.
    factors : ndarray of float32 or float64, shape (S,)
        What each row is multiplied by where loops are solved for.
    """

    offsets: NDArray[np.int64]
    columns: NDArray[np.uint32]
    values: Packed
    policy: NDArray[np.int32]
    factors: Packed


class PackedPolicy:
    """``gamma P_pi`` for a policy that changes little by little.

    Parameters
    ----------
    engine : LocalEngine
        Of either layout.
    dtype : type
        float32 or float64.
    solve_loops : bool
        Whether what a state's row leads back to itself is solved for: row s is then divided by
        ``1 - gamma P_pi(s, s)``, as is what comes in through `scaled`.
    """

    def __init__(self, engine: LocalEngine, dtype: Any, *, solve_loops: bool) -> None:
        self._num_states = engine.num_states
        self._num_threads = engine.num_threads
        self._checkpoint = engine.checkpoint
        self._gamma = engine.gamma
        self._solve_loops = solve_loops
        self._tables = unsigned(engine.tables)
        is_moves = isinstance(engine.tables, Moves)
        self._widths: Callable[..., int] = _move_widths if is_moves else _outcome_widths
        self._pack: Callable[..., bool] = _pack_moves if is_moves else _pack_outcomes
        num_slices = -(-self._num_states // LANES)
        self.dtype = dtype
        self.padded_size = num_slices * LANES
        self.num_entries = 0
        self._slices = _Slices(
            np.zeros(num_slices + 1, dtype=np.int64),
            np.empty(0, dtype=np.uint32),
            np.empty(0, dtype=dtype),
            np.full(self._num_states, -1, dtype=np.int32),
            np.ones(self._num_states, dtype=dtype),
        )

    def load(self, policy: NDArray[np.int32]) -> None:
        """Pack the rows of a policy, shape (S,); only those that changed since the last one."""
        if self.num_entries and self._fill(policy):
            return
        self.num_entries = int(self._widths(self._tables, policy, self._slices.offsets))
        if self.num_entries > len(self._slices.values):
            # A little more than needed, so that it seldom grows again.
            room = self.num_entries + self.num_entries // 16
            self._slices = self._slices._replace(
                columns=np.empty(room, dtype=np.uint32), values=np.empty(room, dtype=self.dtype)
            )
        self._slices.policy.fill(-1)
        fits = self._fill(policy)
        assert fits

    def vector(self) -> Packed:
        """Return a new vector of zeros that goes with the rows, shape (padded_size,)."""
        return np.zeros(self.padded_size, dtype=self.dtype)

    def scaled(
        self, V: NDArray[np.float64], W: NDArray[np.float64], factor: float, out: Packed
    ) -> None:
        """Write ``factor (W - V)`` into ``out``, divided as the rows are.

        Parameters
        ----------
        V, W : ndarray of float, shape (S,)
        factor : float
        out : ndarray, shape (padded_size,)
        """
        _scaled(V, W, factor, self._slices.factors if self._solve_loops else None, out)

    def sweep(self, start: Packed, vector: Packed, out: Packed) -> Range:
        """Write ``start + gamma P_pi vector`` into ``out``; return the extremes of out - vector.

        Parameters
        ----------
        start, vector, out : ndarray, shape (padded_size,)

        Returns
        -------
        Range
            Over the states, without the padding.
        """
        self._checkpoint()
        slices = self._slices
        arguments = (slices.offsets, slices.columns, slices.values, self._num_states)
        ranges = self._over_slices(lambda lo, hi: _sweep(*arguments, start, vector, out, lo, hi))
        low, high = zip(*ranges, strict=True)
        return Range(float(min(low)), float(max(high)))

    def sweeps(
        self, start: Packed, vectors: tuple[Packed, Packed], most: int, goal: float, *, spans: bool
    ) -> tuple[Range, tuple[Packed, Packed], int]:
        """Sweep again and again, until the last change is small.

        Parameters
        ----------
        start : ndarray, shape (padded_size,)
        vectors : pair of ndarray, shape (padded_size,)
            The vector to begin with, and room for the next one.
        most : int
            Number of sweeps, at least 1.
        goal : float
            End where the size of the last change, or its span, is no larger.
        spans : bool
            Whether it is the span that counts.

        Returns
        -------
        change : Range
            Of the last sweep.
        vectors : pair of ndarray
            What it made, and what it made that of.
        num_sweeps : int
        """
        done = 0
        change = Range(-np.inf, np.inf)
        if num_blocks(self._num_slices, self._num_threads, self._work) > 1:
            while done < most and not _small(change, goal, spans):
                change = self.sweep(start, *vectors)
                vectors = vectors[::-1]
                done += 1
            return change, vectors, done
        slices = self._slices
        at_once = max(1, _MOST_WORK // max(1, self.num_entries))
        while done < most and not _small(change, goal, spans):
            self._checkpoint()
            low, high, count = _sweeps(
                slices.offsets,
                slices.columns,
                slices.values,
                self._num_states,
                start,
                *vectors,
                min(at_once, most - done),
                goal,
                spans,
            )
            change = Range(low, high)
            if count % 2:
                vectors = vectors[::-1]
            done += count
        return change, vectors, done

    def solve(self, start: Packed, out: Packed, *, spans: bool) -> int:
        """Write the solution of ``d = start + gamma P_pi d`` into ``out``, by elimination.

        For few states: the work grows with their third power, and the room with their square.
        Where rounding leaves no solution, ``out`` stays as it is.

        Parameters
        ----------
        start, out : ndarray, shape (padded_size,)
        spans : bool
            Whether a constant is left out, so that the least and the largest entry are as large.

        Returns
        -------
        num_sweeps : int
            As many as would take as many operations.
        """
        slices, num_states = self._slices, self._num_states
        matrix = np.zeros((num_states, num_states + 1))
        if _solve(slices.offsets, slices.columns, slices.values, start, matrix):
            solution = matrix[:, -1]
            if spans:
                solution -= (solution.min() + solution.max()) / 2
            out[:num_states] = solution
        return num_states**3 // (3 * _VECTOR * self.num_entries)

    def _fill(self, policy: NDArray[np.int32]) -> bool:
        arguments = (self._tables, self._gamma, policy, self._solve_loops, self._slices)
        filled = self._over_slices(lambda lo, hi: self._pack(*arguments, lo, hi))
        return all(filled)

    def _over_slices(self, kernel: Callable[[int, int], Any]) -> list[Any]:
        return over_blocks(kernel, self._num_slices, self._num_threads, self._work)

    @property
    def _num_slices(self) -> int:
        return len(self._slices.offsets) - 1

    @property
    def _work(self) -> int:
        """What going over all entries counts for."""
        return _ENTRY_WORK * self.num_entries


def add_scaled(vector: Packed, scale: float, constant: float, V: NDArray[np.float64]) -> Range:
    """Add ``scale vector + constant`` to V; return the extremes of what is added.

    Parameters
    ----------
    vector : ndarray, shape (S,)
    scale, constant : float
    V : ndarray of float, shape (S,)
    """
    return Range(*_add_scaled(vector, scale, constant, V))


def _small(change: Range, goal: float, spans: bool) -> bool:
    return (change.span if spans else change.size) <= goal


# ---------------------------------------------------------------------------------------------
# Packing.  A state whose action is the one that is packed already is left alone.


@njit(cache=True, nogil=True)
def _outcome_widths(outcomes, policy, offsets):
    """Write where each slice begins if its rows are as long as its longest; return the end."""
    indptr = outcomes.indptr
    num_states, num_actions = outcomes.costs.shape
    for i in range(len(offsets) - 1):
        width = 1
        for s in range(i * LANES, min(num_states, (i + 1) * LANES)):
            row = s * num_actions + policy[s]
            length = indptr[row + 1] - indptr[row]
            width = length if length > width else width
        offsets[i + 1] = offsets[i] + width * LANES
    return offsets[-1]


@njit(cache=True, nogil=True)
def _move_widths(moves, policy, offsets):
    """Write where each slice begins; with slip, a row lists all available moves."""
    costs = moves.costs
    num_states = len(policy)
    slips = moves.every.max() > 0.0
    for i in range(len(offsets) - 1):
        width = 1
        if slips:
            for s in range(i * LANES, min(num_states, (i + 1) * LANES)):
                n = num_available(costs, s)
                width = n if n > width else width
        offsets[i + 1] = offsets[i] + width * LANES
    return offsets[-1]


@njit(cache=True, inline="always")
def _clear_lanes(offsets, columns, values, num_states):
    """Clear the lanes of the last slice that belong to no state."""
    i = len(offsets) - 2
    for lane in range(num_states - i * LANES, LANES):
        for position in range(offsets[i] + lane, offsets[i + 1], LANES):
            columns[position] = 0
            values[position] = 0.0


@njit(cache=True, nogil=True)
def _pack_outcomes(outcomes, gamma, policy, solve_loops, slices, lo, hi):
    """Pack the rows that changed in the slices lo to hi; return whether they all fit."""
    indptr, indices, probabilities = outcomes.indptr, outcomes.indices, outcomes.probabilities
    terminal = outcomes.terminal
    offsets, columns, values = slices.offsets, slices.columns, slices.values
    packed, factors = slices.policy, slices.factors
    num_states, num_actions = np.uint64(len(packed)), np.uint64(outcomes.costs.shape[1])
    for s in range(np.uint64(lo) * _LANES, min(num_states, np.uint64(hi) * _LANES)):
        if policy[s] == packed[s]:
            continue
        i = s // _LANES
        row = s * num_actions + np.uint64(policy[s])
        begin, end = np.uint64(indptr[row]), np.uint64(indptr[row + ONE])
        if terminal[s]:
            end = begin
        position, limit = np.uint64(offsets[i]) + s % _LANES, np.uint64(offsets[i + ONE])
        if position + (end - begin) * _LANES >= limit + _LANES:
            return False
        factor = 1.0
        if solve_loops:
            stays = 0.0
            for entry in range(begin, end):
                stays += probabilities[entry] if indices[entry] == s else 0.0
            factor = 1.0 / (1.0 - gamma * stays)
            factors[s] = factor
        factor *= gamma
        for entry in range(begin, end):
            following = indices[entry]
            loop = solve_loops and following == s
            columns[position] = following
            values[position] = 0.0 if loop else factor * probabilities[entry]
            position += _LANES
        while position < limit:
            columns[position] = 0
            values[position] = 0.0
            position += _LANES
        packed[s] = policy[s]
    if hi == len(offsets) - 1:
        _clear_lanes(offsets, columns, values, len(packed))
    return True


@njit(cache=True, nogil=True)
def _pack_moves(moves, gamma, policy, solve_loops, slices, lo, hi):
    """Pack the rows that changed in the slices lo to hi; they all fit."""
    successors, costs, chosen, every = moves
    offsets, columns, values = slices.offsets, slices.columns, slices.values
    packed, factors = slices.policy, slices.factors
    num_states, num_moves = successors.shape
    for s in range(lo * LANES, min(num_states, hi * LANES)):
        a = policy[s]
        if a == packed[s]:
            continue
        i = s // LANES
        n = num_available(costs, s)
        factor = 1.0
        if solve_loops and n > 0:
            stays = 0
            for m in range(num_moves):
                stays += (costs[s, m] < np.inf) & (successors[s, m] == s)
            share = every[n] * stays + (chosen[n] if successors[s, a] == s else 0.0)
            factor = 1.0 / (1.0 - gamma * share)
            factors[s] = factor
        position = offsets[i] + s - i * LANES
        for m in range(num_moves):
            probability = weight(chosen, every, n, m, a)
            if not costs[s, m] < np.inf or probability == 0.0:
                continue
            loop = solve_loops and successors[s, m] == s
            columns[position] = successors[s, m]
            values[position] = 0.0 if loop else factor * gamma * probability
            position += LANES
        while position < offsets[i + 1]:
            columns[position] = 0
            values[position] = 0.0
            position += LANES
        packed[s] = a
    if hi == len(offsets) - 1:
        _clear_lanes(offsets, columns, values, num_states)
    return True


@njit(cache=True, nogil=True)
def _scaled(V, W, factor, factors, out):
    """Write ``factor (W - V)``, times the factors unless they are None."""
    for s in range(len(V)):
        # Scaled before it is rounded to single precision, whose range is small.
        out[s] = (W[s] - V[s]) * factor
        if factors is not None:
            out[s] *= factors[s]


@njit(cache=True, nogil=True)
def _add_scaled(vector, scale, constant, V):
    """Add ``scale vector + constant`` to V; return the extremes of what is added, NaN if any is."""
    low, high = np.inf, -np.inf
    is_number = True
    for s in range(len(V)):
        change = np.float64(vector[s]) * scale + constant
        V[s] += change
        is_number = is_number and change == change
        low = change if change < low else low
        high = change if change > high else high
    return (low, high) if is_number else (np.nan, np.nan)


@njit(cache=True, nogil=True)
def _sweep(offsets, columns, values, num_states, start, vector, out, lo, hi):
    """Write ``start + rows * vector`` in the slices lo to hi; return extremes of out - vector.

    Sums are not to be reordered: compilers would then fetch what ``vector`` holds by gather
    instructions, which take two to three times as long.
    """
    is_large = len(values) >= MANY_ENTRIES
    low = start.dtype.type(np.inf)
    high = -low
    s = np.uint64(lo) * _LANES
    k = np.uint64(offsets[lo])
    for i in range(lo, hi):
        end = np.uint64(offsets[i + 1])
        # One accumulator a lane, spelled out: kept in an array they would stay in memory.
        sum0, sum1, sum2, sum3 = start[s], start[s + _1], start[s + _2], start[s + _3]
        sum4, sum5, sum6, sum7 = start[s + _4], start[s + _5], start[s + _6], start[s + _7]
        while k < end:
            if is_large:
                prefetch_once(columns, k + _AHEAD)
                prefetch_once(values, k + _AHEAD)
            sum0 += values[k] * vector[columns[k]]
            sum1 += values[k + _1] * vector[columns[k + _1]]
            sum2 += values[k + _2] * vector[columns[k + _2]]
            sum3 += values[k + _3] * vector[columns[k + _3]]
            sum4 += values[k + _4] * vector[columns[k + _4]]
            sum5 += values[k + _5] * vector[columns[k + _5]]
            sum6 += values[k + _6] * vector[columns[k + _6]]
            sum7 += values[k + _7] * vector[columns[k + _7]]
            k += _LANES
        out[s], out[s + _1], out[s + _2], out[s + _3] = sum0, sum1, sum2, sum3
        out[s + _4], out[s + _5], out[s + _6], out[s + _7] = sum4, sum5, sum6, sum7
        last = min(s + _LANES, np.uint64(num_states))
        while s < last:
            change = out[s] - vector[s]
            low = change if change < low else low
            high = change if change > high else high
            s += ONE
    return low, high


@njit(cache=True, nogil=True)
def _sweeps(offsets, columns, values, num_states, start, vector, out, most, goal, spans):
    """Sweep by all rows until the last change is small; return its extremes and how many sweeps.

    The vectors change places: ``out`` has the newest one after an odd number of sweeps.
    """
    num_slices = len(offsets) - 1
    low, high = np.inf, -np.inf
    count = 0
    while count < most:
        count += 1
        first, last = _sweep(
            offsets, columns, values, num_states, start, vector, out, 0, num_slices
        )
        low, high = float(first), float(last)
        size = high - low if spans else max(-low, high)
        if size <= goal:
            break
        vector, out = out, vector
    return low, high, count


@njit(cache=True, nogil=True)
def _solve(offsets, columns, values, start, matrix):
    """Write the solution of ``d = start + rows d`` into the last column of a matrix of zeros.

    Elimination without looking for pivots: each row of ``I - rows`` has more on the diagonal than
    beside it.  Return whether that was so in floating point, and the solution is finite.
    """
    num_states = len(matrix)
    for s in range(num_states):
        i = s // LANES
        row = matrix[s]
        row[s] = 1.0
        row[num_states] = start[s]
        for k in range(offsets[i] + s % LANES, offsets[i + 1], LANES):
            row[columns[k]] -= values[k]
    for k in range(num_states):
        if not matrix[k, k] > 0.0:
            return False
        pivots = matrix[k, k + 1 :]
        for s in range(k + 1, num_states):
            if matrix[s, k] != 0.0:
                factor = matrix[s, k] / matrix[k, k]
                rest = matrix[s, k + 1 :]
                for j in range(len(rest)):
                    rest[j] -= factor * pivots[j]
    for s in range(num_states - 1, -1, -1):
        total = matrix[s, num_states]
        for j in range(s + 1, num_states):
            total -= matrix[s, j] * matrix[j, num_states]
        matrix[s, num_states] = total / matrix[s, s]
        if not np.isfinite(matrix[s, num_states]):
            return False
    return True
