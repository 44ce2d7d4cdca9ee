"""The panels of a board: the axes of its planes, their ticks, and how large a cell is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.layouts.layout import open_passages
from planners.boards import Board, Plane
from planners.plotting.canvas import FILE_DPI, new_figure, set_title
from planners.plotting.given import as_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    #: What a picture of one panel, or of several, returns.
    Drawn = Axes | NDArray[np.object_]

# Up to so many cells a side walls are lines; beyond, they are pixels of the picture.
MOST_LINED = 60
# Up to so many cells a side there is an arrow in each; on open ground fewer stand for all.
MOST_ARROWS = 40
# Sides of a figure, in inches.
_SIDE, _LONGEST_SIDE, _SIDE_OF_MANY = 6.0, 13.8, 2.6


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
    keyed : bool
        Whether a key of words is drawn to the right, in place of a colour bar.
    """

    def __init__(
        self,
        board: Board,
        planes: list[Plane],
        ax: Axes | Iterable[Axes] | None,
        title: str | None,
        *,
        walls: bool = True,
        keyed: bool = False,
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
            self.figure, self.axes = self._new(title, keyed)
        else:
            hint = "; along=() draws one plane" if len(planes) > 1 else ""
            self.axes = as_axes(ax, len(planes), hint=hint)
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

    def result(self) -> Drawn:
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

    def _new(self, title: str | None, keyed: bool) -> tuple[Figure, list[Axes]]:
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
        # Squares as high as the figure leave words no room at their side.
        width += 1.2 * self.zoom if keyed else 0.0
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
                # Marks at the edge grow with the figure, and must not cover the numbers.
                axes.tick_params(labelsize=9.5 * self.zoom, pad=3.5 * self.zoom**2)
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

    def restore(self, axes: Axes) -> None:
        """Undo what imshow does to limits and proportions."""
        axes.set_xlim(-0.5, self.nx - 0.5)
        axes.set_ylim(-0.5, self.ny - 0.5)
        axes.set_aspect("equal" if self._is_square() else "auto")

    def walls(self, plane: Plane) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return where a wall is to the right of a cell, and above it, bottom row first."""
        layout = self.board.layout
        assert layout is not None
        walls = open_passages(layout.grid, layout.blocked) & ~layout.passages
        right = self.cut(walls[:, plane.axes[0]], plane).astype(bool)
        if self.board.grid.num_dims == 1:
            return right, np.zeros_like(right)
        return right, self.cut(walls[:, plane.axes[1]], plane).astype(bool)

    def holds(self, plane: Plane, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which points lie in a plane.

        Parameters
        ----------
        plane : Plane
        points : ndarray, shape (N, D)
        """
        others = [axis for axis in range(points.shape[1]) if axis not in plane.axes]
        return np.asarray((points[:, others] == np.array(plane.through)[others]).all(axis=1))


def columns_of(count: int) -> int:
    """Return how many of some panels stand side by side: a block wider than tall, without gaps.

    Parameters
    ----------
    count : int
    """
    fewest, most = math.ceil(math.sqrt(count)), math.ceil(math.sqrt(count * 1.5))
    return min(range(fewest, most + 1), key=lambda columns: (-count % columns, -columns))
