"""Policies walked through environments, and whether what they get is what was promised.

The promise is exact for the model, so that an environment that breaks it does something else.  Let
V be the costs-to-go of the policy.  By the model every step costs as much as the one before let
expect: ``c + gamma V(s') - V(s)`` is 0 on average, whatever came before, and so is ``V(s0)`` less
its mean.  Sums of such terms, weighted by ``gamma**t``, are martingales.  With the sum A of the
variances that the model expects of the terms and the sum B of their squares, such a sum exceeds
``z sqrt(A + B)`` with a chance of at most ``2 exp(-z**2 / 2)``, however rare and large the chances
of the model are (Bercu and Touati, 2008), and z = 5 makes that one in 130,000.  Where the model
leaves nothing to chance, a single term that is not 0 is enough.  Neither limits of steps nor few
episodes do harm: an episode that is cut off ends with what is expected there.
"""

from __future__ import annotations

import math
import operator
import warnings
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_gamma, check_integer, check_time_limit
from aggmaze.env_model import NoModelError
from aggmaze.envs.tabular import TabularEnv
from planners.adapters import as_model
from planners.bellman import Model
from planners.evaluation import evaluate
from planners.iterate import Clock
from planners.policies import model_values, step_variances
from planners.result import SolveResult

# Longest episode where neither the caller nor the environment sets a limit.
_MAX_STEPS = 1000
# Steps between two looks at a long episode.
_LOOK_EVERY = 1000
# z above, and the share of the largest cost-to-go that rounding may make an episode miss.
_MOST_ERRORS = 5.0
_ROUNDING = 1e-6
# Stands for the state after an episode that terminated.
_OVER = -1


@dataclass(frozen=True, eq=False)
class Rollouts:
    """What a policy got in N episodes.

    Parameters
    ----------
    returns : ndarray of float, shape (N,)
        Sums of rewards.
    discounted_returns : ndarray of float, shape (N,), or None
        Where the discount is known.
    lengths : ndarray of int, shape (N,)
        Steps.
    successes : ndarray of bool, shape (N,)
        Whether the episode terminated, rather than ran out of steps.
    promised : float or None
        Expected discounted return from the start distribution, without a limit of steps:
        ``-sum initial V^pi``, exact.  None where the policy is no table, the discount is not known
        or the environment exposes no model of its steps.
    broken : str
        Why what was got cannot be what was promised: the environment does not do what its model
        says.  Empty where it can, and where nothing is promised.
    """

    returns: NDArray[np.float64]
    discounted_returns: NDArray[np.float64] | None
    lengths: NDArray[np.int64]
    successes: NDArray[np.bool_]
    promised: float | None
    broken: str = ""

    def __repr__(self) -> str:
        count = len(self.returns)
        text = f"{count:,} episode{'s' * (count != 1)}"
        if count:
            text += (
                f", mean return {self.returns.mean():.6g}, mean length {self.lengths.mean():.1f}, "
                f"{100 * self.successes.mean():.3g} % terminated"
            )
            if self.discounted_returns is not None:
                text += f", mean discounted return {self.discounted_returns.mean():.6g}"
        if self.promised is not None:
            text += f", {self.promised:.6g} promised{' and not kept' if self.broken else ''}"
        return f"Rollouts({text})"


@dataclass(frozen=True)
class RolloutProgress:
    """What a callback sees of `rollout`.

    Parameters
    ----------
    episodes : int
        Whole ones so far.
    num_episodes : int
        Those asked for.
    steps : int
        Of all so far.
    seconds : float
    """

    episodes: int
    num_episodes: int
    steps: int
    seconds: float


