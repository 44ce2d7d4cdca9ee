"""Walks through a maze, as lines: the trail of an agent, the path of a policy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aggmaze.rendering.colors import WHITE
from aggmaze.rendering.marks import draw_bars, draw_slanted
from aggmaze.rendering.panels import Panel


def draw_walk(
    image: NDArray[np.uint8],
    panel: Panel,
    coords: NDArray[np.int64],
    point: tuple[int, ...],
    color: tuple[int, int, int],
    *,
    thickness: int,
    seam: int,
) -> None:
    """Draw what of a walk lies in a plane, with a white seam, in place.

    Parameters
    ----------
    image : ndarray of uint8, shape (height, width, 3)
    panel : Panel
        Where the plane lies in it.
    coords : ndarray of int, shape (N, D)
        Of the states that are visited, in order.
    point : tuple of int
        Coordinates through which the plane is cut.
    color : tuple of int
    thickness, seam : int
        Of the line, and of the seam on either side, in pixels.
    """
    right, up = panel.axes
    within = np.ones(len(coords), dtype=bool)
    for axis, place in enumerate(point):
        if axis not in panel.axes:
            within &= coords[:, axis] == place
    x = coords[:, right]
    y = coords[:, up] if coords.shape[1] > 1 else np.zeros_like(x)
    first, low = (np.minimum(along[1:], along[:-1]) for along in (x, y))
    pieces = []
    for along, across in ((x, y), (y, x)):
        steps = abs(np.diff(along)) == 1
        steps &= within[1:] & within[:-1] & (np.diff(across) == 0)
        # A walk to and fro draws a piece once.
        places = np.unique(low[steps] * panel.columns + first[steps])
        pieces.append(np.divmod(places, panel.columns))
    # Wind and kings lead on a slant; who is sent back to the start draws no line.
    slanted = within[1:] & within[:-1] & (abs(np.diff(x)) <= 1)
    slanted &= abs(np.diff(x)) + abs(np.diff(y)) > 1
    tops, lefts = panel.centres(x, y)
    points = np.stack([lefts, tops], axis=1)
    lines = np.unique(np.stack([points[:-1], points[1:]], axis=1)[slanted], axis=0)
    for thick, paint in ((thickness + 2 * seam, WHITE), (thickness, color)):
        if len(lines):
            draw_slanted(image, lines, thick, paint)
        size = thick, panel.edge + thick
        for level, (bottom, left) in zip((True, False), pieces, strict=True):
            tops, lefts = panel.centres(left, bottom if level else bottom + 1)
            shape = size if level else size[::-1]
            draw_bars(image, tops - thick // 2, lefts - thick // 2, shape, paint)
