"""Figures without a display, their files, and the colours of numbers.

Figures are plain `matplotlib.figure.Figure` objects, made without pyplot, so that nothing opens a
window and nothing has to be closed.  In notebooks they are pyplot's, which are shown below a cell
and closed by what shows them.

What lies on the page (its ground, axes, words, grids) has the colours of ``matplotlib.rcParams``:
``matplotlib.style.use("dark_background")`` makes dark figures.  What lies on a map has colours of
its own, which are seen on those of the map.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_choice
from aggmaze.files import atomic_file
from aggmaze.rendering.colors import (
    AGENT,
    CONTOUR,
    FLOOR,
    GOAL,
    INK,
    PATH,
    VALUES,
    WALL,
    hex_color,
)
from planners.plotting.words import fitted, told_apart

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure

#: How numbers become colours.
SCALES = ("linear", "log", "rank", "distance")
#: Dots an inch of pictures in files.
FILE_DPI = 150
#: Paul Tol's bright scheme without its yellow, which is faint on white: curves and actions.
CURVES = ("#4477aa", "#ee6677", "#228833", "#aa3377", "#66ccee", "#bbbbbb")
#: What is no number, such as costs without limit.
BEYOND = "#9aa0a6"
_KNOTS = 257


WALL_COLOR, INK_COLOR, FLOOR_COLOR = map(hex_color, (WALL, INK, FLOOR))
PATH_COLOR, GOAL_COLOR, AGENT_COLOR, CONTOUR_COLOR = map(hex_color, (PATH, GOAL, AGENT, CONTOUR))


def check_matplotlib() -> None:
    """Refuse to go on where matplotlib is missing, and say how to install it.

    Raises
    ------
    ModuleNotFoundError
    """
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            'pictures need matplotlib: pip install "aggmaze[plots]"'
        ) from None


def save_figure(figure: Figure | Axes | Iterable[Axes], path: str | os.PathLike[str]) -> None:
    """Write a figure to a file, whole or not at all.

    Parameters
    ----------
    figure : matplotlib.figure.Figure, Axes, or array of Axes
        Of axes the figure that they are in.
    path : path
        Ends in .png, .pdf or .svg.

    Raises
    ------
    ValueError
        If it does not.
    """
    kind = figure_format(path)
    whole = figure_of(figure)
    with atomic_file(path) as file:
        whole.savefig(file, format=kind, dpi=FILE_DPI)


def figure_of(drawn: Figure | Axes | Iterable[Axes]) -> Figure:
    """Return the figure that axes are in, or a figure itself.

    Raises
    ------
    TypeError
        If it is neither.
    """
    check_matplotlib()
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    each: Any = drawn
    if isinstance(each, np.ndarray | list | tuple) and len(each):
        each = np.asarray(each, dtype=object).flat[0]
    if isinstance(each, Axes):
        # Of axes in a subfigure the figure around it.
        each = each.figure.figure
    if not isinstance(each, Figure):
        raise TypeError(f"expected a Figure, or Axes, got {type(drawn).__name__}")
    return each


def figure_format(path: str | os.PathLike[str]) -> str:
    """Return the format that a file name asks for.

    Raises
    ------
    ValueError
        If it is none of png, pdf and svg.
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in ("png", "pdf", "svg"):
        raise ValueError(f"a picture must be .png, .pdf or .svg, got {os.fspath(path)!r}")
    return kind


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure.

    Parameters
    ----------
    width, height : float
        In inches.
    """
    check_matplotlib()
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    # Room for the marks of goals at the edge of a maze.
    arranged = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
    make: Callable[..., Figure] = Figure
    if _in_notebook():
        from matplotlib import pyplot

        make = pyplot.figure
    return make(figsize=(width, height), layout=arranged)


def _in_notebook() -> bool:
    """Return whether a kernel shows figures below a cell: those of pyplot, and no others."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def sequential(*, low_is_light: bool = True) -> Colormap:
    """Return the colours of values: viridis, safe for the colour-blind, without its dark end.

    Parameters
    ----------
    low_is_light : bool
        Whether the least value is the light one, as of costs; of returns the largest is.
    """
    from matplotlib.colors import LinearSegmentedColormap

    colors = [hex_color(color) for color in (VALUES if low_is_light else VALUES[::-1])]
    colours = LinearSegmentedColormap.from_list("values", colors, N=256)
    return colours.with_extremes(bad=WALL_COLOR, over=BEYOND, under=BEYOND)


def norm_of(shown: NDArray[np.float64], scale: str) -> Normalize:
    """Return how numbers become places along a scale of colours.

    Parameters
    ----------
    shown : ndarray of float
        Those that are drawn; what is not finite plays no part.
    scale : {"linear", "log", "rank"}
        By the number; by its logarithm, of those above 0; or by how many of those drawn are less.
    """
    from matplotlib.colors import LogNorm, Normalize

    check_choice("scale", scale, SCALES)
    finite = shown[np.isfinite(shown)]
    if scale == "log":
        finite = finite[finite > 0]
        if not len(finite):
            raise ValueError("scale='log' needs values above 0, and there are none")
        low, high = float(finite.min()), float(finite.max())
        return LogNorm(low, high if high > low else low * 1.01)
    if not len(finite):
        return Normalize(0.0, 1.0)
    low, high = float(finite.min()), float(finite.max())
    if scale == "rank" and high > low:
        return _rank_norm(finite)
    return Normalize(low, high)


