"""QuantEcon's ``DiscreteDP``.

Either the product form, ``R`` (S, A) with -inf for unavailable actions and ``Q`` (S, A, S), or the
pairs that are available: ``R`` (L,), ``Q`` (L, S), dense or sparse, ``s_indices`` and
``a_indices`` (L,).
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_discount
from aggmaze.formats.tables import (
    SupportsRows,
    Tables,
    check_prices,
    merged,
    plain_rows,
    probability_rows,
)


def is_discrete_dp(source: Any) -> bool:
    """Return whether an object is a ``DiscreteDP``; QuantEcon is not imported to tell."""
    return any(
        cls.__name__ == "DiscreteDP" and cls.__module__.partition(".")[0] == "quantecon"
        for cls in type(source).__mro__
    )


def read_discrete_dp(ddp: Any, terminal: ArrayLike | None, initial: ArrayLike | None) -> Tables:
    """Return the tables of `TabularMDP.from_quantecon`."""
    if not is_discrete_dp(ddp):
        raise TypeError(f"expected a quantecon.markov.DiscreteDP, got {type(ddp).__name__}")
    R = np.asarray(ddp.R, dtype=np.float64)
    if ddp.s_indices is None:
        num_states, num_actions = R.shape
        states, actions = np.divmod(np.arange(R.size), num_actions)
        Q = np.asarray(ddp.Q).reshape(R.size, num_states)
    else:
        states = np.asarray(ddp.s_indices, dtype=np.int64)
        actions = np.asarray(ddp.a_indices, dtype=np.int64)
        num_states, num_actions, Q = ddp.Q.shape[1], int(actions.max()) + 1, ddp.Q
    rewards, pairs = R.reshape(-1), states * num_actions + actions
    listed = np.argsort(pairs, kind="stable")
    listed = listed[rewards[listed] != -np.inf]
    pairs = pairs[listed]
    twice = np.flatnonzero(pairs[1:] == pairs[:-1])
    if len(twice):
        state, action = divmod(int(pairs[twice[0]]), num_actions)
        raise ValueError(f"state {state}, action {action}: listed more than once")
    unless = ", or -inf where the action is unavailable"
    check_prices(rewards[listed], pairs, num_actions, "reward", unless)
    num_rows = num_states * num_actions
    matrix = probability_rows(Q)[listed]
    counts = np.zeros(num_rows, dtype=np.int64)
    counts[pairs] = np.diff(matrix.indptr)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    costs, mask = np.zeros(num_rows), np.zeros(num_rows, dtype=bool)
    costs[pairs], mask[pairs] = 0.0 - rewards[listed], True
    return {
        "transitions": sp.csr_array(
            (matrix.data, matrix.indices, indptr), shape=(num_rows, num_states)
        ),
        "costs": costs.reshape(num_states, num_actions),
        "action_mask": mask.reshape(num_states, num_actions),
        "terminal": terminal,
        "initial": initial,
        "outcome_costs": None,
        "num_added_states": 0,
    }


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
