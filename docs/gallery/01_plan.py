"""
A plan: values, policy and path
===============================

``result.plot(env)`` is one call: costs-to-go as colours, the best action as an arrow, and the way
from the start to the goal.
"""

import gymnasium as gym
import matplotlib.pyplot as plt

import aggmaze
import planners

env = gym.make("TerrainMaze-v0", p=0.95)
env.reset(seed=0)
result = planners.solve(env, gamma=0.97)
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
result.plot(env, ax=ax)

# %%
# Of a standard maze the same call draws the walls.

env = gym.make("StandardMaze-v0", p=0.95, loops=0.1)
env.reset(seed=0)
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
planners.solve(env, gamma=0.97).plot(env, ax=ax)
