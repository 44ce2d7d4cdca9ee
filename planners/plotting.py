"""Pictures of plans: values with policy and path, and mega-states.

Figures are plain `matplotlib.figure.Figure` objects, made without pyplot and without a display.
Two dimensions are one panel; of more, the panels are the layers along the third axis, through the
goal in all further ones.
"""

from __future__ import annotations

import math
import os
from collections.abc import Hashable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.files import atomic_file
from aggmaze.layouts.layout import Layout, open_passages
from aggmaze.models.model import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

# Beyond this many cells a side, walls and arrows are finer than pixels.
_MOST_WALLED = 200
_MOST_ARROWS = 40
# Below this many cells a side, and across walls, contour lines say nothing.
_FEWEST_CONTOURED = 8
_MOST_LAYERS = 12
# States that are drawn, those that have a label at the axis, and those in which values are written.
_MOST_DRAWN = 100_000
_MOST_TICKS = 40
_MOST_WRITTEN = 400
_MOST_LETTERS = 16
_PATH = "#d62728"
_WALL = "#20242c"
_INFINITE = "#9aa0a6"


def plot_plan(
    layout: Layout,
    values: ArrayLike,
    policy: NDArray[np.int64] | None = None,
    path: NDArray[np.int64] | None = None,
    *,
    title: str = "",
    label: str = "cost-to-go",
) -> Figure:
    """Draw costs-to-go as colours, the policy as arrows, and a path.

    Parameters
    ----------
    layout : Layout
    values : array_like of float, shape (S,)
        Those of blocked positions are not looked at.  Infinite ones have a colour of their own.
        Of a `FiniteHorizon` it is one step that is drawn: ``values[t]``, ``policy[t]``.
    policy : ndarray of int, shape (S,), optional
        Arrows are thinned out on large terrains and left out in large mazes.
    path : ndarray of int, optional
        States in order.
    title : str
    label : str
        What the values are, beside the scale of colours.
    """
    array = np.asarray(values, dtype=np.float64)
    num_states = math.prod(layout.grid.shape)
    if array.shape != (num_states,):
        hint = "; of a finite horizon draw one step, values[t]" if array.ndim == 2 else ""
        raise ValueError(
            f"values must have shape ({num_states},), one a position, got {array.shape}{hint}"
        )
    shown = array[layout.free()]
    infinite, shown = np.isposinf(array), shown[np.isfinite(shown)]
    low, high = (float(shown.min()), float(shown.max())) if len(shown) else (0.0, 0.0)
    # Matplotlib takes what is infinite for missing, as walls are.
    array = np.where(infinite, high + max(1.0, abs(high)), array)
    figure, panels = _panels(layout, title)
    colours = _colours().with_extremes(bad=_WALL, over=_INFINITE)
    image = None
    for axes, through in panels:
        image = axes.imshow(
            _cells(layout, array, through),
            cmap=colours,
            vmin=low,
            vmax=high,
            extent=_extent(layout),
            interpolation="nearest",
        )
        _draw_layout(axes, layout, through)
        if policy is not None:
            _draw_policy(axes, layout, policy, through)
        if path is not None:
            _draw_path(axes, layout, path, through)
    assert image is not None
    bar = figure.colorbar(
        image,
        ax=[axes for axes, _ in panels],
        shrink=0.85,
        extend="max" if infinite.any() else "neither",
    )
    bar.set_label(f"{label} (grey: without limit)" if infinite.any() else label)
    return figure


def plot_megastates(layout: Layout, labels: NDArray[np.int32], *, title: str = "") -> Figure:
    """Draw which states are grouped into one mega-state, neighbours in value told apart by colour.

    Parameters
    ----------
    layout : Layout
    labels : ndarray of int, shape (S,)
        Mega-state of each state, in order of value.
    title : str
    """
    figure, panels = _panels(layout, title)
    from matplotlib import colormaps

    for axes, through in panels:
        axes.imshow(
            # Twenty colours in turn: bins next to each other in value differ.
            _cells(layout, labels % 20, through),
            cmap=_with_solid_walls(colormaps["tab20"]),
            vmin=-0.5,
            vmax=19.5,
            extent=_extent(layout),
            interpolation="nearest",
        )
        _draw_layout(axes, layout, through)
    return figure


