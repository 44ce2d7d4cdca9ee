"""Values as colours, or as bars where states are nowhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_choice
from aggmaze.layouts.layout import Layout
from aggmaze.models.model import Model
from planners.boards import Board, board_of, model_of, planes_of
from planners.plotting.bars import draw_bars
from planners.plotting.canvas import INK_COLOR, SCALES, add_colorbar, norm_of, placed, sequential
from planners.plotting.cells import colour_cells
from planners.plotting.given import as_policy, as_values, likeliest, one_axes, path_of_board
from planners.plotting.layouts import draw_layout
from planners.plotting.moves import draw_arrows, draw_path
from planners.plotting.panels import Panels
from planners.plotting.words import COST, RETURN, short
from planners.policies import steps_to_terminal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from planners.plotting.panels import Drawn

_MOST_WRITTEN = 400


def plot_values(
    source: Any,
    values: ArrayLike,
    policy: ArrayLike | None = None,
    path: ArrayLike | None = None,
    *,
    ax: Axes | Iterable[Axes] | None = None,
    title: str | None = None,
    label: str | None = None,
    scale: str = "linear",
    returns: bool = False,
    axes: tuple[int, int] | None = None,
    along: int | tuple[int, ...] | None = None,
    through: tuple[int, ...] | None = None,
    walls: bool = True,
    contours: bool = True,
    colorbar: bool = True,
) -> Drawn:
    """Draw values as colours where their states are, the policy as arrows, and a path.

    Mazes, Gymnasium's grids (FrozenLake, CliffWalking, Taxi), control in cells, and models whose
    states are named by tuples of integers are maps; values of other models are bars.

    Parameters
    ----------
    source : Layout, gymnasium.Env, Model, or what else `planners.as_model` takes
        Where the states are.
    values : array_like of float, shape (S,)
        In the unit of the costs.  Those of blocked positions are not looked at; infinite ones have
        a colour of their own.  Of a `FiniteHorizon` one step: ``values[t]``.
    policy : array_like of int, shape (S,), or of float, shape (S, A), optional
        Arrows are thinned out on large open ground and left out in large mazes; `plot_policy`
        draws these as well.
    path : array_like of int, shape (L,), optional
        States in order.  It lies below the arrows, and begins with a disc.
    ax : Axes, or array of Axes, one a panel, optional
        Where to draw; a new figure by default.
    title : str, optional
    label : str, optional
        What the values are, with their unit.
    scale : {"linear", "log", "rank", "distance"}
        What colours tell.  In a large maze most values are alike: "rank" gives as many states to
        each part of the scale, and "distance" colours by the fewest steps to an end instead.
    returns : bool
        Whether to draw minus the values, which are returns, light where they are high.
    axes : pair of int, optional
        Of more than two dimensions: the axes drawn to the right and upwards, (0, 1) by default, of
        control in cells the last two.
    along : int or tuple of int, optional
        Axes along which there is a panel for each of up to 12 positions; () for one panel.  By
        default axis 2, none for cells.
    through : tuple of int, optional
        The position through which all further axes are cut: by default the goal, or the middle of
        cells.
    walls, contours : bool
        Whether to draw walls, and lines of equal height.
    colorbar : bool
        Whether to draw the key of the colours.

    Returns
    -------
    Axes, or ndarray of Axes
        An array where there is more than one panel.

    Raises
    ------
    ValueError
        If the shapes are others, or something is not one of those listed.
    TypeError
        If the source is none of these, or ``ax`` holds something else.
    ModuleNotFoundError
        Without matplotlib: it says what to install.

    Examples
    --------
    >>> import gymnasium as gym, aggmaze, planners
    >>> from planners.plotting import plot_values, save_figure
    >>> env = gym.make("FrozenLake-v1")
    >>> result = planners.solve(env, gamma=0.99)
    >>> save_figure(plot_values(env, result.values, result.policy), "lake.png")
    """
    check_choice("scale", scale, SCALES)
    board = board_of(source)
    label = label if label is not None else RETURN if returns else COST
    if board is None:
        model = model_of(source)
        assert model is not None
        array = as_values("values", values, model.num_listed_states, "a state")
        signs = None
        if policy is not None:
            chosen = as_policy(policy, model.num_listed_states, model.num_actions)
            signs = _signs(model, likeliest(chosen))
        if path is not None:
            raise ValueError("a path is drawn on a map, and the states of this model are on none")
        if scale == "distance":
            raise ValueError("scale='distance' is for states that are on a map, and these are not")
        one = one_axes(ax)
        array = -array if returns else array
        return draw_bars(model, array, signs, one, title, label, scale=scale)
    what = "a position" if isinstance(source, Layout) else "a state"
    array = as_values("values", values, board.num_states, what)
    actions = None
    if policy is not None:
        actions = as_policy(policy, board.num_states, len(board.action_names))
    if scale == "distance":
        array, label, returns = _distances(source, board), "fewest steps to an end", False
    panels = Panels(board, planes_of(board, axes, along, through), ax, title, walls=walls)
    mappable, extend, label = _colour_values(panels, array, scale, returns, label)
    draw_layout(panels, contours=contours)
    if path is not None:
        draw_path(panels, path_of_board(path, board))
    if board.written and board.num_states <= _MOST_WRITTEN and len(panels.axes) == 1:
        _write(panels, source, -array if returns else array, actions)
    elif actions is not None:
        draw_arrows(panels, actions)
    if colorbar:
        add_colorbar(mappable, panels.axes, label, scale=scale, extend=extend)
    return panels.result()


def plot_plan(
    source: Any,
    values: ArrayLike,
    policy: ArrayLike | None = None,
    path: ArrayLike | None = None,
    **options: Any,
) -> Drawn:
    """Draw costs-to-go as colours, the policy as arrows, and a path: the same as `plot_values`.

    Parameters
    ----------
    source, values, policy, path, **options
        As for `plot_values`.
    """
    return plot_values(source, values, policy, path, **options)


def _colour_values(
    panels: Panels, array: NDArray[np.float64], scale: str, returns: bool, label: str
) -> tuple[Any, str, str]:
    """Colour the cells by their values; return what a colour bar needs."""
    laid = panels.board.lay(array).astype(np.float64)
    laid = -laid if returns else laid
    norm = norm_of(laid[~panels.missing], "linear" if scale == "distance" else scale)
    laid, note, infinite = placed(laid, panels.missing, norm, scale)
    extend = ("min" if returns else "max") if infinite else "neither"
    cmap = sequential(low_is_light=not returns)
    return colour_cells(panels, laid, cmap, norm), extend, f"{label}{note}"


def _distances(source: Any, board: Board) -> NDArray[np.float64]:
    """Return the fewest steps from each state to an end; infinite where there is no way."""
    model = None if isinstance(source, Layout | Board) else model_of(source)
    if model is not None:
        steps = steps_to_terminal(model)[: model.num_listed_states].astype(np.float64)
        return np.where(steps < 0, np.inf, steps)
    layout = board.layout
    assert layout is not None
    import scipy.sparse as sp
    from scipy.sparse.csgraph import dijkstra

    here, axis = np.nonzero(layout.passages)
    there = here + np.array(layout.grid.strides)[axis]
    count = layout.grid.num_states
    graph = sp.csr_array((np.ones(len(here)), (here, there)), shape=(count, count))
    ends = np.flatnonzero(layout.is_end())
    steps = dijkstra(graph, directed=False, indices=ends, unweighted=True, min_only=True)
    return np.asarray(steps)


def _signs(model: Model, actions: NDArray[np.int64]) -> list[str]:
    """Return the name of the action of each state; nothing in terminal ones."""
    names: Any = model.action_names or range(model.num_actions)
    return [
        "" if model.terminal[state] else short(names[action])
        for state, action in enumerate(actions.tolist())
    ]


def _write(
    panels: Panels, source: Any, values: NDArray[np.float64], policy: NDArray[Any] | None
) -> None:
    """Write values, and names of actions, into the cells."""
    model = model_of(source)
    assert model is not None
    signs = [""] * len(values) if policy is None else _signs(model, likeliest(policy))
    # Cells are numbered by names here, and drawn by positions.
    points = panels.board.positions(np.arange(panels.board.num_states))
    size = float(np.clip(0.2 * panels.points_per_cell(), 5, 9))
    for (x, y), value, sign in zip(points[:, :2].tolist(), values.tolist(), signs, strict=True):
        # 0.0 added, since -0 reads oddly.
        text = f"{value + 0.0:.3g}\n{sign}" if sign else f"{value + 0.0:.3g}"
        panels.axes[0].text(x, y, text, ha="center", va="center", fontsize=size, color=INK_COLOR)
