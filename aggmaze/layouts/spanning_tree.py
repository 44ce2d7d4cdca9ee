"""Perfect mazes in any dimension: uniform-looking Kruskal trees and depth-first corridors.

A perfect maze is a spanning tree of the grid: exactly ``S - 1`` passages, one path between any two
positions.  Random numbers are drawn at once from the Generator passed in; the compiled loops that
turn them into a tree are deterministic.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_share
from aggmaze.grid import Grid
from aggmaze.layouts.layout import open_passages


def kruskal(grid: Grid, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return a spanning tree by Kruskal's algorithm over the edges in random order.

    Short dead ends and comparatively short paths: depth grows about like the side of the grid.

    Parameters
    ----------
    grid : Grid
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of bool, shape (S, D)
        Passages as in `aggmaze.layouts.layout.Layout`.
    """
    from aggmaze.layouts.tree_kernels import join_by_edges  # which takes long to import

    edges = np.flatnonzero(open_passages(grid))
    rng.shuffle(edges)
    strides = np.array(grid.strides, dtype=np.int64)
    return join_by_edges(edges, strides, grid.num_states)


def depth_first(grid: Grid, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return a spanning tree by a random depth-first walk from the origin.

    Long winding corridors: paths visit a large share of all positions.

    Parameters
    ----------
    grid : Grid
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of bool, shape (S, D)
        Passages as in `aggmaze.layouts.layout.Layout`.
    """
    from aggmaze.layouts.tree_kernels import walk_by_choices

    # A tree has S - 1 edges, and each takes one choice.
    choices = rng.random(grid.num_states - 1)
    shape = np.array(grid.shape, dtype=np.int64)
    strides = np.array(grid.strides, dtype=np.int64)
    return walk_by_choices(choices, shape, strides, grid.num_states)


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
