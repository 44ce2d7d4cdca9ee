"""Equal cells of CartPole's states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.cartpole.physics import AXES, Physics
from aggmaze.checks import check_integer, check_positive
from aggmaze.grid import Grid

#: Bins whose policies balance: see `DiscretizedCartPole`.
DEFAULT_BINS = (8, 8, 12, 13)
#: Velocities beyond which the outermost bins take all; a balancing policy seldom leaves them.
VELOCITY_LIMITS = (3.0, 3.5)


@dataclass(frozen=True)
class Cells:
    """Equal cells of a box around the origin, and one state more: having failed.

    Cell ``(i, j, k, l)`` has the index ``ravel_multi_index((i, j, k, l), bins)``; ``failure`` is
    the last state.  The outermost cells take what lies beyond the limits as well.

    Parameters
    ----------
    bins : tuple of int
        Number of bins of position, velocity, angle and angular velocity.
    limits : tuple of float
        The box: each number between ``-limit`` and ``limit``.
    """

    bins: tuple[int, ...]
    limits: tuple[float, ...]

    @classmethod
    def of(cls, physics: Physics, bins: Iterable[int], limits: Iterable[float] | None) -> Cells:
        """Return the cells of a CartPole, with arguments checked.

        Parameters
        ----------
        physics : Physics
            Of the CartPole.
        bins : iterable of int
        limits : iterable of float, optional
            By default those at which the pole counts as fallen, and `VELOCITY_LIMITS`.

        Raises
        ------
        ValueError, TypeError
            If there are not four bins of at least 1, or four positive limits, those of position and
            angle within what counts as failed.
        """
        counts = four_numbers("bins", bins)
        counts = tuple(check_integer(f"bins[{axis}]", n, least=1) for axis, n in enumerate(counts))
        largest = (physics.thresholds[0], VELOCITY_LIMITS[0], physics.thresholds[1])
        given = four_numbers("limits", (*largest, VELOCITY_LIMITS[1]) if limits is None else limits)
        for axis, limit in enumerate(given):
            check_positive(f"limits[{axis}]", limit)
        for axis, threshold in ((0, physics.thresholds[0]), (2, physics.thresholds[1])):
            if given[axis] > threshold:
                raise ValueError(
                    f"limits[{axis}] must be at most {threshold}, the {AXES[axis]} at which the "
                    f"pole counts as fallen, got {given[axis]}"
                )
        return cls(Grid(counts).shape, tuple(float(limit) for limit in given))

    @cached_property
    def grid(self) -> Grid:
        """The grid of cells."""
        return Grid(self.bins)

    @property
    def num_cells(self) -> int:
        """Number of cells, the failed state aside."""
        return self.grid.num_states

    @property
    def num_states(self) -> int:
        """Number of states S, one more than there are cells."""
        return self.num_cells + 1

    @property
    def failure(self) -> int:
        """The state of having failed."""
        return self.num_cells

    @cached_property
    def widths(self) -> NDArray[np.float64]:
        """Width of a cell along each axis, shape (4,)."""
        return 2.0 * np.array(self.limits) / np.array(self.bins)

    def states(self, points: ArrayLike) -> NDArray[np.int64]:
        """Return the cell of each point, shape (..., 4) to (...,); none of them has failed."""
        places = np.floor((np.asarray(points) + self.limits) / self.widths)
        coords = np.clip(places, 0, np.array(self.bins) - 1).astype(np.int64)
        return coords @ np.array(self.grid.strides)

    def points(
        self, states: ArrayLike, sub_points: Sequence[int] = (1, 1, 1, 1)
    ) -> NDArray[np.float64]:
        """Return points spread evenly over cells.

        Parameters
        ----------
        states : array_like of int, shape (N,)
        sub_points : sequence of int
            Points along each axis; one is the centre.

        Returns
        -------
        ndarray of float, shape (N, prod(sub_points), 4)
        """
        lines = [(np.arange(k) + 0.5) / k for k in sub_points]
        offsets = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1)
        corners = self.grid.coords(states)[:, np.newaxis]
        return (corners + offsets.reshape(-1, len(self.bins))) * self.widths - self.limits

    def shares(self, low: float, high: float) -> NDArray[np.float64]:
        """Return how a cube, each number between ``low`` and ``high``, spreads over the states.

        Parameters
        ----------
        low, high : float
            Ends of each of the cube's sides.

        Returns
        -------
        ndarray of float, shape (S,)
            Sums to 1; failed states get nothing.
        """
        shares = np.ones(1)
        for n, limit, width in zip(self.bins, self.limits, self.widths, strict=True):
            edges = np.concatenate([[-np.inf], np.arange(1, n) * width - limit, [np.inf]])
            along = np.diff(edges.clip(low, high)) / (high - low)
            shares = np.multiply.outer(shares, along).reshape(-1)
        return np.append(shares, 0.0)


def four_numbers(name: str, values: Iterable[Any]) -> tuple[Any, ...]:
    """Return one entry for each axis, and refuse any other number of them.

    Parameters
    ----------
    name : str
        What the error calls them.
    values : iterable
    """
    entries = tuple(values) if isinstance(values, Iterable) else None
    if entries is None or len(entries) != len(AXES):
        raise ValueError(
            f"{name} must be {len(AXES)} numbers, of {', '.join(AXES)}, got {values!r}"
        )
    return entries
