"""Policies walked through environments."""

from __future__ import annotations

import itertools
import math
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import wrappers
from numpy.typing import NDArray

import aggmaze
import planners
from aggmaze import TabularEnv, TabularMDP
from planners.budget import Clock, OutOfTimeError
from tests.planners.reference import dense, random_moves, random_tabular, value_of

assert aggmaze.ENV_IDS  # registers the mazes

GAMMA = 0.9


def maze(**options: Any) -> gym.Env[Any, Any]:
    return gym.make("StandardMaze-v0", **{"shape": (5, 5), "p": 0.8} | options)


def model_of(env: gym.Env[Any, Any]) -> Any:
    return env.unwrapped.transition_model()  # type: ignore[attr-defined]


ENV = maze()
RESULT = planners.solve(ENV, gamma=GAMMA)


def same(first: planners.Rollouts, second: planners.Rollouts) -> bool:
    return (
        np.array_equal(first.returns, second.returns)
        and np.array_equal(first.lengths, second.lengths)
        and np.array_equal(first.successes, second.successes)
    )


class Coordinates(gym.ObservationWrapper[Any, Any, Any]):
    """Observations from which the state can't be told."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def observation(self, observation: Any) -> NDArray[np.float32]:
        return np.zeros(2, dtype=np.float32)


class Predictor:
    """As Stable-Baselines3 predicts: a 0-d array for one observation, and a state."""

    def __init__(self, policy: NDArray[np.int64]) -> None:
        self.policy = policy

    def predict(
        self,
        observation: Any,
        state: tuple[Any, ...] | None = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[np.int64], tuple[Any, ...] | None]:
        assert deterministic
        return np.array(self.policy[int(observation)]), None


# ---------------------------------------------------------------------------------------------
# Kinds of policies.


def test_every_kind_of_policy_walks_the_same_way() -> None:
    expected = planners.rollout(ENV, RESULT, episodes=20, seed=3)
    table = RESULT.policy
    for policy in (
        table,
        table.tolist(),
        tuple(table.tolist()),
        table.astype(np.int8),
        np.eye(4)[table],
        lambda observation: int(table[observation]),
        lambda observation: table[observation],
        Predictor(table),
    ):
        assert same(planners.rollout(ENV, policy, episodes=20, seed=3), expected)


@pytest.mark.parametrize(
    "wrap", [wrappers.FlattenObservation, Coordinates, lambda env: Coordinates(Coordinates(env))]
)
def test_observation_wrappers_do_no_harm(wrap: Any) -> None:
    for policy in (RESULT, RESULT.policy, np.eye(4)[RESULT.policy]):
        expected = planners.rollout(ENV, policy, episodes=10, gamma=GAMMA)
        wrapped = planners.rollout(wrap(maze()), policy, episodes=10, gamma=GAMMA)
        assert same(wrapped, expected)
        assert wrapped.promised == expected.promised


def test_callables_see_what_the_wrapper_shows() -> None:
    seen = []

    def policy(observation: Any) -> int:
        seen.append(observation)
        return 0

    planners.rollout(wrappers.FlattenObservation(maze()), policy, episodes=1, max_steps=3)
    assert [observation.shape for observation in seen] == [(25,)] * 3


def test_the_observation_is_the_state_where_info_has_none() -> None:
    env = gym.make("FrozenLake-v1", is_slippery=False)
    result = planners.solve(env, gamma=0.9)
    for policy in (result, result.policy, np.eye(4)[result.policy]):
        found = planners.rollout(env, policy, episodes=3, gamma=0.9)
        assert found.returns.tolist() == [1.0] * 3
        assert found.lengths.tolist() == [6] * 3
        np.testing.assert_allclose(found.discounted_returns, 0.9**5)
        assert found.promised == pytest.approx(0.9**5)


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"])
def test_predictors_walk_through_gymnasiums_own_environments(name: str) -> None:
    env = gym.make(name)
    result = planners.solve(env, gamma=0.9)
    expected = planners.rollout(env, result, episodes=3, seed=1)
    found = planners.rollout(env, Predictor(result.policy), episodes=3, seed=1)
    assert same(found, expected)


def test_stochastic_policies_draw_their_actions() -> None:
    model = random_moves(0, 12, 3, p=1.0)
    tables = dense(model)
    weights = np.where(tables.mask, [0.2, 0.3, 0.5], 0.0)
    weights[tables.terminal] = [1.0, 0.0, 0.0]
    weights /= weights.sum(axis=1, keepdims=True)
    chosen: list[tuple[int, int]] = []

    class Spy(TabularEnv):
        def step(self, action: Any) -> Any:
            chosen.append((self._state, int(action)))
            return super().step(action)

    planners.rollout(Spy(model), weights, episodes=400, seed=0, max_steps=50)
    counts = np.zeros(weights.shape)
    for s, a in chosen:
        counts[s, a] += 1
    assert not counts[weights == 0].any()
    visits = counts.sum(axis=1)
    often = visits > 300
    assert np.count_nonzero(often) >= 5
    share = counts[often] / visits[often, np.newaxis]
    deviation = np.sqrt(weights * (1 - weights))[often] / np.sqrt(visits[often])[:, np.newaxis]
    assert (np.abs(share - weights[often]) <= 4.5 * deviation + 1e-12).all()


# ---------------------------------------------------------------------------------------------
# What comes back.


def test_a_walk_by_hand() -> None:
    env = maze(p=1.0, step_cost=2.0, goal_reward=5.0)
    result = planners.solve(env, gamma=0.5)
    found = planners.rollout(env, result, episodes=4)
    steps = found.lengths[0]
    assert found.lengths.tolist() == [steps] * 4
    assert found.successes.all()
    assert found.returns.tolist() == [-2.0 * (steps - 1) + 5.0] * 4
    expected = sum(-2.0 * 0.5**i for i in range(steps - 1)) + 5.0 * 0.5 ** (steps - 1)
    assert found.discounted_returns is not None
    np.testing.assert_allclose(found.discounted_returns, expected, rtol=1e-14)
    assert found.promised == pytest.approx(expected, rel=1e-12)
    for array, kind in ((found.returns, "f"), (found.lengths, "i"), (found.successes, "b")):
        assert array.shape == (4,)
        assert array.dtype.kind == kind


@pytest.mark.parametrize("start", ["corner", "uniform"])
@pytest.mark.parametrize("kind", ["deterministic", "stochastic"])
def test_promised_is_kept(start: str, kind: str) -> None:
    env = maze(start=start)
    model = model_of(env)
    tables = dense(model)
    policy = RESULT.policy
    if kind == "stochastic":
        policy = np.where(tables.mask, 1.0, 0.0)
        policy += 4 * np.eye(4)[RESULT.policy]
        policy /= policy.sum(axis=1, keepdims=True)
    found = planners.rollout(env, policy, episodes=3000, seed=0, gamma=GAMMA)
    V = value_of(tables, policy, GAMMA)
    assert found.promised == pytest.approx(-float(model.initial @ V), abs=1e-11)
    assert found.discounted_returns is not None
    error = found.discounted_returns.std(ddof=1) / math.sqrt(3000)
    assert error > 0
    # What a thousand steps cut off is beyond the rounding.
    assert abs(found.discounted_returns.mean() - found.promised) <= 4 * error


def test_promised_is_kept_where_outcomes_cost_differently() -> None:
    env = gym.make("FrozenLake-v1")
    result = planners.solve(env, gamma=GAMMA)
    found = planners.rollout(env, result, episodes=4000)
    error = found.discounted_returns.std(ddof=1) / math.sqrt(4000)  # type: ignore[union-attr]
    assert found.promised == pytest.approx(-result.values[0], abs=result.policy_bound)
    assert abs(found.discounted_returns.mean() - found.promised) <= 4 * error  # type: ignore[union-attr,operator]


def test_what_is_not_known_is_none() -> None:
    found = planners.rollout(ENV, RESULT.policy, episodes=2)
    assert found.discounted_returns is None
    assert found.promised is None
    found = planners.rollout(ENV, lambda s: 0, episodes=2, gamma=0.5)
    assert found.discounted_returns is not None
    assert found.promised is None
    # Under a wrapper that changes rewards the model says nothing of them.
    scaled = wrappers.TransformReward(maze(), lambda reward: 2 * reward)
    found = planners.rollout(scaled, RESULT, episodes=2)
    assert found.discounted_returns is not None
    assert found.promised is None
    cartpole = planners.rollout(gym.make("CartPole-v1"), lambda o: int(o[2] > 0), gamma=0.9)
    assert cartpole.promised is None
    assert (cartpole.returns == cartpole.lengths).all()


def test_a_result_brings_its_discount_and_the_caller_may_take_another() -> None:
    own = planners.rollout(ENV, RESULT, episodes=5)
    other = planners.rollout(ENV, RESULT, episodes=5, gamma=0.0)
    assert same(own, other)
    assert own.promised == pytest.approx(-RESULT.values[-1], abs=2 * RESULT.policy_bound)
    tables = dense(model_of(ENV))
    first_cost = tables.costs[24, RESULT.policy[24]]
    assert other.promised == pytest.approx(-first_cost)
    np.testing.assert_array_equal(other.discounted_returns, [-1.0] * 5)


def test_max_steps() -> None:
    for limit in (1, 7):
        found = planners.rollout(ENV, RESULT, episodes=3, max_steps=limit)
        assert found.lengths.tolist() == [limit] * 3
        assert not found.successes.any()
        assert found.returns.tolist() == [-float(limit)] * 3
    # Against a wall for ever: the registered limit, the given one, or a thousand steps.
    wall = np.flatnonzero(~model_of(ENV).action_mask[24])[0]
    stay = np.full(25, wall)
    assert planners.rollout(ENV, stay, episodes=1).lengths[0] == 1000
    short = maze(max_episode_steps=12)
    found = planners.rollout(short, lambda s: wall, episodes=2)
    assert found.lengths.tolist() == [12, 12]
    assert not found.successes.any()
    assert planners.rollout(short, lambda s: wall, episodes=1, max_steps=50).lengths[0] == 12
    bare = planners.rollout(short.unwrapped, lambda s: wall, episodes=1, max_steps=50)
    assert bare.lengths[0] == 50
    model = random_tabular(1, 5, 2, terminals=0)
    assert planners.rollout(TabularEnv(model), lambda s: 0, episodes=1).lengths[0] == 1000


def test_an_episode_ends_when_it_ends() -> None:
    found = planners.rollout(ENV, RESULT, episodes=50)
    assert found.successes.all()
    assert (found.lengths < 1000).all()
    assert len(set(found.lengths.tolist())) > 1


def test_one_seed_one_walk() -> None:
    weights = np.where(dense(model_of(ENV)).mask, 1.0, 0.0)
    weights[0, 0] = 1.0
    weights /= weights.sum(axis=1, keepdims=True)
    for policy in (RESULT, weights):
        first = planners.rollout(ENV, policy, episodes=20, seed=5)
        planners.rollout(ENV, policy, episodes=3, seed=9)
        assert same(planners.rollout(ENV, policy, episodes=20, seed=5), first)
        assert same(planners.rollout(maze(), policy, episodes=20, seed=5), first)
        assert not same(planners.rollout(ENV, policy, episodes=20, seed=6), first)
        # More episodes begin with the same ones.
        longer = planners.rollout(ENV, policy, episodes=30, seed=5)
        np.testing.assert_array_equal(longer.returns[:20], first.returns)


# ---------------------------------------------------------------------------------------------
# Errors.


@pytest.mark.parametrize("name", ["episodes", "max_steps"])
def test_counts(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        planners.rollout(ENV, RESULT, **{name: 0})
    with pytest.raises(TypeError, match=f"{name} must be an integer"):
        planners.rollout(ENV, RESULT, **{name: 2.5})


@pytest.mark.parametrize("gamma", [1.5, -0.5, math.nan])
def test_gamma(gamma: float) -> None:
    with pytest.raises(ValueError, match="gamma must be in"):
        planners.rollout(ENV, RESULT, gamma=gamma)


@pytest.mark.parametrize("policy", [None, 3, "left", {0: 1}, object()])
def test_what_is_no_policy(policy: object) -> None:
    with pytest.raises(TypeError, match="policy must be a SolveResult, an array, a callable"):
        planners.rollout(ENV, policy)


@pytest.mark.parametrize(
    "policy", [np.zeros(25), np.zeros((25, 4, 1)), np.array(0), np.full(25, "left")]
)
def test_tables_that_are_none(policy: NDArray[Any]) -> None:
    with pytest.raises(ValueError, match="policy"):
        planners.rollout(ENV, policy)


@pytest.mark.parametrize("gamma", [None, 0.9])
def test_tables_of_another_size(gamma: float | None) -> None:
    for size in (24, 4):
        with pytest.raises(ValueError, match=f"policy.*{size}"):
            planners.rollout(ENV, np.zeros(size, dtype=int), gamma=gamma)


def test_tables_with_actions_there_are_not() -> None:
    with pytest.raises(ValueError, match="is not an action"):
        planners.rollout(ENV, np.full(25, 4), gamma=0.9)
    with pytest.raises(ValueError, match=r"must be in \[0, 4\)"):
        planners.rollout(ENV.unwrapped, np.full(25, 4))


def test_tables_need_the_state() -> None:
    with pytest.raises(ValueError, match="a policy table needs the state"):
        planners.rollout(gym.make("CartPole-v1"), np.zeros(10, dtype=int))
    hidden = wrappers.FlattenObservation(gym.make("FrozenLake-v1"))
    with pytest.raises(ValueError, match="a policy table needs the state"):
        planners.rollout(hidden, np.zeros(16, dtype=int))


# ---------------------------------------------------------------------------------------------
# Models in the place of environments.


def test_a_model_is_walked_through() -> None:
    model = model_of(ENV)
    for source in (model, model.to_tabular()):
        result = planners.solve(source, gamma=GAMMA)
        expected = planners.rollout(TabularEnv(source), result, episodes=20, seed=3)
        found = planners.rollout(source, result, episodes=20, seed=3)
        assert same(found, expected)
        assert found.promised == expected.promised
        assert not found.broken


def test_anything_with_a_model_is_walked_through() -> None:
    P = {0: {0: [(1.0, 1, 3.0, False)]}, 1: {0: [(1.0, 1, 2.0, True)]}}
    found = planners.rollout(P, [0, 0], episodes=2, gamma=0.5)
    # From state 0 or 1, uniformly: 3 + .5 * 2 or 2.
    assert set(found.returns) <= {2.0, 5.0}
    assert found.promised == pytest.approx((4.0 + 2.0) / 2)
    matrices = np.array([np.eye(2)]), np.zeros((2, 1))
    assert planners.rollout(matrices, lambda state: 0, episodes=1).returns.tolist() == [0.0]
    with pytest.raises(TypeError, match="expected a TabularMDP"):
        planners.rollout("StandardMaze-v0", RESULT)
    with pytest.raises(TypeError, match="rollout takes a single environment, got Tab"):
        planners.rollout(gym.make_vec("StandardMaze-v0", num_envs=2), RESULT)


# ---------------------------------------------------------------------------------------------
# Promises.


def test_an_invalid_model_is_an_error() -> None:
    class Wrong(gym.Env[Any, Any]):
        def transition_model(self) -> TabularMDP:
            return TabularMDP(np.full((2, 2), 0.4), [[1.0], [1.0]])

    class Odd(gym.Env[Any, Any]):
        def transition_model(self) -> None:
            return None

    class Table(gym.Env[Any, Any]):
        P: ClassVar = {0: {0: [(0.5, 0, 0.0, False)]}}

    for env, error, message in (
        (Wrong(), ValueError, r"state 0, action 0: probabilities sum to 0\.8"),
        (Odd(), TypeError, "must return a TabularMDP or a MoveMDP"),
        (Table(), ValueError, r"probabilities sum to 0\.5"),
    ):
        with pytest.raises(error, match=message):
            planners.rollout(env, [0, 0], gamma=0.9)


def taxi(**options: Any) -> tuple[gym.Env[Any, Any], planners.SolveResult]:
    env = gym.make("Taxi-v4", **options)
    return env, planners.solve(env.unwrapped.P, gamma=0.9)  # type: ignore[attr-defined]


def test_a_fickle_passenger_has_no_model() -> None:
    env, result = taxi(fickle_passenger=True, fickle_probability=1.0)
    found = planners.rollout(env, result, episodes=5)
    assert found.promised is None
    assert not found.broken


def test_a_fickle_passenger_breaks_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps alone tell, where the table was not refused."""
    monkeypatch.setattr("aggmaze.env_model.contradiction", lambda env: "")
    env, result = taxi(fickle_passenger=True, fickle_probability=1.0)
    with pytest.warns(UserWarning, match="Taxi-v4 breaks the promise of its model: .* steps pay"):
        found = planners.rollout(env, result, episodes=1000)
    assert found.promised is not None
    assert found.discounted_returns is not None
    assert "its steps pay" in found.broken
    assert "more an episode than expected" in found.broken
    assert "not kept" in repr(found)
    error = found.discounted_returns.std() / math.sqrt(1000)
    assert found.discounted_returns.mean() > found.promised + 10 * error
    kept, result = taxi()
    assert not planners.rollout(kept, result, episodes=1000).broken


