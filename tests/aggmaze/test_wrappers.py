"""Wrappers: observations, regret, new mazes; one environment and many."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

import aggmaze
import planners
from aggmaze import wrappers
from aggmaze.rendering.colors import BACKGROUND
from aggmaze.rendering.raster import Raster
from aggmaze.wrappers import (
    CoordinateObservation,
    ImageObservation,
    LocalViewObservation,
    NewMazeEachEpisode,
    OneHotObservation,
    RegretWrapper,
    vector,
)

MAZES = aggmaze.ENV_IDS[:3]
PLANE = MAZES[:2]
# Wrapper, its arguments, ids that it is for.
OBSERVATIONS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("CoordinateObservation", {}, aggmaze.ENV_IDS),
    ("CoordinateObservation", {"normalized": False}, aggmaze.ENV_IDS),
    ("OneHotObservation", {}, aggmaze.ENV_IDS),
    ("ImageObservation", {}, MAZES),
    ("ImageObservation", {"size": 36}, MAZES),
    ("LocalViewObservation", {}, PLANE),
    ("LocalViewObservation", {"radius": 1}, PLANE),
]
CASES = [(name, kwargs, env_id) for name, kwargs, ids in OBSERVATIONS for env_id in ids]
observed = pytest.mark.parametrize(
    ("name", "kwargs", "env_id"),
    CASES,
    ids=["-".join([name, *map(str, kwargs.values()), env_id]) for name, kwargs, env_id in CASES],
)


def make(env_id: str, **options: Any) -> Any:
    if env_id in PLANE:
        options.setdefault("shape", (4, 3))
    return gym.make(env_id, **options)


def wrap(name: str, env: Any, **kwargs: Any) -> Any:
    module = vector if isinstance(env, gym.vector.VectorEnv) else wrappers
    return getattr(module, name)(env, **kwargs)


def equal(first: Any, second: Any) -> bool:
    return first.dtype == second.dtype and np.array_equal(first, second)


# The checker prefers environments without wrappers, and says so of any.
wrapped = pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")


class TestObservations:
    @wrapped
    @observed
    def test_check_env(self, name: str, kwargs: dict[str, Any], env_id: str) -> None:
        env = wrap(name, make(env_id), **kwargs)
        check_env(env, skip_render_check=True)

    @observed
    def test_they_follow_the_state(self, name: str, kwargs: dict[str, Any], env_id: str) -> None:
        env = wrap(name, make(env_id, p=0.7) if env_id in MAZES else make(env_id), **kwargs)
        plain = make(env_id, p=0.7) if env_id in MAZES else make(env_id)
        observation, info = env.reset(seed=3)
        state, told = plain.reset(seed=3)
        seen = {state: observation}
        rng = np.random.default_rng(0)
        for _ in range(60):
            assert data_equivalence(info, told)
            assert observation in env.observation_space
            assert equal(seen.setdefault(state, observation), observation)
            action = int(rng.integers(plain.action_space.n))
            observation, *rest, info = env.step(action)
            state, *others, told = plain.step(action)
            assert rest == others
            if rest[1]:
                observation, info = env.reset()
                state, told = plain.reset()
        if name != "LocalViewObservation":
            kinds = {value.tobytes() for value in seen.values()}
            assert len(kinds) == len(seen), "states can be told apart"

    @observed
    def test_seed_and_options_pass_through(
        self, name: str, kwargs: dict[str, Any], env_id: str
    ) -> None:
        env = wrap(name, make(env_id), **kwargs)
        _, info = env.reset(seed=1, options={"state": 5})
        assert info["state"] == 5
        with pytest.raises(ValueError, match="unknown reset option 'nothing'"):
            env.reset(options={"nothing": 1})

    @observed
    def test_the_model_and_the_masks_can_be_reached(
        self, name: str, kwargs: dict[str, Any], env_id: str
    ) -> None:
        env = wrap(name, make(env_id), **kwargs)
        _, info = env.reset(seed=0)
        assert planners.as_model(env) is env.unwrapped.transition_model()
        masks = env.get_wrapper_attr("action_masks")()
        assert masks.tolist() == info["action_mask"].astype(bool).tolist()

    @observed
    def test_copies_and_specs(self, name: str, kwargs: dict[str, Any], env_id: str) -> None:
        env = wrap(name, make(env_id), **kwargs)
        observation, _ = env.reset(seed=0)
        for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env)), gym.make(env.spec)):
            assert twin.observation_space == env.observation_space
            assert equal(twin.reset(seed=0)[0], observation)
        assert json.loads(env.spec.to_json())["additional_wrappers"][0]["name"] == name

    @observed
    def test_many_as_one(self, name: str, kwargs: dict[str, Any], env_id: str) -> None:
        shape = {"shape": (4, 3)} if env_id in PLANE else {}
        single = wrap(name, make(env_id), **kwargs)
        for mode in AutoresetMode:
            envs = gym.make_vec(env_id, 5, autoreset_mode=mode.value, max_episode_steps=3, **shape)
            envs = wrap(name, envs, **kwargs)
            assert envs.single_observation_space == single.observation_space
            observations, infos = envs.reset(seed=0)
            rng = np.random.default_rng(0)
            ended = np.zeros(5, bool)
            for _ in range(8):
                assert observations in envs.observation_space
                expected = np.stack([single.observation(int(s)) for s in infos["state"]])
                assert equal(observations, expected)
                if mode is AutoresetMode.DISABLED and ended.any():
                    observations, infos = envs.reset(options={"reset_mask": ended.copy()})
                    ended[:] = False
                    infos["state"] = envs.unwrapped._states.copy()
                    continue
                actions = rng.integers(envs.single_action_space.n, size=5)
                observations, _, terminated, truncated, infos = envs.step(actions)
                ended = terminated | truncated
                if "final_obs" in infos:
                    for copy_ in range(5):
                        last = infos["final_obs"][copy_]
                        assert (last is not None) == infos["_final_obs"][copy_] == ended[copy_]
                        if ended[copy_]:
                            state = infos["final_info"]["state"][copy_]
                            assert equal(last, single.observation(int(state)))
            envs.close()

    @observed
    def test_observations_belong_to_the_caller(
        self, name: str, kwargs: dict[str, Any], env_id: str
    ) -> None:
        env = wrap(name, make(env_id), **kwargs)
        for _ in range(3):  # a first look and later ones
            for state in range(12):
                kept = env.observation(state)
                before = kept.copy()
                other = env.observation(state)
                assert equal(other, before)
                other[...] = 1 - other
                assert equal(kept, before), "no two share memory"
                assert equal(env.observation(state), before), "and none is handed out again"

    @pytest.mark.parametrize("name", ["ImageObservation", "LocalViewObservation"])
    @pytest.mark.parametrize("outside", [False, True])
    def test_they_follow_new_mazes(self, name: str, outside: bool) -> None:
        maze = gym.make("TerrainMaze-v0", shape=(4, 4))
        env: Any
        env = (
            NewMazeEachEpisode(wrap(name, maze))
            if outside
            else wrap(name, NewMazeEachEpisode(maze))
        )
        seen = set()
        for episode in range(4):
            observation, info = env.reset(seed=None if episode else 0)
            fixed = gym.make("TerrainMaze-v0", shape=(4, 4), layout_seed=info["layout_seed"])
            expected = wrap(name, fixed)
            assert equal(observation, expected.observation(info["state"]))
            for action in (0, 2, 0, 1, 0):  # comes back to where it was
                observation, *_, info = env.step(action)
                assert equal(observation, expected.observation(info["state"]))
            seen.add(observation.tobytes())
        assert len(seen) == 4

    @observed
    def test_within_a_sync_vector(self, name: str, kwargs: dict[str, Any], env_id: str) -> None:
        envs = gym.make_vec(
            env_id,
            2,
            vectorization_mode="sync",
            wrappers=[lambda env: wrap(name, env, **kwargs)],
            **({"shape": (4, 3)} if env_id in PLANE else {}),
        )
        observations, infos = envs.reset(seed=0)
        single = wrap(name, make(env_id), **kwargs)
        expected = np.stack([single.observation(int(state)) for state in infos["state"]])
        np.testing.assert_array_equal(observations, expected)
        envs.close()

    @pytest.mark.parametrize(
        ("name", "env_id", "message"),
        [
            ("ImageObservation", "DiscretizedCartPole-v0", "is no maze"),
            ("LocalViewObservation", "DiscretizedCartPole-v0", "is no maze"),
            ("CoordinateObservation", "FrozenLake-v1", "has no grid"),
            ("OneHotObservation", "CartPole-v1", "observations that are states"),
            ("CoordinateObservation", "CartPole-v1", "observations that are states"),
        ],
    )
    def test_other_environments_are_refused(self, name: str, env_id: str, message: str) -> None:
        with pytest.raises(TypeError, match=message):
            wrap(name, gym.make(env_id))
        if env_id in aggmaze.ENV_IDS:
            with pytest.raises(TypeError, match=message):
                wrap(name, gym.make_vec(env_id, 2))

    @pytest.mark.parametrize("name", ["CoordinateObservation", "ImageObservation"])
    def test_other_vectors_are_refused(self, name: str) -> None:
        with pytest.raises(TypeError, match="SyncVectorEnv; wrap each of its environments"):
            wrap(name, gym.make_vec("StandardMaze-v0", 2, vectorization_mode="sync"))
        with pytest.raises(TypeError, match="expected a vector environment"):
            getattr(vector, name)(gym.make("StandardMaze-v0"))

    def test_one_over_another_is_refused(self) -> None:
        with pytest.raises(TypeError, match="observations that are states"):
            OneHotObservation(CoordinateObservation(make("StandardMaze-v0")))


class TestCoordinates:
    def test_normalized(self) -> None:
        env = CoordinateObservation(make("StandardMaze-v0", shape=(5, 3)))
        for state in range(15):
            x, y = divmod(state, 3)
            np.testing.assert_allclose(env.observation(state), [x / 2 - 1, y - 1], atol=1e-7)

    def test_an_axis_of_one_position(self) -> None:
        env = CoordinateObservation(make("StandardMaze-v0", shape=(5, 1)))
        assert env.observation(2).tolist() == [0.0, 0.0]

    def test_positions(self) -> None:
        env = CoordinateObservation(gym.make("NDMaze-v0", shape=(2, 3, 4)), normalized=False)
        assert env.observation_space.nvec.tolist() == [2, 3, 4]
        for state in range(24):
            assert env.observation(state).tolist() == list(np.unravel_index(state, (2, 3, 4)))

    def test_cells_of_cartpole(self) -> None:
        for env in (
            gym.make("DiscretizedCartPole-v0"),
            aggmaze.DiscretizedCartPole(gym.make("CartPole-v1")),
        ):
            seen = CoordinateObservation(env, normalized=False)
            assert seen.observation_space.nvec.tolist() == [8, 8, 12, 13]
            failed = 8 * 8 * 12 * 13
            assert seen.observation(failed).tolist() == [7, 7, 11, 12]
            observation, info = seen.reset(seed=0)
            assert np.ravel_multi_index(observation, (8, 8, 12, 13)) == info["state"]


class TestImages:
    @pytest.mark.parametrize("shape", [(1, 10), (10, 1), (2, 1), (6, 6), (50, 50), (60, 3)])
    def test_both_sides_are_large_enough(self, shape: tuple[int, int]) -> None:
        env = ImageObservation(gym.make("StandardMaze-v0", shape=shape))
        height, width, channels = env.observation_space.shape
        assert min(height, width) >= 36
        assert channels == 3
        assert env.observation_space.dtype == np.uint8

    def test_it_is_the_picture_of_the_maze(self) -> None:
        env = ImageObservation(make("TerrainMaze-v0", shape=(6, 6)))
        frame = Raster(env.unwrapped.layout, 84).frame(7)
        seen = env.observation(7)
        top, left = ((a - b) // 2 for a, b in zip(seen.shape[:2], frame.shape[:2], strict=True))
        np.testing.assert_array_equal(
            seen[top : top + frame.shape[0], left : left + frame.shape[1]], frame
        )

    @pytest.mark.parametrize("room", [2**26, 5_000, 0])
    @pytest.mark.parametrize(
        ("env_id", "shape"), [("StandardMaze-v0", (5, 4)), ("NDMaze-v0", (3, 2, 3))]
    )
    def test_what_is_remembered_is_what_would_be_drawn(
        self, env_id: str, shape: tuple[int, ...], room: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("aggmaze.wrappers.encoders._PATCHES_BYTES", room)
        env = ImageObservation(gym.make(env_id, shape=shape))
        encoder = env._encoder
        raster = Raster(env.unwrapped.layout, 84)
        states = np.random.default_rng(0).integers(np.prod(shape), size=100)
        for state in states.tolist():
            frame = np.full(env.observation_space.shape, BACKGROUND, np.uint8)
            frame[encoder._place] = raster.frame(state)
            assert equal(env.observation(state), frame)
            patches = encoder._patches
            assert sum(colors.nbytes for _, colors in list(patches.values())[1:]) <= room
        if room == 2**26:
            assert set(patches) == set(states.tolist())

    def test_large_pictures_are_not_remembered(self) -> None:
        env = ImageObservation(gym.make("TerrainMaze-v0", shape=(800, 500)))
        assert np.prod(env.observation_space.shape) > 2**20
        assert equal(env.observation(7), env.observation(7))
        assert not np.array_equal(env.observation(7), env.observation(400_000 - 1))
        assert not env._encoder._patches

    @pytest.mark.parametrize("name", ["ImageObservation", "LocalViewObservation"])
    @pytest.mark.parametrize("many", [False, True])
    def test_another_maze_is_another_picture(self, name: str, many: bool) -> None:
        env: Any = (
            gym.make_vec("TerrainMaze-v0", 2, shape=(5, 5))
            if many
            else gym.make("TerrainMaze-v0", shape=(5, 5))
        )
        env = wrap(name, env)
        first, _ = env.reset(seed=0)
        second, _ = env.reset(seed=0, options={"layout_seed": 1})
        assert not np.array_equal(first, second)
        again, _ = env.reset(seed=0, options={"layout_seed": 0})
        np.testing.assert_array_equal(first, again)

    def test_mazes_without_walls_have_the_same_shape(self) -> None:
        env = ImageObservation(gym.make("StandardMaze-v0", shape=(3, 2), loops=0.5))
        for seed in range(20):
            observation, _ = env.reset(options={"layout_seed": seed})
            assert observation in env.observation_space


class TestLocalViews:
    TEXT = """
        +---+---+---+
        |       |###|
        +   +   +---+
        |   | G     |
        +---+---+---+
    """

    def test_what_is_seen(self) -> None:
        maze = gym.make("StandardMaze-v0", layout=self.TEXT, start=(0, 0))
        env = LocalViewObservation(maze, radius=1)
        view = env.observation(2)  # (1, 0), the goal; rows from y = 1 down, columns x = 0 to 2
        free = [[1, 1, 0], [1, 1, 1], [0, 0, 0]]
        right = [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
        left = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
        down = [[1, 1, 0], [0, 0, 0], [0, 0, 0]]
        up = [[0, 0, 0], [1, 1, 0], [0, 0, 0]]
        goal = [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
        for channel, expected in enumerate((free, left, right, down, up, goal, np.zeros((3, 3)))):
            np.testing.assert_array_equal(view[..., channel], expected)

    def test_heights(self) -> None:
        env = LocalViewObservation(gym.make("TerrainMaze-v0", shape=(4, 3)), radius=2)
        heights = env.unwrapped.layout.heights.reshape(4, 3)
        view = env.observation(7)  # (2, 1)
        for row in range(5):
            for column in range(5):
                x, y = 2 + column - 2, 1 + 2 - row
                inside = 0 <= x < 4 and 0 <= y < 3
                expected = heights[x, y] if inside else 0.0
                assert view[row, column, 6] == np.float32(expected)

    @pytest.mark.parametrize("radius", [0, -1, 1.5])
    def test_bad_radii(self, radius: Any) -> None:
        with pytest.raises((TypeError, ValueError), match="radius must be"):
            LocalViewObservation(make("StandardMaze-v0"), radius=radius)

    def test_other_dimensions(self) -> None:
        with pytest.raises(ValueError, match="2 dimensions, not 3"):
            LocalViewObservation(gym.make("NDMaze-v0"))


def q_table(model: Any, V: NDArray[np.float64], gamma: float) -> NDArray[np.float64]:
    """Return Q by the definition, from dense tables, unavailable actions included."""
    table = model.to_tabular()
    P = table.transitions.toarray().reshape(table.num_states, table.num_actions, -1)
    return table.costs + gamma * P @ V


class TestRegret:
    def test_steps_and_episodes(self) -> None:
        gamma = 0.9
        inner = make("StandardMaze-v0", p=0.8, loops=0.5, start="uniform")
        V = planners.solve(inner, gamma=gamma, tol=1e-10).values
        env = RegretWrapper(inner, V, gamma)
        Q = q_table(planners.as_model(inner), V, gamma)
        rng = np.random.default_rng(0)
        episodes = 0
        _, info = env.reset(seed=0)
        assert "regret" not in info
        regrets: list[float] = []
        rewards: list[float] = []
        first = info["state"]
        while episodes < 20:
            state, action = info["state"], int(rng.integers(4))
            _, reward, terminated, truncated, info = env.step(action)
            rewards.append(reward)
            regrets.append(Q[state, action] - V[state])
            assert info["regret"] == pytest.approx(regrets[-1], abs=1e-12)
            assert info["regret"] > -1e-8
            if not (terminated or truncated):
                assert "episode_regret" not in info
                continue
            weights = gamma ** np.arange(len(regrets))
            told = info["episode_regret"]
            assert told["l"] == len(regrets)
            assert told["sum"] == pytest.approx(sum(regrets))
            assert told["discounted"] == pytest.approx(weights @ regrets)
            assert told["realized"] == pytest.approx(-weights @ rewards - V[first])
            assert env.regret_queue[-1] == told["sum"]
            assert env.discounted_regret_queue[-1] == told["discounted"]
            assert env.realized_regret_queue[-1] == told["realized"]
            episodes += 1
            _, info = env.reset()
            first = info["state"]
            regrets, rewards = [], []
        assert len(env.regret_queue) == 20

    def test_a_deterministic_episode_loses_what_its_policy_does(self) -> None:
        gamma = 0.9
        inner = gym.make("TerrainMaze-v0", shape=(4, 4))
        V = planners.solve(inner, gamma=gamma, tol=1e-12).values
        policy = planners.greedy(inner, np.zeros(16), gamma)
        for goal_first in (policy, np.where(np.arange(16) % 4 > 0, 2, 0)):
            env = RegretWrapper(inner, V, gamma)
            _, info = env.reset(seed=0)
            terminated = truncated = False
            while not (terminated or truncated):
                _, _, terminated, truncated, info = env.step(int(goal_first[info["state"]]))
            lost = planners.evaluate(inner, goal_first, gamma) - V
            told = info["episode_regret"]
            assert told["discounted"] == pytest.approx(lost[15], abs=1e-9)
            assert told["realized"] == pytest.approx(lost[15], abs=1e-9)

    def test_its_mean_is_what_the_policy_loses(self) -> None:
        gamma, n = 0.9, 4000
        envs = gym.make_vec("StandardMaze-v0", n, shape=(3, 3), p=0.7, max_episode_steps=None)
        model = envs.unwrapped.transition_model()
        V = planners.solve(model, gamma=gamma, tol=1e-10).values
        mask = model.action_mask
        policy = mask / mask.sum(axis=1, keepdims=True)
        env = vector.RegretWrapper(envs, V, gamma)
        _, infos = env.reset(seed=0)
        rng = np.random.default_rng(0)
        told = {name: np.full(n, np.nan) for name in ("discounted", "realized")}
        while np.isnan(told["discounted"]).any():
            chances = rng.random((n, 4)) * infos["action_mask"]
            _, _, terminated, _, infos = env.step(chances.argmax(axis=1))
            if terminated.any():
                for name, kept in told.items():
                    fresh = terminated & np.isnan(kept)
                    kept[fresh] = infos["episode_regret"][name][fresh]
        lost = (planners.evaluate(model, policy, gamma) - V)[8]
        for kept in told.values():
            assert kept.mean() == pytest.approx(lost, abs=4 * kept.std() / np.sqrt(n))

    @pytest.mark.parametrize("mode", list(AutoresetMode))
    def test_many_as_one(self, mode: AutoresetMode) -> None:
        gamma, n = 0.9, 6
        envs = gym.make_vec(
            "TerrainMaze-v0",
            n,
            shape=(3, 3),
            p=0.8,
            max_episode_steps=5,
            autoreset_mode=mode.value,
        )
        model = envs.unwrapped.transition_model()
        V = planners.solve(model, gamma=gamma).values
        Q = q_table(model, V, gamma)
        env = vector.RegretWrapper(vector.CoordinateObservation(envs), V, gamma)
        _, infos = env.reset(seed=0)
        states, firsts = infos["state"].copy(), infos["state"].copy()
        sums, paid, lengths = np.zeros(n), np.zeros(n), np.zeros(n, int)
        ended, episodes = np.zeros(n, bool), 0
        rng = np.random.default_rng(1)
        for _ in range(40):
            if mode is AutoresetMode.DISABLED and ended.any():
                _, infos = env.reset(options={"reset_mask": ended.copy()})
                for i in np.flatnonzero(ended):
                    states[i] = firsts[i] = infos["state"][i]
                    sums[i] = paid[i] = lengths[i] = 0
                ended[:] = False
            actions = rng.integers(4, size=n)
            _, rewards, terminated, truncated, infos = env.step(actions)
            over = terminated | truncated
            for i in range(n):
                if mode is AutoresetMode.NEXT_STEP and ended[i]:
                    assert not infos["_regret"][i]
                    assert infos["regret"][i] == 0
                    firsts[i], sums[i], paid[i], lengths[i] = infos["state"][i], 0, 0, 0
                    continue
                assert infos["_regret"][i]
                regret = Q[states[i], actions[i]] - V[states[i]]
                assert infos["regret"][i] == pytest.approx(regret, abs=1e-12)
                sums[i] += regret
                paid[i] -= gamma ** lengths[i] * rewards[i]
                lengths[i] += 1
                if not over[i]:
                    continue
                assert infos["_episode_regret"][i]
                told = infos["episode_regret"]
                last = infos["state"][i]
                if mode is AutoresetMode.SAME_STEP:
                    last = infos["final_info"]["state"][i]
                left = gamma ** lengths[i] * V[last] * (not terminated[i])
                assert told["l"][i] == lengths[i]
                assert told["sum"][i] == pytest.approx(sums[i])
                assert told["realized"][i] == pytest.approx(paid[i] + left - V[firsts[i]])
                episodes += 1
                if mode is AutoresetMode.SAME_STEP:
                    firsts[i], sums[i], paid[i], lengths[i] = infos["state"][i], 0, 0, 0
            states, ended = infos["state"].copy(), over.copy()
        assert episodes > 10
        assert len(env.regret_queue) == min(episodes, 100)

    @pytest.mark.parametrize("env_id", [*aggmaze.ENV_IDS, "FrozenLake-v1", "CliffWalking-v1"])
    def test_solved_first(self, env_id: str) -> None:
        env = planners.with_regret(gym.make(env_id), 0.95)
        _, info = env.reset(seed=0)
        result = planners.solve(gym.make(env_id), gamma=0.95)
        state = info.get("state", env.unwrapped.s if env_id.startswith(("F", "C")) else None)
        total = 0.0
        for _ in range(20):
            observation, _, terminated, truncated, info = env.step(int(result.policy[state]))
            state = info.get("state", observation)
            total += info["regret"]
            if terminated or truncated:
                break
        scale = np.abs(result.values).max()
        assert abs(total) < 1e-4 * scale, "best actions cost nothing more"

    def test_with_others(self) -> None:
        inner = OneHotObservation(gym.make("StandardMaze-v0", shape=(3, 3)))
        env: Any = planners.with_regret(inner, 0.9)
        env = gym.wrappers.RecordEpisodeStatistics(gym.wrappers.TimeLimit(env, 4))
        assert planners.as_model(env) is env.unwrapped.transition_model()
        env.reset(seed=0)
        for _ in range(4):
            *_, truncated, info = env.step(1)
        assert truncated
        assert info["episode"]["l"] == 4
        # The limit lies outside, so that the wrapper does not see the end of the episode.
        assert "episode_regret" not in info

    def test_another_maze(self) -> None:
        env = gym.make("StandardMaze-v0", shape=(5, 5))
        given = RegretWrapper(env, planners.solve(env, gamma=0.9).values, 0.9)
        given.reset(seed=0)
        with pytest.raises(ValueError, match=r"the model has changed.*with_regret"):
            given.reset(options={"layout_seed": 1})
        solved = planners.with_regret(NewMazeEachEpisode(env), 0.9)
        for seed in range(3):
            solved.reset(seed=seed)
            model = env.unwrapped.transition_model()
            V = planners.solve(model, gamma=0.9).values
            np.testing.assert_array_equal(solved._table.values, V)

    @pytest.mark.parametrize("many", [False, True])
    def test_solves_are_not_repeated(self, many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        env: Any = gym.make_vec("StandardMaze-v0", 2) if many else gym.make("StandardMaze-v0")
        solved = []
        monkeypatch.setattr(
            "planners.regret.solve",
            lambda model, **options: solved.append(1) or planners.solve(model, **options),
        )
        env = planners.with_regret(env, 0.9)
        for _ in range(3):
            env.reset(seed=0)
        assert solved == [1]

    def test_pickles(self) -> None:
        env = planners.with_regret(gym.make("StandardMaze-v0", shape=(4, 4)), 0.9)
        env.reset(seed=0)
        env.step(0)
        twin = pickle.loads(pickle.dumps(env))
        assert twin.step(1)[4]["regret"] == env.step(1)[4]["regret"]

    @pytest.mark.parametrize(
        ("values", "gamma", "message"),
        [
            (np.zeros(5), 0.9, r"values must have shape \(12,\)"),
            (np.full(12, np.nan), 0.9, "values must be finite, got nan in state 0"),
            (np.zeros(12), 1, r"gamma must be in \[0, 1\), got 1"),
            (np.zeros(12), -0.5, "gamma must be"),
        ],
    )
    def test_bad_arguments(self, values: Any, gamma: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            RegretWrapper(make("StandardMaze-v0"), values, gamma)
        with pytest.raises(ValueError, match=message):
            vector.RegretWrapper(gym.make_vec("StandardMaze-v0", 2, shape=(4, 3)), values, gamma)

    def test_other_rewards_are_refused(self) -> None:
        env = gym.wrappers.TransformReward(make("StandardMaze-v0"), lambda reward: 2 * reward)
        with pytest.raises(ValueError, match="TransformReward may change rewards"):
            RegretWrapper(env, np.zeros(12), 0.9)
        with pytest.raises(TypeError, match="no transition model"):
            planners.with_regret(gym.make("Blackjack-v1"), 0.9)


class TestNewMazes:
    @wrapped
    def test_check_env(self) -> None:
        for env_id in MAZES:
            check_env(NewMazeEachEpisode(make(env_id)), skip_render_check=True)

    def test_each_episode_has_its_maze(self) -> None:
        env = NewMazeEachEpisode(gym.make("StandardMaze-v0", shape=(5, 5)))
        layouts, seeds = [], []
        for _ in range(5):
            _, info = env.reset(seed=0 if not seeds else None)
            seeds.append(info["layout_seed"])
            layouts.append(env.unwrapped.layout.passages.tobytes())
            again = gym.make("StandardMaze-v0", shape=(5, 5), layout_seed=seeds[-1])
            assert layouts[-1] == again.unwrapped.layout.passages.tobytes()
            assert planners.as_model(env) is env.unwrapped.transition_model()
        assert len(set(layouts)) == len(set(seeds)) == 5

    def test_a_seed_makes_the_sequence(self) -> None:
        def walk(env: Any, seed: int) -> list[Any]:
            seen: list[Any] = [env.reset(seed=seed)]
            for step in range(40):
                seen.append(env.step(step % 4))
                if step % 10 == 9:
                    seen.append(env.reset())
            return seen

        envs = [NewMazeEachEpisode(make("TerrainMaze-v0", p=0.5)) for _ in range(2)]
        envs[1].reset(seed=9)
        assert data_equivalence(walk(envs[0], 1), walk(envs[1], 1), exact=True)
        assert not data_equivalence(walk(envs[0], 1), walk(envs[1], 2), exact=True)

    def test_a_copy_goes_on_as_the_original(self) -> None:
        env = NewMazeEachEpisode(make("StandardMaze-v0"))
        env.reset(seed=4)
        twins = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
        following = [env.reset()[1]["layout_seed"] for _ in range(3)]
        for twin in twins:
            assert [twin.reset()[1]["layout_seed"] for _ in range(3)] == following

    def test_a_maze_that_is_asked_for(self) -> None:
        env = NewMazeEachEpisode(make("StandardMaze-v0"))
        first = [env.reset(seed=0), env.reset()][1][1]["layout_seed"]
        env.reset(seed=0)
        assert env.reset(options={"layout_seed": 7})[1]["layout_seed"] == 7
        assert env.reset()[1]["layout_seed"] == first, "it took no draw"

    def test_a_refused_reset_takes_no_draw(self) -> None:
        env, other = (NewMazeEachEpisode(make("StandardMaze-v0")) for _ in range(2))
        for each in (env, other):
            each.reset(seed=0)
        with pytest.raises(ValueError, match="unknown reset option"):
            env.reset(options={"nothing": 0})
        assert env.reset()[1]["layout_seed"] == other.reset()[1]["layout_seed"]

    def test_splits_have_none_in_common(self) -> None:
        drawn = []
        for split in (wrappers.TRAIN, wrappers.TEST):
            env = NewMazeEachEpisode(make("StandardMaze-v0"), **split)
            first, count = split["first_seed"], split["num_mazes"]
            env.reset(seed=0)
            drawn.append({env.reset()[1]["layout_seed"] for _ in range(300)})
            assert drawn[-1] <= set(range(first, first + count))
            assert len(drawn[-1]) > 200
        assert not drawn[0] & drawn[1]

    def test_every_maze_is_as_likely(self) -> None:
        env = NewMazeEachEpisode(make("StandardMaze-v0"), first_seed=5, num_mazes=4)
        env.reset(seed=0)
        counts = np.bincount([env.reset()[1]["layout_seed"] for _ in range(400)], minlength=9)
        assert counts[:5].sum() == 0
        assert ((counts[5:] > 60) & (counts[5:] < 140)).all()

    def test_its_spec_makes_the_same(self) -> None:
        env = NewMazeEachEpisode(make("StandardMaze-v0"), **wrappers.TRAIN)
        twin = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
        assert twin.reset(seed=1)[1]["layout_seed"] == env.reset(seed=1)[1]["layout_seed"]

    @pytest.mark.parametrize(
        ("make_env", "arguments", "error", "message"),
        [
            (lambda: gym.make("FrozenLake-v1"), {}, TypeError, "is no maze"),
            (lambda: gym.make("DiscretizedCartPole-v0"), {}, TypeError, "is no maze"),
            (lambda: gym.make("StandardMaze-v0", layout="S.G"), {}, ValueError, "is drawn"),
            (lambda: make("StandardMaze-v0"), {"first_seed": -1}, ValueError, "first_seed.*-1"),
            (lambda: make("StandardMaze-v0"), {"num_mazes": 0}, ValueError, "num_mazes.*0"),
            (lambda: make("StandardMaze-v0"), {"num_mazes": 1.5}, TypeError, "num_mazes.*1.5"),
        ],
    )
    def test_bad_use(
        self,
        make_env: Callable[[], Any],
        arguments: dict[str, Any],
        error: type[Exception],
        message: str,
    ) -> None:
        with pytest.raises(error, match=message):
            NewMazeEachEpisode(make_env(), **arguments)

    def test_terrain_between_given_walls_is_drawn(self) -> None:
        env = NewMazeEachEpisode(gym.make("TerrainMaze-v0", layout="S..\n..G"))
        env.reset(seed=0)
        first = env.unwrapped.layout.heights
        env.reset()
        assert not np.array_equal(first, env.unwrapped.layout.heights)

    def test_in_vectors_of_single_environments(self) -> None:
        envs = SyncVectorEnv([lambda: NewMazeEachEpisode(make("StandardMaze-v0"))] * 2)
        _, infos = envs.reset(seed=0)
        assert infos["layout_seed"][0] != infos["layout_seed"][1]
        envs.close()
