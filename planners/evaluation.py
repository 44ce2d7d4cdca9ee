"""The exact value of a policy.

A policy turns a model into one with a single action, whose optimum is the policy's value.  Its
linear equations are solved first (`planners.chains`); then value iteration on that model, from
there, goes as far as float64 can certify: a sweep or two, or many where the equations were too much
for their solver.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_gamma
from planners.adapters import as_model
from planners.bellman import backups
from planners.certificate import Certifier
from planners.chains import ChainEquations
from planners.iterate import Budget, iterate
from planners.policies import policy_model
from planners.result import SolveResult, Status
from planners.solvers.value_iteration import ValueIteration, ValueIterationOptions


def evaluate(
    model_or_env: Any,
    policy: SolveResult | ArrayLike,
    gamma: float,
    *,
    allow_unavailable: bool = False,
) -> NDArray[np.float64]:
    """Return the costs-to-go of a policy, exact within rounding.

    Whatever the linear solver makes of it, the last sweep bounds the error, as `solve` does, and
    ends where float64 can bound it no better.

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
    chain = policy_model(model, policy, allow_unavailable=allow_unavailable)
    operators = backups(chain, check_gamma(gamma))
    equations = ChainEquations(chain.transitions, chain.terminal, operators.gamma)
    start = equations.solve(chain.costs[:, 0]).values
    solver = ValueIteration(operators, start, np.random.default_rng(0), ValueIterationOptions())
    # No float64 certificate is that narrow: the loop stops where rounding lets it go no further.
    run = iterate(solver, Certifier(operators), Budget(tol=0.0))
    if run.status == Status.INTERRUPTED:
        raise KeyboardInterrupt  # nobody asked for an approximate value
    if run.bound is None or not run.bound < math.inf:
        raise FloatingPointError(f"the policy could not be evaluated: {run.message}")
    return run.values[: model.num_states - model.num_added_states]
