"""Models of random events: what they list, what they draw, and what they refuse."""

from __future__ import annotations

import copy
import pickle
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggmaze import EventMDP, EventStage
from tests.event_models import (
    KINDS,
    A,
    S,
    anywhere,
    cost,
    event_mdps,
    is_open,
    outcomes,
)

every_kind = pytest.mark.parametrize("kind", KINDS)


@settings(max_examples=60, deadline=None)
@given(model=event_mdps(), data=st.data())
def test_rows_are_what_the_functions_say(model: EventMDP, data: st.DataObject) -> None:
    lo = data.draw(st.integers(0, S - 1))
    hi = data.draw(st.integers(lo + 1, S))
    rows = model.rows(lo, hi)
    matrix = rows.transitions
    assert matrix.shape == ((hi - lo) * A, S)
    assert matrix.has_canonical_format
    for s in range(lo, hi):
        for a in range(A):
            entries = slice(*matrix.indptr[(s - lo) * A + a :][:2])
            found = dict(
                zip(matrix.indices[entries].tolist(), matrix.data[entries].tolist(), strict=True)
            )
            prices = rows.outcome_costs[entries]
            if model.terminal[s]:
                assert found == {s: 1.0}
                assert (rows.costs[s - lo, a], rows.action_mask[s - lo, a]) == (0.0, True)
                continue
            assert rows.action_mask[s - lo, a] == is_open(model, s, a)
            if not is_open(model, s, a):
                assert found == {s: 1.0}
                assert rows.costs[s - lo, a] == model.idle_cost
                continue
            chances: dict[int, Fraction] = defaultdict(Fraction)
            sums: dict[int, Fraction] = defaultdict(Fraction)
            for probability, state, price in outcomes(model, s, a):
                chances[state] += probability
                sums[state] += probability * price
            assert found == pytest.approx({t: float(p) for t, p in chances.items()}, rel=1e-13)
            means = [float(sums[t] / chances[t]) for t in matrix.indices[entries].tolist()]
            np.testing.assert_allclose(prices, means, rtol=1e-12, atol=1e-13)
            mean = float(sum(sums.values(), Fraction(0)))
            assert rows.costs[s - lo, a] == pytest.approx(mean, rel=1e-12, abs=1e-13)
    assert np.array_equal(model.action_mask[lo:hi], rows.action_mask)


@settings(max_examples=30, deadline=None)
@given(model=event_mdps())
def test_the_table_is_valid(model: EventMDP) -> None:
    table = model.to_tabular().validate()
    np.testing.assert_array_equal(table.terminal, model.terminal)
    np.testing.assert_array_equal(table.initial, model.initial)
    highest = table.costs.max(where=table.action_mask & ~table.terminal[:, np.newaxis], initial=0.0)
    assert model.idle_cost >= highest


@settings(max_examples=30, deadline=None)
@given(model=event_mdps(), s=st.integers(0, S - 1), a=st.integers(0, A - 1))
def test_steps_are_drawn_with_their_probabilities(model: EventMDP, s: int, a: int) -> None:
    count = 2000
    seen: dict[tuple[int, float], int] = defaultdict(int)
    for i in range(count):
        state, price, probability = model.sample(s, a, (i + 0.5) / count)
        seen[state, round(price, 9)] += 1
        assert 0 < probability <= 1
    expected: dict[tuple[int, float], Fraction] = defaultdict(Fraction)
    if model.terminal[s]:
        expected[s, 0.0] = Fraction(1)
    elif not is_open(model, s, a):
        expected[s, round(model.idle_cost, 9)] = Fraction(1)
    else:
        for chance, state, price in outcomes(model, s, a):
            expected[state, round(float(price), 9)] += chance
    # Each of at most 64 paths covers an interval of uniform numbers: a count is off by one each.
    for key in seen.keys() | expected.keys():
        assert abs(seen[key] / count - expected[key]) <= 64 / count


