from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from aggmaze import MoveMDP, TabularMDP
from planners.auto import measure
from planners.bellman import local_engine
from tests.planners.reference import Model, dense, models, random_moves, random_tabular


@given(models)
def test_small_models_are_measured_whole(model: Model) -> None:
    found = measure(model)
    tables = dense(model)
    stays = np.array(
        [
            all(tables.P[s, a, s] == tables.P[s, a].sum() for a in np.flatnonzero(tables.mask[s]))
            for s in range(tables.num_states)
        ]
    )
    assert found.has_absorbing_states == bool(stays.any())
    assert local_engine(model, 0.9).has_absorbing_states == bool(stays.any())
    assert (found.num_states, found.num_actions) == tables.mask.shape
    assert 0 <= found.determinism <= 1 + 1e-9
    assert 0 <= found.nonnegative <= 1
    assert 0 <= found.openness <= 1
    assert found.p == (model.p if isinstance(model, MoveMDP) else None)


def test_moves() -> None:
    # A corridor of four positions, the first of which is the goal.
    successors = np.array([[0, 1], [0, 2], [1, 3], [2, 3]])
    costs = np.array([[np.inf, np.inf], [1.0, -1.0], [1.0, 2.0], [1.0, np.inf]])
    found = measure(MoveMDP(successors, costs, p=0.9))
    assert found.has_absorbing_states
    assert found.determinism == pytest.approx((4 * 0.9 + 1) / 5)
    assert found.nonnegative == 0.8
    assert found.openness == pytest.approx(5 / 6)
    assert found.p == 0.9


def test_moves_below_one_in_n() -> None:
    found = measure(random_moves(0, 50, 4, p=0.1))
    assert 0.3 <= found.determinism <= 1.0


def test_rows() -> None:
    P = np.zeros((3, 2, 3))
    P[0, 0] = 0.5, 0.25, 0.25
    P[0, 1] = 0.0, 0.0, 1.0
    P[1, :, 2] = 1.0
    P[2, :, 2] = 1.0
    costs = np.array([[1.0, -1.0], [2.0, 5.0], [7.0, 7.0]])
    mask = np.array([[True, True], [True, False], [True, True]])
    found = measure(TabularMDP.from_matrices(P, costs=costs, action_mask=mask, terminal=[]))
    assert found.has_absorbing_states
    assert found.determinism == pytest.approx((0.5 + 1 + 1) / 3)
    assert found.nonnegative == pytest.approx(2 / 3)
    assert found.openness == 0.75
    assert found.shape is None
    assert found.p is None


def test_nothing_but_terminal_states() -> None:
    found = measure(MoveMDP(np.zeros((3, 2), dtype=int), np.full((3, 2), np.inf)))
    assert found.has_absorbing_states
    assert found.determinism == 0.0


def test_absorbing_states_need_not_be_terminal() -> None:
    model = random_tabular(0, 20, 2, terminals=0)
    assert not measure(model).has_absorbing_states
    costs = np.ones((2, 1))
    P = np.array([[[0.0, 1.0]], [[0.0, 1.0]]])
    stuck = TabularMDP.from_matrices(P, costs=costs, terminal=[])
    assert not stuck.terminal.any()
    assert measure(stuck).has_absorbing_states
