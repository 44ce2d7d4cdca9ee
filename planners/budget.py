"""When a run ends: limits, and the clock that they are held against."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from planners.kernels import compiling
from planners.result import Status

# How long after the limit an iteration is given up, in seconds: it may be nearly done.
_GRACE = 0.5


@dataclass(frozen=True)
class Budget:
    """When to stop; None means no limit.

    Parameters
    ----------
    tol, atol : float, optional
        Converged at ``bound <= max(atol, tol * max|V|)``, V the values of the result.
    num_iterations, num_updates : int, optional
    time_limit : float, optional
        Seconds, without compiling and loading kernels.
    """

    tol: float | None = None
    atol: float | None = None
    num_iterations: int | None = None
    num_updates: int | None = None
    time_limit: float | None = None

    @property
    def has_tolerance(self) -> bool:
        """Whether there is an accuracy to reach."""
        return self.tol is not None or self.atol is not None

    @property
    def counts(self) -> bool:
        """Whether there is a limit to iterations or updates."""
        return self.num_iterations is not None or self.num_updates is not None

    def target(self, max_value: float) -> float:
        """Return the bound to reach where ``max|V|`` is known."""
        return max(self.atol or 0.0, (self.tol or 0.0) * max_value)

    def exhausted(self, iterations: int, updates: int, seconds: float) -> tuple[Status, str] | None:
        """Return how the run ends where a limit is reached, None elsewhere.

        Parameters
        ----------
        iterations, updates : int
            Made so far.
        seconds : float
            Taken so far.
        """
        if self.num_iterations is not None and iterations >= self.num_iterations:
            return self._ended(f"{iterations} iterations made")
        if self.num_updates is not None and updates >= self.num_updates:
            return self._ended(f"{updates} updates made")
        if self.time_limit is not None and seconds >= self.time_limit:
            return self.out_of_time()
        return None

    def out_of_time(self) -> tuple[Status, str]:
        """Return how the run ends where the time limit is reached."""
        return self._ended(f"time limit of {self.time_limit:g} s reached")

    def _ended(self, reached: str) -> tuple[Status, str]:
        if self.has_tolerance:
            return Status.STOPPED_SHORT, f"{reached} before the tolerance was met"
        return Status.COMPLETED, reached


class OutOfTimeError(Exception):
    """The time limit was reached within an iteration."""


class Clock:
    """Seconds since it was made, without compiling and loading kernels, and a limit to them.

    Parameters
    ----------
    limit : float, optional
        Seconds.
    """

    def __init__(self, limit: float | None = None) -> None:
        self._start = time.perf_counter() - compiling.seconds()
        self._limit = math.inf if limit is None else limit + _GRACE

    def seconds(self) -> float:
        """Return the seconds so far."""
        return time.perf_counter() - compiling.seconds() - self._start

    def check(self) -> None:
        """Raise `OutOfTimeError` once the limit is well past: what long loops call."""
        if self._limit < math.inf and self.seconds() > self._limit:
            raise OutOfTimeError

    def lift(self) -> None:
        """Let what remains to be done take the time that it needs."""
        self._limit = math.inf
