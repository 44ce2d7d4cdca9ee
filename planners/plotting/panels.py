"""The panels of a board, and what is drawn in them: cells, walls, heights, goals, arrows, paths."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.layouts.layout import open_passages
from aggmaze.rendering.colors import SIGNED
from aggmaze.rendering.raster import GROUNDS
from planners.boards import Board, Plane
from planners.plotting.canvas import (
    AGENT_COLOR,
    CONTOUR_COLOR,
    FILE_DPI,
    GOAL_COLOR,
    INK_COLOR,
    PATH_COLOR,
    WALL_COLOR,
    new_figure,
    seamed,
    set_title,
)
from planners.plotting.edges import region_borders, sides, wall_mesh

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Up to so many cells a side walls are lines; beyond, they are pixels of the picture.
MOST_LINED = 60
# Fewer pixels a cell than this leave no room for walls beside it.
_LEAST_PIXELS = 1.75
# Up to so many cells a side there is an arrow in each; on open ground fewer stand for all.
MOST_ARROWS = 40
# Below this many cells a side, and across walls, contour lines say nothing.
_FEWEST_CONTOURED = 8
# Sides of a figure, in inches.
_SIDE, _LONGEST_SIDE, _SIDE_OF_MANY = 6.0, 13.8, 2.6
_MOST_SIGNED = 60
_MOST_POOLED = 300
# Of actions: less likely ones have no arrow.
_LEAST_CHANCE = 0.02
_STAR: dict[str, Any] = {"marker": "*", "color": GOAL_COLOR, "markeredgecolor": INK_COLOR}


class Panels:
    """The planes of a board, each in its axes.

    Parameters
    ----------
    board : Board
    planes : list of Plane
    ax : Axes, array of Axes, or None
        Where to draw; None for a new figure.
    title : str, optional
    walls : bool
        Whether walls are drawn.
    """

    def __init__(
        self,
        board: Board,
        planes: list[Plane],
        ax: Axes | Iterable[Axes] | None,
        title: str | None,
        *,
        walls: bool = True,
    ) -> None:
        self.board, self.planes = board, planes
        across, up = planes[0].axes
        self.nx = board.grid.shape[across]
        self.ny = board.grid.shape[up] if board.grid.num_dims > 1 else 1
        self.has_walls = walls and board.layout is not None and self._any_wall(planes[0].axes)
        self.own = ax is None
        self.figure: Any
        self.zoom = 1.0
        if ax is None:
            self.figure, self.axes = self._new(title)
        else:
            self.axes = _given(ax, len(planes))
            self.figure = self.axes[0].figure
            if title and len(planes) > 1:
                self.axes[0].set_title(title)
        self.missing = board.missing()
        for axes, plane in zip(self.axes, planes, strict=True):
            if len(planes) > 1:
                set_title(axes, plane.title, 9)
            else:
                # Where the rest of the axes are cut.
                set_title(axes, "\n".join(filter(None, (title, plane.title))), 11 * self.zoom)
            axes.set_xlim(-0.5, self.nx - 0.5)
            axes.set_ylim(-0.5, self.ny - 0.5)
        self._set_ticks()

    def result(self) -> Any:
        """Return the axes, or an array of them where there is more than one panel."""
        if len(self.axes) == 1:
            return self.axes[0]
        every = np.empty(len(self.axes), dtype=object)
        every[:] = self.axes
        return every

    def _any_wall(self, axes: tuple[int, int]) -> bool:
        layout = self.board.layout
        assert layout is not None
        walls = open_passages(layout.grid, layout.blocked) & ~layout.passages
        return bool(walls[:, list({*axes})].any())

    def _new(self, title: str | None) -> tuple[Figure, list[Axes]]:
        count = len(self.planes)
        columns = columns_of(count)
        if len(self.board.along) == 2 and count == math.prod(
            self.board.grid.shape[axis] for axis in self.board.along
        ):
            columns = self.board.grid.shape[self.board.along[1]]
        rows = math.ceil(count / columns)
        side = _SIDE if count == 1 else _SIDE_OF_MANY
        if self.has_walls and count == 1:
            # Two pixels a cell in a file, one of them for the wall, as far as that goes.
            side = min(max(side, 2.05 * max(self.nx, self.ny) / FILE_DPI), _LONGEST_SIDE)
        # Cells of control have no natural size: they fill a square.
        shape = (self.nx, self.ny) if self._is_square() else (1, 1)
        scale = side / max(shape)
        # Words and marks keep their share of it: all of it is looked at on one screen.
        self.zoom = side / _SIDE if count == 1 else 1.0
        width = columns * max(1.2, shape[0] * scale) + 1.6 * self.zoom
        height = max(2.6, rows * max(1.0, shape[1] * scale) + 0.7 * self.zoom)
        figure = new_figure(width, height)
        axes = [figure.add_subplot(rows, columns, index + 1) for index in range(count)]
        if title and count > 1:
            figure.suptitle(title, fontsize=11)
        return figure, axes

    def _is_square(self) -> bool:
        return self.board.axis_names is None or {abs(step) for step in self.board.step} == {1.0}

    def _set_ticks(self) -> None:
        from matplotlib.ticker import MaxNLocator

        board, (across, up) = self.board, self.planes[0].axes
        many = len(self.planes) > 1
        for axes in self.axes:
            axes.set_aspect("equal" if self._is_square() else "auto")
            for axis, count, low in ((across, self.nx, True), (up, self.ny, False)):
                setting = axes.set_xticks if low else axes.set_yticks
                if (low is False and board.grid.num_dims == 1) or count == 1:
                    setting([])
                    continue
                origin, step = board.origin[axis], board.step[axis]
                ends = sorted((origin - 0.5 * step, origin + (count - 0.5) * step))
                integers = abs(step) == 1.0 and float(origin).is_integer()
                locator = MaxNLocator(
                    3 if many else 6,
                    integer=integers,
                    steps=[1, 2, 5, 10],
                )
                numbers = np.asarray(locator.tick_values(*ends))
                numbers = numbers[(numbers >= ends[0]) & (numbers <= ends[1])]
                setting(
                    (numbers - origin) / step, labels=[f"{number + 0.0:.6g}" for number in numbers]
                )
                (axes.set_xlabel if low else axes.set_ylabel)(
                    board.axis_name(axis), fontsize=10 * self.zoom
                )
                axes.tick_params(labelsize=9.5 * self.zoom)
            if many:
                axes.tick_params(labelsize=7)
                axes.label_outer()

    def cut(self, laid: NDArray[Any], plane: Plane) -> NDArray[Any]:
        """Return what positions have, shape (P, ...), in a plane, bottom row first.

        Parameters
        ----------
        laid : ndarray, shape (P,) or (P, C)
        plane : Plane
        """
        return self.board.grid.to_image(laid, axes=plane.axes, through=plane.through)[::-1]

    def each(self) -> list[tuple[Axes, Plane]]:
        """Return each panel's axes, and its plane."""
        return list(zip(self.axes, self.planes, strict=True))

    def pixels_per_cell(self) -> float:
        """Return how many pixels of a file, or of a figure's own, a cell is wide."""
        box = self.axes[0].get_window_extent()
        if self.own:
            across, up = box.width / self.figure.dpi, box.height / self.figure.dpi
            return FILE_DPI * max(across / self.nx, up / self.ny)
        return float(max(box.width / self.nx, box.height / self.ny))

    def points_per_cell(self) -> float:
        """Return how many points (1/72 inch) a cell is wide."""
        box = self.axes[0].get_window_extent()
        return 72 / self.figure.dpi * float(min(box.width / self.nx, box.height / self.ny))

    def colour(
        self,
        laid: NDArray[Any],
        cmap: Any,
        norm: Any,
        *,
        borders: bool = False,
        pooled: bool = False,
    ) -> Any:
        """Colour the cells of all panels, and draw walls; return what a colour bar is made of.

        Parameters
        ----------
        laid : ndarray of float, shape (P,)
            A number a position; those without one are walls.
        cmap, norm
            Of matplotlib.
        borders : bool
            Whether to draw a line where numbers of neighbours differ.
        pooled : bool
            Whether, of more than 300 cells a side, the largest number of a few neighbours is
            drawn for all of them, so that what is thin can be seen.
        """
        from matplotlib.cm import ScalarMappable

        numbers = np.ma.masked_array(laid, self.missing | np.isnan(laid))
        pixels = self._wall_pixels()
        sharp = self.pixels_per_cell() >= 2
        for axes, plane in self.each():
            cells = np.ma.masked_array(
                self.cut(numbers.filled(0), plane), self.cut(np.ma.getmaskarray(numbers), plane)
            )
            step = math.ceil(max(self.nx, self.ny) / _MOST_POOLED) if pooled else 1
            if pixels == 0 or step > 1:
                cells = _pooled(cells, step, norm.vmax)
                axes.imshow(
                    cells,
                    cmap=cmap,
                    norm=norm,
                    origin="lower",
                    extent=(-0.5, cells.shape[1] * step - 0.5, -0.5, cells.shape[0] * step - 0.5),
                    # Nothing is between two cells, unless a pixel has to show several.
                    interpolation="nearest" if borders or sharp else "antialiased",
                )
            else:
                self._draw_mesh(axes, plane, cmap(norm(cells)), pixels)
            self._restore(axes)
            if borders:
                self._draw_borders(axes, cells)
        mappable = ScalarMappable(norm=norm, cmap=cmap)
        mappable.set_array(numbers.compressed())
        return mappable

    def _restore(self, axes: Axes) -> None:
        """Undo what imshow does to limits and proportions."""
        axes.set_xlim(-0.5, self.nx - 0.5)
        axes.set_ylim(-0.5, self.ny - 0.5)
        axes.set_aspect("equal" if self._is_square() else "auto")

    def _wall_pixels(self) -> int:
        """Return how many pixels of the picture a cell has beside those of walls; 0 for lines."""
        if not self.has_walls or max(self.nx, self.ny) <= MOST_LINED:
            return 0
        room = self.pixels_per_cell()
        return 0 if room < _LEAST_PIXELS else max(1, round(room) - 1)

    def _walls(self, plane: Plane) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return where a wall is to the right of a cell, and above it, bottom row first."""
        layout = self.board.layout
        assert layout is not None
        walls = open_passages(layout.grid, layout.blocked) & ~layout.passages
        right = self.cut(walls[:, plane.axes[0]], plane).astype(bool)
        if self.board.grid.num_dims == 1:
            return right, np.zeros_like(right)
        return right, self.cut(walls[:, plane.axes[1]], plane).astype(bool)

    def _draw_mesh(self, axes: Axes, plane: Plane, colors: NDArray[Any], cell: int) -> None:
        """Draw cells of so many pixels a side, and walls of one pixel between them."""
        from matplotlib.colors import to_rgba_array

        wall, colors = (
            (255 * of).round().astype(np.uint8) for of in (to_rgba_array(WALL_COLOR)[0], colors)
        )
        pixels, extent = wall_mesh(colors, *self._walls(plane), cell, wall)
        axes.imshow(pixels, origin="lower", extent=extent)

    def _draw_borders(self, axes: Axes, cells: NDArray[Any]) -> None:
        """Draw a line wherever neighbours differ, unless lines would cover the cells."""
        borders = region_borders(cells)
        # Most cells differ from a neighbour: then the borders are all there is to see.
        if not len(borders) or (
            max(self.nx, self.ny) > MOST_LINED and len(borders) > cells.size / 3
        ):
            return
        width = min(1.1, max(0.35, 0.09 * self.points_per_cell()))
        self._add_lines(axes, borders, "white", width, zorder=1.5)

    def _add_lines(
        self, axes: Axes, lines: NDArray[Any], color: str, width: float, zorder: float
    ) -> None:
        from matplotlib.collections import LineCollection

        axes.add_collection(
            LineCollection(
                list(lines), colors=color, linewidths=width, capstyle="projecting", zorder=zorder
            )
        )

    def draw_layout(self, *, contours: bool = True) -> None:
        """Draw walls that are lines, heights as labelled contours, and what marks the cells.

        Parameters
        ----------
        contours : bool
        """
        layout = self.board.layout
        if layout is None:
            return
        for axes, plane in self.each():
            if (
                contours
                and layout.heights is not None
                and not self.has_walls
                and min(self.nx, self.ny) >= _FEWEST_CONTOURED
            ):
                self._draw_contours(axes, plane)
            if self.has_walls and max(self.nx, self.ny) <= MOST_LINED:
                self._draw_lines(axes, plane)
            if layout.signs is not None:
                self._draw_signs(axes, plane)
                continue
            goal = layout.grid.coords(layout.goal)
            if self._holds(plane, goal[np.newaxis].astype(float))[0]:
                up = goal[plane.axes[1]] if layout.grid.num_dims > 1 else 0
                self._draw_star(axes, goal[plane.axes[0]], up)

    def _holds(self, plane: Plane, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which points lie in a plane."""
        others = [axis for axis in range(points.shape[1]) if axis not in plane.axes]
        return np.asarray((points[:, others] == np.array(plane.through)[others]).all(axis=1))

    def _draw_contours(self, axes: Axes, plane: Plane) -> None:
        layout = self.board.layout
        assert layout is not None
        assert layout.heights is not None
        heights = np.ma.masked_array(
            self.cut(layout.heights, plane), self.cut(self.missing, plane).astype(bool)
        )
        step = max(1, round(max(self.nx, self.ny) / 250))  # finer than that nobody sees
        x, y = np.arange(0, self.nx, step), np.arange(0, self.ny, step)
        lines: Any = axes.contour(
            x,
            y,
            heights[::step, ::step],
            levels=np.arange(0.1, 1.0, 0.2),
            colors=CONTOUR_COLOR,
            linewidths=0.9 * self.zoom,
            zorder=1.8,
        )
        # The seam parts them from dark colours.
        lines.set_path_effects(seamed(1.8 * self.zoom, opacity=0.45))
        if len(self.planes) == 1:
            words = axes.clabel(lines, fontsize=8 * self.zoom, fmt="%.1f", inline_spacing=2)
            for word in words:
                word.set_path_effects(seamed(2.0 * self.zoom, opacity=0.8))
            axes.set_xlabel(f"{axes.get_xlabel()};  lines: height, from 0 to 1")
        # Labels are no reason to grow.
        axes.set_xlim(-0.5, self.nx - 0.5)
        axes.set_ylim(-0.5, self.ny - 0.5)

    def _draw_lines(self, axes: Axes, plane: Plane) -> None:
        width = min(2.0, max(0.5, 0.12 * self.points_per_cell()))
        self._add_lines(axes, sides(*self._walls(plane)), WALL_COLOR, width, zorder=2)
        for border in axes.spines.values():
            border.set(linewidth=width, color=WALL_COLOR)

    def _draw_star(self, axes: Axes, x: ArrayLike, y: ArrayLike) -> None:
        """Draw what marks a goal, or goals, with a dark edge and a light seam, as windows do."""
        size = self.zoom * float(np.clip(1.1 * self.points_per_cell(), 11, 17))
        if len(self.planes) > 1:
            size = min(size, 11)
        axes.plot(
            x,
            y,
            **_STAR,
            markersize=size,
            markeredgewidth=1.1 * self.zoom,
            linestyle="none",
            zorder=6,
            clip_on=False,
            path_effects=seamed(2.6 * self.zoom),
        )

    def _draw_signs(self, axes: Axes, plane: Plane) -> None:
        """Draw what marks the cells of a grid world: ends on their ground, others in a corner."""
        from matplotlib.collections import PatchCollection
        from matplotlib.patches import Rectangle

        layout = self.board.layout
        assert layout is not None
        assert layout.signs is not None
        signs = self.cut(layout.signs, plane)
        ends = self.cut(layout.is_end(), plane).astype(bool)
        fontsize = 9 if max(self.nx, self.ny) <= _MOST_SIGNED else 0
        if len(self.planes) > 1:
            fontsize = min(fontsize, 7)
        for code in np.unique(signs[signs != 0]).tolist():
            sign = chr(code)
            y, x = np.nonzero(signs == code)
            ground = np.array(GROUNDS.get(sign, SIGNED)) / 255
            solid = (sign in GROUNDS and sign != "G") or bool(ends[y[0], x[0]])
            if solid:
                corners = zip(x - 0.5, y - 0.5, strict=True)
                squares = [Rectangle(corner, 1, 1) for corner in corners]
                axes.add_collection(
                    PatchCollection(squares, facecolor=ground, linewidth=0, zorder=2)
                )
            if sign == "G":
                self._draw_star(axes, x, y)
            elif sign == "H":
                size = min(9.0, 200 / max(self.nx, self.ny))
                axes.plot(x, y, "o", color="black", markersize=size, linestyle="none", zorder=5)
            elif fontsize and sign not in "C~L":
                shift = 0.0 if solid else 0.36
                for left, top in zip(x - shift, y + shift, strict=True):
                    axes.text(
                        left,
                        top,
                        sign,
                        ha="center",
                        va="center",
                        fontsize=fontsize,
                        color=INK_COLOR,
                        zorder=5,
                    )

    def draw_policy(self, policy: NDArray[Any]) -> None:
        """Draw the moves within a plane as arrows, those out of it as signs.

        Parameters
        ----------
        policy : ndarray of int, shape (S,), or of float, shape (S, A)
            Arrows of probabilities are longer the likelier the action; others are of full length.
        """
        board = self.board
        step = math.ceil(max(self.nx, self.ny) / MOST_ARROWS)
        if board.directions is None or (step > 1 and self.has_walls):
            return
        acting = board.acting()
        if policy.ndim == 1:
            laid = board.lay(policy, 0)
            weights = np.zeros((len(laid), len(board.directions)))
            weights[np.arange(len(laid)), laid] = 1.0
        else:
            weights = board.lay(policy.astype(np.float64), 0.0)
        y, x = (index.reshape(-1) for index in np.mgrid[0 : self.ny : step, 0 : self.nx : step])
        for axes, plane in self.each():
            inside = self.cut(acting, plane)[y, x].astype(bool)
            chances = self.cut(weights, plane)[y, x]
            arrows: list[NDArray[np.float64]] = []
            for action, direction in enumerate(board.directions):
                chance = chances[:, action]
                shown = inside & (chance > _LEAST_CHANCE)
                if not shown.any():
                    continue
                flat = direction[list(plane.axes)] * ([1, 1] if board.grid.num_dims > 1 else [1, 0])
                length = float(np.hypot(*flat))
                if length == 0:
                    self._draw_out_of_plane(axes, action, plane, x[shown], y[shown])
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
        self, axes: Axes, action: int, plane: Plane, x: NDArray[Any], y: NDArray[Any]
    ) -> None:
        """Draw the sign of an action that does not move within the plane."""
        board = self.board
        assert board.directions is not None
        out = np.delete(board.directions[action], list({*plane.axes})).sum()
        marker = "$+$" if out > 0 else "$-$" if out < 0 else "."
        size = 5.0
        name = board.action_names[action] if board.action_names else ""
        if out == 0 and name and not name.isdigit():
            initials = "".join(word[0] for word in name.split())
            marker = f"$\\mathrm{{{initials.upper()}}}$"
            size = float(np.clip(0.22 * self.points_per_cell(), 5.0, 12.0)) * len(initials)
        axes.plot(x, y, marker=marker, color="black", markersize=size, linestyle="none", zorder=4)

    def draw_path(
        self,
        path: NDArray[np.int64],
        *,
        color: str = PATH_COLOR,
        label: str | None = None,
        start: bool = True,
    ) -> None:
        """Draw what of a path lies in a plane, below the arrows, and a disc where it starts.

        Parameters
        ----------
        path : ndarray of int
            States in order.
        color : str
        label : str, optional
            For a key.
        start : bool
            Whether to draw the disc.
        """
        points = self.board.positions(np.asarray(path))
        cell = self.points_per_cell()
        # Wide enough to be seen beside an arrow, narrow enough to leave the colour of the cell.
        width = self.zoom * float(np.clip(0.4 * cell, 1.6, 7.0))
        for axes, plane in self.each():
            flat = points[:, list(plane.axes)].copy()
            if self.board.grid.num_dims == 1:
                flat[:, 1] = np.where(np.isnan(flat[:, 0]), np.nan, 0.0)
            here = self._holds(plane, points) & ~np.isnan(flat).any(axis=1)
            flat[~here] = np.nan  # a gap in the line
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
            if start and here[0]:
                axes.plot(
                    *flat[0],
                    "o",
                    color=AGENT_COLOR,
                    markeredgecolor="white",
                    markeredgewidth=1.3,
                    markersize=self.zoom * float(np.clip(0.7 * cell, 8, 13)),
                    zorder=6,
                    clip_on=False,
                )


