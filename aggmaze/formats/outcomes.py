"""Models from lists of outcomes, some of which end the episode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import is_real
from aggmaze.formats.tables import (
    Tables,
    check_prices,
    check_probabilities,
    expected_costs,
    table,
    without_rounding,
)


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of all actions, listed state by state and action by action.

    Parameters
    ----------
    num_actions : int
        A.
    counts : ndarray of int, shape (S*A,)
        Number of outcomes of each action; an action without any is unavailable.
    table : ndarray of float, shape (nnz, 4)
        Probability, next state, cost or reward, and whether the episode ends.
    place : str
        How the source names an action: formatted with state and action.
    word : {"cost", "reward"}
        Which of the two the table holds.
    """

    num_actions: int
    counts: NDArray[np.int64]
    table: NDArray[np.float64]
    place: str
    word: str

    def tables(self, initial: ArrayLike | None) -> Tables:
        """Return the model's tables.

        What ends the episode in a state that is not absorbing at no cost leads to one more,
        absorbing, state.

        Parameters
        ----------
        initial : array_like, shape (S,), optional
            Distribution of the first state.
        """
        num_actions, counts = self.num_actions, self.counts
        num_rows = len(counts)
        num_states = num_rows // num_actions
        probabilities, following, prices, terminated = self.table.T
        probabilities = without_rounding(probabilities)
        row_of_entry = np.repeat(np.arange(num_rows), counts)
        bad = np.flatnonzero(
            ~((following >= 0) & (following < num_states) & (following == np.floor(following)))
        )
        if len(bad):
            place = self.place.format(*divmod(int(row_of_entry[bad[0]]), num_actions))
            raise ValueError(
                f"{place} leads to state {following[bad[0]]:.15g}, which is not in "
                f"[0, {num_states})"
            )
        # While states are those of the source, and prices have the sign that they have there.
        check_probabilities(probabilities, following, row_of_entry, num_actions)
        check_prices(prices, row_of_entry, num_actions, self.word)
        if initial is not None:
            initial = table(initial, "initial", np.float64, (num_states,))
        # 0.0 - reward, since -0.0 reads oddly.
        costs = prices if self.word == "cost" else 0.0 - prices
        successors = following.astype(np.int64)
        loops = (successors == row_of_entry // num_actions) & (costs == 0)
        absorbing = np.ones(num_states, dtype=bool)
        absorbing[row_of_entry[~loops] // num_actions] = False
        ends = (terminated != 0) & ~absorbing[successors]
        num_added = int(ends.any())
        successors = np.where(ends, num_states, successors)
        if num_added:
            probabilities = np.concatenate([probabilities, np.ones(num_actions)])
            successors = np.concatenate([successors, np.full(num_actions, num_states)])
            costs = np.concatenate([costs, np.zeros(num_actions)])
            counts = np.concatenate([counts, np.ones(num_actions, dtype=np.int64)])
            if initial is not None:
                initial = np.append(initial, 0.0)
        num_states += num_added
        indptr = np.concatenate([[0], np.cumsum(counts)])
        means, outcome_costs = expected_costs(indptr, probabilities, costs)
        return {
            "transitions": sp.csr_array(
                (np.ascontiguousarray(probabilities), successors.astype(np.int32), indptr),
                shape=(num_states * num_actions, num_states),
            ),
            "costs": means.reshape(num_states, num_actions),
            "action_mask": (counts > 0).reshape(num_states, num_actions),
            "terminal": None,
            "initial": initial,
            "outcome_costs": outcome_costs,
            "num_added_states": num_added,
        }


def outcome_table(outcomes: list[Any]) -> NDArray[np.float64] | None:
    """Return outcomes of four numbers each as a table, shape (nnz, 4), or None if one is none."""
    if not outcomes:
        return np.empty((0, 4))
    try:
        table = np.array(outcomes, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return table if table.ndim == 2 and table.shape[1] == 4 else None


def is_outcome(outcome: Any, lengths: tuple[int, ...]) -> bool:
    """Return whether an outcome has one of the lengths and holds nothing but numbers.

    Parameters
    ----------
    outcome : object
    lengths : tuple of int
    """
    if not isinstance(outcome, Sequence | np.ndarray) or len(outcome) not in lengths:
        return False
    return all(is_real(entry) or isinstance(entry, bool | np.bool_) for entry in outcome)
