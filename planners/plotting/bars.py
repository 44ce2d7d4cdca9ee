"""Models whose states are nowhere: a bar a state, or of many the range of neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.model import Model
from planners.plotting.canvas import figure_of, new_figure, norm_of, set_title, without_place
from planners.plotting.words import fitted, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_TICKS = 40
# Bars are drawn up to this many states; beyond, a band with the least and the greatest of each
# group of neighbours, of which there are as many as pixels.
_MOST_BARS = 400
_MOST_POINTS = 2000
# Seen on white and on black.
_BARS = "#3b7dd8"


def draw_bars(
    model: Model,
    values: NDArray[np.float64],
    signs: list[str] | None,
    ax: Axes | None,
    title: str | None,
    label: str,
    colors: Any = _BARS,
    scale: str = "linear",
) -> Axes:
    """Draw a bar for each state, in their order; of many states the range of neighbours.

    Parameters
    ----------
    model : Model
        Its names are written where there is room.
    values : ndarray of float, shape (S,)
    signs : list of str, optional
        What is written above the bars.
    ax : Axes, optional
    title : str, optional
    label : str
        What the values are.
    colors : colour, or one a state
    scale : str
        Of the heights: by their logarithm where it is "log".

    Raises
    ------
    ValueError
        If the scale is "log", and no value is above 0.
    """
    from matplotlib import rcParams

    count = len(values)
    if ax is None:
        ax = new_figure(min(12.0, max(4.6, 0.4 * count + 1.2)), 3.6).add_subplot()
    norm_of(values, scale)  # which says what the scale cannot show
    kinds = without_place(values, scale)
    finite = np.where(np.logical_or.reduce(list(kinds.values())), np.nan, values)
    notes = [words for words, which in kinds.items() if which.any()]
    if notes:
        label = f"{label}\n(no bar: {' or '.join(notes)})"
    if count <= _MOST_BARS:
        bars = ax.bar(np.arange(count), finite, color=colors, width=0.8 if count < 200 else 1.0)
    else:
        _draw_band(ax, finite)
    if count <= _MOST_TICKS:
        names = model.state_names or tuple(range(count))
        slanted = max(len(short(name)) for name in names) * count > 60
        ax.set_xticks(
            range(count),
            [short(name) for name in names],
            rotation=45 if slanted else 0,
            ha="right" if slanted else "center",
        )
        if signs is not None:
            ax.bar_label(bars, labels=signs, padding=2, fontsize=8)
    else:
        ax.xaxis.set_major_formatter("{x:,.0f}")
    if scale == "log":
        ax.set_yscale("log")
    else:
        ax.axhline(0.0, color=rcParams["axes.edgecolor"], linewidth=0.8)
    ax.set_xlabel("state")
    room = ax.get_window_extent().height / figure_of(ax).dpi
    ax.set_ylabel("\n".join(fitted(line, room) for line in label.split("\n")))
    ax.margins(x=0.01, y=0.14)
    set_title(ax, title)
    return ax


def label_actions(ax: Axes, model: Model) -> None:
    """Write the names of actions, or of very many some numbers, along the vertical axis.

    Parameters
    ----------
    ax : Axes
        With an action at each whole number.
    model : Model
    """
    from matplotlib.ticker import MaxNLocator

    if model.num_actions > _MOST_TICKS:
        ax.yaxis.set_major_locator(MaxNLocator(10, integer=True))
        return
    names: Any = model.action_names or range(model.num_actions)
    ax.set_yticks(range(model.num_actions), [short(name) for name in names])


def _draw_band(ax: Axes, values: NDArray[np.float64]) -> None:
    """Draw the range of the values of neighbouring states, and their mean."""
    groups = np.array_split(np.arange(len(values)), min(_MOST_POINTS, len(values)))
    starts = np.array([group[0] for group in groups])
    low = np.fmin.reduceat(values, starts)
    high = np.fmax.reduceat(values, starts)
    if len(values) > _MOST_POINTS:
        ax.fill_between(starts, low, high, step="post", color=_BARS, alpha=0.45, linewidth=0)
    ax.plot(starts, (low + high) / 2, drawstyle="steps-post", color=_BARS, linewidth=0.9)
