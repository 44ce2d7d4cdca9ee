"""Rows of models summed and listed, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from aggmaze import kernel_cache  # noqa: F401  (before any kernel)


@njit(cache=True, nogil=True)
def row_sums(indptr, indices, probabilities, mask, terminal):
    """Return what the rows of a sparse table come to, as `aggmaze.models.tabular.RowSums` says.

    Parameters
    ----------
    indptr, indices, probabilities : ndarray, shapes (S*A + 1,), (nnz,), (nnz,)
    mask : ndarray of bool, shape (S, A)
    terminal : ndarray of bool, shape (S,)
    """
    error = 0.0
    most_left = 0.0
    longest = 0
    for s in range(mask.shape[0]):
        for a in range(mask.shape[1]):
            row = s * mask.shape[1] + a
            total = 0.0
            left = 0.0
            for entry in range(indptr[row], indptr[row + 1]):
                total += probabilities[entry]
                left += 0.0 if terminal[indices[entry]] else probabilities[entry]
            error = max(error, abs(total - 1.0))
            if mask[s, a]:
                most_left = max(most_left, left)
                longest = max(longest, indptr[row + 1] - indptr[row])
    return error, most_left, longest


@njit(cache=True, inline="always")
def _mix(move_costs, p, s, weights, probabilities):
    """Write the probability of each move under weights of the actions; return that of staying.

    Of a mixture w of actions, ``P_m = p w_m + b sum_{k != m} w_k`` over the n available moves,
    where nothing cancels, as it would in ``(p - b) w_m + b sum_k w_k``; the weight of unavailable
    ones stays in place.
    """
    n = 0
    stays = 0.0
    for m in range(len(weights)):
        if move_costs[s, m] < np.inf:
            n += 1
        else:
            stays += weights[m]
    b = (1.0 - p) / (n - 1) if n > 1 else 0.0
    for m in range(len(weights)):
        probabilities[m] = 0.0
        if move_costs[s, m] < np.inf:
            others = 0.0
            if b > 0.0:
                for k in range(len(weights)):
                    others += weights[k] if k != m and move_costs[s, k] < np.inf else 0.0
            probabilities[m] = (p if n > 1 else 1.0) * weights[m] + b * others
    return stays


@njit(cache=True)
def count_outcomes(successors, move_costs, p, bump, lo, mixtures):
    """Return where each row of outcomes begins, and at last their number.

    Parameters
    ----------
    successors, move_costs : ndarray, shape (B, M)
        Of the B states of a block.
    p, bump : float
    lo : int
        First state of the block.
    mixtures : ndarray of float, shape (B or 1, R, M)
        Weights of the actions in each row of a state.
    """
    num_states, num_moves = move_costs.shape
    num_rows = mixtures.shape[1]
    indptr = np.zeros(num_states * num_rows + 1, dtype=np.int64)
    probabilities = np.empty(num_moves)
    count = 0
    for s in range(num_states):
        for r in range(num_rows):
            weights = mixtures[s if len(mixtures) > 1 else 0, r]
            stays = _mix(move_costs, p, s, weights, probabilities)
            for m in range(num_moves):
                count += probabilities[m] > 0.0
            count += stays > 0.0
            indptr[s * num_rows + r + 1] = count
    return indptr


@njit(cache=True)
def list_outcomes(
    successors,
    move_costs,
    p,
    bump,
    lo,
    mixtures,
    outcome_probabilities,
    outcome_successors,
    outcome_costs,
    costs,
):
    """Write the outcomes of each row, moves in order and then staying, and their mean cost.

    Parameters
    ----------
    successors, move_costs, p, bump, lo, mixtures
        As for `count_outcomes`.
    outcome_probabilities, outcome_successors, outcome_costs : ndarray, shape (nnz,)
        Written, as is the next.
    costs : ndarray of float, shape (B, R)
    """
    num_states, num_moves = move_costs.shape
    probabilities = np.empty(num_moves)
    count = 0
    for s in range(num_states):
        terminal = True
        for m in range(num_moves):
            terminal = terminal and not move_costs[s, m] < np.inf
        for r in range(mixtures.shape[1]):
            weights = mixtures[s if len(mixtures) > 1 else 0, r]
            stays = _mix(move_costs, p, s, weights, probabilities)
            mean = 0.0
            for m in range(num_moves):
                if probabilities[m] > 0.0:
                    mean += probabilities[m] * move_costs[s, m]
                    outcome_probabilities[count] = probabilities[m]
                    outcome_successors[count] = successors[s, m]
                    outcome_costs[count] = move_costs[s, m]
                    count += 1
            if stays > 0.0:
                cost = 0.0 if terminal else bump
                mean += stays * cost
                outcome_probabilities[count] = stays
                outcome_successors[count] = lo + s
                outcome_costs[count] = cost
                count += 1
            costs[s, r] = mean
