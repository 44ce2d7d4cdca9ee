"""Mazes as pixels.

One panel shows one plane of the maze: axis ``i`` to the right, axis ``j`` upwards, coordinates
``(0, 0)`` at the bottom left.  A maze of one or two dimensions is one panel; a maze of more has one
panel for every pair of axes, each the slice through the agent.

What lies in a panel but is not the agent changes only when the slice does, and only then is it
painted.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from aggmaze.layouts.layout import Layout
from aggmaze.rendering import legend
from aggmaze.rendering.colors import AGENT, BACKGROUND, INK, PATH
from aggmaze.rendering.contours import draw_contours, has_contours
from aggmaze.rendering.marks import SMALLEST_MARKER, Marker, agent_marker, goal_marker
from aggmaze.rendering.overlay import Overlay
from aggmaze.rendering.panels import Panel
from aggmaze.rendering.planes import Plane, plane_axes
from aggmaze.rendering.symbols import SMALLEST_MARKED_CELL, draw_policy, draw_signs
from aggmaze.rendering.walks import draw_walk

_LABEL_FONT, _LABEL_LINE, LABEL_PADDING = 12, 15, 4
# Below a smaller picture's panels stands nothing; width and height of what is left free there.
_SMALLEST_WITH_WORDS, _WITHOUT_WORDS = 240, (22, 14)
# On open ground without room in each cell, one mark stands for a square of about so many pixels, or
# of this share of a large picture, which is looked at scaled down; and the mark's share of that.
MARK_EVERY, _MARKS_ALONG, _MARK_SHARE = 24, 24, 0.64
# Length of a side for which a legend has its plain size.
_PLAIN_SIDE = 560
# Smaller, it could not be read.
_SMALLEST_KEY = 0.7
# Steps of a trail that are drawn, the last ones.
LONGEST_TRAIL = 2000


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
                marker.draw(image, panel.cell_of(point))
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
                self._agent.draw(image, panel.cell_of(tuple(point.tolist())))
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
        elif has_contours(layout):
            heights = "lines"
        if self._key_scale is not None:
            marks = ("goal", "agent", "trail", *(["path"] if overlay.path is not None else []))
        return legend.draw(overlay, None, self._key_scale or 1.0, heights, marks)

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
            if self._has_key and plane.heights is not None and has_contours(self.layout):
                draw_contours(canvas, panel, plane.heights)
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
            policy = self.overlay.policy
            if policy is not None and self._mark_every > 0:
                every, size = self._mark_every, self._mark_size
                draw_policy(canvas, panel, self.layout, policy, point, every=every, size=size)
            if self.layout.signs is not None:
                arrows = policy is not None
                draw_signs(canvas, panel, self.layout, point, self._goal, beside_arrows=arrows)
            elif fixed == tuple(x for axis, x in enumerate(goal) if axis not in panel.axes):
                self._goal.draw(canvas, panel.cell_of(goal))
            elif self._key_scale is not None:
                pale = Marker(self._goal.colors, 0.35 * self._goal.opacity)
                pale.draw(canvas, panel.cell_of(goal))
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
        coords = self.layout.grid.coords(states)
        draw_walk(image, panel, coords, point, color, thickness=self._thickness, seam=seam)


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