def test_the_probability_of_a_draw_is_that_of_its_events() -> None:
    model = EventMDP(S, A, anywhere, [0.25, 0.75], cost)
    for uniform, event, chance in ((0.0, 0, 0.25), (0.2499, 0, 0.25), (0.25, 1, 0.75)):
        following = anywhere.py_func(2, 1, event)
        assert model.sample(2, 1, uniform) == (following, cost.py_func(2, 1), chance)


def test_copies_and_pickles_are_the_same_model() -> None:
    model = EventMDP(S, A, anywhere, [0.25, 0.75], cost, terminal=np.arange(S) == 2)
    assert copy.deepcopy(model) is model
    other = pickle.loads(pickle.dumps(model))
    ours, theirs = (m.to_tabular() for m in (model, other))
    assert (ours.transitions != theirs.transitions).nnz == 0
    np.testing.assert_array_equal(ours.costs, theirs.costs)
    assert not other.terminal.flags.writeable
    assert repr(model) == "EventMDP(6 states, 3 actions, 2 events)"
    stage = EventStage(8, lambda y, e: y % S, [1.0])
    assert repr(stage) == "EventStage(8 points, 1 events)"
    with_stage = EventMDP(S, A, lambda s, a, e: s, [1.0], cost, stages=[stage])
    assert repr(with_stage) == "EventMDP(6 states, 3 actions, 1 events, 1 stages)"


def test_nobody_can_write_to_its_arrays() -> None:
    probabilities = np.array([0.25, 0.75])
    model = EventMDP(S, A, anywhere, probabilities, cost)
    probabilities[0] = 7.0
    assert model.probabilities.tolist() == [[0.25, 0.75]]
    for array in (model.probabilities, model.terminal, model.initial, *model.chances[0]):
        assert not array.flags.writeable


