"""The one loop: every solver steps, this file counts, certifies, records and stops.

The loop owns the values.  A step writes a new V beside the last one, which stays as it is until the
step is over, so that whatever ends the run within a step, the V of the last whole iteration is
there.  What a step says of its V counts only as far as the sweep that it names did write it; the
bound of the result, and whether it meets the tolerance, come from a sweep that the loop makes.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from planners.certificate import Certificate, Certifier, Check
from planners.engine import Engine, Sweep
from planners.kernels import compiling
from planners.kernels.pieces import UNIT_ROUNDOFF
from planners.linear.elimination import MOST_STATES, eliminate
from planners.policies import policy_model
from planners.result import KEYBOARD, History, Status

# How long after the limit an iteration is given up, in seconds: it may be nearly done.
_GRACE = 0.5
# After so many sweeps the greedy policy of a small model is first evaluated exactly; and where a
# policy's value ends a run although the tolerance is not met, in allowances for rounding.
_FIRST_CLOSING, _EXACT = 4096, 2.5
# Policies that are evaluated, if need be, before a run is given up.
_LAST_POLICIES = 16
# How much larger V is than the values where it is on the way to them.
_FAR = 4
# Most rows of the history.
_MOST_ROWS = 100_000


@dataclass(frozen=True)
class Step:
    """What one iteration of a solver did.

    Parameters
    ----------
    num_updates : int
        Engine made, those by a policy included.
    sweep : Sweep, optional
        What `Engine.sweep` or `Engine.gauss_seidel` returned, where that made the new V in
        ``out``: it certifies the new V for nothing.  Without it the loop makes sweeps of its own.
    num_megastates : int
        K where the iteration was aggregated, else 0.
    num_sweeps : int
        How often it went over all states: Bellman and Gauss-Seidel sweeps, sweeps by a policy, and
        products with its matrix in a linear solver.
    deferred : callable, optional
        ``deferred(array)`` writes the new V into an array of shape (S,), any number of times until
        the next step but one: for iterations that cost less than to write V does.  ``out`` is then
        not read.
    labels : callable, optional
        Returns the mega-state of each state after this iteration, shape (S,).
    settled : bool
        Whether further iterations change V by rounding only.
    """

    num_updates: int
    sweep: Sweep | None = None
    num_megastates: int = 0
    num_sweeps: int = 0
    deferred: Callable[[NDArray[np.float64]], None] | None = None
    labels: Callable[[], NDArray[np.int32]] | None = None
    settled: bool = False


class Solver(Protocol):
    """A method, which makes one iteration after another."""

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        """Make one iteration: from the last V a new one, written into ``out``, shape (S,) both.

        V stays as it is: it is what there is to return if the iteration is not finished.  Only
        where the last step was deferred, V is room for what it deferred.  The two arrays change
        places from one step to the next, and are the loop's.
        """


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

    def target(self, max_value: float) -> float:
        """Return the bound to reach where ``max|V|`` is known."""
        return max(self.atol or 0.0, (self.tol or 0.0) * max_value)

    def exhausted(self, iterations: int, updates: int, seconds: float) -> tuple[Status, str] | None:
        """Return how the run ends where a limit is reached."""
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


@dataclass(frozen=True)
class Run:
    """What the loop leaves to `planners.solve` to make a result of.

    Parameters
    ----------
    V : ndarray of float, shape (S,)
        What the method came to.
    values : ndarray of float, shape (S,)
        V, or the middle of the interval that is certified around it.
    check : Check
        Of V, by a sweep of the loop's own.
    bound : float
        Of ``values``.
    status : Status
    message : str
    num_iterations, num_sweeps, num_updates, num_certificate_sweeps : int
    labels : ndarray of int, shape (S,), optional
    history : History
    """

    V: NDArray[np.float64]
    values: NDArray[np.float64]
    check: Check
    bound: float
    status: Status
    message: str
    num_iterations: int
    num_sweeps: int
    num_updates: int
    num_certificate_sweeps: int
    labels: NDArray[np.int32] | None
    history: History


class _Whole(NamedTuple):
    """All that is known after a whole iteration, replaced by a single assignment.

    Whatever is interrupted, by Ctrl-C at any instruction too, the last one of these stands.
    """

    V: NDArray[np.float64]  # where ``deferred`` is set, room for it
    spare: NDArray[np.float64]  # for the next V
    deferred: Callable[[NDArray[np.float64]], None] | None
    claim: Certificate | None  # what the step's own sweep says of V
    labels: Callable[[], NDArray[np.int32]] | None
    num_iterations: int
    num_sweeps: int
    num_updates: int

    def values(self) -> NDArray[np.float64]:
        """Return the V of the iteration."""
        if self.deferred is not None:
            self.deferred(self.V)
        return self.V

    def after(self, step: Step, claim: Certificate | None) -> _Whole:
        """Return what there is after one more iteration."""
        new = (self.spare, self.V) if step.deferred is None else (self.V, self.spare)
        return _Whole(
            *new,
            step.deferred,
            claim,
            step.labels or self.labels,
            self.num_iterations + 1,
            self.num_sweeps + step.num_sweeps,
            self.num_updates + step.num_updates,
        )


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
    judge = _Judge(certifier, budget, defines_values=defines_values)
    record = _Record()
    whole = _Whole(V0.copy(), np.empty_like(V0), None, None, None, 0, 0, 0)
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
            return judge.run(whole, end, record)
    except KeyboardInterrupt:
        # What was found is not lost for the sweep that certifies it.
        clock.lift()
        return judge.run(whole, (Status.INTERRUPTED, KEYBOARD), record)


class _Judge:
    """Certifies what steps return, and says when a run ends.

    Steps make claims: the bounds that their own sweeps give.  A claim that meets the tolerance is
    checked by a sweep of the values, which has the last word, and which the policy needs anyway.
    """

    def __init__(self, certifier: Certifier, budget: Budget, *, defines_values: bool) -> None:
        #: Sweeps made to certify.
        self.num_sweeps = 0
        self._certifier = certifier
        self._budget = budget
        self._recentres = budget.has_tolerance and not defines_values
        # Such values may be other than 0 in terminal states.
        self._anchored = not defines_values
        self._terminal = certifier.engine.terminal
        self._num_states = certifier.engine.num_states
        self._floor = _Floor(certifier.engine)
        self._checked: tuple[_Whole, Check] | None = None
        # Updates when something was last known of V.
        self._updates_known = 0
        self._next_closing = _FIRST_CLOSING

    def claim(self, step: Step, out: NDArray[np.float64]) -> Certificate | None:
        """Return what the step's own sweep says of the V in ``out``, if it made that V."""
        sweep = step.sweep
        if sweep is None or step.deferred is not None or sweep.image is not out:
            return None
        return self._certifier.of_image(sweep, self._anchored)

    def bound(self, certificate: Certificate | None) -> float:
        """Return the bound of the values that a certificate gives; NaN for none."""
        if certificate is None:
            return math.nan
        return certificate.half_width if self._recentres else certificate.radius

    def is_due(self, whole: _Whole) -> bool:
        """Whether a sweep to certify is no more work than what was done since the last."""
        work = whole.num_updates - self._updates_known
        return self._budget.has_tolerance and work >= self._num_states

    def checked_bound(self, whole: _Whole) -> float:
        """Return the bound of the values by a sweep made for it."""
        return self._bound_and_shift(self._check(whole))[0]

    def has_checked(self, whole: _Whole) -> bool:
        """Whether a sweep was made of this V: then its bound, and its midpoint, are the ones."""
        return self._found(whole) is not None

    def end(self, step: Step, whole: _Whole) -> tuple[Status, str] | None:
        """Return how the run ends here, if its accuracy does end it."""
        if not self._budget.has_tolerance:
            return None
        claim = whole.claim
        if claim is None and not self.has_checked(whole):
            return None
        self._updates_known = whole.num_updates
        if claim is not None and step.sweep is not None:
            bound = self.bound(claim)
            shift = claim.midpoint if self._recentres else 0.0
            size = self._certifier.size(step.sweep, shift)
            extent = max(-step.sweep.low, step.sweep.high)
            allowance = claim.allowance
            low, high = step.sweep.residual_low, step.sweep.residual_high
            if step.sweep.in_place:  # then it is the range together with 0 that contracts
                low, high = min(low, 0.0), max(high, 0.0)
            width = high - low
        else:
            check = self._check(whole)
            bound, shift = self._bound_and_shift(check)
            size, extent = self._size(whole, shift), check.size
            allowance = check.certificate.allowance
            width = check.certificate.high - check.certificate.low
        if bound <= self._budget.target(size) or not bound < math.inf:
            # The claim is good enough, or there is something wrong with the values.
            check = self._check(whole)
            if not check.size < math.inf:
                return _OVERFLOW
            if claim is not None:
                _confirm(claim, check.certificate)
            bound, shift = self._bound_and_shift(check)
            end = self._met(bound, self._size(whole, shift))
            if end is not None:
                return end
        # What Algorithm 3 defines stays where it is for other reasons.
        if self._recentres and (
            step.settled or self._floor.reached(width, bound, allowance, size, extent)
        ):
            return self._no_better(bound, size)
        return None

    def closes(self, whole: _Whole, end: tuple[Status, str] | None) -> bool:
        """Whether it is time to end a run by policy iteration, if that is short.

        Where to evaluate a policy exactly is always affordable, a run that goes on and on after its
        policy is right, or nearly so, is ended by the value of that policy, or of what it is
        improved to: at numbers of sweeps each twice the last.  And one that is about to give up may
        do so for no more than the roundings of a V that is far larger than V*.
        """
        whole_model = self._certifier.engine.parts.size == 1 and self._num_states <= MOST_STATES
        if not (self._recentres and whole_model):
            return False
        if end is None:
            return whole.num_sweeps >= self._next_closing
        return end[0] == Status.STOPPED_SHORT and end is not _OVERFLOW

    def closed(
        self, whole: _Whole, end: tuple[Status, str] | None
    ) -> tuple[tuple[Status, str], _Whole] | None:
        """Return how the exact value of a policy ends the run, and that value, if one does.

        The first policy is greedy for V.  So many are looked at that elimination, S^3 / 3, takes no
        larger share of the work than the sweeps have taken.
        """
        engine, checked = self._certifier.engine, self._checked
        num_policies = 1 + 3 * engine.work * self._next_closing // self._num_states**3
        if end is not None:
            num_policies = max(num_policies, _LAST_POLICIES)
        self._next_closing *= 2
        policy = np.full(self._num_states, -1, dtype=np.int32)
        V = whole.values()
        for _ in range(num_policies):
            self.num_sweeps += 1
            last = policy.copy()
            engine.sweep(V, whole.spare, policy)
            if np.array_equal(policy, last):
                break
            value = eliminate(policy_model(engine.model, policy), engine.gamma)
            if value is None:
                break
            V = value
            found = whole._replace(V=V, deferred=None, claim=None)
            check = self._check(found)
            bound, shift = self._bound_and_shift(check)
            end = self._met(bound, self._size(found, shift))
            if end is not None:
                return (end[0], f"{end[1]}, by the exact value of a policy"), found
            if bound <= _EXACT * check.certificate.allowance:
                return self._no_better(bound, check.size), found
        self._checked = checked
        return None

    def values(self, whole: _Whole) -> NDArray[np.float64]:
        """Return what the method's values are now, as a new array."""
        V = whole.values()
        if not self._recentres:
            return V.copy()
        check = self._found(whole)
        if check is not None:
            return self._moved(V, check.certificate.midpoint)
        return V.copy() if whole.claim is None else self._moved(V, whole.claim.midpoint)

    def run(self, whole: _Whole, end: tuple[Status, str], record: _Record) -> Run:
        """Return the outcome, certified by a sweep of the values, whoever computed them."""
        check = self._check(whole)
        bound, shift = self._bound_and_shift(check)
        V = whole.V  # formed by the check
        values = self._moved(V, shift)
        if end[0] != Status.INTERRUPTED:
            end = self._last_word(end, bound, check, values)
        return Run(
            V,
            values,
            check,
            bound,
            *end,
            whole.num_iterations,
            whole.num_sweeps,
            whole.num_updates,
            self.num_sweeps,
            None if whole.labels is None else whole.labels(),
            record.history(whole.num_iterations),
        )

    def _last_word(
        self, end: tuple[Status, str], bound: float, check: Check, values: NDArray[np.float64]
    ) -> tuple[Status, str]:
        """Return how a run ends, given the bound of its result."""
        if not check.size < math.inf:
            return _OVERFLOW
        if not self._budget.has_tolerance:
            return end
        met = self._met(bound, self._certifier.engine.sup_norm(values))
        if met is None and end[0] == Status.CONVERGED:
            raise AssertionError(f"converged with a bound of {bound!r}")
        return end if end[0] == Status.CONVERGED or met is None else met

    def _found(self, whole: _Whole) -> Check | None:
        """Return what the sweep of this V said, if one was made."""
        checked = self._checked
        return checked[1] if checked is not None and checked[0] is whole else None

    def _check(self, whole: _Whole) -> Check:
        check = self._found(whole)
        if check is None:
            self.num_sweeps += 1
            check = self._certifier.check(whole.values(), whole.spare)
            self._checked = whole, check
        return check

    def _bound_and_shift(self, check: Check) -> tuple[float, float]:
        shift = check.certificate.midpoint if self._recentres else 0.0
        return check.bound(shift), shift

    def _moved(self, V: NDArray[np.float64], shift: float) -> NDArray[np.float64]:
        values = V.copy()
        if shift != 0.0:
            values += shift
            values[self._terminal] = 0.0
        return values

    def _size(self, whole: _Whole, shift: float) -> float:
        return self._certifier.engine.sup_norm(self._moved(whole.V, shift))

    def _met(self, bound: float, size: float) -> tuple[Status, str] | None:
        target = self._budget.target(size)
        if bound <= target:
            return Status.CONVERGED, f"bound {bound:.3g} <= {target:.3g}"
        return None

    def _no_better(self, bound: float, size: float) -> tuple[Status, str]:
        return (
            Status.STOPPED_SHORT,
            f"float64 can certify no better than {_relative(bound, size)} here, "
            f"{_relative(self._budget.target(size), size)} was asked for",
        )


