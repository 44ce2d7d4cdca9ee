"""Whether an environment does what its table says: a walk on a copy, compared step by step."""

from __future__ import annotations

import copy
import math
import operator
import random
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.toy_text.taxi import TaxiEnv

from aggmaze.formats.gym_table import Outcome

# The walk: so many steps, but no more seconds than that, in episodes of at most so many steps.
_NUM_STEPS = 1000
_SECONDS = 0.5
_LONGEST_EPISODE = 100
_MOST_LISTED = 6
# Rewards that differ by no more than this share of their size are the same.
_ROUNDING = 1e-6
# Frequencies that are that much likelier by what was seen before than by the table refute it: if
# the table is right, the ratio is 1 on average at any time, so that it gets there with a chance of
# one in ten million at most (Ville's inequality).
_MOST_EVIDENCE = math.log(1e7)
# The table counts for so many steps in what is expected of the next one.
_TRUST = 10.0


def contradiction(env: gym.Env[Any, Any]) -> str:
    """Return what an environment with a table ``P`` does that the table denies, or "".

    Known arguments of Gymnasium's toy-text environments are looked at, and a walk is made on a
    copy, with seeds of its own, so that the environment stays as it is.  What can't be copied or
    walked, or does not tell its state, is not contradicted.

    Parameters
    ----------
    env : gymnasium.Env
        Without wrappers.
    """
    # The first versions have no such probability.
    fickle = isinstance(env, TaxiEnv) and getattr(env, "fickle_passenger", False)
    if fickle and getattr(env, "fickle_probability", 1.0) > 0:
        return "its fickle passenger changes the destination on the way"
    generators = np.random.get_state(), random.getstate()  # noqa: NPY002 (whatever a step draws from)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _walk(_copied(env))
    except Exception:
        return ""  # the walk is an extra: what it can't do is no fault of the model
    finally:
        np.random.set_state(generators[0])  # noqa: NPY002
        random.setstate(generators[1])


def _copied(env: Any) -> Any:
    """Return a copy without pictures that shares nothing with the environment but outcomes."""
    memo: dict[int, Any] = {}
    if type(env.P) is dict:
        # A large part of the time if it were done outcome by outcome.
        memo[id(env.P)] = {state: copy.copy(actions) for state, actions in env.P.items()}
    twin = copy.deepcopy(env, memo)
    twin.render_mode = None
    return twin


def _walk(env: Any) -> str:
    rng = np.random.default_rng(0)
    started = getattr(env, "initial_state_distrib", None)
    deadline = time.perf_counter() + _SECONDS
    seen: dict[tuple[int, int], list[tuple[Any, ...]]] = {}
    evidence = 0.0
    episode_length = _LONGEST_EPISODE
    for number in range(_NUM_STEPS):
        if time.perf_counter() > deadline:
            break
        if episode_length >= _LONGEST_EPISODE:
            observation, info = env.reset(seed=None if number else 0)
            state, episode_length = _state(env, observation, info), 0
            if started is not None and not started[state] > 0:
                return f"it starts in state {state}, where its initial_state_distrib has 0"
        actions = env.P[state]
        action = int(rng.integers(len(actions)))
        observation, reward, terminated, truncated, info = env.step(action)
        following = _state(env, observation, info)
        outcomes = actions[action]
        probability = _probability(outcomes, following, reward, terminated)
        if not probability > 0:
            ends = " and ends the episode" if terminated else ""
            listed = outcomes if len(outcomes) <= _MOST_LISTED else f"{len(outcomes)} others"
            return (
                f"action {action} in state {state} leads to state {following} for a reward of "
                f"{reward:g}{ends}, and P[{state}][{action}] is {listed}"
            )
        before = seen.setdefault((state, action), [])
        outcome = (following, reward, terminated)
        often = before.count(outcome) + _TRUST * probability
        evidence += math.log(often / (len(before) + _TRUST) / probability)
        before.append(outcome)
        if evidence > _MOST_EVIDENCE:
            return "outcomes happen far more or less often than their probabilities say"
        state, episode_length = following, episode_length + 1
        if terminated or truncated:
            episode_length = _LONGEST_EPISODE
    return ""


def _state(env: Any, observation: Any, info: Mapping[str, Any]) -> int:
    """Return the state: ``env.s``, as toy-text environments have it, or what rollouts go by."""
    return operator.index(getattr(env, "s", info.get("state", observation)))


def _probability(
    outcomes: Sequence[Outcome], following: int, reward: float, terminated: bool
) -> float:
    """Return the probability of an outcome, which a row may list several times."""
    return sum(
        p
        for p, state, pay, ends in outcomes
        if state == following
        and bool(ends) == bool(terminated)
        and abs(pay - reward) <= _ROUNDING * max(abs(pay), abs(reward))
    )
