"""Which rows of a general sparse model are better than those of a policy, beyond rounding.

All in difference form (`planners.kernels.differences`), on the states ``lo <= s < hi`` and the
actions that ``mask``, shape (S, A), marks.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from planners.kernels.differences import outcome_row


@njit(cache=True, nogil=True)
def compare(outcomes, mask, V, policy, best, actions, own_low, own_high, lo, hi):
    """Look at x(s,a) of every marked action.

    Writes into ``best`` the least upper end of an x of each state, +inf without an action, and into
    ``actions`` the first action that has it; into ``own_low`` and ``own_high`` the ends of that of
    the policy, 0 where that is negative.
    """
    for s in range(lo, hi):
        least, first = np.inf, 0
        for a in range(mask.shape[1]):
            if mask[s, a]:
                x, error = outcome_row(outcomes, True, V, 0.0, s, a)
                if x + error < least:
                    least, first = x + error, a
        best[s] = least
        actions[s] = first
        own_low[s], own_high[s] = 0.0, 0.0
        if policy[s] >= 0:
            x, error = outcome_row(outcomes, True, V, 0.0, s, policy[s])
            own_low[s], own_high[s] = x - error, x + error


@njit(cache=True, nogil=True)
def mark_below(outcomes, mask, V, level, marked, lo, hi):
    """Mark the rows whose lower end of x is below a level, too; return how many are new."""
    count = 0
    for s in range(lo, hi):
        for a in range(mask.shape[1]):
            if mask[s, a] and not marked[s, a]:
                x, error = outcome_row(outcomes, True, V, 0.0, s, a)
                if not x - error >= level:
                    marked[s, a] = True
                    count += 1
    return count


@njit(cache=True, nogil=True)
def least_cost_of_outcomes(outcomes, mask, ends, lo, hi):
    """Return the least cost of a marked row that cannot end in this step, +inf without any."""
    least = np.inf
    for s in range(lo, hi):
        for a in range(mask.shape[1]):
            if mask[s, a]:
                q = _chance_of_end(outcomes, ends, s, a)
                if q == 0.0 and not outcomes.costs[s, a] >= least:
                    least = outcomes.costs[s, a]
    return least


@njit(cache=True, nogil=True)
def most_missing_of_outcomes(outcomes, mask, ends, alpha, lo, hi):
    """Return the largest ``(1 - alpha c) / q`` of a marked row that ends with probability q."""
    most = 0.0
    for s in range(lo, hi):
        for a in range(mask.shape[1]):
            if mask[s, a]:
                q = _chance_of_end(outcomes, ends, s, a)
                missing = 1.0 - alpha * outcomes.costs[s, a]
                if q > 0.0 and not missing <= most * q:
                    most = missing / q
    return most


@njit(cache=True, inline="always")
def _chance_of_end(outcomes, ends, s, a):
    """Return the probability that a step ends."""
    indptr, indices, probabilities = outcomes.indptr, outcomes.indices, outcomes.probabilities
    row = s * outcomes.mask.shape[1] + a
    total, ending = 0.0, 0.0
    for entry in range(indptr[row], indptr[row + 1]):
        total += probabilities[entry]
        ending += probabilities[entry] if ends[indices[entry]] else 0.0
    return ending / total


@njit(cache=True, inline="always")
def _sums(moves, ends, s):
    """Return the number of moves of a state, the sum of their costs, and how many end."""
    successors, costs = moves.successors, moves.costs
    n, ending = 0, 0
    total = 0.0
    for m in range(costs.shape[1]):
        if costs[s, m] < np.inf:
            n += 1
            total += costs[s, m]
            ending += 1 if ends[successors[s, m]] else 0
    return n, total, ending


@njit(cache=True, nogil=True)
def least_cost_of_moves(moves, ends, lo, hi):
    """As `least_cost_of_outcomes`, of a model of moves, all of which count."""
    costs, successors, chosen, every = moves.costs, moves.successors, moves.chosen, moves.every
    least = np.inf
    for s in range(lo, hi):
        n, total, ending = _sums(moves, ends, s)
        for m in range(costs.shape[1]):
            if costs[s, m] < np.inf and not ends[s]:
                q = every[n] * ending + (chosen[n] if ends[successors[s, m]] else 0.0)
                cost = chosen[n] * costs[s, m] + every[n] * total
                if not q > 0.0 and not cost >= least:
                    least = cost
    return least


@njit(cache=True, nogil=True)
def most_missing_of_moves(moves, ends, alpha, lo, hi):
    """As `most_missing_of_outcomes`, of a model of moves, all of which count."""
    costs, successors, chosen, every = moves.costs, moves.successors, moves.chosen, moves.every
    most = 0.0
    for s in range(lo, hi):
        n, total, ending = _sums(moves, ends, s)
        for m in range(costs.shape[1]):
            if costs[s, m] < np.inf and not ends[s]:
                q = every[n] * ending + (chosen[n] if ends[successors[s, m]] else 0.0)
                missing = 1.0 - alpha * (chosen[n] * costs[s, m] + every[n] * total)
                if q > 0.0 and not missing <= most * q:
                    most = missing / q
    return most


@njit(cache=True, nogil=True)
def nearest_first(outcomes, mask, steps, actions, lo, hi):
    """Write of each state with a step left the marked action that most likely gets one nearer."""
    indptr, indices, probabilities = outcomes.indptr, outcomes.indices, outcomes.probabilities
    for s in range(lo, hi):
        actions[s] = 0
        largest = 0.0
        for a in range(mask.shape[1]):
            if steps[s] <= 0 or not mask[s, a]:
                continue
            row = s * mask.shape[1] + a
            nearer = 0.0
            for entry in range(indptr[row], indptr[row + 1]):
                t = indices[entry]
                if 0 <= steps[t] < steps[s]:
                    nearer += probabilities[entry]
            if nearer > largest:
                largest = nearer
                actions[s] = a
