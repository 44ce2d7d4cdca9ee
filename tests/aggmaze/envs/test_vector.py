"""Vector environments: each copy does as the single environment, in the form of SyncVectorEnv."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import TimeLimit
from gymnasium.wrappers import vector as wrappers
from numpy.typing import NDArray

import aggmaze
from aggmaze import MoveMDP, TabularEnv, TabularMDP, TabularVectorEnv
from aggmaze.models import sampling
from tests.aggmaze.envs.test_env_contract import BLOCKS, MADE, VARIANTS, Variant, bare, name

MODES = [mode.value for mode in AutoresetMode]
N = 5

variants = pytest.mark.parametrize("variant", VARIANTS, ids=map(name, VARIANTS))
env_ids = pytest.mark.parametrize("env_id", aggmaze.ENV_IDS)
modes = pytest.mark.parametrize("mode", MODES)

Made = VectorEnv[Any, Any, Any]


def make_vec(variant: Variant, num_envs: int = N, **kwargs: Any) -> Made:
    env_id, options = variant
    if env_id in MADE:
        return TabularVectorEnv(bare(variant), num_envs, **kwargs)
    return gym.make_vec(env_id, num_envs=num_envs, **options, **kwargs)


def make_sync(variant: Variant, limit: int, mode: str) -> SyncVectorEnv[Any, Any]:
    """Return Gymnasium's own vector environment of copies of the single one."""
    env = bare(variant)
    copies = [lambda: TimeLimit(copy.deepcopy(env), limit)] * N
    return SyncVectorEnv(copies, autoreset_mode=mode)


class Tape:
    """A generator that gives the numbers it is told to."""

    def __init__(self, numbers: NDArray[np.float64]) -> None:
        self.numbers = numbers
        self.place = 0

    def random(self, size: Any = None) -> Any:
        if size is None:
            self.place += 1
            return float(self.numbers[self.place - 1])
        rows = self.numbers if isinstance(size, tuple) else self.numbers[0]
        drawn = rows[: size[0]] if isinstance(size, tuple) else rows
        assert drawn.shape == np.empty(size).shape
        return drawn.copy()


def put_tapes(vector: Any, sync: SyncVectorEnv[Any, Any], numbers: NDArray[np.float64]) -> None:
    """Have both draw the same numbers next, shape (2, N)."""
    vector.np_random = Tape(numbers)
    certain = np.count_nonzero(vector.transition_model().initial) == 1
    for env, own in zip(sync.envs, numbers.T, strict=True):
        # A start that is certain draws nothing.
        env.unwrapped.np_random = Tape(own[:1] if certain else own)  # type: ignore[assignment]


def assert_same(found: Any, expected: Any) -> None:
    """Refuse any difference in keys, types, shapes or numbers."""
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert set(found) == set(expected)
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, tuple):
        assert len(found) == len(expected)
        for pair in zip(found, expected, strict=True):
            assert_same(*pair)
    else:
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert repr(found.tolist()) == repr(expected.tolist()), "-0.0 is not 0.0"
        if found.dtype == object:
            assert [type(x) for x in found] == [type(x) for x in expected]


def arrays_in(seen: Any) -> Iterator[NDArray[Any]]:
    if isinstance(seen, np.ndarray):
        yield seen
    else:
        for part in seen.values() if isinstance(seen, dict) else seen:
            yield from arrays_in(part)


def walk(env: Made, steps: int = 30, seed: int = 0) -> list[Any]:
    """Return all that random actions bring from where the environment is."""
    rng = np.random.default_rng(seed)
    return [env.step(rng.integers(env.single_action_space.n, size=N)) for _ in range(steps)]