class Biased(TabularEnv):
    """Pays a little more than its model says."""

    bonus = 0.0

    def step(self, action: Any) -> Any:
        state, reward, *rest = super().step(action)
        return state, reward + self.bonus, *rest


def chain_env(outcomes: list[tuple[float, int, float]], bonus: float = 0.0) -> Biased:
    """One state with some outcomes, and the end."""
    model = TabularMDP.from_function(2, 1, lambda s, a: None if s == 1 else outcomes)
    env = Biased(model)
    env.bonus = bonus
    return env


def test_without_chance_any_difference_tells() -> None:
    sure = [(1.0, 1, 2.0)]
    for episodes in (1, 2, 50):
        assert not planners.rollout(chain_env(sure), [0, 0], gamma=0.9, episodes=episodes).broken
        with pytest.warns(UserWarning, match="Biased breaks the promise of its model: -2 is pro"):
            found = planners.rollout(chain_env(sure, -0.01), [0, 0], gamma=0.9, episodes=episodes)
        assert "0.01 less an episode" in found.broken
    # Single precision is no breach.
    assert not planners.rollout(chain_env(sure, 1e-7), [0, 0], gamma=0.9).broken


def test_rewards_that_are_no_numbers_break_a_promise() -> None:
    with pytest.warns(UserWarning, match="breaks the promise"):
        planners.rollout(chain_env([(1.0, 1, 2.0)], math.nan), [0, 0], gamma=0.9)


