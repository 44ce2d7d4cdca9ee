"""Environments explored, beside their own tables, their own steps and models made by hand."""

from __future__ import annotations

import copy
import math
import random
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.toy_text.blackjack import BlackjackEnv
from gymnasium.wrappers import StickyAction, TimeLimit, TransformReward

import aggmaze
import planners
from aggmaze import TabularizeError, TabularizeProgress, TabularMDP, tabularize
from aggmaze.exploration.tabularized import every_action


class Walk(gym.Env[int, int]):
    """Five places in a row, from 0 to the end at 4."""

    def __init__(self) -> None:
        self.action_space = spaces.Discrete(2)
        self.observation_space = spaces.Discrete(5)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = 0
        return 0, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.place = max(0, min(4, self.place + self.move(action)))
        return self.place, -1.0, self.place == 4, False, {}

    def move(self, action: Any) -> int:
        return 1 if action else -1


def row(model: TabularMDP, state: int, action: int) -> dict[int, float]:
    """Return the probabilities of the next states."""
    matrix = model.transitions[[state * model.num_actions + action]].tocoo()
    found: dict[int, float] = {}
    for following, p in zip(matrix.col.tolist(), matrix.data.tolist(), strict=True):
        found[following] = found.get(following, 0.0) + p
    return found


# ---------------------------------------------------------------------------------------------
# Gymnasium's toy text.

TOY_TEXT = [
    ("FrozenLake-v1", {}),
    ("FrozenLake-v1", {"is_slippery": False}),
    ("FrozenLake8x8-v1", {}),
    ("CliffWalking-v1", {}),
    ("CliffWalking-v1", {"is_slippery": True}),
    ("Taxi-v4", {}),
    ("Taxi-v4", {"is_rainy": True}),
]