class TestAgreement:
    @modes
    @variants
    def test_each_copy_does_as_the_single_environment(self, variant: Variant, mode: str) -> None:
        limit = 7
        vector = make_vec(variant, max_episode_steps=limit, autoreset_mode=mode)
        sync = make_sync(variant, limit, mode)
        assert vector.metadata["autoreset_mode"] is sync.metadata["autoreset_mode"]
        assert vector.observation_space == sync.observation_space
        assert vector.action_space == sync.action_space
        assert vector.single_observation_space == sync.single_observation_space
        assert vector.single_action_space == sync.single_action_space
        model = bare(variant).transition_model()
        rng = np.random.default_rng(0)
        can_start = np.flatnonzero(~model.terminal)
        for trial in range(4):
            options = {} if trial == 0 else {"state": int(rng.choice(can_start))}
            put_tapes(vector, sync, rng.random((2, N)))
            assert_same(vector.reset(options=options), sync.reset(options=options))
            for _ in range(3 * limit):
                put_tapes(vector, sync, rng.random((2, N)))
                actions = rng.integers(model.num_actions, size=N)
                found, expected = vector.step(actions), sync.step(actions)
                assert_same(found, expected)
                over = found[2] | found[3]
                if mode == "Disabled" and over.any():
                    put_tapes(vector, sync, rng.random((2, N)))
                    assert_same(
                        vector.reset(options={"reset_mask": over}),
                        sync.reset(options={"reset_mask": over}),
                    )
                masks = [env.unwrapped.action_masks() for env in sync.envs]  # type: ignore[attr-defined]
                assert_same(vector.unwrapped.action_masks(), np.array(masks))

    @modes
    def test_both_ends_of_an_episode_occur(self, mode: str) -> None:
        env = make_vec(
            ("StandardMaze-v0", {"shape": (3, 3), "start": "uniform"}),
            64,
            autoreset_mode=mode,
            max_episode_steps=6,
        )
        env.reset(seed=0)
        seen = set()
        for actions in np.random.default_rng(0).integers(4, size=(50, 64)):
            _, _, terminated, truncated, _ = env.step(actions)
            seen |= set(zip(terminated.tolist(), truncated.tolist(), strict=True))
            if mode == "Disabled" and (terminated | truncated).any():
                env.reset(options={"reset_mask": terminated | truncated})
        assert seen == set(itertools.product([False, True], repeat=2))

    @pytest.mark.parametrize("env_id", ["StandardMaze-v0", "DiscretizedCartPole-v0"])
    def test_frequencies_are_those_of_the_model(self, env_id: str) -> None:
        count = 20_000
        options = {} if env_id == "DiscretizedCartPole-v0" else {"p": 0.4, "loops": 1.0}
        env: Any = gym.make_vec(env_id, num_envs=count, **options)
        table = env.transition_model().to_tabular()
        starts, infos = env.reset(seed=1)
        drawn = np.bincount(starts, minlength=table.num_states) / count
        assert np.abs(drawn - table.initial).max() < 4 / np.sqrt(count)
        assert np.array_equal(infos["prob"], table.initial[starts])
        start = int(starts[0])
        for action in range(table.num_actions):
            env.reset(options={"state": start})
            states, rewards, _, _, infos = env.step(np.full(count, action))
            row = table.transitions[[start * table.num_actions + action]].toarray()[0]
            possible = np.flatnonzero(row)
            counts = np.bincount(states, minlength=table.num_states)
            assert counts[possible].sum() == count
            if len(possible) > 1:
                assert scipy.stats.chisquare(counts[possible], count * row[possible]).pvalue > 1e-4
            assert np.array_equal(infos["prob"], row[states])
            assert rewards.mean() == pytest.approx(-table.costs[start, action], abs=0.05)


