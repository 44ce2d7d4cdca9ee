"""The exact value of a policy in a large sparse chain, by elimination that never subtracts.

    v = c + gamma P v

The states are eliminated in an order under which little fills in (`elimination_tree.analyse`).  As
in `linear.elimination`, ``A = I - gamma P`` is described by ``gamma P`` beside the diagonal and by
the sums of its rows, and pivots are sums of positive numbers: each number of the factors, and of
the solution where costs have one sign, has a small relative error at any gamma.  gamma = 1 will do
where every state reaches one whose row sums to less than 1.

``A = (I - L)(D - U)`` within each strong component, L and U being what is added up here.  A
supernode takes what earlier ones contribute to it, a dense product for each, and is then eliminated
by itself (left-looking).  All sums are made in an order that the pattern alone decides.  For the
solution the components are gone through from those that lead nowhere, and what others contribute is
read from P.

Source: Grassmann, Taksar, Heyman, "Regenerative analysis and steady state distributions for Markov
chains", Operations Research 33 (1985); Ng, Peyton, "Block sparse Cholesky algorithms on advanced
uniprocessor computers", SIAM Journal on Scientific Computing 14 (1993).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from aggmaze.arrays import readonly
from planners.linear.elimination import missing_probability
from planners.linear.elimination_tree import Analysis, block_operations
from planners.linear.rows import Rows

# Products between two looks at the clock.
_PRODUCTS_AT_ONCE = 1 << 28
# Positions of a tail that are updated together, so that what they read stays in the cache.
_TILE = 256
# Supernodes of so few positions take one line at a time.
_NARROW = 4

_FITS, _OUTSIDE, _NO_VALUE = range(3)


class PatternError(ValueError):
    """Rows lead where the order of elimination has made no room."""


class _Blocks(NamedTuple):
    """What kernels read of an `Analysis`."""

    components: NDArray[np.int32]
    order: NDArray[np.int32]
    positions: NDArray[np.int32]
    firsts: NDArray[np.int32]
    owners: NDArray[np.int32]
    tail_starts: NDArray[np.int64]
    tails: NDArray[np.int32]
    offsets: NDArray[np.int64]


class Factors:
    """The factors of ``I - gamma P`` for one policy after another.

    Parameters
    ----------
    analysis : Analysis
        Of the rows of one policy, or of the union of those of several.
    checkpoint : callable
        Called between the parts of the work; may raise.
    """

    def __init__(self, analysis: Analysis, checkpoint: Callable[[], object] = lambda: None) -> None:
        self._blocks = _Blocks(*(getattr(analysis, name) for name in _Blocks._fields))
        self._checkpoint = checkpoint
        self._reads_rows = analysis.num_components > 1
        self._values = np.empty(int(analysis.offsets[-1]))
        widths, sizes = np.diff(analysis.firsts), np.diff(analysis.tail_starts)
        self._largest = int(sizes.max(initial=0))
        products = np.cumsum(block_operations(widths.astype(np.int64), sizes))
        self._stops = _stops(products)
        self._rows: Rows | None = None
        self._gamma = 0.0

    def load(self, rows: Rows, gamma: float, slack: NDArray[np.float64] | None = None) -> bool:
        """Factor the equations of a policy.

        Parameters
        ----------
        rows : Rows
            P, S by S, with probabilities; the rows of terminal states are empty.
        gamma : float
            Discount in [0, 1].
        slack : ndarray of float, shape (S,), optional
            The sums of the rows of A, where they are known without subtractions; loops of states to
            themselves are then not read.  By default what rows of probabilities lack of 1 counts.

        Returns
        -------
        bool
            False where there may be no value: where a row sums to over 1/gamma, or at gamma = 1
            some states are never left.  Nothing can be solved then.

        Raises
        ------
        PatternError
            If the rows have entries that those analysed did not have, and that did not fill in.
        """
        self._rows = None
        blocks, values = self._blocks, self._values
        columns = rows.columns.astype(np.int32, copy=False)
        rows = Rows(readonly(rows.starts), readonly(columns), readonly(rows.entries))
        num_supernodes = len(blocks.firsts) - 1
        sums = np.empty(len(blocks.order))
        self._checkpoint()
        if slack is None:
            slack = np.empty(len(sums))
            _row_sums(rows, gamma, slack)
        outcome = _assemble(rows, gamma, readonly(slack), blocks, values, sums)
        if outcome == _OUTSIDE:
            raise PatternError("these rows do not fit the ones that were analysed")
        if outcome == _NO_VALUE:
            return False
        waiting = np.full(num_supernodes, -1, dtype=np.int32)
        following, done = np.zeros((2, num_supernodes), dtype=np.int32)
        places = np.empty(len(sums), dtype=np.int32)
        buffer = np.empty(_TILE)
        lo = 0
        for hi in self._stops:
            self._checkpoint()
            if not _factor(blocks, values, sums, waiting, following, done, places, buffer, lo, hi):
                return False
            lo = hi
        self._rows, self._gamma = rows, gamma
        return True

    def solve(self, costs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return v, of the shape of the costs.

        Parameters
        ----------
        costs : ndarray of float, shape (S,) or (S, k)
            0 in terminal states for values of 0 there.

        Returns
        -------
        ndarray of float

        Raises
        ------
        ValueError
            If no policy is loaded, or its equations have no solution.
        """
        if self._rows is None:
            raise ValueError("no policy is loaded")
        right = np.asarray(costs, dtype=np.float64)
        solution = np.empty(right.shape)
        values, work = np.empty((2, len(right)))
        buffer = np.empty(self._largest)
        for column in np.ndindex(right.shape[1:]):
            self._checkpoint()
            _solve(
                self._rows,
                self._gamma,
                self._reads_rows,
                self._blocks,
                self._values,
                np.ascontiguousarray(right[:, *column]),
                work,
                buffer,
                values,
            )
            solution[:, *column] = values
        return solution


