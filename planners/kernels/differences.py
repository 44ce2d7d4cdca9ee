"""Sweeps in difference form, with what rounding may have done to each row.

    x(s,a) = c(s,a) + sum_s' P(s'|s,a) (V(s') - V(s)) - drift(s),

the rows of P divided by their sums.  Where V is the same in all that a row lists, nothing is
rounded.  docs/certificate.md, "Differences", derives the allowances.  All kernels take the tables
first and act on the states ``lo <= s < hi``; of each state they look at the actions that ``mask``,
shape (S, A), marks and at no others.  ``with_costs`` false puts 0 in the place of the costs.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from planners.kernels.pieces import UNIT_ROUNDOFF

# Covers terms of second order, and what results below the least normal number lose.
_MORE = 1.0001
_TINY = float(np.finfo(np.float64).tiny)


@njit(cache=True, inline="always")
def _sum(a, b):
    """Return the rounded sum and what rounding took from it (Knuth)."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


@njit(cache=True, inline="always")
def _roughly(cost, following, here, drift):
    """Return cost + following - here - drift, and a bound on its rounding that is never 0."""
    step = following - here
    total = cost + step
    x = total - drift
    return x, _MORE * UNIT_ROUNDOFF * (abs(step) + abs(total) + abs(x)) + _TINY


@njit(cache=True, inline="always")
def _one(cost, following, here, drift):
    """Return what `_roughly` does, with the bound 0 where x is exact; in three times the time."""
    x, error = _roughly(cost, following, here, drift)
    step, lost = _sum(following, -here)
    total, more = _sum(cost, step)
    _, most = _sum(total, -drift)
    if lost == 0.0 and more == 0.0 and most == 0.0:
        return x, 0.0
    return x, error


@njit(cache=True, inline="always")
def outcome_row(outcomes, with_costs, V, drift, s, a):
    """Return x(s,a) as computed, and a bound on its rounding."""
    indptr, indices, probabilities = outcomes.indptr, outcomes.indices, outcomes.probabilities
    row = s * outcomes.mask.shape[1] + a
    start, end = indptr[row], indptr[row + 1]
    cost = outcomes.costs[s, a] if with_costs else 0.0
    if end - start == 1:
        return _one(cost, V[indices[start]], V[s], drift)
    mean, size, total, apart = 0.0, 0.0, 0.0, 0.0
    for entry in range(start, end):
        p = probabilities[entry]
        total += p
        if p > 0.0:
            step = V[indices[entry]] - V[s]
            term = p * step
            mean += term
            size += abs(term)
            apart += abs(step)
    mean, size = mean / total, size / total
    x = cost + mean
    error = abs(x)
    x -= drift
    error = UNIT_ROUNDOFF * (error + abs(x))
    # Products of what is not 0 may be.
    if apart != 0.0:
        error += (2 * (end - start) + 4) * UNIT_ROUNDOFF * size + _TINY
    return x, _MORE * error


@njit(cache=True, inline="always")
def _move(moves, with_costs, V, drift, s, n, total, size, m):
    """Return x(s,m) as computed, and a bound on its rounding, from sums over the moves of s."""
    every = moves.every[n]
    cost = moves.costs[s, m] if with_costs else 0.0
    following = V[moves.successors[s, m]]
    if every == 0.0:
        return _one(cost, following, V[s], drift)
    chosen = moves.chosen[n]
    step = following - V[s]
    mean = chosen * (cost + step) + every * total
    x = mean - drift
    error = 2 * (len(moves.every) + 10) * UNIT_ROUNDOFF
    error *= abs(chosen) * (abs(cost) + abs(step)) + every * size
    # Products of what is not 0 may be.
    if size != 0.0:
        error += _TINY
    return x, _MORE * (error + UNIT_ROUNDOFF * abs(x))


@njit(cache=True, inline="always")
def _are_certain(moves):
    """Return whether no move slips, so that sums over the moves of a state count for nothing."""
    for share in moves.every:  # noqa: SIM110 (numba knows no generators)
        if share != 0.0:
            return False
    return True


@njit(cache=True, inline="always")
def _sums(moves, with_costs, V, s):
    """Return the number of moves of a state, and of them the sum of c + V' - V and of sizes."""
    costs, successors = moves.costs, moves.successors
    n = 0
    total, size = 0.0, 0.0
    for m in range(costs.shape[1]):
        # Without branches on walls, which no processor can guess.
        leads = costs[s, m] < np.inf
        cost = costs[s, m] if leads & with_costs else 0.0
        step = V[successors[s, m]] - V[s]
        step = step if leads else 0.0
        n += leads
        total += cost + step
        size += abs(cost) + abs(step)
    return n, total, size


