"""The rules of grid worlds: where each action leads, with which probability, and what it pays.

One step goes by three rules, in this order.

1. *Which move is made.*  With probability ``p`` it is the chosen one.  Else the move slips:
   with ``slip="perpendicular"`` to either side of it, at right angles, with (1 - p)/2 each
   (FrozenLake, AIMA); with ``slip="uniform"`` to one of the other moves with equal probability.
   ``STAY`` has no sides, and does not slip to any.
2. *Where it leads.*  The part of the move to the left or right is made first, then the part up or
   down together with the wind of the column where the step starts, cell by cell as long as no wall,
   blocked cell or edge is in the way.  On an open grid that is Sutton and Barto's rule, the sum of
   move and wind cut off at the edges.  A step that would move, and ends where it began, is a bump.
   With ``bumps="stay"`` all moves can be chosen everywhere; with ``bumps="masked"`` those that
   would bump cannot, and a move does not slip uniformly into them.
3. *What it pays.*  ``pays="entering"`` (Sutton, Gymnasium): the cell where the step ends, its own
   reward if its sign has one, else ``-step_cost``.  ``pays="leaving"`` (AIMA's R(s)): the cell
   where it begins, in the same way, and in addition the reward of an end, or of a cliff, where it
   is entered: nobody leaves it.  A bump pays ``-bump_cost`` instead, if that is given.

Ends and cliffs count only where a step ends: who is blown over one has not been there.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.arrays import lock
from aggmaze.checks import check_chance, check_choice, check_finite
from aggmaze.layouts.layout import position
from aggmaze.layouts.worlds import GridWorld
from aggmaze.memory import check_memory
from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP

SLIPS = ("perpendicular", "uniform")
PAYS = ("entering", "leaving")
BUMPS = ("stay", "masked")

#: "uniform" or coordinates; None for what the map says, or else "uniform".
WorldStart = str | Sequence[int] | None

# Outcomes that are listed together: temporaries stay small.
_PIECE = 1 << 18
# Of each outcome in the tables, and while they are put together and checked.
_BYTES_AN_OUTCOME = 64


@dataclass(frozen=True)
class GridWorldRules:
    """How one moves in a grid world, and what that pays; the module says what each rule means.

    Parameters
    ----------
    p : float
        Probability in (0, 1] that the chosen move is made.
    slip : {"perpendicular", "uniform"}
    step_cost : float
        What a cell costs whose sign has no reward of its own.
    pays : {"entering", "leaving"}
    bumps : {"stay", "masked"}
    bump_cost : float, optional
        What a bump costs; by default what entering, or leaving, the own cell does.
    wind : sequence of int, optional
        Cells upwards by which each column blows, negative downwards.
    gusts : bool
        Whether the wind, where there is any, is less or more by 1 with probability 1/3 each.

    Raises
    ------
    ValueError, TypeError
        If an argument is none of these.
    """

    p: float = 1.0
    slip: str = "perpendicular"
    step_cost: float = 0.0
    pays: str = "entering"
    bumps: str = "stay"
    bump_cost: float | None = None
    wind: Sequence[int] | None = None
    gusts: bool = False

    def __post_init__(self) -> None:
        check_chance("p", self.p)
        check_choice("slip", self.slip, SLIPS)
        check_finite("step_cost", self.step_cost)
        check_choice("pays", self.pays, PAYS)
        check_choice("bumps", self.bumps, BUMPS)
        if self.bump_cost is not None:
            check_finite("bump_cost", self.bump_cost)
        if not isinstance(self.gusts, bool | np.bool_):
            raise TypeError(f"gusts must be True or False, got {self.gusts!r}")
        if self.wind is None:
            return
        given: Any = self.wind
        if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
            raise TypeError(f"wind must be one integer a column, got {given!r}")
        winds = tuple(_wind(column, each) for column, each in enumerate(given))
        object.__setattr__(self, "wind", winds)

    def columns(self, num_columns: int) -> NDArray[np.int64]:
        """Return the wind of each column, shape (nx,).

        Raises
        ------
        ValueError
            If there is not one for each.
        """
        if self.wind is None:
            return np.zeros(num_columns, dtype=np.int64)
        if len(self.wind) != num_columns:
            raise ValueError(
                f"wind must have one integer for each of {num_columns} columns, got "
                f"{len(self.wind)}: {self.wind}"
            )
        return np.array(self.wind, dtype=np.int64)


def grid_world_model(
    world: GridWorld, rules: GridWorldRules, *, start: WorldStart = None
) -> TabularMDP | MoveMDP:
    """Return the exact model of a grid world.

    It is a `MoveMDP` where slips are uniform or there are none, and no gusts; else a `TabularMDP`,
    whose rows list each next state once for each cost.

    Parameters
    ----------
    world : GridWorld
    rules : GridWorldRules
    start : {"uniform"} or sequence of int, optional
        Any free cell that is neither an end nor a cliff; or coordinates.  By default the starts
        of the world, or any such cell where it has none.

    Raises
    ------
    ValueError
        If the start is blocked or an end, a cliff has no single start to lead back to, there is
        not one wind a column, or costs overflow.
    MemoryError
        If the tables do not fit.
    """
    initial = start_of(world, start)
    by_column = rules.columns(world.layout.grid.shape[0])
    gusts = rules.gusts and bool(by_column.any())
    num_states, num_actions = world.layout.grid.num_states, world.layout.grid.num_actions
    steps = _Steps(world, rules, by_column, gusts, initial)
    if (rules.p == 1.0 or rules.slip == "uniform") and not gusts:
        check_memory(40 * num_states * num_actions, f"moves of {num_states:,} cells")
        successors, costs, _ = steps.of(slice(0, num_states))
        available = steps.available()
        return MoveMDP(
            lock(successors[0]),
            lock(np.where(available, costs[0], np.inf)),
            p=rules.p,
            initial=lock(initial),
        )
    return _tabular(steps, initial)


def start_of(world: GridWorld, start: WorldStart) -> NDArray[np.float64]:
    """Return with which probability an episode starts where, shape (S,).

    Parameters
    ----------
    world : GridWorld
    start : {"uniform"} or sequence of int, optional
        As for `grid_world_model`.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    layout = world.layout
    initial = np.zeros(layout.grid.num_states)
    free = layout.acting()
    if start is None and len(world.starts):
        initial[world.starts] = 1.0 / len(world.starts)
    elif start is None or (isinstance(start, str) and start == "uniform"):
        if not free.any():
            raise ValueError("there is no free cell to start in")
        initial[free] = 1.0 / np.count_nonzero(free)
    elif isinstance(start, str) or not isinstance(start, Sequence | np.ndarray):
        raise ValueError(
            f"start must be uniform, coordinates such as (3, 4), or None, got {start!r}"
        )
    else:
        state = position("start", layout.grid, start)
        if not free[state]:
            what = "blocked" if not layout.free()[state] else "an end or a cliff"
            point = tuple(layout.grid.coords(state).tolist())
            raise ValueError(f"start={point} is {what}")
        initial[state] = 1.0
    return initial


