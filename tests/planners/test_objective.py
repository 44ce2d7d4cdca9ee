"""What is asked: objectives, their arguments, and the two ways to name one."""

import re
from fractions import Fraction

import numpy as np
import pytest

import planners
from planners import AverageCost, Discounted, FiniteHorizon, TotalCost
from planners.objective import as_objective


def test_gamma_stands_for_an_objective():
    assert as_objective(0.9) == Discounted(0.9)
    assert as_objective(0) == Discounted(0.0)
    for one in (1, 1.0, Fraction(1), np.float32(1)):
        assert as_objective(one) == TotalCost()
    assert as_objective(objective=AverageCost()) == AverageCost()


@pytest.mark.parametrize("gamma", [-0.1, 1.1, float("nan"), float("inf")])
def test_gamma_out_of_range(gamma):
    with pytest.raises(ValueError, match=re.escape(f"gamma must be in [0, 1], got {gamma!r}")):
        as_objective(gamma)
    with pytest.raises(ValueError, match=re.escape(f"gamma must be in [0, 1), got {gamma!r}")):
        Discounted(gamma)
    with pytest.raises(ValueError, match=re.escape(f"gamma must be in [0, 1], got {gamma!r}")):
        FiniteHorizon(3, gamma)


@pytest.mark.parametrize("gamma", ["0.9", True, [0.9]])
def test_gamma_that_is_no_number(gamma):
    with pytest.raises(TypeError, match="gamma must be a number"):
        as_objective(gamma)


def test_nothing_or_too_much_is_asked():
    with pytest.raises(TypeError, match="say what is asked: gamma="):
        as_objective()
    with pytest.raises(ValueError, match="two answers to one question"):
        as_objective(0.9, AverageCost())
    with pytest.raises(TypeError, match=r"got 'total'"):
        as_objective(objective="total")
    with pytest.raises(TypeError, match=r"say TotalCost\(...\), with parentheses"):
        as_objective(objective=TotalCost)


def test_an_objective_says_what_it_is():
    assert str(Discounted(0.95)) == "gamma 0.95"
    assert str(TotalCost()) == "total cost"
    assert str(TotalCost(dead_ends=7)) == "total cost, dead ends at 7"
    assert str(FiniteHorizon(1)) == "a horizon of 1 step"
    assert str(FiniteHorizon(12, 0.9)) == "a horizon of 12 steps, gamma 0.9"
    assert str(AverageCost()) == "average cost"
    assert TotalCost().gamma == AverageCost().gamma == FiniteHorizon(3).gamma == 1.0


@pytest.mark.parametrize("dead_ends", ["never", float("nan"), float("inf"), None, True])
def test_dead_ends_out_of_range(dead_ends):
    with pytest.raises(ValueError, match="dead_ends must be 'infinite' or the cost"):
        TotalCost(dead_ends=dead_ends)


def test_the_cost_of_dead_ends():
    assert TotalCost().cost_of_dead_ends is None
    assert TotalCost(dead_ends=Fraction(1, 2)).cost_of_dead_ends == 0.5


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"steps": 0}, ValueError, "steps must be at least 1, got 0"),
        ({"steps": 1.5}, TypeError, "steps must be an integer at least 1, got 1.5"),
        ({"terminal_costs": [[1.0]]}, ValueError, r"terminal_costs must have shape \(S,\)"),
        ({"terminal_costs": [0, np.inf]}, ValueError, r"terminal_costs\[1\] = inf must be finite"),
        ({"stages": [1, 2]}, TypeError, "stages must be a function of the step, got list"),
    ],
)
def test_a_horizon_out_of_range(arguments, error, words):
    with pytest.raises(error, match=words):
        FiniteHorizon(**{"steps": 3} | arguments)


def test_terminal_costs_are_the_objectives_own():
    given = np.array([1.0, 2.0])
    asked = FiniteHorizon(3, terminal_costs=given)
    given[0] = 7.0
    assert asked.terminal_costs.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        asked.terminal_costs[0] = 3.0


def test_solve_asks_for_something():
    with pytest.raises(TypeError, match="say what is asked"):
        planners.solve("no model is looked at")
