"""Grids of positions: the only owner of axis order, coordinates and moves."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_DIMENSIONS = 8
# Successors are stored as int32 in every table.
MAX_STATES = 2**31 - 1
# What 64 bits count with room for a step beyond either end.
_MOST_VAST_STATES = 2**62


@dataclass(frozen=True)
class Grid:
    """A box of positions in one to eight dimensions.

    State ``s`` has the coordinates ``(x, y, ...)`` with ``s = ravel_multi_index((x, y, ...),
    shape)``: the last axis runs fastest.  Action ``2 k`` moves by -1 and action ``2 k + 1`` by +1
    along axis ``k``; in two dimensions these are LEFT, RIGHT, DOWN, UP.  Position ``(0, ..., 0)``
    is drawn at the bottom left.

    Parameters
    ----------
    shape : sequence of int
        Number of positions along each axis, ``(nx, ny, ...)``, each at least 1.

    Raises
    ------
    ValueError
        If the shape has no axis or more than eight, or an axis without positions.
    TypeError
        If an entry of the shape is not an integer.
    """

    shape: tuple[int, ...]

    _most_states: ClassVar[int] = MAX_STATES
    _why_no_more: ClassVar[str] = (
        f"at most {MAX_STATES} fit; aggmaze.model_by_rows makes larger mazes block by block"
    )

    def __init__(self, shape: Iterable[int]) -> None:
        if not isinstance(shape, Iterable):
            raise TypeError(f"shape must be a sequence of integers such as (20, 20), got {shape!r}")
        given: Any = shape
        entries: Any = given if isinstance(given, str) else tuple(given)  # text is told whole
        try:
            sizes = tuple(operator.index(n) for n in entries)
        except TypeError:
            raise TypeError(f"shape must hold integers only, got {entries!r}") from None
        if not 1 <= len(sizes) <= MAX_DIMENSIONS:
            raise ValueError(
                f"shape must have 1 to {MAX_DIMENSIONS} axes, got {len(sizes)}: {entries!r}"
            )
        for axis, n in enumerate(sizes):
            if n < 1:
                raise ValueError(
                    f"shape must be at least 1 along every axis, got {n} on axis {axis} of {sizes}"
                )
        if (total := _product(sizes)) > self._most_states:
            raise ValueError(f"shape {sizes} has {total} positions, {self._why_no_more}")
        object.__setattr__(self, "shape", sizes)

    @property
    def num_dims(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @cached_property
    def num_states(self) -> int:
        """Number of positions."""
        return _product(self.shape)

    @property
    def num_actions(self) -> int:
        """Number of moves: two along each axis."""
        return 2 * self.num_dims

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Difference in state index of one step along each axis."""
        return tuple(_product(self.shape[axis + 1 :]) for axis in range(self.num_dims))

    @cached_property
    def action_names(self) -> tuple[str, ...]:
        """Names of the actions: LEFT, RIGHT, DOWN, UP in two dimensions, else x0-, x0+, ..."""
        if self.num_dims <= 2:
            return ("LEFT", "RIGHT", "DOWN", "UP")[: self.num_actions]
        return tuple(f"x{axis}{sign}" for axis in range(self.num_dims) for sign in "-+")

    @cached_property
    def directions(self) -> tuple[tuple[int, ...], ...]:
        """By how much each action moves along each axis, A tuples of D integers."""
        return tuple(
            tuple(sign if along == axis else 0 for along in range(self.num_dims))
            for axis in range(self.num_dims)
            for sign in (-1, 1)
        )

    def coords(self, state: ArrayLike) -> NDArray[np.int64]:
        """Return the coordinates of a state, or of an array of states along a new last axis.

        Raises
        ------
        ValueError
            If a state lies outside ``[0, num_states)``.
        """
        states = np.asarray(state)
        if not np.issubdtype(states.dtype, np.integer):
            raise TypeError(f"states must be integers, got dtype {states.dtype}")
        bad = (states < 0) | (states >= self.num_states)
        if bad.any():
            raise ValueError(
                f"state {states[bad].flat[0]} is not in [0, {self.num_states}), the states of a "
                f"grid {self.shape}"
            )
        return np.stack(np.unravel_index(states, self.shape), axis=-1).astype(np.int64)

    def state(self, coords: ArrayLike) -> int:
        """Return the state at the given coordinates, one integer an axis.

        Raises
        ------
        ValueError
            If there is not one coordinate an axis, or one lies outside the grid.
        """
        array = np.asarray(coords)
        if array.shape != (self.num_dims,) or not np.issubdtype(array.dtype, np.integer):
            raise ValueError(
                f"coords must be {self.num_dims} integers for a grid {self.shape}, got {coords!r}"
            )
        point = tuple(int(x) for x in array)
        for axis, (x, n) in enumerate(zip(point, self.shape, strict=True)):
            if not 0 <= x < n:
                raise ValueError(
                    f"coords {point} leave the grid {self.shape}: {x} on axis {axis} "
                    f"is not in [0, {n})"
                )
        return sum(x * stride for x, stride in zip(point, self.strides, strict=True))

    def neighbours(self) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Return where each move leads, and whether it stays on the grid.

        Returns
        -------
        successors : ndarray of int32, shape (S, 2 D)
            The state next to each state; the state itself where the move would leave the grid.
        on_grid : ndarray of bool, shape (S, 2 D)
        """
        moves = 2 * self.num_dims
        successors = np.empty((*self.shape, moves), dtype=np.int32)
        on_grid = np.ones((*self.shape, moves), dtype=bool)
        states = np.arange(self.num_states, dtype=np.int32).reshape(self.shape)
        for axis, stride in enumerate(self.strides):
            first, last = (self._face(axis, end) for end in (0, -1))
            for action, step, face in ((2 * axis, -stride, first), (2 * axis + 1, stride, last)):
                np.add(states, step, out=successors[..., action])
                successors[(*face, action)] = states[face]
                on_grid[(*face, action)] = False
        shape = (self.num_states, moves)
        return successors.reshape(shape), on_grid.reshape(shape)

    def to_image(
        self,
        values: ArrayLike,
        *,
        axes: tuple[int, int] = (0, 1),
        through: Sequence[int] | None = None,
    ) -> NDArray[np.generic]:
        """Lay per-state values out as rows for ``imshow``, top row first.

        Parameters
        ----------
        values : array_like, shape (S,) or (S, C)
            One value, or one vector such as a colour, a state.
        axes : pair of int
            The axes drawn to the right and upwards.  A one-dimensional grid is one row.
        through : sequence of int, optional
            Coordinates through which a grid of more than two dimensions is sliced; the origin by
            default.

        Returns
        -------
        ndarray, shape (ny, nx) or (ny, nx, C)
            ``to_image(values)[-1 - y, x]`` is the value at ``(x, y)``.
        """
        array = np.asarray(values)
        if array.ndim not in (1, 2) or len(array) != self.num_states:
            raise ValueError(
                f"values must have shape ({self.num_states},) or ({self.num_states}, C) for a grid "
                f"{self.shape}, got {array.shape}"
            )
        cells = array.reshape(*self.shape, *array.shape[1:])
        if self.num_dims == 1:
            return cells[np.newaxis]
        right, up = axes
        if right == up or not all(0 <= axis < self.num_dims for axis in axes):
            raise ValueError(f"axes must be two different axes of {self.num_dims}, got {axes!r}")
        point = self.coords(self.state(through if through is not None else (0,) * self.num_dims))
        index = tuple(slice(None) if axis in axes else int(x) for axis, x in enumerate(point))
        plane = cells[index]  # (first axis, second axis, ...) in the grid's order
        if right < up:
            plane = plane.swapaxes(0, 1)
        return plane[::-1]

    def _face(self, axis: int, end: int) -> tuple[slice | int, ...]:
        """Return the index of the positions at one end of an axis."""
        return (*(slice(None),) * axis, end, *(slice(None),) * (self.num_dims - axis - 1))


@dataclass(frozen=True, init=False)
class VastGrid(Grid):
    """A grid of as many positions as 64 bits count, 2**62 at most: too many for a table.

    Parameters
    ----------
    shape : sequence of int
        As of a `Grid`.
    """

    _most_states: ClassVar[int] = _MOST_VAST_STATES
    _why_no_more: ClassVar[str] = "at most 2**62 can be numbered"

    def neighbours(self) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Refuse: nobody holds a table of all positions."""
        raise TypeError(f"a grid {self.shape} made for blocks has no table of all neighbours")


