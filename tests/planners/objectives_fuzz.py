"""Random small models, and what must hold of their answers to undiscounted questions.

`scripts/check_truth.py --objective` looks at as many as one likes, the test suite at a few hundred.
Each is made from a seed and a number, so that what was found once is found again.
"""

from __future__ import annotations

import time
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

import planners
from aggmaze import MoveMDP, TabularMDP
from planners import AverageCost, FiniteHorizon, TotalCost
from planners.kernels import compiling
from tests.planners import exact

OBJECTIVES = ("total", "average", "horizon")
# A solve that takes longer hangs.
MOST_SECONDS = 20.0
#: What a solve may be refused for, by the objective; anything else that is raised is a fault.
REFUSALS = {
    "total": ("no terminal state", "no least total cost", "too much for float64"),
    "average": ("too much for float64",),
    "horizon": (),
}


def draw_model(rng: np.random.Generator) -> TabularMDP | MoveMDP:
    """Return a small model of the nastier kind."""
    kind = rng.random()
    if kind < 0.2:
        return _moves(rng)
    if kind < 0.35:
        return _rings(rng)
    n, m = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    if n == 4 and m == 3 and rng.random() < 0.7:
        m = 2
    if rng.random() < 0.1:
        n, m = 5, 2
    costs = _costs(rng, (n, m))
    data: list[float] = []
    columns: list[int] = []
    starts = [0]
    locality, loose = rng.random() < 0.4, rng.random() < 0.15
    for row in range(n * m):
        count = int(rng.choice([1, 1, 2, 2, 3]))
        targets = rng.integers(n, size=count)
        if locality:
            targets = (row // m + rng.integers(-1, 2, size=count)) % n
        weights = rng.integers(1, 4, size=count).astype(float)
        kind = rng.random()
        if kind < 0.05:
            weights[0] = 10.0 ** -int(rng.integers(3, 10))
        elif kind < 0.2:
            weights = rng.random(count) + 1e-3
        shares = weights / weights.sum()
        if loose:  # rows that sum to 1 only about
            shares = shares * (1 + rng.uniform(-9e-10, 9e-10))
        data += shares.tolist()
        columns += targets.tolist()
        if rng.random() < 0.1:  # what has no chance
            data.append(0.0)
            columns.append(int(rng.integers(n)))
        starts.append(len(data))
    matrix = sp.csr_array((np.array(data), np.array(columns), np.array(starts)), shape=(n * m, n))
    mask = rng.random((n, m)) < 0.85
    mask[np.arange(n), rng.integers(m, size=n)] = True
    terminal = np.zeros(n, dtype=bool)
    for s in range(n):
        if rng.random() < 0.25:
            terminal[s] = True
            for row in range(s * m, (s + 1) * m):
                entries = slice(starts[row], starts[row + 1])
                matrix.indices[entries] = s
            costs[s] = 0.0
    if rng.random() < 0.8 and not terminal.any() and n > 1:
        terminal[0] = True
        matrix.indices[: starts[m]] = 0
        costs[0] = 0.0
    return TabularMDP(matrix, costs, action_mask=mask, terminal=terminal).validate()


def _rings(rng: np.random.Generator) -> TabularMDP:
    """Return one or two circles of states, some of which may be left, at costs that may cancel."""
    n, m = int(rng.integers(1, 6)), int(rng.integers(1, 3))
    parts = [n] if n < 3 or rng.random() < 0.5 else [2, n - 2]
    ways = np.concatenate([sum(parts[:i]) + (np.arange(k) + 1) % k for i, k in enumerate(parts)])
    chances = rng.choice([0.0, 0.0, 0.0, 1e-9, 1e-3, 0.5, 1.0], (n, m))
    others = rng.integers(n, size=(n, m))
    P = np.zeros((n, m, n))
    for s, a in np.ndindex(n, m):
        P[s, a, ways[s]] += 1 - chances[s, a]
        P[s, a, others[s, a]] += chances[s, a]
    costs = np.zeros((n, m))
    potential = rng.choice([0.0, 1.0, 0.1, 0.5, 3.0], n)
    costs += (potential[ways] - potential)[:, np.newaxis]
    costs += rng.choice([0.0, 0.0, 0.0, 1e-12, 1.0, -1e-12, 0.3], (n, m)) * (rng.random() < 0.7)
    terminal = rng.random(n) < 0.25
    if rng.random() < 0.7:
        terminal[rng.integers(n)] = True
    for s in np.flatnonzero(terminal):
        P[s], costs[s] = np.eye(n)[s], 0.0
    mask = rng.random((n, m)) < 0.85
    mask[np.arange(n), rng.integers(m, size=n)] = True
    return TabularMDP.from_matrices(P, costs=costs, action_mask=mask, terminal=terminal).validate()


def _moves(rng: np.random.Generator) -> MoveMDP:
    n, m = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    costs = _costs(rng, (n, m))
    costs[rng.random((n, m)) < 0.25] = np.inf
    if rng.random() < 0.9:
        costs[int(rng.integers(n))] = np.inf
    p = float(rng.choice([1.0, 1.0, 0.9, 0.5, 0.2]))
    return MoveMDP(rng.integers(n, size=(n, m)), costs, p=p).validate()


def _costs(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray[Any, Any]:
    kind = rng.integers(8)
    if kind == 0:
        costs = rng.choice([0.0, 0.0, 0.0, 1.0, -1.0], shape)
    elif kind == 1:
        costs = rng.choice([1.0, -1.0], shape)
    elif kind == 2:
        costs = rng.random(shape)
    elif kind == 3:
        costs = np.ones(shape)
    elif kind == 4:
        costs = np.zeros(shape)
    elif kind == 5:
        costs = rng.choice([0.0, 0.1, -0.1, 0.3, 0.5], shape)
    elif kind == 6:
        costs = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, shape)
    else:
        costs = rng.integers(0, 3, shape).astype(float)
    if rng.random() < 0.1:
        costs = costs * float(rng.choice([1e-100, 1e-9, 1e9, 1e100]))
    return np.asarray(costs)


def look(seed: int, first: int, count: int, objective: str) -> list[Any]:
    """Return number, call and what is wrong of the models where something is."""
    found = []
    for number in range(first, first + count):
        rng = np.random.default_rng([seed, number, OBJECTIVES.index(objective)])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = draw_model(rng)
            asked, told = check(model, objective, rng)
        told = [words for words in told if not words.startswith("refused")]
        if told:
            found.append((number, f"planners.solve({written(model)}, objective={asked!r})", told))
    return found


def refusal(seed: int, number: int, objective: str) -> str:
    """Return why a case is refused, "" where it is not."""
    rng = np.random.default_rng([seed, number, OBJECTIVES.index(objective)])
    _, told = check(draw_model(rng), objective, rng)
    return next((words for words in told if words.startswith("refused")), "")


def written(model: TabularMDP | MoveMDP) -> str:
    """Return what makes the model again."""
    if isinstance(model, MoveMDP):
        return f"MoveMDP({model.successors.tolist()}, {model.move_costs.tolist()}, p={model.p!r})"
    matrix = model.transitions
    parts = (matrix.data, matrix.indices, matrix.indptr)
    return (
        f"TabularMDP(sp.csr_array(({', '.join(str(x.tolist()) for x in parts)}), "
        f"shape={matrix.shape}), {model.costs.tolist()}, action_mask={model.action_mask.tolist()}, "
        f"terminal={model.terminal.tolist()})"
    )


def check(
    model: TabularMDP | MoveMDP, objective: str, rng: np.random.Generator
) -> tuple[Any, list[str]]:
    """Return the objective that was drawn, and what does not hold, or why it was refused."""
    asked: Any
    options: dict[str, Any] = {}
    if objective == "total":
        asked = TotalCost() if rng.random() < 0.7 else TotalCost(float(rng.choice([0, 3, -1, 7.5])))
        if rng.random() < 0.3:
            options["method"] = str(rng.choice(["policy_iteration", "value_iteration"]))
    elif objective == "average":
        asked = AverageCost()
        if rng.random() < 0.3:
            options["method"] = str(rng.choice(["policy_iteration", "value_iteration"]))
    else:
        terminal_costs = rng.choice([0.0, 1.0, -2.5, 0.1], model.num_states)
        terminal_costs[model.terminal] = 0.0
        steps, discount = int(rng.integers(1, 9)), float(rng.choice([1.0, 0.9, 0.0]))
        stages = _stages(model, steps, rng) if rng.random() < 0.3 else None
        asked = FiniteHorizon(steps, discount, terminal_costs, stages)
    if "method" in options and options["method"] == "value_iteration":
        options["time_limit"] = 0.3
    started = time.monotonic() - compiling.seconds()
    try:
        result = planners.solve(model, objective=asked, **options)
    except ValueError as error:
        words = str(error)
        if not any(reason in words for reason in REFUSALS[objective]):
            return asked, [f"raised ValueError: {words}"]
        return asked, _refused(model, asked, words)
    except Exception as error:
        return asked, [f"raised {type(error).__name__}: {error}"]
    told = []
    seconds = time.monotonic() - compiling.seconds() - started
    if seconds > MOST_SECONDS:
        told.append(f"took {seconds:.0f} s")
    told += {"total": _total, "average": _average, "horizon": _horizon}[objective](
        model, asked, result, bool(options)
    )
    return asked, told + evaluated(model, asked, rng)


def evaluated(model: Any, asked: Any, rng: np.random.Generator) -> list[str]:
    """Return what is wrong with what `planners.evaluate` says of a policy drawn at random."""
    n, m = model.num_states, model.num_actions
    mixed = bool(rng.random() < 0.5)
    weights = np.zeros((n, m))
    for s, of in enumerate(exact.rows_of(model).actions):
        there = list(of) or [0]
        if isinstance(model, TabularMDP) and model.terminal[s]:
            there = [int(np.flatnonzero(model.action_mask[s])[0])]
        share = float(rng.choice([1.0, 0.5, 0.125])) if mixed else 1.0
        weights[s, there[int(rng.integers(len(there)))]] += share
        weights[s, there[int(rng.integers(len(there)))]] += 1 - share
    policy = weights if mixed else weights.argmax(axis=1)
    try:
        found = np.atleast_2d(planners.evaluate(model, policy, objective=asked))
    except Exception as error:
        return [f"evaluate of {policy.tolist()} raised {type(error).__name__}: {error}"]
    truth, scales = (
        exact_policy(model, asked, weights),
        exact_policy(model, asked, weights, size=True),
    )
    told = []
    for t, (row, right, scale) in enumerate(zip(found, truth, scales, strict=True)):
        for s in range(n):
            if right[s] is None:
                wrong = not np.isposinf(row[s])
            else:
                # Rows that miss 1 may be mixed before they are divided or after, or not divided.
                allowed = Fraction(
                    1e-8 if mixed or isinstance(asked, FiniteHorizon) else 1e-11
                ) * scale[s] + Fraction(1e-300)
                wrong = not np.isfinite(row[s]) or abs(Fraction(float(row[s])) - right[s]) > allowed
            if wrong:
                right_value = "infinite" if right[s] is None else repr(float(right[s]))
                told.append(
                    f"evaluate of {policy.tolist()}: {row[s]!r} instead of {right_value} "
                    f"at step {t}, state {s}"
                )
    return told


def exact_policy(model: Any, asked: Any, weights: Any, size: bool = False) -> list[Any]:
    """Return what a policy costs, or what it would if all costs were positive."""
    if isinstance(asked, FiniteHorizon):
        left = [abs(Fraction(c)) if size else Fraction(c) for c in np.asarray(asked.terminal_costs)]
        all_left = [left]
        for one in reversed(models_of(model, asked)):
            mixture = [
                mix(of, w, size) for of, w in zip(exact.rows_of(one).actions, weights, strict=True)
            ]
            left = [
                Fraction(0)
                if row is None
                else row[1] + Fraction(asked.gamma) * sum(p * left[t] for t, p in row[0].items())
                for row in mixture
            ]
            all_left.insert(0, left)
        return all_left
    rows = exact.rows_of(model)
    mixture = [mix(of, w, size) for of, w in zip(rows.actions, weights, strict=True)]
    if isinstance(asked, AverageCost):
        return [exact.gains_of_chain(mixture)]
    cost = asked.cost_of_dead_ends
    only = exact.Rows([{} if row is None else {0: row} for row in mixture], rows.terminal)
    return [exact_total(rows, only, abs(cost) if size and cost is not None else cost)]


def mix(of: Any, weights: Any, size: bool) -> Any:
    """Return the row of a mixture of actions, None in terminal states."""
    if not of:
        return None
    row: dict[int, Fraction] = {}
    cost = Fraction(0)
    for a, (chances, price) in of.items():
        share = Fraction(float(weights[a]))
        if share:
            cost += share * (abs(price) if size else price)
            for t, p in chances.items():
                row[t] = row.get(t, Fraction(0)) + share * p
    return row, cost


def _stages(model: Any, steps: int, rng: np.random.Generator) -> Any:
    """Return what says what each step costs, as an array or as a model."""
    shape = model.num_states, model.num_actions
    priced = [
        np.where(model.terminal[:, np.newaxis], 0.0, _costs(rng, shape)) for _ in range(steps)
    ]
    if rng.random() < 0.5:
        return priced.__getitem__
    made = [with_costs(model, costs) for costs in priced]
    return made.__getitem__


def with_costs(model: Any, costs: Any) -> Any:
    """Return the model at other costs of its actions or moves."""
    if isinstance(model, MoveMDP):
        there = np.isfinite(model.move_costs)
        return MoveMDP(model.successors, np.where(there, costs, np.inf), p=model.p).validate()
    return TabularMDP(
        model.transitions, costs, action_mask=model.action_mask, terminal=model.terminal
    ).validate()


def models_of(model: Any, asked: FiniteHorizon) -> list[Any]:
    """Return the model of each step."""
    if asked.stages is None:
        return [model] * asked.steps
    said = [asked.stages(t) for t in range(asked.steps)]
    return [with_costs(model, one) if isinstance(one, np.ndarray) else one for one in said]


def _refused(model: TabularMDP | MoveMDP, asked: Any, words: str) -> list[str]:
    """Return whether a refusal of total costs has a reason."""
    if "too much for float64" in words:
        return [f"refused: {words[:60]}"]
    if isinstance(asked, AverageCost):
        return [f"refused without a reason: {words}"]
    if "no terminal state" in words:
        return ["refused: no end"] if not model.terminal.any() else [f"there is an end: {words}"]
    truth = exact.total_costs(model, asked.cost_of_dead_ends)
    if "no least total cost" in words:
        return ["refused: gains"] if truth.gains else [f"wrong refusal: {words}"]
    return ["refused: within rounding"] if truth.near else [f"needless refusal: {words}"]


def _within(value: Fraction, low: float, high: float) -> bool:
    return bool(np.isfinite([low, high]).all()) and Fraction(low) <= value <= Fraction(high)


def _ends(result: Any) -> list[str]:
    """Return what is wrong with values, bounds and status of themselves."""
    told = []
    finite = np.isfinite(result.values)
    lower, upper = result.lower[finite], result.upper[finite]
    inside = (lower <= result.values[finite]) & (result.values[finite] <= upper)
    if not inside.all():
        told.append("values are not between lower and upper")
    if not result.status.success and result.bound == 0:
        told.append(f"{result.status} with a bound of 0")
    if result.status == "converged" and not np.isfinite(result.bound):
        told.append("converged without a bound")
    return told


def _total(model: Any, asked: TotalCost, result: Any, limited: bool) -> list[str]:
    truth = exact.total_costs(model, asked.cost_of_dead_ends)
    told = _ends(result)
    if truth.gains and truth.near and not result.success and result.bound == np.inf:
        return told  # rounding hides the gain, and no bound is claimed
    if truth.gains:
        return [*told, f"a circle gains without limit, and it says {result.values.tolist()}"]
    # Chances of next to nothing make costs that float64 cannot tell to six digits; and costs that
    # are nothing beside that of dead ends are lost in differences of values.
    lost = bool(asked.cost_of_dead_ends) and _largest_cost(model) < 1e-9
    hard = limited or truth.near or lost or _least_chance(model) <= 1e-5
    if not result.success and not hard:
        told.append(f"{result.status}: {result.message}")
    cost_of = exact_policy_total(model, result.policy, asked.cost_of_dead_ends)
    for s, value in enumerate(truth.values):
        if value is None:
            if not result.infinite[s] or np.isfinite(result.upper[s]):
                told.append(f"state {s} is infinite, not {result.values[s]}")
            continue
        low, high = result.lower[s], result.upper[s]
        if not (np.isneginf(low) or Fraction(low) <= value) or not (
            np.isposinf(high) or value <= Fraction(high)
        ):
            told.append(f"state {s}: {float(value)!r} is not in [{low!r}, {high!r}]")
        if not np.isfinite(result.values[s]):
            if result.success:
                told.append(f"state {s}: {result.values[s]} instead of {float(value)!r}")
            continue
        error = abs(Fraction(float(result.values[s])) - value)
        if np.isfinite(result.bound) and error > Fraction(result.bound):
            told.append(f"state {s}: off by {float(error):.3g} with a bound of {result.bound:.3g}")
        if np.isfinite(result.policy_bound):
            cost = cost_of[s]
            if cost is None or cost - value > Fraction(result.policy_bound):
                told.append(
                    f"state {s}: the policy costs {None if cost is None else float(cost)!r}, "
                    f"{result.policy_bound:.3g} more than {float(value)!r} was promised"
                )
    return told


def _largest_cost(model: Any) -> float:
    """Return the largest cost, without sign, of what may be done."""
    rows = exact.rows_of(model).actions
    return float(max((abs(cost) for of in rows for _, cost in of.values()), default=Fraction(0)))


def _least_chance(model: Any) -> float:
    """Return the least probability of anything that may happen."""
    rows = exact.rows_of(model).actions
    chances = (p for of in rows for row, _ in of.values() for p in row.values())
    return float(min(chances, default=Fraction(1)))


def exact_policy_total(model: Any, policy: Any, dead_ends: float | None) -> list[Fraction | None]:
    """Return what a policy costs until the end; None where it may never end."""
    rows = exact.rows_of(model)
    only = exact.Rows(
        [{a: r for a, r in of.items() if a == policy[s]} for s, of in enumerate(rows.actions)],
        rows.terminal,
    )
    return exact_total(rows, only, dead_ends)


def exact_total(
    rows: exact.Rows, only: exact.Rows, dead_ends: float | None
) -> list[Fraction | None]:
    """Return what the one action of each state costs until the end, of those of a model."""
    ends = list(rows.terminal)
    if dead_ends is not None:
        edges = [{t for row, _ in of.values() for t in row} for of in rows.actions]
        reach = [exact.reachable(edges, s) for s in range(rows.num_states)]
        ends = [e or not any(rows.terminal[t] for t in reach[s]) for s, e in enumerate(ends)]
    paid = [
        Fraction(dead_ends) if e and not t and dead_ends is not None else Fraction(0)
        for e, t in zip(ends, rows.terminal, strict=True)
    ]
    finite, usable = exact.region_of(only, ends)
    inside = [s for s in range(rows.num_states) if finite[s] and not ends[s]]
    row = {s: next(iter(usable[s].values())) for s in inside}
    matrix = [[(s == t) - row[s][0].get(t, Fraction(0)) for t in inside] for s in inside]
    right = [row[s][1] + sum(p * paid[t] for t, p in row[s][0].items()) for s in inside]
    found: list[Fraction | None] = [paid[s] if ends[s] else None for s in range(rows.num_states)]
    for s, value in zip(inside, exact.solved(matrix, right), strict=True):
        found[s] = value
    return found


def _average(model: Any, asked: AverageCost, result: Any, limited: bool) -> list[str]:
    truth = exact.gains(model)
    told = _ends(result)
    if not result.success and not limited and _least_chance(model) > 1e-5:
        told.append(f"{result.status}: {result.message}")
    rows = exact.rows_of(model)
    chain = [of.get(int(result.policy[s])) if of else None for s, of in enumerate(rows.actions)]
    if any(of and chain[s] is None for s, of in enumerate(rows.actions)):
        return [*told, "the policy takes what is unavailable"]
    mine = exact.gains_of_chain(chain)
    for s, gain in enumerate(truth):
        low, high = result.lower[s], result.upper[s]
        if not (np.isneginf(low) or Fraction(low) <= gain) or not (
            np.isposinf(high) or gain <= Fraction(high)
        ):
            told.append(f"state {s}: {float(gain)!r} is not in [{low!r}, {high!r}]")
        if np.isfinite(result.bound):
            error = abs(Fraction(float(result.values[s])) - gain)
            if error > Fraction(result.bound):
                told.append(f"state {s}: off by {float(error):.3g}, bound {result.bound:.3g}")
        if np.isfinite(result.policy_bound) and mine[s] - gain > Fraction(result.policy_bound):
            told.append(
                f"state {s}: the policy gains {float(mine[s])!r}, {float(gain)!r} is best and "
                f"{result.policy_bound:.3g} was promised"
            )
    return told


def _horizon(model: Any, asked: FiniteHorizon, result: Any, limited: bool) -> list[str]:
    models = models_of(model, asked)
    truth = exact.horizon_costs(models, asked.gamma, list(np.asarray(asked.terminal_costs)))
    told = _ends(result)
    if not result.success:
        told.append(f"{result.status}: {result.message}")
    left = truth[-1]
    for t in reversed(range(asked.steps + 1)):
        if t < asked.steps:
            rows = exact.rows_of(models[t])
            left = [
                of[int(result.policy[t, s])][1]
                + Fraction(asked.gamma)
                * sum(p * left[k] for k, p in of[int(result.policy[t, s])][0].items())
                if of
                else Fraction(0)
                for s, of in enumerate(rows.actions)
            ]
        for s, value in enumerate(truth[t]):
            if not _within(value, result.lower[t, s], result.upper[t, s]):
                told.append(f"step {t}, state {s}: {float(value)!r} is outside")
            if left[s] - value > Fraction(result.policy_bound):
                told.append(f"step {t}, state {s}: the policy costs {float(left[s])!r}")
    return told
