"""`as_model`: the one door in, and whom it turns away."""

from __future__ import annotations

import copy
import json
import random
import threading
from functools import partial
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
import scipy.sparse as sp
from gymnasium import wrappers
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv

import aggmaze
import planners
from aggmaze import MoveMDP, TabularEnv, TabularMDP
from aggmaze.wrappers import vector
from tests.planners.reference import random_moves, random_tabular

ROWS = {
    0: {0: [(0.5, 0, 1.0, False), (0.5, 1, 2.0, True)], 1: [(1.0, 0, -1.0, False)]},
    1: {0: [(1.0, 1, 0.0, True)], 1: [(1.0, 1, 0.0, True)]},
}


class Renamed(gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper that overrides nothing."""


class OwnStep(gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper that could do anything to a step."""

    def step(self, action: Any) -> Any:
        return self.env.step(action)


class Doubled(gym.RewardWrapper[Any, Any]):
    """A wrapper that doubles rewards, and knows it."""

    def reward(self, reward: Any) -> float:
        return 2.0 * float(reward)

    def transition_model(self) -> Any:
        return planners.as_model(self.env).scaled(2.0)


class StillDoubled(Doubled):
    """A subclass that adds nothing."""


class LongerLimit(wrappers.TimeLimit):
    """A time limit with a step of its own."""

    def step(self, action: Any) -> Any:
        return super().step(action)


class Shown(gym.ObservationWrapper[Any, Any, Any]):
    """A wrapper of observations."""

    def observation(self, observation: Any) -> Any:
        return observation


# ---------------------------------------------------------------------------------------------
# Taken.


@pytest.mark.parametrize("model", [random_tabular(0, 5, 2), random_moves(0, 5, 3, p=0.9)])
def test_models_are_themselves(model: Any) -> None:
    assert planners.as_model(model) is model
    assert planners.as_model(TabularEnv(model)) is model


@pytest.mark.parametrize("name", [name for name in aggmaze.ENV_IDS if "Maze" in name])
def test_mazes(name: str) -> None:
    env = gym.make(name)
    assert isinstance(env, gym.Wrapper)
    model = planners.as_model(env)
    assert isinstance(model, MoveMDP)
    assert model is env.unwrapped.transition_model()  # type: ignore[attr-defined]
    assert planners.as_model(env.unwrapped) is model


def test_a_new_maze_is_a_new_model() -> None:
    env = gym.make("StandardMaze-v0")
    before = planners.as_model(env)
    env.reset(options={"layout_seed": 5})
    after = planners.as_model(env)
    assert (after.move_costs != before.move_costs).any()


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: wrappers.TimeLimit(env, 10),
        wrappers.OrderEnforcing,
        wrappers.PassiveEnvChecker,
        wrappers.RecordEpisodeStatistics,
        wrappers.Autoreset,
        wrappers.FlattenObservation,
        wrappers.NormalizeObservation,
        wrappers.TimeAwareObservation,
        lambda env: wrappers.FrameStackObservation(env, 3),
        lambda env: wrappers.TransformObservation(env, lambda s: s, env.observation_space),
        Renamed,
        Shown,
        lambda env: Renamed(Shown(wrappers.TimeLimit(Renamed(env), 5))),
    ],
)
def test_harmless_wrappers(wrap: Any) -> None:
    for name in ("TerrainMaze-v0", "FrozenLake-v1"):
        env = gym.make(name)
        if name == "FrozenLake-v1":
            inside, wrapped = planners.as_model(env), planners.as_model(wrap(env))
            np.testing.assert_array_equal(wrapped.costs, inside.costs)
            assert (wrapped.transitions != inside.transitions).nnz == 0
        else:
            assert planners.as_model(wrap(env)) is planners.as_model(env)


@pytest.mark.parametrize(
    ("name", "states", "actions", "added"),
    [
        ("FrozenLake-v1", 16, 4, 0),
        ("CliffWalking-v1", 48, 4, 1),
        ("Taxi-v4", 500, 6, 1),
    ],
)
def test_toy_text(name: str, states: int, actions: int, added: int) -> None:
    env = gym.make(name)
    model = planners.as_model(env)
    assert isinstance(model, TabularMDP)
    assert model.num_states == states + added
    assert model.num_actions == actions
    assert model.num_added_states == added
    start = env.unwrapped.initial_state_distrib  # type: ignore[attr-defined]
    np.testing.assert_array_equal(model.initial[:states], start)
    assert not model.initial[states:].any()
    P = env.unwrapped.P  # type: ignore[attr-defined]
    for s in range(0, states, 7):
        for a in range(actions):
            expected = -sum(p * reward for p, _, reward, _ in P[s][a])
            assert model.costs[s, a] == pytest.approx(expected, abs=1e-12)
            row = model.transitions[[s * actions + a]].toarray()[0]
            stays = sum(p for p, t, _, done in P[s][a] if done and not model.terminal[t])
            assert row[states:].sum() == pytest.approx(stays)
    # The table alone will do; it knows no start.
    bare = planners.as_model(P)
    np.testing.assert_array_equal(bare.costs, model.costs)
    assert bare.num_added_states == added


