"""The cells of a board in colours, with the borders of regions and walls that are pixels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from planners.boards import Plane
from planners.plotting.canvas import FLOOR_COLOR, WALL_COLOR, add_lines
from planners.plotting.edges import region_borders, wall_mesh
from planners.plotting.panels import MOST_LINED, Panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Fewer pixels a cell than this leave no room for walls beside it.
_LEAST_PIXELS = 1.75
_MOST_POOLED = 300


def colour_cells(
    panels: Panels,
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
    panels : Panels
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

    numbers = np.ma.masked_array(laid, panels.missing | np.isnan(laid))
    pixels = _wall_pixels(panels)
    sharp = panels.pixels_per_cell() >= 2
    for axes, plane in panels.each():
        cells = np.ma.masked_array(
            panels.cut(numbers.filled(0), plane), panels.cut(np.ma.getmaskarray(numbers), plane)
        )
        step = math.ceil(max(panels.nx, panels.ny) / _MOST_POOLED) if pooled else 1
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
            _draw_mesh(panels, axes, plane, cmap(norm(cells)), pixels)
        panels.restore(axes)
        if borders:
            _draw_borders(panels, axes, cells)
    mappable = ScalarMappable(norm=norm, cmap=cmap)
    mappable.set_array(numbers.compressed())
    return mappable


def colour_floor(panels: Panels) -> None:
    """Colour all cells alike, and draw walls.

    Parameters
    ----------
    panels : Panels
    """
    from matplotlib.colors import ListedColormap, Normalize

    floor = ListedColormap([FLOOR_COLOR]).with_extremes(bad=WALL_COLOR)
    colour_cells(panels, np.zeros(panels.board.grid.num_states), floor, Normalize(0, 1))


def _wall_pixels(panels: Panels) -> int:
    """Return how many pixels of the picture a cell has beside those of walls; 0 for lines."""
    if not panels.has_walls or max(panels.nx, panels.ny) <= MOST_LINED:
        return 0
    room = panels.pixels_per_cell()
    return 0 if room < _LEAST_PIXELS else max(1, round(room) - 1)


def _draw_mesh(panels: Panels, axes: Axes, plane: Plane, colors: NDArray[Any], cell: int) -> None:
    """Draw cells of so many pixels a side, and walls of one pixel between them."""
    from matplotlib.colors import to_rgba_array

    wall, colors = (
        (255 * of).round().astype(np.uint8) for of in (to_rgba_array(WALL_COLOR)[0], colors)
    )
    pixels, extent = wall_mesh(colors, *panels.walls(plane), cell, wall)
    axes.imshow(pixels, origin="lower", extent=extent)


def _draw_borders(panels: Panels, axes: Axes, cells: NDArray[Any]) -> None:
    """Draw a line wherever neighbours differ, unless lines would cover the cells."""
    borders = region_borders(cells)
    # Most cells differ from a neighbour: then the borders are all there is to see.
    if not len(borders) or (
        max(panels.nx, panels.ny) > MOST_LINED and len(borders) > cells.size / 3
    ):
        return
    width = min(1.1, max(0.35, 0.09 * panels.points_per_cell()))
    add_lines(axes, borders, "white", width, zorder=1.5)


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
