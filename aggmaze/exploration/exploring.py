"""Exhaustive exploration: all outcomes of all actions in all states that can be reached."""

from __future__ import annotations

import json
import math
import os
import time
from array import array
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from aggmaze.exploration.branching import Branches, CannotEnumerateError
from aggmaze.exploration.working_copy import NewAttributeError, WorkingCopy
from aggmaze.formats.archive import open_archive, write_archive
from aggmaze.memory import check_memory
from aggmaze.progress import report

_FORMAT = "aggmaze exploration 1"
# Expanded states between two calls of a callback and looks at what should not change.
_LOOK_EVERY = 500
# Steps after which attributes that should not change are looked at once a state only.
_CAREFUL_STEPS = 2000
# Bytes of the model for each outcome, and for each state, while it is put together: measured.
_BYTES_AN_OUTCOME, _BYTES_A_STATE = 220, 300
# How far two probabilities of one outcome may be from each other.
AGREEMENT = 1e-9

#: Probability, key, what restores the state (None where none is kept), reward, whether it ended,
#: the mask of its actions, and what was drawn.
Arrival = tuple[float, Hashable, Any, float, bool, bytes | None, Sequence[int]]


class TabularizeError(CannotEnumerateError):
    """An environment has no finite model that was found, or none of the kind that was asked for."""


@dataclass(frozen=True)
class TabularizeProgress:
    """What a callback sees of `aggmaze.tabularize`.

    Parameters
    ----------
    states : int
        Found so far.
    explored : int
        Those of which all outcomes are known, or where an episode ends.
    outcomes : int
        Of all actions so far.
    seconds : float
    """

    states: int
    explored: int
    outcomes: int
    seconds: float


class Source(Protocol):
    """Where outcomes come from."""

    #: The actions, in the order of the model.
    actions: Sequence[Any]

    def starts(self) -> list[Arrival]:
        """Return the states in which an episode may start."""

    def outcomes(self, saved: Any, action: int) -> list[Arrival]:
        """Return where an action may lead.

        Parameters
        ----------
        saved : object
            What restores the state.
        action : int
        """

    def again(self, saved: Any, action: int, path: Sequence[int]) -> Arrival:
        """Return where an action led before; action -1 is a start.

        Parameters
        ----------
        saved : object
            What restores the state.
        action : int
        path : sequence of int
            What was drawn.
        """

    def mask(self, saved: Any) -> bytes | None:
        """Return which actions a state has, None for all, where the environment tells by itself."""

    def check(self, thoroughly: bool) -> None:
        """Raise NewAttributeError if what was explored is void."""

    def digest(self, key: Hashable) -> bytes:
        """Return few bytes that tell a key apart."""

    def growing(self, saved: Sequence[Any]) -> str:
        """Return which parts of states have the most values."""

    def attributes(self) -> str:
        """Return what makes a state, as a text."""

    def adopt(self, attributes: str) -> None:
        """Let a state be made of what it was once."""


