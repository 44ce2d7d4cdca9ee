"""Models whose states are nowhere: a bar a state, or a graph of where actions lead."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.models.model import Model, with_table
from aggmaze.models.moves import MoveMDP
from planners.adapters import as_model
from planners.graphs import MOST_NODES, columns_of
from planners.plotting.canvas import (
    INK_COLOR,
    PATH_COLOR,
    add_colorbar,
    as_values,
    figure_of,
    fitted,
    new_figure,
    norm_of,
    seamed,
    sequential,
    set_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_TICKS = 40
_MOST_LETTERS = 16
# Bars are drawn up to this many states; beyond, a band with the least and the greatest of each
# group of neighbours, of which there are as many as pixels.
_MOST_BARS = 400
_MOST_POINTS = 2000
# Chances below this have no arrow.
_LEAST_CHANCE = 0.02
# Seen on white and on black: bars, and the arrows of what a policy leaves out.
_BARS, _OTHER_ARROWS = "#3b7dd8", "#8a9099"
#: What values are, unless that is said.
COST, RETURN = "cost-to-go (unit of costs)", "return (unit of rewards)"


def short(name: Hashable) -> str:
    """Return a name as a picture has room for it, free of matplotlib's signs for formulas."""
    text = str(name)
    text = text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}…"
    return text.replace("$", r"\$")


