"""Strong components and orders of elimination, against scipy and elimination by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components, shortest_path

from planners.linear.ordering import (
    foreseen_operations,
    minimum_degree,
    neighbourhood,
    strong_components,
    symmetrised,
)
from tests.planners.reference import Array

WITHOUT_LIMIT = 2**62


@st.composite
def graphs(draw: st.DrawFn) -> sp.csr_array:
    """Arcs among up to 40 states, loops too."""
    num_states = draw(st.integers(0, 40))
    states = st.integers(0, max(0, num_states - 1))
    arcs = draw(st.lists(st.tuples(states, states), max_size=3 * num_states if num_states else 0))
    return graph(num_states, arcs)


def graph(num_states: int, arcs: list[tuple[int, int]]) -> sp.csr_array:
    ends = np.array(arcs, dtype=np.int32).reshape(-1, 2)
    matrix = sp.csr_array((np.ones(len(ends)), tuple(ends.T)), shape=(num_states, num_states))
    matrix.sum_duplicates()
    return matrix


def components_of(matrix: sp.csr_array) -> tuple[int, Array]:
    components = np.empty(matrix.shape[0], dtype=np.int32)
    starts, columns = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    return strong_components(starts, columns, components), components


def neighbours_of(matrix: sp.csr_array, components: Array) -> tuple[Array, Array]:
    starts, columns = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    return symmetrised(starts, columns, components)


def order_of(
    starts: Array,
    neighbours: Array,
    *,
    dense: int = 1000,
    most_entries: int = WITHOUT_LIMIT,
    most_operations: int = WITHOUT_LIMIT,
) -> Array | None:
    return minimum_degree(
        starts,
        neighbours,
        dense,
        most_entries=most_entries,
        most_operations=most_operations,
        checkpoint=lambda: None,
    )


def fill(starts: Array, neighbours: Array, order: Array) -> list[int]:
    """How many neighbours each state has when it is eliminated."""
    left = [set(neighbours[lo:hi].tolist()) for lo, hi in itertools.pairwise(starts)]
    found = []
    for s in order.tolist():
        found.append(len(left[s]))
        for t in left[s]:
            left[t] |= left[s]
            left[t] -= {s, t}
    return found


@given(matrix=graphs())
def test_strong_components(matrix: sp.csr_array) -> None:
    num, components = components_of(matrix)
    expected_num, labels = connected_components(matrix, connection="strong")
    assert num == expected_num
    assert len(set(zip(components.tolist(), labels.tolist(), strict=True))) == num
    rows, columns = matrix.nonzero()
    assert (components[columns] <= components[rows]).all()


@given(matrix=graphs())
def test_neighbours_are_those_within_a_component(matrix: sp.csr_array) -> None:
    _, components = components_of(matrix)
    starts, neighbours = neighbours_of(matrix, components)
    rows, columns = matrix.nonzero()
    inside = (components[rows] == components[columns]) & (rows != columns)
    arcs = set(zip(rows[inside].tolist(), columns[inside].tolist(), strict=True))
    found = [
        (s, int(t)) for s in range(matrix.shape[0]) for t in neighbours[starts[s] : starts[s + 1]]
    ]
    assert sorted(found) == sorted(arcs | {(t, s) for s, t in arcs})


@settings(max_examples=200)
@given(matrix=graphs(), dense=st.integers(3, 40))
def test_orders_are_permutations_within_their_limits(matrix: sp.csr_array, dense: int) -> None:
    num_states = matrix.shape[0]
    starts, neighbours = neighbours_of(matrix, np.zeros(num_states, dtype=np.int32))
    order = order_of(starts, neighbours, dense=dense)
    assert order is not None
    assert sorted(order.tolist()) == list(range(num_states))
    late = np.flatnonzero(np.diff(starts) > dense)
    assert set(order[num_states - len(late) :].tolist()) == set(late.tolist())
    if len(late):
        return
    counts = fill(starts, neighbours, order)
    entries, operations = sum(counts), sum(count**2 for count in counts)
    if entries > 0:
        assert order_of(starts, neighbours, most_entries=entries - 1) is None
        assert order_of(starts, neighbours, most_operations=operations - 1) is None
    # Limits with some room, since a bound of what is left is not always one.
    again = order_of(starts, neighbours, most_entries=2 * entries, most_operations=4 * operations)
    assert again is not None
    np.testing.assert_array_equal(again, order)


@given(matrix=graphs(), dense=st.integers(3, 40), most=st.integers(1, 12))
def test_a_neighbourhood_is_the_graph_of_the_nearest(
    matrix: sp.csr_array, dense: int, most: int
) -> None:
    num_states = matrix.shape[0]
    starts, neighbours = neighbours_of(matrix, np.zeros(num_states, dtype=np.int32))
    degrees = np.diff(starts)
    whole = sp.csr_array(
        (np.ones(len(neighbours)), neighbours, starts), shape=(num_states, num_states)
    ).tolil()
    whole[degrees > dense, :] = 0
    whole[:, degrees > dense] = 0
    places = np.flatnonzero((degrees > 0) & (degrees <= dense))
    places = places[places >= num_states // 2]
    assume(len(places))
    root = int(places[0])
    found = neighbourhood(starts, neighbours, dense, most)
    far = shortest_path(sp.csr_array(whole), unweighted=True, indices=root)
    size = len(found[0]) - 1
    assert size == min(most, np.count_nonzero(np.isfinite(far)))
    sub = sp.csr_array((np.ones(len(found[1])), found[1], found[0]), shape=(size, size))
    assert (sub != sub.T).nnz == 0
    near = shortest_path(sub, unweighted=True, indices=0)
    np.testing.assert_array_equal(np.sort(near), np.sort(far)[:size])


@pytest.mark.parametrize("seed", range(5))
def test_trees_and_cycles_fill_in_as_little_as_they_can(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.permutation(300)
    tree = [(int(labels[s]), int(labels[rng.integers(s)])) for s in range(1, 300)]
    component = np.zeros(300, dtype=np.int32)
    pairs = neighbours_of(graph(300, tree), component)
    order = order_of(*pairs)
    assert order is not None
    assert sum(fill(*pairs, order)) == 299
    cycle = [(int(labels[s]), int(labels[s - 1])) for s in range(300)]
    pairs = neighbours_of(graph(300, cycle), component)
    order = order_of(*pairs)
    assert order is not None
    assert sum(fill(*pairs, order)) == 2 * 297 + 2 + 1


def test_a_grid_fills_in_less_than_by_rows() -> None:
    pairs = neighbours_of(graph(900, grid_arcs(30, 30)), np.zeros(900, dtype=np.int32))
    order = order_of(*pairs)
    assert order is not None
    assert 2 * sum(fill(*pairs, order)) < sum(fill(*pairs, np.arange(900)))


def test_hubs_come_last_and_cost_nothing() -> None:
    arcs = [(0, s) for s in range(2000)] + [(s, s + 1) for s in range(1, 1999)]
    pairs = neighbours_of(graph(2000, arcs), np.zeros(2000, dtype=np.int32))
    order = order_of(*pairs, dense=450, most_entries=2000)
    assert order is not None
    assert order[-1] == 0
    assert sum(fill(*pairs, order)) <= 2 * 2000


def grid_arcs(height: int, width: int) -> list[tuple[int, int]]:
    cells = np.arange(height * width).reshape(height, width)
    down = np.stack([cells[1:].ravel(), cells[:-1].ravel()], axis=1)
    right = np.stack([cells[:, 1:].ravel(), cells[:, :-1].ravel()], axis=1)
    return [(int(a), int(b)) for a, b in np.concatenate([down, right])]


def random_arcs(num_states: int, seed: int) -> list[tuple[int, int]]:
    drawn = np.random.default_rng(seed).integers(num_states, size=(3 * num_states, 2))
    return [(int(a), int(b)) for a, b in drawn]


@pytest.mark.parametrize(
    ("num_states", "arcs", "most"),
    [
        (900, grid_arcs(30, 30), 1.0),
        (2000, grid_arcs(200, 10), 1.0),
        (1500, random_arcs(1500, 0), 1.0),
        # Two halves, each by itself, and states alone.
        (2000, [*grid_arcs(30, 30), *((s + 1000, t + 1000) for s, t in grid_arcs(30, 30))], 1.0),
        # A hub does not bring all near.
        (2001, [*grid_arcs(200, 10), *((2000, s) for s in range(2000))], 1.0),
        (1000, [(s, s + 1) for s in range(999)], 0.0),
    ],
)
def test_what_is_foreseen_is_less_than_what_comes(
    num_states: int, arcs: list[tuple[int, int]], most: float
) -> None:
    pairs = neighbours_of(graph(num_states, arcs), np.zeros(num_states, dtype=np.int32))
    order = order_of(*pairs, dense=500)
    assert order is not None
    actual = sum(count**2 for count in fill(*pairs, order))
    assert foreseen_operations(*pairs) <= most * actual


def test_costs_of_squares_and_random_graphs_are_foreseen() -> None:
    # Within the range that decides: a clique of half a side, and of a hundredth of the states.
    zeros = np.zeros(10_000, dtype=np.int32)
    square = neighbours_of(graph(10_000, grid_arcs(100, 100)), zeros)
    assert foreseen_operations(*square) >= 50**3
    scattered = neighbours_of(graph(10_000, random_arcs(10_000, 0)), zeros)
    assert foreseen_operations(*scattered) >= 100**3


def test_whoever_waits_can_stop_it() -> None:
    class StopError(Exception):
        pass

    def stop() -> None:
        raise StopError

    pairs = neighbours_of(graph(3, [(0, 1), (1, 2)]), np.zeros(3, dtype=np.int32))
    with pytest.raises(StopError):
        minimum_degree(*pairs, 10, most_entries=9, most_operations=9, checkpoint=stop)