def test_a_table_by_hand() -> None:
    model = planners.as_model(ROWS)
    assert isinstance(model, TabularMDP)
    np.testing.assert_array_equal(model.costs, [[-1.5, 1.0], [0.0, 0.0]])
    assert model.terminal.tolist() == [False, True]
    assert model.num_added_states == 0
    assert model.initial.tolist() == [1.0, 0.0]


def test_a_wrapper_that_knows_its_model() -> None:
    env = Doubled(gym.make("StandardMaze-v0", shape=(4, 4)))
    inside = planners.as_model(env.env)
    for wrapped in (env, Renamed(env), wrappers.TimeLimit(env, 5), StillDoubled(env.env)):
        model = planners.as_model(wrapped)
        np.testing.assert_array_equal(model.move_costs, 2.0 * inside.move_costs)
    twice = planners.as_model(Doubled(env))
    np.testing.assert_array_equal(twice.move_costs, 4.0 * inside.move_costs)
    result = planners.solve(env, gamma=0.9)
    plain = planners.solve(env.env, gamma=0.9)
    np.testing.assert_allclose(result.values, 2 * plain.values, rtol=0, atol=1e-5)


def test_a_wrapper_that_knows_its_model_hides_those_below() -> None:
    class Told(OwnStep):
        def transition_model(self) -> Any:
            return planners.as_model(ROWS)

    assert planners.as_model(Told(OwnStep(gym.make("CartPole-v1")))).num_states == 2


