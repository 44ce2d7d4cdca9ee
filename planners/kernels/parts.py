"""Steps to a terminal state where the states are shared by several processes.

Local numbers: the states of the part, and behind them its ghosts, of which only the distance is
known.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: Distance of a state from which no way is known yet.
NO_WAY = np.int32(2**31 - 1)


@njit(cache=True, nogil=True)
def leading_by_moves(successors, costs, ends, leading):
    """Write which states of the part lead to each one near by an available move.

    ``ends``, shape (N + 1,), is 0 before; those that lead to t are ``leading[ends[t]:ends[t + 1]]``
    after a second call, the first of which, with an empty ``leading``, counts.
    """
    num_states, num_moves = costs.shape
    counting = len(leading) == 0
    for s in range(num_states):
        for m in range(num_moves):
            if costs[s, m] < np.inf:
                following = successors[s, m]
                if counting:
                    ends[following] += 1
                else:
                    ends[following] -= 1
                    leading[ends[following]] = s


@njit(cache=True, nogil=True)
def leading_by_outcomes(outcomes, ends, leading):
    """Write which states of the part lead to each one near, as `leading_by_moves` does.

    By available actions and outcomes of positive probability, from states that are not terminal.
    """
    indptr, indices, probabilities = outcomes.indptr, outcomes.indices, outcomes.probabilities
    mask, terminal = outcomes.mask, outcomes.terminal
    num_states, num_actions = mask.shape
    counting = len(leading) == 0
    for s in range(num_states):
        for a in range(num_actions):
            if mask[s, a] and not terminal[s]:
                row = s * num_actions + a
                for entry in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
                    if probabilities[entry] > 0.0:
                        following = indices[entry]
                        if counting:
                            ends[following] += 1
                        else:
                            ends[following] -= 1
                            leading[ends[following]] = s


@njit(cache=True, nogil=True)
def add_up(ends):
    """Turn counts into the ends of what is counted, in place; return the sum."""
    total = 0
    for s in range(len(ends)):
        total += ends[s]
        ends[s] = total
    return total


@njit(cache=True, nogil=True)
def spread(ends, leading, sources, distances, queue):
    """Carry distances backwards from some states, of which each has its own, to all of the part.

    ``sources`` are in the order of their distances.  A state whose distance gets less is on the
    queue once: both it and the sources come by order of distance, the least of the two first.
    """
    head = tail = place = 0
    while place < len(sources) or head < tail:
        if head < tail and (
            place == len(sources) or distances[queue[head]] <= distances[sources[place]]
        ):
            s = queue[head]
            head += 1
        else:
            s = sources[place]
            place += 1
        following = distances[s] + np.int32(1)
        for i in range(ends[s], ends[s + 1]):
            before = leading[i]
            if following < distances[before]:
                distances[before] = following
                queue[tail] = before
                tail += 1
