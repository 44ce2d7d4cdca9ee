"""What the exact optimum tells others: agents their regret, players the best move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_choice
from aggmaze.models.model import Model
from aggmaze.play import Advice, Adviser
from aggmaze.wrappers import PotentialShaping, RegretWrapper, vector
from planners.policies import steps_to_terminal
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

    Returns
    -------
    aggmaze.wrappers.RegretWrapper or aggmaze.wrappers.vector.RegretWrapper

    Raises
    ------
    NotSolvedError
        If a solve does not reach what is asked for; later ones raise it in ``reset``.
    """
    values = _OptimalValues(gamma, options)
    if isinstance(env, VectorEnv):
        return vector.RegretWrapper(env, values, gamma)
    return RegretWrapper(env, values, gamma)


class _OptimalPotential(_OptimalValues):
    """Computes minus the optimal values of models, the returns that are to be expected."""

    def __call__(self, model: Model) -> NDArray[np.float64]:
        return -super().__call__(model)


def _distance_potential(model: Model) -> NDArray[np.float64]:
    """Return minus the fewest steps to a terminal state; none is farther than what never arrives.

    Raises
    ------
    ValueError
        If there is no terminal state.
    """
    steps = steps_to_terminal(model)[: model.num_listed_states]
    if not model.terminal.any():
        raise ValueError("potential='distance' needs a terminal state, and the model has none")
    return -np.where(steps < 0, steps.max() + 1, steps).astype(np.float64)


def with_shaping(
    env: gym.Env[Any, Any] | VectorEnv[Any, Any, Any],
    gamma: float,
    *,
    potential: str | ArrayLike | Callable[[Model], ArrayLike] = "values",
    **options: Any,
) -> PotentialShaping | vector.PotentialShaping:
    """Wrap an environment so that a potential shapes its rewards, and the best policies stay.

    Where the maze changes, the potential is computed anew.

    Parameters
    ----------
    env : gymnasium.Env or TabularVectorEnv
    gamma : float
        Discount in [0, 1).
    potential : {"values", "distance"}, array_like or callable
        "values": the optimal returns, minus V*, from `solve`.  "distance": minus the fewest steps
        to a terminal state, for tasks that end where one wants to be.  Or your own, as
        `aggmaze.wrappers.PotentialShaping` takes it.
    **options
        As for `solve`, where that is needed.

    Returns
    -------
    aggmaze.wrappers.PotentialShaping or aggmaze.wrappers.vector.PotentialShaping

    Raises
    ------
    ValueError
        If the potential is no such name; if there is no terminal state to measure a distance to; or
        if options are given and nothing is solved.
    """
    solved = isinstance(potential, str) and potential == "values"
    if options and not solved:
        raise ValueError(
            f"only potential='values' is solved for: {', '.join(options)} mean nothing for another"
        )
    if isinstance(potential, str):
        check_choice("potential", potential, ("values", "distance"))
        potential = _OptimalPotential(gamma, options) if solved else _distance_potential
    if isinstance(env, VectorEnv):
        return vector.PotentialShaping(env, potential, gamma)
    return PotentialShaping(env, potential, gamma)


def adviser(gamma: float, **options: Any) -> Adviser:
    """Return an adviser who solves each model that is played.

    Parameters
    ----------
    gamma : float
        Discount in [0, 1).
    **options
        As for `solve`.  The adviser raises `NotSolvedError` where a solve does not reach what they
        ask for.
    """

    def advise(model: Model) -> Advice:
        result = solve(model, gamma=gamma, **options).require()
        return Advice(result.values, result.policy, gamma)

    return advise
