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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from aggmaze.layouts.layout import Layout
from aggmaze.rendering import legend
from aggmaze.rendering.colors import (
    AGENT,
    BACKGROUND,
    CLIFF,
    CONTOUR,
    FLOOR,
    GOAL_GROUND,
    INK,
    LAVA,
    PATH,
    PIT_GROUND,
    SIGNED,
    WALL,
    WHITE,
    relief_colors,
    value_colors,
)
from aggmaze.rendering.marks import (
    SMALLEST_MARKER,
    Marker,
    agent_marker,
    arrow_marker,
    diagonal_marker,
    draw_bars,
    draw_slanted,
    goal_marker,
    letter_marker,
    pit_marker,
    sign_marker,
)
from aggmaze.rendering.overlay import Overlay

_LABEL_FONT, _LABEL_LINE, LABEL_PADDING = 12, 15, 4
# Below a smaller picture's panels stands nothing; width and height of what is left free there.
_SMALLEST_WITH_WORDS, _WITHOUT_WORDS = 240, (22, 14)
#: Cells of these signs have a colour of their own, whatever is known of them.
GROUNDS = {"G": GOAL_GROUND, "H": PIT_GROUND, "L": LAVA, "~": LAVA, "C": CLIFF}
# Cells, without lines, in which marks can be told apart.
SMALLEST_MARKED_CELL = 12
# On open ground without room in each cell, one mark stands for a square of about so many pixels, or
# of this share of a large picture, which is looked at scaled down; and the mark's share of that.
MARK_EVERY, _MARKS_ALONG, _MARK_SHARE = 24, 24, 0.64
_SMALLEST_OUTLINED_CELL = 3
# Lines of equal height say nothing of fewer cells a side, nor where more cells than this share have
# one to the next.
_FEWEST_CONTOURED, _MOST_CROSSED = 8, 0.6
# Length of a side for which a legend has its plain size.
_PLAIN_SIDE = 560
# Smaller, it could not be read.
_SMALLEST_KEY = 0.7
# Steps of a trail that are drawn, the last ones.
LONGEST_TRAIL = 2000


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
    shares : ndarray of float, shape (rows, columns), optional
        Where the values of an overlay lie between the least and the greatest; NaN where unknown.
    labels : ndarray of int, shape (rows, columns), optional
        Those of an overlay.
    label_shares : ndarray of float, shape (rows, columns), optional
        Where each mega-state lies in their order, from 0 to 1.
    signs : ndarray of uint32, shape (rows, columns), optional
        What marks the cells, as code points; 0 where nothing does.
    ends : ndarray of bool, shape (rows, columns), optional
        Where an episode ends; beside signs.
    """

    open_right: NDArray[np.bool_]
    open_up: NDArray[np.bool_]
    heights: NDArray[np.float64] | None
    blocked: NDArray[np.bool_]
    shares: NDArray[np.float64] | None = None
    labels: NDArray[np.int64] | None = None
    label_shares: NDArray[np.float64] | None = None
    signs: NDArray[np.uint32] | None = None
    ends: NDArray[np.bool_] | None = None

    @classmethod
    def of(
        cls,
        layout: Layout,
        axes: tuple[int, int],
        through: tuple[int, ...],
        overlay: Overlay | None = None,
    ) -> Plane:
        """Cut a layout, and what is known of it, along two axes through a point.

        Parameters
        ----------
        layout : Layout
        axes : pair of int
            The axes to the right and upwards; ``(0, 1)`` in a maze of one dimension.
        through : tuple of int
            Coordinates of the point, one an axis.
        overlay : Overlay, optional
        """
        overlay = Overlay() if overlay is None else overlay

        def cut(values: NDArray[Any]) -> NDArray[Any]:
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
            shares=None if overlay.values is None else overlay.shares(cut(overlay.values)),
            labels=None if overlay.labels is None else cut(overlay.labels),
            label_shares=None if overlay.labels is None else cut(overlay.label_shares),
            signs=None if layout.signs is None else cut(layout.signs),
            ends=None if layout.signs is None else cut(layout.is_end()).astype(bool),
        )

    def colors(self) -> NDArray[np.uint8]:
        """Return the colour of each cell, shape (rows, columns, 3)."""
        colors = self._grounds()
        if self.signs is not None:
            for sign, color in GROUNDS.items():
                colors[self.signs == ord(sign)] = color
            # Those of the user's too, but where values or labels have coloured them.
            others = ~np.isin(self.signs, (0, *map(ord, GROUNDS)))
            if self.shares is not None or self.labels is not None:
                assert self.ends is not None
                others &= self.ends
            colors[others] = SIGNED
        return colors

    def _grounds(self) -> NDArray[np.uint8]:
        """Return the colours of cells without those that their signs give them."""
        if self.labels is not None and self.shares is None:
            assert self.label_shares is not None
            return value_colors(self.label_shares)
        known = None if self.shares is None else np.isfinite(self.shares)
        if self.shares is not None and known is not None and known.all():
            return value_colors(self.shares)
        if self.heights is None:
            colors = np.full((*self.blocked.shape, 3), FLOOR, dtype=np.uint8)
        else:
            colors = relief_colors(self.heights)
        if self.shares is not None and known is not None:
            colors[known] = value_colors(self.shares[known])
        return colors

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
        """Return the rows and the columns of pixels of the cell at ``(x, y)``, without lines.

        Parameters
        ----------
        x, y : int
            Counted from the lower left.
        """
        inside = self.edge - self.line
        left = self.left + self.border + x * self.edge
        top = self.top + self.border + (self.rows - 1 - y) * self.edge
        return slice(top, top + inside), slice(left, left + inside)

    def centres(
        self, x: NDArray[np.int64], y: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the row and the column of the middle pixel of the cells at ``(x, y)``.

        Parameters
        ----------
        x, y : ndarray of int, shape (N,)
            Counted from the lower left.
        """
        half = (self.edge - self.line) // 2
        rows = self.top + self.border + (self.rows - 1 - y) * self.edge + half
        return rows, self.left + self.border + x * self.edge + half

    def paint(self, plane: Plane) -> NDArray[np.uint8]:
        """Return the pixels of a plane, cells, lines between labels, walls; shape (h, w, 3)."""
        # For each pixel its place on the mesh of lines and cells; lines belong to a cell beside.
        down, across = (
            np.repeat(np.arange(2 * n + 1), self._lengths(n)) for n in (self.rows, self.columns)
        )
        rows, columns = (
            np.minimum(places // 2, n - 1)
            for places, n in ((down, self.rows), (across, self.columns))
        )
        # A pixel is one number meanwhile: much is copied, and numbers are copied fast.
        image = _packed(plane.colors()).take(rows, axis=0).take(columns, axis=1)
        if plane.labels is not None:
            places = plane.labels[rows][:, columns]
            border = np.zeros(image.shape, dtype=bool)
            border[:, 1:] |= places[:, 1:] != places[:, :-1]
            border[1:] |= places[1:] != places[:-1]
            if self.edge < _SMALLEST_OUTLINED_CELL:
                # Ink would hide the cells themselves: their colours, darker.
                parts = image[..., np.newaxis].view(np.uint8)
                parts[border] = (parts[border] * np.float64(0.55)).astype(np.uint8)
            else:
                image[border] = _packed(np.array(INK, dtype=np.uint8))
        walls = plane.walls().take(down, axis=0).take(across, axis=1)
        np.copyto(image, _packed(np.array(WALL, dtype=np.uint8)), where=walls)
        return image[..., np.newaxis].view(np.uint8)[..., :3]

    def _lengths(self, n: int) -> NDArray[np.intp]:
        """Return the lengths of border, cell, line, cell, ..., cell, border."""
        lengths = np.full(2 * n + 1, self.line)
        lengths[1::2] = self.edge - self.line
        lengths[[0, -1]] = self.border
        lengths[-1] += lengths.sum() % 2
        return lengths


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
    overlay : Overlay, optional
        Drawn over the maze.  Values are colours, explained by a legend on the right; labels are
        colours in their order, with borders, or borders only where there are values too; terrain
        has lines of equal height, or a key of its colours, beside whatever is drawn; the policy is
        arrows, a plus or a minus where the move leaves the plane, in cells of twelve pixels and
        more, and on open ground of smaller cells in some; the path is a line.
    across : int, optional
        Number of panels side by side; by default as many as make about a square.
    key_scale : float, optional
        For windows: there is always a legend, of marks and heights too, and so many times as large,
        so that a picture keeps its size whatever is drawn over it; terrain has lines of equal
        height, and slices without the goal show its place as a pale star.

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

    def __init__(
        self,
        layout: Layout,
        size: int = 512,
        overlay: Overlay | None = None,
        across: int | None = None,
        key_scale: float | None = None,
    ) -> None:
        if (size := operator.index(size)) < 1:
            raise ValueError(f"size must be at least 1 pixel, got {size}")
        self.layout = layout
        self.overlay = Overlay() if overlay is None else overlay
        self._key_scale = key_scale
        # A plain frame may be an observation, and keeps its size.
        drawn_over = self.overlay.policy is not None or self.overlay.path is not None
        self._has_key = (
            key_scale is not None
            or legend.is_needed(self.overlay)
            or (layout.heights is not None and drawn_over)
        )
        key = legend.size(key_scale or 1.0) if self._has_key else (0, 0)
        size = max(1, size - key[0])
        grid = layout.grid
        pairs = plane_axes(grid.num_dims)
        lengths = (*grid.shape, 1) if grid.num_dims == 1 else grid.shape
        labelled = len(pairs) > 1
        if across is None:
            across = math.ceil(math.sqrt(len(pairs)))
        gap = 2 * max(3, size // 80) if labelled else 0
        font_scale = max(1.0, key_scale or 1.0)
        self._label_size = font_scale * _LABEL_FONT
        font = _font(self._label_size)
        self._label_line = math.ceil(font_scale * _LABEL_LINE)
        two_lines = f"axis {grid.num_dims - 2} across,", f"axis {grid.num_dims - 1} up"
        one_line = math.ceil(font.getlength(" ".join(two_lines)))
        label_width = math.ceil(font.getlength(two_lines[0])) if labelled else 0
        # Those of a panel stand in one line where it is wide enough.
        lines = 2 if one_line < size // across - gap else 3
        self._label_in_one = lines == 2
        caption = lines * self._label_line + LABEL_PADDING if labelled else 0
        # Pictures for learning have room for no words.
        self._has_words = labelled and size >= _SMALLEST_WITH_WORDS
        if labelled and not self._has_words:
            label_width, caption = _WITHOUT_WORDS
        caption, label_width = caption + caption % 2, label_width + label_width % 2
        down = math.ceil(len(pairs) / across)
        space = (size - (across + 1) * gap - across * caption) // across
        if self._has_words:
            space = min(
                (size - (n + 1) * gap - n * extra) // n
                for n, extra in ((across, 0), (down, caption))
            )

        # Blocked cells need no lines between cells to be seen.
        walled = layout.num_walls > 0 or (layout.heights is None and layout.blocked is None)
        edge = max(2 if walled else 1, space // max(lengths))
        thickness = max(1, edge // 8)
        line = thickness if walled else 0
        inside = edge - line
        # On a large picture, which is looked at scaled down, a marker of nine pixels is lost.
        shorter = sorted(lengths)[-2] * edge
        agent_size = max(SMALLEST_MARKER, min(20, shorter // 32), shorter // 48, inside * 6 // 10)
        agent_size += (inside - agent_size) % 2  # so that it can be centred
        goal_size = agent_size + 2 * max(2, agent_size // 3)
        # A star fills less of its square than a disc; in a cell of its own it stays within.
        goal_size = min(goal_size, max(inside - (inside - goal_size) % 2, agent_size + 4))
        outline = max(1, agent_size // 12)
        self._agent = agent_marker(agent_size, outline)
        self._goal = goal_marker(goal_size, outline)
        # On the goal the agent stands within the star.
        small = max(5, agent_size // 2)
        small += (inside - small) % 2
        self._agent_on_goal = agent_marker(small, 1 if small >= SMALLEST_MARKER else 0)
        self._mark_every = 1
        self._mark_size = min(inside * 6 // 10, max(26, inside // 3))
        if inside < SMALLEST_MARKED_CELL:
            # Between walls one cell says nothing of the next.
            every = max(MARK_EVERY, shorter // _MARKS_ALONG)
            self._mark_every = 0 if layout.num_walls > 0 else math.ceil(every / edge)
            self._mark_size = 2 * int(_MARK_SHARE * every / 2) + 1
        # A line of one pixel is lost between its seams.
        self._thickness = max(3, inside // 8, shorter // 200)
        # Room for markers that are larger than the cells at the border.
        self._margin = max(0, (goal_size - inside) // 2 - thickness)

        def panel(axes: tuple[int, int], left: int = 0, top: int = 0) -> Panel:
            columns, rows = (lengths[axis] for axis in axes)
            return Panel(axes, columns, rows, left, top, edge, line, thickness)

        # Rows and columns of panels, each as wide as its largest; panels stand at the bottom left.
        widths, heights = [0] * across, [0] * math.ceil(len(pairs) / across)
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
        height = sum(heights) + len(heights) * (caption + gap) + gap
        width = sum(widths) + (len(widths) + 1) * gap
        width += width % 2
        self._legend_left = width
        if self._has_key:
            key = (key[0], max(key[1], self._key.shape[0] if key_scale is None else 0))
        self.shape = (max(height, key[1]), width + key[0], 3)

        # Made by the first frame: the picture without the agent, and for each panel the coordinates
        # of the slice that it shows.
        self._canvas: NDArray[np.uint8] | None = None
        self._slices: dict[Panel, tuple[int, ...]] = {}
        self._label_lines = lines

    @classmethod
    def within(
        cls, area: tuple[int, int], layout: Layout, overlay: Overlay | None = None
    ) -> Raster:
        """Return the one with the largest cells whose pictures fit into an area.

        Parameters
        ----------
        area : pair of int
            Width and height in pixels.  Pictures are larger where every cell takes more.
        layout : Layout
        overlay : Overlay, optional
        """
        num_panels = len(plane_axes(layout.grid.num_dims))
        rasters = [cls._within(area, layout, overlay, n) for n in range(1, num_panels + 1)]
        return max(rasters, key=lambda raster: (raster._excess(area) <= 1, raster.panels[0].edge))

    @classmethod
    def _within(
        cls, area: tuple[int, int], layout: Layout, overlay: Overlay | None, across: int
    ) -> Raster:
        size, scale = max(area), key_scale(area)
        while True:
            raster = cls(layout, size, overlay, across, scale)
            excess = raster._excess(area)
            smaller = min(int(size / excess), size - 1)
            if excess <= 1:
                return raster
            if smaller < 1:
                # It will be scaled down, and its legend with it.
                return cls(layout, size, overlay, across, None if scale is None else scale * excess)
            size = smaller

    def _excess(self, area: tuple[int, int]) -> float:
        """Return how many times the room that there is the pictures take, on the tighter side."""
        return max(self.shape[1] / area[0], self.shape[0] / area[1])

    def frame(self, state: int | None, trail: Sequence[int] = ()) -> NDArray[np.uint8]:
        """Draw the maze with the agent in a state.

        Parameters
        ----------
        state : int or None
            Where the agent is.  With None no agent is drawn, and slices go through the goal.
        trail : sequence of int
            States that it came through, in order; the last 2000 are drawn, as a line.

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
        if len(trail) > 1:
            states = np.asarray(trail[-LONGEST_TRAIL:])
            for panel in self.panels:
                self._draw_line(image, panel, states, point, AGENT, seam=1)
        if state is not None:
            for panel in self.panels:
                marker = self._agent
                if self.layout.signs is None and state == self.layout.goal:
                    marker = self._agent_on_goal
                marker.draw(image, _cell(panel, point))
        return image

    def crowd(self, states: Sequence[int]) -> NDArray[np.uint8]:
        """Draw the maze with several agents; slices go through the goal, and show who is in them.

        Parameters
        ----------
        states : sequence of int
            Where they are.

        Returns
        -------
        ndarray of uint8, shape (height, width, 3)
        """
        image = self.frame(None)
        goal = self.layout.grid.coords(self.layout.goal)
        points = self.layout.grid.coords(np.unique(np.asarray(states, dtype=np.int64)))
        for panel in self.panels:
            others = [axis for axis in range(len(goal)) if axis not in panel.axes]
            for point in points[(points[:, others] == goal[others]).all(axis=1)]:
                self._agent.draw(image, _cell(panel, tuple(point.tolist())))
        return image

    @cached_property
    def _key(self) -> NDArray[np.uint8]:
        """The legend."""
        overlay, layout = self.overlay, self.layout
        colored = legend.is_needed(overlay)
        heights = ""
        marks: tuple[str, ...] = ()
        if layout.heights is not None and not colored:
            heights = "colors"
        elif self._has_contours():
            heights = "lines"
        if self._key_scale is not None:
            marks = ("goal", "agent", "trail", *(["path"] if overlay.path is not None else []))
        return legend.draw(overlay, None, self._key_scale or 1.0, heights, marks)

    def _has_contours(self) -> bool:
        """Return whether lines of equal height tell anything: not of few cells, nor of noise."""
        heights, shape = self.layout.heights, self.layout.grid.shape
        if heights is None or len(shape) != 2 or min(shape) < _FEWEST_CONTOURED:
            return False
        bands = np.floor(heights.reshape(shape) / legend.HEIGHT_STEP)
        crossed = [float((np.diff(bands, axis=axis) != 0).mean()) for axis in (0, 1)]
        return max(crossed) < _MOST_CROSSED

    def _draw_contours(self, canvas: NDArray[np.uint8], panel: Panel, plane: Plane) -> None:
        """Draw lines of equal height between the centres of a plane's cells, in place."""
        assert plane.heights is not None
        border, edge = panel.border, panel.edge
        high, wide = panel.rows * edge, panel.columns * edge
        heights = plane.heights
        for axis, n in enumerate((panel.rows, panel.columns)):
            # Of each pixel the two cells whose centres it lies between, and how far.
            place = ((np.arange(n * edge) + 0.5) / edge - 0.5).clip(0, n - 1)
            first = np.minimum(place.astype(int), max(0, n - 2))
            share = (place - first)[:, np.newaxis] if axis == 0 else place - first
            following = np.minimum(first + 1, n - 1)
            heights = (1 - share) * heights.take(first, axis) + share * heights.take(
                following, axis
            )
        bands = np.floor(heights / legend.HEIGHT_STEP)
        line = np.zeros(bands.shape, dtype=bool)
        line[1:] |= bands[1:] != bands[:-1]
        line[:, 1:] |= bands[:, 1:] != bands[:, :-1]
        top, left = panel.top + border, panel.left + border
        part = canvas[top : top + high, left : left + wide]
        line = line[: part.shape[0], : part.shape[1]] & (part != np.array(WALL)).any(axis=-1)
        part[line] = (0.25 * part[line] + 0.75 * np.array(CONTOUR)).astype(np.uint8)

    def _static(self, point: tuple[int, ...]) -> NDArray[np.uint8]:
        """Return the picture without the agent, of the slices through a point."""
        canvas = self._canvas
        if canvas is None:
            canvas = self._canvas = np.empty(self.shape, dtype=np.uint8)
            canvas[:] = BACKGROUND
            if self._has_key:
                key, left = self._key[: self.shape[0]], self._legend_left
                canvas[: key.shape[0], left : left + key.shape[1]] = key
        goal = tuple(int(x) for x in self.layout.grid.coords(self.layout.goal))
        for panel in self.panels:
            fixed = tuple(x for axis, x in enumerate(point) if axis not in panel.axes)
            if self._slices.get(panel) == fixed:
                continue
            top, left, margin = panel.top, panel.left, self._margin
            bottom, right = top + panel.height, left + panel.width
            canvas[top - margin : bottom + margin, left - margin : right + margin] = BACKGROUND
            plane = Plane.of(self.layout, panel.axes, point, self.overlay)
            canvas[top:bottom, left:right] = panel.paint(plane)
            if self._has_key and self._has_contours():
                self._draw_contours(canvas, panel, plane)
            if self._has_words:
                self._write_label(canvas, panel, point, goal)
            if self.overlay.path is not None:
                self._draw_line(
                    canvas,
                    panel,
                    self.overlay.path,
                    point,
                    PATH,
                    seam=1 if panel.edge < SMALLEST_MARKED_CELL else 2,
                )
            self._draw_policy(canvas, panel, point)
            if self.layout.signs is not None:
                self._draw_signs(canvas, panel, point)
            elif fixed == tuple(x for axis, x in enumerate(goal) if axis not in panel.axes):
                self._goal.draw(canvas, _cell(panel, goal))
            elif self._key_scale is not None:
                pale = Marker(self._goal.colors, 0.35 * self._goal.opacity)
                pale.draw(canvas, _cell(panel, goal))
            self._slices[panel] = fixed
        return canvas

    def _write_label(
        self,
        canvas: NDArray[np.uint8],
        panel: Panel,
        point: tuple[int, ...],
        goal: tuple[int, ...],
    ) -> None:
        """Write below a panel its axes, and where the goal is that lies in another slice."""
        right, up = panel.axes
        font = _font(self._label_size)
        parts = [f"axis {right} across,", f"axis {up} up"]
        lines = [" ".join(parts)] if self._label_in_one else parts
        top = panel.top + panel.height + self._margin + LABEL_PADDING
        left = panel.left - self._margin
        nearest = min(
            (
                other.left
                for other in self.panels
                if other.left > panel.left and abs(other.top - panel.top) < canvas.shape[0]
            ),
            default=self._legend_left + self._margin,
        )
        width = max(1, nearest - self._margin - LABEL_PADDING - left)
        others = [axis for axis in range(len(point)) if axis not in panel.axes]
        away = [axis for axis in others if point[axis] != goal[axis]]
        if away:
            exact = ", ".join(f"{goal[axis]} on axis {axis}" for axis in away)
            wordings = (f"goal at {exact}", f"goal {len(away)} axes off" if away[1:] else "", "")
        else:
            wordings = ("goal in this slice", "goal here", "")
        fits = [words for words in wordings if font.getlength(words) <= width]
        lines.append(fits[0] if fits else "")
        height = self._label_lines * self._label_line
        image = Image.new("RGB", (width, height), BACKGROUND)
        pen = ImageDraw.Draw(image)
        for place, words in enumerate(lines):
            pen.text((0, place * self._label_line), words, fill=INK, font=font)
        part = canvas[top : top + height, left : left + width]
        part[:] = np.asarray(image)[: part.shape[0], : part.shape[1]]

    def _draw_policy(self, canvas: NDArray[np.uint8], panel: Panel, point: tuple[int, ...]) -> None:
        """Draw the actions of a plane's cells that are free and no end."""
        policy, every = self.overlay.policy, self._mark_every
        if policy is None or every == 0:
            return
        acting = self.layout.acting()
        actions, shown = (
            self.layout.grid.to_image(of, axes=panel.axes, through=point)[::-1]
            for of in (policy, acting)
        )
        offset = every // 2
        y, x = np.nonzero(shown[offset::every, offset::every])
        y, x = every * y + offset, every * x + offset
        tops, lefts = (centres - self._mark_size // 2 for centres in panel.centres(x, y))
        chosen = actions[y, x]
        for action in np.unique(chosen).tolist():
            here = chosen == action
            self._action_marker(action, panel).draw_all(canvas, tops[here], lefts[here])

    def _action_marker(self, action: int, panel: Panel) -> Marker:
        """Return what shows an action in a panel."""
        direction = self.layout.grid.directions[action]
        moved = [axis for axis, step in enumerate(direction) if step]
        if len(moved) != 1:
            return diagonal_marker(self._mark_size, direction[0], direction[1])
        (axis,) = moved
        if axis in panel.axes:
            return arrow_marker(self._mark_size, panel.axes.index(axis), direction[axis])
        return sign_marker(self._mark_size, direction[axis])

    def _draw_signs(self, canvas: NDArray[np.uint8], panel: Panel, point: tuple[int, ...]) -> None:
        """Draw what marks a plane's cells: goals always, all else where cells have room for it."""
        assert self.layout.signs is not None
        inside = panel.edge - panel.line
        cells, ends = (
            self.layout.grid.to_image(of, axes=panel.axes, through=point)[::-1]
            for of in (self.layout.signs, self.layout.is_end())
        )
        for code in np.unique(cells[cells != 0]).tolist():
            sign = chr(code)
            y, x = np.nonzero(cells == code)
            rows, columns = panel.centres(x, y)
            size = inside * 7 // 10
            if sign == "G":
                marker = self._goal
            elif sign in "L~C" or inside < SMALLEST_MARKED_CELL:
                continue
            elif sign == "H":
                marker = pit_marker(size)
            elif self.overlay.policy is not None and not ends[y[0], x[0]]:
                # Beside the arrow, in a corner.
                size = max(8, inside * 4 // 10)
                marker, shift = letter_marker(size, sign), inside // 2 - size // 2 - 1
                rows, columns = rows - shift, columns - shift
            else:
                marker = letter_marker(size, sign)
            height = marker.opacity.shape[0]
            marker.draw_all(canvas, rows - height // 2, columns - height // 2)

    def _draw_line(
        self,
        image: NDArray[np.uint8],
        panel: Panel,
        states: NDArray[np.int64],
        point: tuple[int, ...],
        color: tuple[int, int, int],
        *,
        seam: int,
    ) -> None:
        """Draw what of a walk lies in a plane, with a white seam."""
        coords = self.layout.grid.coords(states)
        right, up = panel.axes
        within = np.ones(len(states), dtype=bool)
        for axis, place in enumerate(point):
            if axis not in panel.axes:
                within &= coords[:, axis] == place
        x = coords[:, right]
        y = coords[:, up] if coords.shape[1] > 1 else np.zeros_like(x)
        first, low = (np.minimum(along[1:], along[:-1]) for along in (x, y))
        pieces = []
        for along, across in ((x, y), (y, x)):
            steps = abs(np.diff(along)) == 1
            steps &= within[1:] & within[:-1] & (np.diff(across) == 0)
            # A walk to and fro draws a piece once.
            places = np.unique(low[steps] * panel.columns + first[steps])
            pieces.append(np.divmod(places, panel.columns))
        # Wind and kings lead on a slant; who is sent back to the start draws no line.
        slanted = within[1:] & within[:-1] & (abs(np.diff(x)) <= 1)
        slanted &= abs(np.diff(x)) + abs(np.diff(y)) > 1
        tops, lefts = panel.centres(x, y)
        points = np.stack([lefts, tops], axis=1)
        lines = np.unique(np.stack([points[:-1], points[1:]], axis=1)[slanted], axis=0)
        for thick, paint in ((self._thickness + 2 * seam, WHITE), (self._thickness, color)):
            if len(lines):
                draw_slanted(image, lines, thick, paint)
            size = thick, panel.edge + thick
            for level, (bottom, left) in zip((True, False), pieces, strict=True):
                tops, lefts = panel.centres(left, bottom if level else bottom + 1)
                shape = size if level else size[::-1]
                draw_bars(image, tops - thick // 2, lefts - thick // 2, shape, paint)


@lru_cache(maxsize=8)
def _font(size: float) -> Any:
    """Return a font, which is not kept in a `Raster`: copies could not be made of it."""
    return ImageFont.load_default(size)


def key_scale(area: tuple[int, int]) -> float | None:
    """Return how many times as large a legend is in a window's area; None where none has room.

    Parameters
    ----------
    area : pair of int
        Width and height in pixels.
    """
    scale = min(2.5, min(area) / _PLAIN_SIDE, area[1] / legend.TALLEST)
    return scale if scale >= _SMALLEST_KEY else None


def _packed(colors: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return colours, shape (..., 3), as one number each, whose first three bytes they are."""
    padded = np.zeros((*colors.shape[:-1], 4), dtype=np.uint8)
    padded[..., :3] = colors
    return padded.view(np.uint32)[..., 0]


def _cell(panel: Panel, point: tuple[int, ...]) -> tuple[slice, slice]:
    """Return the pixels of a point's cell in a panel, rows and columns."""
    x, y = (*point, 0)[panel.axes[0]], (*point, 0)[panel.axes[1]]
    return panel.cell(x, y)
