"""
Frames of the environments
==========================

What ``render`` draws, with a plan over it; the same in a window with ``render_mode="human"``.
"""

import gymnasium as gym
import matplotlib.pyplot as plt

import aggmaze
import planners

figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
for ax, (env_id, arguments, gamma) in zip(
    axes,
    (
        ("StandardMaze-v0", {"shape": (12, 12)}, 0.97),
        ("TerrainMaze-v0", {"shape": (14, 14), "terrain": "fractal"}, 0.98),
        ("GridWorld-v0", {}, 1.0),
    ),
    strict=True,
):
    env = gym.make(env_id, render_mode="rgb_array", **arguments)
    env.reset(seed=0)
    result = planners.solve(env, gamma=gamma)
    env.unwrapped.set_overlay(policy=result.policy, path=True)
    ax.imshow(env.render())
    ax.set_title(env_id)
    ax.axis("off")
