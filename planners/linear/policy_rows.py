"""The rows of one policy, packed for many sweeps over them.

A sweep by a policy needs one row of the model's table in A, and what a row holds is scattered among
rows that it does not need.  Here the discounted rows ``gamma P_pi`` of the policy stand by
themselves, `LANES` states side by side: entry j of state ``LANES * i + l`` is at
``offsets[i] + LANES * j + l``, and rows shorter than the longest of their slice are padded with
zeros.  The sums of the states of a slice do not wait for each other, and there is no branch on the
length of a row, so a sweep takes about a tenth of the time of a full one.

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
from planners.kernels.tables import Moves, num_available, unsigned, weight
from planners.kernels.threads import over_blocks

#: States in a slice.
LANES = 8

#: Packed vectors and rows: float32 or float64.
Packed = NDArray[Any]

# Reordered sums and fused products: for corrections only, which need no known rounding.
_FAST = {"nnan", "ninf", "nsz", "reassoc", "contract", "arcp"}


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
        values = out[: self._num_states]
        # Scaled before it is rounded to single precision, whose range is small.
        np.multiply(W - V, factor, out=values, casting="same_kind")
        if self._solve_loops:
            values *= self._slices.factors

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
        ranges = self._over_slices(
            lambda lo, hi: _sweep(slices, start, vector, out, lo, hi), self.num_entries
        )
        low, high = zip(*ranges, strict=True)
        return Range(float(min(low)), float(max(high)))

    def _fill(self, policy: NDArray[np.int32]) -> bool:
        arguments = (self._tables, self._gamma, policy, self._solve_loops, self._slices)
        filled = self._over_slices(lambda lo, hi: self._pack(*arguments, lo, hi), self.num_entries)
        return all(filled)

    def _over_slices(self, kernel: Callable[[int, int], Any], work: int) -> list[Any]:
        return over_blocks(kernel, len(self._slices.offsets) - 1, self._num_threads, work)


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
def _put(slices, position, column, value):
    """Write an entry of a lane; return where the next one goes."""
    slices.columns[position] = column
    slices.values[position] = value
    return position + LANES


@njit(cache=True, inline="always")
def _clear_lane(slices, position, end):
    """Clear the entries of a lane from a position on."""
    while position < end:
        position = _put(slices, position, 0, 0.0)


@njit(cache=True, inline="always")
def _clear_lanes(slices, num_states):
    """Clear the lanes of the last slice that belong to no state."""
    i = len(slices.offsets) - 2
    for lane in range(num_states - i * LANES, LANES):
        _clear_lane(slices, slices.offsets[i] + lane, slices.offsets[i + 1])


@njit(cache=True, nogil=True)
def _pack_outcomes(outcomes, gamma, policy, solve_loops, slices, lo, hi):
    """Pack the rows that changed in the slices lo to hi; return whether they all fit."""
    indptr, indices, probabilities = outcomes.indptr, outcomes.indices, outcomes.probabilities
    terminal = outcomes.terminal
    offsets, packed, factors = slices.offsets, slices.policy, slices.factors
    num_states, num_actions = outcomes.costs.shape
    for s in range(lo * LANES, min(num_states, hi * LANES)):
        if policy[s] == packed[s]:
            continue
        i = s // LANES
        row = s * num_actions + policy[s]
        begin, end = indptr[row], indptr[row + 1]
        if terminal[s]:
            end = begin
        position = offsets[i] + s - i * LANES
        if position + (end - begin - 1) * LANES >= offsets[i + 1]:
            return False
        factor = 1.0
        if solve_loops:
            stays = 0.0
            for entry in range(begin, end):
                stays += probabilities[entry] if indices[entry] == s else 0.0
            factor = 1.0 / (1.0 - gamma * stays)
            factors[s] = factor
        for entry in range(begin, end):
            loop = solve_loops and indices[entry] == s
            value = 0.0 if loop else factor * gamma * probabilities[entry]
            position = _put(slices, position, indices[entry], value)
        _clear_lane(slices, position, offsets[i + 1])
        packed[s] = policy[s]
    if hi == len(slices.offsets) - 1:
        _clear_lanes(slices, num_states)
    return True


@njit(cache=True, nogil=True)
def _pack_moves(moves, gamma, policy, solve_loops, slices, lo, hi):
    """Pack the rows that changed in the slices lo to hi; they all fit."""
    successors, costs, chosen, every = moves
    offsets, packed, factors = slices.offsets, slices.policy, slices.factors
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
            value = 0.0 if loop else factor * gamma * probability
            position = _put(slices, position, successors[s, m], value)
        _clear_lane(slices, position, offsets[i + 1])
        packed[s] = a
    if hi == len(slices.offsets) - 1:
        _clear_lanes(slices, num_states)
    return True


@njit(cache=True, nogil=True, fastmath=_FAST)
def _sweep(slices, start, vector, out, lo, hi):
    """Write ``start + rows * vector`` in the slices lo to hi; return extremes of out - vector."""
    offsets, columns, values = slices.offsets, slices.columns, slices.values
    num_states = len(slices.policy)
    low = start.dtype.type(np.inf)
    high = -low
    for i in range(lo, hi):
        s = i * LANES
        # One accumulator a lane, spelled out: kept in an array they would stay in memory.
        sum0, sum1, sum2, sum3 = start[s], start[s + 1], start[s + 2], start[s + 3]
        sum4, sum5, sum6, sum7 = start[s + 4], start[s + 5], start[s + 6], start[s + 7]
        for k in range(offsets[i], offsets[i + 1], LANES):
            sum0 += values[k] * vector[columns[k]]
            sum1 += values[k + 1] * vector[columns[k + 1]]
            sum2 += values[k + 2] * vector[columns[k + 2]]
            sum3 += values[k + 3] * vector[columns[k + 3]]
            sum4 += values[k + 4] * vector[columns[k + 4]]
            sum5 += values[k + 5] * vector[columns[k + 5]]
            sum6 += values[k + 6] * vector[columns[k + 6]]
            sum7 += values[k + 7] * vector[columns[k + 7]]
        out[s], out[s + 1], out[s + 2], out[s + 3] = sum0, sum1, sum2, sum3
        out[s + 4], out[s + 5], out[s + 6], out[s + 7] = sum4, sum5, sum6, sum7
        if s + LANES <= num_states:
            for lane in range(LANES):
                change = out[s + lane] - vector[s + lane]
                low = change if change < low else low
                high = change if change > high else high
        else:
            for t in range(s, num_states):
                change = out[t] - vector[t]
                low = change if change < low else low
                high = change if change > high else high
    return low, high
