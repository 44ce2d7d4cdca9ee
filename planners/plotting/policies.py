"""Policies as arrows or colours, and the paths that they take."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planners.boards import Board, Plane, board_of, model_of, planes_of
from planners.plotting.bars import label_actions
from planners.plotting.canvas import (
    CURVES,
    PATH_COLOR,
    WALL_COLOR,
    new_figure,
    sequential,
    set_title,
)
from planners.plotting.cells import colour_cells, colour_floor
from planners.plotting.given import as_policy, likeliest, one_axes, path_of_board
from planners.plotting.layouts import draw_layout
from planners.plotting.moves import draw_arrows, draw_path
from planners.plotting.panels import MOST_ARROWS, Panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from planners.plotting.panels import Drawn

# Beyond so many states actions are drawn as pixels.
_MOST_DISCS = 400


def plot_policy(
    source: Any,
    policy: ArrayLike,
    path: ArrayLike | None = None,
    *,
    ax: Axes | Iterable[Axes] | None = None,
    title: str | None = None,
    axes: tuple[int, int] | None = None,
    along: int | tuple[int, ...] | None = None,
    through: tuple[int, ...] | None = None,
) -> Drawn:
    """Draw a policy: as arrows up to 40 cells a side, beyond and in cells as colours with a key.

    Parameters
    ----------
    source : Layout, gymnasium.Env, Model, or what else `planners.as_model` takes
    policy : array_like of int, shape (S,), or of float, shape (S, A)
        Actions, or the probability of each action; of the latter the likeliest has the colour.
    path : array_like of int, optional
        States in order.
    ax, title, axes, along, through
        As for `plot_values`.

    Returns
    -------
    Axes, or ndarray of Axes

    Raises
    ------
    ValueError
        If the shape is another, or an action does not exist.
    """
    board = board_of(source)
    if board is None:
        model = model_of(source)
        assert model is not None
        actions = likeliest(as_policy(policy, model.num_listed_states, model.num_actions))
        if path is not None:
            raise ValueError("a path is drawn on a map, and the states of this model are on none")
        one = one_axes(ax)
        if one is None:
            height = min(9.0, max(2.8, 0.2 * model.num_actions + 1.2))
            width = min(12.0, max(4.0, 0.3 * len(actions) + 2))
            one = new_figure(width, height).add_subplot()
        one.plot(actions, "o" if len(actions) <= _MOST_DISCS else ",", color=CURVES[0])
        label_actions(one, model)
        # Those too that are never taken.
        pad = 0.5 + 0.02 * model.num_actions
        one.set(xlabel="state", ylabel="action", ylim=(-pad, model.num_actions - 1 + pad))
        set_title(one, title)
        return one
    chosen = as_policy(policy, board.num_states, len(board.action_names))
    planes = planes_of(board, axes, along, through)
    longest = max(board.grid.shape[axis] for axis in planes[0].axes)
    arrows = board.directions is not None and longest <= MOST_ARROWS
    panels = Panels(board, planes, ax, title, keyed=not arrows)
    if arrows:
        colour_floor(panels)
        draw_layout(panels)
        if path is not None:
            draw_path(panels, path_of_board(path, board))
        draw_arrows(panels, chosen)
        return panels.result()
    from matplotlib.colors import ListedColormap, Normalize

    actions = likeliest(chosen)
    laid = np.where(board.acting(), board.lay(actions, 0), np.nan)
    colors = _action_colors(board)
    cmap = ListedColormap(colors).with_extremes(bad=WALL_COLOR)
    colour_cells(panels, laid, cmap, Normalize(-0.5, len(colors) - 0.5), borders=False)
    draw_layout(panels, contours=False)
    if path is not None:
        draw_path(panels, path_of_board(path, board), color="black")
    _add_key(panels, {name: colors[a] for a, name in enumerate(board.action_names)})
    return panels.result()


def _action_colors(board: Board) -> list[str]:
    """Return a colour an action: Paul Tol's bright ones, or of many a sequence."""
    from matplotlib.colors import to_hex

    count = max(len(board.action_names), 1)
    if count <= len(CURVES):
        return list(CURVES[:count])
    return [to_hex(color) for color in sequential()(np.linspace(0, 1, count))]


