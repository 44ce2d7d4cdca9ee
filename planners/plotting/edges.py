"""Where neighbouring cells of a picture are parted: walls, and borders of regions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def sides(right: NDArray[np.bool_], above: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the right and upper sides of cells as lines, in the coordinates of ``imshow``.

    Parameters
    ----------
    right, above : ndarray of bool, shape (rows, columns) or less
        Which cells have a line at their right side, and towards the next row.

    Returns
    -------
    ndarray of float, shape (N, 2, 2)
        Both ends of each line, x before y.  Cell (row, column) has its middle at (column, row).
    """
    y, x = np.nonzero(right)
    upright = np.stack([x + 0.5, y - 0.5, x + 0.5, y + 0.5], axis=1)
    y, x = np.nonzero(above)
    level = np.stack([x - 0.5, y + 0.5, x + 0.5, y + 0.5], axis=1)
    return np.concatenate([upright, level]).reshape(-1, 2, 2)


def region_borders(regions: ArrayLike) -> NDArray[np.float64]:
    """Return the borders between regions of a picture, for a `matplotlib` ``LineCollection``.

    Parameters
    ----------
    regions : array_like, shape (rows, columns)
        Which region each cell belongs to, such as the mega-states of ``grid.to_image(labels)``, in
        the order of rows that ``imshow`` is given.  What is masked has no borders.

    Returns
    -------
    ndarray of float, shape (N, 2, 2)
        Both ends of each piece of a border, x before y, in the coordinates of ``imshow``.

    Examples
    --------
    >>> from planners.plotting import region_borders
    >>> region_borders([[0, 0, 1]]).tolist()
    [[[1.5, -0.5], [1.5, 0.5]]]
    """
    numbers: Any = np.ma.asarray(regions)
    if numbers.ndim != 2:
        raise ValueError(f"regions must be rows of cells, got shape {numbers.shape}")
    masked, numbers = np.ma.getmaskarray(numbers), np.asarray(numbers)
    return sides(
        (numbers[:, 1:] != numbers[:, :-1]) & ~(masked[:, 1:] | masked[:, :-1]),
        (numbers[1:] != numbers[:-1]) & ~(masked[1:] | masked[:-1]),
    )


def wall_mesh(
    colors: NDArray[np.uint8],
    right: NDArray[np.bool_],
    above: NDArray[np.bool_],
    cell: int,
    wall: NDArray[np.uint8],
) -> tuple[NDArray[np.uint8], tuple[float, float, float, float]]:
    """Return cells of so many pixels a side, and walls of one pixel between them and around them.

    Parameters
    ----------
    colors : ndarray of uint8, shape (rows, columns, 4)
    right, above : ndarray of bool, shape (rows, columns)
        Where a wall is to the right of a cell, and towards the next row.
    cell : int
        Pixels.
    wall : ndarray of uint8, shape (4,)
        The colour of walls.

    Returns
    -------
    pixels : ndarray of uint8, shape (rows (cell + 1) + 1, columns (cell + 1) + 1, 4)
    extent : tuple of four float
        Where ``imshow(pixels, origin="lower", extent=extent)`` draws them, so that cell (row,
        column) has its middle at (column, row).
    """
    ny, nx = right.shape
    pitch = cell + 1
    # What is between two cells without a wall looks like the first of them.
    mesh = np.repeat(np.repeat(colors, pitch, axis=0), pitch, axis=1)
    blocks = mesh.reshape(ny, pitch, nx, pitch, 4)
    y, x = np.nonzero(right)
    blocks[y, :, x, -1] = wall
    y, x = np.nonzero(above)
    blocks[y, -1, x, :] = wall
    # A post where a wall ends that comes from the cell after.
    post = np.zeros_like(right)
    post[:-1] |= right[1:]
    post[:, :-1] |= above[:, 1:]
    y, x = np.nonzero(post)
    blocks[y, -1, x, -1] = wall
    framed = np.full((ny * pitch + 1, nx * pitch + 1, 4), wall)
    framed[1:, 1:] = mesh
    framed[-1], framed[:, -1] = wall, wall
    # Lines of walls lie half on either side of where cells meet.
    half = 0.5 / pitch
    return framed, (-0.5 - half, nx - 0.5 + half, -0.5 - half, ny - 0.5 + half)
