"""Transition systems as verification tools hold them, to and from tables.

States have choices, choices have branches, and whatever else is known has a name: labels mark
states, reward structures say what states, choices and branches cost or pay.  UMB, DRN and PRISM's
explicit files all hold such a system; what is asked of it, a tool gets with a property.  Here it is
asked for when the file is read: see `system_tables`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.checks import check_choice, did_you_mean
from aggmaze.formats.tables import SupportsRows, Tables, expected_costs
from aggmaze.memory import check_memory
from aggmaze.models.rows import Rows

if TYPE_CHECKING:
    from aggmaze.models.tabular import TabularMDP

#: What numbers of a reward structure mean, or that none is asked for.
VALUES = ("costs", "rewards", "reach", "avoid")

#: The label of terminal states, and the structures of costs, in files that are written here.
TERMINAL, COST, OUTCOME_COST = "terminal", "cost", "outcome_cost"

# Columns by the names of actions are kept to where the table has so many entries a choice.
_MOST_COLUMNS = 4
# Bytes a table takes for each of its rows, and for each branch, while it is made: measured.
_ROW_BYTES, _BRANCH_BYTES = 110, 100


class Structure(NamedTuple):
    """A reward structure; what is not given is 0.

    Parameters
    ----------
    states : ndarray of float, shape (S,), or None
        Of each step that leaves the state.
    choices : ndarray of float, shape (C,), or None
    branches : ndarray of float, shape (B,), or None
    """

    states: NDArray[np.float64] | None = None
    choices: NDArray[np.float64] | None = None
    branches: NDArray[np.float64] | None = None


class Own(NamedTuple):
    """What only files that are written here say.

    Parameters
    ----------
    num_actions : int
    num_added_states : int
    initial : ndarray of float, shape (S,), or None
        Where it is not uniform over the states that are marked.
    idle_cost : float or None
        What unavailable actions cost, which stay in place, if it is one number.
    action_names : sequence of hashable, or None
    """

    num_actions: int
    num_added_states: int
    initial: NDArray[np.float64] | None
    idle_cost: float | None
    action_names: Sequence[Hashable] | None


class System(NamedTuple):
    """A transition system of S states, C choices and B branches.

    Parameters
    ----------
    state_to_choices : ndarray of int, shape (S + 1,)
        State ``s`` has the choices ``state_to_choices[s]`` to ``state_to_choices[s + 1] - 1``.
    choice_to_branches : ndarray of int, shape (C + 1,)
    targets : ndarray of int, shape (B,)
    probabilities : ndarray of float, shape (B,)
    initial : ndarray of bool, shape (S,)
    labels : mapping of ndarray of bool, shape (S,)
    structures : mapping of Structure
    choice_actions : ndarray of int, shape (C,), or None
        Place of each choice's action in ``action_names``; -1 for none.
    action_names : list of str or None
    state_names : sequence of hashable, or None
        Of the states that are not added.
    own : Own or None
    """

    state_to_choices: NDArray[np.int64]
    choice_to_branches: NDArray[np.int64]
    targets: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    initial: NDArray[np.bool_]
    labels: Mapping[str, NDArray[np.bool_]]
    structures: Mapping[str, Structure]
    choice_actions: NDArray[np.int64] | None = None
    action_names: list[str] | None = None
    state_names: Sequence[Hashable] | None = None
    own: Own | None = None

    @property
    def num_states(self) -> int:
        """Number of states S."""
        return len(self.state_to_choices) - 1


class SupportsSystem(SupportsRows, Protocol):
    """What `system_of` asks of a model."""

    @property
    def initial(self) -> NDArray[np.float64]:
        """Distribution of the first state, shape (S,)."""

    @property
    def num_added_states(self) -> int:
        """Number of trailing states that the source of the model does not list."""

    def to_tabular(self) -> TabularMDP:
        """Return the model as a table."""


def system_tables(
    system: System,
    *,
    goal: str | None = None,
    structure: str | None = None,
    values: str = "costs",
) -> Tables:
    """Return the tables of a `TabularMDP` that asks a question of a transition system.

    The choices of a state become its actions: in the columns of their names, where every choice has
    one that no other of its state has, and the table has no more than four entries a choice; else
    they are numbered in each state.  A state without choices is terminal.  Episodes begin in the
    initial states, each as likely.

    Parameters
    ----------
    system : System
    goal : str, optional
        A label.  The states that it marks are terminal: what they cost and lead to does not count.
        Without it those are terminal that only lead to themselves and cost nothing.
    structure : str, optional
        The reward structure that counts.  By default the only one, or none if there is none.
    values : {"costs", "rewards", "reach", "avoid"}
        What its numbers are.  "reach" takes no structure: getting to the goal pays 1, so that the
        cost-to-go at gamma 1 is minus the highest probability of it.  "avoid": getting there costs
        1, which leaves the lowest probability.  In both all states are terminal in which nothing
        is left to decide: from which the goal cannot be reached, or can surely be avoided.

    Raises
    ------
    ValueError
        If there is no such label or structure, or more than one structure to choose from.
    MemoryError
        If the tables need more memory than is available.
    """
    check_choice("values", values, VALUES)
    num_states, counts = system.num_states, np.diff(system.state_to_choices)
    asks = values in ("reach", "avoid")
    if asks and goal is None:
        raise ValueError(f"values={values!r} asks for a goal: goal=LABEL, one of {_known(system)}")
    if asks and structure is not None:
        raise ValueError(f"values={values!r} counts no reward structure, got {structure!r}")
    marked = _goal_states(system, goal)
    terminal = None
    if goal is None and system.own is not None:
        terminal = system.labels.get(TERMINAL, marked) | (counts == 0)
    columns, num_actions, names = _columns(system, counts)
    num_rows = num_states * num_actions
    check_memory(
        _ROW_BYTES * num_rows + _BRANCH_BYTES * len(system.targets),
        f"the tables of {num_states:,} states with {num_actions:,} actions",
    )
    stopped = marked | (counts == 0)
    if asks:
        ends = marked | (_cannot_reach if values == "reach" else _can_avoid)(system, marked)
        stopped = stopped | ends
        sign = -1.0 if values == "reach" else 1.0
        outcomes = np.where(marked[system.targets], sign, 0.0)
        prices, spread = expected_costs(system.choice_to_branches, system.probabilities, outcomes)
    else:
        prices, spread = _prices(system, structure, values == "rewards")
    # Row by row in the order of the choices, then into their columns.
    lengths = np.diff(system.choice_to_branches)
    state_of_choice = np.repeat(np.arange(num_states), counts)
    kept = ~stopped[state_of_choice]
    rows = state_of_choice * num_actions + columns
    if len(rows) and (np.diff(rows) < 0).any():
        order = np.argsort(rows, kind="stable")
    else:
        order = np.arange(len(rows))
    order = order[kept[order]]
    row_counts = np.zeros(num_rows, dtype=np.int64)
    row_counts[rows[order]] = lengths[order]
    ends_at = np.flatnonzero(stopped)
    end_rows = (ends_at[:, None] * num_actions + np.arange(num_actions)).reshape(-1)
    row_counts[end_rows] = 1
    idle = np.empty(0, dtype=np.int64)
    idle_cost = None if system.own is None else system.own.idle_cost
    if idle_cost is not None:
        idle = np.flatnonzero(row_counts == 0)
        row_counts[idle] = 1
    indptr = np.concatenate([[0], np.cumsum(row_counts)])
    data, indices = np.ones(indptr[-1]), np.empty(indptr[-1], dtype=np.int64)
    indices[indptr[end_rows]] = np.repeat(ends_at, num_actions)
    indices[indptr[idle]] = idle // num_actions
    entries = _ranges(system.choice_to_branches[order], lengths[order])
    places = _ranges(indptr[rows[order]], lengths[order])
    data[places], indices[places] = system.probabilities[entries], system.targets[entries]
    costs, mask = np.zeros(num_rows), np.zeros(num_rows, dtype=bool)
    costs[rows[order]], mask[rows[order]] = prices[order], True
    mask[end_rows] = True
    if idle_cost is not None:
        ended = np.zeros(num_states, bool) if terminal is None else terminal
        costs[idle] = np.where(ended[idle // num_actions], 0.0, idle_cost)
    outcome_costs = None
    if spread is not None:
        outcome_costs = np.zeros(indptr[-1])
        outcome_costs[places] = spread[entries]
        outcome_costs[indptr[idle]] = costs[idle]
    shape = num_states, num_actions
    if num_states <= np.iinfo(np.int32).max and len(indices) <= np.iinfo(np.int32).max:
        indices, indptr = indices.astype(np.int32), indptr.astype(np.int32)
    initial = None
    added = 0
    if system.own is not None:
        initial, added = system.own.initial, system.own.num_added_states
    if initial is None and system.initial.any():
        initial = system.initial / np.count_nonzero(system.initial)
    return {
        "transitions": sp.csr_array((data, indices, indptr), shape=(num_rows, num_states)),
        "costs": costs.reshape(shape),
        "action_mask": mask.reshape(shape),
        "terminal": stopped if goal is not None else terminal,
        "initial": initial,
        "outcome_costs": outcome_costs,
        "num_added_states": added,
        "state_names": _distinct(system.state_names),
        "action_names": names if system.own is None else system.own.action_names,
    }


def system_of(model: SupportsSystem) -> System:
    """Return the transition system of a model.

    The available actions are its choices.  Terminal states have the label ``terminal``, and choices
    that lead back.  The reward structure ``cost`` holds the costs of choices, and where
    the outcomes of an action cost differently ``outcome_cost`` has theirs.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    """
    model = model.validate().to_tabular()
    num_states, num_actions = model.num_states, model.num_actions
    rows = model.rows(0, num_states)
    mask = rows.action_mask
    chosen = np.flatnonzero(mask.reshape(-1))
    matrix = rows.transitions
    lengths = np.diff(matrix.indptr).astype(np.int64)[chosen]
    entries = _ranges(matrix.indptr[chosen].astype(np.int64), lengths)
    structures = {COST: Structure(choices=rows.costs.reshape(-1)[chosen].astype(np.float64))}
    if model.outcome_costs is not None:
        structures[OUTCOME_COST] = Structure(branches=model.outcome_costs[entries])
    started = model.initial > 0
    even = started / np.count_nonzero(started)
    names = [str(name) for name in model.action_names or range(num_actions)]
    if len(set(names)) < len(names):
        names = [str(action) for action in range(num_actions)]
    return System(
        state_to_choices=np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int64),
        choice_to_branches=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        targets=matrix.indices[entries].astype(np.int64),
        probabilities=matrix.data[entries].astype(np.float64),
        initial=started,
        labels={TERMINAL: model.terminal},
        structures=structures,
        choice_actions=(chosen % num_actions).astype(np.int64),
        action_names=names,
        state_names=model.state_names,
        own=Own(
            num_actions,
            model.num_added_states,
            None if np.array_equal(even, model.initial) else model.initial,
            _idle_cost(model, rows),
            model.action_names,
        ),
    )


def losses(model: SupportsSystem) -> list[str]:
    """Return what of a model no transition system of ours holds, in words.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    """
    lost = kind_losses(model)
    table = model.to_tabular()
    rows = table.rows(0, table.num_states)
    if not rows.action_mask.all() and _idle_cost(table, rows) is None:
        lost.append("what unavailable actions lead to and cost, which does not count")
    return lost


def kind_losses(model: SupportsSystem) -> list[str]:
    """Return what is lost of a model when it becomes a table, in words.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    """
    if hasattr(model, "successors"):
        return ["that all its moves slip in one way: it is read back as a table"]
    return []


def _idle_cost(model: TabularMDP, rows: Rows) -> float | None:
    """Return what all unavailable actions cost, if they stay in place at one cost, 0 at ends."""
    away = np.flatnonzero(~rows.action_mask.reshape(-1))
    if len(away) == 0:
        return None
    matrix, states = rows.transitions, away // model.num_actions
    if (np.diff(matrix.indptr)[away] != 1).any():
        return None
    places = matrix.indptr[away]
    stay = (matrix.indices[places] == states) & (matrix.data[places] == 1)
    prices, ends = rows.costs.reshape(-1)[away], model.terminal[states]
    price = float(prices[~ends][0]) if (~ends).any() else 0.0
    expected = np.where(ends, 0.0, price)
    # By bits, so that -0.0 is not 0.0.
    same = prices.tobytes() == expected.tobytes() == rows.outcome_costs[places].tobytes()
    return price if stay.all() and same and np.isfinite(price) else None


def _goal_states(system: System, goal: str | None) -> NDArray[np.bool_]:
    if goal is not None:
        if goal not in system.labels:
            hint = did_you_mean(goal, system.labels)
            raise ValueError(f"goal must be one of {_known(system)}, got {goal!r}{hint}")
        return system.labels[goal]
    return np.zeros(system.num_states, dtype=bool)


def _known(system: System) -> str:
    return ", ".join(sorted(system.labels)) or "no labels: the file has none"


def _prices(
    system: System, name: str | None, are_rewards: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Return the cost of each choice, and of each branch where they differ."""
    names = list(system.structures)
    spread_of_own = None
    if name is None and system.own is not None and COST in names:
        name = COST
        if OUTCOME_COST in names:
            spread_of_own = system.structures[OUTCOME_COST].branches
    if name is None and len(names) > 1:
        raise ValueError(
            f"there are the reward structures {', '.join(map(repr, names))}: say which counts, "
            "structure=NAME"
        )
    if name is None:
        name = names[0] if names else ""
        found = system.structures.get(name, Structure())
    elif name in names:
        found = system.structures[name]
    else:
        listed = ", ".join(map(repr, names)) or "none: the file has none"
        raise ValueError(f"structure must be one of {listed}, got {name!r}")
    counts, lengths = np.diff(system.state_to_choices), np.diff(system.choice_to_branches)
    prices = np.zeros(len(lengths)) if found.choices is None else found.choices
    if found.states is not None:
        prices = prices + np.repeat(found.states, counts)
    spread = spread_of_own
    if found.branches is not None:
        spread = found.branches + np.repeat(prices, lengths)
        prices, spread = expected_costs(system.choice_to_branches, system.probabilities, spread)
    if are_rewards:
        prices = 0.0 - prices
        spread = None if spread is None else 0.0 - spread
    return prices, spread


