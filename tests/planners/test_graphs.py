"""Graphs of small models: what may follow, and points that can be told apart."""

from __future__ import annotations

import numpy as np
import pytest

from aggmaze import TabularMDP
from planners.graphs import LEAST_CHANCE, MOST_NODES, Graph, graph_of


def ring(count: int) -> TabularMDP:
    P = np.roll(np.eye(count), 1, axis=1)[:, np.newaxis]
    return TabularMDP.from_matrices(P, costs=np.ones((count, 1)))


def walk(count: int) -> TabularMDP:
    """Return a walk to the last state, where it ends."""
    P = np.zeros((count, 2, count))
    costs = np.ones((count, 2))
    for state in range(count - 1):
        P[state, 0, state + 1], P[state, 0, state] = 0.97, 0.03
        P[state, 1, max(0, state - 1)] = 1.0
    P[-1, :, -1] = 1.0
    costs[-1] = 0.0
    return TabularMDP.from_matrices(P, costs=costs)


def drawn(model: TabularMDP) -> Graph:
    graph = graph_of(model)
    assert graph is not None
    return graph


@pytest.mark.parametrize("model", [ring(1), ring(2), ring(9), ring(60), walk(5), walk(40)])
def test_points_lie_in_the_picture_and_apart(model: TabularMDP) -> None:
    points = drawn(model).points
    assert points.shape == (model.num_states, 2)
    assert points.min() >= 0
    assert points.max() <= 1
    apart = np.linalg.norm(points[:, np.newaxis] - points, axis=-1)
    np.fill_diagonal(apart, np.inf)
    assert apart.min() > 0.3 / np.sqrt(len(points))
    np.testing.assert_array_equal(points, drawn(model).points)


def test_a_ring_is_drawn_as_a_ring() -> None:
    points = drawn(ring(12)).points - 0.5
    turns = np.diff(np.unwrap(np.arctan2(points[:, 1], points[:, 0])))
    # Once around, in the order of the states.
    assert (np.sign(turns) == np.sign(turns[0])).all()
    assert abs(turns.sum()) == pytest.approx(2 * np.pi * 11 / 12, abs=0.2)


def test_arrows_are_what_is_likely_and_ends_have_none() -> None:
    model = walk(6)
    graph = drawn(model)
    found = dict(
        zip(
            zip(graph.state.tolist(), graph.action.tolist(), graph.following.tolist(), strict=True),
            graph.chance.tolist(),
            strict=True,
        )
    )
    assert LEAST_CHANCE > 0.03
    expected = {(s, 0, s + 1): 0.97 for s in range(5)} | {
        (s, 1, max(0, s - 1)): 1.0 for s in range(5)
    }
    assert found == expected


def test_ends_lie_on_the_right() -> None:
    points = drawn(walk(7)).points
    assert (np.diff(points[:, 0]) > 0).all()


def test_what_cannot_be_read_is_no_graph() -> None:
    assert graph_of(ring(MOST_NODES + 1)) is None
    everywhere = np.full((30, 1, 30), 1 / 10)
    everywhere[:, :, 10:] = 0.0
    assert graph_of(TabularMDP.from_matrices(everywhere, costs=np.ones((30, 1)))) is None


def test_a_line_without_an_end_is_folded_in_its_order() -> None:
    P = np.zeros((40, 1, 40))
    for state in range(40):
        P[state, 0, min(39, state + 1)] += 0.5
        P[state, 0, max(0, state - 1)] += 0.5
    points = drawn(TabularMDP.from_matrices(P, costs=np.ones((40, 1)))).points
    rows = np.unique(np.round(points[:, 1] * 3).astype(int))
    assert len(rows) == 4
    # Neighbours on the line are neighbours in the picture: no step is longer than between rows.
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    assert steps.max() < 0.4


def test_a_graph_with_too_many_arrows_is_drawn_on_request() -> None:
    everywhere = TabularMDP.from_matrices(np.full((30, 1, 30), 1 / 30), costs=np.ones((30, 1)))
    few = TabularMDP.from_matrices(np.full((10, 1, 10), 1 / 10), costs=np.ones((10, 1)))
    for model, count in ((few, 100), (everywhere, 0)):  # 1/30 is no arrow at all
        graph = graph_of(model, dense=True)
        assert graph is not None
        assert len(graph.state) == count
    ten = np.zeros((30, 1, 30))
    ten[:, :, :10] = 1 / 10
    model = TabularMDP.from_matrices(ten, costs=np.ones((30, 1)))
    assert graph_of(model) is None
    graph = graph_of(model, dense=True)
    assert graph is not None
    assert len(graph.state) == 300
