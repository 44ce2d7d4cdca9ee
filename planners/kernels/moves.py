"""Backups of models of moves that may slip: the actions of a state share its successors.

With ``n`` available moves and ``q_m = cost + gamma V(successor)``, action m is worth
``chosen[n] q_m + every[n] sum_k q_k`` (`aggmaze.move_mdp`).  All kernels take the tables first
(`tables.Moves`) and act on the states ``lo <= s < hi``; what else they take is what the method of
that name takes in `planners.engine.Engine`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from planners.kernels.pieces import (
    NOTHING_SEEN,
    clear,
    mix,
    mixed,
    near_in_order,
    pick_near,
    seen,
    seen_by_vectors,
    value_of,
)
from planners.kernels.tables import num_available

#: States of a block: `FlatMoves.windows` tells of each move whether it leads equally far in all.
BLOCK = 256
#: Most moves that `vector_sweep` is made for.
MOST_MOVES = 12


@njit(cache=True, inline="always")
def _reverses(chosen):
    """Return whether it may pay to choose the worst move, hoping to slip: with p < 1/n."""
    found = False
    for n in range(len(chosen)):
        found = found or chosen[n] < 0.0
    return found


@njit(cache=True, inline="always")
def _backup(moves, reverses, gamma, V, labels, s):
    """Return the backup of a state and the first move that attains it."""
    successors, costs, chosen, every = moves.successors, moves.costs, moves.chosen, moves.every
    # Without branches on availability, which mazes make hard to predict: half the time.
    total = 0.0
    smallest = np.inf
    largest = -np.inf
    n = best = worst = 0
    for m in range(costs.shape[1]):
        cost = costs[s, m]
        q = cost + gamma * value_of(V, labels, successors[s, m])
        available = cost < np.inf
        total += q if available else 0.0
        n += 1 if available else 0
        best = m if q < smallest else best
        smallest = q if q < smallest else smallest
        if reverses:
            worst = m if available & (q > largest) else worst
            largest = q if available & (q > largest) else largest
    if reverses and chosen[n] < 0.0:
        smallest = largest
        best = worst
    return (mixed(chosen[n], smallest, every[n], total) if n > 0 else 0.0), best


@njit(cache=True, nogil=True)
def largest_cost(moves, lo, hi):
    """Return the largest size of the cost of an available move."""
    costs = moves.costs
    largest = 0.0
    for s in range(lo, hi):
        for m in range(costs.shape[1]):
            size = abs(costs[s, m])
            largest = size if largest < size < np.inf else largest
    return largest


@njit(cache=True, nogil=True)
def some_absorbing(moves):
    """Return whether some state is never left, whatever one does there."""
    successors, costs = moves.successors, moves.costs
    for s in range(len(costs)):
        leaves = False
        for m in range(costs.shape[1]):
            leaves = leaves or (costs[s, m] < np.inf and successors[s, m] != s)
        if not leaves:
            return True
    return False


@njit(cache=True, nogil=True)
def sweep(moves, gamma, V, out, actions, lo, hi):
    """Write TV and, unless ``actions`` is None, the first action that attains it.

    Return the extremes of TV - V and of TV.
    """
    reverses = _reverses(moves.chosen)
    extremes = NOTHING_SEEN
    for s in range(lo, hi):
        value, action = _backup(moves, reverses, gamma, V, None, s)
        extremes = seen(extremes, V[s], value)
        out[s] = value
        if actions is not None:
            actions[s] = action
    return extremes


@njit(cache=True, nogil=True)
def find_windows(moves, lo, hi):
    """Write how far each move leads in the blocks ``lo <= b < hi`` of states.

    ``moves`` are `FlatMoves`.  ``windows[b, m]`` becomes ``successor - s``, the same for all states
    of the block where move m is available, 0 if it is nowhere.  Where there is no such number, or
    it leads some other state of the block out of the model, ``windows[b, 0]`` is the number of
    states.
    """
    successors, move_costs, windows = moves.successors, moves.costs, moves.windows
    num_moves = len(moves.chosen) - 1
    num_states = len(move_costs) // num_moves
    for b in range(lo, hi):
        first = b * BLOCK
        last = min(first + BLOCK, num_states)
        reached = successors[num_moves * first : num_moves * last]
        costs = move_costs[num_moves * first : num_moves * last]
        distances = windows[b]
        inside = True
        for m in range(num_moves):
            some = 0
            while some < last - first and not costs[num_moves * some + m] < np.inf:
                some += 1
            distances[m] = 0
            if some < last - first:
                distances[m] = np.int64(reached[num_moves * some + m]) - first - some
            inside = inside and first + distances[m] >= 0 and last + distances[m] <= num_states
        others = 0
        for i in range(last - first):
            for m in range(num_moves):
                available = costs[num_moves * i + m] < np.inf
                elsewhere = np.int64(reached[num_moves * i + m]) != first + i + distances[m]
                others += 1 if available & elsewhere else 0
        if others > 0 or not inside:
            distances[0] = num_states


@njit(cache=True, nogil=True)
def vector_sweep(moves, gamma, V, out, actions, lo, hi):
    """Do what `sweep` does, several states at a time, with `FlatMoves`.

    The same values bit for bit, written so that the compiler takes eight states (or four, or two)
    by one instruction.  No weight of ``chosen`` may be negative.  V may go on behind the states of
    the tables: no window leads there.

    A few states at a time, the values of their successors go into an array of their own: where a
    move leads equally far in all of them, by copying a piece of V, and the successors need not be
    read.  The array is kept well under 4 KB: processors tell what they load from what they have
    just stored by the last twelve bits of the address, and wait where these coincide.
    """
    successors, move_costs, windows = moves.successors, moves.costs, moves.windows
    chosen, every = moves.chosen, moves.every
    num_moves = len(chosen) - 1
    num_states = len(move_costs) // num_moves
    piece = 32 if num_moves <= 6 else 16
    room = piece + 8  # or all moves of a state would share the last bits of their addresses
    following = np.empty(num_moves * room)
    turned = np.empty(num_moves * room)
    found = np.empty(2 * room)
    extremes = NOTHING_SEEN
    first = lo
    while first < hi:
        # Pieces begin and end where blocks do.
        last = min(first - first % piece + piece, hi)
        size = last - first
        costs = move_costs[num_moves * first : num_moves * last]
        block = first // BLOCK
        if windows[block, 0] < num_states:
            for m in range(num_moves):
                window = V[first + windows[block, m] : last + windows[block, m]]
                copied = following[m * room : m * room + size]
                for i in range(size):
                    copied[i] = window[i]
        else:
            reached = successors[num_moves * first : num_moves * last]
            for i in range(size):
                for m in range(num_moves):
                    following[m * room + i] = V[reached[num_moves * i + m]]
        if num_moves > 8:
            # Compilers load every M-th number by vectors for M up to eight.
            for i in range(size):
                for m in range(num_moves):
                    turned[m * room + i] = costs[num_moves * i + m]
        for i in range(size):
            total = 0.0
            smallest = np.inf
            n = 0.0
            best = 0.0
            for m in range(num_moves):
                cost = turned[m * room + i] if num_moves > 8 else costs[num_moves * i + m]
                q = cost + gamma * following[m * room + i]
                available = cost < np.inf
                total = total + q if available else total
                n = n + 1.0 if available else n
                if actions is not None:
                    best = m if q < smallest else best
                smallest = q if q < smallest else smallest
            to_chosen = chosen[1]
            to_every = every[1]
            for k in range(2, num_moves + 1):
                to_chosen = chosen[k] if n == k else to_chosen
                to_every = every[k] if n == k else to_every
            value = mixed(to_chosen, smallest, to_every, total)
            found[i] = value if n > 0.0 else 0.0
            if actions is not None:
                found[room + i] = best
        old = V[first:last]
        new = out[first:last]
        for i in range(size):
            value = found[i]
            extremes = seen_by_vectors(extremes, old[i], value)
            new[i] = value
        if actions is not None:
            picked = actions[first:last]
            for i in range(size):
                picked[i] = found[room + i]
        first = last
    return extremes


@njit(cache=True, nogil=True)
def aggregated(moves, gamma, states, W, labels, out):
    """Write the backups of the listed states under aggregation."""
    reverses = _reverses(moves.chosen)
    for j in range(len(states)):
        value, _ = _backup(moves, reverses, gamma, W, labels, states[j])
        out[j] = value


@njit(cache=True, nogil=True)
def gauss_seidel(moves, gamma, V, order, reverse, lo, hi):
    """Back up the states one after another, in place, each with its moves to itself solved for."""
    successors, costs, chosen, every = moves.successors, moves.costs, moves.chosen, moves.every
    reverses = _reverses(chosen)
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
            sign = -1.0 if chosen[num_available(costs, s)] < 0.0 else 1.0
        n = 0
        stays = 0
        for m in range(costs.shape[1]):
            cost = costs[s, m]
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
            value = mixed(chosen[n] * sign, best, every[n], total) if n > 0 else 0.0
        else:
            back = gamma * every[n] * stays
            staying = mixed(chosen[n] * sign, best_stay, every[n], total)
            value = staying / (1.0 - back - gamma * chosen[n])
            if n > stays:
                going = mixed(chosen[n] * sign, best, every[n], total) / (1.0 - back)
                value = going if going < value else value
        extremes = seen(extremes, old, value)
        V[s] = value
    return extremes


@njit(cache=True, nogil=True)
def policy_sweep(moves, gamma, policy, V, out, lo, hi):
    """Write the backups by a policy."""
    successors, costs, chosen, every = moves.successors, moves.costs, moves.chosen, moves.every
    slips = every.max() > 0.0
    extremes = NOTHING_SEEN
    for s in range(lo, hi):
        a = policy[s]
        value = 0.0
        if slips:
            total = 0.0
            n = 0
            for m in range(costs.shape[1]):
                cost = costs[s, m]
                q = cost + gamma * V[successors[s, m]]
                total += q if cost < np.inf else 0.0
                n += 1 if cost < np.inf else 0
            if n > 0:
                q = costs[s, a] + gamma * V[successors[s, a]]
                value = mixed(chosen[n], q, every[n], total)
        elif costs[s, a] < np.inf:
            value = costs[s, a] + gamma * V[successors[s, a]]
        extremes = seen(extremes, V[s], value)
        out[s] = value
    return extremes


@njit(cache=True, inline="always")
def _actions(moves, gamma, V, s, Q):
    """Write the value of each action in a state into Q, shape (M,); return their number."""
    successors, costs = moves.successors, moves.costs
    total = 0.0
    n = 0
    for m in range(len(Q)):
        cost = costs[s, m]
        Q[m] = np.inf
        if cost < np.inf:
            Q[m] = cost + gamma * V[successors[s, m]]
            total += Q[m]
            n += 1
    mix(Q, n, total, moves.chosen, moves.every)
    return n


@njit(cache=True, nogil=True)
def q_values(moves, gamma, V, Q, lo, hi):
    """Write the value of each action."""
    for s in range(lo, hi):
        if _actions(moves, gamma, V, s, Q[s]) == 0:
            Q[s] = 0.0


@njit(cache=True, nogil=True)
def clear_actions(moves, gamma, V, slack, policy, lo, hi):
    """Write the best actions, -1 where others are within ``slack``; return the number of these."""
    successors, costs, chosen = moves.successors, moves.costs, moves.chosen
    reverses = _reverses(chosen)
    Q = np.empty(costs.shape[1])
    unclear = 0
    for s in range(lo, hi):
        if reverses:
            _actions(moves, gamma, V, s, Q)
            policy[s] = clear(Q, slack)
        else:
            # The same without the sum that all actions share, and without branches.
            n = best = 0
            least = second = np.inf
            for m in range(costs.shape[1]):
                cost = costs[s, m]
                q = cost + gamma * V[successors[s, m]]
                n += 1 if cost < np.inf else 0
                worse = q if q > least else least
                second = worse if worse < second else second
                best = m if q < least else best
                least = q if q < least else least
            # Of a terminal state this is NaN, which is no reason to doubt.
            policy[s] = -1 if chosen[n] * (second - least) <= slack else best
        unclear += 1 if policy[s] < 0 else 0
    return unclear


@njit(cache=True, nogil=True)
def greedy(moves, gamma, V, distances, margins, policy, lo, hi):
    """Write an action where the policy has none, as `Engine.greedy` says; margins: slack, tie."""
    successors, costs, chosen, every = moves.successors, moves.costs, moves.chosen, moves.every
    num_moves = costs.shape[1]
    in_order = near_in_order(chosen)
    Q = np.empty(num_moves)
    far = np.empty(num_moves, dtype=np.int64)
    steps = np.empty(num_moves)
    for s in range(lo, hi):
        if policy[s] >= 0:
            continue
        n = 0
        for m in range(num_moves):
            cost = costs[s, m]
            Q[m] = cost + gamma * V[successors[s, m]]
            far[m] = distances[successors[s, m]]
            n += 1 if cost < np.inf else 0
        policy[s] = pick_near(Q, far, n, chosen, every, in_order, margins, steps)
