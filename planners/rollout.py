"""Policies walked through environments."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_gamma, check_integer
from planners.adapters import as_model
from planners.evaluation import evaluate
from planners.policies import model_values
from planners.result import SolveResult

# Longest episode where neither the caller nor the environment sets a limit.
_MAX_STEPS = 1000


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
        or the environment exposes no model.
    """

    returns: NDArray[np.float64]
    discounted_returns: NDArray[np.float64] | None
    lengths: NDArray[np.int64]
    successes: NDArray[np.bool_]
    promised: float | None


def rollout(
    env: gym.Env[Any, Any],
    policy: Any,
    *,
    episodes: int = 100,
    seed: int = 0,
    max_steps: int | None = None,
    gamma: float | None = None,
) -> Rollouts:
    """Walk a policy through an environment.

    Parameters
    ----------
    env : gymnasium.Env
        A single environment; its state is ``info["state"]``, or the observation where ``info``
        has none.
    policy
        A `SolveResult`; actions, shape (S,); probabilities of actions, shape (S, A); a callable
        on observations; or an object with Stable-Baselines3's ``predict``.
    episodes : int
    seed : int
        Seeds the environment, and the choices of a stochastic policy.
    max_steps : int, optional
        Longest episode; by default the limit with which the environment is registered, else 1000.
    gamma : float, optional
        Discount of ``discounted_returns`` and ``promised``; a `SolveResult` brings its own.

    Raises
    ------
    ValueError
        If the policy does not fit the environment.
    TypeError
        If it is none of the above.
    """
    episodes = check_integer("episodes", episodes, least=1)
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
    promised = None
    if table is not None:
        promised = _promised(env, table, gamma)
        # A stream of its own: the environment's is made from the seed itself.
        (child,) = np.random.SeedSequence(seed).spawn(1)
        choose = _table_policy(table, env, np.random.default_rng(child))
    else:
        choose = _observation_policy(policy)

    returns, discounted = np.zeros(episodes), np.zeros(episodes)
    lengths = np.zeros(episodes, dtype=np.int64)
    successes = np.zeros(episodes, dtype=bool)
    for episode in range(episodes):
        observation, info = env.reset(seed=seed if episode == 0 else None)
        weight = 1.0
        for _ in range(max_steps):
            observation, reward, terminated, truncated, info = env.step(choose(observation, info))
            lengths[episode] += 1
            returns[episode] += float(reward)
            discounted[episode] += weight * float(reward)
            weight *= 1.0 if gamma is None else gamma
            if terminated or truncated:
                successes[episode] = terminated
                break
    return Rollouts(returns, None if gamma is None else discounted, lengths, successes, promised)


Choose = Callable[[Any, dict[str, Any]], Any]


def _table_policy(table: NDArray[Any], env: gym.Env[Any, Any], rng: np.random.Generator) -> Choose:
    if table.ndim not in (1, 2) or (table.ndim == 1 and not np.issubdtype(table.dtype, np.integer)):
        raise ValueError(
            "a policy table must hold integer actions, shape (S,), or probabilities, shape "
            f"(S, A), got {table.dtype} of shape {table.shape}"
        )

    def state_of(observation: Any, info: dict[str, Any]) -> int:
        state = info.get("state", observation)
        try:
            index = operator.index(state)
        except TypeError:
            raise ValueError(
                "a policy table needs the state: info['state'], or an observation that is the "
                f"state, not {type(observation).__name__}"
            ) from None
        if not 0 <= index < len(table):
            raise ValueError(f"state {index} has no row in a policy of {len(table)} states")
        return index

    if table.ndim == 1:
        return lambda observation, info: int(table[state_of(observation, info)])
    cumulative = np.cumsum(table, axis=1)
    last = table.shape[1] - 1

    def draw(observation: Any, info: dict[str, Any]) -> int:
        row = cumulative[state_of(observation, info)]
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


def _promised(env: gym.Env[Any, Any], policy: ArrayLike, gamma: float | None) -> float | None:
    try:
        model = as_model(env)
    except (TypeError, ValueError):
        return None  # no model, or not one that holds for what the wrappers make of it
    if gamma is None:
        return None
    values = model_values(model, evaluate(model, policy, gamma, allow_unavailable=True))
    return 0.0 - float(model.initial @ values)