class TestDraws:
    """The compiled draws against plain ones."""

    def test_outcomes_in_the_order_of_the_row(self) -> None:
        rng = np.random.default_rng(0)
        for num_outcomes in range(1, 20):
            row = rng.dirichlet(np.full(num_outcomes, 0.3))
            row[rng.random(num_outcomes) < 0.3] = 0.0
            row[rng.integers(num_outcomes)] += 1e-3
            row /= row.sum()
            model = TabularMDP(
                row[np.newaxis].repeat(num_outcomes, axis=0), np.ones((num_outcomes, 1))
            )
            sums = np.cumsum(model.transitions.data[: model.transitions.indptr[1]])
            edges = [*sums, *np.nextafter(sums, 0.0), *np.nextafter(sums, 2.0), 0.0, 1.0 - 2**-53]
            for uniform in (*edges, *rng.random(20)):
                if 0.0 <= uniform < 1.0:
                    assert model.sample(0, 0, uniform) == self.outcome(row, uniform)

    @staticmethod
    def outcome(row: NDArray[np.float64], uniform: float) -> tuple[int, float, float]:
        total, last = 0.0, 0
        for state, probability in enumerate(row):
            if probability > 0.0:
                total, last = total + probability, state
                if uniform < total:
                    break
        return last, 1.0, row[last]

    def test_zeros_that_are_stored_never_happen(self) -> None:
        indices = np.array([0, 1, 2, 0, 2, 1])
        data = np.array([0.0, 0.3, 0.0, 0.0, 0.7 - 1e-12, 0.0])
        rows = np.array([0, 6, 7, 8])
        matrix = sp.csr_array(
            (np.concatenate([data, [1.0, 1.0]]), np.concatenate([indices, [1, 2]]), rows),
            shape=(3, 3),
        )
        model = TabularMDP(matrix, np.array([[1.0], [0.0], [0.0]])).validate()
        for uniform, state in ((0.0, 1), (0.299, 1), (0.3, 2), (0.999, 2), (1.0 - 2**-53, 2)):
            assert model.sample(0, 0, uniform)[0] == state

    def test_slips_in_the_order_of_the_moves(self) -> None:
        rng = np.random.default_rng(1)
        for p in (1.0, 0.9, 0.3, 0.05):
            costs = rng.random((30, 5))
            costs[rng.random((30, 5)) < 0.4] = np.inf
            costs[0] = np.inf
            model = MoveMDP(rng.integers(30, size=(30, 5)), costs, p=p, bump_cost=7.0)
            for state, action in itertools.product(range(30), range(5)):
                available = np.flatnonzero(np.isfinite(costs[state]))
                for uniform in (*rng.random(4), 0.0, p / 2, 1.0 - 2**-53):
                    found = model.sample(state, action, uniform)
                    if action not in available:
                        assert found == (state, 7.0 if len(available) else 0.0, 1.0)
                        continue
                    others = available[available != action]
                    move, probability = action, 1.0 if len(others) == 0 else p
                    if len(others) and uniform >= p:
                        share = (uniform - p) / (1.0 - p)
                        move = others[min(int(share * len(others)), len(others) - 1)]
                        probability = (1.0 - p) / len(others)
                    assert found == (
                        model.successors[state, move],
                        costs[state, move],
                        probability,
                    )

    @pytest.mark.parametrize("kind", ["moves", "table"])
    def test_what_is_not_in_the_model_is_refused(self, kind: str) -> None:
        model: Any = bare(("StandardMaze-v0", {"shape": (2, 2)})).transition_model()
        model = model.to_tabular() if kind == "table" else model
        with pytest.raises(ValueError, match=r"state must be in \[0, 4\), got 4"):
            model.sample(4, 0, 0.5)
        with pytest.raises(ValueError, match=r"action must be in \[0, 4\), got -1"):
            model.sample(0, -1, 0.5)

    @pytest.mark.parametrize("num_starts", [2, 3, 7, 8, 9])
    def test_starts(self, num_starts: int) -> None:
        shares = np.random.default_rng(num_starts).dirichlet(np.ones(num_starts))
        initial = np.zeros(2 * num_starts)
        initial[1::2] = shares
        env: Any = TabularEnv(
            TabularMDP(np.eye(2 * num_starts), np.ones_like(initial)[:, None], initial=initial)
        )
        sums = np.cumsum(shares)
        for uniform in (0.0, *sums, *np.nextafter(sums, 0.0), 1.0 - 2**-53):
            if uniform < 1.0:
                env.np_random = Tape(np.array([uniform]))
                k = min(int(np.searchsorted(sums, uniform, side="right")), num_starts - 1)
                state, info = env.reset()
                assert (state, info["prob"]) == (2 * k + 1, shares[k])
                assert type(state) is int
                assert type(info["prob"]) is float


