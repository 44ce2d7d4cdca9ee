"""Corners of a grid as states, between which points are interpolated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.cells.cells import Cells

# A share of a corner below this is rounding, and would be a transition of its own.
_SHARE_OF_ROUNDING = 1e-12


class Corners(Cells):
    """Corners of a grid over a box, in place of its cells.

    Along an axis of n ``bins`` there are n corners, from ``low`` to ``high``, both included; along
    one that wraps around the last is one step short of ``high``, which is ``low`` again.  The one
    corner of a single bin is in the middle.  A point is represented by the corners around it, with
    the weights of multilinear interpolation: the mean of the corners under them is the point.
    Points beyond the box are taken to its surface.

    Parameters
    ----------
    bins, low, high, wrap, ends
        As of `Cells`.
    """

    @cached_property
    def widths(self) -> NDArray[np.float64]:
        """Distance of two corners along each axis, shape (D,)."""
        gaps = [n if axis in self.wrap else max(n - 1, 1) for axis, n in enumerate(self.bins)]
        return self.spans / np.array(gaps)

    @cached_property
    def first(self) -> NDArray[np.float64]:
        """The first corner, shape (D,)."""
        single = [n == 1 and axis not in self.wrap for axis, n in enumerate(self.bins)]
        return np.where(single, np.array(self.low) + self.spans / 2, self.low)

    def states(self, points: ArrayLike) -> NDArray[np.int64]:
        """Return the corner nearest to each point, shape (..., D) to (...,)."""
        return self._states(np.floor((np.asarray(points) - self.first) / self.widths + 0.5))

    def points(
        self, states: ArrayLike, sub_points: Sequence[int] | None = None
    ) -> NDArray[np.float64]:
        """Return the corners themselves.

        Parameters
        ----------
        states : array_like of int, shape (N,)
        sub_points : sequence of int, optional
            One along each axis; a corner is one point.

        Returns
        -------
        ndarray of float, shape (N, 1, D)
        """
        if sub_points is not None and math.prod(sub_points) != 1:
            raise ValueError(f"a corner is one point, sub_points must be 1, got {sub_points}")
        return (self.grid.coords(states) * self.widths + self.first)[:, np.newaxis]

    def spread(self, points: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the corners around each point and their weights.

        Parameters
        ----------
        points : ndarray of float, shape (N, D)

        Returns
        -------
        states : ndarray of int, shape (N, 2**D)
            A corner of no weight is named as one that has some.
        weights : ndarray of float, shape (N, 2**D)
            Sum to 1.
        """
        states = np.zeros((len(points), 1), dtype=np.int64)
        weights = np.ones((len(points), 1))
        for axis, stride in enumerate(self.grid.strides):
            near, share = self._along(axis, points[:, axis])
            states = (states[:, :, np.newaxis] + stride * near[:, np.newaxis]).reshape(
                len(points), -1
            )
            both = np.stack([1 - share, share], axis=1)
            weights = (weights[:, :, np.newaxis] * both[:, np.newaxis]).reshape(len(points), -1)
        return states, weights

    def interpolate(self, values: NDArray[np.float64], points: ArrayLike) -> NDArray[np.float64]:
        """Return values at points, given those at the corners.

        Parameters
        ----------
        values : ndarray of float, shape (num_cells,) or longer
        points : array_like of float, shape (N, D)

        Returns
        -------
        ndarray of float, shape (N,)
        """
        states, weights = self.spread(np.asarray(points, dtype=np.float64))
        return (values[states] * weights).sum(axis=1)

    def _along(
        self, axis: int, places: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the two corners around numbers along an axis, (N, 2), and the second's share."""
        n = self.bins[axis]
        steps = (places - self.first[axis]) / self.widths[axis]
        if axis not in self.wrap:
            steps = steps.clip(0, n - 1)
        whole = np.floor(steps)
        share = steps - whole
        share[share < _SHARE_OF_ROUNDING] = 0.0
        share[share > 1 - _SHARE_OF_ROUNDING] = 1.0
        near = whole.astype(np.int64)[:, np.newaxis] + np.arange(2)
        if axis in self.wrap:
            near %= n
        # What has no weight is named as what has it, so that no row lists a state in vain.
        near[:, 1] = np.where(share == 0.0, near[:, 0], near[:, 1])
        near[:, 0] = np.where(share == 1.0, near[:, 1], near[:, 0])
        return near, share

    def _shares_along(self, axis: int, low: float, high: float) -> NDArray[np.float64]:
        """Return mean weights over an interval: between corners they are linear."""
        n, first, width = self.bins[axis], self.first[axis], self.widths[axis]
        ends = np.array([low, high])
        begin = math.floor((low - first) / width)
        last = math.floor((high - first) / width) + 1
        if axis not in self.wrap:
            begin, last = max(begin, 0), min(last, n - 1)
        places = np.arange(begin, last + 1) * width + first
        places = np.unique(np.concatenate([ends, places[(places > low) & (places < high)]]))
        near, share = self._along(axis, places)
        weights = np.zeros((len(places), n))
        rows = np.arange(len(places))
        np.add.at(weights, (rows, near[:, 0]), 1 - share)
        np.add.at(weights, (rows, near[:, 1]), share)
        if low == high:
            return weights[0]
        lengths = np.diff(places)[:, np.newaxis]
        means = (weights[1:] + weights[:-1]) / 2
        return (means * lengths).sum(axis=0) / (high - low)
