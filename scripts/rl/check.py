"""Reinforcement learning libraries take our environments as they are.

    python scripts/rl/check.py

Run by `.ci/run`, in an environment with `scripts/rl/requirements.txt` in it. Warnings are errors.
Prints a line for each check and how many passed and failed, and exits with 1 if one failed.
"""

from __future__ import annotations

import logging
import re
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import _deep
import gymnasium as gym
import numpy as np
import torch
from _problem import Judge, Problem, Task
from _runs import ROUNDING, Watcher
from train import OBSERVATIONS, learn

with warnings.catch_warnings():
    # What a library says while it is imported is not about our environments.
    warnings.simplefilter("ignore")
    from sb3_contrib import MaskablePPO
    from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
    from stable_baselines3 import DQN, PPO
    from stable_baselines3.common.env_checker import check_env
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor
    from torchrl.envs import GymEnv
    from torchrl.envs.utils import check_env_specs

import aggmaze
import planners
from aggmaze import wrappers

Env = gym.Env[Any, Any]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rl.md"

SMALL: dict[str, dict[str, Any]] = {
    "StandardMaze-v0": {"shape": (4, 3), "p": 0.9},
    "TerrainMaze-v0": {"shape": (4, 3), "p": 0.9},
    "NDMaze-v0": {"shape": (3, 2, 3), "p": 0.9},
    "DiscretizedCartPole-v0": {},
    "GridWorld-v0": {},
    "DiscretizedMountainCar-v0": {"bins": (20, 15)},
    "DiscretizedAcrobot-v0": {"bins": (5, 5, 5, 5)},
    "DiscretizedPendulum-v0": {"bins": (21, 15)},
}
WRAPPERS: dict[str, Callable[[Env], Env]] = {
    "CoordinateObservation": wrappers.CoordinateObservation,
    "CoordinateObservation, counted": partial(wrappers.CoordinateObservation, normalized=False),
    "OneHotObservation": wrappers.OneHotObservation,
    "ImageObservation": wrappers.ImageObservation,
    "LocalViewObservation, flattened": _deep.flat_local_view,
    "NewMazeEachEpisode": wrappers.NewMazeEachEpisode,
    "with_regret": partial(planners.with_regret, gamma=0.95),
    "with_shaping": partial(planners.with_shaping, gamma=0.95),
}


def make(env_id: str, **options: Any) -> Env:
    """Make a small environment."""
    return gym.make(env_id, **SMALL[env_id], **options)


def takes(env_id: str, name: str) -> bool:
    """Tell whether a wrapper is for an environment: cells of a cart or a pendulum are no maze."""
    two_dimensional = name.startswith("LocalView")
    if env_id.startswith("Discretized"):
        return not two_dimensional and name not in ("ImageObservation", "NewMazeEachEpisode")
    if env_id == "GridWorld-v0":  # which has a pit, and of which nothing is drawn
        return not two_dimensional and name != "NewMazeEachEpisode"
    return not (env_id == "NDMaze-v0" and two_dimensional)


def bare(env_id: str) -> None:
    """Run SB3's checks."""
    check_env(make(env_id))


def wrapped(env_id: str, name: str) -> None:
    """Run SB3's checks under a wrapper."""
    check_env(WRAPPERS[name](make(env_id)))


def specs(env_id: str) -> None:
    """Run the checks of torchrl."""
    check_env_specs(GymEnv(env_id, **SMALL[env_id]), seed=0)


def images_are_learned_from() -> None:
    """Train a convolutional network on pictures: all its weights move."""
    envs = make_vec_env(
        "StandardMaze-v0",
        n_envs=2,
        seed=0,
        env_kwargs=SMALL["StandardMaze-v0"],
        wrapper_class=wrappers.ImageObservation,
    )
    agent = PPO("CnnPolicy", envs, n_steps=16, batch_size=16, n_epochs=1, seed=0, device="cpu")
    before = [weights.detach().clone() for weights in agent.policy.parameters()]
    agent.learn(32)
    moved = [
        bool((weights != other).any())
        for weights, other in zip(agent.policy.parameters(), before, strict=True)
    ]
    assert all(moved)
    assert agent.observation_space.shape[0] == 3  # SB3 has turned the axes round


def processes_make_environments() -> None:
    """Step in worker processes, which know the environment by `module:id`, as in this one."""
    options = {"env_kwargs": SMALL["StandardMaze-v0"], "n_envs": 2, "seed": 0}
    envs = make_vec_env(
        "aggmaze:StandardMaze-v0",
        vec_env_cls=SubprocVecEnv,
        vec_env_kwargs={"start_method": "spawn"},
        **options,
    )
    here = make_vec_env("aggmaze:StandardMaze-v0", vec_env_cls=DummyVecEnv, **options)
    try:
        np.testing.assert_array_equal(envs.reset(), here.reset())
        rng = np.random.default_rng(0)
        for _ in range(50):
            actions = rng.integers(4, size=2)
            seen, expected = envs.step(actions), here.step(actions)
            for ours, theirs in zip(seen[:3], expected[:3], strict=True):
                np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(
            envs.env_method("action_masks"), here.env_method("action_masks")
        )
    finally:
        envs.close()