def test_small_differences_need_many_episodes() -> None:
    coin = [(0.5, 1, 0.0), (0.5, 1, 2.0)]
    assert not planners.rollout(chain_env(coin, 0.5), [0, 0], gamma=0.9, episodes=10).broken
    with pytest.warns(UserWarning, match="its steps pay .* more an episode"):
        planners.rollout(chain_env(coin, 0.5), [0, 0], gamma=0.9, episodes=1000)


@pytest.mark.parametrize("rare", [1e-3, 1e-5])
def test_rare_prizes_break_no_promise(rare: float) -> None:
    """Most runs see none, or by luck one too many: neither is a breach."""
    env = chain_env([(1.0 - rare, 1, 0.0), (rare, 1, -1.0 / rare)])
    for seed in range(200):
        found = planners.rollout(env, [0, 0], gamma=0.9, episodes=20, seed=seed)
        assert found.promised == pytest.approx(1.0)
        assert not found.broken


def test_promises_are_hardly_ever_called_broken() -> None:
    for seed in range(150):
        model = random_tabular(seed, 6, 2, terminals=seed % 2)
        weights = np.where(model.action_mask, 1.0, 0.0)
        weights /= weights.sum(axis=1, keepdims=True)
        for max_steps in (1, 5, 40):
            found = planners.rollout(model, weights, gamma=0.95, episodes=30, max_steps=max_steps)
            assert not found.broken


