"""Two perishable products with substitution: 16.8 million states, solved without a table.

    python scripts/bench/perishable.py                               # m2/exp1, as published
    python scripts/bench/perishable.py --instance m3/exp1 --num-threads 2 --time-limit 3600
    python scripts/bench/perishable.py --gamma .99 --tol 1e-4        # discounted

The problem is that of Hendrix, Ortega, Haijema, Buisman and Garcia, "On computing optimal policies
in perishable inventory control using value iteration" (Computational and Mathematical Methods 1,
2019), in the instances of Farrington, Li, Wong and Utley, "Going faster to see further:
GPU-accelerated value iteration and simulation for perishable inventory control using JAX" (2023),
scenario B, whose settings and events these are:

- A state is the stock of each product by age, x_1 (fresh) to x_m (oldest), each from 0 to the
  largest order: (Q_A + 1)^m (Q_B + 1)^m states; for m3/exp1, with m = 3 and orders up to 15, these
  are 16^6 = 16,777,216.
- An action orders up to Q_A units of A and up to Q_B of B, 256 actions, at a cost of .5 a unit;
  they arrive fresh at the start of the next period.
- Demands are independent and Poisson, of mean 5 each.  Each customer whom B's stock leaves without
  a unit takes one of A with probability .5, if there is one left.  What is sold, oldest first, pays
  1 a unit.  An event is how many units of each product are sold, of which there are (m Q_A + 1)
  (m Q_B + 1) combinations at most, 2,116 for m3/exp1.
- Then stock ages, and what was oldest is lost.
- The objective is the mean profit per period, without a discount, by value iteration from V = 0
  (theirs starts at the expected revenue) until V_{n+1} - V_n is the same in all states to 1e-4.

That is what `planners.solve` answers here by default, as an `AverageCost` to within half of 1e-4;
with ``--gamma`` it is asked for discounted costs.

As an `EventMDP` a period has two stages, which is all of the speed: first B sells out or leaves
what it leaves, then A sells, from a point (stock of A, what is left of B, order).  The first sums
up at most 32 events, the second at most 31, in the place of 2,116 combinations.
"""

from __future__ import annotations

import argparse
import itertools
import math
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from _machine import machine_line
from numba import njit
from numpy.typing import NDArray
from scipy import stats

import planners
from aggmaze import EventMDP, EventStage

#: Units of demand that are told apart; beyond, the chance is below that of rounding.
MOST_DEMAND = 200
#: When value iteration ends, as published.
SPAN = 1e-4

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Instance:
    """An instance of the problem.

    Parameters
    ----------
    life : int
        Periods m after which stock is lost, at least 2.
    largest_a, largest_b : int
        Largest orders.
    mean_a, mean_b : float
        Mean demands.
    substitution : float
        Probability that who finds no B wants A.
    order_cost, price : float
        Of a unit of either product.
    """

    life: int = 2
    largest_a: int = 10
    largest_b: int = 10
    mean_a: float = 5.0
    mean_b: float = 5.0
    substitution: float = 0.5
    order_cost: float = 0.5
    price: float = 1.0


#: As published; the mean profit of the first two is 4.503 and 4.523 by the code of Hendrix et al.
INSTANCES = {
    "m2/exp1": Instance(),
    "m2/exp2": Instance(2, 14, 6, 7.0, 3.0),
    "m3/exp1": Instance(3, 15, 15),
    "m3/exp2": Instance(3, 21, 9, 7.0, 3.0),
    "m3/exp3": Instance(3, 13, 13),
    "m3/exp4": Instance(3, 20, 4, 7.0, 3.0),
}


@dataclass(frozen=True)
class Product:
    """The stock of one product: index ((x_2 n + x_3) n + ...) n + x_1, for n - 1 units at most.

    Parameters
    ----------
    total : ndarray of int, shape (N,)
        Units in stock.
    row : ndarray of int, shape (N,)
        ``x_m * (most_young + 1) + young``, young being the units that are not of the oldest age.
    left : ndarray of int, shape (N, most_young + 1)
        By how many of the young are sold (where that many are in stock): what is left of them, a
        period older, without the order that arrives.
    """

    total: Integers
    row: Integers
    left: Integers


