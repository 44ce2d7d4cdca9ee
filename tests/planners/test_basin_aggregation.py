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
from aggmaze.grid import Grid
from aggmaze.mazes import StandardRecipe, maze_model
from planners.bellman import local_engine
from planners.sweeps.grid_rows import RowSweeps
from tests.planners.reference import (
    Array,
    Exact,
    dense,
    exact_error,
    gammas,
    move_models,
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


def grid_model(seed: int, shape: tuple[int, ...], p: float, blocked: float = 0.0) -> MoveMDP:
    """Return random costs on a grid, some moves blocked, the first state terminal or not."""
    rng = np.random.default_rng(seed)
    grid = Grid(shape)
    coords = np.indices(shape).reshape(len(shape), -1)
    states = np.arange(grid.num_states)
    successors = np.repeat(states[:, np.newaxis], 2 * len(shape), axis=1)
    costs = rng.normal(size=successors.shape) + rng.choice([0.0, 1.0])
    for axis, size in enumerate(shape):
        for sign in (0, 1):
            inside = coords[axis] > 0 if sign == 0 else coords[axis] < size - 1
            move = 2 * axis + sign
            successors[inside, move] += (2 * sign - 1) * grid.strides[axis]
            # At the border some moves are unavailable, others stay in place.
            missing = ~inside & (rng.random(grid.num_states) < 0.5)
            missing |= rng.random(grid.num_states) < blocked
            costs[missing, move] = np.inf
    if rng.random() < 0.5:
        costs[0] = np.inf
    return MoveMDP(successors, costs, p=p)


def check_every(model: MoveMDP, gamma: float, V: Array, off: float, **options: Any) -> None:
    """Check the bound of every iteration, and that there are not too many."""

    def watch(progress: planners.Progress) -> None:
        assert np.abs(V - progress.values).max() <= progress.bound + off

    result = planners.solve(model, gamma=gamma, method=METHOD, callback=watch, **options)
    assert result.status == "converged", result.message
    assert np.abs(result.values - V).max() <= result.bound + off
    # Value iteration alone would take log(1e9) / (1 - gamma).
    assert result.num_iterations <= 40 + 10 / (1 - gamma)


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99, 0.999])
@pytest.mark.parametrize("p", [1.0, 0.95, 0.8, 0.3, 0.25, 0.1])
def test_small_grids(gamma: float, p: float) -> None:
    shapes = [(7, 9), (3, 3), (12, 5), (1, 20), (4, 3, 5), (30,), (2, 3, 2, 3)]
    for seed, shape in enumerate(shapes):
        model = grid_model(seed, shape, p, blocked=0.0 if seed % 2 == 0 else 0.05)
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
    grid = Grid((10, 11))
    recipe = StandardRecipe(generator)
    layout = recipe.layout(grid, np.random.default_rng(0))
    for p in (1.0, 0.9):
        model = maze_model(layout, recipe, p=p)
        check_every(model, 0.99, *truth(dense(model), 0.99), tol=1e-8)


@settings(max_examples=150, deadline=None)
@given(model=move_models(), gamma=gammas, data=st.data())
def test_any_small_model(model: MoveMDP, gamma: float, data: st.DataObject) -> None:
    V = Exact(model, gamma).optimum()
    start = data.draw(st.sampled_from([None, 0.5, -3.0]))
    V0 = None if start is None else np.full(model.num_states, start)

    def watch(progress: planners.Progress) -> None:
        assert within(exact_error(progress.values, V), progress.bound)

    result = planners.solve(
        model, gamma=gamma, method=METHOD, tol=1e-7, V0=V0, callback=watch, num_iterations=3000
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


@pytest.mark.parametrize("p", [1.0, 0.9, 0.6, 0.25])
def test_plain_row_sweeps_are_gauss_seidel(p: float) -> None:
    """Unrelaxed sweeps leave V* as it is, contract, and with relaxation leave V* as it is too."""
    gamma, shape = 0.95, (9, 8)
    for seed in range(4):
        model = grid_model(seed, shape, p)
        V, _ = truth(dense(model), gamma)
        V = V.astype(np.float64)
        size = np.abs(V).max()
        rows = RowSweeps(local_engine(model, gamma), shape, 1)
        assert rows.share == (1.0 if p >= 0.25 else 0.0)
        for relaxed in (True, False, True, False):
            values = V.copy()
            assert rows.sweep(values, relaxed=relaxed) == 6
            assert np.abs(values - V).max() <= 1e-13 * size
        values = V + np.random.default_rng(seed).normal(size=len(V))
        values[model.terminal] = 0.0
        for _ in range(6):
            before = np.abs(values - V).max()
            rows.sweep(values, relaxed=False)
            assert np.abs(values - V).max() <= gamma * before + 1e-13 * size


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