def plot_values(
    model: Model,
    values: ArrayLike,
    policy: NDArray[np.int64] | None = None,
    *,
    title: str = "",
    label: str = "cost-to-go",
) -> Figure:
    """Draw the values of any model: on a map where states are named by two integers, else as bars.

    Parameters
    ----------
    model : TabularMDP, MoveMDP or EventMDP
        Its ``state_names`` and ``action_names`` are what is written; numbers where it has none.
    values : array_like of float, shape (S,)
        Of the states that are listed; of a `FiniteHorizon` one step, ``values[t]``.
    policy : ndarray of int, shape (S,), optional
        Its actions are written in the states that are not terminal, where there are few.
    title : str
    label : str
        What the values are.

    Raises
    ------
    ValueError
        If the shapes are others, or there are more than 100,000 states.
    """
    num_states = model.num_listed_states
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (num_states,):
        hint = "; of a finite horizon draw one step, values[t]" if array.ndim == 2 else ""
        raise ValueError(
            f"values must have shape ({num_states},), one a state, got {array.shape}{hint}"
        )
    if policy is not None and np.shape(policy) != (num_states,):
        raise ValueError(f"policy must have shape ({num_states},), got {np.shape(policy)}")
    if num_states > _MOST_DRAWN:
        raise ValueError(f"{num_states:,} states are more than the {_MOST_DRAWN:,} that are drawn")
    signs = [""] * num_states
    if policy is not None:
        if not (np.min(policy) >= 0 and np.max(policy) < model.num_actions):
            raise ValueError(f"policy must hold actions in [0, {model.num_actions})")
        names: Any = model.action_names or range(model.num_actions)
        signs = [
            "" if model.terminal[state] else _short(names[action])
            for state, action in enumerate(np.asarray(policy).tolist())
        ]
    cells = _named_cells(model.state_names)
    draw = _draw_bars if cells is None else partial(_draw_map, cells)
    return draw(model, array, signs, title, label)


def _named_cells(names: tuple[Hashable, ...] | None) -> NDArray[np.int64] | None:
    """Return the coordinates that states are named by, shape (S, 2); None if they are not."""
    if names is None or not all(
        type(name) is tuple and len(name) == 2 and all(type(part) is int for part in name)
        for name in names
    ):
        return None
    parts: list[Any] = list(names)
    if max(abs(part) for name in parts for part in name) > _MOST_DRAWN:
        return None
    cells = np.array(parts, dtype=np.int64)
    sides = cells.max(axis=0) - cells.min(axis=0) + 1
    # Names that are far apart are no map.
    return cells if math.prod(sides.tolist()) <= _MOST_DRAWN else None


def _draw_map(
    cells: NDArray[np.int64],
    model: Model,
    values: NDArray[np.float64],
    signs: list[str],
    title: str,
    label: str,
) -> Figure:
    """Draw values where their states are, x to the right and y upwards."""
    check_matplotlib()
    from matplotlib.figure import Figure

    low, high = cells.min(axis=0), cells.max(axis=0)
    nx, ny = (high - low + 1).tolist()
    picture = np.full((ny, nx), np.nan)
    x, y = (cells - low).T
    picture[y, x] = np.where(np.isfinite(values), values, np.nan)
    scale = min(1.1, 9.0 / max(nx, ny))
    figure = Figure(figsize=(nx * scale + 1.6, ny * scale + 0.8), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(
        np.ma.masked_array(picture, np.isnan(picture)),
        origin="lower",
        cmap=_with_solid_walls(_colours()),
        extent=(low[0] - 0.5, high[0] + 0.5, low[1] - 0.5, high[1] + 0.5),
        interpolation="nearest",
    )
    if nx <= _MOST_TICKS:
        axes.set_xticks(range(int(low[0]), int(high[0]) + 1))
    if ny <= _MOST_TICKS:
        axes.set_yticks(range(int(low[1]), int(high[1]) + 1))
    if len(cells) <= _MOST_WRITTEN:
        for (x, y), value, sign in zip(cells.tolist(), values.tolist(), signs, strict=True):
            # 0.0 added, since -0 reads oddly.
            text = f"{value + 0.0:.3g}\n{sign}" if sign else f"{value + 0.0:.3g}"
            axes.text(x, y, text, ha="center", va="center", fontsize=8, color="black")
    figure.colorbar(image, ax=axes, shrink=0.85).set_label(label)
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def _draw_bars(
    model: Model, values: NDArray[np.float64], signs: list[str], title: str, label: str
) -> Figure:
    """Draw a bar for each state, in their order."""
    check_matplotlib()
    from matplotlib.figure import Figure

    count = len(values)
    width = min(12.0, max(3.0, 0.4 * count + 1.2))
    figure = Figure(figsize=(width, 3.6), layout="constrained")
    axes = figure.add_subplot()
    finite = np.where(np.isfinite(values), values, np.nan)
    bars = axes.bar(np.arange(count), finite, color="#3b7dd8", width=0.8 if count < 200 else 1.0)
    if count <= _MOST_TICKS:
        names = model.state_names or tuple(range(count))
        slanted = max(len(_short(name)) for name in names) * count > 60
        axes.set_xticks(
            range(count),
            [_short(name) for name in names],
            rotation=45 if slanted else 0,
            ha="right" if slanted else "center",
        )
        axes.bar_label(bars, labels=signs, padding=2, fontsize=8)
    axes.set_xlabel("state")
    axes.set_ylabel(label)
    axes.margins(x=0.01, y=0.12)
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def _short(name: Hashable) -> str:
    """Return a name as a picture has room for it, free of matplotlib's signs for formulas."""
    text = str(name)
    text = text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}…"
    return text.replace("$", r"\$")


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a file, whole or not at all.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    path : path
        Ends in .png, .pdf or .svg.

    Raises
    ------
    ValueError
        If it does not.
    """
    kind = figure_format(path)
    with atomic_file(path) as file:
        figure.savefig(file, format=kind, dpi=150)


def figure_format(path: str | os.PathLike[str]) -> str:
    """Return the format that a file name asks for.

    Raises
    ------
    ValueError
        If it is none of png, pdf and svg.
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in ("png", "pdf", "svg"):
        raise ValueError(f"a picture must be .png, .pdf or .svg, got {os.fspath(path)!r}")
    return kind


