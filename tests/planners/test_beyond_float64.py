"""Python's integers and fractions have no end, float64 has one: arguments beyond it are refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import aggmaze
import planners

# Python itself refuses to print the second one.
BEYOND = [10**400, 10**5000, Fraction(10**400), Fraction(10**400 + 1, 3)]
MAZE = planners.as_model(gym.make("StandardMaze-v0", shape=(4, 4)))
RESULT = planners.solve(MAZE, gamma=0.9)


def solve(**arguments: Any) -> planners.SolveResult:
    return planners.solve(MAZE, gamma=0.9, **arguments)


def aggregate(**arguments: Any) -> planners.SolveResult:
    given = {"epsilon": 0.5, "num_iterations": 20} | arguments
    return solve(method="adaptive_aggregation", **given)


CALLS: dict[str, Callable[[Any], Any]] = {
    "tol": lambda x: solve(tol=x),
    "atol": lambda x: solve(atol=x),
    "num_iterations": lambda x: solve(num_iterations=x),
    "num_updates": lambda x: solve(num_updates=x),
    "time_limit": lambda x: solve(time_limit=x),
    "num_threads": lambda x: solve(num_threads=x),
    "V0 must": lambda x: solve(V0=[x] * 16),
    "epsilon": lambda x: aggregate(epsilon=x),
    "epsilon of cycle 2": lambda x: aggregate(epsilon=[0.5, x]),
    "epsilon of cycle 1": lambda x: aggregate(epsilon=lambda cycle: x),
    "step_size": lambda x: aggregate(step_size=x),
    "step_size at t = 1": lambda x: aggregate(step_size=lambda t: x),
    "first_step": lambda x: aggregate(first_step=x),
    "num_global": lambda x: aggregate(num_global=x),
    "num_aggregated": lambda x: aggregate(num_aggregated=x),
    "noise_sigma": lambda x: aggregate(noise_sigma=x),
    "inner_sweeps": lambda x: solve(method="modified_policy_iteration", inner_sweeps=x),
    "num_sweeps": lambda x: solve(method="forest_policy_iteration", num_sweeps=x),
    "num_retraced": lambda x: solve(method="basin_aggregation", num_retraced=x),
    "max_cost_to_go": lambda x: planners.normalized(MAZE, gamma=0.9, max_cost_to_go=x),
    "episodes": lambda x: planners.rollout(MAZE, RESULT, episodes=x, seed=0),
    "max_steps": lambda x: planners.rollout(MAZE, RESULT, episodes=1, seed=0, max_steps=x),
    "time_limit must": lambda x: planners.arrival(MAZE, RESULT, time_limit=x),
    "factor": lambda x: MAZE.scaled(x),
    "num_envs": lambda x: aggmaze.TabularVectorEnv(MAZE, x),
    "action": lambda x: aggmaze.TabularEnv(MAZE).step(x),
}


@pytest.mark.parametrize("value", BEYOND, ids=["integer", "very long", "fraction", "third"])
@pytest.mark.parametrize("name", CALLS)
def test_beyond_float64(name: str, value: Any) -> None:
    for x in (value, -value):
        with pytest.raises((ValueError, TypeError)) as refusal:
            CALLS[name](x)
        text = str(refusal.value)
        assert text.startswith(name)
        assert len(text) < 200


@pytest.mark.parametrize("name", ["tol", "atol", "time_limit", "factor", "epsilon", "noise_sigma"])
def test_fractions_that_are_numbers_of_float64(name: str) -> None:
    CALLS[name](Fraction(1, 3))


def test_a_slack_beyond_float64_leaves_every_action() -> None:
    V, step = np.zeros(16), RESULT.values
    for slack in (10**400, Fraction(10**400), np.inf):
        policy = planners.greedy(MAZE, V, 0.9, slack=slack)
        # Of actions that are as good as each other, those that make for the goal.
        np.testing.assert_array_equal(policy, planners.greedy(MAZE, step, 0.9, slack=1e6))


def test_copies_that_no_machine_holds() -> None:
    with pytest.raises(MemoryError, match="100,000,000,000,000,000,000 copies of an environment"):
        aggmaze.TabularVectorEnv(MAZE, 10**20)
