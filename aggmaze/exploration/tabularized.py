"""Any environment with finitely many states, with the exact model that exploring it found."""

from __future__ import annotations

import itertools
import math
import os
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.toy_text.blackjack import BlackjackEnv
from numpy.typing import NDArray

from aggmaze.checks import check_integer
from aggmaze.exploration.branching import Branches, CannotEnumerateError
from aggmaze.exploration.exploring import (
    AGREEMENT,
    Arrival,
    Exploration,
    Rows,
    StepSource,
    TabularizeError,
    TabularizeProgress,
)
from aggmaze.exploration.lumping import known_rows
from aggmaze.exploration.working_copy import Layers, NewAttributeError, WorkingCopy
from aggmaze.formats.outcomes import Outcomes
from aggmaze.models.tabular import TabularMDP

# Steps at random, to find out which attributes change.
_PROBE_STEPS = 200
# Steps of the walk that tries the model, and of its longest episode.
_WALK_STEPS, _LONGEST_EPISODE = 1000, 100
# As in `aggmaze.dynamics`: frequencies that are so much likelier by what was seen before than by
# the model refute it, with a chance of one in ten million to be wrong; and what the model counts
# for, in steps.
_MOST_EVIDENCE, _TRUST = math.log(1e7), 10.0


class Tabularized(gym.Wrapper[Any, Any, Any, Any]):
    """An environment with its exact model, as `tabularize` found it.

    Steps are those of the environment inside, whose observations stay as they are;
    ``info["state"]`` is the index of the state, so that policies of the model can be rolled out.
    Actions are ``Discrete(A)``, numbers of `actions`.

    Parameters
    ----------
    env : gymnasium.Env
    model : TabularMDP
    states : sequence
        What tells the states apart, in the order of their indices.
    actions : sequence
        The actions of the environment.
    key_of : callable
        What tells the present state of an environment apart.
    seed : int or None
        Of each reset, where the model is that of one start.
    options : dict or None
        Of each reset.
    difference_from_P : str
        What the environment's own table ``P`` says that its steps deny, "" for nothing.
    held : bool
        Whether the model holds attributes that steps change.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        model: TabularMDP,
        *,
        states: Sequence[Hashable],
        actions: Sequence[Any],
        key_of: Callable[[gym.Env[Any, Any]], Hashable],
        seed: int | None,
        options: dict[str, Any] | None,
        difference_from_P: str,  # noqa: N803 (P is the attribute's name)
        held: bool,
    ) -> None:
        super().__init__(env)
        if held:
            #: The steps of the environment go on with what the model holds.
            self.model_is_approximate = True
        self.model = model
        self.states = list(states)
        self.actions = list(actions)
        self.difference_from_P = difference_from_P
        self._key_of, self._seed, self._options = key_of, seed, options
        self._generator = np.random.default_rng()
        self._index_of = {key: index for index, key in enumerate(self.states)}
        self.action_space = gym.spaces.Discrete(len(self.actions))
        self._mask = model.action_mask.view(np.int8)
        self._present = -1

    def __repr__(self) -> str:
        return f"<Tabularized{self.env}, {self.model}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        from aggmaze.models.cards import model_html  # pictures, which few processes draw

        return model_html(self.model, f"Tabularized {self.env}")

    def transition_model(self) -> TabularMDP:
        """Return the exact model of the steps."""
        return self.model

    def state_of(self, key: Hashable) -> int:
        """Return the index of a state by what tells it apart.

        Raises
        ------
        KeyError
            If it was not reached.
        """
        return self._index_of[key]

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are available now, shape (A,)."""
        return self._mask[self._present].astype(bool)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode, from the one start if the model is that of one.

        Parameters
        ----------
        seed : int, optional
            Seeds what is drawn from now on.
        options : dict, optional
            By default those that the model was made with.
        """
        options = self._options if options is None else options
        if self._seed is None:
            observation, info = self.env.reset(seed=seed, options=options)
        else:
            # The start is always the same, and what follows is not.
            if seed is not None:
                self._generator = np.random.default_rng(seed)
            observation, info = self.env.reset(seed=self._seed, options=options)
            self.env.unwrapped.np_random = self._generator
        return observation, self._told(info, False)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take an action, by its number.

        Raises
        ------
        TypeError
            If the action is not an integer.
        ValueError
            If it is not in ``[0, A)``, or leads to a state that was not explored.
        """
        number = check_integer("action", action, below=len(self.actions))
        observation, reward, terminated, truncated, info = self.env.step(self.actions[number])
        return observation, reward, terminated, truncated, self._told(info, terminated or truncated)

    def _told(self, info: dict[str, Any], over: bool) -> dict[str, Any]:
        key = self._key_of(self.env)
        index = self._index_of.get(key)
        if index is None:
            if not over:
                raise ValueError(
                    f"the environment is in a state that was not explored: {key!r}; it was "
                    "changed, or starts elsewhere than it did"
                )
            return info
        self._present = index
        return {**info, "state": index, "action_mask": self._mask[index].copy()}


