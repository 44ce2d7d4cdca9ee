"""Whether what the functions of a model of random events return is a model.

All of it is looked at once, by compiled scans; where one says that something is wrong, what it is
is found by asking again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from aggmaze.models.event_kernels import action_scanner, first_step, stage_scanner
from aggmaze.models.event_parts import Extent

if TYPE_CHECKING:
    from aggmaze.models.events import EventMDP

# Elementary operations of a scan between two moments at which Ctrl-C is heard.
_SCANNED = 1 << 26


def look_through(model: EventMDP) -> Extent:
    """Go through all that the functions of a model return.

    Raises
    ------
    ValueError
        Naming the first state, action and event, or point and event, where something is wrong.
    """
    sizes = [stage.num_points for stage in model.all_stages] + [model.num_states]
    scan = action_scanner(model.functions)
    found = [0.0, 0.0, -math.inf]

    def scan_actions(lo: int, hi: int) -> int:
        state, *most = scan(model.chances[0], model.terminal, sizes[0], lo, hi)
        found[:] = map(max, found, most)
        return int(state)

    work = model.num_actions * model.chances[0].longest
    state = _first_wrong(scan_actions, model.num_states, work)
    if state >= 0:
        raise ValueError(_complaint(model, state, sizes[0]))
    event_costs = [found[1]]
    for k in range(len(model.all_stages)):
        event_costs.append(_look_through_stage(model, k, sizes[k + 1]))
    return Extent(found[0], found[2], tuple(event_costs))


def _look_through_stage(model: EventMDP, place: int, num_following: int) -> float:
    """Go through the points of a stage and return the largest size of a cost."""
    stage = model.all_stages[place]
    scan, most = stage_scanner(stage.functions), [0.0]

    def scan_groups(lo: int, hi: int) -> int:
        group, largest = scan(stage.chances, num_following, lo, hi)
        most.append(float(largest))
        return int(group)

    num_groups = stage.num_points // stage.lanes
    group = _first_wrong(scan_groups, num_groups, stage.lanes * stage.chances.longest)
    if group >= 0:
        raise ValueError(_stage_complaint(model, place, group, num_following))
    return max(most)


def _complaint(model: EventMDP, state: int, num_following: int) -> str:
    """Say what is wrong with a state, of which the scan says that something is."""
    row_of, leads_to, event_cost = first_step(model.functions)
    name = "next_state" if model.post is None else "post"
    indptr, events, _ = model.chances[0]
    some_open = False
    for action in range(model.num_actions):
        if model.available is not None and not model.available(state, action):
            continue
        some_open = True
        here = f"state {state}, action {action}"
        price = model.cost(state, action)
        if not math.isfinite(price):
            return f"{here}: cost {price} must be finite"
        row = row_of(state, action)
        if not 0 <= row < len(indptr) - 1:
            return f"{here}: row {row} is not in [0, {len(indptr) - 1})"
        for event in events[indptr[row] : indptr[row + 1]].tolist():
            there = here if model.post is not None else f"{here}, event {event}"
            following = leads_to(state, action, event)
            if not 0 <= following < num_following:
                return f"{there}: {name} {following} is not in [0, {num_following})"
            price = event_cost(state, action, event)
            if not math.isfinite(price):
                return f"{there}: event_cost {price} must be finite"
    if not some_open:
        return f"state {state} has no available action and is not terminal"
    return f"state {state}: the functions return one thing at one call and another at the next"


def _stage_complaint(model: EventMDP, place: int, group: int, num_following: int) -> str:
    """Say what is wrong with a group of points, of which the scan says that something is."""
    stage = model.all_stages[place]
    of_posts = model.post is not None and place == 0
    kind, what, price_name = (
        ("post-decision state", "next_state", "event_cost")
        if of_posts
        else ("point", "following", "cost")
    )
    prefix = "" if of_posts else f"stage {place - (model.post is not None)}, "
    indptr, events, _ = stage.chances
    first = group * stage.lanes
    for point in range(first, first + stage.lanes):
        here = f"{prefix}{kind} {point}"
        row = 0 if stage.row is None else stage.row(point)
        if not 0 <= row < len(indptr) - 1:
            return f"{here}: row {row} is not in [0, {len(indptr) - 1})"
        if stage.row is not None and row != stage.row(first):
            return f"{here}: row {row} is not that of point {first}, which its lane begins with"
        for event in events[indptr[row] : indptr[row + 1]].tolist():
            there = f"{here}, event {event}"
            following = stage.following(point, event)
            if not 0 <= following < num_following:
                return f"{there}: {what} {following} is not in [0, {num_following})"
            expected = stage.following(first, event) + point - first
            if following != expected:
                return (
                    f"{there}: {what} {following} must be {expected}, {point - first} beyond "
                    f"that of point {first}, for lanes = {stage.lanes}"
                )
            price = 0.0 if stage.cost is None else stage.cost(point, event)
            if not math.isfinite(price):
                return f"{there}: {price_name} {price} must be finite"
    return (
        f"{prefix}{kind} {first}: the functions return one thing at one call and another at "
        "the next"
    )


def _first_wrong(scan: Callable[[int, int], int], count: int, work: int) -> int:
    """Return the first of so many items where a scan finds something wrong, -1 if none is.

    Parameters
    ----------
    scan : callable
        ``scan(lo, hi)`` looks at a range.
    count : int
    work : int
        Elementary operations on one item; between ranges Ctrl-C is heard.
    """
    size = max(1, _SCANNED // max(1, work))
    for lo in range(0, count, size):
        found = scan(lo, min(lo + size, count))
        if found >= 0:
            return found
    return -1
