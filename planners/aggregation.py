"""Value-based aggregation (Algorithm 2), representatives, and back to states.

With ``b1 = min V`` and ``b2 = max V``, mega-state ``i = 1, 2, ...`` holds the states with
``V(s)`` in ``[b1 + (i-1) epsilon, b1 + i epsilon)`` and starts at the midpoint
``W(i) = b1 + (i - 1/2) epsilon``; empty ones are dropped, order is kept.

Two cases the paper leaves open: where ``(b2 - b1) / epsilon`` is an integer the maximum falls in no
bin, and joins the last one; where V is constant there would be no bin, and there is one.

Where several processes share the states (`planners.engine`), each finds the bins of its own, and
what is counted and drawn is put together: mega-states, sizes and representatives are the same in
all of them, and the same as in one process that holds all states.

No process makes room for what all of them have: counts are added up from one process to the next,
and none of them counts over more bins than some for each state that it holds.

All is done in one pass over V: it finds the bin of each state and counts the members of each bin
in each block of states.  Empty bins keep their numbers (`Aggregation.codes`), so that no second
pass has to close the gaps, and a member of a given rank is found by reading one block.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from aggmaze.arrays import readonly
from aggmaze.checks import check_positive
from planners.engine import WHOLE, Parts
from planners.kernels.threads import over_blocks

# States in a block.  As many bins are counted by block at most, so that the counts are no more than
# the states.
_BLOCK = 2048
# Reading the block of each draw costs more than sorting the states once, from so many draws for
# each state that a block holds.
_READS_PER_STATE = 16
# Draws that are made at once: of each state, and at least.
_DRAWS_PER_STATE = 8
_LEAST_DRAWS = 1 << 16
# States compared at once in the search for a member.
_CHUNK = 64
# Bins that are counted over: of each state of a process, and at least.  Where there are more, the
# values are sorted.
_BINS_PER_STATE, _LEAST_BINS = 4, 1024
#: Mega-states that codes of 32 bits can tell apart.
MOST_MEGASTATES = 2**31 - 1


class _Shares(NamedTuple):
    """Which members of each mega-state this process holds, where others hold states too."""

    parts: Parts
    first_state: int
    before: NDArray[np.int64]  # members in the processes before, shape (K,)
    own: NDArray[np.int64]  # members here, shape (K,)


@dataclass(frozen=True, eq=False)
class Aggregation:
    """A partition of the states into K mega-states.

    Parameters
    ----------
    codes : ndarray of int32, shape (S,)
        What stands for the mega-state of each state: indices into tables of ``num_codes`` entries.
    kept : ndarray of int64, shape (K,)
        Code of each mega-state, increasing; other codes are no state's.
    num_codes : int
    sizes : ndarray of int64, shape (K,)
        Number of states in each mega-state, of all processes, at least 1.
    midpoints : ndarray of float, shape (K,)
        Middle of the bin of values, increasing.
    """

    codes: NDArray[np.int32]
    kept: NDArray[np.int64]
    num_codes: int
    sizes: NDArray[np.int64]
    midpoints: NDArray[np.float64]
    # Members of each code up to the end of each block, shape (blocks, num_codes); none for many
    # codes.
    _counts: NDArray[np.int32] | None = field(default=None, repr=False)
    _shares: _Shares | None = field(default=None, repr=False)

    @property
    def num_megastates(self) -> int:
        """Number of mega-states K."""
        return len(self.sizes)

    @functools.cached_property
    def labels(self) -> NDArray[np.int32]:
        """Mega-state of each state, from 0 to K - 1, shape (S,)."""
        if self.num_megastates == self.num_codes:
            return self.codes
        label_of_code = np.zeros(self.num_codes, dtype=np.int32)
        label_of_code[self.kept] = np.arange(self.num_megastates, dtype=np.int32)
        return label_of_code[self.codes]

    def expand(
        self, table: NDArray[np.float64], out: NDArray[np.float64], num_threads: int = 1
    ) -> None:
        """Write ``table[codes]`` into ``out``.

        Parameters
        ----------
        table : ndarray of float, shape (num_codes,)
        out : ndarray of float, shape (S,)
        num_threads : int
        """
        over_blocks(
            lambda lo, hi: _expand(table, self.codes, out, lo, hi), len(out), num_threads, len(out)
        )


def aggregate_by_value(
    V: NDArray[np.float64],
    epsilon: float,
    *,
    extremes: tuple[float, float] | None = None,
    out: NDArray[np.int32] | None = None,
    num_threads: int = 1,
    parts: Parts = WHOLE,
) -> Aggregation:
    """Partition the states by value: Algorithm 2.

    Parameters
    ----------
    V : ndarray of float, shape (S,)
        Costs-to-go, finite.
    epsilon : float
        Width of a bin, positive, in the unit of V.
    extremes : tuple of float, optional
        ``min V`` and ``max V``, where they are known: looking for them costs a pass over V.
    out : ndarray of int32, shape (S,), optional
        Where to put the codes; a new array by default.
    num_threads : int
        Threads to use where V is long enough; the result is the same on any number.
    parts : Parts
        The processes that share the states, each with its part of V.

    Raises
    ------
    ValueError
        If a value or epsilon is not finite, or epsilon is not positive or so small that bins of
        that width cannot be told apart in the range of V.
    OverflowError
        If there are more mega-states than 32 bits can number.
    """
    check_positive("epsilon", epsilon)
    V = np.ascontiguousarray(V, dtype=np.float64)
    if V.ndim != 1 or len(V) == 0:
        raise ValueError(f"V must have shape (S,), not empty, got {V.shape}")
    if extremes is None:
        ends = parts.gathered(np.array([V.min(), V.max()]))
        extremes = float(ends.min()), float(ends.max())
    low, high = extremes
    before, total = parts.added_up(np.array([len(V)], dtype=np.int64))
    first_state, num_states = int(before[0]), int(total[0])
    if not (math.isfinite(low) and math.isfinite(high)):
        bad = np.flatnonzero(~np.isfinite(V))[:1]
        states, values = parts.gathered(first_state + bad), parts.gathered(V[bad])
        raise ValueError(f"V[{states[0]}] = {values[0]} must be finite")
    width = (high - low) / epsilon
    if not width < 2.0**53:
        raise ValueError(
            f"epsilon = {epsilon!r} is too small for values from {low} to {high}: at least "
            f"{1.1 * (high - low) / 2.0**53:.1e} tells their bins apart"
        )
    num_bins = max(1, math.ceil(width))
    codes = np.empty(len(V), dtype=np.int32) if out is None else out
    counts: NDArray[np.int32] | None = None
    most_bins = _BINS_PER_STATE * (num_states // parts.size) + _LEAST_BINS
    if num_bins <= min(most_bins, MOST_MEGASTATES):
        counts = _count(readonly(V), low, float(epsilon), num_bins, codes, num_threads)
        own, num_codes = counts[-1].astype(np.int64), num_bins
        before, totals = parts.added_up(own)
        kept = np.flatnonzero(totals)
        bins = kept.astype(np.float64)
    else:
        # Far more bins than states: sort the states instead of counting over bins.
        index = np.minimum(np.floor((V - low) / epsilon), num_bins - 1)
        found, labels, members = np.unique(index, return_inverse=True, return_counts=True)
        bins = parts.union(found)
        num_codes = len(bins)
        _check_megastates(num_codes, epsilon)
        places = np.searchsorted(bins, found)
        codes[:] = places[labels]
        own = np.zeros(num_codes, dtype=np.int64)
        own[places] = members
        before, totals = parts.added_up(own)
        kept = np.arange(num_codes)
    shares = None if parts.size == 1 else _Shares(parts, first_state, before[kept], own[kept])
    midpoints = np.asarray(low + (bins + 0.5) * epsilon, dtype=np.float64)
    return Aggregation(codes, kept, num_codes, totals[kept], midpoints, counts, shares)


def aggregation_of_codes(
    codes: NDArray[np.int32],
    num_codes: int,
    midpoints: NDArray[np.float64],
    *,
    num_threads: int = 1,
    parts: Parts = WHOLE,
) -> Aggregation:
    """Return the partition that codes tell, to go on with one that was kept.

    Parameters
    ----------
    codes : ndarray of int32, shape (S,)
        Those of an `Aggregation`, which may have been cut into other parts.
    num_codes : int
    midpoints : ndarray of float, shape (K,)
    num_threads : int
    parts : Parts
        The processes that share the states.
    """
    # Bins of width 1 from 0 on hold one code each.
    found = aggregate_by_value(
        codes.astype(np.float64),
        1.0,
        extremes=(0.0, float(num_codes)),
        out=codes,
        num_threads=num_threads,
        parts=parts,
    )
    return replace(found, midpoints=midpoints)


def representatives(
    aggregation: Aggregation, rng: np.random.Generator, num_draws: int
) -> Iterator[NDArray[np.int64]]:
    """Yield states drawn uniformly, one from each mega-state, again and again.

    What is drawn does not depend on how many draws are made at once: no more than keep the memory
    that they take in proportion to the states, however many are wanted.

    Parameters
    ----------
    aggregation : Aggregation
    rng : Generator
    num_draws : int
        How often.

    Yields
    ------
    ndarray of int64, shape (K,)
    """
    # In every process as many, also where one holds a state more than another.
    num_parts = 1 if aggregation._shares is None else aggregation._shares.parts.size
    num_held = int(aggregation.sizes.sum()) // num_parts
    at_once = max(1, max(_DRAWS_PER_STATE * num_held, _LEAST_DRAWS) // aggregation.num_megastates)
    while num_draws > 0:
        count = min(num_draws, at_once)
        uniforms = rng.random((count, aggregation.num_megastates))
        yield from draw_representatives(aggregation, uniforms)
        num_draws -= count


def draw_representatives(
    aggregation: Aggregation, uniforms: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Pick states uniformly from each mega-state.

    Parameters
    ----------
    aggregation : Aggregation
    uniforms : ndarray of float, shape (N, K)
        N draws for each mega-state, in [0, 1).

    Returns
    -------
    ndarray of int64, shape (N, K)
        Draw ``i`` of mega-state ``j`` is its member number ``floor(uniforms[i, j] * size)``, in
        the order of the states.
    """
    sizes, shares = aggregation.sizes, aggregation._shares
    ranks = np.minimum((uniforms * sizes).astype(np.int64), sizes - 1)
    if shares is None:
        return _find(aggregation, aggregation.kept, sizes, ranks)
    ranks -= shares.before
    here = (ranks >= 0) & (ranks < shares.own)
    kept = np.broadcast_to(aggregation.kept, ranks.shape)[here]
    states = np.zeros_like(ranks)
    found = _find(aggregation, kept, shares.own, ranks[here][np.newaxis])
    states[here] = shares.first_state + found[0]
    # Those of others are 0 here.
    return shares.parts.added_up(states.reshape(-1))[1].reshape(states.shape)


