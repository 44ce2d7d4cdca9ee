"""Average costs: the mean cost of a step in the long run, by gains of components put together.

Where one can stay for ever are the end components of a model.  Within one, the least mean cost is
a single number, which `average_cost_gains` finds for all of them at a time; which component it pays
to go to, and what is certified, `average_cost_proof` knows.  A model that is one component needs no
putting together, and neither does an `EventMDP`, which is taken for one: if it is not, the interval
does not close, and the result says so.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from aggmaze.models.events import EventMDP
from aggmaze.models.model import Model, TableModel
from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP
from aggmaze.progress import stage
from planners.adapters import as_model
from planners.budget import Budget, Clock, OutOfTimeError
from planners.engine import Engine
from planners.event_engine import EventEngine
from planners.inequalities import Inequalities
from planners.kernels.compiling import interruptible
from planners.kernels.pieces import UNIT_ROUNDOFF
from planners.kernels.threads import check_num_threads
from planners.objective import AverageCost
from planners.objectives.average_cost_gains import (
    Components,
    Iteration,
    State,
    relative_value_iteration,
    until_stalled,
    whole,
)
from planners.objectives.average_cost_proof import Assembly, Bounds, bounds_of_whole
from planners.objectives.request import AUTO, Request, check_method_of
from planners.policies import model_values
from planners.policy_gains import with_whole_rows
from planners.record import Record
from planners.result import KEYBOARD, SolveResult, Status

#: The methods, and what they do.
METHODS = {
    "value_iteration": "relative values, a part of the way to Th, by full sweeps",
    "policy_iteration": "Howard's, from policies that are good at a discount near 1",
}

# Larger costs come to nothing that float64 could certify.
_LARGEST_COST = 1e270
# Entries up to which an `EventMDP` is solved by its table.
_FEW_ENTRIES = 1 << 20
# How many times later components are put together again to see whether they are known well enough.
_LATER = 16
# So much narrower components are to be where all states were not known well enough.
_FINER = 0.5
# How often bounds are made anew on a finer scale.
_MOST_CHECKS = 4
# Gains of components are rounded to this part of the accuracy that is asked for.
_FINENESS = 1 / 16


def solve_average_cost(model_or_env: Any, objective: AverageCost, request: Request) -> SolveResult:
    """Return the least mean cost of a step from each state on, and a policy that has it.

    Parameters
    ----------
    model_or_env
        What `as_model` takes.
    objective : AverageCost
    request : Request
        Its methods are those of `METHODS` and "auto"; ``V0`` are relative values to start from.
    """
    check_method_of(objective, METHODS, request.method, request.options)
    if isinstance(model_or_env, EventMDP) and request.method == "policy_iteration":
        raise ValueError(
            "policy_iteration needs a table of transitions, which an EventMDP does not form; "
            "value_iteration does without; a small model has a table as model.to_tabular()"
        )
    model = as_model(model_or_env)
    clock = Clock(request.time_limit)
    budget = request.budget()
    start = np.zeros(model.num_states)
    if request.V0 is not None:
        start = model_values(model, request.V0, "V0")
    num_threads = check_num_threads(request.num_threads)
    run = _Run(model, budget, clock, request, num_threads, start)
    return run.result()


@dataclass(frozen=True)
class _Best:
    """The narrowest interval so far of the gain of each component, and what it is from."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    bias: NDArray[np.float64]

    def after(self, state: State, labels: NDArray[np.int32] | None) -> _Best:
        """Return the best after an iteration; nothing of this one is changed."""
        better = ~(state.high - state.low >= self.high - self.low)
        if better.all():
            return _Best(state.low, state.high, state.bias.copy())
        if labels is None or not better.any():
            return self
        return _Best(
            np.where(better, state.low, self.low),
            np.where(better, state.high, self.high),
            np.where(better[labels], state.bias, self.bias),
        )