class TestRegistration:
    @env_ids
    def test_make_vec(self, env_id: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            env: Any = gym.make_vec(f"aggmaze:{env_id}", num_envs=3)
        assert isinstance(env, TabularVectorEnv)
        assert env.num_envs == 3
        assert env.max_episode_steps == 1000
        assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        assert env.metadata["render_fps"] > 0
        assert "human" not in env.metadata["render_modes"]
        assert repr(env) == f"TabularVectorEnv({env_id}, num_envs=3)"
        assert json.loads(gym.spec(env_id).to_json())["vector_entry_point"].startswith("aggmaze.")
        env.close()
        env.close()
        assert env.closed

    def test_the_spec_makes_it_again(self) -> None:
        made: Any = gym.make_vec(
            "NDMaze-v0", num_envs=4, shape=[3, 2, 3], p=0.5, autoreset_mode="SameStep"
        )
        again: Any = gym.make_vec(gym.envs.registration.EnvSpec.from_json(made.spec.to_json()))
        assert (again.num_envs, again.max_episode_steps) == (4, 1000)
        assert again.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
        for env in (made, again):
            env.reset(seed=3)
        actions = np.random.default_rng(0).integers(6, size=(20, 4))
        for row in actions:
            assert_same(made.step(row), again.step(row))

    @env_ids
    def test_other_vectorizers_still_work(self, env_id: str) -> None:
        env = gym.make_vec(env_id, num_envs=2, vectorization_mode="sync")
        assert isinstance(env, SyncVectorEnv)
        _, infos = env.reset(seed=0)
        assert set(infos) == set(gym.make_vec(env_id, num_envs=2).reset()[1])

    def test_no_limit(self) -> None:
        variant = ("StandardMaze-v0", {"shape": (9, 9)})
        env: Any = make_vec(variant, max_episode_steps=None)
        env.reset(seed=0)
        bump = np.flatnonzero(env.action_masks()[0] == 0)[0]
        for _ in range(1100):
            truncated = env.step(np.full(N, bump))[3]
            assert not truncated.any()

    def test_arguments_are_the_single_environments(self) -> None:
        with pytest.raises(ValueError, match="loops must be in"):
            gym.make_vec("StandardMaze-v0", num_envs=2, loops=2.0)
        with pytest.raises(TypeError, match="nonsense"):
            gym.make_vec("StandardMaze-v0", num_envs=2, nonsense=1)
        env: Any = gym.make_vec("StandardMaze-v0", num_envs=2, layout_seed=3)
        same = bare(("StandardMaze-v0", {"layout_seed": 3})).layout
        assert np.array_equal(env.single_env.layout.passages, same.passages)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"num_envs": 0}, "num_envs must be at least 1, got 0"),
            ({"max_episode_steps": 0}, "max_episode_steps must be at least 1, got 0"),
            (
                {"autoreset_mode": "Sometimes"},
                "'NextStep', 'SameStep', 'Disabled', got 'Sometimes'",
            ),
            ({"render_mode": "human"}, "shows one agent"),
            ({"render_mode": "poster"}, "'ansi' or None, got 'poster'"),
        ],
    )
    def test_bad_arguments(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            gym.make_vec("StandardMaze-v0", **{"num_envs": 2, **arguments})


class TestSources:
    def test_models(self) -> None:
        moves = bare(("StandardMaze-v0", {"shape": (3, 3), "p": 0.7})).transition_model()
        for model in (moves, moves.to_tabular()):
            env = TabularVectorEnv(model, N)
            single = TabularEnv(model)
            assert env.transition_model() is model
            assert (env.max_episode_steps, env.spec) == (None, None)
            _, infos = env.reset(seed=0)
            assert set(infos) == {k for x in single.reset()[1] for k in (x, f"_{x}")}
            assert len(walk(env)) == 30

    def test_the_environment_given_is_left_alone(self) -> None:
        env = bare(("StandardMaze-v0", {"shape": (4, 4)}), render_mode="rgb_array")
        state, _ = env.reset(seed=0)
        layout, before = env.layout, env.np_random.bit_generator.state
        vector = TabularVectorEnv(env, N)
        vector.reset(seed=0, options={"layout_seed": 5})
        walk(vector)
        vector.render()
        vector.close()
        assert env.layout is layout
        assert env.np_random.bit_generator.state == before
        assert env.step(0)[0] in (state, state - 4, state + 4, state - 1, state + 1)

    def test_what_is_refused(self) -> None:
        with pytest.raises(TypeError, match=r"TimeLimit; give env\.unwrapped"):
            TabularVectorEnv(TimeLimit(bare(("StandardMaze-v0", {})), 5))  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"must be a TabularEnv.*got dict"):
            TabularVectorEnv({})  # type: ignore[arg-type]

        class Own(TabularEnv):
            def step(self, action: Any) -> Any:
                return super().step(action)

        with pytest.raises(ValueError, match="Own has a step of its own"):
            TabularVectorEnv(Own(bare(("StandardMaze-v0", {})).transition_model()))


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"staet": 3}, "unknown reset option 'staet'"),
    (
        {"mask": np.ones(N, bool)},
        "unknown reset option 'mask'; allowed: layout_seed, state, coords, reset_mask$",
    ),
    ({"state": 0}, "terminal: no episode starts there"),
    ({"state": 99}, r"must be in \[0, 12\), got 99"),
    ({"state": [1, 2, 3, 0, 5]}, r"sub-environment 3: options\['state'\] = 0 is terminal"),
    ({"state": [1, 2, 3]}, r"options\['state'\] must be one for all .* each of 5, got 3"),
    ({"coords": [[1, 1]] * 4}, r"options\['coords'\] must be one for all .* each of 5, got 4"),
    ({"coords": [[1, 1]] * 4 + [[1, 9]]}, "sub-environment 4: coords .* leave the grid"),
    ({"coords": (1, 1), "state": 1}, "not both"),
    ({"coords": (1, 1), "state": [1] * N}, "not both"),
    ({"layout_seed": -1}, "layout_seed must be at least 0"),
    (
        {"layout_seed": 1, "reset_mask": np.arange(N) == 0},
        "changes the maze of every copy",
    ),
    ({"reset_mask": np.zeros(N, bool)}, "selects none"),
    ({"reset_mask": np.ones(N, int)}, r"must hold booleans of shape \(5,\), got int64"),
    ({"reset_mask": np.ones(3, bool)}, r"must hold booleans of shape \(5,\), got bool of"),
]


