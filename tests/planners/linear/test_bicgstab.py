"""BiCGSTAB against dense solves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planners.linear.bicgstab import bicgstab
from tests.planners.reference import Array

Apply = Callable[[Array, Array, Array], None]


def system(seed: int, gamma: float, size: int = 30) -> tuple[Array, Array]:
    """A matrix I - gamma P, rows scaled at random, which leaves it an M-matrix; a right-hand side.

    Its inverse is at most 2 / (1 - gamma) in the sup norm.
    """
    rng = np.random.default_rng(seed)
    A = np.eye(size) - gamma * rng.dirichlet(np.full(size, 0.2), size)
    return rng.uniform(0.5, 2.0, (size, 1)) * A, rng.normal(size=size)


def by(A: Array, inverse: Array | None = None) -> Apply:
    """Apply A, preconditioned by the inverse of a matrix."""

    def apply(direction: Array, smoothed: Array, image: Array) -> None:
        smoothed[:] = direction if inverse is None else inverse @ direction
        image[:] = A @ smoothed

    return apply


def counted(apply: Apply) -> tuple[Apply, list[int]]:
    """Note each call."""
    calls: list[int] = []

    def count(*vectors: Array) -> None:
        calls.append(len(calls))
        apply(*vectors)

    return count, calls


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1.0, 1e200, 1e300])
@pytest.mark.parametrize("preconditioned", [False, True])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9, 0.99])
def test_solves(gamma: float, preconditioned: bool, scale: float) -> None:
    for seed in range(10):
        A, right = system(seed, gamma)
        apply = by(A, np.diag(1 / np.diag(A)) if preconditioned else None)
        found = bicgstab(apply, scale * right, reduction=1e-12, most_steps=200)
        assert found.reduction <= 1e-12
        expected = np.linalg.solve(A, right)
        size = np.abs(expected).max()
        np.testing.assert_allclose(found.values / scale, expected, rtol=0, atol=1e-9 * size)


@given(
    seed=st.integers(0, 10_000),
    gamma=st.floats(0, 0.9999),
    size=st.integers(1, 20),
    most_steps=st.integers(1, 40),
)
def test_says_how_far_it_came(seed: int, gamma: float, size: int, most_steps: int) -> None:
    A, right = system(seed, gamma, size)
    found = bicgstab(by(A), right, reduction=1e-10, most_steps=most_steps)
    assert 1 <= found.num_steps <= most_steps
    if found.num_steps < most_steps:
        # It is there, has broken down, or has lost its way.
        assert found.reduction <= 1e-10 or found.reduction > 1e-3
    left = np.linalg.norm(right - A @ found.values) / np.linalg.norm(right)
    assert left == pytest.approx(found.reduction, rel=1e-6, abs=1e-8 * max(1.0, found.reduction))


@given(seed=st.integers(0, 1000), exponent=st.sampled_from([-1000, -500, 500, 1000]))
def test_powers_of_two_change_no_digit(seed: int, exponent: int) -> None:
    A, right = system(seed, 0.9)
    limits: dict[str, Any] = {"reduction": 1e-10, "most_steps": 50}
    unit = math.ldexp(1.0, exponent)
    plain = bicgstab(by(A), right, least_norm=1e-5, max_value=1e3, **limits)
    scaled = bicgstab(by(A), unit * right, least_norm=unit * 1e-5, max_value=unit * 1e3, **limits)
    np.testing.assert_array_equal(scaled.values, unit * plain.values)
    assert scaled[1:] == plain[1:]


def test_a_preconditioner_that_is_the_matrix_takes_one_step() -> None:
    A, right = system(0, 0.99)
    inverse = np.linalg.inv(A)
    found = bicgstab(by(A, inverse), right, reduction=1e-10, most_steps=50)
    assert found.num_steps == 1
    np.testing.assert_allclose(found.values, inverse @ right, rtol=1e-10)


@pytest.mark.parametrize("most_steps", [1, 2, 5])
def test_ends_after_the_steps_it_may_make(most_steps: int) -> None:
    A, right = system(1, 0.99)
    apply, calls = counted(by(A))
    found = bicgstab(apply, right, reduction=0.0, most_steps=most_steps)
    assert found.num_steps == most_steps
    assert len(calls) == 2 * most_steps


def test_ends_at_the_norm_that_is_small_enough() -> None:
    A, right = system(2, 0.99)
    steps = []
    for least in (1e-1, 1e-4, 1e-7):
        norm = least * np.linalg.norm(right)
        found = bicgstab(by(A), right, reduction=1e-14, most_steps=200, least_norm=norm)
        assert found.reduction <= least
        assert np.linalg.norm(right - A @ found.values) <= norm * (1 + 1e-6)
        steps.append(found.num_steps)
    assert steps[0] < steps[1] < steps[2]
    # What is small enough to begin with takes a step all the same.
    norm = 2 * np.linalg.norm(right)
    found = bicgstab(by(A), right, reduction=1e-14, most_steps=200, least_norm=norm)
    assert found.num_steps == 1


def test_gives_up_where_values_are_too_large() -> None:
    A, right = system(3, 0.9999)
    right = np.abs(right)
    limits: dict[str, Any] = {"reduction": 1e-10, "most_steps": 200}
    whole = bicgstab(by(A), right, **limits)
    largest = np.abs(np.linalg.solve(A, right)).max()
    assert largest > 1e3
    assert whole.reduction <= 1e-10
    enough = bicgstab(by(A), right, max_value=1e6 * largest, **limits)
    np.testing.assert_array_equal(enough.values, whole.values)
    short = bicgstab(by(A), right, max_value=10.0, **limits)
    assert short.num_steps < whole.num_steps
    assert short.reduction > 1e-10
    assert np.abs(short.values).max() > 10.0


def test_breaks_down_on_a_quarter_turn() -> None:
    # The image of what is left is orthogonal to it: no step brings it nearer.
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    found = bicgstab(by(turn), np.array([1.0, 0.0]), reduction=1e-10, most_steps=50)
    assert found.values.tolist() == [0.0, 0.0]
    assert (found.reduction, found.num_steps) == (1.0, 1)


def test_what_is_no_number_is_no_success() -> None:
    def fail(direction: Array, smoothed: Array, image: Array) -> None:
        smoothed[:], image[:] = direction, np.nan

    found = bicgstab(fail, np.ones(5), reduction=1e-10, most_steps=50)
    assert not found.reduction <= 1.0
    assert found.num_steps == 1


def test_nothing_to_solve_for() -> None:
    A, right = system(4, 0.9)
    found = bicgstab(by(A), np.zeros_like(right), reduction=1e-10, most_steps=50)
    assert found.values.tolist() == [0.0] * len(right)
    assert found.reduction == 0.0