def tabularize(
    env: gym.Env[Any, Any],
    *,
    state: Callable[[Any], Hashable] | None = None,
    known: Callable[[Any], Hashable] | None = None,
    outcomes: Callable[[Any, Any], Iterable[Any] | None] | None = None,
    actions: Iterable[Any] | None = None,
    action_masks: bool = True,
    hold: Iterable[str] = (),
    fold_time_limit: bool = False,
    seed: int | None = None,
    options: dict[str, Any] | None = None,
    max_states: int = 1_000_000,
    max_outcomes: int = 100_000,
    progress: Callable[[TabularizeProgress], object] | None = None,
    resume: str | os.PathLike[str] | None = None,
) -> Tabularized:
    """Explore an environment with finitely many states, and return it with its exact model.

    From every state that can be reached every action is taken, with every outcome: draws of the
    environment's ``np_random`` fork, so that each step is made once for each of its outcomes.  It
    happens in a copy; the environment itself stays as it is.

    A state is all that a step depends on: the attributes of the environment and of the wrappers
    that change what steps do, but for those that never change and those that no step reads before
    it writes them.  A limit of steps (``TimeLimit``) does not count, as truncation is no end.

    In the end the model is tried: a walk of 1,000 steps with the environment's own draws may show
    nothing that the model denies, and states that were reached in two ways, other than by ``state``
    alone, do the same both times (1,000 of them).

    Parameters
    ----------
    env : gymnasium.Env
        With an action space of finitely many actions.  Where its base offers ``get_state`` and
        ``set_state``, or ``clone_state`` and ``restore_state``, these save and restore its states;
        they are copies of attributes otherwise.
    state : callable, optional
        ``state(env)`` gives something hashable that tells states apart, where that is less than
        all that steps depend on.  Of Blackjack-v1 the default is the player's sum and both cards of
        the dealer.
    known : callable, optional
        What a policy may know, of what ``state`` gives: the model has these states, and its
        outcomes are means over what is hidden.  Of Blackjack-v1 the default is what is observed.
    outcomes : callable, optional
        In place of steps: ``outcomes(state, action)`` lists ``(probability, next_state, reward,
        terminated)``, or gives None where the action is unavailable; states are those of ``state``,
        which must be given.
    actions : iterable, optional
        The actions to take, in their order; by default all of the action space, of spaces that are
        made of several the last one changing fastest.
    action_masks : bool
        Leave out actions that ``action_masks()`` of the environment, or ``info["action_mask"]``,
        says are unavailable.
    hold : iterable of str
        Attributes that are put back before each step to what they are after a reset, such as a
        counter of steps.
    fold_time_limit : bool
        Make the steps so far a part of the state, and let truncated episodes end.
    seed : int, optional
        Explore from the one start ``reset(seed=seed)``; by default from all possible ones.
    options : dict, optional
        Options of the reset.
    max_states : int
    max_outcomes : int
        Runs of one step at most.
    progress : callable, optional
        Called with a `TabularizeProgress` every so often; a true value returned stops it.
    resume : path-like, optional
        A file that is written when the exploration ends, is stopped or is interrupted, and that it
        goes on from if it is there.

    Returns
    -------
    Tabularized
        A wrapper with ``transition_model()``.

    Raises
    ------
    TabularizeError
        If something cannot be enumerated, naming the call; there are too many states, naming
        what grows; or the model fails its trial.  It is a ValueError.
    TypeError
        If the environment cannot be copied, or its actions are not finitely many.

    Warns
    -----
    UserWarning
        If the environment offers a ``P`` that is not what its steps do.
    """
    if not isinstance(env, gym.Env):
        raise TypeError(f"env must be a gymnasium.Env, got {type(env).__name__}")
    max_states = check_integer("max_states", max_states, least=1)
    max_outcomes = check_integer("max_outcomes", max_outcomes, least=1)
    if seed is not None:
        seed = check_integer("seed", seed)
    for name, function in (("state", state), ("known", known), ("outcomes", outcomes)):
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be callable, got {type(function).__name__}")
    if outcomes is not None and state is None:
        raise ValueError("outcomes= needs state=, which tells the states of the environment")
    if isinstance(hold, str):
        raise TypeError(f"hold must list names of attributes, got the text {hold!r}")
    held = list(hold)
    all_actions = list(every_action(env.action_space) if actions is None else actions)
    if not all_actions:
        raise ValueError("actions must not be empty")
    if state is None and known is None:
        state, known = _defaults(env, fold_time_limit)
    branches = Branches(max_outcomes)
    copied = WorkingCopy(env, branches, state=state, hold=held, keep_time_limit=fold_time_limit)
    steps = StepSource(
        copied,
        branches,
        all_actions,
        seed=seed,
        options=options,
        fold_time_limit=fold_time_limit,
        action_masks=action_masks,
    )
    source: Any = steps if outcomes is None else _Declared(steps, outcomes)
    exploration = Exploration(source, max_states)

    def start() -> None:
        copied.hook(walker)
        copied.env.reset(seed=seed, options=options)

    walker = np.random.default_rng(0)
    copied.probe(_PROBE_STEPS, all_actions, start)
    go_on = resume is not None and Path(resume).exists()
    while True:
        try:
            start()
            copied.settle()
            copied.hook()
            exploration.clear()
            _explore(exploration, progress, resume, go_on)
            break
        except NewAttributeError:
            go_on = False  # what was saved is void too
    rows = exploration.rows()
    keys = list(exploration.index_of)
    _check_rivals(exploration, source, rows)
    _walk(copied, exploration, rows, all_actions, seed, options, fold_time_limit)
    difference = ""
    if known is None and outcomes is None and copied.env is copied.base:
        difference = _difference_from_table(copied, exploration, rows, all_actions)
        if difference:
            warnings.warn(
                f"the table P of {env} is not what its steps do, by which the model was made: "
                f"{difference}",
                stacklevel=2,
            )
    initial = exploration.initial
    if known is not None:
        rows, keys, initial = known_rows(rows, keys, initial, known)

    # A state that is one attribute goes by its value.
    alone = state is None and len(copied.state_attributes) == 1

    def key_of(inner: gym.Env[Any, Any]) -> Hashable:
        key = copied.key_of(inner, fold_time_limit)
        if alone and type(key) is tuple:
            return _only(key)
        return key if known is None else known(key)

    if alone:
        keys = [_only(key) if type(key) is tuple else key for key in keys]
    elif state is None:
        keys = [tuple(map(_plainly, key)) if type(key) is tuple else key for key in keys]

    return Tabularized(
        env,
        _model(rows, initial),
        states=keys,
        actions=all_actions,
        key_of=key_of,
        seed=seed,
        options=options,
        difference_from_P=difference,
        held=bool(held),
    )