def _stops(products: NDArray[np.int64]) -> list[int]:
    """Return the ends of parts of the supernodes, the sums of whose products are given."""
    if len(products) == 0:
        return []
    marks = np.arange(_PRODUCTS_AT_ONCE, int(products[-1]), _PRODUCTS_AT_ONCE)
    ends = np.unique(np.append(np.searchsorted(products, marks) + 1, len(products)))
    return [int(end) for end in ends]


@njit(cache=True, nogil=True)
def _place(tails, lo, hi, position):
    """Return where a position stands in a sorted tail, from 0 on, or -1."""
    begin, end = lo, hi
    while lo < hi:
        middle = (lo + hi) >> 1
        if tails[middle] < position:
            lo = middle + 1
        else:
            hi = middle
    return lo - begin if lo < end and tails[lo] == position else -1


@njit(cache=True, nogil=True)
def _row_sums(rows, gamma, slack):
    """Write the sums of the rows of A."""
    starts, _, entries = rows
    for s in range(len(slack)):
        missing = missing_probability(entries, starts[s], starts[s + 1])
        slack[s] = (1.0 - gamma) + gamma * missing


@njit(cache=True, nogil=True)
def _assemble(rows, gamma, slack, blocks, values, sums):
    """Write ``gamma P`` within components, and the sums of the rows of A within them."""
    starts, columns, entries = rows
    components, order, positions, firsts, owners, tail_starts, tails, offsets = blocks
    values[:] = 0.0
    for node in range(len(firsts) - 1):
        first = np.int64(firsts[node])
        end = np.int64(firsts[node + 1])
        tail = tail_starts[node]
        tail_end = tail_starts[node + 1]
        stride = end - first + tail_end - tail
        upper = offsets[node]
        for i in range(first, end):
            s = order[i]
            component = components[s]
            ends = 0.0
            for entry in range(starts[s], starts[s + 1]):
                t = columns[entry]
                if t == s:
                    continue
                p = entries[entry]
                if components[t] != component:
                    if components[t] > component:
                        return _OUTSIDE
                    ends += p
                    continue
                # The earlier of the two has the entry in its row of U, or in its column of L.
                j = positions[t]
                if j >= first:
                    place = upper + (i - first) * stride
                    if j < end:
                        place += j - first
                    else:
                        column = _place(tails, tail, tail_end, j)
                        if column < 0:
                            return _OUTSIDE
                        place += end - first + column
                else:
                    other = owners[j]
                    row = j - firsts[other]
                    width = np.int64(firsts[other + 1] - firsts[other])
                    size = tail_starts[other + 1] - tail_starts[other]
                    column = _place(tails, tail_starts[other], tail_starts[other + 1], i)
                    if column < 0:
                        return _OUTSIDE
                    place = offsets[other] + width * (width + size) + row * size + column
                values[place] += gamma * p
            sums[i] = slack[s] + gamma * ends
            if not sums[i] >= 0.0:
                return _NO_VALUE
    return _FITS


