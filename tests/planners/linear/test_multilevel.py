"""Elimination in many levels against fractions and scipy."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import splu

from planners.linear.bicgstab import bicgstab
from planners.linear.multilevel import MultilevelElimination
from planners.linear.policy_matrix import PolicyMatrix, multiply
from tests import strategies
from tests.planners.reference import Array

SLACKS = [1.0, 0.05, 1e-6, 1e-12, 2.0**-53]


def nothing() -> None:
    """Time is never up."""


def matrix_of(onward: sp.csr_array, slack: Array) -> PolicyMatrix:
    """Return the rows of ``diag(slack + N 1) - N``; N has nothing on its diagonal."""
    onward = sp.csr_array(onward)
    onward.eliminate_zeros()
    starts, columns = onward.indptr.astype(np.int64), onward.indices.astype(np.int32)
    sums = np.array([sum(onward.data[lo:hi]) for lo, hi in pairwise(starts)])
    return PolicyMatrix(starts, columns, onward.data.astype(float), slack, slack + sums)


def chain(following: Array, weights: Array, slack: float) -> PolicyMatrix:
    """Return a chain with so many successors a state, duplicates and loops to itself left out."""
    num_states, branching = following.shape
    rows = np.repeat(np.arange(num_states), branching)
    onward = sp.coo_array((weights.ravel(), (rows, following.ravel())), shape=(num_states,) * 2)
    onward = sp.csr_array(onward)
    onward.setdiag(0.0)
    onward.eliminate_zeros()
    onward.data *= (1 - slack) / np.repeat(np.asarray(onward.sum(axis=1)), np.diff(onward.indptr))
    return matrix_of(onward, np.full(num_states, slack))


def solved(matrix: PolicyMatrix, right: Array) -> tuple[MultilevelElimination, Array]:
    elimination = MultilevelElimination(matrix, nothing)
    out = np.full_like(right, np.nan)
    elimination.apply(right, out)
    return elimination, out


def csc(matrix: PolicyMatrix) -> sp.csc_array:
    size = len(matrix.slack)
    onward = sp.csr_array((matrix.entries, matrix.columns, matrix.starts), shape=(size, size))
    return (sp.diags_array(matrix.diagonal) - onward).tocsc()


def exact_solution(matrix: PolicyMatrix, right: Array) -> list[Fraction]:
    """Gauss and Jordan in fractions."""
    size = len(right)
    rows = [[Fraction(0)] * size + [Fraction(float(right[i]))] for i in range(size)]
    for i in range(size):
        rows[i][i] += Fraction(float(matrix.slack[i]))
        for place in range(matrix.starts[i], matrix.starts[i + 1]):
            entry = Fraction(float(matrix.entries[place]))
            rows[i][i] += entry
            rows[i][matrix.columns[place]] -= entry
    for i, pivot in enumerate(rows):
        for k in range(size):
            if k != i and rows[k][i]:
                factor = rows[k][i] / pivot[i]
                rows[k] = [x - factor * y for x, y in zip(rows[k], pivot, strict=True)]
    return [rows[i][size] / rows[i][i] for i in range(size)]


@st.composite
def small_matrices(draw: st.DrawFn) -> PolicyMatrix:
    """Chains of up to eight states; entries of all sizes, some of them twice."""
    size = draw(st.integers(1, 8))
    starts, columns, entries = [0], [], []
    for i in range(size):
        others = [j for j in range(size) if j != i]
        row = draw(st.lists(st.sampled_from(others), max_size=6)) if others else []
        columns += row
        entries += [draw(st.sampled_from([0.5, 0.25, 0.1, 1e-3, 1e-9, 1e-30])) for _ in row]
        starts.append(len(columns))
    slack = np.array([draw(st.sampled_from(SLACKS)) for _ in range(size)])
    sums = [sum(entries[lo:hi]) for lo, hi in pairwise(starts)]
    return PolicyMatrix(
        np.array(starts, dtype=np.int64),
        np.array(columns, dtype=np.int32),
        np.array(entries, dtype=float),
        slack,
        slack + np.array(sums),
    )


@given(small_matrices(), strategies.seeds)
def test_few_states_are_eliminated_exactly_with_all_digits(matrix: PolicyMatrix, seed: int) -> None:
    right = np.random.default_rng(seed).random(len(matrix.slack))
    elimination, found = solved(matrix, right)
    assert elimination.num_moved == 0
    for x, exact in zip(found, exact_solution(matrix, right), strict=True):
        assert abs(Fraction(float(x)) - exact) <= exact * Fraction(400, 2**53)


def line(size: int, slack: float, up: float) -> PolicyMatrix:
    """A walk on a line that goes up and down, and stays at its ends."""
    onward = sp.diags_array([up, 1 - up], offsets=[1, -1], shape=(size, size))
    return matrix_of((1 - slack) * sp.csr_array(onward), np.full(size, slack))


def tree(size: int, slack: float, seed: int) -> PolicyMatrix:
    """A walk on a random tree."""
    rng = np.random.default_rng(seed)
    child = np.arange(1, size)
    parent = rng.integers(child)
    weights = rng.random((2, size - 1)) + 0.1
    onward = sp.csr_array(
        (weights.ravel(), (np.append(child, parent), np.append(parent, child))), shape=(size,) * 2
    )
    onward.data *= (1 - slack) / np.repeat(np.asarray(onward.sum(axis=1)), np.diff(onward.indptr))
    return matrix_of(onward, np.full(size, slack))


def star(size: int, slack: float) -> PolicyMatrix:
    """From the hub to everywhere, and back."""
    leaves = np.arange(1, size)
    hub = np.zeros(size - 1, dtype=int)
    data = np.append(np.full(size - 1, 1 / (size - 1)), np.ones(size - 1))
    onward = sp.csr_array(
        (data, (np.append(hub, leaves), np.append(leaves, hub))), shape=(size,) * 2
    )
    return matrix_of((1 - slack) * onward, np.full(size, slack))


EXACT = {
    "line": lambda slack: line(2500, slack, 0.5),
    "line that drifts": lambda slack: line(2500, slack, 0.05),
    "line of one way": lambda slack: line(2500, slack, 1.0),
    "star": lambda slack: star(3000, slack),
    "cycle": lambda slack: chain((np.arange(2000)[:, None] + 1) % 2000, np.ones((2000, 1)), slack),
    "no way on": lambda slack: matrix_of(sp.csr_array((500, 500)), np.full(500, slack)),
}


@pytest.mark.parametrize("slack", SLACKS)
@pytest.mark.parametrize("name", EXACT)
def test_is_exact_where_no_row_gets_long(name: str, slack: float) -> None:
    matrix = EXACT[name](slack)
    right = np.random.default_rng(1).random(len(matrix.slack))
    elimination, found = solved(matrix, right)
    assert elimination.num_moved == 0
    image = np.empty_like(right)
    multiply(matrix, found, image)
    longest = int(np.diff(matrix.starts).max())
    assert np.abs(image - right).max() <= (20 + longest) * 2.0**-53 * np.abs(found).max()
    if slack >= 1e-6:
        expected = splu(csc(matrix)).solve(right)
        np.testing.assert_allclose(found, expected, rtol=(100 + longest) * 2.0**-53 / slack)


@settings(max_examples=25)
@given(st.integers(2, 1500), st.sampled_from(SLACKS), strategies.seeds)
def test_trees(size: int, slack: float, seed: int) -> None:
    matrix = tree(size, slack, seed)
    values = np.random.default_rng(seed).random(size)
    right = np.empty_like(values)
    multiply(matrix, values, right)
    elimination, found = solved(matrix, right)
    if elimination.num_moved == 0:
        error = 1e3 * 2.0**-53 / slack
        np.testing.assert_allclose(found, values, rtol=0, atol=error)
    found = solved(matrix, matrix.slack)[1]
    np.testing.assert_allclose(found, 1.0, rtol=1e-12)


def torus(side: int, slack: float) -> PolicyMatrix:
    """A walk on a torus that drifts."""
    states = np.arange(side * side).reshape(side, side)
    ways = [np.roll(states, step, axis) for axis in (0, 1) for step in (1, -1)]
    following = np.stack(ways, axis=-1).reshape(-1, 4)
    return chain(following, np.tile([0.4, 0.1, 0.2, 0.3], (side * side, 1)), slack)


def random_chain(size: int, branching: int, slack: float, seed: int) -> PolicyMatrix:
    rng = np.random.default_rng(seed)
    shape = size, branching
    return chain(rng.integers(size, size=shape), rng.random(shape) + 1e-3, slack)


def near_chain(size: int, slack: float, seed: int) -> PolicyMatrix:
    """Successors not far away, of probabilities of all sizes."""
    rng = np.random.default_rng(seed)
    steps = rng.integers(1, 12, size=(size, 4)) * rng.choice([-1, 1], size=(size, 4))
    following = (np.arange(size)[:, np.newaxis] + steps) % size
    return chain(following, 10.0 ** rng.uniform(-8, 0, (size, 4)), slack)


@pytest.mark.parametrize("slack", SLACKS[1:])
def test_what_is_constant_is_solved_for_where_entries_were_moved(slack: float) -> None:
    for matrix in (torus(40, slack), near_chain(1500, slack, 2), near_chain(900, slack, 3)):
        elimination, found = solved(matrix, matrix.slack)
        assert elimination.num_moved > 0
        np.testing.assert_allclose(found, 1.0, rtol=1e-13)


@settings(max_examples=40)
@given(
    st.integers(1, 600),
    st.integers(1, 12),
    st.sampled_from(SLACKS),
    st.booleans(),
    strategies.seeds,
)
def test_what_is_not_negative_stays_so(
    size: int, branching: int, slack: float, near: bool, seed: int
) -> None:
    matrix = near_chain(size, slack, seed) if near else random_chain(size, branching, slack, seed)
    right = np.random.default_rng(seed).integers(0, 2, size).astype(float)
    found = solved(matrix, right)[1]
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    # Each state keeps at least what it has itself.
    assert (found >= right * (1 - 1e-12) / matrix.diagonal).all()


def test_a_dense_chain_is_left_to_its_diagonal() -> None:
    size = 200
    onward = np.full((size, size), 0.9 / (size - 1))
    np.fill_diagonal(onward, 0.0)
    matrix = matrix_of(sp.csr_array(onward), np.full(size, 0.1))
    right = np.arange(size, dtype=float)
    elimination, found = solved(matrix, right)
    assert elimination.num_moved == size * (size - 1)
    np.testing.assert_allclose(found, right / matrix.diagonal, rtol=1e-15)


def num_steps(matrix: PolicyMatrix) -> int:
    """Return how many steps of BiCGSTAB it takes to a millionth, having looked at the residual."""
    elimination = MultilevelElimination(matrix, nothing)

    def apply(direction: Array, smoothed: Array, image: Array) -> None:
        elimination.apply(direction, smoothed)
        multiply(matrix, smoothed, image)

    right = np.random.default_rng(0).normal(size=len(matrix.slack))
    found = bicgstab(apply, right, reduction=1e-6, most_steps=200)
    image = np.empty_like(right)
    multiply(matrix, found.values, image)
    assert np.linalg.norm(right - image) <= 1e-5 * np.linalg.norm(right)
    return found.num_steps


def test_steps_hardly_depend_on_the_discount() -> None:
    far = num_steps(torus(60, 1e-2))
    assert num_steps(torus(60, 1e-4)) <= far + 8
    assert num_steps(torus(60, 1e-6)) <= far + 8


def test_time_may_be_up_at_every_look() -> None:
    matrix = torus(30, 0.1)
    looks = 0

    def count() -> None:
        nonlocal looks
        looks += 1

    MultilevelElimination(matrix, count)
    assert looks > 10
    for last in range(1, looks + 1):
        left = last

        def strike() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise TimeoutError

        with pytest.raises(TimeoutError):
            MultilevelElimination(matrix, strike)


def test_an_application_leaves_its_argument_and_may_be_repeated() -> None:
    matrix = torus(30, 1e-3)
    right = np.random.default_rng(0).normal(size=len(matrix.slack))
    before = right.copy()
    elimination, first = solved(matrix, right)
    again = np.empty_like(first)
    elimination.apply(right, again)
    np.testing.assert_array_equal(right, before)
    np.testing.assert_array_equal(again, first)
    assert elimination.num_entries >= len(right)
