"""Backups of general sparse models: row ``s * A + a`` lists what action a may lead to in state s.

All kernels take the tables first (`tables.Outcomes`) and act on the states ``lo <= s < hi``; what
else they take is what the method of that name takes in `planners.engine.Engine`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planners.kernels.pieces import (
    LARGEST,
    NOTHING_SEEN,
    ONE,
    clear,
    greater,
    lesser,
    pick,
    prefetch_once,
    seen,
    seen_by_vectors,
)
from planners.kernels.tables import MANY_ENTRIES, apart, row_mean

# Tables are read so many entries ahead, where they are too large for the caches, by pieces that
# are sure to touch each line of them.
AHEAD, LINE, HALF_LINE = np.uint64(256), np.uint64(8), np.uint64(4)
# So few values are always near, whatever is read of a table, and hints are in the way.
FEW_VALUES = 1 << 12
# How many states ahead it is that only one row is read of.
STATES_AHEAD = np.uint64(16)
# Share of the states left that a pass over their rows has to find, rather than turn rows around.
_MANY_FOUND = 0.25


@njit(cache=True, inline="always")
def q_value(outcomes, gamma, V, labels, s, a):
    """Return the value of an action in a state, under aggregation unless ``labels`` is None."""
    indptr, indices, probabilities = outcomes.indptr, outcomes.indices, outcomes.probabilities
    costs = outcomes.costs
    row = s * costs.shape[1] + a
    start, end = np.uint64(indptr[row]), np.uint64(indptr[row + 1])
    return costs[s, a] + gamma * row_mean(indices, probabilities, V, labels, start, end)


@njit(cache=True, nogil=True)
def largest_cost(outcomes, lo, hi):
    """Return the largest size of the cost of an available action."""
    num_actions = outcomes.costs.shape[1]
    costs, mask = outcomes.costs.reshape(-1), outcomes.mask.reshape(-1)
    largest = 0.0
    for row in range(lo * num_actions, hi * num_actions):
        # What costs of masked rows are does not count, though it be no number.
        largest = greater(abs(costs[row]) if mask[row] else 0.0, largest)
    return largest


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
    indptr, indices, probabilities = outcomes.indptr, outcomes.indices, outcomes.probabilities
    costs, mask = outcomes.costs.reshape(-1), outcomes.mask.reshape(-1)
    terminal, num_rows = outcomes.terminal, outcomes.num_rows
    num_actions = np.uint64(outcomes.costs.shape[1])
    is_large = len(indices) >= MANY_ENTRIES and len(V) > FEW_VALUES
    extremes = NOTHING_SEEN
    for s in range(np.uint64(lo), np.uint64(hi)):
        best = np.inf
        action = 0.0  # of a whole number the compiler makes a branch
        first = s * num_actions
        end = np.uint64(indptr[first])
        for row in range(first, first + np.uint64(num_rows[s])):
            start = end
            end = np.uint64(indptr[row + ONE])
            if is_large:
                ahead = start + AHEAD
                while ahead < end + AHEAD:
                    prefetch_once(probabilities, ahead)
                    prefetch_once(indices, ahead)
                    ahead += LINE
            expected = row_mean(indices, probabilities, V, None, start, end)
            q = costs[row] + gamma * expected
            q = q if mask[row] else np.inf
            if actions is not None:
                action = float(row - first) if q < best else action
            best = lesser(q, best)
        value = 0.0 if terminal[s] else best
        extremes = seen_by_vectors(extremes, V[s], value)
        out[s] = value
        if actions is not None:
            actions[s] = 0.0 if terminal[s] else action
    return extremes


class Certainty(NamedTuple):
    """Where the best actions are sure to be the best still.

    Parameters
    ----------
    sure_until : ndarray of float, shape (S,)
        Up to which drift those of each state are.
    drift : float
        How much the changes of V can have changed differences between actions, so far.
    rounding : float
        Relative rounding error of an action's value.
    max_value : float
        Bounds |V|; 0 spares the sweep to read any row.
    """

    sure_until: NDArray[np.float64]
    drift: float
    rounding: float
    max_value: float


@njit(cache=True, nogil=True)
def lazy_sweep(outcomes, gamma, V, out, actions, certainty, lo, hi):
    """Write TV, the best actions, and until when they are sure; return extremes as `sweep` does.

    Of states whose action is sure no other row is read.  The roundings of the two values of a
    margin, each ``rounding`` of what is rounded, that is of ``|q| + 2 gamma max|V|``, are taken off
    it.
    """
    indptr, indices, probabilities = outcomes.indptr, outcomes.indices, outcomes.probabilities
    costs, mask = outcomes.costs.reshape(-1), outcomes.mask.reshape(-1)
    terminal, num_rows = outcomes.terminal, outcomes.num_rows
    sure_until, drift, rounding, max_value = certainty
    allowance = 4 * gamma * rounding * max_value
    num_actions = np.uint64(outcomes.costs.shape[1])
    is_large = len(indices) >= MANY_ENTRIES and len(V) > FEW_VALUES and max_value != 0.0
    # Whether all rows of the state before were read: so, it is likely, will those of the next.
    reads_all = True
    num_states = np.uint64(len(V))
    extremes = NOTHING_SEEN
    for s in range(np.uint64(lo), np.uint64(hi)):
        first = s * num_actions
        best = np.inf
        if terminal[s]:
            best = 0.0
            actions[s] = 0
            sure_until[s] = np.inf
        elif sure_until[s] > drift:
            if is_large and not reads_all:
                later = min(s + STATES_AHEAD, num_states - ONE)
                if sure_until[later] > drift:
                    begin = np.uint64(indptr[later * num_actions + np.uint64(actions[later])])
                    # Rows of a few entries, most of them, lie in two lines at most.
                    prefetch_once(probabilities, begin)
                    prefetch_once(indices, begin)
                    prefetch_once(probabilities, begin + HALF_LINE)
                    prefetch_once(indices, begin + HALF_LINE)
            only = first + np.uint64(actions[s])
            start, end = np.uint64(indptr[only]), np.uint64(indptr[only + ONE])
            expected = row_mean(indices, probabilities, V, None, start, end)
            best = costs[only] + gamma * expected
            reads_all = False
        else:
            second = np.inf
            action = first - first
            end = np.uint64(indptr[first])
            for row in range(first, first + np.uint64(num_rows[s])):
                start = end
                end = np.uint64(indptr[row + ONE])
                if is_large and reads_all:
                    ahead = start + AHEAD
                    while ahead < end + AHEAD:
                        prefetch_once(probabilities, ahead)
                        prefetch_once(indices, ahead)
                        ahead += LINE
                expected = 0.0
                if max_value != 0.0:
                    expected = row_mean(indices, probabilities, V, None, start, end)
                q = costs[row] + gamma * expected
                q = q if mask[row] else np.inf
                # Selected, not branched on: which action is better cannot be predicted.
                worse = best if best > q else q
                second = worse if worse < second else second
                action = row - first if q < best else action
                best = q if q < best else best
            actions[s] = action
            sure_until[s] = np.inf
            if second < np.inf:
                margin = second - best - rounding * (abs(second) + abs(best)) - allowance
                sure_until[s] = drift + margin - 1e-12 * (drift + abs(margin))
            reads_all = True
        extremes = seen(extremes, V[s], best)
        out[s] = best
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
    costs, mask = outcomes.costs.reshape(-1), outcomes.mask.reshape(-1)
    terminal, num_rows = outcomes.terminal, outcomes.num_rows
    num_states, num_actions = np.uint64(len(V)), np.uint64(outcomes.costs.shape[1])
    extremes = NOTHING_SEEN
    for i in range(np.uint64(lo), np.uint64(hi)):
        s = num_states - ONE - i if reverse else i
        if len(order) > 0:
            s = np.uint64(order[s])
        best = np.inf
        if terminal[s]:
            best = 0.0
        else:
            first = s * num_actions
            end = np.uint64(indptr[first])
            for row in range(first, first + np.uint64(num_rows[s])):
                start = end
                end = np.uint64(indptr[row + ONE])
                if mask[row]:
                    elsewhere, stay = apart(indices, probabilities, V, s, start, end)
                    q = costs[row] + gamma * elsewhere
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


@njit(cache=True, nogil=True)
def _few_steps_to_terminal(outcomes, distances):
    """Do what `steps_to_terminal` does if few steps lead everywhere; return whether they did.

    Each pass finds the states one step farther away, for as long as these are many of those left.
    """
    indptr, indices, probabilities = outcomes.indptr, outcomes.indices, outcomes.probabilities
    mask, terminal, num_rows = outcomes.mask.reshape(-1), outcomes.terminal, outcomes.num_rows
    num_actions = outcomes.mask.shape[1]
    left = 0
    for s in range(len(distances)):
        distances[s] = 0 if terminal[s] else -1
        left += 0 if terminal[s] else 1
    steps = 0
    while left > 0:
        found = 0
        for s in range(len(distances)):
            if distances[s] >= 0:
                continue
            row, end = s * num_actions, s * num_actions + num_rows[s]
            while row < end:
                entry, last = np.uint64(indptr[row]), np.uint64(indptr[row + 1])
                if mask[row]:
                    while entry < last and not (
                        distances[indices[entry]] == steps and probabilities[entry] > 0.0
                    ):
                        entry += ONE
                    if entry < last:
                        distances[s] = steps + 1
                        found += 1
                        break
                row += 1
        if found == 0:
            break
        left -= found
        if found < _MANY_FOUND * left:
            return False
        steps += 1
    return True


@njit(cache=True, nogil=True)
def steps_to_terminal(outcomes, distances):
    """Write the fewest steps from each state to a terminal one, -1 where there is no way."""
    if _few_steps_to_terminal(outcomes, distances):
        return
    indptr, indices, probabilities = outcomes.indptr, outcomes.indices, outcomes.probabilities
    mask, terminal = outcomes.mask, outcomes.terminal
    num_states, num_actions = mask.shape
    # Where the states that lead to each one begin, in an array of all of them.
    ends = np.zeros(num_states + 1, dtype=np.int64)
    for s in range(num_states):
        for a in range(num_actions):
            if mask[s, a] and not terminal[s]:
                row = s * num_actions + a
                for entry in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
                    ends[indices[entry]] += 1 if probabilities[entry] > 0.0 else 0
    total = 0
    for s in range(num_states + 1):
        total += ends[s]
        ends[s] = total
    leading = np.empty(total, dtype=np.int32)
    for s in range(num_states):
        for a in range(num_actions):
            if mask[s, a] and not terminal[s]:
                row = s * num_actions + a
                for entry in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
                    if probabilities[entry] > 0.0:
                        ends[indices[entry]] -= 1
                        leading[ends[indices[entry]]] = s
    queue = np.empty(num_states, dtype=np.int32)
    count = 0
    for s in range(num_states):
        distances[s] = -1
        if terminal[s]:
            distances[s] = 0
            queue[count] = s
            count += 1
    done = 0
    while done < count:
        s = queue[done]
        done += 1
        for place in range(ends[s], ends[s + 1]):
            before = leading[place]
            if distances[before] < 0:
                distances[before] = distances[s] + 1
                queue[count] = before
                count += 1


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
    indptr, indices, probabilities = outcomes.indptr, outcomes.indices, outcomes.probabilities
    num_actions = outcomes.mask.shape[1]
    slack = margins[0]
    Q = np.empty(num_actions)
    steps = np.empty(num_actions)
    for s in range(lo, hi):
        if policy[s] >= 0:
            continue
        _actions(outcomes, gamma, V, s, Q)
        best = np.inf
        for a in range(num_actions):
            best = Q[a] if Q[a] < best else best
        # Of worse actions it does not matter where they lead.
        limit = min(best + slack, LARGEST)
        for a in range(num_actions):
            if Q[a] <= limit:
                row = s * num_actions + a
                start, end = np.uint64(indptr[row]), np.uint64(indptr[row + 1])
                steps[a] = row_mean(indices, probabilities, distances, None, start, end)
        policy[s] = pick(Q, steps, margins)
