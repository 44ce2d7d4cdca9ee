"""Gymnasium's own wrappers around every environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pygame
import pytest
from gymnasium import wrappers

import aggmaze
import planners

every_id = pytest.mark.parametrize("env_id", aggmaze.ENV_IDS)


def walk(env: Any, steps: int, seed: int = 0) -> list[tuple[Any, ...]]:
    """Take random steps from a reset, into further episodes where one ends."""
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    seen = []
    for _ in range(steps):
        seen.append(env.step(int(rng.integers(env.unwrapped.action_space.n))))
        if seen[-1][2] or seen[-1][3]:
            env.reset()
    return seen


@every_id
def test_time_limit(env_id: str) -> None:
    env = wrappers.TimeLimit(gym.make(env_id).unwrapped, max_episode_steps=3)
    steps = walk(env, 9)
    lengths, length = [], 0
    for *_, terminated, truncated, _ in steps:
        length += 1
        if terminated or truncated:
            lengths.append((length, terminated))
            length = 0
    assert lengths
    assert all(n == 3 or terminated for n, terminated in lengths)
    assert planners.as_model(env) is env.unwrapped.transition_model()


@every_id
def test_record_episode_statistics(env_id: str) -> None:
    env = wrappers.RecordEpisodeStatistics(gym.make(env_id, max_episode_steps=7))
    total, length, episodes = 0.0, 0, 0
    for _, reward, terminated, truncated, info in walk(env, 40):
        total, length = total + reward, length + 1
        assert ("episode" in info) == (terminated or truncated)
        if terminated or truncated:
            assert info["episode"]["r"] == pytest.approx(total, rel=1e-6)
            assert info["episode"]["l"] == length
            total, length, episodes = 0.0, 0, episodes + 1
    assert episodes >= 5


@every_id
def test_record_episode_statistics_of_many(env_id: str) -> None:
    envs = wrappers.vector.RecordEpisodeStatistics(
        gym.make_vec(env_id, num_envs=3, max_episode_steps=4)
    )
    envs.reset(seed=0)
    totals, episodes, over = np.zeros(3), 0, np.zeros(3, bool)
    for _ in range(20):
        totals[over] = 0
        _, rewards, terminated, truncated, infos = envs.step(np.ones(3, dtype=int))
        totals[~over] += rewards[~over]
        over = terminated | truncated
        if over.any():
            np.testing.assert_allclose(infos["episode"]["r"][over], totals[over])
            episodes += over.sum()
    assert episodes >= 9
    envs.close()


@every_id
def test_flatten_observation(env_id: str) -> None:
    env = wrappers.FlattenObservation(gym.make(env_id))
    observation, info = env.reset(seed=0)
    assert observation.shape == (env.unwrapped.observation_space.n,)
    assert np.flatnonzero(observation).tolist() == [info["state"]]
    for observation, *_, info in walk(env, 10):
        assert observation.sum() == 1
        assert observation[info["state"]] == 1
    assert planners.as_model(env) is env.unwrapped.transition_model()


@every_id
def test_human_rendering(env_id: str) -> None:
    env = wrappers.HumanRendering(gym.make(env_id, render_mode="rgb_array"))
    env.metadata = {**env.metadata, "render_fps": 1000}
    walk(env, 3)
    shown = np.transpose(pygame.surfarray.array3d(env.window), (1, 0, 2))
    np.testing.assert_array_equal(shown, env.unwrapped.render())
    env.close()
    env.close()


@every_id
def test_record_video(env_id: str, tmp_path: Path) -> None:
    pytest.importorskip("moviepy", reason="pip install aggmaze[video]; .ci/run does")
    from moviepy import VideoFileClip

    # moviepy encodes and counts int(duration * fps) pictures, and a file's duration has two digits:
    # of 13 it loses the last at 15, 30 and 50 pictures a second, of 18 none.
    env = wrappers.RecordVideo(
        gym.make(env_id, render_mode="rgb_array", max_episode_steps=17),
        str(tmp_path / "videos"),
        episode_trigger=lambda episode: episode == 0,
        disable_logger=True,
    )
    env.reset(seed=0)
    frames = [env.unwrapped.render()]
    terminated = truncated = False
    while not (terminated or truncated):
        *_, terminated, truncated, _ = env.step(1)
        frames.append(env.unwrapped.render())
    env.close()
    (video,) = (tmp_path / "videos").glob("*.mp4")
    with VideoFileClip(str(video)) as clip:
        assert clip.fps == env.metadata["render_fps"]
        assert clip.size == [frames[0].shape[1], frames[0].shape[0]]
        assert clip.n_frames == len(frames)
        # Compression loses some, but not which picture it is.
        difference = np.abs(clip.get_frame(0).astype(int) - frames[0])
    assert difference.mean() < 6


@every_id
def test_order_enforcing_and_autoreset(env_id: str) -> None:
    with pytest.raises(gym.error.ResetNeeded):
        gym.make(env_id).step(0)
    env = wrappers.Autoreset(gym.make(env_id, max_episode_steps=2))
    env.reset(seed=0)
    ended = False
    for _ in range(12):
        _, reward, terminated, truncated, info = env.step(1)
        if ended:
            assert reward == 0
            assert info["prob"] > 0
        ended = terminated or truncated
    assert planners.as_model(env) is env.unwrapped.transition_model()