_OVERFLOW = (
    Status.STOPPED_SHORT,
    "values are beyond what float64 can hold, or no numbers any more",
)


def _confirm(claim: Certificate, found: Certificate) -> None:
    """Refuse a claim that a sweep of the values refutes."""
    # Both intervals hold V* - V.
    if claim.low > found.high or claim.high < found.low:
        raise RuntimeError(
            f"the solver's sweep says that V* - V is in [{claim.low!r}, {claim.high!r}], a sweep "
            f"of its V that it is in [{found.low!r}, {found.high!r}]: V was changed after the "
            "solver's sweep"
        )


class _Floor:
    """Tells when rounding keeps the bound from getting smaller."""

    def __init__(self, engine: Engine) -> None:
        gamma = engine.gamma
        # In exact arithmetic this many sweeps halve the range of the residual: where they do not,
        # rounding may have the better of it.
        self._window = max(1, math.ceil(math.log(0.5) / math.log(gamma))) if gamma > 0 else 1
        # With a rounding d a sweep leaves at most gamma r + 4 d of a range r.  If over .9 r is left
        # after a window, r <= 5 d / (1 - gamma), and the bound 2.5 allowances / (1 - gamma).
        # A method that stays above that has reasons of its own.
        self._level = 8 / (1 - gamma)
        self._max_cost = engine.max_cost
        # Least range before this window, and in it.
        self._before = self._least = math.inf
        self._count = 0
        self._first_size: float | None = None

    def reached(
        self, width: float, bound: float, allowance: float, size: float, extent: float
    ) -> bool:
        """Take note of the range of a residual, and return whether no smaller bound will come.

        ``extent`` is max |V|, ``size`` that of the values, which the midpoint is added to.
        """
        if self._first_size is None:
            self._first_size = size
        self._least = min(self._least, width)
        self._count += 1
        stalls = False
        if self._count == self._window:
            stalls = self._least >= 0.9 * self._before and bound <= self._level * allowance
            self._before = min(self._before, self._least)
            self._least, self._count = math.inf, 0
        # Far below the last digit of any value, and nothing known of how large V* is: where it is
        # 0, no relative accuracy is reached.
        negligible = UNIT_ROUNDOFF**2 * min(self._first_size, self._max_cost)
        # A V that is still far from its values shrinks, and what rounding does to it.
        shrinks = extent > _FAR * (size + bound)
        limited = not shrinks and (stalls or bound <= 1.1 * allowance)
        return limited or size <= bound <= negligible


def _relative(bound: float, max_value: float) -> str:
    if max_value > 0:
        return f"{bound / max_value:.2g} of max|V| ({bound:.2g})"
    return f"{bound:.2g}"


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
