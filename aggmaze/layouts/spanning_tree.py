"""Perfect mazes in any dimension: uniform-looking Kruskal trees and depth-first corridors.

A perfect maze is a spanning tree of the grid: exactly ``S - 1`` passages, one path between any two
positions.  Random numbers are drawn at once from the Generator passed in; the compiled loops that
turn them into a tree are deterministic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_share
from aggmaze.grid import Grid
from aggmaze.layouts.layout import open_passages
from aggmaze.progress import report

# Draws that are made together; and the fewest things for which it pays.
_MOST_DRAWS, _LEAST_COUNT = 1 << 18, 1 << 12


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
    from aggmaze.layouts.tree_kernels import join_in_order  # which takes long to import

    num_states, num_dims = grid.num_states, grid.num_dims
    places = shuffled_places(sum(num_states // n * (n - 1) for n in grid.shape), rng)
    passages = np.zeros((num_states, num_dims), dtype=bool)
    index = _index_type(num_states * num_dims)
    tails, heads, edges = (np.empty(len(places), dtype=index) for _ in range(3))
    groups, first = (np.empty(num_states, dtype=index) for _ in range(2))
    shape = np.array(grid.shape, dtype=np.int64)
    strides = np.array(grid.strides, dtype=np.int64)
    join_in_order(shape, strides, places, tails, heads, edges, groups, first, passages)
    return passages


def shuffled_places(count: int, rng: np.random.Generator) -> NDArray[np.signedinteger[Any]]:
    """Return where ``rng.shuffle`` puts each of some things, drawing what it draws.

    A shuffle of large arrays waits for memory; where things end up takes a third of its time.

    Parameters
    ----------
    count : int
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int, shape (count,)
    """
    from aggmaze.layouts.tree_kernels import follow_swaps, take_draws

    places = np.empty(count, dtype=_index_type(count))
    if count < _LEAST_COUNT:
        things = np.arange(count)
        rng.shuffle(things)
        places[things] = np.arange(count)
        return places
    top = count - 1
    while top > 0:
        report(count - 1 - top, count - 1, "edges drawn")
        top = take_draws(_draws_below(top, rng), top, places)
    follow_swaps(places)
    return places


def _draws_below(top: int, rng: np.random.Generator) -> NDArray[np.unsignedinteger[Any]]:
    """Return bits as a generator gives them, no more than a shuffle will use from ``top`` on.

    NumPy draws 32 bits for a place where they do, else 64.

    Parameters
    ----------
    top : int
        At least 1.
    rng : numpy.random.Generator
    """
    bits = np.uint32 if top < 2**32 else np.uint64
    last = 0 if top < 2**32 else 2**32 - 1
    size = min(top - last, _MOST_DRAWS)
    return rng.integers(0, np.iinfo(bits).max, size=size, dtype=bits, endpoint=True)


def _index_type(size: int) -> type[np.signedinteger[Any]]:
    return np.int32 if size < 2**31 else np.int64


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
