"""Mazes of blocks within blocks: each has a spanning tree of its own, made when it is needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from aggmaze.grid import Grid
from aggmaze.layouts.rule import key_of_stream, sizes_of
from aggmaze.layouts.spanning_tree import kruskal

# Parts along each side of a block, by the number of dimensions: some thousand parts in a block.
_SIDES = {1: 4096, 2: 64, 3: 16, 4: 8, 5: 5, 6: 4, 7: 3, 8: 3}
# Bytes of trees that are kept: the blocks along two million cells of a maze in two dimensions.
_MOST_BYTES = 1 << 27
_DOORS = 2


class BlockTrees:
    """A spanning tree of blocks, whose parts have spanning trees, down to cells.

    Each block joins its parts by a tree of Kruskal's, from a seed of its own; parts that it joins
    have a door in a place that is drawn.  So no direction is favoured, and a block of cells takes
    no more than the trees of the blocks that it touches, one level above another.

    Parameters
    ----------
    grid : Grid
    key : np.uint64
    """

    def __init__(self, grid: Grid, key: np.uint64) -> None:
        self.grid, self.key = grid, key
        self._side = _SIDES[grid.num_dims]
        most = max(1, _MOST_BYTES // self._side**grid.num_dims)
        # Threads may ask side by side.
        self._tree: Callable[[int, int], NDArray[np.uint8]] = lru_cache(most)(self._make_tree)

    @cached_property
    def num_levels(self) -> int:
        """Number of levels of blocks; the one block of the highest holds the grid."""
        levels, size = 1, self._side
        while size < max(self.grid.shape):
            levels, size = levels + 1, size * self._side
        return levels

    def passages(self, lo: int, hi: int) -> NDArray[np.uint8]:
        """Return the passages of the cells ``lo`` to ``hi - 1``, as `PassageRule.passages` says.

        Parameters
        ----------
        lo, hi : int
        """
        from aggmaze.layouts.block_kernels import join_blocks, list_blocks

        shape, _ = sizes_of(self.grid)
        runs = np.empty(2 * (hi - lo) // min(self._side, self.grid.shape[-1]) + 2, dtype=np.int64)
        numbers = np.unique(runs[: list_blocks(shape, self._side, lo, hi, runs)])
        levels = [numbers]
        for level in range(1, self.num_levels):
            inner, outer = self._block_shape(level - 1), self._block_shape(level)
            parts = np.unravel_index(levels[-1], inner)
            levels.append(
                np.unique(np.ravel_multi_index(tuple(x // self._side for x in parts), outer))
            )
        ends = np.cumsum([0, *map(len, levels)])
        trees = np.empty((ends[-1], self._side**self.grid.num_dims), dtype=np.uint8)
        for level, found in enumerate(levels):
            for place, number in enumerate(found.tolist(), start=ends[level]):
                trees[place] = self._tree(level, number)
        bits = np.empty(hi - lo, dtype=np.uint8)
        key = key_of_stream(self.key, _DOORS)
        join_blocks(key, shape, self._side, ends, np.concatenate(levels), trees, lo, bits)
        return bits

    def _block_shape(self, level: int) -> tuple[int, ...]:
        """Return how many blocks of a level there are along each axis."""
        size = self._side ** (level + 1)
        return tuple((n - 1) // size + 1 for n in self.grid.shape)

    def _make_tree(self, level: int, number: int) -> NDArray[np.uint8]:
        """Return the passages between the parts of a block, shape (side ** D,)."""
        block = [int(x) for x in np.unravel_index(number, self._block_shape(level))]
        parts = self.grid.shape if level == 0 else self._block_shape(level - 1)
        extent = [min(self._side, n - x * self._side) for x, n in zip(block, parts, strict=True)]
        rng = np.random.default_rng((int(self.key), level, *block))
        joined = kruskal(Grid(extent), rng).reshape(*extent, len(extent))
        tree = np.zeros((self._side,) * len(extent), dtype=np.uint8)
        inside = tree[tuple(slice(n) for n in extent)]
        for axis in range(len(extent)):
            inside |= joined[..., axis].astype(np.uint8) << np.uint8(axis)
        return tree.reshape(-1)
