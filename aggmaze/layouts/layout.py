"""The layout of a maze: which neighbours are joined, how high each position lies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aggmaze.grid import Grid


@dataclass(frozen=True, eq=False)
class Layout:
    """A grid, the passages between its positions, and their heights.

    Parameters
    ----------
    grid : Grid
    passages : ndarray of bool, shape (S, D)
        Whether state ``s`` and its neighbour at +1 along axis ``k`` are joined; False where that
        neighbour would lie outside the grid.
    heights : ndarray of float, shape (S,), optional
        Height of each position in [0, 1].  None for a maze without terrain.
    goal : int
        The state where an episode ends.
    """

    grid: Grid
    passages: NDArray[np.bool_]
    heights: NDArray[np.float64] | None = None
    goal: int = 0

    @property
    def num_passages(self) -> int:
        """Number of pairs of joined neighbours."""
        return int(np.count_nonzero(self.passages))

    def available(self) -> NDArray[np.bool_]:
        """Return which of the 2 D moves pass no wall, shape (S, 2 D)."""
        grid = self.grid
        moves = np.zeros((*grid.shape, grid.num_actions), dtype=bool)
        passages = self.passages.reshape(*grid.shape, grid.num_dims)
        moves[..., 1::2] = passages
        for axis in range(grid.num_dims):
            ahead, behind = (
                (*(slice(None),) * axis, cut) for cut in (slice(1, None), slice(None, -1))
            )
            moves[..., 2 * axis][ahead] = passages[..., axis][behind]
        return moves.reshape(grid.num_states, grid.num_actions)


def open_passages(grid: Grid) -> NDArray[np.bool_]:
    """Return the passages of a grid without walls, shape (S, D)."""
    _, on_grid = grid.neighbours()
    return on_grid[:, 1::2]
