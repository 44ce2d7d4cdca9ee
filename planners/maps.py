"""Where states lie that are not the positions of a maze: Gymnasium's toy grids, cells, names."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from aggmaze.cells.cells import Cells
from aggmaze.grid import Grid
from aggmaze.layouts.layout import Layout, open_passages
from aggmaze.names import cells_of_names

#: Names that are farther apart than this are no map.
MOST_POSITIONS = 100_000


@dataclass(frozen=True, eq=False)
class StateMap:
    """A grid, and which state lies where on it.

    Parameters
    ----------
    grid : Grid
        Of P positions.
    layout : Layout, optional
        What marks the cells of that grid.
    states : ndarray of int, shape (P,), optional
        The state at each position, -1 where there is none; None where position s holds state s.
    moves : ndarray of int, shape (A,), optional
        Which action of the grid each action is; None where an action is none of them.
    axis_names : tuple of str
        What the axes are called.
    plane : pair of int
        The axes that are drawn to the right and upwards.
    through : tuple of int
        The position through which all other axes are cut.
    """

    grid: Grid
    layout: Layout | None
    states: NDArray[np.int64] | None
    moves: NDArray[np.int64] | None
    axis_names: tuple[str, ...]
    plane: tuple[int, int]
    through: tuple[int, ...]


def map_of(source: Any) -> Layout | StateMap | None:
    """Return the map that the states of an environment lie on; None where there is none.

    Parameters
    ----------
    source : object
        What `as_model` takes.
    """
    if not isinstance(source, gym.Env):
        return None
    inner: Any = source.unwrapped
    layout, cells = getattr(inner, "layout", None), getattr(inner, "cells", None)
    if isinstance(layout, Layout):
        return layout
    if isinstance(cells, Cells):
        problem = getattr(inner, "_problem", None) or getattr(inner, "_physics", None)
        return _cells_map(cells, () if problem is None else tuple(problem.axes))
    return toy_map(inner)


def _cells_map(cells: Cells, names: tuple[str, ...]) -> StateMap:
    dims = cells.grid.num_dims
    return StateMap(
        cells.grid,
        None,
        None,
        None,
        names or tuple(f"x{axis}" for axis in range(dims)),
        (max(dims - 2, 0), dims - 1),
        tuple(n // 2 for n in cells.grid.shape),
    )


def named_map(names: Sequence[Hashable] | None) -> StateMap | None:
    """Return the map of states that are named by two integers each; None of others.

    Parameters
    ----------
    names : sequence of hashable, optional
    """
    cells = cells_of_names(names, MOST_POSITIONS)
    if cells is None or cells.shape[1] != 2:
        return None
    low = cells.min(axis=0)
    grid = Grid((cells.max(axis=0) - low + 1).tolist())
    states = np.full(grid.num_states, -1)
    states[np.ravel_multi_index(tuple((cells - low).T), grid.shape)] = np.arange(len(cells))
    return StateMap(grid, None, states, None, ("x", "y"), (0, 1), (0, 0))


def toy_map(env: Any, terminal: NDArray[np.bool_] | None = None) -> StateMap | None:
    """Return the map of a grid that counts its rows from above, as FrozenLake and CliffWalking do.

    Parameters
    ----------
    env : object
        Without wrappers.  One with a table ``P``, and a map ``desc`` of a letter a state, or a
        ``shape`` of rows and columns; others have no map.
    terminal : ndarray of bool, shape (S,), optional
        States that are known to end an episode, beside those that ``P`` says it of.
    """
    P = getattr(env, "P", None)
    if not isinstance(P, dict | list):
        return None
    letters, shape = np.asarray(getattr(env, "desc", None)), getattr(env, "shape", None)
    signs: dict[str, NDArray[np.bool_]] = {}
    if letters.ndim == 2 and letters.size == len(P):
        letters = letters.astype(str)
        shape = letters.shape
        signs = {sign: letters == sign for sign in "SGHC"}
    elif isinstance(shape, tuple) and len(shape) == 2 and math.prod(shape) == len(P):
        fall = np.asarray(getattr(env, "_cliff", False))
        if fall.shape == shape:
            signs["C"] = fall.astype(bool)
        initial = np.asarray(getattr(env, "initial_state_distrib", ())).reshape(-1)
        if initial.size == len(P) and np.count_nonzero(initial) == 1:
            signs["S"] = initial.reshape(shape) > 0
    else:
        return None
    return _rows_from_above((int(shape[0]), int(shape[1])), P, signs, terminal)


def _rows_from_above(
    shape: tuple[int, int],
    P: Any,
    signs: dict[str, NDArray[np.bool_]],
    terminal: NDArray[np.bool_] | None,
) -> StateMap:
    rows, columns = shape
    grid = Grid((columns, rows))
    x, y = grid.coords(np.arange(grid.num_states)).T
    states = (rows - 1 - y) * columns + x
    ended, moves = _outcomes(P, shape)
    if terminal is not None:
        ended |= terminal[: rows * columns]
    if "G" not in signs:
        signs = {"G": ended, **signs}
    code = np.zeros(grid.num_states, dtype=np.uint32)
    for sign, where in signs.items():
        code[where.reshape(-1)[states]] = ord(sign)
    ends = ended[states]
    layout = None
    if ends.any():
        goals = np.flatnonzero(ends & (code == ord("G")))
        untrod = code == ord("C")
        layout = Layout(
            grid,
            open_passages(grid),
            goal=int(goals[0] if len(goals) else np.argmax(ends)),
            ends=ends,
            signs=code,
            untrod=untrod & ~ends if untrod.any() else None,
        )
    return StateMap(grid, layout, states, moves, ("column", "row"), (0, 1), (0, 0))


def _outcomes(P: Any, shape: tuple[int, int]) -> tuple[NDArray[np.bool_], NDArray[np.int64] | None]:
    """Return where a step may end an episode, and which way each action leads.

    Parameters
    ----------
    P : mapping or list
        Of Gymnasium: for each state and action the outcomes.
    shape : pair of int
        Rows, counted from above, and columns.

    Returns
    -------
    ended : ndarray of bool, shape (S,)
    moves : ndarray of int, shape (A,), or None
        Where each action leads on average, LEFT, RIGHT, DOWN or UP, 0 to 3; None where two actions
        share one, or an action has none.
    """
    columns = shape[1]
    ended = np.zeros(math.prod(shape), dtype=bool)
    # Steps to a neighbour; falls that send far back say nothing of the direction.
    ways = {-1: 0, 1: 1, columns: 2, -columns: 3}
    shares = np.zeros((len(P[0]), 4))
    for state in range(len(ended)):
        row = P[state]
        for action, outcomes in row.items() if isinstance(row, dict) else enumerate(row):
            for chance, following, _, over in outcomes:
                if over and chance > 0:
                    ended[following] = True
                way = ways.get(int(following) - state)
                if way is not None and (way > 1 or following // columns == state // columns):
                    shares[action, way] += chance
    # On ice an action leads to its sides as often as ahead: these cancel out.
    net = shares - shares[:, [1, 0, 3, 2]]
    moves = net.argmax(axis=1)
    if len({*moves.tolist()}) < len(moves) or not (net.max(axis=1) > 0).all():
        return ended, None
    return ended, moves.astype(np.int64)