def test_a_pair_of_matrices_and_rewards() -> None:
    P = np.array([[[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], np.eye(3)[[2, 0, 2]]])
    R = np.array([[1, -2], [3, 4], [0, 0]])
    model = planners.as_model((P, R))
    assert isinstance(model, TabularMDP)
    np.testing.assert_array_equal(model.rewards, R)
    np.testing.assert_array_equal(model.transitions.toarray()[::2], P[0])
    np.testing.assert_array_equal(model.transitions.toarray()[1::2], P[1])
    assert model.terminal.tolist() == [False, False, True]
    for source in ((P.swapaxes(0, 1), R), ([sp.csr_matrix(M) for M in P], R), (list(P), R)):
        again = planners.as_model(source)
        assert isinstance(again, TabularMDP)
        assert (again.transitions != model.transitions).nnz == 0
        np.testing.assert_array_equal(again.costs, model.costs)
    # State 0 goes to 1 and back for 4; state 1 stays for 3: V(1) = -max(3 / .1, ...).
    result = planners.solve((P, R), gamma=0.9, tol=1e-9)
    exact = -np.linalg.solve(
        np.eye(3) - 0.9 * P[[0, 0, 0], [0, 1, 2]], R[[0, 1, 2], [0, 0, 0]].astype(float)
    )
    np.testing.assert_allclose(result.values, exact, rtol=0, atol=result.bound + 1e-12)


def as_lists(P: Any) -> Any:
    """Return a table P in lists, as JSON has it."""
    return json.loads(json.dumps([list(P[s].values()) for s in range(len(P))]))


@pytest.mark.parametrize("make", [list, tuple])
def test_a_table_in_lists(make: Any) -> None:
    for P in (ROWS, gym.make("FrozenLake-v1").unwrapped.P):  # type: ignore[attr-defined]
        model, listed = planners.as_model(P), planners.as_model(make(as_lists(P)))
        assert isinstance(model, TabularMDP)
        assert isinstance(listed, TabularMDP)
        assert (listed.transitions != model.transitions).nnz == 0
        np.testing.assert_array_equal(listed.costs, model.costs)
    # The first action of state 0 pays 1.5 on average and stays with 1/2: V = -1.5 + .9 V/2.
    result = planners.solve(make(as_lists(ROWS)), gamma=0.9, tol=1e-9)
    np.testing.assert_allclose(result.values, [-1.5 / 0.55, 0.0], rtol=0, atol=result.bound + 1e-12)


def test_matrices_in_lists() -> None:
    # Four states, so that a row has the length of an outcome; 0 -> 1 -> 2 -> 3, which is free.
    P = [[[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1]]]
    R = [1.0, 1.0, 2.0, 0.0]
    for pair in ((P, R), (P, [[r] for r in R]), (np.array(P, dtype=bool), R)):
        result = planners.solve(pair, gamma=0.5, tol=1e-12)
        np.testing.assert_allclose(result.values, [-2.0, -2.0, -2.0, 0.0], rtol=1e-11)
    for source, kind in (
        (P, "a list of 1"),
        ([P, R], "a list of 2"),
        ([P, P], "a list of 2"),
        (np.array(P), r"an array of shape \(1, 4, 4\)"),
        ([[[(1.0, 0, 0.0, 1)]]], "a list of 1"),
    ):
        advice = r"the tuple \(P, R\), or into TabularMDP\.from_matrices.*TabularMDP\.from_gym_P"
        for call in (planners.as_model, partial(planners.solve, gamma=0.9)):
            with pytest.raises(TypeError, match=f"got {kind}; .*{advice}"):
                call(source)


def test_a_table_below_wrappers_counts_for_less_than_a_model() -> None:
    env = gym.make("StandardMaze-v0", shape=(3, 3))
    assert len(env.unwrapped.P) == 9  # type: ignore[attr-defined]
    assert isinstance(planners.as_model(env), MoveMDP)
    table = planners.as_model(env.unwrapped.P)  # type: ignore[attr-defined]
    assert isinstance(table, TabularMDP)
    results = planners.solve(env, gamma=0.9), planners.solve(table, gamma=0.9)
    np.testing.assert_allclose(results[0].values, results[1].values, rtol=0, atol=1e-5)


# ---------------------------------------------------------------------------------------------
# Turned away.


@pytest.mark.parametrize(
    ("wrap", "name"),
    [
        (lambda env: wrappers.TransformReward(env, lambda r: 2 * r), "TransformReward"),
        (lambda env: wrappers.ClipReward(env, -1, 1), "ClipReward"),
        (wrappers.NormalizeReward, "NormalizeReward"),
        (
            lambda env: wrappers.TransformAction(env, lambda a: 3 - a, env.action_space),
            "TransformAction",
        ),
        (lambda env: wrappers.StickyAction(env, 0.1), "StickyAction"),
        (OwnStep, "OwnStep"),
        (lambda env: LongerLimit(env, 10), "LongerLimit"),
    ],
)
@pytest.mark.parametrize("env_id", ["StandardMaze-v0", "FrozenLake-v1"])
def test_wrappers_that_may_change_rewards_or_actions(wrap: Any, name: str, env_id: str) -> None:
    env = wrap(gym.make(env_id))
    for wrapped in (env, Renamed(env), wrappers.TimeLimit(Shown(env), 5)):
        for call in (planners.as_model, lambda env: planners.solve(env, gamma=0.9)):
            with pytest.raises(ValueError, match=f"wrapper {name} may change rewards or actions"):
                call(wrapped)


@pytest.mark.parametrize("name", ["CartPole-v1", "Blackjack-v1"])
def test_environments_without_a_model(name: str) -> None:
    env = gym.make(name)
    for source in (env, env.unwrapped, Renamed(env)):
        with pytest.raises(TypeError, match=f"{name} exposes no transition model"):
            planners.as_model(source)
    with pytest.raises(TypeError, match=name):
        planners.solve(env, gamma=0.9)


def test_an_unregistered_environment_is_named_by_its_class() -> None:
    class Nameless(gym.Env[Any, Any]):
        pass

    with pytest.raises(TypeError, match="Nameless exposes no transition model"):
        planners.as_model(Renamed(Nameless()))


def test_a_transition_model_of_another_type() -> None:
    class Odd(gym.Env[Any, Any]):
        def transition_model(self) -> Any:
            return np.zeros((2, 2))

    with pytest.raises(TypeError, match=r"transition_model\(\) of Odd must return .* got ndarray"):
        planners.as_model(Odd())


@pytest.mark.parametrize(
    "source", [None, 3, "FrozenLake-v1", np.zeros((2, 2, 2)), sp.eye_array(3), object, TabularMDP]
)
def test_other_types(source: object) -> None:
    with pytest.raises(TypeError, match=r"expected a TabularMDP, a MoveMDP, an environment"):
        planners.as_model(source)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ((np.eye(3),), "a tuple of 1"),
        ((np.eye(3), np.ones(3), 0.9), "a tuple of 3"),
        ([[np.eye(3)], np.ones(3)], "a list of 2"),
    ],
)
def test_what_is_no_pair(source: object, kind: str) -> None:
    with pytest.raises(TypeError, match=rf"a tuple \(P, R\) of .*, got {kind}"):
        planners.as_model(source)


