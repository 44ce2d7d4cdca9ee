"""Environments on a layout: coordinates, and pictures with what is known of the states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_integer
from aggmaze.envs.tabular import TabularEnv, refuse_other_options
from aggmaze.keys import axis_keys, describe_keys, key_of
from aggmaze.layouts.layout import Layout
from aggmaze.models.model import Model
from aggmaze.models.moves import MoveMDP
from aggmaze.rendering import ansi
from aggmaze.rendering.overlay import Overlay
from aggmaze.rendering.raster import Raster

# Of a window when it opens, as far as the screen has room.
_PIXELS_A_CELL = 20


class LayoutEnv(TabularEnv):
    """An environment whose states are the positions of a layout.

    Parameters
    ----------
    layout : Layout
    model : TabularMDP or MoveMDP
        Its states are those of the layout's grid, its actions the grid's.
    render_mode : {"human", "rgb_array", "ansi"}, optional
    """

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array", "ansi"], "render_fps": 10}
    _reset_options: tuple[str, ...] = ("state", "coords")

    def __init__(self, layout: Layout, model: Model, *, render_mode: str | None = None) -> None:
        self.grid = layout.grid
        self._layout = layout
        self._overlay = Overlay()
        self._follows_policy = False
        self._raster: Raster | None = None
        self._area: tuple[int, int] | None = None  # of the window for which it was made
        # Coordinates of the first position of each line along the last axis.
        self._line_length = self.grid.shape[-1]
        self._lines = self.grid.coords(np.arange(0, self.grid.num_states, self._line_length))
        super().__init__(model, render_mode=render_mode)

    @property
    def layout(self) -> Layout:
        """The passages, the heights, the ends and the blocked positions of the maze."""
        return self._layout

    @property
    def is_drawn(self) -> bool:
        """Whether a seed draws any of the maze, rather than all being given."""
        return False

    def set_overlay(
        self,
        *,
        values: ArrayLike | None = None,
        policy: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        path: bool | Iterable[int] | None = None,
        gamma: float | None = None,
    ) -> None:
        """Draw over the maze, in every render mode from now on, what is known of its states.

        What is None is not drawn; without arguments nothing is.  Another maze, drawn by `reset`,
        begins without: what is known of one does not hold for another.

        Parameters
        ----------
        values : array_like of float, shape (S,), optional
            Costs-to-go, as colours with a scale, on terrain with lines of equal height.  Cells
            without a finite one keep their colour.
        policy : array_like of int, shape (S,), optional
            An action in each state, as arrows.
        labels : array_like of int, shape (S,), optional
            Mega-state of each state, in the order of their values, as the planners number them: a
            sequence of colours with borders; beside values, borders only.
        path : bool or sequence of int, optional
            States in order; or True for those that the policy leads through, from where the
            episode starts, as long as what is likeliest happens.
        gamma : float, optional
            The discount of the values in [0, 1], written beside their scale.

        Raises
        ------
        ValueError
            If an array has another shape, or holds what is no action, label or state; if no value
            is finite; if gamma is not in [0, 1]; or if path is True without a policy.
        TypeError
            If values or gamma are not real numbers, or the others not integers.
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
            gamma=gamma,
            returns=self._tells_returns,
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

    def action_with_key(self, action: int) -> str:
        """Return the name of an action, and its keys where the name does not say them."""
        name = self.action_name(action)
        return f"{name} ({key_of(action)})" if self.grid.num_dims > 2 else name

    @property
    def reached_goal(self) -> bool:
        """Whether the agent stands on a goal."""
        if self._layout.signs is not None:
            return bool(self._layout.signs[self._state] == ord("G"))
        return self._state == self._layout.goal

    @property
    def _first_area(self) -> int:
        # Cells of a large maze are seen where they have some pixels.
        return max(super()._first_area, _PIXELS_A_CELL * max(self.grid.shape))

    def __getstate__(self) -> dict[str, Any]:
        # Drawn again when needed: a picture is larger than the maze.
        return super().__getstate__() | {"_raster": None}

    def _starts_at(self, state: int) -> None:
        moved = state != self._start_state
        super()._starts_at(state)
        if moved and self._follows_policy:
            self._overlay, self._raster = self._with_path(self._overlay), None

    def _with_path(self, overlay: Overlay) -> Overlay:
        """Return the overlay with the likeliest walk of its policy from the episode's start."""
        assert overlay.policy is not None
        state, path = self._start_state, []
        seen = np.zeros(self.grid.num_states, dtype=bool)
        while not seen[state]:
            seen[state] = True
            path.append(state)
            action = overlay.policy[state]
            if self._model.terminal[state] or not self._mask[state, action]:
                break
            state = _likeliest(self._model, state, int(action))
        return replace(overlay, path=np.array(path))

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


def _likeliest(model: Model, state: int, action: int) -> int:
    """Return the next state that is likeliest: of moves that of the chosen one."""
    if isinstance(model, MoveMDP):
        return int(model.successors[state, action])
    row = model.rows(state, state + 1).transitions[[action]]
    return int(row.indices[np.argmax(row.data)])
