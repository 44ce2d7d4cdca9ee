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

import string
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.layouts.layout import Layout
from aggmaze.layouts.text import lines_to_text, thin_walls
from aggmaze.rendering.overlay import Overlay, number
from aggmaze.rendering.planes import Plane, plane_axes

# Of moves to the left, and to the right, downwards and upwards.
_DIAGONALS = ("\u2199\u2196", "\u2198\u2197")
_SIGNS_OF_LABELS = np.frombuffer((string.ascii_lowercase + string.digits).encode(), dtype=np.uint8)


def text(layout: Layout, state: int | None, overlay: Overlay | None = None) -> str:
    """Write a maze and the agent in it.

    Parameters
    ----------
    layout : Layout
        The maze.  On terrain a cell shows the first decimal of its height, 0 to 9.
    state : int or None
        Where the agent is: ``A``, or ``*`` on the goal.  None writes no agent.
    overlay : Overlay, optional
        Labels are letters and digits, in turn; actions arrows, plus and minus where the move leaves
        the plane; cells of the path ``o``; values digits from 0, the least, to 9.

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
    marks = {layout.goal: "G"} if layout.signs is None else {}
    if state is not None:
        goal = layout.goal == state if layout.signs is None else layout.signs[state] == ord("G")
        marks[state] = "*" if goal else "A"
    points = {tuple(int(x) for x in grid.coords(at)): mark for at, mark in marks.items()}
    through = tuple(int(x) for x in grid.coords(layout.goal if state is None else state))

    overlay = Overlay() if overlay is None else overlay
    blocks = []
    for axes in plane_axes(grid.num_dims):
        lines = _plane_lines(Plane.of(layout, axes, through))
        _write_overlay(lines, layout, overlay, axes, through)
        for point, mark in points.items():
            if all(point[k] == x for k, x in enumerate(through) if k not in axes):
                x, y = ((*point, 0)[axis] for axis in axes)
                lines[-2 - 2 * y, 4 * x + 2] = ord(mark)
        block = lines_to_text(lines)
        if grid.num_dims > 2:
            block = f"axes {axes[0]} (right) and {axes[1]} (up)\n{block}"
        blocks.append(block)
    meanings = _meanings(overlay)
    return "\n\n".join([*blocks, meanings] if meanings else blocks)


def _write_overlay(
    lines: NDArray[np.uint32],
    layout: Layout,
    overlay: Overlay,
    axes: tuple[int, int],
    through: tuple[int, ...],
) -> None:
    """Write what an overlay knows of the cells of a plane, in place."""

    def cut(of: NDArray[Any]) -> NDArray[Any]:
        return layout.grid.to_image(of, axes=axes, through=through)

    free = cut(layout.free()).astype(bool)
    first, middle, last = (lines[1::2, place::4] for place in (1, 2, 3))
    if overlay.labels is not None:
        first[:] = np.where(
            free, _SIGNS_OF_LABELS[cut(overlay.labels) % len(_SIGNS_OF_LABELS)], first
        )
    if overlay.policy is not None:
        acting = cut(layout.acting()).astype(bool)
        if layout.signs is None:
            acting = free
        elif overlay.labels is None:
            first[acting] = np.where(middle != 0, middle, first)[acting]
        signs = np.array([ord(_sign_of(step, axes)) for step in layout.grid.directions], np.uint32)
        middle[:] = np.where(acting, signs[cut(overlay.policy)], middle)
    if overlay.path is not None:
        on_path = np.zeros(layout.grid.num_states, dtype=bool)
        on_path[overlay.path] = True
        middle[cut(on_path).astype(bool)] = ord("o")
    if overlay.values is not None:
        shares = overlay.shares(cut(overlay.values))
        known = free & np.isfinite(shares)
        last[known] = ord("0") + np.minimum(10 * shares[known], 9).astype(np.uint8)


def _sign_of(step: tuple[int, ...], axes: tuple[int, int]) -> str:
    """Return what shows the direction of an action in a plane."""
    moved = [axis for axis, length in enumerate(step) if length]
    if len(moved) > 1:
        return _DIAGONALS[step[0] > 0][step[1] > 0]
    if not moved:
        return "."
    (axis,) = moved
    forward = step[axis] > 0
    if axis not in axes:
        return "+" if forward else "-"
    return ("<>", "v^")[axes.index(axis)][forward]


def _meanings(overlay: Overlay) -> str:
    lines = []
    if overlay.labels is not None:
        lines.append(f"letters and digits in turn: {overlay.num_labels:,} mega-states")
    if overlay.values is not None:
        low, high = (number(overlay.told(end)) for end in overlay.span)
        lines.append(f"{overlay.kind_of_values}: 0 from {low}, 9 to {high}")
    if overlay.path is not None:
        lines.append("o: path")
    return "\n".join(lines)


def _plane_lines(plane: Plane) -> NDArray[np.uint32]:
    """Return the code points of a plane, shape (2 rows + 1, 4 columns + 1)."""
    codes = thin_walls(plane.open_right, plane.open_up, plane.blocked)
    if plane.heights is not None:
        digits = np.clip(np.floor(plane.heights * 10), 0, 9).astype(np.uint8) + ord("0")
        codes[1::2, 2::4] = np.where(plane.blocked, ord("#"), digits)
    if plane.signs is not None:
        codes[1::2, 2::4] = np.where(plane.signs != 0, plane.signs, codes[1::2, 2::4])
    return codes
