"""MountainCar, Acrobot and Pendulum of many points beside single steps of Gymnasium's own."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control import (
    AcrobotEnv,
    CartPoleEnv,
    Continuous_MountainCarEnv,
    MountainCarEnv,
    PendulumEnv,
)
from numpy.typing import NDArray

from aggmaze.cells.control import PROBLEMS, Acrobot, MountainCar, Pendulum, problem_of

WHOLE = {
    # Beyond the walls and over the goal, all angles and speeds: what a first state may be.
    MountainCar: ((-1.3, -0.09), (0.7, 0.09)),
    Acrobot: ((-9.0, -9.0, -14.0, -30.0), (9.0, 9.0, 14.0, 30.0)),
    Pendulum: ((-20.0, -9.0), (20.0, 9.0)),
}


def changed(env: Any, **constants: Any) -> Any:
    for name, value in constants.items():
        assert hasattr(env, name)
        setattr(env, name, value)
    return env


VARIANTS = [
    MountainCarEnv(),
    MountainCarEnv(goal_velocity=0.03),
    changed(MountainCarEnv(), force=0.002, gravity=0.003, max_speed=0.05, goal_position=0.3),
    changed(MountainCarEnv(), min_position=-1.0, max_position=0.55),
    AcrobotEnv(),
    changed(AcrobotEnv(), book_or_nips="nips", dt=0.05),
    changed(AcrobotEnv(), LINK_LENGTH_1=1.3, LINK_COM_POS_1=0.4, LINK_MASS_2=0.7, LINK_MOI=0.8),
    changed(AcrobotEnv(), AVAIL_TORQUE=[-2.0, 2.0], MAX_VEL_1=5.0, MAX_VEL_2=7.0),
    PendulumEnv(),
    PendulumEnv(g=9.81),
    changed(PendulumEnv(), m=0.5, l=1.4, dt=0.02, max_speed=5.0, max_torque=3.0),
]


def one_step(
    env: Any, point: NDArray[np.float64], action: Any
) -> tuple[NDArray[np.float64], float, bool]:
    """Return where Gymnasium's own environment comes to, its reward and its end."""
    env.reset()
    env.state = point.copy()
    _, reward, terminated, _, _ = env.step(action)
    return np.array(env.state, dtype=np.float64), float(reward), terminated


def same_place(first: Any, second: Any, angles: tuple[int, ...]) -> float:
    """Return the largest distance along an axis, of angles around the circle."""
    gone = np.asarray(first) - np.asarray(second)
    for axis in angles:
        gone[axis] = math.remainder(gone[axis], 2 * math.pi)
    return float(np.abs(gone).max())


@pytest.mark.parametrize(
    "env", VARIANTS, ids=lambda env: f"{type(env).__name__}-{VARIANTS.index(env)}"
)
def test_steps_as_gymnasium_does(env: Any) -> None:
    problem = problem_of(env)
    rng = np.random.default_rng(0)
    points = rng.uniform(*WHOLE[type(problem)], (600, len(problem.axes)))
    actions = rng.integers(problem.num_actions, size=600)
    after = problem.advance(points, actions)
    assert after.points.shape == points.shape
    for k, (point, action) in enumerate(zip(points, actions.tolist(), strict=True)):
        given = action
        if isinstance(problem, Pendulum):
            given = np.array([problem.torques[action]])
            assert given[0] == problem.action_of(action)[0]
        expected, reward, terminated = one_step(env, point, given)
        assert same_place(after.points[k], expected, problem.wrap) < 1e-12
        assert after.rewards[k] == pytest.approx(reward, rel=1e-13, abs=1e-12)
        assert after.terminated[k] == terminated
    assert problem.ends == after.terminated.any()


@pytest.mark.parametrize("kind", PROBLEMS, ids=lambda kind: kind.__name__)
def test_walks_as_gymnasium_does(kind: Any) -> None:
    """Whole episodes, from where it starts, by what it shows."""
    env: Any = gym.make(kind.env_id)
    problem = problem_of(env.unwrapped)
    low, high = (np.broadcast_to(end, len(problem.axes)) for end in problem.start)
    for seed in range(4):
        shown, _ = env.reset(seed=seed)
        point = np.array(env.unwrapped.state, dtype=np.float64)
        assert ((point >= low - 1e-7) & (point <= high + 1e-7)).all()
        rng = np.random.default_rng(seed)
        for _ in range(60):
            assert same_place(problem.point_of(shown), point, problem.wrap) < 1e-5
            action = int(rng.integers(problem.num_actions))
            shown, reward, terminated, _, _ = env.step(problem.action_of(action))
            after = problem.advance(point[np.newaxis], np.array([action]))
            point = np.array(env.unwrapped.state, dtype=np.float64)
            # Torques of single precision, with which Gymnasium computes in single precision.
            assert same_place(after.points[0], point, problem.wrap) < 1e-6
            assert after.rewards[0] == pytest.approx(reward, abs=1e-5)
            assert after.terminated[0] == terminated