GOOD: dict[str, Any] = {
    "num_states": 4,
    "num_actions": 2,
    "next_state": lambda s, a, e: (s + e) % 4,
    "probabilities": [0.5, 0.5],
    "cost": lambda s, a: 1.0 * a,
}


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"num_states": 0}, ValueError, "num_states must be at least 1, got 0"),
        ({"num_actions": 1.5}, TypeError, "num_actions must be an integer"),
        ({"next_state": 3}, TypeError, "next_state must be a function, got 3"),
        (
            {"next_state": lambda s, a: s},
            TypeError,
            r"next_state must take 3 arguments \(state, action, event\), takes 2",
        ),
        ({"next_state": lambda s, a, e: s / 2}, TypeError, "next_state must return an integer"),
        ({"cost": lambda s, a: "x"}, TypeError, "cost must return a number"),
        ({"cost": lambda s, a: [s][a].b}, TypeError, "cost cannot be compiled by numba"),
        ({"available": lambda s, a: a}, TypeError, "available must return a boolean"),
        ({"probabilities": []}, ValueError, r"must have shape \(E,\) or \(R, E\), not empty"),
        ({"probabilities": [0.5, 0.4]}, ValueError, "row 0: probabilities sum to 0.9"),
        ({"probabilities": [1.5, -0.5]}, ValueError, "row 0, event 1: probability -0.5"),
        ({"probabilities": [np.nan, 0.5]}, ValueError, "row 0, event 0: probability nan"),
        ({"probabilities": np.eye(2)}, ValueError, "has 2 rows: row must say which one holds"),
        ({"post": lambda s, a: s}, ValueError, "post and num_posts go together"),
        ({"lanes": 2}, ValueError, "lanes are those of post-decision states"),
        (
            {"post": lambda s, a: s, "num_posts": 3, "lanes": 2, "next_state": lambda y, e: y},
            ValueError,
            "lanes must divide num_posts = 3, got 2",
        ),
        ({"terminal": [True]}, ValueError, r"terminal must be booleans of shape \(4,\)"),
        ({"initial": [1.0]}, ValueError, r"initial must have shape \(4,\)"),
    ],
)
def test_what_is_no_model_is_refused(
    changes: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        EventMDP(**{**GOOD, **changes})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"next_state": lambda s, a, e: s + e},
            r"state 3, action 0, event 1: next_state 4 is not in \[0, 4\)",
        ),
        (
            {"next_state": lambda s, a, e: s - a},
            r"state 0, action 1, event 0: next_state -1 is not in \[0, 4\)",
        ),
        (
            {"cost": lambda s, a: 1.0 / (2 - s) if s != 2 else np.inf},
            "state 2, action 0: cost inf must be finite",
        ),
        ({"cost": lambda s, a: np.nan if a else 0.0}, "state 0, action 1: cost nan"),
        (
            {"event_cost": lambda s, a, e: np.inf if s == 1 and e == 1 else 0.0},
            "state 1, action 0, event 1: event_cost inf must be finite",
        ),
        (
            {"probabilities": np.eye(2), "row": lambda s: s - 1},
            r"state 0, action 0: row -1 is not in \[0, 2\)",
        ),
        (
            {"probabilities": np.eye(2), "row": lambda s, a: a + 1},
            r"state 0, action 1: row 2 is not in \[0, 2\)",
        ),
        ({"available": lambda s, a: s != 2}, "state 2 has no available action"),
        ({"initial": [0.5, 0.5, 0.5, 0.5]}, "initial sums to 2"),
        (
            {"post": lambda s, a: s + a, "num_posts": 4, "next_state": lambda y, e: 0},
            r"state 3, action 1: post 4 is not in \[0, 4\)",
        ),
        (
            {"post": lambda s, a: s, "num_posts": 5, "next_state": lambda y, e: y},
            r"post-decision state 4, event 0: next_state 4 is not in \[0, 4\)",
        ),
        (
            {"stages": [EventStage(4, lambda y, e: 2 * y, [1.0])]},
            r"stage 0, point 2, event 0: following 4 is not in \[0, 4\)",
        ),
        (
            {"stages": [EventStage(4, lambda y, e: y, [1.0], cost=lambda y, e: np.nan)]},
            "stage 0, point 0, event 0: cost nan must be finite",
        ),
        (
            {"stages": [EventStage(4, lambda y, e: y, np.eye(2), row=lambda y: y)]},
            r"stage 0, point 2: row 2 is not in \[0, 2\)",
        ),
        (
            {"stages": [EventStage(4, lambda y, e: 3 - y, [1.0], lanes=2)]},
            "stage 0, point 1, event 0: following 2 must be 4, 1 beyond that of point 0",
        ),
        (
            {"stages": [EventStage(4, lambda y, e: y, np.eye(2), row=lambda y: y % 2, lanes=2)]},
            "stage 0, point 1: row 1 is not that of point 0",
        ),
    ],
)
def test_what_functions_return_is_looked_at(changes: dict[str, Any], words: str) -> None:
    model = EventMDP(**{**GOOD, **changes})
    with pytest.raises(ValueError, match=words):
        model.validate()


def test_what_cannot_happen_is_not_asked_for() -> None:
    # Of terminal states, unavailable actions and events without a chance.
    model = EventMDP(
        4,
        2,
        lambda s, a, e: s + 1 if a == 0 and e == 0 else -7,
        [1.0, 0.0],
        lambda s, a: 1.0 if a == 0 else np.nan,
        available=lambda s, a: a == 0,
        terminal=np.arange(4) == 3,
    )
    table = model.validate().to_tabular()
    assert table.transitions.toarray()[::2].argmax(axis=1).tolist() == [1, 2, 3, 3]


def test_stages_refuse_what_is_none() -> None:
    with pytest.raises(ValueError, match="lanes must divide num_points = 5, got 2"):
        EventStage(5, lambda y, e: y, [1.0], lanes=2)
    with pytest.raises(TypeError, match=r"following must take 2 arguments \(point, event\)"):
        EventStage(5, lambda y: y, [1.0])
    with pytest.raises(TypeError, match="stages must be EventStage objects, got 3"):
        EventMDP(**GOOD, stages=[3])  # type: ignore[list-item]
