"""Costs of a number of steps, by backward induction.

    V_T = terminal costs,    V_t(s) = min_a c_t(s,a) + gamma sum_s' P_t(s'|s,a) V_{t+1}(s')

(Puterman, "Markov decision processes", 1994, section 4.5).  The values are exact but for rounding,
which is added up on the way (docs/certificate.md, "A finite horizon").
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_choice
from aggmaze.memory import check_memory
from aggmaze.models.model import Model
from planners.adapters import as_model
from planners.budget import Clock, OutOfTimeError
from planners.certificate import LARGEST_VALUE
from planners.engine import Engine
from planners.iterate import first_told
from planners.judge import OVERFLOW
from planners.kernels.compiling import interruptible
from planners.kernels.pieces import UNIT_ROUNDOFF
from planners.kernels.threads import check_num_threads
from planners.kernels.vectors import finite_norm
from planners.objective import FiniteHorizon
from planners.objectives.request import AUTO, Request, check_method_of
from planners.record import Record
from planners.result import KEYBOARD, SolveResult, Status
from planners.stages import Stages

#: The only method.
BACKWARD_INDUCTION = "backward_induction"

KEEP = ("all", "policy", "values", "first")


def solve_finite_horizon(
    model_or_env: Any, objective: FiniteHorizon, request: Request
) -> SolveResult:
    """Return costs-to-go and actions of each step.

    The only method is ``backward_induction``, with the option ``keep``: "all", or less where memory
    is short: "policy" keeps the values of the first step only, "values" its actions only, "first"
    both of that alone.

    Parameters
    ----------
    model_or_env
        What `as_model` takes.
    objective : FiniteHorizon
    request : Request

    Raises
    ------
    ValueError
        For an argument that says nothing of a finite horizon, or stages that do not fit.
    MemoryError
        If the steps need more memory than there is.
    """
    check_method_of(objective, [BACKWARD_INDUCTION], request.method, request.options, ["keep"])
    keep = request.options.get("keep", "all")
    check_choice("keep", keep, KEEP)
    for name, instead in (
        ("num_iterations", "the number of steps is steps"),
        ("num_updates", "the number of steps is steps"),
        ("V0", "what is left after the last step is terminal_costs"),
    ):
        if getattr(request, name) is not None:
            raise ValueError(f"{name} says nothing of {objective}: {instead} of FiniteHorizon")
    model = as_model(model_or_env)
    limit = math.inf if request.time_limit is None else request.time_limit
    clock = Clock(request.time_limit)
    stages = Stages(model, objective, check_num_threads(request.num_threads), clock.check)
    induction = _Induction(model, stages, objective, keep)
    record = Record()
    end: tuple[Status, str] | None = None
    try:
        with interruptible():
            while induction.num_done < objective.steps and end is None:
                with first_told(induction.num_done, model.num_states):
                    induction.step()
                record.add(clock.seconds(), induction.error, num_updates=model.num_states)
                if induction.overflows:
                    end = OVERFLOW
                elif request.callback is not None:
                    values = functools.partial(induction.listed, induction.V)
                    if request.callback(record.progress(values)):
                        end = Status.INTERRUPTED, "stopped by the callback"
                if end is None and record.seconds >= limit:
                    end = _out_of_time(limit)
    except KeyboardInterrupt:
        end = Status.INTERRUPTED, KEYBOARD
    except OutOfTimeError:
        end = _out_of_time(limit)
    clock.lift()
    return induction.result(end, request, record, clock)


def _out_of_time(time_limit: float) -> tuple[Status, str]:
    return Status.STOPPED_SHORT, f"time limit of {time_limit:g} s reached"


class _Done(NamedTuple):
    """What is whole after a number of steps."""

    num_steps: int
    #: Values of all states before the last of them, and its actions.
    V: NDArray[np.float64]
    actions: NDArray[np.int32]
    #: Largest size of a value.
    size: float
    #: Bound the error of V, and that of the values of any step so far.
    error_here: float
    error: float


class _Induction:
    """The steps that are done, from the last one backwards."""

    def __init__(self, model: Model, stages: Stages, objective: FiniteHorizon, keep: str) -> None:
        self._model, self._stages, self._objective = model, stages, objective
        steps, num_listed = objective.steps, model.num_listed_states
        self._num_values = steps + 1 if keep in ("all", "values") else 0
        self._num_policies = steps if keep in ("all", "policy") else 0
        needed = 8 * num_listed * (self._num_values + self._num_policies + 2) + 8 * steps
        less = [one for one in KEEP[1:] if keep == "all" or one == "first"]
        hint = f" (less with keep= {', '.join(less)})" if keep != "first" else ""
        check_memory(
            needed + 28 * model.num_states,
            f"values and actions of {steps:,} steps of {num_listed:,} states{hint}",
        )
        # Those of all steps, where they are kept.
        self._values = np.empty((self._num_values, num_listed))
        self._policy = np.empty((self._num_policies, num_listed), dtype=np.int64)
        self._errors = np.zeros(steps + 1)
        V, actions = stages.terminal_costs.copy(), np.zeros(model.num_states, dtype=np.int32)
        # Steps write into these two in turn.
        self._buffers = (np.empty_like(V), np.empty_like(actions)), (V, actions)
        if self._num_values:
            self._values[steps] = self.listed(V)
        self._done = _Done(0, V, actions, float(np.abs(V).max()), 0.0, 0.0)

    @property
    def num_done(self) -> int:
        """How many steps are whole."""
        return self._done.num_steps

    @property
    def error(self) -> float:
        """Bounds the error of the values of any step so far."""
        return self._done.error

    @property
    def V(self) -> NDArray[np.float64]:
        """The values of the step that was done last, of all states."""
        return self._done.V

    @property
    def overflows(self) -> bool:
        """Whether values are no numbers any more, or too large to compute with."""
        return not (self._done.size <= LARGEST_VALUE and self._done.error < math.inf)

    def listed(self, vector: NDArray[Any]) -> NDArray[Any]:
        """Return the part of a vector that is of listed states, as a new array."""
        return vector[: self._model.num_listed_states].copy()

    def step(self) -> None:
        """Go one step back."""
        done = self._done
        step = self._objective.steps - done.num_steps - 1
        engine = self._stages.engine(step)
        V, actions = self._buffers[done.num_steps % 2]
        engine.sweep(done.V, V, actions)
        size = engine.sup_norm(V)
        error = self._next_error(engine, max(done.size, size))
        if self._num_values:
            self._values[step] = self.listed(V)
        if self._num_policies:
            self._policy[step] = self.listed(actions)
        self._errors[step] = error
        # Only now does the step count: Ctrl-C may come before or after it, but not within.
        self._done = _Done(done.num_steps + 1, V, actions, size, error, max(done.error, error))

    def _next_error(self, engine: Engine, size: float) -> float:
        gamma, row_error = self._objective.gamma, engine.row_error
        # NaN is no size either.
        if not (size <= LARGEST_VALUE and self._done.error < math.inf):
            return math.inf
        # Rows that miss 1 are taken for rounded ones: the bound covers those that were meant.
        rounding = engine.rounding(size) + gamma * row_error * size
        return (gamma * (1 + row_error) * self._done.error_here + rounding) * (
            1 + 8 * UNIT_ROUNDOFF
        )

    def result(
        self,
        end: tuple[Status, str] | None,
        request: Request,
        record: Record,
        clock: Clock,
    ) -> SolveResult:
        """Return what was found: all steps, or the last ones."""
        done, steps = self.num_done, self._objective.steps
        bound = math.inf if self.overflows else self.error
        # Parts, not copies: there may be no room for both.
        if self._num_values:
            values = self._values[steps - done :]
        else:
            values = self.listed(self._done.V)[np.newaxis]
        if self._num_policies:
            policy = self._policy[steps - done :]
        else:
            policy = self.listed(self._done.actions).astype(np.int64)[np.newaxis][: min(done, 1)]
        # To look at all values takes seconds where there are many, and Ctrl-C is not to.
        asked = end is None and request.has_accuracy
        target = request.budget().target(finite_norm(values)) if asked else math.inf
        if end is not None and done < steps:
            end = end[0], f"{end[1]}: these are the last {done:,} of {steps:,} steps"
        elif asked and not bound <= target:
            end = (
                Status.STOPPED_SHORT,
                f"rounding leaves a bound of {bound:.3g}, {target:.3g} was asked for",
            )
        elif end is None:
            end = Status.CONVERGED, f"exact but for rounding, which is at most {bound:.3g}"
        return SolveResult(
            values=values,
            policy=policy,
            bound=bound,
            # The policy's own values are as near to those computed as the optimum is.
            policy_bound=2 * bound,
            status=end[0],
            message=end[1],
            method=BACKWARD_INDUCTION,
            reason="the only one it takes: each step is swept once"
            if request.method == AUTO
            else "",
            objective=self._objective,
            num_iterations=done,
            num_sweeps=done,
            num_updates=done * self._model.num_states,
            num_certificate_sweeps=0,
            seconds=clock.seconds(),
            history=record.history(done),
            state_names=self._model.state_names,
            action_names=self._model.action_names,
            proof={
                "errors": self._errors[steps - done :],
                "ended": self.listed(self._model.terminal),
            },
        )
