"""Observations of states: one formula each, for one environment and for many."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from aggmaze.checks import check_integer
from aggmaze.envs.layout_env import LayoutEnv
from aggmaze.grid import Grid
from aggmaze.layouts.layout import Layout
from aggmaze.memory import check_memory
from aggmaze.rendering.colors import BACKGROUND
from aggmaze.rendering.raster import Raster

#: What Stable-Baselines3's convolutional network asks of each side of an image.
SMALLEST_IMAGE = 36
# What pictures that are remembered may take, and what one takes beside its colours.
_PATCHES_BYTES, _BYTES_A_PATCH = 2**26, 600
# Larger pictures are drawn each time: it takes little longer than to copy one, which must be.
_LARGEST_REMEMBERED = 2**20
# Signs of a grid world's cells that views have a channel for: none, and goals.
_SEEN = (0, ord("G"))
#: What the last axis of a local view tells of a position, each 0 or 1, the height between them.
LOCAL_VIEW_CHANNELS = ("free", "left", "right", "down", "up", "goal", "height")


class Encoder(Protocol):
    """Observations of the states of an environment: a single one, possibly under wrappers."""

    def following(self, env: Any, *, num_encoders: int = 1) -> Self:
        """Return the encoder for the environment as it is now: another maze may need another.

        It shares what memory there is for what encoders remember with so many, itself included.

        Parameters
        ----------
        env : gymnasium.Env
        num_encoders : int
            How many share the memory.
        """
        ...

    @property
    def space(self) -> spaces.Space[Any]:
        """The space of one observation."""
        ...

    def encode(self, states: NDArray[np.int64]) -> NDArray[Any]:
        """Return an observation of each state, shape (N, ...), in a new array."""
        ...

    def encode_one(self, state: int) -> NDArray[Any]:
        """Return the observation of one state, in a new array: in about the time of a copy."""
        ...


class CoordinateEncoder:
    """Coordinates of states on a grid.

    Parameters
    ----------
    grid : Grid
        States beyond it, such as having failed, are seen at its last position.
    normalized : bool
        Whether each axis runs from -1 to 1, or counts positions from 0.
    """

    def __init__(self, grid: Grid, *, normalized: bool) -> None:
        lengths = np.array(grid.shape)
        self._last_state, self._line_length = grid.num_states - 1, grid.shape[-1]
        # Of the first position of each line along the last axis, and of each place on a line: all
        # coordinates take no more than that.
        lines = grid.coords(np.arange(0, grid.num_states, self._line_length))
        places = np.arange(self._line_length)
        if normalized:
            spans, middle = np.maximum(lengths - 1, 1), np.where(lengths > 1, 1.0, 0.0)
            lines = (2.0 * lines / spans - middle).astype(np.float32)
            places = (2.0 * places / spans[-1] - middle[-1]).astype(np.float32)
            self.space: spaces.Space[Any] = spaces.Box(-1.0, 1.0, (grid.num_dims,), np.float32)
        else:
            self.space = spaces.MultiDiscrete(lengths)
        self._lines, self._places = lines, places

    @classmethod
    def of(cls, env: Any, *, normalized: bool) -> Self:
        """Return the encoder for a maze or a DiscretizedCartPole."""
        return cls(grid_of(env), normalized=normalized)

    def following(self, env: Any, *, num_encoders: int = 1) -> Self:
        """Return the encoder itself: the grid stays."""
        return self

    def encode(self, states: NDArray[np.int64]) -> NDArray[Any]:
        """Return coordinates, shape (N, D)."""
        lines, places = np.divmod(np.minimum(states, self._last_state), self._line_length)
        coords = self._lines[lines]
        coords[:, -1] = self._places[places]
        return coords

    def encode_one(self, state: int) -> NDArray[Any]:
        """Return coordinates, shape (D,)."""
        line, place = divmod(min(state, self._last_state), self._line_length)
        coords = self._lines[line].copy()
        coords[-1] = self._places[place]
        return coords


class OneHotEncoder:
    """A vector of zeros with a one at the state.

    Parameters
    ----------
    num_states : int
    """

    def __init__(self, num_states: int) -> None:
        check_memory(8 * num_states, f"one-hot observations of {num_states:,} states")
        self.space = spaces.Box(0.0, 1.0, (num_states,), np.float32)

    @classmethod
    def of(cls, env: Any) -> Self:
        """Return the encoder for an environment whose observations are ``Discrete``."""
        return cls(int(env.observation_space.n))

    def following(self, env: Any, *, num_encoders: int = 1) -> Self:
        """Return the encoder itself: the number of states stays."""
        return self

    def encode(self, states: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return vectors, shape (N, S)."""
        (num_states,) = self.space.shape
        hot = np.zeros((len(states), num_states), dtype=np.float32)
        hot[np.arange(len(states)), states] = 1.0
        return hot

    def encode_one(self, state: int) -> NDArray[np.float32]:
        """Return a vector, shape (S,)."""
        hot = np.zeros(self.space.shape, dtype=np.float32)
        hot[state] = 1.0
        return hot


