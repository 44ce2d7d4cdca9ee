"""Pictures of what a solve comes to: values, Q-values, policies, paths, mega-states, occupancy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_choice
from aggmaze.layouts.layout import Layout
from aggmaze.models.model import Model
from planners.boards import Board, Plane, board_of, model_of, planes_of
from planners.objective import Objective
from planners.occupancy import occupancy
from planners.plotting.canvas import (
    CURVES,
    FLOOR_COLOR,
    INK_COLOR,
    PATH_COLOR,
    SCALES,
    WALL_COLOR,
    add_colorbar,
    as_values,
    in_digits,
    label_bar,
    new_figure,
    norm_of,
    sequential,
    set_title,
)
from planners.plotting.models import COST, RETURN, check_policy, draw_bars, short
from planners.plotting.panels import MOST_ARROWS, Panels, columns_of
from planners.policies import steps_to_terminal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    Drawn = Axes | NDArray[np.object_]

_MOST_WRITTEN = 400
# Of the largest occupancy: less is "hardly ever"; more times the least takes a logarithm.
_LEAST_SEEN, _LARGE_SPREAD = 1e-6, 20
# Mega-states that the colour bar still tells apart, and those whose ends are written beside it.
_MOST_BINS, _MOST_ENDS = 128, 14
# Of the length of a colour bar: nearer to each other, two numbers would overlap.
_LEAST_ROOM = 0.035
# Where more gaps than this share lie in the lowest tenth, a linear scale is all one colour.
_MOST_LOW = 0.9


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
        signs = _signs(model, check_policy(policy, model))
        if scale == "distance":
            raise ValueError("scale='distance' is for states that are on a map, and these are not")
        one = _one_axes(ax)
        drawn = draw_bars(model, -array if returns else array, signs, one, title, label)
        if scale == "log":
            drawn.set_yscale("log")
        return drawn
    what = "a position" if isinstance(source, Layout) else "a state"
    array = as_values("values", values, board.num_states, what)
    chosen = _checked_policy(policy, board)
    if scale == "distance":
        array, label, returns = _distances(source, board), "fewest steps to an end", False
    panels = Panels(board, planes_of(board, axes, along, through), ax, title, walls=walls)
    mappable, extend, label = _colour_values(panels, array, scale, returns, label)
    panels.draw_layout(contours=contours)
    if path is not None:
        panels.draw_path(_checked_path(path, board))
    if board.written and board.num_states <= _MOST_WRITTEN and len(panels.axes) == 1:
        _write(panels, source, -array if returns else array, chosen)
    elif chosen is not None:
        panels.draw_policy(chosen)
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
    infinite = np.isposinf(laid) & ~panels.missing
    laid = np.where(np.isneginf(laid), np.nan, -laid if returns else laid)
    shown = laid[~panels.missing & np.isfinite(laid)]
    norm = norm_of(shown, "linear" if scale == "distance" else scale)
    # Matplotlib takes what is infinite for missing, as walls are.
    assert norm.vmin is not None
    assert norm.vmax is not None
    far = max(1.0, abs(norm.vmax), abs(norm.vmin))
    laid = np.where(infinite, norm.vmin - far if returns else norm.vmax + far, laid)
    if scale == "log":
        laid = np.where(laid <= 0, np.nan, laid)
    extend = "neither"
    if infinite.any():
        extend, label = "min" if returns else "max", f"{label} (grey: without limit)"
    cmap = sequential(low_is_light=not returns)
    return panels.colour(laid, cmap, norm), extend, label


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
    table = np.asarray(Q, dtype=np.float64)
    board = board_of(source)
    model = None if isinstance(source, Layout | Board) else model_of(source)
    count = board.num_states if board is not None else _states(model)
    known = model.num_actions if model is not None else len(_known(board).action_names)
    if table.shape != (count, known):
        raise ValueError(f"Q must have shape ({count}, {known}), got {table.shape}")
    table = np.where(np.isfinite(table), -table if returns else table, np.nan)
    norm = norm_of(table, scale)
    cmap = sequential(low_is_light=not returns)
    if board is None:
        assert model is not None
        return _draw_table(model, table, _one_axes(ax), title, label, cmap, norm, scale)
    names = board.action_names
    cut = planes_of(board, along=(), through=through)
    triangles = _triangles(board, cut[0])
    if triangles is not None:
        panels = Panels(board, cut, ax, title)
        mappable = _draw_triangles(panels, table, triangles, cmap, norm)
        panels.draw_layout(contours=False)
    else:
        planes = [
            Plane(cut[0].axes, cut[0].through, names[action] or f"action {action}")
            for action in range(known)
        ]
        panels = Panels(board, planes, ax, title)
        for action, one in enumerate(panels.axes):
            single = Panels(board, [Plane(cut[0].axes, cut[0].through, "")], one, None)
            one.set_title(f"action {names[action]}", fontsize=9)
            mappable = single.colour(board.lay(table[:, action]), cmap, norm)
            single.draw_layout(contours=False)
    add_colorbar(mappable, panels.axes, label, scale=scale)
    return panels.result()


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
        actions = check_policy(policy, model)
        assert actions is not None
        one = _one_axes(ax)
        if one is None:
            one = new_figure(min(12.0, max(4.0, 0.3 * len(actions) + 2)), 2.8).add_subplot()
        one.plot(actions, "o" if len(actions) <= _MOST_WRITTEN else ",", color=CURVES[0])
        names: Any = model.action_names or range(model.num_actions)
        one.set_yticks(range(model.num_actions), [short(name) for name in names])
        one.set(xlabel="state", ylabel="action")
        one.margins(y=0.15)
        set_title(one, title)
        return one
    chosen = _checked_policy(policy, board)
    assert chosen is not None
    from matplotlib.colors import ListedColormap, Normalize

    panels = Panels(board, planes_of(board, axes, along, through), ax, title)

    if board.directions is not None and max(panels.nx, panels.ny) <= MOST_ARROWS:
        plain = np.zeros(board.grid.num_states)
        floor = ListedColormap([FLOOR_COLOR]).with_extremes(bad=WALL_COLOR)
        panels.colour(plain, floor, Normalize(0, 1))
        panels.draw_layout()
        if path is not None:
            panels.draw_path(_checked_path(path, board))
        panels.draw_policy(chosen)
        return panels.result()
    actions = chosen if chosen.ndim == 1 else chosen.argmax(axis=1)
    laid = np.where(board.acting(), board.lay(actions, 0), np.nan)
    colors = _action_colors(board)
    cmap = ListedColormap(colors).with_extremes(bad=WALL_COLOR)
    panels.colour(laid, cmap, Normalize(-0.5, len(colors) - 0.5), borders=False)
    panels.draw_layout(contours=False)
    if path is not None:
        panels.draw_path(_checked_path(path, board), color="black")
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
    panels.axes[-1].legend(
        handles=patches,
        title="action",
        loc="upper left",
        bbox_to_anchor=(1.02, 1.0),
        borderaxespad=0.0,
        frameon=False,
        fontsize=10 * panels.zoom,
        title_fontsize=10 * panels.zoom,
    )


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
        As for `plot_values`.

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
    named: Any = paths if isinstance(paths, Mapping) else {"": paths}
    from matplotlib.colors import ListedColormap, Normalize

    panels = Panels(board, planes_of(board, axes, along, through), ax, title)

    floor = ListedColormap([FLOOR_COLOR]).with_extremes(bad=WALL_COLOR)
    panels.colour(np.zeros(board.grid.num_states), floor, Normalize(0, 1))
    panels.draw_layout()
    colors = itertools.cycle(CURVES if isinstance(paths, Mapping) else (PATH_COLOR,))
    for (name, path), color in zip(named.items(), colors, strict=False):
        found = _checked_path(path, board)
        steps = len(found) - 1
        label = f"{name}: {steps:,} steps" if name else None
        panels.draw_path(found, color=color, label=label)
    if isinstance(paths, Mapping) and named:
        panels.axes[0].legend(
            loc="upper left",
            bbox_to_anchor=(1.02, 1.0),
            borderaxespad=0.0,
            frameon=False,
            fontsize=10 * panels.zoom,
        )
    return panels.result()


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
    count = board.num_states if board is not None else _states(model)
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
            model, heights, None, _one_axes(ax), title, what, colors=colors[rank[place]]
        )
    panels = Panels(board, planes_of(board, axes, along, through), ax, title, walls=walls)
    laid = board.lay(rank[place].astype(np.float64))
    norm = Normalize(-0.5, max(len(names), 1) - 0.5)
    panels.colour(laid, cmap, norm, borders=True)
    panels.draw_layout(contours=False)
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
        label_bar(bar, what)
        bar.minorticks_off()
        if bar.dividers is not None:
            bar.dividers.set(color="white", linewidth=0.8)
        if values is not None:
            if len(names) <= _MOST_ENDS:
                ends = _apart(edges)
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


def _apart(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ends of bins between which a number has room, the first and the last for sure."""
    room = _LEAST_ROOM * (edges[-1] - edges[0])
    kept = [edges[0]]
    for edge in edges[1:-1]:
        if edge - kept[-1] >= room and edges[-1] - edge >= room:
            kept.append(edge)
    return np.array([*kept, edges[-1]])