def check_matplotlib() -> None:
    """Refuse to go on where matplotlib is missing, and say how to install it.

    Raises
    ------
    ModuleNotFoundError
    """
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            'pictures need matplotlib: pip install "aggmaze[plots]"'
        ) from None


Through = tuple[int, ...]


def _panels(layout: Layout, title: str) -> tuple[Figure, list[tuple[Axes, Through]]]:
    """Make a figure, and for each panel its axes and the point that its plane goes through."""
    check_matplotlib()
    from matplotlib.figure import Figure

    grid = layout.grid
    goal = tuple(int(x) for x in grid.coords(layout.goal))
    layers = [goal]
    if grid.num_dims > 2:
        depth = grid.shape[2]
        shown = np.unique(np.linspace(0, depth - 1, min(depth, _MOST_LAYERS)).round().astype(int))
        layers = [(*goal[:2], int(z), *goal[3:]) for z in shown]
    columns = min(len(layers), math.ceil(math.sqrt(len(layers) * 1.5)))
    rows = math.ceil(len(layers) / columns)
    nx, ny = (*grid.shape, 1)[:2]
    side = 6.0 if len(layers) == 1 else 2.6
    scale = side / max(nx, ny)
    width = columns * max(1.2, nx * scale) + 1.4
    height = rows * max(1.0, ny * scale) + 0.6
    figure = Figure(figsize=(width, height), layout="constrained")
    panels = []
    for index, through in enumerate(layers):
        axes = figure.add_subplot(rows, columns, index + 1)
        axes.set_xticks([])
        axes.set_yticks([])
        if len(layers) > 1:
            axes.set_title(f"axis 2 at {through[2]}", fontsize=9)
        panels.append((axes, through))
    if title:
        figure.suptitle(title, fontsize=11)
    return figure, panels