def _only(key: tuple[Any, ...]) -> Any:
    """Return the one value of a state."""
    return _plainly(key[0])


def _plainly(value: Any) -> Any:
    """Return a number of numpy's as one of Python's, which is equal to it."""
    return value.item() if isinstance(value, np.generic) else value


def every_action(space: gym.Space[Any]) -> list[Any]:
    """Return all actions of a space, the last part of each changing fastest.

    Parameters
    ----------
    space : gymnasium.Space

    Raises
    ------
    TypeError
        If they are not finitely many.
    """
    if isinstance(space, gym.spaces.Discrete):
        first = int(space.start)
        return list(range(first, first + int(space.n)))
    if isinstance(space, gym.spaces.MultiDiscrete | gym.spaces.MultiBinary):
        shape = space.shape
        if isinstance(space, gym.spaces.MultiBinary):
            ranges = [range(2)] * math.prod(shape)
        else:
            first_ones = np.asarray(space.start).reshape(-1).tolist()
            sizes = np.asarray(space.nvec).reshape(-1).tolist()
            ranges = [range(low, low + size) for low, size in zip(first_ones, sizes, strict=True)]
        return [
            np.array(numbers, dtype=space.dtype).reshape(shape)
            for numbers in itertools.product(*ranges)
        ]
    if isinstance(space, gym.spaces.Tuple):
        return list(itertools.product(*map(every_action, space.spaces)))
    if isinstance(space, gym.spaces.Dict):
        parts = [every_action(part) for part in space.spaces.values()]
        return [dict(zip(space.spaces, one, strict=True)) for one in itertools.product(*parts)]
    raise TypeError(
        f"the action space {space} does not have finitely many actions that can be listed; give "
        "actions="
    )