def _columns(
    system: System, counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int, list[str] | None]:
    """Return the action of each choice, how many actions there are, and their names if kept."""
    num_choices = int(system.state_to_choices[-1])
    most = max(1, int(counts.max(initial=0)))
    actions, names = system.choice_actions, system.action_names
    first = system.state_to_choices[:-1]
    by_place = np.arange(num_choices) - np.repeat(first, counts)
    if actions is None or names is None or (actions < 0).any():
        return by_place, most, None
    width = len(names) if system.own is None else system.own.num_actions
    wide = width > most and width * system.num_states > _MOST_COLUMNS * num_choices
    keys = np.repeat(np.arange(system.num_states), counts) * max(width, 1) + actions
    if (wide and system.own is None) or len(np.unique(keys)) < num_choices or width < most:
        return by_place, most, None
    # Numbers are no names: they say what the columns say.
    are_names = len(names) == width and not all(name.isdecimal() for name in names)
    return actions, width, names if are_names and len(set(names)) == width else None


def _distinct(names: Sequence[Hashable] | None) -> Sequence[Hashable] | None:
    """Return names of states, None if two are the same."""
    return names if names is not None and len(set(names)) == len(names) else None


def _ranges(starts: NDArray[Any], lengths: NDArray[Any]) -> NDArray[np.int64]:
    """Return ``starts[i]``, ``starts[i] + 1``, ... for each i, of the given lengths."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - lengths), lengths)


def _cannot_reach(system: System, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the states from which no choices lead to those marked, shape (S,)."""
    return ~_closure(system, marked, by_all=False)


