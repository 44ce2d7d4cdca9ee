"""The agents of Stable-Baselines3 and sb3-contrib, with settings for small mazes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from _problem import Env, Task
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.utils import LinearSchedule

from aggmaze import wrappers

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


def flat_local_view(env: Env) -> Env:
    """Flatten the local view: SB3 takes three axes for an image, which this is not."""
    return gym.wrappers.FlattenObservation(wrappers.LocalViewObservation(env))


#: What puts an observation round an environment; SB3 makes the bare state one-hot by itself.
OBSERVATIONS: dict[str, Callable[[Env], Env] | None] = {
    "state": None,
    "one_hot": wrappers.OneHotObservation,
    "coordinates": wrappers.CoordinateObservation,
    "local_view": flat_local_view,
    # As small as SB3's convolutional network takes it.
    "image": partial(wrappers.ImageObservation, size=36),
}


def learn(
    task: Task, *, num_envs: int, every: int, action_mask: NDArray[np.bool_], watch: Watch
) -> None:
    """Train an agent, and show its greedy policy from time to time.

    Parameters
    ----------
    task : Task
        Its algorithm is one of `AGENTS`, its observation one of `OBSERVATIONS`.
    num_envs : int
        Environments that are stepped together.
    every : int
        Steps between two calls of ``watch``; a multiple of ``num_envs``.
    action_mask : ndarray of bool, shape (S, A)
        What "maskable_ppo" may choose from when it says what it would do in each state.
    watch : callable
        Called as ``watch(step, policy)``, at step 0 too; ``policy`` has shape (S,).
    """
    agent_class, settings = AGENTS[task.algorithm]
    wrap = OBSERVATIONS[task.observation]
    envs = make_vec_env(
        task.problem.env_id,
        n_envs=num_envs,
        seed=task.seed,
        env_kwargs={"start": task.start, **task.problem.options},
        wrapper_class=wrap,
    )
    agent = agent_class(
        "CnnPolicy" if task.observation == "image" else "MlpPolicy",
        envs,
        gamma=task.problem.gamma,
        seed=task.seed,
        device="cpu",
        **({} if task.library_settings else settings),
    )
    env = task.problem.make()
    if wrap is not None:
        env = wrap(env)
    seen = np.stack([_observe(env, state) for state in range(len(action_mask))])
    masks = {"action_masks": action_mask} if task.algorithm == "maskable_ppo" else {}
    agent.learn(task.num_steps, callback=_Watching(watch, every, task.num_steps, seen, masks))
    envs.close()


def _observe(env: Env, state: int) -> Any:
    """Return what an environment under wrappers of observations shows of a state."""
    if isinstance(env, gym.ObservationWrapper):
        return env.observation(_observe(env.env, state))
    return _observe(env.env, state) if isinstance(env, gym.Wrapper) else state


class _Watching(BaseCallback):
    """Shows the greedy policy at every so many steps."""

    def __init__(
        self,
        watch: Watch,
        every: int,
        num_steps: int,
        seen: NDArray[Any],
        masks: dict[str, Any],
    ) -> None:
        super().__init__()
        self._watch, self._every, self._num_steps = watch, every, num_steps
        self._seen, self._masks = seen, masks

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
        policy, _ = self.model.predict(self._seen, deterministic=True, **self._masks)
        self._watch(step, policy.astype(np.int64))
