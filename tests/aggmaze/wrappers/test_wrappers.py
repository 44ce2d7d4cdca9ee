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
    PotentialShaping,
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
        env.reset(options={"layout_seed": 1})  # the encoder of another maze has the same room
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
            "planners.advice.solve",
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
            (np.zeros(12), 1.5, r"gamma must be in \[0, 1.*, got 1.5"),
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


def shaped_by_hand(
    inner: Any, gamma: float, phi: NDArray[np.float64], tol: float = 1e-12
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return V* and its Q, (S, A), as costs, of shaped rewards straight from a table P."""
    P = inner.unwrapped.P
    num_states = len(P)
    V, Q = np.zeros(num_states), np.zeros((num_states, len(P[0])))
    for _ in range(100_000):
        for state in range(num_states):
            for action, outcomes in P[state].items():
                Q[state, action] = -sum(
                    probability
                    * (reward - phi[state] + (0.0 if over else gamma * (phi[after] - V[after])))
                    for probability, after, reward, over in outcomes
                )
        ends = np.array(
            [all(o[3] for o in P[s][0]) and P[s][0][0][1] == s for s in range(num_states)]
        )
        change = np.abs(np.where(ends, 0.0, Q.min(axis=1)) - V).max()
        V = np.where(ends, 0.0, Q.min(axis=1))
        if change < tol:
            return V, Q
    raise AssertionError("no fixed point")


class TestShaping:
    GAMMA = 0.9

    def inner(self, env_id: str = "TerrainMaze-v0", **options: Any) -> Any:
        return gym.make(env_id, shape=(4, 3), p=0.8, start="uniform", **options)

    def phi(self, inner: Any) -> NDArray[np.float64]:
        phi = np.random.default_rng(5).normal(0.0, 3.0, 12)
        return np.where(planners.as_model(inner).terminal, 0.0, phi)

    @wrapped
    def test_check_env(self) -> None:
        check_env(planners.with_shaping(self.inner(), self.GAMMA), skip_render_check=True)

    @pytest.mark.parametrize("limit", [8, 1000])
    @pytest.mark.parametrize("observed", [False, True])
    def test_rewards_and_returns(self, limit: int, observed: bool) -> None:
        gamma = self.GAMMA
        plain = self.inner(max_episode_steps=limit)
        phi = self.phi(plain)
        env: Any = self.inner(max_episode_steps=limit)
        env = PotentialShaping(CoordinateObservation(env) if observed else env, phi, gamma)
        rng = np.random.default_rng(0)
        ways = {"terminated": 0, "truncated": 0}
        for episode in range(60):
            _, info = env.reset(seed=episode)
            first, told = plain.reset(seed=episode)
            state, shaped, bare, weight = first, 0.0, 0.0, 1.0
            terminated = truncated = False
            while not (terminated or truncated):
                action = int(rng.integers(4))
                _, reward, terminated, truncated, info = env.step(action)
                after, paid, *over, told = plain.step(action)
                assert over == [terminated, truncated]
                assert data_equivalence(info, told)
                left = 0.0 if terminated else gamma * phi[after]
                assert type(reward) is float
                assert reward == pytest.approx(paid + left - phi[state], abs=1e-12)
                shaped, bare, weight = (
                    shaped + weight * reward,
                    bare + weight * paid,
                    weight * gamma,
                )
                state = after
            ways["terminated" if terminated else "truncated"] += 1
            # Only what terminates is worth nothing: an agent that is cut off would have gone on.
            left = 0.0 if terminated else weight * phi[state]
            assert shaped == pytest.approx(bare - phi[first] + left, abs=1e-9)
        assert ways["terminated"] > 3
        assert (ways["truncated"] > 3) == (limit == 8)

    def test_what_is_said_of_terminal_states_is_not_read(self) -> None:
        inner = self.inner()
        phi = self.phi(inner)
        given = phi.copy()
        given[0] = 1e6
        assert planners.as_model(inner).terminal.tolist() == [True] + [False] * 11
        env = PotentialShaping(inner, given, self.GAMMA)
        for start in range(1, 12):
            env.reset(seed=start, options={"state": start})
            for _ in range(5):
                _, reward, terminated, *_ = env.step(0)
                assert abs(reward) < 100
                if terminated:
                    break

    @pytest.mark.parametrize(
        "env_id", ["StandardMaze-v0", "TerrainMaze-v0", "FrozenLake-v1", "CliffWalking-v1"]
    )
    def test_the_optimum_is_less_by_the_potential(self, env_id: str) -> None:
        gamma = self.GAMMA
        inner = self.inner(env_id) if env_id in MAZES else gym.make(env_id)
        num_states = int(inner.observation_space.n)
        phi = np.random.default_rng(1).normal(0.0, 3.0, num_states)
        model = planners.as_model(inner)
        num_added = model.num_added_states
        phi = np.where(model.terminal[:num_states], 0.0, phi)
        plain = planners.solve(inner, gamma=gamma, tol=1e-12)
        env = PotentialShaping(inner, phi, gamma)
        shaped_model = planners.as_model(env)
        assert shaped_model.num_added_states == num_added
        shaped = planners.solve(env, gamma=gamma, tol=1e-12)
        np.testing.assert_allclose(shaped.values, plain.values + phi, rtol=0, atol=1e-8)
        V, Q = shaped_by_hand(inner, gamma, phi)
        if num_added == 0:
            np.testing.assert_allclose(shaped.values, V, rtol=0, atol=1e-8)
        # Q of every action, unavailable ones included, is less by the potential of its state.
        full = np.concatenate([phi, np.zeros(num_added)])
        before = q_table(model, np.append(plain.values, np.zeros(num_added)), gamma)
        after = q_table(shaped_model, np.append(shaped.values, np.zeros(num_added)), gamma)
        ends = model.terminal
        np.testing.assert_allclose(
            after[~ends], (before + full[:, np.newaxis])[~ends], rtol=0, atol=1e-8
        )
        if num_added == 0:
            np.testing.assert_allclose(after[~ends], Q[~ends], rtol=0, atol=1e-8)
        rng = np.random.default_rng(2)
        weights = rng.random(model.action_mask.shape) * model.action_mask
        weights = (weights / weights.sum(axis=1, keepdims=True))[:num_states]
        for policy in (plain.policy, weights):
            np.testing.assert_allclose(
                planners.evaluate(env, policy, gamma),
                planners.evaluate(inner, policy, gamma) + phi,
                rtol=0,
                atol=1e-8,
            )

    def test_the_model_is_that_of_the_steps(self) -> None:
        env = PotentialShaping(self.inner(), self.phi(self.inner()), self.GAMMA)
        model = planners.as_model(env)
        matrix = model.transitions
        num_bumps = 0
        rng = np.random.default_rng(3)
        _, info = env.reset(seed=0)
        for _ in range(300):
            state, action = info["state"], int(rng.integers(4))
            num_bumps += not info["action_mask"][action]
            _, reward, terminated, _, info = env.step(action)
            row = slice(*matrix.indptr[4 * state + action : 4 * state + action + 2])
            (entry,) = np.flatnonzero(matrix.indices[row] == info["state"])
            assert matrix.data[row][entry] == pytest.approx(info["prob"])
            assert -model.outcome_costs[row][entry] == pytest.approx(reward, abs=1e-12)
            assert terminated == model.terminal[info["state"]]
            if terminated:
                _, info = env.reset()
        assert num_bumps > 20

    def test_rollouts_get_what_is_promised(self) -> None:
        env = PotentialShaping(self.inner(), self.phi(self.inner()), self.GAMMA)
        result = planners.solve(env, gamma=self.GAMMA)
        found = planners.rollout(env, result, episodes=500, seed=0)
        returns = found.discounted_returns
        error = returns.std(ddof=1) / np.sqrt(len(returns))
        assert abs(returns.mean() - found.promised) < 5 * error

    def test_regrets_stay(self) -> None:
        plain, env = (
            planners.with_regret(env, self.GAMMA, tol=1e-12)
            for env in (
                self.inner(),
                PotentialShaping(self.inner(), self.phi(self.inner()), self.GAMMA),
            )
        )
        for seed in range(5):
            plain.reset(seed=seed)
            env.reset(seed=seed)
            over = False
            while not over:
                told, expected = (each.step(seed % 4) for each in (env, plain))
                assert told[4]["regret"] == pytest.approx(expected[4]["regret"], abs=1e-9)
                over = expected[2] or expected[3]
            for name in ("sum", "discounted", "realized"):
                assert told[4]["episode_regret"][name] == pytest.approx(
                    expected[4]["episode_regret"][name], abs=1e-8
                )

    def test_the_optimum_as_potential(self) -> None:
        inner = self.inner()
        env = planners.with_shaping(inner, self.GAMMA, tol=1e-12)
        V = planners.solve(inner, gamma=self.GAMMA, tol=1e-12).values
        np.testing.assert_array_equal(env._potential.values, -V)
        assert (
            np.abs(planners.solve(env, gamma=self.GAMMA, tol=None, atol=1e-9).values).max() < 1e-8
        )
        # The best action of each state pays nothing on average, the others less.
        costs = planners.as_model(env).costs
        Q = q_table(planners.as_model(inner), V, self.GAMMA)
        np.testing.assert_allclose(costs[1:], (Q - V[:, np.newaxis])[1:], rtol=0, atol=1e-9)

    def test_distance_as_potential(self) -> None:
        maze = gym.make("StandardMaze-v0", layout="S..\n.#.\nG#.", p=0.9)
        # Rows from the top, columns from the left; blocked cells are terminal in the model.
        steps = np.array([[2, 3, 4], [1, 0, 5], [0, 0, 6]])
        env = planners.with_shaping(maze, 0.5, potential="distance")
        grid = maze.unwrapped.grid
        np.testing.assert_array_equal(grid.to_image(env._potential.values), -steps)
        env.reset(seed=0)
        env.reset(options={"coords": (2, 0)})
        _, reward, *_ = env.step(3)  # the only way, from 6 steps to 5
        assert reward == -1.0 - 0.5 * 5 + 6
        # What never arrives is farthest.
        lost = aggmaze.TabularMDP.from_function(
            4, 1, lambda s, a: [None, [(1.0, 0, 1.0)], [(1.0, 1, 1.0)], [(1.0, 3, 1.0, False)]][s]
        )
        env = planners.with_shaping(aggmaze.TabularEnv(lost), 0.5, potential="distance")
        assert env._potential.values.tolist() == [0.0, -1.0, -2.0, -3.0]
        endless = aggmaze.TabularMDP.from_function(2, 1, lambda s, a: [(1.0, 1 - s, 1.0)])
        with pytest.raises(ValueError, match="needs a terminal state"):
            planners.with_shaping(aggmaze.TabularEnv(endless), 0.5, potential="distance")

    def test_another_maze(self) -> None:
        env = gym.make("StandardMaze-v0", shape=(5, 5))
        solved = planners.with_shaping(NewMazeEachEpisode(env), 0.9)
        far = planners.with_shaping(NewMazeEachEpisode(env), 0.9, potential="distance")
        given = PotentialShaping(NewMazeEachEpisode(env), np.arange(25.0), 0.9)
        for seed in range(3):
            solved.reset(seed=seed)
            model = env.unwrapped.transition_model()
            V = planners.solve(model, gamma=0.9).values
            np.testing.assert_array_equal(solved._potential.values, -V)
            assert planners.as_model(solved) is planners.as_model(solved), "made once a maze"
            far.reset(seed=seed)
            assert far._potential.values[24] < -7
            given.reset(seed=seed)
            np.testing.assert_array_equal(given._potential.values, np.arange(25.0))
        # The maze may also change behind its back: the model is the present one.
        env.reset(options={"layout_seed": 77})
        V = planners.solve(env, gamma=0.9, tol=1e-10).values
        shaped = planners.solve(given, gamma=0.9, tol=1e-10).values
        np.testing.assert_allclose(shaped, V + np.arange(25.0), rtol=0, atol=1e-6)

    @pytest.mark.parametrize("mode", list(AutoresetMode))
    @pytest.mark.parametrize("observed", [False, True])
    def test_many_as_one(self, mode: AutoresetMode, observed: bool) -> None:
        gamma, n = self.GAMMA, 6
        options = {
            "shape": (3, 3),
            "p": 0.8,
            "start": "uniform",
            "max_episode_steps": 4,
            "autoreset_mode": mode.value,
        }
        phi = np.random.default_rng(0).normal(0.0, 3.0, 9)
        phi[0] = 0.0
        plain = gym.make_vec("TerrainMaze-v0", n, **options)
        inner = gym.make_vec("TerrainMaze-v0", n, **options)
        env = vector.PotentialShaping(
            vector.CoordinateObservation(inner) if observed else inner, phi, gamma
        )
        if observed:
            plain = vector.CoordinateObservation(plain)
        _, told = plain.reset(seed=0)
        env.reset(seed=0)
        states = told["state"].copy()
        firsts, sums, bare, weights = states.copy(), np.zeros(n), np.zeros(n), np.ones(n)
        ended = np.zeros(n, bool)
        rng = np.random.default_rng(1)
        ways = {True: 0, False: 0}
        for _ in range(60):
            if mode is AutoresetMode.DISABLED and ended.any():
                reset = {"reset_mask": ended.copy()}
                env.reset(options=dict(reset))
                _, told = plain.reset(options=dict(reset))
                states[ended] = firsts[ended] = told["state"][ended]
                sums[ended], bare[ended], weights[ended], ended[:] = 0.0, 0.0, 1.0, False
            actions = rng.integers(4, size=n)
            seen, rewards, terminated, truncated, infos = env.step(actions)
            expected, paid, *over, told = plain.step(actions)
            assert data_equivalence(seen, expected)
            assert data_equivalence(over, [terminated, truncated])
            assert data_equivalence(infos, told)
            for i in range(n):
                if mode is AutoresetMode.NEXT_STEP and ended[i]:
                    assert rewards[i] == 0.0
                    firsts[i], sums[i], bare[i], weights[i] = told["state"][i], 0.0, 0.0, 1.0
                    continue
                after = told["state"][i]
                end = terminated[i] or truncated[i]
                if mode is AutoresetMode.SAME_STEP and end:
                    after = told["final_info"]["state"][i]
                left = 0.0 if terminated[i] else gamma * phi[after]
                assert rewards[i] == pytest.approx(paid[i] + left - phi[states[i]], abs=1e-12)
                sums[i] += weights[i] * rewards[i]
                bare[i] += weights[i] * paid[i]
                weights[i] *= gamma
                if end:
                    left = 0.0 if terminated[i] else weights[i] * phi[after]
                    assert sums[i] == pytest.approx(bare[i] - phi[firsts[i]] + left, abs=1e-9)
                    ways[bool(terminated[i])] += 1
                if mode is AutoresetMode.SAME_STEP and end:
                    firsts[i], sums[i], bare[i], weights[i] = told["state"][i], 0.0, 0.0, 1.0
            states, ended = told["state"].copy(), terminated | truncated
        assert min(ways.values()) > 5
        # The model, and what is built on it, is the shaped one through wrappers of every kind.
        single = PotentialShaping(gym.make("TerrainMaze-v0", shape=(3, 3), p=0.8), phi, gamma)
        V = planners.solve(single, gamma=gamma, tol=1e-10).values
        around = gym.wrappers.vector.RecordEpisodeStatistics(env)
        for many in (env, vector.RegretWrapper(around, V, gamma)):
            found = planners.solve(many, gamma=gamma, tol=1e-10).values
            np.testing.assert_allclose(found, V, rtol=0, atol=1e-7)

    @pytest.mark.parametrize("many", [False, True])
    def test_solved_once(self, many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        env: Any = gym.make_vec("StandardMaze-v0", 2) if many else gym.make("StandardMaze-v0")
        solved = []
        monkeypatch.setattr(
            "planners.advice.solve",
            lambda model, **options: solved.append(1) or planners.solve(model, **options),
        )
        env = planners.with_shaping(env, 0.9)
        for _ in range(3):
            env.reset(seed=0)
        assert solved == [1]

    def test_pickles(self) -> None:
        for potential in ("values", "distance"):
            env = planners.with_shaping(self.inner(), 0.9, potential=potential)
            env.reset(seed=0)
            env.step(0)
            twin = pickle.loads(pickle.dumps(env))
            assert twin.step(1)[1] == env.step(1)[1]

    @pytest.mark.parametrize(
        ("potential", "gamma", "message"),
        [
            (np.zeros(5), 0.9, r"potential must have shape \(12,\), one a state, got \(5,\)"),
            (np.full(12, np.inf), 0.9, "potential must be finite, got inf in state 0"),
            (np.zeros(12), 1.5, r"gamma must be in \[0, 1.*, got 1.5"),
        ],
    )
    def test_bad_arguments(self, potential: Any, gamma: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            PotentialShaping(make("StandardMaze-v0"), potential, gamma)
        with pytest.raises(ValueError, match=message):
            planners.with_shaping(
                gym.make_vec("StandardMaze-v0", 2, shape=(4, 3)), gamma, potential=potential
            )

    def test_bad_names_and_options(self) -> None:
        with pytest.raises(ValueError, match="potential must be one of values, distance, got 'V'"):
            planners.with_shaping(make("StandardMaze-v0"), 0.9, potential="V")
        with pytest.raises(ValueError, match="only potential='values' is solved for: tol"):
            planners.with_shaping(make("StandardMaze-v0"), 0.9, potential="distance", tol=1e-3)

    def test_other_rewards_are_refused(self) -> None:
        env = gym.wrappers.TransformReward(make("StandardMaze-v0"), lambda reward: 2 * reward)
        with pytest.raises(ValueError, match="TransformReward may change rewards"):
            PotentialShaping(env, np.zeros(12), 0.9)
        envs = gym.make_vec("StandardMaze-v0", 2, shape=(4, 3))
        envs = gym.wrappers.vector.TransformReward(envs, lambda rewards: 2 * rewards)
        for wrapper in (vector.PotentialShaping, vector.RegretWrapper):
            with pytest.raises(ValueError, match="TransformReward may change rewards"):
                wrapper(envs, np.zeros(12), 0.9)
        seen = vector.CoordinateObservation(envs)
        with pytest.raises(ValueError, match="TransformReward may change rewards"):
            planners.as_model(seen)
        with pytest.raises(TypeError, match="no transition model"):
            planners.with_shaping(gym.make("Blackjack-v1"), 0.9)

    def test_changes_of_shaped_rewards_are_refused(self) -> None:
        env = PotentialShaping(make("StandardMaze-v0"), np.zeros(12), 0.9)
        with pytest.raises(ValueError, match="TransformReward may change rewards"):
            planners.as_model(gym.wrappers.TransformReward(env, lambda reward: reward + 1))


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


NEW_MAZES: list[tuple[str, dict[str, Any]]] = [
    ("StandardMaze-v0", {"shape": (3, 3), "p": 0.8, "loops": 0.3, "start": "uniform"}),
    ("TerrainMaze-v0", {"shape": (3, 3), "p": 0.8}),
    ("TerrainMaze-v0", {"layout": "S..\n.#.\n..G", "cost": "climb"}),
    ("NDMaze-v0", {"shape": (2, 2, 2), "p": 0.7}),
]
new_mazes = pytest.mark.parametrize(("env_id", "options"), NEW_MAZES)
in_all_modes = pytest.mark.parametrize("mode", list(AutoresetMode))


class Walker:
    """Random actions in copies with new mazes, each reset as its mode has it.

    Yields, for each step and copy that made one, all that is told of it; keeps the layout seeds.
    """

    def __init__(self, env: Any, mode: AutoresetMode, seed: int = 0) -> None:
        self.env, self.mode, self.rng = env, mode, np.random.default_rng(1)
        self.observations, self.infos = env.reset(seed=seed)
        self.seeds = self.infos["layout_seed"].copy()
        assert self.infos["_layout_seed"].all()
        self.states = self.infos["state"].copy()
        self.over = np.zeros(env.num_envs, bool)

    def step(self) -> list[tuple[int, dict[str, Any]]]:
        n = self.env.num_envs
        if self.mode is AutoresetMode.DISABLED and self.over.any():
            which = self.over.copy()
            self.observations, infos = self.env.reset(options={"reset_mask": which})
            np.testing.assert_array_equal(infos["_layout_seed"], which)
            self.seeds[which] = infos["layout_seed"][which]
            self.states[which] = infos["state"][which]
            self.over[:] = False
        actions = self.rng.integers(int(self.env.single_action_space.n), size=n)
        self.observations, rewards, terminated, truncated, infos = self.env.step(actions)
        self.infos = infos
        over = terminated | truncated
        begun = {
            AutoresetMode.SAME_STEP: over,
            AutoresetMode.NEXT_STEP: self.over,
            AutoresetMode.DISABLED: np.zeros(n, bool),
        }[self.mode]
        told = []
        for i in np.flatnonzero(~(begun & (self.mode is AutoresetMode.NEXT_STEP))).tolist():
            last = infos
            if self.mode is AutoresetMode.SAME_STEP and over[i]:
                last = infos["final_info"]
            told.append(
                (
                    i,
                    {
                        "layout_seed": int(self.seeds[i]),
                        "before": int(self.states[i]),
                        "action": int(actions[i]),
                        "after": int(last["state"][i]),
                        "reward": float(rewards[i]),
                        "terminated": bool(terminated[i]),
                        "prob": float(last["prob"][i]),
                        "mask": last["action_mask"][i].tolist(),
                    },
                )
            )
        if begun.any():
            np.testing.assert_array_equal(infos["_layout_seed"], begun)
            self.seeds[begun] = infos["layout_seed"][begun]
        else:
            assert "layout_seed" not in infos
        self.states, self.over = (
            infos["state"].copy(),
            over & (self.mode is not AutoresetMode.SAME_STEP),
        )
        return told


class TestNewMazesOfMany:
    def make(self, env_id: str, options: dict[str, Any], mode: AutoresetMode, n: int = 5) -> Any:
        return gym.make_vec(env_id, n, max_episode_steps=6, autoreset_mode=mode.value, **options)

    @new_mazes
    @in_all_modes
    def test_each_copy_walks_through_its_own(
        self, env_id: str, options: dict[str, Any], mode: AutoresetMode
    ) -> None:
        env = vector.NewMazeEachEpisode(self.make(env_id, options, mode))
        walker = Walker(env, mode)
        mazes: dict[int, Any] = {}

        def maze_of(seed: int) -> Any:
            if seed not in mazes:
                mazes[seed] = gym.make(env_id, layout_seed=seed, **options).unwrapped
            return mazes[seed]

        bumps = 0
        for _ in range(60):
            for i, told in walker.step():
                seed, before = told["layout_seed"], told["before"]
                maze = maze_of(seed)
                assert any(
                    (told["after"], told["terminated"]) == (after, over)
                    and told["reward"] == reward
                    and told["prob"] == pytest.approx(probability)
                    for probability, after, reward, over in maze.P[before][told["action"]]
                ), (i, told, maze.P[before][told["action"]])
                model = maze.transition_model()
                assert told["mask"] == model.action_mask[told["after"]].tolist()
                bumps += not model.action_mask[before, told["action"]]
            # Where each copy stands now, a new episode's first state too.
            for i, seed in enumerate(walker.seeds.tolist()):
                now = maze_of(seed)
                mask = now.transition_model().action_mask[walker.states[i]]
                assert walker.infos["action_mask"][i].tolist() == mask.tolist()
                assert env.unwrapped.action_masks()[i].tolist() == mask.tolist()
                layout = env.unwrapped.single_envs[i].layout
                np.testing.assert_array_equal(layout.passages, now.layout.passages)
        assert bumps > 10
        assert len(mazes) > 30

    @new_mazes
    @in_all_modes
    @pytest.mark.parametrize(
        "name", ["CoordinateObservation", "LocalViewObservation", "ImageObservation"]
    )
    def test_what_is_seen_is_the_own_maze(
        self, name: str, env_id: str, options: dict[str, Any], mode: AutoresetMode
    ) -> None:
        if env_id == "NDMaze-v0" and name == "LocalViewObservation":
            env_id, options = "NDMaze-v0", {"shape": (3, 3)}
        env = wrap(name, vector.NewMazeEachEpisode(self.make(env_id, options, mode)))
        walker = Walker(env, mode)

        singles: dict[int, Any] = {}

        def seen(seed: int, state: int) -> NDArray[Any]:
            if seed not in singles:
                singles[seed] = wrap(name, gym.make(env_id, layout_seed=seed, **options))
            observation: NDArray[Any] = singles[seed].observation(state)
            return observation

        finals = 0
        for _ in range(15):
            before = walker.seeds.copy()
            walker.step()
            assert walker.observations in env.observation_space
            for i in range(env.num_envs):
                expected = seen(int(walker.seeds[i]), int(walker.states[i]))
                assert equal(walker.observations[i], expected)
                if "final_obs" in walker.infos and walker.infos["_final_obs"][i]:
                    last = int(walker.infos["final_info"]["state"][i])
                    assert equal(walker.infos["final_obs"][i], seen(int(before[i]), last))
                    finals += 1
        assert (finals > 0) == (mode is AutoresetMode.SAME_STEP)
        # All in one maze again: one encoder does for all.
        observations, infos = env.reset(seed=3, options={"layout_seed": 8})
        for i in range(env.num_envs):
            assert equal(observations[i], seen(8, int(infos["state"][i])))

    @in_all_modes
    def test_one_copy_goes_as_the_single_environment(self, mode: AutoresetMode) -> None:
        options = {"shape": (3, 4), "max_episode_steps": 7}
        single = NewMazeEachEpisode(gym.make("TerrainMaze-v0", **options))
        env = vector.NewMazeEachEpisode(
            gym.make_vec("TerrainMaze-v0", 1, autoreset_mode=mode.value, **options)
        )
        state, told = single.reset(seed=5)
        states, infos = env.reset(seed=5)
        rng, episodes = np.random.default_rng(0), 0
        while True:
            assert states[0] == state
            assert infos["layout_seed"][0] == told["layout_seed"]
            over = False
            while not over:
                np.testing.assert_array_equal(infos["action_mask"][0], told["action_mask"])
                np.testing.assert_array_equal(infos["coords"][0], told["coords"])
                action = int(rng.integers(4))
                state, reward, *ends, told = single.step(action)
                states, rewards, terminated, truncated, infos = env.step([action])
                assert rewards[0] == reward
                assert [terminated[0], truncated[0]] == ends
                over = any(ends)
                if not over:
                    assert states[0] == state
            episodes += 1
            if episodes == 10:
                break
            state, told = single.reset()
            if mode is AutoresetMode.DISABLED:
                states, infos = env.reset()
            elif mode is AutoresetMode.NEXT_STEP:
                states, *_, infos = env.step([0])

    @in_all_modes
    def test_a_seed_settles_everything(self, mode: AutoresetMode) -> None:
        def walk(env: Any, seed: int) -> list[Any]:
            walker = Walker(env, mode, seed)
            return [walker.step() for _ in range(30)]

        envs = [vector.NewMazeEachEpisode(self.make(*NEW_MAZES[0], mode)) for _ in range(2)]
        envs[1].reset(seed=9)
        assert walk(envs[0], 1) == walk(envs[1], 1) == walk(envs[0], 1)
        assert walk(envs[0], 1) != walk(envs[1], 2)
        twins = [copy.deepcopy(envs[0]), pickle.loads(pickle.dumps(envs[0]))]
        for twin in twins:
            assert walk(twin, 3) == walk(envs[1], 3)

    def test_a_refused_reset_or_step_takes_no_draw(self) -> None:
        env, other = (
            vector.NewMazeEachEpisode(self.make(*NEW_MAZES[0], AutoresetMode.NEXT_STEP))
            for _ in range(2)
        )
        for each in (env, other):
            each.reset(seed=0)
        for options, message in (
            ({"nothing": 0}, "unknown reset option"),
            ({"reset_mask": [True]}, "reset_mask"),
            ({"layout_seed": [1, 2]}, "one for each of 5, got 2"),
            ({"layout_seed": [1, 2, 3, -4, 5]}, r"sub-environment 3: options\['layout_seed'\].*-4"),
            ({"layout_seed": -1}, "sub-environment 0.*-1"),
        ):
            with pytest.raises((TypeError, ValueError), match=message):
                env.reset(options=options)
        with pytest.raises(ValueError, match="must be in"):
            env.step(np.full(5, 4))
        for _ in range(20):
            for mine, theirs in zip(
                env.step(np.zeros(5, int)), other.step(np.zeros(5, int)), strict=True
            ):
                assert data_equivalence(mine, theirs)
        assert data_equivalence(env.reset(), other.reset())

    def test_copies_share_the_memory_for_pictures(self) -> None:
        envs = gym.make_vec("NDMaze-v0", 8, shape=(2, 2, 2))
        env = vector.ImageObservation(vector.NewMazeEachEpisode(envs))
        env.reset(seed=0)
        assert len(set(map(id, env._encoders))) == 8
        assert sum(encoder._whole_room for encoder in env._encoders) <= 2**26
        shared = gym.make_vec("NDMaze-v0", 8, shape=(2, 2, 2))
        env = vector.ImageObservation(shared)
        for seed in (1, 2):
            env.reset(options={"layout_seed": seed})
            assert len(set(map(id, env._encoders))) == 1

    def test_mazes_that_are_asked_for(self) -> None:
        env = vector.NewMazeEachEpisode(self.make(*NEW_MAZES[1], AutoresetMode.NEXT_STEP))
        env.reset(seed=0)
        _, infos = env.reset()
        env.reset(seed=0)
        _, asked = env.reset(options={"layout_seed": [7, 8, 7, 9, 7]})
        assert asked["layout_seed"].tolist() == [7, 8, 7, 9, 7]
        heights = [single.layout.heights for single in env.unwrapped.single_envs]
        np.testing.assert_array_equal(heights[0], heights[4])
        assert not np.array_equal(heights[0], heights[1])
        _, asked = env.reset(options={"layout_seed": 11})
        assert asked["layout_seed"].tolist() == [11] * 5
        _, again = env.reset()
        assert again["layout_seed"].tolist() == infos["layout_seed"].tolist(), "no draw was taken"

    def test_splits_have_none_in_common(self) -> None:
        for split in (wrappers.TRAIN, wrappers.TEST):
            env = vector.NewMazeEachEpisode(
                gym.make_vec("StandardMaze-v0", 40, shape=(2, 2)), **split
            )
            drawn = {seed for _ in range(5) for seed in env.reset()[1]["layout_seed"].tolist()}
            first, count = split["first_seed"], split["num_mazes"]
            assert drawn <= set(range(first, first + count))
            assert len(drawn) > 100

    def test_pictures_are_of_the_own_maze(self) -> None:
        envs = gym.make_vec("TerrainMaze-v0", 3, shape=(4, 4), render_mode="ansi", start=(1, 2))
        env = vector.NewMazeEachEpisode(envs)
        _, infos = env.reset(seed=0)
        for picture, seed in zip(env.render(), infos["layout_seed"].tolist(), strict=True):
            single = gym.make(
                "TerrainMaze-v0",
                shape=(4, 4),
                layout_seed=seed,
                render_mode="ansi",
                start=(1, 2),
            )
            single.reset(seed=0)
            assert picture == single.render()

    def test_there_is_no_model_of_all(self) -> None:
        env = vector.NewMazeEachEpisode(self.make(*NEW_MAZES[0], AutoresetMode.NEXT_STEP))
        for ask in (
            planners.as_model,
            lambda env: planners.with_regret(env, 0.9),
            lambda env: planners.with_shaping(env, 0.9),
            lambda env: planners.as_model(vector.CoordinateObservation(env)),
        ):
            with pytest.raises(ValueError, match="each copy has a maze of its own"):
                ask(env)
        env.reset(seed=0)
        with pytest.raises(ValueError, match="each copy has a maze of its own"):
            env.unwrapped.transition_model()

    @pytest.mark.parametrize(
        ("make_env", "arguments", "error", "message"),
        [
            (lambda: gym.make("StandardMaze-v0"), {}, TypeError, "expected a vector environment"),
            (lambda: gym.make_vec("DiscretizedCartPole-v0", 2), {}, TypeError, "is no maze"),
            (lambda: gym.make_vec("StandardMaze-v0", 2, layout="S.G"), {}, ValueError, "is drawn"),
            (
                lambda: gym.make_vec("StandardMaze-v0", 2, vectorization_mode="sync"),
                {},
                TypeError,
                "got SyncVectorEnv",
            ),
            (
                lambda: vector.OneHotObservation(gym.make_vec("StandardMaze-v0", 2)),
                {},
                TypeError,
                "in a OneHotObservation; put other wrappers around",
            ),
            (lambda: gym.make_vec("StandardMaze-v0", 2), {"num_mazes": 0}, ValueError, "num_mazes"),
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
            vector.NewMazeEachEpisode(make_env(), **arguments)

    def test_the_bare_environment_takes_layout_seeds_too(self) -> None:
        envs: Any = gym.make_vec("StandardMaze-v0", 3, shape=(3, 3))
        envs.reset(seed=0)
        shared = envs.transition_model()
        envs.reset(options={"layout_seed": [4, 5, 6]})
        kept = [single.layout for single in envs.single_envs]
        mask = np.array([False, True, False])
        envs.reset(options={"layout_seed": np.array([1, 2, 3]), "reset_mask": mask})
        assert [
            single.layout is old for single, old in zip(envs.single_envs, kept, strict=True)
        ] == [
            True,
            False,
            True,
        ]
        assert envs.single_env.transition_model() is shared
        envs.reset(options={"layout_seed": 0})
        assert len(set(map(id, envs.single_envs))) == 1
        np.testing.assert_array_equal(envs.transition_model().move_costs, shared.move_costs)
        given = gym.make_vec("StandardMaze-v0", 2, layout="S.G")
        with pytest.raises(ValueError, match=r"options\['layout_seed'\] has nothing to draw"):
            given.reset(options={"layout_seed": [1, 2]})
        for bad in (np.array([1, 2, -3]), [1, 2, 1.5]):
            with pytest.raises((TypeError, ValueError), match="sub-environment 2"):
                envs.reset(seed=5, options={"layout_seed": bad})
