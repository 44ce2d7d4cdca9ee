"""Where states are drawn: the positions of a maze, of Gymnasium's grids, of cells, and names.

A `Board` is a grid whose positions hold states.  Mazes have one, and whatever else can be laid out:
Gymnasium's toy-text environments, tables whose states are named by tuples of integers, continuous
control in cells.  Other models have none, and are drawn as bars or as graphs.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from aggmaze.cells.cells import Cells
from aggmaze.cells.discretize import Discretization
from aggmaze.cells.interpolation import Corners
from aggmaze.env_model import NoModelError
from aggmaze.grid import Grid
from aggmaze.layouts.layout import Layout
from aggmaze.models.model import Model, with_table
from aggmaze.models.moves import MoveMDP
from aggmaze.names import cells_of_names
from planners.adapters import as_model
from planners.maps import MOST_POSITIONS, toy_map

# Beyond this many states nobody looks where actions lead.
_MOST_TRIED = 200_000
# An action that moves by less than this, on average, is not called a move.
_LEAST_MOVE = 0.1
_UNITS = {
    "CartPole": {"position": "m", "velocity": "m/s"},
    "Acrobot": {"velocity 1": "rad/s", "velocity 2": "rad/s"},
}
_ANGLES = {"angle": "rad", "angle 1": "rad", "angle 2": "rad", "angular velocity": "rad/s"}


@dataclass(frozen=True, eq=False)
class Board:
    """A grid whose positions hold states.

    Parameters
    ----------
    grid : Grid
        Of the positions that are drawn, P of them.
    num_states : int
        How many states values are given for, S.
    layout : Layout, optional
        Walls, heights, signs and goal on that grid.
    states : ndarray of int, shape (P,), optional
        The state at each position, -1 where there is none; None where position s holds state s.
    axis_names : tuple of str, optional
        What axes are called, with units; otherwise "x (cells)" and "y (cells)", or "axis 0 (cells)"
        and so on of more than two.
    origin, step : tuple of float, optional
        The number at the middle of the first position along each axis, and from one to the next.
    coordinates : dict of int to tuple of str
        What the positions along an axis are called, where they have names.
    directions : ndarray of float, shape (A, D), optional
        By how much each action moves along each axis; None where that is not known.
    action_names : tuple of str
    plane : pair of int
        The axes drawn to the right and upwards unless others are asked for.
    along : tuple of int
        The axes along which there is a panel for each position.
    through : tuple of int
        The point through which a plane is cut.
    written : bool
        Whether values and names of actions are written in the cells, where there are few.
    """

    grid: Grid
    num_states: int
    layout: Layout | None
    states: NDArray[np.int64] | None
    axis_names: tuple[str, ...] | None
    origin: tuple[float, ...]
    step: tuple[float, ...]
    coordinates: dict[int, tuple[str, ...]]
    directions: NDArray[np.float64] | None
    action_names: tuple[str, ...]
    plane: tuple[int, int]
    along: tuple[int, ...]
    through: tuple[int, ...]
    written: bool = False

    def lay(self, values: NDArray[Any], missing: Any = np.nan) -> NDArray[Any]:
        """Return what states have, shape (S, ...), at the positions that hold them, (P, ...).

        Parameters
        ----------
        values : ndarray, shape (S, ...)
        missing : object
            What positions without a state get.
        """
        if self.states is None:
            return values[: self.grid.num_states]
        laid = values[np.maximum(self.states, 0)]
        if (self.states < 0).any():
            laid = laid.copy()
            laid[self.states < 0] = missing
        return laid

    def positions(self, states: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return where states are, shape (N, D); NaN where they are not on the board."""
        if self.states is None:
            held = np.asarray(states) < self.grid.num_states
            points = self.grid.coords(np.where(held, states, 0)).astype(np.float64)
        else:
            place = np.full(self.num_states + 1, -1)
            on_board = np.flatnonzero(self.states >= 0)
            place[self.states[on_board]] = on_board
            found = place[np.asarray(states)]
            held = found >= 0
            points = self.grid.coords(np.maximum(found, 0)).astype(np.float64)
        points[~held] = np.nan
        return points

    def missing(self) -> NDArray[np.bool_]:
        """Return where no state is, or what is there is blocked, shape (P,)."""
        missing = np.zeros(self.grid.num_states, dtype=bool)
        if self.states is not None:
            missing |= self.states < 0
        if self.layout is not None and self.layout.blocked is not None:
            missing |= self.layout.blocked
        return missing

    def acting(self) -> NDArray[np.bool_]:
        """Return at which positions an action is chosen, shape (P,)."""
        acting = ~self.missing()
        return acting if self.layout is None else acting & self.layout.acting()

    def axis_name(self, axis: int) -> str:
        """Return what an axis is called."""
        if self.axis_names is not None:
            return self.axis_names[axis]
        return f"{'xy'[axis]} (cells)" if self.grid.num_dims <= 2 else f"axis {axis} (cells)"

    def coordinate(self, axis: int, position: int) -> str:
        """Return where along an axis a position is, in words.

        Parameters
        ----------
        axis : int
        position : int
        """
        if axis in self.coordinates:
            return f"{self.axis_name(axis)} {self.coordinates[axis][position]}"
        name = self.axis_name(axis)
        number = self.origin[axis] + self.step[axis] * position
        if self.axis_names is None:
            return f"axis {axis} at {number:g}"
        if name.endswith(")"):  # with a unit
            name, unit = name[:-1].rsplit(" (", 1)
            return f"{name} {number:.3g} {unit}"
        return f"{name} {number:.3g}"


