"""How often a policy is in each state.

The expected discounted number of visits ``d`` from the start distribution ``mu`` satisfies
``d = mu + gamma P_pi' d`` over the states that are not terminal.  It is the other side of the value
of a policy: ``sum_s d(s) c(s, pi(s)) = sum_s mu(s) V_pi(s)``.  The equations are those transposed
of `planners.evaluation`, restricted to the states that are ever reached: solved by factors, which
do not fill in where each state has one successor, and of more than 100,000 states by BiCGSTAB.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import breadth_first_order
from scipy.sparse.linalg import bicgstab, splu

from aggmaze.models.base import check_distribution
from aggmaze.progress import errors_are_heard, report_error
from planners.adapters import as_model
from planners.chain_costs import arriving, normalised
from planners.objective import AverageCost, Discounted, FiniteHorizon, Objective, TotalCost
from planners.policies import objective_of, policy_model
from planners.result import SolveResult

# Beyond so many states factors may fill in more than memory holds.
_MOST_FACTORED = 100_000
_ACCURACY = 1e-10


def occupancy(
    model_or_env: Any,
    policy: SolveResult | ArrayLike,
    gamma: float | None = None,
    *,
    objective: Objective | None = None,
    initial: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Return the expected discounted number of visits to each state in an episode.

    Parameters
    ----------
    model_or_env
        What `as_model` takes.
    policy : SolveResult, or array_like of int, shape (S,), or of float, shape (S, A)
        Actions, or the probability of each action.  A result brings its objective.
    gamma : float, optional
        Discount in [0, 1]; 1 stands for `TotalCost`, visits that are not discounted.
    objective : Discounted or TotalCost, optional
        In place of ``gamma``.
    initial : array_like of float, shape (S,), optional
        Distribution of the first state; the model's by default.

    Returns
    -------
    ndarray of float, shape (S,)
        ``d(s) = sum_t gamma^t Pr(s_t = s)``, of the states where an action is taken; 0 in terminal
        states, where nothing happens any more.

    Raises
    ------
    ValueError
        If the policy does not fit the model, the objective is another, or an undiscounted policy
        does not end with probability 1.
    FloatingPointError
        If the equations are beyond float64.
    """
    model = as_model(model_or_env)
    asked = objective_of(policy, gamma, objective)
    if not isinstance(asked, Discounted | TotalCost):
        others = {FiniteHorizon: "a finite horizon", AverageCost: "average costs"}
        raise ValueError(
            f"visits are those of discounted or total costs, not of {others[type(asked)]}: give "
            "gamma= instead"
        )
    discount = asked.gamma if isinstance(asked, Discounted) else 1.0
    table = policy.policy if isinstance(policy, SolveResult) else policy
    chain = policy_model(model, table)
    first = np.asarray(model.initial, dtype=np.float64)
    if initial is not None:
        given = np.asarray(initial, dtype=np.float64)
        if given.shape not in ((model.num_listed_states,), (model.num_states,)):
            raise ValueError(
                f"initial must have shape ({model.num_listed_states},), got {given.shape}"
            )
        first = np.append(given, np.zeros(model.num_states - len(given)))
        check_distribution(first)
    transitions = normalised(chain.transitions)
    terminal = np.asarray(chain.terminal)
    inside = np.flatnonzero(_reached(transitions, first, terminal))
    visits = np.zeros(model.num_states)
    if len(inside):
        if discount == 1.0:
            stuck = inside[~arriving(transitions, terminal)[inside]]
            if len(stuck):
                raise ValueError(
                    f"visits without a discount are without limit: from "
                    f"{model.naming.state(int(stuck[0]))} the policy does not surely end"
                )
        visits[inside] = _solved(transitions[inside][:, inside], discount, first[inside])
    return visits[: model.num_listed_states]


def _reached(
    transitions: sp.csr_array, first: NDArray[np.float64], terminal: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which states that are not terminal have a chance to be visited, shape (S,)."""
    count = len(first)
    # One more state from which all first ones are reached.
    starts = sp.csr_array((first > 0).astype(np.float64)[np.newaxis])
    graph: Any = sp.block_array([[transitions, None], [starts, sp.csr_array((1, 1))]], format="csr")
    order = breadth_first_order(graph, count, return_predecessors=False)
    reached = np.zeros(count + 1, dtype=bool)
    reached[order] = True
    return np.asarray(reached[:count] & ~terminal)


def _solved(
    transitions: sp.csr_array, gamma: float, first: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the visits d with ``(I - gamma P') d = first``."""
    count = len(first)
    matrix = (sp.identity(count, format="csr") - gamma * transitions.T).tocsc()
    if count <= _MOST_FACTORED or transitions.nnz <= count:
        visits = splu(matrix).solve(first)
    else:
        size = float(np.linalg.norm(first))

        def tell(visits: NDArray[np.float64]) -> None:
            report_error(float(np.linalg.norm(first - matrix @ visits)) / size, _ACCURACY)

        callback = tell if errors_are_heard() else None
        visits, failed = bicgstab(matrix, first, rtol=_ACCURACY, maxiter=20_000, callback=callback)
        # It may end in the middle of a step, of which the callback is not told.
        if callback is not None:
            callback(visits)
        if failed:
            raise FloatingPointError(
                f"the visits of {count:,} states could not be found to {_ACCURACY:g}"
            )
    if not np.isfinite(visits).all():
        raise FloatingPointError("the visits are beyond what float64 can hold")
    return np.maximum(np.asarray(visits), 0.0)