class ImageEncoder:
    """Pictures of a maze with the agent in it.

    Parameters
    ----------
    layout : Layout
    size : int
        Length in pixels that the longer side comes close to.
    sides : pair of int, optional
        Height and width that the pictures must have; they are framed to it.
    room : int
        Bytes that remembered pictures may take.
    """

    def __init__(
        self,
        layout: Layout,
        size: int,
        sides: Sequence[int] | None = None,
        room: int = _PATCHES_BYTES,
    ) -> None:
        self._layout, self._size = layout, check_integer("size", size, least=SMALLEST_IMAGE)
        self._raster = Raster(layout, self._size)
        height, width, _ = self._raster.shape
        if sides is None:
            # Mazes of one shape differ by a border where one of them has no walls at all.
            sides = [max(SMALLEST_IMAGE, side + 4) for side in (height, width)]
        self._place = np.s_[
            (sides[0] - height) // 2 : (sides[0] - height) // 2 + height,
            (sides[1] - width) // 2 : (sides[1] - width) // 2 + width,
        ]
        self.space = spaces.Box(0, 255, (*sides, 3), np.uint8)
        # Of each state that was seen, in what rectangle its picture differs from the empty one.
        self._patches: dict[int, tuple[tuple[slice, slice], NDArray[np.uint8]]] = {}
        self._room = self._whole_room = room

    @classmethod
    def of(cls, env: Any, *, size: int) -> Self:
        """Return the encoder for a maze."""
        return cls(layout_of(env), size)

    def following(self, env: Any, *, num_encoders: int = 1) -> Self:
        """Return the encoder for the present maze, pictures of the same shape."""
        layout = layout_of(env)
        if layout is self._layout:
            return self
        room = _PATCHES_BYTES // num_encoders
        return type(self)(layout, self._size, self.space.shape[:2], room)

    def encode(self, states: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return pictures, shape (N, H, W, 3)."""
        pictures = np.empty((len(states), *self.space.shape), dtype=np.uint8)
        for picture, state in zip(pictures, states.tolist(), strict=True):
            self._write(state, picture)
        return pictures

    def encode_one(self, state: int) -> NDArray[np.uint8]:
        """Return a picture, shape (H, W, 3)."""
        picture = np.empty(self.space.shape, dtype=np.uint8)
        self._write(state, picture)
        return picture

    def _write(self, state: int, picture: NDArray[np.uint8]) -> None:
        """Write the picture of a state."""
        picture[:] = self._empty
        if state in self._patches:
            where, colors = self._patches[state]
            picture[where] = colors
            return
        picture[self._place] = self._raster.frame(state)
        if picture.nbytes <= _LARGEST_REMEMBERED:
            self._remember(state, picture)

    @cached_property
    def _empty(self) -> NDArray[np.uint8]:
        """The picture without the agent, which is made where one with it is asked for."""
        picture = np.empty(self.space.shape, dtype=np.uint8)
        picture[:] = BACKGROUND
        picture[self._place] = self._raster.frame(None)
        return picture

    def _remember(self, state: int, picture: NDArray[np.uint8]) -> None:
        """Keep in what a picture differs from the empty one, and forget all where they are many."""
        rows, columns, _ = np.unravel_index(np.flatnonzero(picture != self._empty), picture.shape)
        where = np.s_[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        colors = picture[where].copy()
        size = colors.nbytes + _BYTES_A_PATCH
        if size > self._room:
            self._patches, self._room = {}, self._whole_room
        self._patches[state] = where, colors
        self._room -= size


class LocalViewEncoder:
    """What lies around the agent.

    Parameters
    ----------
    layout : Layout
        Of two dimensions.
    radius : int
        Positions seen in each direction.
    """

    def __init__(self, layout: Layout, radius: int) -> None:
        grid = layout.grid
        if grid.num_dims != 2:
            raise ValueError(
                f"a local view is a square: it needs a maze of 2 dimensions, not {grid.num_dims}"
            )
        goals = layout.is_end()
        if layout.signs is not None and (other := layout.signs[~np.isin(layout.signs, _SEEN)]).size:
            raise ValueError(
                "a local view shows walls and goals, and this maze has cells of other signs, such "
                f"as {chr(other[0])!r}; ImageObservation shows them"
            )
        self._layout = layout
        self._radius = check_integer("radius", radius, least=1)
        side, channels = 2 * self._radius + 1, len(LOCAL_VIEW_CHANNELS)
        nx, ny = grid.shape
        padded = (ny + side - 1, nx + side - 1, channels)
        check_memory(4 * int(np.prod(padded)), f"local views of radius {radius}")
        features = np.zeros((grid.num_states, channels), dtype=np.float32)
        features[:, 0] = layout.free()
        features[:, 1:5] = layout.available()
        features[goals, 5] = 1.0
        if layout.heights is not None:
            features[:, 6] = np.where(layout.free(), layout.heights, 0.0)
        self._num_rows, self._side = ny, side
        # Rows from the top, so that a view is a block of it.
        self._padded = np.zeros(padded, dtype=np.float32)
        self._padded[radius : radius + ny, radius : radius + nx] = grid.to_image(features)
        self.space = spaces.Box(0.0, 1.0, (side, side, channels), np.float32)

    @classmethod
    def of(cls, env: Any, *, radius: int) -> Self:
        """Return the encoder for a maze."""
        return cls(layout_of(env), radius)

    def following(self, env: Any, *, num_encoders: int = 1) -> Self:
        """Return the encoder for the present maze."""
        layout = layout_of(env)
        return self if layout is self._layout else type(self)(layout, self._radius)

    def encode(self, states: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return views, shape (N, 2 r + 1, 2 r + 1, 7), rows from above, columns from the left."""
        columns, rows = self._corner(states)
        offsets = np.arange(self._side)
        return self._padded[
            rows[:, np.newaxis, np.newaxis] + offsets[:, np.newaxis],
            columns[:, np.newaxis, np.newaxis] + offsets,
        ]

    def encode_one(self, state: int) -> NDArray[np.float32]:
        """Return a view, shape (2 r + 1, 2 r + 1, 7)."""
        column, row = self._corner(state)
        return self._padded[row : row + self._side, column : column + self._side].copy()

    def _corner(self, states: Any) -> tuple[Any, Any]:
        """Return the first column and the first row of the views of a state, or of many."""
        columns, heights = divmod(states, self._num_rows)
        return columns, self._num_rows - 1 - heights


def grid_of(env: Any) -> Grid:
    """Return the grid that the states of an environment lie on.

    Raises
    ------
    TypeError
        If there is none.
    """
    if isinstance(env.unwrapped, LayoutEnv):
        return env.unwrapped.grid
    if env.has_wrapper_attr("cells"):
        grid: Grid = env.get_wrapper_attr("cells").grid
        return grid
    raise TypeError(f"{env} has no grid: its states have no coordinates")


def layout_of(env: Any) -> Layout:
    """Return the layout of a maze, as it is now.

    Raises
    ------
    TypeError
        If the environment is no maze.
    """
    if not isinstance(env.unwrapped, LayoutEnv):
        raise TypeError(f"{env} is no maze: it has no layout to be seen")
    return env.unwrapped.layout