class TestReset:
    VARIANT: Variant = ("StandardMaze-v0", {"shape": (4, 3), "p": 0.5, "start": "uniform"})

    def test_a_seed_settles_everything(self) -> None:
        first, second = make_vec(self.VARIANT), make_vec(self.VARIANT)
        assert_same(first.reset(seed=5), second.reset(seed=5))
        for pair in zip(walk(first), walk(second), strict=True):
            assert_same(*pair)
        assert first.np_random_seed == 5
        again, other = first.reset(seed=5)[0], first.reset(seed=6)[0]
        assert again.tolist() == second.reset(seed=5)[0].tolist() != other.tolist()

    def test_copies_draw_apart(self) -> None:
        env: Any = gym.make_vec("StandardMaze-v0", num_envs=200, p=0.5, start="uniform")
        states, _ = env.reset(seed=0)
        assert len(set(states.tolist())) > 100

    @pytest.mark.parametrize("seed", [[1, 2, 3, 4, 5], (1,), np.arange(5)])
    def test_a_list_of_seeds_is_refused(self, seed: Any) -> None:
        with pytest.raises(TypeError, match=r"seed must be one integer, or None.*one generator"):
            make_vec(self.VARIANT).reset(seed=seed)

    @pytest.mark.parametrize(
        ("options", "states"),
        [
            ({"state": 4}, [4] * N),
            ({"state": np.int64(4)}, [4] * N),
            ({"state": [1, 2, 3, 4, 5]}, [1, 2, 3, 4, 5]),
            ({"state": np.arange(1, 6)}, [1, 2, 3, 4, 5]),
            ({"coords": (1, 2)}, [5] * N),
            ({"coords": [[1, 2], [3, 0], [0, 1], [0, 2], [2, 2]]}, [5, 9, 1, 2, 8]),
        ],
    )
    def test_where_to_start(self, options: dict[str, Any], states: list[int]) -> None:
        env: Any = make_vec(self.VARIANT)
        found, infos = env.reset(seed=0, options=options)
        assert found.tolist() == infos["state"].tolist() == states
        assert infos["prob"].tolist() == [1.0] * N
        assert infos["coords"].tolist() == env.single_env.grid.coords(found).tolist()

    def test_another_maze(self) -> None:
        env: Any = make_vec(self.VARIANT)
        env.reset(seed=0)
        env.reset(options={"layout_seed": 9, "state": [1, 2, 3, 4, 5]})
        expected = bare((self.VARIANT[0], {**self.VARIANT[1], "layout_seed": 9}))
        assert np.array_equal(env.single_env.layout.passages, expected.layout.passages)
        found = env.transition_model()
        assert np.array_equal(found.move_costs, expected.transition_model().move_costs)
        assert np.array_equal(env.action_masks(), found.action_mask[1:6])
        env.reset(seed=3)
        assert env.transition_model() is found

    @pytest.mark.parametrize(("options", "message"), REFUSED)
    def test_what_is_refused_changes_nothing(self, options: dict[str, Any], message: str) -> None:
        env: Any = make_vec(self.VARIANT)
        env.reset(seed=0)
        walk(env, 3)
        twin = copy.deepcopy(env)
        with pytest.raises(ValueError, match=message):
            env.reset(seed=1, options=options)
        with pytest.raises(gym.error.Error, match=r"[Ss]eed must be"):
            env.reset(seed=-1, options={"layout_seed": 4})
        assert env.transition_model() is twin.transition_model()
        for pair in zip(walk(env), walk(twin), strict=True):
            assert_same(*pair)

    def test_blocked_positions_and_given_mazes(self) -> None:
        env: Any = make_vec(("StandardMaze-v0", {"layout": BLOCKS}))
        with pytest.raises(ValueError, match=r"sub-environment 1: .*blocked"):
            env.reset(options={"coords": [[1, 0], [1, 1], [1, 0], [1, 0], [1, 0]]})
        with pytest.raises(ValueError, match="nothing to draw"):
            env.reset(options={"layout_seed": 3})
        with pytest.raises(ValueError, match="unknown reset option 'coords'"):
            make_vec(("DiscretizedCartPole-v0", {})).reset(options={"coords": [1]})

    @modes
    def test_some_start_anew(self, mode: str) -> None:
        env: Any = make_vec(self.VARIANT, autoreset_mode=mode, max_episode_steps=3)
        with pytest.raises(ResetNeeded, match="reset comes before a reset of some"):
            env.reset(options={"reset_mask": np.arange(N) < 2})
        env.reset(seed=0, options={"state": 11})
        walk(env, 1)
        before = env.step(np.zeros(N, int))[0]
        mask = np.array([True, False, False, True, False])
        options = {"reset_mask": mask, "state": [5, 0, 0, 6, 99]}
        states, infos = env.reset(options=options)
        assert options["reset_mask"] is mask, "what the caller passes is not changed"
        assert states.tolist() == [5, before[1], before[2], 6, before[4]]
        assert infos["state"].tolist() == [5, 0, 0, 6, 0]
        assert infos["_state"].tolist() == mask.tolist()
        assert infos["action_mask"][~mask].sum() == 0
        # The others have made two of three steps.
        _, _, terminated, truncated, _ = env.step(np.zeros(N, int))
        assert truncated[~terminated].tolist() == (~mask)[~terminated].tolist()

    def test_nothing_before_the_first(self) -> None:
        env: Any = make_vec(self.VARIANT, render_mode="ansi")
        for call in (lambda: env.step(np.zeros(N, int)), env.action_masks, env.render):
            with pytest.raises(ResetNeeded, match="reset comes before"):
                call()

    def test_disabled_waits_for_the_caller(self) -> None:
        env: Any = make_vec(self.VARIANT, autoreset_mode="Disabled", max_episode_steps=2)
        env.reset(seed=0, options={"state": [11, 11, 11, 11, 11]})
        walk(env, 2)
        with pytest.raises(ResetNeeded, match=r"sub-environment 0 is over, 5 of 5 .*reset_mask"):
            env.step(np.zeros(N, int))
        env.reset()
        env.step(np.zeros(N, int))


