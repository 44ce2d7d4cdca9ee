"""The optimal values that every solver of the benchmark is judged by, by a way of its own.

Policy iteration: the matrix ``I - gamma P_pi`` of each policy is factorised (SuperLU), or, where
that would fill up, the system is solved by BiCGSTAB; then one more round of iterative refinement.
Nothing of `planners` is used.  What is returned is checked, whatever came before, by the residual
of the Bellman equation, which bounds the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from adapters.tables import Tables
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, reverse_cuthill_mckee

Values = NDArray[np.float64]

#: Error to reach, relative to the largest value.
ACCURACY = 1e-10
MOST_ROUNDS = 500
SWEEPS_A_ROUND = 30


@dataclass(frozen=True, eq=False)
class Reference:
    """Optimal values.

    Parameters
    ----------
    values : ndarray, shape (S,)
    error : float
        Bound of their own error in the sup norm.
    rounds : int
        Policies evaluated.
    """

    values: Values
    error: float
    rounds: int

    @property
    def max_value(self) -> float:
        """Largest size of a value."""
        return float(np.abs(self.values).max())

    @property
    def is_accurate(self) -> bool:
        """Whether the error is as small as asked for."""
        return self.error <= ACCURACY * self.max_value


def reference(tables: Tables, gamma: float) -> Reference:
    """Return the optimal values of a model, with a bound of their error."""
    policy = _first_policy(tables, gamma)
    direct = _factorises_well(tables)
    V = np.zeros(tables.num_states)
    best = Reference(V, math.inf, 0)
    for rounds in range(1, MOST_ROUNDS + 1):
        V = _evaluate(tables, policy, gamma, V, direct)
        Q = _q_values(tables, V, gamma)
        found = _certified(V, Q, gamma, rounds)
        best = found if found.error < best.error else best
        if best.is_accurate:
            break
        # Sweeps from the values of a policy only improve them, and save some factorisations.
        for _ in range(SWEEPS_A_ROUND):
            Q = _q_values(tables, Q.min(axis=1), gamma)
        # A move is left only for one that is better beyond rounding: else ties cycle for ever.
        gain = Q[np.arange(tables.num_states), policy] - Q.min(axis=1)
        changed = gain > 16 * 2.0**-53 * found.max_value
        if not changed.any():
            break
        policy = np.where(changed, Q.argmin(axis=1), policy)
    return best


def cached_reference(tables: Tables, gamma: float, path: Path) -> Reference:
    """Return the optimal values of a model, from a file where that holds those of this model."""
    if path.exists():
        with np.load(path) as arrays:
            values, rounds = arrays["values"], int(arrays["rounds"])
        # What the file says is checked again: the model may have changed since.
        if values.shape == (tables.num_states,):
            found = _certified(values, _q_values(tables, values, gamma), gamma, rounds)
            if found.is_accurate:
                return found
    found = reference(tables, gamma)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, values=found.values, rounds=found.rounds)
    return found


def _certified(V: Values, Q: Values, gamma: float, rounds: int) -> Reference:
    """Return TV moved to the middle of what it leaves open.

    With r = TV - V the optimum lies between ``TV + gamma / (1 - gamma) min r`` and the same of
    max r (MacQueen); to that comes what rounding loses.
    """
    improved = Q.min(axis=1)
    residual = improved - V
    scale = gamma / (1 - gamma)
    low, high = scale * float(residual.min()), scale * float(residual.max())
    rounding = 16 * 2.0**-53 * float(np.abs(improved).max()) / (1 - gamma)
    return Reference(improved + 0.5 * (low + high), 0.5 * (high - low) + rounding, rounds)


def _q_values(tables: Tables, V: Values, gamma: float) -> Values:
    Q = tables.costs + gamma * (tables.transitions @ V).reshape(tables.costs.shape)
    Q[~tables.available] = np.inf
    return np.asarray(Q)


def _evaluate(
    tables: Tables, policy: NDArray[np.int64], gamma: float, V: Values, direct: bool
) -> Values:
    """Return the values of a policy."""
    states = np.arange(tables.num_states)
    rows = tables.transitions[states * tables.num_actions + policy]
    costs = tables.costs[states, policy]
    system = sp.csc_matrix(sp.identity(tables.num_states, format="csr") - gamma * rows)
    if direct:
        # Without pivots: the diagonal dominates the rows.
        factors = spla.splu(
            system,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        V = factors.solve(costs)
        for _ in range(2):
            V = V + factors.solve(costs - (V - gamma * (rows @ V)))
        return V
    target = 0.1 * ACCURACY * (1 - gamma)
    for _ in range(20):
        remainder = costs - (V - gamma * (rows @ V))
        if np.abs(remainder).max() <= target * np.abs(V).max():
            break
        correction, _ = spla.bicgstab(
            sp.csr_matrix(system), remainder, rtol=1e-6, atol=0.0, maxiter=2000
        )
        V = V + correction
    return V


def _first_policy(tables: Tables, gamma: float) -> NDArray[np.int64]:
    """Return the way to a state that absorbs at no cost, or the greedy policy after some sweeps.

    Policy iteration from a myopic policy finds a far goal by a few steps a round only.
    """
    matrix, num_actions = tables.transitions, tables.num_actions
    V = np.zeros(tables.num_states)
    for _ in range(100):
        V = _q_values(tables, V, gamma).min(axis=1)
    policy = _q_values(tables, V, gamma).argmin(axis=1)
    absorbing = _absorbing(tables)
    if not absorbing.any():
        return policy
    row_of_entry = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    # Reversed, with one more node that leads to every absorbing state.  Of the outcomes of an
    # action only likely ones show where it goes.
    likely = (matrix.data >= 1 / 3 - 1e-9) & tables.available.reshape(-1)[row_of_entry]
    ends = np.flatnonzero(absorbing)
    root = tables.num_states
    source = np.concatenate([matrix.indices[likely], np.full(len(ends), root)])
    target = np.concatenate([row_of_entry[likely] // num_actions, ends])
    graph = sp.csr_matrix((np.ones(len(source)), (source, target)), shape=(root + 1, root + 1))
    _, following = breadth_first_order(graph, root, directed=True)
    # The action of each state that leads to the state that breadth-first search came from.
    towards = likely & (matrix.indices == following[row_of_entry // num_actions])
    rows = row_of_entry[towards][::-1]
    policy[rows // num_actions] = rows % num_actions
    return policy


def _absorbing(tables: Tables) -> NDArray[np.bool_]:
    states = np.arange(tables.num_states)
    stays = np.ones(tables.num_states, dtype=bool)
    for a in range(tables.num_actions):
        rows = tables.transitions[a :: tables.num_actions]
        is_loop = np.abs(rows.diagonal() - 1) < 1e-12
        stays &= (is_loop & (tables.costs[states, a] == 0)) | ~tables.available[:, a]
    return stays & tables.available.any(axis=1)


def _factorises_well(tables: Tables) -> bool:
    """Return whether states can be put in a row or a plane, but for a few that all are near."""
    num_states = tables.num_states
    if num_states <= 2000:
        return True
    matrix = tables.transitions
    row_of_entry = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    edges = (row_of_entry // tables.num_actions, matrix.indices)
    graph = sp.csr_matrix((np.ones(matrix.nnz), edges), shape=(num_states, num_states))
    graph = sp.csr_matrix(graph + graph.T)
    degrees = np.diff(graph.indptr)
    # Where many are near one state, as all are to that of a new machine, it is eliminated last.
    rest = np.flatnonzero(degrees <= 20 * np.median(degrees))
    graph = sp.csr_matrix(graph[rest][:, rest])
    order = reverse_cuthill_mckee(graph, symmetric_mode=True)
    banded = sp.coo_matrix(graph[order][:, order])
    width = int(np.abs(banded.row - banded.col).max(initial=0))
    few = num_states - len(rest) <= math.sqrt(num_states)
    return few and width <= 3 * math.sqrt(num_states)
