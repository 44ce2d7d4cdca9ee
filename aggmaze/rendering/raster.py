"""Mazes as pixels.

One panel shows one plane of the maze: axis ``i`` to the right, axis ``j`` upwards, coordinates
``(0, 0)`` at the bottom left.  A maze of one or two dimensions is one panel; a maze of more has one
panel for every pair of axes, each the slice through the agent.

Along an axis of ``n`` cells a panel is, in pixels::

    border  cell line cell line ... cell  border        edge = cell + line

The lines between cells hold the walls; without walls they have no width.  Blocked cells are solid.
What lies in a panel but is not the agent changes only when the slice does, and only then is it
painted.
"""

from __future__ import annotations

import itertools
import math
import operator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.layouts.layout import Layout

BACKGROUND = (206, 210, 216)
FLOOR = (246, 246, 242)
WALL = (44, 50, 64)
INK = (12, 12, 12)
GOAL = (255, 196, 0)
AGENT = (0, 150, 110)
AGENT_RING = (255, 255, 255)

# ColorBrewer's RdBu, reversed and without its darkest ends: told apart by every kind of colour
# vision, and nowhere as dark as the outline of a marker.
TERRAIN = (
    (33, 102, 172),
    (67, 147, 195),
    (146, 197, 222),
    (209, 229, 240),
    (247, 247, 247),
    (253, 219, 199),
    (244, 165, 130),
    (214, 96, 77),
    (178, 24, 43),
)

# Rows of a glyph, three pixels each.
GLYPHS = {
    "0": ("###", "# #", "# #", "# #", "###"),
    "1": (" # ", "## ", " # ", " # ", "###"),
    "2": ("###", "  #", "###", "#  ", "###"),
    "3": ("###", "  #", "###", "  #", "###"),
    "4": ("# #", "# #", "###", "  #", "  #"),
    "5": ("###", "#  ", "###", "  #", "###"),
    "6": ("###", "#  ", "###", "# #", "###"),
    "7": ("###", "  #", "  #", "  #", "  #"),
    "-": ("   ", "   ", "###", "   ", "   "),
}
GLYPH_SCALE = 2
LABEL_PADDING = 4

SMALLEST_MARKER = 9
SMALLEST_RINGED_MARKER = 12


def terrain_colors(heights: ArrayLike) -> NDArray[np.uint8]:
    """Return the colour of each height, from blue (low) over pale to red (high).

    Parameters
    ----------
    heights : array_like of float, any shape
        Heights in [0, 1]; lower or higher ones take the colours of the ends.

    Returns
    -------
    ndarray of uint8, shape (..., 3)
        Red, green and blue.
    """
    array = np.asarray(heights, dtype=np.float64)
    controls = np.linspace(0.0, 1.0, len(TERRAIN))
    colors = np.empty((*array.shape, 3), dtype=np.uint8)
    for channel, levels in enumerate(zip(*TERRAIN, strict=True)):
        colors[..., channel] = np.rint(np.interp(array, controls, levels))
    return colors