def _can_avoid(system: System, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the states from which some choices surely never lead to those marked, shape (S,)."""
    return ~_closure(system, marked, by_all=True)


def _closure(system: System, marked: NDArray[np.bool_], by_all: bool) -> NDArray[np.bool_]:
    """Return the states that may get to those marked by one of their choices, or whatever they do.

    Backwards, each branch looked at once.
    """
    num_states, counts = system.num_states, np.diff(system.state_to_choices)
    lengths = np.diff(system.choice_to_branches)
    state_of_choice = np.repeat(np.arange(num_states), counts)
    possible = system.probabilities > 0
    choice_of_branch = np.repeat(np.arange(len(lengths)), lengths)[possible]
    order = np.argsort(system.targets[possible], kind="stable")
    into = choice_of_branch[order]
    first = np.concatenate(
        [[0], np.cumsum(np.bincount(system.targets[possible], minlength=num_states))]
    )
    # How many choices of a state do not get there yet.
    left = counts.copy() if by_all else np.minimum(counts, 1)
    reached, gets_there = marked.copy(), np.zeros(len(lengths), dtype=bool)
    frontier = np.flatnonzero(marked)
    while len(frontier):
        found = np.unique(into[_ranges(first[frontier], first[frontier + 1] - first[frontier])])
        found = found[~gets_there[found]]
        gets_there[found] = True
        owners, number = np.unique(state_of_choice[found], return_counts=True)
        left[owners] -= number
        frontier = owners[(left[owners] <= 0) & ~reached[owners]]
        reached[frontier] = True
    return reached
