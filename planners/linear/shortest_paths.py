"""Policies of shortest paths to the terminal states, in the number of likeliest moves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from aggmaze.arrays import readonly
from planners.kernels.pieces import likely_outcome
from planners.kernels.tables import Moves, Outcomes

# A policy of shortest paths is a good beginning where in more than this fraction of the states that
# can be left no action that leads elsewhere has a negative cost.
_COSTLY = 0.9


class Paths(NamedTuple):
    """Mean length of shortest paths, how many actions lead elsewhere for each state, and an order.

    States in order of their distance, where that is known: each after the one its path leads to.
    """

    mean_length: float
    num_ways: float
    order: NDArray[np.int32] | None = None


def shortest_moves(
    moves: Moves, terminal: NDArray[np.bool_], actions: NDArray[np.int32]
) -> Paths | None:
    """Write the moves of shortest paths, if they may be good.

    Parameters
    ----------
    moves : Moves
    terminal : ndarray of bool, shape (S,)
    actions : ndarray of int32, shape (S,)
        Receives them; 0 in terminal states.

    Returns
    -------
    Paths or None
        None where they may not be good: `linear.forest.PolicyForest.follow_to_goal` says when.
    """
    if not terminal.any():
        return None
    queue = np.empty(len(terminal), dtype=np.int32)
    ways = np.empty(len(terminal), dtype=np.uint16)
    num_seeds, num_costly, num_leaving, num_ways = _survey_moves(moves, terminal, queue, ways)
    if num_costly <= _COSTLY * num_leaving:
        return None
    if moves.successors.shape[1] in range(2, 17, 2):
        mean_length, num_left = _breadth_first_mirrored(
            moves, terminal, ways, queue, num_seeds, actions
        )
        if num_left == 0:
            ends = np.flatnonzero(terminal).astype(np.int32)
            order = np.concatenate([ends, queue[: len(queue) - len(ends)]])
            return Paths(mean_length, num_ways / num_leaving, order)
    # Some moves cannot be taken back as on grids, or lead nowhere.
    states = np.arange(len(terminal), dtype=np.int32)[:, np.newaxis]
    leaves = (moves.costs < np.inf) & (moves.successors != states)
    likely = np.where(leaves, moves.successors, np.int32(-1))
    mean_length = _breadth_first(likely, moves.costs, terminal, queue, actions)
    return Paths(mean_length, num_ways / num_leaving)


def shortest_outcomes(
    outcomes: Outcomes, terminal: NDArray[np.bool_], actions: NDArray[np.int32]
) -> Paths | None:
    """Write the actions of shortest paths along likeliest outcomes, as `shortest_moves` does.

    Parameters
    ----------
    outcomes : Outcomes
    terminal : ndarray of bool, shape (S,)
    actions : ndarray of int32, shape (S,)
    """
    if not terminal.any():
        return None
    likely = np.empty(outcomes.costs.shape, dtype=np.int32)
    num_costly, num_leaving, num_ways = _survey_outcomes(outcomes, likely)
    if num_costly <= _COSTLY * num_leaving:
        return None
    available_costs = readonly(np.where(outcomes.mask, outcomes.costs, np.inf))
    queue = np.empty(len(terminal), dtype=np.int32)
    mean_length = _breadth_first(likely, available_costs, terminal, queue, actions)
    return Paths(mean_length, num_ways / num_leaving)


@njit(cache=True, nogil=True)
def _survey_moves(moves, terminal, seeds, ways):
    """Look at every move once, and write the available ones of each state as bits into ``ways``.

    Returns the number of states with a move to a terminal one, which are listed; in how many no
    move costs less than nothing; and how many can be left, by how many moves.
    """
    successors, costs = moves.successors, moves.costs
    num_states, num_moves = successors.shape
    num_seeds = 0
    num_costly = 0
    num_leaving = 0
    num_ways = 0
    for s in range(num_states):
        costly = True
        leaves = False
        ends = False
        bits = 0
        for m in range(num_moves):
            t = successors[s, m]
            bits |= (1 << m) if costs[s, m] < np.inf else 0
            leads = (costs[s, m] < np.inf) & (t != s)
            leaves |= leads
            num_ways += leads
            costly &= (not leads) | (costs[s, m] >= 0.0)
            ends |= leads & terminal[t]
        ways[s] = bits
        num_leaving += 1 if leaves else 0
        num_costly += 1 if leaves & costly else 0
        if ends:
            seeds[num_seeds] = s
            num_seeds += 1
    return num_seeds, num_costly, num_leaving, num_ways


@njit(cache=True, nogil=True)
def _breadth_first_mirrored(moves, terminal, ways, queue, num_seeds, actions):
    """Write the move of each state on a shortest path, where moves can be taken back as on grids.

    There move m from t leads to a state from which move ``m ^ 1`` leads to t, and only such moves
    are found.  ``queue`` begins with the states that have a move to a terminal one.  Returns the
    mean length of the paths, and to how many states there is none.
    """
    successors, costs = moves.successors, moves.costs
    num_moves = successors.shape[1]
    found = terminal.copy()
    count = num_seeds
    for i in range(num_seeds):
        s = queue[i]
        found[s] = True
        least = np.inf
        for m in range(num_moves):
            if terminal[successors[s, m]] and costs[s, m] < least:
                least = costs[s, m]
                actions[s] = m
    done = 0
    level_end = count
    length = 1
    total_length = 0
    while done < count:
        if done == level_end:
            level_end = count
            length += 1
        t = queue[done]
        done += 1
        total_length += length
        bits = ways[t]
        m = 0
        while bits:
            if bits & 1:
                s = successors[t, m]
                if not found[s] and (ways[s] >> (m ^ 1)) & 1 and successors[s, m ^ 1] == t:
                    found[s] = True
                    actions[s] = m ^ 1
                    queue[count] = s
                    count += 1
            bits >>= 1
            m += 1
    num_left = 0
    for s in range(len(found)):
        num_left += 0 if found[s] else 1
        if terminal[s]:
            actions[s] = 0
    return total_length / max(1, count), num_left


@njit(cache=True, nogil=True)
def _survey_outcomes(outcomes, likely):
    """Write the likeliest successor of each action but the state itself, or -1.

    Returns in how many states no action that leads elsewhere costs less than nothing, how many can
    be left, and by how many actions.
    """
    indptr, indices, probabilities, costs, mask, terminal = outcomes
    num_costly = 0
    num_leaving = 0
    num_ways = 0
    for s in range(likely.shape[0]):
        costly = True
        leaves = False
        for a in range(likely.shape[1]):
            likely[s, a] = -1
            if mask[s, a] and not terminal[s]:
                row = s * likely.shape[1] + a
                following = likely_outcome(indptr, indices, probabilities, s, row)
                if following != s:
                    likely[s, a] = following
                    leaves = True
                    num_ways += 1
                    costly = costly and costs[s, a] >= 0.0
        num_leaving += 1 if leaves else 0
        num_costly += 1 if leaves and costly else 0
    return num_costly, num_leaving, num_ways


@njit(cache=True, nogil=True)
def _breadth_first(likely, costs, terminal, queue, actions):
    """Write the action of each state on a shortest path, going backwards by lists of predecessors.

    ``likely`` and ``costs``, +inf where masked, have shape (S, A).  Where there is no path: the
    cheapest action.  Returns the mean length of the paths.
    """
    num_states, num_actions = likely.shape
    starts = np.zeros(num_states + 1, dtype=np.int64)
    for s in range(num_states):
        for a in range(num_actions):
            if likely[s, a] >= 0:
                starts[likely[s, a] + 1] += 1
    for s in range(num_states):
        starts[s + 1] += starts[s]
    predecessors = np.empty(starts[num_states], dtype=np.int32)
    for s in range(num_states):
        for a in range(num_actions):
            t = likely[s, a]
            if t >= 0:
                # Counts up to where the next list begins: each begins where the last one ends.
                predecessors[starts[t]] = s
                starts[t] += 1
    found = terminal.copy()
    count = 0
    for s in range(num_states):
        if terminal[s]:
            queue[count] = s
            count += 1
    done = 0
    level_end = count
    length = 0
    total_length = 0
    while done < count:
        if done == level_end:
            level_end = count
            length += 1
        t = queue[done]
        done += 1
        total_length += length
        for i in range(starts[t - 1] if t > 0 else 0, starts[t]):
            s = predecessors[i]
            if not found[s]:
                found[s] = True
                queue[count] = s
                count += 1
                a = 0
                while likely[s, a] != t:
                    a += 1
                actions[s] = a
    for s in range(num_states):
        if terminal[s]:
            actions[s] = 0
        elif not found[s]:
            actions[s] = np.argmin(costs[s])
    return total_length / max(1, count)