def _colours() -> Colormap:
    """Return viridis, safe for the colour-blind, without its dark end that would hide walls."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return _with_solid_walls(ListedColormap(colormaps["viridis"](np.linspace(1.0, 0.32, 256))))


def _with_solid_walls(colours: Colormap) -> Colormap:
    """Return the colours with that of walls for blocked cells."""
    return colours.with_extremes(bad=_WALL)


def _extent(layout: Layout) -> tuple[float, float, float, float]:
    nx, ny = (*layout.grid.shape, 1)[:2]
    return (-0.5, nx - 0.5, -0.5, ny - 0.5)


def _cells(layout: Layout, values: NDArray[Any], through: Through) -> NDArray[Any]:
    """Return the values of a plane as rows, top row first; those of blocked cells are masked."""
    cells = layout.grid.to_image(values, through=through)
    if layout.blocked is None:
        return cells
    blocked = layout.grid.to_image(layout.blocked, through=through).astype(bool)
    return np.ma.masked_array(cells, blocked)


def _draw_layout(axes: Axes, layout: Layout, through: Through) -> None:
    """Draw walls between free cells, contour lines of the terrain, and the goal."""
    from matplotlib.collections import LineCollection

    nx, ny = (*layout.grid.shape, 1)[:2]
    if layout.heights is not None and layout.num_walls == 0 and min(nx, ny) >= _FEWEST_CONTOURED:
        heights = _cells(layout, layout.heights, through)[::-1]
        axes.contour(heights, levels=8, colors="black", linewidths=0.4, alpha=0.45)
    if layout.num_walls > 0 and max(nx, ny) <= _MOST_WALLED:
        width = 2.0 if max(nx, ny) <= 30 else 0.6
        walls = open_passages(layout.grid, layout.blocked) & ~layout.passages
        segments = []
        for axis in range(min(2, layout.grid.num_dims)):
            y, x = np.nonzero(layout.grid.to_image(walls[:, axis], through=through)[::-1])
            if axis == 0:
                ends = (x + 0.5, y - 0.5, x + 0.5, y + 0.5)
            else:
                ends = (x - 0.5, y + 0.5, x + 0.5, y + 0.5)
            segments.append(np.stack(ends, axis=1).reshape(-1, 2, 2))
        axes.add_collection(
            LineCollection(
                list(np.concatenate(segments)),
                colors=_WALL,
                linewidths=width,
                capstyle="projecting",
            )
        )
        for border in axes.spines.values():
            border.set(linewidth=width, color=_WALL)
    goal = layout.grid.coords(layout.goal)
    if tuple(goal[2:]) == through[2:]:
        x, y = (*goal, 0)[:2]
        axes.plot(
            x,
            y,
            "*",
            color="#ffd400",
            markeredgecolor="black",
            markersize=13,
            zorder=6,
            clip_on=False,
        )


def _draw_policy(axes: Axes, layout: Layout, policy: NDArray[np.int64], through: Through) -> None:
    """Draw the moves within a plane as arrows, those out of it as signs."""
    nx, ny = (*layout.grid.shape, 1)[:2]
    step = math.ceil(max(nx, ny) / _MOST_ARROWS)
    if step > 1 and layout.heights is None:
        return
    acting = layout.free()
    acting[layout.goal] = False
    actions, inside = (layout.grid.to_image(of, through=through)[::-1] for of in (policy, acting))
    y, x = (index.reshape(-1) for index in np.mgrid[0:ny:step, 0:nx:step])
    chosen, inside = actions[y, x], inside[y, x].astype(bool)
    axis, sign = chosen // 2, 2 * (chosen % 2) - 1
    for within, dx, dy in ((axis == 0, sign, 0 * sign), (axis == 1, 0 * sign, sign)):
        shown = within & inside
        axes.quiver(
            x[shown],
            y[shown],
            dx[shown],
            dy[shown],
            pivot="mid",
            angles="xy",
            scale_units="xy",
            scale=1.6 / step,
            width=0.1 * step,
            units="xy",
            headwidth=3.2,
            headlength=3.2,
            headaxislength=3.0,
            color=_WALL,
            zorder=4,
        )
    for marker, direction in (("$+$", 1), ("$-$", -1)):
        shown = (axis >= 2) & (sign == direction) & inside
        axes.plot(
            x[shown],
            y[shown],
            marker=marker,
            color="black",
            markersize=5,
            linestyle="none",
            zorder=4,
        )


def _draw_path(axes: Axes, layout: Layout, path: NDArray[np.int64], through: Through) -> None:
    """Draw what of a path lies in a plane, and where it starts."""
    coords = layout.grid.coords(path).astype(float)
    here = (coords[:, 2:] == through[2:]).all(axis=1)
    flat = np.column_stack([coords, np.zeros(len(coords))])[:, :2]
    flat[~here] = np.nan  # a gap in the line
    axes.plot(flat[:, 0], flat[:, 1], "-", color=_PATH, linewidth=2.2, zorder=5)
    if here[0]:
        axes.plot(
            flat[0, 0],
            flat[0, 1],
            "o",
            color=_PATH,
            markeredgecolor="black",
            markersize=8,
            zorder=6,
        )