@dataclass(frozen=True, init=False)
class KingGrid(Grid):
    """A grid in two dimensions on which one moves as a chess king does.

    The actions are those of a `Grid`, LEFT, RIGHT, DOWN, UP, then LEFT_DOWN, LEFT_UP, RIGHT_DOWN,
    RIGHT_UP, and STAY where there is one.

    Parameters
    ----------
    shape : pair of int
        Number of positions along each axis, ``(nx, ny)``, each at least 1.
    stays : bool
        Whether there is an action that does not move.
    """

    stays: bool = False

    def __init__(self, shape: Iterable[int], *, stays: bool = False) -> None:
        super().__init__(shape)
        if self.num_dims != 2:
            raise ValueError(f"a king moves in 2 dimensions, got shape {self.shape}")
        object.__setattr__(self, "stays", bool(stays))

    @property
    def num_actions(self) -> int:
        """Number of moves: 8, and one more that stays where there is one."""
        return 8 + self.stays

    @cached_property
    def action_names(self) -> tuple[str, ...]:
        """Names of the actions."""
        diagonal = (f"{across}_{up}" for across in ("LEFT", "RIGHT") for up in ("DOWN", "UP"))
        return ("LEFT", "RIGHT", "DOWN", "UP", *diagonal, "STAY")[: self.num_actions]

    @cached_property
    def directions(self) -> tuple[tuple[int, ...], ...]:
        """By how much each action moves along each axis, A pairs of integers."""
        diagonal = [(dx, dy) for dx in (-1, 1) for dy in (-1, 1)]
        return ((-1, 0), (1, 0), (0, -1), (0, 1), *diagonal, (0, 0))[: self.num_actions]


def _product(sizes: Iterable[int]) -> int:
    total = 1
    for n in sizes:
        total *= n
    return total
