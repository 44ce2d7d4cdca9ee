"""Discounted costs in several processes: the methods that there are, and the call."""

from __future__ import annotations

import operator
from contextlib import nullcontext
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.models.row_models import RowModel
from planners.adapters import as_rows
from planners.distributed.control import CommonClock, Signals, common_callback, words_of
from planners.distributed.engine import PartEngine, part_engine
from planners.distributed.krylov import (
    KrylovPolicyIteration,
    ModifiedOptions,
    PolicyIterationOptions,
    make_modified,
    reads_tables,
)
from planners.distributed.processes import Processes, world
from planners.distributed.result import PartResult
from planners.fingerprints import fact
from planners.iterate import iterate
from planners.judge import Run
from planners.kernels.compiling import interruptible
from planners.objective import Discounted
from planners.objectives.discounted import (
    METHODS as ALL_METHODS,
)
from planners.objectives.discounted import (
    Method,
    check_method,
    keeper_of,
    policy_of,
    terms_of,
)
from planners.objectives.request import AUTO, Request
from planners.result import KEYBOARD, Status
from planners.solvers.adaptive_aggregation import AdaptiveAggregation, AdaptiveAggregationOptions
from planners.solvers.value_iteration import ValueIteration

METHODS: dict[str, Method] = {
    "value_iteration": Method(ValueIteration, ALL_METHODS["value_iteration"].summary),
    "modified_policy_iteration": Method(
        make_modified,
        "sweeps, and between them the policy evaluated in part, by sweeps or PETSc's solvers",
        ModifiedOptions,
    ),
    "policy_iteration": Method(
        KrylovPolicyIteration,
        "evaluation by PETSc's linear solvers and improvement in turn",
        PolicyIterationOptions,
    ),
    "adaptive_aggregation": Method(
        AdaptiveAggregation,
        ALL_METHODS["adaptive_aggregation"].summary,
        AdaptiveAggregationOptions,
        draws=True,
        num_iterations=operator.attrgetter("num_iterations"),
    ),
}
_CHOSEN = "value_iteration"
_WHY_CHOSEN = "it takes the least memory, and every process does the same work"


def solve_in_parts(model_or_env: Any, objective: Discounted, request: Request) -> PartResult:
    """Return this process's part of costs-to-go and a policy, and how far they can be off.

    Called by all processes, with the same arguments but for the callback.

    Parameters
    ----------
    model_or_env
        What `as_row_model` or `as_model` takes.
    objective : Discounted
    request : Request
    """
    name, options = check_request(request)
    processes = world()
    with Signals() as signals:
        result = _solve(processes, signals, model_or_env, objective, request, name, options)
        # One that came after the last iteration: what was found is not lost for it.
        number = int(processes.largest(np.array([float(signals.noted)]))[0])
        if number:
            signals.forget()
            result = replace(result, status=Status.INTERRUPTED, message=words_of(number))
        return result


def check_request(request: Request) -> tuple[str, Any]:
    """Return the method that is asked for, and its options; refuse what has no parts.

    Parameters
    ----------
    request : Request

    Raises
    ------
    ValueError, TypeError
    """
    name = request.method
    if name in ALL_METHODS and name not in METHODS:
        raise ValueError(
            f'{name} does not run with engine="petsc"; methods that do: {", ".join(METHODS)}'
        )
    options = check_method(name, request.options, METHODS)
    if isinstance(options, AdaptiveAggregationOptions) and options.noise_sigma > 0:
        raise ValueError(
            f"noise_sigma = {options.noise_sigma!r} needs one process: its draws are an array "
            "over all states and actions"
        )
    return (_CHOSEN, None) if name == AUTO else (name, options)


