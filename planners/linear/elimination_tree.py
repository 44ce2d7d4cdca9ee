"""What the elimination of the states of a sparse chain comes to, before any number is seen.

``A = I - gamma P`` is eliminated without choosing pivots, so where it fills in is known from where
P has entries.  The pattern is made symmetric within each strong component; then row k of U and
column k of L have the same pattern, the *tail* of k, and the smallest state of that tail is the
parent of k in the elimination tree.  Neighbours in the tree whose tails are nearly the same are
kept together as one dense block (a supernode), zeros and all.

Source: Davis, "Direct Methods for Sparse Linear Systems" (2006), chapter 4; Ashcraft, Grimes, "The
influence of relaxed supernode partitions on the multifrontal method", ACM Transactions on
Mathematical Software 15 (1989).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from aggmaze.arrays import readonly
from planners.linear.ordering import (
    foreseen_operations,
    minimum_degree,
    neighbourhood,
    strong_components,
    symmetrised,
)

# States in a block: wider ones would not stay in the cache, nor leave time to look at the clock.
_MOST_TOGETHER = 64
# Blocks of so many states may hold so many numbers for one that is needed.
_FEW, _FEW_ROOM = 4, 2.0
_SOME, _SOME_ROOM = 16, 1.3
_MANY_ROOM = 1.1
# A hub, which comes last, has more neighbours than so many times the square root of the number of
# states, and than so many times the mean.
_HUB_SIDES, _HUB_MEANS = 2.0, 8.0
# In models of many states a part of them, all near each other, is tried first.
_MANY_STATES, _SAMPLE_PART = 4000, 8
# The order of the states is good enough where so many entries fill in for one that is there.
_NATURAL_ROOM = 3


@dataclass(frozen=True, eq=False)
class Analysis:
    """An order of elimination of S states, and room for the factors.

    Position i is that of the i-th state eliminated.  A supernode J has positions ``firsts[J]`` to
    ``firsts[J + 1]``, m of them, and a tail of t positions.  From ``offsets[J]`` on come its rows
    of U, m by m + t, with the pivots on the diagonal and rows of L below it, and then, m by t, the
    columns of L.

    Parameters
    ----------
    components : ndarray of int32, shape (S,)
        Strong component of each state; one leads to those of smaller numbers only.
    order : ndarray of int32, shape (S,)
        The state at each position: component by component, and each subtree of the elimination
        tree by itself.
    positions : ndarray of int32, shape (S,)
        Its inverse.
    firsts : ndarray of int32, shape (num_supernodes + 1,)
    owners : ndarray of int32, shape (S,)
        Supernode of each position.
    tail_starts : ndarray of int64, shape (num_supernodes + 1,)
    tails : ndarray of int32
        Positions, sorted in each tail.
    offsets : ndarray of int64, shape (num_supernodes + 1,)
    num_components : int
    num_entries : int
        Numbers that a solution reads: those of the factors, and where there are several components
        those of the rows too.
    num_operations : int
        Products that are added up to make the factors.
    """

    components: NDArray[np.int32]
    order: NDArray[np.int32]
    positions: NDArray[np.int32]
    firsts: NDArray[np.int32]
    owners: NDArray[np.int32]
    tail_starts: NDArray[np.int64]
    tails: NDArray[np.int32]
    offsets: NDArray[np.int64]
    num_components: int
    num_row_entries: int
    num_entries: int
    num_operations: int

    @property
    def factor_work(self) -> int:
        """About how many entries a sweep reads in the time that the factors take."""
        return 8 * self.num_row_entries + 3 * int(self.offsets[-1]) + self.num_operations // 4

    @property
    def solve_work(self) -> int:
        """About how many entries a sweep reads in the time that a solution takes."""
        return 5 * len(self.order) + self.num_entries + self.num_entries // 4


def analyse(
    starts: NDArray[np.int64],
    columns: NDArray[np.int32],
    *,
    most_entries: int,
    most_operations: int,
    checkpoint: Callable[[], object] = lambda: None,
) -> Analysis | None:
    """Find an order of elimination with little fill.

    Parameters
    ----------
    starts : ndarray of int64, shape (S + 1,)
    columns : ndarray of int32, shape (nnz,)
        Successors of state s, ``columns[starts[s]:starts[s + 1]]``; terminal states have none.
    most_entries, most_operations : int
        Give up where `Analysis.num_entries` or `Analysis.num_operations` would be above these.
        The search for an order stops there too: a model that fills in costs little.
    checkpoint : callable
        Called between the parts of the work; may raise.

    Returns
    -------
    Analysis or None
    """
    num_states = len(starts) - 1
    starts, columns = readonly(starts), readonly(columns.astype(np.int32, copy=False))
    components = np.empty(num_states, dtype=np.int32)
    num_components = strong_components(starts, columns, components)
    checkpoint()
    num_read = len(columns) if num_components > 1 else 0
    # Entries below the diagonal, for as many above.
    most_below = (most_entries - num_read - num_states) // 2
    pair_starts, neighbours = symmetrised(starts, columns, components)
    checkpoint()
    if len(neighbours) > 2 * most_below:
        return None
    mean = len(neighbours) / max(1, num_states)
    dense = int(max(16.0, _HUB_SIDES * math.sqrt(num_states), _HUB_MEANS * mean))
    parents, counts = np.empty((2, num_states), dtype=np.int32)
    order = np.empty(num_states, dtype=np.int32)
    _natural_order(components, num_components, np.diff(pair_starts) > dense, order)
    most_natural = min(most_below, _NATURAL_ROOM * len(neighbours) // 2)
    if not _tree(pair_starts, neighbours, order, most_natural, parents, counts):
        if foreseen_operations(pair_starts, neighbours) > most_operations:
            return None

        def ordered(part: float, starts: Any, near: Any) -> NDArray[np.int32] | None:
            return minimum_degree(
                starts,
                near,
                dense,
                most_entries=math.ceil(part * most_below),
                most_operations=math.ceil(part * most_operations),
                checkpoint=checkpoint,
            )

        if num_states >= _MANY_STATES:
            sample = neighbourhood(pair_starts, neighbours, dense, num_states // _SAMPLE_PART)
            if ordered((len(sample[0]) - 1) / num_states, *sample) is None:
                return None
        found = ordered(1.0, pair_starts, neighbours)
        if found is None or not _tree(pair_starts, neighbours, found, most_below, parents, counts):
            return None
        order = found
    checkpoint()
    if not _is_postorder(components, order, parents):
        _postorder(components, order, parents, counts)
    firsts, owners = np.empty(num_states + 1, dtype=np.int32), np.empty(num_states, dtype=np.int32)
    firsts = firsts[: _supernodes(parents, counts, firsts, owners) + 1].copy()
    widths, sizes = np.diff(firsts).astype(np.int64), counts[firsts[1:] - 1].astype(np.int64)
    offsets, tail_starts = np.zeros((2, len(firsts)), dtype=np.int64)
    np.cumsum(widths * (widths + 2 * sizes), out=offsets[1:])
    np.cumsum(sizes, out=tail_starts[1:])
    num_entries = int(offsets[-1]) + num_read
    num_operations = int(np.sum(block_operations(widths, sizes)))
    if num_entries > most_entries or num_operations > most_operations:
        return None
    positions = np.empty(num_states, dtype=np.int32)
    positions[order] = np.arange(num_states, dtype=np.int32)
    tails = np.empty(int(tail_starts[-1]), dtype=np.int32)
    _fill_tails(
        pair_starts, neighbours, order, positions, parents, firsts, owners, tail_starts, tails
    )
    return Analysis(
        components,
        order,
        positions,
        firsts,
        owners,
        tail_starts,
        tails,
        offsets,
        num_components,
        len(columns),
        num_entries,
        num_operations,
    )


def block_operations(widths: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many products the elimination of each supernode adds up.

    Parameters
    ----------
    widths, sizes : ndarray of int64, shape (num_supernodes,)
        States, and positions in the tail.

    Returns
    -------
    ndarray of int64, shape (num_supernodes,)
        The sum of ``(n + sizes)**2`` over n below ``widths``.
    """
    last = widths - 1
    squares = last * widths * (2 * last + 1) // 6
    return squares + sizes * last * widths + widths * sizes**2


