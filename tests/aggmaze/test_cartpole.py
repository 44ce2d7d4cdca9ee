"""CartPole in cells: Gymnasium's physics, the model counted by points, policies that balance."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import re
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from gymnasium import wrappers
from gymnasium.envs.classic_control.cartpole import CartPoleEnv, CartPoleVectorEnv
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env, data_equivalence
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

import planners
import planners.cli.sources
from aggmaze import DiscretizedCartPole, DiscretizedCartPoleEnv, TabularMDP
from aggmaze.cartpole import (
    AXES,
    DEFAULT_BINS,
    DEFAULT_SUB_POINTS,
    Cells,
    Physics,
    cartpole_model,
    check_sub_points,
)
from aggmaze.cartpole.chain import _chain

GYMNASIUM = Physics.of(CartPoleEnv())
SMALL = (3, 2, 4, 3)
#: Points with which every axis of SMALL changes cell.
ENOUGH = (18, 8, 2, 4)


def cells_of(bins: tuple[int, ...] = SMALL, limits: Any = None) -> Cells:
    return Cells.of(GYMNASIUM, bins, limits)


def one_step(
    env: CartPoleEnv, point: NDArray[np.float64], action: int
) -> tuple[NDArray[np.float64], float, bool]:
    """Return where Gymnasium's own single environment comes to, its reward and its end."""
    env.reset()
    env.state = point.copy()
    _, reward, terminated, _, _ = env.step(action)
    assert env.state is not None
    return env.state, float(reward), terminated


def changed(**constants: Any) -> CartPoleEnv:
    env = CartPoleEnv()
    for name, value in constants.items():
        assert hasattr(env, name)
        setattr(env, name, value)
    return env


class TestPhysics:
    @pytest.mark.parametrize(
        "env",
        [
            CartPoleEnv(),
            CartPoleEnv(sutton_barto_reward=True),
            changed(gravity=3.7, length=0.8, force_mag=4.0, tau=0.05, x_threshold=1.0),
            changed(masspole=0.4, total_mass=1.4, polemass_length=0.2),
            changed(kinematics_integrator="semi-implicit", theta_threshold_radians=0.5),
        ],
        ids=["default", "sutton-barto", "changed", "heavier", "semi-implicit"],
    )
    def test_steps_as_gymnasium_does(self, env: CartPoleEnv) -> None:
        rng = np.random.default_rng(0)
        points = rng.uniform(-1, 1, (400, 4)) * [2.5, 4.0, 0.25, 5.0]
        actions = rng.integers(2, size=400)
        after = Physics.of(env).advance(points, actions)
        for k, (point, action) in enumerate(zip(points, actions.tolist(), strict=True)):
            expected, reward, terminated = one_step(env, point, action)
            np.testing.assert_allclose(after.points[k], expected, rtol=1e-13, atol=1e-13)
            assert after.rewards[k] == reward
            assert after.failed[k] == terminated
        assert 0 < after.failed.sum() < 400

    def test_walks_as_gymnasium_does(self) -> None:
        env = gym.make("CartPole-v1")
        for seed in range(5):
            env.reset(seed=seed)
            rng = np.random.default_rng(seed)
            point = env.unwrapped.state[np.newaxis]  # type: ignore[attr-defined]
            terminated = False
            while not terminated:
                action = int(rng.integers(2))
                _, reward, terminated, _, _ = env.step(action)
                point, rewards, failed = GYMNASIUM.advance(point, np.array([action]))
                expected = env.unwrapped.state  # type: ignore[attr-defined]
                np.testing.assert_allclose(point[0], expected, rtol=1e-12, atol=1e-12)
                assert (rewards[0], failed[0]) == (reward, terminated)

    def test_every_constant_is_read(self) -> None:
        single, many = CartPoleEnv(), CartPoleVectorEnv()
        shared = {
            name
            for name, value in vars(single).items()
            if isinstance(value, int | float | str) and hasattr(many, name)
        }
        drawing = {"screen_width", "screen_height", "_sutton_barto_reward"}
        assert shared - drawing == set(dict(GYMNASIUM.constants))

    def test_starts_as_gymnasium_does(self) -> None:
        cells = cells_of((4, 5, 30, 31))
        shares = cells.shares(*GYMNASIUM.start)
        env, draws = CartPoleEnv(), 4000
        env.reset(seed=0)
        starts = np.array([[env.reset(), env.state][1] for _ in range(draws)])
        counts = np.bincount(cells.states(starts), minlength=cells.num_states)
        assert (counts[shares == 0] == 0).all()
        likely = shares > 0
        assert likely.sum() > 10
        assert scipy.stats.chisquare(counts[likely], draws * shares[likely]).pvalue > 1e-5