class NoTable(gym.Wrapper[Any, Any, Any, Any]):
    """Takes the table away, so that nothing can be read off it but by the steps themselves."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        base: Any = env.unwrapped
        base.table_of_steps = base.__dict__.pop("P")
        kind = type(base)

        def step(self: Any, action: Any) -> Any:
            self.P = self.table_of_steps
            try:
                return kind.step(self, action)
            finally:
                del self.P

        base.__class__ = type("Bare", (kind,), {"step": step})


@pytest.mark.parametrize(("env_id", "arguments"), TOY_TEXT)
def test_toy_text_without_its_table(env_id: str, arguments: dict[str, Any]) -> None:
    """All outcomes of all reachable states are those of the table that Gymnasium wrote."""
    table = gym.make(env_id, **arguments).unwrapped.P  # type: ignore[attr-defined]
    env = NoTable(gym.make(env_id, **arguments))
    assert not hasattr(env.unwrapped, "P")
    found = tabularize(env, action_masks=False)
    assert found.difference_from_P == ""
    outcomes = found.model.to_gym_P()
    start = env.unwrapped.initial_state_distrib  # type: ignore[attr-defined]
    for k, state in enumerate(found.states):
        assert found.model.initial[k] == pytest.approx(start[state], abs=1e-12)
        if found.model.terminal[k]:
            continue
        for action, listed in table[state].items():
            expected: dict[Any, float] = {}
            for p, following, reward, ended in listed:
                outcome = following, float(reward), bool(ended)
                expected[outcome] = expected.get(outcome, 0.0) + p
            expected = {outcome: p for outcome, p in expected.items() if p > 0}
            # States where an episode ends are those of the table, since they are reached no
            # other way.
            ours: dict[Any, float] = {}
            for p, following, reward, ended in outcomes[k][action]:
                outcome = found.states[following], reward, ended
                ours[outcome] = ours.get(outcome, 0.0) + p
            assert ours.keys() == expected.keys()
            for outcome, p in expected.items():
                assert ours[outcome] == pytest.approx(p, abs=1e-12)
    assert found.model.initial.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(("env_id", "arguments"), TOY_TEXT)
def test_values_are_those_of_the_table(env_id: str, arguments: dict[str, Any]) -> None:
    env = gym.make(env_id, **arguments)
    found = tabularize(env)
    result = planners.solve(found, gamma=0.95)
    expected = planners.solve(env, gamma=0.95)
    for k, state in enumerate(found.states):
        # The table says what follows where an episode has ended, and nothing does.
        value = 0.0 if found.model.terminal[k] else expected.values[state]
        assert result.values[k] == pytest.approx(value, abs=1e-4)
    assert not planners.rollout(found, result, episodes=20).broken


class Scripted:
    """Stands for a generator, and draws what it is told."""

    def __init__(self, *numbers: Any) -> None:
        self._numbers = list(numbers)

    def random(self) -> Any:
        return self._numbers.pop(0)

    choice = random


@pytest.mark.parametrize(("env_id", "arguments"), TOY_TEXT[:1] + TOY_TEXT[4:5] + TOY_TEXT[6:])
def test_steps_replayed_number_by_number(env_id: str, arguments: dict[str, Any]) -> None:
    """Of 300 uniform numbers, evenly spaced, each outcome takes its share of real steps."""
    env = gym.make(env_id, **arguments)
    found = tabularize(env, action_masks=False)
    base: Any = copy.deepcopy(env.unwrapped)
    base.reset()
    count = 300
    rng = np.random.default_rng(3)
    for k in rng.permutation(np.flatnonzero(~found.model.terminal))[:12]:
        for action in range(found.model.num_actions):
            seen: Counter[int] = Counter()
            for number in range(count):
                base.s = found.states[k]
                base._np_random = Scripted((number + 0.5) / count)
                base.step(action)
                seen[found.state_of(base.s)] += 1
            expected = row(found.model, int(k), action)
            assert seen.keys() == {state for state, p in expected.items() if p > 0}
            for state, p in expected.items():
                assert abs(seen[state] - count * p) <= 2.0


def test_a_table_that_is_not_what_steps_do_is_named() -> None:
    """The passenger that changes its mind is in no table: P[17][0] says it never does."""
    env = gym.make("Taxi-v4", fickle_passenger=True)
    with pytest.warns(UserWarning, match=r"not what its steps do.*P\[\d+\]\[\d\]"):
        found = tabularize(env)
    # Whether it will is in the state: 404 for those who won't and others for those who may yet.
    assert found.model.num_states > 404
    assert found.difference_from_P != ""
    assert all(isinstance(fickle, bool | np.bool_) for fickle, _ in found.states)
    share = sum(
        p for p, (fickle, _) in zip(found.model.initial, found.states, strict=True) if fickle
    )
    assert share == pytest.approx(0.3, abs=1e-12)


def test_a_table_that_was_changed_is_named() -> None:
    env: Any = gym.make("FrozenLake-v1", is_slippery=False)
    told = tabularize(env)
    assert told.difference_from_P == ""

    class Other(type(env.unwrapped)):  # type: ignore[misc]
        def step(self, action: Any) -> Any:
            return super().step((action + 1) % 4)

    env.unwrapped.__class__ = Other
    with pytest.warns(UserWarning, match=r"P\[0\]\[0\] says"):
        assert tabularize(env).difference_from_P != ""


# ---------------------------------------------------------------------------------------------
# Blackjack.


@pytest.fixture(scope="module")
def blackjack() -> aggmaze.Tabularized:
    return tabularize(gym.make("Blackjack-v1", natural=False, sab=False))


def test_blackjack(blackjack: aggmaze.Tabularized) -> None:
    """The best return is -.04656, by the policy of Sutton and Barto's figure 5.2.

    tests/published/test_total_cost.py has where the number is from, and the rules written down
    again.
    """
    result = planners.solve(blackjack, gamma=1)
    assert -result.values @ blackjack.model.initial[: len(result.values)] == pytest.approx(
        -0.04656, abs=5e-6
    )
    explored = 0
    for k, (total, card, usable) in enumerate(blackjack.states):
        if blackjack.model.terminal[k] or total < 11 or total == 21:
            continue
        explored += 1
        if usable:
            hits = total <= 17 or (total == 18 and card in (1, 9, 10))
        elif total == 12:
            hits = card not in (4, 5, 6)
        else:
            hits = total < 12 or (total < 17 and card not in (2, 3, 4, 5, 6))
        assert result.policy[k] == hits
    assert explored == 190
    # What is observed is what the states are, in the real game.
    played = planners.rollout(blackjack, result, episodes=500)
    assert not played.broken
    observation, info = blackjack.reset(seed=0)
    assert blackjack.states[info["state"]] == observation


def test_blackjack_with_few_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Naturals that pay 1.5: the value worked out in fractions by recursion over the rules."""
    cards = [1, 5, 10, 10]
    monkeypatch.setattr("gymnasium.envs.toy_text.blackjack.deck", cards)

    def total_of(hand: tuple[int, ...]) -> int:
        return sum(hand) + 10 * (1 in hand and sum(hand) + 10 <= 21)

    def stick(player: tuple[int, ...], dealer: tuple[int, ...]) -> Fraction:
        if total_of(dealer) < 17:
            return sum((stick(player, (*dealer, card)) for card in cards), start=Fraction(0)) / len(
                cards
            )
        mine, other = total_of(player), total_of(dealer) if total_of(dealer) <= 21 else 0
        won = Fraction((mine > other) - (mine < other))
        return won * Fraction(3, 2) if won == 1 and sorted(player) == [1, 10] else won

    def best(player: tuple[int, ...], card: int) -> Fraction:
        if total_of(player) > 21:
            return Fraction(-1)
        sticks = sum((stick(player, (card, hole)) for hole in cards), start=Fraction(0))
        hits = sum((best((*player, drawn), card) for drawn in cards), start=Fraction(0))
        return max(sticks, hits) / len(cards)

    deals = [(a, b, card) for a in cards for b in cards for card in cards]
    expected = sum((best((a, b), card) for a, b, card in deals), start=Fraction(0)) / len(deals)
    found = tabularize(gym.make("Blackjack-v1", natural=True, sab=False))
    result = planners.solve(found, gamma=1)
    assert -result.values @ found.model.initial[: len(result.values)] == pytest.approx(
        float(expected), abs=1e-9
    )


