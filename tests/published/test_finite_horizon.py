"""Published answers of problems with a number of steps."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import planners
from aggmaze import TabularMDP
from tests.published.printed import assert_printed

HOLD, EXERCISE = 0, 1
OPTION_PRICES = 2.0 * math.exp(0.2 * math.sqrt(0.005)) ** np.arange(-100, 101)
OPTION_STRIKE = 2.1


def american_put() -> TabularMDP:
    """Return the model: a price of each state, and one where the option has been exercised."""
    step, volatility, rate = 0.005, 0.2, 0.05
    up = 0.5 + math.sqrt(step) * (rate - volatility**2 / 2) / (2 * volatility)
    last, exercised = len(OPTION_PRICES) - 1, len(OPTION_PRICES)

    def fn(state: int, action: int) -> list[tuple[float, int, float]] | None:
        if state == exercised:
            return None
        if action == EXERCISE:
            return [(1.0, exercised, OPTION_PRICES[state] - OPTION_STRIKE)]
        return [(up, min(state + 1, last), 0.0), (1.0 - up, max(state - 1, 0), 0.0)]

    return TabularMDP.from_function(exercised + 1, 2, fn)


def test_american_put() -> None:
    """A binomial American put, worth .148524.

    Miranda and Fackler, "Applied Computational Economics and Finance" (2002), section 7.6.4, as in
    QuantEcon's notebook ddp_ex_MF_7_6_4_py: a price of 2, a strike price of 2.1, half a year of 100
    periods, volatility .2, interest .05; after the last period the option is worth nothing.
    """
    model = american_put()
    gamma = math.exp(-0.05 * 0.005)
    result = planners.solve(model, objective=planners.FiniteHorizon(100, gamma))
    assert_printed(result, -0.148524, at=(0, 100), digits=6)

    # To hold in the last period is to let the option lapse.
    payoffs = np.append(np.minimum(OPTION_PRICES - OPTION_STRIKE, 0.0), 0.0)
    same = planners.solve(
        model, objective=planners.FiniteHorizon(99, gamma, terminal_costs=payoffs)
    )
    np.testing.assert_allclose(same.values, result.values[:100], rtol=0, atol=1e-12)


def test_american_put_is_exercised_below_a_price_that_rises() -> None:
    """The exercise boundary of the same option rises until the strike price is reached.

    Miranda and Fackler (2002), section 7.6.4.
    """
    result = planners.solve(
        american_put(), objective=planners.FiniteHorizon(100, math.exp(-0.05 * 0.005))
    )
    exercised = result.policy[:, :-1] == EXERCISE
    counts = exercised.sum(axis=1)
    assert all(row[:count].all() for row, count in zip(exercised, counts, strict=True))
    assert (np.diff(counts) >= 0).all()
    assert counts[-1] == np.count_nonzero(OPTION_PRICES < OPTION_STRIKE)


def inventory() -> TabularMDP:
    """Return the model: stocks of 0 to 3, orders up to the room that there is."""
    demands = [(0.25, 0), (0.5, 1), (0.25, 2)]
    capacity = 3

    def fn(stock: int, order: int) -> list[tuple[float, int, float, bool]] | None:
        level = stock + order
        if level > capacity:
            return None
        cost = (4 + 2 * order) * (order > 0) + level
        # Sales of what there is; what is asked for beyond it is lost.
        return [
            (share, max(level - demand, 0), cost - 8 * min(demand, level), False)
            for share, demand in demands
        ]

    return TabularMDP.from_function(capacity + 1, capacity + 1, fn)


def test_stochastic_inventory() -> None:
    """Three months of stochastic inventory: 67/16, 129/16, 194/16, 227/16 at stocks 0 to 3.

    Puterman, "Markov Decision Processes" (1994), the model of section 3.2.2, solved by backward
    induction in section 4.6.1: an order costs 4 and 2 a unit, a unit in stock 1, a unit sold pays
    8, and demand is 0, 1 or 2 with probability 1/4, 1/2, 1/4.
    """
    result = planners.solve(inventory(), objective=planners.FiniteHorizon(3))
    table = {
        0: [Fraction(67, 16), Fraction(129, 16), Fraction(194, 16), Fraction(227, 16)],
        1: [Fraction(2), Fraction(25, 4), Fraction(10), Fraction(21, 2)],
        2: [Fraction(0), Fraction(5), Fraction(6), Fraction(5)],
        3: [Fraction(0)] * 4,
    }
    for step, published in table.items():
        for stock, value in enumerate(published):
            assert_printed(result, float(-value), at=(step, stock))
    np.testing.assert_array_equal(result.policy, [[3, 0, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0]])


def forest() -> TabularMDP:
    """Return pymdptoolbox's ``forest()``: three ages; wait (0) or cut (1)."""
    fire, oldest = 0.1, 2
    rewards = [[0.0, 0.0], [0.0, 1.0], [4.0, 2.0]]

    def fn(age: int, action: int) -> list[tuple[float, int, float, bool]]:
        cost = -rewards[age][action]
        if action == 1:
            return [(1.0, 0, cost, False)]
        return [(fire, 0, cost, False), (1 - fire, min(age + 1, oldest), cost, False)]

    return TabularMDP.from_function(3, 2, fn)