@dataclass(frozen=True)
class Plane:
    """The slice of a layout along two of its axes, as rows of cells, top row first.

    Parameters
    ----------
    open_right, open_up : ndarray of bool, shape (rows, columns)
        Whether a cell is joined to its neighbour on the right, and to the one above.
    heights : ndarray of float, shape (rows, columns), optional
        Heights in [0, 1]; None for a maze without terrain.
    blocked : ndarray of bool, shape (rows, columns)
    """

    open_right: NDArray[np.bool_]
    open_up: NDArray[np.bool_]
    heights: NDArray[np.float64] | None
    blocked: NDArray[np.bool_]

    @classmethod
    def of(cls, layout: Layout, axes: tuple[int, int], through: tuple[int, ...]) -> Plane:
        """Cut a layout along two axes through a point.

        Parameters
        ----------
        layout : Layout
        axes : pair of int
            The axes to the right and upwards; ``(0, 1)`` in a maze of one dimension.
        through : tuple of int
            Coordinates of the point, one an axis.
        """

        def cut(values: NDArray[np.generic]) -> NDArray[np.generic]:
            return layout.grid.to_image(values, axes=axes, through=through)

        right, up = axes
        open_right = cut(layout.passages[:, right]).astype(bool)
        flat = layout.grid.num_dims == 1
        return cls(
            open_right=open_right,
            open_up=np.zeros_like(open_right) if flat else cut(layout.passages[:, up]).astype(bool),
            heights=None if layout.heights is None else cut(layout.heights).astype(np.float64),
            blocked=np.zeros_like(open_right)
            if layout.blocked is None
            else cut(layout.blocked).astype(bool),
        )

    def walls(self) -> NDArray[np.bool_]:
        """Return where walls stand on the mesh of lines and cells, top row first.

        Returns
        -------
        ndarray of bool, shape (2 rows + 1, 2 columns + 1)
            Cells are at odd places, walls where they are blocked, and the lines around them at even
            ones.  A post, where two lines cross, stands where a wall touches it.
        """
        rows, columns = self.open_right.shape
        walls = np.zeros((2 * rows + 1, 2 * columns + 1), dtype=bool)
        walls[1::2, 1::2] = self.blocked
        walls[1::2, 2::2] = ~self.open_right
        walls[:-1:2, 1::2] = ~self.open_up
        walls[:, (0, -1)] = True
        walls[(0, -1), :] = True
        posts, upright, level = walls[::2, ::2], walls[1::2, ::2], walls[::2, 1::2]
        posts[1:] |= upright
        posts[:-1] |= upright
        posts[:, 1:] |= level
        posts[:, :-1] |= level
        return walls


def plane_axes(num_dims: int) -> tuple[tuple[int, int], ...]:
    """Return the pairs of axes that are drawn: all of them, ``(0, 1)`` in one dimension."""
    return tuple(itertools.combinations(range(max(2, num_dims)), 2))


