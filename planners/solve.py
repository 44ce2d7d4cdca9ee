"""The one call: a model, what is asked of it, and how."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

from numpy.typing import ArrayLike

from aggmaze.checks import check_choice
from planners.checkpoint import Checkpoint
from planners.kernels.compiling import interruptible
from planners.maps import map_of
from planners.objective import (
    AverageCost,
    Discounted,
    FiniteHorizon,
    Objective,
    TotalCost,
    as_objective,
)
from planners.objectives.average_cost import solve_average_cost
from planners.objectives.discounted import METHODS, Method, check_method, solve_discounted
from planners.objectives.finite_horizon import solve_finite_horizon
from planners.objectives.request import AUTO, DEFAULT_TOL, Request, check_limits
from planners.objectives.total_cost import solve_total_cost
from planners.record import Callback
from planners.result import KEYBOARD, SolveResult, Status

if TYPE_CHECKING:
    from planners.distributed.result import PartResult

__all__ = ["AUTO", "DEFAULT_TOL", "METHODS", "Method", "check_limits", "check_method", "solve"]

#: Where a model is solved: in this process, or in all that ``mpiexec`` started.
LOCAL, PETSC = "local", "petsc"

_ANSWERS: dict[type, Callable[[Any, Any, Request], Any]] = {
    Discounted: solve_discounted,
    TotalCost: solve_total_cost,
    FiniteHorizon: solve_finite_horizon,
    AverageCost: solve_average_cost,
}


@overload
def solve(
    model_or_env: Any,
    *,
    gamma: float | None = None,
    objective: Objective | None = None,
    method: str = AUTO,
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
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    engine: Literal["local"] | None = None,
    **options: Any,
) -> SolveResult: ...


@overload
def solve(model_or_env: Any, *, engine: Literal["petsc"], **arguments: Any) -> PartResult: ...


@overload
def solve(
    model_or_env: Any, *, engine: str | None = None, **arguments: Any
) -> SolveResult | PartResult: ...


@interruptible()
def solve(
    model_or_env: Any,
    *,
    gamma: float | None = None,
    objective: Objective | None = None,
    method: str = AUTO,
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
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    engine: str | None = None,
    **options: Any,
) -> SolveResult | PartResult:
    """Plan: compute costs-to-go, a policy, and how far they can be from the optimum.

    What is asked is said by ``gamma`` or by ``objective``: discounted costs, total costs until the
    end, costs of a number of steps, or the mean cost of a step in the long run.

    Parameters
    ----------
    model_or_env
        A model, an environment that exposes one, or a Gymnasium ``P``: what `as_model` takes.
    gamma : float, optional
        Discount in [0, 1]; 1 asks for total costs, ``objective=TotalCost()``.
    objective : Discounted, TotalCost, FiniteHorizon or AverageCost, optional
        In place of ``gamma``.
    method : str
        "auto", or the name of a method of the objective.  Discounted costs have those of `METHODS`,
        and "auto" chooses one from cheap measurements of the model (`planners.auto`), and may go
        over to another while it runs; the result says which and why.  In small models it makes many
        rounds as one iteration, unless a callback, ``certify="every"`` or a limit to iterations or
        updates looks at them one by one.
    tol, atol : float, optional
        Converged once ``bound <= max(atol, tol * max|V|)``.  Without either, and without
        ``num_iterations`` or ``num_updates``, exact methods run to ``tol = 1e-6``, or where float64
        cannot certify that, very near to 1, to the smallest that it can; ``message`` says so.  A
        ``tol`` below that is refused.
    num_iterations, num_updates : int, optional
        Stop after so many iterations, or at the iteration that makes so many backups.  Without a
        tolerance the values of discounted costs are then those that the method came to, such as the
        ``V_k`` of k sweeps, and not the middle of the certified interval;
        ``adaptive_aggregation`` makes 1000 iterations by default, unless ``epsilon`` is
        ``"shrink"``.
    time_limit : float, optional
        Stop after so many seconds, not counting compiling and loading kernels.  An iteration that
        is not over half a second later is given up.
    V0 : array_like, shape (S,), optional
        Where to start, 0 by default; never overwritten.
    seed : int
        Seeds the one Generator that the method draws from; not negative.
    num_threads : int, optional
        Threads for models that are large enough, by default one for each core that the process may
        use.  The result is the same, bit for bit, on any number.
    certify : {"final", "every"}
        Compute the bound at the end only, or at every iteration (one more sweep where the
        iteration is none itself).
    callback : callable, optional
        Called with a `Progress` after each iteration; a true value returned stops the run.
    checkpoint : path-like or Checkpoint, optional
        A folder that keeps a run of discounted costs, written every ten minutes (a `Checkpoint`
        says otherwise), at the end, and on Ctrl-C and SIGTERM, which ends the run as Ctrl-C does.
        The same call goes on from what the folder holds: with the sweeps of `value_iteration` and
        `gauss_seidel` and with both aggregation methods it returns what a run would have returned
        that nothing had stopped, bit for bit, and ``seconds`` are those of all calls together; the
        other methods begin anew from the V that was reached.  Tolerance, limits and the number of
        threads may be others; a folder of another run is refused.
    engine : {"local", "petsc"}, optional
        Where: in this process, by default, or in all that ``mpiexec`` started, each with a part of
        the states, by PETSc and MPI (docs/distributed.md).  Those have discounted costs, by
        `value_iteration` (which "auto" stands for there), `adaptive_aggregation`,
        `modified_policy_iteration` and `policy_iteration`, also of models by rows
        (`aggmaze.model_by_rows`), which none of them holds whole.  All make the same call.
    **options
        Of the method, as the options class of its row in `METHODS` describes them; the methods that
        are not listed take none:

        - ``modified_policy_iteration``: ``inner_sweeps``; with ``engine="petsc"`` also ``ksp`` and
          ``pc``, as `policy_iteration` takes them there
        - ``multilevel_policy_iteration``: ``start``, ``num_sweeps``
        - ``forest_policy_iteration``: ``start``, ``num_sweeps``
        - ``basin_aggregation``: ``num_retraced``
        - ``fixed_aggregation``: ``labels``, ``step_size``, ``first_step``
        - ``adaptive_aggregation``: ``epsilon``, ``num_global``, ``num_aggregated``, ``step_size``,
          ``step_index``, ``first_step``, ``noise_sigma``, ``noise``

    Returns
    -------
    SolveResult, or a `PartResult` with ``engine="petsc"``

    Raises
    ------
    ValueError
        For a value out of range, an unknown method, a model that is not valid, or a question that
        has no answer for it, with the reason.
    TypeError
        For an option that the method does not take, a source without a model, or if nothing is
        asked.
    OSError
        If the folder for checkpoints cannot be written to, or there is no room.

    Warns
    -----
    UserWarning
        If a checkpoint could not be written; the one before stays, and the run goes on.
    """

    def answered() -> Any:
        asked = as_objective(gamma, objective)
        check_engine(engine, asked)
        request = Request(
            method=method,
            tol=tol,
            atol=atol,
            num_iterations=num_iterations,
            num_updates=num_updates,
            time_limit=time_limit,
            V0=V0,
            seed=seed,
            num_threads=num_threads,
            certify=certify,
            callback=callback,
            checkpoint=checkpoint,
            options=options,
        )
        if request.checkpoint is not None and not isinstance(asked, Discounted):
            raise ValueError(f"checkpoint is for discounted costs, and {asked} is asked for")
        answer = _ANSWERS[type(asked)]
        if engine == PETSC and isinstance(asked, Discounted):
            # PETSc and MPI are for those who ask for them.
            from planners.distributed.discounted import solve_in_parts

            answer = solve_in_parts
        result: Any = None
        try:
            result = answer(model_or_env, asked, request)
            return replace(result, layout=map_of(model_or_env))
        except KeyboardInterrupt:
            if result is None:
                raise
            # What was found is not lost for its map.
            return replace(result, status=Status.INTERRUPTED, message=KEYBOARD)

    if engine != PETSC:
        return answered()  # with nothing after it in which Ctrl-C could lose the result
    from planners.distributed.processes import all_or_none

    with all_or_none():  # which ends all processes if one alone fails
        return answered()


def check_engine(engine: str | None, objective: Objective) -> None:
    """Refuse an engine that there is not, or not for an objective.

    Parameters
    ----------
    engine : str or None
    objective : Objective

    Raises
    ------
    ValueError
    """
    if engine is None:
        return
    check_choice("engine", engine, (LOCAL, PETSC))
    if engine == PETSC and not isinstance(objective, Discounted):
        raise ValueError(
            f'engine="petsc" solves for discounted costs, gamma below 1, and {objective} is asked '
            'for; engine="local" has the others'
        )
