"""What all mazes share: a layout drawn from a seed, coordinates, and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_integer
from aggmaze.envs.tabular import Model, TabularEnv, refuse_other_options
from aggmaze.grid import Grid
from aggmaze.layouts.layout import Layout
from aggmaze.mazes import Recipe, maze_model
from aggmaze.move_mdp import MoveMDP
from aggmaze.rendering import ansi
from aggmaze.rendering.raster import Raster


class MazeEnv(TabularEnv):
    """A maze on a grid, made by a recipe.

    Parameters
    ----------
    grid : Grid
        At least two positions.
    recipe : Recipe
        Draws the layout and prices the moves.
    layout_seed : int
        Makes the layout; a seed given to `reset` never changes it.
    p, start, cost_scale
        As for `aggmaze.mazes.maze_model`.
    render_mode : {"rgb_array", "ansi"}, optional
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "ansi"], "render_fps": 10}

    def __init__(
        self,
        grid: Grid,
        recipe: Recipe,
        *,
        layout_seed: int = 0,
        p: float = 1.0,
        start: str = "corner",
        cost_scale: float = 1.0,
        render_mode: str | None = None,
    ) -> None:
        if grid.num_states < 2:
            raise ValueError(f"shape {grid.shape} has no position beside the goal")
        self.grid = grid
        self._recipe = recipe
        self._p, self._start, self._cost_scale = p, start, cost_scale
        self._raster: Raster | None = None
        self._layout = self._draw_layout(layout_seed)
        super().__init__(self._model_of(self._layout), render_mode=render_mode)

    @property
    def layout(self) -> Layout:
        """The passages and heights of the maze."""
        return self._layout

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Start an episode.

        Parameters
        ----------
        seed : int, optional
            Seeds start and slips from now on; the maze stays.
        options : dict, optional
            ``layout_seed``: draw another maze, and keep it.  ``state`` or ``coords``: where to
            start, any position but the goal.
        """
        options = dict(options or {})
        if "layout_seed" in options:
            layout = self._draw_layout(options.pop("layout_seed"))
            model = self._model_of(layout)
            # A reset that is refused changes nothing: first what may be refused.
            self._requested_start(options, model)
            gym.Env.reset(self, seed=seed)
            seed = None
            self._layout, self._raster = layout, None
            self._set_model(model)
        return super().reset(seed=seed, options=options)

    def render(self) -> Any:
        """Return a picture of the maze: an array (H, W, 3) of uint8, or text."""
        if self.render_mode is None:
            gym.logger.warn(
                "You are calling render method without specifying any render mode. You can specify "
                'the render_mode at initialization, e.g. render_mode="rgb_array"'
            )
            return None
        if self.render_mode == "ansi":
            return ansi.text(self._layout, self._state)
        if self._raster is None:
            self._raster = Raster(self._layout)
        return self._raster.frame(self._state)

    def __getstate__(self) -> dict[str, Any]:
        # Drawn again when needed: a picture is larger than the maze.
        return self.__dict__ | {"_raster": None}

    def _draw_layout(self, layout_seed: int) -> Layout:
        seed = check_integer("layout_seed", layout_seed)
        return self._recipe.layout(self.grid, np.random.default_rng(seed))

    def _model_of(self, layout: Layout) -> MoveMDP:
        return maze_model(
            layout, self._recipe, p=self._p, start=self._start, cost_scale=self._cost_scale
        )

    def _requested_start(self, options: Mapping[str, Any], model: Model) -> int | None:
        refuse_other_options(options, ("layout_seed", "state", "coords"))
        if "coords" not in options:
            return super()._requested_start(options, model)
        if "state" in options:
            raise ValueError("give one of options['state'] and options['coords'], not both")
        state = self.grid.state(options["coords"])
        if model.terminal[state]:
            raise ValueError(
                f"options['coords'] = {options['coords']!r} is terminal: no episode starts there"
            )
        return state

    def _info(self, probability: float) -> dict[str, Any]:
        return {**super()._info(probability), "coords": self._coords()}

    def _coords(self) -> NDArray[np.int64]:
        rest, coords = self._state, []
        for stride in self.grid.strides:
            x, rest = divmod(rest, stride)
            coords.append(x)
        return np.array(coords)


def make_grid(shape: Iterable[int], *, num_dims: int | None = None) -> Grid:
    """Return the grid of a shape, which must have ``num_dims`` axes where that is given."""
    grid = Grid(shape)
    if num_dims is not None and grid.num_dims != num_dims:
        raise ValueError(
            f"shape must have {num_dims} axes, got {grid.num_dims}: {grid.shape}; NDMaze-v0 takes "
            "1 to 8"
        )
    return grid
