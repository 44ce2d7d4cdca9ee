"""Equal cells of a box of real numbers, some of whose axes may be angles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_finite, check_integer
from aggmaze.grid import Grid


@dataclass(frozen=True)
class Cells:
    """Equal cells of a box, and if episodes end one state more: having ended.

    Cell ``(i, j, ...)`` has the index ``ravel_multi_index((i, j, ...), bins)``; ``end`` is the last
    state.  The outermost cells take what lies beyond the box as well, but along axes that wrap
    around, where the last cell is next to the first one.

    Parameters
    ----------
    bins : tuple of int
        Number of bins along each of D axes.
    low, high : tuple of float
        The box.
    wrap : tuple of int
        Axes along which ``high`` is where ``low`` is, such as angles.
    ends : bool
        Whether there is a state of having ended.
    """

    bins: tuple[int, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    wrap: tuple[int, ...] = ()
    ends: bool = True

    @cached_property
    def grid(self) -> Grid:
        """The grid of cells."""
        return Grid(self.bins)

    @property
    def num_axes(self) -> int:
        """Number of axes D."""
        return len(self.bins)

    @property
    def num_cells(self) -> int:
        """Number of cells, without the state of having ended."""
        return self.grid.num_states

    @property
    def num_states(self) -> int:
        """Number of states S."""
        return self.num_cells + self.ends

    @property
    def end(self) -> int:
        """The state of having ended; -1, which is no state, where episodes do not end."""
        return self.num_cells if self.ends else -1

    @cached_property
    def spans(self) -> NDArray[np.float64]:
        """Length of the box along each axis, shape (D,)."""
        return np.array(self.high) - np.array(self.low)

    @cached_property
    def widths(self) -> NDArray[np.float64]:
        """Width of a cell along each axis, shape (D,)."""
        return self.spans / np.array(self.bins)

    def states(self, points: ArrayLike) -> NDArray[np.int64]:
        """Return the cell of each point, shape (..., D) to (...,); none of them has ended."""
        return self._states(np.floor((np.asarray(points) - self.low) / self.widths))

    def points(
        self, states: ArrayLike, sub_points: Sequence[int] | None = None
    ) -> NDArray[np.float64]:
        """Return points spread evenly over cells.

        Parameters
        ----------
        states : array_like of int, shape (N,)
        sub_points : sequence of int, optional
            Points along each axis; one, the centre, by default.

        Returns
        -------
        ndarray of float, shape (N, prod(sub_points), D)
        """
        counts = (1,) * self.num_axes if sub_points is None else sub_points
        lines = [(np.arange(k) + 0.5) / k for k in counts]
        offsets = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1)
        corners = self.grid.coords(states)[:, np.newaxis]
        return (corners + offsets.reshape(-1, self.num_axes)) * self.widths + self.low

    def shares(self, low: ArrayLike, high: ArrayLike) -> NDArray[np.float64]:
        """Return how what is uniform in a box spreads over the states.

        Parameters
        ----------
        low, high : float, or array_like of float, shape (D,)
            Ends of the box along each axis, or along all; where both are one number, so is the
            point.

        Returns
        -------
        ndarray of float, shape (S,)
            Sums to 1; having ended gets nothing.
        """
        shares = np.ones(1)
        ends = (np.broadcast_to(end, self.num_axes).tolist() for end in (low, high))
        for axis, (least, most) in enumerate(zip(*ends, strict=True)):
            shares = np.multiply.outer(shares, self._shares_along(axis, least, most)).reshape(-1)
        return np.append(shares, 0.0) if self.ends else shares

    def differences(
        self, before: NDArray[np.float64], after: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return how far points went along each axis, the shorter way around.

        Parameters
        ----------
        before, after : ndarray of float, shape (N, D)
        """
        gone = after - before
        for axis in self.wrap:
            span = self.spans[axis]
            gone[:, axis] -= span * np.round(gone[:, axis] / span)
        return gone

    def _states(self, places: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the states at whole numbers along the axes, as floats that may lie beyond."""
        for axis in self.wrap:
            places[..., axis] %= self.bins[axis]
        coords = np.clip(places, 0, np.array(self.bins) - 1).astype(np.int64)
        return coords @ np.array(self.grid.strides)

    def _shares_along(self, axis: int, low: float, high: float) -> NDArray[np.float64]:
        n, first, width = self.bins[axis], self.low[axis], self.widths[axis]
        if low == high:
            place = math.floor((low - first) / width)
            place = place % n if axis in self.wrap else min(max(place, 0), n - 1)
            return np.eye(n)[place]
        inner = np.arange(1, n) * width + first
        if axis not in self.wrap:
            edges = np.concatenate([[-np.inf], inner, [np.inf]])
            return np.diff(edges.clip(low, high)) / (high - low)
        span = self.spans[axis]
        edges = np.concatenate([[first], inner, [first + span]])
        turns = range(math.floor((low - first) / span), math.ceil((high - first) / span))
        covered = [np.diff((edges + turn * span).clip(low, high)) for turn in turns]
        return np.sum(covered, axis=0) / (high - low)


def one_each(name: str, values: Iterable[Any], axes: Sequence[str]) -> tuple[Any, ...]:
    """Return one entry for each axis, and refuse any other number of them.

    Parameters
    ----------
    name : str
        What the error calls them.
    values : iterable
    axes : sequence of str
        Names of the axes.
    """
    entries = tuple(values) if isinstance(values, Iterable) else None
    if entries is None or len(entries) != len(axes):
        raise ValueError(
            f"{name} must be {len(axes)} numbers, of {', '.join(axes)}, got {values!r}"
        )
    return entries


def check_counts(name: str, values: int | Iterable[int], axes: Sequence[str]) -> tuple[int, ...]:
    """Return a number of at least 1 for each axis, given one number for all or one for each.

    Parameters
    ----------
    name : str
        What the error calls them.
    values : int or iterable of int
    axes : sequence of str

    Raises
    ------
    ValueError, TypeError
        If that is not an integer of at least 1, or one for each axis.
    """
    if not np.iterable(values):
        return (check_integer(name, values, least=1),) * len(axes)
    return tuple(
        check_integer(f"{name}[{axis}]", n, least=1)
        for axis, n in enumerate(one_each(name, values, axes))
    )


def check_box(
    low: Iterable[float], high: Iterable[float], axes: Sequence[str], names: tuple[str, str]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the ends of a box, finite and in order; both may be the same.

    Parameters
    ----------
    low, high : iterable of float
    axes : sequence of str
    names : pair of str
        What the error calls them.

    Raises
    ------
    ValueError
        If there is not one for each axis, one is not finite, or the lower one is above the other.
    """
    ends = []
    for name, given in zip(names, (low, high), strict=True):
        entries = one_each(name, given, axes)
        for axis, value in enumerate(entries):
            check_finite(f"{name}[{axis}]", value)
        ends.append(tuple(float(value) for value in entries))
    for axis, (least, most) in enumerate(zip(*ends, strict=True)):
        if least > most:
            raise ValueError(
                f"{names[0]}[{axis}] must be at most {names[1]}[{axis}] = {most}, got {least}"
            )
    return ends[0], ends[1]
