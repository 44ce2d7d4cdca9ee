"""Published answers of problems that go on for ever, by what a step costs in the mean."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import planners
from aggmaze import TabularMDP
from tests.published.printed import assert_printed


def toymaker() -> TabularMDP:
    """Return the model: a toy in favour or not; go on as it is, or advertise and do research."""
    probabilities = np.array([[[0.5, 0.5], [0.8, 0.2]], [[0.4, 0.6], [0.7, 0.3]]])
    rewards = np.array([[[9.0, 3.0], [4.0, 4.0]], [[3.0, -7.0], [1.0, -19.0]]])
    return TabularMDP.from_matrices(probabilities, rewards=rewards, order="sas", terminal=[])


def test_toymaker() -> None:
    """Advertise and do research: 2 a week, and a toy in favour is worth 10 more than one that is not.

    Howard, "Dynamic Programming and Markov Processes" (1960), chapter 4; the policy that does
    nothing gains 1 (chapter 2).
    """
    model = toymaker()
    result = planners.solve(model, objective=planners.AverageCost())
    for state in (0, 1):
        assert_printed(result, -2.0, at=state)
    np.testing.assert_array_equal(result.policy, [1, 1])
    assert result.bias is not None
    assert result.bias[1] - result.bias[0] == pytest.approx(10.0, abs=1e-5)
    nothing = planners.evaluate(model, [0, 0], objective=planners.AverageCost())
    np.testing.assert_allclose(nothing, [-1.0, -1.0], rtol=1e-12, atol=0)


def taxicab() -> TabularMDP:
    """Return the model: three towns; cruise, wait at a stand, or (not in town 1) for a call."""
    probabilities = [
        [[1 / 2, 1 / 4, 1 / 4], [1 / 16, 3 / 4, 3 / 16], [1 / 4, 1 / 8, 5 / 8]],
        [[1 / 2, 0, 1 / 2], [1 / 16, 7 / 8, 1 / 16], [0, 1, 0]],
        [[1 / 4, 1 / 4, 1 / 2], [1 / 8, 3 / 4, 1 / 8], [3 / 4, 1 / 16, 3 / 16]],
    ]
    rewards = [
        [[10, 4, 8], [8, 2, 4], [4, 6, 4]],
        [[14, 0, 18], [8, 16, 8], [0, 0, 0]],
        [[10, 2, 8], [6, 4, 2], [4, 0, 8]],
    ]
    mask = np.ones((3, 3), dtype=bool)
    mask[1, 2] = False  # there are no calls by radio in town 2
    return TabularMDP.from_matrices(
        np.array(probabilities),
        rewards=np.array(rewards, dtype=float),
        order="sas",
        action_mask=mask,
        terminal=[],
    )


def test_taxicab() -> None:
    """Wait at the stand in every town: 13.34 a trip, relative values -1.18, 12.66 and 0.

    Howard (1960), chapter 5, table 5.1 and the iterations after it: gains of 9.20, 13.15 and 13.34.
    """
    model = taxicab()
    average = planners.AverageCost()
    result = planners.solve(model, objective=average)
    for state in range(3):
        assert_printed(result, -13.34, at=state, digits=2)
        assert_printed(result, float(Fraction(-1588, 119)), at=state)
    np.testing.assert_array_equal(result.policy, [1, 1, 1])
    assert result.bias is not None
    relative = result.bias[2] - result.bias
    np.testing.assert_allclose(relative, [-1.18, 12.66, 0.0], rtol=0, atol=0.005)
    for policy, gain in (([0, 0, 0], 9.20), ([0, 1, 1], 13.15)):
        np.testing.assert_allclose(
            planners.evaluate(model, policy, objective=average), -gain, rtol=0, atol=0.005
        )


def maintenance() -> TabularMDP:
    """Return the model: five conditions and a second day of an enforced repair."""
    wear = [
        [0.9, 0.1, 0.0, 0.0, 0.0],
        [0.0, 0.8, 0.1, 0.05, 0.05],
        [0.0, 0.0, 0.7, 0.1, 0.2],
        [0.0, 0.0, 0.0, 0.5, 0.5],
    ]
    preventive = {1: 7.0, 2: 7.0, 3: 5.0}
    failed, second_day = 4, 5

    def fn(condition: int, action: int) -> list[tuple[float, int, float, bool]] | None:
        if condition == failed:
            return [(1.0, second_day, 10.0, False)] if action == 1 else None
        if condition == second_day:
            return [(1.0, 0, 0.0, False)] if action == 1 else None
        if action == 0:
            return [(p, after, 0.0, False) for after, p in enumerate(wear[condition]) if p]
        if condition not in preventive:
            return None
        return [(1.0, 0, preventive[condition], False)]

    return TabularMDP.from_function(6, 2, fn)


def test_maintenance() -> None:
    """A machine that wears out: .4338 a day, by repairs in conditions 3 and 4.

    Tijms, "A First Course in Stochastic Models" (2003), examples 6.1.1, 6.2.1 and 6.3.1: policy
    iteration begins with repairs in condition 4 only... 
    """
    model = maintenance()
    average = planners.AverageCost()
    result = planners.solve(model, objective=average)
    for state in range(6):
        assert_printed(result, 0.4338, at=state, digits=4)
