"""
What each action costs
======================

A triangle for each action of a state: FrozenLake, as Gymnasium has it.
"""

import gymnasium as gym
import matplotlib.pyplot as plt

import planners
from planners.plotting import plot_q_values

env = gym.make("FrozenLake-v1")
result = planners.solve(env, gamma=0.99)
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
plot_q_values(env, planners.q_values(env, result.values, gamma=0.99), ax=ax, returns=True)