@njit(cache=True, nogil=True)
def _natural_order(components, num_components, late, order):
    """Order the states by component, and in each as they come, but for those that come late."""
    ends = np.zeros(num_components + 1, dtype=np.int64)
    for s in range(len(components)):
        ends[components[s] + 1] += 1
    for c in range(num_components):
        ends[c + 1] += ends[c]
    for turn in range(2):
        for s in range(len(components)):
            if late[s] == (turn == 1):
                c = components[s]
                order[ends[c]] = s
                ends[c] += 1


@njit(cache=True, nogil=True)
def _tree(starts, neighbours, order, most_entries, parents, counts):
    """Write the parent of each position, or -1, and the length of its tail.

    Returns False where tails are longer than ``most_entries`` together.
    """
    num_states = len(order)
    positions = np.empty(num_states, dtype=np.int32)
    for k in range(num_states):
        positions[order[k]] = k
    seen = np.empty(num_states, dtype=np.int32)
    total = 0
    for i in range(num_states):
        parents[i] = -1
        counts[i] = 0
        seen[i] = i
        s = order[i]
        for entry in range(starts[s], starts[s + 1]):
            k = positions[neighbours[entry]]
            if k > i:
                continue
            # i is in the tails of all on the way up from k.
            while seen[k] != i:
                if parents[k] < 0:
                    parents[k] = i
                counts[k] += 1
                total += 1
                seen[k] = i
                k = parents[k]
        if total > most_entries:
            return False
    return True


