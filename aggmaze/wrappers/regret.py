"""What the actions of an agent cost more than the best ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from aggmaze.action_values import action_values
from aggmaze.checks import check_discount, check_integer
from aggmaze.env_model import env_model
from aggmaze.memory import check_memory
from aggmaze.models.model import Model
from aggmaze.wrappers.state_values import Values, model_finder, state_of, values_of

# Rows of so many states at a time.
_BLOCK = 2**16


class RegretTable:
    """What each action costs more than the best one, of a model that may change.

    Parameters
    ----------
    find_model : callable
        Returns the present model.
    values : array_like, shape (S,), or callable
        Optimal costs-to-go V; or a callable that computes them of a model, which is called again
        when the model has changed.
    gamma : float
        Discount in [0, 1] for which they are optimal; 1 of total costs.

    Attributes
    ----------
    values : ndarray of float, shape (S,)
    regrets : ndarray of float, shape (S, A)
        ``c(s,a) + gamma sum_s' P(s'|s,a) V(s') - V(s)``; of unavailable actions too, which stay in
        place and pay; 0 in terminal states.
    """

    values: NDArray[np.float64]
    regrets: NDArray[np.float64]

    def __init__(self, find_model: Callable[[], Model], values: Values, gamma: float) -> None:
        self.gamma = check_discount(gamma)
        self._find_model = find_model
        self._given = values
        self._model: Model | None = None
        self.refresh()

    def refresh(self) -> None:
        """Take notice of the present model.

        Raises
        ------
        ValueError
            If it is another one, and values were given for the first.
        """
        model = self._find_model()
        if model is self._model:
            return
        if self._model is not None and not callable(self._given):
            raise ValueError(
                "the model has changed, and with it the optimal values: give a callable that "
                "computes the values of a model, as planners.with_regret does"
            )
        full = values_of("values", self._given, model)
        self.regrets = _regrets(model, full, self.gamma)[: model.num_listed_states]
        self.values = full[: model.num_listed_states]
        self._model = model


class RegretWrapper(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Tell in ``info`` what the agent's actions cost more than the best ones.

    Each step has ``info["regret"]``, the regret ``Q(s,a) - V(s)`` of the action taken, V being the
    optimal costs-to-go and ``Q(s,a) = c(s,a) + gamma sum_s' P(s'|s,a) V(s')``: 0 for the best
    actions, positive for all others, whatever happens then.  The last step of an episode of n steps
    has ``info["episode_regret"]``, a dict of

    - ``sum``: of the regrets of the steps;
    - ``discounted``: sum of ``gamma**t`` times the regret of step t.  In expectation, without a
      limit of steps, exactly ``V^pi(s0) - V(s0)`` for the agent's policy pi;
    - ``realized``: the discounted cost that was paid, with ``gamma**n V`` of the last state where
      the episode was cut off, less ``V(s0)``.  It has the same expectation, and the luck of the
      episode besides, so that it may be negative;
    - ``l``: n.

    With values that are not optimal regrets may be negative; those that a planner has certified to
    within a bound are right to within ``(1 + gamma)`` times the bound.

    Parameters
    ----------
    env : gymnasium.Env
        It tells its state in ``info["state"]``, or observes it.  Wrappers of observations may lie
        within and around, and limits of steps within: of the end that one around it sets, this
        wrapper knows nothing.
    values : array_like, shape (S,), or callable
        Optimal costs-to-go; or a callable that computes them of a model, and is called for each
        new model where the maze changes.  `planners.with_regret` computes them.
    gamma : float
        Discount in [0, 1] for which they are optimal; 1 of total costs.
    buffer_length : int
        Episodes that the queues keep.

    Attributes
    ----------
    regret_queue, discounted_regret_queue, realized_regret_queue : deque of float
        Those of the last episodes.

    Raises
    ------
    ValueError
        If values or gamma are no such thing, or the environment is under a wrapper that changes
        rewards or actions.  `reset` raises it where the maze changes under values given once.
    TypeError
        If the environment exposes no model.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        values: Values,
        gamma: float,
        *,
        buffer_length: int = 100,
    ) -> None:
        check_integer("buffer_length", buffer_length, least=1)
        gym.utils.RecordConstructorArgs.__init__(
            self, _disable_deepcopy=True, values=values, gamma=gamma, buffer_length=buffer_length
        )
        gym.Wrapper.__init__(self, env)
        self._table = RegretTable(model_finder(env), values, gamma)
        self.regret_queue: deque[float] = deque(maxlen=buffer_length)
        self.discounted_regret_queue: deque[float] = deque(maxlen=buffer_length)
        self.realized_regret_queue: deque[float] = deque(maxlen=buffer_length)

    def transition_model(self) -> Model:
        """Return the exact model of the environment."""
        return env_model(self.env)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; arguments as for the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._table.refresh()
        self._state = self._first_state = state_of("regret", observation, info)
        self._length, self._weight = 0, 1.0
        self._sum = self._discounted = self._paid = 0.0
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take an action."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        regret = float(self._table.regrets[self._state, action])
        self._state = state_of("regret", observation, info)
        self._length += 1
        self._sum += regret
        self._discounted += self._weight * regret
        self._paid -= self._weight * float(reward)
        self._weight *= self._table.gamma
        info = {**info, "regret": regret}
        if terminated or truncated:
            values = self._table.values
            left = 0.0 if terminated else self._weight * values[self._state]
            told = {
                "sum": self._sum,
                "discounted": self._discounted,
                "realized": float(self._paid + left - values[self._first_state]),
            }
            info["episode_regret"] = {**told, "l": self._length}
            self.regret_queue.append(told["sum"])
            self.discounted_regret_queue.append(told["discounted"])
            self.realized_regret_queue.append(told["realized"])
        return observation, reward, terminated, truncated, info


def _regrets(model: Model, values: NDArray[np.float64], gamma: float) -> NDArray[np.float64]:
    """Return Q - V of every action, shape (S, A)."""
    num_states, num_actions = model.num_states, model.num_actions
    check_memory(8 * num_states * num_actions, f"regrets of {num_states:,} states")
    regrets = np.empty((num_states, num_actions))
    for lo in range(0, num_states, _BLOCK):
        hi = min(lo + _BLOCK, num_states)
        Q = action_values(model, values, gamma, lo, hi)
        regrets[lo:hi] = Q - values[lo:hi, np.newaxis]
    regrets[model.terminal] = 0.0
    return regrets