def _rank_norm(finite: NDArray[np.float64]) -> Normalize:
    """Return the norm under which as many of the numbers lie in each part of the scale."""
    from matplotlib.colors import Normalize

    shares = np.linspace(0.0, 1.0, _KNOTS)
    # Numbers that many states share are one knot, in the middle of its ranks.
    knots, place = np.unique(np.quantile(finite, shares), return_inverse=True)
    places = np.bincount(place, shares) / np.bincount(place)
    places = (places - places[0]) / (places[-1] - places[0])

    class RankNorm(Normalize):
        """Places by rank."""

        def __call__(self, value: Any, clip: bool | None = None) -> Any:
            array = np.ma.asarray(value, dtype=np.float64)
            ranks = np.interp(array.filled(np.nan), knots, places, left=0.0, right=1.0)
            # What is beyond keeps its own colour.
            ranks = np.where(array.filled(np.nan) > knots[-1], 1.0 + 1e-3, ranks)
            return np.ma.masked_array(ranks, np.ma.getmaskarray(array))

        def inverse(self, value: Any) -> Any:
            return np.interp(np.asarray(value, dtype=np.float64), places, knots)

    return RankNorm(float(knots[0]), float(knots[-1]))


def without_place(numbers: NDArray[np.float64], scale: str) -> dict[str, NDArray[np.bool_]]:
    """Return which numbers have no place along a scale, by the words that say why.

    Parameters
    ----------
    numbers : ndarray of float
    scale : str
        One of `SCALES`.
    """
    kinds = {"without limit": np.isinf(numbers), "no number": np.isnan(numbers)}
    if scale == "log":
        kinds["0 or less"] = (numbers <= 0) & np.isfinite(numbers)
    return kinds


def placed(
    numbers: NDArray[np.float64], missing: NDArray[np.bool_], norm: Normalize, scale: str
) -> tuple[NDArray[np.float64], str, bool]:
    """Return numbers such that those which have no place along a scale get the grey beyond it.

    Parameters
    ----------
    numbers : ndarray of float
    missing : ndarray of bool
        Which are not looked at, such as those of walls.
    norm : matplotlib.colors.Normalize
    scale : str
        One of `SCALES`.

    Returns
    -------
    placed : ndarray of float
    note : str
        What a label adds on what is grey, "" where nothing is.
    infinite : bool
        Whether any is infinite.
    """
    assert norm.vmin is not None
    assert norm.vmax is not None
    kinds = without_place(numbers, scale)
    found = {words: which & ~missing for words, which in kinds.items()}
    notes = [words for words, which in found.items() if which.any()]
    # Matplotlib would take them for missing, as walls are.
    beyond = norm.vmax + max(1.0, abs(norm.vmax), abs(norm.vmin))
    grey = np.logical_or.reduce(list(found.values()))
    note = f" (grey: {' or '.join(notes)})" if notes else ""
    return np.where(grey, beyond, numbers), note, "without limit" in notes


def add_colorbar(
    mappable: Any, axes: list[Axes], label: str, *, scale: str, extend: str = "neither"
) -> Any:
    """Put the key of the colours beside axes, with ticks that suit its scale.

    Parameters
    ----------
    mappable : matplotlib.cm.ScalarMappable
    axes : list of Axes
    label : str
    scale : str
        One of `SCALES`.
    extend : {"neither", "min", "max"}
        Whether there is a colour for what is beyond.
    """
    figure: Any = axes[0].figure
    bar = figure.colorbar(mappable, ax=axes, shrink=0.85, extend=extend)
    label_bar(bar, label, zoomed=len(axes) == 1)
    norm = mappable.norm
    if scale == "rank" and type(norm).__name__ == "RankNorm":
        ticks = np.unique(norm.inverse(np.linspace(0.0, 1.0, 7)))
        words = told_apart(ticks)
        # What is the same in 10 digits is one tick, the first.
        kept = [k for k, word in enumerate(words) if word not in words[:k]]
        bar.set_ticks(ticks[kept], labels=[words[k] for k in kept])
    return bar


def label_bar(bar: Any, label: str, *, zoomed: bool) -> None:
    """Write beside a colour bar what it tells.

    Parameters
    ----------
    bar : matplotlib.colorbar.Colorbar
    label : str
    zoomed : bool
        Whether the words are as much larger as the figure is: not beside many small panels.
    """
    height = bar.ax.figure.figure.get_figheight()
    size = 10 * max(1.0, height / 7) if zoomed else 10.0
    bar.set_label(fitted(label, 0.8 * height, size), fontsize=size)
    bar.ax.tick_params(labelsize=size)


def seamed(width: float, opacity: float = 1.0) -> list[Any]:
    """Return what draws a light seam around something dark, so that it is seen on every colour.

    Parameters
    ----------
    width : float
        Points, of both sides and what is between them.
    opacity : float
    """
    from matplotlib.patheffects import Normal, Stroke

    return [Stroke(linewidth=width, foreground="white", alpha=opacity), Normal()]


def set_title(ax: Axes, title: str | None, size: float = 11.0) -> None:
    """Put a title above axes, in as many lines as it takes.

    Parameters
    ----------
    ax : Axes
    title : str, optional
    size : float
        Of the font, in points.
    """
    if title:
        width = ax.get_window_extent().width / figure_of(ax).dpi
        lines = [fitted(line, max(1.1 * width, 2.0), size) for line in title.splitlines()]
        ax.set_title("\n".join(lines), fontsize=size)


def add_lines(
    ax: Axes, lines: NDArray[np.float64], color: str, width: float, zorder: float
) -> None:
    """Draw many lines at once.

    Parameters
    ----------
    ax : Axes
    lines : ndarray of float, shape (N, 2, 2)
        Both ends of each, x before y.
    color : str
    width : float
        Points.
    zorder : float
    """
    from matplotlib.collections import LineCollection

    ax.add_collection(
        LineCollection(
            list(lines), colors=color, linewidths=width, capstyle="projecting", zorder=zorder
        )
    )
