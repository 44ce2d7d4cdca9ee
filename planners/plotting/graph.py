"""Small models as graphs of where actions lead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.models.model import with_table
from aggmaze.models.moves import MoveMDP
from planners.adapters import as_model
from planners.graphs import MOST_NODES, columns_of
from planners.plotting.canvas import (
    INK_COLOR,
    PATH_COLOR,
    add_colorbar,
    figure_of,
    new_figure,
    norm_of,
    placed,
    seamed,
    sequential,
    set_title,
)
from planners.plotting.given import as_policy, as_values, one_axes
from planners.plotting.words import COST, RETURN, fitted, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Chances below this have no arrow.
_LEAST_CHANCE = 0.02
# Of what a policy leaves out: seen on white and on black.
_OTHER_ARROWS = "#8a9099"


def plot_graph(
    source: Any,
    values: ArrayLike,
    policy: ArrayLike | None = None,
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
    policy : array_like of int, shape (S,), or of float, shape (S, A), optional
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
    chances = np.zeros((count, model.num_actions))
    if policy is not None:
        chances = _chances(as_policy(policy, count, model.num_actions), model.num_actions)
    ax = one_axes(ax)
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
    taken = chances[np.minimum(state, count - 1), action]
    chosen = usual & (taken >= _LEAST_CHANCE)
    likely = transitions.data * np.where(chosen, taken, 1.0)
    for which, color, order in ((usual & ~chosen, _OTHER_ARROWS, 1), (chosen, PATH_COLOR, 2)):
        pairs = np.stack([state[which], transitions.col[which]], axis=1)
        for (here, there), weight in zip(pairs.tolist(), likely[which], strict=True):
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
    norm = norm_of(array, "linear")
    laid, note, _ = placed(array, np.zeros(count, dtype=bool), norm, "linear")
    nodes = ax.scatter(
        points[:, 0],
        points[:, 1],
        c=laid,
        cmap=sequential(low_is_light=not returns),
        norm=norm,
        s=340,
        edgecolors=[rcParams["axes.edgecolor"]] * count,
        linewidths=np.where(np.asarray(model.terminal)[:count], 2.4, 0.8).tolist(),
        zorder=3,
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
    add_colorbar(nodes, [ax], f"{label}{note}", scale="linear")
    set_title(ax, title)
    return ax


def _chances(policy: NDArray[Any], num_actions: int) -> NDArray[np.float64]:
    """Return the probability of each action in each state, shape (S, A)."""
    if policy.ndim == 2:
        return policy
    chances = np.zeros((len(policy), num_actions))
    chances[np.arange(len(policy)), policy] = 1.0
    return chances