class TestStep:
    VARIANT: Variant = ("StandardMaze-v0", {"shape": (4, 3), "p": 0.5})

    @pytest.mark.parametrize(
        "actions",
        [
            [0, 1, 2, 3, 0],
            (0, 1, 2, 3, 0),
            np.array([0, 1, 2, 3, 0], np.int8),
            np.array([0, 1, 2, 3, 0], np.uint64),
            np.array([0, 9, 1, 9, 2, 9, 3, 9, 0, 9])[::2],
        ],
    )
    def test_all_kinds_of_integers(self, actions: Any) -> None:
        env, twin = make_vec(self.VARIANT), make_vec(self.VARIANT)
        env.reset(seed=0)
        twin.reset(seed=0)
        fixed = np.array([0, 1, 2, 3, 0])
        fixed.flags.writeable = False
        assert_same(env.step(actions), twin.step(fixed))

    @pytest.mark.parametrize(
        ("actions", "error", "message"),
        [
            ([0, 1, 4, 0, 9], ValueError, r"sub-environment 2 must be in \[0, 4\), got 4"),
            ([0, -1, 4, 0, 9], ValueError, r"sub-environment 1 must be in \[0, 4\), got -1"),
            (
                np.array([0, 0, 0, 0, 2**64 - 1], np.uint64),
                ValueError,
                "sub-environment 4 .* got 18446744073709551615",
            ),
            ([0, 1], ValueError, r"must have shape \(5,\).* got \(2,\)"),
            (1, ValueError, r"must have shape \(5,\).* got \(\)"),
            ([[0]] * N, ValueError, r"must have shape \(5,\).* got \(5, 1\)"),
            ([0.0] * N, TypeError, "must be integers .* got dtype float64"),
            ([True] * N, TypeError, "must be integers .* got dtype bool"),
            ([None] * N, TypeError, "must be integers .* got dtype object"),
        ],
    )
    def test_bad_actions_change_nothing(
        self, actions: Any, error: type[Exception], message: str
    ) -> None:
        env = make_vec(self.VARIANT)
        env.reset(seed=0)
        twin = copy.deepcopy(env)
        with pytest.raises(error, match=message):
            env.step(actions)
        for pair in zip(walk(env), walk(twin), strict=True):
            assert_same(*pair)

    @modes
    @env_ids
    def test_arrays_are_new(self, env_id: str, mode: str) -> None:
        env = gym.make_vec(env_id, num_envs=N, max_episode_steps=2, autoreset_mode=mode)
        twin = copy.deepcopy(env)
        seen = [*arrays_in(env.reset(seed=0))]
        twin.reset(seed=0)
        for step in range(6):
            found, expected = (one.step(np.zeros(N, int)) for one in (env, twin))
            assert_same(found, expected)
            own = [*arrays_in(found)]
            for first, second in itertools.combinations([*seen, *own], 2):
                assert not np.shares_memory(first, second)
            for array in own:
                assert array.flags.writeable
                array[...] = 1  # as careless users do
            seen = own
            if mode == "Disabled" and step % 2:
                env.reset()
                twin.reset()

    @env_ids
    @pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
    def test_copies_go_on_the_same(self, env_id: str, copied: Any) -> None:
        env: Any = gym.make_vec(env_id, num_envs=N, render_mode="rgb_array", max_episode_steps=9)
        env.reset(seed=0)
        walk(env, 5)
        env.render()
        twin = copied(env)
        for pair in zip(walk(env), walk(twin), strict=True):
            assert_same(*pair)
        assert np.array_equal(twin.render(), env.render())

    def test_a_copy_compiles_nothing_again(self) -> None:
        for variant in (self.VARIANT, ("DiscretizedCartPole-v0", {})):
            env = make_vec(variant)
            env.reset(seed=0)
            walk(env, 1)
            kernels = sampling.step_moves, sampling.step_entries, sampling.draw_starts
            before = [len(kernel.signatures) for kernel in kernels]
            for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
                twin.reset()
                walk(twin, 1)
            assert [len(kernel.signatures) for kernel in kernels] == before


