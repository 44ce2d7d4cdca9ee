"""
Convergence of several methods
==============================

The true error against the number of updates: aggregation is ahead at first, then its bins hold it.
"""

import gymnasium as gym
import matplotlib.pyplot as plt

import aggmaze
import planners
from planners.plotting import ErrorTrace, plot_convergence

env = gym.make("StandardMaze-v0", p=0.9)
model, scale = planners.normalized(env, gamma=0.95)
optimum = planners.solve(model, gamma=0.95, tol=1e-9)

limits = {"num_updates": 100_000}
results, errors = {}, {}
for method, options in (
    ("value_iteration", {}),
    ("adaptive_aggregation", {"epsilon": 0.5}),
    ("modified_policy_iteration", {}),
):
    errors[method] = ErrorTrace(optimum)
    results[method] = planners.solve(
        model, gamma=0.95, method=method, callback=errors[method], **limits, **options
    )
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
plot_convergence(results, show="error", errors=errors, ax=ax)
