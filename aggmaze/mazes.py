"""The rules of the mazes: what a layout is drawn from, and what its moves cost.

A recipe draws layouts, or what is missing from one that is given, and prices their moves;
`maze_model` adds what is common to all mazes: the absorbing goal, slip and the start.  The
environments are recipes with a body around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from aggmaze.arrays import lock
from aggmaze.checks import check_choice, check_finite, check_positive, check_share
from aggmaze.grid import Grid
from aggmaze.layouts.heights import heights
from aggmaze.layouts.layout import Layout, open_passages, position
from aggmaze.layouts.spanning_tree import GENERATORS, open_loops
from aggmaze.move_mdp import MoveMDP

STARTS = ("corner", "uniform")
#: One of `STARTS`, or coordinates.
Start = str | Sequence[int]

TerrainCost = Callable[[NDArray[np.float64], float], NDArray[np.float64]]
# From the climb H(next) - H(here) and the step cost, the cost of a move.
TERRAIN_COSTS: dict[str, TerrainCost] = {
    "shifted": lambda climb, step_cost: step_cost + climb,
    "difference": lambda climb, step_cost: climb,
    "climb": lambda climb, step_cost: step_cost + np.maximum(climb, 0.0),
}


class Recipe(Protocol):
    """What makes a kind of maze."""

    def layout(self, grid: Grid, rng: np.random.Generator) -> Layout:
        """Draw a layout, its goal at the origin."""

    def complete(self, plan: Layout, rng: np.random.Generator) -> Layout:
        """Return a given layout with what it lacks drawn; the very same where it lacks nothing."""

    def move_costs(self, layout: Layout, successors: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the cost of each move, shape (S, 2 D), whether it is available or not."""


@dataclass(frozen=True)
class StandardRecipe:
    """A spanning tree; each move costs ``step_cost``, one into the goal ``-goal_reward``."""

    generator: str = "kruskal"
    loops: float = 0.0
    step_cost: float = 1.0
    goal_reward: float = 1.0

    def __post_init__(self) -> None:
        check_choice("generator", self.generator, GENERATORS)
        check_share("loops", self.loops)
        check_finite("step_cost", self.step_cost)
        check_finite("goal_reward", self.goal_reward)

    def layout(self, grid: Grid, rng: np.random.Generator) -> Layout:
        """Draw a maze."""
        passages = GENERATORS[self.generator](grid, rng)
        if self.loops:
            passages = open_loops(grid, passages, self.loops, rng)
        return Layout(grid, passages)

    def complete(self, plan: Layout, rng: np.random.Generator) -> Layout:
        """Return the layout as it is."""
        return plan

    def move_costs(self, layout: Layout, successors: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the cost of each move, shape (S, 2 D)."""
        return np.where(successors == layout.goal, -self.goal_reward, self.step_cost)


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
        check_choice("cost", self.cost, TERRAIN_COSTS)
        check_finite("step_cost", self.step_cost)
        check_finite("goal_reward", self.goal_reward)

    def layout(self, grid: Grid, rng: np.random.Generator) -> Layout:
        """Draw the heights of an open grid."""
        return self.complete(Layout(grid, open_passages(grid)), rng)

    def complete(self, plan: Layout, rng: np.random.Generator) -> Layout:
        """Return the layout with heights, drawn if it has none."""
        if plan.heights is not None:
            return plan
        return replace(plan, heights=heights(plan.grid, self.terrain, self.smoothness, rng))

    def move_costs(self, layout: Layout, successors: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the cost of each move, shape (S, 2 D)."""
        assert layout.heights is not None
        climb = layout.heights[successors] - layout.heights[:, np.newaxis]
        costs = TERRAIN_COSTS[self.cost](climb, self.step_cost)
        costs[successors == layout.goal] -= self.goal_reward
        return costs


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
    initial = start_distribution(layout, start)
    check_positive("cost_scale", cost_scale)
    successors, _ = layout.grid.neighbours()
    with np.errstate(over="ignore"):
        costs = recipe.move_costs(layout, successors) * cost_scale
    if not np.isfinite(costs).all():
        raise ValueError(f"costs overflow: {recipe} with cost_scale={cost_scale!r}")
    available = layout.available()
    available[layout.goal] = False
    costs[~available] = np.inf
    return MoveMDP(lock(successors), lock(costs), p=p, initial=initial)


def start_distribution(layout: Layout, start: Start) -> NDArray[np.float64]:
    """Return with which probability an episode starts where, shape (S,).

    Parameters
    ----------
    layout : Layout
    start : {"corner", "uniform"} or sequence of int
        As for `maze_model`.  The corner opposite a goal that is in no corner is the one farthest
        from it along every axis, the upper one where both ends are as far.
    """
    candidates = layout.free()
    candidates[layout.goal] = False
    if not candidates.any():
        raise ValueError(f"shape {layout.grid.shape} has no free position beside the goal")
    initial = np.zeros(layout.grid.num_states)
    if isinstance(start, str) and start == "uniform":
        initial[candidates] = 1.0 / np.count_nonzero(candidates)
        return initial
    if isinstance(start, str) and start == "corner":
        state = _opposite_corner(layout)
        if layout.blocked is not None and layout.blocked[state]:
            raise ValueError(
                f"start='corner' is the position {_point(layout.grid, state)}, which is blocked; "
                "give start=(x, y, ...) or start='uniform', or mark a start in the text"
            )
    elif isinstance(start, str) or not isinstance(start, Sequence | np.ndarray):
        raise ValueError(
            f"start must be {', '.join(STARTS)} or coordinates such as (3, 4), got {start!r}"
        )
    else:
        state = position("start", layout.grid, start)
        if state == layout.goal:
            raise ValueError(f"start={_point(layout.grid, state)} is the goal: nothing to walk")
        if layout.blocked is not None and layout.blocked[state]:
            raise ValueError(f"start={_point(layout.grid, state)} is blocked")
    initial[state] = 1.0
    return initial


def _opposite_corner(layout: Layout) -> int:
    goal = layout.grid.coords(layout.goal)
    ends = zip(goal, layout.grid.shape, strict=True)
    return layout.grid.state([n - 1 if 2 * x <= n - 1 else 0 for x, n in ends])


def _point(grid: Grid, state: int) -> tuple[int, ...]:
    return tuple(int(x) for x in grid.coords(state))