def product(life: int, largest: int) -> Product:
    """Return the tables of a product."""
    num, most_young = largest + 1, (life - 1) * largest
    total, row, left = [], [], []
    for *older, fresh in itertools.product(range(num), repeat=life):
        *young, oldest = [fresh, *older]
        total.append(sum(young) + oldest)
        row.append(oldest * (most_young + 1) + sum(young))
        places = []
        for sold in range(most_young + 1):
            index, remaining = 0, list(young)
            for age in reversed(range(life - 1)):
                taken = min(sold, remaining[age])
                remaining[age] -= taken
                sold -= taken
            for units in remaining:
                index = index * num + units
            places.append(index)
        left.append(places)
    return Product(*(np.array(table, dtype=np.int64) for table in (total, row, left)))


def demands_for_a(case: Instance) -> list[Floats]:
    """Return the demand for A: its own, then with that for B where B sells out of 0, 1, ... units.

    The customers whom B is short of are those beyond the last unit.
    """
    units = np.arange(MOST_DEMAND)
    own = stats.poisson.pmf(units, case.mean_a)
    found = [own]
    for stock in range(case.life * case.largest_b + 1):
        short = stats.poisson.pmf(stock + units, case.mean_b)
        short /= short.sum()
        # Row x: how many of x customers want A.
        choices = stats.binom.pmf(units, units[:, np.newaxis], case.substitution)
        found.append(np.convolve(own, short @ choices)[:MOST_DEMAND])
    return found


def at_least(demand: Floats) -> Floats:
    """Return the probability of d or more for each d."""
    return np.append(np.cumsum(demand[::-1])[::-1], 0.0)


def expected_revenue(case: Instance, demands: Sequence[Floats]) -> Floats:
    """Return what a period pays on average, by the stocks of A and of B."""
    units = np.arange(MOST_DEMAND)
    demand_b = stats.poisson.pmf(units, case.mean_b)
    sells_out = at_least(demand_b)
    revenue = np.empty((case.life * case.largest_a + 1, case.life * case.largest_b + 1))
    for stock_a, stock_b in np.ndindex(*revenue.shape):
        mixed = (1 - sells_out[stock_b]) * demands[0] + sells_out[stock_b] * demands[1 + stock_b]
        sold = mixed @ np.minimum(units, stock_a) + demand_b @ np.minimum(units, stock_b)
        revenue[stock_a, stock_b] = case.price * sold
    return revenue


def sales(demand: Floats, oldest: int, young: int) -> Floats:
    """Return the probability that 0, 1, ..., ``young`` of the young units are sold."""
    chances = np.append(demand[oldest : oldest + young], at_least(demand)[oldest + young])
    if young == 0:
        return np.ones(1)
    chances[0] += math.fsum(demand[:oldest])
    return chances / math.fsum(chances)


def sales_of_b(demand: Floats, oldest: int, young: int, most_young: int) -> Floats:
    """Return the same for what leaves a unit, and in the last place that B sells out."""
    chances = np.zeros(most_young + 2)
    chances[:young] = demand[oldest : oldest + young]
    chances[0] += math.fsum(demand[:oldest])
    chances[-1] = at_least(demand)[oldest + young]
    return chances / math.fsum(chances)


