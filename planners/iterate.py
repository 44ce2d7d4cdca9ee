"""The one loop: every solver steps, this file counts, certifies, records and stops."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from planners import compiling
from planners.bellman import UNIT_ROUNDOFF, Backups, Sweep
from planners.certificate import Certificate, Certifier
from planners.result import KEYBOARD, History, Status


@dataclass(frozen=True)
class Step:
    """What one iteration of a solver did.

    Parameters
    ----------
    num_updates : int
        Backups made, those by a policy included.
    sweep : Sweep, optional
        What the full sweep saw that ended the iteration, and whose image is the new V.
    num_megastates : int
        K where the iteration was aggregated, else 0.
    num_sweeps : int
        How often it went over all states: Bellman and Gauss-Seidel sweeps, sweeps by a policy, and
        products with its matrix in a linear solver.
    """

    num_updates: int
    sweep: Sweep | None = None
    num_megastates: int = 0
    num_sweeps: int = 0


class Solver(Protocol):
    """A method, ready to take its next iteration."""

    #: Whether the method's values are the middle of the certified interval, not V itself; V is then
    #: 0 in terminal states.
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
        Certified bound of ``values``; NaN where none was computed.
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

    def exhausted(self, iterations: int, updates: int, seconds: float) -> tuple[Status, str] | None:
        """Return how the run ends where a limit is reached."""
        if self.num_iterations is not None and iterations >= self.num_iterations:
            reached = f"{iterations} iterations made"
        elif self.num_updates is not None and updates >= self.num_updates:
            reached = f"{updates} updates made"
        elif self.time_limit is not None and seconds >= self.time_limit:
            reached = f"time limit of {self.time_limit:g} s reached"
        else:
            return None
        if self.has_tolerance:
            return Status.STOPPED_SHORT, f"{reached} before the tolerance was met"
        return Status.COMPLETED, reached


@dataclass(frozen=True)
class Run:
    """What the loop leaves to `planners.solve` to make a result of."""

    values: NDArray[np.float64]
    shift: float  # how far they are from the V that the method came to
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
    certifier: Certifier,
    budget: Budget,
    *,
    certify_every: bool = False,
    callback: Callback | None = None,
) -> Run:
    """Step a solver until it has converged, its budget is used up, or it is interrupted.

    Ctrl-C ends the run after the last whole iteration; it is reported in the status, not raised.
    """
    clock = Clock()
    backups = certifier.backups
    accuracy = _Accuracy(budget, backups)
    record = _Record()
    terminal = backups.model.terminal
    certificate: Certificate | None = None
    image = np.empty(len(terminal)) if certify_every else None
    num_sweeps = num_certificate_sweeps = 0
    end: tuple[Status, str] | None = None
    checked: _Checked | None = None

    def full_sweep() -> _Checked:
        out = np.empty(len(terminal))
        return _Checked(out, certifier.of_image(backups.sweep(solver.values(), out), True))

    try:
        while end is None:
            step = solver.step()
            sweep, certificate, checked = step.sweep, None, None
            num_sweeps += step.num_sweeps
            if sweep is not None:
                certificate = certifier.of_image(sweep, solver.recentres)
            elif image is not None:
                num_certificate_sweeps += 1
                certificate = certifier.of_argument(
                    backups.sweep(solver.values(), image), solver.recentres
                )
            bound = math.nan if certificate is None else _bound(solver, certificate)
            values = functools.partial(_values, solver, certificate, terminal)
            progress = record.add(step, clock.seconds(), bound, values)
            if certificate is not None and sweep is not None and budget.has_tolerance:
                shift = certificate.midpoint if solver.recentres else 0.0
                size = certifier.size(sweep, shift)
                end = accuracy.judge(sweep, certificate, bound, size, solver.recentres)
                if end is not None and sweep.in_place and end[0] == Status.CONVERGED:
                    # A sweep in place tells little of the greedy policy: a full one has to agree.
                    num_certificate_sweeps += 1
                    swept = full_sweep()
                    end = accuracy.met(swept.certificate.half_width, size)
                    checked = swept if end is not None else None
            if end is None:
                end = budget.exhausted(progress.iteration, progress.num_updates, progress.seconds)
            if callback is not None and callback(progress) and end is None:
                end = Status.INTERRUPTED, "stopped by the callback"
    except KeyboardInterrupt:
        end = Status.INTERRUPTED, KEYBOARD
        certificate = checked = None  # V may be one step ahead of them

    if solver.recentres and certificate is None:
        num_certificate_sweeps += 1
        checked = full_sweep()
    if checked is None:
        solution = _values(solver, certificate, terminal)
    else:
        solution, certificate = checked.image, checked.certificate
        _recentre(solution, certificate, terminal)
    return Run(
        solution,
        certificate.midpoint if solver.recentres and certificate is not None else 0.0,
        None if certificate is None else _bound(solver, certificate),
        *end,
        num_sweeps,
        record.num_updates,
        num_certificate_sweeps,
        clock.seconds(),
        record.history(),
    )


class _Checked(NamedTuple):
    """TV of the solver's V, and what is known of it."""

    image: NDArray[np.float64]
    certificate: Certificate


