"""Small models as graphs of where actions lead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.models.model import with_table
from planners.adapters import as_model
from planners.graphs import MOST_NODES, graph_of
from planners.plotting.canvas import (
    INK_COLOR,
    PATH_COLOR,
    add_colorbar,
    figure_of,
    new_figure,
    norm_of,
    placed,
    sequential,
    set_title,
)
from planners.plotting.given import as_policy, as_values, one_axes
from planners.plotting.words import COST, RETURN, fitted, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Actions less likely than this are not the policy's.
_LEAST_CHANCE = 0.02
# Sides of a figure in inches, and the distance of close states there in points.
_SMALLEST, _LARGEST = (5.4, 4.0), (12.0, 9.0)
_APART = 34.0
# Diameters of discs in points, and their share of the distance of the closest two.
_SMALLEST_DISC, _LARGEST_DISC, _SHARE = 7.0, 36.0, 0.58
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
    """Draw a small model as a graph: states as discs, coloured by value, and arrows.

    States stand in columns by their steps to an end where that makes a good picture; others lie
    about as far from each other as there are steps between them.

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
    graph = graph_of(model, dense=True)
    assert graph is not None
    points = graph.points
    ax = one_axes(ax)
    if ax is None:
        ax = new_figure(*_size_for(points)).add_subplot()
    ax.set(xlim=(-0.12, 1.12), ylim=(-0.14, 1.14), xticks=[], yticks=[])
    disc = _disc_in(ax, points)
    usual = graph.state != graph.following
    taken = chances[graph.state, graph.action]
    chosen = usual & (taken >= _LEAST_CHANCE)
    likely = graph.chance * np.where(chosen, taken, 1.0)
    for which, color, order in ((usual & ~chosen, _OTHER_ARROWS, 1), (chosen, PATH_COLOR, 2)):
        pairs = np.stack([graph.state[which], graph.following[which]], axis=1)
        for (here, there), weight in zip(pairs.tolist(), likely[which], strict=True):
            ax.annotate(
                "",
                points[there],
                points[here],
                arrowprops={
                    "arrowstyle": "-|>",
                    "mutation_scale": float(np.clip(0.5 * disc, 5, 10)),
                    "color": color,
                    "alpha": 1.0 if order == 2 else 0.5,
                    "linewidth": 0.6 + 1.6 * float(weight),
                    "shrinkA": 0.6 * disc,
                    "shrinkB": 0.6 * disc,
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
        s=disc**2,
        edgecolors=[rcParams["axes.edgecolor"]] * count,
        linewidths=np.where(np.asarray(model.terminal)[:count], 2.4, 0.8).tolist(),
        zorder=3,
    )
    names = [short(name) for name in model.state_names or range(count)]
    longest = max(len(name) for name in names)
    light = nodes.to_rgba(laid)[:, :3] @ [0.299, 0.587, 0.114] > 0.45
    for (x, y), name, dark in zip(points.tolist(), names, light.tolist(), strict=True):
        ax.text(
            x,
            y,
            name,
            ha="center",
            va="center",
            fontsize=float(np.clip(1.5 * disc / max(2, longest), 7, 11)),
            color=INK_COLOR if dark else "white",
            zorder=4,
        )
    if np.asarray(model.terminal).any():
        words = "ends have a thick edge"
        if graph.in_columns:
            words = "ends, with a thick edge, on the right; each column a step farther away"
        ax.set_xlabel(fitted(words, ax.get_window_extent().width / figure_of(ax).dpi))
    add_colorbar(nodes, [ax], f"{label}{note}", scale="linear")
    set_title(ax, title)
    return ax


def _size_for(points: NDArray[np.float64]) -> tuple[float, float]:
    """Return width and height of a figure in which discs and their arrows can be told apart."""
    scale = _APART / max(1e-3, _closest(points, np.array(_LARGEST) * 72 / 1.4))
    width, height = np.clip(np.array(_LARGEST) * scale, _SMALLEST, _LARGEST).tolist()
    return width, height


def _disc_in(ax: Axes, points: NDArray[np.float64]) -> float:
    """Return the diameter of discs in points, of 1/72 inch."""
    box = ax.get_window_extent()
    sides = 72 / figure_of(ax).dpi * np.array([box.width, box.height]) / [1.24, 1.28]
    return float(np.clip(_SHARE * _closest(points, sides), _SMALLEST_DISC, _LARGEST_DISC))


def _closest(points: NDArray[np.float64], sides: NDArray[np.float64]) -> float:
    """Return the distance of the closest two points of the unit square, stretched to sides."""
    apart = np.linalg.norm((points[:, np.newaxis] - points) * sides, axis=-1)
    np.fill_diagonal(apart, np.inf)
    return min(float(apart.min()), float(sides.min()))


def _chances(policy: NDArray[Any], num_actions: int) -> NDArray[np.float64]:
    """Return the probability of each action in each state, shape (S, A)."""
    if policy.ndim == 2:
        return policy
    chances = np.zeros((len(policy), num_actions))
    chances[np.arange(len(policy)), policy] = 1.0
    return chances
