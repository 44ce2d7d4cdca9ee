"""Where the states of a model lie in a picture: on a map, in slices of one, or in rows."""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.cells.cells import Cells
from aggmaze.grid import Grid
from aggmaze.layouts.layout import Layout
from aggmaze.models.model import Model
from aggmaze.names import cells_of_names

#: What `Scene.index` holds where there is no state.
GAP = -1
# Names that are farther apart than this are no map.
_MOST_NAMED = 100_000


@dataclass(frozen=True, eq=False)
class Scene:
    """A picture's cells, top row first, and the state that each one shows.

    Parameters
    ----------
    index : ndarray of int32, shape (R, C)
        The state of each cell; `GAP` where there is none.
    wall_right, wall_below : ndarray of bool, shape (R, C)
        Whether a wall stands between a cell and the next one on its right, and the one below.
    blocked : ndarray of bool, shape (R, C)
        Cells of states that are never entered.
    goals : ndarray of int64
        States that are drawn as goals.
    pits : ndarray of int64
        States that are drawn as holes.
    start : int
        Where episodes are likeliest to begin.
    axes : tuple of int
        Lengths by which a state's number is read as coordinates, first axis slowest; empty where
        states have none.
    names : tuple of hashable, optional
        What the model calls its states.
    actions : tuple of str
        What its actions are called.
    is_map : bool
        Whether neighbours in the picture are neighbours in the model.
    """

    index: NDArray[np.int32]
    wall_right: NDArray[np.bool_]
    wall_below: NDArray[np.bool_]
    blocked: NDArray[np.bool_]
    goals: NDArray[np.int64]
    pits: NDArray[np.int64]
    start: int
    axes: tuple[int, ...]
    names: tuple[Hashable, ...] | None
    actions: tuple[str, ...]
    is_map: bool

    @property
    def num_states(self) -> int:
        """Number of states that the model lists."""
        return int(self.index.max()) + 1

    @functools.cached_property
    def has_walls(self) -> bool:
        """Whether a wall stands between any cells."""
        return bool(self.wall_right.any() or self.wall_below.any())

    @functools.cached_property
    def _cell_of(self) -> NDArray[np.int64]:
        shown = self.index >= 0
        cells = np.full(self.num_states, -1, dtype=np.int64)
        cells[self.index[shown]] = np.flatnonzero(shown)
        return cells

    def cells(self, states: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return row and column of states, shape (N, 2); of those that have none nothing."""
        kept = states[states < len(self._cell_of)]
        places = self._cell_of[kept]
        return np.stack(np.divmod(places[places >= 0], self.index.shape[1]), axis=-1)

    @property
    def caption(self) -> str:
        """What has to be said of a picture of slices; empty for others."""
        further = range(2, len(self.axes))
        if not further:
            return ""
        which = ", ".join(map(str, further))
        return f"slices along ax{'i' if len(further) == 1 else 'e'}s {which}, in reading order"

    def name(self, state: int) -> str:
        """Return what a state is called: its own name, its coordinates, or its number."""
        if self.names is not None:
            return str(self.names[state])
        if self.axes and state < math.prod(self.axes):
            point = np.unravel_index(state, self.axes)
            return f"({', '.join(str(int(part)) for part in point)})"
        return f"state {state}"


def scene_of(source: Any, model: Model) -> Scene:
    """Return how to draw the states of an environment, or of what else holds a model.

    Mazes and cells of up to two axes are a map; of more axes, slices along the first two stand side
    by side.  Gymnasium's toys on a rectangle, and models whose states are named by two integers,
    are maps too.  All others are rows of tiles in the order of the states.

    Parameters
    ----------
    source
        What `planners.as_model` takes.
    model : Model
        Its model.
    """
    bare = getattr(source, "unwrapped", source)
    count = model.num_listed_states
    layout = getattr(bare, "layout", None)
    cells = getattr(bare, "cells", None)
    pits = np.empty(0, dtype=np.int64)
    goals = np.flatnonzero(model.terminal[:count])
    walls: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None
    blocked: NDArray[np.bool_] | None = None
    axes: tuple[int, ...] = ()
    is_map = True
    if isinstance(layout, Layout):
        index, axes = _grid_index(layout.grid), layout.grid.shape
        walls = _walls(layout, index)
        blocked = (~layout.free())[np.maximum(index, 0)] & (index >= 0)
        goals = np.array([layout.goal])
        if layout.signs is not None:
            pits = np.flatnonzero(np.isin(layout.signs, [ord(sign) for sign in "HC"]))
            ends = layout.is_end() & ~np.isin(np.arange(count), pits)
            goals = np.flatnonzero(ends) if ends.any() else goals
    elif isinstance(cells, Cells) and cells.num_states == count:
        index, axes = _grid_index(cells.grid), cells.bins
    elif (shape := _toy_shape(bare, count)) is not None:
        index, axes = np.arange(count, dtype=np.int32).reshape(shape), shape
        desc = np.asarray(getattr(bare, "desc", np.empty(0)))
        if desc.shape == shape:
            signs = desc.astype("U1").reshape(-1)
            pits, goals = np.flatnonzero(signs == "H"), np.flatnonzero(signs == "G")
        elif hasattr(bare, "_cliff"):
            pits = np.flatnonzero(np.asarray(bare._cliff).reshape(-1))
    elif (named := _named_index(model.state_names)) is not None:
        index = named
    else:
        index, is_map = _tiles(count), False
    if blocked is None:
        blocked = np.zeros(index.shape, dtype=bool)
    if walls is None:
        walls = np.zeros(index.shape, dtype=bool), np.zeros(index.shape, dtype=bool)
    return Scene(
        index=np.ascontiguousarray(index, dtype=np.int32),
        wall_right=walls[0],
        wall_below=walls[1],
        blocked=blocked,
        goals=goals,
        pits=pits,
        start=int(np.argmax(model.initial[:count])),
        axes=tuple(int(length) for length in axes),
        names=model.state_names,
        actions=_action_names(source, model),
        is_map=is_map,
    )


def _action_names(source: Any, model: Model) -> tuple[str, ...]:
    if model.action_names is not None:
        return tuple(map(str, model.action_names))
    bare = getattr(source, "unwrapped", source)
    grid = getattr(bare, "grid", None)
    if isinstance(grid, Grid) and grid.num_actions == model.num_actions:
        return grid.action_names
    if callable(getattr(bare, "action_name", None)):
        return tuple(str(bare.action_name(action)) for action in range(model.num_actions))
    toy = {"FrozenLakeEnv": ("LEFT", "DOWN", "RIGHT", "UP")}
    toy["CliffWalkingEnv"] = ("UP", "RIGHT", "DOWN", "LEFT")
    found = toy.get(type(bare).__name__, ())
    if len(found) == model.num_actions:
        return found
    return tuple(f"action {action}" for action in range(model.num_actions))


def _grid_index(grid: Grid) -> NDArray[np.int32]:
    """Return the state of each cell, slices of more than two axes side by side."""
    states = np.arange(grid.num_states, dtype=np.int32)
    if grid.num_dims <= 2:
        image: NDArray[np.int32] = np.array(grid.to_image(states), dtype=np.int32)
        return image
    rest = grid.shape[2:]
    panels = [
        np.array(grid.to_image(states, through=(0, 0, *point)), dtype=np.int32)
        for point in np.ndindex(*rest)
    ]
    across = _panels_across(rest, grid.shape[0] / grid.shape[1])
    rows = math.ceil(len(panels) / across)
    height, width = panels[0].shape
    index = np.full((rows * (height + 1) - 1, across * (width + 1) - 1), GAP, dtype=np.int32)
    for place, panel in enumerate(panels):
        row, column = divmod(place, across)
        top, left = row * (height + 1), column * (width + 1)
        index[top : top + height, left : left + width] = panel
    return index


def _panels_across(rest: tuple[int, ...], aspect: float) -> int:
    """Return how many slices stand side by side, so that the picture is about square.

    Parameters
    ----------
    rest : tuple of int
        Lengths of the axes along which slices are cut.
    aspect : float
        Width of a slice over its height.
    """
    total = math.prod(rest)
    if len(rest) == 1:
        return max(1, min(total, math.ceil(math.sqrt(total / aspect))))
    # A row ends where an axis does.
    choices = [math.prod(rest[first:]) for first in range(len(rest) + 1)]
    return min(choices, key=lambda across: abs(math.log(across * aspect * across / total)))


def _walls(layout: Layout, index: NDArray[np.int32]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return where walls stand: on the right of cells, and below them."""
    known = np.maximum(index, 0)
    free = layout.free()[known] & (index >= 0)
    right, below = np.zeros(index.shape, dtype=bool), np.zeros(index.shape, dtype=bool)
    both = free[:, :-1] & free[:, 1:]
    right[:, :-1] = both & ~layout.passages[known, 0][:, :-1]
    if layout.grid.num_dims > 1:
        both = free[:-1] & free[1:]
        # What is drawn below is joined upwards.
        below[:-1] = both & ~layout.passages[known, 1][1:]
    return right, below


def _toy_shape(bare: Any, count: int) -> tuple[int, int] | None:
    """Return rows and columns of an environment of Gymnasium's that is a rectangle of states."""
    for found in (
        getattr(bare, "shape", None),
        (getattr(bare, "nrow", 0), getattr(bare, "ncol", 0)),
    ):
        if isinstance(found, tuple) and len(found) == 2 and math.prod(found) == count:
            return int(found[0]), int(found[1])
    return None


def _named_index(names: tuple[Hashable, ...] | None) -> NDArray[np.int32] | None:
    """Return a map of states that are named by two integers, x to the right and y upwards."""
    cells = cells_of_names(names, _MOST_NAMED)
    if cells is None or cells.shape[1] != 2:
        return None
    low = cells.min(axis=0)
    nx, ny = (cells.max(axis=0) - low + 1).tolist()
    index = np.full((ny, nx), GAP, dtype=np.int32)
    x, y = (cells - low).T
    index[ny - 1 - y, x] = np.arange(len(cells))
    return index


def _tiles(count: int) -> NDArray[np.int32]:
    """Return the states in rows of about equal length, from the upper left."""
    columns = math.ceil(math.sqrt(1.6 * count))
    rows = math.ceil(count / columns)
    index = np.full(rows * columns, GAP, dtype=np.int32)
    index[:count] = np.arange(count)
    return index.reshape(rows, columns)