@pytest.mark.parametrize(
    "P",
    [
        {},
        {"a": 1},
        {1: ROWS[0]},
        {0: {}},
        {0: 5},
        {0: {0: 5}},
        {0: {0: [(1.0, 0, 0.0)]}},
        {0: {0: [(1.0, 0, "x", False)]}},
        {0: {0: [(0.5, 0, 0.0, False)]}},
        {0: {0: [(1.0, 1, 0.0, False)]}},
        {0: {0: [(1.0, 0.5, 0.0, False)]}},
        {0: {0: [(np.nan, 0, 0.0, False)]}},
        {0: {0: [(1.0, 0, np.inf, False)]}},
        {0: {0: []}},
        {0: ROWS[0], 1: {0: ROWS[1][0]}},
    ],
)
def test_tables_that_are_none(P: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        planners.as_model(P)


def test_models_that_are_not_valid() -> None:
    bad = TabularMDP(sp.csr_array(np.eye(2) * 0.5), np.ones((2, 1)))
    with pytest.raises(ValueError, match=r"state 0, action 0: probabilities sum to 0\.5"):
        planners.as_model(bad)
    with pytest.raises(ValueError, match=r"state 0, action 0: probabilities sum to 0\.5"):
        planners.as_model(TabularEnv(bad))
    nan = MoveMDP([[0, 0]], [[np.nan, 1.0]])
    with pytest.raises(ValueError, match="state 0, move 0: cost nan must be finite"):
        planners.as_model(nan)


@pytest.mark.parametrize("env_id", aggmaze.ENV_IDS)
def test_many_at_once_have_the_model_of_one(env_id: str) -> None:
    envs = gym.make_vec(env_id, num_envs=3)
    assert planners.as_model(envs) is envs.transition_model()
    for wrap in (vector.OneHotObservation, partial(planners.with_regret, gamma=0.9)):
        assert planners.as_model(wrap(envs)) is envs.transition_model()
    np.testing.assert_array_equal(
        planners.solve(envs, gamma=0.9).values, planners.solve(gym.make(env_id), gamma=0.9).values
    )
    envs.close()
    with pytest.raises(TypeError, match="got SyncVectorEnv"):
        planners.as_model(gym.make_vec(env_id, num_envs=2, vectorization_mode="sync"))


# ---------------------------------------------------------------------------------------------
# Tables that are not what the steps do.


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Taxi-v4", {}),
        ("Taxi-v4", {"is_rainy": True}),
        ("Taxi-v4", {"is_rainy": True, "rainy_probability": 0.1}),
        ("Taxi-v4", {"fickle_passenger": True, "fickle_probability": 0.0}),
        ("FrozenLake-v1", {"is_slippery": False}),
        ("FrozenLake-v1", {"success_rate": 0.9}),
        ("FrozenLake-v1", {"success_rate": 0.0}),
        ("FrozenLake-v1", {"reward_schedule": (10, -5, -1)}),
        ("FrozenLake-v1", {"map_name": "8x8"}),
        ("CliffWalking-v1", {}),
        ("CliffWalking-v1", {"is_slippery": True}),
    ],
)
def test_tables_of_toy_text_are_what_the_steps_do(name: str, options: dict[str, Any]) -> None:
    for render_mode in (None, "rgb_array", "human"):
        planners.as_model(gym.make(name, render_mode=render_mode, **options))


def test_a_fickle_passenger_is_not_in_the_table() -> None:
    env = gym.make("Taxi-v4", fickle_passenger=True, fickle_probability=1.0)
    for call in (planners.as_model, lambda env: planners.solve(env, gamma=0.9)):
        with pytest.raises(
            planners.NoModelError,
            match="the table P of Taxi-v4 is not what its steps do: its fickle passenger changes .*"
            r"give env\.unwrapped\.P",
        ):
            call(env)
    table = planners.as_model(env.unwrapped.P)  # type: ignore[attr-defined]
    assert table.num_states == 501


