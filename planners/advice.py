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
from planners.objective import Discounted, Objective, TotalCost, as_objective
from planners.policies import steps_to_terminal
from planners.result import SolveResult
from planners.solve import solve

_Asked = Discounted | TotalCost


def _asked(what: str, gamma: float | None, objective: Objective | None) -> _Asked:
    """Return an objective whose costs-to-go go on step by step, and refuse others with a reason."""
    asked = as_objective(gamma, objective)
    if isinstance(asked, TotalCost) and asked.cost_of_dead_ends is not None:
        raise ValueError(
            f"{what} follows the steps of an environment, whose episodes do not end in dead ends "
            f"as {asked!r} has it: leave dead_ends out"
        )
    if not isinstance(asked, Discounted | TotalCost):
        raise ValueError(
            f"{what} needs costs-to-go that are the same at every step, discounted or total, and "
            f"{type(asked).__name__} has none"
        )
    return asked


def _solved(what: str, model: Model, asked: _Asked, options: dict[str, Any]) -> SolveResult:
    """Return the optimum of a model, finite everywhere."""
    result = solve(model, objective=asked, **options).require()
    if result.infinite.any():
        state = int(np.argmax(result.infinite))
        raise ValueError(
            f"{what} needs finite costs-to-go, and from {model.naming.state(state)} no policy "
            "surely ends: ask for a discount below 1"
        )
    return result


class _OptimalValues:
    """Computes the optimal values of models; a class, so that it can be pickled."""

    def __init__(self, what: str, asked: _Asked, options: dict[str, Any]) -> None:
        self.what, self.asked = what, asked
        self.options = options

    def __call__(self, model: Model) -> NDArray[np.float64]:
        return _solved(self.what, model, self.asked, self.options).values


def with_regret(
    env: gym.Env[Any, Any] | VectorEnv[Any, Any, Any],
    gamma: float | None = None,
    *,
    objective: Objective | None = None,
    **options: Any,
) -> RegretWrapper | vector.RegretWrapper:
    """Solve an environment, and wrap it so that each step tells its regret.

    Where the maze changes, each new one is solved.

    Parameters
    ----------
    env : gymnasium.Env or TabularVectorEnv
    gamma : float, optional
        Discount in [0, 1]; 1 stands for `TotalCost`.
    objective : Discounted or TotalCost, optional
        In place of ``gamma``.
    **options
        As for `solve`: ``tol`` is 1e-6 of max|V| by default.

    Returns
    -------
    aggmaze.wrappers.RegretWrapper or aggmaze.wrappers.vector.RegretWrapper

    Raises
    ------
    NotSolvedError
        If a solve does not reach what is asked for; later ones raise it in ``reset``.
    ValueError
        For another objective, or where some state has no policy that surely ends.
    """
    asked = _asked("a regret", gamma, objective)
    values = _OptimalValues("a regret", asked, options)
    if isinstance(env, VectorEnv):
        return vector.RegretWrapper(env, values, asked.gamma)
    return RegretWrapper(env, values, asked.gamma)


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
    gamma: float | None = None,
    *,
    objective: Objective | None = None,
    potential: str | ArrayLike | Callable[[Model], ArrayLike] = "values",
    **options: Any,
) -> PotentialShaping | vector.PotentialShaping:
    """Wrap an environment so that a potential shapes its rewards, and the best policies stay.

    Where the maze changes, the potential is computed anew.

    Parameters
    ----------
    env : gymnasium.Env or TabularVectorEnv
    gamma : float, optional
        Discount in [0, 1]; 1 stands for `TotalCost`.
    objective : Discounted or TotalCost, optional
        In place of ``gamma``.
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
        If the potential is no such name; if there is no terminal state to measure a distance to; if
        options are given and nothing is solved; or as `with_regret`.
    """
    asked = _asked("a potential", gamma, objective)
    solved = isinstance(potential, str) and potential == "values"
    if options and not solved:
        raise ValueError(
            f"only potential='values' is solved for: {', '.join(options)} mean nothing for another"
        )
    if isinstance(potential, str):
        check_choice("potential", potential, ("values", "distance"))
        potential = (
            _OptimalPotential("a potential", asked, options) if solved else _distance_potential
        )
    if isinstance(env, VectorEnv):
        return vector.PotentialShaping(env, potential, asked.gamma)
    return PotentialShaping(env, potential, asked.gamma)


def adviser(
    gamma: float | None = None, *, objective: Objective | None = None, **options: Any
) -> Adviser:
    """Return an adviser who solves each model that is played.

    Parameters
    ----------
    gamma : float, optional
        Discount in [0, 1]; 1 stands for `TotalCost`.
    objective : Discounted or TotalCost, optional
        In place of ``gamma``.
    **options
        As for `solve`.  The adviser raises `NotSolvedError` where a solve does not reach what they
        ask for.
    """
    asked = _asked("advice", gamma, objective)

    def advise(model: Model) -> Advice:
        result = _solved("advice", model, asked, options)
        return Advice(result.values, result.policy, asked.gamma)

    return advise
