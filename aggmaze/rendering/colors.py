"""Colours of pictures, told apart by every kind of colour vision.

Frames, windows and figures of matplotlib take them from here, so that a colour means the same
everywhere.  What can be more or less (costs-to-go, mega-states in order of them, heights) has a
scale whose lightness goes one way.  What is laid over these scales (agent, goal, path) has hues
that none of them has.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

BACKGROUND = (206, 210, 216)
FLOOR = (246, 246, 242)
WALL = (44, 50, 64)
INK = (12, 12, 12)
WHITE = (255, 255, 255)
#: The star of a goal; the disc of the agent and the line that it went; a path that is planned.
GOAL = (200, 0, 130)
AGENT = (0, 84, 230)
PATH = (214, 39, 40)
# What swings: poles, and the joints of links.
POLE = (255, 196, 0)
# Lines of equal height over colours of something else.
CONTOUR = (96, 58, 36)
# Grounds of cells with signs: goals, holes, lava, cliffs, and those of a table of the user's.
GOAL_GROUND = (255, 240, 196)
PIT_GROUND = (178, 203, 228)
LAVA = (238, 110, 48)
CLIFF = (116, 98, 88)
SIGNED = (226, 212, 240)

# Heights, as in an atlas: pale lowlands, brown mountains; light enough for an outline in ink.
RELIEF = (
    (238, 243, 226),
    (228, 226, 196),
    (217, 206, 165),
    (204, 183, 136),
    (188, 158, 110),
    (170, 133, 88),
    (150, 109, 71),
    (128, 88, 58),
    (106, 70, 48),
)
# Matplotlib's viridis from its light end, without the dark one that would hide walls.
VALUES = (
    (253, 231, 37),
    (200, 224, 32),
    (142, 214, 69),
    (90, 200, 100),
    (50, 182, 122),
    (31, 162, 135),
    (33, 142, 141),
    (41, 121, 142),
    (50, 100, 142),
)


def relief_colors(heights: ArrayLike) -> NDArray[np.uint8]:
    """Return the colour of each height, from pale (0, low) to dark brown (1, high).

    Parameters
    ----------
    heights : array_like of float, any shape
        Heights in [0, 1]; lower or higher ones take the colours of the ends.

    Returns
    -------
    ndarray of uint8, shape (..., 3)
        Red, green and blue.
    """
    return _between(RELIEF, heights)


def value_colors(shares: ArrayLike) -> NDArray[np.uint8]:
    """Return the colour of each value, from yellow (0, low) to blue (1, high), as above."""
    return _between(VALUES, shares)


def megastate_shares(labels: ArrayLike, values: ArrayLike | None = None) -> NDArray[np.float64]:
    """Return where the mega-state of each state lies between the one of least value and the other.

    Parameters
    ----------
    labels : array_like of int, shape (S,)
        Mega-state of each state.
    values : array_like of float, shape (S,), optional
        Costs-to-go; a mega-state lies where the mean of its finite ones does.  Without them
        mega-states lie evenly, in the order of their labels, which is that of their values where
        the planners made them.

    Returns
    -------
    ndarray of float, shape (S,)
        In [0, 1], alike within a mega-state; NaN where it has no finite value.  `value_colors`
        makes colours of them.

    Raises
    ------
    ValueError
        If the shapes differ.
    """
    names, places = np.unique(np.asarray(labels), return_inverse=True)
    places = places.reshape(np.shape(labels))
    if values is None:
        return np.asarray(places / max(1, len(names) - 1), dtype=np.float64)
    array = np.asarray(values, dtype=np.float64)
    if array.shape != places.shape:
        raise ValueError(f"values must have the shape of labels, {places.shape}, got {array.shape}")
    known = np.isfinite(array)
    counts = np.bincount(places[known], minlength=len(names))
    sums = np.bincount(places[known], weights=array[known], minlength=len(names))
    means = np.full(len(names), np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    found = means[counts > 0]
    if len(found):
        low, high = float(found.min()), float(found.max())
        means = (means - low) / (high - low) if high > low else 0.0 * means
    return means[places]


def hex_color(color: tuple[int, int, int]) -> str:
    """Return a colour as matplotlib, SVG and HTML read it, such as ``#c80082``."""
    return "#{:02x}{:02x}{:02x}".format(*color)


def _between(controls: tuple[tuple[int, int, int], ...], shares: ArrayLike) -> NDArray[np.uint8]:
    array = np.asarray(shares, dtype=np.float64)
    places = np.linspace(0.0, 1.0, len(controls))
    colors = np.empty((*array.shape, 3), dtype=np.uint8)
    for channel, levels in enumerate(zip(*controls, strict=True)):
        colors[..., channel] = np.rint(np.interp(array, places, levels))
    return colors
