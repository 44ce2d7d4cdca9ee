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
