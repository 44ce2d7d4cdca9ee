"""The matrix ``A = I - gamma P_pi`` of a policy, kept as what leaves each state.

A is an M-matrix: ``A = diag(d) - N`` with ``N >= 0``.  Kept are the entries of N, discounted
probabilities of going to another state that is not terminal, and of each row the slack
``A 1 >= 0``, what it loses to the discount and to terminal states.  The diagonal is then a sum of
numbers that are not negative, ``d = slack + N 1``, so that no digit is lost however near gamma is
to 1 (Grassmann, Taksar, Heyman, "Regenerative analysis and steady state distributions for Markov
chains", Operations Research 33, 1985).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planners.engine import LocalEngine
from planners.kernels.tables import Moves, num_available, weight
from planners.linear.elimination import missing_probability


class PolicyMatrix(NamedTuple):
    """Rows of ``A = diag(slack + N 1) - N``.

    Parameters
    ----------
    starts : ndarray of int64, shape (S + 1,)
    columns : ndarray of int32, shape (nnz,)
        Never the row itself; a row may have one several times.
    entries : ndarray of float, shape (nnz,)
        Of N, positive.
    slack : ndarray of float, shape (S,)
        ``A 1``, with what a row misses 1 by, unless that leaves nothing; 1 in terminal states,
        whose rows are empty.
    diagonal : ndarray of float, shape (S,)
        ``slack + N 1``.
    """

    starts: NDArray[np.int64]
    columns: NDArray[np.int32]
    entries: NDArray[np.float64]
    slack: NDArray[np.float64]
    diagonal: NDArray[np.float64]


def policy_matrix(engine: LocalEngine, policy: NDArray[np.int32]) -> PolicyMatrix:
    """Return the matrix of a policy.

    Parameters
    ----------
    engine : LocalEngine
        Of either layout.
    policy : ndarray of int32, shape (S,)
        Available actions.

    Returns
    -------
    PolicyMatrix
    """
    tables, num_states = engine.tables, engine.num_states
    if isinstance(tables, Moves):
        room, load = tables.successors.size, _load_moves
    else:
        room, load = int(num_outcomes(tables, policy)), _load_outcomes
    # Pages of an empty array take no memory before they are written to.
    matrix = PolicyMatrix(
        np.empty(num_states + 1, dtype=np.int64),
        np.empty(room, dtype=np.int32),
        np.empty(room),
        np.empty(num_states),
        np.empty(num_states),
    )
    count = int(load(tables, engine.terminal, engine.gamma, policy, matrix))
    return matrix._replace(columns=matrix.columns[:count], entries=matrix.entries[:count])


@njit(cache=True, nogil=True)
def num_outcomes(outcomes, policy):
    """Return the number of entries of a policy's rows."""
    indptr, num_actions = outcomes.indptr, outcomes.costs.shape[1]
    count = 0
    for s in range(len(policy)):
        row = s * num_actions + policy[s]
        count += indptr[row + 1] - indptr[row]
    return count


@njit(cache=True, nogil=True)
def _load_outcomes(outcomes, terminal, gamma, policy, matrix):
    """Write the matrix of a policy; return the number of entries of N."""
    indptr, indices, probabilities = outcomes.indptr, outcomes.indices, outcomes.probabilities
    starts, columns, entries, slack, diagonal = matrix
    num_actions = outcomes.costs.shape[1]
    count = 0
    starts[0] = 0
    for s in range(len(policy)):
        slack[s], diagonal[s] = 1.0, 1.0
        if not terminal[s]:
            lost, left = 0.0, 0.0
            row = s * num_actions + policy[s]
            for place in range(indptr[row], indptr[row + 1]):
                t = indices[place]
                p = probabilities[place]
                if terminal[t]:
                    lost += p
                elif t != s and gamma * p > 0.0:
                    columns[count] = t
                    entries[count] = gamma * p
                    left += gamma * p
                    count += 1
            slack[s] = (1.0 - gamma) + gamma * lost
            missing = missing_probability(probabilities, indptr[row], indptr[row + 1])
            if slack[s] + gamma * missing > 0.0:
                slack[s] += gamma * missing
            diagonal[s] = slack[s] + left
        starts[s + 1] = count
    return count


@njit(cache=True, nogil=True)
def _load_moves(moves, terminal, gamma, policy, matrix):
    """Write the matrix of a policy; return the number of entries of N."""
    successors, costs, chosen, every = moves
    starts, columns, entries, slack, diagonal = matrix
    num_moves = successors.shape[1]
    count = 0
    starts[0] = 0
    for s in range(len(policy)):
        n = num_available(costs, s)
        slack[s], diagonal[s] = 1.0, 1.0
        if n > 0:
            lost, left = 0.0, 0.0
            for m in range(num_moves):
                p = weight(chosen, every, n, m, policy[s])
                if not costs[s, m] < np.inf or not p > 0.0:
                    continue
                t = successors[s, m]
                if terminal[t]:
                    lost += p
                elif t != s and gamma * p > 0.0:
                    columns[count] = t
                    entries[count] = gamma * p
                    left += gamma * p
                    count += 1
            slack[s] = (1.0 - gamma) + gamma * lost
            diagonal[s] = slack[s] + left
        starts[s + 1] = count
    return count


@njit(cache=True, nogil=True)
def multiply(matrix, vector, out):
    """Write ``A vector`` into ``out``, by differences: of what is constant no digit is lost."""
    starts, columns, entries, slack, _ = matrix
    for s in range(len(slack)):
        here = vector[s]
        total = slack[s] * here
        for place in range(starts[s], starts[s + 1]):
            total += entries[place] * (here - vector[columns[place]])
        out[s] = total
