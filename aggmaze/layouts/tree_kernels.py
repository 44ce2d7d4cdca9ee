"""The loops that turn random numbers into spanning trees, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from aggmaze import kernel_cache  # noqa: F401  (before any kernel)

# Edges that are looked at together.
_BATCH = 128


@njit(cache=True)
def join_by_edges(edges, strides, num_states):
    """Return the passages of the edges that join, in their order, what was apart.

    Parameters
    ----------
    edges : ndarray of int, shape (E,)
        ``s * D + k`` for the edge from state ``s`` along axis ``k``.
    strides : ndarray of int, shape (D,)
    num_states : int
    """
    num_dims = len(strides)
    passages = np.zeros((num_states, num_dims), dtype=np.bool_)
    taken = passages.reshape(-1)
    # Trees of what is joined, the larger above the smaller; roots have minus the size.
    parent = np.full(num_states, -1, dtype=np.int32)
    ends = np.empty(2 * _BATCH, dtype=np.int64)
    roots = np.empty(2 * _BATCH, dtype=np.int64)
    missing = num_states - 1
    first = 0
    while missing > 0 and first < len(edges):
        size = min(_BATCH, len(edges) - first)
        for i in range(size):
            state = edges[first + i] // num_dims
            ends[2 * i] = state
            ends[2 * i + 1] = state + strides[edges[first + i] - state * num_dims]
        # All roots of a batch are sought side by side, since memory is waited for at each step.
        for i in range(2 * size):
            roots[i] = ends[i]
        num_moved = 1
        while num_moved > 0:
            num_moved = 0
            for i in range(2 * size):
                above = parent[roots[i]]
                if above >= 0:
                    roots[i] = above
                    num_moved += 1
        for i in range(2 * size):
            if roots[i] != ends[i]:
                parent[ends[i]] = roots[i]
        for i in range(size):
            a, b = roots[2 * i], roots[2 * i + 1]
            # What the batch itself has joined meanwhile.
            while parent[a] >= 0:
                a = parent[a]
            while parent[b] >= 0:
                b = parent[b]
            if a != b:
                if parent[a] > parent[b]:
                    a, b = b, a
                parent[a] += parent[b]
                parent[b] = a
                taken[edges[first + i]] = True
                missing -= 1
        first += size
    return passages


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
