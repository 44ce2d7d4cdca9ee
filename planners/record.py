"""What is noted of a run: a row of the history an iteration, and what a callback sees of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planners.result import History

# Most rows of the history.
_MOST_ROWS = 100_000


@dataclass(frozen=True)
class Progress:
    """What a callback sees after an iteration.

    Parameters
    ----------
    iteration : int
        Counted from 1.
    num_updates : int
    seconds : float
    num_megastates : int
        K in an aggregated iteration, 0 in a global one.
    residual : float
        Sup norm of TV - V; NaN where the iteration was no full sweep.
    bound : float
        What the iteration itself says of the error of ``values``; NaN where it says nothing.  The
        bound of the result is computed anew from its values.
    resumed_at : int
        The iteration of the checkpoint from which the run was gone on with; 0 where there was none.
    """

    iteration: int
    num_updates: int
    seconds: float
    num_megastates: int
    residual: float
    bound: float
    _values: Callable[[], NDArray[np.float64]] = field(repr=False)
    _labels: Callable[[], NDArray[np.int32]] | None = field(default=None, repr=False)
    resumed_at: int = 0

    @property
    def phase(self) -> str:
        """What kind of iteration it was: "aggregated", on mega-states, or "global"."""
        return "aggregated" if self.num_megastates else "global"

    @property
    def labels(self) -> NDArray[np.int32] | None:
        """The last mega-state of each state, shape (S,), as a new array; None before there are any.

        Ask for them during the callback, as for `values`.
        """
        return None if self._labels is None else self._labels().copy()

    @property
    def values(self) -> NDArray[np.float64]:
        """What the result's values would be now, shape (S,), as a new array.

        Ask for them during the callback: later they are those of a later iteration.
        """
        return self._values()


Callback = Callable[[Progress], object]

Row = tuple[int, int, float, int, float, float]
#: A row in a table of numpy.
ROW = np.dtype(
    [
        ("iteration", "<i8"),
        ("num_updates", "<i8"),
        ("seconds", "<f8"),
        ("num_megastates", "<i8"),
        ("residual", "<f8"),
        ("bound", "<f8"),
    ]
)


class Mark(NamedTuple):
    """What was noted up to some iteration, while more is added."""

    rows: list[Row]
    num_rows: int
    last: Row
    stride: int

    def table(self) -> NDArray[np.void]:
        """Return the rows as they were."""
        table = np.array(self.rows[: self.num_rows], dtype=ROW)
        if self.num_rows and table[-1]["iteration"] == self.last[0]:
            table[-1] = self.last
        return table


class Record:
    """Grows the history; beyond `_MOST_ROWS` every second row is dropped, again and again."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._stride = 1
        self._resumed_at = 0
        self._last: Row = (0, 0, 0.0, 0, math.nan, math.nan)

    @property
    def seconds(self) -> float:
        """When the last iteration ended."""
        return self._last[2]

    def add(
        self,
        seconds: float,
        bound: float,
        *,
        num_updates: int,
        residual: float = math.nan,
        num_megastates: int = 0,
    ) -> None:
        """Take note of an iteration.

        Parameters
        ----------
        seconds : float
            When it ended.
        bound : float
            NaN where none is known.
        num_updates : int
            Those of this iteration.
        residual : float
            NaN where it was no full sweep.
        num_megastates : int
            0 where it was global.
        """
        iteration, num_updates = self._last[0] + 1, self._last[1] + num_updates
        self._last = (iteration, num_updates, seconds, num_megastates, residual, bound)
        if (iteration - 1) % self._stride == 0:
            if len(self._rows) == _MOST_ROWS:
                # A new list: a `mark` may hold the old one.
                self._rows = self._rows[::2]
                self._stride *= 2
            if (iteration - 1) % self._stride == 0:
                self._rows.append(self._last)

    def set_bound(self, bound: float) -> None:
        """Put in a bound of the last iteration that was computed afterwards."""
        kept = bool(self._rows) and self._rows[-1] is self._last
        self._last = (*self._last[:-1], bound)
        if kept:
            self._rows[-1] = self._last

    def settle(self, bound: float) -> None:
        """Put the bound of the result in the place of the last claim, if there was one."""
        if not math.isnan(self._last[-1]):
            self.set_bound(bound)

    def progress(
        self,
        values: Callable[[], NDArray[np.float64]],
        labels: Callable[[], NDArray[np.int32]] | None = None,
    ) -> Progress:
        """Return what a callback sees of the last iteration.

        Parameters
        ----------
        values : callable
            Returns the values as a new array.
        labels : callable, optional
            Returns the last mega-states.
        """
        return Progress(*self._last, values, labels, self._resumed_at)

    def mark(self) -> Mark:
        """Return what is noted so far, without a copy of it."""
        return Mark(self._rows, len(self._rows), self._last, self._stride)

    def restore(self, rows: NDArray[np.void], last: Any, stride: int) -> None:
        """Go on with what was noted.

        Parameters
        ----------
        rows : ndarray of `ROW`
            What `Mark.table` returned.
        last : list
            The last row.
        stride : int
        """
        self._rows = rows.tolist()
        self._last = tuple(last)
        self._stride = stride
        self._resumed_at = self._last[0]
        if self._rows and self._rows[-1][0] == self._last[0]:
            self._rows[-1] = self._last

    def history(self, num_iterations: int) -> History:
        """Return the rows up to an iteration, the last one in any case."""
        rows = [row for row in self._rows if row[0] <= num_iterations]
        # Ctrl-C may have come before there was a first row.
        if self._last[0] == num_iterations > 0 and (not rows or rows[-1][0] != num_iterations):
            rows.append(self._last)
        columns = list(zip(*rows, strict=True)) or [()] * 6
        iteration, updates, seconds, megastates, residual, bound = columns
        return History(
            iteration=np.array(iteration, dtype=np.int64),
            num_updates=np.array(updates, dtype=np.int64),
            seconds=np.array(seconds, dtype=np.float64),
            num_megastates=np.array(megastates, dtype=np.int64),
            residual=np.array(residual, dtype=np.float64),
            bound=np.array(bound, dtype=np.float64),
        )
