"""Sweeps that skip rows: exact, whatever V has been through, and honest about their actions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from aggmaze import TabularMDP
from planners.bellman import SparseEngine, local_engine
from planners.kernels.tables import MANY_ENTRIES
from planners.sweeps.action_elimination import LazySweeps
from tests import strategies
from tests.planners.reference import action_values, backup, dense

# How V changes: everywhere alike, at random, in one state, hardly, and not at all.
CHANGES = st.sampled_from(["shift", "noise", "one state", "rounding", "nothing"])


def sparse_engine(model: TabularMDP, gamma: float, num_threads: int = 1) -> SparseEngine:
    engine = local_engine(model, gamma, num_threads)
    assert isinstance(engine, SparseEngine)
    return engine


def changed(V: np.ndarray, change: str, size: float, rng: np.random.Generator) -> np.ndarray:
    change_of_all = {
        "shift": np.full(len(V), size * rng.normal()),
        "noise": size * rng.normal(size=len(V)),
        "one state": np.where(np.arange(len(V)) == rng.integers(len(V)), size, 0.0),
        "rounding": np.spacing(V) * rng.integers(-2, 3, size=len(V)),
        "nothing": np.zeros(len(V)),
    }
    return V + change_of_all[change]


@settings(max_examples=150)
@given(
    strategies.tabular_mdps(max_states=12),
    st.sampled_from([0.0, 0.5, 0.9, 0.999]),
    st.lists(
        st.lists(st.tuples(CHANGES, st.sampled_from([1e-6, 1e-2, 1.0, 1e3])), max_size=3),
        min_size=2,
        max_size=8,
    ),
    strategies.seeds,
)
def test_values_are_those_of_all_rows(
    model: TabularMDP, gamma: float, rounds: list[list[tuple[str, float]]], seed: int
) -> None:
    """Several changes may come between two sweeps; all of them add up."""
    rng = np.random.default_rng(seed)
    tables, engine = dense(model), sparse_engine(model, gamma)
    lazy = LazySweeps(engine)
    V = np.zeros(model.num_states)
    out, plain = np.empty_like(V), np.empty_like(V)
    actions = np.zeros(model.num_states, dtype=np.int32)
    states = np.flatnonzero(~tables.terminal)
    for changes in rounds:
        max_value = float(np.abs(V).max())
        sweep = lazy.sweep(V, out, actions)
        # Bit for bit what reads every row, and T by the tables within rounding.
        assert sweep == engine.sweep(V, plain)
        assert out.tobytes() == plain.tobytes()
        rounding = 1e-13 * (1.0 + max_value + engine.max_cost)
        np.testing.assert_allclose(out, backup(tables, V, gamma), rtol=0, atol=rounding)
        Q = action_values(tables, V, gamma)
        assert (Q[states, actions[states]] <= Q[states].min(axis=1) + rounding).all()
        assert (sweep.low, sweep.high) == (out.min(), out.max())
        for change, size in changes:
            new = changed(V, change, size, rng)
            steps = new - V
            largest = max(float(np.abs(V).max()), float(np.abs(new).max()))
            lazy.changed(float(steps.min()), float(steps.max()), largest)
            V = new


@settings(max_examples=30)
@given(strategies.tabular_mdps(max_states=12), strategies.seeds)
def test_rows_of_the_only_action_are_always_read(model: TabularMDP, seed: int) -> None:
    """However V changes without a word: a choice that nobody has cannot be out of date."""
    tables = dense(model)
    alone = (tables.mask.sum(axis=1) == 1) | tables.terminal
    lazy = LazySweeps(sparse_engine(model, 0.9))
    rng = np.random.default_rng(seed)
    V = np.zeros(model.num_states)
    out, actions = np.empty_like(V), np.zeros(model.num_states, dtype=np.int32)
    for _ in range(3):
        lazy.sweep(V, out, actions)
        expected = backup(tables, V, 0.9)
        np.testing.assert_allclose(out[alone], expected[alone], rtol=0, atol=1e-9)
        V = 1e3 * rng.normal(size=len(V))


def test_ties_are_looked_at_anew() -> None:
    """No margin, no skipping: the least change decides between equal actions."""
    P = np.zeros((3, 2, 3))
    P[:, 0, 1] = P[:, 1, 2] = 1.0
    model = TabularMDP.from_matrices(P, costs=np.zeros((3, 2)), terminal=np.zeros(3, dtype=bool))
    lazy = LazySweeps(sparse_engine(model, 0.5))
    V, out, actions = np.ones(3), np.empty(3), np.zeros(3, dtype=np.int32)
    lazy.sweep(V, out, actions)
    assert actions.tolist() == [0, 0, 0]
    tiny = float(np.spacing(1.0))
    lazy.changed(0.0, tiny, 1.0 + tiny)
    V[1] += tiny
    lazy.sweep(V, out, actions)
    assert actions.tolist() == [1, 1, 1]
    assert out.tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize("num_steps", [1, 3, 1000])
@pytest.mark.parametrize("gamma", [0.5, 0.999])
def test_a_margin_lasts_until_it_is_used_up(gamma: float, num_steps: int) -> None:
    """In the worst case, where all of the change is of what the second best action leads to."""
    P = np.zeros((2, 2, 2))
    P[:, 0, 0] = P[:, 1, 1] = 1.0
    costs = np.array([[0.0, 5.0], [0.0, 5.0]])
    model = TabularMDP.from_matrices(P, costs=costs, terminal=np.zeros(2, dtype=bool))
    lazy = LazySweeps(sparse_engine(model, gamma))
    V, out, actions = np.zeros(2), np.empty(2), np.zeros(2, dtype=np.int32)
    lazy.sweep(V, out, actions)
    assert actions.tolist() == [0, 0]
    largest = 5.001 / gamma
    for _ in range(num_steps):
        V[1] -= largest / num_steps
        lazy.changed(-largest / num_steps, 0.0, largest)
    lazy.sweep(V, out, actions)
    assert actions.tolist() == [1, 1]
    np.testing.assert_allclose(out, -0.001, rtol=1e-6)


def test_a_table_too_large_for_the_caches() -> None:
    """Its rows are brought near beforehand, all of them or the best ones; values are the same."""
    num_states, num_actions, length = 60_001, 3, 6
    rng = np.random.default_rng(0)
    num_rows = num_states * num_actions
    matrix = sp.csr_array(
        (
            rng.dirichlet(np.ones(length), num_rows).reshape(-1),
            rng.integers(num_states, size=num_rows * length),
            np.arange(num_rows + 1) * length,
        ),
        shape=(num_rows, num_states),
    )
    costs = rng.random((num_states, num_actions))
    model = TabularMDP(matrix, costs, terminal=[])
    engine = sparse_engine(model, 0.9)
    assert engine.work >= MANY_ENTRIES
    lazy = LazySweeps(engine)
    V = rng.random(num_states)
    out, plain = np.empty_like(V), np.empty_like(V)
    actions, best = (np.zeros(num_states, dtype=np.int32) for _ in range(2))
    for size in (0.0, 0.1, 1e-3, 1e-9):
        change = size * rng.random(num_states)
        lazy.changed(float(change.min()), float(change.max()), 2.0)
        V += change
        assert lazy.sweep(V, out, actions) == engine.sweep(V, plain, best)
        np.testing.assert_array_equal(out, plain)
        np.testing.assert_array_equal(actions, best)
        Q = costs + 0.9 * (matrix @ V).reshape(costs.shape)
        np.testing.assert_allclose(out, Q.min(axis=1), rtol=0, atol=1e-14)
        np.testing.assert_array_equal(actions, Q.argmin(axis=1))
