"""Questions about transition systems, against exact answers by brute force."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planners
from aggmaze import TabularMDP
from aggmaze.formats.systems import Structure, System, system_tables

Choices = list[list[dict[int, Fraction]]]


def system_of(choices: Choices, goal: list[bool], prices: list[float]) -> System:
    """The system of a list of choices, each a distribution, in each state."""
    flat = [choice for of_state in choices for choice in of_state]
    return System(
        state_to_choices=np.cumsum([0, *map(len, choices)]),
        choice_to_branches=np.cumsum([0, *map(len, flat)]),
        targets=np.array([t for choice in flat for t in choice], dtype=np.int64),
        probabilities=np.array([float(p) for choice in flat for p in choice.values()]),
        initial=np.arange(len(choices)) == 0,
        labels={"goal": np.array(goal)},
        structures={"price": Structure(choices=np.array(prices, dtype=np.float64))},
    )


@st.composite
def systems(draw: st.DrawFn) -> tuple[Choices, list[bool], list[float]]:
    num_states = draw(st.integers(1, 4))
    choices: Choices = []
    for _ in range(num_states):
        of_state = []
        for _ in range(draw(st.integers(0, 2))):
            targets = draw(
                st.lists(st.integers(0, num_states - 1), min_size=1, max_size=2, unique=True)
            )
            share = Fraction(draw(st.integers(1, 3)), 4)
            weights = [Fraction(1)] if len(targets) == 1 else [share, 1 - share]
            of_state.append(dict(zip(targets, weights, strict=True)))
        choices.append(of_state)
    goal = draw(st.lists(st.booleans(), min_size=num_states, max_size=num_states))
    count = sum(map(len, choices))
    prices = draw(st.lists(st.integers(1, 3).map(float), min_size=count, max_size=count))
    return choices, goal, prices


def reached(choices: Choices, goal: list[bool], policy: tuple[int, ...]) -> list[Fraction]:
    """Exact probabilities of ever reaching the goal under a policy, by elimination."""
    num_states = len(choices)
    moves = [{} if goal[s] or not choices[s] else choices[s][policy[s]] for s in range(num_states)]
    can = {s for s in range(num_states) if goal[s]}
    while True:
        more = {s for s in range(num_states) if s not in can and any(t in can for t in moves[s])}
        if not more:
            break
        can |= more
    unknown = [s for s in sorted(can) if not goal[s]]
    rows = []
    for s in unknown:
        row = [Fraction(int(s == t)) - moves[s].get(t, Fraction(0)) for t in unknown]
        rows.append([*row, sum((p for t, p in moves[s].items() if goal[t]), Fraction(0))])
    for k in range(len(rows)):
        pivot = next(r for r in range(k, len(rows)) if rows[r][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for r in range(len(rows)):
            if r != k and rows[r][k] != 0:
                rows[r] = [x - rows[r][k] * y for x, y in zip(rows[r], rows[k], strict=True)]
    answer = {s: rows[k][-1] for k, s in enumerate(unknown)}
    return [Fraction(1) if goal[s] else answer.get(s, Fraction(0)) for s in range(num_states)]


@settings(max_examples=150)
@given(systems())
def test_probabilities_of_reaching_and_avoiding(
    case: tuple[Choices, list[bool], list[float]],
) -> None:
    choices, goal, prices = case
    policies = list(itertools.product(*(range(max(len(c), 1)) for c in choices)))
    all_values = np.array([[float(x) for x in reached(choices, goal, p)] for p in policies])
    system = system_of(choices, goal, prices)
    for question, best, sign in (
        ("reach", all_values.max(axis=0), -1.0),
        ("avoid", all_values.min(axis=0), 1.0),
    ):
        model = TabularMDP(**system_tables(system, goal="goal", values=question)).validate()
        values = sign * planners.solve(model, gamma=1).values
        # In the goal itself nothing is left to reach.
        expected = np.where(goal, 0.0, best)
        np.testing.assert_allclose(values, expected, atol=1e-9)


@settings(max_examples=60)
@given(systems())
def test_prices_are_those_of_the_choices(case: tuple[Choices, list[bool], list[float]]) -> None:
    choices, goal, prices = case
    system = system_of(choices, goal, prices)
    for values, sign in (("costs", 1.0), ("rewards", -1.0)):
        model = TabularMDP(**system_tables(system, goal="goal", values=values)).validate()
        number = 0
        for s, of_state in enumerate(choices):
            if goal[s] or not of_state:
                assert model.terminal[s]
                number += len(of_state)
                continue
            assert model.action_mask[s].sum() == len(of_state)
            for a, choice in enumerate(of_state):
                assert model.costs[s, a] == sign * prices[number]
                row = model.transitions[[s * model.num_actions + a]].toarray()[0]
                assert row.tolist() == [float(choice.get(t, 0)) for t in range(len(choices))]
                number += 1


def test_parts_of_a_structure_add_up() -> None:
    system = system_of(
        [[{0: Fraction(1, 2), 1: Fraction(1, 2)}], [{1: Fraction(1)}]], [False, True], [4.0, 0]
    )
    whole = Structure(np.array([1.0, 9.0]), np.array([4.0, 0.0]), np.array([0.0, 2.0, 0.0]))
    tables = system_tables(system._replace(structures={"all": whole}), goal="goal")
    assert tables["costs"].tolist() == [[6.0], [0.0]]
    assert tables["outcome_costs"] is not None
    assert tables["outcome_costs"].tolist() == [5.0, 7.0, 0.0]


def test_named_actions_are_columns_where_the_table_stays_small() -> None:
    system = system_of(
        [[{0: Fraction(1)}, {1: Fraction(1)}], [{1: Fraction(1)}]], [False, False], [1.0, 2, 3]
    )
    named = system._replace(choice_actions=np.array([2, 0, 1]), action_names=["a", "b", "c"])
    tables = system_tables(named)
    assert tables["costs"].tolist() == [[2.0, 0.0, 1.0], [0.0, 3.0, 0.0]]
    many = named._replace(action_names=[str(k) for k in range(50)])
    assert system_tables(many)["costs"].tolist() == [[1.0, 2.0], [3.0, 0.0]]
    twice = named._replace(choice_actions=np.array([0, 0, 1]))
    assert system_tables(twice)["costs"].tolist() == [[1.0, 2.0], [3.0, 0.0]]


def test_a_table_too_large_is_refused() -> None:
    system = system_of([[{0: Fraction(1)}]] * 2, [False, False], [1.0, 1.0])
    choices = np.concatenate([[0], np.full(10**6, 10**6)])
    huge = system._replace(
        state_to_choices=choices,
        choice_to_branches=np.arange(10**6 + 1),
        targets=np.zeros(10**6, dtype=np.int64),
        probabilities=np.ones(10**6),
        initial=np.zeros(10**6, dtype=bool),
        labels={},
        structures={},
    )
    with pytest.raises(MemoryError, match=r"1,000,000 states with 1,000,000 actions need"):
        system_tables(huge)
