"""The methods by name, and the one call that runs them."""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_choice, check_gamma, check_integer, is_real
from planners.adapters import as_model
from planners.bellman import Backups, backups
from planners.certificate import Certifier
from planners.choose import choose
from planners.iterate import Budget, Callback, Clock, Run, Solver, iterate
from planners.policies import greedy_policy, model_values
from planners.result import SolveResult
from planners.solvers.adaptive_aggregation import AdaptiveAggregation, AdaptiveAggregationOptions
from planners.solvers.basin_aggregation import BasinAggregation, BasinAggregationOptions
from planners.solvers.fixed_aggregation import FixedAggregation, FixedAggregationOptions
from planners.solvers.forest_policy_iteration import (
    ForestPolicyIteration,
    ForestPolicyIterationOptions,
)
from planners.solvers.gauss_seidel import GaussSeidel, GaussSeidelOptions
from planners.solvers.modified_policy_iteration import (
    ModifiedPolicyIteration,
    ModifiedPolicyIterationOptions,
)
from planners.solvers.policy_iteration import PolicyIteration, PolicyIterationOptions
from planners.solvers.value_iteration import ValueIteration, ValueIterationOptions
from planners.threads import check_num_threads


@dataclass(frozen=True)
class Method:
    """A row of the table of methods.

    Parameters
    ----------
    solver : callable
        ``solver(backups, V0, rng, options)``.
    options : type
        Frozen dataclass of the options that the method takes.
    num_iterations : callable, optional
        ``num_iterations(options)``: the budget that is the method's normal end where the caller
        sets none.  Methods without one run to a tolerance, and so do those where it is None.
    summary : str
    """

    solver: Callable[[Backups, NDArray[np.float64], np.random.Generator, Any], Solver]
    options: type
    num_iterations: Callable[[Any], int | None] | None
    summary: str


METHODS: dict[str, Method] = {
    "value_iteration": Method(
        ValueIteration, ValueIterationOptions, None, "full sweeps V = TV with MacQueen's bounds"
    ),
    "gauss_seidel": Method(
        GaussSeidel,
        GaussSeidelOptions,
        None,
        "sweeps in place, in alternating directions",
    ),
    "modified_policy_iteration": Method(
        ModifiedPolicyIteration,
        ModifiedPolicyIterationOptions,
        None,
        "sweeps, and between them cheap ones by the policy alone",
    ),
    "policy_iteration": Method(
        PolicyIteration, PolicyIterationOptions, None, "exact evaluation and improvement in turn"
    ),
    "forest_policy_iteration": Method(
        ForestPolicyIteration,
        ForestPolicyIterationOptions,
        None,
        "policy iteration with evaluation along the forest of likeliest moves, and sweeps",
    ),
    "basin_aggregation": Method(
        BasinAggregation,
        BasinAggregationOptions,
        None,
        "sweeps that retrace their rows, and aggregation by where the policy goes",
    ),
    "fixed_aggregation": Method(
        FixedAggregation,
        FixedAggregationOptions,
        operator.attrgetter("num_iterations"),
        "Algorithm 1: updates of states grouped by given labels",
    ),
    "adaptive_aggregation": Method(
        AdaptiveAggregation,
        AdaptiveAggregationOptions,
        operator.attrgetter("num_iterations"),
        "Algorithm 3: sweeps in turn with updates of states grouped by value",
    ),
}

#: The method that chooses among the others.
AUTO = "auto"

#: Relative accuracy of methods that run to a tolerance, where none is given.
DEFAULT_TOL = 1e-6


