"""Undiscounted answers about random small models, against exact fractions."""

from __future__ import annotations

import collections
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from aggmaze import MoveMDP, TabularMDP
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


def moderate_models(count: int) -> list[TabularMDP | MoveMDP]:
    """Return models whose numbers a linear program takes without scaling."""
    rng = np.random.default_rng(7)
    found: list[TabularMDP | MoveMDP] = []
    while len(found) < count:
        model = objectives_fuzz.draw_model(rng)
        of_all = [row for of in exact.rows_of(model).actions for row in of.values()]
        costs = [abs(cost) for _, cost in of_all if cost]
        if min((min(row.values()) for row, _ in of_all), default=1) > Fraction(1, 100) and (
            not costs or (max(costs) < 20 and min(costs) > Fraction(1, 100))
        ):
            found.append(model)
    return found


def test_total_costs_are_those_of_a_linear_program() -> None:
    # max sum V subject to V <= c + P V, without limit from above only where nothing ends.
    num_solved = 0
    for model in moderate_models(150):
        truth, rows = exact.total_costs(model), exact.rows_of(model)
        inside, usable = exact.region_of(rows, rows.terminal)
        states = [s for s in range(rows.num_states) if inside[s] and not rows.terminal[s]]
        if not states or (truth.near and not truth.even):
            continue
        left, right = [], []
        for s in states:
            for row, cost in usable[s].values():
                left.append([float((s == t) - row.get(t, 0)) for t in states])
                right.append(float(cost))
        found = linprog(-np.ones(len(states)), left, right, bounds=(None, None))
        assert (found.status != 0) == truth.gains
        if not truth.gains and not truth.even:
            values = [truth.values[s] for s in states]
            assert None not in values
            np.testing.assert_allclose(found.x, np.array(values, dtype=float), atol=1e-7)
            num_solved += 1
    assert num_solved > 50


def test_gains_are_those_of_a_linear_program() -> None:
    # max sum g subject to g <= P g and g + h <= c + P h: Puterman, "Markov decision processes"
    # (1994), section 9.3.
    for model in moderate_models(60):
        rows, n = exact.rows_of(model), model.num_states
        left, right = [], []
        for s, of in enumerate(rows.actions):
            for row, cost in of.values() if of else [({s: Fraction(1)}, Fraction(0))]:
                step = np.array([float((s == t) - row.get(t, 0)) for t in range(n)])
                left += [[*step, *np.zeros(n)], [*np.eye(n)[s], *step]]
                right += [0.0, float(cost)]
        found = linprog([-1.0] * n + [0.0] * n, left, right, bounds=(None, None))
        gains = np.array(exact.gains(model), dtype=float)
        np.testing.assert_allclose(found.x[:n], gains, atol=1e-7)


def test_horizons_by_hand() -> None:
    P = np.zeros((2, 2, 2))
    P[0, 0, 0] = P[0, 1, 1] = P[1, :, 1] = 1
    model = TabularMDP.from_matrices(P, costs=np.array([[2, 3], [0, 0]]), terminal=[])
    assert exact.horizon_costs([model] * 2, 0.5, [8.0, 4.0]) == [[4, 1], [5, 2], [8, 4]]
