"""What every environment keeps to: Gymnasium's contract, its own model, errors that help."""

from __future__ import annotations

import copy
import importlib
import json
import math
import os
import pickle
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import scipy.stats
from gymnasium.envs.registration import EnvSpec, load_env_creator
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.utils.env_match import check_environments_match
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order

import aggmaze
import planners
from aggmaze import TabularEnv, TabularMDP
from aggmaze.envs.terrain_maze import TerrainMazeEnv
from aggmaze.layouts.heights import TERRAINS
from aggmaze.layouts.passage_rules import PASSAGE_RULES
from aggmaze.layouts.spanning_tree import GENERATORS
from aggmaze.recipes import TERRAIN_COSTS

Env = gym.Env[Any, Any]
Variant = tuple[str, dict[str, Any]]

BLOCKS = """
    ..#S
    .#..
    G..#
"""
WALLS = """
    +---+---+---+---+
    | S         |###|
    +   +---+   +---+
    |   |           |
    +   +   +---+   +
    |         G |   |
    +---+---+---+---+
"""
HEIGHTS = np.array([[0.5, 3.0, 2.0], [1.5, -1.0, math.nan], [0.0, 0.25, 1.0], [1.0, 1.0, 4.0]])
PIXELS = np.arange(12, dtype=np.uint8).reshape(3, 4) ** 2

ALL_GENERATORS = (*GENERATORS, *PASSAGE_RULES)
MAZES: list[Variant] = [
    ("StandardMaze-v0", {"shape": (5, 4), "p": 0.9}),
    ("StandardMaze-v0", {"shape": (4, 4), "p": 0.2, "loops": 0.5, "start": "uniform"}),
    ("StandardMaze-v0", {"shape": (4, 5), "p": 0.05, "loops": 1.0, "generator": "depth_first"}),
    *(("StandardMaze-v0", {"shape": (5, 4), "generator": each}) for each in PASSAGE_RULES),
    ("StandardMaze-v0", {"shape": (1, 2), "p": 0.9}),
    ("StandardMaze-v0", {"shape": (4, 4), "step_cost": -1.0, "p": 0.9}),
    *(("TerrainMaze-v0", {"shape": (5, 4), "p": 0.9, "terrain": terrain}) for terrain in TERRAINS),
    *(("TerrainMaze-v0", {"shape": (4, 4), "p": 0.2, "cost": cost}) for cost in TERRAIN_COSTS),
    ("TerrainMaze-v0", {"shape": (4, 4), "cost_scale": 1e6, "start": "uniform"}),
    ("NDMaze-v0", {"shape": (6,), "p": 0.9}),
    ("NDMaze-v0", {"shape": (3, 2, 3), "p": 0.2, "loops": 1.0}),
    ("NDMaze-v0", {"shape": (2, 3, 2, 3), "p": 0.9, "start": "uniform"}),
    ("NDMaze-v0", {"shape": (3, 3, 3), "kind": "terrain", "cost": "climb", "p": 0.05}),
    ("NDMaze-v0", {"shape": (3, 3, 2), "goal": [1, 1, 1], "p": 0.9}),
    ("StandardMaze-v0", {"shape": (4, 4), "goal": (1, 2), "start": (3, 0), "p": 0.9}),
    ("StandardMaze-v0", {"layout": WALLS, "p": 0.9}),
    ("StandardMaze-v0", {"layout": BLOCKS, "p": 0.2, "start": "uniform"}),
    ("TerrainMaze-v0", {"layout": BLOCKS, "terrain": "fractal", "p": 0.9}),
    ("TerrainMaze-v0", {"layout": WALLS, "shape": (4, 3), "cost": "climb", "goal": (3, 0)}),
    ("NDMaze-v0", {"layout": WALLS, "p": 0.9, "start": (3, 0)}),
    ("NDMaze-v0", {"layout": BLOCKS, "kind": "terrain", "terrain": "uniform", "p": 0.2}),
]
# What no id makes.
MADE = {"from_heights": TerrainMazeEnv.from_heights, "from_image": TerrainMazeEnv.from_image}
GIVEN: list[Variant] = [
    ("from_heights", {"heights": HEIGHTS, "p": 0.9}),
    ("from_heights", {"heights": HEIGHTS, "start": "uniform", "goal": (2, 1), "cost": "climb"}),
    ("from_image", {"image": PIXELS, "p": 0.2, "start": (0, 2)}),
    ("from_image", {"image": PIXELS, "shape": (5, 4), "scale": False, "cost": "difference"}),
]
MAZES += GIVEN
# Whose moves are no `MoveMDP`, or have no mask, or which have several ends.
OWN_MAP = "S..LL2\n.#..mC\n...#1.\nG....H"
OWN_SIGNS = {"H": -1, "1": 3, "2": 10, "m": {"reward": -0.5, "ends": False}}
WORLDS: list[Variant] = [
    ("GridWorld-v0", {"layout": ["SFFF", "FHFH", "FFFH", "HFFG"], "p": 1 / 3}),
    ("GridWorld-v0", {"layout": "windy-stochastic"}),
    ("GridWorld-v0", {"layout": "cliff", "pays": "leaving"}),
    ("GridWorld-v0", {"layout": "dyna-maze", "slip": "uniform", "bumps": "masked", "p": 0.9}),
    ("GridWorld-v0", {"layout": OWN_MAP, "signs": OWN_SIGNS, "p": 0.8, "step_cost": 0.1}),
    (
        "GridWorld-v0",
        {"layout": OWN_MAP, "signs": OWN_SIGNS, "moves": "king_or_stay", "bumps": "masked"},
    ),
    ("GridWorld-v0", {"layout": [[0, 1], [0, 0]], "goal": (1, 0), "bump_cost": 2}),
]
VARIANTS: list[Variant] = [(env_id, {}) for env_id in aggmaze.ENV_IDS] + MAZES + WORLDS
REGISTERED = [variant for variant in VARIANTS if variant[0] not in MADE]


def is_drawn(variant: Variant) -> bool:
    """Return whether a seed draws any of a maze."""
    env_id, options = variant
    terrain = env_id == "TerrainMaze-v0" or options.get("kind") == "terrain"
    return env_id not in MADE and (terrain or "layout" not in options)


DRAWN = [variant for variant in MAZES if is_drawn(variant)]


def name(variant: Variant) -> str:
    texts = {BLOCKS: "blocks", WALLS: "walls"}
    options = {
        key: f"{value.dtype}" if isinstance(value, np.ndarray) else texts.get(str(value), value)
        for key, value in variant[1].items()
    }
    return "-".join([variant[0], *(f"{key}={value}" for key, value in options.items())])


variants = pytest.mark.parametrize("variant", VARIANTS, ids=map(name, VARIANTS))
registered = pytest.mark.parametrize("variant", REGISTERED, ids=map(name, REGISTERED))
mazes = pytest.mark.parametrize("variant", MAZES, ids=map(name, MAZES))
drawn_mazes = pytest.mark.parametrize("variant", DRAWN, ids=map(name, DRAWN))