class _Run:
    """One call of `solve_average_cost`."""

    def __init__(
        self,
        model: Model,
        budget: Budget,
        clock: Clock,
        request: Request,
        num_threads: int,
        start: NDArray[np.float64],
    ) -> None:
        self._model, self._budget, self._clock = model, budget, clock
        self._request, self._num_threads, self._start = request, num_threads, start
        self._record = Record()
        self._method, self._reason = request.method, ""
        self._num_iterations = self._num_sweeps = self._num_certificate_sweeps = 0
        self._bounds: Bounds | None = None
        # The largest gain, once it is known, and how wide intervals were when last certified.
        self._size: float | None = None
        self._checked_width = math.inf
        self._next_look = 1

    def result(self) -> SolveResult:
        """Solve, and return what came of it."""
        end: tuple[Status, str] | None = None
        problem: _Problem | None = None
        try:
            with interruptible():
                with stage("looking where one can stay for ever"):
                    problem = self._problem()
                end = self._iterate(problem)
        except OutOfTimeError:
            end = self._budget.out_of_time()
        except KeyboardInterrupt:
            if problem is None or self._best is None:
                raise
            end = Status.INTERRUPTED, KEYBOARD
        self._clock.lift()
        if problem is None:
            problem = self._problem()
        return self._finished(problem, end)

    _best: _Best | None = None

    def _problem(self) -> _Problem:
        model = self._model
        method = self._request.method
        if isinstance(model, EventMDP):
            few = (
                model.num_states
                * model.num_actions
                * math.prod(chances.longest for chances in model.chances)
            )
            if method == AUTO and few <= _FEW_ENTRIES:
                model = model.to_tabular()
            else:
                return _EventProblem(model, self._num_threads, self._clock, self._start)
        return _TableProblem(
            model, method, self._num_threads, self._clock, self._start, self._budget.time_limit
        )

    def _iterate(self, problem: _Problem) -> tuple[Status, str]:
        """Iterate until the run ends, and return how."""
        budget, record, clock = self._budget, self._record, self._clock
        best = problem.start()
        self._best = best
        if problem.is_trivial:
            self._check(problem)
            met = self._met(problem)
            if met is not None:
                return met
            if budget.has_tolerance:
                return Status.STOPPED_SHORT, problem.stalled
            return Status.COMPLETED, "there is nothing to iterate on"
        for state in problem.states():
            best = best.after(state, problem.labels)
            # All that an interruption leaves is in this one assignment.
            self._best = best
            self._num_iterations += 1
            self._num_sweeps += state.num_sweeps
            self._bounds = None
            updates = state.num_sweeps * problem.num_states
            bound = problem.half_width(best)
            record.add(clock.seconds(), bound, num_updates=updates, residual=state.residual)
            if self._request.certify == "every":
                record.set_bound(self._check(problem))
            end: tuple[Status, str] | None = None
            if budget.has_tolerance and self._is_near(problem, best):
                record.set_bound(self._check(problem))
                end = self._met(problem)
            if end is None:
                end = budget.exhausted(
                    self._num_iterations,
                    self._num_sweeps * problem.num_states,
                    record.seconds,
                )
            callback = self._request.callback
            if callback is not None:
                progress = record.progress(lambda: self._values(problem))
                if callback(progress) and end is None:
                    end = Status.INTERRUPTED, "stopped by the callback"
            if end is not None:
                return end
        record.set_bound(self._check(problem))
        met = self._met(problem)
        if met is not None:
            return met
        if not budget.has_tolerance:
            return Status.COMPLETED, "nothing is left to improve"
        return Status.STOPPED_SHORT, problem.stalled

    def _is_near(self, problem: _Problem, best: _Best) -> bool:
        """Whether the components seem to be known so well that all states may be.

        If they are not after all, then not again before that is `_FINER`.
        """
        budget = self._budget
        width = 0.5 * float((best.high - best.low).max(initial=0.0))
        size = float(np.maximum(np.abs(best.low), np.abs(best.high)).max(initial=0.0))
        target = budget.target(size if self._size is None else self._size)
        count = self._num_iterations
        if problem.is_put_together and count == self._next_look:
            # Perhaps it takes no more to know which component is the best, and of the others less.
            self._next_look *= _LATER
            return True
        is_near = width <= target or size <= (budget.tol or 0.0) * problem.engine.max_cost
        if not is_near or not width < _FINER * self._checked_width:
            return False
        self._checked_width = width
        return True

    def _check(self, problem: _Problem) -> float:
        """Certify what there is, and return the bound of the values."""
        if self._bounds is None:
            assert self._best is not None
            best = self._best
            if self._size is None:
                size = np.maximum(np.abs(best.low), np.abs(best.high))
                self._size = float(size[np.isfinite(size)].max(initial=0.0))
            for _ in range(_MOST_CHECKS):
                fineness = _FINENESS * self._budget.target(self._size)
                with stage("certifying"):
                    bounds = problem.bounds(best, fineness)
                self._num_certificate_sweeps += bounds.num_sweeps
                self._bounds = bounds
                values, bound = _half_width(bounds)
                # The gains may be far less than that of the dearest component.
                before, self._size = self._size, float(np.abs(values).max())
                if not self._size < 0.5 * before or bound <= self._budget.target(self._size):
                    break
        assert self._bounds is not None
        return _half_width(self._bounds)[1]

    def _met(self, problem: _Problem) -> tuple[Status, str] | None:
        """Return how the run ends where the certified bounds meet the tolerance."""
        assert self._bounds is not None
        budget, bounds = self._budget, self._bounds
        if not budget.has_tolerance:
            return None
        values, bound = _half_width(bounds)
        size = float(np.abs(values).max())
        target = budget.target(size)
        if bound <= target:
            return Status.CONVERGED, f"bound {bound:.3g} <= {target:.3g}"
        if budget.tol is None:
            return None
        largest = max(float(np.abs(bounds.lower).max()), float(np.abs(bounds.upper).max()))
        cost = problem.cost_of(bounds.policy)
        if largest <= budget.tol * cost:
            return Status.CONVERGED, (
                f"the gain is 0 within {largest:.3g}, which is at most tol times the largest cost "
                f"that the policy pays, {cost:.3g}"
            )
        return None

    def _values(self, problem: _Problem) -> NDArray[np.float64]:
        self._check(problem)
        assert self._bounds is not None
        return _half_width(self._bounds)[0][: self._model.num_listed_states].copy()

    def _finished(self, problem: _Problem, end: tuple[Status, str]) -> SolveResult:
        """Return the result."""
        if self._best is None:
            self._best = problem.start()
        self._check(problem)
        assert self._bounds is not None
        bounds = self._bounds
        values, bound = _half_width(bounds)
        met = self._met(problem)
        status, message = end
        if status == Status.STOPPED_SHORT and met is not None:
            status, message = met
        loss = float((bounds.upper - bounds.lower).max())
        listed = self._model.num_listed_states
        if self._method == AUTO:
            self._method, self._reason = problem.method, problem.reason

        def cut(array: NDArray[Any]) -> NDArray[Any]:
            return array[:listed].copy()

        proof = {
            "gain_lower": bounds.lower,
            "bias_lower": bounds.bias_lower,
            "gain_upper": bounds.upper,
            "bias_upper": bounds.bias_upper,
        }
        return SolveResult(
            values=cut(values),
            policy=cut(bounds.policy),
            bound=bound,
            policy_bound=math.nextafter(loss, math.inf) if loss > 0 else 0.0,
            status=status,
            message=message,
            method=self._method,
            reason=self._reason,
            objective=AverageCost(),
            num_iterations=self._num_iterations,
            num_sweeps=self._num_sweeps,
            num_updates=self._num_sweeps * problem.num_states,
            num_certificate_sweeps=self._num_certificate_sweeps,
            seconds=self._clock.seconds(),
            history=self._record.history(self._num_iterations),
            ends=(cut(bounds.lower), cut(bounds.upper)),
            bias=cut(bounds.bias),
            state_names=self._model.state_names,
            action_names=self._model.action_names,
            proof={name: cut(array) for name, array in proof.items() if array is not None},
        )


