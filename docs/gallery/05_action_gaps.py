"""
Where it matters what one does
==============================

The gap between the best action and the second-best one.
"""

import gymnasium as gym
import matplotlib.pyplot as plt

import aggmaze
import planners
from planners.plotting import plot_action_gaps

env = gym.make("StandardMaze-v0", p=0.8, loops=0.5)
result = planners.solve(env, gamma=0.97)
Q = planners.q_values(env, result.values, gamma=0.97)
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
plot_action_gaps(env, Q, ax=ax)
