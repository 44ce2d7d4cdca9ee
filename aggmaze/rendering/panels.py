"""Where one plane of a maze lies in a picture, and its cells and walls as pixels.

Along an axis of ``n`` cells a panel is, in pixels::

    border  cell line cell line ... cell  border        edge = cell + line

The lines between cells hold the walls; without walls they have no width.  Blocked cells are solid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aggmaze.rendering.colors import INK, WALL
from aggmaze.rendering.planes import Plane

_SMALLEST_OUTLINED_CELL = 3


@dataclass(frozen=True)
class Panel:
    """Where one plane lies in the picture; all lengths in pixels.

    Parameters
    ----------
    axes : pair of int
        The axes to the right and upwards.
    columns, rows : int
        Number of cells to the right and upwards.
    left, top : int
        The first column and row of pixels of the outer border.
    edge : int
        Distance between neighbouring cells.
    line : int
        Width of the line between cells, the walls' thickness; 0 without walls.
    border : int
        Width of the border, at the right and at the bottom one more where that makes the panel's
        width and height even, as common video formats ask.
    """

    axes: tuple[int, int]
    columns: int
    rows: int
    left: int
    top: int
    edge: int
    line: int
    border: int

    @property
    def width(self) -> int:
        """Width with the border."""
        return int(self._lengths(self.columns).sum())

    @property
    def height(self) -> int:
        """Height with the border."""
        return int(self._lengths(self.rows).sum())

    def cell_of(self, point: tuple[int, ...]) -> tuple[slice, slice]:
        """Return the pixels of the cell of a point of the maze, rows and columns.

        Parameters
        ----------
        point : tuple of int
            Its coordinates, one an axis.
        """
        x, y = (*point, 0)[self.axes[0]], (*point, 0)[self.axes[1]]
        return self.cell(x, y)

    def cell(self, x: int, y: int) -> tuple[slice, slice]:
        """Return the rows and the columns of pixels of the cell at ``(x, y)``, without lines.

        Parameters
        ----------
        x, y : int
            Counted from the lower left.
        """
        inside = self.edge - self.line
        left = self.left + self.border + x * self.edge
        top = self.top + self.border + (self.rows - 1 - y) * self.edge
        return slice(top, top + inside), slice(left, left + inside)

    def centres(
        self, x: NDArray[np.int64], y: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the row and the column of the middle pixel of the cells at ``(x, y)``.

        Parameters
        ----------
        x, y : ndarray of int, shape (N,)
            Counted from the lower left.
        """
        half = (self.edge - self.line) // 2
        rows = self.top + self.border + (self.rows - 1 - y) * self.edge + half
        return rows, self.left + self.border + x * self.edge + half

    def paint(self, plane: Plane) -> NDArray[np.uint8]:
        """Return the pixels of a plane, cells, lines between labels, walls; shape (h, w, 3)."""
        # For each pixel its place on the mesh of lines and cells; lines belong to a cell beside.
        down, across = (
            np.repeat(np.arange(2 * n + 1), self._lengths(n)) for n in (self.rows, self.columns)
        )
        rows, columns = (
            np.minimum(places // 2, n - 1)
            for places, n in ((down, self.rows), (across, self.columns))
        )
        # A pixel is one number meanwhile: much is copied, and numbers are copied fast.
        image = _packed(plane.colors()).take(rows, axis=0).take(columns, axis=1)
        if plane.labels is not None:
            places = plane.labels[rows][:, columns]
            border = np.zeros(image.shape, dtype=bool)
            border[:, 1:] |= places[:, 1:] != places[:, :-1]
            border[1:] |= places[1:] != places[:-1]
            if self.edge < _SMALLEST_OUTLINED_CELL:
                # Ink would hide the cells themselves: their colours, darker.
                parts = image[..., np.newaxis].view(np.uint8)
                parts[border] = (parts[border] * np.float64(0.55)).astype(np.uint8)
            else:
                image[border] = _packed(np.array(INK, dtype=np.uint8))
        walls = plane.walls().take(down, axis=0).take(across, axis=1)
        np.copyto(image, _packed(np.array(WALL, dtype=np.uint8)), where=walls)
        return image[..., np.newaxis].view(np.uint8)[..., :3]

    def _lengths(self, n: int) -> NDArray[np.intp]:
        """Return the lengths of border, cell, line, cell, ..., cell, border."""
        lengths = np.full(2 * n + 1, self.line)
        lengths[1::2] = self.edge - self.line
        lengths[[0, -1]] = self.border
        lengths[-1] += lengths.sum() % 2
        return lengths


def _packed(colors: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return colours, shape (..., 3), as one number each, whose first three bytes they are."""
    padded = np.zeros((*colors.shape[:-1], 4), dtype=np.uint8)
    padded[..., :3] = colors
    return padded.view(np.uint32)[..., 0]
