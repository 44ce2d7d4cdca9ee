"""Engine of general sparse models: row ``s * A + a`` lists what action a may lead to in state s.

All kernels take the tables ``(indptr, indices, probabilities, costs, mask, terminal)`` first and
act on the states ``lo <= s < hi``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from planners.kernels.pieces import NO_LABELS, NOTHING_SEEN, clear, greater, lesser, pick, seen


@njit(cache=True, inline="always")
def _q(indptr, indices, probabilities, costs, gamma, V, labels, aggregated, s, a):  # type: ignore[no-untyped-def]
    row = s * costs.shape[1] + a
    mean = 0.0
    for entry in range(indptr[row], indptr[row + 1]):
        following = indices[entry]
        mean += probabilities[entry] * (V[labels[following]] if aggregated else V[following])
    return costs[s, a] + gamma * mean


@njit(cache=True, nogil=True)
def sweep(  # type: ignore[no-untyped-def]
    indptr, indices, probabilities, costs, mask, terminal, gamma, V, out, lo, hi
):
    """Write TV; return the extremes of TV - V and of TV.

    Without branches on what is random, and with one bound of a row read for each: half the time.
    """
    num_actions = costs.shape[1]
    residual_low, residual_high, low, high = NOTHING_SEEN
    end = indptr[lo * num_actions]
    for s in range(lo, hi):
        best = np.inf
        for a in range(num_actions):
            start = end
            end = indptr[s * num_actions + a + 1]
            mean = 0.0
            for entry in range(start, end):
                mean += probabilities[entry] * V[indices[entry]]
            q = costs[s, a] + gamma * mean
            best = lesser(q if mask[s, a] else np.inf, best)
        value = 0.0 if terminal[s] else best
        residual = value - V[s]
        residual_low = lesser(residual, residual_low)
        residual_high = greater(residual, residual_high)
        low = lesser(value, low)
        high = greater(value, high)
        out[s] = value
    return residual_low, residual_high, low, high


@njit(cache=True, nogil=True)
def greedy_sweep(  # type: ignore[no-untyped-def]
    indptr, indices, probabilities, costs, mask, terminal, gamma, V, out, actions, lo, hi
):
    """Write TV and the first action that attains it."""
    num_actions = costs.shape[1]
    residual_low, residual_high, low, high = NOTHING_SEEN
    end = indptr[lo * num_actions]
    for s in range(lo, hi):
        best = np.inf
        action = 0.0  # of a whole number the compiler makes a branch
        for a in range(num_actions):
            start = end
            end = indptr[s * num_actions + a + 1]
            mean = 0.0
            for entry in range(start, end):
                mean += probabilities[entry] * V[indices[entry]]
            q = costs[s, a] + gamma * mean
            q = q if mask[s, a] else np.inf
            action = float(a) if q < best else action
            best = lesser(q, best)
        value = 0.0 if terminal[s] else best
        residual = value - V[s]
        residual_low = lesser(residual, residual_low)
        residual_high = greater(residual, residual_high)
        low = lesser(value, low)
        high = greater(value, high)
        out[s] = value
        actions[s] = 0.0 if terminal[s] else action
    return residual_low, residual_high, low, high


@njit(cache=True, nogil=True)
def aggregated(  # type: ignore[no-untyped-def]
    indptr, indices, probabilities, costs, mask, terminal, gamma, states, W, labels, out
):
    """Write the backups of the listed states under aggregation."""
    for j in range(len(states)):
        s = states[j]
        best = np.inf
        for a in range(costs.shape[1]):
            # Masked rows are read too: branches on what is random cost more.
            q = _q(indptr, indices, probabilities, costs, gamma, W, labels, True, s, a)
            best = lesser(q if mask[s, a] else np.inf, best)
        out[j] = 0.0 if terminal[s] else best


@njit(cache=True, nogil=True)
def gauss_seidel(  # type: ignore[no-untyped-def]
    indptr, indices, probabilities, costs, mask, terminal, gamma, V, order, reverse, lo, hi
):
    """Back up the states one after another, in place, each with its loops to itself solved for."""
    extremes = NOTHING_SEEN
    for i in range(lo, hi):
        s = len(V) - 1 - i if reverse else i
        if len(order) > 0:
            s = order[s]
        best = np.inf
        if terminal[s]:
            best = 0.0
        else:
            for a in range(costs.shape[1]):
                if mask[s, a]:
                    row = s * costs.shape[1] + a
                    mean = 0.0
                    stay = 0.0
                    for entry in range(indptr[row], indptr[row + 1]):
                        following = indices[entry]
                        if following == s:
                            stay += probabilities[entry]
                        else:
                            mean += probabilities[entry] * V[following]
                    q = costs[s, a] + gamma * mean
                    if stay > 0.0:
                        q /= 1.0 - gamma * stay
                    best = q if q < best else best
        extremes = seen(extremes, V[s], best)
        V[s] = best
    return extremes


@njit(cache=True, nogil=True)
def policy_sweep(  # type: ignore[no-untyped-def]
    indptr, indices, probabilities, costs, mask, terminal, gamma, policy, V, out, lo, hi
):
    """Write the backups by a policy."""
    extremes = NOTHING_SEEN
    for s in range(lo, hi):
        value = 0.0
        if not terminal[s]:
            value = _q(
                indptr, indices, probabilities, costs, gamma, V, NO_LABELS, False, s, policy[s]
            )
        extremes = seen(extremes, V[s], value)
        out[s] = value
    return extremes


@njit(cache=True, nogil=True)
def q_values(  # type: ignore[no-untyped-def]
    indptr, indices, probabilities, costs, mask, terminal, gamma, V, Q, lo, hi
):
    """Write the value of each action."""
    for s in range(lo, hi):
        for a in range(costs.shape[1]):
            if terminal[s]:
                Q[s, a] = 0.0
            elif mask[s, a]:
                Q[s, a] = _q(
                    indptr, indices, probabilities, costs, gamma, V, NO_LABELS, False, s, a
                )
            else:
                Q[s, a] = np.inf


@njit(cache=True, nogil=True)
def clear_actions(  # type: ignore[no-untyped-def]
    indptr, indices, probabilities, costs, mask, terminal, gamma, V, slack, policy, lo, hi
):
    """Write the best actions, -1 where others are within ``slack``; return the number of these."""
    Q = np.empty(costs.shape[1])
    unclear = 0
    for s in range(lo, hi):
        for a in range(len(Q)):
            Q[a] = np.inf
            if mask[s, a]:
                Q[a] = _q(indptr, indices, probabilities, costs, gamma, V, NO_LABELS, False, s, a)
        policy[s] = 0 if terminal[s] else clear(Q, slack)
        unclear += 1 if policy[s] < 0 else 0
    return unclear


@njit(cache=True, nogil=True)
def greedy(  # type: ignore[no-untyped-def]
    indptr,
    indices,
    probabilities,
    costs,
    mask,
    terminal,
    gamma,
    V,
    distances,
    slack,
    tie,
    policy,
    lo,
    hi,
):
    """Write an action where the policy has none, as `Engine.greedy` says."""
    num_actions = costs.shape[1]
    Q = np.empty(num_actions)
    steps = np.empty(num_actions)
    for s in range(lo, hi):
        if policy[s] >= 0:
            continue
        for a in range(num_actions):
            Q[a] = np.inf
            if mask[s, a]:
                Q[a] = _q(indptr, indices, probabilities, costs, gamma, V, NO_LABELS, False, s, a)
                row = s * num_actions + a
                steps[a] = 0.0
                for entry in range(indptr[row], indptr[row + 1]):
                    steps[a] += probabilities[entry] * distances[indices[entry]]
        policy[s] = pick(Q, steps, slack, tie)
