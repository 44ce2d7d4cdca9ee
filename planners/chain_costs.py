"""What a chain costs in all until it ends, and from where it surely ends.

    v = c + P v,   v = 0 where the chain has ended

over the states from which it ends with probability 1, each row of P divided by its sum: what it
lacks of 1 by rounding is no end.  In models of up to 1024 states elimination without subtractions
solves that to a few roundings (`linear.elimination`), in others the cheapest of the ways of
`linear.policy_equations`, or incomplete factors (`linear.chain`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from aggmaze.models.model import Model, with_table
from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP
from planners.bellman import local_engine, no_limit
from planners.kernels.pieces import UNIT_ROUNDOFF
from planners.kernels.tables import moves_of
from planners.kernels.vectors import sup_norm
from planners.linear.chain import ChainEquations
from planners.linear.elimination import MOST_STATES, eliminate
from planners.linear.forest import PolicyForest
from planners.linear.move_equations import MoveEquations
from planners.linear.policy_equations import PolicyEquations
from planners.policies import available_actions, distances_to, policy_model
from planners.result import SolveResult

# Rows whose sum misses 1 by more than this many roundings, beyond one an entry, are divided by it:
# fewer are no loss to who solves the equations (`linear.elimination.missing_probability`).
_FEW_ROUNDINGS = 8


class NoTotalError(FloatingPointError):
    """The total costs of a chain are beyond float64."""


def total_cost_of_policy(
    model: Model, policy: SolveResult | ArrayLike, *, allow_unavailable: bool = False
) -> NDArray[np.float64]:
    """Return what a policy costs in all until the end, shape (S,), with added states.

    Parameters
    ----------
    model : TabularMDP, MoveMDP or EventMDP
    policy : SolveResult, or array_like of int, shape (S,), or of float, shape (S, A)
        Actions, or the probability of each action.
    allow_unavailable : bool
        As for `planners.policies.policy_model`.

    Returns
    -------
    ndarray of float, shape (S,)
        ``V(s) = sum_a pi(a|s) (c(s,a) + sum_s' P(s'|s,a) V(s'))``, 0 in terminal states; +inf where
        the policy does not reach one with probability 1.

    Raises
    ------
    ValueError
        If the policy does not fit the model.
    FloatingPointError
        If the costs are beyond float64.
    """
    if isinstance(model, MoveMDP) and model.num_states > MOST_STATES:
        actions = available_actions(model, policy)
        values = None if actions is None else _total_cost_of_moves(model, actions)
        if values is not None:
            return values
    table = with_table(model)
    chain = policy_model(table, policy, allow_unavailable=allow_unavailable)
    transitions = normalised(chain.transitions)
    ends = np.asarray(chain.terminal)
    arrives = arriving(transitions, ends)
    values = total_costs_of_chain(transitions, chain.costs[:, 0], ends | ~arrives)
    values[~arrives] = np.inf
    return values


def _total_cost_of_moves(model: MoveMDP, actions: NDArray[np.int32]) -> NDArray[np.float64] | None:
    """Return the same straight from the tables of moves; None where that is not the way."""
    engine = local_engine(model, 1.0)
    if model.p == 1.0:
        forest = PolicyForest(engine)
        forest.follow(actions)
        inside = np.flatnonzero(~model.terminal).astype(np.int32)
        graph = sp.csr_array(
            (np.ones(len(inside)), (inside, forest.following[inside])),
            shape=(model.num_states, model.num_states),
        )
        if not arriving(graph, model.terminal).all():
            return None
        values = np.zeros(model.num_states)
        forest.evaluate(values, reduction=0.0, most_steps=1)
    else:
        graph = model.successor_graph()
        if not (distances_to(graph, np.flatnonzero(model.terminal))[0] >= 0).all():
            return None
        values = np.zeros(model.num_states)
        MoveEquations(moves_of(model), actions, 1.0).solve(values, engine.rounding)
    residual = engine.policy_sweep(actions, values, np.empty_like(values)).residual
    return values if residual <= engine.rounding(sup_norm(values)) else None


def normalised(transitions: sp.csr_array) -> sp.csr_array:
    """Return a matrix of probabilities with each row divided by its sum, if that misses 1.

    Rows that miss it by a few roundings are left as they are; where all do, it is the same matrix.

    Parameters
    ----------
    transitions : sparse array, shape (R, S)
        Empty rows stay empty.
    """
    counts = np.diff(transitions.indptr)
    row_of_entry = np.repeat(np.arange(len(counts)), counts)
    sums = np.bincount(row_of_entry, weights=transitions.data, minlength=len(counts))
    off = np.abs(sums - 1.0) > (_FEW_ROUNDINGS + counts) * UNIT_ROUNDOFF
    off &= counts > 0
    if not off.any():
        return transitions
    divisors = np.where(off, sums, 1.0)
    data: NDArray[Any] = transitions.data / divisors[row_of_entry]
    return sp.csr_array((data, transitions.indices, transitions.indptr), shape=transitions.shape)


def arriving(transitions: sp.csr_array, ends: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return from where a chain ends with probability 1, shape (S,).

    A state does unless it may get to one from which no end can be reached.

    Parameters
    ----------
    transitions : sparse array, shape (S, S)
        Entries that are 0 lead nowhere; the rows of ends are not read.
    ends : ndarray of bool, shape (S,)
    """
    counts = np.diff(transitions.indptr)
    row_of_entry = np.repeat(np.arange(len(counts)), counts)
    kept = (transitions.data > 0.0) & ~ends[row_of_entry]
    starts = np.concatenate(
        [[0], np.cumsum(np.bincount(row_of_entry[kept], minlength=len(counts)))]
    )
    graph = sp.csr_array(
        (np.ones(int(starts[-1])), transitions.indices[kept], starts), shape=transitions.shape
    )
    reaching = distances_to(graph, np.flatnonzero(ends))[0] >= 0
    if reaching.all():
        return reaching
    return distances_to(graph, np.flatnonzero(~reaching))[0] < 0


def total_costs_of_chain(
    transitions: sp.csr_array,
    costs: NDArray[np.float64],
    ends: NDArray[np.bool_],
    checkpoint: Callable[[], None] = no_limit,
) -> NDArray[np.float64]:
    """Return the total costs of a chain that surely ends from every state.

    Parameters
    ----------
    transitions : sparse array, shape (S, S)
        `normalised`; the rows of ends are not read.
    costs : ndarray of float, shape (S,)
        Of a step out of each state; those of ends are not read.
    ends : ndarray of bool, shape (S,)
        States where nothing is paid any more.
    checkpoint : callable
        What long loops call now and then.

    Raises
    ------
    FloatingPointError
        If the costs are beyond float64.
    """
    if ends.all():
        return np.zeros(len(ends))
    costs = np.where(ends, 0.0, costs)
    chain = TabularMDP(transitions, costs[:, np.newaxis], terminal=ends)
    values: NDArray[np.float64] | None
    if len(ends) <= MOST_STATES:
        values = eliminate(chain, 1.0)
        if values is None or not sup_norm(values) < math.inf:
            raise NoTotalError("the total costs of a policy are beyond what float64 can hold")
        return values
    engine = local_engine(chain, 1.0, 1, checkpoint)
    equations = PolicyEquations(engine)
    equations.follow(np.zeros(len(ends), dtype=np.int32))
    values = np.zeros(len(ends))
    refined = equations.refine(values)
    if refined.exact:
        return values
    found = ChainEquations(chain.transitions, ends, 1.0).solve(costs)
    residual = max(-found.residual_low, found.residual_high)
    if residual <= found.rounding or not refined.residual <= residual:
        values = found.values
    if not sup_norm(values) < math.inf:
        raise NoTotalError("the total costs of a policy are beyond what float64 can hold")
    return values
