"""How models end that are given by matrices: terminal states, and what they pay.

Matrices often leave the rows of terminal states empty, or let them lead anywhere, and give a number
for what it is worth to end there.  A model has terminal states that lead back to themselves and
cost nothing, so that this number is paid by another step: the one that enters the state, or one
more that leaves it for a state that is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.arrays import lock
from aggmaze.formats.tables import Tables, Word, expected_costs, table
from aggmaze.names import Names, Naming, index_of, marked

Paid = Literal["once", "entering"]


@dataclass(frozen=True)
class Endings:
    """What terminal states pay, as it is given.

    Parameters
    ----------
    prices : array_like, shape (S,), or mapping
        Costs or rewards of terminal states, by state.
    word : {"cost", "reward"}
        Which of the two they are.
    paid : {"once", "entering"}
        Whether the state pays, one step after it is entered, or the step that enters it.
    """

    prices: Any
    word: Word
    paid: Paid

    def read(
        self,
        word: Word,
        transitions: sp.csr_array,
        num_actions: int,
        available: NDArray[np.bool_],
        terminal: NDArray[np.bool_] | None,
        naming: Naming,
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Return which states are terminal, and what each pays, shape (S,).

        Parameters
        ----------
        word : {"cost", "reward"}
            What the matrices hold.
        transitions : sparse array, shape (S*A, S)
        num_actions : int
        available : ndarray of bool, shape (S*A,)
        terminal : ndarray of bool, shape (S,), optional
            As declared.  By default those that pay, and those that nothing leads away from.
        naming : Naming
        """
        if word != self.word:
            raise ValueError(
                f"terminal_{self.word}s go with {self.word}s, and the model has {word}s: give "
                f"terminal_{word}s"
            )
        name, num_states = f"terminal_{word}s", transitions.shape[1]
        final, listed = np.zeros(num_states), np.zeros(num_states, dtype=bool)
        if isinstance(self.prices, Mapping):
            names = naming.states if isinstance(naming.states, Names) else None
            for state, price in self.prices.items():
                try:
                    index = index_of("state", state, names, num_states)
                except (TypeError, ValueError) as error:
                    raise type(error)(f"{name}: {error}") from None
                final[index] = table([price], name, np.float64)[0]
                listed[index] = True
        else:
            final = table(self.prices, name, np.float64, (num_states,)).copy()
            listed = final != 0
        bad = np.flatnonzero(~np.isfinite(final))
        if len(bad):
            raise ValueError(f"{name}: {final[bad[0]]} of {naming.state(bad[0])} must be finite")
        if terminal is None:
            return listed | _stuck(transitions, num_actions, available), final
        other = np.flatnonzero(listed & ~terminal)
        if len(other):
            raise ValueError(
                f"{name}: {naming.state(other[0])} has {final[other[0]]:g} and is not among the "
                "states of terminal="
            )
        return terminal, final

    def added_to(
        self, tables: Tables, ends: NDArray[np.bool_], final: NDArray[np.float64]
    ) -> Tables:
        """Return the tables of a model that pays at its ends.

        Parameters
        ----------
        tables : Tables
            Of one whose terminal states stay in place at no cost.
        ends : ndarray of bool, shape (S,)
            Its terminal states.
        final : ndarray of float, shape (S,)
            What they cost.
        """
        if tables["initial"] is None:
            starts = ends if ends.all() else ~ends
            tables["initial"] = lock(starts / np.count_nonzero(starts))
        tables["terminal"] = lock(ends.copy())
        paying = ends & (final != 0)
        if not paying.any():
            return tables
        return (_paid_once if self.paid == "once" else _paid_entering)(tables, paying, final)


