"""Backups of general sparse models: row ``s * A + a`` lists what action a may lead to in state s.

All kernels take the tables first (`tables.Outcomes`) and act on the states ``lo <= s < hi``; what
else they take is what the method of that name takes in `planners.engine.Engine`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from planners.kernels.pieces import NOTHING_SEEN, clear, lesser, pick, seen, seen_by_vectors
from planners.kernels.tables import mean


@njit(cache=True, inline="always")
def q_value(outcomes, gamma, V, labels, s, a):
    """Return the value of an action in a state, under aggregation unless ``labels`` is None."""
    indptr, costs = outcomes.indptr, outcomes.costs
    row = s * costs.shape[1] + a
    return costs[s, a] + gamma * mean(outcomes, V, labels, indptr[row], indptr[row + 1])


@njit(cache=True, nogil=True)
def some_absorbing(outcomes):
    """Return whether some state is never left, whatever one does there."""
    indptr, indices, mask = outcomes.indptr, outcomes.indices, outcomes.mask
    if outcomes.terminal.any():
        return True
    num_states, num_actions = mask.shape
    for s in range(num_states):
        leaves = False
        for a in range(num_actions):
            row = s * num_actions + a
            if leaves or not mask[s, a]:
                continue
            for entry in range(indptr[row], indptr[row + 1]):
                if indices[entry] != s:
                    leaves = True
                    break
        if not leaves:
            return True
    return False


@njit(cache=True, nogil=True)
def sweep(outcomes, gamma, V, out, actions, lo, hi):
    """Write TV and, unless ``actions`` is None, the first action that attains it.

    Return the extremes of TV - V and of TV.  Without branches on what is random, and with one bound
    of a row read for each: half the time.
    """
    indptr, costs = outcomes.indptr, outcomes.costs
    mask, terminal = outcomes.mask, outcomes.terminal
    num_actions = costs.shape[1]
    extremes = NOTHING_SEEN
    end = indptr[lo * num_actions]
    for s in range(lo, hi):
        best = np.inf
        action = 0.0  # of a whole number the compiler makes a branch
        for a in range(num_actions):
            start = end
            end = indptr[s * num_actions + a + 1]
            q = costs[s, a] + gamma * mean(outcomes, V, None, start, end)
            q = q if mask[s, a] else np.inf
            if actions is not None:
                action = float(a) if q < best else action
            best = lesser(q, best)
        value = 0.0 if terminal[s] else best
        extremes = seen_by_vectors(extremes, V[s], value)
        out[s] = value
        if actions is not None:
            actions[s] = 0.0 if terminal[s] else action
    return extremes


@njit(cache=True, nogil=True)
def aggregated(outcomes, gamma, states, W, labels, out):
    """Write the backups of the listed states under aggregation."""
    mask, terminal = outcomes.mask, outcomes.terminal
    for j in range(len(states)):
        s = states[j]
        best = np.inf
        for a in range(mask.shape[1]):
            # Masked rows are read too: branches on what is random cost more.
            q = q_value(outcomes, gamma, W, labels, s, a)
            best = lesser(q if mask[s, a] else np.inf, best)
        out[j] = 0.0 if terminal[s] else best


@njit(cache=True, nogil=True)
def gauss_seidel(outcomes, gamma, V, order, reverse, lo, hi):
    """Back up the states one after another, in place, each with its loops to itself solved for."""
    indptr, indices, probabilities = outcomes.indptr, outcomes.indices, outcomes.probabilities
    costs, mask, terminal = outcomes.costs, outcomes.mask, outcomes.terminal
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
                    elsewhere = 0.0
                    stay = 0.0
                    for entry in range(indptr[row], indptr[row + 1]):
                        following = indices[entry]
                        if following == s:
                            stay += probabilities[entry]
                        else:
                            elsewhere += probabilities[entry] * V[following]
                    q = costs[s, a] + gamma * elsewhere
                    if stay > 0.0:
                        q /= 1.0 - gamma * stay
                    best = q if q < best else best
        extremes = seen(extremes, V[s], best)
        V[s] = best
    return extremes


@njit(cache=True, nogil=True)
def policy_sweep(outcomes, gamma, policy, V, out, lo, hi):
    """Write the backups by a policy."""
    terminal = outcomes.terminal
    extremes = NOTHING_SEEN
    for s in range(lo, hi):
        value = 0.0
        if not terminal[s]:
            value = q_value(outcomes, gamma, V, None, s, policy[s])
        extremes = seen(extremes, V[s], value)
        out[s] = value
    return extremes


@njit(cache=True, inline="always")
def _actions(outcomes, gamma, V, s, Q):
    """Write the value of each action in a state into Q, shape (A,), +inf where masked."""
    mask = outcomes.mask
    for a in range(len(Q)):
        Q[a] = np.inf
        if mask[s, a]:
            Q[a] = q_value(outcomes, gamma, V, None, s, a)


@njit(cache=True, nogil=True)
def q_values(outcomes, gamma, V, Q, lo, hi):
    """Write the value of each action."""
    terminal = outcomes.terminal
    for s in range(lo, hi):
        _actions(outcomes, gamma, V, s, Q[s])
        if terminal[s]:
            Q[s] = 0.0


@njit(cache=True, nogil=True)
def clear_actions(outcomes, gamma, V, slack, policy, lo, hi):
    """Write the best actions, -1 where others are within ``slack``; return the number of these."""
    terminal = outcomes.terminal
    Q = np.empty(outcomes.costs.shape[1])
    unclear = 0
    for s in range(lo, hi):
        _actions(outcomes, gamma, V, s, Q)
        policy[s] = 0 if terminal[s] else clear(Q, slack)
        unclear += 1 if policy[s] < 0 else 0
    return unclear


@njit(cache=True, nogil=True)
def greedy(outcomes, gamma, V, distances, margins, policy, lo, hi):
    """Write an action where the policy has none, as `Engine.greedy` says; margins: slack, tie."""
    indptr, mask = outcomes.indptr, outcomes.mask
    num_actions = mask.shape[1]
    Q = np.empty(num_actions)
    steps = np.empty(num_actions)
    for s in range(lo, hi):
        if policy[s] >= 0:
            continue
        _actions(outcomes, gamma, V, s, Q)
        for a in range(num_actions):
            if mask[s, a]:
                row = s * num_actions + a
                steps[a] = mean(outcomes, distances, None, indptr[row], indptr[row + 1])
        policy[s] = pick(Q, steps, margins)