@njit(cache=True, nogil=True)
def least_of_outcomes(outcomes, mask, with_costs, V, drift, level, out, actions, lo, hi):
    """Return the least x(s,a) over states and marked actions, rounded down, and where it is.

    And the largest x of an action that is the best of its state, rounded up, +inf where one with
    marked actions has no best.  Writes the least x of each state into ``out``, +inf without an
    action, and the first action that attains it into ``actions``, unless they are None.  ``drift``
    may be None for ``level`` everywhere.  What is no number is the least.
    """
    least, state, most = np.inf, -1, -np.inf
    for s in range(lo, hi):
        there = level if drift is None else drift[s]
        best, first, upper = np.inf, 0, -np.inf
        for a in range(mask.shape[1]):
            if not mask[s, a]:
                continue
            x, error = outcome_row(outcomes, with_costs, V, there, s, a)
            if x < best:
                best, first, upper = x, a, x + error
            elif best == np.inf:
                upper = np.inf
            if not x - error >= least and least == least:
                least, state = x - error, s
        if not upper <= most and most == most:
            most = upper
        if out is not None:
            out[s] = best
        if actions is not None:
            actions[s] = first
    return least, state, most


@njit(cache=True, nogil=True)
def least_of_moves(moves, mask, with_costs, V, drift, level, out, actions, lo, hi):
    """As `least_of_outcomes`, of a model of moves."""
    costs, successors = moves.costs, moves.successors
    least, state, most = np.inf, -1, -np.inf
    certain = _are_certain(moves)
    n, total, size = 0, 0.0, 0.0
    for s in range(lo, hi):
        there = level if drift is None else drift[s]
        best, first, upper = np.inf, 0, -np.inf
        if not certain:
            n, total, size = _sums(moves, with_costs, V, s)
        for m in range(mask.shape[1]):
            if not mask[s, m]:
                continue
            if certain and with_costs:
                x, error = _roughly(costs[s, m], V[successors[s, m]], V[s], there)
                if x >= best and x - error >= least:
                    continue
            x, error = _move(moves, with_costs, V, there, s, n, total, size, m)
            if x < best:
                best, first, upper = x, m, x + error
            elif best == np.inf:
                upper = np.inf
            if not x - error >= least and least == least:
                least, state = x - error, s
        if not upper <= most and most == most:
            most = upper
        if out is not None:
            out[s] = best
        if actions is not None:
            actions[s] = first
    return least, state, most


@njit(cache=True, nogil=True)
def most_of_outcomes(outcomes, policy, with_costs, V, drift, level, out, lo, hi):
    """Return the largest x(s, policy[s]), rounded up, and where it is.

    States whose policy is negative are passed over; ``out`` as above, of this action.
    """
    most, state = -np.inf, -1
    for s in range(lo, hi):
        if policy[s] < 0:
            continue
        there = level if drift is None else drift[s]
        x, error = outcome_row(outcomes, with_costs, V, there, s, policy[s])
        if not x + error <= most and most == most:
            most, state = x + error, s
        if out is not None:
            out[s] = x
    return most, state


@njit(cache=True, nogil=True)
def most_of_moves(moves, policy, with_costs, V, drift, level, out, lo, hi):
    """As `most_of_outcomes`, of a model of moves."""
    most, state = -np.inf, -1
    certain = _are_certain(moves)
    n, total, size = 0, 0.0, 0.0
    for s in range(lo, hi):
        if policy[s] < 0:
            continue
        there = level if drift is None else drift[s]
        if not certain:
            n, total, size = _sums(moves, with_costs, V, s)
        x, error = _move(moves, with_costs, V, there, s, n, total, size, policy[s])
        if not x + error <= most and most == most:
            most, state = x + error, s
        if out is not None:
            out[s] = x
    return most, state


@njit(cache=True, nogil=True)
def doubtful_outcomes(outcomes, mask, with_costs, V, drift, level, sign, found):
    """Write rows ``s * A + a`` whose ``sign`` x may be negative though it is not as computed.

    Return how many there are, which may be more than there is room for, or -1 where one is negative
    for certain.
    """
    count = 0
    for s in range(len(V)):
        there = level if drift is None else drift[s]
        for a in range(mask.shape[1]):
            if mask[s, a]:
                x, error = outcome_row(outcomes, with_costs, V, there, s, a)
                if not sign * x - error >= 0.0:
                    if not sign * x + error >= 0.0:
                        return -1
                    if count < len(found):
                        found[count] = s * mask.shape[1] + a
                    count += 1
    return count


@njit(cache=True, nogil=True)
def doubtful_moves(moves, mask, with_costs, V, drift, level, sign, found):
    """As `doubtful_outcomes`, of a model of moves."""
    count = 0
    for s in range(len(V)):
        there = level if drift is None else drift[s]
        n, total, size = _sums(moves, with_costs, V, s)
        for m in range(mask.shape[1]):
            if mask[s, m]:
                x, error = _move(moves, with_costs, V, there, s, n, total, size, m)
                if not sign * x - error >= 0.0:
                    if not sign * x + error >= 0.0:
                        return -1
                    if count < len(found):
                        found[count] = s * mask.shape[1] + m
                    count += 1
    return count
