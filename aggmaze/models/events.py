"""Markov decision processes given by functions, of random events with known distributions.

In state s, after action a, event e happens with a known probability, and functions say what it
costs and where it leads:

    Q(s, a) = cost(s, a) + sum_e p_e [ event_cost(s, a, e) + gamma V(next_state(s, a, e)) ].

No table of transitions is made, so that a model takes no memory but for its values.  Where what an
action and an event do can be told apart, sums are shared, which is most of the speed:

- with ``post`` an action leads to a post-decision state (Powell, "Approximate Dynamic
  Programming", 2nd ed., section 4.6), such as the stock after ordering, and events go on from
  there.  The expectation is then taken once for each post-decision state and not for each action.
- with ``stages`` events happen one after another, such as the demands of two products: sums over
  each in turn take the place of one over all their combinations.

A stage is a set of points, with a value each: ``U(y) = sum_e p_e [cost(y, e) + U'(next(y, e))]``,
where U' belongs to the points of the next stage or, behind the last one, is gamma V.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from aggmaze.arrays import lock, own
from aggmaze.checks import check_integer
from aggmaze.formats.tables import without_rounding
from aggmaze.memory import check_memory
from aggmaze.models.base import FiniteMDP, check_block, check_distribution, uniform_over
from aggmaze.models.rows import ROW_SUM_TOLERANCE, Rows
from aggmaze.models.tabular import TabularMDP

# Elementary operations of a scan between two moments at which Ctrl-C is heard.
_SCANNED = 1 << 27


class Chances(NamedTuple):
    """Rows of events that can happen, as compiled functions take them.

    Parameters
    ----------
    indptr : ndarray of int64, shape (R + 1,)
        Where each row begins and ends.
    events : ndarray of int64, shape (nnz,)
    probabilities : ndarray of float, shape (nnz,)
        Positive.
    """

    indptr: NDArray[np.int64]
    events: NDArray[np.int64]
    probabilities: NDArray[np.float64]

    @property
    def longest(self) -> int:
        """Number of events of the longest row."""
        return int(np.diff(self.indptr).max())


class StageFunctions(NamedTuple):
    """What is compiled for a stage depends on: its functions and the number of its lanes."""

    following: Callable[[int, int], int]
    row: Callable[[int], int] | None
    cost: Callable[[int, int], float] | None
    lanes: int


class Functions(NamedTuple):
    """What is compiled for a model depends on: its functions and the number of its actions."""

    num_actions: int
    next_state: Callable[..., int]
    cost: Callable[[int, int], float]
    row: Callable[..., int] | None
    rows_by_action: bool
    event_cost: Callable[..., float] | None
    post: Callable[[int, int], int] | None
    available: Callable[[int, int], bool] | None
    all_stages: tuple[StageFunctions, ...]


@dataclass(frozen=True, eq=False)
class EventStage:
    """Events that happen after others within a step, from one of N points.

    Parameters
    ----------
    num_points : int
        N.
    following : callable
        ``following(point, event)``: the point of the next stage that it leads to, or the next state
        if this is the last stage.  Asked only for events of positive probability.
    probabilities : array_like, shape (E,) or (R, E)
        Of each event; of R distributions where ``row`` says which.
    row : callable, optional
        ``row(point)``: which distribution, from 0 to R - 1.
    cost : callable, optional
        ``cost(point, event)``: what the event costs; nothing by default.
    lanes : int
        Points that go side by side: among each ``lanes`` points from a multiple of it on, the row
        is the same and ``following(point + 1, event) == following(point, event) + 1``.  Both are
        then asked once for all of them, and their values are summed by vectors.
    """

    num_points: int
    following: Callable[[int, int], int]
    probabilities: NDArray[np.float64]
    row: Callable[[int], int] | None
    cost: Callable[[int, int], float] | None
    lanes: int

    def __init__(
        self,
        num_points: int,
        following: Callable[[int, int], int],
        probabilities: ArrayLike,
        *,
        row: Callable[[int], int] | None = None,
        cost: Callable[[int, int], float] | None = None,
        lanes: int = 1,
    ) -> None:
        num_points = check_integer("num_points", num_points, least=1)
        lanes = check_integer("lanes", lanes, least=1)
        if num_points % lanes:
            raise ValueError(f"lanes must divide num_points = {num_points}, got {lanes}")
        for name, value in (
            ("num_points", num_points),
            ("following", _compiled("following", following, ("point", "event"), "integer")),
            ("probabilities", _distributions(probabilities, row)),
            ("row", None if row is None else _compiled("row", row, ("point",), "integer")),
            (
                "cost",
                None if cost is None else _compiled("cost", cost, ("point", "event"), "number"),
            ),
            ("lanes", lanes),
        ):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"EventStage({self.num_points:,} points, {self.probabilities.shape[1]:,} events)"

    @property
    def functions(self) -> StageFunctions:
        """What is compiled depends on."""
        return StageFunctions(self.following, self.row, self.cost, self.lanes)

    @cached_property
    def chances(self) -> Chances:
        """The events that can happen, by row."""
        return chances_of(self.probabilities)


@dataclass(frozen=True)
class Extent:
    """What a look at all of an `EventMDP` found.

    Parameters
    ----------
    max_cost : float
        Largest size of ``cost`` of an available action, terminal states aside.
    highest_cost : float
        The largest of them; -inf where there is none.
    event_costs : tuple of float
        Largest size of the cost of an event, first and in each stage.
    """

    max_cost: float
    highest_cost: float
    event_costs: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class EventMDP(FiniteMDP):
    """A model given by functions of state, action and random event.

    Functions take and return scalars.  They are compiled by numba, together with the arrays that
    they read, as these are at that moment: small arrays, then, and what changes in them later
    changes nothing.  One that is compiled already is taken as it is.  What calls them is compiled
    once in a process, some seconds; models of the same compiled functions share it.  It can't be
    kept on disk, since numba cannot tell when what a function reads has changed.

    Parameters
    ----------
    num_states, num_actions : int
        S and A.
    next_state : callable
        ``next_state(state, action, event)``; with ``post``, ``next_state(post, event)``.  With
        ``stages`` it leads to a point of the first of them.  Asked only for available actions and
        events of positive probability, of states that are not terminal.
    probabilities : array_like, shape (E,) or (R, E)
        Of each event; of R distributions where ``row`` says which.
    cost : callable
        ``cost(state, action)``: what the action costs, or its expectation over all events.
    row : callable, optional
        Which distribution, from 0 to R - 1: ``row(state)`` or ``row(state, action)``; with ``post``
        ``row(post)``.
    event_cost : callable, optional
        What an event costs beyond ``cost``: ``event_cost(state, action, event)``; with ``post``
        ``event_cost(post, event)``.
    post : callable, optional
        ``post(state, action)``: the post-decision state, from 0 to ``num_posts - 1``.
    num_posts : int, optional
        Number of post-decision states.
    lanes : int
        Of post-decision states, as those of the points of an `EventStage`.
    stages : sequence of EventStage
        What happens afterwards within the step, in order.
    available : callable, optional
        ``available(state, action)``: whether the action can be chosen; all by default.  Every state
        that is not terminal needs one.
    terminal : array_like of bool, shape (S,), optional
        States that cost nothing and have value 0; none by default.
    initial : array_like, shape (S,), optional
        Distribution of the first state; by default uniform over the states that are not terminal.

    Raises
    ------
    TypeError
        If what should be a function is none, or cannot be compiled for numbers.
    ValueError
        If a number, a distribution or a shape is wrong.  `validate` goes through all that the
        functions return.
    """

    shape: tuple[int, int]
    next_state: Callable[..., int]
    probabilities: NDArray[np.float64]
    cost: Callable[[int, int], float]
    row: Callable[..., int] | None
    event_cost: Callable[..., float] | None
    post: Callable[[int, int], int] | None
    num_posts: int | None
    lanes: int
    stages: tuple[EventStage, ...]
    available: Callable[[int, int], bool] | None
    terminal: NDArray[np.bool_]
    initial: NDArray[np.float64]

    def __init__(
        self,
        num_states: int,
        num_actions: int,
        next_state: Callable[..., int],
        probabilities: ArrayLike,
        cost: Callable[[int, int], float],
        *,
        row: Callable[..., int] | None = None,
        event_cost: Callable[..., float] | None = None,
        post: Callable[[int, int], int] | None = None,
        num_posts: int | None = None,
        lanes: int = 1,
        stages: Sequence[EventStage] = (),
        available: Callable[[int, int], bool] | None = None,
        terminal: ArrayLike | None = None,
        initial: ArrayLike | None = None,
    ) -> None:
        num_states = check_integer("num_states", num_states, least=1)
        num_actions = check_integer("num_actions", num_actions, least=1)
        if (post is None) != (num_posts is None):
            raise ValueError("post and num_posts go together")
        if num_posts is not None:
            num_posts = check_integer("num_posts", num_posts, least=1)
        lanes = check_integer("lanes", lanes, least=1)
        if lanes > 1 and num_posts is None:
            raise ValueError("lanes are those of post-decision states: without post there are none")
        if num_posts is not None and num_posts % lanes:
            raise ValueError(f"lanes must divide num_posts = {num_posts}, got {lanes}")
        strangers = [stage for stage in stages if not isinstance(stage, EventStage)]
        if strangers:
            raise TypeError(f"stages must be EventStage objects, got {strangers[0]!r}")
        ends = np.zeros(num_states, dtype=bool) if terminal is None else np.asarray(terminal)
        if ends.shape == (0,):
            ends = np.zeros(num_states, dtype=bool)
        if ends.shape != (num_states,) or ends.dtype != bool:
            raise ValueError(
                f"terminal must be booleans of shape ({num_states},), got {ends.dtype} of shape "
                f"{ends.shape}"
            )
        if initial is None:
            initial = uniform_over(~ends)
        distribution = own(without_rounding(np.asarray(initial, np.float64)), np.float64)
        if distribution.shape != (num_states,):
            raise ValueError(f"initial must have shape ({num_states},), got {distribution.shape}")
        pair = "state", "action"
        before = pair if post is None else ("post",)
        by_action = post is None and callable(row) and _num_parameters(row) == 2
        of_row = pair if by_action else ("state" if post is None else "post",)
        functions: dict[str, tuple[Any, tuple[str, ...], str]] = {
            "row": (row, of_row, "integer"),
            "event_cost": (event_cost, (*before, "event"), "number"),
            "post": (post, pair, "integer"),
            "available": (available, pair, "boolean"),
        }
        for name, value in (
            ("shape", (num_states, num_actions)),
            ("next_state", _compiled("next_state", next_state, (*before, "event"), "integer")),
            ("probabilities", _distributions(probabilities, row)),
            ("cost", _compiled("cost", cost, pair, "number")),
            *(
                (name, None if function is None else _compiled(name, function, arguments, kind))
                for name, (function, arguments, kind) in functions.items()
            ),
            ("num_posts", num_posts),
            ("lanes", lanes),
            ("stages", tuple(stages)),
            ("terminal", own(ends, np.bool_)),
            ("initial", distribution),
        ):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return (
            f"EventMDP({self.num_states:,} states, {self.num_actions:,} actions, "
            f"{self.probabilities.shape[1]:,} events"
            + (f", {len(self.stages)} stages)" if self.stages else ")")
        )

    @property
    def num_states(self) -> int:
        """Number of states S."""
        return self.shape[0]

    @property
    def num_actions(self) -> int:
        """Number of actions A."""
        return self.shape[1]

    @property
    def num_added_states(self) -> int:
        """Number of states that the model's source does not list: none."""
        return 0

    @property
    def num_listed_states(self) -> int:
        """Number of states that the model's source lists: all."""
        return self.num_states

    @cached_property
    def all_stages(self) -> tuple[EventStage, ...]:
        """The stages that hold a value for each of their points: post-decision states first."""
        if self.post is None:
            return self.stages
        assert self.num_posts is not None
        of_posts = EventStage(
            self.num_posts,
            self.next_state,
            self.probabilities,
            row=self.row,
            cost=self.event_cost,
            lanes=self.lanes,
        )
        return (of_posts, *self.stages)

    @cached_property
    def functions(self) -> Functions:
        """What is compiled depends on."""
        return Functions(
            self.num_actions,
            self.next_state,
            self.cost,
            self.row,
            self.rows_by_action,
            self.event_cost,
            self.post,
            self.available,
            tuple(stage.functions for stage in self.all_stages),
        )

    @cached_property
    def chances(self) -> tuple[Chances, ...]:
        """The events that can happen right after an action, and in each of `all_stages`."""
        certain = chances_of(np.ones((1, 1)))
        first = chances_of(self.probabilities) if self.post is None else certain
        return (first, *(stage.chances for stage in self.all_stages))

    @cached_property
    def rows_by_action(self) -> bool:
        """Whether the distribution of what follows an action depends on the action."""
        return self.post is None and self.row is not None and _num_parameters(self.row) == 2

    @property
    def action_mask(self) -> NDArray[np.bool_]:
        """Which actions may be chosen, shape (S, A): those available; all in terminal states."""
        return self._listed(0, self.num_states)[2]

    @property
    def extent(self) -> Extent:
        """How large costs are, from the look at all of the model that `validate` takes."""
        self.validate()
        found: Extent = self.__dict__["_extent"]
        return found

    @property
    def idle_cost(self) -> float:
        """Cost of a step in place that never pays: ``max(0, largest cost)``, of events included."""
        return max(0.0, self.extent.highest_cost + math.fsum(self.extent.event_costs))

    @property
    def draw(self) -> Callable[..., tuple[int, float, float]]:
        """`sample`, unchecked: ``draw(model.sampling_tables, state, action, u)``."""
        return self._draw

    @property
    def sampling_tables(self) -> tuple[Any, ...]:
        """What `draw` draws from."""
        return self.chances

    def rows(self, lo: int, hi: int) -> Rows:
        """Return the rows of the states ``lo`` to ``hi - 1`` as general sparse rows.

        Parameters
        ----------
        lo, hi : int
        """
        check_block(lo, hi, self.num_states)
        self.validate()
        outcomes, own_costs, mask = self._listed(lo, hi)
        rows, states, probabilities, costs = outcomes
        costs = costs + own_costs.reshape(-1)[rows]
        # What is unavailable, or terminal, stays in place.
        ends = np.repeat(self.terminal[lo:hi], self.num_actions)
        staying = np.flatnonzero(~mask.reshape(-1) | ends)
        prices = np.where(ends[staying], 0.0, self.idle_cost)
        rows = np.concatenate([rows, staying])
        states = np.concatenate([states, lo + staying // self.num_actions])
        probabilities = np.concatenate([probabilities, np.ones(len(staying))])
        costs = np.concatenate([costs, prices])
        # Several events may lead to one state.
        order = np.lexsort((states, rows))
        rows, states, probabilities, costs = (
            array[order] for array in (rows, states, probabilities, costs)
        )
        starts = np.flatnonzero(np.diff(rows, prepend=-1) | np.diff(states, prepend=-1))
        weighted = np.add.reduceat(probabilities * costs, starts)
        probabilities = np.add.reduceat(probabilities, starts)
        rows, states, costs = rows[starts], states[starts], weighted / probabilities
        num_rows = (hi - lo) * self.num_actions
        indptr = np.searchsorted(rows, np.arange(num_rows + 1))
        index = np.int32 if len(states) < 2**31 else np.int64
        matrix = sp.csr_array(
            (probabilities, states.astype(index), indptr.astype(index)),
            shape=(num_rows, self.num_states),
        )
        expected = np.zeros(num_rows)
        np.add.at(expected, rows, weighted)
        return Rows(matrix, expected.reshape(hi - lo, self.num_actions), mask, costs)

    def to_tabular(self) -> TabularMDP:
        """Return the same model as a general sparse table, where memory holds it."""
        rows = self.rows(0, self.num_states)
        return TabularMDP(
            rows.transitions,
            rows.costs,
            action_mask=rows.action_mask,
            terminal=self.terminal,
            initial=self.initial,
            outcome_costs=rows.outcome_costs,
        )

    def _check(self) -> None:
        """Go through all that the functions return; what is wrong is named by `_complaint`."""
        from aggmaze.models.event_kernels import action_scanner

        check_distribution(self.initial)
        sizes = [stage.num_points for stage in self.all_stages] + [self.num_states]
        scan = action_scanner(self.functions)
        found = [0.0, 0.0, -math.inf]

        def scan_actions(lo: int, hi: int) -> int:
            state, *most = scan(self.chances[0], self.terminal, sizes[0], lo, hi)
            found[:] = map(max, found, most)
            return int(state)

        work = self.num_actions * self.chances[0].longest
        state = _first_wrong(scan_actions, self.num_states, work)
        if state >= 0:
            raise ValueError(self._complaint(state, sizes[0]))
        event_costs = [found[1]]
        for k in range(len(self.all_stages)):
            event_costs.append(self._check_stage(k, sizes[k + 1]))
        object.__setattr__(self, "_extent", Extent(found[0], found[2], tuple(event_costs)))

    def _check_stage(self, place: int, num_following: int) -> float:
        """Go through the points of a stage and return the largest size of a cost."""
        from aggmaze.models.event_kernels import stage_scanner

        stage = self.all_stages[place]
        scan, most = stage_scanner(stage.functions), [0.0]

        def scan_groups(lo: int, hi: int) -> int:
            group, largest = scan(stage.chances, num_following, lo, hi)
            most.append(float(largest))
            return int(group)

        num_groups = stage.num_points // stage.lanes
        group = _first_wrong(scan_groups, num_groups, stage.lanes * stage.chances.longest)
        if group >= 0:
            raise ValueError(self._stage_complaint(place, group, num_following))
        return max(most)

    def _complaint(self, state: int, num_following: int) -> str:
        """Say what is wrong with a state, of which the scan says that something is."""
        from aggmaze.models.event_kernels import first_step

        row_of, leads_to, event_cost = first_step(self.functions)
        name = "next_state" if self.post is None else "post"
        indptr, events, _ = self.chances[0]
        some_open = False
        for action in range(self.num_actions):
            if self.available is not None and not self.available(state, action):
                continue
            some_open = True
            here = f"state {state}, action {action}"
            price = self.cost(state, action)
            if not math.isfinite(price):
                return f"{here}: cost {price} must be finite"
            row = row_of(state, action)
            if not 0 <= row < len(indptr) - 1:
                return f"{here}: row {row} is not in [0, {len(indptr) - 1})"
            for event in events[indptr[row] : indptr[row + 1]].tolist():
                there = here if self.post is not None else f"{here}, event {event}"
                following = leads_to(state, action, event)
                if not 0 <= following < num_following:
                    return f"{there}: {name} {following} is not in [0, {num_following})"
                price = event_cost(state, action, event)
                if not math.isfinite(price):
                    return f"{there}: event_cost {price} must be finite"
        if not some_open:
            return f"state {state} has no available action and is not terminal"
        return f"state {state}: the functions return one thing at one call and another at the next"

    def _stage_complaint(self, place: int, group: int, num_following: int) -> str:
        """Say what is wrong with a group of points, of which the scan says that something is."""
        stage = self.all_stages[place]
        of_posts = self.post is not None and place == 0
        kind, what, price_name = (
            ("post-decision state", "next_state", "event_cost")
            if of_posts
            else ("point", "following", "cost")
        )
        prefix = "" if of_posts else f"stage {place - (self.post is not None)}, "
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

    def _listed(
        self, lo: int, hi: int
    ) -> tuple[tuple[NDArray[Any], ...], NDArray[np.float64], NDArray[np.bool_]]:
        """Return what follows in a block of states, costs of actions (B, A) and which there are.

        The outcomes are rows ``(s - lo) * A + a``, next states, probabilities and costs of events.
        """
        from aggmaze.models.event_kernels import action_lister, stage_lister

        self.validate()
        own_costs = np.zeros((hi - lo, self.num_actions))
        mask = np.zeros((hi - lo, self.num_actions), dtype=bool)
        count, fill = action_lister(self.functions)
        block = self.chances[0], self.terminal, lo, hi
        outcomes = _room(count(*block), self.num_states)
        fill(*block, *outcomes, own_costs, mask)
        for stage in self.all_stages:
            count, fill = stage_lister(stage.functions)
            after = _room(count(stage.chances, outcomes[1]), self.num_states)
            fill(stage.chances, outcomes, after)
            outcomes = after
        mask[self.terminal[lo:hi]] = True
        return outcomes, own_costs, mask

    def _draw(
        self, tables: tuple[Chances, ...], state: int, action: int, uniform: float
    ) -> tuple[int, float, float]:
        """Return the next state, its cost and its probability."""
        if self.terminal[state]:
            return state, 0.0, 1.0
        if self.available is not None and not self.available(state, action):
            return state, self.idle_cost, 1.0
        from aggmaze.models.event_kernels import first_step

        row_of, leads_to, event_cost = first_step(self.functions)
        event, probability, uniform = _drawn(tables[0], row_of(state, action), uniform)
        price = self.cost(state, action) + event_cost(state, action, event)
        point = leads_to(state, action, event)
        for stage, chances in zip(self.all_stages, tables[1:], strict=True):
            row = 0 if stage.row is None else stage.row(point)
            event, share, uniform = _drawn(chances, row, uniform)
            price += 0.0 if stage.cost is None else stage.cost(point, event)
            probability *= share
            point = stage.following(point, event)
        return int(point), float(price), probability


def _drawn(chances: Chances, row: int, uniform: float) -> tuple[int, float, float]:
    """Return an event of a row, its probability, and a uniform number that is left of the first."""
    entries = slice(*chances.indptr[row : row + 2])
    shares = chances.probabilities[entries]
    sums = np.cumsum(shares)
    place = min(int(np.searchsorted(sums, uniform, side="right")), len(shares) - 1)
    share = float(shares[place])
    left = (uniform - (float(sums[place]) - share)) / share
    return int(chances.events[entries][place]), share, min(max(left, 0.0), 1.0 - 2.0**-53)


def _room(count: int, num_states: int) -> tuple[NDArray[Any], ...]:
    """Return arrays for rows, points, probabilities and costs of so many outcomes."""
    # While they are listed, sorted and put together.
    check_memory(160 * count, f"outcomes of {num_states:,} states")
    return (
        np.empty(count, dtype=np.int64),
        np.empty(count, dtype=np.int64),
        np.empty(count),
        np.empty(count),
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


def chances_of(probabilities: NDArray[np.float64]) -> Chances:
    """Return the events that can happen, by row.

    Parameters
    ----------
    probabilities : ndarray of float, shape (R, E)
    """
    rows, events = np.nonzero(probabilities)
    indptr = np.searchsorted(rows, np.arange(len(probabilities) + 1))
    return Chances(
        lock(indptr.astype(np.int64)),
        lock(events.astype(np.int64)),
        lock(probabilities[rows, events]),
    )


def _num_parameters(function: Callable[..., Any]) -> int:
    """Return how many arguments a function takes, compiled or not."""
    return len(inspect.signature(getattr(function, "py_func", function)).parameters)


def _compiled(
    name: str, function: Any, arguments: tuple[str, ...], kind: str
) -> Callable[..., Any]:
    """Return a function compiled by numba for whole numbers, and refuse one that cannot be.

    Parameters
    ----------
    name : str
        What errors call it.
    function : callable
        Compiled already or not.
    arguments : tuple of str
        What it takes.
    kind : str
        What it returns: "integer", "number" or "boolean".
    """
    from numba import njit, types  # which takes long to import
    from numba.core.dispatcher import Dispatcher
    from numba.core.errors import NumbaError

    if not callable(function):
        raise TypeError(f"{name} must be a function, got {function!r}")
    found = _num_parameters(function)
    if found != len(arguments):
        count = "1 argument" if len(arguments) == 1 else f"{len(arguments)} arguments"
        raise TypeError(f"{name} must take {count} ({', '.join(arguments)}), takes {found}")
    compiled: Any = function if isinstance(function, Dispatcher) else njit(nogil=True)(function)
    whole = (types.int64,) * len(arguments)
    try:
        compiled.compile(whole)
    except NumbaError as error:
        raise TypeError(f"{name} cannot be compiled by numba for whole numbers: {error}") from error
    returned = compiled.overloads[whole].signature.return_type
    allowed: tuple[Any, ...] = {
        "integer": (types.Integer,),
        "number": (types.Integer, types.Float),
        "boolean": (types.Boolean,),
    }[kind]
    if not isinstance(returned, allowed):
        raise TypeError(
            f"{name} must return {'an' if kind == 'integer' else 'a'} {kind}, returns {returned}"
        )
    return compiled


def _distributions(probabilities: ArrayLike, row: Callable[..., int] | None) -> NDArray[np.float64]:
    """Return distributions of events, shape (R, E), and refuse what are none."""
    array = np.asarray(probabilities, dtype=np.float64)
    table = np.atleast_2d(without_rounding(array))
    if array.ndim not in (1, 2) or 0 in table.shape:
        raise ValueError(
            f"probabilities must have shape (E,) or (R, E), not empty, got {array.shape}"
        )
    if row is None and len(table) > 1:
        raise ValueError(f"probabilities has {len(table)} rows: row must say which one holds")
    for r, distribution in enumerate(table):
        bad = np.flatnonzero(~np.isfinite(distribution) | (distribution < 0))
        if len(bad):
            raise ValueError(
                f"row {r}, event {bad[0]}: probability {distribution[bad[0]]} must be a finite "
                "number, not negative"
            )
        total = math.fsum(distribution)
        if abs(total - 1.0) > ROW_SUM_TOLERANCE:
            raise ValueError(f"row {r}: probabilities sum to {total!r}, must sum to 1")
    return own(table, np.float64)