def draw_bars(
    model: Model,
    values: NDArray[np.float64],
    signs: list[str] | None,
    ax: Axes | None,
    title: str | None,
    label: str,
    colors: Any = _BARS,
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
    """
    from matplotlib import rcParams

    count = len(values)
    if ax is None:
        ax = new_figure(min(12.0, max(4.6, 0.4 * count + 1.2)), 3.6).add_subplot()
    finite = np.where(np.isfinite(values), values, np.nan)
    if count <= _MOST_BARS:
        bars = ax.bar(np.arange(count), finite, color=colors, width=0.8 if count < 200 else 1.0)
    else:
        _draw_band(ax, finite)
    if count <= MOST_TICKS:
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
    ax.axhline(0.0, color=rcParams["axes.edgecolor"], linewidth=0.8)
    ax.set_xlabel("state")
    ax.set_ylabel(label)
    ax.margins(x=0.01, y=0.14)
    set_title(ax, title)
    return ax


def _draw_band(ax: Axes, values: NDArray[np.float64]) -> None:
    """Draw the range of the values of neighbouring states, and their mean."""
    groups = np.array_split(np.arange(len(values)), min(_MOST_POINTS, len(values)))
    starts = np.array([group[0] for group in groups])
    low = np.fmin.reduceat(values, starts)
    high = np.fmax.reduceat(values, starts)
    if len(values) > _MOST_POINTS:
        ax.fill_between(starts, low, high, step="post", color=_BARS, alpha=0.45, linewidth=0)
    ax.plot(starts, (low + high) / 2, drawstyle="steps-post", color=_BARS, linewidth=0.9)


def plot_graph(
    source: Any,
    values: ArrayLike,
    policy: NDArray[np.int64] | None = None,
    *,
    ax: Axes | None = None,
    title: str | None = None,
    label: str | None = None,
    returns: bool = False,
) -> Axes:
    """Draw a small model as a graph: states in columns by their steps to an end, coloured by value.

    Grey arrows are what can happen, red ones what the policy makes happen, wider the likelier it
    is.

    Parameters
    ----------
    source : Model, gymnasium.Env, or what else `planners.as_model` takes
    values : array_like of float, shape (S,)
    policy : ndarray of int, shape (S,), optional
    ax : Axes, optional
        Where to draw; a new figure by default.
    title : str, optional
    label : str, optional
        What the values are, with their unit.
    returns : bool
        Whether to draw minus the values, which are returns.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If the shapes are others, or there are more than 60 states.
    """
    from matplotlib import rcParams

    model = with_table(as_model(source))
    count = model.num_listed_states
    array = as_values("values", values, count, "a state")
    if count > MOST_NODES:
        raise ValueError(
            f"{count:,} states are more than the {MOST_NODES} of a graph that can be read: "
            "plot_values draws them as bars"
        )
    if returns:
        array = -array
    if label is None:
        label = RETURN if returns else COST
    actions = check_policy(policy, model)
    columns, points = columns_of(model)
    if ax is None:
        tallest = 4 if len(columns) < 2 else max(len(column) for column in columns)
        size = (max(5.4, 1.25 * len(columns) + 1.8), max(3.0, 0.75 * tallest + 1.0))
        ax = new_figure(*size).add_subplot()
    general = model.to_tabular() if isinstance(model, MoveMDP) else model
    transitions = general.transitions.tocoo()
    state, action = np.divmod(transitions.row, general.num_actions)
    usual = (state != transitions.col) & (state < count) & (transitions.col < count)
    # What hardly ever happens would be most of the picture.
    usual &= ~np.asarray(model.terminal)[state] & (transitions.data >= _LEAST_CHANCE)
    chosen = np.zeros(len(state), dtype=bool)
    if actions is not None:
        chosen = usual & (action == actions[np.minimum(state, count - 1)])
    for which, color, order in ((usual & ~chosen, _OTHER_ARROWS, 1), (chosen, PATH_COLOR, 2)):
        pairs = np.stack([state[which], transitions.col[which]], axis=1)
        for (here, there), weight in zip(pairs.tolist(), transitions.data[which], strict=True):
            ax.annotate(
                "",
                points[there],
                points[here],
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": color,
                    "alpha": 1.0 if order == 2 else 0.5,
                    "linewidth": 0.6 + 1.6 * float(weight),
                    "shrinkA": 11,
                    "shrinkB": 11,
                    "connectionstyle": "arc3,rad=0.18",
                },
                zorder=order,
            )
    nodes = ax.scatter(
        points[:, 0],
        points[:, 1],
        c=np.where(np.isfinite(array), array, np.nan),
        cmap=sequential(low_is_light=not returns),
        norm=norm_of(array, "linear"),
        s=340,
        edgecolors=[rcParams["axes.edgecolor"]] * count,
        linewidths=np.where(np.asarray(model.terminal)[:count], 2.4, 0.8).tolist(),
        zorder=3,
        plotnonfinite=True,
    )
    names: Any = model.state_names or range(count)
    for (x, y), name in zip(points.tolist(), names, strict=True):
        ax.text(
            x,
            y,
            short(name),
            ha="center",
            va="center",
            fontsize=7,
            color=INK_COLOR,
            path_effects=seamed(1.6, opacity=0.7),
            zorder=4,
        )
    ax.set(xticks=[], yticks=[])
    # Arrows between nodes above each other bend to the sides.
    ax.margins(0.12 if len(columns) > 2 else 0.35, 0.12)
    if np.asarray(model.terminal).any():
        words = "ends, with a thick edge, on the right; each column a step farther away"
        ax.set_xlabel(fitted(words, ax.get_window_extent().width / figure_of(ax).dpi))
    add_colorbar(nodes, [ax], label, scale="linear")
    set_title(ax, title)
    return ax


def check_policy(policy: Any, model: Model) -> NDArray[np.int64] | None:
    """Return the actions of a policy, one a listed state.

    Parameters
    ----------
    policy : array_like of int, shape (S,), or None
    model : Model

    Raises
    ------
    ValueError
        If the shape is another, or an action does not exist.
    """
    if policy is None:
        return None
    array = np.asarray(policy)
    count = model.num_listed_states
    if array.shape != (count,):
        raise ValueError(f"policy must have shape ({count},), got {array.shape}")
    if not np.issubdtype(array.dtype, np.integer) or not (
        array.min() >= 0 and array.max() < model.num_actions
    ):
        raise ValueError(f"policy must hold actions in [0, {model.num_actions})")
    return array.astype(np.int64)
