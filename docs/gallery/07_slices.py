"""
More than two dimensions
========================

A plane for each pair of axes, through one position.
"""

import gymnasium as gym
import matplotlib.pyplot as plt

import aggmaze
import planners
from planners.plotting import plot_slices

env = gym.make("NDMaze-v0", kind="terrain", shape=(12, 12, 12), p=0.95)
result = planners.solve(env, gamma=0.97)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
plot_slices(env, result.values, ax=axes)
