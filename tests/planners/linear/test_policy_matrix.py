"""The matrix of a policy against dense tables and fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggmaze import MoveMDP, TabularMDP
from planners.bellman import local_engine
from planners.linear.policy_matrix import PolicyMatrix, multiply, policy_matrix
from tests import strategies
from tests.planners.reference import (
    Array,
    Model,
    dense,
    gammas,
    models,
    random_moves,
    random_tabular,
)


def policy_of(model: Model, seed: int) -> Array:
    """Return one available action a state."""
    weights = np.random.default_rng(seed).random(model.action_mask.shape) * model.action_mask
    return weights.argmax(axis=1).astype(np.int32)


def matrix_of(model: Model, gamma: float, policy: Array) -> PolicyMatrix:
    return policy_matrix(local_engine(model, gamma), policy)


def expanded(matrix: PolicyMatrix) -> Array:
    """Return A."""
    A = np.diag(matrix.diagonal)
    rows = np.repeat(np.arange(len(A)), np.diff(matrix.starts))
    np.subtract.at(A, (rows, matrix.columns), matrix.entries)
    return A


def check(model: Model, gamma: float, seed: int) -> None:
    policy = policy_of(model, seed)
    matrix = matrix_of(model, gamma, policy)
    tables = dense(model)
    P = tables.P[np.arange(tables.num_states), policy]
    P[:, tables.terminal] = 0.0
    expected = np.eye(len(P)) - gamma * P
    np.testing.assert_allclose(expanded(matrix), expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(matrix.slack, expected.sum(axis=1), rtol=0, atol=1e-14)
    rows = np.repeat(np.arange(len(P)), np.diff(matrix.starts))
    assert (matrix.columns != rows).all()
    assert (matrix.entries > 0).all()
    assert not tables.terminal[matrix.columns].any()
    assert not tables.terminal[rows].any()
    np.testing.assert_array_equal(matrix.slack[tables.terminal], 1.0)
    np.testing.assert_array_equal(matrix.diagonal[tables.terminal], 1.0)
    vector = np.random.default_rng(seed).normal(size=len(P))
    image = np.empty_like(vector)
    multiply(matrix, vector, image)
    np.testing.assert_allclose(image, expected @ vector, rtol=0, atol=1e-13)


@given(models, gammas, strategies.seeds)
def test_is_that_of_the_tables(model: Model, gamma: float, seed: int) -> None:
    check(model, gamma, seed)


@pytest.mark.parametrize("gamma", [0.0, 0.9, 0.999])
def test_larger_models(gamma: float) -> None:
    for seed, p in enumerate((1.0, 0.9, 0.1)):
        check(random_moves(seed, 60, 4, p=p, terminals=2), gamma, seed)
        check(random_tabular(seed, 60, 3, terminals=seed), gamma, seed)


@given(models, st.sampled_from([1 - 1e-9, 1 - 1e-15, 1 - 2.0**-53]), strategies.seeds)
def test_the_slack_has_all_its_digits_next_to_1(model: Model, gamma: float, seed: int) -> None:
    policy = policy_of(model, seed)
    tables = dense(model)
    found = matrix_of(model, gamma, policy).slack
    for s in np.flatnonzero(~tables.terminal):
        ends = tables.P[s, policy[s], tables.terminal]
        exact = 1 - Fraction(gamma) + Fraction(gamma) * sum(map(Fraction, ends.tolist()))
        assert abs(Fraction(float(found[s])) - exact) <= exact * Fraction(8, 2**53)


def test_moves_to_one_state_add_up() -> None:
    model = MoveMDP(np.array([[1, 1, 1], [0, 1, 0]]), np.ones((2, 3)), p=0.5)
    matrix = matrix_of(model, 0.9, np.zeros(2, np.int32))
    np.testing.assert_allclose(expanded(matrix), [[1.0, -0.9], [-0.675, 0.775]], rtol=1e-15)


def test_nothing_is_left_of_what_underflows() -> None:
    P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    model = TabularMDP.from_matrices(P, costs=np.ones((2, 1)))
    policy = np.zeros(2, np.int32)
    assert len(matrix_of(model, 0.0, policy).entries) == 0
    np.testing.assert_array_equal(matrix_of(model, 0.0, policy).diagonal, 1.0)
    P = np.array([[[1.0, 5e-324]], [[5e-324, 1.0]]])
    tiny = TabularMDP.from_matrices(P, costs=np.ones((2, 1)))
    assert len(matrix_of(tiny, 0.9, policy).entries) == 2
    assert len(matrix_of(tiny, 0.4, policy).entries) == 0