def _add_key(panels: Panels, colors: Mapping[str, str]) -> None:
    from matplotlib.patches import Patch

    patches = [Patch(color=color, label=name) for name, color in colors.items()]
    size = 10 * panels.zoom
    panels.axes[-1].legend(handles=patches, title="action", title_fontsize=size, **_beside(panels))


def _beside(panels: Panels) -> dict[str, Any]:
    """Return how a key stands to the right of a panel."""
    return {
        "loc": "upper left",
        "bbox_to_anchor": (1.02, 1.0),
        "borderaxespad": 0.0,
        "frameon": False,
        "fontsize": 10 * panels.zoom,
    }


def plot_path(
    source: Any,
    paths: ArrayLike | Mapping[str, ArrayLike],
    *,
    ax: Axes | Iterable[Axes] | None = None,
    title: str | None = None,
    axes: tuple[int, int] | None = None,
    along: int | tuple[int, ...] | None = None,
    through: tuple[int, ...] | None = None,
) -> Drawn:
    """Draw where one goes: one path, or several with a key.

    Parameters
    ----------
    source : Layout, gymnasium.Env, or Model that has a map
    paths : array_like of int, or mapping of str to such arrays
        States in order, as `planners.policies.greedy_path` returns them; several with their names.
    ax, title, axes, along, through
        As for `plot_values`; a single plane goes by default through most of the paths.

    Returns
    -------
    Axes, or ndarray of Axes

    Raises
    ------
    ValueError
        If states are nowhere, or a path holds something else than states.
    """
    board = board_of(source)
    if board is None:
        raise ValueError("a path is drawn on a map, and the states of this model are on none")
    given: Any = paths if isinstance(paths, Mapping) else {"": paths}
    named = {name: path_of_board(path, board) for name, path in given.items()}
    planes = planes_of(board, axes, along, through)
    if through is None and len(planes) == 1 and named:
        most = _most_crossed(board, planes[0], np.concatenate(list(named.values())))
        planes = planes_of(board, axes, along, most)
    panels = Panels(board, planes, ax, title, keyed=isinstance(paths, Mapping))
    colour_floor(panels)
    draw_layout(panels)
    nowhere: list[str] = []
    colors = itertools.cycle(CURVES if isinstance(paths, Mapping) else (PATH_COLOR,))
    for place, ((name, found), color) in enumerate(zip(named.items(), colors, strict=False)):
        steps = len(found) - 1
        label = f"{name}: {steps:,} steps" if name else None
        share = 1.0 - 0.65 * place / max(1, len(named) - 1)
        if not draw_path(panels, found, color=color, label=label, share=share):
            nowhere.append(name)
    if nowhere:
        # Of cells, or more than two dimensions: an empty picture would be taken for a failure.
        words = ", ".join(filter(None, nowhere)) or "the path"
        below = panels.axes[0].get_xlabel()
        panels.axes[0].set_xlabel(f"{below}\nnot in this plane: {words} (through= moves it)")
    if isinstance(paths, Mapping) and named:
        panels.axes[0].legend(**_beside(panels))
    return panels.result()


def _most_crossed(board: Board, plane: Plane, states: NDArray[np.int64]) -> tuple[int, ...]:
    """Return a point through which a plane parallel to another has most of the states in it."""
    through = np.array(plane.through)
    others = np.setdiff1d(np.arange(board.grid.num_dims), plane.axes)
    points = board.positions(states)
    points = points[~np.isnan(points).any(axis=1)]
    if len(points):
        cuts, counts = np.unique(points[:, others].astype(int), axis=0, return_counts=True)
        through[others] = cuts[counts.argmax()]
    return tuple(through.tolist())
