"""Mazes cut along two axes, as rows of cells: what there is to draw, not yet how large."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.layouts.layout import Layout
from aggmaze.rendering.colors import (
    CLIFF,
    FLOOR,
    GOAL_GROUND,
    LAVA,
    PIT_GROUND,
    SIGNED,
    relief_colors,
    value_colors,
)
from aggmaze.rendering.overlay import Overlay

#: Cells of these signs have a colour of their own, whatever is known of them.
GROUNDS = {"G": GOAL_GROUND, "H": PIT_GROUND, "L": LAVA, "~": LAVA, "C": CLIFF}


@dataclass(frozen=True)
class Plane:
    """The slice of a layout along two of its axes, as rows of cells, top row first.

    Parameters
    ----------
    open_right, open_up : ndarray of bool, shape (rows, columns)
        Whether a cell is joined to its neighbour on the right, and to the one above.
    heights : ndarray of float, shape (rows, columns), optional
        Heights in [0, 1]; None for a maze without terrain.
    blocked : ndarray of bool, shape (rows, columns)
    shares : ndarray of float, shape (rows, columns), optional
        Where the values of an overlay lie between the least and the greatest; NaN where unknown.
    labels : ndarray of int, shape (rows, columns), optional
        Those of an overlay.
    label_shares : ndarray of float, shape (rows, columns), optional
        Where each mega-state lies in their order, from 0 to 1.
    signs : ndarray of uint32, shape (rows, columns), optional
        What marks the cells, as code points; 0 where nothing does.
    ends : ndarray of bool, shape (rows, columns), optional
        Where an episode ends; beside signs.
    """

    open_right: NDArray[np.bool_]
    open_up: NDArray[np.bool_]
    heights: NDArray[np.float64] | None
    blocked: NDArray[np.bool_]
    shares: NDArray[np.float64] | None = None
    labels: NDArray[np.int64] | None = None
    label_shares: NDArray[np.float64] | None = None
    signs: NDArray[np.uint32] | None = None
    ends: NDArray[np.bool_] | None = None

    @classmethod
    def of(
        cls,
        layout: Layout,
        axes: tuple[int, int],
        through: tuple[int, ...],
        overlay: Overlay | None = None,
    ) -> Plane:
        """Cut a layout, and what is known of it, along two axes through a point.

        Parameters
        ----------
        layout : Layout
        axes : pair of int
            The axes to the right and upwards; ``(0, 1)`` in a maze of one dimension.
        through : tuple of int
            Coordinates of the point, one an axis.
        overlay : Overlay, optional
        """
        overlay = Overlay() if overlay is None else overlay

        def cut(values: NDArray[Any]) -> NDArray[Any]:
            return layout.grid.to_image(values, axes=axes, through=through)

        right, up = axes
        open_right = cut(layout.passages[:, right]).astype(bool)
        flat = layout.grid.num_dims == 1
        return cls(
            open_right=open_right,
            open_up=np.zeros_like(open_right) if flat else cut(layout.passages[:, up]).astype(bool),
            heights=None if layout.heights is None else cut(layout.heights).astype(np.float64),
            blocked=np.zeros_like(open_right)
            if layout.blocked is None
            else cut(layout.blocked).astype(bool),
            shares=None if overlay.values is None else overlay.shares(cut(overlay.values)),
            labels=None if overlay.labels is None else cut(overlay.labels),
            label_shares=None if overlay.labels is None else cut(overlay.label_shares),
            signs=None if layout.signs is None else cut(layout.signs),
            ends=None if layout.signs is None else cut(layout.is_end()).astype(bool),
        )

    def colors(self) -> NDArray[np.uint8]:
        """Return the colour of each cell, shape (rows, columns, 3)."""
        colors = self._grounds()
        if self.signs is not None:
            for sign, color in GROUNDS.items():
                colors[self.signs == ord(sign)] = color
            # Those of the user's too, but where values or labels have coloured them.
            others = ~np.isin(self.signs, (0, *map(ord, GROUNDS)))
            if self.shares is not None or self.labels is not None:
                assert self.ends is not None
                others &= self.ends
            colors[others] = SIGNED
        return colors

    def _grounds(self) -> NDArray[np.uint8]:
        """Return the colours of cells without those that their signs give them."""
        if self.labels is not None and self.shares is None:
            assert self.label_shares is not None
            return value_colors(self.label_shares)
        known = None if self.shares is None else np.isfinite(self.shares)
        if self.shares is not None and known is not None and known.all():
            return value_colors(self.shares)
        if self.heights is None:
            colors = np.full((*self.blocked.shape, 3), FLOOR, dtype=np.uint8)
        else:
            colors = relief_colors(self.heights)
        if self.shares is not None and known is not None:
            colors[known] = value_colors(self.shares[known])
        return colors

    def walls(self) -> NDArray[np.bool_]:
        """Return where walls stand on the mesh of lines and cells, top row first.

        Returns
        -------
        ndarray of bool, shape (2 rows + 1, 2 columns + 1)
            Cells are at odd places, walls where they are blocked, and the lines around them at even
            ones.  A post, where two lines cross, stands where a wall touches it.
        """
        rows, columns = self.open_right.shape
        walls = np.zeros((2 * rows + 1, 2 * columns + 1), dtype=bool)
        walls[1::2, 1::2] = self.blocked
        walls[1::2, 2::2] = ~self.open_right
        walls[:-1:2, 1::2] = ~self.open_up
        walls[:, (0, -1)] = True
        walls[(0, -1), :] = True
        posts, upright, level = walls[::2, ::2], walls[1::2, ::2], walls[::2, 1::2]
        posts[1:] |= upright
        posts[:-1] |= upright
        posts[:, 1:] |= level
        posts[:, :-1] |= level
        return walls


def plane_axes(num_dims: int) -> tuple[tuple[int, int], ...]:
    """Return the pairs of axes that are drawn: all of them, ``(0, 1)`` in one dimension."""
    return tuple(itertools.combinations(range(max(2, num_dims)), 2))
