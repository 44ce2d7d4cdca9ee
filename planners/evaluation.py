"""The exact value of a policy.

A policy turns a model into one with a single action, whose optimum is the policy's value.  In small
models it is found by elimination without subtractions (`linear.elimination`), which is accurate
however near gamma is to 1; in others the linear equations are solved until their residual is down
to rounding: of one action a state in a model of moves straight from its tables (`linear.forest`
where moves are certain, else `linear.move_equations`), of anything else as a chain, by the
cheapest of the ways of `linear.policy_equations`, or by incomplete factors (`linear.chain`).
Where that fails, value iteration on that model goes on from there, as far as float64 can certify.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.arrays import readonly
from aggmaze.memory import check_memory
from aggmaze.models.model import Model
from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP
from aggmaze.progress import errors_are_heard, report, report_error, stage
from planners.adapters import as_model
from planners.bellman import local_engine, no_limit
from planners.budget import Budget, Clock
from planners.certificate import Certifier
from planners.chain_costs import (
    arriving,
    normalised,
    total_cost_of_policy,
    total_costs_of_chain,
)
from planners.engine import Engine
from planners.iterate import iterate
from planners.kernels.compiling import interruptible
from planners.kernels.tables import moves_of
from planners.kernels.vectors import sup_norm
from planners.linear.chain import ChainEquations
from planners.linear.elimination import MOST_STATES, eliminate, some_row_grows
from planners.linear.forest import PolicyForest
from planners.linear.move_equations import MoveEquations
from planners.linear.policy_equations import PolicyEquations
from planners.linear.rows import rows_of
from planners.objective import AverageCost, Discounted, FiniteHorizon, Objective, TotalCost
from planners.policies import available_actions, objective_of, policy_model, steps_to_terminal
from planners.policy_gains import average_cost_of_policy
from planners.record import Progress
from planners.result import SolveResult, Status
from planners.solvers.value_iteration import ValueIteration
from planners.stages import Stages

# Sweeps after which value iteration is given up where the equations were too much for their solver.
_MOST_SWEEPS = 1_000_000


@interruptible()
def evaluate(
    model_or_env: Any,
    policy: SolveResult | ArrayLike,
    gamma: float | None = None,
    *,
    objective: Objective | None = None,
    allow_unavailable: bool = False,
) -> NDArray[np.float64]:
    """Return what a policy costs under an objective, exact within rounding.

    That is: costs-to-go satisfy their equations but for a residual of the size of rounding, which
    moves them by at most ``1 / (1 - gamma)`` times as much, or the expected number of steps to a
    terminal state if that is less.  In models of up to 1024 states the error of each value is a few
    roundings of what it would be if all costs had one sign, whatever gamma is; probabilities that
    sum to 1 but for rounding count as if they did.

    Parameters
    ----------
    model_or_env
        What `as_model` takes.
    policy : SolveResult, or array_like of int, shape (S,), or of float, shape (S, A)
        Actions, or the probability of each action; for a `FiniteHorizon` also a table for each
        step, shape (T, S) or (T, S, A).  Whether a `SolveResult` is a success plays no part: this
        is about its policy alone.  It brings its objective where none is given.
    gamma : float, optional
        Discount in [0, 1]; 1 stands for `TotalCost`.
    objective : Objective, optional
        In place of ``gamma``.
    allow_unavailable : bool
        Whether the policy may choose unavailable actions, which stay in place and pay, as agents
        do that know nothing of masks: what the model has for a step in place, else ``max(0,
        largest cost)``.  By default such a policy is refused.

    Returns
    -------
    ndarray of float, shape (S,), or (T + 1, S) for a `FiniteHorizon`
        ``V(s) = sum_a pi(a|s) (c(s,a) + gamma sum_s' P(s'|s,a) V(s'))``; 0 in terminal states.  For
        `TotalCost` +inf where the policy does not end with probability 1; for `AverageCost` the
        gain.

    Raises
    ------
    ValueError
        If the policy does not fit the model, or gamma is out of range.
    FloatingPointError
        If float64 cannot tell the costs-to-go to within any bound.
    """
    model = as_model(model_or_env)
    asked = objective_of(policy, gamma, objective)
    if isinstance(asked, FiniteHorizon):
        values = values_by_step(model, policy, asked, allow_unavailable=allow_unavailable)
        return values[..., : model.num_listed_states]
    with stage(f"equations of a policy, {model.num_states:,} states"):
        if isinstance(asked, TotalCost):
            values = _total_costs(model, policy, asked, allow_unavailable)
        elif isinstance(asked, AverageCost):
            found = average_cost_of_policy(model, policy, allow_unavailable=allow_unavailable)
            values = found.gains
        else:
            values = _discounted_costs(model, policy, asked.gamma, allow_unavailable)
    _check_size(values[~np.isinf(values)])
    return values[: model.num_listed_states]


def _check_size(values: NDArray[np.float64]) -> None:
    if not sup_norm(values) < math.inf:
        raise FloatingPointError(
            "the policy could not be evaluated: its costs-to-go are beyond what float64 can hold"
        )


def _discounted_costs(
    model: Model, policy: SolveResult | ArrayLike, gamma: float, allow_unavailable: bool
) -> NDArray[np.float64]:
    """Return the discounted costs of a policy, shape (S,), with added states."""
    values = None
    if isinstance(model, MoveMDP) and model.num_states > MOST_STATES:
        actions = available_actions(model, policy)
        if actions is not None:
            values = _values_of_moves(model, actions, gamma, _start(model, policy, gamma))
    if values is None:
        values = _values(policy_model(model, policy, allow_unavailable=allow_unavailable), gamma)
    _check_size(values)
    return values


def _total_costs(
    model: Model,
    policy: SolveResult | ArrayLike,
    objective: TotalCost,
    allow_unavailable: bool,
) -> NDArray[np.float64]:
    """Return the total costs of a policy, shape (S,), with added states."""
    cost = objective.cost_of_dead_ends
    if cost is None:
        return total_cost_of_policy(model, policy, allow_unavailable=allow_unavailable)
    chain = policy_model(model, policy, allow_unavailable=allow_unavailable)
    dead = steps_to_terminal(model) < 0
    transitions, ends = normalised(chain.transitions), dead | chain.terminal
    # What it costs to get there, and what it costs to be there, by the same equations.
    entering = np.asarray(transitions @ dead.astype(np.float64))
    costs = chain.costs[:, 0] + cost * entering
    arrives = arriving(transitions, ends)
    values = total_costs_of_chain(transitions, costs, ends | ~arrives)
    values[dead] = cost
    values[~arrives] = np.inf
    return values


def values_by_step(
    model: Model,
    policy: SolveResult | ArrayLike,
    objective: FiniteHorizon,
    *,
    allow_unavailable: bool = False,
    checkpoint: Callable[[], None] = no_limit,
) -> NDArray[np.float64]:
    """Return what is left to pay before each step, shape (T + 1, S), with added states.

    Parameters
    ----------
    model : Model
    policy : SolveResult or array_like
        As for `evaluate`.
    objective : FiniteHorizon
    allow_unavailable : bool
    checkpoint : callable
        Called before each step.
    """
    steps = objective.steps
    check_memory(8 * (steps + 1) * model.num_states, f"values of {steps:,} steps")
    stages = Stages(model, objective, checkpoint=checkpoint)
    values = np.empty((steps + 1, model.num_states))
    values[steps] = stages.terminal_costs
    table = policy.policy if isinstance(policy, SolveResult) else np.asarray(policy)
    changes = policy_changes(model, table, objective)
    sweep: Callable[[NDArray[np.float64], NDArray[np.float64]], object] | None = None
    for step in reversed(range(steps)):
        checkpoint()
        report(steps - 1 - step, steps, "steps evaluated")
        if sweep is None or changes or objective.stages is not None:
            chosen = table[step] if changes else table
            sweep = _sweep_by(stages, step, chosen, objective.gamma, allow_unavailable)
        sweep(values[step + 1], values[step])
        _check_size(values[step])
    return values


def _sweep_by(
    stages: Stages,
    step: int,
    policy: NDArray[Any],
    gamma: float,
    allow_unavailable: bool,
) -> Callable[[NDArray[np.float64], NDArray[np.float64]], object]:
    """Return what writes the backups of a step by a policy."""
    if not stages.has_events:
        engine = stages.engine(step)
        actions = available_actions(engine.model, policy)
        if actions is not None:
            return partial(engine.policy_sweep, actions)
        model = engine.model
    else:
        model = stages.model(step)
    chain = policy_model(model, policy, allow_unavailable=allow_unavailable)
    # No terminal state pays, and elsewhere a step in place may.
    return local_engine(chain, gamma).sweep


def policy_changes(model: Model, table: NDArray[Any], objective: FiniteHorizon) -> bool:
    """Return whether a policy has a table for each step, and refuse one of another shape.

    Parameters
    ----------
    model : Model
    table : ndarray, shape (S,), (S, A), (T, S) or (T, S, A)
    objective : FiniteHorizon
    """
    by_step = (objective.steps, model.num_listed_states)
    integers = np.issubdtype(table.dtype, np.integer)
    shapes = {1: False, 3: True, 2: integers}
    changes = shapes.get(table.ndim)
    if changes is None or (changes and table.shape[:2] != by_step):
        kept = "; keep='all' or 'policy' leaves all of its steps" if len(table) == 1 else ""
        raise ValueError(
            f"a policy for {objective} must have actions, shape (S,) or (T, S) = {by_step}, or "
            f"probabilities, shape (S, A) or (T, S, A), got {table.dtype} of shape "
            f"{table.shape}{kept}"
        )
    return changes


def _start(
    model: MoveMDP, policy: SolveResult | ArrayLike, gamma: float
) -> NDArray[np.float64] | None:
    """Return values that may be near those of the policy, as an array of its own."""
    if not isinstance(policy, SolveResult) or policy.objective != Discounted(gamma):
        return None
    if not sup_norm(policy.values) < math.inf:
        return None
    return np.where(model.terminal, 0.0, policy.values)


def _values_of_moves(
    model: MoveMDP,
    actions: NDArray[np.int32],
    gamma: float,
    start: NDArray[np.float64] | None,
) -> NDArray[np.float64] | None:
    """Return the values of available moves, None where float64 did not get there."""
    engine = local_engine(model, gamma)
    values = np.zeros(model.num_states) if start is None else start
    if model.p == 1.0:
        forest = PolicyForest(engine)
        forest.follow(actions)
        forest.evaluate(values, reduction=0.0, most_steps=1)
    else:
        MoveEquations(moves_of(model), actions, gamma).solve(values, engine.rounding)
    residual = engine.policy_sweep(actions, values, np.empty_like(values)).residual
    return values if residual <= engine.rounding(sup_norm(values)) else None


def _values(chain: TabularMDP, gamma: float) -> NDArray[np.float64]:
    """Return the values of a model with one action."""
    if chain.num_states <= MOST_STATES:
        values = eliminate(chain, gamma)
        if values is None:
            raise _growing(gamma)
        return values
    if some_row_grows(rows_of(chain.transitions), readonly(chain.terminal), gamma):
        # The equations may still have a solution, which is no sum of costs.
        raise _growing(gamma)
    engine = local_engine(chain, gamma)
    equations = PolicyEquations(engine)
    equations.follow(np.zeros(chain.num_states, dtype=np.int32))
    values = np.zeros(chain.num_states)
    if equations.refine(values).exact:
        return values
    found = ChainEquations(chain.transitions, chain.terminal, gamma).solve(chain.costs[:, 0])
    if max(-found.residual_low, found.residual_high) <= found.rounding:
        return found.values
    return evaluate_by_sweeps(engine, found.values)


def _growing(gamma: float) -> FloatingPointError:
    return FloatingPointError(
        "the policy could not be evaluated: rows of probabilities sum to more than "
        f"1/gamma, gamma = {gamma!r}"
    )


def evaluate_by_sweeps(engine: Engine, V0: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values of a model with one action, as near as float64 can certify.

    Parameters
    ----------
    engine : Engine
        Of one process or several.
    V0 : ndarray of float, shape (S,)
        Where to start.

    Raises
    ------
    FloatingPointError
        If nothing can be certified, or it takes more than a million sweeps.
    """
    certifier = Certifier(engine)
    budget = Budget(tol=certifier.attainable(0.0), num_iterations=_MOST_SWEEPS)

    def tell(progress: Progress) -> None:
        report_error(progress.bound, budget.target(sup_norm(progress.values)))

    callback = tell if errors_are_heard() else None
    run = iterate(ValueIteration(engine), V0, certifier, budget, Clock(), callback=callback)
    if run.status == Status.INTERRUPTED:
        raise KeyboardInterrupt  # nobody asked for an approximate value
    if run.num_iterations >= _MOST_SWEEPS or not run.bound < math.inf:
        raise FloatingPointError(
            f"the policy could not be evaluated: {run.message}, with a bound of {run.bound:.2g}"
        )
    return run.values
