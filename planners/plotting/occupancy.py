"""How often a policy is where."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from aggmaze.checks import check_choice
from planners.boards import board_of, model_of, planes_of
from planners.objective import Discounted, Objective
from planners.occupancy import occupancy
from planners.plotting.bars import draw_bars
from planners.plotting.canvas import SCALES, add_colorbar, norm_of, sequential
from planners.plotting.cells import colour_cells
from planners.plotting.given import one_axes
from planners.plotting.layouts import draw_layout
from planners.plotting.panels import Panels
from planners.policies import objective_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from planners.plotting.panels import Drawn

# Of the largest occupancy: less is "hardly ever"; more times the least takes a logarithm.
_LEAST_SEEN, _LARGE_SPREAD = 1e-6, 20


def plot_occupancy(
    source: Any,
    policy: Any,
    gamma: float | None = None,
    *,
    objective: Objective | None = None,
    ax: Axes | Iterable[Axes] | None = None,
    title: str | None = None,
    label: str | None = None,
    scale: str | None = None,
    axes: tuple[int, int] | None = None,
    along: int | tuple[int, ...] | None = None,
    through: tuple[int, ...] | None = None,
    walls: bool = True,
    contours: bool = False,
    colorbar: bool = True,
) -> Drawn:
    """Draw how often a policy is in each state, from where episodes start.

    Parameters
    ----------
    source : gymnasium.Env, Model, or what else `planners.as_model` takes
    policy : SolveResult, or array_like of int, shape (S,), or of float, shape (S, A)
    gamma : float, optional
        Discount in [0, 1]; a result brings its objective.
    objective : Objective, optional
        In place of ``gamma``.
    ax, title, label, axes, along, through, walls, contours, colorbar
        As for `plot_values`.
    scale : {"log", "linear", "rank"}, optional
        "log" by default where numbers differ much.

    Returns
    -------
    Axes, or ndarray of Axes

    Raises
    ------
    ValueError
        As of `planners.occupancy`, and where the source is a layout, which has no model.
    """
    if scale is not None:
        check_choice("scale", scale, SCALES[:3])
    model = model_of(source)
    if model is None:
        raise ValueError("an occupancy takes a model: give the environment instead of its layout")
    visits = occupancy(model, policy, gamma, objective=objective)
    largest = visits.max(initial=0.0)
    if not largest > 0:
        raise ValueError("the policy is nowhere: all episodes start in terminal states")
    asked = objective_of(policy, gamma, objective)
    discounted = isinstance(asked, Discounted) and asked.gamma < 1
    what = label or f"expected visits an episode{', discounted' if discounted else ''}"
    board = board_of(source)
    if board is None:
        return draw_bars(model, visits, None, one_axes(ax), title, what, scale=scale or "linear")
    # Less would take most of the scale.
    seen = visits > _LEAST_SEEN * largest
    if scale is None:
        scale = "log" if largest > _LARGE_SPREAD * visits[seen].min() else "linear"
    panels = Panels(board, planes_of(board, axes, along, through), ax, title, walls=walls)
    norm = norm_of(visits[seen], scale)
    laid = board.lay(np.where(seen, visits, 2 * largest + 1.0))
    mappable = colour_cells(panels, laid, sequential(), norm, pooled=True)
    draw_layout(panels, contours=contours)
    if colorbar:
        what = what if seen.all() else f"{what} (grey: hardly ever)"
        add_colorbar(mappable, panels.axes, what, scale=scale)
    return panels.result()
