"""Which states share a mega-state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planners.boards import board_of, model_of, planes_of
from planners.plotting.bars import draw_bars
from planners.plotting.canvas import WALL_COLOR, add_colorbar, label_bar, sequential
from planners.plotting.cells import colour_cells
from planners.plotting.given import as_values, num_states_of, one_axes
from planners.plotting.layouts import draw_layout
from planners.plotting.panels import Panels
from planners.plotting.words import COST, RETURN, in_digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from planners.plotting.panels import Drawn

# Mega-states that the colour bar still tells apart, and those whose ends are written beside it.
_MOST_BINS, _MOST_ENDS = 128, 14
# Of the length of a colour bar: nearer to each other, two numbers would overlap.
_LEAST_ROOM = 0.035
# Points from a line of words to the next.
_LINE = 13.0


def plot_megastates(
    source: Any,
    labels: ArrayLike,
    values: ArrayLike | None = None,
    *,
    ax: Axes | Iterable[Axes] | None = None,
    title: str | None = None,
    label: str | None = None,
    returns: bool = False,
    axes: tuple[int, int] | None = None,
    along: int | tuple[int, ...] | None = None,
    through: tuple[int, ...] | None = None,
    walls: bool = True,
    colorbar: bool = True,
) -> Drawn:
    """Draw which states share a mega-state: coloured by the value of the bin, with borders.

    Parameters
    ----------
    source : Layout, gymnasium.Env, Model, or what else `planners.as_model` takes
    labels : array_like of int, shape (S,)
        Mega-state of each state, such as ``result.labels``.
    values : array_like of float, shape (S,), optional
        In the unit of the costs: a mega-state has the colour of their mean, and the colour bar is
        cut half-way between two of these.  Without them mega-states are taken to be numbered in
        order of value, as those of `planners.solve` are, and colours tell that number.
    ax, title, axes, along, through, walls, colorbar
        As for `plot_values`.
    label : str, optional
        What the values are.
    returns : bool
        Whether to draw minus the values.

    Returns
    -------
    Axes, or ndarray of Axes

    Raises
    ------
    ValueError
        If the shapes are others, or there are no labels.
    """
    from matplotlib.colors import BoundaryNorm, ListedColormap, Normalize

    if labels is None:
        raise ValueError("labels must be given: this method made no mega-states")
    board = board_of(source)
    model = model_of(source) if board is None else None
    count = num_states_of(board, model)
    groups = np.asarray(labels)
    if groups.shape != (count,) or not np.issubdtype(groups.dtype, np.integer):
        raise ValueError(
            f"labels must be {count} integers, one a state, got {groups.dtype} of shape "
            f"{groups.shape}"
        )
    shown = np.ones(count, dtype=bool)
    if board is not None:
        # Blocked positions have labels that mean nothing.
        shown[:] = False
        drawn = np.arange(board.grid.num_states) if board.states is None else board.states
        shown[drawn[~board.missing()]] = True
    names, group = np.unique(groups[shown], return_inverse=True)
    place = np.zeros(count, dtype=np.int64)
    place[shown] = group
    if values is None:
        centres = names.astype(np.float64)
        what = label or "mega-state, in order of value"
    else:
        given = as_values("values", values, count, "a state")
        given = -given if returns else given
        what = label or (RETURN if returns else COST)
        finite = np.isfinite(given) & shown
        sums = np.bincount(place[finite], given[finite], minlength=len(names))
        number = np.bincount(place[finite], minlength=len(names))
        centres = np.where(number > 0, sums / np.maximum(number, 1), np.nan)
    what = f"{what}: {len(names):,} mega-states"
    order = np.argsort(centres, kind="stable")
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    known = centres[order][~np.isnan(centres[order])]
    low, high = (float(known[0]), float(known[-1])) if len(known) else (0.0, 1.0)
    shares = (centres[order] - low) / (high - low) if high > low else np.zeros(len(names))
    base = sequential(low_is_light=not returns)
    colors = base(np.nan_to_num(shares))
    colors[np.isnan(shares)] = [0.6, 0.63, 0.65, 1.0]
    cmap = ListedColormap(colors).with_extremes(bad=WALL_COLOR)
    if board is None:
        assert model is not None
        heights = np.asarray(values if values is not None else groups, dtype=np.float64)
        heights = -heights if returns and values is not None else heights
        return draw_bars(
            model, heights, None, one_axes(ax), title, what, colors=colors[rank[place]]
        )
    panels = Panels(board, planes_of(board, axes, along, through), ax, title, walls=walls)
    laid = board.lay(rank[place].astype(np.float64))
    norm = Normalize(-0.5, max(len(names), 1) - 0.5)
    colour_cells(panels, laid, cmap, norm, borders=True)
    draw_layout(panels, contours=False)
    if not colorbar:
        return panels.result()
    from matplotlib.cm import ScalarMappable

    edges = _edges(known)
    if len(edges) - 1 == len(names) <= _MOST_BINS and (np.diff(edges) > 0).all():
        bins = ScalarMappable(norm=BoundaryNorm(edges, len(names)), cmap=cmap)
        figure: Any = panels.figure
        bar = figure.colorbar(
            bins,
            ax=panels.axes,
            shrink=0.85,
            spacing="proportional",
            drawedges=len(names) <= 60,
        )
        label_bar(bar, what, zoomed=len(panels.axes) == 1)
        bar.minorticks_off()
        if bar.dividers is not None:
            bar.dividers.set(color="white", linewidth=0.8)
        if values is not None:
            if len(names) <= _MOST_ENDS:
                points = 72 / panels.figure.dpi * bar.ax.get_window_extent().height
                ends = _apart(edges, max(_LEAST_ROOM, _LINE / points))
                bar.set_ticks(ends, labels=[in_digits(end) for end in ends])
            else:
                from matplotlib.ticker import MaxNLocator

                bar.set_ticks(_inside(MaxNLocator(7).tick_values(low, high), edges))
        else:
            from matplotlib.ticker import MaxNLocator

            ticks = MaxNLocator(10, integer=True).tick_values(low, high)
            bar.set_ticks(_inside(ticks, edges))
    else:
        mappable = ScalarMappable(norm=Normalize(low, high), cmap=base)
        add_colorbar(mappable, panels.axes, what, scale="linear")
    return panels.result()


def _edges(centres: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return where bins around sorted centres end: half-way, and as far again on the outside."""
    if len(centres) < 2:
        return np.array([centres[0] - 0.5, centres[0] + 0.5]) if len(centres) else np.zeros(1)
    middle = (centres[1:] + centres[:-1]) / 2
    first, last = 2 * centres[0] - middle[0], 2 * centres[-1] - middle[-1]
    return np.concatenate([[first], middle, [last]])


def _apart(edges: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Return the ends of bins between which a number has room, the first and the last for sure."""
    room = share * (edges[-1] - edges[0])
    kept = [edges[0]]
    for edge in edges[1:-1]:
        if edge - kept[-1] >= room and edges[-1] - edge >= room:
            kept.append(edge)
    return np.array([*kept, edges[-1]])


def _inside(given: Any, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    ticks = np.asarray(given, dtype=np.float64)
    return ticks[(ticks >= edges[0]) & (ticks <= edges[-1])]