def _solve(
    processes: Processes,
    signals: Signals,
    model_or_env: Any,
    objective: Discounted,
    request: Request,
    name: str,
    options: Any,
) -> PartResult:
    model = processes.together(lambda: as_rows(model_or_env))
    _check_same(processes, model, objective, request, name, options)
    clock = CommonClock(processes, signals, request.time_limit)
    num_threads = request.num_threads or 1
    engine = part_engine(
        model,
        objective.gamma,
        processes,
        num_threads,
        clock.check,
        signals.raise_noted,
        with_tables=reads_tables(options),
    )
    start = processes.together(lambda: _start(engine, request.V0))
    entry = METHODS[name]
    normal_end = entry.num_iterations(options)
    terms = terms_of(engine, request, normal_end, start)
    arguments: dict[str, Any] = {} if options is None else {"options": options}
    if entry.draws:
        arguments["rng"] = np.random.default_rng(request.seed)
    solver = entry.solver(engine, **arguments)
    keeper = keeper_of(request, engine, terms.budget, options, solver)
    callback = common_callback(processes, request.callback)
    run: Run | None = None
    try:
        with interruptible(), keeper or nullcontext():
            run = iterate(
                solver,
                start,
                terms.certifier,
                terms.budget,
                clock,
                defines_values=normal_end is not None,
                certify_every=request.certify == "every",
                callback=callback,
                keeper=keeper,
            )
            return _result(name, request, terms.lowered, engine, run, clock)
    except KeyboardInterrupt as error:
        if run is None:
            raise
        # What was found is not lost for the policy that is read off it.
        interrupted = replace(run, status=Status.INTERRUPTED, message=str(error) or KEYBOARD)
        return _result(name, request, "", engine, interrupted, clock)


def _check_same(
    processes: Processes,
    model: RowModel,
    objective: Discounted,
    request: Request,
    name: str,
    options: Any,
) -> None:
    """Refuse what is not asked alike in all processes: they would wait for one another for ever."""

    def asked() -> dict[str, Any]:
        limits = "tol", "atol", "num_iterations", "num_updates", "time_limit", "seed", "certify"
        own = () if options is None else fields(options)
        kept = request.checkpoint
        return {
            "number of states": model.num_states,
            "number of actions": model.num_actions,
            "model": model.key,
            "gamma": objective.gamma,
            "method": name,
            **{limit: fact(getattr(request, limit)) for limit in limits},
            "V0": None if request.V0 is None else "given",
            "checkpoint": None if kept is None else str(kept),
            **{option.name: fact(getattr(options, option.name)) for option in own},
        }

    here = processes.together(asked)
    first = processes.first(here)

    def check() -> None:
        for what, value in here.items():
            if value != first.get(what):
                raise ValueError(
                    f"process {processes.rank} is asked to solve with {what} = {value!r}, the "
                    f"first process with {first.get(what)!r}: all need the same"
                )

    processes.together(check)


def _start(engine: PartEngine, V0: ArrayLike | None) -> NDArray[np.float64]:
    """Return the part of the first V, with 0 in terminal states."""
    start = np.zeros(len(engine.terminal))
    if V0 is None:
        return start
    whole, listed = np.asarray(V0), _num_listed(engine.model)
    if whole.shape not in ((listed,), (engine.num_states,)):
        raise ValueError(f"V0 must have shape ({listed},), got {whole.shape}")
    lo = engine.first_state
    given = whole[lo : lo + len(start)]
    start[: len(given)] = given
    bad = np.flatnonzero(~np.isfinite(start))
    if len(bad):
        raise ValueError(f"V0[{lo + bad[0]}] = {start[bad[0]]} must be finite")
    start[engine.terminal] = 0.0
    return start


def _num_listed(model: Any) -> int:
    """Return how many states of a model its source lists: all of a model by rows."""
    held = getattr(model, "model", model)
    return int(getattr(held, "num_listed_states", held.num_states))


def _result(
    name: str, request: Request, lowered: str, engine: PartEngine, run: Run, clock: CommonClock
) -> PartResult:
    policy, policy_bound = policy_of(engine, run)
    # Without the states that the source of a model does not list, which are the last ones.
    listed = _num_listed(engine.model)
    lo = min(engine.first_state, listed)
    hi = min(engine.first_state + len(engine.terminal), listed)
    own = slice(0, hi - lo)
    return PartResult(
        lo=lo,
        hi=hi,
        num_states=listed,
        values=run.values[own],
        policy=policy[own],
        terminal=engine.terminal[own],
        bound=run.bound,
        policy_bound=policy_bound,
        status=run.status,
        message=run.message + (lowered if run.status.success else ""),
        method=name,
        reason=_WHY_CHOSEN if request.method == AUTO else "",
        objective=Discounted(engine.gamma),
        num_iterations=run.num_iterations,
        num_sweeps=run.num_sweeps,
        num_updates=run.num_updates,
        num_certificate_sweeps=run.num_certificate_sweeps,
        seconds=run.seconds_before + clock.seconds(),
        history=run.history,
        allowance=run.check.certificate.allowance,
        labels=None if run.labels is None else run.labels[own],
        _parts=engine.parts,
    )
