"""Policy iteration against dense policy iteration, fractions and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planners
from aggmaze import MoveMDP, TabularMDP
from aggmaze.recipes import StandardRecipe, TerrainRecipe
from tests.planners.reference import (
    Model,
    bounds_hold,
    check_exactly,
    dense,
    gammas,
    maze_of,
    models,
    random_moves,
    random_tabular,
    truth,
)

METHOD = "policy_iteration"


def some_models(seed: int) -> list[Model]:
    found: list[Model] = [random_tabular(seed, 30, 3, terminals=n) for n in (0, 1)]
    for p in (1.0, 0.9, 0.5, 0.1):
        found += [random_moves(seed, 30, 4, p=p, terminals=n) for n in (0, 1)]
        found += [maze_of(recipe, (6, 6), p=p) for recipe in (StandardRecipe(), TerrainRecipe())]
    return found + [model.to_tabular() for model in found[2::3] if isinstance(model, MoveMDP)]


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.95, 0.999])
def test_every_bound_holds_and_few_policies_are_tried(gamma: float) -> None:
    for seed in range(3):
        for model in some_models(seed):
            watch = bounds_hold(*truth(dense(model), gamma))
            result = planners.solve(model, gamma=gamma, method=METHOD, tol=1e-10, callback=watch)
            assert result.status == "converged"
            assert result.num_iterations <= 15
            assert result.num_updates == result.num_sweeps * model.num_states


@settings(max_examples=100)
@given(
    model=models,
    gamma=gammas,
    num_iterations=st.integers(1, 20),
    start=st.sampled_from([None, 3.0, -1e6, 1e6]),
)
def test_the_certificate_is_exact(
    model: Model, gamma: float, num_iterations: int, start: float | None
) -> None:
    check_exactly(model, gamma, METHOD, num_iterations, start)


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("p", [1.0, 0.95])
@pytest.mark.parametrize("gamma", [0.9, 0.999])
def test_the_first_policy_of_ties_arrives(gamma: float, p: float, general: bool) -> None:
    moves = maze_of(StandardRecipe("depth_first"), (40, 40), p=p)
    model = moves.to_tabular() if general else moves
    for V0 in (None, np.full(model.num_states, 1 / (1 - gamma))):
        result = planners.solve(model, gamma=gamma, method=METHOD, tol=1e-9, V0=V0)
        assert (result.status, result.num_iterations) == ("converged", 1)


@pytest.mark.parametrize("p", [1.0, 0.9, 0.6])
@pytest.mark.parametrize("gamma", [0.9, 0.999])
def test_ties_do_not_turn_in_circles(gamma: float, p: float) -> None:
    # An open grid where all moves cost the same; asked for more than can be certified.
    model = maze_of(StandardRecipe(loops=1.0, step_cost=1 / 3), (20, 20), p=p)
    result = planners.solve(model, gamma=gamma, method=METHOD, atol=0.0)
    assert result.status == "stopped_short"
    assert result.num_iterations <= 20


def test_equations_that_are_too_much_for_bicgstab() -> None:
    # Slow to forget, and no order of the states that a preconditioner could use.
    rng = np.random.default_rng(0)
    size, gamma = 300, 1 - 1e-7
    P = np.zeros((size, 2, size))
    for a in range(2):
        following = rng.integers(size, size=(size, 3))
        for column in following.T:
            P[np.arange(size), a, column] += 1 / 3
    model = TabularMDP.from_matrices(P, costs=rng.random((size, 2)))
    V, off = truth(dense(model), gamma)
    result = planners.solve(model, gamma=gamma, method=METHOD, tol=1e-6)
    assert np.abs(result.values - V).max() <= result.bound + off
    assert result.status == "converged"
    assert result.num_iterations <= 15


def test_a_good_start_is_used_and_kept() -> None:
    for model in some_models(0):
        first = planners.solve(model, gamma=0.99, method=METHOD, tol=1e-10)
        V0 = first.values.copy()
        again = planners.solve(model, gamma=0.99, method=METHOD, tol=1e-10, V0=V0)
        np.testing.assert_array_equal(V0, first.values)
        assert again.num_iterations <= 2


def test_it_takes_no_options() -> None:
    with pytest.raises(TypeError, match="num_sweeps"):
        planners.solve(random_moves(0, 5, 2, p=0.9), gamma=0.9, method=METHOD, num_sweeps=1)
