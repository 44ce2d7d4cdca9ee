"""Where likeliest moves lead, the order of the states along them, and where they end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planners.kernels.pieces import likely_outcome, turn_around
from planners.kernels.tables import Moves, num_available


class PathEnds(NamedTuple):
    """Where a policy settles without arriving.

    Parameters
    ----------
    attractors : list of ndarray of int64
        The states of each such place, ascending; the places by their least state.
    nearest : ndarray of int32, shape (S,)
        The nearest place that a state may get to, an index into these; -1 where there is none.
    """

    attractors: list[NDArray[np.int64]]
    nearest: NDArray[np.int32]


def ends_of_paths(
    moves: Moves, terminal: NDArray[np.bool_], actions: NDArray[np.int32]
) -> tuple[PathEnds, NDArray[np.int32]]:
    """Return where a policy settles where moves are certain, and how soon it arrives.

    Parameters
    ----------
    moves : Moves
        That never slip.
    terminal : ndarray of bool, shape (S,)
    actions : ndarray of int32, shape (S,)
        An available move in each state that is not terminal.

    Returns
    -------
    PathEnds
    steps : ndarray of int32, shape (S,)
        To a terminal state; of no meaning where there is none.
    """
    following, order = (np.empty(len(terminal), dtype=np.int32) for _ in range(2))
    likely_moves(moves, actions, following)
    path_order(following, order)
    steps, nearest = (np.empty(len(terminal), dtype=np.int32) for _ in range(2))
    roots = np.empty(len(terminal), dtype=np.int32)
    num_cycles = _follow_to_end(following, order, terminal, steps, nearest, roots)
    cycles = []
    for root in roots[:num_cycles].tolist():
        cycle = [root]
        while (state := int(following[cycle[-1]])) != root:
            cycle.append(state)
        cycles.append(np.sort(np.array(cycle, dtype=np.int64)))
    by_state = np.argsort([states[0] for states in cycles])
    places = np.empty(num_cycles + 1, dtype=np.int32)
    places[by_state] = np.arange(num_cycles, dtype=np.int32)
    places[-1] = -1
    # The last entry is that of the states that arrive, -1.
    return PathEnds([cycles[i] for i in by_state], places[nearest]), steps


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


@njit(cache=True, nogil=True)
def _follow_to_end(following, order, terminal, steps, nearest, roots):
    """Write steps to a terminal state, or the number of the cycle where a path ends, else -1.

    The state of each cycle that comes first in the order is listed; returns their number.
    """
    num_cycles = 0
    steps[:] = -1
    for k in range(len(order)):
        s = order[k]
        t = following[s]
        if terminal[s]:
            steps[s] = 0
            nearest[s] = -1
        elif t != s and steps[t] >= 0:
            steps[s] = steps[t] + 1
            nearest[s] = nearest[t]
        else:
            # Nothing has come before that it leads to.
            roots[num_cycles] = s
            steps[s] = 0
            nearest[s] = num_cycles
            num_cycles += 1
    return num_cycles