@njit(cache=True, nogil=True)
def _add_lines(out, out_at, length, values, factors_at, factors_step, lines_at, lines_step, count):
    """Add ``count`` lines of values, each times a factor that stands among the values too."""
    line = out[out_at : out_at + length]
    done = 0
    while done + 4 <= count:
        x0, x1 = values[factors_at], values[factors_at + factors_step]
        factors_at += 2 * factors_step
        x2, x3 = values[factors_at], values[factors_at + factors_step]
        factors_at += 2 * factors_step
        line0 = values[lines_at : lines_at + length]
        lines_at += lines_step
        line1 = values[lines_at : lines_at + length]
        lines_at += lines_step
        line2 = values[lines_at : lines_at + length]
        lines_at += lines_step
        line3 = values[lines_at : lines_at + length]
        lines_at += lines_step
        for k in range(length):
            line[k] += (x0 * line0[k] + x1 * line1[k]) + (x2 * line2[k] + x3 * line3[k])
        done += 4
    while done < count:
        x0 = values[factors_at]
        factors_at += factors_step
        line0 = values[lines_at : lines_at + length]
        lines_at += lines_step
        for k in range(length):
            line[k] += x0 * line0[k]
        done += 1


@njit(cache=True, nogil=True)
def _factor(blocks, values, sums, waiting, following, done, columns, buffer, lo, hi):
    """Factor the supernodes lo to hi, those before being factored; return False without a pivot.

    A supernode waits for the next one that its tail meets, in a linked list of those that do, and
    ``done`` is how much of its tail has been met.
    """
    _, _, _, firsts, owners, tail_starts, tails, offsets = blocks
    for node in range(lo, hi):
        first = np.int64(firsts[node])
        width = firsts[node + 1] - first
        tail = tail_starts[node]
        size = tail_starts[node + 1] - tail
        stride = width + size
        upper = offsets[node]
        lower = upper + width * stride
        source = waiting[node]
        if source >= 0:
            for k in range(width):
                columns[first + k] = k
            for k in range(size):
                columns[tails[tail + k]] = width + k
        while source >= 0:
            next_source = following[source]
            source_first = np.int64(firsts[source])
            source_width = firsts[source + 1] - source_first
            source_tail = tail_starts[source]
            end = tail_starts[source + 1]
            source_size = end - source_tail
            source_stride = source_width + source_size
            # Where the lines of U and of L would begin if the tail began at 0.
            source_upper = offsets[source] + source_width - source_tail
            source_lower = offsets[source] + source_width * source_stride - source_tail
            begin = source_tail + done[source]
            middle = begin
            while middle < end and tails[middle] < first + width:
                middle += 1
            for a in range(begin, middle):
                row = tails[a] - first
                total = 0.0
                for k in range(source_width):
                    total += values[source_lower + a + k * source_size] * sums[source_first + k]
                sums[first + row] += total
            # Written out, since each call of a function costs as much as a short line.
            if source_width <= _NARROW:
                for a in range(begin, middle):
                    row = tails[a] - first
                    at = upper + row * stride
                    for b in range(begin, end):
                        total = 0.0
                        for k in range(source_width):
                            x = values[source_lower + a + k * source_size]
                            total += x * values[source_upper + b + k * source_stride]
                        values[at + columns[tails[b]]] += total
                    at = lower + row * size - width
                    for b in range(middle, end):
                        total = 0.0
                        for k in range(source_width):
                            x = values[source_upper + a + k * source_stride]
                            total += x * values[source_lower + b + k * source_size]
                        values[at + columns[tails[b]]] += total
            else:
                for tile in range(begin, end, _TILE):
                    stop = min(tile + _TILE, end)
                    for a in range(begin, middle):
                        row = tails[a] - first
                        n = stop - tile
                        buffer[:n] = 0.0
                        _add_lines(
                            buffer,
                            0,
                            n,
                            values,
                            source_lower + a,
                            source_size,
                            source_upper + tile,
                            source_stride,
                            source_width,
                        )
                        at = upper + row * stride
                        for b in range(tile, stop):
                            values[at + columns[tails[b]]] += buffer[b - tile]
                        begin_b = max(tile, middle)
                        n = stop - begin_b
                        if n <= 0:
                            continue
                        buffer[:n] = 0.0
                        _add_lines(
                            buffer,
                            0,
                            n,
                            values,
                            source_upper + a,
                            source_stride,
                            source_lower + begin_b,
                            source_size,
                            source_width,
                        )
                        at = lower + row * size - width
                        for b in range(begin_b, stop):
                            values[at + columns[tails[b]]] += buffer[b - begin_b]
            if middle < end:
                done[source] = middle - source_tail
                later = owners[tails[middle]]
                following[source] = waiting[later]
                waiting[later] = source
            source = next_source
        for r in range(width):
            at = upper + r * stride
            total = sums[first + r]
            # Wide supernodes gain by taking several lines at once.
            near = r if width > _NARROW else stride
            for k in range(r):
                line = upper + k * stride
                x = values[at + k] * values[line + k]
                values[at + k] = x
                total += x * sums[first + k]
                for c in range(k + 1, near):
                    values[at + c] += x * values[line + c]
            if r > 0 and near == r:
                _add_lines(values, at + r, stride - r, values, at, 1, upper + r, stride, r)
            sums[first + r] = total
            for c in range(r + 1, stride):
                total += values[at + c]
            if not total > 0.0:
                return False
            pivot = 1.0 / total
            values[at + r] = pivot
            at = lower + r * size
            if near == r:
                _add_lines(values, at, size, values, upper + r, stride, lower, size, r)
            else:
                for k in range(r):
                    x = values[upper + k * stride + r]
                    line = lower + k * size
                    for c in range(size):
                        values[at + c] += x * values[line + c]
            for c in range(size):
                values[at + c] *= pivot
        if size > 0:
            later = owners[tails[tail]]
            following[node] = waiting[later]
            waiting[later] = node
            done[node] = 0
    return True