@njit(cache=True, nogil=True)
def _is_postorder(components, order, parents):
    """Tell whether subtrees stand together, and components in their order."""
    num_states = len(order)
    sizes = np.ones(num_states, dtype=np.int32)
    lows = np.arange(num_states)
    for k in range(num_states):
        if sizes[k] != k + 1 - lows[k]:
            return False
        p = parents[k]
        if p >= 0:
            sizes[p] += sizes[k]
            lows[p] = min(lows[p], lows[k])
        if k > 0 and components[order[k]] < components[order[k - 1]]:
            return False
    return True


@njit(cache=True, nogil=True)
def _postorder(components, order, parents, counts):
    """Rearrange so that each subtree stands together, and components in their order."""
    num_states = len(order)
    # A component, being connected, is one tree.
    roots = np.full(num_states, -1, dtype=np.int32)
    children = np.full(num_states, -1, dtype=np.int32)
    siblings = np.empty(num_states, dtype=np.int32)
    for i in range(num_states):
        k = num_states - 1 - i
        p = parents[k]
        if p < 0:
            roots[components[order[k]]] = k
        else:
            siblings[k] = children[p]
            children[p] = k
    new = np.empty(num_states, dtype=np.int32)
    path = np.empty(num_states, dtype=np.int32)
    count = 0
    component = 0
    while count < num_states:
        path[0] = roots[component]
        component += 1
        depth = 1
        while depth > 0:
            k = path[depth - 1]
            child = children[k]
            if child < 0:
                new[k] = count
                count += 1
                depth -= 1
            else:
                children[k] = siblings[child]
                path[depth] = child
                depth += 1
    old_order, old_parents, old_counts = order.copy(), parents.copy(), counts.copy()
    for k in range(num_states):
        i = new[k]
        order[i] = old_order[k]
        counts[i] = old_counts[k]
        p = old_parents[k]
        parents[i] = new[p] if p >= 0 else -1


@njit(cache=True, nogil=True)
def _supernodes(parents, counts, firsts, owners):
    """Put positions into supernodes; return how many there are.

    A position joins the supernode before it where its parent, or that of the last before it, is
    here: then the tails differ by zeros only.
    """
    num_states = len(parents)
    count = 0
    needed = np.int64(0)
    for k in range(num_states):
        alone = 1 + 2 * np.int64(counts[k])
        if k > 0 and parents[k - 1] == k:
            width = k + 1 - firsts[count - 1]
            stored = width * (width + 2 * np.int64(counts[k]))
            room = _FEW_ROOM if width <= _FEW else (_SOME_ROOM if width <= _SOME else _MANY_ROOM)
            if width <= _MOST_TOGETHER and stored <= room * (needed + alone):
                owners[k] = count - 1
                needed += alone
                continue
        firsts[count] = k
        owners[k] = count
        count += 1
        needed = alone
    firsts[count] = num_states
    return count


@njit(cache=True, nogil=True)
def _fill_tails(starts, neighbours, order, positions, parents, firsts, owners, tail_starts, tails):
    """Write the tail of the last position of each supernode, sorted."""
    num_supernodes = len(firsts) - 1
    seen = np.full(num_supernodes, -1, dtype=np.int32)
    ends = tail_starts[:-1].copy()
    for i in range(len(order)):
        s = order[i]
        own = owners[i]
        for entry in range(starts[s], starts[s + 1]):
            k = positions[neighbours[entry]]
            if k > i:
                continue
            node = owners[k]
            while node != own and seen[node] != i:
                seen[node] = i
                tails[ends[node]] = i
                ends[node] += 1
                node = owners[parents[firsts[node + 1] - 1]]
