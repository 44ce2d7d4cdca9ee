"""The table ``P`` of Gymnasium's toy-text environments.

``P[s][a]`` lists ``(probability, next_state, reward, terminated)``.  The format has no masks, no
first state and no terminal states but those that outcomes lead to.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.formats.functions import read_function
from aggmaze.formats.outcomes import Outcomes, is_outcome, outcome_table
from aggmaze.formats.tables import SupportsRows, Tables, plain_rows
from aggmaze.names import Naming, as_names, shown
from aggmaze.progress import report

#: Probability, next state, reward, and whether the episode ends.
Outcome = tuple[float, int, float, bool]

# States whose rows are turned into Python numbers at a time.
_BLOCK = 128
# States or actions between two reports of how far the reading is.
_TOLD = 4096


def read_gym_P(  # noqa: N802 (P is the attribute's name)
    P: Mapping[Any, Mapping[Any, Sequence[Outcome]]] | Sequence[Sequence[Sequence[Outcome]]],
    initial: Any,
    state_names: Any = None,
    action_names: Any = None,
) -> Tables:
    """Return the tables of `TabularMDP.from_gym_P`."""
    if isinstance(P, Mapping) and _has_names(P):
        if state_names is not None or action_names is not None:
            raise ValueError(
                "P names its states or actions: leave state_names and action_names out"
            )
        return _read_named(P, initial)
    rows, num_actions = _rows(P)
    table = _table(rows, num_actions)
    counts = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
    num_states = len(rows) // num_actions
    naming = Naming(
        as_names("state_names", state_names, num_states),
        as_names("action_names", action_names, num_actions),
    )
    outcomes = Outcomes("P[{}][{}]", "reward", naming, num_states)
    states, actions = np.divmod(np.arange(len(rows)), num_actions)
    probabilities, following, rewards, terminated = table.T
    outcomes.append(states, actions, counts, probabilities, following, rewards, terminated != 0)
    tables = outcomes.tables(num_states, num_actions, initial)
    # The format has no masks: an action without outcomes is a fault, which validation names.
    return {**tables, "action_mask": None}


def _has_names(P: Mapping[Any, Any]) -> bool:
    """Whether states or actions are something else than numbers."""
    if not all(_is_number(state) for state in P):
        return True
    first = next(iter(P.values()), None)
    return isinstance(first, Mapping) and not all(_is_number(action) for action in first)


def _is_number(name: Any) -> bool:
    return hasattr(name, "__index__")


def _read_named(P: Mapping[Any, Any], initial: Any) -> Tables:
    """Return the tables of a P by names, in which actions that a state lacks are unavailable."""
    for state, actions in P.items():
        if not isinstance(actions, Mapping):
            raise ValueError(
                f"P[{shown(state)}] must map its actions to their outcomes, {{}} where the episode "
                f"has ended, got {shown(actions)}"
            )
    return read_function(
        lambda state, action: P[state][action],
        P.keys(),
        lambda state: P[state].keys(),
        word="reward",
        initial=initial,
        place="P[{}][{}]",
    ).tables


def to_gym_P(model: SupportsRows) -> GymP:  # noqa: N802 (P is the attribute's name)
    """Return a model as the table ``P`` of Gymnasium's toy-text environments.

    Rows are built when they are asked for.  Terminal states lead to themselves, with reward 0, and
    what leads to a terminal state is marked as terminated.  The format has no masks: an
    unavailable action stays in place at a cost that never pays.  Nor does it hold the distribution
    of the first state.

    Parameters
    ----------
    model : TabularMDP or MoveMDP

    Returns
    -------
    GymP
        ``P[s][a]`` is a list of ``(probability, next_state, reward, terminated)``.
    """
    return GymP(model)


class GymP(Mapping[int, dict[int, list[Outcome]]]):
    """A model in the form of Gymnasium's ``P``, built as it is read; see `to_gym_P`.

    Every state read is a new dict of new lists: changing them changes nothing here.  It equals any
    mapping that holds the same; ``dict(P)`` is all of it at once.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    """

    def __init__(self, model: SupportsRows) -> None:
        self._model = model.validate()
        # The block read last: its number, the end of each action's outcomes, and the outcomes.
        self._block: tuple[int, list[int], list[Outcome]] | None = None

    def __len__(self) -> int:
        return self._model.num_states

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __contains__(self, state: object) -> bool:
        try:
            return 0 <= operator.index(state) < len(self)  # type: ignore[arg-type]
        except TypeError:
            return False

    def __getitem__(self, state: int) -> dict[int, list[Outcome]]:
        if state not in self:
            raise KeyError(state)
        number, place = divmod(operator.index(state), _BLOCK)
        block = self._block
        if block is None or block[0] != number:
            self._block = block = (number, *self._outcomes(number * _BLOCK))
        _, ends, outcomes = block
        num_actions = self._model.num_actions
        first = place * num_actions
        return {
            action: outcomes[ends[first + action] : ends[first + action + 1]]
            for action in range(num_actions)
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} states, {self._model.num_actions} actions)"

    def __reduce__(self) -> tuple[type[GymP], tuple[SupportsRows]]:
        return type(self), (self._model,)

    def _outcomes(self, lo: int) -> tuple[list[int], list[Outcome]]:
        rows = plain_rows(self._model, lo, min(lo + _BLOCK, len(self)))
        matrix = rows.transitions
        columns: list[NDArray[Any]] = [
            matrix.data,
            matrix.indices,
            0.0 - rows.outcome_costs,
            self._model.terminal[matrix.indices],
        ]
        outcomes = list(zip(*(column.tolist() for column in columns), strict=True))
        return matrix.indptr.tolist(), outcomes


def _rows(P: Any) -> tuple[list[Any], int]:
    """Return the outcome lists of a table by state and action, and the number of actions."""
    if len(P) == 0:
        raise ValueError("P has no states")
    rows: list[Any] = []
    num_actions = 0
    for state in range(len(P)):
        if state % _TOLD == 0:
            report(state, len(P), "states")
        try:
            actions = P[state]
            if not hasattr(actions, "__getitem__"):
                raise ValueError(f"P[{state}] must list its actions, got {actions!r}")
            num_actions = num_actions or len(actions)
            if len(actions) != num_actions or num_actions == 0:
                raise ValueError(
                    f"P[{state}] has {len(actions)} actions, "
                    f"{'at least one is needed' if state == 0 else f'P[0] has {num_actions}'}"
                )
            rows.extend(actions[action] for action in range(num_actions))
        except (KeyError, IndexError):
            raise ValueError(
                f"P must have the states 0 to {len(P) - 1}, each with the actions 0 to "
                f"{max(num_actions, 1) - 1}: something of P[{state}] is missing"
            ) from None
    return rows, num_actions


def _table(rows: list[Any], num_actions: int) -> NDArray[np.float64]:
    """Return all outcomes as a table of four columns, or name the first that is none."""
    try:
        tables = _tables(rows)
    except TypeError:
        tables = None
    if tables is not None and any(map(len, tables)):
        return np.concatenate(tables)
    for index, row in enumerate(rows):
        for outcome in row if isinstance(row, Sequence) else (row,):
            if not is_outcome(outcome, (4,)):
                state, action = divmod(index, num_actions)
                raise ValueError(
                    f"P[{state}][{action}] must list (probability, next_state, reward, "
                    f"terminated) in numbers, got {outcome!r}"
                )
    raise ValueError("P lists no outcomes")


def _tables(rows: list[Any]) -> list[NDArray[np.float64]] | None:
    """Return the outcomes of some actions after the other as tables, None if one is none.

    Python lists become arrays without a pause: of all at once nothing could be told meanwhile.
    """
    tables = []
    for lo in range(0, len(rows), _TOLD):
        report(lo, len(rows), "actions")
        table = outcome_table(list(chain.from_iterable(rows[lo : lo + _TOLD])))
        if table is None:
            return None
        tables.append(table)
    return tables
