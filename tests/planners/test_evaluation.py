"""The exact value of a policy on models of some size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import planners
from aggmaze import MoveMDP, TabularMDP
from planners.linear.chain import ChainEquations
from planners.linear.elimination import MOST_STATES
from planners.policies import policy_model
from tests.planners.families import MAZES, by_lu, chain_of, drawn, maze
from tests.planners.reference import Array, Exact, Model, models


@pytest.mark.parametrize("p", [1.0, 0.95, 0.6, 0.2])
@pytest.mark.parametrize("name", MAZES)
@pytest.mark.parametrize("gamma", [0.9, 0.999])
def test_mazes_against_a_sparse_solve(name: str, p: float, gamma: float) -> None:
    model = maze(name, 40, p)
    best = planners.solve(model, gamma=gamma, tol=1e-3).policy
    for policy in (best, *drawn(model, 0)):
        V = by_lu(policy_model(model, policy), gamma)
        found = planners.evaluate(model, policy, gamma)
        np.testing.assert_allclose(found, V, rtol=0, atol=1e-14 / (1 - gamma) * np.abs(V).max())


@pytest.mark.parametrize("gamma", [0.5, 0.99, 0.9999])
def test_one_ring_in_closed_form(gamma: float) -> None:
    size = 5000
    following = np.roll(np.random.default_rng(0).permutation(size), 1)
    ring = np.empty(size, dtype=np.int64)
    ring[following] = np.roll(following, -1)
    costs = np.zeros(size)
    costs[following[0]] = 1.0
    steps = (-np.arange(size)) % size  # from each to following[0], which alone costs something
    expected = np.empty(size)
    expected[following] = gamma**steps / -np.expm1(size * np.log(gamma))
    chain = chain_of(ring, costs)
    np.testing.assert_allclose(
        planners.evaluate(chain, np.zeros(size, dtype=int), gamma), expected, rtol=0, atol=1e-13
    )


@pytest.mark.parametrize("slip", [0.0, 0.02])
@pytest.mark.parametrize("gamma", [0.95, 0.9999])
def test_many_cycles_with_tails(slip: float, gamma: float) -> None:
    # A random map of 3,000 states, of which each forgets where it goes with a small probability.
    rng = np.random.default_rng(2)
    size = 3000
    chain = chain_of(rng.integers(size, size=size), rng.normal(size=size))
    if slip:
        elsewhere = chain_of(rng.integers(size, size=size), np.zeros(size)).transitions
        mixed = (1 - slip) * chain.transitions + slip * elsewhere
        chain = TabularMDP(mixed, chain.costs, terminal=chain.terminal)
    V = by_lu(chain, gamma)
    found = planners.evaluate(chain, np.zeros(size, dtype=int), gamma)
    np.testing.assert_allclose(found, V, rtol=0, atol=1e-14 / (1 - gamma) * np.abs(V).max())


def test_dense_rows() -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(300, 0.05), size=(300, 1))
    model = TabularMDP.from_matrices(P, costs=rng.normal(size=(300, 1)))
    V = np.linalg.solve(np.eye(300) - 0.99 * P[:, 0], model.costs[:, 0])
    found = planners.evaluate(model, np.zeros(300, dtype=int), 0.99)
    np.testing.assert_allclose(found, V, rtol=0, atol=1e-12 * np.abs(V).max())


@pytest.mark.parametrize("scale", [1e-250, 1e-20, 1e20, 1e250])
def test_costs_of_any_size(scale: float) -> None:
    model = maze("smooth", 12, 0.9)
    policy, _ = drawn(model, 1)
    V = planners.evaluate(model, policy, 0.95)
    found = planners.evaluate(model.scaled(scale), policy, 0.95)
    np.testing.assert_allclose(found / scale, V, rtol=0, atol=1e-13 * np.abs(V).max())


def test_free_chains_are_worth_nothing() -> None:
    chain = chain_of(np.array([1, 2, 0]), np.zeros(3))
    assert planners.evaluate(chain, [0, 0, 0], 0.9).tolist() == [0.0] * 3
    ends = TabularMDP(sp.eye_array(2, format="csr"), np.zeros((2, 1)))
    assert ends.terminal.all()
    assert planners.evaluate(ends, [0, 0], 0.9).tolist() == [0.0] * 2


@pytest.mark.parametrize("wrong", [np.nan, 0.0, 1e300])
def test_a_solver_that_fails_is_not_believed(wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    model = maze("smooth", 12, 0.7)
    policy, weights = drawn(model, 3)
    expected = [by_lu(policy_model(model, chosen), 0.9) for chosen in (policy, weights)]

    def fail(self: ChainEquations, right: Array, *args: Any) -> Array:
        return np.full_like(right, wrong)

    monkeypatch.setattr(ChainEquations, "_bicgstab", fail)
    for chosen, V in zip((policy, weights), expected, strict=True):
        np.testing.assert_allclose(planners.evaluate(model, chosen, 0.9), V, rtol=0, atol=1e-12)


# ---------------------------------------------------------------------------------------------
# Discounts next to 1.

NEXT_TO_ONE = [0.999999, 1 - 1e-9, 1 - 1e-10, 1 - 1e-11, 1 - 3e-15]


def grid_world(size: int) -> tuple[TabularMDP, MoveMDP]:
    """Sutton and Barto's Example 4.1: two corners end it, each move costs 1, walls hold back."""
    x, y = np.divmod(np.arange(size**2), size)
    moves = [(0, 1), (0, -1), (1, 0), (-1, 0)]
    successors = np.stack(
        [(x + i).clip(0, size - 1) * size + (y + j).clip(0, size - 1) for i, j in moves], axis=1
    )
    costs = np.ones((size**2, 4))
    costs[[0, -1]] = np.inf
    model = MoveMDP(successors, costs)
    return model.to_tabular(), model


