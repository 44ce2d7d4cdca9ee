"""How the states of a model are drawn: on a map, in slices of one, as a graph, or as bars."""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from aggmaze.grid import Grid
from aggmaze.layouts.layout import Layout
from aggmaze.models.model import Model
from planners.boards import Board, board_of
from planners.graphs import Graph, graph_of

#: What `Scene.index` holds where there is no state.
GAP = -1
# Positions whose places are written out as names.
_MOST_NAMED = 5000
# Share of positions without a state that slices may have.
_MOST_MISSING = 0.75


@dataclass(frozen=True, eq=False)
class Scene:
    """Where states are drawn: on a map, the cells, top row first, and the state of each.

    Parameters
    ----------
    num_states : int
        That are drawn: the first ones of the model.
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
    sliced : tuple of str
        What the axes are called along which slices of a map are cut.
    form : {"map", "graph", "bars"}
    graph : Graph, optional
        Where states are, and what may follow, where it is a graph.
    """

    num_states: int
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
    sliced: tuple[str, ...]
    form: Literal["map", "graph", "bars"]
    graph: Graph | None

    @property
    def is_map(self) -> bool:
        """Whether neighbours in the picture are neighbours in the model."""
        return self.form == "map"

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
        if not self.sliced:
            return ""
        # Units are long, and say nothing where there are no numbers.
        which = ", ".join(name.partition(" (")[0] for name in self.sliced)
        if which[0].isdigit():
            which = f"ax{'i' if len(self.sliced) == 1 else 'e'}s {which}"
        return f"slices along {which}, in reading order"

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

    What has a board of up to two axes is a map; of more axes, slices along the first two stand side
    by side.  Other models are a graph where they are small, and bars in the order of their values.

    Parameters
    ----------
    source
        What `planners.as_model` takes.
    model : Model
        Its model.
    """
    board = board_of(source, model)
    if board is not None and board.grid.num_dims > 2 and board.missing().mean() > _MOST_MISSING:
        board = None  # names that are far apart: hardly anything of a map would be states
    known: dict[str, Any] = {
        "start": int(np.argmax(model.initial[: model.num_listed_states])),
        "names": model.state_names,
        "actions": _action_names(source, model),
    }
    if board is None:
        return _without_a_map(model, known)
    places = _grid_index(board.grid)
    shown = np.maximum(places, 0)
    states = np.arange(board.grid.num_states) if board.states is None else board.states
    index = np.where(places >= 0, states[shown], GAP).astype(np.int32)
    none = np.zeros(index.shape, dtype=bool)
    walls, blocked = (none, none), none
    pits = np.empty(0, dtype=np.int64)
    goals = np.flatnonzero(model.terminal[: model.num_listed_states])
    layout = board.layout
    if layout is not None:
        walls = _walls(layout, places)
        blocked = (~layout.free())[shown] & (places >= 0)
        ends = np.arange(layout.grid.num_states) == layout.goal
        if layout.signs is not None:
            holes = np.isin(layout.signs, [ord(sign) for sign in "HC"])
            pits = states[holes]
            other = layout.is_end() & ~holes
            ends = other if other.any() else ends
        goals = states[ends]
    if known["names"] is None and board.states is not None and index.size <= _MOST_NAMED:
        known["names"] = _names_on(board)
    return Scene(
        num_states=int(index.max()) + 1,
        index=np.ascontiguousarray(index),
        wall_right=walls[0],
        wall_below=walls[1],
        blocked=blocked,
        goals=goals[goals >= 0],
        pits=pits[pits >= 0],
        axes=board.grid.shape if board.states is None else (),
        sliced=tuple(board.axis_name(axis) for axis in range(2, board.grid.num_dims))
        if board.axis_names is not None
        else tuple(str(axis) for axis in range(2, board.grid.num_dims)),
        form="map",
        graph=None,
        **known,
    )


def _without_a_map(model: Model, known: dict[str, Any]) -> Scene:
    """Return how to draw states that lie nowhere."""
    count = model.num_listed_states
    graph = graph_of(model)
    cells = np.full((1, 1), GAP, dtype=np.int32)
    none = np.zeros((1, 1), dtype=bool)
    return Scene(
        num_states=count,
        index=cells,
        wall_right=none,
        wall_below=none,
        blocked=none,
        goals=np.flatnonzero(model.terminal[:count]),
        pits=np.empty(0, dtype=np.int64),
        axes=(),
        sliced=(),
        form="bars" if graph is None else "graph",
        graph=graph,
        **known,
    )


def _names_on(board: Board) -> tuple[str, ...]:
    """Return where each state is on a board, in words."""
    points = board.positions(np.arange(board.num_states))
    return tuple(
        f"state {state}"
        if np.isnan(point[0])
        else ", ".join(board.coordinate(axis, int(at)) for axis, at in enumerate(point))
        for state, point in enumerate(points.tolist())
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