def make(variant: Variant, **kwargs: Any) -> Env:
    env_id, options = variant
    if env_id in MADE:
        return MADE[env_id](**options, **kwargs)
    return gym.make(env_id, **options, **kwargs)


def bare(variant: Variant, **kwargs: Any) -> Any:
    """Return the environment without wrappers."""
    return make(variant, **kwargs).unwrapped


def constructor(env_id: str) -> Any:
    """Return the class behind an id: `gymnasium.make` adds words of its own to errors."""
    if env_id in MADE:
        return TerrainMazeEnv
    return load_env_creator(gym.spec(env_id).entry_point)


def render_modes(env_id: str) -> list[str | None]:
    return [None, *constructor(env_id).metadata["render_modes"]]


def picture_of(env: Env) -> Any:
    """Return what an environment shows: pixels, or text."""
    shown = env.render()
    if env.render_mode == "human":
        assert shown is None
        return env.unwrapped.window.pixels()
    return shown


def starts_of(env: Any) -> list[int]:
    """Return the states from which an episode may start: free, and not the goal."""
    return [
        state
        for state in range(env.grid.num_states)
        if state != env.layout.goal
        and (env.layout.blocked is None or not env.layout.blocked[state])
    ]


def rollout(env: Env, seed: int = 0, steps: int = 60, **reset: Any) -> list[Any]:
    """Return all that is observed over random actions, episode after episode."""
    rng = np.random.default_rng(seed)
    seen: list[Any] = [env.reset(seed=seed, **reset)]
    for _ in range(steps):
        seen.append(env.step(int(rng.integers(env.action_space.n))))
        if seen[-1][2] or seen[-1][3]:
            seen.append(env.reset())
    return seen


def walk(env: Env, actions: list[int]) -> list[Any]:
    """Return all that is observed over given actions, from where the environment is."""
    seen = []
    for action in actions:
        seen.append(env.step(action))
        if seen[-1][2] or seen[-1][3]:
            seen.append(env.reset())
    return seen


def same(first: Any, second: Any) -> bool:
    return data_equivalence(first, second, exact=True)


def outcomes(model: TabularMDP, state: int, action: int) -> dict[int, tuple[float, float]]:
    """Return probability and cost by next state, which a maze reaches in one way only."""
    row = state * model.num_actions + action
    entries = range(*model.transitions.indptr[row : row + 2])
    table = {}
    for entry in entries:
        following = int(model.transitions.indices[entry])
        assert following not in table
        cost = model.costs[state, action]
        if model.outcome_costs is not None:
            cost = model.outcome_costs[entry]
        table[following] = float(model.transitions.data[entry]), float(cost)
    return table


class TestGymnasium:
    @pytest.mark.parametrize(
        ("variant", "mode"),
        [(variant, mode) for variant in VARIANTS for mode in render_modes(variant[0])],
        ids=lambda value: name(value) if isinstance(value, tuple) else str(value),
    )
    def test_check_env(self, variant: Variant, mode: str | None) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            env = bare(variant, render_mode=mode)
            # Without a spec, of which there is none, other render modes cannot be made from it.
            check_env(env, skip_render_check=variant[0] in MADE)

    @pytest.mark.parametrize("env_id", aggmaze.ENV_IDS)
    def test_registered(self, env_id: str) -> None:
        spec = gym.spec(env_id)
        assert spec.max_episode_steps == 1000
        assert not spec.nondeterministic
        assert isinstance(spec.entry_point, str)
        assert json.loads(spec.to_json())["id"] == env_id
        assert env_id == f"{spec.name}-v{spec.version}"
        env = gym.make(env_id)
        assert env.metadata["render_fps"] > 0
        assert env.observation_space.start == env.action_space.start == 0

    @registered
    def test_the_registered_limit_truncates(self, variant: Variant) -> None:
        env = make(variant, max_episode_steps=3)
        model = env.unwrapped.transition_model().to_tabular()
        state, _ = env.reset(seed=0)
        truncations = []
        for _ in range(3):
            # An action that cannot end the episode, a bump where there is no other.
            action = next(
                action
                for action in range(model.num_actions)
                if not model.terminal[list(outcomes(model, state, action))].any()
            )
            state, _, terminated, truncated, _ = env.step(action)
            assert not terminated
            truncations.append(truncated)
        assert truncations == [False, False, True]

    @variants
    def test_types(self, variant: Variant) -> None:
        env = make(variant)
        for seen in rollout(env, steps=30):
            state, info = seen[0], seen[-1]
            assert type(state) is int
            assert state in env.observation_space
            if len(seen) == 5:
                assert [type(value) for value in seen[1:4]] == [float, bool, bool]
                assert math.copysign(1.0, seen[1]) == 1.0 or seen[1] < 0.0, "a reward of -0.0"
            self.assert_info(env, state, info)

    @staticmethod
    def assert_info(env: Env, state: int, info: dict[str, Any]) -> None:
        assert type(info["state"]) is int
        assert info["state"] == state
        assert type(info["prob"]) is float
        assert 0.0 < info["prob"] <= 1.0
        mask = info["action_mask"]
        assert mask.dtype == np.int8
        assert mask.shape == (env.action_space.n,)
        assert set(mask.tolist()) <= {0, 1}
        assert mask.any()
        assert np.array_equal(mask, env.unwrapped.transition_model().action_mask[state])
        assert env.action_space.sample(mask) in np.flatnonzero(mask)
        if "coords" in info:
            grid = env.unwrapped.grid
            assert np.issubdtype(info["coords"].dtype, np.integer)
            assert info["coords"].tolist() == list(np.unravel_index(state, grid.shape))

    @mazes
    def test_mazes_tell_coordinates(self, variant: Variant) -> None:
        env = make(variant)
        assert all("coords" in seen[-1] for seen in rollout(env, steps=5))

    @variants
    def test_action_masks(self, variant: Variant) -> None:
        env = make(variant)
        _, info = env.reset(seed=1)
        rng = np.random.default_rng(0)
        for _ in range(20):
            masks = env.get_wrapper_attr("action_masks")()
            assert masks.shape == info["action_mask"].shape
            assert masks.tolist() == info["action_mask"].astype(bool).tolist()
            masks[:] = ~masks  # a fresh array: the environment does not mind
            _, _, terminated, _, info = env.step(int(rng.integers(env.action_space.n)))
            if terminated:
                _, info = env.reset()

    @variants
    def test_what_is_handed_out_is_fresh(self, variant: Variant) -> None:
        untouched = rollout(make(variant), seed=3)
        env = make(variant)
        rng = np.random.default_rng(3)
        infos: list[dict[str, Any]] = []

        def spoil(seen: Any) -> Any:
            kept = copy.deepcopy(seen)
            for value in seen[-1].values():
                if isinstance(value, np.ndarray):
                    value[...] = 1 - value
                    assert not any(
                        np.shares_memory(value, other)
                        for info in infos
                        for other in info.values()
                        if isinstance(other, np.ndarray)
                    )
            infos.append(dict(seen[-1]))
            seen[-1].clear()
            return kept

        spoilt = [spoil(env.reset(seed=3))]
        for _ in range(60):
            spoilt.append(spoil(env.step(int(rng.integers(env.action_space.n)))))
            if spoilt[-1][2] or spoilt[-1][3]:
                spoilt.append(spoil(env.reset()))
        assert same(spoilt, untouched)

    @variants
    def test_close_twice(self, variant: Variant) -> None:
        for mode in render_modes(variant[0]):
            env = make(variant, render_mode=mode)
            env.reset(seed=0)
            if mode is not None:
                env.render()
            env.close()
            env.close()


