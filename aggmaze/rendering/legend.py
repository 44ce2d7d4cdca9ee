"""What the colours and marks of a picture mean: scales with round ticks, mega-states, signs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from aggmaze.rendering.colors import (
    AGENT,
    BACKGROUND,
    CONTOUR,
    INK,
    PATH,
    WHITE,
    relief_colors,
    value_colors,
)
from aggmaze.rendering.marks import agent_marker, fitted_font, goal_marker
from aggmaze.rendering.overlay import Overlay, number

#: Width and least height of a legend beside a picture, in pixels; both grow with its scale.
SIZE = (108, 196)
#: Height that has room for all that a legend can hold.
TALLEST = 460
#: Heights between which lines are drawn.
HEIGHT_STEP = 0.2
_PADDING = 10
_FONT_SIZE = 13
_LINE = 18
_BAR = (14, 110)
_HEIGHTS_BAR = 70
# The longest bar of how many states a mega-state has, and where such bars begin.
_COUNTS, _COUNTS_LEFT = 36, 62
# Below this many pixels a mega-state is no more told from the next.
_SMALLEST_STEP = 3


def is_needed(overlay: Overlay) -> bool:
    """Return whether there are colours to explain."""
    return overlay.values is not None or overlay.labels is not None


def size(scale: float = 1.0) -> tuple[int, int]:
    """Return width and least height of a legend; even, as video formats ask.

    Parameters
    ----------
    scale : float
        1 for pictures of some 500 pixels.
    """
    width, height = (2 * math.ceil(scale * length / 2) for length in SIZE)
    return width, height


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers within an interval, in rising order: multiples of 1, 2 or 5.

    Parameters
    ----------
    low, high : float
    most : int
        At most so many, and at least two where the interval is not a single number.
    """
    if not high > low:
        return [low]
    decade = 10.0 ** math.floor(math.log10(high - low) - 1)
    for step in (factor * decade for factor in (1, 2, 5, 10, 20, 50, 100)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            break
    return [0.0 + k * step for k in range(first, last + 1)]


def draw(
    overlay: Overlay,
    marked: int | None = None,
    scale: float = 1.0,
    heights: str = "",
    marks: Sequence[str] = (),
    ground: tuple[int, int, int] = BACKGROUND,
) -> NDArray[np.uint8]:
    """Draw the legend of a picture.

    Parameters
    ----------
    overlay : Overlay
    marked : int, optional
        A state whose value, or mega-state, is pointed at.
    scale : float
        1 for pictures of some 500 pixels.
    heights : {"", "colors", "lines"}
        How the picture shows heights.
    marks : sequence of str
        Of "goal", "agent", "trail" and "path" those that are explained.
    ground : triple of int
        Colour of what is left free.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3)
    """
    pen = _Pen(scale, ground)
    if overlay.values is not None:
        _draw_values(pen, overlay, marked)
    if overlay.labels is not None:
        _draw_labels(pen, overlay, marked)
    if heights == "colors":
        pen.write("height")
        bar = relief_colors(np.linspace(1.0, 0.0, 256))
        pen.bar(bar, _HEIGHTS_BAR, {tick: 1 - tick for tick in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)})
    elif heights == "lines":
        pen.line(CONTOUR, seam=False)
        pen.write("height", indent=30)
        pen.write(f"each {HEIGHT_STEP:g}", indent=30)
    for mark in marks:
        if mark in ("goal", "agent"):
            pen.mark(mark)
        else:
            pen.line(AGENT if mark == "trail" else PATH, seam=True)
        pen.write(_WORDS[mark], indent=30)
    return pen.picture()


_WORDS = {"goal": "goal", "agent": "you are here", "trail": "the way here", "path": "path"}


def _draw_values(pen: _Pen, overlay: Overlay, marked: int | None) -> None:
    assert overlay.values is not None
    low, high = overlay.span
    pen.write(overlay.kind_of_values)
    if overlay.gamma is not None and overlay.gamma < 1:
        pen.write(f"gamma {overlay.gamma:.6g}")
    # Returns rise where costs fall: the best is at the top, as large numbers are.
    shares = np.linspace(0.0, 1.0, 256) if overlay.returns else np.linspace(1.0, 0.0, 256)
    told = sorted(overlay.told(end) for end in (low, high))

    def place(value: float) -> float:
        return (told[1] - value) / (told[1] - told[0]) if told[1] > told[0] else 0.5

    pointed = None
    if marked is not None and np.isfinite(overlay.values[marked]):
        pointed = place(overlay.told(float(overlay.values[marked])))
    pen.bar(
        value_colors(shares if high > low else [0.0]),
        _BAR[1],
        {tick: place(tick) for tick in ticks(told[0], told[1])},
        pointed,
    )


def _draw_labels(pen: _Pen, overlay: Overlay, marked: int | None) -> None:
    assert overlay.labels is not None
    names, places, counts = np.unique(overlay.labels, return_inverse=True, return_counts=True)
    count = len(names)
    pen.write(f"{count:,} mega-")
    pen.write("states" if count != 1 else "state")
    if overlay.values is not None:
        return
    # The mega-state of least cost, which is the first, at the bottom.
    colors = value_colors(np.linspace(1.0, 0.0, count) if count > 1 else [0.0])
    shown = [round(tick) for tick in ticks(0, count - 1) if tick == round(tick)]
    pen.bar(
        colors,
        _BAR[1],
        {float(names[k]): 1 - (k + 0.5) / count for k in shown},
        None if marked is None else 1 - (int(places.reshape(-1)[marked]) + 0.5) / count,
        counts[::-1],
    )
    pen.write(f"{names[0]}: {'best' if overlay.returns else 'least cost'}")
    pen.write(f"{counts.max():,} in largest")


