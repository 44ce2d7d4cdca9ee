"""Rewards shaped by a potential, which tell an agent early whether it gets on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.checks import check_discount
from aggmaze.models.model import Model
from aggmaze.models.tabular import TabularMDP
from aggmaze.wrappers.state_values import Values, model_finder, state_of, values_of


class Potential:
    """A potential of the states of a model that may change.

    Parameters
    ----------
    find_model : callable
        Returns the present model.
    potential : array_like, shape (S,), or callable
        Phi; or a callable that computes it of a model, which is called again when the model has
        changed.
    gamma : float
        Discount in [0, 1]; 1 of total costs.

    Attributes
    ----------
    values : ndarray of float, shape (S,)
        Phi, 0 in terminal states.
    """

    values: NDArray[np.float64]

    def __init__(self, find_model: Callable[[], Model], potential: Values, gamma: float) -> None:
        self.gamma = check_discount(gamma)
        self._find_model = find_model
        self._given = potential
        self._model: Model | None = None
        self._shaped: TabularMDP | None = None
        self.refresh()

    def refresh(self) -> None:
        """Take notice of the present model."""
        model = self._find_model()
        if model is not self._model:
            self.values = values_of("potential", self._given, model)
            self._model, self._shaped = model, None

    def shaping(self, before: Any, after: Any) -> Any:
        """Return what is added to a reward: ``gamma Phi(s') - Phi(s)``, of two potentials.

        Parameters
        ----------
        before, after : float or ndarray
            Phi(s) and Phi(s').
        """
        return self.gamma * after - before

    def shaped_model(self) -> TabularMDP:
        """Return the present model with shaped rewards; the same one as long as that stays."""
        self.refresh()
        if self._shaped is None:
            assert self._model is not None
            self._shaped = self._shape(self._model.to_tabular())
        return self._shaped

    def _shape(self, model: TabularMDP) -> TabularMDP:
        rows = model.rows(0, model.num_states)
        matrix = rows.transitions
        before = np.repeat(np.repeat(self.values, model.num_actions), np.diff(matrix.indptr))
        outcome_costs = rows.outcome_costs - self.shaping(before, self.values[matrix.indices])
        weighted = matrix.data * outcome_costs
        means = sp.csr_array((weighted, matrix.indices, matrix.indptr), shape=matrix.shape)
        costs = np.asarray(means.sum(axis=1), np.float64).reshape(rows.costs.shape)
        return replace(model, costs=costs, outcome_costs=outcome_costs)


class PotentialShaping(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Add ``gamma Phi(s') - Phi(s)`` to each reward, for a potential Phi of the states.

    Whatever Phi is, the best policies stay the best: every policy's expected discounted return from
    a state s is less by Phi(s) than it was, and nothing else changes (A. Y. Ng, D. Harada and
    S. Russell, "Policy invariance under reward transformations", ICML 1999).  Phi counts as 0 where
    an episode terminates, so that the discounted return of such an episode is less by exactly
    Phi(s0); an episode that is cut off has ``gamma**n Phi`` of its last state on top, as an agent
    expects who bootstraps there.

    With Phi = -V*, V* being the optimal costs-to-go, the best actions pay 0 in expectation and all
    others less: nothing is left to be seen far ahead.  `planners.with_shaping` computes it, or the
    distance to the goal.  Wrappers around this one see shaped rewards only: put those that tell
    returns (`gymnasium.wrappers.RecordEpisodeStatistics`) within.

    Parameters
    ----------
    env : gymnasium.Env
        It tells its state in ``info["state"]``, or observes it, and exposes a model.  Wrappers of
        observations may lie within and around.
    potential : array_like, shape (S,), or callable
        Phi, what it says of terminal states aside; or a callable that computes it of a model, and
        is called for each new model where the maze changes.  An array stays where the maze changes:
        it still leads nobody astray, but -V* of another maze is of no help.
    gamma : float
        Discount in [0, 1] of the returns that are maximised.

    Raises
    ------
    ValueError
        If potential or gamma are no such thing, or the environment is under a wrapper that changes
        rewards or actions.
    TypeError
        If the environment exposes no model.
    """

    def __init__(self, env: gym.Env[Any, Any], potential: Values, gamma: float) -> None:
        gym.utils.RecordConstructorArgs.__init__(
            self, _disable_deepcopy=True, potential=potential, gamma=gamma
        )
        gym.Wrapper.__init__(self, env)
        self._potential = Potential(model_finder(env), potential, gamma)

    def transition_model(self) -> Model:
        """Return the exact model with shaped rewards, as a general sparse table."""
        return self._potential.shaped_model()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; arguments as for the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._potential.refresh()
        self._state = state_of("shaping", observation, info)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take an action."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        values = self._potential.values
        before = values[self._state]
        self._state = state_of("shaping", observation, info)
        after = 0.0 if terminated else values[self._state]
        shaped = float(reward + self._potential.shaping(before, after))
        return observation, shaped, terminated, truncated, info