class TestCells:
    def test_are_numbered_as_documented(self) -> None:
        cells = cells_of()
        assert cells.num_states == math.prod(SMALL) + 1
        assert cells.failure == math.prod(SMALL)
        assert cells.limits == (2.4, 3.0, 12 * 2 * math.pi / 360, 3.5)
        states = np.arange(cells.num_cells)
        for sub_points in ((1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3), (5, 1, 2, 3)):
            points = cells.points(states, sub_points)
            assert points.shape == (cells.num_cells, math.prod(sub_points), 4)
            np.testing.assert_array_equal(
                cells.states(points), np.tile(states, (len(points[0]), 1)).T
            )
        point = [-0.9, 1.0, 0.01, 3.4]  # bins 0 of 3, 1 of 2, 2 of 4, 2 of 3
        assert cells.states(point) == np.ravel_multi_index((0, 1, 2, 2), SMALL)

    def test_the_outermost_take_what_lies_beyond(self) -> None:
        cells = cells_of()
        assert cells.states([-9.0, -99.0, -9.0, -1e300]) == 0
        assert cells.states([9.0, 99.0, 9.0, math.inf]) == cells.num_cells - 1

    @pytest.mark.parametrize(("low", "high"), [(-0.05, 0.05), (0.0, 0.1), (-5.0, 9.0)])
    def test_shares_of_a_cube(self, low: float, high: float) -> None:
        cells = cells_of(limits=(2.0, 1.0, 0.03, 0.2))
        shares = cells.shares(low, high)
        line = low + (high - low) * (np.arange(20) + 0.5) / 20
        lattice = np.array(list(itertools.product(line, repeat=4)))
        counted = np.bincount(cells.states(lattice), minlength=cells.num_states)
        np.testing.assert_allclose(shares, counted / len(lattice), atol=0.2)
        assert shares.sum() == pytest.approx(1.0, abs=1e-12)
        assert ((shares > 0) >= (counted > 0)).all()

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"bins": (5, 5, 9)}, ValueError, r"bins must be 4 numbers.*\(5, 5, 9\)"),
            ({"bins": 2000}, ValueError, "bins must be 4 numbers.*2000"),
            ({"bins": (5, 5, 9, 0)}, ValueError, r"bins\[3\] must be at least 1, got 0"),
            ({"bins": (5.0, 5, 9, 9)}, TypeError, r"bins\[0\] must be an integer.*got 5\.0"),
            ({"bins": (10**4,) * 4}, ValueError, "at most 2147483647 fit"),
            ({"limits": (1, 1, 0.1)}, ValueError, "limits must be 4 numbers"),
            ({"limits": (1, 0, 0.1, 1)}, ValueError, r"limits\[1\] must be positive.*got 0"),
            ({"limits": (1, 1, 0.1, math.inf)}, ValueError, r"limits\[3\] must be positive"),
            ({"limits": (4.8, 1, 0.1, 1)}, ValueError, r"limits\[0\] must be at most 2\.4.*4\.8"),
            ({"limits": (1, 1, 0.42, 1)}, ValueError, r"limits\[2\] must be at most 0\.209.*0\.42"),
            ({"sub_points": 0}, ValueError, "sub_points must be at least 1, got 0"),
            ({"sub_points": 1.5}, TypeError, r"sub_points must be an integer.*got 1\.5"),
            ({"sub_points": None}, TypeError, "sub_points must be an integer.*got None"),
            ({"sub_points": (3, 3)}, ValueError, r"sub_points must be 4 numbers.*\(3, 3\)"),
            (
                {"sub_points": (3, 0, 3, 3)},
                ValueError,
                r"sub_points\[1\] must be at least 1, got 0",
            ),
            (
                {"sub_points": (3, 3, 2.5, 3)},
                TypeError,
                r"sub_points\[2\] must be an int.*got 2\.5",
            ),
        ],
    )
    def test_bad_arguments_are_named(
        self, options: dict[str, Any], error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            DiscretizedCartPoleEnv(**options)
        with pytest.raises(error, match=message):
            DiscretizedCartPole(gym.make("CartPole-v1"), **options)


class TestModel:
    @pytest.mark.parametrize("sutton_barto_reward", [False, True])
    @pytest.mark.parametrize("sub_points", [(1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3), (5, 1, 2, 3)])
    def test_counts_the_points_of_a_cell(
        self, sub_points: tuple[int, ...], sutton_barto_reward: bool
    ) -> None:
        """Every row against single steps of Gymnasium's environment from every point."""
        single = CartPoleEnv(sutton_barto_reward=sutton_barto_reward)
        cells = cells_of(limits=(2.4, 2.0, 0.2, 3.0))
        model = _chain(cells, Physics.of(single), sub_points).model
        states = [0, 1, 25, 38, 70, cells.num_cells - 1]
        for state, action in itertools.product(states, range(2)):
            points = cells.points([state], sub_points)[0]
            counted: dict[int, int] = {}
            rewards: dict[int, float] = {}
            for point in points:
                after, reward, failed = one_step(single, point, action)
                following = cells.failure if failed else int(cells.states(after))
                counted[following] = counted.get(following, 0) + 1
                rewards[following] = reward
            row = model.rows(state, state + 1)
            entries = slice(*row.transitions.indptr[action : action + 2])
            following_states = row.transitions.indices[entries].tolist()
            assert sorted(following_states) == sorted(counted)
            for following, share, cost in zip(
                following_states,
                row.transitions.data[entries],
                row.outcome_costs[entries],
                strict=True,
            ):
                assert share == counted[following] / len(points)
                assert cost == 0.0 - rewards[following]
            mean = sum(rewards[s] * n for s, n in counted.items()) / len(points)
            assert model.costs[state, action] == pytest.approx(-mean, abs=1e-15)

    def test_blocks_fit_together(self, monkeypatch: pytest.MonkeyPatch) -> None:
        arguments = cells_of((4, 3, 5, 4)), GYMNASIUM, (3, 3, 3, 3)
        whole, faults = _chain.__wrapped__(*arguments)
        monkeypatch.setattr("aggmaze.cartpole.chain._BLOCK", 7 * 2 * 81)
        blocks, faults_in_blocks = _chain.__wrapped__(*arguments)
        assert (whole.transitions != blocks.transitions).nnz == 0
        assert np.array_equal(whole.costs, blocks.costs)
        assert faults == faults_in_blocks

    def test_approaches_the_frequencies_of_uniform_starts(self) -> None:
        cells, draws = cells_of(), 20_000
        rng = np.random.default_rng(1)
        states = rng.choice(cells.num_cells, 12, replace=False)
        frequencies = []
        for state, action in itertools.product(states, range(2)):
            offsets = rng.uniform(-0.5, 0.5, (draws, 4)) * cells.widths
            starts = cells.points([state])[0] + offsets
            after = GYMNASIUM.advance(starts, np.full(draws, action))
            following = np.where(after.failed, cells.failure, cells.states(after.points))
            frequencies.append(np.bincount(following, minlength=cells.num_states) / draws)

        def distances(sub_points: int) -> NDArray[np.float64]:
            """Return total variations between rows of the model and what was observed."""
            model = _chain(cells, GYMNASIUM, (sub_points,) * 4).model
            rows = [2 * state + action for state, action in itertools.product(states, range(2))]
            difference = model.transitions[rows].toarray() - np.array(frequencies)
            return np.abs(difference).sum(axis=1) / 2

        coarse, fine = distances(3), distances(11)
        assert coarse.max() < 0.3
        assert fine.max() < 0.08
        assert fine.mean() < 0.3 * coarse.mean()

    def test_knows_no_left_and_right(self) -> None:
        cells = cells_of((4, 5, 6, 5))
        model = cartpole_model(cells, GYMNASIUM)
        mirror = np.append(np.arange(cells.num_cells)[::-1], cells.failure)
        rows = (2 * mirror[:, np.newaxis] + [1, 0]).reshape(-1)
        mirrored = model.transitions[rows][:, mirror]
        np.testing.assert_allclose(model.transitions.toarray(), mirrored.toarray(), atol=1e-15)
        np.testing.assert_allclose(model.initial, model.initial[mirror], atol=1e-15)

    @pytest.mark.parametrize("sutton_barto_reward", [False, True])
    def test_failing_is_the_only_end(self, sutton_barto_reward: bool) -> None:
        env = DiscretizedCartPoleEnv(bins=(5, 5, 9, 9), sutton_barto_reward=sutton_barto_reward)
        model = env.transition_model()
        assert isinstance(model, TabularMDP)
        assert np.flatnonzero(model.terminal).tolist() == [2025]
        assert model.action_mask.all()
        failing = model.transitions[:, [2025]].toarray().reshape(model.costs.shape)
        expected = failing[:-1] if sutton_barto_reward else -np.ones((2025, 2))
        np.testing.assert_allclose(model.costs[:-1], expected, rtol=0, atol=1e-15)
        assert (model.costs[-1] == 0).all()
        assert (model.outcome_costs is None) != sutton_barto_reward
        assert 0.01 < failing[:-1].mean() < 0.5

    def test_the_size_of_the_literature(self) -> None:
        model = DiscretizedCartPoleEnv().transition_model()
        assert (model.num_states, model.num_actions) == (9985, 2)
        assert isinstance(model, TabularMDP)
        with pytest.warns(UserWarning, match="never changes cell along position, where"):
            older = DiscretizedCartPoleEnv(sub_points=3).transition_model()
        assert older.transitions.nnz == 119_426  # of a trial with equations of its own
        assert DiscretizedCartPoleEnv().transition_model() is model
        wrapped = DiscretizedCartPole(gym.make("CartPole-v1"))
        assert wrapped.transition_model() is model

    def test_what_does_not_fit_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("aggmaze.memory.available_memory", lambda: 10**9)
        for options, num_cells in (
            ({"bins": (60, 60, 60, 60)}, "12,960,000"),
            ({"bins": SMALL, "sub_points": 1000}, "72"),
            ({"bins": SMALL, "sub_points": (10**6, 3, 3, 3)}, "72"),
        ):
            with pytest.raises(MemoryError, match=f"transitions of {num_cells} cells need"):
                DiscretizedCartPoleEnv(**options)


class TestSubPoints:
    def test_by_default_every_axis_moves_as_in_cartpole(self) -> None:
        """As often as steps change cell along it from states that are uniform in their cells."""
        cells, rounds = cells_of(DEFAULT_BINS), 40
        model = cartpole_model(cells, GYMNASIUM)
        transitions = model.transitions[: 2 * cells.num_cells].tocoo()
        inside = transitions.col != cells.failure
        probs = transitions.data[inside] / (2 * cells.num_cells)
        before = cells.grid.coords(transitions.row[inside] // 2)
        moved = cells.grid.coords(transitions.col[inside]) != before
        rates = probs @ moved

        rng = np.random.default_rng(0)
        coords = cells.grid.coords(np.arange(cells.num_cells))
        changed, failed = np.zeros(4), 0
        for k in range(rounds):
            starts = (coords + rng.random(coords.shape)) * cells.widths - cells.limits
            after = GYMNASIUM.advance(starts, np.full(len(starts), k % 2))
            new = cells.grid.coords(cells.states(after.points))
            changed += ((new != coords) & ~after.failed[:, np.newaxis]).sum(axis=0)
            failed += int(after.failed.sum())
        total = rounds * cells.num_cells
        assert changed[0] / total == pytest.approx(0.040, abs=0.0005)
        np.testing.assert_allclose(rates, changed / total, rtol=0.06)
        assert 1 - probs.sum() == pytest.approx(failed / total, rel=0.03)
        # Whatever the velocity, the cart leaves its position cell.
        assert set(before[moved[:, 0], 1]) == set(range(DEFAULT_BINS[1]))

    @pytest.mark.parametrize(("sub_points", "num_chains"), [(DEFAULT_SUB_POINTS, 1), (3, 8)])
    def test_positions_are_connected(self, sub_points: Any, num_chains: int) -> None:
        cells = cells_of(DEFAULT_BINS)
        model = _chain(cells, GYMNASIUM, check_sub_points(sub_points)).model
        transitions = model.transitions[: 2 * cells.num_cells].tocoo()
        inside = transitions.col != cells.failure
        edges = sp.coo_array(
            (transitions.data[inside], (transitions.row[inside] // 2, transitions.col[inside])),
            shape=(cells.num_cells, cells.num_cells),
        ).tocsr()
        assert connected_components(edges, directed=False)[0] == num_chains

    @pytest.mark.parametrize(
        ("bins", "sub_points", "axes"),
        [
            (DEFAULT_BINS, 3, ["position"]),
            (DEFAULT_BINS, (5, 4, 3, 3), ["position"]),
            (DEFAULT_BINS, (6, 4, 3, 3), []),
            ((24, 8, 12, 13), 3, []),
            ((3, 3, 6, 3), 3, ["position", "velocity", "angular velocity"]),
            ((3, 3, 6, 3), DEFAULT_SUB_POINTS, ["velocity", "angular velocity"]),
            ((3, 3, 6, 3), 7, ["position"]),
            ((3, 3, 5, 5), 2, ["position", "velocity", "angular velocity"]),
            ((5, 5, 9, 9), 3, ["position", "velocity"]),
            ((8, 8, 2, 13), (24, 4, 1, 3), ["angle"]),
            ((4, 1, 8, 13), (24, 1, 3, 3), ["position"]),
            # What has one bin is meant to stay in it.
            ((1, 1, 6, 6), 3, []),
        ],
    )
    def test_axes_that_stand_still_are_named(
        self, bins: tuple[int, ...], sub_points: Any, axes: list[str]
    ) -> None:
        messages = []
        for make in (
            lambda: DiscretizedCartPoleEnv(bins=bins, sub_points=sub_points),
            lambda: cartpole(bins=bins, sub_points=sub_points).transition_model(),
        ):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                make()
            assert {each.category for each in caught} <= {UserWarning}
            assert {each.filename for each in caught} <= {__file__}  # shown where it was asked for
            messages.append([str(each.message) for each in caught])
        assert messages[0] == messages[1]
        still = [text for text in messages[0] if "never changes cell" in text]
        assert len(still) == bool(axes)
        if axes:
            assert f"with bins {bins} and sub_points" in still[0]
            assert f"never changes cell along {', '.join(axes)}, where CartPole does" in still[0]

    @pytest.mark.parametrize(
        ("bins", "sub_points"),
        [
            (DEFAULT_BINS, (3, 3, 3, 3)),
            ((3, 3, 6, 3), (3, 3, 3, 3)),
            ((3, 3, 5, 5), (2, 2, 2, 2)),
            ((6, 6, 6, 6), (1, 1, 1, 1)),
            ((2, 2, 2, 2), (1, 2, 3, 4)),
        ],
    )
    def test_the_points_that_the_warning_asks_for_move(
        self, bins: tuple[int, ...], sub_points: tuple[int, ...]
    ) -> None:
        cells = cells_of(bins)
        with pytest.warns(UserWarning) as caught:  # noqa: PT030  # its words are read below
            cartpole_model(cells, GYMNASIUM, sub_points=sub_points)
        words = next(str(w.message) for w in caught if "never changes cell" in str(w.message))
        asked = {axis: int(n) for n, axis in re.findall(r"at least (\d+) along ([a-z ]+)", words)}
        assert asked
        assert all(n > sub_points[AXES.index(axis)] for axis, n in asked.items())
        cartpole_model(
            cells,
            GYMNASIUM,
            sub_points=[asked.get(axis, n) for axis, n in zip(AXES, sub_points, strict=True)],
        )

    def test_what_does_not_move_needs_others(self) -> None:
        """The centre of a single bin of angular velocity is 0, which turns no pole."""
        with pytest.warns(UserWarning) as caught:  # noqa: PT030
            DiscretizedCartPoleEnv(bins=(1, 1, 6, 1), sub_points=1)
        still, never = (str(each.message) for each in caught)
        assert "never changes cell along angle, where" in still
        assert still.endswith("as sub_points more along the others for angle")
        assert "ever fails" in never

    @pytest.mark.parametrize(
        ("bins", "sub_points", "limits", "fails"),
        [
            ((3, 3, 5, 5), 2, None, False),
            ((3, 3, 5, 5), 3, None, True),
            ((3, 3, 5, 5), (24, 7, 3, 3), None, True),
            ((4, 4, 6, 6), (16, 6, 2, 3), (1.0, 3.0, 0.1, 3.5), False),
        ],
    )
    def test_a_model_in_which_no_state_fails_is_named(
        self, bins: tuple[int, ...], sub_points: Any, limits: Any, fails: bool
    ) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            env = DiscretizedCartPoleEnv(bins=bins, sub_points=sub_points, limits=limits)
        named = [text for text in map(str, (w.message for w in caught)) if "ever fails" in text]
        assert len(named) == (not fails)
        # Where it can come to in any number of steps, whatever the actions.
        model = env.transition_model()
        follows = np.asarray(model.to_tabular().transitions.toarray() > 0)
        follows = follows.reshape(model.num_states, 2, -1).any(axis=1)
        reached = model.initial > 0
        for _ in range(model.num_states):
            reached = reached | follows[reached].any(axis=0)
        assert reached[env.cells.failure] == fails

    def test_on_the_command_line(self) -> None:
        for setting, points in (("18,8,2,4", ENOUGH), ("18", (18,) * 4)):
            env = planners.cli.sources.open_env(
                "DiscretizedCartPole-v0", ["bins=3,2,4,3", f"sub_points={setting}"]
            )
            model = cartpole_model(cells_of(), GYMNASIUM, sub_points=points)
            assert planners.as_model(env) is model

    def test_a_spec_that_was_saved_with_one_number(self) -> None:
        old = json.dumps(
            {
                **json.loads(gym.spec("DiscretizedCartPole-v0").to_json()),
                "kwargs": {"sub_points": 3},
            }
        )
        with pytest.warns(UserWarning, match="never changes cell along position, where"):
            env: Any = gym.make(EnvSpec.from_json(old)).unwrapped
        assert env.transition_model() is _chain(env.cells, GYMNASIUM, (3, 3, 3, 3)).model


def cartpole(steps: int = 500, **options: Any) -> DiscretizedCartPole:
    return DiscretizedCartPole(gym.make("CartPole-v1", max_episode_steps=steps), **options)


class TestPolicies:
    def test_by_default_it_lasts(self) -> None:
        """20,000 steps of Gymnasium's CartPole, from each of eight starts."""
        env = cartpole(20_000)
        policy = planners.solve(env, gamma=0.99).policy
        for seed in range(8):
            state, _ = env.reset(seed=seed)
            steps, terminated, truncated = 0, False, False
            while not (terminated or truncated):
                state, _, terminated, truncated, _ = env.step(policy[state])
                steps += 1
            assert (steps, terminated) == (20_000, False)

    @pytest.mark.parametrize(
        ("bins", "sub_points", "num_lasting"),
        [(DEFAULT_BINS, 3, 1), (DEFAULT_BINS, 7, 8), ((24, 8, 12, 13), 3, 8)],
    )
    def test_who_sees_the_cart_move_keeps_it_on_the_track(
        self, bins: tuple[int, ...], sub_points: int, num_lasting: int
    ) -> None:
        cells = cells_of(bins)
        model = _chain(cells, GYMNASIUM, (sub_points,) * 4).model
        policy = planners.solve(model, gamma=0.99).policy
        single = CartPoleEnv()
        up = np.array([[single.reset(seed=seed), single.state][1] for seed in range(8)])
        fallen = []
        for _ in range(20_000):
            # The wrapper sees what CartPole shows, numbers of single precision.
            after = GYMNASIUM.advance(up, policy[cells.states(up.astype(np.float32))])
            fallen.append(after.points[after.failed])
            up = after.points[~after.failed]
        assert len(up) == num_lasting
        assert (np.abs(np.concatenate(fallen)[:, 0]) > GYMNASIUM.thresholds[0]).all()

    @pytest.mark.parametrize("bins", [(5, 5, 9, 9), (8, 8, 12, 13)])
    def test_200_of_200(self, bins: tuple[int, ...]) -> None:
        result = planners.solve(gym.make("DiscretizedCartPole-v0", bins=bins), gamma=0.99)
        assert result.status == "converged"
        walked = planners.rollout(cartpole(200, bins=bins), result, episodes=20, seed=3)
        assert walked.returns.tolist() == [200.0] * 20
        assert not walked.successes.any()  # nothing terminated

    @pytest.mark.parametrize("gamma", [0.95, 0.99])
    def test_500_of_500_and_2000_of_2000(self, gamma: float) -> None:
        env = DiscretizedCartPole(gym.make("CartPole-v1"))
        result = planners.solve(env, gamma=gamma)
        assert planners.rollout(env, result, episodes=6, seed=0).returns.tolist() == [500.0] * 6
        longer = planners.rollout(cartpole(2000), result, episodes=2, seed=1)
        assert longer.lengths.tolist() == [2000] * 2

    @pytest.mark.parametrize("bins", [(5, 5, 9, 9), (10, 10, 10, 10), (6, 6, 7, 8)])
    def test_these_do_not_balance(self, bins: tuple[int, ...]) -> None:
        env = cartpole(bins=bins)
        walked = planners.rollout(env, planners.solve(env, gamma=0.99), episodes=10, seed=0)
        assert (walked.lengths < 500).all()
        assert walked.successes.all()

    def test_the_chain_keeps_its_promise(self) -> None:
        env = gym.make("DiscretizedCartPole-v0", bins=(5, 5, 9, 9))
        result = planners.solve(env, gamma=0.9)
        walked = planners.rollout(env, result, episodes=150, max_steps=150, seed=0)
        assert walked.promised is not None
        assert walked.discounted_returns is not None
        spread = walked.discounted_returns.std() / math.sqrt(150)
        assert abs(walked.discounted_returns.mean() - walked.promised) < 5 * spread + 1e-4


class TestWrapper:
    def test_observes_the_cell_of_cartpole(self) -> None:
        env, plain = cartpole(bins=(5, 5, 9, 9)), gym.make("CartPole-v1")
        assert env.observation_space == gym.spaces.Discrete(2026)
        rng = np.random.default_rng(0)
        for seed in range(5):
            state, info = env.reset(seed=seed)
            observation, _ = plain.reset(seed=seed)
            terminated = False
            while not terminated:
                assert type(state) is int
                assert state == info["state"] == env.cells.states(observation)
                assert info["action_mask"].tolist() == [1, 1]
                assert info["action_mask"].dtype == np.int8
                assert env.action_masks().tolist() == [True, True]
                action = rng.integers(2)
                state, reward, terminated, truncated, info = env.step(action)
                observation, *expected = plain.step(action)
                assert [reward, terminated, truncated] == expected[:3]
            assert state == info["state"] == env.cells.failure

    def test_gymnasium_finds_nothing_wrong(self) -> None:
        for inner in (CartPoleEnv(), gym.make("CartPole-v1").unwrapped):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.filterwarnings("ignore", ".*different from the unwrapped version.*")
                check_env(DiscretizedCartPole(inner), skip_render_check=True)

    def test_options_and_limits_are_those_of_cartpole(self) -> None:
        env = cartpole(7)
        state, _ = env.reset(seed=0, options={"low": 0.1, "high": 0.2})
        assert state in env.cells.states(list(itertools.product([0.1, 0.2], repeat=4)))
        ends = [env.step(k % 2)[2:4] for k in range(7)]
        assert ends == [(False, False)] * 6 + [(False, True)]

    def test_keeps_what_the_cartpole_is(self) -> None:
        inner = gym.make("CartPole-v1", sutton_barto_reward=True)
        inner.unwrapped.force_mag = 5.0  # type: ignore[attr-defined]
        options = {"bins": (5, 5, 9, 9), "sub_points": (24, 8, 3, 5)}
        model = DiscretizedCartPole(inner, **options).transition_model()
        other = cartpole(**options).transition_model()
        assert model.costs.min() == 0.0 > other.costs.min()
        assert (model.transitions != other.transitions).nnz > 0

    def test_spec_and_copies(self) -> None:
        env = cartpole(bins=SMALL, limits=[2, 2, 0.2, 3], sub_points=ENOUGH)
        assert env.spec is not None
        again = gym.make(EnvSpec.from_json(env.spec.to_json()))
        assert isinstance(again, DiscretizedCartPole)
        assert again.cells == env.cells
        assert again.transition_model() is env.transition_model()
        env.reset(seed=4)
        twin = pickle.loads(pickle.dumps(env))
        for action in (0, 1, 1, 0, 0):
            assert data_equivalence(twin.step(action), env.step(action), exact=True)

    def test_planners_find_its_model(self) -> None:
        env = wrappers.RecordEpisodeStatistics(cartpole(bins=SMALL, sub_points=ENOUGH))
        assert planners.as_model(env) is env.get_wrapper_attr("transition_model")()

    @pytest.mark.parametrize(
        ("action", "error"),
        [(2, ValueError), (-1, ValueError), (1.0, TypeError), (None, TypeError)],
    )
    def test_other_actions_are_refused(self, action: Any, error: type[Exception]) -> None:
        env = cartpole(bins=SMALL)
        env.reset(seed=0)
        with pytest.raises(error, match=r"action must be .*\[0, 2\), got "):
            env.step(action)
        env.step(np.array(1))

    def test_only_a_bare_cartpole_is_wrapped(self) -> None:
        with pytest.raises(TypeError, match=r"env must be a CartPole.*got .*FrozenLake"):
            DiscretizedCartPole(gym.make("FrozenLake-v1"))
        bare = gym.make("CartPole-v1")
        for wrapped in (
            wrappers.TransformReward(bare, lambda reward: 2 * reward),
            wrappers.StickyAction(bare, 0.5),
            wrappers.FlattenObservation(bare),
        ):
            with pytest.raises(ValueError, match=f"{type(wrapped).__name__} inside changes"):
                DiscretizedCartPole(wrapped)
        with pytest.raises(ValueError, match="observations must be those of CartPole"):
            DiscretizedCartPole(wrappers.FrameStackObservation(bare, 2))


class TestPictures:
    def test_show_where_the_cell_is(self) -> None:
        frames, texts = {}, {}
        for name, point in {"left": (-2.0, 0.0, 0.1, 0.0), "right": (2.0, 0.0, -0.1, 0.0)}.items():
            state = cells_of((6, 5, 6, 5)).states(point)
            for mode, seen in (("rgb_array", frames), ("ansi", texts)):
                env = DiscretizedCartPoleEnv(bins=(6, 5, 6, 5), render_mode=mode)
                env.reset(options={"state": state})
                seen[name] = env.render()
        dark = {name: np.argwhere(frame.sum(axis=2) < 60) for name, frame in frames.items()}
        assert dark["left"][:, 1].mean() < 150
        assert dark["right"][:, 1].mean() > 450
        # Mirror images but for the side on which an edge is rounded.
        mirrored = np.abs(frames["left"].astype(int) - frames["right"][:, ::-1]).max(axis=2) > 0
        assert mirrored.mean() < 0.01
        assert texts["left"] == (
            "position          -2.40 |A.....| 2.40\n"
            "velocity          -3.00 |..A..| 3.00\n"
            "angle             -0.21 |....A.| 0.21\n"
            "angular velocity  -3.50 |..A..| 3.50"
        )

    @pytest.mark.parametrize("mode", ["rgb_array", "ansi"])
    def test_show_failing(self, mode: str) -> None:
        env = DiscretizedCartPoleEnv(bins=SMALL, sub_points=ENOUGH, render_mode=mode)
        failing = env.transition_model().to_tabular().transitions[:, [env.cells.failure]].toarray()
        state, action = divmod(int(failing[:-2].argmax()), 2)
        env.reset(seed=0, options={"state": state})
        before = env.render()
        while not env.step(action)[2]:
            env.reset(options={"state": state})
        after = env.render()
        assert not np.array_equal(before, after)
        if mode == "ansi":
            assert after.endswith("failed")
            assert "A" not in after
