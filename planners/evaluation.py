"""The exact value of a policy.

A policy turns a model into one with a single action, whose optimum is the policy's value: value
iteration on that model, as far as float64 goes, is its evaluation.  Where there are terminal states
to work back from, ordered Gauss-Seidel (`planners.chains`) brings it close first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planners.adapters import as_model, check_gamma
from planners.bellman import backups
from planners.chains import OrderedChain
from planners.iterate import Budget, iterate
from planners.policies import policy_model
from planners.result import Status
from planners.solvers.value_iteration import ValueIteration, ValueIterationOptions


def evaluate(model_or_env: Any, policy: ArrayLike, gamma: float) -> NDArray[np.float64]:
    """Return the costs-to-go of a policy, exact within rounding.

    Parameters
    ----------
    model_or_env
        What `as_model` takes.
    policy : array_like of int, shape (S,), or of float, shape (S, A)
        Actions, or the probability of each action.
    gamma : float
        Discount in [0, 1).

    Returns
    -------
    ndarray of float, shape (S,)

    Raises
    ------
    ValueError
        If the policy does not fit the model.
    """
    model = as_model(model_or_env)
    chain = policy_model(model, policy)
    operators = backups(chain, check_gamma(gamma))
    start = np.zeros(chain.num_states)
    if chain.terminal.any():
        ordered = OrderedChain(chain.transitions, chain.terminal)
        start, _ = ordered.solve(chain.costs[:, 0], operators.gamma)
    solver = ValueIteration(
        operators,
        start,
        np.random.default_rng(0),
        ValueIterationOptions(),
    )
    # No float64 certificate is that narrow: the loop stops where rounding lets it go no further.
    run = iterate(solver, operators, Budget(tol=0.0))
    if run.status == Status.INTERRUPTED:
        raise KeyboardInterrupt  # nobody asked for an approximate value
    return run.values[: model.num_states - model.num_added_states]