def _find(
    aggregation: Aggregation,
    kept: NDArray[np.int64],
    sizes: NDArray[np.int64],
    ranks: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the states of the part by code and rank, shape (N, J), for J codes.

    ``sizes`` counts what the part has of each mega-state, shape (K,).
    """
    codes, counts = aggregation.codes, aggregation._counts
    reads = ranks.size * min(_BLOCK, len(codes))
    by_block = counts is not None and len(counts) == _num_blocks(len(codes))
    if by_block and reads <= _READS_PER_STATE * len(codes):
        return _members(codes, counts, kept, ranks)
    totals = np.zeros(aggregation.num_codes, dtype=np.int64)
    totals[aggregation.kept] = sizes
    first = np.cumsum(totals) - totals
    wanted = first[kept] + ranks
    return _sorted(codes, first)[wanted].astype(np.int64)


def _check_megastates(count: int, epsilon: float) -> None:
    """Refuse more mega-states than codes can number."""
    if count > MOST_MEGASTATES:
        raise OverflowError(
            f"epsilon = {epsilon!r} makes {count:,} mega-states, more than the "
            f"{MOST_MEGASTATES:,} that can be numbered: take a larger one"
        )


def _num_blocks(num_states: int) -> int:
    return -(-num_states // _BLOCK)


def _count(
    V: NDArray[np.float64],
    low: float,
    epsilon: float,
    num_bins: int,
    codes: NDArray[np.int32],
    num_threads: int,
) -> NDArray[np.int32]:
    """Write the bin of each state into ``codes``; return the counts up to each block's end.

    One row for all blocks where there are more bins than states in a block.
    """
    num_blocks = _num_blocks(len(V))
    if num_bins > _BLOCK:
        counts = np.zeros((1, num_bins), dtype=np.int32)
        _bins(V, low, epsilon, codes, counts, 0, num_blocks)
        return counts
    counts = np.zeros((num_blocks, num_bins), dtype=np.int32)
    over_blocks(
        lambda lo, hi: _bins(V, low, epsilon, codes, counts, lo, hi),
        num_blocks,
        num_threads,
        len(V),
    )
    _add_up(counts)
    return counts


@njit(cache=True, inline="always")
def _bin(value, low, epsilon, last):
    # Clipped as a float: a value that is no number must not become an index out of range.
    position = (value - low) / epsilon
    position = position if position < last else last
    return np.int32(position if position > 0.0 else 0.0)


@njit(cache=True, nogil=True)
def _bins(V, low, epsilon, codes, counts, lo, hi):
    """Find the bin of each state in the blocks from lo to hi, and count them.

    Block b is counted in row b of ``counts``, shape (blocks, num_bins), or the only one.
    """
    num_rows, num_bins = counts.shape
    last = num_bins - 1.0
    full = min(hi, len(V) // _BLOCK)
    b = lo
    # Neighbours often share a bin, and adding to one count must wait for the last addition to it:
    # four blocks in step have four counts, which take a third of the time.
    while b + 4 <= full:
        values = V[b * _BLOCK : (b + 4) * _BLOCK]
        found = codes[b * _BLOCK : (b + 4) * _BLOCK]
        for i in range(4 * _BLOCK):  # apart from the counting, so that it is vectorised
            found[i] = _bin(values[i], low, epsilon, last)
        row0 = counts[min(b, num_rows - 1)]
        row1 = counts[min(b + 1, num_rows - 1)]
        row2 = counts[min(b + 2, num_rows - 1)]
        row3 = counts[min(b + 3, num_rows - 1)]
        # Unsigned: no code is negative, which numba would check.
        for i in range(_BLOCK):
            row0[np.uint32(found[i])] += 1
            row1[np.uint32(found[i + _BLOCK])] += 1
            row2[np.uint32(found[i + 2 * _BLOCK])] += 1
            row3[np.uint32(found[i + 3 * _BLOCK])] += 1
        b += 4
    for s in range(b * _BLOCK, min(hi * _BLOCK, len(V))):
        code = _bin(V[s], low, epsilon, last)
        codes[s] = code
        counts[min(s // _BLOCK, num_rows - 1), code] += 1


@njit(cache=True, nogil=True)
def _add_up(counts):
    # By rows: numpy goes by columns, which takes ten times as long.
    for b in range(1, counts.shape[0]):
        earlier, row = counts[b - 1], counts[b]
        for i in range(len(row)):
            row[i] += earlier[i]


@njit(cache=True, nogil=True)
def _members(codes, counts, kept, ranks):
    """Return the state of each rank, shape (N, K): by halving to the block, then within it."""
    num_draws, num_megastates = ranks.shape
    states = np.empty((num_draws, num_megastates), dtype=np.int64)
    for i in range(num_draws):
        for j in range(num_megastates):
            code, missing = np.int32(kept[j]), ranks[i, j]
            block, end = 0, counts.shape[0] - 1
            while block < end:
                middle = (block + end) // 2
                if counts[middle, code] <= missing:
                    block = middle + 1
                else:
                    end = middle
            if block > 0:
                missing -= counts[block - 1, code]
            s = block * _BLOCK
            while s + _CHUNK <= len(codes):
                chunk = codes[s : s + _CHUNK]
                found = np.int32(0)  # as wide as the codes, so that vectors hold as many
                for k in range(_CHUNK):
                    found = np.int32(found + np.int32(chunk[k] == code))
                if found > missing:
                    break
                missing -= found
                s += _CHUNK
            while codes[s] != code or missing > 0:
                missing -= 1 if codes[s] == code else 0
                s += 1
            states[i, j] = s
    return states


@njit(cache=True, nogil=True)
def _expand(table, codes, out, lo, hi):
    for s in range(lo, hi):
        out[s] = table[np.uint32(codes[s])]


@njit(cache=True, nogil=True)
def _sorted(codes, first):
    """Return the states by code, shape (S,); ``first`` counts those of lesser codes, used up."""
    order = np.empty(len(codes), dtype=np.int32)
    for s in range(len(codes)):
        order[first[codes[s]]] = s
        first[codes[s]] += 1
    return order
