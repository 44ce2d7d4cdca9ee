"""The agents of Stable-Baselines3 and sb3-contrib, with settings for small mazes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from _problem import Problem
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.utils import LinearSchedule

Watch = Callable[[int, NDArray[np.int64]], None]

# Networks this small gain nothing from more threads, and with one the sums have a fixed order.
torch.set_num_threads(1)

# What is not named here is as the libraries have it: two layers of 64, for a one-hot state.
_PPO_SETTINGS: dict[str, Any] = {
    "n_steps": 64,
    "batch_size": 256,
    # To 0, so that the greedy policy comes to rest.
    "learning_rate": LinearSchedule(1e-3, 0.0, 1.0),
}
_DQN_SETTINGS: dict[str, Any] = {
    "learning_rate": 1e-3,
    "buffer_size": 100_000,
    "learning_starts": 1_000,
    "batch_size": 128,
    # After each step of all environments.
    "train_freq": 1,
    "gradient_steps": 4,
    "target_update_interval": 1_000,
    "exploration_fraction": 0.5,
    "exploration_final_eps": 0.1,
}
AGENTS: dict[str, tuple[type[BaseAlgorithm], dict[str, Any]]] = {
    "ppo": (PPO, _PPO_SETTINGS),
    "dqn": (DQN, _DQN_SETTINGS),
    "maskable_ppo": (MaskablePPO, _PPO_SETTINGS),
}


def learn(
    algorithm: str,
    problem: Problem,
    *,
    start: str,
    num_envs: int,
    num_steps: int,
    seed: int,
    every: int,
    action_mask: NDArray[np.bool_],
    watch: Watch,
) -> None:
    """Train an agent, and show its greedy policy from time to time.

    Parameters
    ----------
    algorithm : {"ppo", "dqn", "maskable_ppo"}
    problem : Problem
    start : {"corner", "uniform"}
        Where episodes start.
    num_envs : int
        Environments that are stepped together.
    num_steps : int
        Of all of them; the agents may take some more, to fill the last batch.
    seed : int
    every : int
        Steps between two calls of ``watch``; a multiple of ``num_envs``.
    action_mask : ndarray of bool, shape (S, A)
        What "maskable_ppo" may choose from when it says what it would do in each state.
    watch : callable
        Called as ``watch(step, policy)``, at step 0 too; ``policy`` has shape (S,).
    """
    agent_class, settings = AGENTS[algorithm]
    envs = make_vec_env(
        problem.env_id,
        n_envs=num_envs,
        seed=seed,
        env_kwargs={"start": start, **problem.options},
    )
    agent = agent_class("MlpPolicy", envs, gamma=problem.gamma, seed=seed, device="cpu", **settings)
    masks = {"action_masks": action_mask} if algorithm == "maskable_ppo" else {}
    agent.learn(num_steps, callback=_Watching(watch, every, num_steps, masks))
    envs.close()


class _Watching(BaseCallback):
    """Shows the greedy policy at every so many steps."""

    def __init__(self, watch: Watch, every: int, num_steps: int, masks: dict[str, Any]) -> None:
        super().__init__()
        self._watch, self._every, self._num_steps, self._masks = watch, every, num_steps, masks

    def _on_training_start(self) -> None:
        self._show(0)

    def _on_step(self) -> bool:
        # The last is shown at the end, when what it taught has been learned.
        if self.num_timesteps % self._every == 0 and self.num_timesteps < self._num_steps:
            self._show(self.num_timesteps)
        return True

    def _on_training_end(self) -> None:
        self._show(self.num_timesteps)

    def _show(self, step: int) -> None:
        states = np.arange(self.training_env.observation_space.n)
        policy, _ = self.model.predict(states, deterministic=True, **self._masks)
        self._watch(step, policy.astype(np.int64))
