"""The real environments seen in states of a model."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env, data_equivalence

import aggmaze
import planners
from aggmaze import Discretized

SMALL: dict[str, dict[str, Any]] = {
    "MountainCar-v0": {"bins": (12, 10)},
    "Acrobot-v1": {"bins": (4, 5, 5, 5), "limits": (5.0, 8.0)},
    "Pendulum-v1": {"bins": (9, 8), "num_torques": 5},
}
every_id = pytest.mark.parametrize("env_id", SMALL)


def small(env_id: str, **options: Any) -> Any:
    return Discretized(gym.make(env_id), **{**SMALL[env_id], **options})


@every_id
@pytest.mark.parametrize("method", ["average", "interpolate"])
def test_shows_the_state_of_the_real_thing(env_id: str, method: str) -> None:
    env, plain = small(env_id, method=method), gym.make(env_id)
    found = aggmaze.discretize(env_id, method=method, **SMALL[env_id])
    assert env.observation_space.n == found.model.num_states
    rng = np.random.default_rng(0)
    for seed in range(2):
        state, info = env.reset(seed=seed)
        shown, _ = plain.reset(seed=seed)
        for _ in range(150):
            assert type(state) is int
            assert state == info["state"] == found.state_of(shown)
            assert info["action_mask"].tolist() == [1] * env.action_space.n
            assert env.action_masks().tolist() == [True] * env.action_space.n
            action = int(rng.integers(env.action_space.n))
            state, reward, terminated, truncated, info = env.step(action)
            shown, *expected = plain.step(found.action_of(action))
            assert [reward, terminated, truncated] == expected[:3]
            assert type(reward) is float
            if terminated or truncated:
                break


def test_having_ended_is_the_last_state() -> None:
    env = small("MountainCar-v0")
    env.reset(seed=0)
    env.unwrapped.state = np.array([0.45, 0.07])
    state, _, terminated, _, info = env.step(2)
    assert terminated
    assert state == info["state"] == env.cells.end == env.observation_space.n - 1


@every_id
def test_gymnasium_finds_nothing_wrong(env_id: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*different from the unwrapped version.*")
        env = Discretized(gym.make(env_id).unwrapped, **SMALL[env_id])
        check_env(env, skip_render_check=True)


@every_id
def test_spec_and_copies(env_id: str) -> None:
    env = small(env_id)
    again: Any = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(again, Discretized)
    assert again.cells == env.cells
    assert again.transition_model() is env.transition_model()
    env.reset(seed=4)
    twin = pickle.loads(pickle.dumps(env))
    for action in (0, 1, 2, 0):
        assert data_equivalence(twin.step(action), env.step(action), exact=True)


def test_planners_find_its_model_and_expect_no_promise_kept() -> None:
    env = wrappers.RecordEpisodeStatistics(small("Pendulum-v1"))
    assert planners.as_model(env) is env.get_wrapper_attr("transition_model")()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        walked = planners.rollout(env, planners.solve(env, gamma=0.9), episodes=3, seed=0)
    assert walked.promised is not None


@every_id
@pytest.mark.parametrize(
    ("action", "error"), [(7, ValueError), (-1, ValueError), (1.0, TypeError), (None, TypeError)]
)
def test_other_actions_are_refused(env_id: str, action: Any, error: type[Exception]) -> None:
    env = small(env_id)
    env.reset(seed=0)
    with pytest.raises(error, match=r"action must be .*\[0, [35]\), got "):
        env.step(action)
    env.step(np.array(1))


def test_changes_inside_are_refused() -> None:
    bare = gym.make("MountainCar-v0")
    for wrapped in (
        wrappers.TransformReward(bare, lambda reward: 2 * reward),
        wrappers.StickyAction(bare, 0.5),
        wrappers.FlattenObservation(bare),
    ):
        with pytest.raises(ValueError, match=f"{type(wrapped).__name__} inside changes"):
            Discretized(wrapped)
    with pytest.raises(ValueError, match="observations must be those of MountainCarEnv"):
        Discretized(wrappers.FrameStackObservation(bare, 2))
    with pytest.raises(TypeError, match=r"CartPole in cells is aggmaze\.Disc"):
        Discretized(gym.make("CartPole-v1"))
    found = aggmaze.discretize("MountainCar-v0", bins=(5, 5), method="average")
    assert Discretized(bare, found).transition_model() is found.model
    with pytest.raises(TypeError, match="bins: the discretization says so itself"):
        Discretized(bare, found, bins=(5, 5))


def test_faults_are_told_where_the_model_is_asked_for() -> None:
    env = small("Pendulum-v1", bins=(2, 8), method="average", sub_points=1)
    with pytest.warns(UserWarning, match="never changes cell along angle, where Pendulum") as all_:
        env.transition_model()
    assert [each.filename for each in all_] == [__file__]


class TestByDefault:
    """What the policies of the default models get on Gymnasium's own, 100 episodes each."""

    def test_mountain_car_is_solved(self) -> None:
        env = Discretized(gym.make("MountainCar-v0"))
        for gamma in (1, 0.99):
            walked = planners.rollout(env, planners.solve(env, gamma=gamma), episodes=100, seed=0)
            assert walked.successes.all()
            assert walked.returns.mean() > -100
            assert walked.returns.min() >= -110

    def test_pendulum_is_held_up(self) -> None:
        env = Discretized(gym.make("Pendulum-v1"))
        result = planners.solve(env, gamma=0.99)
        walked = planners.rollout(env, result, episodes=100, seed=0)
        assert walked.returns.mean() > -160
        # Upright and still at the end of each.
        pendulum: Any = env.unwrapped
        for seed in range(5):
            state, _ = env.reset(seed=seed)
            truncated = False
            while not truncated:
                state, _, _, truncated, _ = env.step(int(result.policy[state]))
            angle, speed = pendulum.state
            assert np.cos(angle) > 0.99
            assert abs(speed) < 0.5

    def test_acrobot_swings_up(self) -> None:
        env = Discretized(gym.make("Acrobot-v1"))
        walked = planners.rollout(env, planners.solve(env, gamma=0.99), episodes=100, seed=0)
        assert walked.successes.all()
        assert walked.returns.mean() > -90
