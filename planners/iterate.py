"""The one loop: every solver steps, this file counts, certifies, records and stops.

The loop owns the values.  A step writes a new V beside the last one, which stays as it is until the
step is over, so that whatever ends the run within a step, the V of the last whole iteration is
there.  What a step says of its V counts only as far as the sweep that it names did write it; the
bound of the result, and whether it meets the tolerance, come from a sweep that the loop makes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planners.budget import Budget, Clock, OutOfTimeError
from planners.certificate import Certifier
from planners.judge import Judge, Run, Whole
from planners.kernels import compiling
from planners.result import KEYBOARD, History, Status
from planners.solvers.base import Solver, Step

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
    """

    iteration: int
    num_updates: int
    seconds: float
    num_megastates: int
    residual: float
    bound: float
    _values: Callable[[], NDArray[np.float64]] = field(repr=False)

    @property
    def values(self) -> NDArray[np.float64]:
        """What the result's values would be now, shape (S,), as a new array.

        Ask for them during the callback: later they are those of a later iteration.
        """
        return self._values()


Callback = Callable[[Progress], object]


def iterate(
    solver: Solver,
    V0: NDArray[np.float64],
    certifier: Certifier,
    budget: Budget,
    clock: Clock,
    *,
    defines_values: bool = False,
    certify_every: bool = False,
    callback: Callback | None = None,
) -> Run:
    """Step a solver until it has converged, its budget is used up, or it is interrupted.

    Ctrl-C ends the run after the last whole iteration; it is reported in the status, not raised.

    Parameters
    ----------
    solver : Solver
    V0 : ndarray of float, shape (S,)
        Where to start; not changed.
    certifier : Certifier
    budget : Budget
    clock : Clock
        Started when the work on the problem began; its `Clock.check` is the checkpoint of the
        certifier's backups.
    defines_values : bool
        Whether the values are the method's own V even where it runs to a tolerance.
    certify_every : bool
        Whether each iteration gets a bound, if need be by a sweep of its own.
    callback : callable, optional
    """
    judge = Judge(certifier, budget, defines_values=defines_values)
    record = _Record()
    whole = Whole(V0.copy(), np.empty_like(V0), None, None, None, 0, 0, 0)
    end: tuple[Status, str] | None = None
    try:
        try:
            with compiling.interruptible():
                while end is None:
                    step = solver.step(whole.V, whole.spare)
                    claim = judge.claim(step, whole.spare)
                    record.add(step, clock.seconds(), judge.bound(claim))
                    whole = whole.after(step, claim)
                    if claim is None and (certify_every or judge.is_due(whole)):
                        record.set_bound(judge.checked_bound(whole))
                    end = judge.end(step, whole)
                    if judge.closes(whole, end):
                        closed = judge.closed(whole, end)
                        if closed is not None and (end is None or closed[0][0].success):
                            end, whole = closed
                    if end is None:
                        end = budget.exhausted(
                            whole.num_iterations, whole.num_updates, record.seconds
                        )
                    if end is not None or judge.has_checked(whole):
                        record.settle(judge.checked_bound(whole))
                    if callback is not None:
                        progress = record.progress(functools.partial(judge.values, whole))
                        if callback(progress) and end is None:
                            end = Status.INTERRUPTED, "stopped by the callback"
        except KeyboardInterrupt:
            end = Status.INTERRUPTED, KEYBOARD
        except OutOfTimeError:
            end = budget.out_of_time()
        clock.lift()
        with compiling.interruptible():
            return judge.run(whole, end, record.history(whole.num_iterations))
    except KeyboardInterrupt:
        # What was found is not lost for the sweep that certifies it.
        clock.lift()
        return judge.run(
            whole, (Status.INTERRUPTED, KEYBOARD), record.history(whole.num_iterations)
        )


class _Record:
    """Grows the history; beyond `_MOST_ROWS` every second row is dropped, again and again."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, float, int, float, float]] = []
        self._stride = 1
        self._last: tuple[int, int, float, int, float, float] = (0, 0, 0.0, 0, math.nan, math.nan)

    @property
    def seconds(self) -> float:
        """When the last iteration ended."""
        return self._last[2]

    def add(self, step: Step, seconds: float, bound: float) -> None:
        iteration, num_updates = self._last[0] + 1, self._last[1] + step.num_updates
        residual = math.nan if step.sweep is None else step.sweep.residual
        self._last = (iteration, num_updates, seconds, step.num_megastates, residual, bound)
        if (iteration - 1) % self._stride == 0:
            if len(self._rows) == _MOST_ROWS:
                del self._rows[1::2]
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

    def progress(self, values: Callable[[], NDArray[np.float64]]) -> Progress:
        """Return what a callback sees of the last iteration."""
        return Progress(*self._last, values)

    def history(self, num_iterations: int) -> History:
        """Return the rows up to an iteration, the last one in any case."""
        rows = [row for row in self._rows if row[0] <= num_iterations]
        if self._last[0] == num_iterations > 0 and rows[-1][0] != num_iterations:
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
