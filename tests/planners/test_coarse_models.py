"""Models of groups against means of dense tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from aggmaze import MoveMDP, TabularMDP
from planners.bellman import local_engine
from planners.coarse_models import CoarseModel, coarse_model
from tests.planners.reference import (
    Array,
    Model,
    dense,
    models,
    random_grid,
    random_moves,
    random_tabular,
)


def coarse_of(model: Model) -> CoarseModel | None:
    return coarse_model(local_engine(model, 0.9))


def check(model: Model, coarse: CoarseModel) -> None:
    """The tables are the means of those of the states, worked out in dense arrays."""
    fine, found, labels = dense(model), coarse.model.validate(), coarse.labels
    num_groups = found.num_states
    assert num_groups <= 0.7 * model.num_states
    np.testing.assert_array_equal(np.unique(labels), np.arange(num_groups))
    sizes = np.bincount(labels[~fine.terminal], minlength=num_groups)
    assert sizes.max() <= 4
    # Terminal states are a group of their own.
    np.testing.assert_array_equal(found.terminal, sizes == 0)
    np.testing.assert_array_equal(found.terminal[labels], fine.terminal)
    assert found.terminal.sum() == fine.terminal.any()

    belongs = (labels == np.arange(num_groups)[:, np.newaxis]).astype(float)
    number = belongs @ fine.mask
    available = number > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        costs = (belongs @ fine.costs) / number
        P = np.einsum("is,sat,jt->iaj", belongs, fine.P, belongs) / number[..., np.newaxis]
    expected = dense(found)
    np.testing.assert_array_equal(expected.mask, available)
    size = max(1.0, float(np.abs(fine.costs).max()))
    np.testing.assert_allclose(
        expected.costs, np.where(available, costs, 0.0), rtol=0, atol=1e-14 * size
    )
    np.testing.assert_allclose(
        expected.P, np.where(available[..., np.newaxis], P, 0.0), rtol=0, atol=1e-14
    )
    check_canonical(found)


def check_canonical(model: TabularMDP) -> None:
    """Columns of a row rise, and its probabilities sum to 1."""
    matrix = model.transitions
    for row in range(matrix.shape[0]):
        assert (np.diff(matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]) > 0).all()
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-14)


@given(models)
def test_any_model(model: Model) -> None:
    coarse = coarse_of(model)
    if coarse is not None:
        check(model, coarse)


LARGER: dict[str, Model] = {
    "table": random_tabular(0, 120, 3),
    "table with many terminal states": random_tabular(1, 120, 3, terminals=70),
    "table without terminal states": random_tabular(2, 150, 2, terminals=0, successors=8),
    "moves": random_moves(0, 120, 4, p=0.9, terminals=3),
    "moves that never slip": random_moves(1, 120, 4, p=1.0),
    "moves that mostly slip": random_moves(2, 120, 3, p=0.01, terminals=0),
    "grid": random_grid(3, (9, 14), 0.8, 0.1),
}


@pytest.mark.parametrize("name", LARGER)
def test_larger_models(name: str) -> None:
    model = LARGER[name]
    coarse = coarse_of(model)
    assert coarse is not None
    check(model, coarse)
    again = coarse_of(model)
    assert again is not None
    np.testing.assert_array_equal(again.labels, coarse.labels)


def test_states_in_a_group_lead_to_each_other() -> None:
    side = 16
    states = np.arange(side * side).reshape(side, side)
    ways = [np.roll(states, step, axis) for axis in (0, 1) for step in (1, -1)]
    successors = np.stack(ways, axis=-1).reshape(-1, 4)
    model = MoveMDP(successors, np.ones((side * side, 4)), p=0.9)
    coarse = coarse_of(model)
    assert coarse is not None
    check(model, coarse)
    assert coarse.model.num_states <= side * side // 3
    for group in range(coarse.model.num_states):
        members = np.flatnonzero(coarse.labels == group)
        reached = {int(members[0])}
        for _ in members:
            reached |= {int(t) for s in reached for t in successors[s] if t in members}
        assert reached == set(members.tolist())


def test_there_is_none_where_nothing_leads_anywhere() -> None:
    alone = MoveMDP(np.arange(50)[:, np.newaxis], np.ones((50, 1)), p=1.0)
    assert coarse_of(alone) is None
    loops = np.eye(50)[:, np.newaxis, :]
    terminal = np.zeros(50, dtype=bool)
    assert (
        coarse_of(TabularMDP.from_matrices(loops, costs=np.ones((50, 1)), terminal=terminal))
        is None
    )


def test_all_states_terminal() -> None:
    ends = MoveMDP(np.zeros((9, 2), int), np.full((9, 2), np.inf), p=0.9)
    coarse = coarse_of(ends)
    assert coarse is not None
    assert coarse.model.num_states == 1
    check(ends, coarse)


def mean_value(model: Model, labels: Array, gamma: float) -> Array:
    """Return V* of a model without choice, averaged over groups."""
    tables = dense(model)
    V = np.linalg.solve(np.eye(tables.num_states) - gamma * tables.P[:, 0], tables.costs[:, 0])
    return np.bincount(labels, V) / np.bincount(labels)


def test_a_walk_on_a_line_becomes_one_that_drifts_alike() -> None:
    """What is worth s in state s is worth the mean of s in a group: drift is kept."""
    size = 400
    states = np.arange(size)
    P = np.zeros((size, 1, size))
    P[states, 0, np.minimum(states + 1, size - 1)] += 0.7
    P[states, 0, np.maximum(states - 1, 0)] += 0.3
    model = TabularMDP.from_matrices(P, costs=states[:, np.newaxis] / size)
    coarse = coarse_of(model)
    assert coarse is not None
    expected = mean_value(model, coarse.labels, 0.99)
    found = mean_value(coarse.model, np.arange(coarse.model.num_states), 0.99)
    assert np.abs(found - expected).max() <= 0.05 * np.ptp(expected)
