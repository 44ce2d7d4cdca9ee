"""Basin aggregation against truth found in other ways, its pieces against dense tables."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planners
from aggmaze import MoveMDP
from aggmaze.recipes import StandardRecipe
from planners.bellman import local_engine
from planners.sweeps.grid_rows import RowSweeps
from tests.planners.reference import (
    Array,
    Exact,
    bounds_hold,
    dense,
    exact_bounds_hold,
    exact_error,
    gammas,
    maze_of,
    move_models,
    random_grid,
    random_moves,
    random_tabular,
    truth,
    within,
)
from tests.strategies import move_mdps

METHOD = "basin_aggregation"


def terrain(shape: tuple[int, ...], p: float, seed: int, **keywords: Any) -> MoveMDP:
    env = gym.make("TerrainMaze-v0", shape=shape, p=p, layout_seed=seed, **keywords)
    model = planners.as_model(env)
    assert isinstance(model, MoveMDP)
    return model


def check_every(model: MoveMDP, gamma: float, V: Array, off: float, **options: Any) -> None:
    """Check the bound of every iteration, and that there are not too many."""
    result = planners.solve(
        model, gamma=gamma, method=METHOD, callback=bounds_hold(V, off), **options
    )
    assert result.status == "converged", result.message
    assert np.abs(result.values - V).max() <= result.bound + off
    # Value iteration alone would take log(1e9) / (1 - gamma).
    assert result.num_iterations <= 40 + 10 / (1 - gamma)


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99, 0.999])
@pytest.mark.parametrize("p", [1.0, 0.95, 0.8, 0.3, 0.25, 0.1])
def test_small_grids(gamma: float, p: float) -> None:
    shapes = [(7, 9), (3, 3), (12, 5), (1, 20), (4, 3, 5), (30,), (2, 3, 2, 3)]
    for seed, shape in enumerate(shapes):
        model = random_grid(seed, shape, p, blocked=0.0 if seed % 2 == 0 else 0.05)
        check_every(model, gamma, *truth(dense(model), gamma), tol=1e-8)


@pytest.mark.parametrize("gamma", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("p", [1.0, 0.9, 0.2])
@pytest.mark.parametrize("terminals", [0, 2])
def test_graphs_of_moves(gamma: float, p: float, terminals: int) -> None:
    for seed in range(8):
        model = random_moves(seed, 40, 1 + seed % 5, p=p, terminals=terminals)
        check_every(model, gamma, *truth(dense(model), gamma), tol=1e-8)


@pytest.mark.parametrize("cost", ["shifted", "difference", "climb"])
@pytest.mark.parametrize(("p", "num_retraced"), [(1.0, None), (0.95, 0), (0.95, None), (0.7, 5)])
def test_terrain(cost: str, p: float, num_retraced: int | None) -> None:
    for seed, heights in enumerate(("smooth", "uniform")):
        model = terrain((9, 8), p, seed, cost=cost, terrain=heights)
        assert RowSweeps(local_engine(model, 0.9), (9, 8), 2).share == 1.0
        for gamma in (0.9, 0.99, 0.999):
            V, off = truth(dense(model), gamma)
            check_every(model, gamma, V, off, tol=1e-9, num_retraced=num_retraced)


@pytest.mark.parametrize("generator", ["kruskal", "depth_first"])
def test_mazes(generator: str) -> None:
    for p in (1.0, 0.9):
        model = maze_of(StandardRecipe(generator), (10, 11), p=p)
        check_every(model, 0.99, *truth(dense(model), 0.99), tol=1e-8)


@settings(max_examples=150, deadline=None)
@given(model=move_models(), gamma=gammas, data=st.data())
def test_any_small_model(model: MoveMDP, gamma: float, data: st.DataObject) -> None:
    V = Exact(model, gamma).optimum()
    start = data.draw(st.sampled_from([None, 0.5, -3.0]))
    V0 = None if start is None else np.full(model.num_states, start)
    result = planners.solve(
        model,
        gamma=gamma,
        method=METHOD,
        tol=1e-7,
        V0=V0,
        callback=exact_bounds_hold(V),
        num_iterations=3000,
    )
    assert result.num_iterations < 3000
    assert within(exact_error(result.values, V), result.bound)


@settings(max_examples=100, deadline=None)
@given(model=move_mdps(), gamma=st.sampled_from([0.5, 0.9, 0.99]))
def test_any_model_of_moves(model: MoveMDP, gamma: float) -> None:
    V, off = truth(dense(model), gamma)
    result = planners.solve(model, gamma=gamma, method=METHOD, tol=1e-6, num_iterations=2000)
    assert result.num_iterations < 2000
    assert np.abs(result.values - V).max() <= result.bound + off


def test_start_is_kept_and_warm_starts_are_quick() -> None:
    model = terrain((40, 40), 0.9, 1)
    cold = planners.solve(model, gamma=0.99, method=METHOD, tol=1e-10)
    V0 = cold.values.copy()
    warm = planners.solve(model, gamma=0.99, method=METHOD, tol=1e-8, V0=V0)
    np.testing.assert_array_equal(V0, cold.values)
    assert warm.num_iterations == 1
    assert cold.labels is not None
    assert cold.labels.shape == (1600,)


def test_threads_and_repetition_change_nothing() -> None:
    model = terrain((300, 310), 0.8, 2, terrain="uniform")
    results = [
        planners.solve(model, gamma=0.99, method=METHOD, num_threads=threads)
        for threads in (1, 2, 3)
    ]
    for other in results[1:]:
        np.testing.assert_array_equal(other.values, results[0].values)
        assert other.bound == results[0].bound


def test_general_models_are_refused() -> None:
    with pytest.raises(ValueError, match=r"basin_aggregation is for models of moves.*gauss_seidel"):
        planners.solve(random_tabular(0, 5, 2), gamma=0.9, method=METHOD)


def test_options_are_checked() -> None:
    model = terrain((5, 5), 0.9, 0)
    with pytest.raises(ValueError, match="num_retraced"):
        planners.solve(model, gamma=0.9, method=METHOD, num_retraced=-1)
    with pytest.raises(TypeError, match="num_retraced"):
        planners.solve(model, gamma=0.9, method=METHOD, epsilon=1.0)
