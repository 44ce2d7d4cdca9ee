"""Shortest paths to the terminal states of grids, against scipy's on the graph of all moves."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

import planners
from aggmaze import MoveMDP
from aggmaze.grid import Grid
from aggmaze.recipes import StandardRecipe
from planners.kernels.tables import moves_of
from planners.linear.shortest_paths import grid_paths, shortest_moves
from planners.policies import steps_to_terminal
from tests.planners.reference import maze_of, random_moves
from tests.strategies import grids


def expected_distances(model: MoveMDP) -> NDArray[np.int64]:
    """Fewest moves to a terminal state by Dijkstra on the reversed graph; -1 where none leads."""
    states, moves = np.nonzero(np.isfinite(model.move_costs))
    targets = model.successors[states, moves]
    graph = np.zeros((model.num_states, model.num_states))
    graph[targets, states] = 1.0
    ends = np.flatnonzero(model.terminal)
    if len(ends) == 0:
        return np.full(model.num_states, -1)
    found = dijkstra(sp.csr_array(graph), indices=ends, unweighted=True).min(axis=0)
    return np.where(np.isfinite(found), found, -1).astype(np.int64)


@settings(max_examples=150, deadline=None)
@given(grid=grids(max_dims=4, max_states=60), seed=st.integers(0, 10**6))
def test_distances_on_grids_with_walls_that_may_be_passed_one_way(grid: Grid, seed: int) -> None:
    rng = np.random.default_rng(seed)
    successors, on_grid = grid.neighbours()
    available = on_grid & (rng.random(on_grid.shape) < rng.choice([0.4, 0.7, 1.0]))
    available[rng.random(grid.num_states) < 0.1] = False
    # Some of the moves that would leave the grid stay in place instead.
    available |= ~on_grid & (rng.random(on_grid.shape) < 0.3)
    model = MoveMDP(successors, np.where(available, rng.random(on_grid.shape), np.inf), p=0.9)
    expected = expected_distances(model)
    found = grid_paths(moves_of(model), model.terminal)
    assert found is not None
    np.testing.assert_array_equal(found.distances, expected)
    assert (found.paths is None) == bool((expected < 0).any() or not model.terminal.any())
    np.testing.assert_array_equal(steps_to_terminal(model), expected)
    actions = np.full(grid.num_states, -1, dtype=np.int32)
    paths = shortest_moves(moves_of(model), model.terminal, actions)
    if paths is None:
        # There is nothing to reach, or nothing that can be left.
        assert not model.terminal.any() or not (available & (successors != own(grid))).any()
        return
    np.testing.assert_array_equal(paths.distances, expected)
    if found.paths is not None:
        np.testing.assert_array_equal(found.actions, actions)
        np.testing.assert_array_equal(found.paths.order, paths.order)
    inside = np.flatnonzero(expected > 0)
    following = successors[inside, actions[inside]]
    assert available[inside, actions[inside]].all()
    np.testing.assert_array_equal(expected[following], expected[inside] - 1)


def own(grid: Grid) -> NDArray[np.int64]:
    return np.arange(grid.num_states)[:, np.newaxis]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("num_moves", [1, 2, 3, 4, 7, 18])
def test_moves_that_are_no_steps_on_a_grid(seed: int, num_moves: int) -> None:
    model = random_moves(seed, 40, num_moves, p=0.9)
    assert grid_paths(moves_of(model), model.terminal) is None
    np.testing.assert_array_equal(steps_to_terminal(model), expected_distances(model))


def test_moves_around_a_torus_can_be_taken_back() -> None:
    nx, ny = 7, 6
    x, y = np.divmod(np.arange(nx * ny), ny)
    around = [((x + dx) % nx) * ny + (y + dy) % ny for dx, dy in ((-1, 0), (1, 0), (0, -1), (0, 1))]
    costs = np.ones((nx * ny, 4))
    costs[17] = np.inf
    model = MoveMDP(np.stack(around, axis=1), costs)
    assert grid_paths(moves_of(model), model.terminal) is None
    expected = expected_distances(model)
    actions = np.full(nx * ny, -1, dtype=np.int32)
    paths = shortest_moves(moves_of(model), model.terminal, actions)
    assert paths is not None
    assert paths.distances is None
    inside = np.flatnonzero(~model.terminal)
    following = model.successors[inside, actions[inside]]
    np.testing.assert_array_equal(expected[following], expected[inside] - 1)
    assert paths.mean_length == pytest.approx(expected[inside].mean())


@pytest.mark.parametrize("p", [1.0, 0.95])
def test_a_solve_far_beyond_its_horizon_walks_to_the_goal(p: float) -> None:
    # Beyond some hundred steps all values are equal but for rounding: ties, nearly everywhere.
    model = maze_of(StandardRecipe("depth_first"), (60, 60), p=p)
    result = planners.solve(model, gamma=0.5)
    expected = expected_distances(model)
    assert expected.max() > 500
    inside = np.flatnonzero(~model.terminal)
    following = model.successors[inside, result.policy[inside]]
    np.testing.assert_array_equal(expected[following], expected[inside] - 1)
