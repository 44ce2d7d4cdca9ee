"""What pictures are given: axes, policies and paths, checked against where states are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.models.model import Model
from planners.boards import Board

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# By how much probabilities may sum to more than 1.
_SLACK = 1e-6


def as_values(name: str, values: ArrayLike, count: int, what: str) -> NDArray[np.float64]:
    """Return one number a state.

    Parameters
    ----------
    name : str
        What errors call it.
    values : array_like, shape (S,)
    count : int
        S.
    what : str
        Such as ``"a state"``.

    Raises
    ------
    TypeError
        If these are no numbers.
    ValueError
        If the shape is another.
    """
    array = _numbers(values, f"{name} must be numbers, one {what}", "values")
    if array.shape != (count,):
        hint = "; of a finite horizon draw one step, values[t]" if array.ndim == 2 else ""
        raise ValueError(f"{name} must have shape ({count},), one {what}, got {array.shape}{hint}")
    return array


def as_costs(Q: ArrayLike) -> NDArray[np.float64]:
    """Return what actions cost as an array of any shape.

    Parameters
    ----------
    Q : array_like of float

    Raises
    ------
    TypeError
        If these are no numbers.
    """
    return _numbers(Q, "Q must be numbers, as planners.q_values returns them")


def as_table(Q: ArrayLike, count: int, num_actions: int) -> NDArray[np.float64]:
    """Return what each action costs in each state.

    Parameters
    ----------
    Q : array_like of float, shape (S, A)
    count, num_actions : int
        S and A.

    Raises
    ------
    TypeError
        If these are no numbers.
    ValueError
        If the shape is another.
    """
    table = as_costs(Q)
    if table.shape != (count, num_actions):
        hint = "; of a finite horizon draw one step, Q[t]" if table.ndim == 3 else ""
        raise ValueError(f"Q must have shape ({count}, {num_actions}), got {table.shape}{hint}")
    return table


def as_policy(policy: Any, count: int, num_actions: int) -> NDArray[Any]:
    """Return actions, or probabilities of actions, of all states.

    Parameters
    ----------
    policy : array_like of int, shape (S,), or of float, shape (S, A)
    count, num_actions : int
        S and A.

    Raises
    ------
    TypeError
        If these are no numbers.
    ValueError
        If the shape is another, an action does not exist, or probabilities are none.
    """
    array = np.asarray(policy)
    if array.dtype.kind not in "iufb":
        raise TypeError(
            f"policy must be actions, one a state, got {_kind(policy)}"
            f"{_of_result(policy, 'policy')}"
        )
    if array.shape == (count, num_actions):
        chances = array.astype(np.float64)
        bad = ~((chances >= 0).all(axis=1) & (chances.sum(axis=1) <= 1 + _SLACK))
        if bad.any():
            state = int(np.argmax(bad))
            raise ValueError(
                f"policy must hold the probability of each action, and in state {state} has "
                f"{chances[state].tolist()}"
            )
        return chances
    if array.shape != (count,):
        hint = ""
        if array.ndim == 2 and array.shape[1] == count:
            hint = "; of a finite horizon draw one step, policy[t]"
        raise ValueError(
            f"policy must have shape ({count},) or ({count}, {num_actions}), got "
            f"{array.shape}{hint}"
        )
    if array.dtype.kind not in "iu" or not (array.min() >= 0 and array.max() < num_actions):
        raise ValueError(f"policy must hold actions in [0, {num_actions})")
    return array.astype(np.int64)


def likeliest(policy: NDArray[Any]) -> NDArray[np.int64]:
    """Return the action of each state, of probabilities the likeliest, shape (S,).

    Parameters
    ----------
    policy : ndarray of int, shape (S,), or of float, shape (S, A)
    """
    actions = policy if policy.ndim == 1 else policy.argmax(axis=1)
    return actions.astype(np.int64)


def _numbers(given: ArrayLike, wanted: str, of_result: str = "") -> NDArray[np.float64]:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        hint = _of_result(given, of_result) if of_result else ""
        raise TypeError(f"{wanted}, got {_kind(given)}{hint}") from None


def _kind(given: Any) -> str:
    """Return what something is, in words of errors."""
    array = np.asarray(given)
    return type(given).__name__ if array.dtype == object else f"{array.dtype} of {array.shape}"


def _of_result(given: Any, name: str) -> str:
    return f": draw its .{name}" if hasattr(given, name) else ""


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
        raise ValueError(f"a path must hold states in order, got {_kind(path)}")
    if array.min() < 0 or array.max() >= board.num_states:
        bad = array[(array < 0) | (array >= board.num_states)][0]
        raise ValueError(f"the path holds {bad}, which is not a state in [0, {board.num_states})")
    return array.astype(np.int64)


def as_axes(ax: Any, count: int, each: str = "panel", hint: str = "") -> list[Axes]:
    """Return axes that were given, as many as are drawn in.

    Parameters
    ----------
    ax : Axes, or array of Axes
    count : int
    each : str
        What is drawn in each of them.
    hint : str
        What errors about their number add.

    Raises
    ------
    TypeError
        If something is not Axes.
    ValueError
        If there are more, or fewer.
    """
    from matplotlib.axes import Axes

    given = list(np.asarray(ax, dtype=object).flat)
    for one in given:
        if not isinstance(one, Axes):
            raise TypeError(f"ax must be Axes, or an array of Axes, got {type(one).__name__}")
    if len(given) != count:
        raise ValueError(f"ax must hold {count} Axes, one a {each}, got {len(given)}{hint}")
    return given


def one_axes(ax: Any) -> Axes | None:
    """Return the one Axes that was given, or None.

    Parameters
    ----------
    ax : Axes, an array of one Axes, or None

    Raises
    ------
    TypeError
        If it is something else.
    """
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