def _defaults(
    env: gym.Env[Any, Any], fold_time_limit: bool
) -> tuple[Callable[[Any], Hashable] | None, Callable[[Any], Hashable] | None]:
    """Return what tells states apart, and what is known of them, in environments that hide."""
    layers = Layers(env, fold_time_limit).objects
    if type(env.unwrapped) is not BlackjackEnv or len(layers) > 1:
        return None, None

    def state(env: Any) -> Hashable:
        game = env.unwrapped
        total, card, ace = game._get_obs()
        # Only these rules ask how a sum of 21 came about.
        natural = (game.natural or game.sab) and sorted(game.player) == [1, 10]
        return (total, card, ace, natural) if natural else (total, card, ace), game.dealer[1]

    return state, lambda key: key[0]


class _Declared:
    """Outcomes that the user lists, from the starts of the environment.

    Parameters
    ----------
    steps : StepSource
    function : callable
    """

    def __init__(
        self, steps: StepSource, function: Callable[[Any, Any], Iterable[Any] | None]
    ) -> None:
        self.actions = steps.actions
        self._steps, self._function = steps, function

    def starts(self) -> list[Arrival]:
        return [
            (chance, key, key, 0.0, False, None, path)
            for chance, key, _, _, _, _, path in self._steps.starts()
        ]

    def outcomes(self, saved: Any, action: int) -> list[Arrival]:
        listed = self._function(saved, self.actions[action])
        arrivals: list[Arrival] = []
        for number, outcome in enumerate(() if listed is None else listed):
            try:
                probability, following, reward, ended = outcome
                numbers = float(probability), float(reward)
            except (TypeError, ValueError):
                raise ValueError(
                    "outcomes= must list (probability, next_state, reward, terminated), got "
                    f"{outcome!r}"
                ) from None
            if not (0.0 <= numbers[0] <= 1.0 and math.isfinite(numbers[1])):
                raise ValueError(
                    "outcomes= must list probabilities in [0, 1] and finite rewards, got "
                    f"{outcome!r}"
                )
            if numbers[0] > 0.0:
                arrivals.append(
                    (numbers[0], following, following, numbers[1], bool(ended), None, (number,))
                )
        total = math.fsum(arrival[0] for arrival in arrivals)
        if arrivals and not abs(total - 1.0) <= AGREEMENT:
            raise ValueError(f"the probabilities of outcomes= sum to {total}, must sum to 1")
        return arrivals

    def again(self, saved: Any, action: int, path: Sequence[int]) -> Arrival:
        if action < 0:
            chance, key, _, _, _, _, _ = self._steps.again(saved, action, path)
            return chance, key, key, 0.0, False, None, path
        for arrival in self.outcomes(saved, action):
            if arrival[6] == tuple(path):
                return arrival
        raise ValueError("what was saved is of another exploration")

    def mask(self, saved: Any) -> bytes | None:
        return None

    def check(self, thoroughly: bool) -> None:
        self._steps.check(thoroughly)

    def digest(self, key: Hashable) -> bytes:
        return self._steps.digest(key)

    def growing(self, saved: Sequence[Any]) -> str:
        return f"the last ones are {', '.join(map(repr, saved[-3:]))}"

    def attributes(self) -> str:
        return self._steps.attributes()

    def adopt(self, attributes: str) -> None:
        self._steps.adopt(attributes)


