"""Chances of next to nothing, and what is beyond float64: no bound is wrong, and nothing warns."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import planners
from aggmaze import MoveMDP, TabularMDP
from planners import AverageCost, TotalCost
from planners.objectives.average_cost_proof import rows_of
from tests.planners import exact


def _chain(rows: list[dict[int, float]], costs: list[float]) -> TabularMDP:
    """Return a model with one action, whose first state is terminal where it stays there."""
    entries = [(p, t) for row in rows for t, p in row.items()]
    starts = np.cumsum([0] + [len(row) for row in rows])
    data, indices = (np.array(part) for part in zip(*entries, strict=True))
    matrix = sp.csr_array((data, indices, starts), shape=(len(rows), len(rows)))
    terminal = np.array([rows[0] == {0: 1.0}] + [False] * (len(rows) - 1))
    return TabularMDP(matrix, np.array(costs)[:, np.newaxis], terminal=terminal).validate()


@pytest.mark.parametrize("method", ["auto", "policy_iteration", "value_iteration"])
def test_costs_that_no_float_holds_are_refused(method: str) -> None:
    model = _chain([{0: 1.0}, {0: 1e-300, 1: 1.0}], [0.0, 1e12])
    with pytest.raises(ValueError, match="too much for float64"):
        planners.solve(model, objective=TotalCost(), method=method)


def test_steps_beyond_float64_are_no_bound() -> None:
    # What one step may cost next to nothing takes a multiple beyond float64.
    model = _chain(
        [
            {0: 1.0},
            {2: 0.9999999999, 3: 1e-100},
            {3: 1 / 3, 0: 2 / 3},
            {3: 1.0, 2: 1e-100},
        ],
        [0.0, 1e-300, 1e-12, 1.0],
    )
    result = planners.solve(model, objective=TotalCost(), time_limit=10)
    truth = exact.total_costs(model).values
    assert (result.lower <= result.values).all()
    for s, value in enumerate(truth):
        assert value is not None
        assert not np.isfinite(result.lower[s]) or Fraction(float(result.lower[s])) <= value
        assert not np.isfinite(result.upper[s]) or Fraction(float(result.upper[s])) >= value


@pytest.mark.parametrize("method", ["auto", "policy_iteration", "value_iteration"])
def test_mean_costs_where_one_hardly_leaves(method: str) -> None:
    model = _chain(
        [{0: 1.0}, {0: 0.4995, 2: 0.001, 1: 0.4995}, {3: 1.0}, {2: 1.0}, {4: 1.0, 1: 1e-100}],
        [0.0, 0.0, -1.0, 1.0, 1.0],
    )
    result = planners.solve(model, objective=AverageCost(), method=method, time_limit=10)
    for s, gain in enumerate(exact.gains(model)):
        assert Fraction(float(result.lower[s])) <= gain <= Fraction(float(result.upper[s]))


def test_products_that_come_to_nothing_are_not_exact() -> None:
    model = _chain([{0: 0.5, 1: 0.5}, {1: 1.0, 0: 1e-200}], [0.0, 0.0])
    x, error = rows_of(model, np.array([0.0, 1e-200]))
    assert x[1, 0] == 0.0
    assert error[1, 0] > 0.0
    x, error = rows_of(model, np.array([3.0, 3.0]))
    assert x.tolist() == error.tolist() == [[0.0], [0.0]]


def test_costs_of_moves_that_cancel() -> None:
    # The mean cost of the cheapest move is -1e-16: the table of the model has it as 0.
    costs = np.array([[1.0, 1, 1], [63.000000000000014, -7, 63.000000000000014]])
    model = MoveMDP(np.array([[0, 0, 0], [1, 1, 1]]), costs, p=0.9).validate()
    result = planners.solve(model, objective=AverageCost())
    for s, gain in enumerate(exact.gains(model)):
        assert Fraction(float(result.lower[s])) <= gain <= Fraction(float(result.upper[s]))
