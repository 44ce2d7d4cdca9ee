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

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from aggmaze.arrays import own
from aggmaze.checks import check_integer
from aggmaze.formats.tables import without_rounding
from aggmaze.memory import check_memory
from aggmaze.models.base import FiniteMDP, check_block, check_distribution, uniform_over
from aggmaze.models.event_parts import (
    Chances,
    Extent,
    Functions,
    StageFunctions,
    chances_of,
    compiled,
    distributions,
    num_parameters,
)
from aggmaze.models.rows import ROW_SUM_TOLERANCE, Rows
from aggmaze.models.tabular import TabularMDP


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
            ("following", compiled("following", following, ("point", "event"), "integer")),
            ("probabilities", distributions(probabilities, row)),
            ("row", None if row is None else compiled("row", row, ("point",), "integer")),
            (
                "cost",
                None if cost is None else compiled("cost", cost, ("point", "event"), "number"),
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
        by_action = post is None and callable(row) and num_parameters(row) == 2
        of_row = pair if by_action else ("state" if post is None else "post",)
        functions: dict[str, tuple[Any, tuple[str, ...], str]] = {
            "row": (row, of_row, "integer"),
            "event_cost": (event_cost, (*before, "event"), "number"),
            "post": (post, pair, "integer"),
            "available": (available, pair, "boolean"),
        }
        for name, value in (
            ("shape", (num_states, num_actions)),
            ("next_state", compiled("next_state", next_state, (*before, "event"), "integer")),
            ("probabilities", distributions(probabilities, row)),
            ("cost", compiled("cost", cost, pair, "number")),
            *(
                (name, None if function is None else compiled(name, function, arguments, kind))
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
        return self.post is None and self.row is not None and num_parameters(self.row) == 2

    @property
    def action_mask(self) -> NDArray[np.bool_]:
        """Which actions may be chosen, shape (S, A): those available; all in terminal states."""
        from aggmaze.models.event_kernels import action_marker

        check_memory(self.num_states * self.num_actions, "marks of available actions")
        mask = np.ones(self.shape, dtype=bool)
        if self.available is not None:
            action_marker(self.functions)(self.terminal, mask)
        return mask

    @property
    def extent(self) -> Extent:
        """How large costs are, from the look at all of the model that `validate` takes."""
        self.validate()
        found: Extent = self.__dict__["_extent"]
        return found

    @property
    def idle_cost(self) -> float:
        """Cost of a step in place that never pays: ``max(0, largest cost)``, of events included.

        A little more than that, since probabilities may sum to a little more than 1.
        """
        highest = self.extent.highest_cost, *self.extent.event_costs
        slack = 2 * ROW_SUM_TOLERANCE * math.fsum(abs(cost) for cost in highest)
        return max(0.0, math.fsum(highest) + slack)

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
        """Go through all that the functions return."""
        from aggmaze.models.event_checks import look_through  # compiled, which takes long to import

        check_distribution(self.initial)
        object.__setattr__(self, "_extent", look_through(self))

    def _listed(
        self, lo: int, hi: int
    ) -> tuple[tuple[NDArray[Any], ...], NDArray[np.float64], NDArray[np.bool_]]:
        """Return what follows in a block of states, costs of actions (B, A) and which there are.

        The outcomes are rows ``(s - lo) * A + a``, next states, probabilities and costs of events.
        """
        from aggmaze.models.event_kernels import action_lister, stage_lister

        self.validate()
        check_memory(9 * (hi - lo) * self.num_actions, f"costs of actions in {hi - lo:,} states")
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