def _explore(
    exploration: Exploration,
    progress: Callable[[TabularizeProgress], object] | None,
    resume: str | os.PathLike[str] | None,
    go_on: bool,
) -> None:
    try:
        if resume is not None and go_on:
            exploration.load(resume)
        else:
            try:
                exploration.begin()
            except CannotEnumerateError as error:
                raise TabularizeError(
                    f"reset: {error}; with seed= the model is that of one start"
                ) from None
        exploration.run(progress)
        exploration.check()
    except NewAttributeError:
        raise
    except BaseException as error:
        if resume is not None and exploration.initial:
            exploration.save(resume)
            error.add_note(f"what was explored is in {os.fspath(resume)!r}")
        raise
    if resume is not None:
        exploration.save(resume)


def _check_rivals(exploration: Exploration, source: Any, rows: Rows, most: int = 1000) -> None:
    """Refuse states that were reached in two ways and do not the same both times."""
    for state, saved in itertools.islice(exploration.rivals.items(), most):
        if not rows.explored[state]:
            continue
        for action in range(rows.num_actions):
            expected = rows.of(state, action)
            if not expected:
                continue
            found: dict[Any, float] = {}
            for probability, key, _, reward, ended, _, _ in source.outcomes(saved, action):
                outcome = exploration.index_of.get(key, repr(key)), reward, ended
                found[outcome] = found.get(outcome, 0.0) + probability
            for outcome in expected.keys() | found.keys():
                one, other = expected.get(outcome, 0.0), found.get(outcome, 0.0)
                if not abs(one - other) <= AGREEMENT:
                    raise TabularizeError(
                        f"{exploration.describe(state)} is not all that decides: action "
                        f"{source.actions[action]!r} gives a reward of {outcome[1]:g} and leads "
                        f"to {_named(exploration, outcome[0])} with probability {one:.6g} where it "
                        f"was reached in one way, and {other:.6g} in another; state= must tell "
                        "them apart"
                    )


def _named(exploration: Exploration, index: Any) -> str:
    return exploration.describe(index) if isinstance(index, int) else f"state {index}"


def _walk(
    copied: WorkingCopy,
    exploration: Exploration,
    rows: Rows,
    actions: Sequence[Any],
    seed: int | None,
    options: dict[str, Any] | None,
    fold: bool,
) -> None:
    """Refuse a model that denies what the environment does with its own draws."""
    rng, walker = np.random.default_rng(1), np.random.default_rng(2)
    copied.unhide()
    starts = {state for state, _ in exploration.initial}
    seen: dict[tuple[int, int], list[tuple[int, float, bool]]] = {}
    evidence, length = 0.0, _LONGEST_EPISODE
    state = -1
    for _ in range(_WALK_STEPS):
        if length >= _LONGEST_EPISODE or not rows.explored[state]:
            copied.hook(walker)
            copied.env.reset(seed=seed, options=options)
            copied.hook(walker)
            copied.hold_now()
            found = exploration.index_of.get(copied.key_of(copied.env, fold))
            if found not in starts:
                raise TabularizeError(
                    "a reset led to a state that is none of the starts that were found: its own "
                    "draws are not all that decides"
                )
            state, length = found, 0
        available = np.flatnonzero(np.diff(rows.ends)[state * len(actions) :][: len(actions)])
        if len(available) == 0:
            length = _LONGEST_EPISODE
            continue
        action = int(rng.choice(available))
        copied.put_held()
        _, reward, terminated, truncated, _ = copied.env.step(actions[action])
        ended = bool(terminated or (fold and truncated))
        key = copied.key_of(copied.env, fold)
        found = exploration.index_of.get(key)
        expected = rows.of(state, action)
        outcome = -1 if found is None else found, float(reward), ended
        probability = expected.get(outcome, 0.0)
        if not probability > 0:
            raise TabularizeError(
                f"{exploration.describe(state)} is not all that decides: in a walk action "
                f"{actions[action]!r} led to "
                f"{'a state not explored' if found is None else exploration.describe(found)} for "
                f"a reward of {outcome[1]:g}, which its outcomes do not list; what else changes "
                "must be in attributes of the environment, or in state="
            )
        before = seen.setdefault((state, action), [])
        often = before.count(outcome) + _TRUST * probability
        evidence += math.log(often / (len(before) + _TRUST) / probability)
        before.append(outcome)
        if evidence > _MOST_EVIDENCE:
            raise TabularizeError(
                "outcomes happen far more or less often in a walk than their probabilities say"
            )
        state, length = outcome[0], length + 1
        if ended:
            length = _LONGEST_EPISODE


