"""Continuous control of which only the cell is observed, and the action only its number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from aggmaze.cells.cells import Cells
from aggmaze.cells.control import problem_of
from aggmaze.cells.discretize import (
    Discretization,
    cells_of,
    discretized,
    method_of,
    state_of,
    sub_points_of,
    warn_of,
)
from aggmaze.cells.problem import Problem
from aggmaze.checks import check_integer
from aggmaze.models.tabular import TabularMDP


class CellObservation(gym.Wrapper[Any, Any, Any, Any]):
    """An environment of real numbers, of which the state of a model is observed.

    Parameters
    ----------
    env : gymnasium.Env
    cells : Cells
    problem : Problem
        What the environment shows, and takes, in terms of the model.
    """

    #: Cells are not all of a state, so that returns differ from what the model promises.
    model_is_approximate = True

    def __init__(self, env: gym.Env[Any, Any], cells: Cells, problem: Problem) -> None:
        gym.Wrapper.__init__(self, env)
        self.cells = cells
        self._problem = problem
        self.observation_space = gym.spaces.Discrete(cells.num_states)
        self._action_space = gym.spaces.Discrete(problem.num_actions)

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are available now: all, always."""
        return np.ones(self._problem.num_actions, dtype=bool)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Start an episode; ``options`` are those of the environment inside."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._told(observation, info, terminated=False)

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action of the model.

        Raises
        ------
        TypeError, ValueError
            If it is none.
        """
        action = check_integer("action", action, below=self._problem.num_actions)
        observation, reward, terminated, truncated, info = self.env.step(
            self._problem.action_of(action)
        )
        state, info = self._told(observation, info, bool(terminated))
        return state, float(reward), bool(terminated), bool(truncated), info

    def _told(
        self, observation: Any, info: dict[str, Any], terminated: bool
    ) -> tuple[int, dict[str, Any]]:
        if terminated and self.cells.ends:
            state = self.cells.end
        else:
            state = state_of(self._problem, self.cells, observation)
        mask = np.ones(self._problem.num_actions, dtype=np.int8)
        return state, {**info, "state": state, "action_mask": mask}


class Discretized(CellObservation, gym.utils.RecordConstructorArgs):
    """Gymnasium's MountainCar, Acrobot or Pendulum, or one's own, seen in cells.

    The steps are those of the environment inside, its pictures and limit of steps too; observations
    are states of a model, ``Discrete(S)``, and actions its actions, ``Discrete(A)``.
    `transition_model` returns the model, so that a planner solves it and its policy is tried on the
    real thing::

        env = Discretized(gym.make("MountainCar-v0"))
        result = planners.solve(env, gamma=1)
        planners.rollout(env, result)

    Where the model has a state of having ended, that is what is observed there.  The models alone,
    without the environment, are DiscretizedMountainCar-v0, DiscretizedAcrobot-v0 and
    DiscretizedPendulum-v0.  Of CartPole there is `DiscretizedCartPole`.

    Parameters
    ----------
    env : gymnasium.Env
        Its observations, rewards and actions not wrapped.
    discretization : Discretization, optional
        What `aggmaze.discretize` made of the problem that the environment is; of Gymnasium's by
        default from the other arguments.
    bins : sequence of int, optional
        Cells along each axis, or corners.
    method : str, optional
        "interpolate", the default, or "average".
    sub_points : int or sequence of int, optional
        Points of a cell over which "average" goes.
    **options
        ``limits`` of Acrobot, ``num_torques`` of Pendulum, as of `aggmaze.discretize`.

    Raises
    ------
    TypeError
        If the environment is none of these and there is no discretization, or both are given.
    ValueError
        If an argument is not what `aggmaze.discretize` takes, or something changes the
        observations, rewards or actions of the environment inside.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        discretization: Discretization | None = None,
        *,
        bins: Iterable[int] | None = None,
        method: str | None = None,
        sub_points: int | Iterable[int] | None = None,
        **options: Any,
    ) -> None:
        refuse_changes(env, type(self).__name__)
        self._discretization = discretization
        if discretization is not None:
            given = {"bins": bins, "method": method, "sub_points": sub_points, **options}
            if words := [word for word, value in given.items() if value is not None]:
                raise TypeError(f"{', '.join(words)}: the discretization says so itself")
            problem, cells = discretization.problem, discretization.cells
            self._sub_points = discretization.sub_points
            gym.utils.RecordConstructorArgs.__init__(self, discretization=discretization)
        else:
            problem = problem_of(env.unwrapped, **options)
            cells = cells_of(problem, bins, method)
            self._sub_points = sub_points_of(problem, cells, sub_points)
            gym.utils.RecordConstructorArgs.__init__(
                self,
                bins=cells.bins,
                method=method_of(cells),
                sub_points=self._sub_points,
                **options,
            )
        CellObservation.__init__(self, env, cells, problem)

    def transition_model(self) -> TabularMDP:
        """Return the model, of the physics as they were at the wrapping.

        Warns
        -----
        UserWarning
            As `aggmaze.discretize`.
        """
        if self._discretization is not None:
            return self._discretization.model
        found, faults = discretized(
            self._problem, self.cells.bins, method_of(self.cells), self._sub_points
        )
        warn_of(faults, stacklevel=2)
        return found.model


def refuse_changes(env: gym.Env[Any, Any], whose: str, name: str | None = None) -> None:
    """Refuse wrappers under which the cell or the model would be wrong.

    Parameters
    ----------
    env : gymnasium.Env
    whose : str
        Name of the wrapper that is to be the inner one.
    name : str, optional
        What the environment inside is called; its class by default.
    """
    bare = env.unwrapped
    name = type(bare).__name__ if name is None else name
    inner: Any = env
    while isinstance(inner, gym.Wrapper):
        if isinstance(inner, gym.ObservationWrapper | gym.RewardWrapper | gym.ActionWrapper):
            raise ValueError(
                f"wrapper {type(inner).__name__} inside changes observations, rewards or actions "
                f"of {name}; wrap it around {whose} instead"
            )
        inner = inner.env
    if env.observation_space != bare.observation_space:
        raise ValueError(f"observations must be those of {name}, got {env.observation_space}")
