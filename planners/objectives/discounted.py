"""Discounted costs: the methods by name, and the call that runs one."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import did_you_mean
from aggmaze.models.events import EventMDP
from aggmaze.models.model import Model
from aggmaze.progress import stage
from planners.adapters import as_model
from planners.auto import choose
from planners.budget import Budget, Clock
from planners.certificate import LARGEST_START, Certifier
from planners.checkpoint import Keeper
from planners.engine import Engine
from planners.event_engine import make_engine
from planners.fingerprints import Traced, fact, model_key
from planners.iterate import iterate
from planners.judge import Run
from planners.kernels.compiling import interruptible
from planners.kernels.threads import check_num_threads
from planners.linear.rounds import is_small
from planners.objective import Discounted
from planners.objectives.request import AUTO, DEFAULT_TOL, Request
from planners.policies import greedy_policy, model_values
from planners.result import KEYBOARD, TERMINATED, SolveResult, Status
from planners.signals import AGAIN, Terminations
from planners.solvers.adaptive_aggregation import AdaptiveAggregation, AdaptiveAggregationOptions
from planners.solvers.auto_policy_iteration import AutoPolicyIteration
from planners.solvers.base import Solver
from planners.solvers.basin_aggregation import BasinAggregation, BasinAggregationOptions
from planners.solvers.fixed_aggregation import FixedAggregation, FixedAggregationOptions
from planners.solvers.forest_policy_iteration import (
    ForestPolicyIteration,
    ForestPolicyIterationOptions,
)
from planners.solvers.gauss_seidel import GaussSeidel
from planners.solvers.modified_policy_iteration import (
    ModifiedPolicyIteration,
    ModifiedPolicyIterationOptions,
)
from planners.solvers.multilevel_policy_iteration import (
    MultilevelPolicyIteration,
    MultilevelPolicyIterationOptions,
)
from planners.solvers.policy_iteration import PolicyIteration
from planners.solvers.policy_sweeps import PolicySweeps
from planners.solvers.small_policy_iteration import SmallPolicyIteration
from planners.solvers.value_iteration import ValueIteration


@dataclass(frozen=True)
class Method:
    """A row of the table of methods.

    Parameters
    ----------
    solver : callable
        ``solver(backups)``, with ``options=`` where there are any, with ``rng=`` where it draws.
    summary : str
    options : type, optional
        Frozen dataclass of the options that the method takes.
    draws : bool
        Whether the method takes a Generator.
    num_iterations : callable, optional
        ``num_iterations(options)``: the budget that is the method's normal end where the caller
        sets none.  Methods without one run to a tolerance, and so do those where it is None; the
        others define their values, which are not moved to the middle of what is certified.
    matrix_free : callable, optional
        As ``solver``, on models without a table; None where there is none.
    """

    solver: Callable[..., Solver]
    summary: str
    options: type | None = None
    draws: bool = False
    num_iterations: Callable[[Any], int | None] = lambda options: None
    matrix_free: Callable[..., Solver] | None = None


METHODS: dict[str, Method] = {
    "value_iteration": Method(
        ValueIteration,
        "full sweeps V = TV with MacQueen's bounds",
        matrix_free=ValueIteration,
    ),
    "gauss_seidel": Method(GaussSeidel, "sweeps in place, in alternating directions"),
    "modified_policy_iteration": Method(
        ModifiedPolicyIteration,
        "sweeps, and between them cheap ones by the policy alone",
        ModifiedPolicyIterationOptions,
        matrix_free=PolicySweeps,
    ),
    "policy_iteration": Method(PolicyIteration, "exact evaluation and improvement in turn"),
    "multilevel_policy_iteration": Method(
        MultilevelPolicyIteration,
        "policy iteration that begins on coarser models and evaluates by elimination in levels",
        MultilevelPolicyIterationOptions,
    ),
    "forest_policy_iteration": Method(
        ForestPolicyIteration,
        "policy iteration with evaluation along the forest of likeliest moves, and sweeps",
        ForestPolicyIterationOptions,
    ),
    "basin_aggregation": Method(
        BasinAggregation,
        "sweeps that retrace their rows, and aggregation by where the policy goes",
        BasinAggregationOptions,
    ),
    "fixed_aggregation": Method(
        FixedAggregation,
        "Algorithm 1: updates of states grouped by given labels",
        FixedAggregationOptions,
        draws=True,
        num_iterations=operator.attrgetter("num_iterations"),
        matrix_free=FixedAggregation,
    ),
    "adaptive_aggregation": Method(
        AdaptiveAggregation,
        "Algorithm 3: sweeps in turn with updates of states grouped by value",
        AdaptiveAggregationOptions,
        draws=True,
        num_iterations=operator.attrgetter("num_iterations"),
        matrix_free=AdaptiveAggregation,
    ),
}


def solve_discounted(model_or_env: Any, objective: Discounted, request: Request) -> SolveResult:
    """Return costs-to-go, a policy, and how far they can be from the optimum.

    Parameters
    ----------
    model_or_env
        What `as_model` takes.
    objective : Discounted
    request : Request
    """
    gamma, method = objective.gamma, request.method
    certify, callback = request.certify, request.callback
    tol, time_limit, V0 = request.tol, request.time_limit, request.V0
    # Before the model, which may take long to check.
    method_options = check_method(method, request.options)
    if isinstance(model_or_env, EventMDP) and method != AUTO:
        _solver_for(method, model_or_env)
    with stage("making the model"):
        model = as_model(model_or_env)
    clock = Clock(time_limit)
    reason = ""
    if method == AUTO:
        with stage("choosing a method"):
            choice = choose(model, tol)
        method, reason = choice.method, choice.reason
        method_options = check_method(method, {})
    entry = METHODS[method]
    arguments = {} if method_options is None else {"options": method_options}
    if entry.draws:
        arguments["rng"] = np.random.default_rng(request.seed)
    normal_end = entry.num_iterations(method_options)
    start = np.zeros(model.num_states) if V0 is None else model_values(model, V0, "V0")
    with stage(f"preparing {method}"):
        engine = make_engine(model, gamma, check_num_threads(request.num_threads), clock.check)
        terms = terms_of(engine, request, normal_end, start)
        certifier, budget = terms.certifier, terms.budget
        make_solver = _solver_for(method, model)
        if reason and make_solver is ModifiedPolicyIteration:
            make_solver, arguments = AutoPolicyIteration, {"tol": budget.tol or DEFAULT_TOL}
            # Rounds that nobody looks at one by one can be made at once.
            unseen = callback is None and certify == "final" and not budget.counts
            if unseen and is_small(engine):
                make_solver = SmallPolicyIteration
        solver = make_solver(engine, **arguments)
    keeper = keeper_of(request, engine, budget, method_options, solver)
    run: Run | None = None
    try:
        with interruptible(), _kept(keeper):
            run = iterate(
                solver,
                start,
                certifier,
                budget,
                clock,
                defines_values=normal_end is not None,
                certify_every=certify == "every",
                callback=callback,
                keeper=keeper,
            )
            if isinstance(solver, AutoPolicyIteration | SmallPolicyIteration) and solver.reason:
                method, reason = solver.method, f"{reason}; {solver.reason}"
            return _result(method, reason, terms.lowered, engine, run, clock)
    except KeyboardInterrupt:
        if run is None or _was_struck(run):  # at the second time
            raise
        # What was found is not lost for the policy that is read off it.
        interrupted = replace(run, status=Status.INTERRUPTED, message=KEYBOARD)
        return _result(method, reason, "", engine, interrupted, clock)


@dataclass(frozen=True)
class Terms:
    """When a run of discounted costs ends, and who certifies it.

    Parameters
    ----------
    certifier : Certifier
    budget : Budget
    lowered : str
        What a message says of a default accuracy that cannot be certified.
    """

    certifier: Certifier
    budget: Budget
    lowered: str


def terms_of(
    engine: Engine, request: Request, normal_end: int | None, start: NDArray[np.float64]
) -> Terms:
    """Return when a run ends, and refuse what cannot be reached or held.

    Parameters
    ----------
    engine : Engine
    request : Request
    normal_end : int, optional
        Iterations that are the normal end of the method.
    start : ndarray of float, shape (S,)
        The first V.

    Raises
    ------
    ValueError
    """
    certifier = Certifier(engine)
    _check_size(engine, start)
    tol, num_iterations, lowered = request.tol, request.num_iterations, ""
    if num_iterations is None and request.num_updates is None:
        num_iterations = normal_end
        if num_iterations is None and tol is None and request.atol is None:
            tol = certifier.attainable(DEFAULT_TOL)
            if tol > DEFAULT_TOL:
                lowered = (
                    f"; tol = {tol:.1e}, since float64 cannot certify the default tol of "
                    f"{DEFAULT_TOL:g} here"
                )
    budget = Budget(tol, request.atol, num_iterations, request.num_updates, request.time_limit)
    if budget.has_tolerance:
        certifier.check_attainable(budget.tol if budget.atol is None else None)
    return Terms(certifier, budget, lowered)


def policy_of(engine: Engine, run: Run) -> tuple[NDArray[np.int64], float]:
    """Read the policy off the values of a run; return it with what it loses at most.

    Parameters
    ----------
    engine : Engine
    run : Run
    """
    gamma, check = engine.gamma, run.check
    # It is read off V before it was moved to the middle: next to terminal states, which are not
    # moved, the middle has a larger residual.
    V = run.V
    bound = check.bound()
    rounding = engine.rounding(check.size + bound) if bound < math.inf else 0.0
    # What of a difference between two actions the bound and rounding leave open: giving it up
    # for progress costs a policy no more than one bound.
    slack = (1 - gamma) * run.bound + 2 * rounding if run.bound < math.inf else 0.0
    again = AGAIN if _was_struck(run) else ""
    with stage(f"reading off the policy{again}"):
        policy = greedy_policy(engine, V, slack, tie=2 * rounding, reading=check.reading)
    # An action within the slack may cost so much more, and be rounded accordingly.
    return policy, check.policy_bound(slack + engine.rounding(slack))


def _was_struck(run: Run) -> bool:
    """Whether Ctrl-C or SIGTERM ended a run."""
    return run.message.startswith((KEYBOARD, TERMINATED))


def _result(
    method: str,
    reason: str,
    lowered: str,
    engine: Engine,
    run: Run,
    clock: Clock,
) -> SolveResult:
    """Put a result together."""
    model, gamma = engine.model, engine.gamma
    policy, policy_bound = policy_of(engine, run)
    listed = model.num_listed_states
    labels = run.labels
    return SolveResult(
        values=run.values[:listed].copy(),
        policy=policy[:listed].copy(),
        bound=run.bound,
        policy_bound=policy_bound,
        status=run.status,
        message=run.message + (lowered if run.status.success else ""),
        method=method,
        reason=reason,
        objective=Discounted(gamma),
        num_iterations=run.num_iterations,
        num_sweeps=run.num_sweeps,
        num_updates=run.num_updates,
        num_certificate_sweeps=run.num_certificate_sweeps,
        seconds=run.seconds_before + clock.seconds(),
        history=run.history,
        labels=None if labels is None else labels[:listed].copy(),
        state_names=model.state_names,
        action_names=model.action_names,
        proof={
            "allowance": np.array([run.check.certificate.allowance]),
            "ended": model.terminal[:listed].copy(),
        },
    )


def keeper_of(
    request: Request, engine: Engine, budget: Budget, options: Any, solver: Solver
) -> Keeper | None:
    """Return what keeps a run, None where that is not asked for.

    What must be the same in all calls that go on with each other is the model, and all that decides
    what an iteration does and notes.  Limits and the tolerance may differ, but for whether there is
    one: that decides which values are certified.

    Parameters
    ----------
    request : Request
    engine : Engine
    budget : Budget
    options : object
        Those of the method, as `check_method` returns them.
    solver : Solver
    """
    if request.checkpoint is None:
        return None
    V0 = request.V0
    given = {} if options is None else vars(options)
    identity = {
        "model": model_key(engine),
        "gamma": engine.gamma,
        "method": request.method,
        **{name: fact(value) for name, value in given.items()},
        "seed": request.seed,
        "V0": "0" if V0 is None else fact(np.asarray(V0, dtype=np.float64)),
        "tolerance": "given" if budget.has_tolerance else "not given",
        "certify": request.certify,
    }
    functions = {name: value for name, value in given.items() if isinstance(value, Traced)}
    return Keeper(request.checkpoint, identity, engine, solver, functions)


@contextlib.contextmanager
def _kept(keeper: Keeper | None) -> Iterator[None]:
    """Keep a run, and end it well on SIGTERM, in a block; do nothing where it is not to be kept."""
    if keeper is None:
        yield
    else:
        with keeper, Terminations():
            yield


def check_method(
    name: str, options: dict[str, Any], methods: Mapping[str, Method] = METHODS
) -> Any:
    """Return the options of a method as it takes them, None where it has none.

    Parameters
    ----------
    name : str
        A key of ``methods``, or "auto".
    options : dict
        By their names.
    methods : mapping of str to Method
        Those that there are to choose from.

    Raises
    ------
    ValueError
        If there is no such method, or an option is out of range.
    TypeError
        If the method takes no such option.
    """
    if name == AUTO:
        if options:
            raise TypeError(
                f"method 'auto' takes no options of its own, got {', '.join(sorted(options))}: "
                "name the method that they belong to"
            )
        return None
    try:
        kind = methods[name].options
    except (KeyError, TypeError):
        raise ValueError(
            f"method must be one of {AUTO}, {', '.join(methods)}, got {name!r}"
            f"{did_you_mean(name, methods)}"
        ) from None
    allowed = [] if kind is None else [f.name for f in fields(kind)]
    for option in options:
        if option not in allowed:
            takes = f"takes {', '.join(allowed)}" if allowed else "takes no options of its own"
            hint = did_you_mean(option, allowed)
            raise TypeError(f"{name} does not take {option!r}; it {takes}{hint}")
    # What is kept of a run says which values it took of functions.
    traced = {key: Traced(value) if callable(value) else value for key, value in options.items()}
    return None if kind is None else kind(**traced)


def _solver_for(method: str, model: Model) -> Callable[..., Solver]:
    """Return the solver of a method, and refuse one that needs a table where there is none."""
    entry = METHODS[method]
    if not isinstance(model, EventMDP):
        return entry.solver
    if entry.matrix_free is None:
        working = ", ".join(name for name, other in METHODS.items() if other.matrix_free)
        raise ValueError(
            f"{method} needs a table of transitions, which an EventMDP does not form; methods that "
            f"do without: {working}; a small model has a table as model.to_tabular()"
        )
    return entry.matrix_free


def _check_size(engine: Engine, start: NDArray[np.float64]) -> None:
    """Refuse costs and values so large that costs-to-go overflow on the way to them."""
    most = (1 - engine.gamma) * LARGEST_START
    what = "costs (or rewards) have"
    size = engine.max_cost
    if not size <= most:
        raise ValueError(
            f"{what} sizes up to {size:g}, which at gamma = {engine.gamma!r} is too much for "
            f"float64: at most {most:.3g} will do; measure them in another unit"
        )
    size = engine.sup_norm(start)
    if not size <= most:
        raise ValueError(
            f"V0 has sizes up to {size:g}, which at gamma = {engine.gamma!r} is too "
            f"much for float64: at most {most:.3g} will do"
        )
