"""The picture of a frame: the map of values and mega-states, what is known, and its curves.

Everything is numpy and pillow, so that the picture in the window, in a GIF and in a film is one.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from aggmaze.rendering.colors import AGENT, GOAL, value_colors
from aggmaze.rendering.marks import agent_marker, goal_marker
from planners.watching.film import Frame, Point
from planners.watching.scenes import Scene

Color = tuple[int, int, int]

# Levels of the colours of values: a palette of 256 holds them twice, plain and below borders.
LEVELS = 120
_UNKNOWN, _GROUND, _WALL = 2 * LEVELS, 2 * LEVELS + 1, 2 * LEVELS + 2
# Pixels of a cell from which walls are drawn: smaller ones would be walls and nothing else.
_LEAST_WALLED = 3
# Curves are drawn this much larger and scaled down, so that slanted lines are smooth.
_SMOOTHER = 2


@dataclass(frozen=True)
class Theme:
    """Colours of all but the values."""

    ground: Color
    card: Color
    ink: Color
    faint: Color
    line: Color
    wall: Color
    border: Color
    path: Color
    residual: Color
    bound: Color
    aggregated: Color
    unknown: Color


LIGHT = Theme(
    ground=(250, 250, 248),
    card=(255, 255, 255),
    ink=(28, 32, 40),
    faint=(104, 112, 124),
    line=(222, 225, 230),
    wall=(34, 38, 50),
    border=(255, 255, 255),
    path=(214, 39, 40),
    residual=(0, 114, 178),
    bound=(202, 84, 0),
    aggregated=(232, 222, 245),
    unknown=(206, 210, 216),
)
DARK = Theme(
    ground=(17, 20, 27),
    card=(24, 28, 37),
    ink=(233, 236, 241),
    faint=(150, 159, 173),
    line=(48, 54, 66),
    wall=(12, 14, 19),
    border=(255, 255, 255),
    path=(255, 82, 82),
    residual=(86, 180, 233),
    bound=(240, 160, 60),
    aggregated=(58, 48, 84),
    unknown=(70, 76, 88),
)
THEMES = {"light": LIGHT, "dark": DARK}


def table_of_colors(theme: Theme) -> list[Color]:
    """Return the colours that pictures of a theme are made of, at most 256, for a GIF.

    Parameters
    ----------
    theme : Theme
    """
    white, ink = (255, 255, 255), (20, 24, 32)
    found = [*vars(theme).values(), white, ink, GOAL, AGENT]
    values = [tuple(color) for color in ramp()[::3].tolist()]
    found += values
    # Borders over values, as light as they are in global phases, and lighter ones.
    for share in (0.3, 0.85):
        found += [mixed(color, theme.border, share) for color in values[::4]]
    for ground in (theme.ground, theme.card, theme.line, theme.aggregated):
        for color in (theme.ink, theme.faint):
            found += [mixed(ground, color, share) for share in (0.25, 0.5, 0.75)]
    for ground in (theme.card, theme.aggregated):
        for color in (theme.residual, theme.bound):
            found += [mixed(ground, color, share) for share in (0.25, 0.6)]
    for color in (GOAL, AGENT, theme.path):
        found += [mixed(color, white, 0.5), mixed(color, ink, 0.5)]
    return list(dict.fromkeys(found))[:256]


def mixed(under: Color, over: Color, share: float) -> Color:
    """Return the colour of one laid over another, ``share`` of it.

    Parameters
    ----------
    under, over : tuple of int
    share : float
    """
    parts = [round((1 - share) * a + share * b) for a, b in zip(under, over, strict=True)]
    return parts[0], parts[1], parts[2]


class Words(NamedTuple):
    """What is written of a run, whatever the frame: a title, a line below it, what values are."""

    title: str
    subtitle: str
    label: str = "cost-to-go"


def spread(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the least and the greatest finite value; 0 and 0 where there is none."""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)


def levels(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.uint8]:
    """Return the level of each value in the colours, from 0 for ``low`` to `LEVELS` - 1.

    Parameters
    ----------
    values : ndarray of float, shape (N,)
    low, high : float
        What the ends of the colours stand for.
    """
    width = high - low
    shares = (values - low) / width if width > 0 else np.zeros(len(values))
    return np.asarray(
        np.clip(np.nan_to_num(shares, posinf=1.0), 0.0, 1.0) * (LEVELS - 1) + 0.5, dtype=np.uint8
    )


@functools.cache
def ramp() -> NDArray[np.uint8]:
    """Return the colour of each level, shape (LEVELS, 3)."""
    return value_colors(np.linspace(0.0, 1.0, LEVELS))


@functools.lru_cache(maxsize=32)
def font(size: int) -> Any:
    """Return the font of a size in pixels."""
    return ImageFont.load_default(size)


