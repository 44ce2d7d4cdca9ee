"""Results as notebooks show them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.cards import (
    Figure,
    card,
    color_scale,
    counted,
    heat,
    number,
    picture,
    profile,
    progress,
    span,
)
from aggmaze.layouts.layout import Layout
from aggmaze.names import shown
from aggmaze.rendering.colors import value_colors
from aggmaze.rendering.overlay import Overlay
from aggmaze.rendering.planes import Plane
from aggmaze.rendering.raster import Raster
from planners.maps import StateMap, named_map
from planners.objective import AverageCost, FiniteHorizon

# States whose values and actions are listed.
_MOST_LISTED = 6
_MOST_LETTERS = 40
# Pixels of a map, and positions along an axis that have cells in it.
_SIZE = 480
# Of one without walls.
_SIDE = 320
_MOST_CELLS = 120
_COLORS = 64


def result_html(result: Any) -> str:
    """Return the HTML of a result.

    Parameters
    ----------
    result : SolveResult
    """
    title = f"{type(result).__name__}: {result.objective}, {result.method}"
    return card(title, _facts(result), _figures(result), _listing(result))


def _facts(result: Any) -> list[tuple[str, str]]:
    values = result.values
    facts = [("status", f"{result.status}: {result.message}")]
    if result.reason:
        facts.append(("chosen because", result.reason))
    facts += [
        ("states", f"{values.shape[-1]:,}"),
        (
            "mean cost of a step" if isinstance(result.objective, AverageCost) else "costs-to-go",
            span(values),
        ),
    ]
    infinite = int(np.count_nonzero(np.isposinf(values)))
    if infinite:
        # Of a horizon each state counts once a step.
        facts.append(("infinite", f"in {counted(infinite, _case(values))}"))
    facts += [
        ("certified within", number(result.bound)),
        ("the policy loses at most", number(result.policy_bound)),
    ]
    if result.labels is not None:
        facts.append(("mega-states", f"{len(np.unique(result.labels)):,}"))
    facts.append(
        (
            "work",
            f"{counted(result.num_iterations, 'iteration')}, "
            f"{counted(result.num_sweeps, 'sweep')}, {counted(result.num_updates, 'update')}, "
            f"{result.seconds:.3g} s",
        )
    )
    return facts


def _case(values: NDArray[np.float64]) -> str:
    return "case" if values.ndim == 2 else "state"


def _listing(result: Any) -> tuple[Sequence[str], list[list[str]]] | None:
    """Return the first states that have names, with their values and actions."""
    names = result.state_names
    if names is None:
        return None
    values, policy = result.values, result.policy
    if values.ndim == 2:
        # Without a step there is no action.
        values = values[0]
        policy = policy[0] if len(policy) else None
    rows = []
    for state, name in enumerate(names[:_MOST_LISTED]):
        action = "" if policy is None else _action(result.action_names, int(policy[state]))
        rows.append([_plain(name), number(float(values[state])), action])
    if len(names) > _MOST_LISTED:
        rows.append([f"and {len(names) - _MOST_LISTED:,} more", "", ""])
    word = "mean cost" if isinstance(result.objective, AverageCost) else "cost-to-go"
    return ["state", word, "action"], rows


def _action(names: Sequence[Any] | None, action: int) -> str:
    return str(action) if names is None else _plain(names[action])


def _plain(name: Hashable) -> str:
    """Return a name as it is if it is a text that is not long."""
    return name if isinstance(name, str) and len(name) <= _MOST_LETTERS else shown(name)


def _figures(result: Any) -> list[Figure]:
    figures = [_values_figure(result)]
    history = result.history
    caption = "bound against updates, logarithmic"
    curves = [(history.num_updates, history.bound)]
    # The residual of relative values tends to the gain, and says nothing of the error.
    if not isinstance(result.objective, AverageCost):
        caption = "bound (blue) and residual (orange) against updates, logarithmic"
        curves.append((history.num_updates, history.residual))
    figures.append(progress(curves, caption))
    return [figure for figure in figures if figure is not None]


def _values_figure(result: Any) -> Figure | None:
    values, word = result.values, "costs-to-go"
    if isinstance(result.objective, AverageCost) and result.bias is not None:
        values, word = result.bias, "relative costs (bias)"
    if not np.isfinite(values).any():
        return None
    drawn = result.layout or named_map(result.state_names)
    if drawn is not None:
        policy = result.policy
        if values.ndim == 2:
            values, word = values[0], f"{word} before the first step"
            policy = policy[0] if len(policy) else None
        if np.isfinite(values).any():
            if isinstance(drawn, StateMap):
                return _laid(drawn, values, policy, word)
            if drawn.grid.num_states == values.shape[-1]:
                return _map(drawn, values, policy, word)
    if isinstance(result.objective, FiniteHorizon):
        return heat(
            result.values,
            f"costs-to-go of each state (across) before each step (down), {span(result.values)}",
        )
    caption = f"{word} of the states in ascending order, {span(values)}"
    return profile(values, caption)._replace(is_curve=False)


def _laid(
    place: StateMap, values: NDArray[np.float64], policy: NDArray[np.int64] | None, word: str
) -> Figure:
    """Return values of states that lie elsewhere than their numbers say."""
    grid, states = place.grid, place.states
    if states is not None:
        held = np.maximum(states, 0)
        values = np.where(states < 0, np.nan, values[held])
        if policy is not None:
            policy = None if place.moves is None else place.moves[policy[held]]
    values = values[: grid.num_states]
    if place.layout is not None:
        return _map(place.layout, values, policy, word)
    scale = _scale(values)
    right, up = place.plane
    shares = grid.to_image(
        Overlay(values=values).shares(values), axes=place.plane, through=place.through
    )
    pixels = np.zeros((*shares.shape, 4), dtype=np.uint8)
    pixels[..., :3] = value_colors(np.nan_to_num(shares))
    pixels[..., 3] = np.where(np.isnan(shares), 0, 255)  # nothing is there, or no limit
    # Cells of control have no natural size: they fill a square.
    tall, wide = (max(1, _SIDE // length) for length in shares.shape)
    if place.states is not None:
        tall = wide = min(tall, wide)
    caption = f"{word if scale is not None else f'{word}: {span(values)}'}; "
    caption += f"{place.axis_names[right]} across, {place.axis_names[up]} up"
    if grid.num_dims > 2:
        caption += ", through the middle"
    pixels = pixels.repeat(tall, axis=0).repeat(wide, axis=1)
    return picture(pixels, caption, smooth=False)._replace(scale=scale)


def _scale(values: NDArray[np.float64]) -> tuple[str, str, str] | None:
    return color_scale(values, value_colors(np.linspace(0.0, 1.0, _COLORS)))


def _map(
    layout: Layout,
    values: NDArray[np.float64],
    policy: NDArray[np.int64] | None,
    word: str,
) -> Figure:
    """Return values where they lie, with arrows where cells have room for them."""
    overlay = Overlay(values=values, policy=policy)
    scale = _scale(values)
    caption = word if scale is not None else f"{word}: {span(values)}"
    # Of many small cells a picture shows one pixel each, without walls.
    if max(layout.grid.shape) <= _MOST_CELLS:
        raster = Raster(layout, _SIZE, overlay)
        pixels = raster.frame(None)
        # Without the legend, whose place is at the right: the page writes it.
        first, right = raster.panels[0], max(p.left + p.width for p in raster.panels)
        pixels = pixels[:, : right + first.left]
        if len(raster.panels) == 1:
            pixels = pixels[: 2 * first.top + first.height]
        return picture(pixels, caption)._replace(scale=scale)
    through = tuple(int(x) for x in layout.grid.coords(layout.goal))
    colors = Plane.of(layout, (0, 1), through, Overlay(values=values)).colors()
    if layout.grid.num_dims > 2:
        caption += "; the slice through the goal along axes 0 (across) and 1 (up)"
    every = max(1, _SIZE // max(colors.shape))
    colors = colors.repeat(every, axis=0).repeat(every, axis=1)
    return picture(colors, caption)._replace(scale=scale)
