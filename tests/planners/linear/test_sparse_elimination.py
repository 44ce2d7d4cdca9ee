"""Sparse elimination against fractions, dense elimination and scipy."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import splu

from planners.linear.elimination_tree import Analysis, analyse
from planners.linear.rows import Rows, rows_of
from planners.linear.sparse_elimination import Factors, PatternError
from tests.planners.reference import Array

WITHOUT_LIMIT = 2**62
GAMMAS = [0.0, 0.5, 0.95, 1 - 1e-6, 1 - 1e-12, 1 - 2.0**-53]


def analysed(matrix: sp.csr_array, most: int = WITHOUT_LIMIT) -> Analysis:
    rows = rows_of(matrix)
    found = analyse(rows.starts, rows.columns, most_entries=most, most_operations=most)
    assert found is not None
    return found


def loaded(matrix: sp.csr_array, gamma: float) -> Factors:
    factors = Factors(analysed(matrix))
    assert factors.load(rows_of(matrix), gamma)
    return factors


def check(matrix: sp.csr_array, gamma: float, seed: int = 0) -> None:
    """Compare with SuperLU, whose error is that of the condition."""
    size = matrix.shape[0]
    costs = np.random.default_rng(seed).random((size, 2))
    factors = loaded(matrix, gamma)
    values = factors.solve(costs)
    expected = splu((sp.eye_array(size) - gamma * matrix).tocsc()).solve(costs)
    np.testing.assert_allclose(values, expected, rtol=1e-13 / (1 - gamma))
    np.testing.assert_array_equal(factors.solve(costs[:, 1]), values[:, 1])
    # What rounding allows, whatever the condition.
    residual = costs + gamma * (matrix @ values) - values
    roundings = 64 + 2 * int(np.diff(matrix.indptr).max())
    assert np.abs(residual).max() <= roundings * 2.0**-53 * np.abs(values).max()


# ---------------------------------------------------------------------------------------------
# Small chains, exactly.


@st.composite
def chains(draw: st.DrawFn) -> list[list[int]]:
    """Sixty-fourths of each row: up to 9 states, some terminal, some that end now and then."""
    size = draw(st.integers(1, 9))
    rows = []
    for _ in range(size):
        row = [0] * size
        left = draw(st.sampled_from([64, 64, 64, 63, 40, 0]))
        while left:
            share = draw(st.integers(1, left))
            row[draw(st.integers(0, size - 1))] += share
            left -= share
        rows.append(row)
    return rows


def matrix_of(rows: list[list[int]]) -> sp.csr_array:
    return sp.csr_array(np.array(rows, dtype=np.float64) / 64)


def exact_values(rows: list[list[int]], costs: list[int], gamma: float) -> list[Fraction] | None:
    """Gauss and Jordan in fractions; None where there is no solution."""
    size = len(rows)
    table = [
        [Fraction(int(i == j)) - Fraction(gamma) * Fraction(rows[i][j], 64) for j in range(size)]
        + [Fraction(costs[i])]
        for i in range(size)
    ]
    for k in range(size):
        pivot = next((i for i in range(k, size) if table[i][k] != 0), None)
        if pivot is None:
            return None
        table[k], table[pivot] = table[pivot], table[k]
        table[k] = [entry / table[k][k] for entry in table[k]]
        for i in range(size):
            if i != k and table[i][k] != 0:
                factor = table[i][k]
                table[i] = [a - factor * b for a, b in zip(table[i], table[k], strict=True)]
    return [row[-1] for row in table]


@settings(max_examples=300)
@given(rows=chains(), gamma=st.sampled_from([*GAMMAS, 1.0]), data=st.data())
def test_each_value_is_accurate_at_any_discount(
    rows: list[list[int]], gamma: float, data: st.DataObject
) -> None:
    costs = data.draw(st.lists(st.integers(0, 9), min_size=len(rows), max_size=len(rows)))
    matrix = matrix_of(rows)
    expected = exact_values(rows, costs, gamma)
    factors = Factors(analysed(matrix))
    assert factors.load(rows_of(matrix), gamma) == (expected is not None)
    if expected is None:
        with pytest.raises(ValueError, match="no policy is loaded"):
            factors.solve(np.array(costs, dtype=np.float64))
        return
    values = factors.solve(np.array(costs, dtype=np.float64))
    for value, truth in zip(values.tolist(), expected, strict=True):
        assert abs(Fraction(value) - truth) <= Fraction(1e-14) * truth


@pytest.mark.parametrize("gamma", GAMMAS)
def test_rows_that_sum_to_1_but_for_rounding_never_end(gamma: float) -> None:
    matrix = sp.csr_array(np.full((3, 3), 1 / 3))
    values = loaded(matrix, gamma).solve(np.ones(3))
    np.testing.assert_allclose(values, 1 / (1 - gamma), rtol=1e-15)


def test_nothing_and_a_single_state() -> None:
    empty = sp.csr_array((0, 0))
    assert loaded(empty, 0.9).solve(np.empty(0)).shape == (0,)
    terminal = sp.csr_array((1, 1))
    np.testing.assert_array_equal(loaded(terminal, 1.0).solve(np.array([5.0])), [5.0])
    loop = sp.csr_array(np.ones((1, 1)))
    np.testing.assert_array_equal(loaded(loop, 0.75).solve(np.array([5.0])), [20.0])
    assert not Factors(analysed(loop)).load(rows_of(loop), 1.0)


# ---------------------------------------------------------------------------------------------
# Chains of the kinds that are met.


def walk(num_states: int, up: float = 0.3, down: float = 0.2) -> sp.csr_array:
    """A queue: one up, one down, or stay."""
    stay = np.full(num_states, 1 - up - down)
    stay[0] += down
    stay[-1] += up
    return sp.csr_array(
        sp.diags_array(
            [np.full(num_states - 1, down), stay, np.full(num_states - 1, up)], offsets=[-1, 0, 1]
        )
    )


def banded(num_states: int, seed: int) -> sp.csr_array:
    """Up to 5 down and 7 up, and now and then back to the first."""
    rng = np.random.default_rng(seed)
    states = np.arange(num_states)
    columns = np.clip(states[:, np.newaxis] + rng.integers(-5, 8, (num_states, 4)), 0, None)
    columns = np.minimum(columns, num_states - 1)
    columns[:, 3] = 0
    return drawn(columns, rng)


def drawn(columns: Array, rng: np.random.Generator) -> sp.csr_array:
    """Random probabilities of given successors, shape (S, n)."""
    num_states, width = columns.shape
    entries = rng.dirichlet(np.ones(width), num_states)
    rows = np.repeat(np.arange(num_states), width)
    matrix = sp.csr_array(
        (entries.ravel(), (rows, columns.ravel())), shape=(num_states, num_states)
    )
    matrix.sum_duplicates()
    return matrix


def grid(side: int, seed: int) -> sp.csr_array:
    """Walk about a square with its own probabilities in each cell."""
    x, y = np.divmod(np.arange(side * side), side)
    columns = np.stack(
        [
            np.clip(x + dx, 0, side - 1) * side + np.clip(y + dy, 0, side - 1)
            for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))
        ],
        axis=1,
    )
    return drawn(columns, np.random.default_rng(seed))


def star(num_states: int) -> sp.csr_array:
    """A hub leads anywhere; from there one comes back, stays a while, or ends."""
    states = np.arange(1, num_states)
    rows = np.concatenate([np.zeros(num_states, dtype=int), states, states])
    columns = np.concatenate([np.arange(num_states), np.zeros(num_states - 1, dtype=int), states])
    entries = np.concatenate(
        [np.full(num_states, 1 / num_states), np.full(num_states - 1, 0.4), (states % 3) * 0.3]
    )
    return sp.csr_array((entries, (rows, columns)), shape=(num_states, num_states))


def random_graph(num_states: int, seed: int, width: int = 3) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    return drawn(rng.integers(num_states, size=(num_states, width)), rng)


def layered(num_layers: int, seed: int) -> sp.csr_array:
    """Blocks of 7 states that lead to each other and on to the next block; the last is terminal."""
    rng = np.random.default_rng(seed)
    layers = np.arange(num_layers).repeat(7)[:, np.newaxis]
    columns = layers * 7 + rng.integers(0, 14, (7 * num_layers, 4))
    matrix = drawn(np.minimum(columns, 7 * num_layers - 1), rng)
    keep = sp.diags_array((layers[:, 0] < num_layers - 1).astype(np.float64))
    matrix = sp.csr_array(keep @ matrix)
    matrix.eliminate_zeros()
    return matrix


def side_by_side(seed: int) -> sp.csr_array:
    parts = [walk(30), grid(5, seed), random_graph(20, seed), sp.csr_array((4, 4)), cycle(9)]
    whole = sp.csr_array(sp.block_diag(parts))
    mixed = np.random.default_rng(seed).permutation(whole.shape[0])
    return sp.csr_array(whole[mixed][:, mixed])


def restarts(num_states: int, seed: int) -> sp.csr_array:
    """A walk that begins again now and then, in one of nine states."""
    rng = np.random.default_rng(seed)
    states = np.arange(num_states)
    columns = [states + 1, states - 1, rng.integers(0, 9, num_states) * (num_states // 9)]
    return drawn(np.clip(np.stack(columns, axis=1), 0, num_states - 1), rng)


def cycle(num_states: int) -> sp.csr_array:
    columns = (np.arange(num_states)[:, np.newaxis] + 1) % num_states
    return drawn(columns, np.random.default_rng(0))


CHAINS = {
    "walk": walk(1000),
    "two states": walk(2),
    "banded": banded(700, 0),
    "grid": grid(25, 0),
    "star": star(3000),
    "random": random_graph(300, 0),
    "dense": random_graph(150, 1, width=40),
    "layered": layered(60, 0),
    "side by side": side_by_side(0),
    "cycle": cycle(50),
    "restarts": restarts(900, 0),
    "half of it ends": sp.csr_array(0.5 * grid(12, 1)),
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("gamma", [0.5, 0.99, 0.999999])
def test_agrees_with_superlu(name: str, gamma: float) -> None:
    check(CHAINS[name], gamma)


@pytest.mark.parametrize("name", CHAINS)
def test_values_are_accurate_where_superlu_loses_digits(name: str) -> None:
    # Where nothing ends, costs of 1 are worth 1/(1 - gamma).
    matrix = CHAINS[name]
    gamma = 1 - 1e-12
    endless = np.full(matrix.shape[0], 1.0)
    leaves = 1 - np.asarray(matrix.sum(axis=1)).ravel()
    endless[leaves > 1e-9] = 0.0
    costs = 1 - gamma * (1 - np.where(endless > 0, 0.0, leaves))
    values = loaded(matrix, gamma).solve(costs)
    np.testing.assert_allclose(values, 1.0, rtol=1e-13)


@pytest.mark.parametrize("name", CHAINS)
def test_what_is_counted_is_what_is_there(name: str) -> None:
    matrix = CHAINS[name]
    found = analysed(matrix)
    size = matrix.shape[0]
    assert sorted(found.order.tolist()) == list(range(size))
    np.testing.assert_array_equal(found.positions[found.order], np.arange(size))
    # Every entry of the factors of the pattern has room, and fill by brute force is no more.
    needed = _fill(found, matrix)
    stored = int(found.offsets[-1])
    assert needed <= stored <= 2 * needed
    read = matrix.nnz if found.num_components > 1 else 0
    assert found.num_entries == stored + read
    widths, sizes = np.diff(found.firsts), np.diff(found.tail_starts)
    products = sum(
        (size + k) ** 2
        for width, size in zip(widths.tolist(), sizes.tolist(), strict=True)
        for k in range(width)
    )
    assert found.num_operations == products
    assert found.factor_work >= stored + products // 4
    assert found.solve_work >= found.num_entries
    for node in range(len(widths)):
        tail = found.tails[found.tail_starts[node] : found.tail_starts[node + 1]]
        assert (np.diff(tail) > 0).all()
        assert (tail >= found.firsts[node + 1]).all()


def _fill(found: Analysis, matrix: sp.csr_array) -> int:
    """Entries of the factors, with those of both triangles that either has, and the diagonal."""
    coo = matrix.tocoo()
    inside = found.components[coo.row] == found.components[coo.col]
    rows, columns = found.positions[coo.row[inside]], found.positions[coo.col[inside]]
    tails: list[set[int]] = [set() for _ in range(matrix.shape[0])]
    for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
        if i != j:
            tails[min(i, j)].add(max(i, j))
    for tail in tails:
        if tail:
            parent = min(tail)
            tails[parent] |= tail - {parent}
    return matrix.shape[0] + 2 * sum(len(tail) for tail in tails)


def test_models_in_a_line_and_stars_hardly_fill_in() -> None:
    for matrix in (walk(5000), star(5000), cycle(5000), layered(700, 1)):
        found = analysed(matrix)
        assert found.num_entries <= 5 * (matrix.nnz + matrix.shape[0])
        assert found.num_operations <= 40 * matrix.nnz


@pytest.mark.parametrize("name", ["grid", "random", "banded", "star"])
def test_what_would_cost_too_much_is_refused(name: str) -> None:
    rows = rows_of(CHAINS[name])
    found = analysed(CHAINS[name])
    entries, operations = found.num_entries, found.num_operations
    for most_entries, most_operations in (
        (entries - 1, WITHOUT_LIMIT),
        (WITHOUT_LIMIT, operations - 1),
        (0, 0),
        (entries // 2, WITHOUT_LIMIT),
    ):
        assert (
            analyse(
                rows.starts,
                rows.columns,
                most_entries=most_entries,
                most_operations=most_operations,
            )
            is None
        )


def test_large_models_that_fill_in_are_refused_after_few_looks() -> None:
    rows = rows_of(random_graph(20_000, 0, width=5))
    looks = []
    found = analyse(
        rows.starts,
        rows.columns,
        most_entries=10 * int(rows.starts[-1]),
        most_operations=WITHOUT_LIMIT,
        checkpoint=lambda: looks.append(None),
    )
    assert found is None
    assert len(looks) <= 4


# ---------------------------------------------------------------------------------------------
# One analysis, many policies.


def test_other_numbers_and_fewer_entries_fit() -> None:
    whole = grid(12, 0)
    factors = Factors(analysed(whole))
    rng = np.random.default_rng(0)
    for gamma in (0.9, 0.999):
        part = whole.copy()
        part.data = rng.random(part.nnz) * (rng.random(part.nnz) < 0.7)
        part.eliminate_zeros()
        part = sp.csr_array(sp.diags_array(1 / np.maximum(1e-9, part.sum(axis=1))) @ part)
        costs = rng.normal(size=144)
        assert factors.load(rows_of(part), gamma)
        expected = np.linalg.solve(np.eye(144) - gamma * part.toarray(), costs)
        np.testing.assert_allclose(
            factors.solve(costs), expected, atol=1e-12 / (1 - gamma) * np.abs(expected).max()
        )


@settings(max_examples=200)
@given(rows=chains(), others=chains())
def test_rows_that_do_not_fit_are_refused(rows: list[list[int]], others: list[list[int]]) -> None:
    size = min(len(rows), len(others))
    first, other = ([row[:size] for row in part[:size]] for part in (rows, others))
    factors = Factors(analysed(matrix_of(first)))
    costs = np.arange(1.0, size + 1)
    gamma = 0.75
    try:
        assert factors.load(rows_of(matrix_of(other)), gamma)
    except PatternError:
        with pytest.raises(ValueError, match="no policy is loaded"):
            factors.solve(costs)
        # Some entry is new.
        assert (np.array(other) > 0)[np.array(first) == 0].any()
        return
    expected = np.linalg.solve(np.eye(size) - gamma * matrix_of(other).toarray(), costs)
    np.testing.assert_allclose(factors.solve(costs), expected, rtol=1e-13)


def test_the_union_of_two_policies_serves_both() -> None:
    up, down = walk(200, 0.6, 0.1), sp.csr_array(walk(200)[::-1].tocsr())
    factors = Factors(analysed(sp.csr_array(up + down)))
    costs = np.linspace(0, 1, 200)
    for part in (up, down, up):
        assert factors.load(rows_of(part), 0.99)
        expected = np.linalg.solve(np.eye(200) - 0.99 * part.toarray(), costs)
        np.testing.assert_allclose(factors.solve(costs), expected, rtol=1e-11)


def test_loading_again_gives_the_same_bits() -> None:
    matrix = CHAINS["grid"]
    costs = np.random.default_rng(0).random(matrix.shape[0])
    factors = loaded(matrix, 0.99)
    first = factors.solve(costs)
    factors.load(rows_of(matrix), 0.5)
    factors.load(rows_of(matrix), 0.99)
    np.testing.assert_array_equal(factors.solve(costs), first)
    np.testing.assert_array_equal(loaded(matrix, 0.99).solve(costs), first)


# ---------------------------------------------------------------------------------------------
# What is no chain, and who waits.


def test_rows_that_sum_to_too_much_have_no_values() -> None:
    matrix = sp.csr_array(np.array([[0.5, 0.7], [0.5, 0.5]]))
    assert not Factors(analysed(matrix)).load(rows_of(matrix), 0.95)


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_what_is_no_number_passes_for_none(number: float) -> None:
    matrix = walk(10)
    factors = loaded(matrix, 0.9)
    costs = np.ones(10)
    costs[4] = number
    assert not np.isfinite(factors.solve(costs)).any()
    broken = matrix.copy()
    broken.data[5] = number
    assert not factors.load(rows_of(broken), 0.9)
    assert not factors.load(rows_of(matrix), math.nan)


@pytest.mark.parametrize("columns", [np.int32, np.uint32])
def test_columns_of_either_kind(columns: type) -> None:
    matrix = grid(6, 0)
    rows = rows_of(matrix)
    rows = Rows(rows.starts, rows.columns.astype(columns), rows.entries)
    found = analyse(
        rows.starts, rows.columns, most_entries=WITHOUT_LIMIT, most_operations=WITHOUT_LIMIT
    )
    assert found is not None
    factors = Factors(found)
    assert factors.load(rows, 0.9)
    costs = np.ones(36)
    np.testing.assert_array_equal(factors.solve(costs), loaded(matrix, 0.9).solve(costs))


def test_every_part_of_the_work_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    class StopError(Exception):
        pass

    left = 0

    def countdown() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise StopError

    monkeypatch.setattr("planners.linear.sparse_elimination._PRODUCTS_AT_ONCE", 1000)
    monkeypatch.setattr("planners.linear.ordering._STEPS_AT_ONCE", 1000)
    matrix = grid(20, 0)
    rows = rows_of(matrix)
    costs = np.ones(400)
    expected = loaded(matrix, 0.9).solve(costs)
    stopped = 0
    while True:
        left = stopped
        try:
            found = analyse(
                rows.starts,
                rows.columns,
                most_entries=WITHOUT_LIMIT,
                most_operations=WITHOUT_LIMIT,
                checkpoint=countdown,
            )
            assert found is not None
            factors = Factors(found, countdown)
            assert factors.load(rows, 0.9)
            values = factors.solve(costs)
            break
        except StopError:
            stopped += 1
    assert stopped > 20
    np.testing.assert_array_equal(values, expected)
