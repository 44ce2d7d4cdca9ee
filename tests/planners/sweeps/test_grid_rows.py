"""Sweeps along the rows of a grid: regular rows, V* as a fixed point, and a contraction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planners.bellman import local_engine
from planners.sweeps.grid_rows import RowSweeps
from tests import strategies
from tests.planners.reference import dense, random_grid, truth


@pytest.mark.parametrize("p", [1.0, 0.9, 0.6, 0.25])
def test_plain_row_sweeps_are_gauss_seidel(p: float) -> None:
    """Unrelaxed sweeps leave V* as it is, contract, and with relaxation leave V* as it is too."""
    gamma, shape = 0.95, (9, 8)
    for seed in range(4):
        model = random_grid(seed, shape, p)
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


@settings(max_examples=100)
@given(
    strategies.shapes(min_dims=2, max_dims=2, max_states=80),
    st.sampled_from([1.0, 0.9, 0.25, 0.1]),
    st.sampled_from([0.0, 0.02, 0.3]),
    st.integers(0, 20),
    st.sampled_from([0.0, 0.5, 0.99]),
    strategies.seeds,
)
def test_any_grid(
    shape: tuple[int, int], p: float, blocked: float, retraced: int, gamma: float, seed: int
) -> None:
    model = random_grid(seed, shape, p, blocked=blocked)
    rows = RowSweeps(local_engine(model, gamma), shape, retraced)
    V = truth(dense(model), gamma)[0].astype(np.float64)
    rounding = 1e-13 / (1 - gamma) * max(1.0, np.abs(V).max())
    values = V + np.random.default_rng(seed).normal(size=len(V))
    values[model.terminal] = 0.0
    num_backups = 2 * (2 * min(retraced, shape[0]) + 1)
    for _ in range(7):  # bands of all sizes, inwards and outwards
        before = np.abs(values - V).max()
        assert rows.sweep(values, relaxed=False) == num_backups
        assert np.abs(values - V).max() <= gamma * before + rounding
        same = V.copy()
        rows.sweep(same)
        assert np.abs(same - V).max() <= rounding


@settings(max_examples=100)
@given(
    strategies.shapes(min_dims=2, max_dims=2, max_states=80),
    st.sampled_from([0.0, 0.02, 0.1]),
    strategies.seeds,
)
def test_rows_of_inner_cells_with_four_moves_are_regular(
    shape: tuple[int, int], blocked: float, seed: int
) -> None:
    model = random_grid(seed, shape, 0.9, blocked=blocked)
    found = RowSweeps(local_engine(model, 0.9), shape, 0).share
    if min(shape) <= 2:
        assert found == 0.0
        return
    moves = np.isfinite(model.move_costs).all(axis=1).reshape(shape)
    assert found == moves[1:-1, 1:-1].all(axis=1).mean()