class _Pen:
    """Writes and draws from the top down."""

    def __init__(self, scale: float, ground: tuple[int, int, int]) -> None:
        self.scale = scale
        self.width, self.least_height = size(scale)
        self.image = Image.new("RGB", (self.width, round(scale * TALLEST) + 200), ground)
        self.draw = ImageDraw.Draw(self.image)
        self.font = ImageFont.load_default(max(1.0, scale * _FONT_SIZE))
        self.y = scale * _PADDING

    def write(self, words: str, indent: float = 0.0) -> None:
        left = self.scale * (_PADDING + indent)
        font = fitted_font(words, self.scale * _FONT_SIZE, self.width - left - 2)
        self.draw.text((left, self.y), words, fill=INK, font=font)
        self.y += self.scale * _LINE

    def bar(
        self,
        colors: NDArray[np.uint8],
        height: float,
        marked: dict[float, float],
        pointed: float | None = None,
        counts: NDArray[np.int64] | None = None,
    ) -> None:
        """Draw a bar of colours, top first, with numbers at shares of its height."""
        scale = self.scale
        left, top = round(scale * _PADDING), round(self.y + 4 * scale)
        wide, high = round(scale * _BAR[0]), round(scale * height)
        rows = np.arange(high) * len(colors) // high
        strip = np.repeat(colors[rows][:, np.newaxis], wide, axis=1)
        self.image.paste(Image.fromarray(np.ascontiguousarray(strip)), (left, top))
        if counts is not None:
            edges = np.round(np.arange(1, len(colors)) * high / len(colors)).astype(int)
            if high >= _SMALLEST_STEP * len(colors):
                for edge in edges.tolist():
                    self.draw.line([left, top + edge, left + wide - 1, top + edge], fill=INK)
            # How many states each has; of those that share a row of pixels the most.
            lengths = counts[rows] / counts.max() * scale * _COUNTS
            begin = round(scale * _COUNTS_LEFT)
            for row, length in enumerate(lengths.tolist()):
                self.draw.line(
                    [begin, top + row, begin + max(1, round(length)), top + row], CONTOUR
                )
        self.draw.rectangle([left - 1, top - 1, left + wide, top + high], outline=INK)
        for value, share in marked.items():
            at = top + share * (high - 1)
            self.draw.line([left + wide, at, left + wide + 3 * scale, at], fill=INK)
            self.draw.text(
                (left + wide + 7 * scale, at), number(value), fill=INK, font=self.font, anchor="lm"
            )
        if pointed is not None:
            at, tip = top + pointed * (high - 1), left - 2
            corner, half = tip - 6 * scale, 5 * scale
            self.draw.polygon([(tip, at), (corner, at - half), (corner, at + half)], fill=INK)
        self.y = top + high + 10 * scale

    def line(self, color: tuple[int, int, int], *, seam: bool) -> None:
        """Draw a piece of a line at the left of what is written next."""
        left, right = self.scale * _PADDING, self.scale * (_PADDING + 22)
        at, thick = self.y + 8 * self.scale, max(1, round(3 * self.scale))
        if seam:
            self.draw.line([left, at, right, at], fill=WHITE, width=thick + 2)
        self.draw.line([left, at, right, at], fill=color, width=thick if seam else 1)

    def mark(self, mark: str) -> None:
        """Draw a mark at the left of what is written next."""
        pixels, length = np.array(self.image), max(9, round(15 * self.scale))
        marker = (goal_marker if mark == "goal" else agent_marker)(length, max(1, length // 12))
        left = round(self.scale * (_PADDING + 11)) - length // 2
        top = round(self.y + 8 * self.scale) - length // 2
        marker.draw_all(pixels, np.array([top]), np.array([left]))
        self.image = Image.fromarray(pixels)
        self.draw = ImageDraw.Draw(self.image)

    def picture(self) -> NDArray[np.uint8]:
        """Return what has been drawn, as tall as that is and at least as a legend is."""
        height = max(self.least_height, 2 * math.ceil((self.y + self.scale * 4) / 2))
        return np.array(self.image)[:height]


def paste(
    pixels: NDArray[np.uint8], overlay: Overlay, state: int, ground: tuple[int, int, int]
) -> None:
    """Put a legend, if one is needed, into the upper right corner of a picture of one state.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (H, W, 3)
        Left as it is if there is no room.
    overlay : Overlay
    state : int
    ground : triple of int
        Colour of the picture in that corner: only what is written or drawn on it is put there.
    """
    if not is_needed(overlay):
        return
    key = draw(overlay, state, max(1.0, pixels.shape[0] / 400), ground=ground)
    if key.shape[0] < pixels.shape[0] and key.shape[1] < pixels.shape[1]:
        corner = pixels[: key.shape[0], -key.shape[1] :]
        drawn = (key != np.array(ground, dtype=np.uint8)).any(axis=-1)
        corner[drawn] = key[drawn]


def lines(
    overlay: Overlay | None, state: int, action_names: Sequence[str], *, ended: bool
) -> list[str]:
    """Return what an overlay knows of a state, in words.

    Parameters
    ----------
    overlay : Overlay, optional
    state : int
    action_names : sequence of str
    ended : bool
        Whether it is an end, in which no action is told.
    """
    told = []
    if overlay is not None and overlay.values is not None:
        low, high = map(number, sorted(overlay.told(end) for end in overlay.span))
        value = number(overlay.told(float(overlay.values[state])))
        told.append(f"{overlay.kind_of_values} {value} (from {low} to {high})")
    if overlay is not None and overlay.policy is not None and not ended:
        told.append(f"action {action_names[overlay.policy[state]]}")
    if overlay is not None and overlay.labels is not None:
        told.append(f"mega-state {overlay.labels[state]} of {overlay.num_labels:,}")
    return told