@functools.lru_cache(maxsize=512)
def _mask(text: str, size: int) -> tuple[Image.Image, tuple[int, int]]:
    """Return a text as what covers the ground, and how far it begins from where it is put."""
    face = font(size)
    left, top, right, bottom = (math.floor(part) for part in face.getbbox(text))
    mask = Image.new("L", (right - left + 2, bottom - top + 2), 0)
    ImageDraw.Draw(mask).text((-left, -top), text, fill=255, font=face)
    return mask, (left, top)


def _write(
    draw: ImageDraw.ImageDraw, place: tuple[float, float], text: str, size: int, color: Color
) -> None:
    """Write a text; most are the same from frame to frame, and kept."""
    if text:
        mask, (left, top) = _mask(text, size)
        draw.bitmap((round(place[0]) + left, round(place[1]) + top), mask, fill=color)


@functools.lru_cache(maxsize=512)
def _width(text: str, size: int) -> float:
    """Return how many pixels wide a text is."""
    width: float = font(size).getlength(text)
    return width


def short(value: float) -> str:
    """Write a number as a picture has room for it."""
    if math.isnan(value):
        return "-"
    if 1000 <= abs(value) < 1e6:
        return f"{value:,.0f}"
    return f"{value + 0.0:.3g}"


def _cell_size(scene: Scene, area: tuple[int, int]) -> float:
    """Return how many pixels a cell has at most in an area.

    A whole number, but where cells are too small for it to show that some have a pixel more.
    """
    rows, columns = scene.index.shape
    cell = min(area[0] / columns, area[1] / rows)
    whole = cell >= (_LEAST_WALLED if scene.has_walls else 5)
    return math.floor(cell) if whole else cell


def _lightness(num_edges: int, num_pixels: int) -> float:
    """Return how much of their strength borders keep: many of them would hide the values."""
    return min(1.0, max(0.15, 0.2 * num_pixels / max(1, num_edges)))


