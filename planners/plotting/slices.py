"""A board of several axes in planes through one point."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from aggmaze.checks import check_choice
from planners.boards import Plane, board_of, planes_of
from planners.plotting.canvas import (
    SCALES,
    add_colorbar,
    new_figure,
    norm_of,
    placed,
    sequential,
    set_title,
)
from planners.plotting.cells import colour_cells
from planners.plotting.given import as_axes, as_values
from planners.plotting.layouts import draw_layout
from planners.plotting.panels import Panels, columns_of
from planners.plotting.words import COST, RETURN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from planners.plotting.panels import Drawn


def plot_slices(
    source: Any,
    values: ArrayLike,
    *,
    through: tuple[int, ...] | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
    ax: Axes | Iterable[Axes] | None = None,
    title: str | None = None,
    label: str | None = None,
    scale: str = "linear",
    returns: bool = False,
) -> Drawn:
    """Draw a plane for each pair of axes, all of them through one point.

    Parameters
    ----------
    source : Layout, gymnasium.Env, or Model that has a map of two dimensions or more
    values : array_like of float, shape (S,)
    through : tuple of int, optional
        Position of the point: the goal, or the middle of cells, by default.
    pairs : sequence of pairs of int, optional
        The axes to the right and upwards of each plane; all pairs by default.
    ax, title, label, scale, returns
        As for `plot_values`; ``scale`` is "linear", "log" or "rank".

    Returns
    -------
    Axes, or ndarray of Axes

    Raises
    ------
    ValueError
        If states are nowhere or on a line, or there are no such axes.
    """
    check_choice("scale", scale, SCALES[:3])
    board = board_of(source)
    if board is None or board.grid.num_dims < 2:
        raise ValueError("slices take a map of two dimensions or more")
    array = as_values("values", values, board.num_states, "a state")
    every: list[Any] = list(itertools.combinations(range(board.grid.num_dims), 2))
    if pairs is not None:
        every = list(pairs)
    if not every or any(np.shape(pair) != (2,) for pair in every):
        raise ValueError(f"pairs must hold at least one pair of axes, such as (0, 1), got {pairs}")
    planes = [planes_of(board, pair, (), through)[0] for pair in every]
    columns = columns_of(len(planes))
    rows = math.ceil(len(planes) / columns)
    if ax is None:
        figure = new_figure(3.0 * columns + 1.4, 2.8 * rows + 0.6)
        given = [figure.add_subplot(rows, columns, k + 1) for k in range(len(planes))]
        if title and len(planes) > 1:
            figure.suptitle(title, fontsize=11)
    else:
        given = as_axes(ax, len(planes), "plane")
    label = label if label is not None else RETURN if returns else COST
    laid, missing = board.lay(array), board.missing()
    laid = -laid if returns else laid
    # One scale for all: that of what is seen.
    held = [
        board.grid.to_image(
            np.where(missing, np.nan, laid), axes=plane.axes, through=plane.through
        ).ravel()
        for plane in planes
    ]
    seen = np.concatenate(held).astype(np.float64)
    norm = norm_of(seen, scale)
    laid, note, infinite = placed(laid, missing, norm, scale)
    extend = ("min" if returns else "max") if infinite else "neither"
    cmap = sequential(low_is_light=not returns)
    for one, plane in zip(given, planes, strict=True):
        panel = Panels(board, [Plane(plane.axes, plane.through, "")], one, None)
        above = title if one is given[0] and (ax is not None or len(planes) == 1) else None
        set_title(one, "\n".join(filter(None, (above, plane.title))), 8 if len(planes) > 1 else 11)
        mappable = colour_cells(panel, laid, cmap, norm)
        draw_layout(panel, contours=False)
    mappable.set_array(seen)
    add_colorbar(mappable, given, f"{label}{note}", scale=scale, extend=extend)
    if len(given) == 1:
        return given[0]
    result = np.empty(len(given), dtype=object)
    result[:] = given
    return result