def solve(
    model_or_env: Any,
    *,
    gamma: float,
    method: str = "auto",
    tol: float | None = None,
    atol: float | None = None,
    num_iterations: int | None = None,
    num_updates: int | None = None,
    time_limit: float | None = None,
    V0: ArrayLike | None = None,
    seed: int = 0,
    num_threads: int | None = None,
    certify: str = "final",
    callback: Callback | None = None,
    **options: Any,
) -> SolveResult:
    """Plan: compute costs-to-go, a policy, and how far they can be from the optimum.

    Parameters
    ----------
    model_or_env
        A model, an environment that exposes one, or a Gymnasium ``P``: what `as_model` takes.
    gamma : float
        Discount in [0, 1).
    method : str
        A key of `METHODS`, or "auto", which chooses one from cheap measurements of the model
        (`planners.choose`); the result says which and why.
    tol, atol : float, optional
        Converged once ``bound <= max(atol, tol * max|V|)``.  Without either, and without
        ``num_iterations`` or ``num_updates``, exact methods run to ``tol = 1e-6``.  A ``tol`` below
        what float64 can certify is refused.
    num_iterations, num_updates : int, optional
        Stop after so many iterations, or at the iteration that makes so many backups;
        ``adaptive_aggregation`` makes 1000 iterations by default, unless ``epsilon`` is
        ``"shrink"``.
    time_limit : float, optional
        Stop after so many seconds, not counting the compilation of kernels.
    V0 : array_like, shape (S,), optional
        Where to start, 0 by default; never overwritten.
    seed : int
        Seeds the one Generator that the method draws from.
    num_threads : int, optional
        Threads for models that are large enough, by default one for each core that the process may
        use.  The result is the same, bit for bit, on any number.
    certify : {"final", "every"}
        Compute the bound at the end only, or at every iteration (one more sweep where the
        iteration is none itself).
    callback : callable, optional
        Called with a `Progress` after each iteration; a true value returned stops the run.
    **options
        Of the method, as the options class of its row in `METHODS` describes them; the methods that
        are not listed take none:

        - ``modified_policy_iteration``: ``inner_sweeps``
        - ``forest_policy_iteration``: ``start``, ``num_sweeps``
        - ``basin_aggregation``: ``num_retraced``
        - ``fixed_aggregation``: ``labels``, ``step_size``, ``first_step``
        - ``adaptive_aggregation``: ``epsilon``, ``num_global``, ``num_aggregated``, ``step_size``,
          ``step_index``, ``first_step``, ``noise_sigma``, ``noise``

    Returns
    -------
    SolveResult

    Raises
    ------
    ValueError
        For a value out of range, an unknown method, or a model that is not valid.
    TypeError
        For an option that the method does not take, or a source without a model.
    """
    model = as_model(model_or_env)
    gamma = check_gamma(gamma)
    _check_limits(tol, atol, num_iterations, num_updates, time_limit)
    clock = Clock()
    reason = ""
    if method == AUTO:
        if options:
            raise TypeError(
                f"method 'auto' takes no options of its own, got {', '.join(sorted(options))}: "
                "name the method that they belong to"
            )
        choice = choose(model, tol)
        method, reason = choice.method, choice.reason
    entry = _method(method)
    solver_options = _options(method, entry, options)
    normal_end = None if entry.num_iterations is None else entry.num_iterations(solver_options)
    if num_iterations is None and num_updates is None:
        num_iterations = normal_end
        if num_iterations is None and tol is None and atol is None:
            tol = DEFAULT_TOL
    budget = Budget(tol, atol, num_iterations, num_updates, time_limit)
    check_choice("certify", certify, ("final", "every"))
    start = np.zeros(model.num_states) if V0 is None else model_values(model, V0)
    operators = backups(model, gamma, check_num_threads(num_threads))
    certifier = Certifier(operators)
    if budget.tol is not None and budget.atol is None and budget.tol < certifier.least_tol:
        raise ValueError(
            f"tol = {budget.tol!r} is below what float64 can certify for this model at gamma = "
            f"{gamma!r}; the smallest possible is {certifier.least_tol:.1e} (of max|V|)"
        )
    solver = entry.solver(operators, start, np.random.default_rng(seed), solver_options)
    run = iterate(solver, certifier, budget, certify_every=certify == "every", callback=callback)
    return _result(method, reason, certifier, solver, run, clock)


def _result(
    method: str, reason: str, certifier: Certifier, solver: Solver, run: Run, clock: Clock
) -> SolveResult:
    """Certify the values where the run did not, and read the policy off them."""
    operators = certifier.backups
    model, gamma = operators.model, operators.gamma
    values = run.values
    # One more sweep bounds the values where nothing did so far, and always the policy.  It is read
    # off V before it was moved to the middle: next to terminal states, which are not moved, the
    # middle has a larger residual.
    V = values - run.shift
    V[model.terminal] = values[model.terminal]
    sweep = operators.sweep(V, np.empty_like(V))
    argument = certifier.of_argument(sweep, solver.recentres)
    bound = argument.radius if run.bound is None else run.bound
    rounding = operators.rounding(float(np.abs(V).max()) + bound)
    # What of a difference between two actions the bound and rounding leave open: giving it up
    # for progress costs a policy no more than one bound.
    slack = (1 - gamma) * bound + 2 * rounding
    policy = greedy_policy(operators, V, slack, tie=2 * rounding)
    # T_pi V <= TV + slack, so V_pi <= V + (max r + slack) / (1 - gamma).
    policy_bound = argument.high - argument.low + (slack + 2 * rounding) / (1 - gamma)
    listed = model.num_states - model.num_added_states
    labels = solver.labels()
    return SolveResult(
        values=values[:listed].copy(),
        policy=policy[:listed].copy(),
        bound=bound,
        policy_bound=policy_bound,
        status=run.status,
        message=run.message,
        method=method,
        reason=reason,
        gamma=gamma,
        num_iterations=len(run.history),
        num_sweeps=run.num_sweeps,
        num_updates=run.num_updates,
        num_certificate_sweeps=run.num_certificate_sweeps + 1,
        seconds=clock.seconds(),
        history=run.history,
        labels=None if labels is None else labels[:listed].copy(),
    )


def _method(name: str) -> Method:
    try:
        return METHODS[name]
    except (KeyError, TypeError):
        close = difflib.get_close_matches(str(name), METHODS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(
            f"method must be one of {AUTO}, {', '.join(METHODS)}, got {name!r}{hint}"
        ) from None


def _options(method: str, entry: Method, options: dict[str, Any]) -> Any:
    allowed = [f.name for f in fields(entry.options)]
    for name in options:
        if name not in allowed:
            takes = f"takes {', '.join(allowed)}" if allowed else "takes no options of its own"
            raise TypeError(f"{method} does not take {name!r}; it {takes}")
    return entry.options(**options)


def _check_limits(
    tol: float | None,
    atol: float | None,
    num_iterations: int | None,
    num_updates: int | None,
    time_limit: float | None,
) -> None:
    for name, value in (("tol", tol), ("atol", atol)):
        if value is not None and not (is_real(value) and 0 <= value < math.inf):
            raise ValueError(f"{name} must be finite and not negative, got {value!r}")
    if tol is not None and tol >= 1:
        raise ValueError(f"tol is relative to max|V| and must be below 1, got {tol!r}")
    for name, count in (("num_iterations", num_iterations), ("num_updates", num_updates)):
        if count is not None:
            check_integer(name, count, least=1)
    if time_limit is not None and not (is_real(time_limit) and time_limit > 0):
        raise ValueError(f"time_limit must be a positive number of seconds, got {time_limit!r}")