def model_of(source: Any) -> Model | None:
    """Return the model of what is drawn; None of a layout, which has none.

    Raises
    ------
    TypeError, ValueError
        If the source is neither a layout nor what `as_model` takes.
    """
    return None if isinstance(source, Layout) else as_model(source)


def board_of(source: Any, model: Model | None = None) -> Board | None:
    """Return where the states of an environment, a model or a layout are drawn.

    Parameters
    ----------
    source : Layout, gymnasium.Env, Model, or what else `as_model` takes
    model : Model, optional
        What `as_model` makes of it, where that is at hand.

    Returns
    -------
    Board or None
        None where states are nowhere, as those of a table without names.
    """
    if isinstance(source, Board):
        return source
    if isinstance(source, Layout):
        return _board_of_layout(source)
    if isinstance(source, Discretization):
        return _board_of_cells(source.cells, source.problem, source.model)
    if isinstance(source, gym.Env):
        inner: Any = source.unwrapped
        if isinstance(getattr(inner, "layout", None), Layout):
            return _board_of_layout(inner.layout)
        if isinstance(getattr(inner, "cells", None), Cells):
            problem = getattr(inner, "_problem", None) or getattr(inner, "_physics", None)
            model = as_model(source) if model is None else model
            board = _board_of_cells(inner.cells, problem, model)
            names = tuple(inner.action_name(k) for k in range(len(board.action_names)))
            return replace(board, action_names=names)
        try:
            model = as_model(source) if model is None else model
        except NoModelError:
            return None
        for way in (_toy, _taxi):
            found = way(inner, model)
            if found is not None:
                return found
        return _board_of_names(model)
    return _board_of_names(as_model(source) if model is None else model)


def board_of_grid(grid: Grid, **known: Any) -> Board:
    """Return the board of a grid whose positions are states.

    Parameters
    ----------
    grid : Grid
    **known
        What is known of it, as for `Board`.
    """
    return _board(grid, grid.num_states, **known)


def _board(grid: Grid, num_states: int, **known: Any) -> Board:
    """Return a board with what is known of it, and usual answers for the rest."""
    layout: Layout | None = known.get("layout")
    through = (0,) * grid.num_dims if layout is None else tuple(layout.grid.coords(layout.goal))
    usual: dict[str, Any] = {
        "layout": None,
        "states": None,
        "axis_names": None,
        "origin": (0.0,) * grid.num_dims,
        "step": (1.0,) * grid.num_dims,
        "coordinates": {},
        "directions": None,
        "action_names": (),
        "plane": (0, min(1, grid.num_dims - 1)),
        "along": (2,) if grid.num_dims > 2 else (),
        "through": tuple(int(x) for x in through),
    }
    return Board(grid, num_states, **(usual | known))


def _board_of_layout(layout: Layout) -> Board:
    grid = layout.grid
    return _board(
        grid,
        grid.num_states,
        layout=layout,
        directions=np.array(grid.directions, dtype=np.float64),
        action_names=grid.action_names,
    )


