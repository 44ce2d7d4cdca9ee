"""Mazes by rows: any block of cells and their moves, made alone by the rule of the maze.

No array here is over all cells, so a maze may have as many as 64 bits count.  One of a few million
cells that is made so is the model of the environment with the same arguments, bit for bit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.arrays import lock, pieces
from aggmaze.checks import is_real
from aggmaze.grid import Grid, VastGrid
from aggmaze.layouts.height_rules import HeightRule
from aggmaze.layouts.layout import position
from aggmaze.layouts.passage_rules import PassageRule, unpacked
from aggmaze.layouts.rule import WholeOnlyError, sizes_of
from aggmaze.memory import check_memory
from aggmaze.models.base import check_block
from aggmaze.models.moves import MoveMDP
from aggmaze.models.row_models import MoveBlock, digest_of
from aggmaze.recipes import (
    CostTerms,
    MazeOptions,
    StandardRecipe,
    TerrainRecipe,
    start_distribution,
    start_state,
)

# Changes with any change of what the rules make.
_VERSION = "aggmaze maze by rows 1"
# Peak while a whole model is made, of successors, costs and what checks them: measured.
_BYTES_A_MOVE = 21


class MazeRows:
    """A maze of any size, made cell by cell: a `aggmaze.models.row_models.MoveRowModel`.

    Parameters
    ----------
    shape : sequence of int
        Number of cells along each axis; 2**62 cells at most.
    options : MazeOptions
        Its recipe must be one that can tell any block of cells alone.

    Raises
    ------
    ValueError
        If the recipe makes mazes as a whole only, the start or the goal is not on the grid, or
        there are too many cells.
    """

    def __init__(self, shape: Iterable[int], options: MazeOptions) -> None:
        self.grid = VastGrid(shape)
        self._options = options
        self.goal = 0 if options.goal is None else position("goal", self.grid, options.goal)
        #: The state where every episode starts; None where that is drawn from all but the goal.
        self.start = start_state(self.grid, self.goal, options.start)
        rng = np.random.default_rng(options.layout_seed)
        self._walls: PassageRule | None = None
        self._terrain: HeightRule | None = None
        if isinstance(options.recipe, StandardRecipe):
            self._walls = options.recipe.passage_rule(self.grid, rng)
        elif isinstance(options.recipe, TerrainRecipe):
            self._terrain = options.recipe.height_rule(self.grid, rng)
        else:
            raise WholeOnlyError(f"{options.recipe!r} makes mazes as a whole only")

    def __reduce__(self) -> tuple[type[MazeRows], tuple[tuple[int, ...], MazeOptions]]:
        return MazeRows, (self.grid.shape, self._options)

    def __repr__(self) -> str:
        return f"MazeRows({self.grid!r}, {self._options.recipe!r}, p={self.p:g})"

    @property
    def num_states(self) -> int:
        """Number of states S, one a cell."""
        return self.grid.num_states

    @property
    def num_actions(self) -> int:
        """Number of actions, two along each axis."""
        return self.grid.num_actions

    @property
    def p(self) -> float:
        """Probability that the chosen move happens."""
        return float(self._options.p)

    @property
    def terms(self) -> CostTerms:
        """What prices a move, before ``cost_scale``."""
        return self._options.recipe.terms

    @property
    def cost_scale(self) -> float:
        """Factor of every cost."""
        return float(self._options.cost_scale)

    @property
    def has_heights(self) -> bool:
        """Whether it is a terrain, which has heights and no walls, rather than a maze of walls."""
        return self._terrain is not None

    @cached_property
    def key(self) -> str:
        """Names the model: a digest of its arguments, but for the start."""
        asked = self._options
        arguments = {
            "shape": self.grid.shape,
            "recipe": type(asked.recipe).__name__,
            **asdict(asked.recipe),  # type: ignore[call-overload]
            "layout_seed": int(asked.layout_seed),
            "p": asked.p,
            "goal": self.goal,
            "cost_scale": asked.cost_scale,
        }
        # 1 and 1.0 are the same cost, and of numbers beyond 2**53 none is one.
        costs = ("p", "cost_scale", "step_cost", "goal_reward", "loops", "smoothness")
        for name in costs:
            if is_real(arguments.get(name)):
                arguments[name] = float(arguments[name])
        return digest_of(f"{_VERSION} {json.dumps(arguments, sort_keys=True)}")

    def passages(self, lo: int, hi: int) -> NDArray[np.bool_]:
        """Return whether cells and their neighbours at +1 along each axis are joined.

        Parameters
        ----------
        lo, hi : int
            Of the states ``lo`` to ``hi - 1``.

        Returns
        -------
        ndarray of bool, shape (hi - lo, D)
        """
        check_block(lo, hi, self.num_states, name="passages")
        if self._walls is None:
            return self._successors(lo, hi)[:, 1::2] != np.arange(lo, hi)[:, np.newaxis]
        return unpacked(self.passage_bits(lo, hi), self.grid.num_dims)

    def passage_bits(self, lo: int, hi: int) -> NDArray[np.uint8]:
        """Return the `passages` of a maze of walls, a byte a cell: bit k for axis k.

        Parameters
        ----------
        lo, hi : int

        Returns
        -------
        ndarray of uint8, shape (hi - lo,)

        Raises
        ------
        ValueError
            If they are not cells of the maze, or it has no walls.
        """
        check_block(lo, hi, self.num_states, name="passage_bits")
        if self._walls is None:
            raise ValueError("a terrain has no walls")
        return self._walls.passages(lo, hi)

    def heights(self, lo: int, hi: int) -> NDArray[np.float64]:
        """Return the heights of the cells ``lo`` to ``hi - 1`` of a terrain, shape (hi - lo,).

        Parameters
        ----------
        lo, hi : int

        Raises
        ------
        ValueError
            If they are not cells of the maze, or it has no heights.
        """
        check_block(lo, hi, self.num_states, name="heights")
        if self._terrain is None:
            raise ValueError("a maze of walls has no heights")
        return self._terrain.heights(lo, hi)

    def moves(self, lo: int, hi: int) -> MoveBlock:
        """Return the moves of the states ``lo`` to ``hi - 1``.

        Parameters
        ----------
        lo, hi : int
            At least one state.

        Raises
        ------
        ValueError
            If they are not states of the maze.
        """
        check_block(lo, hi, self.num_states, name="moves")
        asked = self._options
        successors = self._successors(lo, hi)
        into_goal = np.nonzero(successors == self.goal)
        costs = asked.recipe.prices(self._climbs(lo, hi, successors), into_goal)
        if asked.cost_scale != 1.0:
            costs *= float(asked.cost_scale)
        costs[~self._available(lo, hi, successors)] = np.inf
        if lo <= self.goal < hi:
            costs[self.goal - lo] = np.inf
        return MoveBlock(successors, costs)

    def to_model(self) -> MoveMDP:
        """Return the whole model, as the environment with the same arguments has it.

        Raises
        ------
        ValueError
            If a table cannot have so many states.
        MemoryError
            If it takes more memory than is available.
        """
        grid, asked = Grid(self.grid.shape), self._options
        check_memory(
            _BYTES_A_MOVE * grid.num_states * grid.num_actions,
            f"whole mazes of {grid.num_states:,} positions",
        )
        shape = grid.num_states, grid.num_actions
        successors, costs = np.empty(shape, dtype=np.int32), np.empty(shape)
        for piece in pieces(grid.num_states):
            block = self.moves(piece.start, min(piece.stop, grid.num_states))
            successors[piece], costs[piece] = block.successors, block.costs
        initial = start_distribution(grid, self.goal, None, asked.start)
        return MoveMDP(lock(successors), lock(costs), p=self.p, initial=lock(initial))

    def _successors(self, lo: int, hi: int) -> NDArray[np.int64]:
        from aggmaze.layouts.passage_kernels import list_moves  # which takes long to import

        successors = np.empty((hi - lo, self.num_actions), dtype=np.int64)
        list_moves(*sizes_of(self.grid), lo, successors)
        return successors

    def _climbs(self, lo: int, hi: int, successors: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how much higher each move leads, shape (B, 2 D); anything where none can."""
        climbs = np.empty(successors.shape)
        if self._terrain is None:
            return climbs
        offsets = [sign * stride for stride in self.grid.strides for sign in (-1, 1)]
        here, *there = _shifted(self._terrain.heights, (0, *offsets), lo, hi, self.num_states)
        for move, heights in enumerate(there):
            np.subtract(heights, here, out=climbs[:, move])
        return climbs

    def _available(self, lo: int, hi: int, successors: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which moves stay on the grid and pass no wall, shape (B, 2 D)."""
        if self._walls is None:
            return successors != np.arange(lo, hi)[:, np.newaxis]
        strides = self.grid.strides
        shifted = _shifted(
            self._walls.passages, (0, *(-stride for stride in strides)), lo, hi, self.num_states
        )
        available = np.empty(successors.shape, dtype=bool)
        for axis in range(self.grid.num_dims):
            # A cell at the end of an axis has no passage further along it.
            available[:, 2 * axis] = shifted[1 + axis] >> axis & 1
            available[:, 2 * axis + 1] = shifted[0] >> axis & 1
        return available


def _shifted(
    read: Callable[[int, int], NDArray[Any]],
    offsets: Iterable[int],
    lo: int,
    hi: int,
    num_states: int,
) -> list[NDArray[Any]]:
    """Return what is told of the states at some offsets from those of a block, 0 where none is.

    Parameters
    ----------
    read : callable
        Tells of the states from one number to another; asked for each at most once.
    offsets : iterable of int
    lo, hi, num_states : int
    """
    offsets = tuple(offsets)
    asked = sorted((max(0, lo + d), min(num_states, hi + d)) for d in offsets)
    spans: list[tuple[int, int]] = []
    for first, last in asked:
        if first >= last:
            continue
        if spans and first <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(last, spans[-1][1])
        else:
            spans.append((first, last))
    told = [read(first, last) for first, last in spans]
    found = []
    for offset in offsets:
        first, last = max(0, lo + offset), min(num_states, hi + offset)
        around = np.zeros(hi - lo, dtype=told[0].dtype)
        for (start, stop), part in zip(spans, told, strict=True):
            if start <= first < last <= stop:
                around[first - lo - offset : last - lo - offset] = part[
                    first - start : last - start
                ]
        found.append(around)
    return found
