"""Lines of equal height on terrain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aggmaze.layouts.layout import Layout
from aggmaze.rendering import legend
from aggmaze.rendering.colors import CONTOUR, WALL
from aggmaze.rendering.panels import Panel

# Lines of equal height say nothing of fewer cells a side, nor where more cells than this share have
# one to the next.
_FEWEST_CONTOURED, _MOST_CROSSED = 8, 0.6


def has_contours(layout: Layout) -> bool:
    """Return whether lines of equal height tell anything: not of few cells, nor of noise."""
    heights, shape = layout.heights, layout.grid.shape
    if heights is None or len(shape) != 2 or min(shape) < _FEWEST_CONTOURED:
        return False
    bands = np.floor(heights.reshape(shape) / legend.HEIGHT_STEP)
    crossed = [float((np.diff(bands, axis=axis) != 0).mean()) for axis in (0, 1)]
    return max(crossed) < _MOST_CROSSED


def draw_contours(canvas: NDArray[np.uint8], panel: Panel, heights: NDArray[np.float64]) -> None:
    """Draw lines of equal height between the centres of a plane's cells, in place.

    Parameters
    ----------
    canvas : ndarray of uint8, shape (height, width, 3)
    panel : Panel
        Where the plane lies in it.
    heights : ndarray of float, shape (rows, columns)
        Of the cells, in [0, 1].
    """
    border, edge = panel.border, panel.edge
    high, wide = panel.rows * edge, panel.columns * edge
    for axis, n in enumerate((panel.rows, panel.columns)):
        # Of each pixel the two cells whose centres it lies between, and how far.
        place = ((np.arange(n * edge) + 0.5) / edge - 0.5).clip(0, n - 1)
        first = np.minimum(place.astype(int), max(0, n - 2))
        share = (place - first)[:, np.newaxis] if axis == 0 else place - first
        following = np.minimum(first + 1, n - 1)
        heights = (1 - share) * heights.take(first, axis) + share * heights.take(following, axis)
    bands = np.floor(heights / legend.HEIGHT_STEP)
    line = np.zeros(bands.shape, dtype=bool)
    line[1:] |= bands[1:] != bands[:-1]
    line[:, 1:] |= bands[:, 1:] != bands[:, :-1]
    top, left = panel.top + border, panel.left + border
    part = canvas[top : top + high, left : left + wide]
    line = line[: part.shape[0], : part.shape[1]] & (part != np.array(WALL)).any(axis=-1)
    part[line] = (0.25 * part[line] + 0.75 * np.array(CONTOUR)).astype(np.uint8)
