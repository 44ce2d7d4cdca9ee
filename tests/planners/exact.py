"""Answers in exact fractions, by brute force over policies, to undiscounted questions.

A model is read from its own fields into rows of fractions, each divided by its sum.  There is no
code of the planners here, and none of their ideas: proper regions by their definition as a fixed
point over sets, values by Gaussian elimination for each deterministic policy, gains by absorption
and stationary distributions.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from aggmaze import MoveMDP, TabularMDP

Row = tuple[dict[int, Fraction], Fraction]
INFINITE = None
#: A mean cost that is this much smaller than the costs may be rounding.
MAY_BE_ROUNDING = Fraction(1, 10**12)


@dataclass(frozen=True)
class Rows:
    """Rows of a model: of each state its available actions, none in terminal states."""

    actions: list[dict[int, Row]]
    terminal: list[bool]

    @property
    def num_states(self) -> int:
        return len(self.terminal)


def rows_of(model: TabularMDP | MoveMDP) -> Rows:
    """Return the rows of a model as they are stored."""
    actions: list[dict[int, Row]] = []
    for s in range(model.num_states):
        rows: dict[int, Row] = {}
        if isinstance(model, MoveMDP):
            there = [m for m in range(model.num_actions) if np.isfinite(model.move_costs[s, m])]
            n, p = len(there), Fraction(model.p)
            for chosen in there:
                row: dict[int, Fraction] = {}
                cost = Fraction(0)
                for m in there:
                    share = (p if m == chosen else (1 - p) / (n - 1)) if n > 1 else Fraction(1)
                    if share:
                        t = int(model.successors[s, m])
                        row[t] = row.get(t, Fraction(0)) + share
                        cost += share * Fraction(float(model.move_costs[s, m]))
                rows[chosen] = row, cost
        elif not model.terminal[s]:
            matrix = model.transitions
            for a in range(model.num_actions):
                if model.action_mask[s, a]:
                    r = s * model.num_actions + a
                    row = {}
                    for e in range(matrix.indptr[r], matrix.indptr[r + 1]):
                        if matrix.data[e] > 0:
                            t = int(matrix.indices[e])
                            row[t] = row.get(t, Fraction(0)) + Fraction(float(matrix.data[e]))
                    total = sum(row.values())
                    row = {t: share / total for t, share in row.items()}
                    rows[a] = row, Fraction(float(model.costs[s, a]))
        actions.append(rows)
    return Rows(actions, [not rows for rows in actions])


def solved(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """Return the solution of linear equations that have one."""
    n = len(right)
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [
                    x - factor * y if y else x for x, y in zip(rows[i], rows[k], strict=True)
                ]
    return [rows[k][n] / rows[k][k] for k in range(n)]


def reachable(edges: list[set[int]], s: int) -> set[int]:
    found, left = {s}, [s]
    while left:
        for t in edges[left.pop()]:
            if t not in found:
                found.add(t)
                left.append(t)
    return found


def region_of(rows: Rows, ends: list[bool]) -> tuple[list[bool], list[dict[int, Row]]]:
    """Return which states have a policy that surely ends, and the actions that stay among them."""
    inside = set(range(rows.num_states))
    while True:
        found = {s for s in inside if ends[s]}
        while True:
            more = {
                s
                for s in inside - found
                for row, _ in rows.actions[s].values()
                if row.keys() <= inside and row.keys() & found
            }
            if not more:
                break
            found |= more
        if found == inside:
            break
        inside = found
    usable = [
        {a: r for a, r in of.items() if r[0].keys() <= inside}
        if s in inside and not ends[s]
        else {}
        for s, of in enumerate(rows.actions)
    ]
    return [s in inside for s in range(rows.num_states)], usable


def chains(actions: list[dict[int, Row]]) -> Any:
    """Return all deterministic policies: of each state an action and its row, or None."""
    return itertools.product(*([*of.items()] or [None] for of in actions))


def classes_of(edges: list[set[int]]) -> list[list[int]]:
    """Return the recurrent classes of a chain."""
    reach = [reachable(edges, s) for s in range(len(edges))]
    found = {
        tuple(sorted(reach[s]))
        for s in range(len(edges))
        if all(reach[t] == reach[s] for t in reach[s])
    }
    return [list(states) for states in sorted(found)]


def stationary(rows: list[dict[int, Fraction]], states: list[int]) -> list[Fraction]:
    """Return the stationary distribution of a recurrent class."""
    n = len(states)
    matrix = [[rows[t].get(s, Fraction(0)) - (s == t) for t in states] for s in states]
    matrix[-1] = [Fraction(1)] * n
    return solved(matrix, [Fraction(0)] * (n - 1) + [Fraction(1)])


@dataclass(frozen=True)
class TotalCosts:
    """Least total costs: None where they are infinite.

    ``gains`` says that some circle gains without limit, ``even`` that the mean of some is 0 though
    not all of its costs are, ``near`` that it is so small beside them that rounding may hide it.
    """

    values: list[Fraction | None]
    gains: bool
    even: bool
    near: bool


def total_costs(model: TabularMDP | MoveMDP, dead_ends: float | None = None) -> TotalCosts:
    """Return the least total costs over policies that surely end."""
    rows = rows_of(model)
    ends = list(rows.terminal)
    if dead_ends is not None:
        edges = [{t for row, _ in of.values() for t in row} for of in rows.actions]
        reach = [reachable(edges, s) for s in range(rows.num_states)]
        ends = [e or not any(rows.terminal[t] for t in reach[s]) for s, e in enumerate(ends)]
    finite, usable = region_of(rows, ends)
    paid = [
        Fraction(dead_ends) if e and not t and dead_ends is not None else Fraction(0)
        for e, t in zip(ends, rows.terminal, strict=True)
    ]
    best: list[Fraction | None] = [paid[s] if ends[s] else None for s in range(rows.num_states)]
    gains = even = near = False
    inside = [s for s in range(rows.num_states) if finite[s] and not ends[s]]
    for policy in chains(usable):
        edges = [set(one[1][0]) if one else {s} for s, one in enumerate(policy)]
        proper = True
        for states in classes_of(edges):
            if ends[states[0]] or not finite[states[0]]:
                continue
            proper = False
            chosen = [policy[s][1] for s in range(rows.num_states) if s in states]
            shares = stationary([one[1][0] if one else {} for one in policy], states)
            mean = sum(x * cost for x, (_, cost) in zip(shares, chosen, strict=True))
            gains |= mean < 0
            size = sum(x * abs(cost) for x, (_, cost) in zip(shares, chosen, strict=True))
            even |= mean == 0 and size > 0
            near |= size > 0 and abs(mean) <= MAY_BE_ROUNDING * size
        if not proper:
            continue
        matrix = [[(s == t) - policy[s][1][0].get(t, Fraction(0)) for t in inside] for s in inside]
        right = [
            policy[s][1][1] + sum(p * paid[t] for t, p in policy[s][1][0].items()) for s in inside
        ]
        for s, value in zip(inside, solved(matrix, right), strict=True):
            if best[s] is None or value < best[s]:
                best[s] = value
    return TotalCosts(best, gains, even, near)


def gains(model: TabularMDP | MoveMDP) -> list[Fraction]:
    """Return the least mean cost of a step in the long run from each state."""
    rows = rows_of(model)
    best: list[Fraction | None] = [None] * rows.num_states
    for policy in chains(rows.actions):
        for s, gain in enumerate(gains_of_chain([one[1] if one else None for one in policy])):
            if best[s] is None or gain < best[s]:
                best[s] = gain
    return best


def gains_of_chain(chain: list[Row | None]) -> list[Fraction]:
    """Return the mean cost of a step of a chain from each state; None stays for ever at no cost."""
    full = [one if one else ({s: Fraction(1)}, Fraction(0)) for s, one in enumerate(chain)]
    n = len(full)
    edges = [set(row) for row, _ in full]
    found: list[Fraction | None] = [None] * n
    for states in classes_of(edges):
        shares = stationary([row for row, _ in full], states)
        mean = sum(x * full[s][1] for x, s in zip(shares, states, strict=True))
        for s in states:
            found[s] = mean
    passing = [s for s in range(n) if found[s] is None]
    matrix = [[(s == t) - full[s][0].get(t, Fraction(0)) for t in passing] for s in passing]
    right = [
        sum(p * found[t] for t, p in full[s][0].items() if found[t] is not None) for s in passing
    ]
    for s, gain in zip(passing, solved(matrix, right), strict=True):
        found[s] = gain
    return found


def horizon_costs(
    models: list[TabularMDP | MoveMDP], gamma: float, terminal_costs: list[float]
) -> list[list[Fraction]]:
    """Return what is left to pay before each step, one model a step, and after the last."""
    left = [Fraction(float(c)) for c in terminal_costs]
    found = [left]
    for model in reversed(models):
        rows = rows_of(model)
        left = [
            min(
                cost + Fraction(gamma) * sum(p * left[t] for t, p in row.items())
                for row, cost in of.values()
            )
            if of
            else Fraction(0)
            for of in rows.actions
        ]
        found.insert(0, left)
    return found
