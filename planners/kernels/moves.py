"""Backups of models of moves that may slip: the actions of a state share its successors.

With ``n`` available moves and ``q_m = cost + gamma V(successor)``, action m is worth
``chosen[n] q_m + every[n] sum_k q_k`` (`aggmaze.move_mdp`).  All kernels take the tables
``(successors, move_costs, chosen, every)`` first and act on the states ``lo <= s < hi``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from planners.kernels.choice import NO_LABELS, NOTHING_SEEN, clear, pick, seen


@njit(cache=True, inline="always")
def _backup(  # type: ignore[no-untyped-def]
    successors, move_costs, chosen, every, reverses, gamma, V, labels, aggregated, s
):
    # Without branches on availability, which mazes make hard to predict: half the time.
    total = 0.0
    smallest = np.inf
    largest = -np.inf
    n = 0
    for m in range(successors.shape[1]):
        cost = move_costs[s, m]
        following = successors[s, m]
        q = cost + gamma * (V[labels[following]] if aggregated else V[following])
        available = cost < np.inf
        total += q if available else 0.0
        n += 1 if available else 0
        smallest = q if q < smallest else smallest
        if reverses:
            largest = q if available and q > largest else largest
    extreme = smallest
    if reverses and chosen[n] < 0.0:
        extreme = largest
    return chosen[n] * extreme + every[n] * total if n > 0 else 0.0


@njit(cache=True, inline="always")
def _backup_and_move(  # type: ignore[no-untyped-def]
    successors, move_costs, chosen, every, reverses, gamma, V, s
):
    """Return the backup and the first move that attains it."""
    total = 0.0
    smallest = np.inf
    largest = -np.inf
    n = best = worst = 0
    for m in range(successors.shape[1]):
        cost = move_costs[s, m]
        q = cost + gamma * V[successors[s, m]]
        available = cost < np.inf
        total += q if available else 0.0
        n += 1 if available else 0
        best = m if q < smallest else best
        smallest = q if q < smallest else smallest
        if reverses:
            worst = m if available and q > largest else worst
            largest = q if available and q > largest else largest
    if reverses and chosen[n] < 0.0:
        smallest = largest
        best = worst
    return (chosen[n] * smallest + every[n] * total if n > 0 else 0.0), best


@njit(cache=True, nogil=True)
def largest_cost(successors, move_costs, chosen, every, lo, hi):  # type: ignore[no-untyped-def]
    """Return the largest size of the cost of an available move."""
    largest = 0.0
    for s in range(lo, hi):
        for m in range(move_costs.shape[1]):
            size = abs(move_costs[s, m])
            largest = size if largest < size < np.inf else largest
    return largest


@njit(cache=True, nogil=True)
def sweep(successors, move_costs, chosen, every, gamma, V, out, lo, hi):  # type: ignore[no-untyped-def]
    """Write TV; return the extremes of TV - V and of TV."""
    # Whether it may pay to choose the worst move, hoping to slip: with p < 1/n.
    reverses = chosen.min() < 0.0
    extremes = NOTHING_SEEN
    for s in range(lo, hi):
        value = _backup(
            successors, move_costs, chosen, every, reverses, gamma, V, NO_LABELS, False, s
        )
        extremes = seen(extremes, V[s], value)
        out[s] = value
    return extremes


@njit(cache=True, nogil=True)
def greedy_sweep(  # type: ignore[no-untyped-def]
    successors, move_costs, chosen, every, gamma, V, out, actions, lo, hi
):
    """Write TV and the first action that attains it."""
    reverses = chosen.min() < 0.0
    extremes = NOTHING_SEEN
    for s in range(lo, hi):
        value, action = _backup_and_move(
            successors, move_costs, chosen, every, reverses, gamma, V, s
        )
        extremes = seen(extremes, V[s], value)
        out[s] = value
        actions[s] = action
    return extremes


@njit(cache=True, nogil=True)
def aggregated(  # type: ignore[no-untyped-def]
    successors, move_costs, chosen, every, gamma, states, W, labels, out
):
    """Write the backups of the listed states under aggregation."""
    reverses = chosen.min() < 0.0
    for j in range(len(states)):
        out[j] = _backup(
            successors, move_costs, chosen, every, reverses, gamma, W, labels, True, states[j]
        )


@njit(cache=True, nogil=True)
def gauss_seidel(  # type: ignore[no-untyped-def]
    successors, move_costs, chosen, every, gamma, V, order, reverse, lo, hi
):
    """Back up the states one after another, in place, each with its moves to itself solved for."""
    reverses = chosen.min() < 0.0
    extremes = NOTHING_SEEN
    for i in range(lo, hi):
        s = len(V) - 1 - i if reverse else i
        if len(order) > 0:
            s = order[s]
        total = 0.0
        best = np.inf  # of the moves elsewhere, as far as it is to be chosen
        best_stay = np.inf  # and of those that stay
        sign = 1.0
        if reverses:
            n = 0
            for m in range(successors.shape[1]):
                n += 1 if move_costs[s, m] < np.inf else 0
            sign = -1.0 if chosen[n] < 0.0 else 1.0
        n = 0
        stays = 0
        for m in range(successors.shape[1]):
            cost = move_costs[s, m]
            following = successors[s, m]
            q = cost + gamma * V[following]
            available = cost < np.inf
            if following == s and available:  # two branches: half the time of one
                total += cost
                best_stay = sign * cost if sign * cost < best_stay else best_stay
                stays += 1
            else:
                total += q if available else 0.0
                if reverses:
                    q = sign * q if available else np.inf
                best = q if q < best else best
            n += 1 if available else 0
        old = V[s]
        if stays == 0:
            value = chosen[n] * sign * best + every[n] * total if n > 0 else 0.0
        else:
            back = gamma * every[n] * stays
            staying = chosen[n] * sign * best_stay + every[n] * total
            value = staying / (1.0 - back - gamma * chosen[n])
            if n > stays:
                going = (chosen[n] * sign * best + every[n] * total) / (1.0 - back)
                value = going if going < value else value
        extremes = seen(extremes, old, value)
        V[s] = value
    return extremes


@njit(cache=True, nogil=True)
def policy_sweep(  # type: ignore[no-untyped-def]
    successors, move_costs, chosen, every, gamma, policy, V, out, lo, hi
):
    """Write the backups by a policy."""
    slips = every.max() > 0.0
    extremes = NOTHING_SEEN
    for s in range(lo, hi):
        a = policy[s]
        value = 0.0
        if slips:
            total = 0.0
            n = 0
            for m in range(successors.shape[1]):
                cost = move_costs[s, m]
                q = cost + gamma * V[successors[s, m]]
                total += q if cost < np.inf else 0.0
                n += 1 if cost < np.inf else 0
            if n > 0:
                q = move_costs[s, a] + gamma * V[successors[s, a]]
                value = chosen[n] * q + every[n] * total
        elif move_costs[s, a] < np.inf:
            value = move_costs[s, a] + gamma * V[successors[s, a]]
        extremes = seen(extremes, V[s], value)
        out[s] = value
    return extremes


@njit(cache=True, inline="always")
def _actions(successors, move_costs, chosen, every, gamma, V, s, Q):  # type: ignore[no-untyped-def]
    """Write the value of each action in a state into Q, shape (M,); return their number."""
    total = 0.0
    n = 0
    for m in range(len(Q)):
        cost = move_costs[s, m]
        Q[m] = np.inf
        if cost < np.inf:
            Q[m] = cost + gamma * V[successors[s, m]]
            total += Q[m]
            n += 1
    for m in range(len(Q)):
        if Q[m] < np.inf:
            Q[m] = chosen[n] * Q[m] + every[n] * total
    return n


@njit(cache=True, nogil=True)
def q_values(successors, move_costs, chosen, every, gamma, V, Q, lo, hi):  # type: ignore[no-untyped-def]
    """Write the value of each action."""
    for s in range(lo, hi):
        if _actions(successors, move_costs, chosen, every, gamma, V, s, Q[s]) == 0:
            Q[s] = 0.0


@njit(cache=True, nogil=True)
def clear_actions(  # type: ignore[no-untyped-def]
    successors, move_costs, chosen, every, gamma, V, slack, policy, lo, hi
):
    """Write the best actions, -1 where others are within ``slack``; return the number of these."""
    Q = np.empty(successors.shape[1])
    unclear = 0
    for s in range(lo, hi):
        _actions(successors, move_costs, chosen, every, gamma, V, s, Q)
        policy[s] = clear(Q, slack)
        unclear += 1 if policy[s] < 0 else 0
    return unclear


@njit(cache=True, nogil=True)
def greedy(  # type: ignore[no-untyped-def]
    successors, move_costs, chosen, every, gamma, V, distances, slack, tie, policy, lo, hi
):
    """Write an action where the policy has none, as `Backups.greedy` says."""
    num_moves = successors.shape[1]
    Q = np.empty(num_moves)
    steps = np.empty(num_moves)
    for s in range(lo, hi):
        if policy[s] >= 0:
            continue
        n = _actions(successors, move_costs, chosen, every, gamma, V, s, Q)
        total = 0.0
        for m in range(num_moves):
            if move_costs[s, m] < np.inf:
                total += distances[successors[s, m]]
        for m in range(num_moves):
            steps[m] = chosen[n] * distances[successors[s, m]] + every[n] * total
        policy[s] = pick(Q, steps, slack, tie)
