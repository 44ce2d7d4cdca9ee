"""Models given by a function of state and action."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_integer
from aggmaze.formats.outcomes import Outcomes, is_outcome, outcome_table
from aggmaze.formats.tables import Tables

#: Probability, next state, cost, and, if one likes, whether the episode ends.
CostOutcome = tuple[float, int, float] | tuple[float, int, float, bool]


def read_function(
    num_states: int,
    num_actions: int,
    fn: Callable[[int, int], Iterable[CostOutcome] | None],
    initial: ArrayLike | None,
) -> tuple[Tables, NDArray[np.bool_]]:
    """Return the tables of `TabularMDP.from_function`.

    And the states, shape (S,), some of whose outcomes do not say whether the episode ends.
    """
    num_states = check_integer("num_states", num_states, least=1)
    num_actions = check_integer("num_actions", num_actions, least=1)
    counts = np.zeros(num_states * num_actions, dtype=np.int64)
    unsaid = np.zeros(num_states, dtype=bool)
    outcomes: list[Any] = []
    for state in range(num_states):
        first = len(outcomes)
        for action in range(num_actions):
            listed = _listed(fn(state, action), state, action)
            counts[state * num_actions + action] = len(listed)
            outcomes.extend(
                outcome if len(outcome) == 4 else (*outcome, False) for outcome in listed
            )
            unsaid[state] |= any(len(outcome) == 3 for outcome in listed)
        if len(outcomes) == first:
            # Nothing can be done here: the state is terminal.
            counts[state * num_actions : (state + 1) * num_actions] = 1
            outcomes.extend([(1.0, state, 0.0, False)] * num_actions)
    table = outcome_table(outcomes)
    if table is None:
        index = next(i for i, outcome in enumerate(outcomes) if not is_outcome(outcome, (4,)))
        row = int(np.searchsorted(np.cumsum(counts), index, side="right"))
        raise _no_outcome(*divmod(row, num_actions), outcomes[index])
    return Outcomes(num_actions, counts, table, "fn({}, {})", "cost").tables(initial), unsaid


def _listed(outcomes: Any, state: int, action: int) -> list[Any]:
    """Return the outcomes of an action, sequences of three or four."""
    if outcomes is None:
        return []
    if not isinstance(outcomes, Iterable):
        raise _no_outcome(state, action, outcomes)
    listed = []
    for outcome in outcomes:
        try:
            size = len(outcome)
        except TypeError:
            size = 0
        if size not in (3, 4):
            raise _no_outcome(state, action, outcome)
        listed.append(outcome)
    return listed


def _no_outcome(state: int, action: int, outcome: Any) -> ValueError:
    return ValueError(
        f"fn({state}, {action}) must give outcomes (probability, next_state, cost) or "
        "(probability, next_state, cost, terminated) in numbers, or None for an unavailable "
        f"action, got {outcome!r}"
    )