class StepSource:
    """The steps of an environment.

    Parameters
    ----------
    copied : WorkingCopy
    branches : Branches
    actions : sequence
    seed : int or None
        Of the one start, or None for all starts.
    options : dict or None
        Of the reset.
    fold_time_limit : bool
        Whether an episode that is truncated has ended.
    action_masks : bool
        Whether actions that the environment says are unavailable are left out.
    """

    def __init__(
        self,
        copied: WorkingCopy,
        branches: Branches,
        actions: Sequence[Any],
        *,
        seed: int | None,
        options: dict[str, Any] | None,
        fold_time_limit: bool,
        action_masks: bool,
    ) -> None:
        self.actions = actions
        self._copy, self._branches = copied, branches
        self._seed, self._options = seed, options
        self._fold = fold_time_limit
        self._asks = action_masks and hasattr(copied.base, "action_masks")
        self._told = action_masks and not self._asks
        self._num_steps = 0

    def starts(self) -> list[Arrival]:
        """Return the states in which an episode may start."""
        return self._all_runs(self._reset)

    def outcomes(self, saved: Any, action: int) -> list[Arrival]:
        """Return where an action may lead."""
        chosen, step = self.actions[action], self._copy.env.step
        restore, read = self._copy.restore, self._copy.read
        branches, fold, told = self._branches, self._fold, self._told
        branches.clear()
        arrivals: list[Arrival] = []
        while True:
            restore(saved)
            branches.begin()
            _, reward, terminated, truncated, info = step(chosen)
            if type(reward) is not float or reward - reward != 0.0:
                reward = _finite(reward)
            ended = bool(terminated or (fold and truncated))
            mask = None
            if told and "action_mask" in info:
                mask = self._mask_bytes(info["action_mask"])
            key, after = read(ended)
            arrivals.append((branches.probability, key, after, reward, ended, mask, branches.path))
            if branches.refusal is not None:
                raise branches.refusal
            self._num_steps += 1
            if self._num_steps < _CAREFUL_STEPS:
                self._copy.check_constants()
            if not branches.advance():
                return arrivals
            self._check_runs(arrivals)

    def again(self, saved: Any, action: int, path: Sequence[int]) -> Arrival:
        """Return where an action led before; action -1 is a start."""
        self._branches.follow(path)
        if action < 0:
            return self._run(self._reset, None)
        chosen = self.actions[action]
        return self._run(lambda: self._copy.env.step(chosen), saved)

    def mask(self, saved: Any) -> bytes | None:
        """Return which actions a state has, where the environment tells by a method."""
        if not self._asks:
            return None
        self._copy.restore(saved)
        return self._mask_bytes(self._copy.base.action_masks())

    def check(self, thoroughly: bool) -> None:
        """Raise NewAttributeError if what was explored is void."""
        self._copy.check_generator()
        self._copy.check_constants(thoroughly)

    def digest(self, key: Hashable) -> bytes:
        """Return few bytes that tell a key apart."""
        return self._copy.digest(key)

    def growing(self, saved: Sequence[Any]) -> str:
        """Return which parts of states have the most values."""
        counts: dict[str, set[bytes]] = {}
        for one in saved:
            for name, value in self._copy.shown(one).items():
                counts.setdefault(name, set()).add(self._copy.digest(value))
        most = sorted(counts.items(), key=lambda pair: -len(pair[1]))[:5]
        listed = ", ".join(f"{name} {len(values):,}" for name, values in most if len(values) > 1)
        return f"the most values in {len(saved):,} of them have: {listed}"

    def attributes(self) -> str:
        """Return what makes a state, as a text."""
        return json.dumps(self._copy.state_attributes)

    def adopt(self, attributes: str) -> None:
        """Let a state be made of what it was once."""
        self._copy.adopt([(int(number), str(name)) for number, name in json.loads(attributes)])

    def _reset(self) -> Any:
        observation, info = self._copy.env.reset(seed=self._seed, options=self._options)
        self._copy.hold_now()
        return observation, 0.0, False, False, info

    def _all_runs(self, move: Callable[[], Any]) -> list[Arrival]:
        self._branches.clear()
        arrivals = []
        while True:
            arrivals.append(self._run(move, None))
            if not self._branches.advance():
                return arrivals
            self._check_runs(arrivals)

    def _run(self, move: Callable[[], Any], saved: Any) -> Arrival:
        branches, copied = self._branches, self._copy
        if saved is not None:
            copied.restore(saved)
        else:
            copied.unhide()
            if self._seed is not None:
                copied.hook(np.random.default_rng(self._seed))
        branches.begin()
        _, reward, terminated, truncated, info = move()
        if saved is None:
            if self._seed is not None:
                copied.hook()
            copied.check_generator()
        if branches.refusal is not None:
            raise branches.refusal
        mask = None
        if self._told and "action_mask" in info:
            mask = self._mask_bytes(info["action_mask"])
        ended = bool(terminated or (self._fold and truncated))
        key, after = copied.read(ended)
        if branches.refusal is not None:
            raise branches.refusal
        return branches.probability, key, after, _finite(reward), ended, mask, branches.path

    def _check_runs(self, arrivals: list[Arrival]) -> None:
        if len(arrivals) >= self._branches.most:
            raise CannotEnumerateError(
                f"it has more than max_outcomes = {self._branches.most:,} outcomes, of single "
                f"draws put together; {sum(one[0] for one in arrivals):.3g} of the probability was "
                "seen so far"
            )

    def _mask_bytes(self, mask: Any) -> bytes | None:
        if type(mask) is np.ndarray and mask.dtype == np.int8 and mask.all():
            return None if len(mask) == len(self.actions) else self._bad_mask(mask)
        flags = np.asarray(mask).reshape(-1) != 0
        if len(flags) != len(self.actions):
            self._bad_mask(mask)
        return None if flags.all() else flags.tobytes()

    def _bad_mask(self, mask: Any) -> NoReturn:
        raise ValueError(
            f"the action mask {mask!r} must have one entry for each of the {len(self.actions)} "
            "actions; action_masks=False leaves masks aside"
        )


