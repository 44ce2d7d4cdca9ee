"""Mazes as characters, with thin walls.

The form is that of `aggmaze.layouts.text`, which reads it back: a cell is three characters wide and
one line high, ``+`` stands at each corner, ``---`` and ``|`` are walls, ``###`` fills a blocked
cell.  The last line of cells is ``y = 0``::

    +---+---+---+
    |     A |###|
    +   +---+---+
    | G         |
    +---+---+---+
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aggmaze.layouts.layout import Layout
from aggmaze.layouts.text import lines_to_text, thin_walls
from aggmaze.rendering.raster import Plane, plane_axes


def text(layout: Layout, state: int | None) -> str:
    """Write a maze and the agent in it.

    Parameters
    ----------
    layout : Layout
        The maze.  On terrain a cell shows the first decimal of its height, 0 to 9.
    state : int or None
        Where the agent is: ``A``, or ``*`` on the goal.  None writes no agent.

    Returns
    -------
    str
        Lines of equal length without a newline at the end; the goal is ``G``.  In more than two
        dimensions, one such block for each pair of axes, the slice through the agent (through the
        goal with state None), below a heading such as ``axes 0 (right) and 2 (up)``; an empty line
        separates blocks.

    Raises
    ------
    ValueError
        If the state lies outside the grid.
    """
    grid = layout.grid
    marks = {layout.goal: "G"}
    if state is not None:
        marks[state] = "*" if state == layout.goal else "A"
    points = {tuple(int(x) for x in grid.coords(at)): mark for at, mark in marks.items()}
    through = tuple(int(x) for x in grid.coords(layout.goal if state is None else state))

    blocks = []
    for axes in plane_axes(grid.num_dims):
        lines = _plane_lines(Plane.of(layout, axes, through))
        for point, mark in points.items():
            if all(point[k] == x for k, x in enumerate(through) if k not in axes):
                x, y = ((*point, 0)[axis] for axis in axes)
                lines[-2 - 2 * y, 4 * x + 2] = ord(mark)
        block = lines_to_text(lines)
        if grid.num_dims > 2:
            block = f"axes {axes[0]} (right) and {axes[1]} (up)\n{block}"
        blocks.append(block)
    return "\n\n".join(blocks)


def _plane_lines(plane: Plane) -> NDArray[np.uint8]:
    """Return the ASCII codes of a plane, shape (2 rows + 1, 4 columns + 1)."""
    codes = thin_walls(plane.open_right, plane.open_up, plane.blocked)
    if plane.heights is not None:
        digits = np.clip(np.floor(plane.heights * 10), 0, 9).astype(np.uint8) + ord("0")
        codes[1::2, 2::4] = np.where(plane.blocked, ord("#"), digits)
    return codes
