"""Many states that lie nowhere: a bar for each, in the order of their values."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from planners.watching.film import Frame
from planners.watching.letters import short, width_of, write
from planners.watching.scenes import Scene
from planners.watching.themes import GROUPS, Theme, levels, mixed, ramp, spread

# The margins of the values, as shares of their range: plain, and at most for the bound.
_MARGIN, _MOST_FOR_BOUND = 0.06, 0.25


class Bars:
    """The values of all states in an area of pixels.

    Bars go up from the lowest value to that of their state; the band around their ends is the bound
    of the iteration, where it says one, and the strip below them tells mega-states apart.

    Parameters
    ----------
    scene : Scene
    area : pair of int
        Width and height in pixels.
    theme : Theme
    """

    def __init__(self, scene: Scene, area: tuple[int, int], theme: Theme) -> None:
        self._scene, self._theme = scene, theme
        self.size = area
        self._small = max(9, min(15, min(area) // 28))
        self._left = min(round(4.2 * self._small), area[0] // 4)
        self._strip = max(4, self._small // 2 + 2)
        width = max(8, area[0] - self._left - 2)
        height = max(8, area[1] - self._strip - 2 * self._small)
        #: Width and height of the bars' room.
        self.room = width, height

    def paint(
        self,
        frame: Frame,
        path: NDArray[np.int64],
        policy: NDArray[np.int64] | None = None,
        *,
        borders: bool = True,
    ) -> Image.Image:
        """Return the picture of a frame.

        Parameters
        ----------
        frame : Frame
        path : ndarray of int
            Not drawn: neighbours are close in value, and need not be a step apart.
        policy : ndarray of int, optional
            Not drawn.
        borders : bool
            Whether mega-states are told apart.
        """
        theme = self._theme
        width, height = self.room
        values = frame.values[: self._scene.num_states]
        order = np.argsort(values, kind="stable")
        count = len(order)
        # The state of each column of pixels.
        shown = order[np.arange(width) * count // width]
        own = values[shown]
        low, high = spread(values)
        bottom, top = axis_of(low, high, frame.bound)
        scale = (height - 1) / (top - bottom)

        def row(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
            with np.errstate(invalid="ignore"):
                return np.clip((top - np.nan_to_num(numbers, posinf=top)) * scale, 0, height)

        colors = ramp()[levels(own, low, high)]
        colors[~np.isfinite(own)] = theme.unknown
        y = np.arange(height)[:, np.newaxis]
        pixels = np.empty((height, width, 3), dtype=np.uint8)
        pixels[:] = theme.card
        for tick in ticks(bottom, top):
            pixels[min(height - 1, round((top - tick) * scale))] = theme.line
        bars = y >= row(own)
        pixels = np.where(bars[..., np.newaxis], colors, pixels)
        if math.isfinite(frame.bound) and frame.bound > 0:
            band = (y >= row(own + frame.bound)) & (y <= row(own - frame.bound))
            band &= np.isfinite(own)
            pixels[band] = np.rint(0.75 * pixels[band] + 0.25 * np.array(theme.bound)).astype(
                np.uint8
            )
        if width >= 5 * count:
            # Few enough for a gap between them.
            ends = np.flatnonzero(np.diff(np.arange(width) * count // width))
            pixels[:, ends] = theme.card
        image = Image.new("RGB", self.size, theme.ground)
        place = self._left, self._small
        image.paste(Image.fromarray(pixels), place)
        draw = ImageDraw.Draw(image)
        if borders and frame.labels is not None:
            groups = frame.groups()[shown]
            self._draw_groups(image, groups)
            if frame.num_megastates and frame.num_megastates <= width // 4:
                labels = frame.labels[shown]
                for x in np.flatnonzero(np.diff(labels)).tolist():
                    at = self._left + x + 1
                    color = mixed(theme.card, theme.ink, 0.35)
                    draw.line([at, self._small, at, self._small + height - 1], fill=color)
        for tick in ticks(bottom, top):
            words = short(tick)
            beside = (
                self._left - 5 - width_of(words, self._small),
                self._small + (top - tick) * scale - 0.6 * self._small,
            )
            write(draw, beside, words, self._small, theme.faint)
        return image

    def _draw_groups(self, image: Image.Image, groups: NDArray[np.int64]) -> None:
        """Draw the strip of mega-states below the bars; those of one state are grey."""
        table = np.array([*GROUPS, self._theme.line], dtype=np.uint8)
        colors = table[np.where(groups < 0, len(GROUPS), groups % len(GROUPS))]
        strip = np.repeat(colors[np.newaxis], self._strip, axis=0)
        image.paste(Image.fromarray(strip), (self._left, self._small + self.room[1] + 2))


def axis_of(low: float, high: float, bound: float) -> tuple[float, float]:
    """Return the ends of an axis that holds values, and the bound around them where it is small.

    Parameters
    ----------
    low, high : float
        The least and the greatest value.
    bound : float
        Infinite or NaN where there is none.
    """
    width = high - low
    if width <= 0:
        width = max(1.0, abs(high)) * 1e-3
    more = min(bound, _MOST_FOR_BOUND * width) if math.isfinite(bound) else 0.0
    pad = _MARGIN * width + more
    return low - pad, high + pad


def ticks(bottom: float, top: float) -> list[float]:
    """Return about five round numbers in a range.

    Parameters
    ----------
    bottom, top : float
        The second is greater.
    """
    rough = (top - bottom) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1, 2, 2.5, 5, 10) if power * k >= 0.999 * rough)
    first = math.ceil(bottom / step)
    return [step * k for k in range(first, math.floor(top / step) + 1)]
