"""The loops that turn random numbers into spanning trees, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from aggmaze import kernel_cache  # noqa: F401  (before any kernel)


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
    parent = np.arange(num_states).astype(np.int32)
    missing = num_states - 1
    for edge in edges:
        if missing == 0:
            break
        state = edge // num_dims
        axis = edge - state * num_dims
        a = state
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        b = state + strides[axis]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if a != b:
            parent[a] = b
            passages[state, axis] = True
            missing -= 1
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
