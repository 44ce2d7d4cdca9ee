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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.arrays import readonly
from aggmaze.checks import check_gamma
from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP
from planners.adapters import as_model
from planners.bellman import local_engine
from planners.budget import Budget, Clock
from planners.certificate import Certifier
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
from planners.policies import available_actions, policy_model
from planners.result import SolveResult, Status
from planners.solvers.value_iteration import ValueIteration

# Sweeps after which value iteration is given up where the equations were too much for their solver.
_MOST_SWEEPS = 1_000_000


@interruptible()
def evaluate(
    model_or_env: Any,
    policy: SolveResult | ArrayLike,
    gamma: float,
    *,
    allow_unavailable: bool = False,
) -> NDArray[np.float64]:
    """Return the costs-to-go of a policy, exact within rounding.

    That is: they satisfy their equations but for a residual of the size of rounding, which moves
    them by at most ``1 / (1 - gamma)`` times as much, or the expected number of steps to a terminal
    state if that is less.  In models of up to 1024 states the error of each value is a few
    roundings of what it would be if all costs had one sign, whatever gamma is; probabilities that
    sum to 1 but for rounding count as if they did.

    Parameters
    ----------
    model_or_env
        What `as_model` takes.
    policy : SolveResult, or array_like of int, shape (S,), or of float, shape (S, A)
        Actions, or the probability of each action.  Whether a `SolveResult` is a success plays no
        part: this is about its policy alone.
    gamma : float
        Discount in [0, 1).
    allow_unavailable : bool
        Whether the policy may choose unavailable actions, which stay in place and pay, as agents
        do that know nothing of masks: what the model has for a step in place, else ``max(0,
        largest cost)``.  By default such a policy is refused.

    Returns
    -------
    ndarray of float, shape (S,)
        ``V(s) = sum_a pi(a|s) (c(s,a) + gamma sum_s' P(s'|s,a) V(s'))``; 0 in terminal states.

    Raises
    ------
    ValueError
        If the policy does not fit the model, or gamma is not in [0, 1).
    FloatingPointError
        If float64 cannot tell the costs-to-go to within any bound.
    """
    model = as_model(model_or_env)
    gamma = check_gamma(gamma)
    values = None
    if isinstance(model, MoveMDP) and model.num_states > MOST_STATES:
        actions = available_actions(model, policy)
        if actions is not None:
            values = _values_of_moves(model, actions, gamma, _start(model, policy, gamma))
    if values is None:
        values = _values(policy_model(model, policy, allow_unavailable=allow_unavailable), gamma)
    if not sup_norm(values) < math.inf:
        raise FloatingPointError(
            "the policy could not be evaluated: its costs-to-go are beyond what float64 can hold"
        )
    return values[: model.num_listed_states]


def _start(
    model: MoveMDP, policy: SolveResult | ArrayLike, gamma: float
) -> NDArray[np.float64] | None:
    """Return values that may be near those of the policy, as an array of its own."""
    if not isinstance(policy, SolveResult) or policy.gamma != gamma:
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
    run = iterate(
        ValueIteration(engine),
        V0,
        certifier,
        Budget(tol=certifier.attainable(0.0), num_iterations=_MOST_SWEEPS),
        Clock(),
    )
    if run.status == Status.INTERRUPTED:
        raise KeyboardInterrupt  # nobody asked for an approximate value
    if run.num_iterations >= _MOST_SWEEPS or not run.bound < math.inf:
        raise FloatingPointError(
            f"the policy could not be evaluated: {run.message}, with a bound of {run.bound:.2g}"
        )
    return run.values
