"""What a layout has besides its cells: walls, heights, signs and goals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from aggmaze.rendering.colors import SIGNED
from aggmaze.rendering.planes import GROUNDS
from planners.boards import Plane
from planners.plotting.canvas import (
    CONTOUR_COLOR,
    INK_COLOR,
    WALL_COLOR,
    add_lines,
    seamed,
)
from planners.plotting.edges import sides
from planners.plotting.marks import draw_goals
from planners.plotting.panels import MOST_LINED, Panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Below this many cells a side, and across walls, contour lines say nothing.
_FEWEST_CONTOURED = 8
_MOST_SIGNED = 60


def draw_layout(panels: Panels, *, contours: bool = True) -> None:
    """Draw walls that are lines, heights as labelled contours, and what marks the cells.

    Parameters
    ----------
    panels : Panels
    contours : bool
    """
    layout = panels.board.layout
    if layout is None:
        return
    for axes, plane in panels.each():
        if (
            contours
            and layout.heights is not None
            and not panels.has_walls
            and min(panels.nx, panels.ny) >= _FEWEST_CONTOURED
        ):
            _draw_contours(panels, axes, plane)
        if panels.has_walls and max(panels.nx, panels.ny) <= MOST_LINED:
            _draw_lines(panels, axes, plane)
        if layout.signs is not None:
            _draw_signs(panels, axes, plane)
            continue
        goal = layout.grid.coords(layout.goal)
        if panels.holds(plane, goal[np.newaxis].astype(float))[0]:
            up = goal[plane.axes[1]] if layout.grid.num_dims > 1 else 0
            _draw_star(panels, axes, goal[plane.axes[0]], up)


def _draw_contours(panels: Panels, axes: Axes, plane: Plane) -> None:
    layout = panels.board.layout
    assert layout is not None
    assert layout.heights is not None
    heights = np.ma.masked_array(
        panels.cut(layout.heights, plane), panels.cut(panels.missing, plane).astype(bool)
    )
    step = max(1, round(max(panels.nx, panels.ny) / 250))  # finer than that nobody sees
    x, y = np.arange(0, panels.nx, step), np.arange(0, panels.ny, step)
    lines: Any = axes.contour(
        x,
        y,
        heights[::step, ::step],
        levels=np.arange(0.1, 1.0, 0.2),
        colors=CONTOUR_COLOR,
        linewidths=0.9 * panels.zoom,
        zorder=1.8,
    )
    # The seam parts them from dark colours.
    lines.set_path_effects(seamed(1.8 * panels.zoom, opacity=0.45))
    if len(panels.planes) == 1:
        words = axes.clabel(lines, fontsize=8 * panels.zoom, fmt="%.1f", inline_spacing=2)
        for word in words:
            word.set_path_effects(seamed(2.0 * panels.zoom, opacity=0.8))
        axes.set_xlabel(f"{axes.get_xlabel()};  lines: height, from 0 to 1")
    # Labels are no reason to grow.
    axes.set_xlim(-0.5, panels.nx - 0.5)
    axes.set_ylim(-0.5, panels.ny - 0.5)


def _draw_lines(panels: Panels, axes: Axes, plane: Plane) -> None:
    width = min(2.0, max(0.5, 0.12 * panels.points_per_cell()))
    add_lines(axes, sides(*panels.walls(plane)), WALL_COLOR, width, zorder=2)
    for border in axes.spines.values():
        border.set(linewidth=width, color=WALL_COLOR)


def _draw_star(panels: Panels, axes: Axes, x: ArrayLike, y: ArrayLike) -> None:
    most = 11.0 if len(panels.planes) > 1 else np.inf
    draw_goals(axes, x, y, panels.points_per_cell(), zoom=panels.zoom, most=most)


def _draw_signs(panels: Panels, axes: Axes, plane: Plane) -> None:
    """Draw what marks the cells of a grid world: ends on their ground, others in a corner."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    layout = panels.board.layout
    assert layout is not None
    assert layout.signs is not None
    signs = panels.cut(layout.signs, plane)
    ends = panels.cut(layout.is_end(), plane).astype(bool)
    fontsize = 9 if max(panels.nx, panels.ny) <= _MOST_SIGNED else 0
    if len(panels.planes) > 1:
        fontsize = min(fontsize, 7)
    for code in np.unique(signs[signs != 0]).tolist():
        sign = chr(code)
        y, x = np.nonzero(signs == code)
        ground = np.array(GROUNDS.get(sign, SIGNED)) / 255
        solid = (sign in GROUNDS and sign != "G") or bool(ends[y[0], x[0]])
        if solid:
            corners = zip(x - 0.5, y - 0.5, strict=True)
            squares = [Rectangle(corner, 1, 1) for corner in corners]
            axes.add_collection(PatchCollection(squares, facecolor=ground, linewidth=0, zorder=2))
        if sign == "G":
            _draw_star(panels, axes, x, y)
        elif sign == "H":
            size = min(9.0, 200 / max(panels.nx, panels.ny))
            axes.plot(x, y, "o", color="black", markersize=size, linestyle="none", zorder=5)
        elif fontsize and sign not in "C~L":
            shift = 0.0 if solid else 0.36
            for left, top in zip(x - shift, y + shift, strict=True):
                axes.text(
                    left,
                    top,
                    sign,
                    ha="center",
                    va="center",
                    fontsize=fontsize,
                    color=INK_COLOR,
                    zorder=5,
                )
