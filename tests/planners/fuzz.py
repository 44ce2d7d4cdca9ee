"""Random small models and solves of them, and what must hold of every one, by exact fractions.

`scripts/check_truth.py` looks at as many as one likes, the test suite at a few hundred.  Each is
made from a seed and a number, so that what was found once is found again.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

import planners
from aggmaze import MoveMDP, TabularMDP
from planners.kernels import compiling
from planners.solve import DEFAULT_TOL
from tests.planners.reference import (
    Array,
    Exact,
    Model,
    exact_error,
    methods_for,
    within,
)

#: An iteration may take so many seconds beyond the limit.
OVERRUN = 1.0
#: What a solve may be refused for; anything else that is raised is a fault.
REFUSALS = (
    "below what float64 can certify",
    "float64 can certify nothing",
    "too much for float64",
    "tells their bins apart",
)
# Methods whose way to a tolerance may be as long as they like: they are not exact.
_ENDLESS = ("adaptive_aggregation", "fixed_aggregation")


@dataclass(frozen=True)
class Case:
    """A model, a discount, and a call of `planners.solve`."""

    model: Model
    gamma: float
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        m = self.model
        with np.printoptions(floatmode="unique", threshold=10**6):
            if isinstance(m, MoveMDP):
                made = f"MoveMDP({m.successors.tolist()}, {m.move_costs.tolist()}, p={m.p!r})"
            else:
                matrix = m.transitions
                parts = (matrix.data, matrix.indices, matrix.indptr)
                made = (
                    f"TabularMDP(sp.csr_array(({', '.join(str(x.tolist()) for x in parts)}), "
                    f"shape={matrix.shape}), {m.costs.tolist()}, "
                    f"action_mask={m.action_mask.tolist()}, terminal={m.terminal.tolist()})"
                )
        options = "".join(
            f", {k}={v.tolist() if isinstance(v, np.ndarray) else v!r}"
            for k, v in self.options.items()
        )
        return f"planners.solve({made}, gamma={self.gamma!r}{options})"


def draw_case(seed: int, number: int, time_limit: float) -> tuple[Case, np.random.Generator]:
    """Return case ``number`` of a seed, and the generator that goes on drawing."""
    rng = np.random.default_rng([seed, number])
    model = _moves(rng) if rng.random() < 0.5 else _tabular(rng)
    gamma = _gamma(rng)
    return Case(model, gamma, _options(rng, model, gamma, time_limit)), rng


# ---------------------------------------------------------------------------------------------
# Drawing.


def _gamma(rng: np.random.Generator) -> float:
    kind = rng.random()
    if kind < 0.4:
        return float(rng.choice([0.0, 0.5, 0.9, 0.95, 0.99, 0.999]))
    if kind < 0.5:
        return float(rng.random())
    return 1.0 - float(10.0 ** rng.uniform(-12, -1))


def _size(rng: np.random.Generator) -> float:
    """Return the unit of the costs: mostly 1, seldom enormous or tiny."""
    kind = rng.random()
    if kind < 0.5:
        return 1.0
    if kind < 0.95:
        return float(10.0 ** rng.uniform(-12, 12))
    return float(rng.choice([1e-100, 1e100, 1e150, 1e-160]))


def _costs(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    kind = rng.integers(6)
    if kind == 0:
        costs = rng.choice([0.0, 1.0, -1.0, 0.5], shape)
    elif kind == 1:
        costs = rng.choice([1.0, 0.5, 2.0, 4.0], shape)
    elif kind == 2:
        costs = rng.random(shape)
    elif kind == 3:
        costs = np.ones(shape)
    else:
        costs = rng.normal(size=shape)
    if rng.random() < 0.2:  # of sizes that have nothing to do with one another
        costs = costs * 10.0 ** rng.integers(-12, 13, shape)
    return np.asarray(costs * _size(rng))


def _probability(rng: np.random.Generator) -> float:
    kind = rng.random()
    if kind < 0.3:
        return 1.0
    if kind < 0.7:
        return float(rng.choice([0.95, 0.9, 0.5, 1 / 3, 0.25, 0.1]))
    if kind < 0.85:
        return float(10.0 ** rng.uniform(-17, 0))
    return 1.0 - float(10.0 ** rng.uniform(-16, -1))


def _moves(rng: np.random.Generator) -> MoveMDP:
    shape = (int(rng.integers(1, 7)), int(rng.integers(1, 5)))
    successors = rng.integers(shape[0], size=shape)
    costs = _costs(rng, shape)
    costs[rng.random(shape) < rng.choice([0.0, 0.2, 0.5])] = np.inf
    if rng.random() < 0.5:
        costs[rng.integers(shape[0])] = np.inf
    return MoveMDP(successors, costs, p=_probability(rng)).validate()


def _row(rng: np.random.Generator, num_states: int) -> tuple[Array, Array]:
    """Return successors, maybe the same ones several times, and probabilities."""
    following = rng.integers(num_states, size=int(rng.integers(1, 5)))
    kind = rng.random()
    if kind < 0.3:
        shares = np.ones(len(following))
    elif kind < 0.6:
        shares = rng.random(len(following))
    elif kind < 0.8:
        shares = 10.0 ** rng.uniform(-17, 0, len(following))
    else:
        shares = rng.integers(1, 4, len(following)).astype(float)
    return following, shares / shares.sum()


def _tabular(rng: np.random.Generator) -> TabularMDP:
    num_states, num_actions = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    costs = _costs(rng, (num_states, num_actions))
    mask = rng.random(costs.shape) < rng.choice([1.0, 0.7])
    mask[:, 0] |= ~mask.any(axis=1)
    terminal = rng.random(num_states) < rng.choice([0.0, 0.3])
    costs[terminal] = 0.0
    rows = [
        (np.array([s]), np.ones(1)) if terminal[s] else _row(rng, num_states)
        for s, _ in itertools.product(range(num_states), range(num_actions))
    ]
    matrix = sp.csr_array(
        (
            np.concatenate([p for _, p in rows]),
            np.concatenate([t for t, _ in rows]),
            np.concatenate([[0], np.cumsum([len(t) for t, _ in rows])]),
        ),
        shape=(num_states * num_actions, num_states),
    )
    return TabularMDP(matrix, costs, action_mask=mask, terminal=terminal).validate()


def _options(
    rng: np.random.Generator, model: Model, gamma: float, time_limit: float
) -> dict[str, Any]:
    method = str(rng.choice(["auto", "fixed_aggregation", *methods_for(model)]))
    options: dict[str, Any] = {"method": method, "time_limit": time_limit}
    size = _largest_cost(model)
    if method == "fixed_aggregation":
        options["labels"] = rng.integers(3, size=model.num_states)
        options["step_size"] = rng.choice([1.0, 0.5]).item()
    elif method == "modified_policy_iteration" and rng.random() < 0.3:
        options["inner_sweeps"] = int(rng.integers(0, 6))
    elif method == "forest_policy_iteration" and rng.random() < 0.3:
        options["start"] = "sweeps"
        options["num_sweeps"] = int(rng.integers(0, 4))
    elif method == "multilevel_policy_iteration" and rng.random() < 0.3:
        options["start"] = str(rng.choice(["coarse", "given"]))
        options["num_sweeps"] = int(rng.integers(1, 5))
    elif method == "basin_aggregation" and rng.random() < 0.3:
        options["num_retraced"] = int(rng.integers(0, 4))
    elif method == "adaptive_aggregation":
        widths = [0.1, 1.0, 1 / (1 - gamma)]
        options["epsilon"] = float(rng.choice(widths)) * size or 1.0
        if rng.random() < 0.5:
            options["epsilon"] = "shrink"
        options["num_global"] = int(rng.integers(1, 3))
        options["step_index"] = str(rng.choice(["total", "phase"]))
    budget = rng.random()
    if budget < 0.35:
        options["tol"] = float(10.0 ** rng.uniform(-12, -0.3))
    elif budget < 0.45:
        # Of the size of what an iteration may change.
        options["atol"] = float(rng.choice([0.0, 1e-12, 1e-6, 1.0])) * size / (1 - gamma)
        if rng.random() < 0.5:
            options["tol"] = float(10.0 ** rng.uniform(-9, -0.3))
    if 0.35 <= budget < 0.6 or rng.random() < 0.1:
        options["num_iterations"] = int(rng.choice([1, 2, 3, 10, 40, 200]))
    elif budget < 0.7 and rng.random() < 0.5:
        options["num_updates"] = int(rng.integers(1, 200))
    if rng.random() < 0.35:
        V0 = rng.normal(size=model.num_states) * rng.choice([1.0, 1e-15, 1e9, 1 / (1 - gamma)])
        options["V0"] = np.full_like(V0, V0[0]) if rng.random() < 0.3 else V0
    options["certify"] = "every" if rng.random() < 0.1 else "final"
    return options


def _largest_cost(model: Model) -> float:
    costs = model.move_costs if isinstance(model, MoveMDP) else model.costs
    return float(np.abs(costs).max(where=np.isfinite(costs), initial=0.0))


# ---------------------------------------------------------------------------------------------
# What must hold.


def faults(case: Case, rng: np.random.Generator) -> Iterator[str]:
    """Solve, evaluate, and tell whatever does not hold."""
    exact = Exact(case.model, case.gamma)
    V = exact.optimum()
    started = time.perf_counter()
    try:
        result, compiled = compiling.timed(
            lambda: planners.solve(case.model, gamma=case.gamma, **case.options)
        )
    except ValueError as error:
        if not any(known in str(error) for known in REFUSALS):
            yield f"refused: {error}"
        return
    seconds = time.perf_counter() - started - compiled
    yield from _of_result(case, result, exact, V)
    limit = case.options["time_limit"]
    if seconds > limit + OVERRUN:
        yield f"{seconds:.1f} s at a time limit of {limit:g} s"
    if f"time limit of {limit:g} s reached" in result.message and result.method not in _ENDLESS:
        yield f"does not end: bound {result.bound:.3g} after {result.num_iterations} iterations"
    weights = rng.random(case.model.action_mask.shape) * case.model.action_mask
    for policy in (result.policy, weights / weights.sum(axis=1, keepdims=True)):
        yield from _of_evaluation(case, policy)


def _of_result(
    case: Case, result: planners.SolveResult, exact: Exact, V: list[Fraction]
) -> Iterator[str]:
    """Tell what is false of a result."""
    error = exact_error(result.values, V) if np.isfinite(result.values).all() else None
    if error is None:
        if result.bound < math.inf or result.success:
            yield f"no numbers with a bound of {result.bound!r}, {result.status}"
    elif not within(error, result.bound):
        yield f"error {float(error)!r} > bound {result.bound!r}"
    masked = ~case.model.action_mask[np.arange(len(result.policy)), result.policy]
    if (masked & ~case.model.terminal).any():
        yield f"policy {result.policy.tolist()} takes masked actions"
        return
    achieved = exact.value([int(a) for a in result.policy])
    loss = max(x - y for x, y in zip(achieved, V, strict=True))
    if not within(loss, result.policy_bound):
        yield f"loss {float(loss)!r} > policy bound {result.policy_bound!r}"
    yield from _of_status(case, result)


def _of_status(case: Case, result: planners.SolveResult) -> Iterator[str]:
    """Tell where the status contradicts the bound."""
    options = case.options
    tol, atol = options.get("tol"), options.get("atol")
    by_default = not options.keys() & {"tol", "atol", "num_iterations", "num_updates"}
    told = f"{result.status} ({result.message}), bound {result.bound!r}"
    if by_default and (result.method not in _ENDLESS or options.get("epsilon") == "shrink"):
        tol = DEFAULT_TOL
    if tol is None and atol is None:
        if result.status != ("completed" if result.bound < math.inf else "stopped_short"):
            yield told
        return
    target = max(atol or 0.0, (tol or 0.0) * float(np.abs(result.values).max()))
    met = result.bound <= target
    lowered = by_default and "default tol" in result.message
    if result.status != ("converged" if met or lowered else "stopped_short"):
        yield f"{told}, target {target!r}"


def _of_evaluation(case: Case, policy: Array) -> Iterator[str]:
    """Tell where `planners.evaluate` is off by more than some roundings of its terms."""
    exact = Exact(case.model, case.gamma, normalized=True)
    try:
        found = planners.evaluate(case.model, policy, case.gamma)
    except FloatingPointError as error:
        yield f"evaluate: {error}"
        return
    V, sizes = exact.value_and_sizes(policy)
    for s, (v, size) in enumerate(zip(V, sizes, strict=True)):
        off = abs(Fraction(float(found[s])) - v)
        if off > Fraction(200, 2**53) * size + Fraction(1, 10**300):
            yield (
                f"evaluate: {float(found[s])!r} in state {s} for {float(v)!r}, off by "
                f"{float(off / size):.2g} of its terms, policy {np.asarray(policy).tolist()}"
            )
            return


def look(seed: int, first: int, count: int, time_limit: float) -> list[tuple[int, str, list[str]]]:
    """Look at cases of a seed; return the number of each that has faults, its call, and these."""
    found = []
    for number in range(first, first + count):
        case, rng = draw_case(seed, number, time_limit)
        told = list(faults(case, rng))
        if told:
            found.append((number, str(case), told))
    return found
