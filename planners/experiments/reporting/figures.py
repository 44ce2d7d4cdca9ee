"""The figures, in one style: plain `matplotlib.figure.Figure` objects, made without a display.

Colours are Okabe and Ito's, which colour-blind readers can tell apart; markers and dashes differ
too, for print without colour.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np
from numpy.typing import NDArray

from planners.experiments.reporting.statistics import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
Floats = NDArray[np.float64]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = ("o", "s", "^", "D")
DASHES = ("-", "--", "-.", ":")
_GREY = "#777777"

#: What marks published numbers that are of mazes of another size.
NOT_COMPARED = " (not compared)"

_STYLE: Any = {  # matplotlib names its keys one by one
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "pdf.fonttype": 42,  # text that can be searched and edited
    "savefig.dpi": 200,
}


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw in the style of the report."""

    @functools.wraps(draw)
    def drawn(*arguments: P.args, **options: P.kwargs) -> Figure:
        from matplotlib import rc_context

        with rc_context(_STYLE):
            return draw(*arguments, **options)

    return drawn


def save_options() -> Any:
    """Return what matplotlib needs when it writes: part of the style is read only then."""
    return {key: _STYLE[key] for key in ("pdf.fonttype", "savefig.dpi")}


def _panels(rows: int, columns: int, height: float = 2.7, **options: Any) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    width = 3.6 if columns == 1 else 2.7 * columns  # legible where a phone shows it
    figure = Figure(figsize=(width, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def bars(
    axes: Axes, points: Sequence[tuple[float, Estimate]], index: int, label: str, **options: Any
) -> None:
    """Draw means with their intervals.

    Parameters
    ----------
    axes : matplotlib Axes
    points : sequence of (float, Estimate)
        Abscissa and mean of each; nothing is drawn of none.
    index : int
        Of the colour, the marker and the dashes.
    label : str
        For the legend.
    **options
        Further ones of matplotlib's ``errorbar``, which go before those of the index.
    """
    if not points:
        return
    means, widths = _means_and_widths([e for _, e in points])
    axes.errorbar(
        [x for x, _ in points],
        means,
        yerr=widths,
        label=label,
        **{
            "color": COLOURS[index],
            "marker": MARKERS[index],
            "linestyle": DASHES[index],
            "capsize": 2.5,
            "elinewidth": 1.0,
            **options,
        },
    )


def _legend_below(figure: Figure, axes: Axes, columns: int = 2) -> None:
    """Make the legend of one of the panels that of the whole figure."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def _means_and_widths(estimates: Sequence[Estimate]) -> tuple[Floats, Floats]:
    """Return means and half widths as arrays, with 0 for widths that are not known."""
    means = np.array([e.mean for e in estimates])
    return means, np.array([e.half_width or 0.0 for e in estimates])


def _hollow(index: int) -> dict[str, Any]:
    return {
        "linestyle": "none",
        "markerfacecolor": "white",
        "color": COLOURS[index],
        "alpha": 0.75,
        "zorder": 1,
    }


def _published(index: int, other_size: str) -> dict[str, Any]:
    """Return how published numbers are drawn: grey where they are of mazes of another size."""
    return _hollow(index) | ({"color": _GREY, "alpha": 1.0} if other_size else {})


def _published_label(kind: str, other_size: str) -> str:
    label = f"{kind}, published" if kind else "published"
    return f"{label}, of {other_size}{NOT_COMPARED}" if other_size else label


@styled
def scaling(
    ours: Mapping[str, Sequence[tuple[int, Estimate]]],
    published: Mapping[str, Sequence[tuple[int, Estimate]]],
) -> Figure:
    """Draw the error against the number of states.

    Parameters
    ----------
    ours, published : dict
        By kind, number of states and error of each shape.
    """
    figure, panels = _panels(1, 1, 3.0)
    axes = panels[0, 0]
    for i, (kind, points) in enumerate(ours.items()):
        bars(axes, points, i, kind)
        shifted = [(1.08 * n, e) for n, e in published[kind]]
        bars(axes, shifted, i, f"{kind}, published", **_hollow(i))
    axes.set(xscale="log", xlabel="positions", ylabel="error", ylim=(0, None))
    _legend_below(figure, axes)
    return figure


@styled
def against_epsilon(
    ours: Mapping[str, Sequence[tuple[float, Estimate]]],
    published: Mapping[str, Sequence[tuple[float, Estimate]]],
    other_size: str = "",
) -> Figure:
    """Draw the error against epsilon, by kind, with lines proportional to epsilon.

    Parameters
    ----------
    ours, published : dict
        By kind, epsilon and error.
    other_size : str
        Size of the published mazes where it is not that of ours.
    """
    figure, panels = _panels(1, 1, 3.4)
    axes = panels[0, 0]
    for i, (kind, points) in enumerate(ours.items()):
        bars(axes, points, i, kind)
        if points:
            last, reference = points[-1]
            x = np.array([at for at, _ in points])
            axes.plot(x, reference.mean * x / last, ":", color=COLOURS[i], linewidth=1.0)
        label = _published_label(kind, other_size)
        beside = [(1.04 * at, known) for at, known in published[kind]]
        bars(axes, beside, i, label, **_published(i, other_size))
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="error")
    ticks = sorted({at for points in [*ours.values(), *published.values()] for at, _ in points})
    axes.set_xticks(ticks, labels=[f"{at:g}" for at in ticks])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:g}")
    _legend_below(figure, axes, columns=1 if other_size else 2)
    return figure


@styled
def robustness(
    lines: Mapping[tuple[str, float], Sequence[tuple[float, Estimate, Estimate | None]]],
    other_size: str = "",
) -> Figure:
    """Draw the error against sigma in small multiples: a column for each kind, a row for each p.

    Parameters
    ----------
    lines : dict
        By kind and p, sigma, our error, and the published one if there is one.
    other_size : str
        Size of the published mazes where it is not that of ours.
    """
    kinds = list(dict.fromkeys(kind for kind, _ in lines))
    ps = list(dict.fromkeys(p for _, p in lines))
    figure, panels = _panels(len(ps), len(kinds), 1.75, sharex=True, sharey="col")
    for (i, p), (j, kind) in itertools.product(enumerate(ps), enumerate(kinds)):
        axes = panels[i, j]
        points = lines[kind, p]
        bars(axes, [(sigma, ours) for sigma, ours, _ in points], 0, "ours")
        known = [(sigma + 0.002, e) for sigma, _, e in points if e is not None]
        bars(axes, known, 1, _published_label("", other_size), **_published(1, other_size))
        axes.set(title=f"{kind}, p = {p:g}", ylim=(0, None))
        axes.locator_params(axis="x", nbins=3)
        axes.xaxis.set_major_formatter("{x:g}")
        if i == len(ps) - 1:
            axes.set_xlabel("sigma of the noise")
        if j == 0:
            axes.set_ylabel("error")
    _legend_below(figure, panels[0, 0])
    return figure


@styled
def efficiency(
    curves: Mapping[str, Mapping[str, Sequence[Estimate]]],
    clocks: Mapping[str, Mapping[str, Sequence[float]]],
) -> Figure:
    """Draw the error against updates and against seconds, a column for each kind.

    Parameters
    ----------
    curves : dict
        By kind and method, the errors after updates worth 1, 2, ... sweeps.
    clocks : dict
        By kind and method, the seconds until then.
    """
    figure, panels = _panels(2, len(curves))
    for column, (kind, methods) in enumerate(curves.items()):
        for i, (method, estimates) in enumerate(methods.items()):
            means, widths = _means_and_widths(estimates)
            for axes, x in (
                (panels[0, column], np.arange(1, len(means) + 1)),
                (panels[1, column], np.array(clocks[kind][method])),
            ):
                axes.plot(x, means, DASHES[i], color=COLOURS[i], label=method)
                low = np.maximum(means - widths, 1e-3 * means)
                axes.fill_between(x, low, means + widths, color=COLOURS[i], alpha=0.2, linewidth=0)
        panels[0, column].set(title=kind, xlabel="updates / number of states")
        panels[1, column].set(xlabel="seconds")
        for axes in panels[:, column]:
            axes.set(xscale="log", yscale="log", ylabel="error", ylim=(3e-2, 200))
    _legend_below(figure, panels[0, 0])
    return figure


@styled
def bounds(
    panels: Sequence[tuple[str, str, Sequence[tuple[str, Sequence[float], Sequence[float]]]]],
) -> Figure:
    """Draw measured over bound against iterations, a panel for each claim.

    Parameters
    ----------
    panels : sequence
        Title, label of the ordinate, and lines: label, iterations, and values.
    """
    columns = 2
    figure, grid = _panels(-(-len(panels) // columns), columns)
    for axes, (title, ordinate, lines) in zip(grid.flat, panels, strict=False):
        for i, (label, x, y) in enumerate(lines):
            axes.plot(x, y, DASHES[i % 4], color=COLOURS[i % 6], label=label)
        axes.axhline(1.0, color="black", linewidth=1.0, linestyle=(0, (1, 1)))
        axes.text(
            0.99, 1.05, "bound", transform=axes.get_yaxis_transform(), ha="right", va="bottom"
        )
        axes.set(title=title, xscale="log", yscale="log", xlabel="iteration", ylabel=ordinate)
        least = min(min(y) for _, _, y in lines)
        axes.set_ylim(bottom=least / 10 ** (0.35 * len(lines) + 0.2))  # room for the legend
        axes.legend(loc="lower left", fontsize=7.5)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_axis_off()
    return figure


@styled
def rewards(
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[Estimate]]]],
    highest: float,
) -> Figure:
    """Draw reward against updates, a panel for each number of cells.

    Parameters
    ----------
    panels : dict
        By title and method, the numbers of updates, and the reward after each.
    highest : float
        Reward that none exceeds.
    """
    figure, grid = _panels(1, len(panels))
    for axes, (title, methods) in zip(grid[0], panels.items(), strict=True):
        for i, (method, (x, estimates)) in enumerate(methods.items()):
            means, widths = _means_and_widths(estimates)
            axes.plot(
                x,
                means,
                DASHES[i],
                marker=MARKERS[i],
                markersize=2.5,
                color=COLOURS[i],
                label=method,
            )
            low, high = (np.clip(means + side, 0.0, highest) for side in (-widths, widths))
            axes.fill_between(x, low, high, color=COLOURS[i], alpha=0.2, linewidth=0)
        axes.set(title=title, xlabel="updates", ylabel="reward", ylim=(0, 1.05 * highest))
        axes.locator_params(axis="x", nbins=4)  # so that long numbers keep apart
        axes.xaxis.set_major_formatter("{x:,.0f}")
    _legend_below(figure, grid[0, 0])
    return figure
