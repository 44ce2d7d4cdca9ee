"""The rules of the mazes: what a layout is drawn from, and what its moves cost.

A recipe draws layouts and prices their moves; `maze_model` adds what is common to all mazes: the
absorbing goal, slip and the start.  The environments are recipes with a body around them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_choice, check_finite, check_positive, check_share
from aggmaze.grid import Grid
from aggmaze.layouts.heights import heights
from aggmaze.layouts.layout import Layout, open_passages
from aggmaze.layouts.spanning_tree import GENERATORS, open_loops
from aggmaze.move_mdp import MoveMDP

GOAL = 0
STARTS = ("corner", "uniform")

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
        """Draw a layout."""

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
        return Layout(grid, passages, goal=GOAL)

    def move_costs(self, layout: Layout, successors: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the cost of each move, shape (S, 2 D)."""
        return np.where(successors == layout.goal, -self.goal_reward, self.step_cost)


@dataclass(frozen=True)
class TerrainRecipe:
    """An open grid with heights; moves are priced by the climb, the goal pays ``goal_reward``."""

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
        field = heights(grid, self.terrain, self.smoothness, rng)
        return Layout(grid, open_passages(grid), field, goal=GOAL)

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
    start: str = "corner",
    cost_scale: float = 1.0,
) -> MoveMDP:
    """Return the exact model of a maze.

    Parameters
    ----------
    layout : Layout
    recipe : Recipe
        Prices the moves.
    p : float
        Probability in (0, 1] that the chosen move happens; else another available one does.
    start : {"corner", "uniform"}
        The corner opposite the goal, or any position but the goal.
    cost_scale : float
        Positive factor of every cost.
    """
    check_choice("start", start, STARTS)
    check_positive("cost_scale", cost_scale)
    num_states = layout.grid.num_states
    successors, _ = layout.grid.neighbours()
    with np.errstate(over="ignore"):
        costs = recipe.move_costs(layout, successors) * cost_scale
    if not np.isfinite(costs).all():
        raise ValueError(f"costs overflow: {recipe} with cost_scale={cost_scale!r}")
    available = layout.available()
    available[layout.goal] = False
    costs[~available] = np.inf
    initial = np.zeros(num_states)
    if start == "uniform":
        initial[:] = 1.0 / (num_states - 1)
        initial[layout.goal] = 0.0
    else:
        initial[num_states - 1] = 1.0
    return MoveMDP(successors, costs, p=p, initial=initial)