def test_limits_of_steps_break_no_promise() -> None:
    env = maze(p=1.0, step_cost=1.0)
    result = planners.solve(env, gamma=0.99)
    found = planners.rollout(env, result, episodes=50, max_steps=2)
    assert found.promised != pytest.approx(-1.99, abs=0.5)
    assert found.returns.tolist() == [-2.0] * 50
    assert not found.broken


def test_starts_elsewhere_break_a_promise() -> None:
    class Elsewhere(TabularEnv):
        def reset(self, **options: Any) -> Any:
            return super().reset(seed=options["seed"], options={"state": 1})

    model = TabularMDP.from_function(
        4, 1, lambda s, a: [(1.0, s + 1, 1.0)] if s < 3 else None, initial=[1.0, 0, 0, 0]
    )
    assert not planners.rollout(model, [0] * 4, gamma=0.5).broken
    with pytest.warns(UserWarning, match=r"-1\.75 is promised, and its starts pay 0\.25 more"):
        planners.rollout(Elsewhere(model), [0] * 4, gamma=0.5, episodes=3)


def test_a_model_that_changes_breaks_a_promise() -> None:
    env = aggmaze.wrappers.NewMazeEachEpisode(maze())
    env.reset(seed=1)
    result = planners.solve(env, gamma=GAMMA)
    with pytest.warns(UserWarning, match="StandardMaze-v0 breaks the promise of its model"):
        planners.rollout(env, result, episodes=100)


