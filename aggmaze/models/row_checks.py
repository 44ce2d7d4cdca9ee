"""What a block of a model by rows must be like, in the words in which whole models are refused."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aggmaze.formats.tables import check_probabilities
from aggmaze.models.rows import ROW_SUM_TOLERANCE
from aggmaze.names import UNNAMED


def check_moves(
    successors: NDArray[np.int64],
    costs: NDArray[np.float64],
    available: NDArray[np.bool_],
    first: int,
    num_states: int,
) -> None:
    """Refuse moves that are none, in the words of `aggmaze.MoveMDP`.

    Parameters
    ----------
    successors : ndarray of int64, shape (B, M)
    costs : ndarray of float, shape (B, M)
    available : ndarray of bool, shape (B, M)
        Where costs are finite.
    first : int
        First state of the block.
    num_states : int
        Of the model.

    Raises
    ------
    ValueError
    """
    wrong = ~available & (costs != np.inf)
    if wrong.any():
        state, move = np.argwhere(wrong)[0]
        raise ValueError(
            f"state {first + state}, move {move}: cost {costs[state, move]} must be finite, "
            "or +inf for an unavailable move"
        )
    outside = available & ((successors < 0) | (successors >= num_states))
    if outside.any():
        state, move = np.argwhere(outside)[0]
        raise ValueError(
            f"state {first + state}, move {move}: successor {successors[state, move]} is not in "
            f"[0, {num_states})"
        )


def check_rows(
    indptr: NDArray[np.int64],
    following: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    states: tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]],
    first: int,
    num_states: int,
) -> None:
    """Refuse rows that are none, in the words of `aggmaze.TabularMDP`.

    Parameters
    ----------
    indptr : ndarray of int64, shape (B*A + 1,)
        From 0 on.
    following : ndarray of int64, shape (N,)
    probabilities : ndarray of float, shape (N,)
    states : tuple of ndarrays
        Costs and availability of actions, shape (B, A), and which states are terminal, shape (B,).
    first : int
        First state of the block.
    num_states : int
        Of the model.

    Raises
    ------
    ValueError
    """
    costs, mask, terminal = states
    num_actions = costs.shape[1]

    def describe(row: int) -> str:
        return UNNAMED.row(first * num_actions + row, num_actions)

    if len(following) and not 0 <= following.min() <= following.max() < num_states:
        raise ValueError(f"transitions name a state outside [0, {num_states})")
    counts = np.diff(indptr)
    row_of_entry = np.repeat(np.arange(len(counts)), counts)
    check_probabilities(probabilities, following, row_of_entry, describe)
    sums = np.bincount(row_of_entry, weights=probabilities, minlength=len(counts))
    bad = np.flatnonzero(np.abs(sums - 1.0) > ROW_SUM_TOLERANCE)
    if len(bad):
        raise ValueError(f"{describe(bad[0])}: probabilities sum to {sums[bad[0]]}, must sum to 1")
    bad = np.flatnonzero((mask & ~np.isfinite(costs)).reshape(-1))
    if len(bad):
        cost = costs.reshape(-1)[bad[0]]
        raise ValueError(f"{describe(bad[0])}: cost {cost} must be finite")
    stuck = np.flatnonzero(~mask.any(axis=1))
    if len(stuck):
        raise ValueError(f"{UNNAMED.state(first + int(stuck[0]))} has no available action")
    leaves = np.zeros(len(terminal), dtype=bool)
    state_of_entry = row_of_entry // num_actions
    leaves[state_of_entry[(following != first + state_of_entry) & (probabilities > 0)]] = True
    fake = np.flatnonzero(terminal & (leaves | (costs != 0).any(axis=1)))
    if len(fake):
        raise ValueError(
            f"{UNNAMED.state(first + int(fake[0]))} is declared terminal, so every action must "
            "lead back to it and neither cost nor pay anything"
        )
