"""The loops that turn random numbers into spanning trees, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from aggmaze import kernel_cache  # noqa: F401  (before any kernel)


@njit(cache=True)
def take_draws(draws, top, swaps):
    """Turn random bits into the places that a shuffle swaps, from ``top`` downwards.

    A place in [0, top] is what the lowest bits of a draw say, as many as ``top`` has; a draw that
    says more is passed over.  That is how NumPy's shuffles draw.

    Parameters
    ----------
    draws : ndarray of unsigned int, shape (N,)
        N <= ``top``: each place takes at least one.
    top : int
        At least 1.
    swaps : ndarray of int
        Written from ``top`` downwards.

    Returns
    -------
    int
        The ``top`` that is next.
    """
    mask = 1
    while mask < top:
        mask = 2 * mask + 1
    for draw in draws:
        place = np.int64(draw) & mask
        swaps[top] = place
        top -= 1 if place <= top else 0
        mask >>= 1 if top <= mask >> 1 else 0
    return top


@njit(cache=True)
def follow_swaps(swaps):
    """Replace the swaps of a shuffle by where each thing ends up.

    A shuffle of N things swaps those at i and ``swaps[i] <= i`` for i = N - 1, ..., 1.  The same
    swaps in reverse order, of 0, 1, ..., make the inverse permutation; before its turn, i is at i.

    Parameters
    ----------
    swaps : ndarray of int, shape (N,)
        Whatever it begins with, 0 is meant.
    """
    swaps[0] = 0
    for i in range(1, len(swaps)):
        j = swaps[i]
        swaps[i] = swaps[j]
        swaps[j] = i


@njit(cache=True)
def join_in_order(shape, strides, places, tails, heads, edges, groups, first, passages):
    """Write the passages of the edges that join, in their order, what was apart.

    They are the spanning tree whose places in the order add up to least, which has no equal.  It
    is found by Boruvka's algorithm, whose rounds read and write memory in order of the states:
    of the edges out of each group of states the first belongs to the tree; what these join is a
    group of the next round, and edges within a group are dropped.

    Parameters
    ----------
    shape, strides : ndarray of int, shape (D,)
    places : ndarray of int, shape (E,)
        Which place in the order each edge has, edges by their state and then their axis.
        Overwritten, as are those that follow.
    tails, heads, edges : ndarray of int, shape (E,)
    groups, first : ndarray of int, shape (S,)
    passages : ndarray of bool, shape (S, D)
        False everywhere.
    """
    last = np.iinfo(first.dtype).max
    num_edges = len(places)
    num_groups = len(groups)
    first[:] = last
    _list_edges(shape, strides, places, tails, heads, edges, first)
    while num_edges > 0:
        for group in range(num_groups):
            groups[group] = group
        _join_first(num_edges, places, tails, heads, edges, groups, first, passages.reshape(-1))
        num_groups = _number(num_groups, groups)
        first[:num_groups] = last
        num_edges = _contract(num_edges, places, tails, heads, edges, groups, first)


@njit(cache=True)
def _list_edges(shape, strides, places, tails, heads, edges, first):
    """Write the ends of all edges, ``s * D + k`` for each, and the first edge of each state."""
    num_dims = len(shape)
    coords = np.zeros(num_dims, dtype=np.int64)
    count = 0
    for s in range(len(first)):
        for axis in range(num_dims):
            if coords[axis] < shape[axis] - 1:
                t = s + strides[axis]
                tails[count] = s
                heads[count] = t
                edges[count] = s * num_dims + axis
                first[s] = min(first[s], places[count])
                first[t] = min(first[t], places[count])
                count += 1
        axis = num_dims - 1
        coords[axis] += 1
        while axis > 0 and coords[axis] == shape[axis]:
            coords[axis] = 0
            axis -= 1
            coords[axis] += 1


@njit(cache=True)
def _join_first(num_edges, places, tails, heads, edges, groups, first, taken):
    """Take the first edge of each group, and join their groups, each below a smaller number."""
    for e in range(num_edges):
        a, b = tails[e], heads[e]
        if (places[e] == first[a]) | (places[e] == first[b]):
            taken[edges[e]] = True
            while groups[a] != a:
                groups[a] = groups[groups[a]]
                a = groups[a]
            while groups[b] != b:
                groups[b] = groups[groups[b]]
                b = groups[b]
            groups[max(a, b)] = min(a, b)


@njit(cache=True)
def _number(num_groups, groups):
    """Give the groups that are left new numbers, in order of the old; return how many."""
    count = 0
    for group in range(num_groups):
        if groups[group] == group:
            groups[group] = count
            count += 1
        else:
            groups[group] = groups[groups[group]]
    return count


@njit(cache=True)
def _contract(num_edges, places, tails, heads, edges, groups, first):
    """Keep the edges between two groups, find the first of each, and return how many there are."""
    count = 0
    for e in range(num_edges):
        a, b, place = groups[tails[e]], groups[heads[e]], places[e]
        tails[count], heads[count] = a, b
        places[count], edges[count] = place, edges[e]
        is_between = a != b
        first[a] = min(first[a], place) if is_between else first[a]
        first[b] = min(first[b], place) if is_between else first[b]
        count += 1 if is_between else 0
    return count


@njit(cache=True)
def walk_by_choices(choices, shape, strides, num_states):
    """Return the passages of a walk from the origin that goes back where nothing new is near.

    Parameters
    ----------
    choices : ndarray of float, shape (S - 1,)
        Numbers in [0, 1), one for each new position.
    shape, strides : ndarray of int, shape (D,)
    num_states : int
    """
    num_dims = len(shape)
    passages = np.zeros((num_states, num_dims), dtype=np.bool_)
    visited = np.zeros(num_states, dtype=np.bool_)
    path = np.empty(num_states, dtype=np.int64)
    candidates = np.empty(2 * num_dims, dtype=np.int64)
    path[0] = 0
    visited[0] = True
    depth = 0
    drawn = 0
    while depth >= 0:
        state = path[depth]
        count = 0
        for axis in range(num_dims):
            x = (state // strides[axis]) % shape[axis]
            if x > 0 and not visited[state - strides[axis]]:
                candidates[count] = 2 * axis
                count += 1
            if x < shape[axis] - 1 and not visited[state + strides[axis]]:
                candidates[count] = 2 * axis + 1
                count += 1
        if count == 0:
            depth -= 1
            continue
        move = candidates[int(choices[drawn] * count)]
        drawn += 1
        axis = move // 2
        if move % 2 == 0:
            following = state - strides[axis]
            passages[following, axis] = True
        else:
            following = state + strides[axis]
            passages[state, axis] = True
        visited[following] = True
        depth += 1
        path[depth] = following
    return passages
