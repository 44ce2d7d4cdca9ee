"""Transition matrices, in MDPtoolbox's order and in the order (S, A, S).

"ass" is MDPtoolbox's order: one matrix (S, S) an action, or one array (A, S, S).  "sas" is the
order (S, A, S).  Both end in the next state, so that the rows of both sum to 1: where there are as
many actions as states nothing in the numbers tells one from the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_choice
from aggmaze.formats.endings import Endings, empty_ends, terminal_states, with_stays
from aggmaze.formats.tables import (
    SupportsRows,
    Tables,
    Word,
    check_prices,
    expected_costs,
    merged,
    plain_rows,
    probability_rows,
    sparse_rows,
    table,
    without_rows,
)
from aggmaze.names import Naming, as_names, chances

Order = Literal["sas", "ass"]
_ORDERS: tuple[Order, Order] = ("sas", "ass")

_FORMS = (
    "P must be an array of shape (S, A, S), or (A, S, S) with order='ass', a sequence of A "
    "matrices of shape (S, S), or one matrix of shape (S*A, S)"
)


def read_matrices(
    P: Any,
    *,
    costs: Any,
    rewards: Any,
    order: Order | None,
    action_mask: ArrayLike | None,
    terminal: Any,
    initial: Any,
    state_names: Any = None,
    action_names: Any = None,
    endings: Endings | None = None,
) -> Tables:
    """Return the tables of `TabularMDP.from_matrices`."""
    word, given, never = priced(costs, rewards)
    if order is not None:
        check_choice("order", order, ("sas", "ass"))
    transitions, order = _transitions(P, order)
    num_states = transitions.shape[1]
    num_actions = transitions.shape[0] // num_states
    naming = Naming(
        as_names("state_names", state_names, num_states),
        as_names("action_names", action_names, num_actions),
    )
    shape = num_states, num_actions
    mask = np.ones(shape, bool) if action_mask is None else action_mask
    available = table(mask, "action_mask", np.bool_, shape).reshape(-1)
    # What each action pays, or each outcome; and of which action that is.
    prices, by_outcome = _read_prices(given, f"{word}s", transitions, num_actions, order)
    terminal = terminal_states(terminal, naming, num_states)
    ends, final = None, np.zeros(num_states)
    if endings is not None:
        ends, final = endings.read(word, transitions, num_actions, available, terminal, naming)
        # What the matrices hold of them does not count.
        stays = np.repeat(ends, num_actions)
    elif terminal is not None:
        stays = empty_ends(transitions, terminal, num_actions)
        if not by_outcome:
            gone = (prices == never) | ~available
            stays &= ~gone
            # A state whose actions are all unavailable may be terminal.
            bare = terminal & gone.reshape(shape).all(axis=1)
            stays |= np.repeat(bare, num_actions)
            paid = np.where(stays | gone, 0.0, prices)
            _refuse_pay(paid, transitions, terminal, num_actions, word, naming)
    else:
        stays = np.zeros(len(available), dtype=bool)
    if stays.any():
        transitions, prices = with_stays(transitions, prices, stays, num_actions, by_outcome)
        available = available | stays
    rows = np.arange(len(available))
    if by_outcome:
        rows = np.repeat(rows, np.diff(transitions.indptr))
        prices = np.where(transitions.data != 0, prices, 0.0)
    lost = np.zeros(len(available), dtype=bool)
    lost[rows[prices == never]] = True
    lost &= available
    if lost.any():
        available = available & ~lost
        prices = prices[~lost[rows]] if by_outcome else np.where(lost, 0.0, prices)
        rows = rows[~lost[rows]] if by_outcome else rows
        transitions = without_rows(transitions, lost)
    counted = available[rows]
    unless = f", or {never} where the action is unavailable"

    def describe(row: int) -> str:
        return naming.row(row, num_actions)

    check_prices(prices[counted], rows[counted], describe, word, unless)
    # 0.0 - reward, since -0.0 reads oddly.
    prices = prices if word == "cost" else 0.0 - prices
    outcome_costs = None
    if by_outcome:
        prices, outcome_costs = expected_costs(transitions.indptr, transitions.data, prices)
    tables: Tables = {
        "transitions": transitions,
        "costs": prices.reshape(shape),
        "action_mask": available.reshape(shape),
        "terminal": terminal,
        "initial": initial,
        "outcome_costs": outcome_costs,
        "num_added_states": 0,
        "state_names": naming.states,
        "action_names": naming.actions,
    }
    if endings is None or ends is None:
        return tables
    if initial is not None:
        initial = chances(initial, as_names("", naming.states), num_states, num_states)
        tables["initial"] = table(initial, "initial", np.float64, (num_states,))
    return endings.added_to(tables, ends, final if word == "cost" else 0.0 - final)


def _transitions(P: Any, order: Order | None) -> tuple[sp.csr_array, Order]:
    """Return matrices in any of their forms as sparse rows, shape (S*A, S), and their order."""
    matrices = _sequence(P)
    if matrices is not None:
        order = order or "ass"
        return _stacked(matrices, "P", order, probability_rows), order
    order = order or "sas"
    if _is_sparse(P) or (isinstance(P, np.ndarray) and P.ndim == 2):
        return _one_matrix(P, order), order
    return _flattened(_numbers(P, "P"), order), order


def _one_matrix(P: Any, order: Order) -> sp.csr_array:
    """Return one matrix of all rows, in the order of states and actions, or the other way round."""
    num_rows, num_states = P.shape if len(P.shape) == 2 else (0, 0)
    if num_states == 0 or num_rows == 0 or num_rows % num_states:
        raise ValueError(
            f"{_FORMS}, with the row of state s and action a at s*A + a, or with order='ass' at "
            f"a*S + s; got one of shape {P.shape}"
        )
    if P.dtype.kind not in "biuf":
        raise ValueError(f"P must hold real numbers, got dtype {P.dtype}")
    rows = probability_rows(P)
    return rows if order == "sas" else rows[_rows_of_states(num_states, num_rows // num_states)]


def _rows_of_states(num_states: int, num_actions: int) -> NDArray[np.int64]:
    """Return where the rows of matrices that are stacked action by action are, state by state."""
    return np.arange(num_actions * num_states).reshape(num_actions, -1).T.reshape(-1)


def priced(costs: Any, rewards: Any, prefix: str = "") -> tuple[Word, Any, float]:
    """Return which of the two is given, what it is, and the price of what is unavailable.

    Parameters
    ----------
    costs, rewards : object
        One of them None.
    prefix : str
        What their names begin with.
    """
    if (costs is None) == (rewards is None):
        raise ValueError(f"give exactly one of {prefix}costs and {prefix}rewards")
    return ("cost", costs, np.inf) if rewards is None else ("reward", rewards, -np.inf)


def _refuse_pay(
    prices: NDArray[np.float64],
    transitions: sp.csr_array,
    terminal: NDArray[np.bool_],
    num_actions: int,
    word: Word,
    naming: Naming,
) -> None:
    """Refuse terminal states that lead back to themselves and pay, and say what to write."""
    pays = terminal & (prices.reshape(-1, num_actions) != 0).any(axis=1)
    columns = np.repeat(np.arange(len(prices)) // num_actions, np.diff(transitions.indptr))
    leaves = (transitions.indices != columns) & (transitions.data != 0)
    pays[columns[leaves]] = False
    if pays.any():
        state = int(np.argmax(pays))
        found = prices.reshape(-1, num_actions)[state]
        found = found[np.argmax(found != 0)]
        raise ValueError(
            f"{naming.state(state)} is declared terminal, so every action must lead back to it and "
            f"neither cost nor pay anything, and it has the {word} {found:g}; to have it once "
            f"there, or when it is entered, give it as terminal_{word}s="
        )


def read_mdptoolbox(P: Any, R: Any, **others: Any) -> Tables:
    """Return the tables of `TabularMDP.from_mdptoolbox`."""
    one = _is_sparse(P) or (isinstance(P, np.ndarray) and P.ndim == 2)
    if one:
        _refuse_two_orders(P)
    order = None if one or _sequence(P) is not None else _order_of(_numbers(P, "P"), R)
    return read_matrices(P, costs=None, rewards=R, order=order, action_mask=None, **others)


def to_mdptoolbox(model: SupportsRows) -> tuple[list[sp.csr_matrix], NDArray[np.float64]]:
    """Return a model as MDPtoolbox's pair ``(P, R)``.

    Terminal states lead to themselves, with reward 0.  The format has no masks: an unavailable
    action stays in place at a cost that never pays.  Outcomes that lead to one state are merged,
    and ``R`` holds expected rewards.  MDPtoolbox itself takes rows only if they miss 1 by less
    than 2e-15.

    Parameters
    ----------
    model : TabularMDP or MoveMDP

    Returns
    -------
    P : list of A sparse matrices, shape (S, S)
        ``csr_matrix``, since pymdptoolbox does not take the newer ``csr_array``.
    R : ndarray of float, shape (S, A)
        Expected rewards.
    """
    rows = plain_rows(model.validate(), 0, model.num_states)
    P = [
        sp.csr_matrix(merged(rows.transitions[action :: model.num_actions]))
        for action in range(model.num_actions)
    ]
    return P, 0.0 - rows.costs


def _order_of(P: NDArray[Any], R: Any) -> Order:
    """Return the order of an array of three axes, where its shape tells."""
    if P.ndim != 3 or not (P.shape[0] == P.shape[2] or P.shape[1] == P.shape[2]):
        raise ValueError(f"{_FORMS}, got an array of shape {P.shape}")
    if P.shape[1] != P.shape[2]:
        return "sas"
    if P.shape[0] != P.shape[2]:
        return "ass"
    if not (_reads_the_same(P) and _reads_the_same(R)):
        raise ValueError(
            f"P of shape {P.shape} can be read in the order (A, S, S), which is MDPtoolbox's, and "
            "in the order (S, A, S), with different results; say which it is: "
            "TabularMDP.from_matrices(P, rewards=R, order='ass') or order='sas'"
        )
    return "ass"


def _refuse_two_orders(P: Any) -> None:
    """Refuse one matrix of all rows whose order nothing tells."""
    by_state, by_action = (_one_matrix(P, order) for order in _ORDERS)
    differing: Any = by_state != by_action
    if differing.nnz:
        raise ValueError(
            f"P of shape {P.shape} may list its rows state by state (s*A + a) or action by action "
            "(a*S + s), with different results; say which it is: TabularMDP.from_matrices(P, "
            "rewards=R, order='sas') or order='ass'"
        )


def _reads_the_same(values: Any) -> bool:
    """Return whether an array is the same in both orders, as one without three axes is."""
    if _sequence(values) is not None:
        return False
    if _is_sparse(values):
        return True
    array = _numbers(values, "R")
    return array.ndim != 3 or np.array_equal(array, array.swapaxes(0, 1))


def _is_sparse(values: Any) -> bool:
    return bool(sp.issparse(values))


def _sequence(values: Any) -> list[Any] | None:
    """Return the matrices of a sequence of matrices, or None if it is something else."""
    if isinstance(values, np.ndarray):
        if values.dtype != object or values.ndim != 1:
            return None
    elif not isinstance(values, Sequence) or isinstance(values, str):
        return None
    matrices = list(values)
    if matrices and all(sp.issparse(M) or isinstance(M, np.ndarray) for M in matrices):
        return matrices if all(M.ndim == 2 for M in matrices) else None
    return None


def _numbers(values: Any, name: str) -> NDArray[Any]:
    """Return an array of real numbers."""
    if _is_sparse(values):
        raise ValueError(
            f"{name} must not be a sparse array of shape {values.shape}; of two axes, or a "
            "sequence of A sparse arrays of shape (S, S)"
        )
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be an array: its parts differ in shape") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
    return array


def _flattened(P: NDArray[Any], order: Order) -> sp.csr_array:
    """Return an array of three axes as sparse rows, shape (S*A, S)."""
    if P.ndim == 3 and order == "ass":
        P = P.swapaxes(0, 1)
    if P.ndim != 3 or P.shape[0] != P.shape[2] or 0 in P.shape:
        shape = P.shape if order == "sas" or P.ndim != 3 else P.swapaxes(0, 1).shape
        raise ValueError(f"{_FORMS}, got an array of shape {shape} with order={order!r}")
    num_states, num_actions = P.shape[:2]
    return probability_rows(P.reshape(num_states * num_actions, num_states))


def _stacked(
    matrices: list[Any], name: str, order: Order, rows_of: Callable[[Any], sp.csr_array]
) -> sp.csr_array:
    """Return a sequence of matrices as sparse rows, shape (S*A, S)."""
    num_states = matrices[0].shape[1] if order == "ass" else len(matrices)
    shape = (num_states if order == "ass" else matrices[0].shape[0], num_states)
    for index, M in enumerate(matrices):
        if M.shape != shape or 0 in shape:
            axes = "(S, S)" if order == "ass" else "(A, S)"
            raise ValueError(
                f"{name}[{index}] must have shape {axes} = {shape} with order={order!r}, got "
                f"{M.shape}"
            )
        if M.dtype.kind not in "biuf":
            raise ValueError(f"{name}[{index}] must hold real numbers, got dtype {M.dtype}")
    stacked = sp.csr_array(sp.vstack([rows_of(M) for M in matrices], format="csr"))
    if order == "sas":
        return stacked
    return stacked[_rows_of_states(num_states, len(matrices))]


def _read_prices(
    values: Any, name: str, transitions: sp.csr_array, num_actions: int, order: Order
) -> tuple[NDArray[np.float64], bool]:
    """Return what actions cost or pay, shape (S*A,), or what outcomes do, shape (nnz,); and which.

    As they are given: of costs or rewards.
    """
    num_states = transitions.shape[1]
    rows = np.repeat(np.arange(transitions.shape[0]), np.diff(transitions.indptr))
    columns = transitions.indices
    matrices = _sequence(values)
    if matrices is not None:
        stacked = _stacked(matrices, name, order, sparse_rows)
        if stacked.shape != transitions.shape:
            raise _misshapen(name, num_states, num_actions, order, _shape_of(matrices))
        return _entries(stacked, rows, columns), True
    if _is_sparse(values) and values.shape == transitions.shape and num_actions > 1:
        return _entries(sp.csr_array(_one_matrix(values, order)), rows, columns), True
    if _is_sparse(values) and values.ndim == 2:
        values = values.toarray()
    array = _numbers(values, name)
    if array.shape == (num_states,):
        return np.repeat(array.astype(np.float64), num_actions), False
    if array.shape == (num_states, num_actions):
        return array.astype(np.float64).reshape(-1), False
    axes = (num_actions, num_states) if order == "ass" else (num_states, num_actions)
    if array.shape != (*axes, num_states):
        raise _misshapen(name, num_states, num_actions, order, str(array.shape))
    states, actions = rows // num_actions, rows % num_actions
    first, second = (actions, states) if order == "ass" else (states, actions)
    return array[first, second, columns].astype(np.float64), True


def _misshapen(name: str, num_states: int, num_actions: int, order: Order, got: str) -> ValueError:
    sizes = {"s": num_states, "a": num_actions}
    return ValueError(
        f"{name} must have shape (S, A) = {(num_states, num_actions)}, (S,), or P's "
        f"({', '.join(order.upper())}) = {tuple(sizes[axis] for axis in order)}, got {got}"
    )


def _shape_of(matrices: list[Any]) -> str:
    return f"{len(matrices)} matrices of shape {matrices[0].shape}"


def _entries(
    matrix: sp.csr_array, rows: NDArray[np.int64], columns: NDArray[np.integer[Any]]
) -> NDArray[np.float64]:
    """Return the entries of a sparse matrix at some places, 0 where it has none."""
    once = matrix.copy()
    once.sum_duplicates()
    width = np.int64(matrix.shape[1])
    keys = np.repeat(np.arange(matrix.shape[0]), np.diff(once.indptr)) * width + once.indices
    wanted = rows * width + columns
    found = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    entries = np.zeros(len(wanted))
    if len(keys):
        hit = keys[found] == wanted
        entries[hit] = once.data[found[hit]]
    return entries
