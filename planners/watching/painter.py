"""The picture of a frame: the map of values and mega-states, what is known, and its curves.

Everything is numpy and pillow, so that the picture in the window, in a GIF and in a film is one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from planners.watching.bars import Bars
from planners.watching.film import Frame, Point
from planners.watching.letters import fitted, short, width_of, write
from planners.watching.maps import Map, cell_size
from planners.watching.nodes import Nodes
from planners.watching.scenes import Scene
from planners.watching.themes import LEVELS, Color, Theme, mixed, ramp, spread

# Curves are drawn this much larger and scaled down, so that slanted lines are smooth.
_SMOOTHER = 2


class Words(NamedTuple):
    """What is written of a run, whatever the frame: a title, a line below it, what values are."""

    title: str
    subtitle: str
    label: str = "cost-to-go"


def _measures(size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return the margin, the size of the text, and the heights above and below the map."""
    margin = max(10, min(size) // 32)
    text = max(11, min(17, min(size) // 30))
    return margin, text, round(3.4 * text) + margin, round(3.0 * text)


def _panel_width(width: int) -> int:
    return max(round(0.34 * width), 190)


def snug_size(scene: Scene, size: tuple[int, int]) -> tuple[int, int]:
    """Return a size of about, and at most, the given one that the map of a scene fills.

    Parameters
    ----------
    scene : Scene
    size : pair of int
        Width and height, wider than high.
    """
    width, height = size
    if not scene.is_map:
        return 2 * (width // 2), 2 * (height // 2)
    margin, _, head, below = _measures(size)
    panel = _panel_width(width)
    room = width - panel - 4 * margin, height - head - below - margin
    rows, columns = scene.index.shape
    cell = cell_size(scene, room)
    # Low maps leave the curves some height.
    tall = max(int(rows * cell) + head + below + margin, round(0.7 * height))
    wide = max(int(columns * cell) + panel + 4 * margin, round(1.2 * tall))
    return 2 * math.ceil(min(wide, width) / 2), 2 * math.ceil(min(tall, height) / 2)


class Painter:
    """Paints frames of one scene at one size.

    Parameters
    ----------
    scene : Scene
    words : Words
    size : pair of int
        Width and height in pixels.
    theme : Theme
    """

    def __init__(self, scene: Scene, words: Words, size: tuple[int, int], theme: Theme) -> None:
        self.size, self.theme = size, theme
        self._scene, self._words = scene, words
        width, height = size
        self._beside = beside = width >= 1.15 * height
        self._margin, self._text, self._head, below = _measures(size)
        margin = self._margin
        if beside:
            room = width - _panel_width(width) - 4 * margin, height - self._head - below - margin
        else:
            panel_height = round(0.30 * height)
            room = width - 2 * margin, height - self._head - below - panel_height - 2 * margin
        area = max(20, room[0]), max(20, room[1])
        self._map: Map | Nodes | Bars
        if scene.form == "map":
            self._map = Map(scene, area, theme)
        elif scene.form == "graph":
            self._map = Nodes(scene, area, theme)
        else:
            self._map = Bars(scene, area, theme)
        map_width, map_height = self._map.size
        left = margin + (0 if beside else (room[0] - map_width) // 2)
        self._place = left, self._head
        bottom = self._head + map_height + below
        if beside:
            bottom = max(bottom, height - margin)
            self._panel = (left + map_width + 2 * margin, self._head, width - margin, bottom)
        else:
            self._panel = (margin, bottom + margin, width - margin, height - margin)
        self._base = self._background()
        self._last: Image.Image | None = None

    def _background(self) -> Image.Image:
        """Return what is the same in all frames."""
        image = Image.new("RGB", self.size, self.theme.ground)
        draw = ImageDraw.Draw(image)
        margin, text = self._margin, self._text
        room = self.size[0] - 2 * margin
        head = round(1.35 * text)
        title, subtitle, _ = self._words
        write(draw, (margin, margin), fitted(title, head, room), head, self.theme.ink)
        place = margin, margin + round(1.75 * text)
        write(draw, place, fitted(subtitle, text, room), text, self.theme.faint)
        return image

    def paint(
        self,
        frame: Frame,
        points: list[Point],
        path: NDArray[np.int64],
        policy: NDArray[np.int64] | None = None,
        *,
        note: str = "",
        borders: bool = True,
        panel: bool = True,
    ) -> Image.Image:
        """Return the picture of a frame.

        Parameters
        ----------
        frame : Frame
        points : list of Point
            Of the curves; the ones after the frame are faint.
        path : ndarray of int
            The greedy path; may be empty.
        policy : ndarray of int, optional
            What is greedy now: the arrows of a graph.
        note : str
            A word beside the phase, such as "paused".
        borders : bool
            Whether mega-states have borders.
        panel : bool
            Whether numbers, scale and curves are drawn anew, which takes most of the time; else
            those of the last picture stay.
        """
        if panel or self._last is None:
            image = self._base.copy()
            draw = ImageDraw.Draw(image)
            self._draw_panel(image, draw, frame, points, note)
            self._draw_scale(image, draw, frame)
            self._last = image
        # The map lies where nothing else is.
        image = self._last.copy()
        image.paste(self._map.paint(frame, path, policy, borders=borders), self._place)
        return image

    def _draw_scale(self, image: Image.Image, draw: ImageDraw.ImageDraw, frame: Frame) -> None:
        """Draw the colours of the values below the map, and where bins are divided."""
        left, top = self._place
        width, height = self._map.size
        text = self._text
        bar = max(6, round(0.62 * text))
        y = top + height + round(0.6 * text)
        small, color = max(10, round(0.86 * text)), self.theme.faint
        label = f"{self._words.label} now"
        if self._scene.form == "bars":
            # They have a scale of their own.
            label = fitted(f"all states in the order of their {label}", small, width)
            _centred(draw, (left, top + height, width), label, small, color)
            return
        low, high = spread(frame.values[: self._scene.num_states])
        colors = ramp()[np.linspace(0, LEVELS - 1, width).astype(np.intp)]
        image.paste(Image.fromarray(np.repeat(colors[np.newaxis], bar, axis=0)), (left, y))
        count = frame.num_megastates
        if frame.labels is not None and 1 < count <= width // 4 and high > low:
            # In an aggregated phase each mega-state has one value: where the bar is really used.
            means = np.full(int(frame.labels.max()) + 1, np.nan)
            means[frame.labels] = frame.values
            means = np.sort(means[np.isfinite(means)])
            for middle in ((means[1:] + means[:-1]) / 2).tolist():
                x = left + round((middle - low) / (high - low) * (width - 1))
                draw.line([x, y, x, y + bar - 1], fill=self.theme.border)
        line = y + bar + 2
        write(draw, (left, line), short(low), small, color)
        words = short(high)
        write(draw, (left + width - width_of(words, small), line), words, small, color)
        if width > 3 * width_of(label, small):
            _centred(draw, (left, line, width), label, small, color)

    def _draw_panel(
        self,
        image: Image.Image,
        draw: ImageDraw.ImageDraw,
        frame: Frame,
        points: list[Point],
        note: str,
    ) -> None:
        """Draw the phase, the numbers, and the curves."""
        left, top, right, bottom = self._panel
        theme, text = self.theme, self._text
        if right - left < 60 or bottom - top < 40:
            return
        tall = self._beside
        columns = right - left if tall else round(0.42 * (right - left))
        y = self._draw_phase(draw, frame, note, (left, top, left + columns))
        rows = [
            ("iteration", f"{frame.iteration:,}"),
            ("updates", f"{frame.num_updates:,}"),
            ("residual", short(frame.residual)),
            ("bound", short(frame.bound)),
        ]
        # What an aggregated iteration does not say is said by the last that did.
        for place, name in ((2, "residual"), (3, "bound")):
            if math.isnan(getattr(frame, name)):
                rows[place] = (name, short(_last_known(points, frame.num_updates, name)))
        strong = round(1.12 * text)
        step = round(1.5 * text)
        for name, value in rows:
            if y + step > bottom:
                return
            color = {"residual": theme.residual, "bound": theme.bound}.get(name, theme.faint)
            write(draw, (left, y), name, text, color)
            x = left + columns - width_of(value, strong)
            write(draw, (x, y - 1), value, strong, theme.ink)
            y += step
        area = (
            (left, y + round(0.5 * text), right, bottom)
            if tall
            else (left + columns + 2 * self._margin, top, right, bottom)
        )
        if area[3] - area[1] <= 3 * text:
            return
        self._draw_curves(image, draw, area, frame, points)

    def _draw_phase(
        self, draw: ImageDraw.ImageDraw, frame: Frame, note: str, area: tuple[int, int, int]
    ) -> int:
        """Write the phase on a ground of its colour; return where the next line begins."""
        left, top, right = area
        theme, text = self.theme, self._text
        height = round(1.9 * text)
        if frame.num_megastates:
            many = "s" * (frame.num_megastates != 1)
            words = f"aggregated: {frame.num_megastates:,} mega-state{many}"
            ground = theme.aggregated
        else:
            words, ground = "global: all states", theme.line
        if note:
            words = f"{note}  ·  {words}"
        draw.rounded_rectangle([left, top, right, top + height], height // 3, fill=ground)
        words = fitted(words, text, right - left - text)
        write(draw, (left + text // 2, top + round(0.36 * text)), words, text, theme.ink)
        return top + height + round(0.7 * text)

    def _draw_curves(
        self,
        image: Image.Image,
        draw: ImageDraw.ImageDraw,
        area: tuple[int, int, int, int],
        frame: Frame,
        points: list[Point],
    ) -> None:
        """Draw residual and bound over updates, powers of ten upwards."""
        theme = self.theme
        small = max(9, round(0.8 * self._text))
        line = round(1.05 * self._text)
        left, top, right, bottom = area
        bottom -= line + 2
        if not points:
            return
        table = np.array([point[:3] for point in points], dtype=np.float64)
        sizes = table[:, 1:]
        positive = sizes[np.isfinite(sizes) & (sizes > 0)]
        if len(positive) == 0:
            words = "the bound is 0" if (sizes == 0).any() else "no bound yet"
            write(draw, (left, top), words, small, theme.faint)
            return
        low, high = math.floor(math.log10(positive.min())), math.ceil(math.log10(positive.max()))
        high = max(high, low + 1)
        labels = width_of(f"1e-{abs(low):02d}", small) + 6
        left = round(left + labels)
        width, height = right - left, bottom - top
        if width < 30 or height < 24:
            return
        most = max(1.0, table[-1, 0])
        over = _SMOOTHER
        plot = Image.new("RGB", (width * over, height * over), theme.card)
        pen = ImageDraw.Draw(plot)
        now = frame.num_updates / most * width * over
        self._shade_phases(pen, points, most, plot.size)
        every = max(1, math.ceil((high - low) * 1.6 * line / height))
        for power in range(low, high + 1, every):
            y = (high - power) / (high - low) * (height * over - 1)
            pen.line([0, y, plot.width, y], fill=theme.line, width=over)
            words = f"1e{power}" if abs(power) > 2 else f"{10.0**power:g}"
            place = top + y / over - line / 2
            place = min(max(place, top - line / 3), bottom - 0.8 * line)
            write(draw, (left - 5 - width_of(words, small), place), words, small, theme.faint)
        for column, color in ((2, theme.bound), (1, theme.residual)):
            good = np.isfinite(table[:, column]) & (table[:, column] > 0)
            x = table[good, 0] / most * plot.width
            y = (high - np.log10(table[good, column])) / (high - low) * (plot.height - 1)
            # One point for each pixel is enough: the last there.
            kept = np.append(np.diff(x.astype(np.intp)) > 0, True)[: len(x)]
            curve = list(zip(x[kept].tolist(), y[kept].tolist(), strict=True))
            before = [point for point in curve if point[0] <= now + 1]
            pale = mixed(theme.card, color, 0.25)
            if len(curve) > len(before):
                pen.line(curve, fill=pale, width=2 * over)
            if len(before) > 1:
                pen.line(before, fill=color, width=2 * over)
            if before:
                (cx, cy), radius = before[-1], 3.2 * over
                pen.ellipse([cx - radius, cy - radius, cx + radius, cy + radius], fill=color)
        image.paste(plot.reduce(over), (left, top))
        words = f"{table[-1, 0]:,.0f} updates"
        write(draw, (right - width_of(words, small), bottom + 2), words, small, theme.faint)
        write(draw, (left, bottom + 2), "0", small, theme.faint)

    def _shade_phases(
        self, pen: ImageDraw.ImageDraw, points: list[Point], most: float, size: tuple[int, int]
    ) -> None:
        """Shade the updates that were made on mega-states, where there are not too many phases."""
        spans: list[list[float]] = []
        last = 0.0
        was = False
        for point in points:
            aggregated = point.num_megastates > 0
            x = point.num_updates / most * size[0]
            if aggregated and was:
                spans[-1][1] = x
            elif aggregated:
                spans.append([last, x])
            last, was = x, aggregated
        if len(spans) > size[0] // (4 * _SMOOTHER):
            return
        for begin, end in spans:
            pen.rectangle(
                [begin, 0, max(end, begin + _SMOOTHER), size[1]], fill=self.theme.aggregated
            )


def _centred(
    draw: ImageDraw.ImageDraw, room: tuple[int, int, int], text: str, size: int, color: Color
) -> None:
    """Write a text in the middle of a room, given by its left, its top and its width."""
    left, top, width = room
    write(draw, (left + (width - width_of(text, size)) / 2, top), text, size, color)


def _last_known(points: list[Point], num_updates: int, name: str) -> float:
    """Return the last number that is known of a curve after so many updates; NaN for none."""
    for point in reversed(points):
        value: float = getattr(point, name)
        if point.num_updates <= num_updates and not math.isnan(value):
            return value
    return math.nan
