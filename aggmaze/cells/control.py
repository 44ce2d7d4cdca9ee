"""Gymnasium's MountainCar, Acrobot and Pendulum, of many points at once.

Constants are those of the environment at hand, Acrobot's equations of motion its own method.  What
Gymnasium computes for one point in single steps, and cannot for many, is written down here:
MountainCar's and Pendulum's step, and around Acrobot's equations the Runge-Kutta step.  The tests
compare all with ``env.step``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control import (
    AcrobotEnv,
    CartPoleEnv,
    MountainCarEnv,
    PendulumEnv,
    pendulum,
)
from numpy.typing import ArrayLike, NDArray

from aggmaze.cells.cells import check_box
from aggmaze.cells.problem import Advanced, Problem, named
from aggmaze.checks import check_integer

PUSHES = ("LEFT", "NONE", "RIGHT")


@dataclass(frozen=True)
class ControlProblem(Problem):
    """A classic control problem of Gymnasium's.

    Parameters
    ----------
    constants : tuple of pairs
        Name and value of what its steps depend on.
    """

    constants: tuple[tuple[str, Any], ...]

    #: Gymnasium's class, and the names of its constants.
    env_class: ClassVar[type[gym.Env[Any, Any]]]
    names: ClassVar[tuple[str, ...]]
    #: Id of the environment on which policies are tried.
    env_id: ClassVar[str]
    #: Bins with which policies do well, and the method that does better with them.
    default_bins: ClassVar[tuple[int, ...]]
    default_method: ClassVar[str] = "interpolate"
    #: What `of` takes beside an environment.
    options: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def constants_of(cls, env: Any) -> tuple[tuple[str, Any], ...]:
        """Read the constants of an environment, as they are now.

        Raises
        ------
        ValueError
            If it is of a subclass whose steps are its own.
        """
        if type(env).step is not cls.env_class.step:
            raise ValueError(
                f"{type(env).__name__} has a step of its own: give its physics to "
                "aggmaze.discretize as a function"
            )
        return tuple((name, getattr(env, name)) for name in cls.names)

    @classmethod
    @abstractmethod
    def of(cls, env: Any) -> Self:
        """Return the problem of an environment, with its constants as they are now."""

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.env_id.partition("-")[0]

    @cached_property
    def _values(self) -> dict[str, Any]:
        return dict(self.constants)


@dataclass(frozen=True)
class MountainCar(ControlProblem):
    """A car in a valley that is too weak to drive straight out."""

    env_class = MountainCarEnv
    env_id = "MountainCar-v0"
    names = (
        "min_position",
        "max_position",
        "max_speed",
        "goal_position",
        "goal_velocity",
        "force",
        "gravity",
    )
    default_bins = (120, 100)

    @classmethod
    def of(cls, env: Any) -> Self:
        """Return the problem of an environment, with its constants as they are now."""
        return cls(cls.constants_of(env))

    @property
    def axes(self) -> tuple[str, ...]:
        """Position and velocity."""
        return ("position", "velocity")

    @property
    def low(self) -> tuple[float, ...]:
        """Least position and velocity."""
        return float(self._values["min_position"]), -float(self._values["max_speed"])

    @property
    def high(self) -> tuple[float, ...]:
        """Largest position and velocity."""
        return float(self._values["max_position"]), float(self._values["max_speed"])

    @property
    def ends(self) -> bool:
        """Whether episodes can terminate: at the goal."""
        return True

    @property
    def start(self) -> tuple[ArrayLike, ArrayLike]:
        """At rest near the bottom of the valley, as Gymnasium's ``reset`` has it."""
        return (-0.6, 0.0), (-0.4, 0.0)

    @property
    def action_names(self) -> tuple[str, ...]:
        """LEFT, NONE, RIGHT."""
        return PUSHES

    def advance(self, points: NDArray[np.float64], actions: NDArray[np.int64]) -> Advanced:
        """Take one step from each point.

        Parameters
        ----------
        points : ndarray of float, shape (N, 2)
        actions : ndarray of int, shape (N,)
        """
        of, (position, velocity) = self._values, points.T
        push = (actions - 1) * of["force"] + np.cos(3 * position) * (-of["gravity"])
        velocity = np.clip(velocity + push, -of["max_speed"], of["max_speed"])
        position = np.clip(position + velocity, of["min_position"], of["max_position"])
        velocity = np.where((position == of["min_position"]) & (velocity < 0), 0.0, velocity)
        arrived = (position >= of["goal_position"]) & (velocity >= of["goal_velocity"])
        return Advanced(np.stack([position, velocity], axis=1), np.full(len(points), -1.0), arrived)


