"""What is cut into cells: a box of states, a step of many points at once, and actions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Advanced(NamedTuple):
    """Where N points are after one step.

    Parameters
    ----------
    points : ndarray of float, shape (N, D)
    rewards : ndarray of float, shape (N,)
    terminated : ndarray of bool, shape (N,)
    """

    points: NDArray[np.float64]
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]

    @property
    def failed(self) -> NDArray[np.bool_]:
        """``terminated``, of problems that end by failing only."""
        return self.terminated


class Problem(ABC):
    """A control problem whose states are points of a box.

    Subclasses that are frozen dataclasses say by ``==`` whether two are the same, and share models.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """What messages call it."""

    @property
    @abstractmethod
    def axes(self) -> tuple[str, ...]:
        """Names of the D numbers of a state."""

    @property
    @abstractmethod
    def low(self) -> tuple[float, ...]:
        """Least value of each number within the box."""

    @property
    @abstractmethod
    def high(self) -> tuple[float, ...]:
        """Largest value of each number within the box."""

    @property
    def wrap(self) -> tuple[int, ...]:
        """Axes along which ``high`` is where ``low`` is."""
        return ()

    @property
    @abstractmethod
    def ends(self) -> bool:
        """Whether episodes can terminate."""

    @property
    @abstractmethod
    def start(self) -> tuple[ArrayLike, ArrayLike] | None:
        """Ends of the box in which a first state is uniform; None for all of the box."""

    @property
    @abstractmethod
    def action_names(self) -> tuple[str, ...]:
        """Names of the actions."""

    @property
    def num_actions(self) -> int:
        """Number of actions A."""
        return len(self.action_names)

    @abstractmethod
    def advance(self, points: NDArray[np.float64], actions: NDArray[np.int64]) -> Advanced:
        """Take one step from each point.

        Parameters
        ----------
        points : ndarray of float, shape (N, D)
        actions : ndarray of int, shape (N,)
        """

    def point_of(self, observations: ArrayLike) -> NDArray[np.float64]:
        """Return the points of what the environment shows, shape (..., K) to (..., D)."""
        return np.asarray(observations, dtype=np.float64)

    def action_of(self, action: int) -> Any:
        """Return what the environment's ``step`` takes for an action."""
        return action

    def typical_steps(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the median distance that a step goes along each axis, shape (D,).

        Parameters
        ----------
        points : ndarray of float, shape (N, D)
            From where steps are taken, with every action.
        """
        actions = np.repeat(np.arange(self.num_actions), len(points))
        before = np.tile(points, (self.num_actions, 1))
        gone = self.advance(before, actions).points - before
        spans = np.array(self.high) - np.array(self.low)
        for axis in self.wrap:
            gone[:, axis] -= spans[axis] * np.round(gone[:, axis] / spans[axis])
        return np.median(np.abs(gone), axis=0)


def named(values: Sequence[float]) -> tuple[str, ...]:
    """Return numbers as the names of actions."""
    return tuple(f"{value:.4g}" for value in values)