def _board_of_cells(cells: Cells, problem: Any, model: Model) -> Board:
    """Return the board of continuous control in cells: the last two axes, through the middle."""
    grid, widths = cells.grid, cells.widths
    first = cells.first if isinstance(cells, Corners) else np.array(cells.low) + widths / 2
    names: tuple[str, ...] = tuple(f"x{axis}" for axis in range(grid.num_dims))
    if problem is not None:
        units = _ANGLES | _UNITS.get(problem.name, {})
        named = ((name, units.get(name)) for name in problem.axes)
        names = tuple(name if unit is None else f"{name} ({unit})" for name, unit in named)
    return _board(
        grid,
        model.num_listed_states,
        axis_names=names,
        origin=tuple(first.tolist()),
        step=tuple(widths.tolist()),
        action_names=_action_names(model),
        plane=(max(grid.num_dims - 2, 0), grid.num_dims - 1),
        along=(),
        through=tuple(n // 2 for n in grid.shape),
    )


def _action_names(model: Model) -> tuple[str, ...]:
    names: Any = model.action_names if hasattr(model, "action_names") else None
    return tuple(str(name) for name in (names or range(model.num_actions)))


def _toy(env: Any, model: Model) -> Board | None:
    """Return the board of a grid that counts its rows from above, as Gymnasium's do."""
    found = toy_map(env, np.asarray(model.terminal))
    if found is None or found.grid.num_states != model.num_listed_states:
        return None
    rows = found.grid.shape[1]
    board = _board(
        found.grid,
        model.num_listed_states,
        layout=found.layout,
        states=found.states,
        axis_names=found.axis_names,
        origin=(0.0, float(rows - 1)),
        step=(1.0, -1.0),
        action_names=_action_names(model),
    )
    return _with_directions(board, model)


def _taxi(env: Any, model: Model) -> Board | None:
    """Return the board of Taxi: a panel for each place of the passenger and each destination."""
    letters = np.asarray(getattr(env, "desc", None))
    places = getattr(env, "locs", None)
    if letters.shape != (7, 11) or places is None or model.num_listed_states != 500:
        return None
    letters, locations = letters.astype(str), np.array(places)
    names = tuple(letters[1 + row, 2 * column + 1] for row, column in locations.tolist())
    grid = Grid((5, 5, len(locations) + 1, len(locations)))
    x, y, passenger, destination = grid.coords(np.arange(grid.num_states)).T
    states = (((4 - y) * 5 + x) * 5 + passenger) * 4 + destination
    passages = np.zeros((grid.num_states, 4), dtype=bool)
    # Between two columns there is a wall "|" or a line ":" that one may pass.
    passages[:, 0] = (x < 4) & (letters[1 + 4 - y, np.minimum(2 * x + 2, 10)] == ":")
    passages[:, 1] = y < 4
    signs = np.zeros(grid.num_states, dtype=np.uint32)
    for index, (row, column) in enumerate(locations.tolist()):
        here = (x == column) & (y == 4 - row)
        signs[here & (passenger == index)] = ord("P")
        signs[here & (destination == index)] = ord("G")
    # A passenger who is where they want to be has arrived.
    ends = (signs == ord("G")) & (passenger == destination)
    layout = Layout(grid, passages, goal=int(np.argmax(ends)), ends=ends, signs=signs)
    board = _board(
        grid,
        model.num_listed_states,
        layout=layout,
        states=states,
        axis_names=("column", "row", "passenger", "to"),
        origin=(0.0, 4.0, 0.0, 0.0),
        step=(1.0, -1.0, 1.0, 1.0),
        coordinates={2: (*(f"at {name}" for name in names), "in the taxi"), 3: names},
        action_names=("south", "north", "east", "west", "pick up", "drop off"),
        along=(2, 3),
    )
    return _with_directions(board, model)


def _board_of_names(model: Model) -> Board | None:
    """Return the board of a model whose states are named by integers, two or more; else None."""
    cells = cells_of_names(model.state_names, MOST_POSITIONS)
    if cells is None:
        return None
    low = cells.min(axis=0)
    grid = Grid((cells.max(axis=0) - low + 1).tolist())
    states = np.full(grid.num_states, -1)
    states[np.ravel_multi_index(tuple((cells - low).T), grid.shape)] = np.arange(len(cells))
    names = ("x", "y") if grid.num_dims == 2 else tuple(f"part {k}" for k in range(grid.num_dims))
    board = _board(
        grid,
        model.num_listed_states,
        states=states,
        axis_names=names,
        origin=tuple(low.astype(float).tolist()),
        action_names=_action_names(model),
        written=True,
    )
    return _with_directions(board, model)


def _with_directions(board: Board, model: Model) -> Board:
    """Return the board with where each action leads, as its transitions have it on average."""
    table = with_table(model)
    if table.num_states > _MOST_TRIED:
        return board
    general = table.to_tabular() if isinstance(table, MoveMDP) else table
    points = np.full((general.num_states, board.grid.num_dims), np.nan)
    points[: board.num_states] = board.positions(np.arange(board.num_states))
    transitions = general.transitions.tocoo()
    state, action = np.divmod(transitions.row, general.num_actions)
    moves = points[transitions.col] - points[state]
    # Steps to a neighbour; falls that send far back say nothing of the direction.
    near = (np.abs(moves) <= 1).all(axis=1) & ~np.asarray(general.terminal)[state]
    moves, weights, action = moves[near], transitions.data[near], action[near]
    directions = np.zeros((general.num_actions, board.grid.num_dims))
    for axis in range(board.grid.num_dims):
        directions[:, axis] = np.bincount(
            action, weights * moves[:, axis], minlength=general.num_actions
        )
    directions /= np.maximum(np.bincount(action, weights, minlength=general.num_actions), 1e-300)[
        :, np.newaxis
    ]
    largest = np.abs(directions).max(axis=1, keepdims=True)
    found = np.where(
        largest >= _LEAST_MOVE, np.round(directions / np.maximum(largest, 1e-300)), 0.0
    )
    return replace(board, directions=found if found.any() else None)


@dataclass(frozen=True)
class Plane:
    """A slice of a board along two axes.

    Parameters
    ----------
    axes : pair of int
        To the right and upwards.
    through : tuple of int
        A point of it.
    title : str
        Where it lies along the axes that have a panel for each position.
    """

    axes: tuple[int, int]
    through: tuple[int, ...]
    title: str


def planes_of(
    board: Board,
    axes: tuple[int, int] | None = None,
    along: int | tuple[int, ...] | None = None,
    through: tuple[int, ...] | None = None,
    most: int = 12,
) -> list[Plane]:
    """Return the slices of a board that are drawn.

    Parameters
    ----------
    board : Board
    axes : pair of int, optional
        The axes drawn to the right and upwards.
    along : int or tuple of int, optional
        Axes along which there is a panel for each position, of many positions for some of them.
    through : tuple of int, optional
        The point through which all further axes are cut: the goal, or the middle of cells.
    most : int
        Positions along an axis that have a panel.

    Raises
    ------
    ValueError
        If there are no such axes, or no such point.
    """
    dims = board.grid.num_dims
    plane = board.plane if axes is None else tuple(axes)
    if dims > 1 and (
        len(plane) != 2 or plane[0] == plane[1] or not all(0 <= axis < dims for axis in plane)
    ):
        raise ValueError(f"axes must be two different axes of {dims}, got {axes!r}")
    point = board.through if through is None else tuple(through)
    board.grid.state(point)
    if along is None:
        chosen = tuple(axis for axis in board.along if axis not in plane)
        if axes is not None and dims > 2 and not chosen and board.along:
            chosen = (next(axis for axis in range(dims) if axis not in plane),)
    else:
        chosen = (along,) if isinstance(along, int) else tuple(along)
    if any(axis in plane or not 0 <= axis < dims for axis in chosen):
        raise ValueError(f"along must be axes of {dims} other than {plane}, got {along!r}")
    if not chosen and dims > 2:
        cut = ", ".join(
            board.coordinate(axis, int(point[axis])) for axis in range(dims) if axis not in plane
        )
        says_at = board.coordinates or board.axis_names is None
        return [Plane((plane[0], plane[-1]), point, cut if says_at else f"at {cut}")]
    places: list[list[int]] = []
    for axis in chosen:
        count = board.grid.shape[axis]
        shown = np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))
        places.append(shown.tolist())
    planes = []
    for combination in itertools.product(*places):
        here = list(point)
        for axis, place in zip(chosen, combination, strict=True):
            here[axis] = place
        title = ", ".join(
            board.coordinate(axis, place) for axis, place in zip(chosen, combination, strict=True)
        )
        planes.append(Plane((plane[0], plane[-1]), tuple(here), title))
    return planes
