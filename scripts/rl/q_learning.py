"""Tabular Q-learning (Watkins, 1989), to read and to compare with.

    Q(s,a) <- Q(s,a) + alpha (r + gamma max_a' Q(s',a') - Q(s,a)),   alpha = n(s,a)^-0.6

where n(s,a) counts how often a was taken in s: a rate under which Q converges to the optimum.
Q starts at 0. Where moves cost that is more than most returns, so what was not tried looks good and
the agent explores by itself; besides, with probability epsilon it takes any available action.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray


def q_learning(
    env: gym.Env[Any, Any],
    *,
    gamma: float,
    num_steps: int,
    seed: int,
    epsilon: float = 0.1,
    watch: Callable[[int, NDArray[np.float64]], None] = lambda step, Q: None,
) -> NDArray[np.float64]:
    """Learn action values from episodes in an environment.

    Parameters
    ----------
    env : gymnasium.Env
        Discrete states and actions; ``info["action_mask"]`` says which actions are available.
    gamma : float
        Discount in [0, 1).
    num_steps : int
    seed : int
        Of the environment and of the agent's own choices.
    epsilon : float
        Probability of a random action.
    watch : callable
        Called as ``watch(step, Q)`` before the first step and after each; Q changes afterwards.

    Returns
    -------
    ndarray of float, shape (S, A)
        Discounted returns to be expected; -inf where an action was seen to be unavailable.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
    Q = np.zeros((env.observation_space.n, env.action_space.n))
    counts = np.zeros(Q.shape)
    state, info = env.reset(seed=seed)
    watch(0, Q)
    for step in range(1, num_steps + 1):
        Q[state, info["action_mask"] == 0] = -np.inf
        if rng.random() < epsilon:
            action = rng.choice(np.flatnonzero(info["action_mask"]))
        else:
            action = np.argmax(Q[state])
        following, reward, terminated, truncated, info = env.step(action)
        Q[following, info["action_mask"] == 0] = -np.inf
        target = reward if terminated else reward + gamma * Q[following].max()
        counts[state, action] += 1
        Q[state, action] += counts[state, action] ** -0.6 * (target - Q[state, action])
        state = following
        if terminated or truncated:
            state, info = env.reset()
        watch(step, Q)
    return Q
