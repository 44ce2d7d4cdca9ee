"""
Where a policy spends its time
==============================

The discounted number of visits of each position, on the way to the goal.
"""

import gymnasium as gym
import matplotlib.pyplot as plt

import aggmaze
import planners
from planners.plotting import plot_occupancy

env = gym.make("StandardMaze-v0", p=0.7, loops=0.3)
result = planners.solve(env, gamma=0.97)
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
plot_occupancy(env, result.policy, gamma=0.97, ax=ax)
