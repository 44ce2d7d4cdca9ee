"""The rules of the mazes: what a layout is drawn from, and what its moves cost.

A recipe draws layouts, or what is missing from one that is given, and prices their moves;
`maze_model` adds what is common to all mazes: the absorbing goal, slip and the start.  The
environments are recipes with a body around them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from aggmaze.arrays import lock, pieces
from aggmaze.checks import (
    check_chance,
    check_choice,
    check_finite,
    check_integer,
    check_positive,
    check_share,
)
from aggmaze.grid import Grid
from aggmaze.layouts.height_rules import HEIGHT_RULES, HeightRule
from aggmaze.layouts.heights import check_terrain, heights
from aggmaze.layouts.layout import Layout, open_passages, position
from aggmaze.layouts.passage_rules import PASSAGE_RULES, PassageRule, passage_rule, unpacked
from aggmaze.layouts.rule import WholeOnlyError
from aggmaze.layouts.spanning_tree import GENERATORS, open_loops
from aggmaze.models.moves import MoveMDP
from aggmaze.progress import stage

STARTS = ("corner", "uniform")
#: One of `STARTS`, or coordinates.
Start = str | Sequence[int]


class TerrainCost(NamedTuple):
    """What a move costs that climbs H(next) - H(here): the climb or more, and a step's cost or not.

    Parameters
    ----------
    least_climb : float
        What is counted in the place of a climb that is less.
    with_step : bool
        Whether ``step_cost`` is added.
    """

    least_climb: float
    with_step: bool


TERRAIN_COSTS = {
    "shifted": TerrainCost(-math.inf, True),
    "difference": TerrainCost(-math.inf, False),
    "climb": TerrainCost(0.0, True),
}


class CostTerms(NamedTuple):
    """What prices a move: ``max(climb, least_climb) + step``.

    Parameters
    ----------
    least_climb, step : float
    goal_reward : float
        What a move into the goal costs less than that on terrain, and less than 0 in a maze.
    """

    least_climb: float
    step: float
    goal_reward: float


class Recipe(Protocol):
    """What makes a kind of maze; what it is made from is checked then, before anything is drawn."""

    @property
    def largest_cost(self) -> float:
        """What no move costs more than, or pays more than."""

    def layout(self, grid: Grid, rng: np.random.Generator) -> Layout:
        """Draw a layout, its goal at the origin.

        Parameters
        ----------
        grid : Grid
        rng : numpy.random.Generator
        """

    def complete(self, plan: Layout, rng: np.random.Generator) -> Layout:
        """Return a given layout with what it lacks drawn; the very same where it lacks nothing.

        Parameters
        ----------
        plan : Layout
        rng : numpy.random.Generator
        """

    def move_costs(self, layout: Layout, successors: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the cost of each move, shape (S, 2 D), whether it is available or not.

        Parameters
        ----------
        layout : Layout
        successors : ndarray of int, shape (S, 2 D)
            Where each move leads.
        """

    @property
    def terms(self) -> CostTerms:
        """What prices a move."""

    def prices(self, costs: NDArray[np.float64], into_goal: Any) -> NDArray[np.float64]:
        """Write the costs of moves, shape (B, 2 D), over how far they climb, and return them.

        Parameters
        ----------
        costs : ndarray of float, shape (B, 2 D)
            H(next) - H(here); anything where there are no heights.
        into_goal : index
            Which of the moves lead into the goal.
        """


