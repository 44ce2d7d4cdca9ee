"""Models of random events checked, and listed as rows, compiled for the functions of each model.

What calls a user's functions is not kept on disk: numba cannot tell when they have changed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from aggmaze import kernel_cache  # noqa: F401  (before any kernel)

if TYPE_CHECKING:
    from aggmaze.models.event_parts import Functions, StageFunctions

#: Sets of functions for which what is compiled is kept in memory.
MOST_KEPT = 16


def or_constant(function: Callable[..., Any] | None, num_arguments: int, value: Any) -> Any:
    """Return a compiled function, or one that returns a constant where there is none.

    Parameters
    ----------
    function : callable, optional
    num_arguments : int
        From 1 to 3.
    value : scalar
    """
    if function is not None:
        return function
    constants = (lambda a: value, lambda a, b: value, lambda a, b, c: value)
    return njit(nogil=True)(constants[num_arguments - 1])


def row_of_action(functions: Functions) -> Any:
    """Return which row of events a state and an action have, of a model without ``post``."""
    row = functions.row
    if row is None or functions.rows_by_action:
        return or_constant(row, 2, 0)

    @njit(nogil=True)
    def of_state(state, action):
        return row(state)

    return of_state


@functools.lru_cache(maxsize=MOST_KEPT)
def first_step(functions: Functions) -> tuple[Any, Any, Any]:
    """Return row, next point and cost of an event after an action, also where that is ``post``."""
    post, next_state = functions.post, functions.next_state
    if post is None:
        return row_of_action(functions), next_state, or_constant(functions.event_cost, 3, 0.0)

    @njit(nogil=True)
    def leads_to(state, action, event):
        return post(state, action)

    return or_constant(None, 2, 0), leads_to, or_constant(None, 3, 0.0)


@functools.lru_cache(maxsize=MOST_KEPT)
def action_scanner(functions: Functions) -> Any:
    """Return a kernel that looks at what the functions say of states.

    ``scan(chances, terminal, num_following, lo, hi)`` returns the first state where something is
    wrong, -1 if none is; the largest size of ``cost`` and of ``event_cost``, and the largest
    ``cost``.  Chances of rows that do not exist are not read.
    """
    row_of, leads_to, event_cost = first_step(functions)
    num_actions, cost = functions.num_actions, functions.cost
    by_action = functions.rows_by_action
    is_open = or_constant(functions.available, 2, True)
    masked, some_cost = functions.available is not None, functions.event_cost is not None

    @njit(nogil=True)
    def scan(chances, terminal, num_following, lo, hi):
        indptr, events, _ = chances
        num_rows = len(indptr) - 1
        most, most_event, highest = 0.0, 0.0, -np.inf
        for s in range(lo, hi):
            if terminal[s]:
                continue
            some_open = False
            least, last = np.int64(0), np.int64(0)
            spoiled = 0.0  # no number once a cost is none, or infinite
            for a in range(num_actions):
                if not masked or is_open(s, a):
                    some_open = True
                    price = cost(s, a)
                    spoiled += 0.0 * price
                    most = max(most, abs(price))
                    highest = max(highest, price)
            if not some_open:
                return s, most, most_event, highest
            for first in range(num_actions if by_action else 1):
                if by_action and masked and not is_open(s, first):
                    continue
                r = row_of(s, first)
                if r < 0 or r >= num_rows:
                    return s, most, most_event, highest
                begin, end = (first, first + 1) if by_action else (0, num_actions)
                for i in range(indptr[r], indptr[r + 1]):
                    e = events[i]
                    for a in range(begin, end):
                        if not masked or is_open(s, a):
                            following = np.int64(leads_to(s, a, e))
                            least = following if following < least else least
                            last = following if following > last else last
                            if some_cost:
                                price = event_cost(s, a, e)
                                spoiled += 0.0 * price
                                most_event = max(most_event, abs(price))
            if least < 0 or last >= num_following or spoiled != 0.0:
                return s, most, most_event, highest
        return -1, most, most_event, highest

    return scan


@functools.lru_cache(maxsize=MOST_KEPT)
def stage_scanner(stage: StageFunctions) -> Any:
    """Return a kernel that looks at what the functions say of points of a stage.

    ``scan(chances, num_following, lo, hi)`` returns the first group of lanes where something is
    wrong, -1 if none is, and the largest size of ``cost``.
    """
    following, lanes = stage.following, stage.lanes
    row_of = or_constant(stage.row, 1, 0)
    some_cost = stage.cost is not None
    cost = or_constant(stage.cost, 2, 0.0)

    @njit(nogil=True)
    def scan(chances, num_following, lo, hi):
        indptr, events, _ = chances
        num_rows = len(indptr) - 1
        most = 0.0
        for group in range(lo, hi):
            point = group * lanes
            r = np.int64(row_of(point))
            if r < 0 or r >= num_rows:
                return group, most
            wrong = 0
            spoiled = 0.0
            for lane in range(1, lanes):
                wrong += 1 if np.int64(row_of(point + lane)) != r else 0
            for i in range(indptr[r], indptr[r + 1]):
                e = events[i]
                start = np.int64(following(point, e))
                wrong += 1 if start < 0 or start + lanes > num_following else 0
                for lane in range(1, lanes):
                    wrong += 1 if np.int64(following(point + lane, e)) != start + lane else 0
                if some_cost:
                    for lane in range(lanes):
                        price = cost(point + lane, e)
                        spoiled += 0.0 * price
                        most = max(most, abs(price))
            if wrong > 0 or spoiled != 0.0:
                return group, most
        return -1, most

    return scan


@functools.lru_cache(maxsize=MOST_KEPT)
def action_marker(functions: Functions) -> Any:
    """Return a kernel that marks what may be chosen: ``mark(terminal, mask)``, shape (S, A)."""
    num_actions = functions.num_actions
    is_open = or_constant(functions.available, 2, True)

    @njit(nogil=True)
    def mark(terminal, mask):
        for s in range(len(terminal)):
            for a in range(num_actions):
                mask[s, a] = terminal[s] or is_open(s, a)

    return mark


@functools.lru_cache(maxsize=MOST_KEPT)
def action_lister(functions: Functions) -> tuple[Any, Any]:
    """Return kernels that list what follows the actions of a block of states.

    ``count(chances, terminal, lo, hi)`` returns the number of outcomes; ``fill(chances, terminal,
    lo, hi, rows, points, probabilities, costs, own, mask)`` writes row ``(s - lo) * A + a``, point,
    probability and cost of each, the costs of actions and which are available.
    """
    row_of, leads_to, event_cost = first_step(functions)
    num_actions, cost = functions.num_actions, functions.cost
    is_open = or_constant(functions.available, 2, True)

    @njit(nogil=True)
    def count(chances, terminal, lo, hi):
        indptr = chances[0]
        total = 0
        for s in range(lo, hi):
            for a in range(num_actions):
                if not terminal[s] and is_open(s, a):
                    r = row_of(s, a)
                    total += indptr[r + 1] - indptr[r]
        return total

    @njit(nogil=True)
    def fill(chances, terminal, lo, hi, rows, points, probabilities, costs, own, mask):
        indptr, events, chance = chances
        place = 0
        for s in range(lo, hi):
            for a in range(num_actions):
                mask[s - lo, a] = not terminal[s] and is_open(s, a)
                if not mask[s - lo, a]:
                    continue
                own[s - lo, a] = cost(s, a)
                r = row_of(s, a)
                for i in range(indptr[r], indptr[r + 1]):
                    rows[place] = (s - lo) * num_actions + a
                    points[place] = leads_to(s, a, events[i])
                    probabilities[place] = chance[i]
                    costs[place] = event_cost(s, a, events[i])
                    place += 1

    return count, fill


@functools.lru_cache(maxsize=MOST_KEPT)
def stage_lister(stage: StageFunctions) -> tuple[Any, Any]:
    """Return kernels that put what follows each point in the place of the point.

    ``count(chances, points)`` returns the number of outcomes then; ``fill(chances, before, after)``
    writes them, each of the two being rows, points, probabilities and costs.
    """
    following = stage.following
    row_of = or_constant(stage.row, 1, 0)
    cost = or_constant(stage.cost, 2, 0.0)

    @njit(nogil=True)
    def count(chances, points):
        indptr = chances[0]
        total = 0
        for point in points:
            r = row_of(point)
            total += indptr[r + 1] - indptr[r]
        return total

    @njit(nogil=True)
    def fill(chances, before, after):
        indptr, events, chance = chances
        rows, points, probabilities, costs = before
        new_rows, new_points, new_probabilities, new_costs = after
        place = 0
        for j in range(len(points)):
            point = points[j]
            r = row_of(point)
            for i in range(indptr[r], indptr[r + 1]):
                new_rows[place] = rows[j]
                new_points[place] = following(point, events[i])
                new_probabilities[place] = probabilities[j] * chance[i]
                new_costs[place] = costs[j] + cost(point, events[i])
                place += 1

    return count, fill
