"""Modified policy iteration: sweeps, and between them sweeps by the policy alone.

A round takes the policy that is greedy for V, improves V towards that policy's own value, and ends
with a full sweep TV, which certifies and gives the next policy.

With ``inner_sweeps=k`` that is the textbook method, ``V <- T_pi^k T V``.  By default how much is
done between two full sweeps follows the model:

- What is solved for is the correction: ``(I - gamma P_pi) d = TV - V``, by sweeps over the policy's
  rows alone (`linear.policy_rows`), in single precision: the next full sweep, in double precision,
  sees whatever error is left.
- A state whose action is sure to be the best still has no other action looked at
  (`sweeps.action_elimination`); ``TV`` stays exact.
- Where no state is absorbing, the increments of d tend to a constant; the middle of the last one's
  range, times ``gamma / (1 - gamma)``, sums up all that are to come (MacQueen's midpoint as a
  step), so that only the span of the increment has to shrink.  Where there are absorbing states,
  what leads a state back to itself is solved for instead.
- Where eight sweeps shrink it by less than a fifth each, steps of GMRES (`linear.gmres`, modulo
  constants in the first case) and exact elimination (`linear.policy_equations`) are tried, and
  kept while they shrink it more for their work, counted in sweeps: no clock decides anything.
  Where neither comes on, and most of the work goes into it, elimination in many levels does.
- In models of few states a round takes longer than to make its correction accurate: as many sweeps
  as ever are made at once, and what is left then is solved by elimination.
- While many states change their action from one round to the next, and the horizon is long, their
  policy is not worth evaluating to the end: corrections are a few sweeps at first, and twice as
  many each time.
- The accuracy of the correction follows what limits the rounds: deeper where the next residual is
  what the correction left, less deep where it comes from new actions.

Where there are absorbing states, the policy that is greedy for a V that knows nothing of them is
not worth correcting for: Gauss-Seidel sweeps come first, as long as four of them shrink the
residual to well below half; for less, sweeps by a policy take less time.  Corrections of any kind
could go in circles; where the residual has not shrunk by a tenth in eight rounds, four rounds, then
8, 16 and so on, are plain sweeps, which are contractions (`solvers.rescue`).

Source: Puterman, Shin, "Modified policy iteration algorithms for discounted Markov decision
problems", Management Science 24 (1978); MacQueen (1966) for the midpoint.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_integer
from planners.engine import LocalEngine, Sweep
from planners.linear.gmres import GMRES
from planners.linear.policy_equations import PolicyEquations
from planners.linear.policy_rows import Packed, PackedPolicy, Range, add_scaled
from planners.solvers.base import Step
from planners.solvers.rescue import Rescue
from planners.sweeps.action_elimination import successive_sweeps
from planners.sweeps.orders import directions, grid_shape

# Above this discount single precision can turn a contraction into none.
_MOST_SINGLE_GAMMA = 1 - 1e-4

# While a larger part of the states than this has another action than in the round before, their
# policy is not worth a deep correction: so many sweeps at first, and twice as many each time.
_UNSETTLED, _UNSETTLED_START, _SHALLOW_SWEEPS = 1e-3, 0.1, 5

# How far a correction shrinks its increment: at first, at least and at most.
_FIRST_DROP, _LEAST_DROP, _MOST_DROP = 0.2, 1e-3, 0.3
# Most sweeps of one correction: at first, or so many horizons of 1/(1 - gamma), and ever.
_FIRST_SWEEPS, _FIRST_HORIZONS, _MOST_SWEEPS = 15, 0.06, 60
# States so few that what sweeps do not solve is soon solved exactly.
_FEW_STATES = 200
# Sweeps before GMRES is thought of, and at which rate a sweep it is tried.
_TRIAL_SWEEPS, _SLOW_RATE = 8, 0.8
_GMRES_STEPS = 10
# What going over a vector of the basis takes of a sweep with one entry a state.
_GMRES_WORK = 0.5
# Sweeps until the two are compared again, and how often GMRES gets another chance.
_CYCLE_SWEEPS, _GMRES_EVERY = 12, 5
# Horizons, 1 / (1 - gamma), from which on policies are far from right at first, and sweeps slow.
_LONG_HORIZON = 50.0
# Work in slow corrections before exact elimination is tried, where the horizon is long and where it
# is not, and that it may take, in sweeps.
_FIRST_TRIAL, _LATE_TRIAL, _MOST_ELIMINATION = 30.0, 120.0, 15
# Sweeps, or steps of GMRES, that a correction lacks where elimination in many levels is less work,
# after so much work in slow corrections; how far that goes, in how many steps at most.
_MANY_AHEAD, _MANY_BEFORE = 1200.0, 800.0
_LEAST_REDUCTION, _MOST_STEPS = 1e-2, 15

# Plain rounds the first time that corrections come no further.
_FIRST_PLAIN = 4

# Gauss-Seidel sweeps at the start go on while they shrink the residual so much in so many.
_START_PROGRESS, _START_WINDOW = 0.4, 4


@dataclass(frozen=True, kw_only=True)
class ModifiedPolicyIterationOptions:
    """Options of modified policy iteration.

    Parameters
    ----------
    inner_sweeps : int, optional
        Sweeps by the policy between two full ones, at least 0; by default as many as pay.
    """

    inner_sweeps: int | None = None

    def __post_init__(self) -> None:
        if self.inner_sweeps is not None:
            number = check_integer("inner_sweeps", self.inner_sweeps)
            object.__setattr__(self, "inner_sweeps", number)


class ModifiedPolicyIteration:
    """Modified policy iteration."""

    def __init__(self, engine: LocalEngine, options: ModifiedPolicyIterationOptions) -> None:
        self._engine = engine
        num_states = engine.num_states
        # What the last full sweep swept.
        self._argument = np.empty(num_states)
        self._policy = np.zeros(num_states, dtype=np.int32)
        self._sweeps = successive_sweeps(engine)
        self._last: Sweep | None = None
        absorbing = engine.has_absorbing_states
        self._evaluation: _Fixed | _Adaptive
        if options.inner_sweeps is not None:
            self._evaluation = _Fixed(engine, options.inner_sweeps)
        else:
            self._evaluation = _Adaptive(engine, shifts=not absorbing)
        # In place sweeps keep constants about, which corrections without absorbing states shift.
        self._directions: Iterator[tuple[NDArray[np.int32] | None, bool]] | None = None
        if absorbing:
            self._directions = directions(engine.model, grid_shape(engine.model))
        self._phase = _Phase(starts_plain=absorbing, never_plain=options.inner_sweeps is not None)

    @property
    def policy(self) -> NDArray[np.int32]:
        """The policy of the last full sweep, shape (S,)."""
        return self._policy

    @property
    def eliminates(self) -> bool:
        """Whether the last equations that elimination was tried on took little work, exactly."""
        return isinstance(self._evaluation, _Adaptive) and self._evaluation.eliminates

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        """Make one round: a correction towards the policy's value, and a full sweep."""
        plain = self._phase.plain()
        if plain and self._directions is not None:
            return self._gauss_seidel(V, out)
        num_inner = 0
        if self._last is None or plain:
            if self._last is not None:
                self._changed(self._last.residual_low, self._last.residual_high, self._last)
            self._argument[:] = V
        else:
            num_inner = self._correct(V, self._last)
        sweep = self._sweeps.sweep(self._argument, out, self._policy)
        self._last = sweep
        self._phase.see(_span(sweep))
        return Step((num_inner + 1) * len(V), sweep, num_sweeps=num_inner + 1)

    def _gauss_seidel(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        """Make one sweep in place."""
        assert self._directions is not None
        if self._last is not None:
            self._changed(self._last.residual_low, self._last.residual_high, self._last)
        out[:] = V
        sweep = self._engine.gauss_seidel(out, *next(self._directions))
        self._changed(sweep.residual_low, sweep.residual_high, sweep)
        self._last = None
        self._phase.see(_span(sweep))
        return Step(len(V), sweep, num_sweeps=1)

    def _correct(self, V: NDArray[np.float64], last: Sweep) -> int:
        """Correct what was swept last, whose image V is; return the number of inner sweeps."""
        correction = self._evaluation.correct(self._argument, V, self._policy, last)
        change = add_scaled(
            correction.vector, correction.scale, correction.constant, self._argument
        )
        self._changed(change.low, change.high, last)
        return correction.num_sweeps

    def _changed(self, low: float, high: float, last: Sweep) -> None:
        """Account for a change of V by ``low`` to ``high`` since the sweep before."""
        self._sweeps.changed(low, high, last.max_value + max(-low, high))


def _span(sweep: Sweep) -> float:
    return sweep.residual_high - sweep.residual_low


class _Phase:
    """Says when rounds are plain sweeps.

    Parameters
    ----------
    starts_plain : bool
        Whether they are at first, as long as they make progress.
    never_plain : bool
        Whether they never are.
    """

    def __init__(self, *, starts_plain: bool, never_plain: bool) -> None:
        self._starting = starts_plain and not never_plain
        self._never_plain = never_plain
        self._residuals: list[float] = []
        self._num_slow = 0
        self._rescue = Rescue(_FIRST_PLAIN)

    def plain(self) -> bool:
        """Return whether the next round is to be plain."""
        return self._starting or (self._rescue.plain and not self._never_plain)

    def see(self, residual: float) -> None:
        """Take note of the residual that a round ended with."""
        if self._starting:
            self._see_start(residual)
        else:
            self._rescue.see(residual)

    def _see_start(self, residual: float) -> None:
        self._residuals.append(residual)
        if len(self._residuals) > _START_WINDOW:
            slow = residual > _START_PROGRESS * self._residuals[-1 - _START_WINDOW]
            self._num_slow = self._num_slow + 1 if slow else 0
        self._starting = self._num_slow < 2 and residual > 0


@dataclass(frozen=True)
class _Correction:
    """What to add to V: ``scale * vector + constant``, and how many sweeps it took."""

    vector: Packed
    scale: float
    constant: float
    num_sweeps: int


class _Fixed:
    """A fixed number of sweeps by the policy, as they are."""

    def __init__(self, engine: LocalEngine, num_sweeps: int) -> None:
        self._num_states = engine.num_states
        self._num_sweeps = num_sweeps
        self._rows = PackedPolicy(engine, np.float64, solve_loops=False)
        self._start, self._vector, self._spare = (self._rows.vector() for _ in range(3))

    def correct(
        self,
        V: NDArray[np.float64],
        image: NDArray[np.float64],
        policy: NDArray[np.int32],
        last: Sweep,
    ) -> _Correction:
        """Return ``T_pi^k TV - V``."""
        self._rows.scaled(V, image, 1.0, self._start)
        self._vector[:] = self._start
        if self._num_sweeps:
            self._rows.load(policy)
        for _ in range(self._num_sweeps):
            self._rows.sweep(self._start, self._vector, self._spare)
            self._vector, self._spare = self._spare, self._vector
        return _Correction(self._vector[: self._num_states], 1.0, 0.0, self._num_sweeps)


class _Adaptive:
    """As many sweeps, or steps of GMRES, as pay, and elimination where neither does."""

    def __init__(self, engine: LocalEngine, *, shifts: bool) -> None:
        self._engine = engine
        self._gamma = engine.gamma
        self._horizon = 1 / (1 - engine.gamma)
        self._num_states = engine.num_states
        self._shifts = shifts
        dtype = np.float32 if engine.gamma <= _MOST_SINGLE_GAMMA else np.float64
        self._rows = PackedPolicy(engine, dtype, solve_loops=not self._shifts)
        self._start, self._vector, self._spare = (self._rows.vector() for _ in range(3))
        self._drop = _FIRST_DROP
        horizons = int(_FIRST_HORIZONS * self._horizon)
        self._first_sweeps = min(max(_FIRST_SWEEPS, horizons), _MOST_SWEEPS)
        self._most_sweeps = self._first_sweeps
        self._reached = 1.0
        self._span_before = math.inf
        self._policy_before = np.full(self._num_states, -1, dtype=np.int32)
        # Gauss-Seidel sweeps leave policies that are nearly right.
        self._unsettled = int((_UNSETTLED if shifts else _UNSETTLED_START) * self._num_states)
        self._shallow_sweeps = _SHALLOW_SWEEPS
        self._gmres: GMRES | None = None
        self._zeros = self._start
        # Logarithms of the reduction for the work of a sweep: of the last slow correction, and of
        # GMRES and elimination where they were tried.
        self._slow_speed = math.inf
        self._gmres_speed: float | None = None
        self._equations: PolicyEquations | None = None
        self._elimination_speed = 0.0
        self._eliminates = False
        # Corrections in which sweeps were slow, their work, and of it when elimination is tried.
        self._num_slow = 0
        is_long = self._horizon >= _LONG_HORIZON
        self._slow_work, self._next_trial = 0.0, _FIRST_TRIAL if is_long else _LATE_TRIAL

    def correct(
        self,
        V: NDArray[np.float64],
        image: NDArray[np.float64],
        policy: NDArray[np.int32],
        last: Sweep,
    ) -> _Correction:
        """Return about ``(I - gamma P_pi)^-1 (TV - V)``."""
        self._adapt(_span(last))
        scale = last.residual
        if not 0.0 < scale < math.inf or not math.isfinite(1.0 / scale):
            return _Correction(image - V, 1.0, 0.0, 0)
        most_sweeps = self._sweeps_worth(policy)
        self._rows.load(policy)
        self._rows.scaled(V, image, 1.0 / scale, self._start)
        self._vector[:] = self._start
        increment = Range(last.residual_low / scale, last.residual_high / scale)
        if not self._shifts:
            increment = Range(float(self._start.min()), float(self._start.max()))
        first = self._size(increment)
        goal = self._drop * first
        increment, num_sweeps, speed = self._begun(increment, goal, most_sweeps)
        if speed is not None:
            left = math.log(self._size(increment) / goal)
            work, found = self._eliminated(V, image, policy, speed, left)
            num_sweeps += work
            if found is not None:
                return _Correction(found, 1.0, 0.0, num_sweeps)
            increment, more = self._slow(increment, goal, speed)
            num_sweeps += more
        self._reached = self._size(increment) / first if first else 0.0
        constant = 0.0
        if self._shifts:
            middle = (increment.low + increment.high) / 2
            constant = scale * middle * self._gamma / (1 - self._gamma)
        return _Correction(self._vector[: self._num_states], scale, constant, num_sweeps)

    def _adapt(self, span: float) -> None:
        """Set the accuracy by whether the last correction, or new actions, left the residual."""
        if self._num_states <= _FEW_STATES:
            # A round takes longer than what makes corrections accurate.
            self._drop = _LEAST_DROP
        elif math.isfinite(self._span_before):
            if span < 3 * self._reached * self._span_before:
                self._drop = max(self._drop / 5, _LEAST_DROP)
                self._most_sweeps = min(2 * self._most_sweeps, _MOST_SWEEPS)
            else:
                self._most_sweeps = max(self._most_sweeps // 2, self._first_sweeps)
                self._drop = min(max(2 * self._drop, 0.02), _MOST_DROP)
        self._span_before = span

    def _size(self, increment: Range) -> float:
        return increment.span if self._shifts else increment.size

    def _sweeps_worth(self, policy: NDArray[np.int32]) -> int:
        """Return how many sweeps a policy is worth."""
        num_changed = np.count_nonzero(policy != self._policy_before)
        self._policy_before[:] = policy
        if num_changed <= self._unsettled or self._horizon < _LONG_HORIZON:
            return _MOST_SWEEPS
        most = self._shallow_sweeps
        self._shallow_sweeps = min(2 * most, _MOST_SWEEPS)
        return most

    def _begun(
        self, increment: Range, goal: float, most_sweeps: int
    ) -> tuple[Range, int, float | None]:
        """Sweep until the increment is down to a goal, or sweeps have shown to be slow.

        Returns
        -------
        increment : Range
        num_sweeps : int
        speed : float or None
            Logarithm of the reduction by a sweep where they are slow.
        """
        if self._num_states <= _FEW_STATES:
            increment, num_sweeps = self._sweeps(increment, goal, _MOST_SWEEPS)
            if self._size(increment) > goal:
                num_sweeps += self._rows.solve(self._start, self._vector, spans=self._shifts)
                increment, more = self._sweeps(Range(-math.inf, math.inf), 0.0, 1)
                num_sweeps += more
            return increment, num_sweeps, None
        if most_sweeps < self._most_sweeps:
            return *self._sweeps(increment, goal, most_sweeps), None
        increment, num_sweeps = self._sweeps(increment, goal, _TRIAL_SWEEPS // 2)
        halfway = self._size(increment)
        increment, more = self._sweeps(increment, goal, _TRIAL_SWEEPS // 2)
        num_sweeps += more
        size = self._size(increment)
        if size <= goal:
            return increment, num_sweeps, None
        speed = math.log(halfway / size) / more
        if speed <= -math.log(_SLOW_RATE):
            return increment, num_sweeps, speed
        increment, more = self._sweeps(increment, goal, self._most_sweeps - num_sweeps)
        return increment, num_sweeps + more, None

    def _slow(self, increment: Range, goal: float, speed: float) -> tuple[Range, int]:
        """Go on by what is faster, GMRES or sweeps of a speed; return the number of sweeps too."""
        self._num_slow += 1
        size, num_sweeps = self._size(increment), 0
        first = size
        krylov = (
            self._gmres_speed is None
            or self._gmres_speed > speed
            or self._num_slow % _GMRES_EVERY == 0
        )
        while size > goal and num_sweeps < self._most_sweeps - _TRIAL_SWEEPS:
            before = size
            if krylov:
                increment, count, work = self._gmres_cycle(goal / size)
            else:
                increment, count = self._sweeps(increment, goal, _CYCLE_SWEEPS)
                work = float(count)
            size = self._size(increment)
            num_sweeps += count
            gained = math.log(before / size) / work if size > 0 else math.inf
            if krylov:
                self._gmres_speed = gained
            else:
                speed = gained
            krylov = self._gmres_speed is not None and self._gmres_speed > speed
        self._slow_work += num_sweeps
        if num_sweeps:
            self._slow_speed = math.log(first / size) / num_sweeps if size > 0 else math.inf
        return increment, num_sweeps

    @property
    def eliminates(self) -> bool:
        """Whether the last equations that elimination was tried on took little work, exactly."""
        return self._eliminates

    def _eliminated(
        self,
        V: NDArray[np.float64],
        image: NDArray[np.float64],
        policy: NDArray[np.int32],
        speed: float,
        left: float,
    ) -> tuple[int, NDArray[np.float64] | None]:
        """Eliminate if that is faster than sweeps of a speed and GMRES, or may be.

        ``left`` is the logarithm of the reduction that is lacking.  Returned are the work, and the
        correction where there is one.
        """
        fastest = max(speed, self._gmres_speed or 0.0)
        ahead = min(left / fastest, self._most_sweeps) if fastest > 0 else self._most_sweeps
        # At the rate of a whole correction, since what a few steps show can be anything.
        many = left >= _MANY_AHEAD * self._slow_speed
        in_levels = many and self._slow_work >= _MANY_BEFORE
        pays = self._elimination_speed > fastest or self._slow_work + ahead >= self._next_trial
        if not (in_levels or pays):
            return 0, None
        most_work = None if in_levels else _MOST_ELIMINATION
        if self._equations is None:
            self._equations = PolicyEquations(self._engine)
        work = self._equations.follow(policy, most_work=most_work)
        reduction = max(self._drop, _LEAST_REDUCTION)
        found = self._equations.solve(image - V, reduction=reduction, most_steps=_MOST_STEPS)
        work = max(1, work + found.num_sweeps)
        self._slow_work += work
        exactly = found.reduction == 0.0
        self._eliminates = exactly and most_work is not None
        self._elimination_speed = -math.log(self._drop) / work if exactly else 0.0
        if not self._elimination_speed > fastest:
            self._next_trial = 2 * self._slow_work
        if not found.reduction < 1.0:
            return work, None
        self._reached = found.reduction
        return work, found.values

    def _sweeps(self, increment: Range, goal: float, most: int) -> tuple[Range, int]:
        if most <= 0 or self._size(increment) <= goal:
            return increment, 0
        increment, (self._vector, self._spare), count = self._rows.sweeps(
            self._start, (self._vector, self._spare), most, goal, spans=self._shifts
        )
        return increment, count

    def _gmres_cycle(self, reduction: float) -> tuple[Range, int, float]:
        """Make one cycle of GMRES and a sweep; return its increment, the sweeps, and the work."""
        if self._gmres is None:
            self._zeros = self._rows.vector()
            self._gmres = GMRES(
                _GMRES_STEPS,
                self._rows.padded_size,
                self._rows.dtype,
                num_constant=self._num_states if self._shifts else 0,
                num_threads=self._engine.num_threads,
            )
        # The vector before the last sweep, which told its residual.
        x, residual = self._spare, self._vector
        np.subtract(self._vector, self._spare, out=residual)
        num_applications = self._gmres.solve(
            lambda vector, out: self._rows.sweep(self._zeros, vector, out),
            x,
            residual,
            max(0.3 * reduction, 1e-7),
        )
        self._vector, self._spare = x, residual
        increment, _ = self._sweeps(Range(-math.inf, math.inf), 0.0, 1)
        count = num_applications + 1
        vectors = num_applications**2 * self._num_states / self._rows.num_entries
        return increment, count, count + _GMRES_WORK * vectors
