"""The marks of goals and starts, the same as windows have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from planners.plotting.canvas import AGENT_COLOR, GOAL_COLOR, INK_COLOR, seamed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STAR: dict[str, Any] = {"marker": "*", "color": GOAL_COLOR, "markeredgecolor": INK_COLOR}


def draw_goals(
    axes: Axes, x: ArrayLike, y: ArrayLike, cell: float, *, zoom: float = 1.0, most: float = np.inf
) -> None:
    """Draw a star at a goal, or at each of several, with a dark edge and a light seam.

    Parameters
    ----------
    axes : Axes
    x, y : array_like
        Places.
    cell : float
        How many points (1/72 inch) a cell is wide.
    zoom : float
        By how much marks are larger than usual.
    most : float
        Size in points.
    """
    axes.plot(
        x,
        y,
        **_STAR,
        markersize=min(most, zoom * float(np.clip(1.1 * cell, 11, 17))),
        markeredgewidth=1.1 * zoom,
        linestyle="none",
        zorder=6,
        clip_on=False,
        path_effects=seamed(2.6 * zoom),
    )


def draw_start(axes: Axes, x: float, y: float, cell: float, *, zoom: float = 1.0) -> None:
    """Draw a disc where an episode starts.

    Parameters
    ----------
    axes, x, y, cell, zoom
        As for `draw_goals`.
    """
    axes.plot(
        x,
        y,
        "o",
        color=AGENT_COLOR,
        markeredgecolor="white",
        markeredgewidth=1.3,
        markersize=zoom * float(np.clip(0.7 * cell, 8, 13)),
        zorder=6,
        clip_on=False,
    )