class Lake(FrozenLakeEnv):
    """A lake of which every kind of tale can be told."""

    def __init__(self, tale: str = "", *, success_rate: float = 1 / 3) -> None:
        super().__init__(success_rate=success_rate)
        self.tale = tale
        self.num_steps = 0
        self.lock: Any = None
        self.hidden = FrozenLakeEnv(success_rate=0.9).P

    def step(self, a: int) -> Any:
        self.num_steps += 1
        if self.tale == "other chances":
            shown, self.P = self.P, self.hidden
            try:
                return super().step(a)
            finally:
                self.P = shown
        state, reward, terminated, truncated, info = super().step(a)
        if self.tale == "a cost":
            reward -= 0.01
        elif self.tale == "a wind" and self.num_steps % 3 == 0:
            self.s = state = 0
        elif self.tale == "no end":
            terminated = False
        elif self.tale == "an end":
            terminated = self.num_steps % 20 == 0 or terminated
        elif self.tale == "global dice":
            np.random.random()  # noqa: NPY002
            random.random()
        elif self.tale == "single precision":
            reward = np.float32(reward) * np.float32(1 + 1e-7)
        elif self.tale == "a fault":
            raise RuntimeError("out of order")
        return state, reward, terminated, truncated, info

    def reset(self, **options: Any) -> Any:
        state, info = super().reset(**options)
        if self.tale == "another start":
            self.s = state = 4
        return state, info


@pytest.mark.parametrize(
    ("tale", "message"),
    [
        ("a cost", r"action \d in state \d+ leads to state \d+ for a reward of -0\.01, and P\["),
        ("a wind", r"leads to state 0 for a reward of 0, and P\["),
        ("no end", r"leads to state \d+ for a reward of \d, and P\["),
        ("an end", r"for a reward of 0 and ends the episode, and P\["),
        ("other chances", "outcomes happen far more or less often than their probabilities say"),
        ("another start", "it starts in state 4, where its initial_state_distrib has 0"),
    ],
)
def test_steps_that_a_table_denies(tale: str, message: str) -> None:
    for env in (Lake(tale), wrappers.TimeLimit(Renamed(Lake(tale)), 10)):
        with pytest.raises(planners.NoModelError, match=f"the table P of Lake is .*{message}"):
            planners.as_model(env)


@pytest.mark.parametrize("tale", ["", "global dice", "single precision", "a fault"])
def test_the_environment_stays_as_it_is(tale: str) -> None:
    env, twin = Lake(tale), Lake(tale)
    for lake in (env, twin):
        lake.reset(seed=5)
    table, dice = env.P, (np.random.get_state()[1].copy(), random.getstate())  # type: ignore[index,union-attr] # noqa: NPY002
    before = copy.deepcopy(vars(env) | {"_np_random": None})
    planners.as_model(env)
    after = vars(env) | {"_np_random": None}
    assert env.P is table
    for name, value in before.items():
        np.testing.assert_equal(after[name], value, err_msg=name)
    np.testing.assert_array_equal(np.random.get_state()[1], dice[0])  # type: ignore[index] # noqa: NPY002
    assert random.getstate() == dice[1]
    if tale != "a fault":
        steps = [[lake.step(a % 4)[:3] for a in range(5)] for lake in (env, twin)]
        assert steps[0] == steps[1]


def test_what_cannot_be_copied_is_taken_at_its_word() -> None:
    env = Lake("a cost")
    env.lock = threading.Lock()
    assert planners.as_model(env).num_states == 16


def test_an_environment_that_hides_its_state_is_taken_at_its_word() -> None:
    class Hidden(gym.Env[Any, Any]):
        P: ClassVar = ROWS

        def reset(self, **options: Any) -> Any:
            return np.zeros(2), {}

    assert planners.as_model(Hidden()).num_states == 2


@pytest.mark.parametrize("seed", range(30))
def test_random_tables_that_tell_the_truth_are_never_refused(seed: int) -> None:
    """Rows list outcomes twice, pay differently for the same state, and end anywhere."""
    rng = np.random.default_rng(seed)

    class Honest(gym.Env[Any, Any]):
        P: ClassVar = {
            s: {
                a: [
                    (float(p), int(t), float(rng.integers(2)), bool(rng.random() < 0.2))
                    for p, t in zip(rng.dirichlet(np.ones(4)), rng.integers(0, 5, 4), strict=True)
                ]
                for a in range(2)
            }
            for s in range(5)
        }

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            self.s = int(self.np_random.integers(5))
            return self.s, {}

        def step(self, action: int) -> Any:
            outcomes = self.P[self.s][action]
            place = self.np_random.choice(4, p=[p for p, *_ in outcomes])
            _, self.s, reward, terminated = outcomes[place]
            return self.s, reward, terminated, False, {}

    planners.as_model(Honest())


def test_whatever_has_a_transition_model() -> None:
    model = random_tabular(5, 6, 2)

    class Shop:
        held: Any = model

        def transition_model(self) -> Any:
            return self.held

    assert planners.as_model(Shop()) is model
    shop = Shop()
    shop.held = "no model"
    with pytest.raises(TypeError, match=r"transition_model\(\) of Shop must return .* got str"):
        planners.as_model(shop)