def test_what_is_hidden_may_not_depend_on_the_past(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the card that the dealer shows, the sum does not tell the chances of his hand."""
    monkeypatch.setattr("gymnasium.envs.toy_text.blackjack.deck", [4, 9, 10])
    env = gym.make("Blackjack-v1", sab=False)

    def state(env: Any) -> Any:
        game = env.unwrapped
        return sum(game.player), tuple(game.dealer[:2])

    # A hand of 12 is 4 + 4 + 4, or the sum that follows 8: all the same to the dealer.
    assert tabularize(env, state=state, known=lambda key: (key[0], key[1][0])).states

    class Peeks(BlackjackEnv):
        """Ends at once where the dealer has 20 and the player takes a card."""

        def step(self, action: Any) -> Any:
            observation, reward, ended, *rest = super().step(action)
            return observation, reward, ended or sum(self.dealer) == 20, *rest

    with pytest.raises(TabularizeError, match="does not tell the chances of what is hidden"):
        tabularize(Peeks(), state=state, known=lambda key: (key[0], key[1][0]))


# ---------------------------------------------------------------------------------------------
# Wrappers.


def test_sticky_actions() -> None:
    """The last action is a part of the state; the model is that of both mixed by hand."""
    stay, inner = 0.25, gym.make("FrozenLake-v1")
    table = inner.unwrapped.P  # type: ignore[attr-defined]
    found = tabularize(StickyAction(inner, stay))
    model = found.model
    pairs = 0
    for k, (last, place) in enumerate(found.states):
        if model.terminal[k]:
            continue
        for action in range(4):
            expected: dict[Any, float] = {}
            chances = [(1.0, action)] if last is None else [(stay, last), (1 - stay, action)]
            for chance, done in chances:
                for p, following, _, _ in table[place][done]:
                    key = done, following
                    expected[key] = expected.get(key, 0.0) + chance * p
            ours = {found.states[s]: p for s, p in row(model, k, action).items()}
            assert ours == pytest.approx(expected, abs=1e-12)
            pairs += 1
    # A last action and a place, where no episode has ended, and the start.
    assert pairs == 4 * np.count_nonzero(~model.terminal)
    result = planners.solve(found, gamma=0.95)
    assert not planners.rollout(found, result, episodes=200).broken


def test_a_wrapper_that_changes_rewards_counts() -> None:
    env = TransformReward(gym.make("CliffWalking-v1"), lambda reward: reward / 2)
    values = planners.solve(tabularize(env), gamma=1).values
    assert values[0] == pytest.approx(13 / 2, abs=1e-6)


def test_a_wrapper_that_changes_the_start_counts() -> None:
    class StartsAt(gym.Wrapper[Any, Any, Any, Any]):
        def reset(self, **options: Any) -> Any:
            _, info = self.env.reset(**options)
            self.unwrapped.place = 2  # type: ignore[attr-defined]
            return 2, info

    found = tabularize(StartsAt(Walk()))
    assert found.states[int(np.argmax(found.model.initial))] == 2
    assert planners.solve(found, gamma=1).values[found.state_of(2)] == pytest.approx(2.0)


def test_wrappers_that_change_observations_do_not_count() -> None:
    env = gym.wrappers.TransformObservation(
        Walk(), lambda seen: -seen, spaces.Discrete(9, start=-8)
    )
    stacked = gym.wrappers.FrameStackObservation(Walk(), 3)
    for one in (env, stacked, gym.wrappers.RecordEpisodeStatistics(stacked)):
        found = tabularize(one)
        assert found.states == [0, 1, 2, 3, 4]
        assert found.reset()[1]["state"] == 0


def test_a_wrapper_that_rewards_by_observations_of_another_counts() -> None:
    """Frames of the last two places: the reward is how far it went."""

    class Went(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            frames, _, *rest = self.env.step(action)
            return frames, -float(abs(int(frames[1]) - int(frames[0]))), *rest

    found = tabularize(Went(gym.wrappers.FrameStackObservation(Walk(), 2)))
    assert planners.solve(found, gamma=1).values[0] == pytest.approx(4.0, abs=1e-6)
    assert len(found.states) > 5


def test_a_wrapper_that_draws_actions_of_the_space() -> None:
    class Sometimes(gym.ActionWrapper[Any, Any, Any]):
        def action(self, action: Any) -> Any:
            if self.np_random.random() < 0.25:
                return self.action_space.sample()
            return action

    found = tabularize(Sometimes(Walk()))
    k = found.state_of(1)
    assert row(found.model, k, 1) == pytest.approx(
        {found.state_of(2): 0.875, found.state_of(0): 0.125}
    )


def test_frequencies_of_steps_are_the_probabilities() -> None:
    """3,000 real steps of sticky, slippery cliffs from one state: within 5 standard errors."""
    env = StickyAction(gym.make("CliffWalking-v1", is_slippery=True), 0.3)
    found = tabularize(env)
    env.reset(seed=1)
    base: Any = env.unwrapped
    for last, place in ((1, 24), (0, 30)):
        k, count = found.state_of((last, place)), 3000
        expected = row(found.model, k, 2)
        seen: Counter[int] = Counter()
        for _ in range(count):
            env.last_action, base.s = last, place
            env.step(2)
            seen[found.state_of((env.last_action, int(base.s)))] += 1
        assert seen.keys() <= expected.keys()
        for state, p in expected.items():
            assert abs(seen[state] - count * p) <= 5 * math.sqrt(count * p * (1 - p)) + 1e-9


def test_the_time_limit_is_no_end_unless_it_is_folded() -> None:
    env = TimeLimit(Walk(), 6)
    free = tabularize(env)
    assert free.states == [0, 1, 2, 3, 4]
    folded = tabularize(env, fold_time_limit=True)
    # By steps and places: a walk of 6 steps with walls, and the ends.
    by_hand = {(0, 0)}
    front = {0}
    for steps in range(1, 7):
        front = {min(4, max(0, place + move)) for place in front - {4} for move in (-1, 1)}
        by_hand |= {(steps, place) for place in front}
    assert set(folded.states) == by_hand
    # To walk off is to pay 6 at most; the free model has no such way out.
    worst = planners.evaluate(folded, np.zeros(folded.model.num_states, dtype=int), gamma=0.5)
    assert worst[0] == pytest.approx(sum(0.5**t for t in range(6)))
    best = planners.solve(folded, gamma=1).values[0]
    assert best == pytest.approx(4.0, abs=1e-6)


def test_rollouts_of_a_folded_limit_keep_their_promise() -> None:
    found = tabularize(gym.make("FrozenLake-v1", max_episode_steps=30), fold_time_limit=True)
    result = planners.solve(found, gamma=1)
    assert not planners.rollout(found, result, episodes=200).broken


# ---------------------------------------------------------------------------------------------
# States.


def test_what_nobody_reads_is_not_in_the_state() -> None:
    """A last action that only pictures show, and a name that is written once in a while."""

    class Shown(Walk):
        def step(self, action: Any) -> Any:
            self.last_action = action
            if action:
                self.seldom = str(self.place)
            return super().step(action)

    assert tabularize(Shown()).states == [0, 1, 2, 3, 4]


def test_what_is_read_is_in_the_state_however_late() -> None:
    """Only in place 3 does it matter whether the walk ever was at the wall."""

    class Remembers(Walk):
        def reset(self, **options: Any) -> Any:
            self.bumped = False
            return super().reset(**options)

        def step(self, action: Any) -> Any:
            if self.place == 0 and not action:
                self.bumped = True
            if self.place == 3 and action and self.bumped:
                self.place, self.bumped = 0, False
                return 0, -1.0, False, False, {}
            return super().step(action)

    found = tabularize(Remembers())
    assert set(found.states) == {(b, p) for b in (False, True) for p in range(4)} | {(False, 4)}
    assert planners.solve(found, gamma=1).values[0] == pytest.approx(4.0, abs=1e-6)


def test_an_episode_that_may_end_anywhere() -> None:
    """Ends are one more state where others go on from the same place; 1/2 ends each step."""

    class Dies(Walk):
        def step(self, action: Any) -> Any:
            observation, reward, ended, *rest = super().step(action)
            return observation, reward, ended or self.np_random.random() < 0.5, *rest

    found = tabularize(Dies())
    assert found.model.num_listed_states == 5
    assert found.model.num_added_states == 1
    result = planners.solve(found, gamma=1)
    # 1 + 1/2 (1 + 1/2 (1 + 1/2 1)) on the way to the end.
    assert result.values[:4] == pytest.approx([1.875, 1.75, 1.5, 1.0], abs=1e-6)
    assert not planners.rollout(found, result, episodes=200).broken


def test_states_of_arrays_lists_and_objects() -> None:
    """Lights out on a ring of 4: 16 states, from all of which the dark is reached in 4 moves."""

    class Lamp:
        def __init__(self) -> None:
            self.on = False

    class Ring(gym.Env[Any, int]):
        def __init__(self, kind: str) -> None:
            self.kind = kind
            self.action_space = spaces.Discrete(4)
            self.observation_space = spaces.MultiBinary(4)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            start = [bool(self.np_random.integers(2)) for _ in range(4)]
            if self.kind == "array":
                self.lamps: Any = np.array(start)
            elif self.kind == "list":
                self.lamps = start
            elif self.kind == "dict":
                self.lamps = dict(enumerate(start))
            else:
                self.lamps = [Lamp() for _ in start]
                # The first lamp in two places, which must stay one.
                self.first = self.lamps[0]
                for lamp, on in zip(self.lamps, start, strict=True):
                    lamp.on = on
            return self.seen(), {}

        def seen(self) -> Any:
            if self.kind == "object":
                return np.array([self.first.on, *(lamp.on for lamp in self.lamps[1:])], np.int8)
            return np.array([self.lamps[k] for k in range(4)], np.int8)

        def step(self, action: Any) -> Any:
            for k in (action - 1, action, (action + 1) % 4):
                if self.kind == "object":
                    self.lamps[k % 4].on = not self.lamps[k % 4].on
                else:
                    self.lamps[k % 4] = not self.lamps[k % 4]
            seen = self.seen()
            return seen, -1.0, not seen.any(), False, {}

    depth: dict[int, int] = {0: 0}
    front = [0]
    for lamps in front:
        for k in range(4):
            after = lamps
            for place in (k - 1, k, k + 1):
                after ^= 1 << place % 4
            if after not in depth:
                depth[after] = depth[lamps] + 1
                front.append(after)
    assert len(depth) == 16
    mean = np.mean([steps if lamps else 0 for lamps, steps in depth.items()])
    for kind in ("array", "list", "dict", "object"):
        found = tabularize(Ring(kind))
        result = planners.solve(found, gamma=1)
        first = found.model.initial[: len(result.values)]
        # A start in the dark is a state like others, from which one must come back.
        dark = 2.0 / 16  # two moves: one and back again
        assert result.values @ first == pytest.approx(mean + dark, abs=1e-6)
        assert not planners.rollout(found, result, episodes=30).broken


def test_states_saved_by_the_environment() -> None:
    """With get_state and set_state nothing else is looked at, be it hidden outside of it."""
    box = [0]

    class Closed(Walk):
        @property
        def place(self) -> int:
            return box[0]

        @place.setter
        def place(self, new: int) -> None:
            box[0] = new

        def get_state(self) -> int:
            return self.place

        def set_state(self, state: int) -> None:
            self.place = state

    found = tabularize(Closed())
    assert found.states == [(0,), (1,), (2,), (3,), (4,)]
    assert planners.solve(found, gamma=1).values[0] == pytest.approx(4.0, abs=1e-6)


def test_a_state_that_is_named() -> None:
    found = tabularize(Walk(), state=lambda env: f"place {env.unwrapped.place}")
    assert found.states == [f"place {k}" for k in range(5)]
    assert found.reset()[1]["state"] == found.state_of("place 0")


def test_attributes_that_are_held() -> None:
    class Counted(Walk):
        def reset(self, **options: Any) -> Any:
            self.count = 0
            return super().reset(**options)

        def step(self, action: Any) -> Any:
            self.count += 1
            observation, _, ended, _, info = super().step(action)
            return observation, -float(self.count), ended, self.count >= 50, info

    with pytest.raises(TabularizeError, match=r"max_states = 100 .*count"):
        tabularize(Counted(), max_states=100)
    held = tabularize(Counted(), hold=["count"])
    assert held.states == [0, 1, 2, 3, 4]
    assert planners.solve(held, gamma=1).values[0] == pytest.approx(4.0, abs=1e-6)
    folded = tabularize(Counted(), fold_time_limit=True)
    assert planners.solve(folded, gamma=1).values[0] == pytest.approx(1 + 2 + 3 + 4, abs=1e-6)
    with pytest.raises(ValueError, match="hold names 'nothing'"):
        tabularize(Counted(), hold=["nothing"])


def test_starts_of_a_reset_and_of_a_seed() -> None:
    class Anywhere(Walk):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            self.place = int(self.np_random.integers(4)) if options is None else options["at"]
            return self.place, {}

    every = tabularize(Anywhere())
    assert every.model.initial.tolist() == [0.25] * 4 + [0.0]
    one = tabularize(Anywhere(), seed=2)
    place = Anywhere().reset(seed=2)[0]
    assert [one.states[k] for k in np.flatnonzero(one.model.initial)] == [place]
    for seed in (None, 5, 6):
        assert one.reset(seed=seed)[0] == place
    told = tabularize(Anywhere(), options={"at": 3})
    assert told.states[int(np.argmax(told.model.initial))] == 3
    assert told.reset()[0] == 3


def test_a_fixed_start_leaves_the_steps_to_chance() -> None:
    class Slips(Walk):
        def move(self, action: Any) -> int:
            return 1 if self.np_random.random() < 0.5 else 0

    found = tabularize(Slips(), seed=0)
    result = planners.solve(found, gamma=1)
    assert result.values[0] == pytest.approx(8.0, abs=1e-6)
    played = planners.rollout(found, result, episodes=100, seed=3)
    assert len(set(played.lengths.tolist())) > 3
    assert not played.broken
    again = planners.rollout(found, result, episodes=100, seed=3)
    assert np.array_equal(played.lengths, again.lengths)


# ---------------------------------------------------------------------------------------------
# Actions.


def test_actions_of_every_kind_of_space() -> None:
    assert every_action(spaces.Discrete(3, start=2)) == [2, 3, 4]
    assert [a.tolist() for a in every_action(spaces.MultiDiscrete([2, 2]))] == [
        [0, 0],
        [0, 1],
        [1, 0],
        [1, 1],
    ]
    assert len(every_action(spaces.MultiBinary((2, 2)))) == 16
    both = spaces.Tuple((spaces.Discrete(2), spaces.MultiBinary(1)))
    assert [(a, b.tolist()) for a, b in every_action(both)] == [
        (0, [0]),
        (0, [1]),
        (1, [0]),
        (1, [1]),
    ]
    named = spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Discrete(2, start=5)})
    assert {(one["a"], one["b"]) for one in every_action(named)} == {(0, 5), (0, 6), (1, 5), (1, 6)}
    for space in (both, named, spaces.MultiDiscrete([[2, 3], [1, 2]])):
        assert all(space.contains(one) for one in every_action(space))
    with pytest.raises(TypeError, match="actions="):
        every_action(spaces.Box(0, 1))


def test_actions_of_several_parts_and_given_ones() -> None:
    class Push(Walk):
        def __init__(self, space: Any) -> None:
            super().__init__()
            self.action_space = space

        def move(self, action: Any) -> int:
            return int(np.sum(action)) - 1

    found = tabularize(Push(spaces.MultiDiscrete([2, 2])))
    assert [int(a.sum()) for a in found.actions] == [0, 1, 1, 2]
    assert row(found.model, 1, 3) == {2: 1.0}
    assert planners.rollout(found, planners.solve(found, gamma=1), episodes=1).returns[0] == -4
    box = tabularize(Push(spaces.Box(-1, 3)), actions=[np.array([0.0]), np.array([2.0])])
    assert box.states == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="actions must not be empty"):
        tabularize(Walk(), actions=[])


@pytest.mark.parametrize("by_method", [False, True])
def test_masks_of_actions(by_method: bool) -> None:
    """No way back from an odd place."""

    def mask_at(place: int) -> Any:
        return np.array([place % 2 == 0, True], dtype=np.int8)

    class Masked(Walk):
        def reset(self, **options: Any) -> Any:
            observation, _ = super().reset(**options)
            return observation, {} if by_method else {"action_mask": mask_at(self.place)}

        def step(self, action: Any) -> Any:
            assert mask_at(self.place)[action], "an unavailable action was taken"
            *rest, info = super().step(action)
            return *rest, info if by_method else {"action_mask": mask_at(self.place)}

    if by_method:
        Masked.action_masks = lambda self: mask_at(self.place)  # type: ignore[attr-defined]
    found = tabularize(Masked())
    for k, place in enumerate(found.states):
        if place != 4:
            assert found.model.action_mask[k].tolist() == [place % 2 == 0, True]
    assert found.reset()[1]["action_mask"].tolist() == [1, 1]
    assert found.step(1)[4]["action_mask"].tolist() == [0, 1]
    assert found.action_masks().tolist() == [False, True]
    assert not planners.rollout(found, planners.solve(found, gamma=1), episodes=2).broken


def test_masks_that_do_not_fit_are_refused() -> None:
    class Wrong(Walk):
        mask: Any = (1,)

        def action_masks(self) -> Any:
            return self.mask

    with pytest.raises(ValueError, match="one entry for each of the 2 actions"):
        tabularize(Wrong())
    Wrong.mask = (0, 0)
    with pytest.raises(ValueError, match="no available action"):
        tabularize(Wrong())
    assert tabularize(Wrong(), action_masks=False).states == [0, 1, 2, 3, 4]


# ---------------------------------------------------------------------------------------------
# Outcomes that are declared.


def test_declared_outcomes() -> None:
    """Steps that draw normal numbers, of which only the side counts."""

    class Normal(Walk):
        def move(self, action: Any) -> int:
            return 1 if self.np_random.normal() > 0 else 0

    def outcomes(place: int, action: int) -> list[tuple[float, int, float, bool]]:
        return [(0.5, place, -1.0, False), (0.5, place + 1, -1.0, place == 3)]

    with pytest.raises(TabularizeError, match=r"normal\(\) in .*line \d+"):
        tabularize(Normal())
    found = tabularize(Normal(), state=lambda env: env.unwrapped.place, outcomes=outcomes)
    result = planners.solve(found, gamma=1)
    assert result.values[0] == pytest.approx(8.0, abs=1e-6)
    assert not planners.rollout(found, result, episodes=100).broken
    with pytest.raises(ValueError, match="needs state="):
        tabularize(Normal(), outcomes=outcomes)


@pytest.mark.parametrize(
    ("listed", "match"),
    [
        ([(0.5, 1, -1.0, False)], "sum to 0.5"),
        ([(1.5, 1, -1.0, False), (-0.5, 0, 0.0, False)], r"probabilities in \[0, 1\]"),
        ([(1.0, 1, float("nan"), False)], "finite rewards"),
        ([(float("nan"), 1, 0.0, False)], r"probabilities in \[0, 1\]"),
        ([(1.0, 1)], "must list"),
        ([(1.0, 1, -1.0, False)], "a walk"),
    ],
)
def test_declared_outcomes_that_are_wrong(listed: Any, match: str) -> None:
    """The last of them is what the steps do not do."""
    with pytest.raises(ValueError, match=match):
        tabularize(
            Walk(),
            state=lambda env: env.unwrapped.place,
            outcomes=lambda place, action: listed if place == 0 else [(1.0, 4, -1.0, True)],
        )


# ---------------------------------------------------------------------------------------------
# What is refused.


def test_draws_that_cannot_be_enumerated_are_named() -> None:
    class Normal(Walk):
        def move(self, action: Any) -> int:
            return round(self.np_random.normal(0.0, 2.0))

    with pytest.raises(TabularizeError, match=r"action 0: normal\(0\.0, 2\.0\) in .*test_tabul"):
        tabularize(Normal())
    with pytest.raises(TabularizeError, match=r"reset: uniform\(.*mountain_car.*seed="):
        tabularize(gym.make("MountainCar-v0"))


def test_a_refusal_that_the_environment_swallows_is_raised() -> None:
    class Swallows(Walk):
        def move(self, action: Any) -> int:
            try:
                return round(self.np_random.normal())
            except ValueError:
                return 1

    with pytest.raises(TabularizeError, match="normal"):
        tabularize(Swallows())


@pytest.mark.parametrize(
    ("draw", "named"),
    [
        (lambda: np.random.random(), r"numpy\.random\.random\(\) in"),  # noqa: NPY002
        (lambda: random.random(), r"random\.random\(\) in"),
        (random.Random.random, "draws"),
    ],
)
def test_draws_from_shared_generators_are_named(draw: Any, named: str) -> None:
    if draw is random.Random.random:
        # Imported by name, which nobody can take away.
        draw = random.random

    class Shared(Walk):
        def move(self, action: Any) -> int:
            return 1 if draw() < 0.5 else -1

    with pytest.raises(TabularizeError, match=named):
        tabularize(Shared())
    assert 0 <= random.random() < 1


def test_own_generators_fork() -> None:
    class Own(Walk):
        def __init__(self) -> None:
            super().__init__()
            self.rng = np.random.default_rng(0)
            self.dice = random.Random(0)

        def move(self, action: Any) -> int:
            return int(self.rng.integers(2)) + (self.dice.random() < 0.5)

    found = tabularize(Own())
    assert row(found.model, 0, 0) == {0: 0.25, 1: 0.5, 2: 0.25}


def test_other_generators_are_refused() -> None:
    class Old(Walk):
        def __init__(self) -> None:
            super().__init__()
            self.rng = np.random.RandomState(0)

        def move(self, action: Any) -> int:
            return int(self.rng.randint(2))

    class New(Walk):
        def move(self, action: Any) -> int:
            self.np_random = np.random.default_rng(self.place)
            return 1

    with pytest.raises(TabularizeError, match="RandomState"):
        tabularize(Old())
    with pytest.raises(TabularizeError, match="replaces its np_random"):
        tabularize(New())


def test_hidden_states_are_found_out() -> None:
    """Nothing in the attributes tells that every third move goes the other way."""
    count = [0]

    class Hides(Walk):
        def move(self, action: Any) -> int:
            count[0] += 1
            return 1 if count[0] % 3 else -1

    with pytest.raises(TabularizeError, match="is not all that decides"):
        tabularize(Hides())


def test_a_state_that_tells_too_little_is_found_out() -> None:
    """Momentum: the place alone does not tell where one goes."""

    class Slides(Walk):
        def reset(self, **options: Any) -> Any:
            self.speed = 0
            return super().reset(**options)

        def move(self, action: Any) -> int:
            self.speed = max(-1, min(1, self.speed + (1 if action else -1)))
            return self.speed

    assert len(tabularize(Slides()).states) > 5
    with pytest.raises(TabularizeError, match=r"state= must tell them apart"):
        tabularize(Slides(), state=lambda env: env.unwrapped.place)


def test_too_many_states_and_outcomes() -> None:
    class Endless(Walk):
        def move(self, action: Any) -> int:
            self.far = getattr(self, "far", 0) + 1
            return -1

    with pytest.raises(TabularizeError, match=r"max_states = 1,000 .* far \d+"):
        tabularize(Endless(), max_states=1000)

    class Many(Walk):
        def move(self, action: Any) -> int:
            return sum(self.np_random.random() < 0.5 for _ in range(8)) - 4

    assert len(tabularize(Many(), max_outcomes=256).states) == 5
    with pytest.raises(TabularizeError, match=r"max_outcomes = 255"):
        tabularize(Many(), max_outcomes=255)


def test_errors_of_steps_say_where() -> None:
    class Breaks(Walk):
        def step(self, action: Any) -> Any:
            if self.place == 2 and action == 0:
                raise RuntimeError("broken")
            return super().step(action)

    with pytest.raises(RuntimeError, match="broken") as error:
        tabularize(Breaks())
    assert any("state (2,), action 0" in note for note in error.value.__notes__)


@pytest.mark.parametrize("reward", [float("nan"), float("inf")])
def test_rewards_that_are_not_finite(reward: float) -> None:
    class Pays(Walk):
        def step(self, action: Any) -> Any:
            observation, _, *rest = super().step(action)
            return observation, reward, *rest

    with pytest.raises(ValueError, match="rewards must be finite"):
        tabularize(Pays())


@pytest.mark.parametrize(
    ("arguments", "kind", "match"),
    [
        ({"max_states": 0}, ValueError, "max_states"),
        ({"max_outcomes": 1.5}, TypeError, "max_outcomes"),
        ({"seed": -1}, ValueError, "seed"),
        ({"state": "place"}, TypeError, "state must be callable"),
        ({"known": 3}, TypeError, "known must be callable"),
        ({"hold": "place"}, TypeError, "hold must list"),
        ({"state": lambda env: [env.unwrapped.place]}, TypeError, "hashable"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        tabularize(Walk(), **arguments)


def test_what_is_no_environment() -> None:
    with pytest.raises(TypeError, match="gymnasium"):
        tabularize(Walk)  # type: ignore[arg-type]

    class Locked(Walk):
        def __deepcopy__(self, memo: Any) -> Any:
            raise RuntimeError("only one of me")

    with pytest.raises(TypeError, match=r"cannot be copied.*only one of me"):
        tabularize(Locked())


def test_the_environment_stays_as_it_is() -> None:
    env: Any = gym.make("FrozenLake-v1")
    env.reset(seed=7)
    env.step(1)
    place, drawn = env.unwrapped.s, copy.deepcopy(env.np_random)
    names = dict(vars(env.unwrapped))
    tabularize(env)
    assert env.unwrapped.s == place
    assert vars(env.unwrapped).keys() == names.keys()
    assert env.np_random.random() == drawn.random()


# ---------------------------------------------------------------------------------------------
# Long work.


def same(one: TabularMDP, other: TabularMDP) -> bool:
    return (
        (one.transitions != other.transitions).nnz == 0
        and np.array_equal(one.costs, other.costs)
        and np.array_equal(one.initial, other.initial)
        and np.array_equal(one.action_mask, other.action_mask)
    )


def stopped_after(number: int, error: BaseException | None = None) -> Any:
    seen: list[TabularizeProgress] = []

    def progress(told: TabularizeProgress) -> bool:
        seen.append(told)
        if len(seen) == number and error is not None:
            raise error
        return len(seen) == number

    return progress


def taxi() -> Any:
    return gym.make("Taxi-v4", is_rainy=True)


class Grid(gym.Env[int, int]):
    """A square where the wind blows now and then."""

    def __init__(self) -> None:
        self.action_space, self.observation_space = spaces.Discrete(4), spaces.Discrete(1600)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.x = self.y = 0
        return 0, {}

    def step(self, action: Any) -> Any:
        if self.np_random.random() < 0.1:
            action = self.np_random.integers(4)
        self.x = max(0, min(39, self.x + (0, 0, -1, 1)[action]))
        self.y = max(0, min(39, self.y + (-1, 1, 0, 0)[action]))
        return 40 * self.x + self.y, -1.0, self.x == self.y == 39, False, {}


def test_progress_is_told() -> None:
    told: list[TabularizeProgress] = []
    found = tabularize(Grid(), progress=told.append)
    assert [one.explored for one in told] == sorted(one.explored for one in told)
    last = told[-1]
    assert last.states == last.explored == found.model.num_states == 1600
    assert last.outcomes > 4 * 1599
    assert len(told) >= 4
    with pytest.raises(TabularizeError, match=r"stopped by the callback, with [\d,]+ states"):
        tabularize(Grid(), progress=stopped_after(2))


@pytest.mark.parametrize("error", [None, KeyboardInterrupt(), MemoryError()])
def test_an_exploration_that_was_stopped_goes_on(
    error: BaseException | None, tmp_path: Path
) -> None:
    file = tmp_path / "unfinished"
    whole = tabularize(Grid())
    with pytest.raises(TabularizeError if error is None else type(error)) as raised:
        tabularize(Grid(), progress=stopped_after(2, error), resume=file)
    assert any(str(file) in note for note in raised.value.__notes__)
    told: list[TabularizeProgress] = []
    found = tabularize(Grid(), resume=file, progress=told.append)
    # It did not begin anew: the first half was there.
    assert told[0].explored >= 1500
    assert same(found.model, whole.model)
    assert found.states == whole.states
    # What is whole is only read again.
    again: list[TabularizeProgress] = []
    assert same(tabularize(Grid(), resume=file, progress=again.append).model, whole.model)
    assert len(again) == 1


def test_an_interrupt_in_any_step_loses_nothing(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a state, whose outcomes so far are forgotten."""
    whole = tabularize(taxi(), action_masks=False)
    file = tmp_path / "unfinished"
    rng = np.random.default_rng(0)
    steps = [0, 0]

    class Interrupts(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            steps[0] += 1
            if steps[0] == steps[1]:
                raise KeyboardInterrupt
            return super().step(action)

    interrupts = 0
    for _ in range(40):
        steps[:] = 0, int(rng.integers(300, 1600))
        try:
            found = tabularize(Interrupts(taxi()), action_masks=False, resume=file)
        except KeyboardInterrupt:
            interrupts += 1
            continue
        break
    else:
        pytest.fail("it never came to an end")
    assert interrupts >= 3
    assert same(found.model, whole.model)


def test_files_of_others_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "unfinished"
    with pytest.raises(TabularizeError):
        tabularize(Grid(), progress=stopped_after(2), resume=file)
    with pytest.raises(ValueError, match="actions"):
        tabularize(taxi(), resume=file)

    class Faster(Grid):
        def step(self, action: Any) -> Any:
            super().step(action)
            return super().step(action)

    with pytest.raises(ValueError, match="another exploration"):
        tabularize(Faster(), resume=file)
    (tmp_path / "text").write_text("nothing of the kind")
    with pytest.raises(ValueError, match="not an unfinished exploration"):
        tabularize(Grid(), resume=tmp_path / "text")
    aggmaze.save_model(tabularize(Walk()).model, tmp_path / "model")
    with pytest.raises(ValueError, match="saved model"):
        tabularize(Walk(), resume=tmp_path / "model")


def test_damaged_files_are_refused_or_harmless(tmp_path: Path) -> None:
    """One byte changed: an error that names the file, or the same model."""
    file = tmp_path / "unfinished"
    whole = tabularize(Walk(), resume=file)
    content = file.read_bytes()
    rng = np.random.default_rng(1)
    for place in rng.integers(len(content), size=60):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(damaged)
        try:
            found = tabularize(Walk(), resume=file)
        except (ValueError, MemoryError) as error:
            if not re.search("unfinished|another exploration", str(error)):
                pytest.fail(f"the error names nothing: {error}")
        else:
            assert same(found.model, whole.model)
        file.write_bytes(content)


# ---------------------------------------------------------------------------------------------
# The wrapper.


def test_policies_walk_in_the_environment() -> None:
    found = tabularize(gym.make("CliffWalking-v1"))
    result = planners.solve(found, gamma=1)
    assert planners.rollout(found, result, episodes=1).returns.tolist() == [-13.0]
    assert "38 states" in repr(found)
    with pytest.raises(KeyError):
        found.state_of(47_000)
    found.reset()
    with pytest.raises(ValueError, match="action must be in"):
        found.step(4)
    found.unwrapped.s = 37  # type: ignore[attr-defined]
    found.unwrapped.P[37][0] = [(1.0, 38, -1, False)]  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="not explored"):
        found.step(0)


def test_a_reset_into_a_state_that_was_not_explored_is_refused() -> None:
    class Anywhere(Walk):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            self.place = 2 if options is None else options["at"]
            self.walls = options
            return self.place, {}

    found = tabularize(Anywhere(), state=lambda env: env.unwrapped.place)
    with pytest.raises(ValueError, match="not explored"):
        found.reset(options={"at": 9})


def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Every example but Blackjack, which has a test of its own, prints what the page says."""
    page = Path(__file__).parents[3] / "docs" / "models" / "tabularize.md"
    names: dict[str, Any] = {}
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    run = [block for block in blocks if "Blackjack" not in block]
    assert len(run) == len(blocks) - 1 >= 4
    for block in run:
        exec(block, names)
    printed = capsys.readouterr().out
    for expected in (
        "TabularMDP(16 states, 4 actions, 5 terminal, 148 transitions)",
        "reset: uniform(-0.6, -0.4) in",
        "(0, 24)",
        "13.97",
        "P[17][0] says 0",
    ):
        assert expected in printed
