"""How often a policy is where, against sums of powers and against the values of the policy."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import planners
from aggmaze import TabularMDP
from aggmaze.progress import listening
from planners import AverageCost, FiniteHorizon, occupancy
from planners.policies import policy_model

MAZE = gym.make("TerrainMaze-v0", shape=(5, 4), p=0.8)
LAKE = gym.make("FrozenLake-v1")


@pytest.mark.parametrize("env", [MAZE, LAKE])
@pytest.mark.parametrize("gamma", [0.0, 0.7, 0.97])
def test_it_is_the_sum_over_time(env: Any, gamma: float) -> None:
    model = planners.as_model(env)
    result = planners.solve(env, gamma=gamma)
    chain = policy_model(model, result)
    P = chain.transitions.toarray()
    chance = np.where(model.terminal, 0.0, model.initial)
    expected = np.zeros(len(P))
    for step in range(1500):
        expected += gamma**step * chance
        chance = np.where(model.terminal, 0.0, chance @ P)
    np.testing.assert_allclose(occupancy(env, result), expected[: len(result.values)], atol=1e-12)


def test_costs_at_visits_are_the_value_of_the_policy() -> None:
    model = planners.as_model(MAZE)
    rng = np.random.default_rng(3)
    weights = rng.random((model.num_states, 4)) * model.action_mask
    weights[model.terminal] = 1.0
    weights /= weights.sum(axis=1, keepdims=True)
    for gamma in (0.9, 1.0):
        visits = occupancy(model, weights, gamma)
        costs = policy_model(model, weights).costs[:, 0]
        values = planners.evaluate(model, weights, gamma)
        assert visits @ costs == pytest.approx(model.initial @ values, rel=1e-9)


def test_large_ones_tell_how_near_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    result = planners.solve(MAZE, gamma=0.9)
    module: Any = __import__("sys").modules["planners.occupancy"]
    monkeypatch.setattr(module, "_MOST_FACTORED", 0)
    unheard = occupancy(MAZE, result)
    heard: list[tuple[float, float]] = []
    with listening(lambda *told: None, lambda *told: heard.append(told)):
        np.testing.assert_array_equal(occupancy(MAZE, result), unheard)
    assert len(heard) > 2
    assert heard[-1][0] <= heard[-1][1] < heard[0][0]


def test_large_ones_by_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    result = planners.solve(MAZE, gamma=0.9)
    exact = occupancy(MAZE, result)
    module: Any = __import__("sys").modules["planners.occupancy"]
    monkeypatch.setattr(module, "_MOST_FACTORED", 0)
    np.testing.assert_allclose(occupancy(MAZE, result), exact, atol=1e-8)


def test_another_start() -> None:
    result = planners.solve(MAZE, gamma=0.9)
    start = np.zeros(20)
    start[7] = 1
    visits = occupancy(MAZE, result, initial=start)
    assert visits[7] >= 1
    with pytest.raises(ValueError, match=r"initial must have shape \(20,\), got \(3,\)"):
        occupancy(MAZE, result, initial=[1, 0, 0])


def test_refused() -> None:
    loop = TabularMDP.from_matrices(
        [[[1, 0]], [[0, 0]]], costs=[1, 0], terminal=[False, True], state_names=["here", "end"]
    )
    with pytest.raises(ValueError, match=r"from .*here.* the policy does not surely end"):
        occupancy(loop, [0, 0], 1.0)
    for objective, words in (
        (AverageCost(), "average costs"),
        (FiniteHorizon(3), "finite horizon"),
    ):
        with pytest.raises(ValueError, match=words):
            occupancy(LAKE, np.zeros(16, dtype=int), objective=objective)