def _half_width(bounds: Bounds) -> tuple[NDArray[np.float64], float]:
    """Return the middle of the interval of each state, and the largest distance to its ends."""
    lower, upper = bounds.lower, bounds.upper
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        known = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower, 0.0))
        return known, math.inf
    values = np.clip(0.5 * lower + 0.5 * upper, lower, upper)
    distance = float(np.maximum(upper - values, values - lower).max())
    return values, math.nextafter(distance, math.inf) if distance > 0 else 0.0


class _Problem(ABC):
    """What the loop asks of a model."""

    method, reason = "value_iteration", ""
    stalled = "the interval becomes no narrower: float64 has no more digits, or sweeps are too slow"
    is_trivial = False
    is_put_together = False
    labels: NDArray[np.int32] | None = None
    engine: Engine
    num_states: int

    @abstractmethod
    def start(self) -> _Best:
        """Return what is known before the first iteration."""

    @abstractmethod
    def states(self) -> Iterator[State]:
        """Iterate."""

    @abstractmethod
    def bounds(self, best: _Best, fineness: float) -> Bounds:
        """Return certified bounds of all states."""

    @abstractmethod
    def cost_of(self, policy: NDArray[np.int64]) -> float:
        """Return the largest size of a cost that a policy pays."""

    def half_width(self, best: _Best) -> float:
        """Return what an iteration says of the bound of the values; NaN where it says nothing."""
        return math.nan


