"""Where the states of a small model are drawn that lie on no grid, and what may follow them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.models.model import Model, with_table
from aggmaze.models.moves import MoveMDP
from planners.policies import steps_to_terminal

#: States of a graph that can still be read.
MOST_NODES = 60
#: Outcomes that are less likely are not drawn: they would be most of the picture.
LEAST_CHANCE = 0.05
# Arrows of a policy, on average over policies, that can still be read.
_MOST_ARROWS = 240
# Columns of states are drawn as such if there are enough of them, and none is too high.
_FEWEST_COLUMNS, _MOST_IN_COLUMN = 3, 9
# Share of arrows within columns, where they lie upon each other.
_MOST_WITHIN = 0.35
_MOST_IN_A_ROW = 10
# States spread over a strip this many times as long as wide are a line, which is folded.
_LINE = 6.0
# Width of a picture over its height, roughly.
_ASPECT = 1.3
_ROUNDS = 300
# What part of the distance on a lattice any two states have at least, as far as that is possible.
_APART = 0.75


@dataclass(frozen=True, eq=False)
class Graph:
    """A small model as a graph.

    Parameters
    ----------
    points : ndarray of float, shape (S, 2)
        Where each state is, x to the right and y upwards, in [0, 1].
    state, action, following : ndarray of int, shape (N,)
        What may happen: where, on which action, and what comes of it.
    chance : ndarray of float, shape (N,)
        How likely it is.
    in_columns : bool
        Whether each column is a step farther from the ends, which are on the right.
    """

    points: NDArray[np.float64]
    state: NDArray[np.int64]
    action: NDArray[np.int64]
    following: NDArray[np.int64]
    chance: NDArray[np.float64]
    in_columns: bool


def graph_of(model: Model, *, dense: bool = False) -> Graph | None:
    """Return a small model as a graph; None where it has too many states or arrows to be read.

    States stand in columns by their steps to an end where that makes a good picture: the ends on
    the right.  Others lie as far from each other as there are steps between them, as well as that
    is possible in the plane.

    Parameters
    ----------
    model : Model
    dense : bool
        Whether any number of arrows will do.
    """
    count = model.num_listed_states
    if count > MOST_NODES:
        return None
    table = with_table(model)
    general = table.to_tabular() if isinstance(table, MoveMDP) else table
    transitions = sp.csr_array(general.transitions).tocoo()
    state, action = np.divmod(transitions.row.astype(np.int64), general.num_actions)
    following = transitions.col.astype(np.int64)
    shown = (state < count) & (following < count) & (transitions.data >= LEAST_CHANCE)
    shown &= ~np.asarray(general.terminal)[state]
    shown &= general.action_mask[state, action]
    state, action, following = state[shown], action[shown], following[shown]
    pairs = int(general.action_mask[: general.num_states].sum())
    if not dense and len(state) * count > _MOST_ARROWS * max(1, pairs):
        return None
    columns = _columns_of(general)
    tallest = max(len(column) for column in columns)
    rows = 0
    column = np.empty(count, dtype=np.int64)
    for place, states in enumerate(columns):
        column[states] = place
    moving = state != following
    within = (column[state] == column[following])[moving].sum() / max(1, moving.sum())
    if len(columns) < _FEWEST_COLUMNS or tallest > _MOST_IN_COLUMN or within > _MOST_WITHIN:
        joined = np.zeros((count, count), dtype=bool)
        joined[state, following] = joined[following, state] = True
        right = np.asarray(general.terminal)[:count].astype(np.float64)
        points = _spread_out(joined, right)
        if np.ptp(points[:, 0]) > _LINE * np.ptp(points[:, 1]) and count > _MOST_IN_A_ROW:
            line = np.argsort(-points[:, 0], kind="stable")
            points = _folded([[state] for state in line.tolist()], count)[0]
    else:
        points, rows = _folded(columns, count)
    return Graph(
        _parted(_unit(points)), state, action, following, transitions.data[shown], rows == 1
    )


def _columns_of(model: Any) -> list[list[int]]:
    """Return the states by their steps to an end, the ends first; all in one without an end."""
    count = model.num_listed_states
    steps = steps_to_terminal(model)[:count].astype(np.int64)
    steps[steps < 0] = steps.max() + 1
    return [np.flatnonzero(steps == distance).tolist() for distance in np.unique(steps)]


def _folded(columns: list[list[int]], count: int) -> tuple[NDArray[np.float64], int]:
    """Return columns as points, shape (S, 2), of many low ones in several rows; and how many rows.

    The first column is on the right, of several rows the lowest, which go to and fro.
    """
    tallest = max(len(column) for column in columns)
    rows = max(1, round(math.sqrt(len(columns) / (_ASPECT * (tallest + 1)))))
    rows = rows if len(columns) > _MOST_IN_A_ROW else 1
    each = math.ceil(len(columns) / rows)
    points = np.empty((count, 2))
    for place, column in enumerate(columns):
        row, along = divmod(place, each)
        points[column, 0] = -along if row % 2 == 0 else along - each + 1
        # Every second column lies a little higher, so that arrows pass between nodes.
        heights = (len(column) - 1) / 2 - np.arange(len(column)) + 0.25 * (place % 2)
        points[column, 1] = heights + row * (tallest + 1)
    return points, rows


def _spread_out(joined: NDArray[np.bool_], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points whose distances are about the steps between states.

    The stress, the sum of ``(distance - steps)^2 / steps^2`` over pairs, is made smaller by
    majorization (Gansner, Koren, North: Graph drawing by stress majorization, 2004), beginning
    with classical scaling.

    Parameters
    ----------
    joined : ndarray of bool, shape (S, S)
        Symmetric.
    right : ndarray of float, shape (S,)
        What is to lie on the right; where all are the same, the last states.
    """
    # Here, since it takes long to import.
    from scipy.sparse.csgraph import shortest_path

    count = len(joined)
    if count < 3:
        return np.column_stack([np.arange(count, dtype=np.float64), np.zeros(count)])
    steps = shortest_path(sp.csr_array(joined), unweighted=True, directed=False)
    known = np.isfinite(steps)
    steps[~known] = steps[known].max() + 1
    np.fill_diagonal(steps, 0.0)
    squares = steps**2
    centred = -0.5 * (squares - squares.mean(axis=0) - squares.mean(axis=1)[:, np.newaxis])
    centred -= 0.5 * squares.mean()
    sizes, directions = np.linalg.eigh(centred)
    points = directions[:, -2:] * np.sqrt(np.maximum(sizes[-2:], 1e-6))
    # States with the same neighbours would begin in one place, and stay there.
    turns = 2.4 * np.arange(count)
    points += 0.1 * np.column_stack([np.cos(turns), np.sin(turns)])
    away = ~np.eye(count, dtype=bool)
    weights = np.zeros_like(steps)
    weights[away] = 1 / squares[away]
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    for _ in range(_ROUNDS):
        apart = np.linalg.norm(points[:, np.newaxis] - points, axis=-1)
        pull = weights * steps / np.maximum(apart, 1e-9)
        points = inverse @ (pull.sum(axis=1)[:, np.newaxis] * points - pull @ points)
    points -= points.mean(axis=0)
    # The longer axis from left to right.
    points = points @ np.linalg.eigh(points.T @ points)[1][:, ::-1]
    order = right if np.ptp(right) > 0 else np.arange(count)
    if (order - order.mean()) @ points[:, 0] < 0:
        points[:, 0] *= -1
    if points[0, 1] < 0:
        points[:, 1] *= -1
    return points


def _unit(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points in [0, 1]; a direction in which they are all the same is 1/2."""
    low, width = points.min(axis=0), np.ptp(points, axis=0)
    return np.where(width > 1e-9, (points - low) / np.where(width > 1e-9, width, 1.0), 0.5)


def _parted(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points in [0, 1] of which those that are close are pushed apart.

    Distances are those in a picture `_ASPECT` times as wide as high.
    """
    sides = np.array([_ASPECT, 1.0])
    points = points * sides
    want = _APART * math.sqrt(_ASPECT / len(points))
    for _ in range(_ROUNDS):
        along = points[:, np.newaxis] - points
        apart = np.linalg.norm(along, axis=-1)
        np.fill_diagonal(apart, np.inf)
        lack = np.maximum(want - apart, 0.0)
        if lack.max(initial=0.0) < 0.01 * want:
            break
        push = 0.25 * (lack / np.maximum(apart, 1e-9))[..., np.newaxis] * along
        points = np.clip(points + push.sum(axis=1), 0.0, sides)
    return points / sides
