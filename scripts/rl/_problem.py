"""A small maze to learn, and how far from its optimum a policy is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import aggmaze
import planners

assert aggmaze.ENV_IDS  # registers the mazes

Env = gym.Env[Any, Any]


@dataclass(frozen=True)
class Problem:
    """A square maze, and the discount under which its return counts.

    Parameters
    ----------
    env_id : str
        An id of this package whose ``shape`` has two sides.
    side : int
        Positions along each side.
    p : float
        Probability that the chosen move happens.
    gamma : float
    """

    env_id: str
    side: int
    p: float = 0.9
    gamma: float = 0.98

    def __str__(self) -> str:
        return f"{self.env_id} {self.side}x{self.side}"

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments of the environment, but for where episodes start."""
        return {"shape": (self.side, self.side), "p": self.p}

    def make(self, start: str = "corner") -> Env:
        """Make the environment; ``start`` is "corner" or "uniform"."""
        return gym.make(self.env_id, start=start, **self.options)


@dataclass(frozen=True)
class Task:
    """What an agent learns, and how.

    Parameters
    ----------
    algorithm : {"ppo", "dqn", "maskable_ppo", "q_learning"}
    problem : Problem
    seed : int
    num_steps : int
        Of all environments together; deep agents may take some more, to fill the last batch.
    start : {"uniform", "corner"}
        Where episodes of the training start.
    observation : str
        What deep agents see: "state", "one_hot", "coordinates", "local_view" or "image".
    library_settings : bool
        Whether to leave all settings as the libraries have them, instead of those for small mazes.
    """

    algorithm: str
    problem: Problem
    seed: int
    num_steps: int
    start: str = "uniform"
    observation: str = "state"
    library_settings: bool = False


@dataclass(frozen=True)
class Regret:
    """How much more a policy costs than the optimum: ``V^pi - V*``, discounted, exact.

    Parameters
    ----------
    start : float
        In the corner opposite the goal.
    mean : float
        Over all states but the goal.
    """

    start: float
    mean: float


class Judge:
    """The exact optimum of a problem, and the exact regret of policies.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        self._model, self._gamma = planners.as_model(problem.make()), problem.gamma
        optimum = planners.solve(self._model, gamma=problem.gamma, tol=1e-12).require()
        self.optimum = optimum.values
        self.action_mask = self._model.action_mask
        self.start = int(np.argmax(self._model.initial))

    def regret(self, policy: NDArray[np.int64]) -> Regret:
        """Return the regret of a policy, an action for each state, shape (S,).

        Raises
        ------
        ValueError
            If the policy is not one action in range for each state.
        """
        # Agents that know nothing of masks bump into walls, and pay for it.
        values = planners.evaluate(self._model, policy, self._gamma, allow_unavailable=True)
        loss = values - self.optimum
        return Regret(float(loss[self.start]), float(loss[~self._model.terminal].mean()))