@dataclass(frozen=True)
class StandardRecipe:
    """A spanning tree; each move costs ``step_cost``, one into the goal ``-goal_reward``."""

    generator: str = "kruskal"
    loops: float = 0.0
    step_cost: float = 1.0
    goal_reward: float = 1.0

    def __post_init__(self) -> None:
        check_choice("generator", self.generator, (*GENERATORS, *PASSAGE_RULES))
        check_share("loops", self.loops)
        check_finite("step_cost", self.step_cost)
        check_finite("goal_reward", self.goal_reward)

    @property
    def largest_cost(self) -> float:
        """What no move costs more than, or pays more than."""
        return max(abs(float(self.step_cost)), abs(float(self.goal_reward)))

    def layout(self, grid: Grid, rng: np.random.Generator) -> Layout:
        """Draw a maze."""
        with stage(f"passages of {grid.num_states:,} cells"):
            if self.generator in PASSAGE_RULES:
                rule = self.passage_rule(grid, rng)
                return Layout(grid, unpacked(rule.passages(0, grid.num_states), grid.num_dims))
            passages = GENERATORS[self.generator](grid, rng)
            if self.loops:
                passages = open_loops(grid, passages, self.loops, rng)
            return Layout(grid, passages)

    def passage_rule(self, grid: Grid, rng: np.random.Generator) -> PassageRule:
        """Return what tells the passages of any block of cells alone.

        Parameters
        ----------
        grid : Grid
        rng : numpy.random.Generator

        Raises
        ------
        WholeOnlyError
            If the generator makes mazes as a whole only.
        """
        if self.generator not in PASSAGE_RULES:
            raise WholeOnlyError(
                f"generator={self.generator!r} makes a maze as a whole only; by rows there are "
                f"{', '.join(PASSAGE_RULES)}"
            )
        return passage_rule(grid, self.generator, self.loops, rng)

    def complete(self, plan: Layout, rng: np.random.Generator) -> Layout:
        """Return the layout as it is."""
        return plan

    def move_costs(self, layout: Layout, successors: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the cost of each move, shape (S, 2 D)."""
        return self.prices(np.empty(successors.shape), _moves_into(layout.goal, successors))

    @property
    def terms(self) -> CostTerms:
        """What prices a move, none of which climbs."""
        return CostTerms(0.0, float(self.step_cost), float(self.goal_reward))

    def prices(self, costs: NDArray[np.float64], into_goal: Any) -> NDArray[np.float64]:
        """Write the costs of moves, shape (B, 2 D), over whatever is there, and return them.

        Parameters
        ----------
        costs : ndarray of float, shape (B, 2 D)
        into_goal : index
            Which of the moves lead into the goal.
        """
        costs.fill(self.terms.step)
        costs[into_goal] = -self.terms.goal_reward
        return costs


@dataclass(frozen=True)
class TerrainRecipe:
    """An open grid with heights; moves are priced by the climb, the goal pays ``goal_reward``.

    Walls and blocked positions come with a given layout only.
    """

    terrain: str = "smooth"
    smoothness: float | None = None
    cost: str = "shifted"
    step_cost: float = 1.0
    goal_reward: float = 1.0

    def __post_init__(self) -> None:
        check_terrain(self.terrain, self.smoothness)
        check_choice("cost", self.cost, TERRAIN_COSTS)
        check_finite("step_cost", self.step_cost)
        check_finite("goal_reward", self.goal_reward)

    @property
    def largest_cost(self) -> float:
        """What no move costs more than, or pays more than: heights lie in [0, 1]."""
        return 1.0 + abs(float(self.step_cost)) + abs(float(self.goal_reward))

    def layout(self, grid: Grid, rng: np.random.Generator) -> Layout:
        """Draw the heights of an open grid."""
        return self.complete(Layout(grid, open_passages(grid)), rng)

    def complete(self, plan: Layout, rng: np.random.Generator) -> Layout:
        """Return the layout with heights, drawn if it has none."""
        if plan.heights is not None:
            return plan
        with stage(f"heights of {plan.grid.num_states:,} cells"):
            return replace(plan, heights=heights(plan.grid, self.terrain, self.smoothness, rng))

    def height_rule(self, grid: Grid, rng: np.random.Generator) -> HeightRule:
        """Return what tells the heights of any block of cells alone.

        Parameters
        ----------
        grid : Grid
        rng : numpy.random.Generator

        Raises
        ------
        WholeOnlyError
            If the terrain is made as a whole only.
        """
        if self.terrain not in HEIGHT_RULES:
            raise WholeOnlyError(
                f"terrain={self.terrain!r} is made as a whole only; by rows there are "
                f"{', '.join(HEIGHT_RULES)}"
            )
        return HEIGHT_RULES[self.terrain](grid, self.smoothness, rng)

    def move_costs(self, layout: Layout, successors: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the cost of each move, shape (S, 2 D)."""
        assert layout.heights is not None
        costs = layout.heights[successors]
        costs -= layout.heights[:, np.newaxis]
        return self.prices(costs, _moves_into(layout.goal, successors))

    @property
    def terms(self) -> CostTerms:
        """What prices a move."""
        kind = TERRAIN_COSTS[self.cost]
        # The zero whose sum with any number is that number, the other zero too.
        step = float(self.step_cost) if kind.with_step else -0.0
        return CostTerms(kind.least_climb, step, float(self.goal_reward))

    def prices(self, costs: NDArray[np.float64], into_goal: Any) -> NDArray[np.float64]:
        """Write the costs of moves, shape (B, 2 D), over how far they climb, and return them.

        Parameters
        ----------
        costs : ndarray of float, shape (B, 2 D)
            H(next) - H(here).
        into_goal : index
            Which of the moves lead into the goal.
        """
        least_climb, step, goal_reward = self.terms
        if least_climb > -math.inf:
            np.maximum(costs, least_climb, out=costs)
        costs += step
        costs[into_goal] -= goal_reward
        return costs


def _moves_into(
    goal: int, successors: NDArray[np.int32]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return states and moves that lead to the goal: from its neighbours, or where it stays."""
    near = np.unique(np.append(successors[goal], goal))
    places, moves = np.nonzero(successors[near] == goal)
    return near[places], moves


@dataclass(frozen=True)
class MazeOptions:
    """What a maze is asked for besides its plan, checked as far as that goes without one.

    Parameters
    ----------
    recipe : Recipe
        Draws what the plan leaves open and prices the moves.
    layout_seed : int
        Seeds what is drawn.
    p : float
        Probability in (0, 1] that the chosen move happens; else another available one does.
    start : {"corner", "uniform"} or sequence of int
        The corner opposite the goal, any free position but the goal, or coordinates.
    goal : sequence of int, optional
        Coordinates; by default the goal of the plan, or else the origin.
    cost_scale : float
        Positive factor of every cost.

    Raises
    ------
    ValueError, TypeError
        If an argument is none of these, or costs overflow.
    """

    recipe: Recipe
    layout_seed: int = 0
    p: float = 1.0
    start: Start = "corner"
    goal: Sequence[int] | None = None
    cost_scale: float = 1.0

    def __post_init__(self) -> None:
        check_integer("layout_seed", self.layout_seed)
        check_chance("p", self.p)
        check_positive("cost_scale", self.cost_scale)
        if not math.isfinite(self.recipe.largest_cost * float(self.cost_scale)):
            raise ValueError(f"costs overflow: {self.recipe} with cost_scale={self.cost_scale!r}")
        start = self.start
        is_name = isinstance(start, str)
        is_known = start in STARTS if is_name else isinstance(start, Sequence | np.ndarray)
        if not is_known:
            raise ValueError(
                f"start must be {', '.join(STARTS)} or coordinates such as (3, 4), got {start!r}"
            )
        # What the caller does to a list of coordinates later changes nothing.
        object.__setattr__(self, "start", copy.copy(start))


def maze_model(
    layout: Layout,
    recipe: Recipe,
    *,
    p: float = 1.0,
    start: Start = "corner",
    cost_scale: float = 1.0,
) -> MoveMDP:
    """Return the exact model of a maze.

    The goal and blocked positions have no move, so they are terminal; no move leads to the latter.

    Parameters
    ----------
    layout : Layout
    recipe : Recipe
        Prices the moves.
    p : float
        Probability in (0, 1] that the chosen move happens; else another available one does.
    start : {"corner", "uniform"} or sequence of int
        The corner opposite the goal, any free position but the goal, or coordinates.
    cost_scale : float
        Positive factor of every cost.

    Raises
    ------
    ValueError
        If an argument is none of these, the start is blocked or the goal, or costs overflow.
    """
    MazeOptions(recipe, p=p, start=start, cost_scale=cost_scale)  # which checks them
    with stage(f"moves of {layout.grid.num_states:,} cells"):
        initial = start_distribution(layout.grid, layout.goal, layout.blocked, start)
        successors, _ = layout.grid.neighbours()
        costs = recipe.move_costs(layout, successors)
        if cost_scale != 1.0:
            costs *= float(cost_scale)
        available = layout.available()
        available[layout.goal] = False
        for piece in pieces(len(costs)):
            costs[piece].reshape(-1)[np.flatnonzero(~available[piece])] = np.inf
    with stage("checking the model"):
        return MoveMDP(lock(successors), lock(costs), p=p, initial=lock(initial))


def start_distribution(
    grid: Grid, goal: int, blocked: NDArray[np.bool_] | None, start: Start
) -> NDArray[np.float64]:
    """Return with which probability an episode starts where, shape (S,).

    Parameters
    ----------
    grid : Grid
    goal : int
    blocked : ndarray of bool, shape (S,), optional
        As in `Layout`.
    start : {"corner", "uniform"} or sequence of int
        As for `maze_model`.  The corner opposite a goal that is in no corner is the one farthest
        from it along every axis, the upper one where both ends are as far.

    Raises
    ------
    ValueError
        If no position is free beside the goal, or the start is not one that is.
    """
    candidates = np.ones(grid.num_states, dtype=bool) if blocked is None else ~blocked
    candidates[goal] = False
    if not candidates.any():
        raise ValueError(f"shape {grid.shape} has no free position beside the goal")
    initial = np.zeros(grid.num_states)
    state = start_state(grid, goal, start)
    if state is None:
        initial[candidates] = 1.0 / np.count_nonzero(candidates)
        return initial
    if not candidates[state] and isinstance(start, str):
        raise ValueError(
            f"start='corner' is the position {_point(grid, state)}, which is blocked; "
            "give start=(x, y, ...) or start='uniform', or mark a start in the text"
        )
    if not candidates[state]:
        raise ValueError(f"start={_point(grid, state)} is blocked")
    initial[state] = 1.0
    return initial


def start_state(grid: Grid, goal: int, start: Start) -> int | None:
    """Return the state where every episode starts; None where that is drawn.

    Parameters
    ----------
    grid : Grid
    goal : int
    start : {"corner", "uniform"} or sequence of int
        As for `start_distribution`.

    Raises
    ------
    ValueError
        If it is the goal, or not on the grid.
    """
    if isinstance(start, str):
        if grid.num_states == 1:
            raise ValueError(f"shape {grid.shape} has no free position beside the goal")
        return None if start == "uniform" else _opposite_corner(grid, goal)
    state = position("start", grid, start)
    if state == goal:
        raise ValueError(f"start={_point(grid, state)} is the goal: nothing to walk")
    return state


def _opposite_corner(grid: Grid, goal: int) -> int:
    ends = zip(grid.coords(goal), grid.shape, strict=True)
    return grid.state([n - 1 if 2 * x <= n - 1 else 0 for x, n in ends])


def _point(grid: Grid, state: int) -> tuple[int, ...]:
    return tuple(int(x) for x in grid.coords(state))