def monitors_count() -> None:
    """Compare returns and lengths that Monitor and VecMonitor tell with rewards and steps."""
    for envs in (
        DummyVecEnv([lambda: Monitor(make("TerrainMaze-v0"))]),
        VecMonitor(DummyVecEnv([lambda: make("TerrainMaze-v0")])),
    ):
        envs.seed(0)
        envs.reset()
        rng = np.random.default_rng(0)
        total, length, done = 0.0, 0, False
        while not done:
            _, rewards, dones, infos = envs.step([rng.integers(4)])
            total, length, done = total + float(rewards[0]), length + 1, bool(dones[0])
        assert infos[0]["episode"]["l"] == length
        np.testing.assert_allclose(infos[0]["episode"]["r"], total, rtol=0, atol=1e-4)
        assert infos[0]["TimeLimit.truncated"] is (length == 1000)


def masks_are_found() -> None:
    """Let MaskablePPO find `action_masks` through wrappers: it bumps into no wall."""

    def under_wrappers() -> Env:
        env = planners.with_regret(make("StandardMaze-v0"), gamma=0.95)
        return Monitor(wrappers.CoordinateObservation(env))

    envs = DummyVecEnv([under_wrappers] * 2)
    assert is_masking_supported(envs)
    envs.seed(0)
    envs.reset()
    expected = np.stack([env.unwrapped.action_masks() for env in envs.envs])
    np.testing.assert_array_equal(get_action_masks(envs), expected)
    bumps = []

    def note(local: dict[str, Any], _: dict[str, Any]) -> bool:
        for mask, action in zip(local["action_masks"], local["actions"], strict=True):
            bumps.append(not mask[action])
        return True

    agent = MaskablePPO("MlpPolicy", envs, n_steps=32, batch_size=32, seed=0, device="cpu")
    agent.learn(128, callback=note)
    assert len(bumps) == 128
    assert not any(bumps)


def agents_are_rolled_out() -> None:
    """Give an agent to `planners.rollout`: it does what its table of actions does."""
    env = make("StandardMaze-v0")
    agent = DQN("MlpPolicy", env, learning_starts=50, seed=0, device="cpu")
    agent.learn(200)
    options: dict[str, Any] = {"episodes": 3, "seed": 0, "max_steps": 50, "gamma": 0.95}
    policy, _ = agent.predict(np.arange(env.observation_space.n), deterministic=True)
    by_agent = planners.rollout(env, agent, **options)
    by_table = planners.rollout(env, lambda state: policy[state], **options)
    np.testing.assert_array_equal(by_agent.returns, by_table.returns)


def seeds_settle_everything() -> None:
    """Train twice with one seed: the same network."""
    weights = []
    for _ in range(2):
        envs = make_vec_env("TerrainMaze-v0", n_envs=2, seed=3, env_kwargs=SMALL["TerrainMaze-v0"])
        agent = PPO("MlpPolicy", envs, n_steps=32, batch_size=32, seed=3, device="cpu")
        agent.learn(128)
        weights.append(torch.cat([w.detach().flatten() for w in agent.policy.parameters()]))
    assert torch.equal(*weights)


def all_observations_are_learned_from() -> None:
    """Train PPO on each observation; SB3 makes states one-hot, so that the two are the same."""
    assert tuple(_deep.OBSERVATIONS) == OBSERVATIONS
    problem = Problem("StandardMaze-v0", 3)
    judge, shown = Judge(problem), {}
    for observation in OBSERVATIONS:
        policies: list[Any] = []
        _deep.learn(
            Task("ppo", problem, 0, 512, observation=observation),
            num_envs=4,
            every=256,
            action_mask=judge.action_mask,
            watch=lambda step, policy, seen=policies: seen.append((step, policy)),
        )
        assert [step for step, _ in policies] == [0, 256, 512]
        assert all(policy.shape == (9,) for _, policy in policies)
        shown[observation] = np.array([policy for _, policy in policies])
    np.testing.assert_array_equal(shown["state"], shown["one_hot"])


def ppo_finds_the_optimum() -> None:
    """Train PPO on an 8x8 maze: from the start its policy is as good as any."""
    problem = Problem("StandardMaze-v0", 8)
    judge = Judge(problem)
    task = Task("ppo", problem, 0, 64_000)
    watcher = Watcher(task, judge)
    learn(task, judge, watcher)
    last = watcher.points[-1]
    assert last.start_regret <= ROUNDING * judge.optimum[judge.start], last


def examples_of_the_page_run() -> None:
    """Run the Python of docs/rl.md."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert blocks
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)


def checks() -> Iterator[tuple[str, Callable[[], None]]]:
    """List the checks, by name."""
    for env_id in aggmaze.ENV_IDS:
        yield f"SB3 check_env: {env_id}", partial(bare, env_id)
        yield f"torchrl check_env_specs: {env_id}", partial(specs, env_id)
        for name in WRAPPERS:
            if takes(env_id, name):
                yield f"SB3 check_env: {name} of {env_id}", partial(wrapped, env_id, name)
    for check in (
        images_are_learned_from,
        processes_make_environments,
        monitors_count,
        masks_are_found,
        agents_are_rolled_out,
        seeds_settle_everything,
        all_observations_are_learned_from,
        ppo_finds_the_optimum,
        examples_of_the_page_run,
    ):
        yield check.__name__.replace("_", " "), check


def main() -> int:
    """Run the checks; return the exit code."""
    start, passed, failed = time.perf_counter(), 0, 0
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    # It says of each check that it succeeded.
    logging.getLogger("torchrl").setLevel(logging.WARNING)
    for name, check in checks():
        try:
            check()
        except Exception:
            traceback.print_exc()
            print(f"FAILED {name}", flush=True)
            failed += 1
        else:
            print(f"ok     {name}", flush=True)
            passed += 1
    print(f"{passed} passed, {failed} failed in {time.perf_counter() - start:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
