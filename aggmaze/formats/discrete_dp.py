"""QuantEcon's ``DiscreteDP``, and the pairs that it is made of.

Either the product form, ``R`` (S, A) with -inf for unavailable actions and ``Q`` (S, A, S), or the
pairs that are available: ``R`` (L,), ``Q`` (L, S), dense or sparse, ``s_indices`` and
``a_indices`` (L,).
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.checks import check_discount, check_integer, is_real
from aggmaze.formats.endings import terminal_states, with_stays
from aggmaze.formats.matrices import priced
from aggmaze.formats.tables import (
    SupportsRows,
    Tables,
    check_prices,
    merged,
    plain_rows,
    probability_rows,
    table,
)
from aggmaze.names import Naming, as_names, unknown


def is_discrete_dp(source: Any) -> bool:
    """Return whether an object is a ``DiscreteDP``; QuantEcon is not imported to tell."""
    return any(
        cls.__name__ == "DiscreteDP" and cls.__module__.partition(".")[0] == "quantecon"
        for cls in type(source).__mro__
    )


def read_discrete_dp(ddp: Any, **others: Any) -> Tables:
    """Return the tables of `TabularMDP.from_quantecon`."""
    if not is_discrete_dp(ddp):
        raise TypeError(f"expected a quantecon.markov.DiscreteDP, got {type(ddp).__name__}")
    R = np.asarray(ddp.R, dtype=np.float64)
    if ddp.s_indices is None:
        num_states, num_actions = R.shape
        states, actions = np.divmod(np.arange(R.size), num_actions)
        Q = np.asarray(ddp.Q).reshape(R.size, num_states)
        return read_pairs(
            states, actions, Q, rewards=R.reshape(-1), num_actions=num_actions, **others
        )
    return read_pairs(ddp.s_indices, ddp.a_indices, ddp.Q, rewards=R, **others)


def read_pairs(
    s_indices: Any,
    a_indices: Any,
    Q: Any,
    *,
    costs: Any = None,
    rewards: Any = None,
    num_actions: int | None = None,
    terminal: Any = None,
    initial: Any = None,
    state_names: Any = None,
    action_names: Any = None,
) -> Tables:
    """Return the tables of `TabularMDP.from_state_action_pairs`."""
    word, given, never = priced(costs, rewards)
    if not sp.issparse(Q):
        try:
            Q = np.asarray(Q)
        except ValueError:
            raise ValueError("Q must be an array: its rows differ in length") from None
    if len(Q.shape) != 2 or 0 in Q.shape:
        raise ValueError(f"Q must have shape (L, S), a row for each pair, got {Q.shape}")
    if Q.dtype.kind not in "biuf":
        raise ValueError(f"Q must hold real numbers, got dtype {Q.dtype}")
    length, num_states = Q.shape
    naming = Naming(
        as_names("state_names", state_names, num_states), as_names("action_names", action_names)
    )
    if naming.actions is not None:
        if num_actions is not None and num_actions != len(naming.actions):
            raise ValueError(
                f"num_actions = {num_actions} and action_names, {len(naming.actions)}, differ"
            )
        num_actions = len(naming.actions)
    if num_actions is not None:
        num_actions = check_integer("num_actions", num_actions, least=1)
    states = _numbers("s_indices", s_indices, length, naming.states, num_states)
    actions = _numbers("a_indices", a_indices, length, naming.actions, num_actions)
    if num_actions is None:
        num_actions = int(actions.max()) + 1
    num_rows = num_states * num_actions
    prices = table(given, f"{word}s", np.float64, (length,))
    pairs = states * num_actions + actions
    listed = np.argsort(pairs, kind="stable")
    listed = listed[prices[listed] != never]
    pairs = pairs[listed]
    twice = np.flatnonzero(pairs[1:] == pairs[:-1])

    def describe(row: int) -> str:
        return naming.row(row, num_actions)

    if len(twice):
        raise ValueError(f"{describe(pairs[twice[0]])}: listed more than once")
    unless = f", or {never} where the action is unavailable"
    check_prices(prices[listed], pairs, describe, word, unless)
    matrix = probability_rows(Q)[listed]
    counts = np.zeros(num_rows, dtype=np.int64)
    counts[pairs] = np.diff(matrix.indptr)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    spread, mask = np.zeros(num_rows), np.zeros(num_rows, dtype=bool)
    spread[pairs] = prices[listed] if word == "cost" else 0.0 - prices[listed]
    mask[pairs] = True
    transitions = sp.csr_array((matrix.data, matrix.indices, indptr), shape=(num_rows, num_states))
    ends = terminal_states(terminal, naming, num_states)
    if ends is not None:
        # A state that is terminal need not list actions.
        bare = ends & ~mask.reshape(num_states, num_actions).any(axis=1)
        rows = np.repeat(bare, num_actions)
        if rows.any():
            transitions, spread = with_stays(transitions, spread, rows, num_actions, False)
            mask |= rows
    return {
        "transitions": transitions,
        "costs": spread.reshape(num_states, num_actions),
        "action_mask": mask.reshape(num_states, num_actions),
        "terminal": ends,
        "initial": initial,
        "outcome_costs": None,
        "num_added_states": 0,
        "state_names": naming.states,
        "action_names": naming.actions,
    }


def _numbers(
    what: str, given: Any, length: int, names: Any, count: int | None
) -> NDArray[np.int64]:
    """Return the numbers of states or actions, which may be given by their names."""
    if names is not None and not isinstance(given, np.ndarray):
        try:
            found = [names.places.get(name) for name in given]
        except TypeError:
            found = [None]
        if None not in found:
            given = found
        elif not all(is_real(name) for name in given):
            place = found.index(None)
            raise ValueError(f"{what}[{place}]: {unknown(_KINDS[what], list(given)[place], names)}")
    numbers = np.asarray(given)
    if numbers.dtype.kind not in "iu":
        raise ValueError(f"{what} must hold integers, got dtype {numbers.dtype}")
    if numbers.shape != (length,):
        raise ValueError(
            f"{what} must have shape ({length},), one for each row of Q, got {numbers.shape}"
        )
    bad = np.flatnonzero((numbers < 0) | (numbers >= (np.inf if count is None else count)))
    if len(bad):
        allowed = "not be negative" if count is None else f"be in [0, {count})"
        raise ValueError(f"{what}[{bad[0]}] = {numbers[bad[0]]} must {allowed}")
    return numbers.astype(np.int64)


_KINDS = {"s_indices": "state", "a_indices": "action"}


def to_quantecon(model: SupportsRows, gamma: float) -> Any:
    """Return a model as QuantEcon's ``DiscreteDP``, in the form of sparse state-action pairs.

    Unavailable actions are left out.  Terminal states lead to themselves, with reward 0.  Outcomes
    that lead to one state are merged, and ``R`` holds expected rewards.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    gamma : float
        Discount in [0, 1], which QuantEcon keeps with the model as ``beta``.

    Returns
    -------
    quantecon.markov.DiscreteDP

    Raises
    ------
    ImportError
        If QuantEcon is not installed.
    """
    gamma = check_discount(gamma)
    rows = plain_rows(model.validate(), 0, model.num_states)
    states, actions = np.nonzero(rows.action_mask)
    pairs: NDArray[np.int64] = states * model.num_actions + actions
    return _quantecon().DiscreteDP(
        0.0 - rows.costs[states, actions],
        sp.csr_matrix(merged(rows.transitions[pairs])),
        gamma,
        states,
        actions,
    )


def _quantecon() -> Any:
    """Import QuantEcon, which is not among the requirements, when it is asked for."""
    try:
        return importlib.import_module("quantecon.markov")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "quantecon":
            raise
        raise ImportError(
            "to_quantecon needs QuantEcon, which is not installed: pip install quantecon"
        ) from None
