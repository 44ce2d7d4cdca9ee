"""Perfect mazes in any dimension: uniform-looking Kruskal trees and depth-first corridors.

A perfect maze is a spanning tree of the grid: exactly ``S - 1`` passages, one path between any two
positions.  Random numbers are drawn at once from the Generator passed in; the compiled loops that
turn them into a tree are deterministic.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from aggmaze.checks import check_share
from aggmaze.grid import Grid
from aggmaze.layouts.layout import open_passages


def kruskal(grid: Grid, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return a spanning tree by Kruskal's algorithm over the edges in random order.

    Short dead ends and comparatively short paths: depth grows about like the side of the grid.

    Returns
    -------
    ndarray of bool, shape (S, D)
        Passages as in `aggmaze.layouts.layout.Layout`.
    """
    edges = np.flatnonzero(open_passages(grid))
    rng.shuffle(edges)
    strides = np.array(grid.strides, dtype=np.int64)
    return _kruskal(edges, strides, grid.num_states)


def depth_first(grid: Grid, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return a spanning tree by a random depth-first walk from the origin.

    Long winding corridors: paths visit a large share of all positions.

    Returns
    -------
    ndarray of bool, shape (S, D)
        Passages as in `aggmaze.layouts.layout.Layout`.
    """
    # A tree has S - 1 edges, and each takes one choice.
    choices = rng.random(grid.num_states - 1)
    shape = np.array(grid.shape, dtype=np.int64)
    strides = np.array(grid.strides, dtype=np.int64)
    return _depth_first(choices, shape, strides, grid.num_states)


GENERATORS = {"kruskal": kruskal, "depth_first": depth_first}


def open_loops(
    grid: Grid, passages: NDArray[np.bool_], share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return the passages with a share of the remaining walls opened, chosen uniformly.

    Parameters
    ----------
    share : float
        In [0, 1]; 0 keeps the maze, 1 leaves no wall.  The number opened is rounded.
    """
    check_share("loops", share)
    walls = np.flatnonzero(open_passages(grid) & ~passages)
    opened = rng.choice(walls, size=round(share * len(walls)), replace=False, shuffle=False)
    result = passages.copy()
    result.reshape(-1)[opened] = True
    return result


@njit(cache=True)
def _kruskal(edges, strides, num_states):  # type: ignore[no-untyped-def]
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
def _depth_first(choices, shape, strides, num_states):  # type: ignore[no-untyped-def]
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
