"""What each action costs in all, and by how much the best one is better than the next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_choice
from aggmaze.layouts.layout import Layout
from aggmaze.models.model import Model
from planners.boards import Board, Plane, board_of, model_of, planes_of
from planners.plotting.bars import label_actions
from planners.plotting.canvas import (
    SCALES,
    add_colorbar,
    new_figure,
    norm_of,
    sequential,
    set_title,
)
from planners.plotting.cells import colour_cells, colour_floor
from planners.plotting.given import as_costs, as_table, num_states_of, one_axes
from planners.plotting.layouts import draw_layout
from planners.plotting.panels import MOST_ARROWS, Panels
from planners.plotting.values import plot_values
from planners.plotting.words import COST, RETURN, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from planners.plotting.panels import Drawn

# Where more gaps than this share lie in the lowest tenth, a linear scale is all one colour.
_MOST_LOW = 0.75
_NOT_THERE = " (dark: not available)"


def plot_q_values(
    source: Any,
    Q: ArrayLike,
    *,
    ax: Axes | Iterable[Axes] | None = None,
    title: str | None = None,
    label: str | None = None,
    scale: str = "linear",
    returns: bool = False,
    through: tuple[int, ...] | None = None,
) -> Drawn:
    """Draw what each action costs in all.

    On small maps each cell is cut into triangles, one a direction; else there is a panel for each
    action.  Of models that are no map rows are actions and columns states.

    Parameters
    ----------
    source : Layout, gymnasium.Env, Model, or what else `planners.as_model` takes
    Q : array_like of float, shape (S, A)
        As `planners.q_values` returns it; +inf, drawn dark, where an action is masked.
    ax : Axes, or array of Axes, one a panel, optional
    title, label : str, optional
    scale : {"linear", "log", "rank"}
    returns : bool
        Whether to draw minus the values.
    through : tuple of int, optional
        The position through which more than two dimensions are cut.

    Returns
    -------
    Axes, or ndarray of Axes

    Raises
    ------
    ValueError
        If the shape is another.
    """
    check_choice("scale", scale, SCALES[:3])
    label = label if label is not None else RETURN if returns else COST
    board = board_of(source)
    model = None if isinstance(source, Layout | Board) else model_of(source)
    count = num_states_of(board, model)
    if model is not None:
        known = model.num_actions
    else:
        assert board is not None
        known = len(board.action_names)
    table = as_table(Q, count, known)
    table = np.where(np.isfinite(table), -table if returns else table, np.nan)
    norm = norm_of(table, scale)
    cmap = sequential(low_is_light=not returns)
    if board is None:
        assert model is not None
        label += _NOT_THERE if np.isnan(table).any() else ""
        return _draw_table(model, table, one_axes(ax), title, label, cmap, norm, scale)
    names = board.action_names
    cut = planes_of(board, along=(), through=through)
    triangles = _triangles(board, cut[0])
    if triangles is not None:
        panels = Panels(board, cut, ax, title)
        mappable = _draw_triangles(panels, table, triangles, cmap, norm)
        draw_layout(panels, contours=False)
    else:
        acting = board.acting()
        label += _NOT_THERE if np.isnan(board.lay(table)[acting]).any() else ""
        planes = [
            Plane(cut[0].axes, cut[0].through, names[action] or f"action {action}")
            for action in range(known)
        ]
        panels = Panels(board, planes, ax, title)
        for action, one in enumerate(panels.axes):
            single = Panels(board, [Plane(cut[0].axes, cut[0].through, "")], one, None)
            one.set_title(f"action {names[action]}", fontsize=9)
            mappable = colour_cells(single, board.lay(table[:, action]), cmap, norm)
            draw_layout(single, contours=False)
    add_colorbar(mappable, panels.axes, label, scale=scale)
    return panels.result()


def _triangles(board: Board, plane: Plane) -> list[NDArray[np.float64] | None] | None:
    """Return the part of a cell of each action, in corners; None where there are no such parts."""
    if board.directions is None or max(board.grid.shape) > MOST_ARROWS or board.grid.num_dims > 2:
        return None
    flat = np.zeros((len(board.directions), 2))
    flat[:, : board.grid.num_dims] = board.directions
    if not (np.abs(flat).sum(axis=1) == 1).all() or len(np.unique(flat, axis=0)) != len(flat):
        return None
    parts: list[NDArray[np.float64] | None] = []
    for dx, dy in flat:
        across = np.array([-dy, dx])
        tip = 0.5 * np.array([dx, dy])
        parts.append(np.stack([np.zeros(2), tip + 0.5 * across, tip - 0.5 * across]))
    return parts


def _draw_triangles(
    panels: Panels, table: NDArray[np.float64], parts: list[Any], cmap: Any, norm: Any
) -> Any:
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import PolyCollection

    board = panels.board
    colour_floor(panels)
    where = np.flatnonzero(board.acting())
    points = board.grid.coords(where).astype(np.float64)
    if board.grid.num_dims == 1:
        points = np.column_stack([points, np.zeros(len(points))])
    laid = board.lay(table)[where]
    for action, part in enumerate(parts):
        possible = ~np.isnan(laid[:, action])
        polygons = points[possible, np.newaxis] + part[np.newaxis]
        panels.axes[0].add_collection(
            PolyCollection(
                list(polygons),
                facecolors=cmap(norm(laid[possible, action])),
                edgecolors="white",
                linewidths=0.3,
                zorder=1.2,
            )
        )
    mappable = ScalarMappable(norm=norm, cmap=cmap)
    mappable.set_array(laid[~np.isnan(laid)])
    return mappable


def _draw_table(
    model: Model,
    table: NDArray[np.float64],
    ax: Any,
    title: str | None,
    label: str,
    cmap: Any,
    norm: Any,
    scale: str,
) -> Axes:
    count, actions = table.shape
    if ax is None:
        size = (
            min(12.0, max(4.0, 0.3 * count + 2.0)),
            min(9.0, max(2.2, 0.4 * actions + 1.4)),
        )
        ax = new_figure(*size).add_subplot()
    image = ax.imshow(table.T, cmap=cmap, norm=norm, aspect="auto", interpolation="nearest")
    label_actions(ax, model)
    if count <= MOST_ARROWS and model.state_names:
        ax.set_xticks(range(count), [short(n) for n in model.state_names], rotation=45, ha="right")
    ax.set(xlabel="state", ylabel="action")
    set_title(ax, title)
    add_colorbar(image, [ax], label, scale=scale)
    return ax


def plot_action_gaps(
    source: Any,
    Q: ArrayLike,
    path: ArrayLike | None = None,
    *,
    label: str = "action gap: second-best less best (unit of costs)",
    scale: str | None = None,
    **options: Any,
) -> Drawn:
    """Draw how much the second-best action costs more than the best one.

    Parameters
    ----------
    source : Layout, gymnasium.Env, Model, or what else `planners.as_model` takes
    Q : array_like of float, shape (S, A)
        As `planners.q_values` returns it.
    path : array_like of int, optional
        States in order.
    label : str
    scale : {"linear", "log", "rank"}, optional
        As for `plot_values`; by default "rank" where nearly all gaps are small beside the largest.
    **options
        As for `plot_values`.

    Returns
    -------
    Axes, or ndarray of Axes

    Raises
    ------
    ValueError
        If Q is not such a table.
    """
    gaps = action_gaps(Q)
    grey = np.isposinf(gaps).any()
    if scale is None:
        finite = gaps[np.isfinite(gaps)]
        low = finite < 0.1 * finite.max(initial=0.0)
        scale = "rank" if len(low) and low.mean() > _MOST_LOW else "linear"
    drawn = plot_values(source, gaps, None, path, label=label, scale=scale, **options)
    if grey and options.get("colorbar", True):
        _relabel(drawn, "grey: without limit", "grey: no choice")
    return drawn


def _relabel(drawn: Drawn, old: str, new: str) -> None:
    first: Any = drawn.flat[0] if isinstance(drawn, np.ndarray) else drawn
    for each in first.figure.axes:
        each.set_ylabel(each.get_ylabel().replace(old, new))


def action_gaps(Q: ArrayLike) -> NDArray[np.float64]:
    """Return how much the second-best action costs more than the best one, shape (S,).

    0 where two are best, or all are the same; +inf where there is one action only.

    Parameters
    ----------
    Q : array_like of float, shape (S, A)
        As `planners.q_values` returns it, +inf where an action is masked.

    Raises
    ------
    ValueError
        If it has another number of dimensions.
    """
    table = as_costs(Q)
    if table.ndim != 2 or table.shape[1] < 1:
        hint = "; of a finite horizon take one step, Q[t]" if table.ndim == 3 else ""
        raise ValueError(f"Q must have shape (S, A), got {table.shape}{hint}")
    if table.shape[1] == 1:
        return np.full(len(table), np.inf)
    least = np.partition(table, 1, axis=1)[:, :2]
    with np.errstate(invalid="ignore"):
        gaps = least[:, 1] - least[:, 0]
    return np.where(np.isposinf(least[:, 1]), np.inf, gaps)
