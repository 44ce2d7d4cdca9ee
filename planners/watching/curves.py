"""The curves of a run: residual and bound over the updates, in powers of ten."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from planners.watching.film import Frame, Point
from planners.watching.letters import width_of, write
from planners.watching.themes import Theme, mixed

# Drawn this much larger and scaled down, so that slanted lines are smooth.
_SMOOTHER = 2


def draw_curves(
    image: Image.Image,
    area: tuple[int, int, int, int],
    frame: Frame,
    points: list[Point],
    theme: Theme,
    text: int,
) -> None:
    """Draw the curves of a run into a picture, in place; those after a frame are faint.

    Parameters
    ----------
    image : PIL.Image.Image
    area : tuple of int
        Left, top, right and bottom, in pixels.
    frame : Frame
    points : list of Point
    theme : Theme
    text : int
        Pixels of the text beside.
    """
    draw = ImageDraw.Draw(image)
    small = max(9, round(0.8 * text))
    line = round(1.05 * text)
    left, top, right, bottom = area
    bottom -= line + 2
    if not points:
        return
    table = np.array(points, dtype=np.float64)
    updates, sizes, aggregated = table[:, 0], table[:, 1:3], table[:, 3] > 0
    positive = sizes[np.isfinite(sizes) & (sizes > 0)]
    if len(positive) == 0:
        words = "the bound is 0" if (sizes == 0).any() else "no bound yet"
        write(draw, (left, top), words, small, theme.faint)
        return
    low, high = math.floor(math.log10(positive.min())), math.ceil(math.log10(positive.max()))
    high = max(high, low + 1)
    left += round(width_of(f"1e-{abs(low):02d}", small)) + 6
    width, height = right - left, bottom - top
    if width < 30 or height < 24:
        return
    most = max(1.0, float(updates[-1]))
    over = _SMOOTHER
    plot = Image.new("RGB", (width * over, height * over), theme.card)
    pen = ImageDraw.Draw(plot)
    _shade_phases(pen, updates / most * plot.width, aggregated, plot.size, theme)
    every = max(1, math.ceil((high - low) * 1.6 * line / height))
    for power in range(low, high + 1, every):
        y = (high - power) / (high - low) * (height * over - 1)
        pen.line([0, y, plot.width, y], fill=theme.line, width=over)
        words = f"1e{power}" if abs(power) > 2 else f"{10.0**power:g}"
        place = top + y / over - line / 2
        place = min(max(place, top - line / 3), bottom - 0.8 * line)
        write(draw, (left - 5 - width_of(words, small), place), words, small, theme.faint)
    now = frame.num_updates / most * width * over
    for column, color in ((1, theme.bound), (0, theme.residual)):
        good = np.isfinite(sizes[:, column]) & (sizes[:, column] > 0)
        x = updates[good] / most * plot.width
        y = (high - np.log10(sizes[good, column])) / (high - low) * (plot.height - 1)
        # One point for each pixel is enough: the last there.
        kept = np.append(np.diff((x / over).astype(np.intp)) > 0, True)[: len(x)]
        curve = np.column_stack([x[kept], y[kept]])
        before = curve[curve[:, 0] <= now + 1]
        if len(curve) > len(before):
            pale = mixed(theme.card, color, 0.25)
            pen.line(curve.reshape(-1).tolist(), fill=pale, width=2 * over)
        if len(before) > 1:
            pen.line(before.reshape(-1).tolist(), fill=color, width=2 * over)
        if len(before):
            (cx, cy), radius = before[-1].tolist(), 3.2 * over
            pen.ellipse([cx - radius, cy - radius, cx + radius, cy + radius], fill=color)
    image.paste(plot.reduce(over), (left, top))
    words = f"{updates[-1]:,.0f} updates"
    write(draw, (right - width_of(words, small), bottom + 2), words, small, theme.faint)
    write(draw, (left, bottom + 2), "0", small, theme.faint)


def _shade_phases(
    pen: ImageDraw.ImageDraw,
    x: NDArray[np.float64],
    aggregated: NDArray[np.bool_],
    size: tuple[int, int],
    theme: Theme,
) -> None:
    """Shade the updates that were made on mega-states, where there are not too many phases."""
    changes = np.diff(aggregated.astype(np.int8), prepend=0, append=0)
    first, after = np.flatnonzero(changes > 0), np.flatnonzero(changes < 0)
    if len(first) > size[0] // (4 * _SMOOTHER):
        return
    # The updates of a point are those since the one before it.
    begins = np.where(first > 0, x[first - 1], 0.0)
    for begin, end in zip(begins.tolist(), x[after - 1].tolist(), strict=True):
        pen.rectangle([begin, 0, max(end, begin + _SMOOTHER), size[1]], fill=theme.aggregated)
