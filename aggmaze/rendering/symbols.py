"""What stands in the cells of a panel: the actions of a policy, and the signs of a map."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aggmaze.grid import Grid
from aggmaze.layouts.layout import Layout
from aggmaze.rendering.marks import (
    Marker,
    arrow_marker,
    diagonal_marker,
    letter_marker,
    pit_marker,
    sign_marker,
)
from aggmaze.rendering.panels import Panel

# Cells, without lines, in which marks can be told apart.
SMALLEST_MARKED_CELL = 12


def draw_policy(
    canvas: NDArray[np.uint8],
    panel: Panel,
    layout: Layout,
    policy: NDArray[np.int64],
    point: tuple[int, ...],
    *,
    every: int,
    size: int,
) -> None:
    """Draw the actions of a plane's cells that are free and no end, in place.

    Parameters
    ----------
    canvas : ndarray of uint8, shape (height, width, 3)
    panel : Panel
        Where the plane lies in it.
    layout : Layout
    policy : ndarray of int, shape (S,)
    point : tuple of int
        Coordinates through which the plane is cut.
    every : int
        One cell of so many along each axis has a mark.
    size : int
        Of a mark, in pixels.
    """
    actions, shown = (
        layout.grid.to_image(of, axes=panel.axes, through=point)[::-1]
        for of in (policy, layout.acting())
    )
    offset = every // 2
    y, x = np.nonzero(shown[offset::every, offset::every])
    y, x = every * y + offset, every * x + offset
    tops, lefts = (centres - size // 2 for centres in panel.centres(x, y))
    chosen = actions[y, x]
    for action in np.unique(chosen).tolist():
        here = chosen == action
        _action_marker(layout.grid, action, panel, size).draw_all(canvas, tops[here], lefts[here])


def _action_marker(grid: Grid, action: int, panel: Panel, size: int) -> Marker:
    """Return what shows an action in a panel."""
    direction = grid.directions[action]
    moved = [axis for axis, step in enumerate(direction) if step]
    if len(moved) != 1:
        return diagonal_marker(size, direction[0], direction[1])
    (axis,) = moved
    if axis in panel.axes:
        return arrow_marker(size, panel.axes.index(axis), direction[axis])
    return sign_marker(size, direction[axis])


def draw_signs(
    canvas: NDArray[np.uint8],
    panel: Panel,
    layout: Layout,
    point: tuple[int, ...],
    goal: Marker,
    *,
    beside_arrows: bool,
) -> None:
    """Draw what marks a plane's cells: goals always, all else where cells have room for it.

    Parameters
    ----------
    canvas : ndarray of uint8, shape (height, width, 3)
    panel : Panel
        Where the plane lies in it.
    layout : Layout
        With signs.
    point : tuple of int
        Coordinates through which the plane is cut.
    goal : Marker
    beside_arrows : bool
        Whether the actions of a policy are drawn in the same cells.
    """
    assert layout.signs is not None
    inside = panel.edge - panel.line
    cells, ends = (
        layout.grid.to_image(of, axes=panel.axes, through=point)[::-1]
        for of in (layout.signs, layout.is_end())
    )
    for code in np.unique(cells[cells != 0]).tolist():
        sign = chr(code)
        y, x = np.nonzero(cells == code)
        rows, columns = panel.centres(x, y)
        size = inside * 7 // 10
        if sign == "G":
            marker = goal
        elif sign in "L~C" or inside < SMALLEST_MARKED_CELL:
            continue
        elif sign == "H":
            marker = pit_marker(size)
        elif beside_arrows and not ends[y[0], x[0]]:
            # Beside the arrow, in a corner.
            size = max(8, inside * 4 // 10)
            marker, shift = letter_marker(size, sign), inside // 2 - size // 2 - 1
            rows, columns = rows - shift, columns - shift
        else:
            marker = letter_marker(size, sign)
        height = marker.opacity.shape[0]
        marker.draw_all(canvas, rows - height // 2, columns - height // 2)
