"""What all mazes share: a layout given or drawn from a seed, coordinates, and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_integer
from aggmaze.envs.tabular import TabularEnv, refuse_other_options
from aggmaze.grid import Grid
from aggmaze.keys import axis_keys, describe_keys
from aggmaze.layouts.layout import Layout, position
from aggmaze.layouts.text import layout_from_text
from aggmaze.memory import check_memory
from aggmaze.models.model import Model
from aggmaze.models.moves import MoveMDP
from aggmaze.recipes import MazeOptions, maze_model, start_distribution
from aggmaze.rendering import ansi
from aggmaze.rendering.overlay import Overlay
from aggmaze.rendering.raster import Raster

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


class MazeEnv(TabularEnv):
    """A maze on a grid, made by a recipe.

    Parameters
    ----------
    find_plan : callable
        Returns the `Plan`; called once the arguments that depend on no plan are checked.
    options : MazeOptions
        Checked already.  With the start "corner", that of the plan comes first.
    render_mode : {"human", "rgb_array", "ansi"}, optional
    """

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array", "ansi"], "render_fps": 10}
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
        self.grid = plan.grid
        self._given = plan.layout
        self._goal = 0 if plan.layout is None else plan.layout.goal
        if options.goal is not None:
            self._goal = position("goal", plan.grid, options.goal)
            if plan.layout is not None:
                self._given = replace(plan.layout, goal=self._goal)
        if plan.start is not None and isinstance(options.start, str) and options.start == "corner":
            options = replace(options, start=plan.start)
        blocked = None if plan.layout is None else plan.layout.blocked
        start_distribution(self.grid, self._goal, blocked, options.start)
        self._options = options
        self._overlay = Overlay()
        self._follows_policy = False
        self._raster: Raster | None = None
        self._area: tuple[int, int] | None = None  # of the window for which it was made
        needed = self.grid.num_states * (_BYTES_A_MOVE * self.grid.num_actions + _BYTES_A_STATE)
        check_memory(needed, f"mazes of {self.grid.num_states:,} positions")
        # Coordinates of the first position of each line along the last axis.
        self._line_length = plan.grid.shape[-1]
        self._lines = plan.grid.coords(np.arange(0, plan.grid.num_states, self._line_length))
        self._layout = self._draw_layout(options.layout_seed)
        if options.layout_seed != 0 and not self.is_drawn:
            raise ValueError(f"layout_seed={options.layout_seed!r} {NOTHING_DRAWN}")
        super().__init__(self._model_of(self._layout), render_mode=render_mode)

    @property
    def layout(self) -> Layout:
        """The passages, the heights, the goal and the blocked positions of the maze."""
        return self._layout

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

    def set_overlay(
        self,
        *,
        values: ArrayLike | None = None,
        policy: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        path: bool | Iterable[int] | None = None,
    ) -> None:
        """Draw over the maze, in every render mode from now on, what is known of its states.

        What is None is not drawn; without arguments nothing is.  Another maze, drawn by `reset`,
        begins without: what is known of one does not hold for another.

        Parameters
        ----------
        values : array_like of float, shape (S,), optional
            Costs-to-go, as colours with a scale.  Cells without a finite one keep their colour.
        policy : array_like of int, shape (S,), optional
            An action in each state, as arrows.
        labels : array_like of int, shape (S,), optional
            Mega-state of each state, as colours; beside values, as lines between mega-states.
        path : bool or sequence of int, optional
            States in order; or True for those that the policy leads through, from where the
            episode starts, as long as nothing slips.

        Raises
        ------
        ValueError
            If an array has another shape, or holds what is no action, label or state; if no value
            is finite; or if path is True without a policy.
        TypeError
            If values are not real numbers, or the others not integers.
        """
        if path is True and policy is None:
            raise ValueError("path=True follows a policy: give policy= too")
        follows = path is True
        overlay = Overlay.of(
            self.grid.num_states,
            self.grid.num_actions,
            values=values,
            policy=policy,
            labels=labels,
            path=None if path is None or isinstance(path, bool) else path,
        )
        if follows:
            overlay = self._with_path(overlay)
        self._overlay, self._follows_policy, self._raster = overlay, follows, None

    def _text(self) -> str:
        return ansi.text(self._layout, self._state, self._overlay)

    def _picture(self, area: tuple[int, int] | None = None) -> NDArray[np.uint8]:
        if self._raster is None or self._area != area:
            self._area = area
            if area is None:
                self._raster = Raster(self._layout, overlay=self._overlay)
            else:
                self._raster = Raster.within(area, self._layout, self._overlay)
        return self._raster.frame(self._state, () if area is None else self._episode.trail)

    def get_keys_to_action(self) -> dict[tuple[int], int]:
        """Return the action of each key, for `gymnasium.utils.play`.

        Arrows or WASD move along the first two axes, Q and E, Z and C, then digits along others.
        """
        return axis_keys(self.grid.num_dims)

    @property
    def keys_in_words(self) -> str:
        """Which keys move."""
        return describe_keys(self.grid.num_dims)

    def action_name(self, action: int) -> str:
        """Return the name of an action: LEFT, RIGHT, DOWN, UP in two dimensions, else x0-, ..."""
        return self.grid.action_names[action]

    def __getstate__(self) -> dict[str, Any]:
        # Drawn again when needed: a picture is larger than the maze.
        return super().__getstate__() | {"_raster": None}

    def _starts_at(self, state: int) -> None:
        moved = state != self._start_state
        super()._starts_at(state)
        if moved and self._follows_policy:
            self._overlay, self._raster = self._with_path(self._overlay), None

    def _with_path(self, overlay: Overlay) -> Overlay:
        """Return the overlay with the walk of its policy from where the episode started."""
        assert overlay.policy is not None
        assert isinstance(self._model, MoveMDP)
        state, path = self._start_state, []
        seen = np.zeros(self.grid.num_states, dtype=bool)
        while not seen[state]:
            seen[state] = True
            path.append(state)
            action = overlay.policy[state]
            if self._model.terminal[state] or not self._mask[state, action]:
                break
            state = int(self._model.successors[state, action])
        return replace(overlay, path=np.array(path))

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

    def _requested_start(self, options: Mapping[str, Any], model: Model) -> int | None:
        refuse_other_options(options, self._reset_options)
        if "state" in options and "coords" in options:
            raise ValueError("give one of options['state'] and options['coords'], not both")
        if "coords" in options:
            name, state = "coords", self.grid.state(options["coords"])
        elif "state" in options:
            name = "state"
            state = check_integer("options['state']", options[name], below=model.num_states)
        else:
            return None
        # What is blocked is given, not drawn: another layout has the same.
        if self._layout.blocked is not None and self._layout.blocked[state]:
            raise ValueError(
                f"options[{name!r}] = {options[name]!r} is blocked: no episode starts there"
            )
        if model.terminal[state]:
            raise ValueError(
                f"options[{name!r}] = {options[name]!r} is terminal: no episode starts there"
            )
        return state

    def _info(self, probability: float) -> dict[str, Any]:
        info = super()._info(probability)
        line, place = divmod(self._state, self._line_length)
        coords = self._lines[line].copy()
        coords[-1] = place
        info["coords"] = coords
        return info


def make_plan(
    shape: Iterable[int],
    layout: str | None,
    *,
    default_shape: tuple[int, ...],
    num_dims: int | None = None,
) -> Plan:
    """Return the plan of a maze from its shape, or from its text.

    Parameters
    ----------
    shape : sequence of int
    layout : str, optional
        A maze as text.
    default_shape : tuple of int
        The shape that counts as not given beside a text.
    num_dims : int, optional
        Number of axes that the shape must have.

    Raises
    ------
    ValueError
        If the shape has another number of axes, or differs from that of the text, or the text is
        not a maze.
    TypeError
        If the layout is not text.
    """
    grid = Grid(shape)
    if layout is not None:
        if not isinstance(layout, str):
            raise TypeError(f"layout must be a maze as text, or None, got {type(layout).__name__}")
        read, start = layout_from_text(layout)
        if grid.shape not in (default_shape, read.grid.shape):
            raise ValueError(
                f"shape {grid.shape} differs from that of the layout, {read.grid.shape}; a layout "
                "needs no shape"
            )
        marked = None if start is None else tuple(read.grid.coords(start).tolist())
        return Plan(read.grid, read, marked)
    if num_dims is not None and grid.num_dims != num_dims:
        raise ValueError(
            f"shape must have {num_dims} axes, got {grid.num_dims}: {grid.shape}; NDMaze-v0 takes "
            "1 to 8"
        )
    return Plan(grid)


def refuse_beside_layout(layout: str | None, **arguments: tuple[Any, Any]) -> None:
    """Refuse arguments that say how to draw walls where a text gives them.

    Parameters
    ----------
    layout : str or None
    arguments : pair
        Value, and the default that counts as not given.
    """
    for name, (value, default) in arguments.items():
        if layout is not None and value != default:
            raise ValueError(f"{name}={value!r} does not go with layout=: its text gives the walls")
