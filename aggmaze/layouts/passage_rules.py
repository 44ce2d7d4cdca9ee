"""Spanning trees whose passages are told by a rule, cell by cell: any block of them alone.

A rule is made from a grid of any size and the first 64 bits that a generator draws, so that a maze
that is made whole and one that is made by blocks are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_share
from aggmaze.grid import Grid
from aggmaze.layouts.block_trees import BlockTrees
from aggmaze.layouts.rule import drawn_key, key_of_stream, sizes_of


class PassageRule(Protocol):
    """The passages of a grid, any block of cells alone."""

    def passages(self, lo: int, hi: int) -> NDArray[np.uint8]:
        """Return the passages of the cells ``lo`` to ``hi - 1``, shape (hi - lo,).

        Bit k of each says whether the cell and its neighbour at +1 along axis k are joined.

        Parameters
        ----------
        lo, hi : int
            Numbers of cells in the grid.
        """


# Which part of what is random a stream of random numbers is for.
_TREE, _LOOPS = range(2)


@dataclass(frozen=True)
class BinaryTree:
    """Every cell but the origin opens a passage to one of the cells before it.

    Which axis it goes along is drawn for each cell, among those on which it is not at the edge.
    All ways lead down to the origin, the shortest that there are, and along each edge of the grid
    that has only one axis left there is a corridor.

    Parameters
    ----------
    grid : Grid
    key : np.uint64
    """

    grid: Grid
    key: np.uint64

    def passages(self, lo: int, hi: int) -> NDArray[np.uint8]:
        """Return the passages of the cells ``lo`` to ``hi - 1``, as `PassageRule.passages` says.

        Parameters
        ----------
        lo, hi : int
        """
        from aggmaze.layouts.passage_kernels import binary_tree

        bits = np.empty(hi - lo, dtype=np.uint8)
        binary_tree(key_of_stream(self.key, _TREE), *sizes_of(self.grid), lo, bits)
        return bits


@dataclass(frozen=True)
class OpenedWalls:
    """The passages of another rule, and others beside: each wall is opened with the same chance.

    Parameters
    ----------
    rule : PassageRule
    grid : Grid
    key : np.uint64
    share : float
        In [0, 1]: the chance, and so the share of walls that is opened of very many.
    """

    rule: PassageRule
    grid: Grid
    key: np.uint64
    share: float

    def passages(self, lo: int, hi: int) -> NDArray[np.uint8]:
        """Return the passages of the cells ``lo`` to ``hi - 1``, as `PassageRule.passages` says.

        Parameters
        ----------
        lo, hi : int
        """
        from aggmaze.layouts.passage_kernels import open_walls

        bits = self.rule.passages(lo, hi)
        shape, _ = sizes_of(self.grid)
        open_walls(key_of_stream(self.key, _LOOPS), float(self.share), shape, lo, bits)
        return bits


#: Generators of mazes that are made by a rule.
PASSAGE_RULES: dict[str, Callable[[Grid, np.uint64], PassageRule]] = {
    "binary_tree": BinaryTree,
    "blocks": BlockTrees,
}


def passage_rule(grid: Grid, generator: str, loops: float, rng: np.random.Generator) -> PassageRule:
    """Return the rule of a maze.

    Parameters
    ----------
    grid : Grid
    generator : str
        One of `PASSAGE_RULES`.
    loops : float
        Share of the walls that are opened, each by a draw of its own.
    rng : numpy.random.Generator
        Draws the key.
    """
    check_share("loops", loops)
    key = drawn_key(rng)
    rule = PASSAGE_RULES[generator](grid, key)
    return OpenedWalls(rule, grid, key, loops) if loops else rule


def unpacked(bits: NDArray[np.uint8], num_dims: int) -> NDArray[np.bool_]:
    """Return passages as in `aggmaze.layouts.layout.Layout`, shape (B, D).

    Parameters
    ----------
    bits : ndarray of uint8, shape (B,)
        As a rule tells them.
    num_dims : int
    """
    planes = np.arange(num_dims, dtype=np.uint8)
    return (bits[:, np.newaxis] >> planes & np.uint8(1)).astype(bool)