def _bound(solver: Solver, certificate: Certificate) -> float:
    return certificate.half_width if solver.recentres else certificate.radius


def _values(
    solver: Solver, certificate: Certificate | None, terminal: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return what the method's values are now, as a new array."""
    values = solver.values().copy()
    if solver.recentres and certificate is not None:
        _recentre(values, certificate, terminal)
    return values


def _recentre(
    values: NDArray[np.float64], certificate: Certificate, terminal: NDArray[np.bool_]
) -> None:
    values += certificate.midpoint
    values[terminal] = 0.0


class _Accuracy:
    """Judges whether the tolerance is met, or beyond what float64 can certify."""

    def __init__(self, budget: Budget, backups: Backups) -> None:
        self._budget = budget
        gamma = backups.gamma
        # In exact arithmetic this many sweeps halve the range of the residual: where they do not,
        # rounding may have the better of it.
        self._window = max(1, math.ceil(math.log(0.5) / math.log(gamma))) if gamma > 0 else 1
        # With a rounding d a sweep leaves at most gamma r + 4 d of a range r.  If over .9 r is left
        # after a window, r <= 5 d / (1 - gamma), and the bound 2.5 allowances / (1 - gamma).
        # A method that stays above that has reasons of its own.
        self._level = 8 / (1 - gamma)
        # Far below the last digit of any cost: where V* is 0, no relative accuracy is reached.
        self._negligible = UNIT_ROUNDOFF**2 * backups.max_cost
        self._ranges: list[float] = []

    def met(self, bound: float, size: float) -> tuple[Status, str] | None:
        """Return how the run ends where the bound is small enough; ``size`` is max|V|."""
        target = self._budget.target(size)
        if bound <= target:
            return Status.CONVERGED, f"bound {bound:.3g} <= {target:.3g}"
        return None

    def judge(
        self, sweep: Sweep, certificate: Certificate, bound: float, size: float, recentres: bool
    ) -> tuple[Status, str] | None:
        """Return how the run ends here, if it does; ``size`` is max|V|."""
        end = self.met(bound, size)
        if end is not None:
            return end
        target = self._budget.target(size)
        low, high = sweep.residual_low, sweep.residual_high
        if sweep.in_place:  # then it is the range together with 0 that contracts
            low, high = min(low, 0.0), max(high, 0.0)
        self._ranges.append(high - low)
        stalls = (
            bound <= self._level * certificate.allowance
            and len(self._ranges) > self._window
            and min(self._ranges[-self._window :]) >= 0.9 * min(self._ranges[: -self._window])
        )
        # What Algorithm 3 defines stays where it is for other reasons.
        if recentres and (stalls or bound <= max(1.1 * certificate.allowance, self._negligible)):
            return (
                Status.STOPPED_SHORT,
                f"float64 can certify no better than {_relative(bound, size)} here, "
                f"{_relative(target, size)} was asked for",
            )
        return None


def _relative(bound: float, max_value: float) -> str:
    if max_value > 0:
        return f"{bound / max_value:.2g} of max|V| ({bound:.2g})"
    return f"{bound:.2g}"


class _Record:
    """Grows the history."""

    def __init__(self) -> None:
        self.num_updates = 0
        self._rows: list[tuple[int, float, int, float, float]] = []

    def add(
        self, step: Step, seconds: float, bound: float, values: Callable[[], NDArray[np.float64]]
    ) -> Progress:
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
            values,
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