def _difference_from_table(
    copied: WorkingCopy, exploration: Exploration, rows: Rows, actions: Sequence[Any]
) -> str:
    """Return what a table ``P`` says that the steps deny, "" where it does not or there is none."""
    table = getattr(copied.base, "P", None)
    if not isinstance(table, Mapping | list) or "s" not in vars(copied.base):
        return ""
    names = [name for _, name in copied.state_attributes]
    if "s" not in names:
        return ""
    place = names.index("s")

    def number(saved: Any) -> int:
        return int(saved[place])

    numbers = [number(saved) if type(saved) is tuple else -1 for saved in exploration.saved]
    for state in np.flatnonzero(rows.explored).tolist():
        for action, chosen in enumerate(actions):
            found: dict[tuple[int, float, bool], float] = {}
            for (following, reward, ended), p in rows.of(state, action).items():
                outcome = numbers[following], reward, ended
                found[outcome] = found.get(outcome, 0.0) + p
            if not found:
                continue
            listed: dict[tuple[int, float, bool], float] = {}
            try:
                for p, following, reward, ended in table[numbers[state]][chosen]:
                    outcome = int(following), float(reward), bool(ended)
                    listed[outcome] = listed.get(outcome, 0.0) + float(p)
            except (LookupError, TypeError, ValueError):
                return f"P[{numbers[state]}][{chosen!r}] lists no outcomes"
            for outcome in sorted(found.keys() | listed.keys()):
                one, other = found.get(outcome, 0.0), listed.get(outcome, 0.0)
                if not abs(one - other) <= AGREEMENT:
                    return (
                        f"action {chosen!r} in {exploration.describe(state)} leads to state "
                        f"{outcome[0]} for a reward of {outcome[1]:g}"
                        f"{' and ends the episode' if outcome[2] else ''} with probability "
                        f"{one:.6g}, and P[{numbers[state]}][{chosen!r}] says {other:.6g}"
                    )
    return ""


def _model(rows: Rows, initial: Sequence[tuple[int, float]]) -> TabularMDP:
    """Return the model of outcomes; states that were not explored are where episodes end."""
    num_actions = rows.num_actions
    by_state = rows.counts.reshape(-1, num_actions)
    stays = np.flatnonzero(by_state.sum(axis=1) == 0)
    counts = by_state.copy()
    counts[stays] = 1
    places = np.repeat(rows.ends[stays * num_actions], num_actions)
    first = np.zeros(rows.num_states)
    for state, chance in initial:
        first[state] += chance
    outcomes = Outcomes("state {}, action {}", "reward", num_states=rows.num_states)
    states, actions = np.divmod(np.arange(counts.size), num_actions)
    outcomes.append(
        states,
        actions,
        counts.reshape(-1),
        np.insert(rows.probabilities, places, 1.0),
        np.insert(rows.following, places, np.repeat(stays, num_actions)),
        np.insert(rows.rewards, places, 0.0),
        np.insert(rows.ended, places, False),
    )
    return TabularMDP(**outcomes.tables(rows.num_states, num_actions, first)).validate()
