"""
Mega-states
===========

What adaptive aggregation joins: states whose values fall into the same bin. Colours are the values
of the bins, lines the borders.
"""

import gymnasium as gym
import matplotlib.pyplot as plt

import aggmaze
import planners
from planners.plotting import plot_megastates

env = gym.make("TerrainMaze-v0", shape=(30, 30), p=0.95)
model, scale = planners.normalized(env, gamma=0.97)
result = planners.solve(
    model, gamma=0.97, method="adaptive_aggregation", epsilon=5.0, num_iterations=500
)
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
plot_megastates(env, result.labels, result.values, ax=ax, title="Bins of 5 in a range of 100")
