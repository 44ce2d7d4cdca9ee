"""Two perishable products: the model of the benchmark, played by hand, and published results."""

from __future__ import annotations

import importlib
import itertools
import math
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import planners
from planners import AverageCost
from planners.event_engine import EventEngine

BENCH = Path(__file__).resolve().parent.parent / "scripts" / "bench"


def load(name: str) -> ModuleType:
    sys.path.insert(0, str(BENCH))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(BENCH))


PERISHABLE = load("perishable")
Stock = tuple[int, ...]


def sell(stock: Stock, demand: int) -> tuple[int, Stock]:
    """Sell from the last, oldest age on; return what was sold and what is left."""
    left, sold = list(stock), 0
    for age in reversed(range(len(left))):
        taken = min(left[age], demand - sold)
        left[age] -= taken
        sold += taken
    return sold, tuple(left)


def day(a: Stock, b: Stock, d_a: int, d_b: int, switching: int) -> tuple[int, Stock, Stock]:
    """Return units sold and the stocks at the end of a day, those of the oldest age lost."""
    sold_b, left_b = sell(b, d_b)
    sold_a, left_a = sell(a, d_a + switching)
    return sold_a + sold_b, left_a[:-1], left_b[:-1]


def state_of(a: Stock, b: Stock, case: object) -> int:
    """Return the index: of each stock x_2, ..., x_m, x_1 as digits, of A before B."""
    index = 0
    for stock, largest in ((a, case.largest_a), (b, case.largest_b)):  # type: ignore[attr-defined]
        for units in (*stock[1:], stock[0]):
            index = index * (largest + 1) + units
    return index


def poisson(mean: float, count: int) -> float:
    return math.exp(-mean) * mean**count / math.factorial(count)


@pytest.mark.parametrize(
    "settings",
    [
        (2, 1, 2, 0.7, 1.1, 0.5, 0.5, 1.0),
        (2, 3, 1, 1.2, 0.4, 0.3, 0.25, 2.0),
        (3, 1, 1, 0.8, 0.9, 0.6, 0.5, 1.0),
        (2, 2, 2, 1.0, 1.0, 1.0, 0.5, 1.0),
    ],
)
def test_the_model_is_the_problem(settings: tuple[float, ...]) -> None:
    case = PERISHABLE.Instance(*settings)
    model = PERISHABLE.two_products(case)
    table = model.to_tabular()
    matrix, most = table.transitions.toarray(), 25
    stocks_a = list(itertools.product(range(case.largest_a + 1), repeat=case.life))
    stocks_b = list(itertools.product(range(case.largest_b + 1), repeat=case.life))
    assert model.num_states == len(stocks_a) * len(stocks_b)
    for a, b in itertools.product(stocks_a, stocks_b):
        chances: dict[tuple[Stock, Stock], float] = defaultdict(float)
        revenue = 0.0
        for d_a, d_b in itertools.product(range(most), repeat=2):
            short = max(0, d_b - sum(b))
            for switching in range(short + 1):
                chance = poisson(case.mean_a, d_a) * poisson(case.mean_b, d_b)
                chance *= math.comb(short, switching)
                chance *= case.substitution**switching
                chance *= (1 - case.substitution) ** (short - switching)
                if chance > 0:
                    sold, left_a, left_b = day(a, b, d_a, d_b, switching)
                    chances[left_a, left_b] += chance
                    revenue += chance * case.price * sold
        state = state_of(a, b, case)
        for order_a, order_b in itertools.product(
            range(case.largest_a + 1), range(case.largest_b + 1)
        ):
            action = order_a * (case.largest_b + 1) + order_b
            expected = np.zeros(model.num_states)
            for (left_a, left_b), chance in chances.items():
                expected[state_of((order_a, *left_a), (order_b, *left_b), case)] += chance
            row = matrix[state * model.num_actions + action]
            np.testing.assert_allclose(row, expected, rtol=0, atol=1e-12)
            price = case.order_cost * (order_a + order_b) - revenue
            assert table.costs[state, action] == pytest.approx(price, abs=1e-12)


@pytest.mark.parametrize(("name", "profit"), [("m2/exp1", 4.503), ("m2/exp2", 4.523)])
def test_mean_profits_are_those_published(name: str, profit: float) -> None:
    model = PERISHABLE.two_products(PERISHABLE.INSTANCES[name])
    found = planners.solve(model, objective=AverageCost(), atol=PERISHABLE.SPAN / 2).require()
    low, high = -found.upper.max(), -found.lower.min()
    assert high - low <= PERISHABLE.SPAN
    assert (round(low, 3), round(high, 3)) == (profit, profit)


def test_bounds_of_the_mean_cost_hold() -> None:
    # The gain of the best policy is (1 - gamma) V* in the limit; both are within the bounds.
    model = PERISHABLE.two_products(PERISHABLE.Instance(2, 2, 2, 1.0, 1.0))
    found = planners.solve(model, objective=AverageCost(), atol=PERISHABLE.SPAN / 2).require()
    gamma = 1 - 1e-7
    result = planners.solve(model, gamma=gamma, tol=1e-7).require()
    gains = (1 - gamma) * np.array([result.values.min(), result.values.max()])
    slack = (1 - gamma) * (result.bound + np.ptp(result.values)) + 1e-12
    assert found.lower.min() - slack <= gains[0] <= gains[1] <= found.upper.max() + slack


def test_the_published_size_is_that_of_the_instance() -> None:
    case = PERISHABLE.INSTANCES["m3/exp1"]
    assert ((case.largest_a + 1) * (case.largest_b + 1)) ** case.life == 16_777_216
    small = PERISHABLE.two_products(PERISHABLE.Instance(3, 1, 1, 0.5, 0.5))
    table = small.to_tabular()
    V, image = np.linspace(-3, 5, small.num_states), np.empty(small.num_states)
    EventEngine(small, 1.0, 1).sweep(V, image)
    expected = (table.costs.reshape(-1) + table.transitions @ V).reshape(table.costs.shape)
    np.testing.assert_allclose(image, expected.min(axis=1), rtol=0, atol=1e-12)