def test_states_beyond_the_model_break_a_promise() -> None:
    class Beyond(TabularEnv):
        def step(self, action: Any) -> Any:
            _, reward, _, truncated, info = super().step(action)
            return 7, reward, False, truncated, {**info, "state": 7}

    model = TabularMDP.from_function(2, 1, lambda s, a: [(1.0, 1 - s, 1.0)])
    with pytest.warns(UserWarning, match="state 7 is none of the 2 of the model"):
        planners.rollout(Beyond(model), [0, 0], gamma=0.5, episodes=1, max_steps=1)


# ---------------------------------------------------------------------------------------------
# Progress, limits, and a word on it.


def test_a_callback_sees_each_episode_and_may_stop() -> None:
    seen: list[planners.RolloutProgress] = []
    whole = planners.rollout(ENV, RESULT, episodes=5, callback=seen.append)
    assert [(told.episodes, told.num_episodes) for told in seen] == [(i, 5) for i in range(1, 6)]
    assert [told.steps for told in seen] == np.cumsum(whole.lengths).tolist()
    assert all(one.seconds <= other.seconds for one, other in itertools.pairwise(seen))
    stopped = planners.rollout(ENV, RESULT, episodes=5, callback=lambda told: told.episodes == 3)
    np.testing.assert_array_equal(stopped.returns, whole.returns[:3])
    for array in (stopped.lengths, stopped.successes, stopped.discounted_returns):
        assert array is not None
        assert len(array) == 3


