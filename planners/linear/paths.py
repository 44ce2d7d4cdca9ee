"""Where likeliest moves lead, and the order of the states along them."""

from __future__ import annotations

import numpy as np
from numba import njit

from planners.kernels.pieces import likely_outcome, turn_around
from planners.kernels.tables import num_available


@njit(cache=True, nogil=True)
def likely_moves(moves, actions, following):
    """Write the likeliest successor of each state but itself; itself where it has no other."""
    successors, costs, chosen, every = moves
    for s in range(len(following)):
        action = actions[s]
        n = num_available(costs, s)
        following[s] = successors[s, action] if n > 0 and chosen[n] >= 0.0 else s
        if following[s] == s and every[n] > 0.0:
            # The chosen move stays, or is the least likely of all.
            for m in range(successors.shape[1]):
                if m != action and costs[s, m] < np.inf:
                    following[s] = successors[s, m]


@njit(cache=True, nogil=True)
def likely_outcomes(rows, num_actions, actions, fixed, following):
    """Write the same from `Rows` of probabilities, one a pair of state and action.

    Fixed states lead to themselves.
    """
    starts, columns, entries = rows
    for s in range(len(following)):
        row = s * num_actions + actions[s]
        following[s] = s
        if not fixed[s]:
            following[s] = likely_outcome(starts, columns, entries, s, row)


@njit(cache=True, nogil=True)
def path_order(following, order):
    """Order the states so that each comes after the one it leads to, but for one of each cycle."""
    num_states = len(following)
    visited = np.zeros(num_states, dtype=np.bool_)
    count = 0
    for start in range(num_states):
        first = count
        s = start
        while not visited[s]:
            visited[s] = True
            order[count] = s
            count += 1
            s = following[s]
        turn_around(order, first, count)
