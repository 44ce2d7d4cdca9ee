"""GMRES against dense solves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planners.linear.gmres import GMRES


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 2])
def test_solves(dtype: type, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planners.kernels.threads.LEAST_WORK", 1)
    rng = np.random.default_rng(0)
    A = 0.9 * rng.dirichlet(np.ones(30), 30)
    start = rng.normal(size=30)
    gmres = GMRES(30, 30, dtype, num_constant=0, num_threads=threads)
    x = np.zeros(30, dtype=dtype)
    applied = gmres.solve(
        lambda v, out: np.matmul(A.astype(dtype), v, out=out), x, start.astype(dtype), 1e-12
    )
    assert 0 < applied <= 30
    tolerance = 1e-4 if dtype is np.float32 else 1e-9
    np.testing.assert_allclose(x, np.linalg.solve(np.eye(30) - A, start), atol=tolerance)


def test_solves_modulo_constants() -> None:
    rng = np.random.default_rng(1)
    A = 0.999999 * rng.dirichlet(np.ones(30), 30)
    start = rng.normal(size=30)
    gmres = GMRES(30, 32, np.float64, num_constant=30, num_threads=1)
    x, residual = np.zeros(32), np.zeros(32)
    residual[:30] = start

    def apply(v: np.ndarray, out: np.ndarray) -> None:
        out[:30] = A @ v[:30]
        out[30:] = 0.0

    gmres.solve(apply, x, residual, 1e-12)
    left = start + A @ x[:30] - x[:30]
    assert np.ptp(left) < 1e-9 * np.ptp(start)
    assert abs(x[:30].mean()) < 1e-12


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf])
def test_leaves_what_it_cannot_solve(value: float) -> None:
    gmres = GMRES(5, 4, np.float64, num_constant=0, num_threads=1)
    x = np.ones(4)
    assert gmres.solve(lambda v, out: None, x, np.full(4, value), 0.1) == 0
    np.testing.assert_array_equal(x, 1.0)
