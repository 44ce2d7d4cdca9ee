"""Rounds made in one call: what they claim, where they end, and when they are made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planners
from aggmaze import EventMDP, TabularMDP
from planners.bellman import SparseEngine, local_engine
from planners.certificate import Certifier
from planners.event_engine import make_engine
from planners.kernels.tables import outcomes_of
from planners.linear.rounds import band, is_small, solve_band
from planners.solvers.auto_policy_iteration import AutoPolicyIteration
from planners.solvers.base import Step
from planners.solvers.small_policy_iteration import SmallPolicyIteration
from tests.event_models import event_mdps
from tests.planners.reference import (
    Array,
    dense,
    random_moves,
    random_tabular,
    tabular_models,
    truth,
)
from tests.planners.solvers.test_multilevel_policy_iteration import queue


def first_step(
    model: TabularMDP, gamma: float, tol: float, V: Array
) -> tuple[Step, Array, SparseEngine]:
    engine = SparseEngine(model, gamma, 1)
    out = np.empty(model.num_states)
    before = V.copy()
    step = SmallPolicyIteration(engine, tol).step(V, out)
    np.testing.assert_array_equal(V, before)
    return step, out, engine


def renumbered(model: TabularMDP) -> TabularMDP:
    """Return the model with its states in another order, drawn at random."""
    order = np.random.default_rng(0).permutation(model.num_states)
    rows = (model.num_actions * order[:, np.newaxis] + np.arange(model.num_actions)).reshape(-1)
    matrix = model.transitions[rows].tocsc()[:, order].tocsr()
    return TabularMDP(matrix, model.costs[order]).validate()


@given(
    model=tabular_models(),
    gamma=st.sampled_from([0.0, 0.5, 0.9, 0.999]),
    tol=st.sampled_from([0.1, 1e-3, 1e-6, 1e-9]),
    seed=st.integers(0, 100),
)
def test_what_the_rounds_claim_holds(
    model: TabularMDP, gamma: float, tol: float, seed: int
) -> None:
    start = np.random.default_rng(seed).normal(size=model.num_states) * (seed % 3)
    step, out, engine = first_step(model, gamma, tol, start)
    sweep = step.sweep
    assert sweep is not None
    assert sweep.image is out
    assert step.num_updates == step.num_sweeps * model.num_states > 0
    claim = Certifier(engine).of_image(sweep)
    exact, error = truth(dense(model), gamma)
    slack = error + 1e-14 * float(np.abs(exact).max())
    assert (claim.low - slack <= exact - out).all()
    assert (exact - out <= claim.high + slack).all()


@given(
    model=tabular_models(),
    gamma=st.sampled_from([0.5, 0.9, 0.999]),
    tol=st.sampled_from([0.1, 1e-6, 1e-9]),
)
def test_results_are_within_their_bounds(model: TabularMDP, gamma: float, tol: float) -> None:
    result = planners.solve(model, gamma=gamma, tol=tol)
    exact, error = truth(dense(model), gamma)
    assert result.success
    assert np.abs(result.values - exact).max() <= result.bound + error
    assert result.bound <= tol * np.abs(result.values).max() or result.bound == 0.0


@pytest.mark.parametrize("terminals", [0, 3])
@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_one_call_comes_to_the_tolerance(terminals: int, tol: float) -> None:
    model = random_tabular(terminals, 300, 4, terminals=terminals)
    gamma = 0.99
    step, out, engine = first_step(model, gamma, tol, np.zeros(300))
    assert step.sweep is not None
    exact, _ = truth(dense(model), gamma)
    claim = Certifier(engine).of_image(step.sweep, True)
    values = np.where(model.terminal, 0.0, out + claim.midpoint)
    assert np.abs(values - exact).max() <= claim.half_width <= tol * np.abs(exact).max()
    # Full sweeps alone would take hundreds.
    result = planners.solve(model, gamma=gamma, tol=tol)
    assert (result.num_iterations, result.method) == (1, "modified_policy_iteration")
    assert result.num_sweeps == step.num_sweeps


def test_sweeps_in_place_say_so() -> None:
    """A line that leads to its end is solved by the second, which goes the right way."""
    P = np.zeros((6, 1, 6))
    P[np.arange(5), 0, np.arange(1, 6)] = P[5, 0, 5] = 1.0
    model = TabularMDP.from_matrices(P, costs=[[1.0]] * 5 + [[0.0]])
    step, out, _ = first_step(model, 0.5, 1e-6, np.zeros(6))
    assert step.sweep is not None
    assert step.sweep.in_place
    np.testing.assert_allclose(out, 2 * (1 - 0.5 ** np.arange(5, -1, -1)), rtol=1e-15)


def test_a_slow_model_is_handed_over() -> None:
    """A queue whose states are numbered at random: its rows are in no band."""
    model = renumbered(queue(1000))
    assert is_small(local_engine(model, 0.9999))
    result = planners.solve(model, gamma=0.9999, tol=1e-6)
    assert result.status == "converged"
    assert result.num_iterations > 1
    exact = planners.solve(model, gamma=0.9999, method="policy_iteration", tol=1e-9)
    assert np.abs(result.values - exact.values).max() <= result.bound + exact.bound


def test_a_queue_is_solved_by_elimination() -> None:
    """Sweeps need thousands where news takes so long to cross the model."""
    model = queue(1000)
    for gamma in (0.99, 0.9999):
        result = planners.solve(model, gamma=gamma, tol=1e-9)
        assert (result.num_iterations, result.method) == (1, "modified_policy_iteration")
        assert result.num_sweeps < 300
        exact = planners.solve(model, gamma=gamma, method="policy_iteration", tol=1e-9)
        assert np.abs(result.values - exact.values).max() <= result.bound + exact.bound


@given(
    seed=st.integers(0, 10**6),
    num_states=st.integers(2, 40),
    reach=st.integers(1, 6),
    terminal=st.booleans(),
)
def test_elimination_within_a_band(seed: int, num_states: int, reach: int, terminal: bool) -> None:
    rng = np.random.default_rng(seed)
    states = np.arange(num_states)
    P = rng.random((num_states, 2, num_states))
    P *= np.abs(states[:, np.newaxis] - states)[:, np.newaxis] <= reach
    P *= rng.random(P.shape) < 0.7
    P[states, :, states] += 1e-3
    P /= P.sum(axis=2, keepdims=True)
    costs = rng.normal(size=(num_states, 2))
    ends = np.full(num_states, False)
    if terminal:
        end = int(rng.integers(num_states))
        P[end], costs[end], ends[end] = 0.0, 0.0, True
        P[end, :, end] = 1.0
    model = TabularMDP.from_matrices(P, costs=costs, terminal=ends)
    policy = rng.integers(2, size=num_states).astype(np.int32)
    tables = outcomes_of(model)
    width, num_entries = band(tables, policy)
    rows = P[states, policy]
    there = np.nonzero(rows)
    assert width == np.abs(there[0] - there[1]).max()
    assert num_entries == len(there[0])
    right = rng.normal(size=num_states)
    found = right.copy()
    solve_band(tables, 0.99, policy, width, found)
    chain = np.where(ends[:, np.newaxis], 0.0, rows)
    expected = np.linalg.solve(np.eye(num_states) - 0.99 * chain, np.where(ends, 0.0, right))
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def test_an_accuracy_beyond_the_first_call_is_reached_by_what_follows() -> None:
    """An absolute tolerance, of which the first call knows nothing."""
    model = random_tabular(1, 100, 3, terminals=0)
    result = planners.solve(model, gamma=0.9, atol=1e-11)
    assert result.status == "converged"
    assert result.bound <= 1e-11
    assert result.num_iterations > 1


@pytest.mark.parametrize(
    "looks",
    [{"callback": lambda progress: None}, {"certify": "every"}, {"num_iterations": 100}],
    ids=str,
)
def test_rounds_that_are_looked_at_are_made_one_by_one(looks: dict[str, Any]) -> None:
    model = random_tabular(2, 100, 3, terminals=0)
    result = planners.solve(model, gamma=0.9, tol=1e-6, **looks)
    named = planners.solve(model, gamma=0.9, tol=1e-6, method=result.method)
    assert result.num_iterations == named.num_iterations > 1
    np.testing.assert_array_equal(result.values, named.values)


def test_only_small_tables_are_small() -> None:
    assert is_small(local_engine(random_tabular(0, 100, 3), 0.9))
    assert not is_small(local_engine(random_moves(0, 100, 3, p=0.5), 0.9))
    assert not is_small(local_engine(random_tabular(0, 8200, 1, successors=1), 0.9))


@settings(max_examples=5, deadline=None)
@given(event_mdps())
def test_models_without_a_table_are_not_small(model: EventMDP) -> None:
    assert not is_small(make_engine(model, 0.9))


def test_later_steps_are_those_of_the_method_for_larger_models() -> None:
    model = random_tabular(3, 100, 3, terminals=0)
    engine = SparseEngine(model, 0.9, 1)
    small, large = SmallPolicyIteration(engine, 0.1), AutoPolicyIteration(engine, 0.1)
    V, out, other = np.zeros(100), np.empty(100), np.empty(100)
    small.step(V, out)
    for _ in range(3):
        V = out.copy()
        assert small.step(V, out).num_sweeps == large.step(V, other).num_sweeps
        np.testing.assert_array_equal(out, other)
    assert (small.method, small.reason) == (large.method, large.reason)