def _paid_once(tables: Tables, paying: NDArray[np.bool_], final: NDArray[np.float64]) -> Tables:
    """Let states that pay lead to one more, which is terminal."""
    matrix, num_actions = tables["transitions"], tables["costs"].shape[1]
    num_states = len(paying)
    indices, indptr = matrix.indices.copy(), matrix.indptr
    rows = np.flatnonzero(np.repeat(paying, num_actions))
    # Each of them has one entry, the state itself.
    entries = indptr[rows]
    indices[entries] = num_states
    costs = tables["costs"].copy()
    costs[paying] = final[paying, np.newaxis]
    outcome_costs = tables["outcome_costs"]
    if outcome_costs is not None:
        outcome_costs = outcome_costs.copy()
        outcome_costs[entries] = final[rows // num_actions]
        outcome_costs = lock(np.concatenate([outcome_costs, np.zeros(num_actions)]))
    last = int(indptr[-1])
    transitions = sp.csr_array(
        (
            np.concatenate([matrix.data, np.ones(num_actions)]),
            np.concatenate([indices, np.full(num_actions, num_states, indices.dtype)]),
            np.concatenate([indptr, last + 1 + np.arange(num_actions, dtype=indptr.dtype)]),
        ),
        shape=((num_states + 1) * num_actions, num_states + 1),
    )
    mask = np.asarray(tables["action_mask"])
    return tables | {
        "transitions": transitions,
        "costs": lock(np.concatenate([costs, np.zeros((1, num_actions))])),
        "action_mask": np.concatenate([mask, np.ones((1, num_actions), dtype=bool)]),
        "terminal": np.append(np.asarray(tables["terminal"]) & ~paying, True),
        "initial": np.append(np.asarray(tables["initial"]), 0.0),
        "outcome_costs": outcome_costs,
        "num_added_states": 1,
    }


def _paid_entering(tables: Tables, paying: NDArray[np.bool_], final: NDArray[np.float64]) -> Tables:
    """Let every step into a state that pays, from another, pay for it."""
    matrix, costs = tables["transitions"], tables["costs"]
    num_actions = costs.shape[1]
    counts = np.diff(matrix.indptr)
    states = np.repeat(np.arange(len(counts)) // num_actions, counts)
    outcome_costs = tables["outcome_costs"]
    if outcome_costs is None:
        outcome_costs = np.repeat(costs.reshape(-1), counts)
    enters = paying[matrix.indices] & (states != matrix.indices)
    outcome_costs = np.where(enters, outcome_costs + final[matrix.indices], outcome_costs)
    means, outcomes = expected_costs(matrix.indptr, matrix.data, outcome_costs)
    # Of an unavailable action nothing is stored.
    means = np.where(counts > 0, means, costs.reshape(-1))
    return tables | {"costs": lock(means.reshape(costs.shape)), "outcome_costs": outcomes}


def _stuck(
    transitions: sp.csr_array, num_actions: int, available: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return the states that no available action leads away from, shape (S,)."""
    rows = np.repeat(np.arange(transitions.shape[0]), np.diff(transitions.indptr))
    leaves = (transitions.indices != rows // num_actions) & (transitions.data != 0)
    leaves &= available[rows]
    stuck = np.ones(transitions.shape[1], dtype=bool)
    stuck[rows[leaves] // num_actions] = False
    return stuck


def terminal_states(terminal: Any, naming: Naming, num_states: int) -> NDArray[np.bool_] | None:
    """Return the terminal states as a mask, shape (S,); None where they are not told.

    Parameters
    ----------
    terminal : array_like of bool, shape (S,), [], names, or None
    naming : Naming
    num_states : int
    """
    if terminal is None:
        return None
    names = naming.states if isinstance(naming.states, Names) else None
    terminal = marked(terminal, names, num_states)
    if np.shape(terminal) == (0,):
        return np.zeros(num_states, dtype=bool)
    return table(terminal, "terminal", np.bool_, (num_states,))


def empty_ends(
    transitions: sp.csr_array, terminal: NDArray[np.bool_], num_actions: int
) -> NDArray[np.bool_]:
    """Return the rows of terminal states of which nothing is stored, shape (S*A,).

    Parameters
    ----------
    transitions : sparse array, shape (S*A, S)
    terminal : ndarray of bool, shape (S,)
    num_actions : int
    """
    rows = np.repeat(np.arange(transitions.shape[0]), np.diff(transitions.indptr))
    empty = np.ones(transitions.shape[0], dtype=bool)
    empty[rows[transitions.data != 0]] = False
    return empty & np.repeat(terminal, num_actions)


def with_stays(
    transitions: sp.csr_array,
    prices: NDArray[np.float64],
    rows: NDArray[np.bool_],
    num_actions: int,
    by_outcome: bool,
) -> tuple[sp.csr_array, NDArray[np.float64]]:
    """Return transitions and prices in which some rows lead back to their state for nothing.

    Parameters
    ----------
    transitions : sparse array, shape (S*A, S)
    prices : ndarray of float, shape (S*A,) or (nnz,)
    rows : ndarray of bool, shape (S*A,)
        The rows; what they hold is dropped.
    num_actions : int
    by_outcome : bool
        Whether there is a price for each stored outcome.
    """
    counts = np.diff(transitions.indptr)
    kept = ~np.repeat(rows, counts)
    changed = np.where(rows, 1, counts)
    indptr = np.concatenate([[0], np.cumsum(changed)]).astype(transitions.indptr.dtype)
    staying = np.flatnonzero(rows)
    places = indptr[:-1][staying]
    stays = np.zeros(int(indptr[-1]), dtype=bool)
    stays[places] = True
    data, indices = np.ones(len(stays)), np.empty(len(stays), transitions.indices.dtype)
    data[~stays], indices[~stays] = transitions.data[kept], transitions.indices[kept]
    indices[places] = staying // num_actions
    if by_outcome:
        spread = np.zeros(len(stays))
        spread[~stays] = prices[kept]
        prices = spread
    else:
        prices = np.where(rows, 0.0, prices)
    return sp.csr_array((data, indices, indptr), shape=transitions.shape), prices