def rollout(
    env: Any,
    policy: Any,
    *,
    episodes: int = 100,
    seed: int = 0,
    max_steps: int | None = None,
    gamma: float | None = None,
    time_limit: float | None = None,
    callback: Callable[[RolloutProgress], object] | None = None,
) -> Rollouts:
    """Walk a policy through an environment, and warn if it breaks the promise of its model.

    Ctrl-C is raised.

    Parameters
    ----------
    env : gymnasium.Env, or what `as_model` takes
        A single environment; its state is ``info["state"]``, or the observation where ``info``
        has none.  Of anything else the model is walked through, in a `TabularEnv`.
    policy
        A `SolveResult`, a success or not; actions, shape (S,); probabilities of actions, shape
        (S, A); a callable on observations; or an object with Stable-Baselines3's ``predict``.
    episodes : int
    seed : int
        Seeds the environment, and the choices of a stochastic policy.
    max_steps : int, optional
        Longest episode; by default the limit with which the environment is registered, else 1000.
    gamma : float, optional
        Discount of ``discounted_returns`` and ``promised``; a `SolveResult` brings its own.
    time_limit : float, optional
        Seconds after which the episode is dropped and what was whole before is returned, be it
        nothing.
    callback : callable, optional
        Called with a `RolloutProgress` after each episode, and within long ones every so often; a
        true value returned ends it as the time limit does.

    Raises
    ------
    ValueError
        If the policy does not fit the environment, or the environment's model is not valid.
    TypeError
        If it is none of the above.

    Warns
    -----
    UserWarning
        If what was got cannot be what was promised, as ``broken`` says.
    """
    episodes = check_integer("episodes", episodes, least=1)
    check_time_limit(time_limit)
    if isinstance(env, VectorEnv):
        raise TypeError(f"rollout takes a single environment, got {type(env).__name__}")
    if not isinstance(env, gym.Env):
        env = TabularEnv(as_model(env))
    if max_steps is None:
        limit = env.spec.max_episode_steps if env.spec is not None else None
        max_steps = limit if limit is not None else _MAX_STEPS
    max_steps = check_integer("max_steps", max_steps, least=1)
    table: NDArray[Any] | None = None
    if isinstance(policy, SolveResult):
        table = policy.policy
        gamma = policy.gamma if gamma is None else gamma
    elif isinstance(policy, np.ndarray | list | tuple):
        table = np.asarray(policy)
    if gamma is not None:
        gamma = check_gamma(gamma)
    promise: _Promise | None = None
    if table is not None:
        promise = _promise(env, table, gamma)
        # A stream of its own: the environment's is made from the seed itself.
        (child,) = np.random.SeedSequence(seed).spawn(1)
        choose = _table_policy(table, env, np.random.default_rng(child))
    else:
        choose = _observation_policy(policy)

    returns, discounted = np.zeros(episodes), np.zeros(episodes)
    lengths = np.zeros(episodes, dtype=np.int64)
    successes = np.zeros(episodes, dtype=bool)
    clock, steps, stopped = Clock(), 0, False
    for episode in range(episodes):
        observation, info = env.reset(seed=seed if episode == 0 else None)
        if promise is not None:
            promise.start(_state_of(observation, info))
        weight, over = 1.0, False
        for step in range(1, max_steps + 1):
            observation, reward, terminated, truncated, info = env.step(choose(observation, info))
            lengths[episode] += 1
            returns[episode] += float(reward)
            discounted[episode] += weight * float(reward)
            if promise is not None:
                state = _OVER if terminated else _state_of(observation, info)
                promise.step(weight, float(reward), state)
            weight *= 1.0 if gamma is None else gamma
            over = terminated or truncated or step == max_steps
            if over:
                successes[episode] = terminated
            stopped = time_limit is not None and clock.seconds() >= time_limit
            if callback is not None and (over or step % _LOOK_EVERY == 0):
                told = RolloutProgress(episode + over, episodes, steps + step, clock.seconds())
                stopped = bool(callback(told)) or stopped
            if over or stopped:
                break
        steps += step
        if stopped:
            whole = episode + over
            returns, discounted = returns[:whole], discounted[:whole]
            lengths, successes = lengths[:whole], successes[:whole]
            break
    broken = "" if promise is None else promise.broken()
    if broken:
        warnings.warn(f"{_name(env)} breaks the promise of its model: {broken}", stacklevel=2)
    return Rollouts(
        returns,
        None if gamma is None else discounted,
        lengths,
        successes,
        None if promise is None else promise.value,
        broken,
    )


Choose = Callable[[Any, dict[str, Any]], Any]


def _table_policy(table: NDArray[Any], env: gym.Env[Any, Any], rng: np.random.Generator) -> Choose:
    if table.ndim not in (1, 2) or (table.ndim == 1 and not np.issubdtype(table.dtype, np.integer)):
        raise ValueError(
            "a policy table must hold integer actions, shape (S,), or probabilities, shape "
            f"(S, A), got {table.dtype} of shape {table.shape}"
        )

    def row_of(observation: Any, info: dict[str, Any]) -> int:
        index = _state_of(observation, info)
        if not 0 <= index < len(table):
            raise ValueError(f"state {index} has no row in a policy of {len(table)} states")
        return index

    if table.ndim == 1:
        return lambda observation, info: int(table[row_of(observation, info)])
    cumulative = np.cumsum(table, axis=1)
    last = table.shape[1] - 1

    def draw(observation: Any, info: dict[str, Any]) -> int:
        row = cumulative[row_of(observation, info)]
        return min(int(np.searchsorted(row, rng.random() * row[-1], side="right")), last)

    return draw