def two_products(case: Instance) -> EventMDP:
    """Return the problem as a model of costs.

    A state is ``stock of A * N_B + stock of B``, an action ``order of A * (Q_B + 1) + order of B``.
    What is left of B after its sales is the index of what is left of its young units or, where it
    sells out, behind all of these, of how many units it has sold.
    """
    num_a, num_b = case.largest_a + 1, case.largest_b + 1
    young_a, young_b = ((case.life - 1) * q for q in (case.largest_a, case.largest_b))
    stock_a, stock_b = (product(case.life, q) for q in (case.largest_a, case.largest_b))
    demands = demands_for_a(case)
    revenue = expected_revenue(case, demands)
    rows_a = np.zeros((len(demands) * num_a * (young_a + 1), young_a + 1))
    pairs = itertools.product(demands, range(num_a), range(young_a + 1))
    for r, (demand, oldest, young) in enumerate(pairs):
        rows_a[r, : young + 1] = sales(demand, oldest, young)
    demand_b = stats.poisson.pmf(np.arange(MOST_DEMAND), case.mean_b)
    rows_b = np.array(
        [
            sales_of_b(demand_b, oldest, young, young_b)
            for oldest, young in itertools.product(range(num_b), range(young_b + 1))
        ]
    )
    # Compiled functions read these by name.
    total_a, row_a, left_a = stock_a.total, stock_a.row, stock_a.left
    total_b, row_b, left_b = stock_b.total, stock_b.row, stock_b.left
    states_b, rows_by_demand = len(total_b), num_a * (young_a + 1)
    aged_b, sold_out = num_b ** (case.life - 1), young_b + 1
    num_left = aged_b + case.life * case.largest_b + 1
    num_actions, order_cost = num_a * num_b, case.order_cost

    @njit(nogil=True)
    def cost(state, action):
        ordered = action // num_b + action % num_b
        return order_cost * ordered - revenue[total_a[state // states_b], total_b[state % states_b]]

    @njit(nogil=True)
    def row(state):
        return row_b[state % states_b]

    @njit(nogil=True)
    def after_b(state, action, event):
        b = state % states_b
        left = left_b[b, event] if event < sold_out else aged_b + total_b[b]
        return (state // states_b * num_left + left) * num_actions + action

    @njit(nogil=True)
    def row_of_point(point):
        left = point // num_actions % num_left
        demand = 0 if left < aged_b else 1 + left - aged_b
        return demand * rows_by_demand + row_a[point // num_actions // num_left]

    @njit(nogil=True)
    def after_a(point, event):
        action = point % num_actions
        left = point // num_actions % num_left
        aged = left_a[point // num_actions // num_left, event] * num_a + action // num_b
        return (aged * aged_b + (left if left < aged_b else 0)) * num_b + action % num_b

    sales_of_a = EventStage(
        len(total_a) * num_left * num_actions, after_a, rows_a, row=row_of_point, lanes=num_b
    )
    return EventMDP(
        len(total_a) * states_b,
        num_actions,
        after_b,
        rows_b,
        cost,
        row=row,
        stages=[sales_of_a],
    )


def main() -> None:
    """Solve an instance and print what it took."""
    parser = argparse.ArgumentParser(description="Two perishable products without a table.")
    parser.add_argument("--instance", choices=INSTANCES, default="m2/exp1")
    parser.add_argument("--gamma", type=float, help="discount; by default mean profit")
    parser.add_argument("--tol", type=float, default=1e-4, help="relative, with --gamma")
    parser.add_argument("--num-threads", type=int, default=1)
    parser.add_argument("--time-limit", type=float, default=3600.0, help="seconds")
    parser.add_argument("--quiet", action="store_true", help="no line for each sweep")
    arguments = parser.parse_args()
    print(machine_line())
    started = time.perf_counter()
    model = two_products(INSTANCES[arguments.instance])
    print(
        f"{arguments.instance}: {model}, made in {time.perf_counter() - started:.1f} s", flush=True
    )
    checked = time.perf_counter()
    model.validate()
    print(f"checked in {time.perf_counter() - checked:.1f} s", flush=True)
    threads, limit, loud = arguments.num_threads, arguments.time_limit, not arguments.quiet

    def tell(progress: planners.Progress) -> None:
        if loud:
            print(
                f"sweep {progress.iteration}: bound {progress.bound:.3g}, "
                f"{progress.seconds:.1f} s, {time.process_time():.1f} s of processors",
                flush=True,
            )

    average = arguments.gamma is None
    result = planners.solve(
        model,
        objective=planners.AverageCost() if average else planners.Discounted(arguments.gamma),
        atol=SPAN / 2 if average else None,
        tol=None if average else arguments.tol,
        num_threads=threads,
        time_limit=limit,
        callback=tell,
    )
    print(result, result.message)
    if average:
        low, high = -result.upper.max(), -result.lower.min()
        print(f"mean profit in [{low:.9g}, {high:.9g}] after {result.num_sweeps} sweeps")
    else:
        print(
            f"max|V| {np.abs(result.values).max():.6g}, bound {result.bound:.3g}, policy bound "
            f"{result.policy_bound:.3g}, sweeps {result.num_sweeps} and "
            f"{result.num_certificate_sweeps} to certify"
        )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{time.perf_counter() - started:.1f} s in all, {time.process_time():.1f} s of "
        f"{threads} processors, {memory:.2f} GB"
    )


if __name__ == "__main__":
    main()