class _Steps:
    """Where each move of a state leads, under each gust, and what it costs.

    Parameters
    ----------
    world : GridWorld
    rules : GridWorldRules
    by_column : ndarray of int, shape (nx,)
    gusts : bool
    initial : ndarray of float, shape (S,)
    """

    def __init__(
        self,
        world: GridWorld,
        rules: GridWorldRules,
        by_column: NDArray[np.int64],
        gusts: bool,
        initial: NDArray[np.float64],
    ) -> None:
        layout = world.layout
        self.grid, self.rules = layout.grid, rules
        self.directions = np.array(self.grid.directions, dtype=np.int64)
        self.changes = (-1, 0, 1) if gusts else (0,)
        self.absorbing = np.asarray(layout.is_end() | ~layout.free())
        beside, _ = self.grid.neighbours()
        states = np.arange(self.grid.num_states, dtype=np.int32)
        # One column a direction: left, right, down, up.
        self._next = np.where(layout.available(), beside, states[:, np.newaxis])
        self.wind = np.repeat(by_column, self.grid.shape[1])
        own = world.rewards()
        step_cost = float(rules.step_cost)
        self._ordinary = np.where(np.isnan(own), step_cost, -own)
        self._back = world.leads_back()
        met = (layout.is_end() | self._back) & ~np.isnan(own)
        self._arrival = np.where(met, self._ordinary, 0.0)
        self._home = 0
        if self._back.any():
            if np.count_nonzero(initial) != 1:
                raise ValueError(
                    "a cliff leads back to the start, of which there must be one: mark it by S, or "
                    "give start=(x, y)"
                )
            self._home = int(np.argmax(initial))
        largest = float(np.abs(self._ordinary).max()) + float(np.abs(self._arrival).max())
        if not math.isfinite(largest):
            raise ValueError("costs overflow: rewards of cells and step_cost are too large")

    def of(self, states: slice) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.bool_]]:
        """Return next states, costs, and which are bumps, each of shape (gusts, n, A)."""
        here = np.arange(states.start, states.stop, dtype=np.int32)
        shape = (len(self.changes), len(here), len(self.directions))
        following = np.empty(shape, dtype=np.int32)
        bumps = np.empty(shape, dtype=bool)
        for action, (dx, dy) in enumerate(self.directions.tolist()):
            aside = here if dx == 0 else self._next[here, 0 if dx < 0 else 1]
            for place, change in enumerate(self.changes):
                wind = self.wind[here]
                rise = dy + np.where(wind != 0, wind + change, 0)
                reached = self._risen(aside, rise)
                following[place, :, action] = reached
                bumps[place, :, action] = (reached == here) & ((rise != 0) | (dx != 0))
        if self.rules.pays == "entering":
            costs = self._ordinary[following]
        else:
            costs = self._ordinary[here][:, np.newaxis] + self._arrival[following]
        if self.rules.bump_cost is not None:
            costs[bumps] = float(self.rules.bump_cost)
        if self._back.any():
            following[self._back[following]] = self._home
        return following, costs, bumps

    def available(self) -> NDArray[np.bool_]:
        """Return which moves can be chosen, shape (S, A): none where the episode has ended."""
        num_states = self.grid.num_states
        can = np.ones((num_states, len(self.directions)), dtype=bool)
        if self.rules.bumps == "masked":
            mean = len(self.changes) // 2
            for piece in _pieces(num_states):
                can[piece] = ~self.of(piece)[2][mean]
            # In a cell from which nothing leads all moves bump, and may be chosen.
            can[~can.any(axis=1)] = True
        can[self.absorbing] = False
        return can

    def _risen(self, states: NDArray[np.int32], rise: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return where so many steps up, or down where negative, lead as far as the way is open."""
        reached, height = states, self.grid.shape[1]
        rise = rise.clip(-height, height)
        for step in range(int(np.abs(rise).max(initial=0))):
            down, up = self._next[reached, 2], self._next[reached, 3]
            reached = np.where(rise > step, up, np.where(rise < -step, down, reached))
        return reached


def _tabular(steps: _Steps, initial: NDArray[np.float64]) -> TabularMDP:
    """Return the model as a table, its outcomes listed piece by piece."""
    grid, num_changes = steps.grid, len(steps.changes)
    num_states, num_actions = grid.num_states, grid.num_actions
    moves, most = _moves_made(steps)
    available = steps.available()
    mask = available | steps.absorbing[:, np.newaxis]
    means = np.zeros((num_states, num_actions))
    counts: list[NDArray[Any]] = []
    nexts: list[NDArray[Any]] = []
    chances: list[NDArray[Any]] = []
    prices: list[NDArray[Any]] = []
    densest = 0.0
    for piece in _pieces(num_states, num_actions * most * num_changes):
        following, costs, _ = steps.of(piece)
        # Outcomes first: what is done to all of them is done to long runs of memory.
        shape = (most * num_changes, piece.stop - piece.start, num_actions)
        reached, chance, price = (np.zeros(shape, dtype=t) for t in (np.int32, float, float))
        gust = np.where(steps.wind[piece] != 0, 1 / 3, 0.0)
        likely = np.stack([gust, 1 - 2 * gust, gust]) if num_changes > 1 else np.ones((1, 1))
        for action, made in enumerate(moves(available[piece])):
            for place, (move, weight) in enumerate(made):
                part = slice(place * num_changes, (place + 1) * num_changes)
                reached[part, :, action] = following[..., move]
                price[part, :, action] = costs[..., move]
                chance[part, :, action] = weight * likely
        still = steps.absorbing[piece]
        states = np.arange(piece.start, piece.stop, dtype=np.int32)
        reached[:, still] = states[still][:, np.newaxis]
        price[:, still], chance[:, still] = 0.0, 0.0
        chance[0, still] = 1.0
        chance[:, ~mask[piece]] = 0.0
        _merge(reached, chance, price)
        kept = np.moveaxis(chance > 0, 0, 2)
        means[piece] = (chance * price).sum(axis=0)
        counts.append(np.count_nonzero(kept, axis=2).reshape(-1))
        for lists, of in ((nexts, reached), (chances, chance), (prices, price)):
            lists.append(np.moveaxis(of, 0, 2)[kept])
        # Of the rest at most so many will come as the densest piece has.
        densest = max(densest, len(nexts[-1]) / len(states))
        check_memory(
            int(_BYTES_AN_OUTCOME * densest * (num_states - piece.stop)),
            f"outcomes of {num_states:,} cells",
        )
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    transitions = sp.csr_array(
        (np.concatenate(chances), np.concatenate(nexts), indptr),
        shape=(num_states * num_actions, num_states),
    )
    return TabularMDP(
        transitions,
        lock(means),
        action_mask=lock(mask),
        terminal=steps.absorbing,
        initial=lock(initial),
        outcome_costs=lock(np.concatenate(prices)),
    )


#: For each action the moves that may be made, with their probabilities, (n,) or one for all.
_Weights = list[list[tuple[int, NDArray[np.float64] | float]]]


def _moves_made(steps: _Steps) -> tuple[Callable[[NDArray[np.bool_]], _Weights], int]:
    """Return what gives, of available moves (n, A), which are made; and how many at most."""
    p, directions = float(steps.rules.p), steps.directions.tolist()
    count = len(directions)
    if p == 1.0:
        return lambda available: [[(action, 1.0)] for action in range(count)], 1
    if steps.rules.slip == "perpendicular":
        sides: _Weights = []
        for action, (dx, dy) in enumerate(directions):
            turned = [] if dx == dy == 0 else [[-dy, dx], [dy, -dx]]
            slips = [(directions.index(turn), (1 - p) / 2) for turn in turned]
            sides.append([(action, p if slips else 1.0), *slips])
        return lambda available: sides, 3

    def uniform(available: NDArray[np.bool_]) -> _Weights:
        number = np.count_nonzero(available, axis=1)
        slip = np.divide(1 - p, number - 1, out=np.zeros(len(number)), where=number > 1)
        chosen = np.where(number > 1, p, 1.0)
        return [
            [
                (move, chosen if move == action else slip * available[:, move])
                for move in (action, *(other for other in range(count) if other != action))
            ]
            for action in range(count)
        ]

    return uniform, count


def _merge(
    reached: NDArray[np.int32], chance: NDArray[np.float64], price: NDArray[np.float64]
) -> None:
    """Add up the probabilities of outcomes of one next state and cost, in place, (K, n, A)."""
    for later in range(1, len(reached)):
        for first in range(later):
            same = (reached[later] == reached[first]) & (chance[first] > 0)
            same &= price[later] == price[first]
            if same.any():
                chance[first] += np.where(same, chance[later], 0.0)
                chance[later][same] = 0.0


def _pieces(num_states: int, num_outcomes: int = 4) -> Iterator[slice]:
    """Return slices that cover the states, each of about as many outcomes in all."""
    size = max(1, _PIECE // num_outcomes)
    return (slice(lo, min(lo + size, num_states)) for lo in range(0, num_states, size))


def _wind(column: int, given: Any) -> int:
    """Return the wind of a column, a whole number of either sign."""
    try:
        return operator.index(given)
    except TypeError:
        raise TypeError(f"wind[{column}] must be an integer, got {given!r}") from None
