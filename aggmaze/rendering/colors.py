"""Colours of pictures, told apart by every kind of colour vision."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

BACKGROUND = (206, 210, 216)
FLOOR = (246, 246, 242)
WALL = (44, 50, 64)
INK = (12, 12, 12)
WHITE = (255, 255, 255)
GOAL = (255, 196, 0)
AGENT = (0, 150, 110)
PATH = (214, 39, 40)
# Grounds of cells with signs: goals, holes, lava, cliffs, and those of a table of the user's.
GOAL_GROUND = (255, 240, 196)
PIT_GROUND = (178, 203, 228)
LAVA = (238, 110, 48)
CLIFF = (116, 98, 88)
SIGNED = (226, 212, 240)

# ColorBrewer's RdBu, reversed and without its darkest ends, which are as dark as the outline of a
# marker.
TERRAIN = (
    (33, 102, 172),
    (67, 147, 195),
    (146, 197, 222),
    (209, 229, 240),
    (247, 247, 247),
    (253, 219, 199),
    (244, 165, 130),
    (214, 96, 77),
    (178, 24, 43),
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
# Paul Tol's light scheme, made to lie below text, in an order in which neighbours differ much.
LABELS = (
    (119, 170, 221),
    (238, 136, 102),
    (187, 204, 51),
    (255, 170, 187),
    (68, 187, 153),
    (238, 221, 136),
    (153, 221, 255),
    (170, 170, 0),
    (221, 221, 221),
)


def terrain_colors(heights: ArrayLike) -> NDArray[np.uint8]:
    """Return the colour of each height, from blue (low) over pale to red (high).

    Parameters
    ----------
    heights : array_like of float, any shape
        Heights in [0, 1]; lower or higher ones take the colours of the ends.

    Returns
    -------
    ndarray of uint8, shape (..., 3)
        Red, green and blue.
    """
    return _between(TERRAIN, heights)


def value_colors(shares: ArrayLike) -> NDArray[np.uint8]:
    """Return the colour of each value, from yellow (0, low) to blue (1, high), as above."""
    return _between(VALUES, shares)


def label_colors(labels: ArrayLike) -> NDArray[np.uint8]:
    """Return the colour of each label, an integer; every ninth has the same."""
    return np.array(LABELS, dtype=np.uint8)[np.asarray(labels) % len(LABELS)]


def _between(controls: tuple[tuple[int, int, int], ...], shares: ArrayLike) -> NDArray[np.uint8]:
    array = np.asarray(shares, dtype=np.float64)
    places = np.linspace(0.0, 1.0, len(controls))
    colors = np.empty((*array.shape, 3), dtype=np.uint8)
    for channel, levels in enumerate(zip(*controls, strict=True)):
        colors[..., channel] = np.rint(np.interp(array, places, levels))
    return colors
