"""What pictures are given: axes, policies and paths, checked against where states are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.model import Model
from planners.boards import Board


def policy_of_model(policy: Any, model: Model) -> NDArray[np.int64] | None:
    """Return the actions of a policy, one a listed state.

    Parameters
    ----------
    policy : array_like of int, shape (S,), or None
    model : Model

    Raises
    ------
    ValueError
        If the shape is another, or an action does not exist.
    """
    if policy is None:
        return None
    array = np.asarray(policy)
    count = model.num_listed_states
    if array.shape != (count,):
        raise ValueError(f"policy must have shape ({count},), got {array.shape}")
    if not np.issubdtype(array.dtype, np.integer) or not (
        array.min() >= 0 and array.max() < model.num_actions
    ):
        raise ValueError(f"policy must hold actions in [0, {model.num_actions})")
    return array.astype(np.int64)


def policy_of_board(policy: Any, board: Board) -> NDArray[Any] | None:
    """Return actions, or probabilities of actions, of all states of a board.

    Parameters
    ----------
    policy : array_like of int, shape (S,), or of float, shape (S, A), or None
    board : Board

    Raises
    ------
    ValueError
        If the shape is another, or an action does not exist.
    """
    if policy is None:
        return None
    array = np.asarray(policy)
    count, actions = board.num_states, len(board.action_names)
    if array.ndim == 2 and array.shape == (count, actions):
        return array.astype(np.float64)
    if array.shape != (count,):
        raise ValueError(
            f"policy must have shape ({count},) or ({count}, {actions}), got {array.shape}"
        )
    if not np.issubdtype(array.dtype, np.integer) or not (
        array.min() >= 0 and array.max() < actions
    ):
        raise ValueError(f"policy must hold actions in [0, {actions})")
    return array.astype(np.int64)


def path_of_board(path: Any, board: Board) -> NDArray[np.int64]:
    """Return the states of a path.

    Parameters
    ----------
    path : array_like of int, shape (L,)
    board : Board

    Raises
    ------
    ValueError
        If it holds no states, or something else.
    """
    array = np.asarray(path)
    if array.ndim != 1 or not len(array) or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"a path must hold states in order, got {array.dtype} of {array.shape}")
    if array.min() < 0 or array.max() >= board.num_states:
        bad = array[(array < 0) | (array >= board.num_states)][0]
        raise ValueError(f"the path holds {bad}, which is not a state in [0, {board.num_states})")
    return array.astype(np.int64)


def one_axes(ax: Any) -> Any:
    """Return the one Axes that was given, or None."""
    if ax is None:
        return None
    from matplotlib.axes import Axes

    given = list(np.asarray(ax, dtype=object).flat)
    if len(given) != 1 or not isinstance(given[0], Axes):
        raise TypeError(f"ax must be one Axes here, got {type(ax).__name__}")
    return given[0]


def num_states_of(board: Board | None, model: Model | None) -> int:
    """Return for how many states values are given: those of a board, or else of a model.

    Parameters
    ----------
    board : Board or None
    model : Model or None
        None of a layout, which has a board.
    """
    if board is not None:
        return board.num_states
    assert model is not None
    return model.num_listed_states