def columns_of(count: int) -> int:
    """Return how many of some panels stand side by side: a block wider than tall, without gaps.

    Parameters
    ----------
    count : int
    """
    fewest, most = math.ceil(math.sqrt(count)), math.ceil(math.sqrt(count * 1.5))
    return min(range(fewest, most + 1), key=lambda columns: (-count % columns, -columns))


def _pooled(cells: Any, step: int, most: float) -> Any:
    """Return the largest number of each square of so many cells a side.

    What is above ``most`` is nothing, unless there is nothing else.
    """
    if step == 1:
        return cells
    ny, nx = (math.ceil(length / step) * step for length in cells.shape)
    filled = np.full((ny, nx), -np.inf)
    beyond = np.full((ny, nx), -np.inf)
    numbers, masked = np.asarray(cells), np.ma.getmaskarray(cells)
    here = slice(cells.shape[0]), slice(cells.shape[1])
    filled[here] = np.where(masked | (numbers > most), -np.inf, numbers)
    beyond[here] = np.where(masked, -np.inf, numbers)
    shape = (ny // step, step, nx // step, step)
    largest = filled.reshape(shape).max(axis=(1, 3))
    largest = np.where(largest == -np.inf, beyond.reshape(shape).max(axis=(1, 3)), largest)
    return np.ma.masked_array(largest, largest == -np.inf)


def _given(ax: Any, count: int) -> list[Axes]:
    """Return axes that were given, as many as there are panels."""
    from matplotlib.axes import Axes

    given = list(np.asarray(ax, dtype=object).flat)
    for each in given:
        if not isinstance(each, Axes):
            raise TypeError(f"ax must be Axes, or an array of Axes, got {type(each).__name__}")
    if len(given) != count:
        hint = "; along=() draws one plane" if count > 1 else ""
        raise ValueError(f"ax must hold {count} Axes, one a panel, got {len(given)}{hint}")
    return given
