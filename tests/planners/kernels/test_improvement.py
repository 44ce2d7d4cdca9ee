"""What total costs ask of the tables of moves, one pass or two."""

import gymnasium as gym
import numpy as np
import pytest

import planners
from planners.inequalities import exact_row
from planners.kernels.improvement import (
    least_cost_of_moves,
    least_costs_of_certain_moves,
    most_missing_of_moves,
)
from planners.kernels.tables import moves_of
from tests.planners.reference import random_moves


@pytest.mark.parametrize("seed", range(20))
def test_one_pass_over_certain_moves_finds_what_two_do(seed):
    model = random_moves(seed, 30, 4, p=1.0)
    moves, ends = moves_of(model), np.asarray(model.terminal)
    going_on, ending = least_costs_of_certain_moves(moves, ends, 0, 30)
    assert going_on == least_cost_of_moves(moves, ends, 0, 30)
    alpha = 0.7
    missing = most_missing_of_moves(moves, ends, alpha, 0, 30)
    assert missing == max(0.0, 1.0 - alpha * ending)


@pytest.mark.parametrize(
    ("env_id", "options"),
    [
        ("StandardMaze-v0", {"loops": 0.1, "step_cost": 0.1}),
        ("TerrainMaze-v0", {"terrain": "uniform"}),
        ("TerrainMaze-v0", {"goal_reward": 30.0, "cost": "climb"}),
        ("NDMaze-v0", {"shape": (4, 4, 4)}),
    ],
)
def test_what_counts_steps_falls_with_each_step(env_id, options):
    """N is not looked at by a sweep where moves are certain: so here it is, in fractions."""
    env = gym.make(env_id, **{"shape": (12, 12), **options})
    model = env.unwrapped.transition_model()
    found = planners.solve(env, gamma=1, method="forest_policy_iteration")
    steps = found.proof["steps"]
    assert steps.min() >= 0.0
    assert not steps[model.terminal].any()
    for state in np.flatnonzero(~model.terminal):
        fall = exact_row(model, int(state), int(found.policy[state]), steps, with_costs=False)
        assert fall <= -0.999