class TestRender:
    @env_ids
    @pytest.mark.parametrize("mode", ["rgb_array", "ansi"])
    def test_pictures_are_the_single_environments(self, env_id: str, mode: str) -> None:
        env: Any = gym.make_vec(env_id, num_envs=3, render_mode=mode)
        env.reset(seed=0)
        states = env.step(np.zeros(3, int))[0]
        pictures = env.render()
        assert isinstance(pictures, tuple)
        single = bare((env_id, {}), render_mode=mode)
        for state, picture in zip(states.tolist(), pictures, strict=True):
            single.reset(options={"state": state})
            assert np.array_equal(picture, single.render())

    @env_ids
    def test_overlays(self, env_id: str) -> None:
        env: Any = gym.make_vec(env_id, num_envs=2, render_mode="rgb_array")
        states, _ = env.reset(seed=0)
        plain = env.render()
        values = np.arange(env.single_observation_space.n, dtype=float)
        env.unwrapped.single_env.set_overlay(values=values)
        single = bare((env_id, {}), render_mode="rgb_array")
        single.set_overlay(values=values)
        for state, before, picture in zip(states.tolist(), plain, env.render(), strict=True):
            single.reset(options={"state": state})
            assert np.array_equal(picture, single.render())
            assert before.shape != picture.shape or not np.array_equal(before, picture)

    def test_without_a_mode(self) -> None:
        env = gym.make_vec("StandardMaze-v0", num_envs=2)
        env.reset(seed=0)
        with pytest.warns(UserWarning, match="without specifying any render mode"):
            assert env.render() is None