@dataclass(frozen=True)
class Panel:
    """Where one plane lies in the picture; all lengths in pixels.

    Parameters
    ----------
    axes : pair of int
        The axes to the right and upwards.
    columns, rows : int
        Number of cells to the right and upwards.
    left, top : int
        The first column and row of pixels of the outer border.
    edge : int
        Distance between neighbouring cells.
    line : int
        Width of the line between cells, the walls' thickness; 0 without walls.
    border : int
        Width of the border, at the right and at the bottom one more where that makes the panel's
        width and height even, as common video formats ask.
    """

    axes: tuple[int, int]
    columns: int
    rows: int
    left: int
    top: int
    edge: int
    line: int
    border: int

    @property
    def width(self) -> int:
        """Width with the border."""
        return int(self._lengths(self.columns).sum())

    @property
    def height(self) -> int:
        """Height with the border."""
        return int(self._lengths(self.rows).sum())

    def cell(self, x: int, y: int) -> tuple[slice, slice]:
        """Return the rows and the columns of pixels of the cell at ``(x, y)``, without lines."""
        inside = self.edge - self.line
        left = self.left + self.border + x * self.edge
        top = self.top + self.border + (self.rows - 1 - y) * self.edge
        return slice(top, top + inside), slice(left, left + inside)

    def paint(self, plane: Plane) -> NDArray[np.uint8]:
        """Return the pixels of a plane: floor or terrain, walls, border; shape (h, w, 3)."""
        # For each pixel its place on the mesh of lines and cells; lines belong to a cell beside.
        down, across = (
            np.repeat(np.arange(2 * n + 1), self._lengths(n)) for n in (self.rows, self.columns)
        )
        if plane.heights is None:
            image = np.empty((len(down), len(across), 3), dtype=np.uint8)
            image[:] = FLOOR
        else:
            colors = terrain_colors(plane.heights)
            image = colors[np.minimum(down // 2, self.rows - 1)]
            image = image[:, np.minimum(across // 2, self.columns - 1)]
        image[plane.walls()[down][:, across]] = WALL
        return image

    def _lengths(self, n: int) -> NDArray[np.intp]:
        """Return the lengths of border, cell, line, cell, ..., cell, border."""
        lengths = np.full(2 * n + 1, self.line)
        lengths[1::2] = self.edge - self.line
        lengths[[0, -1]] = self.border
        lengths[-1] += lengths.sum() % 2
        return lengths


@dataclass(frozen=True)
class Marker:
    """A small picture with an opacity, to be laid over a cell's centre.

    Parameters
    ----------
    colors : ndarray of float, shape (n, n, 3)
        Levels in [0, 255].
    opacity : ndarray of float, shape (n, n, 1)
        0 leaves what lies below, 1 hides it.
    """

    colors: NDArray[np.float64]
    opacity: NDArray[np.float64]

    def draw(self, image: NDArray[np.uint8], cell: tuple[slice, slice]) -> None:
        """Lay the marker over a cell of an image, in place."""
        size = len(self.colors)
        down, across = (
            slice(start, start + size)
            for start in (side.start - (size - (side.stop - side.start)) // 2 for side in cell)
        )
        below = image[down, across]
        below[:] = np.rint(below + self.opacity * (self.colors - below))


def goal_marker(size: int, outline: int) -> Marker:
    """Return the goal's marker: an outlined square, ``size`` pixels wide."""
    colors = np.empty((size, size, 3))
    colors[:] = INK
    colors[outline:-outline, outline:-outline] = GOAL
    return Marker(colors, np.ones((size, size, 1)))


def agent_marker(size: int, outline: int) -> Marker:
    """Return the agent's marker: an outlined disc, ``size`` pixels wide."""
    axis = np.arange(size) - (size - 1) / 2
    distance = np.hypot(axis[:, np.newaxis], axis)[..., np.newaxis]

    def disc(radius: float) -> NDArray[np.float64]:
        covered: NDArray[np.float64] = np.clip(radius - distance + 0.5, 0.0, 1.0)
        return covered

    colors = np.empty((size, size, 3))
    colors[:] = INK
    radius = size / 2 - outline
    if size >= SMALLEST_RINGED_MARKER:  # a smaller disc needs its pixels for the colour
        colors += disc(radius) * (np.array(AGENT_RING) - colors)
        radius -= outline
    colors += disc(radius) * (np.array(AGENT) - colors)
    return Marker(colors, disc(size / 2))


class Raster:
    """Draws a maze and the agent in it.

    Parameters
    ----------
    layout : Layout
        The maze; taken as unchanging.
    size : int
        Length in pixels that the longer side of the picture comes close to.  The picture is larger
        where cells would be less than two pixels wide (one pixel without walls): every cell is
        painted.

    Attributes
    ----------
    layout : Layout
    panels : tuple of Panel
        Where the planes lie in the picture.  Overlays on cells can be placed with `Panel.cell`.
    shape : tuple of int
        Height, width and 3, the shape of every frame.

    Raises
    ------
    ValueError
        If the size is less than 1.
    """

    def __init__(self, layout: Layout, size: int = 512) -> None:
        if (size := operator.index(size)) < 1:
            raise ValueError(f"size must be at least 1 pixel, got {size}")
        self.layout = layout
        grid = layout.grid
        pairs = plane_axes(grid.num_dims)
        lengths = (*grid.shape, 1) if grid.num_dims == 1 else grid.shape
        labelled = len(pairs) > 1
        across = math.ceil(math.sqrt(len(pairs)))  # panels side by side
        gap = 2 * max(3, size // 80) if labelled else 0
        caption = 5 * GLYPH_SCALE + LABEL_PADDING if labelled else 0
        space = (size - (across + 1) * gap - across * caption) // across

        # Blocked cells need no lines between cells to be seen.
        walled = layout.num_walls > 0 or (layout.heights is None and layout.blocked is None)
        edge = max(2 if walled else 1, space // max(lengths))
        thickness = max(1, edge // 8)
        line = thickness if walled else 0
        inside = edge - line
        # On a large picture, which is looked at scaled down, a marker of nine pixels is lost.
        agent_size = max(SMALLEST_MARKER, sorted(lengths)[-2] * edge // 64, inside * 6 // 10)
        agent_size += (inside - agent_size) % 2  # so that it can be centred
        goal_size = agent_size + max(4, 2 * (agent_size // 5))
        outline = max(1, agent_size // 12)
        self._agent = agent_marker(agent_size, outline)
        self._goal = goal_marker(goal_size, outline)
        # Room for markers that are larger than the cells at the border.
        self._margin = max(0, (goal_size - inside) // 2 - thickness)

        def panel(axes: tuple[int, int], left: int = 0, top: int = 0) -> Panel:
            columns, rows = (lengths[axis] for axis in axes)
            return Panel(axes, columns, rows, left, top, edge, line, thickness)

        # Rows and columns of panels, each as wide as its largest; panels stand at the bottom left.
        widths, heights = [0] * across, [0] * math.ceil(len(pairs) / across)
        label_width = 11 * GLYPH_SCALE if labelled else 0
        for place, axes in enumerate(pairs):
            row, column = divmod(place, across)
            drawn = panel(axes)
            width, height = (length + 2 * self._margin for length in (drawn.width, drawn.height))
            widths[column] = max(widths[column], width, label_width)
            heights[row] = max(heights[row], height)
        panels = []
        for place, axes in enumerate(pairs):
            row, column = divmod(place, across)
            left = gap + sum(widths[:column]) + column * gap + self._margin
            bottom = gap + sum(heights[: row + 1]) + row * (caption + gap) - self._margin
            panels.append(panel(axes, left, bottom - panel(axes).height))
        self.panels = tuple(panels)
        self.shape = (
            sum(heights) + len(heights) * (caption + gap) + gap,
            sum(widths) + (len(widths) + 1) * gap,
            3,
        )

        # Made by the first frame: the picture without the agent, and for each panel the coordinates
        # of the slice that it shows.
        self._canvas: NDArray[np.uint8] | None = None
        self._labelled = labelled
        self._slices: dict[Panel, tuple[int, ...]] = {}

    def frame(self, state: int | None) -> NDArray[np.uint8]:
        """Draw the maze with the agent in a state.

        Parameters
        ----------
        state : int or None
            Where the agent is.  With None no agent is drawn, and slices go through the goal.

        Returns
        -------
        ndarray of uint8, shape (height, width, 3)
            Red, green and blue, top row first; a new array at each call, always of one shape.

        Raises
        ------
        ValueError
            If the state lies outside the grid.
        """
        shown = self.layout.goal if state is None else state
        point = tuple(int(x) for x in self.layout.grid.coords(shown))
        image = self._static(point).copy()
        if state is not None:
            for panel in self.panels:
                self._agent.draw(image, _cell(panel, point))
        return image

    def _static(self, point: tuple[int, ...]) -> NDArray[np.uint8]:
        """Return the picture without the agent, of the slices through a point."""
        canvas = self._canvas
        if canvas is None:
            canvas = self._canvas = np.empty(self.shape, dtype=np.uint8)
            canvas[:] = BACKGROUND
            if self._labelled:
                for panel in self.panels:
                    _write_label(canvas, panel, self._margin)
        goal = tuple(int(x) for x in self.layout.grid.coords(self.layout.goal))
        for panel in self.panels:
            fixed = tuple(x for axis, x in enumerate(point) if axis not in panel.axes)
            if self._slices.get(panel) == fixed:
                continue
            top, left, margin = panel.top, panel.left, self._margin
            bottom, right = top + panel.height, left + panel.width
            canvas[top - margin : bottom + margin, left - margin : right + margin] = BACKGROUND
            plane = Plane.of(self.layout, panel.axes, point)
            canvas[top:bottom, left:right] = panel.paint(plane)
            if fixed == tuple(x for axis, x in enumerate(goal) if axis not in panel.axes):
                self._goal.draw(canvas, _cell(panel, goal))
            self._slices[panel] = fixed
        return canvas


def _cell(panel: Panel, point: tuple[int, ...]) -> tuple[slice, slice]:
    """Return the pixels of a point's cell in a panel, rows and columns."""
    x, y = (*point, 0)[panel.axes[0]], (*point, 0)[panel.axes[1]]
    return panel.cell(x, y)


def _write_label(canvas: NDArray[np.uint8], panel: Panel, margin: int) -> None:
    """Write a panel's axes below it, such as 0-1, in place."""
    right, up = panel.axes
    glyphs = (GLYPHS[character] for character in f"{right}-{up}")
    lines = [" ".join(parts) for parts in zip(*glyphs, strict=True)]
    ink = np.array([[dot == "#" for dot in line] for line in lines])
    ink = ink.repeat(GLYPH_SCALE, axis=0).repeat(GLYPH_SCALE, axis=1)
    top, left = panel.top + panel.height + margin + LABEL_PADDING, panel.left - margin
    height, width = ink.shape
    canvas[top : top + height, left : left + width][ink] = INK