@njit(cache=True, nogil=True)
def _solve(rows, gamma, reads_rows, blocks, values, costs, work, buffer, out):
    """Write the solution; ``work`` is by positions."""
    starts, columns, entries = rows
    components, order, _, firsts, _, tail_starts, tails, offsets = blocks
    num_supernodes = len(firsts) - 1
    begin = 0
    while begin < num_supernodes:
        # The root of a component's tree is its last, and has no tail.
        end = begin
        while tail_starts[end] < tail_starts[end + 1]:
            end += 1
        end += 1
        if firsts[end] - firsts[begin] == 1:
            s = order[firsts[begin]]
            total = costs[s]
            for entry in range(starts[s], starts[s + 1]):
                if columns[entry] != s:
                    total += gamma * entries[entry] * out[columns[entry]]
            out[s] = total * values[offsets[begin]]
            begin = end
            continue
        component = components[order[firsts[begin]]]
        for i in range(firsts[begin], firsts[end]):
            s = order[i]
            total = costs[s]
            if reads_rows:
                for entry in range(starts[s], starts[s + 1]):
                    t = columns[entry]
                    if components[t] != component:
                        total += gamma * entries[entry] * out[t]
            work[i] = total
        for node in range(begin, end):
            first = np.int64(firsts[node])
            width = firsts[node + 1] - first
            tail = tail_starts[node]
            size = tail_starts[node + 1] - tail
            stride = width + size
            upper = offsets[node]
            lower = upper + width * stride
            for r in range(width):
                total = work[first + r]
                at = upper + r * stride
                for k in range(r):
                    total += values[at + k] * work[first + k]
                work[first + r] = total
            if width <= _NARROW:
                for k in range(size):
                    total = 0.0
                    for r in range(width):
                        total += values[lower + r * size + k] * work[first + r]
                    work[tails[tail + k]] += total
            elif size > 0:
                sums = buffer[:size]
                sums[:] = 0.0
                for r in range(width):
                    x = work[first + r]
                    line = values[lower + r * size : lower + (r + 1) * size]
                    for k in range(size):
                        sums[k] += x * line[k]
                for k in range(size):
                    work[tails[tail + k]] += sums[k]
        for node in range(end - 1, begin - 1, -1):
            first = np.int64(firsts[node])
            width = firsts[node + 1] - first
            tail = tail_starts[node]
            size = tail_starts[node + 1] - tail
            stride = width + size
            upper = offsets[node]
            for k in range(size):
                buffer[k] = work[tails[tail + k]]
            for r in range(width - 1, -1, -1):
                at = upper + r * stride
                total0, total1, total2, total3 = work[first + r], 0.0, 0.0, 0.0
                for k in range(r + 1, width):
                    total1 += values[at + k] * work[first + k]
                line = at + width
                k = 0
                while k + 4 <= size:
                    total0 += values[line + k] * buffer[k]
                    total1 += values[line + k + 1] * buffer[k + 1]
                    total2 += values[line + k + 2] * buffer[k + 2]
                    total3 += values[line + k + 3] * buffer[k + 3]
                    k += 4
                while k < size:
                    total0 += values[line + k] * buffer[k]
                    k += 1
                x = ((total0 + total1) + (total2 + total3)) * values[at + r]
                work[first + r] = x
                out[order[first + r]] = x
        begin = end
