"""Which method `auto` takes, and that its result says which and why."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings

import aggmaze
import planners
from aggmaze import MoveMDP, TabularMDP
from planners.auto import choose, measure
from planners.bellman import local_engine
from tests.planners.reference import Model, dense, models, random_moves, random_tabular, truth

assert aggmaze.ENV_IDS  # registers the mazes

FOREST, BASINS, MODIFIED = (
    "forest_policy_iteration",
    "basin_aggregation",
    "modified_policy_iteration",
)


@pytest.mark.parametrize(
    ("env_id", "keywords", "method", "reason"),
    [
        ("StandardMaze-v0", {}, FOREST, "a 20 x 20 grid with walls"),
        ("StandardMaze-v0", {"shape": (100, 100), "p": 0.9}, FOREST, "with walls"),
        ("StandardMaze-v0", {"shape": (50, 60), "loops": 0.3}, FOREST, "a 50 x 60 grid with walls"),
        ("TerrainMaze-v0", {}, BASINS, "an open 20 x 20 grid"),
        # As many columns as sampled states have in common must not matter.
        ("TerrainMaze-v0", {"shape": (200, 200), "p": 0.95}, BASINS, "an open 200 x 200 grid"),
        ("TerrainMaze-v0", {"p": 0.2}, FOREST, "slip often (p = 0.2)"),
        ("NDMaze-v0", {"shape": (5,) * 6, "p": 0.9, "kind": "terrain"}, BASINS, "an open 5 x 5"),
        ("NDMaze-v0", {"shape": (5,) * 6, "p": 0.9}, FOREST, "with walls"),
        ("NDMaze-v0", {"shape": (300,), "kind": "terrain"}, FOREST, "a corridor of 300 positions"),
        ("FrozenLake-v1", {}, MODIFIED, "likeliest outcomes carry"),
        ("FrozenLake-v1", {"is_slippery": False}, FOREST, "100% of the probability"),
        ("Taxi-v4", {}, FOREST, "an end to reach"),
    ],
)
def test_the_choice_and_its_reason(
    env_id: str, keywords: dict[str, Any], method: str, reason: str
) -> None:
    env = gym.make(env_id, **keywords)
    result = planners.solve(env, gamma=0.95)
    assert result.method == method
    assert reason in result.reason
    assert result.status == "converged"
    # What was chosen is the method of that name, where its iterations are looked at one by one.
    watched = planners.solve(env, gamma=0.95, callback=lambda progress: None)
    named = planners.solve(env, gamma=0.95, method=method)
    np.testing.assert_array_equal(named.values, watched.values)
    assert named.reason == ""
    assert np.abs(named.values - result.values).max() <= named.bound + result.bound


def test_the_accuracy_asked_for_counts() -> None:
    env = gym.make("TerrainMaze-v0")
    assert planners.solve(env, gamma=0.9, tol=1e-4).method == BASINS
    exact = planners.solve(env, gamma=0.9, tol=1e-9)
    assert exact.method == FOREST
    assert "to an accuracy of 1e-09" in exact.reason


@pytest.mark.parametrize(("p", "method"), [(1.0, FOREST), (0.9, BASINS)])
def test_an_open_grid_without_an_end(p: float, method: str) -> None:
    rows, columns = np.divmod(np.arange(400), 20)
    moves = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    following = np.stack(
        [
            np.clip(rows + down, 0, 19) * 20 + np.clip(columns + right, 0, 19)
            for down, right in moves
        ],
        axis=1,
    )
    prices = np.random.default_rng(0).random((400, 4))
    prices[following == np.arange(400)[:, np.newaxis]] = np.inf
    model = MoveMDP(following, prices, p=p)
    result = planners.solve(model, gamma=0.99)
    assert result.method == method
    assert ("nor end" in result.reason) == (p == 1.0)
    V, off = truth(dense(model), 0.99)
    assert np.abs(result.values - V).max() <= result.bound + off


def test_random_graphs() -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), (50, 2))
    table = np.zeros((50, 2, 50))
    for k in range(3):
        table[np.arange(50)[:, np.newaxis], np.arange(2), rng.integers(0, 50, (50, 2))] += P[..., k]
    table /= table.sum(axis=2, keepdims=True)
    model = TabularMDP.from_matrices(table, costs=rng.random((50, 2)))
    assert choose(model).method == MODIFIED
    jumps = MoveMDP(rng.integers(0, 50, (50, 4)), rng.random((50, 4)), p=0.5)
    assert choose(jumps).method == MODIFIED


@settings(max_examples=60)
@given(model=models)
def test_any_model_is_solved(model: planners.bellman.Model) -> None:
    result = planners.solve(model, gamma=0.9, tol=1e-6, num_threads=1)
    V, off = truth(dense(model), 0.9)
    assert np.abs(result.values - V).max() <= result.bound + off
    assert result.status == "converged" or np.abs(V).max() <= 1e-8


@pytest.mark.parametrize("bad", ["small", math.nan, -1.0, True])
def test_a_bad_tolerance_is_named_before_anything_is_measured(bad: Any) -> None:
    with pytest.raises(ValueError, match="tol must be finite and not negative, got"):
        planners.solve(gym.make("TerrainMaze-v0"), gamma=0.9, tol=bad)


def test_options_belong_to_a_method() -> None:
    with pytest.raises(TypeError, match="'auto' takes no options of its own, got epsilon, zeta"):
        planners.solve(gym.make("StandardMaze-v0"), gamma=0.9, zeta=1, epsilon=0.1)


def test_a_saved_result_keeps_the_reason(tmp_path: Any) -> None:
    result = planners.solve(gym.make("StandardMaze-v0"), gamma=0.9)
    result.save(tmp_path / "result.npz")
    assert planners.SolveResult.load(tmp_path / "result.npz").reason == result.reason != ""


# ---------------------------------------------------------------------------------------------
# What it measures.


@given(models)
def test_small_models_are_measured_whole(model: Model) -> None:
    found = measure(model)
    tables = dense(model)
    stays = np.array(
        [
            all(tables.P[s, a, s] == tables.P[s, a].sum() for a in np.flatnonzero(tables.mask[s]))
            for s in range(tables.num_states)
        ]
    )
    assert found.has_absorbing_states == bool(stays.any())
    assert local_engine(model, 0.9).has_absorbing_states == bool(stays.any())
    assert (found.num_states, found.num_actions) == tables.mask.shape
    assert 0 <= found.determinism <= 1 + 1e-9
    assert 0 <= found.nonnegative <= 1
    assert 0 <= found.openness <= 1
    assert found.p == (model.p if isinstance(model, MoveMDP) else None)


def test_moves() -> None:
    # A corridor of four positions, the first of which is the goal.
    successors = np.array([[0, 1], [0, 2], [1, 3], [2, 3]])
    costs = np.array([[np.inf, np.inf], [1.0, -1.0], [1.0, 2.0], [1.0, np.inf]])
    found = measure(MoveMDP(successors, costs, p=0.9))
    assert found.has_absorbing_states
    assert found.determinism == pytest.approx((4 * 0.9 + 1) / 5)
    assert found.nonnegative == 0.8
    assert found.openness == pytest.approx(5 / 6)
    assert found.p == 0.9


def test_moves_below_one_in_n() -> None:
    found = measure(random_moves(0, 50, 4, p=0.1))
    assert 0.3 <= found.determinism <= 1.0


def test_rows() -> None:
    P = np.zeros((3, 2, 3))
    P[0, 0] = 0.5, 0.25, 0.25
    P[0, 1] = 0.0, 0.0, 1.0
    P[1, :, 2] = 1.0
    P[2, :, 2] = 1.0
    costs = np.array([[1.0, -1.0], [2.0, 5.0], [7.0, 7.0]])
    mask = np.array([[True, True], [True, False], [True, True]])
    found = measure(TabularMDP.from_matrices(P, costs=costs, action_mask=mask, terminal=[]))
    assert found.has_absorbing_states
    assert found.determinism == pytest.approx((0.5 + 1 + 1) / 3)
    assert found.nonnegative == pytest.approx(2 / 3)
    assert found.openness == 0.75
    assert found.shape is None
    assert found.p is None


def test_nothing_but_terminal_states() -> None:
    found = measure(MoveMDP(np.zeros((3, 2), dtype=int), np.full((3, 2), np.inf)))
    assert found.has_absorbing_states
    assert found.determinism == 0.0


def test_absorbing_states_need_not_be_terminal() -> None:
    model = random_tabular(0, 20, 2, terminals=0)
    assert not measure(model).has_absorbing_states
    costs = np.ones((2, 1))
    P = np.array([[[0.0, 1.0]], [[0.0, 1.0]]])
    stuck = TabularMDP.from_matrices(P, costs=costs, terminal=[])
    assert not stuck.terminal.any()
    assert measure(stuck).has_absorbing_states
