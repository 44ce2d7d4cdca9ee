"""The step of Gymnasium's CartPole, of many points at once.

No equation of motion is written here.  Points are advanced by Gymnasium's own vectorised CartPole,
with the constants of the environment at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleEnv, CartPoleVectorEnv
from numpy.typing import NDArray

#: The axes of a state, in Gymnasium's order.
AXES = ("position", "velocity", "angle", "angular velocity")

ACTION_NAMES = ("LEFT", "RIGHT")
NUM_ACTIONS = len(ACTION_NAMES)
# What the physics depends on, by the names that both of Gymnasium's CartPoles have for it.
_CONSTANTS = (
    "gravity",
    "masscart",
    "masspole",
    "total_mass",
    "length",
    "polemass_length",
    "force_mag",
    "tau",
    "kinematics_integrator",
    "theta_threshold_radians",
    "x_threshold",
)


class Advanced(NamedTuple):
    """Where N points are after one step.

    Parameters
    ----------
    points : ndarray of float, shape (N, 4)
    rewards : ndarray of float, shape (N,)
    failed : ndarray of bool, shape (N,)
    """

    points: NDArray[np.float64]
    rewards: NDArray[np.float64]
    failed: NDArray[np.bool_]


@dataclass(frozen=True)
class Physics:
    """The step of Gymnasium's CartPole, for many points at once.

    Parameters
    ----------
    constants : tuple of pairs
        Name and value of each constant.
    sutton_barto_reward : bool
        Whether a step pays 0, and -1 where it fails, instead of 1.
    """

    constants: tuple[tuple[str, Any], ...]
    sutton_barto_reward: bool

    @classmethod
    def of(cls, env: CartPoleEnv) -> Physics:
        """Read the constants of an environment, as they are now."""
        constants = tuple((name, getattr(env, name)) for name in _CONSTANTS)
        return cls(constants, bool(env._sutton_barto_reward))

    @cached_property
    def thresholds(self) -> tuple[float, float]:
        """Largest position and largest angle that have not failed."""
        constants = dict(self.constants)
        return float(constants["x_threshold"]), float(constants["theta_threshold_radians"])

    @cached_property
    def start(self) -> tuple[float, float]:
        """Lowest and highest value of each number of a first state, which is uniform between."""
        vector = self._vector(1)
        vector.reset()
        return float(vector.low), float(vector.high)

    def advance(self, points: NDArray[np.float64], actions: NDArray[np.int64]) -> Advanced:
        """Take one step from each point.

        Parameters
        ----------
        points : ndarray of float, shape (N, 4)
        actions : ndarray of int, shape (N,)
        """
        vector = self._vector(len(points))
        vector.reset()  # counts of steps and of episodes at their beginning
        vector.state = points.T
        _, rewards, failed, _, _ = vector.step(actions)
        return Advanced(vector.state.T, np.asarray(rewards, dtype=np.float64), failed)

    def _vector(self, num_points: int) -> Any:
        vector = CartPoleVectorEnv(num_points, sutton_barto_reward=self.sutton_barto_reward)
        for name, value in self.constants:
            setattr(vector, name, value)
        return vector
