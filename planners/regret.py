"""Regret against the exact optimum."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from aggmaze.wrappers import RegretWrapper, vector
from planners.bellman import Model
from planners.solve import solve


class _OptimalValues:
    """Computes the optimal values of models; a class, so that it can be pickled."""

    def __init__(self, gamma: float, options: dict[str, Any]) -> None:
        self.gamma = gamma
        self.options = options

    def __call__(self, model: Model) -> NDArray[np.float64]:
        return solve(model, gamma=self.gamma, **self.options).require().values


def with_regret(
    env: gym.Env[Any, Any] | VectorEnv[Any, Any, Any], gamma: float, **options: Any
) -> RegretWrapper | vector.RegretWrapper:
    """Solve an environment, and wrap it so that each step tells its regret.

    Where the maze changes, each new one is solved.

    Parameters
    ----------
    env : gymnasium.Env or TabularVectorEnv
    gamma : float
        Discount in [0, 1).
    **options
        As for `solve`: ``tol`` is 1e-6 of max|V| by default.

    Raises
    ------
    NotSolvedError
        If a solve does not reach what is asked for; later ones raise it in ``reset``.

    Returns
    -------
    aggmaze.wrappers.RegretWrapper or aggmaze.wrappers.vector.RegretWrapper
    """
    values = _OptimalValues(gamma, options)
    if isinstance(env, VectorEnv):
        return vector.RegretWrapper(env, values, gamma)
    return RegretWrapper(env, values, gamma)