@dataclass(frozen=True)
class Acrobot(ControlProblem):
    """Two links of which only the joint between them is driven.

    Parameters
    ----------
    constants : tuple of pairs
    limits : tuple of float
        Speeds of the two angles beyond which the box ends.
    """

    limits: tuple[float, float]

    env_class = AcrobotEnv
    env_id = "Acrobot-v1"
    names = (
        "dt",
        "LINK_LENGTH_1",
        "LINK_LENGTH_2",
        "LINK_MASS_1",
        "LINK_MASS_2",
        "LINK_COM_POS_1",
        "LINK_COM_POS_2",
        "LINK_MOI",
        "MAX_VEL_1",
        "MAX_VEL_2",
        "AVAIL_TORQUE",
        "torque_noise_max",
        "book_or_nips",
    )
    default_bins = (12, 12, 15, 15)
    options = ("limits",)
    #: Speeds that a policy which swings up seldom leaves.
    default_limits = (6.0, 10.0)

    @classmethod
    def of(cls, env: Any, limits: Iterable[float] | None = None) -> Self:
        """Return the problem of an environment, with its constants as they are now.

        Parameters
        ----------
        env : gymnasium.Env
        limits : iterable of float, optional
            Speeds of the two angles beyond which the box ends; at most what the physics allows, and
            (6, 10) by default if it does.

        Raises
        ------
        ValueError
            If the torque has noise, or a limit is not positive or too large.
        """
        constants = cls.constants_of(env)
        if env.torque_noise_max != 0:
            raise ValueError(
                "torque_noise_max must be 0: steps from a point are taken once, got "
                f"{env.torque_noise_max}"
            )
        most = (float(env.MAX_VEL_1), float(env.MAX_VEL_2))
        given = map(min, cls.default_limits, most) if limits is None else limits
        _, (first, second) = check_box((0, 0), given, ("velocity 1", "velocity 2"), ("0", "limits"))
        for axis, (limit, largest) in enumerate(zip((first, second), most, strict=True)):
            if not 0 < limit <= largest:
                raise ValueError(f"limits[{axis}] must be in (0, {largest:.4g}], got {limit}")
        torques = tuple(float(torque) for torque in env.AVAIL_TORQUE)
        constants = tuple(
            (name, torques if name == "AVAIL_TORQUE" else value) for name, value in constants
        )
        return cls(constants, (first, second))

    @property
    def axes(self) -> tuple[str, ...]:
        """Both angles and their velocities."""
        return ("angle 1", "angle 2", "velocity 1", "velocity 2")

    @property
    def low(self) -> tuple[float, ...]:
        """The box's lower ends."""
        return -math.pi, -math.pi, -self.limits[0], -self.limits[1]

    @property
    def high(self) -> tuple[float, ...]:
        """The box's upper ends."""
        return math.pi, math.pi, *self.limits

    @property
    def wrap(self) -> tuple[int, ...]:
        """The angles."""
        return (0, 1)

    @property
    def ends(self) -> bool:
        """Whether episodes can terminate: when the tip is high enough."""
        return True

    @property
    def start(self) -> tuple[ArrayLike, ArrayLike]:
        """Hanging nearly still, as Gymnasium's ``reset`` has it."""
        return -0.1, 0.1

    @property
    def action_names(self) -> tuple[str, ...]:
        """LEFT, NONE, RIGHT, or other torques."""
        torques = self._values["AVAIL_TORQUE"]
        return PUSHES if torques == (-1.0, 0.0, 1.0) else named(torques)

    def advance(self, points: NDArray[np.float64], actions: NDArray[np.int64]) -> Advanced:
        """Take one step from each point.

        Parameters
        ----------
        points : ndarray of float, shape (N, 4)
        actions : ndarray of int, shape (N,)
        """
        of, env = self._values, self._env
        state = np.concatenate([points.T, [np.array(of["AVAIL_TORQUE"])[actions]]])
        half = of["dt"] / 2.0

        def slope(at: NDArray[np.float64]) -> NDArray[np.float64]:
            *slopes, _ = env._dsdt(at)
            return np.stack([*slopes, np.zeros(len(points))])

        # One step of Runge and Kutta, as Gymnasium's rk4 takes it.
        k1 = slope(state)
        k2 = slope(state + half * k1)
        k3 = slope(state + half * k2)
        k4 = slope(state + of["dt"] * k3)
        theta1, theta2, speed1, speed2, _ = state + of["dt"] / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
        theta1, theta2 = _turned(theta1), _turned(theta2)
        speed1 = np.clip(speed1, -of["MAX_VEL_1"], of["MAX_VEL_1"])
        speed2 = np.clip(speed2, -of["MAX_VEL_2"], of["MAX_VEL_2"])
        high = -np.cos(theta1) - np.cos(theta2 + theta1) > 1.0
        after = np.stack([theta1, theta2, speed1, speed2], axis=1)
        return Advanced(after, np.where(high, 0.0, -1.0), high)

    def point_of(self, observations: ArrayLike) -> NDArray[np.float64]:
        """Return the points of what the environment shows, shape (..., 6) to (..., 4)."""
        seen = np.asarray(observations, dtype=np.float64)
        angles = np.arctan2(seen[..., [1, 3]], seen[..., [0, 2]])
        return np.concatenate([angles, seen[..., 4:]], axis=-1)

    @cached_property
    def _env(self) -> Any:
        env = AcrobotEnv()
        for name, value in self.constants:
            setattr(env, name, value)
        return env