class Map:
    """The cells of a scene in an area of pixels: what of it does not change is worked out once.

    Parameters
    ----------
    scene : Scene
    area : pair of int
        Width and height in pixels, at most.
    theme : Theme
    """

    def __init__(self, scene: Scene, area: tuple[int, int], theme: Theme) -> None:
        self._scene, self._theme = scene, theme
        rows, columns = scene.index.shape
        #: Pixels of a cell.
        self.cell = _cell_size(scene, area)
        self.size = max(1, int(columns * self.cell)), max(1, int(rows * self.cell))
        down = np.minimum(np.arange(self.size[1]) / self.cell, rows - 1).astype(np.intp)
        across = np.minimum(np.arange(self.size[0]) / self.cell, columns - 1).astype(np.intp)
        self._down, self._across = down, across
        states = scene.index[np.ix_(down, across)]
        blocked = scene.blocked[np.ix_(down, across)]
        self._gap = np.flatnonzero(states < 0)
        self._states = np.maximum(states, 0)
        wall = blocked.copy()
        thickness = 1 if self.cell < 10 else 2 if self.cell < 26 else 3
        if scene.has_walls and self.cell >= _LEAST_WALLED:
            self._stand(wall, thickness)
        self._wall = np.flatnonzero(wall)
        self._thickness = 1 if self.cell < 18 else 2

    def _stand(self, wall: NDArray[np.bool_], thickness: int) -> None:
        """Put the pixels of the walls between cells where they stand, in place."""
        scene, cell = self._scene, int(self.cell)
        height, width = wall.shape
        before = thickness // 2
        for part in range(-before, thickness - before):
            columns = (np.arange(scene.index.shape[1]) + 1) * cell + part
            inside = np.flatnonzero((columns >= 0) & (columns < width))
            # Half a wall longer at both ends, so that corners are whole.
            wall[:, columns[inside]] |= scene.wall_right[self._down][:, inside]
            rows = (np.arange(scene.index.shape[0]) + 1) * cell + part
            inside = np.flatnonzero((rows >= 0) & (rows < height))
            wall[rows[inside]] |= scene.wall_below[:, self._across][inside]
        wall[:thickness], wall[-thickness:] = True, True
        wall[:, :thickness], wall[:, -thickness:] = True, True

    def paint(
        self,
        frame: Frame,
        path: NDArray[np.int64],
        *,
        borders: bool = True,
    ) -> Image.Image:
        """Return the picture of a frame.

        Parameters
        ----------
        frame : Frame
        path : ndarray of int
            States to join by a line; may be empty.
        borders : bool
            Whether mega-states have borders.
        """
        theme, scene = self._theme, self._scene
        values = frame.values[: scene.num_states]
        level = levels(values, *spread(values))
        level[~np.isfinite(values)] = _UNKNOWN
        places = np.take(level, self._states)
        shown = places.reshape(-1)
        below = ramp()
        if borders and frame.labels is not None and scene.is_map:
            edge = self._edges(frame.labels)
            share = 0.85 if frame.num_megastates else 0.3
            share *= _lightness(int(np.count_nonzero(edge)), edge.size)
            below = np.rint(below + share * (np.array(theme.border) - below)).astype(np.uint8)
            edge &= places < LEVELS
            places += edge * np.uint8(LEVELS)
        shown[self._gap] = _GROUND
        shown[self._wall] = _WALL
        image = Image.fromarray(places)
        fixed = np.array([theme.unknown, theme.ground, theme.wall], dtype=np.uint8)
        image.putpalette(np.concatenate([ramp(), below, fixed]).tobytes())
        image = image.convert("RGB")
        self._mark(image, path)
        return image

    def _edges(self, labels: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which pixels lie on borders between mega-states, shape (height, width)."""
        found = np.take(labels.astype(np.uint16), self._states)
        edge = np.zeros(found.shape, dtype=bool)
        across, down = found[:, 1:] != found[:, :-1], found[1:] != found[:-1]
        edge[:, 1:] = across
        edge[1:] |= down
        if self._thickness > 1:
            edge[:, :-1] |= across
            edge[:-1] |= down
        return edge

    def _mark(self, image: Image.Image, path: NDArray[np.int64]) -> None:
        """Draw holes, the path, the goals and where it begins, in place."""
        scene, theme, cell = self._scene, self._theme, self.cell
        draw = ImageDraw.Draw(image)
        for row, column in scene.cells(scene.pits).tolist() if cell >= 5 else ():
            x, y, radius = (column + 0.5) * cell, (row + 0.5) * cell, cell * 0.32
            draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill=theme.wall)
        points = [
            ((column + 0.5) * cell, (row + 0.5) * cell)
            for row, column in scene.cells(path).tolist()
        ]
        width = max(2, min(7, round(cell * 0.22)))
        if len(points) > 1 and scene.is_map:
            for color, wide in (((255, 255, 255), width + 2), (theme.path, width)):
                _lines(draw, points, color, wide, longest=1.5 * max(1.0, cell))
        size = max(7.0, min(cell * 0.42, 22.0))
        start = scene.cells(np.array([scene.start]))
        goals = scene.cells(scene.goals)
        for row, column in start.tolist():
            x, y, radius = (column + 0.5) * cell, (row + 0.5) * cell, size * 0.72
            x = min(max(x, radius + 1), image.width - radius - 2)
            y = min(max(y, radius + 1), image.height - radius - 2)
            _put(image, "disc", x, y, radius)
        for row, column in goals.tolist() if len(goals) <= 40 else ():
            x, y = (column + 0.5) * cell, (row + 0.5) * cell
            x = min(max(x, size), image.width - size - 1)
            y = min(max(y, size), image.height - size - 1)
            _put(image, "star", x, y, 1.3 * size)


def _lines(
    draw: ImageDraw.ImageDraw,
    points: list[tuple[float, float]],
    color: Color,
    width: int,
    longest: float,
) -> None:
    """Join points, but those that are no neighbours, as where a slice of a maze ends."""
    run: list[tuple[float, float]] = []
    for point in points:
        if run and max(abs(point[0] - run[-1][0]), abs(point[1] - run[-1][1])) > longest:
            draw.line(run, fill=color, width=width, joint="curve")
            run = []
        run.append(point)
    draw.line(run, fill=color, width=width, joint="curve")


@functools.lru_cache(maxsize=16)
def _sprite(kind: str, size: int) -> Image.Image:
    """Return a mark as windows have it, about ``size`` pixels from its middle, as RGBA."""
    width = 2 * size + 1
    make = goal_marker if kind == "star" else agent_marker
    marker = make(width, max(1, width // 12))
    levels_of = np.concatenate([marker.colors, 255.0 * marker.opacity], axis=-1)
    return Image.fromarray(np.rint(levels_of).astype(np.uint8))


def _put(image: Image.Image, kind: str, x: float, y: float, size: float) -> None:
    sprite = _sprite(kind, round(size))
    image.paste(sprite, (round(x - sprite.width / 2), round(y - sprite.height / 2)), sprite)


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
    margin, _, head, below = _measures(size)
    panel = _panel_width(width)
    room = width - panel - 4 * margin, height - head - below - margin
    rows, columns = scene.index.shape
    cell = _cell_size(scene, room)
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
        self._map = Map(scene, (max(20, room[0]), max(20, room[1])), theme)
        map_width, map_height = self._map.size
        left = margin + (0 if beside else (room[0] - map_width) // 2)
        self._place = left, self._head
        bottom = self._head + map_height + below
        if beside:
            bottom = max(bottom, height - margin)
            self._panel = (left + map_width + 2 * margin, self._head, width - margin, bottom)
        else:
            self._panel = (margin, bottom + margin, width - margin, height - margin)
        #: Where the map is: left, top, and pixels of a cell.
        self.map_place = left, self._head, self._map.cell
        self._base = self._background()
        self._curves: Image.Image | None = None

    def _background(self) -> Image.Image:
        """Return what is the same in all frames."""
        image = Image.new("RGB", self.size, self.theme.ground)
        draw = ImageDraw.Draw(image)
        margin, text = self._margin, self._text
        room = self.size[0] - 2 * margin
        head = round(1.35 * text)
        title, subtitle, _ = self._words
        _write(draw, (margin, margin), fitted(title, head, room), head, self.theme.ink)
        place = margin, margin + round(1.75 * text)
        _write(draw, place, fitted(subtitle, text, room), text, self.theme.faint)
        return image

    def paint(
        self,
        frame: Frame,
        points: list[Point],
        path: NDArray[np.int64],
        *,
        note: str = "",
        borders: bool = True,
        curves: bool = True,
    ) -> Image.Image:
        """Return the picture of a frame.

        Parameters
        ----------
        frame : Frame
        points : list of Point
            Of the curves; the ones after the frame are faint.
        path : ndarray of int
            The greedy path; may be empty.
        note : str
            A word beside the phase, such as "paused".
        borders : bool
            Whether mega-states have borders.
        curves : bool
            Whether curves are drawn anew, which takes a quarter of the time; else those of the last
            picture stay.
        """
        image = self._base.copy()
        left, top = self._place
        image.paste(self._map.paint(frame, path, borders=borders), (left, top))
        draw = ImageDraw.Draw(image)
        self._draw_scale(image, draw, frame)
        self._draw_panel(image, draw, frame, points, note, curves)
        return image

    def _draw_scale(self, image: Image.Image, draw: ImageDraw.ImageDraw, frame: Frame) -> None:
        """Draw the colours of the values below the map, and where bins are divided."""
        left, top = self._place
        width, height = self._map.size
        text = self._text
        bar = max(6, round(0.62 * text))
        y = top + height + round(0.6 * text)
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
        small, color = max(10, round(0.86 * text)), self.theme.faint
        line = y + bar + 2
        _write(draw, (left, line), short(low), small, color)
        words = short(high)
        _write(draw, (left + width - _width(words, small), line), words, small, color)
        label = f"{self._words.label} now"
        if width > 3 * _width(label, small):
            _write(draw, (left + (width - _width(label, small)) / 2, line), label, small, color)

    def _draw_panel(
        self,
        image: Image.Image,
        draw: ImageDraw.ImageDraw,
        frame: Frame,
        points: list[Point],
        note: str,
        curves: bool,
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
            _write(draw, (left, y), name, text, color)
            x = left + columns - _width(value, strong)
            _write(draw, (x, y - 1), value, strong, theme.ink)
            y += step
        area = (
            (left, y + round(0.5 * text), right, bottom)
            if tall
            else (left + columns + 2 * self._margin, top, right, bottom)
        )
        if area[3] - area[1] <= 3 * text:
            return
        # The topmost number stands a little higher than the curves.
        box = (area[0], area[1] - text // 2, area[2], area[3])
        if curves or self._curves is None:
            self._draw_curves(image, draw, area, frame, points)
            self._curves = image.crop(box)
        else:
            image.paste(self._curves, box[:2])

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
        _write(draw, (left + text // 2, top + round(0.36 * text)), words, text, theme.ink)
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
            _write(draw, (left, top), words, small, theme.faint)
            return
        low, high = math.floor(math.log10(positive.min())), math.ceil(math.log10(positive.max()))
        high = max(high, low + 1)
        labels = _width(f"1e-{abs(low):02d}", small) + 6
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
            _write(draw, (left - 5 - _width(words, small), place), words, small, theme.faint)
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
        _write(draw, (right - _width(words, small), bottom + 2), words, small, theme.faint)
        _write(draw, (left, bottom + 2), "0", small, theme.faint)

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


def _last_known(points: list[Point], num_updates: int, name: str) -> float:
    """Return the last number that is known of a curve after so many updates; NaN for none."""
    for point in reversed(points):
        value: float = getattr(point, name)
        if point.num_updates <= num_updates and not math.isnan(value):
            return value
    return math.nan


def fitted(text: str, size: int, room: float) -> str:
    """Return a text, cut short where it does not fit into so many pixels."""
    if _width(text, size) <= room:
        return text
    while text and _width(f"{text}…", size) > room:
        text = text[:-1]
    return f"{text}…" if text else ""