@pytest.mark.parametrize("gamma", NEXT_TO_ONE)
def test_random_walks_on_the_grid_world(gamma: float) -> None:
    weights = np.full((16, 4), 0.25)
    for model in grid_world(4):
        V = Exact(model, gamma).value_and_sizes(weights)[0]
        found = planners.evaluate(model, weights, gamma)
        np.testing.assert_allclose(found, np.array(V, dtype=np.float64), rtol=1e-14, atol=0)
        # The book's, of total costs.
        undiscounted = [0, 14, 20, 22, 14, 18, 20, 20, 20, 20, 18, 14, 22, 20, 14, 0]
        np.testing.assert_allclose(found, undiscounted, rtol=1e-4 if gamma < 1 - 1e-8 else 1e-7)


@pytest.mark.parametrize("gamma", NEXT_TO_ONE)
def test_rows_that_miss_1_by_rounding(gamma: float) -> None:
    # Each step costs 1 for ever: 1/(1 - gamma), however the next state is drawn.
    forever = 1 / (1 - gamma)
    rng = np.random.default_rng(0)
    thirds = TabularMDP.from_matrices(np.full((3, 1, 3), 1 / 3), costs=np.ones((3, 1)))
    drawn = TabularMDP.from_matrices(rng.dirichlet(np.ones(7), (7, 5)), costs=np.ones((7, 5)))
    slips = [MoveMDP(rng.integers(6, size=(6, 4)), np.ones((6, 4)), p=p) for p in (0.9, 1 / 3)]
    for model in (thirds, drawn, *slips):
        size, actions = model.num_states, model.num_actions
        for policy in (
            np.zeros(size, dtype=int),
            np.full((size, actions), 1 / actions),
            rng.dirichlet(np.ones(actions), size),
        ):
            found = planners.evaluate(model, policy, gamma)
            np.testing.assert_allclose(found, forever, rtol=1e-14)


def test_rows_that_miss_1_by_more_are_taken_as_they_are() -> None:
    for miss in (1e-10, -1e-10):
        model = TabularMDP.from_matrices([[[1 - miss]]], costs=[[1.0]])
        found = planners.evaluate(model, [0], 1 - 1e-9)
        V = Exact(model, 1 - 1e-9).value([0])
        np.testing.assert_allclose(found, float(V[0]), rtol=1e-14)


@pytest.mark.parametrize("gamma", NEXT_TO_ONE)
def test_random_walks_on_a_grid_too_large_for_elimination(gamma: float) -> None:
    size = 34
    model, _ = grid_world(size)
    assert model.num_states > MOST_STATES
    weights = np.full((size**2, 4), 0.25)
    V = by_lu(policy_model(model, weights), gamma)
    np.testing.assert_allclose(planners.evaluate(model, weights, gamma), V, rtol=1e-11)


# ---------------------------------------------------------------------------------------------
# Rows of a policy.


@given(model=models, seed=st.integers(0, 1000))
def test_rows_of_a_policy_are_mixed_rows(model: Model, seed: int) -> None:
    if isinstance(model, TabularMDP):
        return
    size, moves = model.num_states, model.num_actions
    weights = np.random.default_rng(seed).dirichlet(np.ones(moves), size=size)
    lo = seed % size
    hi = size - (seed // size) % (size - lo)
    rows, mixed = model.rows(lo, hi), model.policy_rows(lo, hi, weights[lo:hi])
    P = rows.transitions.toarray().reshape(hi - lo, moves, size)
    expected = np.einsum("sa,sat->st", weights[lo:hi], P)
    np.testing.assert_allclose(mixed.transitions.toarray(), expected, rtol=0, atol=1e-15)
    costs = np.einsum("sa,sa->s", weights[lo:hi], rows.costs)
    atol = 1e-14 * np.abs(rows.costs).max()
    np.testing.assert_allclose(mixed.costs[:, 0], costs, rtol=0, atol=atol)
    assert mixed.action_mask.all()
    means = np.add.reduceat(
        mixed.transitions.data * mixed.outcome_costs, mixed.transitions.indptr[:-1]
    )
    np.testing.assert_allclose(means, mixed.costs[:, 0], rtol=0, atol=atol)


def test_rows_of_a_policy_want_its_weights() -> None:
    model = maze("smooth", 4, 0.9)
    with pytest.raises(ValueError, match=r"weights must have shape \(3, 4\), got \(2, 4\)"):
        model.policy_rows(0, 3, np.ones((2, 4)))
    with pytest.raises(ValueError, match="rows"):
        model.policy_rows(3, 3, np.ones((0, 4)))


@pytest.mark.parametrize("p", [1.0, 0.9])
def test_both_layouts_have_the_same_chain(p: float) -> None:
    model = maze("uniform", 6, p)
    for policy in drawn(model, 0):
        one, other = policy_model(model, policy), policy_model(model.to_tabular(), policy)
        np.testing.assert_allclose(
            one.transitions.toarray(), other.transitions.toarray(), rtol=0, atol=1e-15
        )
        np.testing.assert_allclose(one.costs, other.costs, rtol=0, atol=1e-14)