def _inside(given: Any, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    ticks = np.asarray(given, dtype=np.float64)
    return ticks[(ticks >= edges[0]) & (ticks <= edges[-1])]


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
    table = np.asarray(Q, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 1:
        hint = "; of a finite horizon take one step, Q[t]" if table.ndim == 3 else ""
        raise ValueError(f"Q must have shape (S, A), got {table.shape}{hint}")
    if table.shape[1] == 1:
        return np.full(len(table), np.inf)
    least = np.partition(table, 1, axis=1)[:, :2]
    with np.errstate(invalid="ignore"):
        gaps = least[:, 1] - least[:, 0]
    return np.where(np.isposinf(least[:, 1]), np.inf, gaps)


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
    what = label or "expected visits an episode, discounted"
    board = board_of(source)
    if board is None:
        return draw_bars(model, visits, None, _one_axes(ax), title, what)
    # Less would take most of the scale.
    seen = visits > _LEAST_SEEN * largest
    if scale is None:
        scale = "log" if largest > _LARGE_SPREAD * visits[seen].min() else "linear"
    panels = Panels(board, planes_of(board, axes, along, through), ax, title, walls=walls)
    norm = norm_of(visits[seen], scale)
    laid = board.lay(np.where(seen, visits, 2 * largest + 1.0))
    mappable = panels.colour(laid, sequential(), norm, pooled=True)
    panels.draw_layout(contours=contours)
    if colorbar:
        what = what if seen.all() else f"{what} (grey: hardly ever)"
        add_colorbar(mappable, panels.axes, what, scale=scale)
    return panels.result()


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
    every = list(itertools.combinations(range(board.grid.num_dims), 2) if pairs is None else pairs)
    if not every:
        raise ValueError("pairs must hold at least one pair of axes")
    planes = [planes_of(board, pair, (), through)[0] for pair in every]
    columns = columns_of(len(planes))
    rows = math.ceil(len(planes) / columns)
    if ax is None:
        figure = new_figure(3.0 * columns + 1.4, 2.8 * rows + 0.6)
        given = [figure.add_subplot(rows, columns, k + 1) for k in range(len(planes))]
        if title and len(planes) > 1:
            figure.suptitle(title, fontsize=11)
    else:
        given = list(np.asarray(ax, dtype=object).flat)
        if len(given) != len(planes):
            raise ValueError(f"ax must hold {len(planes)} Axes, one a plane, got {len(given)}")
    label = label if label is not None else RETURN if returns else COST
    laid = board.lay(array)
    # One scale for all: that of what is seen.
    held = [
        board.grid.to_image(
            np.where(board.missing(), np.nan, laid), axes=plane.axes, through=plane.through
        ).ravel()
        for plane in planes
    ]
    seen = np.concatenate(held).astype(np.float64)
    norm = norm_of(-seen if returns else seen, scale)
    cmap = sequential(low_is_light=not returns)
    for one, plane in zip(given, planes, strict=True):
        panel = Panels(board, [Plane(plane.axes, plane.through, "")], one, None)
        above = title if one is given[0] and (ax is not None or len(planes) == 1) else None
        set_title(one, "\n".join(filter(None, (above, plane.title))), 8 if len(planes) > 1 else 11)
        numbers = laid.astype(np.float64)
        mappable = panel.colour(-numbers if returns else numbers, cmap, norm)
        panel.draw_layout(contours=False)
    mappable.set_array(seen)
    add_colorbar(mappable, given, label, scale=scale)
    if len(given) == 1:
        return given[0]
    result = np.empty(len(given), dtype=object)
    result[:] = given
    return result


def _one_axes(ax: Any) -> Any:
    """Return the one Axes that was given, or None."""
    if ax is None:
        return None
    from matplotlib.axes import Axes

    given = list(np.asarray(ax, dtype=object).flat)
    if len(given) != 1 or not isinstance(given[0], Axes):
        raise TypeError(f"ax must be one Axes here, got {type(ax).__name__}")
    return given[0]


def _states(model: Model | None) -> int:
    assert model is not None
    return model.num_listed_states


def _known(board: Board | None) -> Board:
    assert board is not None
    return board


def _checked_policy(policy: Any, board: Board) -> NDArray[Any] | None:
    """Return actions, or probabilities of actions, of all states."""
    if policy is None:
        return None
    array = np.asarray(policy)
    count, actions = board.num_states, len(board.action_names)
    if array.ndim == 2 and array.shape == (count, actions):
        return array.astype(np.float64)
    if array.shape != (count,):
        raise ValueError(
            f"policy must have shape ({count},) or ({count}, {actions}), got {array.shape}"
        )
    if not np.issubdtype(array.dtype, np.integer) or not (
        array.min() >= 0 and array.max() < actions
    ):
        raise ValueError(f"policy must hold actions in [0, {actions})")
    return array.astype(np.int64)


def _checked_path(path: Any, board: Board) -> NDArray[np.int64]:
    array = np.asarray(path)
    if array.ndim != 1 or not len(array) or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"a path must hold states in order, got {array.dtype} of {array.shape}")
    if array.min() < 0 or array.max() >= board.num_states:
        bad = array[(array < 0) | (array >= board.num_states)][0]
        raise ValueError(f"the path holds {bad}, which is not a state in [0, {board.num_states})")
    return array.astype(np.int64)


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


def _signs(model: Model, actions: NDArray[np.int64] | None) -> list[str] | None:
    """Return the name of the action of each state; nothing in terminal ones."""
    if actions is None:
        return None
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
    one = policy if policy is None or policy.ndim == 1 else policy.argmax(axis=1)
    signs = _signs(model, one) or [""] * len(values)
    # Cells are numbered by names here, and drawn by positions.
    points = panels.board.positions(np.arange(panels.board.num_states))
    size = float(np.clip(0.2 * panels.points_per_cell(), 5, 9))
    for (x, y), value, sign in zip(points[:, :2].tolist(), values.tolist(), signs, strict=True):
        # 0.0 added, since -0 reads oddly.
        text = f"{value + 0.0:.3g}\n{sign}" if sign else f"{value + 0.0:.3g}"
        panels.axes[0].text(x, y, text, ha="center", va="center", fontsize=size, color=INK_COLOR)


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
    from matplotlib.colors import ListedColormap, Normalize

    board = panels.board
    floor = ListedColormap([FLOOR_COLOR]).with_extremes(bad=WALL_COLOR)
    panels.colour(np.zeros(board.grid.num_states), floor, Normalize(0, 1))
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
        size = (min(12.0, max(4.0, 0.3 * count + 2.0)), max(2.2, 0.4 * actions + 1.4))
        ax = new_figure(*size).add_subplot()
    image = ax.imshow(table.T, cmap=cmap, norm=norm, aspect="auto", interpolation="nearest")
    names: Any = model.action_names or range(actions)
    ax.set_yticks(range(actions), [short(name) for name in names])
    if count <= MOST_ARROWS and model.state_names:
        ax.set_xticks(range(count), [short(n) for n in model.state_names], rotation=45, ha="right")
    ax.set(xlabel="state", ylabel="action")
    set_title(ax, title)
    add_colorbar(image, [ax], label, scale=scale)
    return ax
