"""Control problems in cells as environments: models, pictures, keys, and many at once."""

from __future__ import annotations

import math
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import aggmaze
from aggmaze.keys import DOWN, LEFT, RIGHT

SMALL: dict[str, dict[str, Any]] = {
    "DiscretizedMountainCar-v0": {"bins": (18, 14)},
    "DiscretizedAcrobot-v0": {"bins": (5, 6, 5, 5)},
    "DiscretizedPendulum-v0": {"bins": (12, 9)},
}
every_id = pytest.mark.parametrize("env_id", SMALL)


def bare(env_id: str, **options: Any) -> Any:
    return gym.make(env_id, **{**SMALL[env_id], **options}).unwrapped


def moving(frame: Any) -> Any:
    """Return where the black of a body is, below the words: rows and columns."""
    dark = np.argwhere(frame.sum(axis=2) < 60)
    return dark[dark[:, 0] > 90]


class TestModels:
    @every_id
    @pytest.mark.parametrize("method", ["average", "interpolate"])
    def test_of_both_methods(self, env_id: str, method: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            env = bare(env_id, method=method)
        model = env.transition_model()
        assert model.num_states == math.prod(SMALL[env_id]["bins"]) + model.terminal.sum()
        assert env.cells.num_states == model.num_states
        assert model.terminal.any() == (env_id != "DiscretizedPendulum-v0")

    def test_where_it_starts(self) -> None:
        """MountainCar at rest, the velocity 0 between the two corners in the middle."""
        env = bare("DiscretizedMountainCar-v0")
        coords = env.cells.grid.coords(np.flatnonzero(env.transition_model().initial))
        assert set(coords[:, 1].tolist()) == {6, 7}
        positions = -1.2 + 1.8 / 17 * coords[:, 0]
        assert ((positions > -0.6 - 1.8 / 17) & (positions < -0.4 + 1.8 / 17)).all()

    def test_options_reach_the_physics(self) -> None:
        for env_id, options in (
            ("DiscretizedMountainCar-v0", {"goal_velocity": 0.05}),
            ("DiscretizedPendulum-v0", {"g": 3.0}),
        ):
            plain, other = (bare(env_id, **given).transition_model() for given in ({}, options))
            assert (plain.transitions != other.transitions).nnz > 0
        assert bare("DiscretizedPendulum-v0", num_torques=4).action_space.n == 4
        assert bare("DiscretizedAcrobot-v0", limits=(3, 4)).cells.high[2:] == (3.0, 4.0)

    @every_id
    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"bins": (3,)}, ValueError, "bins must be . numbers, of"),
            ({"bins": None, "method": "nearest"}, ValueError, "method must be one of"),
            ({"sub_points": 3}, ValueError, "sub_points are of method='average'"),
            ({"render_mode": "rgb"}, ValueError, "render_mode must be"),
        ],
    )
    def test_bad_arguments_are_named(
        self, env_id: str, options: dict[str, Any], error: type[Exception], message: str
    ) -> None:
        make = {
            "DiscretizedMountainCar-v0": aggmaze.DiscretizedMountainCarEnv,
            "DiscretizedAcrobot-v0": aggmaze.DiscretizedAcrobotEnv,
            "DiscretizedPendulum-v0": aggmaze.DiscretizedPendulumEnv,
        }[env_id]
        with pytest.raises(error, match=message):
            make(**options)

    def test_faults_are_told_where_it_is_made(self) -> None:
        with pytest.warns(UserWarning, match="never changes cell along angle") as caught:
            aggmaze.DiscretizedPendulumEnv(bins=(2, 9), method="average", sub_points=1)
        assert [each.filename for each in caught] == [__file__]

    @every_id
    def test_many_at_once_walk_alike(self, env_id: str) -> None:
        many: Any = gym.make_vec(env_id, num_envs=3, **SMALL[env_id])
        assert many.transition_model() is bare(env_id).transition_model()
        states, _ = many.reset(seed=0)
        rows = many.transition_model().transitions
        actions = np.array([0, 1, 2])
        following, *_ = many.step(actions)
        num_actions = many.single_action_space.n
        for state, action, after in zip(states, actions, following, strict=True):
            assert rows[[state * num_actions + action], [after]] > 0