class TestDeterminism:
    @variants
    def test_a_seed_makes_the_rollout(self, variant: Variant) -> None:
        env = make(variant)
        first = rollout(env, seed=7)
        assert same(rollout(env, seed=7), first)
        assert same(rollout(make(variant), seed=7), first)
        check_environments_match(make(variant), make(variant), num_steps=40, seed=2)

    def test_seeds_differ(self) -> None:
        env = make(("StandardMaze-v0", {"p": 0.5, "start": "uniform"}))
        assert len({repr([seen[0] for seen in rollout(env, seed)]) for seed in range(20)}) == 20

    @variants
    def test_action_spaces_are_seeded_too(self, variant: Variant) -> None:
        drawn = []
        for _ in range(2):
            env = make(variant)
            env.action_space.seed(5)
            env.reset(seed=5)
            drawn.append([int(env.action_space.sample()) for _ in range(30)])
        assert drawn[0] == drawn[1]

    @drawn_mazes
    def test_another_layout_keeps_the_seeds_of_the_spaces(self, variant: Variant) -> None:
        drawn = []
        for _ in range(2):
            env = make(variant)
            env.action_space.seed(5)
            env.observation_space.seed(5)
            env.reset(seed=5, options={"layout_seed": 3})
            drawn.append(
                [
                    (int(env.action_space.sample()), int(env.observation_space.sample()))
                    for _ in range(30)
                ]
            )
        assert drawn[0] == drawn[1]

    @variants
    def test_two_at_once_do_not_disturb_each_other(self, variant: Variant) -> None:
        alone = [rollout(make(variant), seed=seed) for seed in (1, 2)]
        envs = [make(variant, render_mode=mode) for mode in ("rgb_array", "ansi")]
        rngs = [np.random.default_rng(seed) for seed in (1, 2)]
        seen = [[env.reset(seed=seed)] for env, seed in zip(envs, (1, 2), strict=True)]
        for step in range(60):
            for env, rng, own in zip(envs, rngs, seen, strict=True):
                own.append(env.step(int(rng.integers(env.action_space.n))))
                if step % 20 == 0:
                    env.render()
                if own[-1][2] or own[-1][3]:
                    own.append(env.reset())
            if step == 30:
                extra = make(variant, render_mode="rgb_array")
                extra.reset(seed=9)
                extra.render()
                extra.close()
        assert same(seen, alone)

    @variants
    def test_rendering_does_not_disturb(self, variant: Variant) -> None:
        plain = rollout(make(variant), seed=4, steps=20)
        for mode in render_modes(variant[0])[1:]:
            env = make(variant, render_mode=mode)
            rng = np.random.default_rng(4)
            seen = [env.reset(seed=4)]
            for _ in range(20):
                env.render()
                seen.append(env.step(int(rng.integers(env.action_space.n))))
                if seen[-1][2] or seen[-1][3]:
                    seen.append(env.reset())
            assert same(seen, plain)


DUPLICATES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda env: pickle.loads(pickle.dumps(env)),
}


class TestCopies:
    @variants
    @pytest.mark.parametrize("wrapped", [True, False], ids=["wrapped", "bare"])
    @pytest.mark.parametrize("duplicate", DUPLICATES.values(), ids=DUPLICATES)
    def test_go_on_as_the_original(self, variant: Variant, wrapped: bool, duplicate: Any) -> None:
        env: Any = make(variant, render_mode="rgb_array")
        env = env if wrapped else env.unwrapped
        env.reset(seed=6)
        walk(env, [k % env.action_space.n for k in range(7)])
        frame = env.render()
        twin = duplicate(env)
        actions = np.random.default_rng(1).integers(env.action_space.n, size=50).tolist()
        np.testing.assert_array_equal(twin.render(), frame)
        ahead = walk(twin, actions)  # first the copy: it must not move the original
        np.testing.assert_array_equal(env.render(), frame)
        assert same(walk(env, actions), ahead)
        np.testing.assert_array_equal(env.render(), twin.render())

    @drawn_mazes
    def test_a_copy_can_change_its_maze_alone(self, variant: Variant) -> None:
        env = bare(variant)
        env.reset(seed=0)
        model, layout = env.transition_model(), env.layout
        twin = copy.deepcopy(env)
        twin.reset(options={"layout_seed": 12})
        assert env.transition_model() is model
        assert env.layout is layout
        assert same(rollout(env), rollout(bare(variant)))

    @variants
    def test_pickles_do_not_hold_pictures(self, variant: Variant) -> None:
        env = bare(variant, render_mode="rgb_array")
        env.reset(seed=0)
        before = len(pickle.dumps(env))
        frame = env.render()
        assert len(pickle.dumps(env)) < before + frame.nbytes / 10

    @registered
    def test_json_round_trip(self, variant: Variant) -> None:
        env = make(variant, render_mode="ansi")
        text = env.spec.to_json()
        spec = EnvSpec.from_json(text)
        assert spec.to_json() == text
        again = gym.make(spec)
        assert again.spec.to_json() == text
        assert again.render_mode == "ansi"
        assert same(rollout(again), rollout(env))
        assert again.render() == env.render()

    @registered
    def test_the_spec_makes_the_same(self, variant: Variant) -> None:
        env = make(variant)
        assert same(rollout(env.spec.make()), rollout(env))


FRESH_INTERPRETER = """
import json, sys
import gymnasium as gym

before = "aggmaze" in sys.modules
seen = {}
for env_id in json.loads(sys.argv[1]):
    env = gym.make("aggmaze:" + env_id, render_mode="rgb_array")
    state, info = env.reset(seed=0)
    states = [state]
    for k in range(20):
        state, *_ = env.step(k % int(env.action_space.n))
        states.append(state)
    seen[env_id] = [states, list(env.render().shape)]
    env.close()
pictures = [name for name in sys.modules if name.split(".")[0] in ("pygame", "matplotlib")]

import importlib

import aggmaze

importlib.reload(aggmaze)
for name in [name for name in sys.modules if name.split(".")[0] == "aggmaze"]:
    del sys.modules[name]
import aggmaze

plain = gym.make(aggmaze.ENV_IDS[0]).reset(seed=0)[0]
planned = [name for name in sys.modules if name.split(".")[0] == "planners"]
print(json.dumps([before, seen, pictures, plain, planned]))
"""