def _observation_policy(policy: Any) -> Choose:
    if hasattr(policy, "predict"):
        return lambda observation, info: _plain(policy.predict(observation, deterministic=True)[0])
    if callable(policy):
        return lambda observation, info: _plain(policy(observation))
    raise TypeError(
        "policy must be a SolveResult, an array, a callable on observations or an object with "
        f"predict(), got {type(policy).__name__}"
    )


def _plain(action: Any) -> Any:
    """Turn an array without axes, as predict() gives for discrete actions, into a number."""
    return action.item() if isinstance(action, np.ndarray) and action.ndim == 0 else action


def _state_of(observation: Any, info: dict[str, Any]) -> int:
    try:
        return operator.index(info.get("state", observation))
    except TypeError:
        raise ValueError(
            "a policy table needs the state: info['state'], or an observation that is the "
            f"state, not {type(observation).__name__}"
        ) from None


def _promise(env: gym.Env[Any, Any], policy: ArrayLike, gamma: float | None) -> _Promise | None:
    if gamma is None:
        return None
    try:
        model = as_model(env)
    except NoModelError:
        return None  # there is none, or none that holds for what the wrappers make of it
    return _Promise(model, policy, gamma)


class _Promise:
    """What the model promises, and what the steps say to that."""

    def __init__(self, model: Model, policy: ArrayLike, gamma: float) -> None:
        self._model, self._policy, self._gamma = model, policy, gamma
        self._V = model_values(model, evaluate(model, policy, gamma, allow_unavailable=True))
        self.value = 0.0 - float(model.initial @ self._V)
        self._starts = array("q")
        self._states, self._followers = array("q"), array("q")
        self._weights, self._rewards = array("d"), array("d")
        self._state = 0

    def start(self, state: int) -> None:
        """Begin an episode."""
        self._starts.append(state)
        self._state = state

    def step(self, weight: float, reward: float, state: int) -> None:
        """Take note of a step to a state, or to the end; ``weight`` is the power of gamma."""
        self._states.append(self._state)
        self._followers.append(state)
        self._weights.append(weight)
        self._rewards.append(reward)
        self._state = state

    def broken(self) -> str:
        """Return why the promise is not kept, or ""."""
        V, initial = self._V, self._model.initial
        starts, states = np.array(self._starts), np.array(self._states)
        followers = np.array(self._followers)
        weights, rewards = np.array(self._weights), np.array(self._rewards)
        rounding = _ROUNDING * float(max(np.abs(V).max(), np.abs(rewards).max(initial=0.0)))
        outside = [s for s in (*starts, *followers) if s >= len(V)]
        if outside:
            return f"state {outside[0]} is none of the {len(V)} of the model"
        left = np.where(followers == _OVER, 0.0, V[followers])
        gains = weights * (V[states] + rewards - self._gamma * left)
        variances = step_variances(self._model, self._policy, V, self._gamma)
        of_starts = np.full(len(starts), initial @ (V + self.value) ** 2)
        for what, terms, weight, expected in (
            ("starts", -self.value - V[starts], np.ones(len(starts)), of_starts),
            ("steps", gains, weights, variances[states]),
        ):
            error = math.sqrt(float(weight**2 @ expected + terms @ terms))
            off, chance = float(terms.sum()) / len(starts), "more than chance explains"
            kept = abs(off) * len(starts) <= _MOST_ERRORS * error + len(starts) * rounding
            certain = expected <= rounding**2
            if not (np.abs(terms[certain]) <= rounding).all():
                off, chance = float(terms[certain].sum()) / len(starts), "where nothing is chance"
                kept = False
            if not kept:
                return (
                    f"{self.value:.6g} is promised, and its {what} pay {abs(off):.3g} "
                    f"{'less' if off < 0 else 'more'} an episode than expected of them, {chance}"
                )
        return ""


def _name(env: gym.Env[Any, Any]) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__