class _TableProblem(_Problem):
    """A model with a table."""

    def __init__(
        self,
        model: TableModel,
        method: str,
        num_threads: int,
        clock: Clock,
        start: NDArray[np.float64],
        time_limit: float | None,
    ) -> None:
        self._model, self._num_threads, self._clock = model, num_threads, clock
        self._start = start
        self._assembly: Assembly | None = None
        self._places: NDArray[np.int64] | None = None
        self.num_states = model.num_states
        if not model.terminal.any() and _is_connected(model):
            parts = whole(with_whole_rows(_listing_all(model)))
            self._sweeps = Inequalities(model, num_threads, clock.check)
        else:
            assembly = Assembly(model, num_threads, clock.check)
            self._sweeps = assembly.sweeps
            found = assembly.components
            if found.count == 1 and not model.terminal.any():
                # Wherever one starts, and whatever one does, one ends up in it.
                parts = whole(with_whole_rows(_listing_all(model)))
            else:
                self._assembly, self.is_put_together = assembly, True
                if found.count == 0:
                    self.is_trivial = True
                    parts = None
                else:
                    parts, self._places = _side_by_side(model, found.labels, found.inside)
        self._parts = parts
        if parts is not None:
            self._iteration = Iteration(method, parts, num_threads, clock, time_limit)
            self.engine = self._iteration.engine
            self.num_states = parts.model.num_states
            self.labels = None if parts.count == 1 else parts.labels

    @property
    def method(self) -> str:  # type: ignore[override]
        """The method that was chosen."""
        return "value_iteration" if self._parts is None else self._iteration.method

    @property
    def reason(self) -> str:  # type: ignore[override]
        """Why."""
        if self._parts is None:
            return "there is nowhere to stay but in terminal states"
        return self._iteration.reason

    def start(self) -> _Best:
        """Return what is known before the first iteration: nothing."""
        count = 0 if self._parts is None else self._parts.count
        h = self._start if self._places is None else self._start[self._places]
        if self._parts is None:
            h = np.zeros(0)
        return _Best(np.full(count, -np.inf), np.full(count, np.inf), h)

    def states(self) -> Iterator[State]:
        """Iterate."""
        return self._iteration.run(self.start().bias)

    def bounds(self, best: _Best, fineness: float) -> Bounds:
        """Return certified bounds of all states."""
        if self._assembly is None:
            return bounds_of_whole(self._sweeps, best.bias)
        with np.errstate(over="ignore", invalid="ignore"):  # what is infinite is no bound
            return self._assembly.bounds(self._everywhere(best.bias), fineness)

    def _everywhere(self, bias: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return relative values of all states: 0 outside of components."""
        full = np.zeros(self._model.num_states)
        if self._places is not None:
            full[self._places] = bias
        return full

    def cost_of(self, policy: NDArray[np.int64]) -> float:
        """Return the largest size of a cost that a policy pays."""
        model = self._model
        if isinstance(model, MoveMDP) and model.p < 1.0:
            # Any move may happen.
            return float(np.abs(model.move_costs).max(where=model.available, initial=0.0))
        chosen = np.where(model.terminal, -1, policy)
        zero = np.zeros(model.num_states)
        return float(np.abs(self._sweeps.policy_backup(chosen, zero)).max())

    def half_width(self, best: _Best) -> float:
        """Return half the interval where the model is one component."""
        if self._assembly is not None:
            return math.nan
        return 0.5 * float(best.high[0] - best.low[0])


class _EventProblem(_Problem):
    """A model without a table, taken for one component."""

    stalled = (
        "the interval becomes no narrower: sweeps are too slow, or the states do not have one "
        "gain in common, which a table would tell: model.to_tabular()"
    )
    reason = "the model has no table"

    def __init__(
        self, model: EventMDP, num_threads: int, clock: Clock, start: NDArray[np.float64]
    ) -> None:
        self._model, self._start = model, start
        self.engine: EventEngine = EventEngine(model, 1.0, num_threads, clock.check)
        self.num_states = model.num_states

    def start(self) -> _Best:
        """Return what is known before the first iteration: nothing."""
        return _Best(np.full(1, -np.inf), np.full(1, np.inf), self._start)

    def states(self) -> Iterator[State]:
        """Iterate."""
        return until_stalled(relative_value_iteration(self.engine, self._start, None))

    def bounds(self, best: _Best, fineness: float) -> Bounds:
        """Return certified bounds, the same in all states, from the extremes of ``Th - h``."""
        engine, image = self.engine, np.empty(self.num_states)
        actions = np.empty(self.num_states, dtype=np.int32)
        sweep = engine.sweep(best.bias, image, actions)
        size = self._rounding(best.bias, image, sweep.residual)
        # What is greedy as computed may miss the best by twice the rounding.
        low, high = sweep.residual_low - size, sweep.residual_high + 3 * size
        low = low if low > -math.inf else -math.inf
        high = high if high < math.inf else math.inf
        return Bounds(
            np.full(self.num_states, math.nextafter(low, -math.inf)),
            np.full(self.num_states, math.nextafter(high, math.inf)),
            np.where(self._model.terminal, 0, actions).astype(np.int64),
            best.bias - best.bias[0],
            best.bias.copy(),
            best.bias.copy(),
            1,
        )

    def _rounding(
        self, bias: NDArray[np.float64], image: NDArray[np.float64], residual: float
    ) -> float:
        """Return by how much a residual may be off."""
        engine = self.engine
        size = max(engine.sup_norm(bias), engine.sup_norm(image))
        # Rows that miss 1 are taken for rounded ones.
        return engine.rounding(size) + 2 * engine.row_error * size + UNIT_ROUNDOFF * residual

    def cost_of(self, policy: NDArray[np.int64]) -> float:
        """Return the largest size of a cost that a policy pays."""
        zero, image = np.zeros(self.num_states), np.empty(self.num_states)
        self.engine.policy_sweep(policy.astype(np.int32), zero, image)
        return float(np.abs(image).max())

    def half_width(self, best: _Best) -> float:
        """Return half the interval."""
        return 0.5 * float(best.high[0] - best.low[0])


def _listing_all(model: TableModel) -> TableModel:
    """Return a model that lists all its states."""
    if isinstance(model, TabularMDP) and model.num_added_states:
        return replace(model, num_added_states=0, state_names=None)
    return model


def _is_connected(model: TableModel) -> bool:
    """Whether each state can be reached from each."""
    graph = sp.csr_array(model.successor_graph(), copy=True)
    graph.sum_duplicates()
    graph.eliminate_zeros()
    count, _ = connected_components(graph, connection="strong")
    return bool(count == 1)


def _side_by_side(
    model: TableModel, labels: NDArray[np.int32], inside: NDArray[np.bool_]
) -> tuple[Components, NDArray[np.int64]]:
    """Return the components of a model, and which of its states theirs are."""
    states = np.flatnonzero(labels >= 0)
    states = states[np.argsort(labels[states], kind="stable")]
    own = labels[states].astype(np.int32)
    starts = np.flatnonzero(np.diff(own, prepend=-1)).astype(np.int64)
    place = np.zeros(model.num_states, dtype=np.int64)
    place[states] = np.arange(len(states))
    part: TableModel
    if isinstance(model, MoveMDP):
        costs = np.where(inside[states], model.move_costs[states], np.inf)
        part = MoveMDP(place[model.successors[states]], costs, p=model.p)
        return Components(part, own, starts), states
    num_actions = model.num_actions
    rows = (states[:, np.newaxis] * num_actions + np.arange(num_actions)).reshape(-1)
    mask = inside[states]
    matrix = model.transitions[rows]
    kept = np.repeat(mask.reshape(-1), np.diff(matrix.indptr)) & (matrix.data > 0)
    heads = np.repeat(np.arange(len(rows)), np.diff(matrix.indptr))[kept]
    counts = np.bincount(heads, minlength=len(rows))
    transitions = sp.csr_array(
        (
            matrix.data[kept],
            place[matrix.indices[kept]],
            np.concatenate([[0], np.cumsum(counts)]),
        ),
        shape=(len(rows), len(states)),
    )
    costs = np.where(mask, model.costs[states], 0.0)
    part = TabularMDP(transitions, costs, action_mask=mask, terminal=[])
    return Components(with_whole_rows(part), own, starts), states
