"""Small models of random events, and what they are by their functions, in fractions."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numba import njit
from numpy.typing import NDArray

from aggmaze import EventMDP, EventStage
from tests.planners.reference import Exact
from tests.strategies import stochastic_matrices

S, A, E, R = 6, 3, 4, 2
POSTS, POINTS = 5, 8

Outcome = tuple[Fraction, int, Fraction]


# Compiled functions: what calls them is compiled once for all models of the tests.
@njit
def cost(s, a):
    return ((7 * s + 3 * a) % 5 - 2) * 0.5


@njit
def anywhere(s, a, e):
    return (3 * s + 5 * a + 2 * e + s * e) % S


@njit
def event_cost(s, a, e):
    return ((s + 2 * a + 3 * e) % 4 - 1) * 0.25


@njit
def row_of_state(s):
    return s % R


@njit
def row_of_action(s, a):
    return (s + a) % R


@njit
def some_available(s, a):
    return (s + a) % 3 != 1


@njit
def post(s, a):
    return (2 * s + a) % POSTS


@njit
def from_post(y, e):
    return (y + e + y * e) % S


@njit
def cost_of_post(y, e):
    return ((y + e) % 3 - 1) * 0.75


@njit
def to_point(s, a, e):
    return (s + 2 * a + e) % POINTS


@njit
def post_to_point(y, e):
    return (2 * y + e) % POINTS


@njit
def in_pairs(point, e):
    # Points 2k and 2k + 1 go side by side.
    return 2 * ((point // 2 + e) % (S // 2)) + point % 2


@njit
def points_in_pairs(point, e):
    return 2 * ((point // 2 + 3 * e) % (POINTS // 2)) + point % 2


@njit
def row_of_pair(point):
    return point // 2 % R


KINDS: dict[str, dict[str, Any]] = {
    "plain": {"next_state": anywhere},
    "row by state": {"next_state": anywhere, "row": row_of_state, "event_cost": event_cost},
    "row by action": {"next_state": anywhere, "row": row_of_action, "available": some_available},
    "masked": {"next_state": anywhere, "available": some_available, "event_cost": event_cost},
    "post": {
        "next_state": from_post,
        "post": post,
        "num_posts": POSTS,
        "row": row_of_state,
        "event_cost": cost_of_post,
        "available": some_available,
    },
    "stages": {"next_state": to_point, "row": row_of_state},
    "post and stage": {
        "next_state": post_to_point,
        "post": post,
        "num_posts": POSTS,
        "row": row_of_state,
    },
}


@st.composite
def event_mdps(draw: st.DrawFn, kinds: tuple[str, ...] = tuple(KINDS)) -> EventMDP:
    """Models of each kind, with any probabilities and terminal states."""
    kind = draw(st.sampled_from(kinds))
    given = dict(KINDS[kind])

    def chances(rows: int) -> NDArray[np.float64]:
        return draw(stochastic_matrices(rows, E))

    if kind == "stages":
        given["stages"] = [
            EventStage(
                POINTS, points_in_pairs, chances(R), row=row_of_pair, cost=cost_of_post, lanes=2
            ),
            EventStage(POINTS, in_pairs, chances(1), lanes=2),
        ]
    elif kind == "post and stage":
        given["stages"] = [EventStage(POINTS, in_pairs, chances(R), row=row_of_pair)]
    terminal = draw(st.one_of(st.none(), hnp.arrays(np.bool_, S)))
    next_state, rows = given.pop("next_state"), R if "row" in given else 1
    return EventMDP(S, A, next_state, chances(rows), cost, terminal=terminal, **given)


def _drawn(probabilities: NDArray[np.float64], row: int) -> Iterator[tuple[int, Fraction]]:
    for event, probability in enumerate(probabilities[row].tolist()):
        if probability > 0:
            yield event, Fraction(probability)


def _behind(model: EventMDP, stages: tuple[EventStage, ...], point: int) -> Iterator[Outcome]:
    if not stages:
        yield Fraction(1), point, Fraction(0)
        return
    stage = stages[0]
    row = 0 if stage.row is None else stage.row.py_func(point)  # type: ignore[attr-defined]
    for event, probability in _drawn(stage.probabilities, row):
        price = 0.0 if stage.cost is None else stage.cost.py_func(point, event)  # type: ignore[attr-defined]
        following = stage.following.py_func(point, event)  # type: ignore[attr-defined]
        for share, state, further in _behind(model, stages[1:], following):
            yield probability * share, state, Fraction(price) + further


def outcomes(model: EventMDP, s: int, a: int) -> list[Outcome]:
    """Return probability, next state and cost of all that may follow, by the class's docstring."""
    functions: Any = model
    before: tuple[int, ...] = (s, a)
    if model.post is not None:
        before = (functions.post.py_func(s, a),)
    row = 0
    if model.row is not None:
        row = functions.row.py_func(*before[: 2 if model.row is row_of_action else 1])
    found = []
    for event, probability in _drawn(model.probabilities, row):
        price = Fraction(functions.cost.py_func(s, a))
        if model.event_cost is not None:
            price += Fraction(functions.event_cost.py_func(*before, event))
        point = functions.next_state.py_func(*before, event)
        for share, state, further in _behind(model, model.stages, point):
            found.append((probability * share, state, price + further))
    return found


def is_open(model: EventMDP, s: int, a: int) -> bool:
    """Return whether an action can be chosen in a state that is not terminal."""
    return model.available is None or bool(some_available.py_func(s, a))


def exact(model: EventMDP, gamma: float) -> Exact:
    """Return a model in fractions, without a look at what the product makes of it."""
    found = Exact.__new__(Exact)
    found.gamma = Fraction(gamma)
    found.actions, found._sizes = [], []
    for s in range(model.num_states):
        actions = {}
        for a in range(model.num_actions):
            if not model.terminal[s] and is_open(model, s, a):
                listed = outcomes(model, s, a)
                price = sum((p * c for p, _, c in listed), Fraction(0))
                actions[a] = price, [(p, t) for p, t, _ in listed]
        found.actions.append(actions)
        found._sizes.append({a: abs(price) for a, (price, _) in actions.items()})
    return found
