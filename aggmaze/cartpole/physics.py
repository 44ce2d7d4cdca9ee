"""The step of Gymnasium's CartPole, of many points at once.

No equation of motion is written here.  Points are advanced by Gymnasium's own vectorised CartPole,
with the constants of the environment at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleEnv, CartPoleVectorEnv
from numpy.typing import NDArray

from aggmaze.cells.problem import Advanced, Problem

#: The axes of a state, in Gymnasium's order.
AXES = ("position", "velocity", "angle", "angular velocity")

ACTION_NAMES = ("LEFT", "RIGHT")
NUM_ACTIONS = len(ACTION_NAMES)
#: Velocities beyond which the outermost bins take all; a balancing policy seldom leaves them.
VELOCITY_LIMITS = (3.0, 3.5)
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


@dataclass(frozen=True)
class Physics(Problem):
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

    @property
    def name(self) -> str:
        """What messages call it."""
        return "CartPole"

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of a state."""
        return AXES

    @property
    def low(self) -> tuple[float, ...]:
        """Least numbers of a state within the default limits."""
        return tuple(-limit for limit in self.high)

    @property
    def high(self) -> tuple[float, ...]:
        """The default limits: what has not failed, and `VELOCITY_LIMITS`."""
        return self.thresholds[0], VELOCITY_LIMITS[0], self.thresholds[1], VELOCITY_LIMITS[1]

    @property
    def ends(self) -> bool:
        """Whether episodes can terminate: the pole falls."""
        return True

    @property
    def action_names(self) -> tuple[str, ...]:
        """Names of the actions: LEFT and RIGHT."""
        return ACTION_NAMES

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
