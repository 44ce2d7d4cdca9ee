"""What all mazes share: a layout given or drawn from a seed, coordinates, and pictures."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np

from aggmaze.checks import check_integer
from aggmaze.envs.layout_env import LayoutEnv
from aggmaze.grid import Grid
from aggmaze.layouts.layout import Layout, position
from aggmaze.layouts.text import layout_from_text
from aggmaze.memory import check_memory
from aggmaze.models.moves import MoveMDP
from aggmaze.recipes import MazeOptions, maze_model, start_distribution

#: What a layout seed is told where none is needed.
NOTHING_DRAWN = (
    "has nothing to draw: all of this maze is given (walls by its text, or heights by an array or "
    "a picture)"
)


@dataclass(frozen=True)
class Plan:
    """What of a maze is settled before anything is drawn.

    Parameters
    ----------
    grid : Grid
    layout : Layout, optional
        Walls, blocked positions and goal, possibly heights too; None where all is drawn.
    start : tuple of int, optional
        Coordinates of the start that the layout's source marks.
    """

    grid: Grid
    layout: Layout | None = None
    start: tuple[int, ...] | None = None


# Peak while a maze and its model are made, measured in one to six dimensions.
_BYTES_A_MOVE, _BYTES_A_STATE = 18, 56


class MazeEnv(LayoutEnv):
    """A maze on a grid, made by a recipe.

    Parameters
    ----------
    find_plan : callable
        Returns the `Plan`; called once the arguments that depend on no plan are checked.
    options : MazeOptions
        Checked already.  With the start "corner", that of the plan comes first.
    render_mode : {"human", "rgb_array", "ansi"}, optional
    """

    _reset_options = ("layout_seed", "state", "coords")

    def __init__(
        self,
        find_plan: Callable[[], Plan],
        options: MazeOptions,
        *,
        render_mode: str | None = None,
    ) -> None:
        # Arguments are checked before work is done: what needs no plan, the plan, then the rest.
        self.check_render_mode(render_mode)
        plan = find_plan()
        self._given = plan.layout
        self._goal = 0 if plan.layout is None else plan.layout.goal
        if options.goal is not None:
            self._goal = position("goal", plan.grid, options.goal)
            if plan.layout is not None:
                self._given = replace(plan.layout, goal=self._goal)
        if plan.start is not None and isinstance(options.start, str) and options.start == "corner":
            options = replace(options, start=plan.start)
        blocked = None if plan.layout is None else plan.layout.blocked
        start_distribution(plan.grid, self._goal, blocked, options.start)
        self._options = options
        self.grid = plan.grid
        needed = self.grid.num_states * (_BYTES_A_MOVE * self.grid.num_actions + _BYTES_A_STATE)
        check_memory(needed, f"mazes of {self.grid.num_states:,} positions")
        self._layout = self._draw_layout(options.layout_seed)
        if options.layout_seed != 0 and not self.is_drawn:
            raise ValueError(f"layout_seed={options.layout_seed!r} {NOTHING_DRAWN}")
        super().__init__(self._layout, self._model_of(self._layout), render_mode=render_mode)

    @property
    def is_drawn(self) -> bool:
        """Whether a seed draws any of the maze, rather than all being given."""
        return self._layout is not self._given

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Start an episode.

        Parameters
        ----------
        seed : int, optional
            Seeds start and slips from now on; the maze stays.
        options : dict, optional
            ``layout_seed``: draw another maze, and keep it; refused where nothing is drawn.
            ``state`` or ``coords``: where to start, any free position but the goal.
        """
        options = dict(options or {})
        if "layout_seed" in options:
            # A reset that is refused changes nothing, and draws nothing.  What is blocked, and
            # the goal, are given: any layout has those of the present model.
            layout_seed = check_integer("layout_seed", options.pop("layout_seed"))
            if not self.is_drawn:
                raise ValueError(f"options['layout_seed'] {NOTHING_DRAWN}")
            self._requested_start(options, self._model)
            gym.Env.reset(self, seed=seed)
            seed = None
            layout = self._draw_layout(layout_seed)
            self._set_model(self._model_of(layout))
            self._layout = layout
            self.set_overlay()
        return super().reset(seed=seed, options=options)

    def _draw_layout(self, layout_seed: int) -> Layout:
        rng, recipe = np.random.default_rng(layout_seed), self._options.recipe
        if self._given is not None:
            return recipe.complete(self._given, rng)
        return replace(recipe.layout(self.grid, rng), goal=self._goal)

    def _model_of(self, layout: Layout) -> MoveMDP:
        asked = self._options
        return maze_model(
            layout, asked.recipe, p=asked.p, start=asked.start, cost_scale=asked.cost_scale
        )


def make_plan(
    shape: Iterable[int],
    layout: str | os.PathLike[str] | None,
    *,
    default_shape: tuple[int, ...],
    num_dims: int | None = None,
) -> Plan:
    """Return the plan of a maze from its shape, or from its text.

    Parameters
    ----------
    shape : sequence of int
    layout : str or path, optional
        A maze as text, or a file with one: a path, or a name that ends in .txt or .map.
    default_shape : tuple of int
        The shape that counts as not given beside a text.
    num_dims : int, optional
        Number of axes that the shape must have.

    Raises
    ------
    ValueError
        If the shape has another number of axes, or differs from that of the text, or the text is
        not a maze.
    OSError
        If a file cannot be read.
    TypeError
        If the layout is not text.
    """
    grid = Grid(shape)
    if layout is not None:
        if not isinstance(layout, str | os.PathLike):
            raise TypeError(f"layout must be a maze as text, or None, got {type(layout).__name__}")
        read, start = layout_from_text(layout)
        if grid.shape not in (default_shape, read.grid.shape):
            raise ValueError(
                f"shape {grid.shape} differs from that of the layout, {read.grid.shape}; a layout "
                "needs no shape"
            )
        marked = None if start is None else tuple(read.grid.coords(start).tolist())
        return Plan(read.grid, read, marked)
    check_num_dims(grid, num_dims)
    return Plan(grid)


def check_num_dims(grid: Grid, num_dims: int | None) -> None:
    """Refuse a grid of another number of axes than those asked for, if there are any.

    Parameters
    ----------
    grid : Grid
    num_dims : int, optional
    """
    if num_dims is not None and grid.num_dims != num_dims:
        raise ValueError(
            f"shape must have {num_dims} axes, got {grid.num_dims}: {grid.shape}; NDMaze-v0 takes "
            "1 to 8"
        )


def refuse_beside_layout(
    layout: str | os.PathLike[str] | None, **arguments: tuple[Any, Any]
) -> None:
    """Refuse arguments that say how to draw walls where a text gives them.

    Parameters
    ----------
    layout : str, path or None
    arguments : pair
        Value, and the default that counts as not given.
    """
    for name, (value, default) in arguments.items():
        if layout is not None and value != default:
            raise ValueError(f"{name}={value!r} does not go with layout=: its text gives the walls")
