"""Small pictures to be laid over cells: the goal, the agent, arrows, signs and lines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from aggmaze.rendering.colors import AGENT, GOAL, INK, WHITE

SMALLEST_MARKER = 9
SMALLEST_RINGED_MARKER = 12
# Drawn larger and averaged, so that slanted edges are smooth.
_OVERSAMPLING = 8
# Radius of a star between its tips, as a share of that at the tips: fat, to be seen when small.
_STAR_WAIST, _WAIST_OF_SMALL_STARS, _SMALLEST_SEAMED_STAR = 0.52, 0.62, 18


@dataclass(frozen=True)
class Marker:
    """A small picture with an opacity, to be laid over a cell's centre.

    Parameters
    ----------
    colors : ndarray of float, shape (h, w, 3)
        Levels in [0, 255].
    opacity : ndarray of float, shape (h, w, 1)
        0 leaves what lies below, 1 hides it.
    """

    colors: NDArray[np.float64]
    opacity: NDArray[np.float64]

    def draw(self, image: NDArray[np.uint8], cell: tuple[slice, slice]) -> None:
        """Lay the marker over the centre of a cell of an image, in place.

        Parameters
        ----------
        image : ndarray of uint8, shape (H, W, 3)
        cell : pair of slice
            Rows and columns of its pixels.
        """
        tops, lefts = (
            np.array([(side.start + side.stop) // 2 - length // 2])
            for side, length in zip(cell, self.opacity.shape, strict=False)
        )
        self.draw_all(image, tops, lefts)

    def draw_all(
        self, image: NDArray[np.uint8], tops: NDArray[np.int64], lefts: NDArray[np.int64]
    ) -> None:
        """Lay the marker over an image, in place, at each of some upper left corners.

        Parameters
        ----------
        image : ndarray of uint8, shape (H, W, 3)
        tops, lefts : ndarray of int, shape (N,)
        """
        places = _places(image, tops, lefts, self.opacity.shape)
        below = image[places]
        image[places] = np.rint(below + self.opacity * (self.colors - below))


@lru_cache(maxsize=32)
def goal_marker(size: int, outline: int) -> Marker:
    """Return the goal's marker: a star with an outline in ink and a light seam around it.

    Parameters
    ----------
    size, outline : int
        Pixels: its width, and how wide the outline is.
    """
    large, thick = size * _OVERSAMPLING, outline * _OVERSAMPLING
    # A small star needs its pixels for the colour.
    small = size < _SMALLEST_SEAMED_STAR
    seam = 0 if small else max(_OVERSAMPLING // 2, thick // 2)
    waist = _WAIST_OF_SMALL_STARS if small else _STAR_WAIST
    radius = large / 2 - thick - seam
    masks = []
    # Each corner moves out along its own ray, so that tips stay sharp.
    for grown in (0.0, thick, thick + seam):
        image = Image.new("L", (large, large))
        corners = []
        for k in range(10):
            angle = math.pi * k / 5
            length = radius * (1.0 if k % 2 == 0 else waist) + grown
            corners.append(
                (large / 2 + length * math.sin(angle), large / 2 - length * math.cos(angle))
            )
        ImageDraw.Draw(image).polygon(corners, fill=255)
        shares = np.asarray(image.reduce(_OVERSAMPLING), dtype=np.float64)[..., np.newaxis] / 255
        masks.append(shares)
    heart, ink, covered = masks
    colors = WHITE + ink * (np.array(INK) - WHITE)
    colors += heart * (np.array(GOAL) - colors)
    return Marker(colors, covered)


def agent_marker(size: int, outline: int) -> Marker:
    """Return the agent's marker: an outlined disc, ``size`` pixels wide.

    Parameters
    ----------
    size, outline : int
        Pixels.
    """
    axis = np.arange(size) - (size - 1) / 2
    distance = np.hypot(axis[:, np.newaxis], axis)[..., np.newaxis]

    def disc(radius: float) -> NDArray[np.float64]:
        covered: NDArray[np.float64] = np.clip(radius - distance + 0.5, 0.0, 1.0)
        return covered

    colors = np.empty((size, size, 3))
    colors[:] = INK
    radius = size / 2 - outline
    if size >= SMALLEST_RINGED_MARKER:  # a smaller disc needs its pixels for the colour
        colors += disc(radius) * (np.array(WHITE) - colors)
        radius -= outline
    colors += disc(radius) * (np.array(AGENT) - colors)
    return Marker(colors, disc(size / 2))


@lru_cache(maxsize=16)
def pit_marker(size: int) -> Marker:
    """Return a hole, a dark disc ``size`` pixels wide with a light rim."""
    axis = np.arange(size) - (size - 1) / 2
    distance = np.hypot(axis[:, np.newaxis], axis)[..., np.newaxis]
    hole = np.clip(size / 2 - max(1, size // 12) - distance + 0.5, 0.0, 1.0)
    colors = hole * np.array(INK) + (1 - hole) * np.array(WHITE)
    return Marker(colors, np.clip(size / 2 - distance + 0.5, 0.0, 1.0))


@lru_cache(maxsize=256)
def letter_marker(size: int, letter: str) -> Marker:
    """Return a letter in ink with a light seam, ``size`` pixels wide and high.

    Parameters
    ----------
    size : int
        Pixels.
    letter : str
        A single character.
    """
    font = ImageFont.load_default(size)
    ink, covered = (
        np.asarray(_written(letter, size, font, seam), dtype=np.float64)[..., np.newaxis] / 255
        for seam in (0, max(1, size // 10))
    )
    share = np.divide(ink, covered, out=np.zeros_like(ink), where=covered > 0).clip(0.0, 1.0)
    return Marker(share * np.array(INK) + (1 - share) * np.array(WHITE), covered)


def _written(letter: str, size: int, font: Any, seam: int) -> Image.Image:
    image = Image.new("L", (size, size))
    middle = size / 2
    ImageDraw.Draw(image).text(
        (middle, middle), letter, fill=255, font=font, anchor="mm", stroke_width=seam
    )
    return image


def fitted_font(words: str, size: float, room: float, smallest: float = 1.0) -> Any:
    """Return the font of a size, or the largest below it in which words fit.

    Parameters
    ----------
    words : str
    size, room : float
        Pixels: of the font, and the words' width at most.
    smallest : float
        No smaller font is taken.
    """
    size = max(smallest, size)
    font = ImageFont.load_default(size)
    while size > smallest and (needed := font.getlength(words)) > room:
        # Small fonts are wider than in proportion: a little less than that at a time.
        size = max(smallest, min(0.97 * size, size * room / needed))
        font = ImageFont.load_default(size)
    return font


def draw_slanted(
    image: NDArray[np.uint8],
    ends: NDArray[np.int64],
    thickness: int,
    color: tuple[int, int, int],
) -> None:
    """Draw straight lines between points, in place.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, 3)
    ends : ndarray of int, shape (N, 2, 2)
        Column and row of the pixels where each line begins and ends.
    thickness : int
        Pixels.
    color : triple of int
        Levels in [0, 255].
    """
    mask = Image.new("1", (image.shape[1], image.shape[0]))
    pen = ImageDraw.Draw(mask)
    for first, last in ends.tolist():
        pen.line([tuple(first), tuple(last)], fill=1, width=thickness)
    image[np.asarray(mask)] = color


def draw_bars(
    image: NDArray[np.uint8],
    tops: NDArray[np.int64],
    lefts: NDArray[np.int64],
    size: tuple[int, int],
    color: tuple[int, int, int],
) -> None:
    """Fill rectangles of one height and width, pieces of a line, in place.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, 3)
    tops, lefts : ndarray of int, shape (N,)
    size : pair of int
        Height and width.
    color : triple of int
        Levels in [0, 255].
    """
    image[_places(image, tops, lefts, size)] = color


@lru_cache(maxsize=64)
def arrow_marker(size: int, axis: int, sign: int) -> Marker:
    """Return an arrow ``size`` pixels wide that points along an axis, 0 to the right, 1 upwards.

    Parameters
    ----------
    size, axis : int
    sign : int
        Positive along the axis, else against it.
    """
    shaft = [(0.12, 0.42), (0.5, 0.42), (0.5, 0.2), (0.9, 0.5)]
    mirrored = [(x, 1 - y) for x, y in reversed(shaft[:-1])]
    marker = _haloed([shaft + mirrored], size)
    turns = axis if sign > 0 else axis + 2
    return Marker(np.rot90(marker.colors, turns), np.rot90(marker.opacity, turns))


@lru_cache(maxsize=16)
def diagonal_marker(size: int, right: int, up: int) -> Marker:
    """Return an arrow ``size`` pixels wide that points to a corner; a dot where it points nowhere.

    Parameters
    ----------
    size : int
    right, up : int
        The direction; both 0 for the dot.
    """
    if right == up == 0:
        ring = [2 * math.pi * k / 24 for k in range(24)]
        dot = [(0.5 + 0.2 * math.cos(angle), 0.5 + 0.2 * math.sin(angle)) for angle in ring]
        return _haloed([dot], size)
    shaft = [(0.12, 0.42), (0.5, 0.42), (0.5, 0.2), (0.9, 0.5)]
    arrow = shaft + [(x, 1 - y) for x, y in reversed(shaft[:-1])]
    angle = math.atan2(-up, right)  # rows of pixels count downwards
    turned = [
        (
            0.5 + (x - 0.5) * math.cos(angle) - (y - 0.5) * math.sin(angle),
            0.5 + (x - 0.5) * math.sin(angle) + (y - 0.5) * math.cos(angle),
        )
        for x, y in arrow
    ]
    return _haloed([turned], size)


@lru_cache(maxsize=16)
def sign_marker(size: int, sign: int) -> Marker:
    """Return a plus or a minus, for a move out of the plane.

    Parameters
    ----------
    size : int
        Pixels.
    sign : int
        Positive for a plus.
    """
    level = [(0.15, 0.42), (0.85, 0.42), (0.85, 0.58), (0.15, 0.58)]
    upright = [(y, x) for x, y in level]
    return _haloed([level, upright] if sign > 0 else [level], size)


def _places(
    image: NDArray[np.uint8],
    tops: NDArray[np.int64],
    lefts: NDArray[np.int64],
    size: tuple[int, ...],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the pixels of rectangles are, rows (n, h, 1) and columns (n, 1, w)."""
    down, across = (
        # The margin has room for all but the thickness of a line.
        (firsts[:, np.newaxis] + np.arange(length)).clip(0, limit - 1)
        for firsts, length, limit in zip((tops, lefts), size, image.shape, strict=False)
    )
    return down[:, :, np.newaxis], across[:, np.newaxis, :]


def _haloed(polygons: list[list[tuple[float, float]]], size: int) -> Marker:
    """Return polygons of the unit square in ink, with a light seam, seen on any colour."""
    large = size * _OVERSAMPLING
    image = Image.new("L", (large, large))
    draw = ImageDraw.Draw(image)
    for polygon in polygons:
        draw.polygon([(x * large, y * large) for x, y in polygon], fill=255)
    seam = image.filter(ImageFilter.MaxFilter(2 * max(_OVERSAMPLING // 2, large // 16) + 1))
    ink, covered = (
        np.asarray(of.reduce(_OVERSAMPLING), dtype=np.float64)[..., np.newaxis] / 255
        for of in (image, seam)
    )
    share = np.divide(ink, covered, out=np.zeros_like(ink), where=covered > 0)
    return Marker(share * np.array(INK) + (1 - share) * np.array(WHITE), covered)