@pytest.mark.parametrize("kind", PROBLEMS, ids=lambda kind: kind.__name__)
def test_every_constant_is_read(kind: Any) -> None:
    env: Any = kind.env_class()
    drawing = {"render_mode", "screen_width", "screen_height", "screen_dim", "SCREEN_DIM", "isopen"}
    drawing |= {"actions_num", "low", "high", "screen", "clock", "state", "last_u"}
    drawing |= {"action_arrow", "np_random_seed"}
    numbers = {
        name
        for name in dir(env)
        if not name.startswith("_") and isinstance(getattr(env, name), int | float | list | str)
    }
    assert numbers - drawing == set(kind.names)


def test_observations_are_told_back() -> None:
    rng = np.random.default_rng(3)
    acrobot = problem_of(AcrobotEnv())
    points = rng.uniform((-math.pi, -math.pi, -9, -9), (math.pi, math.pi, 9, 9), (200, 4))
    first, second = points[:, 0], points[:, 1]
    shown = np.stack(
        [np.cos(first), np.sin(first), np.cos(second), np.sin(second), points[:, 2], points[:, 3]]
    ).T
    np.testing.assert_allclose(acrobot.point_of(shown), points, atol=1e-12)
    pendulum = problem_of(PendulumEnv())
    shown = np.stack([np.cos(first), np.sin(first), points[:, 2]]).T
    np.testing.assert_allclose(pendulum.point_of(shown), points[:, [0, 2]], atol=1e-12)
    np.testing.assert_allclose(pendulum.point_of(shown[7]), points[7, [0, 2]], atol=1e-12)


def test_torques_are_evenly_spaced() -> None:
    problem = problem_of(PendulumEnv(), num_torques=5)
    assert isinstance(problem, Pendulum)
    assert problem.torques == (-2.0, -1.0, 0.0, 1.0, 2.0)
    assert problem.action_names == ("-2", "-1", "0", "1", "2")
    assert problem.action_of(3).dtype == np.float32
    assert problem.action_of(3) in PendulumEnv().action_space


def test_what_is_the_same_is_equal() -> None:
    for make in (MountainCarEnv, AcrobotEnv, PendulumEnv):
        assert problem_of(make()) == problem_of(make())
        assert hash(problem_of(make())) == hash(problem_of(make()))
    assert problem_of(MountainCarEnv()) != problem_of(MountainCarEnv(goal_velocity=0.1))
    assert problem_of(AcrobotEnv()) != problem_of(AcrobotEnv(), limits=(3, 3))


class Own(MountainCarEnv):
    def step(self, action: int) -> Any:
        return super().step(2 - action)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: problem_of(CartPoleEnv()),
            TypeError,
            "CartPole in cells is aggmaze.DiscretizedCart",
        ),
        (
            lambda: problem_of(Continuous_MountainCarEnv()),
            TypeError,
            "MountainCarEnv are not known",
        ),
        (
            lambda: problem_of(MountainCarEnv(), limits=(1, 1)),
            TypeError,
            "MountainCar-v0 has no option 'limits'; allowed: none",
        ),
        (lambda: problem_of(Own()), ValueError, "Own has a step of its own"),
        (
            lambda: problem_of(changed(AcrobotEnv(), torque_noise_max=0.5)),
            ValueError,
            "torque_noise_max must be 0.*got 0.5",
        ),
        (
            lambda: problem_of(AcrobotEnv(), limits=(1, 0)),
            ValueError,
            r"limits\[1\] must be in \(0, 28.27\], got 0",
        ),
        (
            lambda: problem_of(AcrobotEnv(), limits=(13, 1)),
            ValueError,
            r"limits\[0\] must be in \(0, 12.57\], got 13",
        ),
        (lambda: problem_of(AcrobotEnv(), limits=(3,)), ValueError, "limits must be 2 numbers"),
        (
            lambda: problem_of(PendulumEnv(), num_torques=1),
            ValueError,
            "num_torques must be at least 2, got 1",
        ),
    ],
)
def test_bad_arguments_are_named(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