def test_a_callback_sees_long_episodes_too() -> None:
    model = random_tabular(1, 5, 2, terminals=0)
    seen: list[planners.RolloutProgress] = []

    def look(told: planners.RolloutProgress) -> bool:
        seen.append(told)
        return told.steps >= 6000

    found = planners.rollout(model, lambda s: 0, episodes=3, max_steps=2500, callback=look)
    assert [told.steps for told in seen] == [1000, 2000, 2500, 3500, 4500, 5000, 6000]
    assert [told.episodes for told in seen] == [0, 0, 1, 1, 1, 2, 2]
    assert found.lengths.tolist() == [2500, 2500]


def test_time_is_limited() -> None:
    model = random_tabular(1, 5, 2, terminals=0)
    policy = np.argmax(model.action_mask, axis=1)
    found = planners.rollout(model, policy, gamma=0.9, max_steps=10**9, time_limit=0.05)
    assert found.returns.shape == (0,)
    assert found.promised is not None
    assert not found.broken
    assert repr(found) == f"Rollouts(0 episodes, {found.promised:.6g} promised)"
    for limit in (0, -1.0, math.nan, "1"):
        with pytest.raises(ValueError, match="time_limit must be a positive number of seconds"):
            planners.rollout(model, policy, time_limit=limit)  # type: ignore[arg-type]


def test_ctrl_c_is_raised() -> None:
    def press(told: planners.RolloutProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        planners.rollout(ENV, RESULT, callback=press)


def test_a_short_repr() -> None:
    env = chain_env([(1.0, 1, 2.0)])
    assert repr(planners.rollout(env, [0, 0], gamma=0.5, episodes=3)) == (
        "Rollouts(3 episodes, mean return -2, mean length 1.0, 100 % terminated, mean discounted "
        "return -2, -2 promised)"
    )
    assert repr(planners.rollout(env, lambda s: 0, episodes=1)) == (
        "Rollouts(1 episode, mean return -2, mean length 1.0, 100 % terminated)"
    )


def test_the_time_may_be_up_before_the_first_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    result = planners.solve(ENV, objective=planners.FiniteHorizon(5))

    def out_of_time(clock: Clock) -> None:
        raise OutOfTimeError

    monkeypatch.setattr(Clock, "check", out_of_time)
    found = planners.rollout(ENV, result, time_limit=1.0)
    assert (len(found.returns), len(found.lengths), len(found.successes)) == (0, 0, 0)
    assert found.promised is None
