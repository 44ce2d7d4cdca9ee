"""Multilevel policy iteration against exact optima, and at discounts near 1."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import planners
from aggmaze import TabularMDP
from planners.bellman import local_engine
from planners.linear.policy_equations import PolicyEquations, Solution
from planners.solvers import multilevel_policy_iteration
from planners.solvers.multilevel_policy_iteration import (
    MultilevelPolicyIteration,
    MultilevelPolicyIterationOptions,
)
from tests.planners.reference import (
    Array,
    Model,
    bounds_hold,
    check_exactly,
    dense,
    models,
    random_grid,
    random_moves,
    random_tabular,
    truth,
)

METHOD = "multilevel_policy_iteration"
SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def from_few_states() -> mock._patch[int]:
    """Models of two states and more have coarser ones."""
    return mock.patch.object(multilevel_policy_iteration, "_FEWEST_STATES", 1)


def queue(num_states: int) -> TabularMDP:
    """Customers come and are served, fast or slowly, which costs less."""
    states = np.arange(num_states)
    rows = []
    for serves in (0.35, 0.6):
        P = sp.coo_array(
            (
                np.concatenate([np.full(num_states, 1 - serves), np.full(num_states, serves)]),
                (
                    np.tile(states, 2),
                    np.append(np.minimum(states + 1, num_states - 1), np.maximum(states - 1, 0)),
                ),
            ),
            shape=(num_states, num_states),
        )
        rows.append(sp.csr_array(P))
    both = sp.csr_array(sp.vstack(rows))[np.arange(2 * num_states).reshape(2, -1).T.ravel()]
    costs = states[:, np.newaxis] / num_states + np.array([0.0, 0.3])
    return TabularMDP(both, costs).validate()


def torus(side: int, seed: int | None) -> TabularMDP:
    """Four actions on a torus that succeed in half of the cases; all rows fill in.

    Costs are drawn from a seed; without one they rise smoothly on the way from one corner.
    """
    states = np.arange(side * side).reshape(side, side)
    ways = np.stack([np.roll(states, step, axis) for axis in (0, 1) for step in (1, -1)], axis=-1)
    ways = ways.reshape(-1, 4)
    weights = np.full((4, 4), 0.5 / 3)
    np.fill_diagonal(weights, 0.5)
    size = side * side
    matrix = sp.csr_array(
        (
            np.tile(weights.ravel(), size),
            np.repeat(ways, 4, axis=0).ravel(),
            np.arange(0, 16 * size + 1, 4),
        ),
        shape=(4 * size, size),
    )
    if seed is None:
        wave = 1 - np.cos(2 * np.pi * np.arange(side) / side)
        costs = np.add.outer(wave, wave).reshape(size, 1)
    else:
        costs = np.random.default_rng(seed).random((size, 1))
    return TabularMDP(matrix, costs + np.zeros((1, 4))).validate()


@SLOW
@given(
    models,
    st.sampled_from([0.0, 0.5, 0.9, 0.99]),
    st.sampled_from(["auto", "coarse", "given"]),
    st.integers(1, 3),
)
def test_bounds_hold_in_fractions(model: Model, gamma: float, start: str, num_sweeps: int) -> None:
    with from_few_states():
        check_exactly(model, gamma, METHOD, 6, None, start=start, num_sweeps=num_sweeps)
        check_exactly(model, gamma, METHOD, 3, 1.0, start=start, num_sweeps=num_sweeps)


LARGER: dict[str, Model] = {
    "table": random_tabular(0, 60, 3),
    "table without terminal states": random_tabular(1, 60, 3, terminals=0),
    "moves": random_moves(0, 60, 4, p=0.9),
    "moves that never slip": random_moves(1, 60, 3, p=1.0, terminals=0),
    "moves that mostly slip": random_moves(2, 60, 4, p=0.1, terminals=2),
    "grid": random_grid(3, (7, 9), 0.8, 0.1),
}


@pytest.mark.parametrize("gamma", [0.0, 0.9, 0.999])
@pytest.mark.parametrize("name", LARGER)
def test_converges_and_its_bounds_hold(name: str, gamma: float) -> None:
    model = LARGER[name]
    V, off = truth(dense(model), gamma)
    with from_few_states():
        for start in ("coarse", "given"):
            result = planners.solve(
                model, gamma=gamma, method=METHOD, start=start, callback=bounds_hold(V, off)
            )
            assert result.status == "converged"
            assert np.abs(result.values - V).max() <= result.bound + off


@pytest.mark.parametrize("gamma", [1 - 1e-6, 1 - 1e-9, 1 - 1e-12])
def test_discounts_next_to_1(gamma: float) -> None:
    for model in (queue(700), random_moves(1, 400, 3, p=0.9, terminals=0)):
        result = planners.solve(model, gamma=gamma, method=METHOD, time_limit=60)
        other = planners.solve(model, gamma=gamma, method="policy_iteration", time_limit=60)
        assert result.status == other.status == "converged"
        assert np.abs(result.values - other.values).max() <= result.bound + other.bound


def test_the_work_hardly_depends_on_the_discount() -> None:
    for model in (queue(3000), torus(40, 0)):
        work = [
            planners.solve(model, gamma=gamma, method=METHOD, tol=1e-6).require().num_sweeps
            for gamma in (0.99, 0.9999, 0.999999)
        ]
        # Sweeps alone would take a hundred times as many, and again.
        assert work[1] <= 4 * work[0] + 50
        assert work[2] <= 4 * work[0] + 50


def first_values(model: Model, V0: Array, start: str, iterations: int = 2) -> Array:
    return planners.solve(
        model, gamma=0.99, method=METHOD, V0=V0, start=start, num_iterations=iterations
    ).values


def test_where_it_begins() -> None:
    model = torus(24, 1)
    zeros = np.zeros(model.num_states)
    V0 = np.random.default_rng(0).random(model.num_states)
    coarse, given = first_values(model, zeros, "coarse"), first_values(model, zeros, "given")
    assert (coarse != given).any()
    np.testing.assert_array_equal(first_values(model, zeros, "auto"), coarse)
    np.testing.assert_array_equal(first_values(model, V0, "coarse"), coarse)
    np.testing.assert_array_equal(first_values(model, V0, "auto"), first_values(model, V0, "given"))
    # The first iteration from a given V is a sweep of it.
    swept = np.empty_like(V0)
    local_engine(model, 0.99).sweep(V0, swept)
    np.testing.assert_array_equal(first_values(model, V0, "given", 1), swept)


def test_a_coarse_start_is_nearer_than_none_where_costs_are_smooth() -> None:
    model = torus(40, None)
    V = planners.solve(model, gamma=0.999, tol=1e-9).require().values
    spans = [
        np.ptp(
            planners.solve(model, gamma=0.999, method=METHOD, start=start, num_iterations=1).values
            - V
        )
        for start in ("coarse", "given")
    ]
    assert spans[0] < 0.2 * spans[1]


@pytest.mark.parametrize(
    "options", [{"start": "fine"}, {"start": 1}, {"num_sweeps": 0}, {"num_sweeps": 1.5}]
)
def test_options_out_of_range(options: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError), match="|".join(options)):
        planners.solve(queue(10), gamma=0.9, method=METHOD, **options)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    # Large enough that threads are used.
    for model in (torus(150, 3), random_moves(0, 60_000, 3, p=0.9)):
        one, two = (
            planners.solve(model, gamma=0.999, method=METHOD, num_iterations=3, num_threads=n)
            for n in (1, 2)
        )
        np.testing.assert_array_equal(one.values, two.values)
        assert one.bound == two.bound
        assert one.num_sweeps == two.num_sweeps


@pytest.mark.parametrize("reduction", [0.5, np.nan])
def test_corrections_that_are_of_no_use_are_survived(reduction: float) -> None:
    """Plain sweeps take over, which contract."""

    def useless(
        self: PolicyEquations, right: Array, *, reduction: float, most_steps: int
    ) -> Solution:
        found = np.random.default_rng(len(right)).normal(size=len(right))
        return Solution(1e3 * found, told, 1)

    told = reduction
    model = random_tabular(5, 40, 3, terminals=0)
    V, off = truth(dense(model), 0.9)
    with mock.patch.object(PolicyEquations, "solve", useless):
        result = planners.solve(
            model, gamma=0.9, method=METHOD, callback=bounds_hold(V, off), tol=1e-6
        )
    assert result.status == "converged"


def test_v_is_left_as_it_is_wherever_a_step_is_broken_off() -> None:
    model = torus(24, 4)
    left = 10**9

    def checkpoint() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise TimeoutError

    V0 = np.zeros(model.num_states)
    engine = local_engine(model, 0.99, 1, checkpoint)
    options = MultilevelPolicyIterationOptions()

    def steps() -> None:
        solver = MultilevelPolicyIteration(engine, options)
        V, out = V0.copy(), np.empty_like(V0)
        for _ in range(3):
            before = V.copy()
            try:
                solver.step(V, out)
            finally:
                np.testing.assert_array_equal(V, before)
            V, out = out, V

    # The engine may have looked too.
    left = 10**9
    steps()
    num_looks = 10**9 - left
    assert num_looks > 50
    for last in range(1, num_looks + 1, 3):
        left = last
        with pytest.raises(TimeoutError):
            steps()
