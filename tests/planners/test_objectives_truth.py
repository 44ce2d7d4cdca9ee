"""Undiscounted answers about random small models, against exact fractions."""

from __future__ import annotations

import collections
from fractions import Fraction

import numpy as np
import pytest

from aggmaze import TabularMDP
from tests.planners import exact, objectives_fuzz


@pytest.mark.parametrize("block", range(5))
@pytest.mark.parametrize("objective", objectives_fuzz.OBJECTIVES)
def test_random_models(objective: str, block: int) -> None:
    assert objectives_fuzz.look(20_13, 100 * block, 100, objective) == []


def test_few_are_refused() -> None:
    told = collections.Counter(objectives_fuzz.refusal(20_13, n, "total") for n in range(300))
    assert told[""] > 200
    assert told["refused: gains"] > 3
    assert told["refused: no end"] > 20
    assert set(told) <= {"", "refused: gains", "refused: no end", "refused: within rounding"}


# ---------------------------------------------------------------------------------------------
# The truth itself.


def test_total_costs_by_hand() -> None:
    # State 0 is the end; 1 goes there for 5 or round through 2 for 1 - 1; 3 may get lost in 4.
    P = np.zeros((5, 2, 5))
    P[0, :, 0] = P[1, 0, 0] = P[1, 1, 2] = P[2, :, 1] = P[4, :, 4] = 1
    P[3, :, 0] = P[3, :, 4] = 0.5
    costs = np.array([[0, 0], [5, 1], [-1, -1], [2, 2], [1, 1]])
    model = TabularMDP.from_matrices(P, costs=costs, terminal=[True] + 4 * [False])
    found = exact.total_costs(model)
    assert found.values == [0, 5, 4, None, None]
    assert (found.gains, found.even) == (False, True)
    assert exact.total_costs(model, dead_ends=10.0).values == [0, 5, 4, 7, 10]
    richer = costs - 2 * (np.arange(5) == 2)[:, np.newaxis]
    assert exact.total_costs(
        TabularMDP.from_matrices(P, costs=richer, terminal=[True] + 4 * [False])
    ).gains


def test_gains_by_hand() -> None:
    # 0 and 1 lead to each other for 1 and 2; 2 goes to 0, or tosses between 0 and 3, which is free.
    P = np.zeros((4, 2, 4))
    P[0, :, 1] = P[1, :, 0] = P[2, 0, 0] = P[3, :, 3] = 1
    P[2, 1, 0] = P[2, 1, 3] = 0.5
    costs = np.array([[1, 1], [2, 2], [0, 9], [0, 0]])
    model = TabularMDP.from_matrices(P, costs=costs, terminal=[])
    assert exact.gains(model) == [Fraction(3, 2), Fraction(3, 2), Fraction(3, 4), 0]


def test_horizons_by_hand() -> None:
    P = np.zeros((2, 2, 2))
    P[0, 0, 0] = P[0, 1, 1] = P[1, :, 1] = 1
    model = TabularMDP.from_matrices(P, costs=np.array([[2, 3], [0, 0]]), terminal=[])
    assert exact.horizon_costs([model] * 2, 0.5, [8.0, 4.0]) == [[4, 1], [5, 2], [8, 4]]