def test_forest_management() -> None:
    """The table of pymdptoolbox's ``FiniteHorizon(P, R, 0.9, 3)`` for its forest.

    Chades, Chapron, Cros, Garcia and Sabbadin, "MDPtoolbox" (2014); pymdptoolbox's documentation of
    ``mdptoolbox.mdp.FiniteHorizon``, with values by age and step.
    """
    result = planners.solve(forest(), objective=planners.FiniteHorizon(3, 0.9))
    published = [[2.6973, 0.81, 0, 0], [5.9373, 3.24, 1, 0], [9.9373, 7.24, 4, 0]]
    for age, row in enumerate(published):
        for step, value in enumerate(row):
            assert_printed(result, -value, at=(step, age), digits=4)
    # Its policy table is [[0, 0, 0], [0, 0, 1], [0, 0, 0]], where at age 0 in the last year nothing
    # tells the two actions apart.
    np.testing.assert_array_equal(result.policy[:, 1:], [[0, 0], [0, 0], [1, 0]])
    np.testing.assert_array_equal(result.policy[:2, 0], [0, 0])


def racecar() -> TabularMDP:
    """Return the model: cool, warm and overheated; slow (0) or fast (1)."""
    cool, warm, overheated = range(3)

    def fn(state: int, action: int) -> list[tuple[float, int, float]] | None:
        if state == overheated:
            return None
        if state == cool:
            if action == 0:
                return [(1.0, cool, -1.0)]
            return [(0.5, cool, -2.0), (0.5, warm, -2.0)]
        if action == 0:
            return [(0.5, cool, -1.0), (0.5, warm, -1.0)]
        return [(1.0, overheated, 10.0)]

    return TabularMDP.from_function(3, 2, fn)


@pytest.mark.parametrize(("gamma", "after_two"), [(1.0, [3.5, 2.5, 0]), (0.5, [2.75, 1.75, 0])])
def test_racecar(gamma: float, after_two: list[float]) -> None:
    """V_1 = (2, 1, 0); V_2 = (3.5, 2.5, 0) undiscounted, (2.75, 1.75, 0) at a discount of .5.

    Klein and Abbeel, Berkeley CS188, "Markov Decision Processes" (lecture: "Example: Value
    Iteration", no discount; course notes, "Value Iteration": gamma = .5).
    """
    result = planners.solve(racecar(), objective=planners.FiniteHorizon(2, gamma))
    for step, published in enumerate((after_two, [2, 1, 0], [0, 0, 0])):
        for state, value in enumerate(published):
            assert_printed(result, -value, at=(step, state))
    np.testing.assert_array_equal(result.policy[:, :2], [[1, 0], [1, 0]])


def toymaker() -> TabularMDP:
    """Return the model: a toy in favour or not; go on as it is, or advertise and do research."""
    probabilities = np.array([[[0.5, 0.5], [0.8, 0.2]], [[0.4, 0.6], [0.7, 0.3]]])
    rewards = np.array([[[9.0, 3.0], [4.0, 4.0]], [[3.0, -7.0], [1.0, -19.0]]])
    return TabularMDP.from_matrices(probabilities, rewards=rewards, order="sas", terminal=[])


def test_toymaker_by_stages() -> None:
    """The toymaker's expected rewards of up to four weeks, 12.222 and 2.223.

    Howard, "Dynamic Programming and Markov Processes" (1960), table 3.2; table 2.1 has those of the
    policy that does nothing, for up to five weeks.
    """
    result = planners.solve(toymaker(), objective=planners.FiniteHorizon(4))
    best = [[12.222, 10.22, 8.2, 6.0, 0.0], [2.223, 0.23, -1.7, -3.0, 0.0]]
    for state, row in enumerate(best):
        for step, value in enumerate(row):
            assert_printed(result, -value, at=(step, state))
    np.testing.assert_array_equal(result.policy, [[1, 1], [1, 1], [1, 1], [0, 0]])

    nothing = planners.evaluate(toymaker(), [0, 0], objective=planners.FiniteHorizon(5))
    published = [
        [10.5555, 9.555, 8.55, 7.5, 6.0, 0.0],
        [0.5556, -0.444, -1.44, -2.4, -3.0, 0.0],
    ]
    np.testing.assert_allclose(-nothing.T, published, rtol=0, atol=1e-12)