class TestWrappers:
    """Gymnasium's wrappers of vector environments."""

    @pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
    @env_ids
    def test_episode_statistics(self, env_id: str, mode: str) -> None:
        options = {} if "Maze" not in env_id else {"shape": (3,) * 2, "p": 0.8}
        if env_id == "NDMaze-v0":
            options["shape"] = (2, 2, 2)
        inner = gym.make_vec(
            env_id, num_envs=N, max_episode_steps=12, autoreset_mode=mode, **options
        )
        env = wrappers.RecordEpisodeStatistics(inner)
        env.reset(seed=0)
        totals, lengths = np.zeros(N), np.zeros(N, int)
        begins = np.zeros(N, bool)
        finished: list[int] = []
        for actions in np.random.default_rng(0).integers(2, size=(60, N)):
            _, rewards, terminated, truncated, infos = env.step(actions)
            totals += rewards
            lengths += ~begins
            over = terminated | truncated
            if over.any():
                assert infos["_episode"].tolist() == over.tolist()
            for i in np.flatnonzero(over):
                # In the mode SameStep, older Gymnasium counts later episodes a step too short.
                if mode == "NextStep" or i not in finished:
                    assert infos["episode"]["r"][i] == pytest.approx(totals[i])
                    assert infos["episode"]["l"][i] == lengths[i]
                totals[i] = lengths[i] = 0
                finished.append(i)
            begins = over & (mode == "NextStep")
        assert len(finished) > N

    @env_ids
    def test_others(self, env_id: str) -> None:
        for wrapper in (
            wrappers.DictInfoToList,
            wrappers.FlattenObservation,
            wrappers.NormalizeReward,
            lambda env: wrappers.ClipReward(env, -0.5, 0.5),
        ):
            env = wrapper(gym.make_vec(env_id, num_envs=N))
            states, _ = env.reset(seed=0)
            assert states in env.observation_space
            for actions in np.random.default_rng(0).integers(2, size=(5, N)):
                assert env.step(actions)[0] in env.observation_space

    def test_infos_of_each(self) -> None:
        env = wrappers.DictInfoToList(gym.make_vec("StandardMaze-v0", num_envs=2))
        single = bare(("StandardMaze-v0", {}))
        _, infos = env.reset(seed=0)
        assert [set(info) for info in infos] == [set(single.reset()[1])] * 2
