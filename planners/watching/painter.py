"""The picture of a frame: the map of values and mega-states, what is known, and its curves.

Everything is numpy and pillow, so that the picture in the window, in a GIF and in a film is one.
Pictures that are wider than high have the map on the left, as high as they are, and all that is
written in a panel beside it; others have the words above the map and the panel below.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from planners.watching.bars import Bars
from planners.watching.curves import draw_curves
from planners.watching.film import Frame, Point
from planners.watching.letters import first_fitted, fitted, short, width_of, wrapped, write
from planners.watching.maps import Map, cell_size
from planners.watching.nodes import Nodes
from planners.watching.scenes import Scene
from planners.watching.themes import LEVELS, Color, Theme, ramp, spread

# Width over height from which the panel stands beside the map.
_WIDE = 1.15
# Around a map beside its panel: so little that a maze of 200x200 has cells of three pixels in a
# window on a screen of 768 lines.
_EDGE = 4


class Words(NamedTuple):
    """What is written of a run, whatever the frame: a title, a line below it, what values are."""

    title: str
    subtitle: str
    label: str = "cost-to-go"


def _measures(size: tuple[int, int]) -> tuple[int, int]:
    """Return the margin, and the size of the text."""
    return max(10, min(size) // 32), max(11, min(17, min(size) // 30))


def _room(scene: Scene, size: tuple[int, int]) -> tuple[int, int]:
    """Return width and height that a map has at most, beside a panel or above one."""
    width, height = size
    margin, text = _measures(size)
    if width >= _WIDE * height:
        # Bars have a line of words below them.
        below = 2 * text if scene.form == "bars" else 0
        panel = max(round(0.34 * width), 190)
        room = width - panel - _EDGE - 2 * margin, height - 2 * _EDGE - below
    else:
        words, panel = _head(scene, size) + _scale_height(text), round(0.30 * height)
        room = width - 2 * margin, height - words - panel - 2 * margin
    return max(20, room[0]), max(20, room[1])


def _head(scene: Scene, size: tuple[int, int]) -> int:
    """Return where the map begins that has the words above it."""
    margin, text = _measures(size)
    return round((2.1 + 1.3 * _lines_above(scene)) * text) + margin


def _lines_above(scene: Scene) -> int:
    """Return how many lines stand below a title above a map: slices take words of their own."""
    return 2 if scene.caption else 1


def _scale_height(text: int) -> int:
    return round(3.0 * text)


def snug_size(scene: Scene, size: tuple[int, int]) -> tuple[int, int]:
    """Return a size of about, and at most, the given one that the map of a scene fills.

    Parameters
    ----------
    scene : Scene
    size : pair of int
        Width and height, wider than high.
    """
    width, height = size
    if scene.is_map:
        room = _room(scene, size)
        rows, columns = scene.index.shape
        cell = cell_size(scene, room)
        # Low maps leave the curves some height.
        tall = max(int(rows * cell) + height - room[1], round(0.7 * height))
        wide = max(int(columns * cell) + width - room[0], round(1.2 * tall))
        width, height = min(wide, width), min(tall, height)
    return 2 * (width // 2), 2 * (height // 2)


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
        self._beside = width >= _WIDE * height
        self._margin, self._text = margin, text = _measures(size)
        room = _room(scene, size)
        self._map: Map | Nodes | Bars
        if scene.form == "map":
            self._map = Map(scene, room, theme)
        elif scene.form == "graph":
            self._map = Nodes(scene, room, theme)
        else:
            self._map = Bars(scene, room, theme)
        map_width, map_height = self._map.size
        if self._beside:
            self._place = _EDGE, _EDGE + (room[1] - map_height) // 2
            left, right, bottom = _EDGE + map_width + margin, width - margin, height - margin
            self._words_at = left, margin, right
            # In a low picture the numbers come first.
            self._most_lines = 4 if height > 20 * text else 1
        else:
            self._place = margin + (room[0] - map_width) // 2, _head(scene, size)
            left, right, bottom = margin, width - margin, height - margin
            self._words_at = margin, margin, width - margin
            self._most_lines = _lines_above(scene)
        self._base, top = self._background()
        below = self._place[1] + map_height
        if self._beside:
            box = left - margin // 2, top - 2, width, height
            scale = left, bottom - _scale_height(text) + round(0.9 * text), right - left
            bottom -= _scale_height(text)
        else:
            box = 0, below, width, height
            scale = self._place[0], below + round(0.6 * text), map_width
            top = below + _scale_height(text) + margin
        # What changes beside the map, and in it left, top and width of the scale, and the panel.
        self._box = box
        self._scale = scale[0] - box[0], scale[1] - box[1], scale[2]
        self._panel = left - box[0], top - box[1], right - box[0], bottom - box[1]
        self._pixels = np.array(self._base)
        self._has_panel = False

    def _background(self) -> tuple[Image.Image, int]:
        """Return what is the same in all frames, and where the words in it end."""
        image = Image.new("RGB", self.size, self.theme.ground)
        draw = ImageDraw.Draw(image)
        text, (left, top, right) = self._text, self._words_at
        head, room = round(1.35 * text), right - left
        title, subtitle, label = self._words
        # A long title is rather smaller than cut short.
        size = next((k for k in range(head, text, -1) if width_of(title, k) <= room), text)
        write(draw, (left, top + head - size), fitted(title, size, room), size, self.theme.ink)
        y = top + round(1.75 * text)
        for line in wrapped(subtitle, text, room, self._most_lines):
            write(draw, (left, y), line, text, self.theme.faint)
            y += round(1.3 * text)
        if self._scene.form == "bars":
            # They have a scale of their own.
            (x, y0), (width, height) = self._place, self._map.size
            small = self._small
            words = fitted(f"all states in the order of their {label} now", small, width)
            _centred(draw, (x, y0 + height, width), words, small, self.theme.faint)
        return image, y + round(0.6 * text)

    @property
    def _small(self) -> int:
        """Size of the text of the scale."""
        return max(10, round(0.86 * self._text))

    def paint(
        self,
        frame: Frame,
        points: list[Point],
        path: NDArray[np.int64],
        policy: NDArray[np.int64] | None = None,
        *,
        note: str = "",
        borders: bool = True,
    ) -> Image.Image:
        """Return the picture of a frame.

        Parameters
        ----------
        frame, points, path, policy, note, borders
            As for `pixels`.
        """
        return Image.fromarray(self.pixels(frame, points, path, policy, note=note, borders=borders))

    def pixels(
        self,
        frame: Frame,
        points: list[Point],
        path: NDArray[np.int64],
        policy: NDArray[np.int64] | None = None,
        *,
        note: str = "",
        borders: bool = True,
        panel: bool = True,
    ) -> NDArray[np.uint8]:
        """Return the picture of a frame in memory of the painter's own, which the next one takes.

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

        Returns
        -------
        ndarray of uint8, shape (height, width, 3)
        """
        if panel or not self._has_panel:
            left, top, right, bottom = self._box
            if right > left and bottom > top:
                image = self._base.crop(self._box)
                self._draw_panel(image, frame, points, note)
                if self._scene.form != "bars":
                    self._draw_scale(image, frame)
                self._pixels[top:bottom, left:right] = np.asarray(image)
            self._has_panel = True
        # The map lies where nothing else is.
        shown = np.asarray(self._map.paint(frame, path, policy, borders=borders))
        left, top = self._place
        part = self._pixels[top : top + len(shown), left : left + shown.shape[1]]
        part[:] = shown[: part.shape[0], : part.shape[1]]
        return self._pixels

    def _draw_scale(self, image: Image.Image, frame: Frame) -> None:
        """Draw the colours of the values, and where bins are divided."""
        left, y, width = self._scale
        if width < 20:
            return
        draw = ImageDraw.Draw(image)
        text, small, color = self._text, self._small, self.theme.faint
        bar = max(6, round(0.62 * text))
        drawn = slice(self._scene.num_states)
        values = frame.values[drawn]
        low, high = spread(values)
        colors = ramp()[np.linspace(0, LEVELS - 1, width).astype(np.intp)]
        count = frame.num_megastates
        if frame.labels is not None and 1 < count <= width // 4 and high > low:
            # In an aggregated phase each mega-state has one value: where the bar is really used.
            labels = frame.labels[drawn]
            means = np.full(int(labels.max()) + 1, np.nan)
            means[labels] = values
            means = np.sort(means[np.isfinite(means)])
            shares = ((means[1:] + means[:-1]) / 2 - low) / (high - low)
            colors[np.rint(shares * (width - 1)).astype(np.intp)] = self.theme.border
        image.paste(Image.fromarray(np.repeat(colors[np.newaxis], bar, axis=0)), (left, y))
        line, least, greatest = y + bar + 2, short(low), short(high)
        write(draw, (left, line), least, small, color)
        ends = width_of(least, small), width_of(greatest, small)
        write(draw, (left + width - ends[1], line), greatest, small, color)
        label = f"{self._words.label} now"
        if width >= width_of(label, small) + 2 * (max(ends) + small):
            _centred(draw, (left, line, width), label, small, color)

    def _draw_panel(self, image: Image.Image, frame: Frame, points: list[Point], note: str) -> None:
        """Draw the phase, the numbers, and the curves."""
        left, top, right, bottom = self._panel
        theme, text = self.theme, self._text
        if right - left < 60 or bottom - top < 40:
            return
        draw = ImageDraw.Draw(image)
        columns = right - left if self._beside else round(0.46 * (right - left))
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
            if self._beside
            else (left + columns + 2 * self._margin, top, right, bottom)
        )
        if area[3] - area[1] > 3 * text:
            draw_curves(image, area, frame, points, theme, text)

    def _draw_phase(
        self, draw: ImageDraw.ImageDraw, frame: Frame, note: str, area: tuple[int, int, int]
    ) -> int:
        """Write the phase on a ground of its colour; return where the next line begins."""
        left, top, right = area
        theme, text = self.theme, self._text
        height = round(1.9 * text)
        if frame.num_megastates:
            many = "s" * (frame.num_megastates != 1)
            few = f"{frame.num_megastates:,} mega-state{many}"
            words, ground = f"aggregated: {few}", theme.aggregated
        else:
            words, few, ground = "global: all states", "all states", theme.line
        choice = [words, few]
        if note:
            # The ground says the phase too.
            choice = [f"{note}  ·  {words}", f"{note}  ·  {few}", f"{note} · {few}"]
        draw.rounded_rectangle([left, top, right, top + height], height // 3, fill=ground)
        words = first_fitted(choice, text, right - left - text)
        write(draw, (left + text // 2, top + round(0.36 * text)), words, text, theme.ink)
        return top + height + round(0.7 * text)


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