def _finite(reward: Any) -> float:
    number = float(reward)
    if not math.isfinite(number):
        raise ValueError(f"rewards must be finite, got {number}")
    return number


class Exploration:
    """What was explored so far.

    Parameters
    ----------
    source : Source
    max_states : int
    """

    def __init__(self, source: Source, max_states: int) -> None:
        self._source, self._max_states = source, max_states
        self._clock = time.perf_counter()
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.index_of: dict[Hashable, int] = {}
        self.saved: list[Any] = []
        self.masks: dict[int, bytes] = {}
        self.initial: list[tuple[int, float]] = []
        self._queued = bytearray()
        # States in the order in which they are explored, and how many were.
        self.order = array("q")
        self.num_explored = 0
        # Outcomes of each action of these, and the outcomes.
        self.counts = array("q")
        self.probabilities = array("d")
        self.following = array("q")
        self.rewards = array("d")
        self.ended = array("b")
        # How each state was found: from which one, by which action and which draws.
        self._parents = array("q")
        self._by_action = array("q")
        self._drawn = array("q")
        self._drawn_ends = array("q")
        # Another way to be in the same state.
        self.rivals: dict[int, Any] = {}

    # Exploring.

    def begin(self) -> None:
        """Find the states in which episodes start."""
        chances: dict[int, float] = {}
        for arrival in self._source.starts():
            index = self._arrive(arrival, -1, -1)
            chances[index] = chances.get(index, 0.0) + arrival[0]
        self.initial = list(chances.items())

    def run(self, progress: Callable[[TabularizeProgress], object] | None) -> None:
        """Explore what is left.

        Parameters
        ----------
        progress : callable, optional

        Raises
        ------
        TabularizeError
            If there are too many states, or the callback says stop.
        """
        while self.num_explored < len(self.order):
            marks = self._marks()
            state = self.order[self.num_explored]
            try:
                self._explore(state)
                self.num_explored += 1
            except BaseException:
                self._back_to(marks)
                raise
            self.check(False)
            if self.num_explored % _LOOK_EVERY == 0:
                if self.num_explored % (20 * _LOOK_EVERY) == 0:
                    self.check()
                    check_memory(
                        _BYTES_AN_OUTCOME * len(self.following) + _BYTES_A_STATE * len(self.saved),
                        f"models of {len(self.saved):,} states so far",
                    )
                self._tell(progress)
        self._tell(progress)

    def check(self, thoroughly: bool = True) -> None:
        """Look at what should not have changed.

        Parameters
        ----------
        thoroughly : bool
            Whether to look into containers and objects as well.
        """
        try:
            self._source.check(thoroughly)
        except CannotEnumerateError as error:
            raise TabularizeError(str(error)) from None

    def _tell(self, progress: Callable[[TabularizeProgress], object] | None) -> None:
        report(self.num_explored, len(self.order), "states found so far")
        if progress is not None and progress(self.progress()):
            raise TabularizeError(f"stopped by the callback, {self._so_far()}")

    def progress(self) -> TabularizeProgress:
        """Return how far it got."""
        waiting = len(self.order) - self.num_explored
        return TabularizeProgress(
            len(self.saved),
            len(self.saved) - waiting,
            len(self.following),
            time.perf_counter() - self._clock,
        )

    def _so_far(self) -> str:
        waiting = len(self.order) - self.num_explored
        return f"with {len(self.saved):,} states found, {waiting:,} of them to be explored"

    def _explore(self, state: int) -> None:
        source, saved = self._source, self.saved[state]
        mask = source.mask(saved)
        if mask is None:
            mask = self.masks.get(state)
        else:
            self.masks[state] = mask
        if mask is not None and not any(mask):
            raise ValueError(
                f"{self.describe(state)} has no available action, by its mask, and the episode has "
                "not ended; action_masks=False leaves masks aside"
            )
        for action in range(len(source.actions)):
            if mask is not None and not mask[action]:
                self.counts.append(0)
                continue
            try:
                arrivals = source.outcomes(saved, action)
            except NewAttributeError:
                raise
            except Exception as error:
                self._explain(error, state, action)
            if len(arrivals) == 1:
                arrival = arrivals[0]
                self.counts.append(1)
                self.probabilities.append(arrival[0])
                self.following.append(self._arrive(arrival, state, action))
                self.rewards.append(arrival[3])
                self.ended.append(arrival[4])
                continue
            merged: dict[tuple[int, float, bool], float] = {}
            for arrival in arrivals:
                outcome = (self._arrive(arrival, state, action), arrival[3], arrival[4])
                merged[outcome] = merged.get(outcome, 0.0) + arrival[0]
            self.counts.append(len(merged))
            self.probabilities.extend(merged.values())
            for index, reward, ended in merged:
                self.following.append(index)
                self.rewards.append(reward)
                self.ended.append(ended)

    def _explain(self, error: Exception, state: int, action: int) -> NoReturn:
        self.check(False)  # perhaps more belongs to the state than the error would name
        place = f"{self.describe(state)}, action {self._source.actions[action]!r}"
        if isinstance(error, CannotEnumerateError) and not isinstance(error, TabularizeError):
            raise TabularizeError(f"{place}: {error}") from None
        error.add_note(f"while tabularize explored {place}")
        raise error

    def describe(self, state: int) -> str:
        """Return how messages name a state."""
        key = next(key for key, index in self.index_of.items() if index == state)
        text = repr(key) if type(key) is not bytes else f"number {state}"
        return f"state {text if len(text) <= 80 else text[:77] + '...'}"

    def _arrive(self, arrival: Arrival, parent: int, action: int) -> int:
        """Return the index of a state, a new one if it was not seen before."""
        _, key, saved, _, ended, mask, path = arrival
        try:
            index = self.index_of.get(key)
        except TypeError:
            raise TypeError(
                f"state= must tell states apart by something hashable, such as a tuple, got "
                f"{type(key).__name__}"
            ) from None
        if index is None:
            index = len(self.saved)
            if index >= self._max_states:
                raise self._too_many()
            self.saved.append(saved)
            self._queued.append(0)
            self._parents.append(parent)
            self._by_action.append(action)
            self._drawn.extend(path)
            self._drawn_ends.append(len(self._drawn))
            self.index_of[key] = index
            if mask is not None:
                self.masks[index] = mask
        elif saved is not key and saved is not None:
            if self.saved[index] is None:
                self.saved[index] = saved
            elif index not in self.rivals and saved != self.saved[index]:
                self.rivals[index] = saved
        if not ended and not self._queued[index]:
            self._queued[index] = 1
            self.order.append(index)
            if mask is not None:
                # What is said where an episode has ended need not hold.
                self.masks[index] = mask
        return index

    def _too_many(self) -> TabularizeError:
        few = self.saved[:: max(1, len(self.saved) // 2000)]
        return TabularizeError(
            f"there are more than max_states = {self._max_states:,} states, {self._so_far()}; "
            f"{self._source.growing(few)}. A counter that never comes back makes new states for "
            "ever: hold= keeps an attribute as it is after a reset, fold_time_limit=True ends "
            "episodes where they are truncated, and state= says what tells states apart"
        )

    # Interrupts.

    def _marks(self) -> tuple[int, ...]:
        return (
            len(self.saved),
            len(self.order),
            len(self.counts),
            len(self.following),
            len(self._drawn),
            self.num_explored,
        )

    def _back_to(self, marks: tuple[int, ...]) -> None:
        """Forget a state that was explored in part."""
        num_states, num_queued, num_counts, num_outcomes, num_drawn, self.num_explored = marks
        while len(self.index_of) > num_states:
            self.index_of.popitem()
        del self.saved[num_states:]
        for index in self.order[num_queued:]:
            if index < num_states:
                self._queued[index] = 0
        del self._queued[num_states:], self.order[num_queued:], self.counts[num_counts:]
        for column in (self.probabilities, self.following, self.rewards, self.ended):
            del column[num_outcomes:]
        for column in (self._parents, self._by_action, self._drawn_ends):
            del column[num_states:]
        del self._drawn[num_drawn:]
        for states in (self.masks, self.rivals):
            for index in [index for index in states if index >= num_states]:
                del states[index]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write down what was explored, without what restores the states.

        Parameters
        ----------
        path : path-like
        """
        digests = b"".join(map(self._source.digest, self.index_of))
        write_archive(
            path,
            _FORMAT,
            {
                "num_actions": len(self._source.actions),
                "num_explored": self.num_explored,
                "attributes": self._source.attributes(),
            },
            {
                "digests": np.frombuffer(digests, np.int64).reshape(-1, 2),
                "initial_states": np.array([state for state, _ in self.initial], np.int64),
                "initial": np.array([chance for _, chance in self.initial], np.float64),
                "order": np.array(self.order),
                "counts": np.array(self.counts),
                "probabilities": np.array(self.probabilities),
                "following": np.array(self.following),
                "rewards": np.array(self.rewards),
                "ended": np.array(self.ended),
                "parents": np.array(self._parents),
                "by_action": np.array(self._by_action),
                "drawn": np.array(self._drawn),
                "drawn_ends": np.array(self._drawn_ends),
            },
        )

    def load(self, path: str | os.PathLike[str]) -> None:
        """Read what `save` wrote, and go to each of its states again to be able to restore it.

        Parameters
        ----------
        path : path-like

        Raises
        ------
        ValueError
            If the file is damaged, or of another environment.
        """
        num_actions = len(self._source.actions)
        integers, floats = ("int64",), ("float64",)
        with open_archive(path, _FORMAT) as archive:
            if archive.scalar("num_actions", int) != num_actions:
                raise ValueError(
                    f"it has {archive.scalar('num_actions', int)} actions, the environment "
                    f"{num_actions}"
                )
            self._source.adopt(archive.scalar("attributes", str))
            num_explored = archive.scalar("num_explored", int)
            (num_states,) = archive.shape("parents", 1)
            (num_outcomes,) = archive.shape("following", 1)
            (num_starts,) = archive.shape("initial", 1)
            (num_queued,) = archive.shape("order", 1)
            (num_drawn,) = archive.shape("drawn", 1)
            if not 0 <= num_explored <= num_queued <= num_states:
                raise ValueError(f"it has {num_explored} of {num_states} states explored")
            read = archive.read(
                {
                    "digests": (integers, (num_states, 2)),
                    "initial_states": (integers, (num_starts,)),
                    "initial": (floats, (num_starts,)),
                    "order": (integers, (num_queued,)),
                    "counts": (integers, (num_explored * num_actions,)),
                    "probabilities": (floats, (num_outcomes,)),
                    "following": (integers, (num_outcomes,)),
                    "rewards": (floats, (num_outcomes,)),
                    "ended": (("int8",), (num_outcomes,)),
                    "parents": (integers, (num_states,)),
                    "by_action": (integers, (num_states,)),
                    "drawn": (integers, (num_drawn,)),
                    "drawn_ends": (integers, (num_states,)),
                },
                copies=4.0,
            )
            _check_saved(read, num_actions)
        self._replay(read)
        self.num_explored = num_explored

    def _replay(self, read: dict[str, NDArray[Any]]) -> None:
        digests = read["digests"].tobytes()
        ends = read["drawn_ends"].tolist()
        drawn = read["drawn"].tolist()
        size = len(digests) // max(1, len(ends))
        begin = 0
        for state, (parent, action, end) in enumerate(
            zip(read["parents"].tolist(), read["by_action"].tolist(), ends, strict=True)
        ):
            saved = None if parent < 0 else self.saved[parent]
            arrival = self._source.again(saved, action, drawn[begin:end])
            begin = end
            key = arrival[1]
            if key in self.index_of or (
                self._source.digest(key) != digests[size * state : size * (state + 1)]
            ):
                raise ValueError(
                    "what was saved is of another exploration: its environment does something "
                    f"else on the way to state {state}"
                )
            self._arrive(arrival, parent, action)
        self.initial = list(
            zip(read["initial_states"].tolist(), read["initial"].tolist(), strict=True)
        )
        self._queued = bytearray(len(self.saved))
        for state in read["order"].tolist():
            self._queued[state] = 1
        self.order = array("q", read["order"].tolist())
        self.counts = array("q", read["counts"].tolist())
        self.probabilities = array("d", read["probabilities"].tolist())
        self.following = array("q", read["following"].tolist())
        self.rewards = array("d", read["rewards"].tolist())
        self.ended = array("b", read["ended"].tolist())

    # What came out.

    def rows(self) -> Rows:
        """Return the outcomes by state and action."""
        return Rows(
            len(self.saved),
            len(self._source.actions),
            np.array(self.order[: self.num_explored], dtype=np.int64),
            np.array(self.counts, dtype=np.int64),
            np.array(self.probabilities),
            np.array(self.following, dtype=np.int64),
            np.array(self.rewards),
            np.array(self.ended, dtype=bool),
        )


def _check_saved(read: dict[str, NDArray[Any]], num_actions: int) -> None:
    """Refuse a file whose numbers do not fit together."""
    num_states, num_outcomes = len(read["parents"]), len(read["following"])
    ends = read["drawn_ends"]
    numbers = np.arange(num_states)
    order = read["order"]
    sound = (
        (read["counts"] >= 0).all()
        and read["counts"].sum() == num_outcomes
        and (read["parents"] < numbers).all()
        and ((read["by_action"] >= 0) == (read["parents"] >= 0)).all()
        and (read["by_action"] < num_actions).all()
        and (np.diff(ends, prepend=0) >= 0).all()
        and (num_states == 0 or ends[-1] == len(read["drawn"]))
        and (read["drawn"] >= 0).all()
        and all(
            ((read[name] >= 0) & (read[name] < num_states)).all()
            for name in ("following", "initial_states", "order")
        )
        and len(np.unique(order)) == len(order)
    )
    if not sound:
        raise ValueError("its numbers do not fit together")


class Rows:
    """Outcomes by state and action.

    Parameters
    ----------
    num_states, num_actions : int
    order : ndarray of int, shape (E,)
        The states that were explored, in the order of what follows.
    counts : ndarray of int, shape (E*A,)
        Outcomes of each action.
    probabilities, following, rewards, ended : ndarray, shape (nnz,)
    """

    def __init__(
        self,
        num_states: int,
        num_actions: int,
        order: NDArray[np.int64],
        counts: NDArray[np.int64],
        probabilities: NDArray[np.float64],
        following: NDArray[np.int64],
        rewards: NDArray[np.float64],
        ended: NDArray[np.bool_],
    ) -> None:
        self.num_states, self.num_actions = num_states, num_actions
        row = (order[:, None] * num_actions + np.arange(num_actions)).reshape(-1)
        self.counts = np.zeros(num_states * num_actions, dtype=np.int64)
        self.counts[row] = counts
        row_of_entry = np.repeat(row, counts)
        places = np.argsort(row_of_entry, kind="stable")
        self.explored = np.zeros(num_states, dtype=bool)
        self.explored[order] = True
        self.probabilities = probabilities[places]
        self.following = following[places]
        self.rewards = rewards[places]
        self.ended = ended[places]
        self.ends = np.concatenate([[0], np.cumsum(self.counts)])

    def of(self, state: int, action: int) -> dict[tuple[int, float, bool], float]:
        """Return the probability of each outcome of an action: next state, reward, ended.

        Parameters
        ----------
        state, action : int
        """
        first, last = self.ends[state * self.num_actions + action :][:2]
        outcomes: dict[tuple[int, float, bool], float] = {}
        for k in range(first, last):
            outcome = int(self.following[k]), float(self.rewards[k]), bool(self.ended[k])
            outcomes[outcome] = outcomes.get(outcome, 0.0) + float(self.probabilities[k])
        return outcomes
