"""What is done on a board: the actions of a policy as arrows, and paths."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from planners.boards import Plane
from planners.plotting.canvas import PATH_COLOR, WALL_COLOR, seamed
from planners.plotting.marks import draw_start
from planners.plotting.panels import MOST_ARROWS, Panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Of actions: less likely ones have no arrow.
_LEAST_CHANCE = 0.02


def draw_arrows(panels: Panels, policy: NDArray[Any]) -> None:
    """Draw the moves within a plane as arrows, those out of it as signs.

    Parameters
    ----------
    panels : Panels
    policy : ndarray of int, shape (S,), or of float, shape (S, A)
        Arrows of probabilities are longer the likelier the action; others are of full length.
    """
    board = panels.board
    step = math.ceil(max(panels.nx, panels.ny) / MOST_ARROWS)
    if board.directions is None or (step > 1 and panels.has_walls):
        return
    acting = board.acting()
    if policy.ndim == 1:
        laid = board.lay(policy, 0)
        weights = np.zeros((len(laid), len(board.directions)))
        weights[np.arange(len(laid)), laid] = 1.0
    else:
        weights = board.lay(policy.astype(np.float64), 0.0)
    y, x = (index.reshape(-1) for index in np.mgrid[0 : panels.ny : step, 0 : panels.nx : step])
    for axes, plane in panels.each():
        inside = panels.cut(acting, plane)[y, x].astype(bool)
        chances = panels.cut(weights, plane)[y, x]
        arrows: list[NDArray[np.float64]] = []
        for action, direction in enumerate(board.directions):
            chance = chances[:, action]
            shown = inside & (chance > _LEAST_CHANCE)
            if not shown.any():
                continue
            flat = direction[list(plane.axes)] * ([1, 1] if board.grid.num_dims > 1 else [1, 0])
            length = float(np.hypot(*flat))
            if length == 0:
                _draw_out_of_plane(panels, axes, action, plane, x[shown], y[shown])
                continue
            moves = np.outer(np.sqrt(chance[shown]), flat / length)
            arrows.append(np.column_stack([x[shown], y[shown], moves]))
        if not arrows:
            continue
        axes.quiver(
            *np.concatenate(arrows).T,
            pivot="mid" if policy.ndim == 1 else "tail",
            angles="xy",
            scale_units="xy",
            scale=(1.6 if policy.ndim == 1 else 2.1) / step,
            width=(0.1 if policy.ndim == 1 else 0.07) * step,
            units="xy",
            headwidth=3.2,
            headlength=3.2,
            headaxislength=3.0,
            color=WALL_COLOR,
            path_effects=seamed(1.0, opacity=0.6),
            zorder=4,
        )


def _draw_out_of_plane(
    panels: Panels, axes: Axes, action: int, plane: Plane, x: NDArray[Any], y: NDArray[Any]
) -> None:
    """Draw the sign of an action that does not move within the plane."""
    board = panels.board
    assert board.directions is not None
    out = np.delete(board.directions[action], list({*plane.axes})).sum()
    marker = "$+$" if out > 0 else "$-$" if out < 0 else "."
    size = 5.0
    name = board.action_names[action] if board.action_names else ""
    if out == 0 and name and not name.isdigit():
        initials = "".join(word[0] for word in name.split())
        marker = f"$\\mathrm{{{initials.upper()}}}$"
        size = float(np.clip(0.22 * panels.points_per_cell(), 5.0, 12.0)) * len(initials)
    axes.plot(x, y, marker=marker, color="black", markersize=size, linestyle="none", zorder=4)


def draw_path(
    panels: Panels,
    path: NDArray[np.int64],
    *,
    color: str = PATH_COLOR,
    label: str | None = None,
    share: float = 1.0,
) -> bool:
    """Draw what of a path lies in a plane, below the arrows, and a disc where it starts.

    Return whether anything of it lies in one of the planes.

    Parameters
    ----------
    panels : Panels
    path : ndarray of int
        States in order.
    color : str
    label : str, optional
        For a key.
    share : float
        Of the usual width, so that of two paths that go the same way both are seen.
    """
    points = panels.board.positions(np.asarray(path))
    cell = panels.points_per_cell()
    # Wide enough to be seen beside an arrow, narrow enough to leave the colour of the cell.
    width = share * panels.zoom * float(np.clip(0.4 * cell, 1.6, 7.0))
    seen = False
    for axes, plane in panels.each():
        flat = points[:, list(plane.axes)].copy()
        if panels.board.grid.num_dims == 1:
            flat[:, 1] = np.where(np.isnan(flat[:, 0]), np.nan, 0.0)
        here = panels.holds(plane, points) & ~np.isnan(flat).any(axis=1)
        flat[~here] = np.nan  # a gap in the line
        seen |= bool(here.any())
        style: dict[str, Any] = {"solid_capstyle": "round", "solid_joinstyle": "round"}
        # A white edge keeps it apart from the colours below.
        axes.plot(
            *flat.T,
            "-",
            color="white",
            linewidth=width + max(1.4, 0.2 * width),
            zorder=3,
            **style,
        )
        axes.plot(*flat.T, "-", color=color, linewidth=width, zorder=3.1, label=label, **style)
        if here[0]:
            draw_start(axes, float(flat[0, 0]), float(flat[0, 1]), cell, zoom=panels.zoom)
    return seen
