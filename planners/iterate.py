"""The one loop: every solver steps, this file counts, certifies, records and stops."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from planners import compiling
from planners.bellman import Backups, Sweep
from planners.certificate import Certificate, Certifier
from planners.result import History, Status


@dataclass(frozen=True)
class Step:
    """What one iteration of a solver did.

    Parameters
    ----------
    num_updates : int
        Backups made.
    sweep : Sweep, optional
        What it saw, where the iteration was a full sweep whose image is the new V.
    num_megastates : int
        K where the iteration was aggregated, else 0.
    """

    num_updates: int
    sweep: Sweep | None = None
    num_megastates: int = 0


class Solver(Protocol):
    """A method, ready to take its next iteration."""

    #: Whether the method's values are the middle of the certified interval, not V itself.
    recentres: bool

    def step(self) -> Step:
        """Make one iteration."""

    def values(self) -> NDArray[np.float64]:
        """Return the current V, shape (S,), not to be changed or kept."""

    def labels(self) -> NDArray[np.int32] | None:
        """Return the last mega-state of each state, where the method has such."""


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
        Certified bound; NaN where none was computed.
    solver : Solver
    """

    iteration: int
    num_updates: int
    seconds: float
    num_megastates: int
    residual: float
    bound: float
    solver: Solver

    @property
    def values(self) -> NDArray[np.float64]:
        """The current V, shape (S,), as a copy."""
        return self.solver.values().copy()


Callback = Callable[[Progress], object]


@dataclass(frozen=True)
class Budget:
    """When to stop; None means no limit.

    Parameters
    ----------
    tol, atol : float, optional
        Converged at ``bound <= max(atol, tol * max|V|)``.
    num_iterations, num_updates : int, optional
    time_limit : float, optional
        Seconds, without the compilation of kernels.
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

    def target(self, max_value: float) -> float:
        """Return the bound to reach where ``max|V|`` is known."""
        return max(self.atol or 0.0, (self.tol or 0.0) * max_value)

    def exhausted(self, iterations: int, updates: int, seconds: float) -> str | None:
        """Return which limit is reached, if one is."""
        if self.num_iterations is not None and iterations >= self.num_iterations:
            return f"{iterations} iterations made"
        if self.num_updates is not None and updates >= self.num_updates:
            return f"{updates} updates made"
        if self.time_limit is not None and seconds >= self.time_limit:
            return f"time limit of {self.time_limit:g} s reached"
        return None


@dataclass(frozen=True)
class Run:
    """What the loop leaves to `planners.solve` to make a result of."""

    values: NDArray[np.float64]
    bound: float | None
    status: Status
    message: str
    num_sweeps: int
    num_updates: int
    num_certificate_sweeps: int
    seconds: float
    history: History


class Clock:
    """Seconds since it was made, without the compilation of kernels."""

    def __init__(self) -> None:
        self._start = time.perf_counter() - compiling.seconds()

    def seconds(self) -> float:
        """Return the seconds so far."""
        return time.perf_counter() - compiling.seconds() - self._start


def iterate(
    solver: Solver,
    backups: Backups,
    budget: Budget,
    *,
    certify_every: bool = False,
    callback: Callback | None = None,
) -> Run:
    """Step a solver until it has converged, its budget is used up, or it is interrupted.

    Ctrl-C ends the run after the last whole iteration; it is reported in the status, not raised.
    """
    clock = Clock()
    certifier = Certifier(backups)
    gamma = backups.gamma
    # In exact arithmetic this many sweeps halve the range of the residual: where they do not,
    # rounding has the better of it.
    window = max(1, math.ceil(math.log(0.5) / math.log(gamma))) if gamma > 0 else 1
    ranges: list[float] = []
    record = _Record()
    certificate: Certificate | None = None
    image = np.empty(backups.model.num_states) if certify_every else None
    num_sweeps = num_certificate_sweeps = 0
    status, message = Status.COMPLETED, ""
    try:
        while not message:
            step = solver.step()
            sweep, certificate = step.sweep, None
            if sweep is not None:
                num_sweeps += 1
                certificate = certifier.of_image(sweep)
            elif image is not None:
                num_certificate_sweeps += 1
                certificate = certifier.of_argument(backups.sweep(solver.values(), image))
            bound = math.nan
            if certificate is not None:
                bound = certificate.half_width if solver.recentres else certificate.radius
            progress = record.add(step, clock.seconds(), bound, solver)

            if certificate is not None and sweep is not None and budget.has_tolerance:
                max_value = max(-sweep.low, sweep.high)
                target = budget.target(max_value)
                ranges.append(sweep.residual_high - sweep.residual_low)
                if bound <= target:
                    status, message = Status.CONVERGED, f"bound {bound:.3g} <= {target:.3g}"
                elif solver.recentres and (
                    bound <= 2 * certificate.allowance
                    or (len(ranges) > window and ranges[-1] >= 0.9 * ranges[-1 - window])
                ):
                    status = Status.STOPPED_SHORT
                    message = (
                        f"float64 can certify no better than {_relative(bound, max_value)} here, "
                        f"{_relative(target, max_value)} was asked for"
                    )
            if not message:
                limit = budget.exhausted(progress.iteration, progress.num_updates, progress.seconds)
                if limit is not None:
                    message = limit
                    if budget.has_tolerance:
                        status = Status.STOPPED_SHORT
                        message += " before the tolerance was met"
            if not message and callback is not None and callback(progress):
                status, message = Status.INTERRUPTED, "stopped by the callback"
    except KeyboardInterrupt:
        status, message = Status.INTERRUPTED, "interrupted from the keyboard"
        certificate = None  # V may be one step ahead of it

    values = solver.values().copy()
    if certificate is None and solver.recentres:
        image = np.empty_like(values)
        num_certificate_sweeps += 1
        certificate = certifier.of_image(backups.sweep(values, image))
        values = image
    final_bound: float | None = None
    if certificate is not None:
        final_bound = certificate.radius
        if solver.recentres:
            values += certificate.midpoint
            values[backups.model.terminal] = 0.0
            final_bound = certificate.half_width
    return Run(
        values,
        final_bound,
        status,
        message,
        num_sweeps,
        record.num_updates,
        num_certificate_sweeps,
        clock.seconds(),
        record.history(),
    )


def _relative(bound: float, max_value: float) -> str:
    if max_value > 0:
        return f"{bound / max_value:.2g} of max|V| ({bound:.2g})"
    return f"{bound:.2g}"


class _Record:
    """Grows the history."""

    def __init__(self) -> None:
        self.num_updates = 0
        self._rows: list[tuple[int, float, int, float, float]] = []

    def add(self, step: Step, seconds: float, bound: float, solver: Solver) -> Progress:
        self.num_updates += step.num_updates
        residual = math.nan if step.sweep is None else step.sweep.residual
        self._rows.append((self.num_updates, seconds, step.num_megastates, residual, bound))
        return Progress(
            len(self._rows),
            self.num_updates,
            seconds,
            step.num_megastates,
            residual,
            bound,
            solver,
        )

    def history(self) -> History:
        columns = list(zip(*self._rows, strict=True)) or [()] * 5
        updates, seconds, megastates, residual, bound = columns
        return History(
            num_updates=np.array(updates, dtype=np.int64),
            seconds=np.array(seconds, dtype=np.float64),
            num_megastates=np.array(megastates, dtype=np.int64),
            residual=np.array(residual, dtype=np.float64),
            bound=np.array(bound, dtype=np.float64),
        )