@dataclass(frozen=True)
class Pendulum(ControlProblem):
    """A pendulum that is swung up by torques in steps.

    Parameters
    ----------
    constants : tuple of pairs
    torques : tuple of float
        One for each action.
    """

    torques: tuple[float, ...]

    env_class = PendulumEnv
    env_id = "Pendulum-v1"
    names = ("max_speed", "max_torque", "dt", "g", "m", "l")
    default_bins = (101, 81)
    options = ("num_torques",)

    @classmethod
    def of(cls, env: Any, num_torques: int = 7) -> Self:
        """Return the problem of an environment, with its constants as they are now.

        Parameters
        ----------
        env : gymnasium.Env
        num_torques : int
            Torques, evenly spaced between the largest to either side; at least 2.
        """
        num_torques = check_integer("num_torques", num_torques, least=2)
        # As the environment takes them.
        torques = np.linspace(-env.max_torque, env.max_torque, num_torques, dtype=np.float32)
        return cls(cls.constants_of(env), tuple(torques.tolist()))

    @property
    def axes(self) -> tuple[str, ...]:
        """Angle, 0 where it stands upright, and angular velocity."""
        return ("angle", "angular velocity")

    @property
    def low(self) -> tuple[float, ...]:
        """The box's lower ends."""
        return -math.pi, -float(self._values["max_speed"])

    @property
    def high(self) -> tuple[float, ...]:
        """The box's upper ends."""
        return math.pi, float(self._values["max_speed"])

    @property
    def wrap(self) -> tuple[int, ...]:
        """The angle."""
        return (0,)

    @property
    def ends(self) -> bool:
        """Whether episodes can terminate: never."""
        return False

    @property
    def start(self) -> tuple[ArrayLike, ArrayLike]:
        """At any angle, slowly, as Gymnasium's ``reset`` has it."""
        most = np.array([pendulum.DEFAULT_X, pendulum.DEFAULT_Y])
        return -most, most

    @property
    def action_names(self) -> tuple[str, ...]:
        """The torques."""
        return named(self.torques)

    def advance(self, points: NDArray[np.float64], actions: NDArray[np.int64]) -> Advanced:
        """Take one step from each point.

        Parameters
        ----------
        points : ndarray of float, shape (N, 2)
        actions : ndarray of int, shape (N,)
        """
        of, (angle, speed) = self._values, points.T
        torque = np.array(self.torques)[actions]
        torque = np.clip(torque, -of["max_torque"], of["max_torque"])
        cost = _turned(angle) ** 2 + 0.1 * speed**2 + 0.001 * torque**2
        pull = 3 * of["g"] / (2 * of["l"]) * np.sin(angle)
        speed = speed + (pull + 3.0 / (of["m"] * of["l"] ** 2) * torque) * of["dt"]
        speed = np.clip(speed, -of["max_speed"], of["max_speed"])
        after = np.stack([angle + speed * of["dt"], speed], axis=1)
        return Advanced(after, 0.0 - cost, np.zeros(len(points), dtype=bool))

    def point_of(self, observations: ArrayLike) -> NDArray[np.float64]:
        """Return the points of what the environment shows, shape (..., 3) to (..., 2)."""
        seen = np.asarray(observations, dtype=np.float64)
        return np.stack([np.arctan2(seen[..., 1], seen[..., 0]), seen[..., 2]], axis=-1)

    def action_of(self, action: int) -> NDArray[np.float32]:
        """Return the torque, as the environment's ``step`` takes it."""
        return np.array([self.torques[action]], dtype=np.float32)


#: The problems whose physics are known, by Gymnasium's class.
PROBLEMS: tuple[type[ControlProblem], ...] = (MountainCar, Acrobot, Pendulum)


def problem_of(env: Any, **options: Any) -> ControlProblem:
    """Return the problem of one of Gymnasium's environments, without wrappers.

    Parameters
    ----------
    env : gymnasium.Env
    **options
        ``limits`` of Acrobot, ``num_torques`` of Pendulum.

    Raises
    ------
    TypeError
        If it is none of them, or has no such option.
    """
    for kind in PROBLEMS:
        if isinstance(env, kind.env_class):
            for name in options:
                if name not in kind.options:
                    allowed = ", ".join(kind.options) or "none"
                    raise TypeError(f"{kind.env_id} has no option {name!r}; allowed: {allowed}")
            return kind.of(env, **options)
    if isinstance(env, CartPoleEnv):
        raise TypeError("CartPole in cells is aggmaze.DiscretizedCartPole, which wraps it")
    known = ", ".join(kind.env_id for kind in PROBLEMS)
    raise TypeError(
        f"the physics of {type(env).__name__} are not known here, those of {known} are: give its "
        "step as a function of many points"
    )


def _turned(angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return angles in [-pi, pi)."""
    return (angles + math.pi) % (2 * math.pi) - math.pi
