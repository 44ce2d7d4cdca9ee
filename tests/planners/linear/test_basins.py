"""The basin correction against dense tables."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

import planners
from planners.bellman import local_engine
from planners.linear.basins import BasinCorrection
from tests.planners.reference import dense, random_moves, truth


def test_basins_of_a_policy() -> None:
    """Labels follow the greedy moves; errors constant over each basin are found."""
    gamma = 0.9
    model = random_moves(3, 60, 3, p=1.0, terminals=2)
    operators = local_engine(model, gamma)
    # With p = 1 a policy's equations are exact: Newton's method reaches V* and stays there.
    V, image = np.zeros(60), np.empty(60)
    actions = np.zeros(60, dtype=np.int32)
    correction = BasinCorrection(operators)
    for _ in range(30):
        operators.sweep(V, image, actions)
        correction.apply(actions, V, image)
        V, image = image, V
    exact, _ = truth(dense(model), gamma)
    assert np.abs(V - exact).max() < 1e-12
    labels = correction.labels
    inside = np.flatnonzero(~model.terminal)
    assert (labels[inside] == labels[model.successors[inside, actions[inside]]]).all()
    assert set(labels) == set(range(correction.num_basins))


def test_constant_error_of_a_basin_goes_at_once() -> None:
    gamma = 0.99
    env = gym.make("TerrainMaze-v0", shape=(20, 20), p=0.9, layout_seed=0, cost="difference")
    model = planners.as_model(env)
    V, _ = truth(dense(model), gamma)
    operators = local_engine(model, gamma)
    correction = BasinCorrection(operators)
    image, actions = np.empty(400), np.zeros(400, dtype=np.int32)
    operators.sweep(V.astype(np.float64), image, actions)
    correction.apply(actions, V.astype(np.float64), image)
    wrong = V.astype(np.float64) + np.where(correction.labels == correction.labels[0], 0.0, 5.0)
    operators.sweep(wrong, image, actions)
    correction.apply(actions, wrong.copy(), image)
    assert np.median(np.abs(image - V)) < 0.05 * 5.0
