"""Models from lists of outcomes, some of which end the episode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.arrays import lock
from aggmaze.checks import is_real
from aggmaze.formats.tables import (
    Tables,
    Word,
    check_prices,
    check_probabilities,
    expected_costs,
    table,
    without_rounding,
)
from aggmaze.memory import check_memory
from aggmaze.names import UNNAMED, Naming, as_names, chances, shown

# Bytes of an outcome in a model and what validating it takes, where those of an action cost the
# same, and where they do not: measured.
_BYTES_OF_OUTCOME = (28, 60)
# Fewer outcomes are no matter; from here on room is asked for whenever there are twice as many.
_FIRST_CHECKED = 1 << 20
# A column that is full grows by this share: what is empty is memory too.
_GROWTH = 0.25
_FIRST_LENGTH = 1 << 12


class Outcomes:
    """The outcomes of all actions, taken in block by block, so that little is held twice.

    Parameters
    ----------
    place : str
        How the source names an action: formatted with state and action.
    word : {"cost", "reward"}
        Which of the two the blocks hold.
    naming : Naming
        What states and actions are called.
    num_states : int, optional
        S, where it is known, so that next states are checked.
    """

    def __init__(
        self, place: str, word: Word, naming: Naming = UNNAMED, num_states: int | None = None
    ) -> None:
        self._place, self._word, self._num_states = place, word, num_states
        self.naming = naming
        self._probabilities, self._successors = _Column(np.float64), _Column(np.int32)
        self._counts, self._costs = _Column(np.int64), _Column(np.float64)
        # Only where the outcomes of an action cost differently.
        self._outcome_costs: _Column | None = None
        self._checked = _FIRST_CHECKED
        # The entries that end the episode, and the states that are not absorbing at no cost.
        self._ends, self._moving = [np.empty(0, np.int64)], [np.empty(0, np.int64)]

    @property
    def num_outcomes(self) -> int:
        """How many there are by now."""
        return self._probabilities.length

    def append(
        self,
        states: NDArray[np.int64],
        actions: NDArray[np.int64],
        counts: NDArray[np.int64],
        probabilities: NDArray[np.float64],
        following: NDArray[Any],
        prices: NDArray[np.float64],
        terminated: NDArray[np.bool_],
    ) -> None:
        """Take in the outcomes of some actions.

        Parameters
        ----------
        states, actions, counts : ndarray of int, shape (R,)
            Of each action its state, its number and how many outcomes it has; an action without
            any is unavailable.  The actions of a state are together.
        probabilities, following, prices, terminated : ndarray, shape (N,)
            Probability, next state, cost or reward, and whether the episode ends.
        """
        row_of_entry = np.repeat(np.arange(len(counts)), counts)

        def refuse_following(entry: int) -> None:
            row = int(row_of_entry[entry])
            raise ValueError(
                f"{self.place(int(states[row]), int(actions[row]))} leads to state "
                f"{following[entry]:.15g}, which is not in [0, {self._num_states})"
            )

        probabilities = without_rounding(probabilities)
        if self._num_states is not None:
            inside = (following >= 0) & (following < self._num_states)
            bad = np.flatnonzero(~(inside & (following == np.floor(following))))
            if len(bad):
                refuse_following(int(bad[0]))

        def describe(row: int) -> str:
            return self.naming.choice(int(states[row]), int(actions[row]))

        # While states are those of the source, and prices have the sign that they have there.
        check_probabilities(probabilities, following, row_of_entry, describe, self.naming)
        check_prices(prices, row_of_entry, describe, self._word)
        # 0.0 - reward, since -0.0 reads oddly.
        outcome_costs = prices if self._word == "cost" else 0.0 - prices
        successors = following.astype(np.int32)
        loops = (successors == states[row_of_entry]) & (outcome_costs == 0)
        self._moving.append(np.unique(states[row_of_entry[~loops]]))
        self._ends.append(self.num_outcomes + np.flatnonzero(terminated))
        indptr = np.concatenate([[0], np.cumsum(counts)])
        costs, uneven = expected_costs(indptr, probabilities, outcome_costs)
        if uneven is not None and self._outcome_costs is None:
            self._outcome_costs = _Column(np.float64)
            self._outcome_costs.append(np.repeat(self._costs.values, self._counts.values))
        if self._outcome_costs is not None:
            self._outcome_costs.append(np.repeat(costs, counts) if uneven is None else uneven)
        if self.num_outcomes > self._checked:
            self._checked = 2 * self.num_outcomes
            self.check_memory_of(self.num_outcomes, f"{self.num_outcomes:,} outcomes and more")
        self._probabilities.append(probabilities)
        self._successors.append(successors)
        self._counts.append(counts)
        self._costs.append(costs)

    def check_memory_of(self, count: float, what: str) -> None:
        """Refuse a model of so many outcomes such as those that came, where memory lacks.

        Parameters
        ----------
        count : float
        what : str
            As for `check_memory`.
        """
        each = _BYTES_OF_OUTCOME[self._outcome_costs is not None]
        check_memory(math.ceil(each * count), what)

    def place(self, state: int, action: int) -> str:
        """Return how the source names an action.

        Parameters
        ----------
        state, action : int
        """
        states, actions = self.naming
        return self._place.format(
            state if states is None else shown(states[state]),
            action if actions is None else shown(actions[action]),
        )

    def tables(
        self,
        num_states: int,
        num_actions: int,
        initial: Any,
        rows: NDArray[np.int64] | None = None,
    ) -> Tables:
        """Return the model's tables; nothing can be taken in afterwards.

        What ends the episode in a state that is not absorbing at no cost leads to one more,
        absorbing, state.

        Parameters
        ----------
        num_states, num_actions : int
            S and A.
        initial : hashable, mapping or array_like, shape (S,), optional
            Distribution of the first state, as for `TabularMDP`.
        rows : ndarray of int, optional
            ``s * A + a`` of each action in the order in which they came; by default all actions of
            all states did, in order.  Actions that did not come are unavailable.
        """
        if initial is not None:
            names = as_names("states", self.naming.states)
            initial = chances(initial, names, num_states, num_states)
            initial = table(initial, "initial", np.float64, (num_states,))
        counts, costs = self._counts.finished(), self._costs.finished()
        probabilities, successors = self._probabilities.finished(), self._successors.finished()
        outcome_costs = None if self._outcome_costs is None else self._outcome_costs.finished()
        absorbing = np.ones(num_states, dtype=bool)
        absorbing[np.concatenate(self._moving)] = False
        ends = np.concatenate(self._ends)
        ends = ends[~absorbing[successors[ends]]]
        successors[ends] = num_states
        if rows is not None:
            order = np.argsort(rows, kind="stable")
            if (order[1:] < order[:-1]).any():
                starts = np.cumsum(counts) - counts
                wanted = counts[order]
                entries = np.arange(len(probabilities)) - np.repeat(
                    np.cumsum(wanted) - wanted - starts[order], wanted
                )
                probabilities, successors = probabilities[entries], successors[entries]
                outcome_costs = None if outcome_costs is None else outcome_costs[entries]
            counts, costs = (
                _spread(counts, rows, num_states * num_actions),
                _spread(costs, rows, num_states * num_actions),
            )
        num_added = int(len(ends) > 0)
        if num_added:
            probabilities = np.concatenate([probabilities, np.ones(num_actions)])
            added = np.full(num_actions, num_states, dtype=np.int32)
            successors = np.concatenate([successors, added])
            costs = np.concatenate([costs, np.zeros(num_actions)])
            counts = np.concatenate([counts, np.ones(num_actions, dtype=np.int64)])
            if outcome_costs is not None:
                outcome_costs = np.concatenate([outcome_costs, np.zeros(num_actions)])
            if initial is not None:
                initial = np.append(initial, 0.0)
        num_states += num_added
        index = np.int32 if len(probabilities) < 2**31 else np.int64
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(index)
        # Nobody else holds them: the model need not copy what is locked.
        for array in (probabilities, successors, indptr, costs):
            lock(array)
        return {
            "transitions": sp.csr_array(
                (probabilities, successors, indptr),
                shape=(num_states * num_actions, num_states),
            ),
            "costs": costs.reshape(num_states, num_actions),
            "action_mask": (counts > 0).reshape(num_states, num_actions),
            "terminal": None,
            "initial": initial,
            "outcome_costs": None if outcome_costs is None else lock(outcome_costs),
            "num_added_states": num_added,
            "state_names": self.naming.states,
            "action_names": self.naming.actions,
        }


class _Column:
    """An array that grows."""

    def __init__(self, dtype: Any) -> None:
        self.length = 0
        self._array = np.empty(_FIRST_LENGTH, dtype=dtype)

    @property
    def values(self) -> NDArray[Any]:
        return self._array[: self.length]

    def append(self, values: NDArray[Any]) -> None:
        length = self.length + len(values)
        if length > len(self._array):
            # In place, where the system can move pages; nobody keeps a view.
            self._array.resize(int(length * (1 + _GROWTH)), refcheck=False)
        self._array[self.length : length] = values
        self.length = length

    def finished(self) -> NDArray[Any]:
        """Return the array, at its length."""
        self._array.resize(self.length, refcheck=False)
        return self._array


def _spread(values: NDArray[Any], places: NDArray[np.int64], length: int) -> NDArray[Any]:
    """Return values at their places, 0 elsewhere."""
    spread = np.zeros(length, dtype=values.dtype)
    spread[places] = values
    return spread


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
