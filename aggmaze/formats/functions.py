"""Models given by a function of state and action, called for one of them or for many at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_integer
from aggmaze.formats.outcomes import Outcomes, is_outcome
from aggmaze.formats.tables import Tables, Word, without_rounding
from aggmaze.names import UNNAMED, Names, Naming, as_names, check_name, shown, unknown

#: Probability, next state, cost or reward, and, if one likes, whether the episode ends.
CostOutcome = tuple[float, Any, float] | tuple[float, Any, float, bool]
#: Called now and then with the number of states that are done, and of those that are known.
Watch = Callable[[int, int], None]

# Outcomes that are turned into arrays at a time: Python's take ten times the memory.
_AT_ONCE = 1 << 14
# Numbers that a function of many states and actions is asked for at a time.
_NUMBERS_AT_ONCE = 1 << 18
_FIRST_ROWS = 1 << 8
_MOST_ROWS = 1 << 16
_PLACE = "fn({}, {})"
# Between two calls of a watch.
_STATES_WATCHED = 1 << 10


class Read(NamedTuple):
    """What a function came to.

    Parameters
    ----------
    tables : Tables
    unsaid : ndarray of bool, shape (S,)
        States some of whose outcomes do not say whether the episode ends.
    """

    tables: Tables
    unsaid: NDArray[np.bool_]


def read_function(
    fn: Callable[[Any, Any], Iterable[CostOutcome] | None],
    states: Any,
    actions: Any,
    *,
    word: Word = "cost",
    initial: Any = None,
    progress: Watch | None = None,
    place: str = _PLACE,
) -> Read:
    """Return the tables of `TabularMDP.from_function` of states that are listed.

    Parameters
    ----------
    fn : callable
    states : int, or iterable of names
    actions : int, iterable of names, or callable
    word : {"cost", "reward"}
    initial : optional
    progress : callable, optional
    place : str
        What errors call a call of the function: formatted with state and action.
    """
    names, num_states = _sized("states", states)
    reader = _Reader(fn, num_states if names is None else names, actions, word, progress, place)
    reader.visit_all()
    return reader.finish(initial)


def explore_function(
    fn: Callable[[Any, Any], Iterable[CostOutcome] | None],
    start: Any,
    actions: Any,
    *,
    max_states: int,
    word: Word = "cost",
    progress: Watch | None = None,
) -> Read:
    """Return the tables of `TabularMDP.from_function` of the states that can be reached.

    Parameters
    ----------
    fn : callable
    start : hashable or mapping
    actions : int, iterable of names, or callable
    max_states : int
    word : {"cost", "reward"}
    progress : callable, optional
    """
    max_states = check_integer("max_states", max_states, least=1)
    begin = start if isinstance(start, Mapping) else {check_name("start", start): 1.0}
    if not begin:
        raise ValueError("start must be a state, or chances of one at least, got {}")
    reader = _Reader(fn, None, actions, word, progress)
    reader.explore(begin, max_states)
    return reader.finish(begin)


class _Reader:
    """Asks a function for outcomes, state by state.

    States are numbered as they are listed, or as they are found.

    Parameters
    ----------
    fn : callable
    states : Names, int or None
        Their names; their number; or None where they are yet to be found.
    actions : int, iterable of names, or callable
    word : {"cost", "reward"}
    progress : callable, optional
    place : str
    """

    def __init__(
        self,
        fn: Callable[[Any, Any], Any],
        states: Names | int | None,
        actions: Any,
        word: Word,
        progress: Watch | None,
        place: str = _PLACE,
    ) -> None:
        if not callable(fn):
            raise TypeError(f"fn must be a function of state and action, got {shown(fn)}")
        self._fn, self._word, self._progress = fn, word, progress
        # Without names a state is its number.
        self._names = states if isinstance(states, Names) else None
        self._num_states = states if isinstance(states, int) else None
        self._found: list[Hashable] | None = [] if states is None else None
        self._places: dict[Hashable, int] = {} if self._names is None else self._names.places
        self._actions_of: Callable[[Any], Any] | None = None
        self._action_names: Names | None = None
        self._action_places: dict[Hashable, int] = {}
        self._action_list: list[Hashable] = []
        self._num_actions = 0
        if callable(actions):
            self._actions_of = actions
        else:
            self._action_names, self._num_actions = _sized("actions", actions)
        # Errors call by their names what is found by then.
        states_by_name = self._names if self._found is None else self._found
        actions_by_name = self._action_names if self._actions_of is None else self._action_list
        self._outcomes = Outcomes(
            place, word, Naming(states_by_name, actions_by_name), self._num_states
        )
        # The actions since the last block: state, number, how many outcomes; and these outcomes.
        self._of_state: list[int] = []
        self._of_action: list[int] = []
        self._counts: list[int] = []
        self._listed: list[Any] = []
        # Of all actions, in the order in which they came; and where nothing can be done.
        self._rows: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._ended: list[int] = []
        self._unsaid: list[NDArray[np.int64]] = []
        self._num_done = 0

    def explore(self, first: Iterable[Hashable], max_states: int) -> None:
        """Go from the first states wherever outcomes lead, breadth first."""
        found, places, listed = self._found, self._places, self._listed
        assert found is not None

        def meet(state: Any, what: str) -> None:
            state = check_name(what, state)
            if state in places:
                return
            if len(found) == max_states:
                raise ValueError(
                    f"more than max_states = {max_states:,} states can be reached: "
                    f"{shown(state)} is one more; if that is meant, let max_states be larger"
                )
            places[state] = len(found)
            found.append(state)

        for state in first:
            meet(state, "a state of start")
        # The list grows while states are found.
        for number, name in enumerate(found):
            before = len(listed)
            self._ask(number, name)
            for outcome in listed[before:]:
                try:
                    following = outcome[1]
                except (TypeError, LookupError):
                    self._check_listed(numbers=True)
                    raise
                try:
                    is_known = following in places
                except TypeError:
                    is_known = False  # which is said when it is met
                if not is_known:
                    meet(following, f"a next state of {shown(name)}")
            self._flush_if_many()

    def visit_all(self) -> None:
        """Ask for the outcomes in all states that are known beforehand."""
        names = self._names
        for state in range(self._known()):
            self._ask(state, state if names is None else names[state])
            self._flush_if_many()

    def _ask(self, state: int, name: Any) -> None:
        """Take the outcomes of all actions in a state."""
        fn, listed = self._fn, self._listed
        before, first = len(listed), len(self._counts)
        if self._actions_of is None:
            for number in range(self._num_actions):
                names = self._action_names
                self._take(fn(name, number if names is None else names[number]), state, number)
        else:
            seen = set()
            for action in self._available(name):
                number = self._number(action)
                if number in seen:
                    raise ValueError(f"actions({shown(name)}) lists {shown(action)} twice")
                seen.add(number)
                self._take(fn(name, action), state, number)
        if len(listed) == before:
            # Nothing can be done here: the state is terminal.
            if self._actions_of is None:
                self._counts[first:] = [1] * self._num_actions
                listed.extend([(1.0, name, 0.0, False)] * self._num_actions)
            else:
                # How many actions lead back to it is known at the end.
                self._ended.append(state)
                for part in (self._of_state, self._of_action, self._counts):
                    del part[first:]
        self._num_done += 1
        if self._progress is not None and self._num_done % _STATES_WATCHED == 0:
            self._progress(self._num_done, self._known())

    def _available(self, name: Any) -> Iterable[Any]:
        assert self._actions_of is not None
        actions = self._actions_of(name)
        if actions is None:
            return ()
        if not isinstance(actions, Iterable):
            raise TypeError(
                f"actions({shown(name)}) must list the actions that are available there, got "
                f"{shown(actions)}"
            )
        return actions

    def _number(self, action: Any) -> int:
        """Return the number of an action by its name, a new one where it is met first."""
        number = self._action_places.get(action) if isinstance(action, Hashable) else None
        if number is None:
            action = check_name("an action", action)
            number = self._action_places[action] = len(self._action_list)
            self._action_list.append(action)
        return number

    def _take(self, given: Any, state: int, action: int) -> None:
        """Take the outcomes of an action, which are looked at when there are many."""
        listed = self._listed
        before = len(listed)
        if given is not None:
            if not isinstance(given, Iterable):
                raise self._no_outcome(state, action, given)
            listed.extend(given)
        self._of_state.append(state)
        self._of_action.append(action)
        self._counts.append(len(listed) - before)

    def _flush_if_many(self) -> None:
        if len(self._listed) >= _AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        """Turn what was listed into arrays."""
        listed = self._listed
        self._check_listed()
        states = np.array(self._of_state, dtype=np.int64)
        actions = np.array(self._of_action, dtype=np.int64)
        counts = np.array(self._counts, dtype=np.int64)
        lengths = set(map(len, listed))
        if lengths == {3, 4}:
            short = np.fromiter((len(outcome) == 3 for outcome in listed), bool, len(listed))
            self._unsaid.append(np.repeat(states, counts)[short])
            listed = [out if len(out) == 4 else (*out, False) for out in listed]
        elif lengths == {3}:
            self._unsaid.append(states[counts > 0])
        width = 3 if lengths == {3} else 4
        try:
            # Not zip(*listed), which takes ten times as long.
            columns: list[list[Any]] = [list(map(itemgetter(i), listed)) for i in range(width)]
        except (TypeError, LookupError):
            self._check_listed(numbers=True)
            raise
        following = columns[1]
        if self._num_states is None or self._names is not None:
            following = self._numbered(following, states, actions, counts)
        try:
            probabilities, prices = (
                np.array(column, dtype=np.float64) for column in (columns[0], columns[2])
            )
            successors = np.array(following, dtype=np.float64)
            ends = np.zeros(len(listed), dtype=bool)
            if width == 4:
                ends = np.array(columns[3], dtype=np.float64) != 0
            if any(column.ndim != 1 for column in (probabilities, prices, successors, ends)):
                raise ValueError("these are no numbers")
        except (TypeError, ValueError):
            self._check_listed(numbers=True)
            raise
        self._outcomes.append(states, actions, counts, probabilities, successors, prices, ends)
        self._rows.append((states, actions))
        for part in (self._of_state, self._of_action, self._counts, self._listed):
            part.clear()

    def _numbered(
        self,
        following: list[Any],
        states: NDArray[np.int64],
        actions: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> list[int]:
        """Return the numbers of next states that are given by their names."""
        try:
            numbers: list[Any] = list(map(self._places.get, following))
        except TypeError:
            self._check_listed(numbers=True)
            raise
        if None in numbers:
            entry = numbers.index(None)
            row = int(np.searchsorted(np.cumsum(counts), entry, side="right"))
            place = self._outcomes.place(int(states[row]), int(actions[row]))
            names = self._names
            assert names is not None
            raise ValueError(f"{place} leads to {unknown('state', following[entry], names)}")
        return numbers

    def _check_listed(self, *, numbers: bool = False) -> None:
        """Refuse the first of the outcomes that is none: by its length, or by what it holds."""
        places = (0, 2, 3) if self._num_states is None or self._names is not None else (0, 1, 2, 3)
        listed = self._listed
        if not numbers:
            try:
                if set(map(len, listed)) <= {3, 4}:
                    return
            except TypeError:
                pass
        ends = np.cumsum(self._counts)
        for entry, outcome in enumerate(listed):
            try:
                is_one = len(outcome) in (3, 4)
                if is_one and numbers:
                    hash(outcome[1])
                    values = [outcome[place] for place in places[: len(outcome) - 4 or None]]
                    is_one = is_outcome(values, (len(values),))
            except (TypeError, LookupError):
                is_one = False
            if not is_one:
                row = int(np.searchsorted(ends, entry, side="right"))
                raise self._no_outcome(self._of_state[row], self._of_action[row], outcome)

    def _no_outcome(self, state: int, action: int, outcome: Any) -> ValueError:
        what = self._word
        return ValueError(
            f"{self._outcomes.place(state, action)} must give outcomes (probability, next_state, "
            f"{what}) or (probability, next_state, {what}, terminated) in numbers, or None for an "
            f"unavailable action, got {shown(outcome)}"
        )

    def _known(self) -> int:
        """How many states are known."""
        if self._num_states is not None:
            return self._num_states
        return len(self._places)

    def finish(self, initial: Any) -> Read:
        """Return what was found."""
        self._flush()
        num_states = self._known()
        if self._progress is not None:
            self._progress(num_states, num_states)
        rows = None
        if self._actions_of is not None:
            self._action_names = as_names("actions", self._action_list)
            self._num_actions = len(self._action_list)
            if self._num_actions == 0:
                raise ValueError(
                    "actions must give an action in one state at least, and gives none in the "
                    f"{num_states:,} there are"
                )
            self._stay_in_ends()
            rows = np.concatenate([s * self._num_actions + a for s, a in self._rows])
        names = self._names if self._found is None else as_names("states", self._found)
        self._outcomes.naming = Naming(names, self._action_names)
        unsaid = np.zeros(num_states, dtype=bool)
        for states in self._unsaid:
            unsaid[states] = True
        tables = self._outcomes.tables(num_states, self._num_actions, initial, rows)
        for name in ("state_names", "action_names"):
            if _are_numbers(tables[name]):
                tables[name] = None
        return Read(tables, unsaid)

    def _stay_in_ends(self) -> None:
        """Let every action lead back to a terminal state, now that their number is known."""
        ends = np.array(self._ended, dtype=np.int64)
        states = np.repeat(ends, self._num_actions)
        actions = np.tile(np.arange(self._num_actions), len(ends))
        ones, zeros = np.ones(len(states)), np.zeros(len(states))
        self._outcomes.append(
            states, actions, ones.astype(np.int64), ones, states, zeros, zeros.astype(bool)
        )
        self._rows.append((states, actions))


def _are_numbers(names: Names | None) -> bool:
    """Whether names say no more than the indices do."""
    return names is not None and all(
        type(name) is int and name == index for index, name in enumerate(names)
    )


def read_batched(
    fn: Callable[[NDArray[np.int64], NDArray[np.int64]], Any],
    num_states: int,
    num_actions: int,
    *,
    word: Word = "cost",
    initial: Any = None,
    naming: Naming = UNNAMED,
    progress: Watch | None = None,
) -> Read:
    """Return the tables of `TabularMDP.from_batched_function`.

    Parameters
    ----------
    fn : callable
    num_states, num_actions : int
    word : {"cost", "reward"}
    initial : optional
    naming : Naming
    progress : callable, optional
    """
    if not callable(fn):
        raise TypeError(
            f"fn must be a function of arrays of states and of actions, got {shown(fn)}"
        )
    num_states = check_integer("num_states", num_states, least=1)
    num_actions = check_integer("num_actions", num_actions, least=1)
    outcomes = Outcomes("fn at ({}, {})", word, naming, num_states)
    unsaid = np.zeros(num_states, dtype=bool)
    lo, num_rows = 0, _FIRST_ROWS
    while lo < num_states:
        hi = min(num_states, lo + max(1, num_rows // num_actions))
        states = np.repeat(np.arange(lo, hi), num_actions)
        actions = np.tile(np.arange(num_actions), hi - lo)
        # Whatever the function does to its arguments.
        given = fn(states.copy(), actions.copy())
        block = _Block.of(given, states, actions, word, outcomes)
        unsaid[lo:hi] = not block.says_what_ends
        outcomes.append(states, actions, *block.entries(num_actions))
        if lo == 0:
            count = outcomes.num_outcomes / hi * num_states
            outcomes.check_memory_of(count, f"outcomes of {num_states:,} states")
        num_rows = min(max(_NUMBERS_AT_ONCE // block.width, 1), _MOST_ROWS)
        lo = hi
        if progress is not None:
            progress(lo, num_states)
    return Read(outcomes.tables(num_states, num_actions, initial), unsaid)


class _Block:
    """The outcomes of N actions as a function gave them, N rows of K."""

    def __init__(
        self,
        states: NDArray[np.int64],
        actions: NDArray[np.int64],
        columns: tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[np.bool_]],
        word: Word,
        says_what_ends: bool,
    ) -> None:
        self._states, self._actions, self._word = states, actions, word
        self._columns = columns
        self.says_what_ends = says_what_ends
        self.width = columns[1].shape[1]

    @classmethod
    def of(
        cls,
        given: Any,
        states: NDArray[np.int64],
        actions: NDArray[np.int64],
        word: Word,
        outcomes: Outcomes,
    ) -> _Block:
        """Look at what a function returned."""
        here = f"fn of {len(states):,} states and actions"
        form = f"(probabilities, next_states, {word}s) or these and terminated"
        if not isinstance(given, tuple | list) or len(given) not in (3, 4):
            size = f" of {len(given)}" if isinstance(given, tuple | list) else ""
            raise ValueError(f"{here} must return {form}, got {type(given).__name__}{size}")
        names = ("probabilities", "next_states", f"{word}s", "terminated")
        arrays = []
        for name, part in zip(names, given, strict=False):
            try:
                array = np.asarray(part)
            except ValueError:
                array = np.empty(0, dtype=object)
            kinds = "b" if name == "terminated" else "iuf" if name == "next_states" else "biuf"
            if array.dtype.kind not in kinds:
                what = "booleans" if name == "terminated" else "real numbers"
                raise ValueError(f"{here}: {name} must hold {what}, got dtype {array.dtype}")
            arrays.append(array)
        count, following = len(states), arrays[1]
        if following.ndim == 1:
            following = following[:, np.newaxis]
        if following.ndim != 2 or following.shape[0] != count or following.shape[1] == 0:
            raise ValueError(
                f"{here}: next_states must have shape ({count}, K), or ({count},) for one outcome "
                f"each, got {arrays[1].shape}"
            )
        shape = following.shape
        spread = [_spread_over(array, shape) for array in arrays]
        for name, array, wide in zip(names, arrays, spread, strict=False):
            if wide is None:
                raise ValueError(
                    f"{here}: {name} must have shape {shape}, as next_states have, ({count},) or "
                    f"(), got {array.shape}"
                )
        probabilities, _, prices, *ends = spread
        assert probabilities is not None
        assert prices is not None
        if not ends or ends[0] is None:
            ends = [np.broadcast_to(np.False_, shape)]
        columns = (probabilities, following, prices, ends[0])
        return cls(states, actions, columns, word, len(given) == 4)  # type: ignore[arg-type]

    def entries(self, num_actions: int) -> tuple[NDArray[Any], ...]:
        """Return how many outcomes each action has, and these, as `Outcomes.append` takes them."""
        probabilities, following, prices, ends = self._columns
        probabilities = without_rounding(probabilities)
        never = np.inf if self._word == "cost" else -np.inf
        # What does not happen counts for nothing, whatever else is said of it.
        kept = probabilities != 0.0
        kept &= ~(kept & (prices == never)).any(axis=1, keepdims=True)
        counts = np.count_nonzero(kept, axis=1)
        ended = ~counts.reshape(-1, num_actions).any(axis=1)
        if ended.any():
            # Nothing can be done there: the state is terminal, and every action leads back to it.
            rows = np.flatnonzero(np.repeat(ended, num_actions))
            probabilities, following = probabilities.copy(), following.copy()
            prices, ends = prices.copy(), ends.copy()
            kept[rows, 0], probabilities[rows, 0], prices[rows, 0] = True, 1.0, 0.0
            following[rows, 0], ends[rows, 0] = self._states[rows], False
            counts[rows] = 1
        return (
            counts,
            probabilities[kept],
            following[kept],
            prices[kept].astype(np.float64, copy=False),
            ends[kept],
        )


def _spread_over(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any] | None:
    """Return an array as one of N rows of K, one number a row or in all repeated; None if none."""
    if array.ndim == 1 and array.shape == shape[:1]:
        array = array[:, np.newaxis]
    if array.ndim not in (0, 2):
        return None
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        return None


def _sized(what: str, given: Any) -> tuple[Names | None, int]:
    """Return names, where some are given, and how many there are."""
    if isinstance(given, Iterable) and not (isinstance(given, np.ndarray) and given.ndim == 0):
        names = as_names(what, given)
        assert names is not None
        if not names:
            raise ValueError(f"{what} must have one name at least, got none")
        return names, len(names)
    return None, check_integer(f"num_{what}", given, least=1)
