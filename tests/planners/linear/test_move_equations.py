"""The equations of a policy on slipping moves, against scipy's sparse LU and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse.linalg import spsolve

import planners
from aggmaze import MoveMDP
from aggmaze.recipes import StandardRecipe, TerrainRecipe
from planners.bellman import local_engine
from planners.kernels.tables import moves_of
from planners.linear.move_equations import MoveEquations
from tests.planners.reference import maze_of, random_grid, random_moves

KINDS = {
    "maze": lambda p: maze_of(StandardRecipe(), (40, 40), p=p, seed=1),
    "looped maze": lambda p: maze_of(StandardRecipe(loops=0.3), (40, 40), p=p, seed=1),
    "terrain": lambda p: maze_of(TerrainRecipe(), (40, 40), p=p, seed=1),
    "uniform terrain": lambda p: maze_of(TerrainRecipe("uniform"), (12, 11, 10), p=p, seed=1),
    "grid with stays": lambda p: random_grid(4, (41, 37), p, blocked=0.1),
    "anywhere": lambda p: random_moves(4, 1500, 3, p=p),
}


def transitions(model: MoveMDP, policy: NDArray[np.int32]) -> sp.csr_array:
    """The matrix of a policy by the definition of slip, written with loops."""
    rows, columns, entries = [], [], []
    for s in range(model.num_states):
        moves = np.flatnonzero(np.isfinite(model.move_costs[s]))
        for m in moves:
            chance = 1.0 if len(moves) == 1 else (1.0 - model.p) / (len(moves) - 1)
            if m == policy[s] and len(moves) > 1:
                chance = model.p
            rows.append(s)
            columns.append(model.successors[s, m])
            entries.append(chance)
    shape = (model.num_states, model.num_states)
    return sp.csr_array(sp.coo_array((entries, (rows, columns)), shape=shape))


def mean_costs(model: MoveMDP, policy: NDArray[np.int32]) -> NDArray[np.float64]:
    costs = np.zeros(model.num_states)
    for s in range(model.num_states):
        moves = np.flatnonzero(np.isfinite(model.move_costs[s]))
        for m in moves:
            chance = 1.0 if len(moves) == 1 else (1.0 - model.p) / (len(moves) - 1)
            chance = model.p if m == policy[s] and len(moves) > 1 else chance
            costs[s] += chance * model.move_costs[s, m]
    return costs


def some_policy(model: MoveMDP, seed: int) -> NDArray[np.int32]:
    """Draw an available action in each state; 0 in terminal ones."""
    chances = np.random.default_rng(seed).random(model.move_costs.shape)
    chances[~np.isfinite(model.move_costs)] = -1.0
    return np.where(model.terminal, 0, chances.argmax(axis=1)).astype(np.int32)


@pytest.mark.parametrize("p", [0.95, 0.6, 0.2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gamma", [0.9, 0.999])
def test_values_against_a_sparse_solve(kind: str, p: float, gamma: float) -> None:
    model = KINDS[kind](p)
    engine = local_engine(model, gamma)
    for policy in (some_policy(model, 2), planners.solve(model, gamma=gamma).policy):
        actions = policy.astype(np.int32)
        P = transitions(model, actions)
        right = mean_costs(model, actions)
        V = spsolve((sp.eye_array(model.num_states) - gamma * P).tocsc(), right)
        found = np.zeros(model.num_states)
        residual = MoveEquations(moves_of(model), actions, gamma).solve(found, engine.rounding)
        assert residual.size <= engine.rounding(np.abs(V).max())
        assert not found[model.terminal].any()
        np.testing.assert_allclose(found, V, rtol=0, atol=1e-9 * np.abs(V).max())
        # What is told is what there is.
        true = right + gamma * (P @ found) - found
        np.testing.assert_allclose(
            [residual.low, residual.high], [true.min(), true.max()], atol=1e-12 * np.abs(V).max()
        )
        # The one call takes this way, whatever it starts from.
        np.testing.assert_allclose(
            planners.evaluate(model, policy, gamma), V, rtol=0, atol=1e-9 * np.abs(V).max()
        )


@pytest.mark.parametrize("p", [0.95, 0.8])
def test_mazes_of_one_way_are_solved_by_one_substitution(p: float) -> None:
    model = KINDS["maze"](p)
    policy = planners.solve(model, gamma=0.99).policy.astype(np.int32)
    looks = []
    equations = MoveEquations(
        moves_of(model), policy, 1.0, count_steps=True, watch=lambda: looks.append(1)
    )
    steps = np.zeros(model.num_states)
    residual = equations.solve(steps, lambda size: 1e-9)
    assert residual.size <= 1e-9
    assert len(looks) == 1
    inside = np.flatnonzero(~model.terminal)
    Q = transitions(model, policy)[inside][:, inside]
    expected = spsolve((sp.eye_array(len(inside)) - Q).tocsc(), np.ones(len(inside)))
    np.testing.assert_allclose(steps[inside], expected, rtol=1e-10)
    found = planners.arrival(model, policy)
    assert found.expected_steps_exact
    assert found.expected_steps == pytest.approx(steps @ model.initial, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    p=st.sampled_from([0.3, 0.5, 0.8, 0.99]),
    num_moves=st.integers(2, 5),
)
def test_rising_steps_stay_below_the_solution(seed: int, p: float, num_moves: int) -> None:
    model = random_moves(seed, 30, num_moves, p=p)
    actions = some_policy(model, seed)
    inside = np.flatnonzero(~model.terminal)
    Q = transitions(model, actions)[inside][:, inside].toarray()
    A = np.eye(len(inside)) - Q
    if np.abs(np.linalg.matrix_power(Q, 2000)).max() > 1e-6:
        return  # some state does not arrive, or not soon
    expected = np.linalg.solve(A, np.ones(len(inside)))
    last = np.zeros(len(inside))
    for num_steps in (1, 2, 5, 50):
        equations = MoveEquations(moves_of(model), actions, 1.0, count_steps=True)
        values, residual = equations.rise(num_steps)
        assert (values[inside] >= last - 1e-12 * expected).all()
        assert (values[inside] <= expected * (1 + 1e-9)).all()
        true = 1.0 + Q @ values[inside] - values[inside]
        assert residual.high == pytest.approx(true.max(), abs=1e-9 * expected.max())
        last = values[inside]


def test_whoever_watches_may_stop() -> None:
    model = KINDS["terrain"](0.9)
    actions = planners.solve(model, gamma=0.99).policy.astype(np.int32)
    calls = []

    def watch() -> bool:
        calls.append(1)
        return len(calls) > 5

    equations = MoveEquations(moves_of(model), actions, 0.99, watch=watch)
    V = np.zeros(model.num_states)
    residual = equations.solve(V, lambda size: 0.0)
    assert len(calls) == 6
    assert not V.any()
    assert residual.size == pytest.approx(np.abs(mean_costs(model, actions)).max())


@pytest.mark.parametrize("where", [1, 700, slice(None)])
def test_values_that_are_no_numbers_are_told(where: Any) -> None:
    model = KINDS["terrain"](0.9)
    actions = some_policy(model, 0)
    V = np.zeros(model.num_states)
    V[where] = np.nan
    residual = MoveEquations(moves_of(model), actions, 0.9).solve(V, lambda size: 1.0)
    assert np.isnan(residual.size)


def test_more_moves_than_a_byte_counts() -> None:
    model = random_moves(2, 1100, 300, p=0.7)
    policy = some_policy(model, 1)
    V = planners.evaluate(model, policy, 0.95)
    P = transitions(model, policy)
    np.testing.assert_allclose(mean_costs(model, policy) + 0.95 * (P @ V), V, atol=1e-11)


def test_a_result_is_where_its_own_evaluation_begins() -> None:
    model = KINDS["terrain"](0.9)
    result = planners.solve(model, gamma=0.99)
    looks: list[int] = []
    counts = []
    for start in (np.zeros(model.num_states), result.values.copy()):
        equations = MoveEquations(
            moves_of(model),
            result.policy.astype(np.int32),
            0.99,
            watch=lambda: looks.append(1),
        )
        equations.solve(start, local_engine(model, 0.99).rounding)
        counts.append(len(looks))
        looks.clear()
    assert counts[1] < counts[0]
    np.testing.assert_allclose(
        planners.evaluate(model, result, 0.99),
        planners.evaluate(model, result.policy, 0.99),
        rtol=0,
        atol=1e-11 * np.abs(result.values).max(),
    )


@pytest.mark.parametrize("scale", [1e-250, 1e-20, 1e20, 1e250])
def test_costs_of_any_size(scale: float) -> None:
    model = KINDS["terrain"](0.9)
    policy = some_policy(model, 3)
    V = planners.evaluate(model, policy, 0.99)
    large = planners.evaluate(model.scaled(scale), policy, 0.99)
    np.testing.assert_allclose(large / scale, V, rtol=1e-9, atol=1e-9 * np.abs(V).max())