class TestRegistration:
    def test_in_a_fresh_interpreter(self, tmp_path: Path) -> None:
        headless = {"DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER", "PYTHONPATH"}
        run = subprocess.run(
            [sys.executable, "-W", "error", "-c", FRESH_INTERPRETER, json.dumps(aggmaze.ENV_IDS)],
            cwd=tmp_path,
            env={key: value for key, value in os.environ.items() if key not in headless}
            | {"PYTHONPATH": str(Path(aggmaze.__file__).parents[1])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        assert run.stderr == ""
        before, seen, pictures, plain, planned = json.loads(run.stdout)
        assert not before
        assert pictures == []
        assert planned == []
        assert list(seen) == list(aggmaze.ENV_IDS)
        assert plain == seen[aggmaze.ENV_IDS[0]][0][0]
        for env_id, (states, shape) in seen.items():
            env = gym.make(env_id, render_mode="rgb_array")
            expected = [env.reset(seed=0)[0]]
            expected += [env.step(k % int(env.action_space.n))[0] for k in range(20)]
            assert states == expected
            assert shape == list(env.render().shape)

    def test_registering_again_changes_nothing(self) -> None:
        before = {env_id: gym.spec(env_id) for env_id in aggmaze.ENV_IDS}
        importlib.reload(aggmaze)
        assert {env_id: gym.spec(env_id) for env_id in aggmaze.ENV_IDS} == before

    @pytest.mark.parametrize("env_id", aggmaze.ENV_IDS)
    def test_with_the_module_as_prefix(self, env_id: str) -> None:
        assert same(rollout(gym.make(f"aggmaze:{env_id}")), rollout(gym.make(env_id)))


class TestModel:
    @variants
    def test_rows_sum_to_1(self, variant: Variant) -> None:
        model = bare(variant).transition_model()
        for table in (model.to_tabular(), model.rows(0, model.num_states)):
            sums = np.asarray(table.transitions.sum(axis=1)).reshape(-1)
            np.testing.assert_allclose(sums, 1.0, rtol=0, atol=1e-12)
            assert (table.transitions.data >= 0).all()
        assert model.validate() is model
        assert model.to_tabular().validate()
        assert model.initial.sum() == pytest.approx(1.0, abs=1e-12)

    @variants
    def test_steps_are_drawn_from_the_model(self, variant: Variant) -> None:
        env = bare(variant)
        model = env.transition_model().to_tabular()
        env.reset(seed=11)
        draws = 1500
        for state in self.states_to_try(model):
            for action in range(model.num_actions):
                expected = outcomes(model, state, action)
                counts = dict.fromkeys(expected, 0)
                for _ in range(draws if len(expected) > 1 else 5):
                    env.reset(options={"state": state})
                    following, reward, terminated, _, info = env.step(action)
                    probability, cost = expected[following]
                    assert reward == -cost
                    assert terminated == model.terminal[following]
                    assert info["prob"] == pytest.approx(probability, abs=1e-12)
                    counts[following] += 1
                if len(expected) > 1:
                    probabilities = np.array([probability for probability, _ in expected.values()])
                    test = scipy.stats.chisquare(
                        list(counts.values()), draws * probabilities / probabilities.sum()
                    )
                    assert test.pvalue > 1e-5, (state, action, counts, expected)

    @staticmethod
    def states_to_try(model: TabularMDP) -> list[int]:
        """Return three states: of the most actions, of the fewest, and one in the middle."""
        actions = np.where(model.terminal, 0, model.action_mask.sum(axis=1))
        order = np.argsort(actions, kind="stable")
        order = order[np.count_nonzero(actions == 0) :]
        return sorted({int(order[0]), int(order[len(order) // 2]), int(order[-1])})

    @mazes
    def test_slips_know_no_direction_in_the_tables(self, variant: Variant) -> None:
        env = bare(variant)
        model, p = env.transition_model(), variant[1].get("p", 1.0)
        table = model.to_tabular()
        successors, _ = env.grid.neighbours()
        for state in np.flatnonzero(~model.terminal):
            available = np.flatnonzero(env.layout.available()[state])
            for action in range(model.num_actions):
                seen = {
                    following: probability
                    for following, (probability, _) in outcomes(table, state, action).items()
                }
                if action not in available:
                    expected = {int(state): 1.0}
                else:
                    slip = (1 - p) / max(1, len(available) - 1)
                    expected = {int(successors[state, move]): slip for move in available}
                    expected[int(successors[state, action])] = p if len(available) > 1 else 1.0
                    expected = {key: value for key, value in expected.items() if value}
                assert seen == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize("p", [0.9, 0.2, 0.05])
    @pytest.mark.parametrize("shape", [(3,), (3, 3), (3, 3, 3)])
    @pytest.mark.parametrize("kind", ["standard", "terrain"])
    def test_slips_know_no_direction_in_steps(
        self, kind: str, shape: tuple[int, ...], p: float
    ) -> None:
        loops = {"loops": 1.0} if kind == "standard" else {}
        env = bare(("NDMaze-v0", {"shape": shape, "kind": kind, "p": p, **loops}))
        env.reset(seed=2)
        middle, draws, n = (1,) * len(shape), 1500, 2 * len(shape)
        start = env.grid.state(middle)
        moves = {}
        for move in range(n):
            there = [1] * len(shape)
            there[move // 2] += 1 if move % 2 else -1
            moves[env.grid.state(there)] = move
        happened = np.zeros((n, n))
        for action in range(n):
            for _ in range(draws):
                env.reset(options={"state": start})
                happened[action, moves[env.step(action)[0]]] += 1
        chosen = happened.diagonal()
        # Slips taken together over all actions, by direction, and each action's own.
        slipped = happened.sum(axis=0) - chosen
        assert scipy.stats.binomtest(int(chosen.sum()), draws * n, p).pvalue > 1e-5
        assert scipy.stats.chisquare(slipped).pvalue > 1e-5
        for action in range(n):
            others = np.delete(happened[action], action)
            if len(others) > 1:
                assert scipy.stats.chisquare(others).pvalue > 1e-5
            assert scipy.stats.binomtest(int(chosen[action]), draws, p).pvalue > 1e-5

    @pytest.mark.parametrize(
        "variant",
        [
            *MAZES,
            ("StandardMaze-v0", {"shape": (1, 2)}),
            ("StandardMaze-v0", {"shape": (2, 1), "step_cost": -1.0, "goal_reward": 0.0}),
            ("StandardMaze-v0", {"shape": (5, 5), "step_cost": -1.0, "goal_reward": 2.0}),
            ("StandardMaze-v0", {"shape": (5, 5), "step_cost": 1e9, "goal_reward": 1e12}),
            ("StandardMaze-v0", {"shape": (5, 5), "cost_scale": 1e100, "p": 0.9}),
            ("StandardMaze-v0", {"shape": (5, 5), "cost_scale": 1e-100, "p": 0.1}),
            ("StandardMaze-v0", {"shape": (5, 5), "goal_reward": -1e4}),
            ("StandardMaze-v0", {"shape": (4, 4), "step_cost": 0.0, "goal_reward": 0.0}),
            ("TerrainMaze-v0", {"shape": (5, 5), "step_cost": -5.0, "p": 0.9}),
            ("TerrainMaze-v0", {"shape": (5, 5), "cost": "difference", "goal_reward": -1e3}),
        ],
        ids=name,
    )
    def test_the_mask_does_not_change_the_optimum(self, variant: Variant) -> None:
        model = bare(variant).transition_model()
        table = model.to_tabular()
        without = TabularMDP(
            table.transitions,
            table.costs,
            terminal=table.terminal,
            initial=table.initial,
            outcome_costs=table.outcome_costs,
        )
        assert without.action_mask.all()
        for gamma in (0.5, 0.97):
            masked, free = (
                planners.solve(each, gamma=gamma, tol=1e-9) for each in (model, without)
            )
            assert masked.status == free.status == "converged"
            atol = masked.bound + free.bound
            np.testing.assert_allclose(masked.values, free.values, rtol=0, atol=atol)
            sparse = planners.solve(table, gamma=gamma, tol=1e-9)
            atol = masked.bound + sparse.bound
            np.testing.assert_allclose(masked.values, sparse.values, rtol=0, atol=atol)


class TestLayouts:
    @pytest.mark.parametrize(
        "variant",
        [
            *(("StandardMaze-v0", {"shape": (7, 6), "generator": each}) for each in ALL_GENERATORS),
            ("StandardMaze-v0", {"shape": (6, 6), "loops": 0.2, "p": 0.5}),
            *(("TerrainMaze-v0", {"shape": (5, 6), "terrain": each}) for each in TERRAINS),
            ("NDMaze-v0", {"shape": (9,)}),
            *(("NDMaze-v0", {"shape": (3, 3, 2, 2), "generator": each}) for each in ALL_GENERATORS),
            ("NDMaze-v0", {"shape": (4, 3, 3), "kind": "terrain"}),
        ],
        ids=name,
    )
    def test_every_state_reaches_the_goal_for_200_seeds(self, variant: Variant) -> None:
        env = bare(variant)
        env_id, options = variant
        is_tree = options.get("kind", env_id) in ("StandardMaze-v0", "NDMaze-v0", "standard")
        is_tree &= "loops" not in options
        for seed in range(200):
            env.reset(options={"layout_seed": seed})
            graph = env.transition_model().successor_graph()
            reaching = breadth_first_order(
                graph.T.tocsr(), env.layout.goal, return_predecessors=False
            )
            assert len(reaching) == env.grid.num_states, f"layout_seed={seed}"
            if is_tree:
                assert env.layout.num_passages == env.grid.num_states - 1

    @mazes
    def test_the_seed_of_an_episode_never_changes_the_maze(self, variant: Variant) -> None:
        env = bare(variant)
        model, layout = env.transition_model(), env.layout
        passages, costs = layout.passages.copy(), model.move_costs.copy()
        for seed in (None, 0, 1, 2**31):
            env.reset(seed=seed)
            env.step(0)
            np.testing.assert_array_equal(env.layout.passages, passages)
            np.testing.assert_array_equal(env.transition_model().move_costs, costs)
        assert env.transition_model() is model
        assert env.layout is layout

    @drawn_mazes
    def test_the_layout_seed_makes_the_maze(self, variant: Variant) -> None:
        def fingerprint(env: Any) -> tuple[bytes, bytes]:
            return env.layout.passages.tobytes(), env.transition_model().move_costs.tobytes()

        made = [fingerprint(bare(variant, layout_seed=seed)) for seed in range(12)]
        assert made[0] == fingerprint(bare(variant))
        env = bare(variant)
        for seed in (5, 0, 11, np.int64(5)):
            env.reset(options={"layout_seed": seed})
            assert fingerprint(env) == made[int(seed)]
            env.reset(seed=99)  # kept from now on
            assert fingerprint(env) == made[int(seed)]
        options = variant[1]
        one_maze = options.get("loops") == 1.0 or options.get("shape") in ((1, 2), (6,))
        assert len(set(made)) == (1 if one_maze else 12)

    @drawn_mazes
    def test_another_layout_is_drawn_in_pictures(self, variant: Variant) -> None:
        for mode in render_modes(variant[0])[1:]:
            env = bare(variant, render_mode=mode)
            env.reset(options={"state": 1})
            env.render()
            env.reset(options={"layout_seed": 7, "state": 1})
            fresh = bare(variant, render_mode=mode, layout_seed=7)
            fresh.reset(options={"state": 1})
            assert np.array_equal(env.render(), fresh.render())


class TestResetOptions:
    @mazes
    def test_start_anywhere_but_at_the_goal(self, variant: Variant) -> None:
        env = bare(variant)
        seeded = {"layout_seed": 0} if is_drawn(variant) else {}
        for state in starts_of(env):
            coords = env.grid.coords(state)
            for options in (
                {"state": state},
                {"state": np.int64(state)},
                {"state": np.array(state)},
                {"coords": tuple(coords.tolist())},
                {"coords": coords},
                {"coords": coords.tolist()} | seeded,
            ):
                given = copy.deepcopy(options)
                start, info = env.reset(options=options)
                assert start == info["state"] == state
                assert info["prob"] == 1.0
                assert same(options, given)

    REFUSED = (
        ({"state": 0}, ValueError, r"state.* 0 is terminal"),
        ({"state": 12}, ValueError, r"state.*\[0, 12\), got 12"),
        ({"state": -1}, ValueError, r"state.*\[0, 12\), got -1"),
        ({"state": 1.0}, TypeError, r"state.*integer.*got 1\.0"),
        ({"state": None}, TypeError, r"state.*integer.*got None"),
        ({"state": "1"}, TypeError, r"state.*integer.*got '1'"),
        ({"state": [1]}, TypeError, r"state.*integer.*got \[1\]"),
        ({"coords": (0, 0)}, ValueError, "terminal|goal"),
        ({"coords": (4, 0)}, ValueError, r"coords \(4, 0\).*4 on axis 0 is not in \[0, 4\)"),
        ({"coords": (0, -1)}, ValueError, r"coords \(0, -1\).*-1 on axis 1 is not in \[0, 3\)"),
        ({"coords": (1, 1, 1)}, ValueError, r"coords must be 2 integers.*got \(1, 1, 1\)"),
        ({"coords": (1.0, 1.0)}, ValueError, r"coords must be 2 integers.*got \(1\.0, 1\.0\)"),
        ({"coords": 5}, ValueError, r"coords must be 2 integers.*got 5"),
        ({"coords": None}, ValueError, r"coords must be 2 integers.*got None"),
        ({"coords": "ab"}, ValueError, r"coords must be 2 integers.*got 'ab'"),
        ({"state": 4, "coords": (1, 1)}, ValueError, "state.*coords.*not both"),
        ({"layout": 4}, ValueError, "'layout'.*layout_seed, state, coords"),
        ({"state": 4, "seed": 4}, ValueError, "'seed'.*layout_seed, state, coords"),
        ({"layout_seed": -1}, ValueError, "layout_seed must be at least 0, got -1"),
        ({"layout_seed": 1.5}, TypeError, r"layout_seed must be an integer.*got 1\.5"),
        ({"layout_seed": None}, TypeError, r"layout_seed must be an integer.*got None"),
    )

    @pytest.mark.parametrize(("options", "error", "message"), REFUSED)
    @pytest.mark.parametrize("layout_seed", [None, 8])
    def test_a_refused_reset_changes_nothing(
        self,
        options: dict[str, Any],
        error: type[Exception],
        message: str,
        layout_seed: int | None,
    ) -> None:
        variant = "StandardMaze-v0", {"shape": (4, 3), "p": 0.7, "start": "uniform"}
        if layout_seed is not None:
            options = {"layout_seed": layout_seed} | options
        self.assert_unchanged(variant, error, message, seed=3, options=options)

    @pytest.mark.parametrize("seed", [-1, 0.5, "a"])
    def test_nor_does_one_with_a_seed_that_is_none(self, seed: Any) -> None:
        variant = "StandardMaze-v0", {"shape": (4, 3), "p": 0.7, "start": "uniform"}
        for options in (None, {"state": 3}, {"layout_seed": 8}, {"layout_seed": 8, "state": 3}):
            self.assert_unchanged(
                variant, gym.error.Error, "Seed must be", seed=seed, options=options
            )

    @staticmethod
    def assert_unchanged(
        variant: Variant, error: type[Exception], message: str, **reset: Any
    ) -> None:
        """Check that a reset is refused, and that all goes on as if it had not been tried."""
        env, twin = bare(variant, render_mode="ansi"), bare(variant, render_mode="ansi")
        for each in (env, twin):
            each.reset(seed=1)
            each.step(1)
            each.action_space.seed(1)
        model, layout = env.transition_model(), env.layout
        with pytest.raises(error, match=message):
            env.reset(**reset)
        assert env.transition_model() is model
        assert env.layout is layout
        assert env.render() == twin.render()
        assert env.action_masks().tolist() == twin.action_masks().tolist()
        assert env.action_space.sample() == twin.action_space.sample()
        actions = [k % 4 for k in range(30)]
        assert same(walk(env, actions), walk(twin, actions))

    @pytest.mark.parametrize(
        "variant",
        [
            ("StandardMaze-v0", {"layout": BLOCKS}),
            ("TerrainMaze-v0", {"layout": BLOCKS}),
            ("NDMaze-v0", {"layout": BLOCKS}),
            ("from_heights", {"heights": HEIGHTS}),
        ],
        ids=name,
    )
    def test_blocked_positions_are_refused(self, variant: Variant) -> None:
        blocked = np.flatnonzero(bare(variant).layout.blocked)
        assert len(blocked) > 0
        for state in blocked.tolist():
            point = bare(variant).grid.coords(state).tolist()
            for key, value in (("state", state), ("coords", point)):
                self.assert_unchanged(
                    variant,
                    ValueError,
                    rf"options\['{key}'\] = {re.escape(str(value))} is blocked",
                    options={key: value},
                )

    @pytest.mark.parametrize(
        "variant", [variant for variant in MAZES if not is_drawn(variant)], ids=name
    )
    def test_nothing_is_drawn_of_what_is_given(self, variant: Variant) -> None:
        for seed in (0, 3):
            self.assert_unchanged(
                variant,
                ValueError,
                r"options\['layout_seed'\] has nothing to draw: .*text.*array.*picture",
                options={"layout_seed": seed},
            )

    def test_a_plain_model_takes_a_state(self) -> None:
        model = bare(("StandardMaze-v0", {"shape": (3, 3), "p": 0.5})).transition_model()
        for each in (model, model.to_tabular()):
            env = TabularEnv(each)
            assert env.reset(options={"state": 4})[0] == 4
            with pytest.raises(ValueError, match=r"'coords'.*allowed: state"):
                env.reset(options={"coords": (1, 1)})
            with pytest.raises(ValueError, match="render_mode must be None, got 'ansi'"):
                TabularEnv(each, render_mode="ansi")


class TestPlainModels:
    @mazes
    def test_walk_as_the_maze_does(self, variant: Variant) -> None:
        maze = bare(variant)
        plain = TabularEnv(maze.transition_model())
        for ours, theirs in zip(rollout(plain), rollout(maze), strict=True):
            assert theirs[-1].pop("coords") is not None
            assert same(ours, theirs)


class TestActions:
    @variants
    @pytest.mark.parametrize(
        ("action", "error"),
        [
            (-1, ValueError),
            (10**6, ValueError),
            (np.int64(-1), ValueError),
            (np.array(10**6), ValueError),
            (0.0, TypeError),
            (1.5, TypeError),
            (np.float64(1.0), TypeError),
            (np.array(1.0), TypeError),
            (np.array([1]), TypeError),
            (math.nan, TypeError),
            (None, TypeError),
            ("0", TypeError),
            ((0,), TypeError),
        ],
        ids=repr,
    )
    def test_other_actions_are_refused(
        self, variant: Variant, action: Any, error: type[Exception]
    ) -> None:
        env, twin = bare(variant), bare(variant)
        for each in (env, twin):
            each.reset(seed=0)
        with pytest.raises(error, match=rf"action must be .*\[0, {env.action_space.n}\), got "):
            env.step(action)
        assert same(walk(env, [0, 1] * 5), walk(twin, [0, 1] * 5))

    @variants
    @pytest.mark.parametrize(
        "cast", [np.int64, np.uint8, np.array, lambda action: np.array(action, dtype=np.int32)]
    )
    def test_integers_of_numpy_will_do(self, variant: Variant, cast: Any) -> None:
        env, twin = make(variant), make(variant)
        for each in (env, twin):
            each.reset(seed=0)
        actions = [k % env.unwrapped.action_space.n for k in range(12)]
        assert same(walk(env, [cast(action) for action in actions]), walk(twin, actions))


class TestRendering:
    @variants
    def test_frames(self, variant: Variant) -> None:
        env = make(variant, render_mode="rgb_array")
        env.reset(seed=0)
        frame = env.render()
        assert frame.dtype == np.uint8
        assert frame.ndim == 3
        assert frame.shape[2] == 3
        assert min(frame.shape[:2]) > 0
        assert frame.flags.c_contiguous
        assert frame.flags.writeable
        again = env.render()
        np.testing.assert_array_equal(frame, again)
        assert not np.shares_memory(frame, again)
        kept = frame.copy()
        frame[:] = 0
        np.testing.assert_array_equal(env.render(), kept)

    @variants
    def test_text(self, variant: Variant) -> None:
        env = make(variant, render_mode="ansi")
        env.reset(seed=0)
        text = env.render()
        assert type(text) is str
        assert text == env.render()
        assert "A" in text

    @mazes
    def test_the_agent_is_shown_where_it_is(self, variant: Variant) -> None:
        for mode in render_modes(variant[0])[1:]:
            env = bare(variant, render_mode=mode)
            pictures = []
            for state in starts_of(env):
                env.reset(options={"state": state})
                picture = picture_of(env)
                pictures.append(picture if mode == "ansi" else picture.tobytes())
            assert len(set(pictures)) == len(starts_of(env))
            env.close()

    @mazes
    def test_arrival_can_be_shown(self, variant: Variant) -> None:
        for mode in render_modes(variant[0])[1:]:
            env = bare(variant, render_mode=mode)
            model, goal = env.transition_model(), env.layout.goal
            ways_in = np.argwhere(model.available & (model.successors == goal))
            state, action = (int(x) for x in ways_in[0])
            env.reset(seed=0, options={"state": state})
            before = picture_of(env)
            while not env.step(action)[2]:  # slips, at worst 19 times out of 20
                env.reset(options={"state": state})
            after = picture_of(env)
            assert type(after) is type(before)
            assert not np.array_equal(after, before)
            env.close()

    @pytest.mark.parametrize("env_id", aggmaze.ENV_IDS)
    def test_lists_come_for_free(self, env_id: str) -> None:
        for mode in ("rgb_array", "ansi"):
            env = gym.make(env_id, render_mode=f"{mode}_list")
            env.reset(seed=0)
            env.step(0)
            assert len(env.render()) == 2

    @pytest.mark.parametrize("env_id", aggmaze.ENV_IDS)
    @pytest.mark.parametrize("direct", [True, False], ids=["constructed", "made"])
    def test_without_a_mode_there_is_a_warning(self, env_id: str, direct: bool) -> None:
        env = constructor(env_id)() if direct else gym.make(env_id)
        env.reset(seed=0)
        with pytest.warns(UserWarning, match="without specifying any render mode"):
            assert env.unwrapped.render() is None

    @pytest.mark.parametrize("env_id", aggmaze.ENV_IDS)
    @pytest.mark.parametrize("mode", ["rgb", "", "HUMAN", 3])
    def test_other_modes_are_refused_at_once(self, env_id: str, mode: Any) -> None:
        with pytest.raises(ValueError, match=rf"render_mode must be .*ansi.*None, got {mode!r}"):
            constructor(env_id)(render_mode=mode)


NAN, INF = math.nan, math.inf
BAD_ARGUMENTS: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    *(
        (env_id, options, error, message)
        for env_id in ("StandardMaze-v0", "TerrainMaze-v0", "NDMaze-v0")
        for options, error, message in (
            ({"shape": (0, 5)}, ValueError, r"shape.*at least 1.*got 0 on axis 0 of \(0, 5\)"),
            ({"shape": (5, -1)}, ValueError, r"shape.*at least 1.*got -1 on axis 1"),
            ({"shape": ()}, ValueError, "shape.*got 0"),
            ({"shape": (2,) * 9}, ValueError, "shape.*1 to 8.*got 9"),
            ({"shape": (1, 1)}, ValueError, r"shape \(1, 1\).*beside the goal"),
            ({"shape": (2.5, 3)}, TypeError, r"shape.*integers.*\(2\.5, 3\)"),
            ({"shape": 20}, TypeError, "shape.*sequence of integers.*got 20"),
            ({"shape": "20"}, TypeError, "shape.*integers"),
            ({"shape": None}, TypeError, "shape.*sequence of integers.*got None"),
            *(
                ({"p": p}, ValueError, rf"p must be in \(0, 1\], got {p}")
                for p in (0, 0.0, -0.1, 1.5, NAN, INF)
            ),
            ({"p": "0.9"}, (TypeError, ValueError), r"p must be .*\(0, 1\].*got '0\.9'"),
            ({"p": None}, (TypeError, ValueError), r"p must be .*\(0, 1\].*got None"),
            ({"start": "middle"}, ValueError, "start must be .*corner.*uniform.*got 'middle'"),
            ({"start": None}, ValueError, "start must be .*corner.*uniform.*coordinates.*got None"),
            ({"start": 5}, ValueError, "start must be .*corner.*uniform.*coordinates.*got 5"),
            (
                {"shape": (4, 3), "start": (4, 0)},
                ValueError,
                r"start=\(4, 0\).*4 on axis 0 is not in \[0, 4\)",
            ),
            (
                {"shape": (4, 3), "start": [1, 1, 1]},
                ValueError,
                r"start=\[1, 1, 1\].*must be 2 integers",
            ),
            (
                {"shape": (4, 3), "start": (1.5, 1)},
                ValueError,
                r"start=\(1\.5, 1\).*must be 2 integers",
            ),
            ({"shape": (4, 3), "start": (0, 0)}, ValueError, r"start=\(0, 0\) is the goal"),
            (
                {"shape": (4, 3), "goal": (0, 3)},
                ValueError,
                r"goal=\(0, 3\).*3 on axis 1 is not in \[0, 3\)",
            ),
            ({"shape": (4, 3), "goal": 5}, ValueError, r"goal=5.*must be 2 integers"),
            ({"shape": (4, 3), "goal": "ab"}, ValueError, r"goal='ab'.*must be 2 integers"),
            (
                {"shape": (4, 3), "goal": (2, 1), "start": (2, 1)},
                ValueError,
                r"start=\(2, 1\) is the goal",
            ),
            ({"layout": 3}, TypeError, "layout must be a maze as text, or None, got int"),
            ({"layout": ""}, ValueError, "the text is empty"),
            ({"layout": "G.x"}, ValueError, "line 1, column 3: 'x' is not among"),
            ({"layout": BLOCKS, "shape": (3, 4)}, ValueError, r"\(3, 4\) differs.*\(4, 3\)"),
            ({"layout": BLOCKS, "goal": (1, 1)}, ValueError, r"goal at \(1, 1\) is blocked"),
            ({"layout": BLOCKS, "start": (1, 1)}, ValueError, r"start=\(1, 1\) is blocked"),
            ({"layout": BLOCKS, "start": [0, 0]}, ValueError, r"start=\(0, 0\) is the goal"),
            ({"layout": BLOCKS, "goal": (3, 2)}, ValueError, r"start=\(3, 2\) is the goal"),
            (
                {"layout": "G.\n.#"},
                ValueError,
                r"start='corner' is the position \(1, 0\), which is blocked.*give start=",
            ),
            ({"step_cost": NAN}, ValueError, "step_cost must be .*finite.*got nan"),
            ({"step_cost": INF}, ValueError, "step_cost must be .*finite.*got inf"),
            ({"step_cost": "1"}, ValueError, "step_cost must be .*finite.*got '1'"),
            ({"goal_reward": NAN}, ValueError, "goal_reward must be .*finite.*got nan"),
            ({"goal_reward": -INF}, ValueError, "goal_reward must be .*finite.*got -inf"),
            ({"goal_reward": None}, ValueError, "goal_reward must be .*finite.*got None"),
            ({"cost_scale": 0}, ValueError, "cost_scale must be positive and finite, got 0"),
            (
                {"cost_scale": -1.0},
                ValueError,
                r"positive and finite, got -1\.0",
            ),
            ({"cost_scale": NAN}, ValueError, "cost_scale must be .*finite.*got nan"),
            ({"cost_scale": INF}, ValueError, "cost_scale must be .*finite.*got inf"),
            ({"cost_scale": 1e200, "step_cost": 1e200}, ValueError, r"cost_scale.*1e\+200"),
            ({"layout_seed": -1}, ValueError, "layout_seed must be at least 0, got -1"),
            ({"layout_seed": 1.0}, TypeError, r"layout_seed must be an integer.*got 1\.0"),
            ({"layout_seed": None}, TypeError, "layout_seed must be an integer.*got None"),
            ({"layout_seed": "3"}, TypeError, "layout_seed must be an integer.*got '3'"),
        )
    ),
    *(
        (env_id, {"shape": shape}, ValueError, f"shape must have 2 axes, got {len(shape)}")
        for env_id in ("StandardMaze-v0", "TerrainMaze-v0")
        for shape in ((5,), (3, 3, 3))
    ),
    *(
        (env_id, options, error, message)
        for env_id in ("StandardMaze-v0", "NDMaze-v0")
        for options, error, message in (
            (
                {"generator": "prim"},
                ValueError,
                "generator must be .*kruskal.*depth_first.*got 'prim'",
            ),
            ({"generator": 3}, ValueError, "generator must be .*kruskal.*got 3"),
            *(
                ({"loops": loops}, ValueError, rf"loops must be in \[0, 1\], got {loops}")
                for loops in (-0.1, 1.1, NAN, INF)
            ),
            ({"loops": "all"}, (TypeError, ValueError), r"loops must be .*\[0, 1\].*got 'all'"),
            (
                {"layout": WALLS, "generator": "depth_first"},
                ValueError,
                "generator='depth_first' does not go with layout",
            ),
            ({"layout": WALLS, "loops": 0.5}, ValueError, r"loops=0\.5 does not go with layout"),
            ({"layout": WALLS, "layout_seed": 3}, ValueError, "layout_seed=3 has nothing to draw"),
        )
    ),
    *(
        (env_id, options | kind, error, message)
        for env_id, kind in (("TerrainMaze-v0", {}), ("NDMaze-v0", {"kind": "terrain"}))
        for options, error, message in (
            ({"terrain": "hilly"}, ValueError, "terrain must be .*smooth.*uniform.*got 'hilly'"),
            (
                {"cost": "steep"},
                ValueError,
                "cost must be .*shifted.*difference.*climb.*got 'steep'",
            ),
            ({"smoothness": -1}, ValueError, "smoothness must be .*got -1"),
            ({"smoothness": NAN}, ValueError, "smoothness must be .*got nan"),
            ({"smoothness": "2"}, (TypeError, ValueError), "smoothness must be .*got '2'"),
            (
                {"terrain": "uniform", "smoothness": 2},
                ValueError,
                "smoothness.*'smooth'.*'uniform'",
            ),
            (
                {"terrain": "fractal", "smoothness": 2},
                ValueError,
                "smoothness.*'smooth'.*'fractal'",
            ),
        )
    ),
    ("NDMaze-v0", {"kind": "swamp"}, ValueError, "kind must be .*standard.*terrain.*got 'swamp'"),
    ("NDMaze-v0", {"terrain": "smooth"}, ValueError, "terrain='smooth'.*'terrain'.*'standard'"),
    ("NDMaze-v0", {"smoothness": 1.0}, ValueError, r"smoothness=1\.0.*'terrain'.*'standard'"),
    ("NDMaze-v0", {"cost": "climb"}, ValueError, "cost='climb'.*'terrain'.*'standard'"),
    (
        "NDMaze-v0",
        {"kind": "terrain", "generator": "kruskal"},
        ValueError,
        "generator='kruskal'.*'standard'.*'terrain'",
    ),
    (
        "NDMaze-v0",
        {"kind": "terrain", "loops": 0.0},
        ValueError,
        r"loops=0\.0.*'standard'.*'terrain'",
    ),
    ("StandardMaze-v0", {"terrain": "smooth"}, TypeError, "terrain"),
    ("TerrainMaze-v0", {"generator": "kruskal"}, TypeError, "generator"),
]


@pytest.mark.parametrize(
    ("env_id", "options", "error", "message"),
    BAD_ARGUMENTS,
    ids=[name((env_id, options)) for env_id, options, *_ in BAD_ARGUMENTS],
)
def test_bad_arguments_are_named(
    env_id: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        constructor(env_id)(**options)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [([3, 4], (3, 4)), (np.array([3, 4]), (3, 4)), ((np.int64(3), 4), (3, 4))],
)
def test_shapes_in_other_forms(shape: Any, expected: tuple[int, ...]) -> None:
    env = bare(("StandardMaze-v0", {"shape": shape}))
    assert env.grid.shape == expected
    assert env.observation_space.n == 12


@pytest.mark.parametrize("p", [1, 1.0, 0.5, np.float64(0.5), np.float32(0.5), 1e-9])
def test_probabilities_in_other_forms(p: Any) -> None:
    env = bare(("StandardMaze-v0", {"shape": (3, 3), "p": p}))
    assert env.transition_model().p == float(p)
    assert type(env.step(0)[-1]["prob"]) is float


def masks_of(env: Any) -> NDArray[np.int8]:
    """Return the masks of all states from which an episode may start."""
    rows = [env.reset(options={"state": s})[1]["action_mask"] for s in starts_of(env)]
    return np.array(rows)


@mazes
def test_masks_are_the_moves_without_a_wall(variant: Variant) -> None:
    env = bare(variant)
    starts = starts_of(env)
    np.testing.assert_array_equal(masks_of(env), env.layout.available()[starts])
    for index, action in np.argwhere(masks_of(env) == 0):
        env.reset(options={"state": starts[index]})
        following, reward, terminated, _, info = env.step(action)
        assert following == starts[index]
        assert reward == -env.transition_model().bump_cost
        assert not terminated
        assert info["prob"] == 1.0
