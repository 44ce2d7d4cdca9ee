"""The packed rows of a policy against dense tables."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aggmaze import TabularMDP
from planners.bellman import local_engine
from planners.kernels import threads
from planners.kernels.tables import MANY_ENTRIES
from planners.linear.policy_rows import LANES, PackedPolicy, add_scaled
from tests import strategies
from tests.planners.reference import Model, dense, random_tabular

SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(
    strategies.tabular_mdps(max_states=20) | strategies.move_mdps(max_states=20),
    st.booleans(),
    strategies.seeds,
)
def test_is_the_rows_of_the_policy(model: Model, solve_loops: bool, seed: int) -> None:
    gamma = 0.9
    rng = np.random.default_rng(seed)
    tables = dense(model)
    rows = PackedPolicy(local_engine(model, gamma), np.float64, solve_loops=solve_loops)
    num_states = model.num_states
    policy = np.where(tables.terminal, 0, tables.mask.argmax(axis=1)).astype(np.int32)
    for _ in range(3):
        rows.load(policy)
        P = gamma * tables.P[np.arange(num_states), policy]
        P[tables.terminal] = 0.0
        loops = np.diag(P).copy()
        if solve_loops:
            np.fill_diagonal(P, 0.0)
            P /= (1 - loops)[:, np.newaxis]
        start, vector, out = rows.vector(), rows.vector(), rows.vector()
        vector[:num_states] = rng.normal(size=num_states)
        change = rng.normal(size=num_states)
        rows.scaled(np.zeros(num_states), change, 2.0, start)
        expected = 2.0 * change / (1 - loops) if solve_loops else 2.0 * change
        np.testing.assert_allclose(start[:num_states], expected, rtol=1e-13)
        seen = rows.sweep(start, vector, out)
        expected = expected + P @ vector[:num_states]
        np.testing.assert_allclose(out[:num_states], expected, atol=1e-12)
        np.testing.assert_array_equal(out[num_states:], 0.0)
        difference = out[:num_states] - vector[:num_states]
        assert seen == (difference.min(), difference.max())
        for s in range(num_states):
            if not tables.terminal[s] and rng.random() < 0.5:
                policy[s] = rng.choice(np.flatnonzero(tables.mask[s]))


def loaded(
    model: Model, *, solve_loops: bool, seed: int, num_threads: int = 1
) -> tuple[PackedPolicy, np.ndarray, np.ndarray]:
    """Return packed rows of some policy, the start of a correction, and the rows as a matrix."""
    engine = local_engine(model, 0.9, num_threads)
    rows = PackedPolicy(engine, np.float64, solve_loops=solve_loops)
    tables, num_states = dense(model), model.num_states
    policy = np.where(tables.terminal, 0, tables.mask.argmax(axis=1)).astype(np.int32)
    rows.load(policy)
    P = 0.9 * tables.P[np.arange(num_states), policy]
    P[tables.terminal] = 0.0
    if solve_loops:
        loops = np.diag(P).copy()
        np.fill_diagonal(P, 0.0)
        P /= (1 - loops)[:, np.newaxis]
    start = rows.vector()
    start[:num_states] = np.random.default_rng(seed).normal(size=num_states)
    return rows, start, P


@SLOW
@given(
    strategies.tabular_mdps(max_states=20) | strategies.move_mdps(max_states=20),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 1e-3, 0.5, 10.0]),
    st.integers(1, 12),
    strategies.seeds,
)
def test_sweeps_are_one_after_another(
    model: Model, solve_loops: bool, spans: bool, goal: float, most: int, seed: int
) -> None:
    rows, start, _ = loaded(model, solve_loops=solve_loops, seed=seed)
    vector, spare = start.copy(), rows.vector()
    change, (new, old), count = rows.sweeps(
        start, (vector.copy(), rows.vector()), most, goal, spans=spans
    )
    done, expected = 0, None
    while done < most and (expected is None or (expected.span if spans else expected.size) > goal):
        expected = rows.sweep(start, vector, spare)
        vector, spare = spare, vector
        done += 1
    assert (change, count) == (expected, done)
    np.testing.assert_array_equal(new, vector)
    np.testing.assert_array_equal(old, spare)


def test_sweeps_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_tabular(3, 203, 3)
    one, start, _ = loaded(model, solve_loops=False, seed=0)
    two, _, _ = loaded(model, solve_loops=False, seed=0, num_threads=2)
    expected = one.sweeps(start, (start.copy(), one.vector()), 7, 0.0, spans=True)
    monkeypatch.setattr(threads, "LEAST_WORK", 1)
    found = two.sweeps(start, (start.copy(), two.vector()), 7, 0.0, spans=True)
    assert found[0] == expected[0]
    assert found[2] == expected[2] == 7
    np.testing.assert_array_equal(found[1][0], expected[1][0])


@SLOW
@given(
    strategies.tabular_mdps(max_states=20) | strategies.move_mdps(max_states=20),
    st.booleans(),
    st.booleans(),
    strategies.seeds,
)
def test_solves(model: Model, solve_loops: bool, spans: bool, seed: int) -> None:
    rows, start, P = loaded(model, solve_loops=solve_loops, seed=seed)
    num_states = model.num_states
    out = rows.vector()
    assert rows.solve(start, out, spans=spans) >= 0
    expected = np.linalg.solve(np.eye(num_states) - P, start[:num_states])
    if spans:
        expected -= (expected.min() + expected.max()) / 2
    np.testing.assert_allclose(out[:num_states], expected, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(out[num_states:], 0.0)


def test_no_solution_changes_nothing() -> None:
    # Rows that sum to more than 1 by what a model may be off, at a discount nearer to 1 than that.
    model = TabularMDP(sp.csr_array([[1.0 + 9e-10]]), [[1.0]], terminal=[]).validate()
    rows = PackedPolicy(local_engine(model, 1 - 1e-12), np.float64, solve_loops=False)
    rows.load(np.zeros(1, dtype=np.int32))
    out = rows.vector()
    out[0] = 7.0
    rows.solve(np.ones_like(out), out, spans=False)
    assert out[0] == 7.0


def test_adds_what_is_scaled() -> None:
    V = np.array([1.0, 2.0, 3.0])
    vector = np.array([0.5, -1.5, 0.25], dtype=np.float32)
    assert add_scaled(vector, 4.0, 1.0, V) == (-5.0, 3.0)
    np.testing.assert_array_equal(V, [4.0, -3.0, 5.0])
    change = add_scaled(np.array([np.nan, 1.0, 2.0]), 1.0, 0.0, V)
    assert np.isnan(change).all()


def test_rows_of_a_large_table() -> None:
    """Rows are then brought near beforehand; their sums are the same."""
    num_states, length = 70_001, 16
    rng = np.random.default_rng(0)
    columns = rng.integers(num_states, size=(num_states, length))
    matrix = sp.csr_array(
        (
            np.full(num_states * length, 1.0 / length),
            columns.reshape(-1),
            np.arange(num_states + 1) * length,
        ),
        shape=(num_states, num_states),
    )
    model = TabularMDP(matrix, np.ones((num_states, 1)), terminal=[])
    rows = PackedPolicy(local_engine(model, 0.5), np.float64, solve_loops=False)
    rows.load(np.zeros(num_states, dtype=np.int32))
    assert rows.num_entries >= MANY_ENTRIES
    start, vector, out = rows.vector(), rows.vector(), rows.vector()
    vector[:num_states] = rng.normal(size=num_states)
    rows.sweep(start, vector, out)
    expected = 0.5 * (matrix @ vector[:num_states])
    np.testing.assert_allclose(out[:num_states], expected, rtol=0, atol=1e-14)


def test_rows_that_grow() -> None:
    # Action 0 leads to one state, action 1 to all of them: the rows need more room.
    S = 3 * LANES + 1
    P = np.zeros((S, 2, S))
    P[:, 0, 0] = 1.0
    P[:, 1] = 1.0 / S
    model = TabularMDP.from_matrices(P, costs=np.ones((S, 2)))
    rows = PackedPolicy(local_engine(model, 0.5), np.float64, solve_loops=False)
    start, vector, out = rows.vector(), rows.vector(), rows.vector()
    vector[:S] = np.arange(S)
    for policy in (np.zeros(S), np.arange(S) % 2, np.ones(S), np.zeros(S)):
        rows.load(policy.astype(np.int32))
        rows.sweep(start, vector, out)
        np.testing.assert_allclose(out[:S], np.where(policy == 1, 0.25 * (S - 1), 0.0))