class TestPictures:
    def test_the_car_is_where_it_is(self) -> None:
        env = bare("DiscretizedMountainCar-v0", bins=(46, 15), render_mode="rgb_array")
        places = []
        for position in (-1.0, -0.52, 0.2):
            env.reset(options={"state": int(env.cells.states([position, 0.0]))})
            places.append(moving(env.render()).mean(axis=0))
        rows, columns = np.transpose(places)
        assert (np.diff(columns) > 80).all()
        assert rows[1] > max(rows[0], rows[2]) + 20  # the bottom of the valley

    def test_links_hang_and_stand(self) -> None:
        env = bare("DiscretizedAcrobot-v0", bins=(8, 8, 5, 5), render_mode="rgb_array")
        seen = {}
        for name, angles in {
            "hangs": (0.0, 0.0),
            "right": (math.pi / 2, 0.0),
            "left": (-math.pi / 2, 0.0),
            "folded": (math.pi / 2, -math.pi),
        }.items():
            env.reset(options={"state": int(env.cells.states([*angles, 0.0, 0.0]))})
            seen[name] = moving(env.render())
        assert abs(seen["hangs"][:, 1].mean() - 300) < 2
        assert seen["hangs"][:, 0].mean() > 220
        assert seen["right"][:, 1].mean() > 350
        assert seen["left"][:, 1].mean() < 250
        assert np.ptp(seen["folded"][:, 1]) < 0.7 * np.ptp(seen["right"][:, 1])

    def test_the_pendulum_stands_and_hangs_as_gymnasiums(self) -> None:
        """An angle of 0 is upright, and positive ones lean to the left."""
        env = bare("DiscretizedPendulum-v0", bins=(8, 5), render_mode="rgb_array")
        where = {}
        for angle in (0.0, math.pi / 2, -math.pi / 2, -math.pi):
            env.reset(options={"state": int(env.cells.states([angle, 0.0]))})
            where[angle] = moving(env.render()).mean(axis=0)
        assert where[0.0][0] < 160 < 220 < where[-math.pi][0]
        assert where[math.pi / 2][1] < 250 < 350 < where[-math.pi / 2][1]

    def test_the_arrow_points_where_it_pushes(self) -> None:
        for env_id, first_is_left in (
            ("DiscretizedMountainCar-v0", True),
            ("DiscretizedAcrobot-v0", True),
            # A negative torque turns an upright pendulum to the right.
            ("DiscretizedPendulum-v0", False),
        ):
            env = bare(env_id, render_mode="rgb_array")
            env.reset(seed=0)
            plain = env.render()
            sides = []
            for action in (0, env.action_space.n - 1):
                policy = np.full(env.observation_space.n, action)
                env.set_overlay(policy=policy)
                changed = np.argwhere((env.render() != plain).any(axis=2))
                sides.append(changed[:, 1].mean())
            assert (sides[0] < sides[1]) == first_is_left
            env.set_overlay(policy=np.full(env.observation_space.n, env.action_space.n // 2))
            assert (env.render() != plain).any()  # a dot

    @pytest.mark.parametrize("env_id", ["DiscretizedMountainCar-v0", "DiscretizedAcrobot-v0"])
    def test_having_ended_is_shown(self, env_id: str) -> None:
        model = bare(env_id).transition_model()
        (end,) = np.flatnonzero(model.terminal)
        ending = model.transitions[:, [end]].toarray()[: -model.num_actions]
        state, action = divmod(int(ending.argmax()), model.num_actions)
        for mode in ("rgb_array", "ansi"):
            env = bare(env_id, render_mode=mode)
            env.reset(seed=0, options={"state": state})
            before = env.render()
            while not env.step(action)[2]:
                env.reset(options={"state": state})
            after = env.render()
            assert not np.array_equal(before, after)
            if mode == "ansi":
                assert after.endswith("ended")
                assert "A" not in after

    def test_as_text(self) -> None:
        env = bare("DiscretizedPendulum-v0", bins=(8, 81), render_mode="ansi")
        env.reset(options={"state": int(env.cells.states([0.0, -8.0]))})
        assert env.render() == (
            "angle              -3.14 |....A...| 3.14    0.000\n"
            f"angular velocity   -8.00 |A{'.' * 39}| 8.00   -8.000"
        )
        policy = np.zeros(env.observation_space.n, dtype=int)
        env.set_overlay(values=np.arange(648.0), policy=policy, labels=policy)
        assert env.render().splitlines()[2:] == [
            "return -324 (from -647 to 0)",
            "action -2",
            "mega-state 0 of 1",
        ]


class TestKeys:
    def test_three_actions(self) -> None:
        env = bare("DiscretizedAcrobot-v0")
        keys = env.get_keys_to_action()
        assert [keys[(code,)] for code in (LEFT, DOWN, RIGHT)] == [0, 1, 2]
        assert [keys[(ord(letter),)] for letter in "asd"] == [0, 1, 2]
        assert env.keys_in_words == "left, down and right, or A, S and D"
        assert [env.action_name(action) for action in range(3)] == ["LEFT", "NONE", "RIGHT"]

    @pytest.mark.parametrize(
        ("num_torques", "words", "actions"),
        [(7, "1 to 7", range(7)), (2, "1 to 2", range(2)), (17, "1 to 9", range(0, 17, 2))],
    )
    def test_torques(self, num_torques: int, words: str, actions: Any) -> None:
        env = bare("DiscretizedPendulum-v0", num_torques=num_torques)
        assert list(env.get_keys_to_action().values()) == list(actions)
        assert env.keys_in_words == words
        assert env.action_name(0) == "-2"
