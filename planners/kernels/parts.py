"""Steps to a terminal state where the states are shared by several processes.

Local numbers: the states of the part, and behind them its ghosts, of which only the distance is
known.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from planners.kernels.stencils import home_of, look, room_of

#: Distance of a state from which no way is known yet, and of one farther than 32 bits count:
#: no distance that is carried on reaches it, so that none becomes negative.
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


@njit(cache=True, inline="always")
def _next(sources, distances, queue, place, head, tail):
    """Return the nearest state of the queue or the sources, and how far both have been read."""
    if head < tail and (
        place == len(sources) or distances[queue[head]] <= distances[sources[place]]
    ):
        return queue[head], place, head + 1
    return sources[place], place + 1, head


@njit(cache=True, nogil=True)
def spread(ends, leading, sources, distances, queue):
    """Carry distances backwards from some states, of which each has its own, to all of the part.

    ``sources`` are in the order of their distances.  A state whose distance gets less is on the
    queue once: both it and the sources come by order of distance, the least of the two first.
    """
    head = tail = place = 0
    while place < len(sources) or head < tail:
        s, place, head = _next(sources, distances, queue, place, head, tail)
        following = distances[s] + np.int32(1)
        for i in range(ends[s], ends[s + 1]):
            before = leading[i]
            if following < distances[before]:
                distances[before] = following
                queue[tail] = before
                tail += 1


@njit(cache=True, inline="always")
def _state_at(sizes, place):
    """Return the number in the maze of the state at a place of a slab."""
    first, num_own, num_below = sizes[0], sizes[1], sizes[2]
    if place < num_own:
        return first + place
    place -= num_own
    return first - num_below + place if place < num_below else first + num_own + place - num_below


@njit(cache=True, nogil=True)
def spread_on_grid(stencil, sources, distances, queue):
    """Do what `spread` does on a slab of a maze (`planners.kernels.stencils`).

    Between two neighbours there are both moves or none, but for those out of the goal.
    """
    shape, strides, sizes = stencil.shape, stencil.strides, stencil.sizes
    passages = stencil.passages
    first, num_own, num_below = sizes[0], sizes[1], sizes[2]
    has_walls = len(passages) > 0
    head = tail = place = 0
    while place < len(sources) or head < tail:
        s, place, head = _next(sources, distances, queue, place, head, tail)
        following = distances[s] + np.int32(1)
        state = _state_at(sizes, s)
        for axis in range(len(shape)):
            coord = state // strides[axis] % shape[axis]
            for step in (-1, 1):
                before = state + step * strides[axis] - first
                on_grid = coord > 0 if step < 0 else coord < shape[axis] - 1
                if not on_grid or before < 0 or before >= num_own:
                    continue
                if has_walls:
                    lower = min(before, state - first) + num_below
                    if not passages[lower] >> axis & 1:
                        continue
                if following < distances[before]:
                    distances[before] = following
                    queue[tail] = before
                    tail += 1


@njit(cache=True, nogil=True)
def moves_at(stencil, near, places, successors, costs):
    """Write the moves of some states of a slab, as a table of moves has them.

    Parameters
    ----------
    near : ndarray of float
        Finite, of the states of the slab in its order; what they are does not matter.
    places : ndarray of int, shape (K,)
        Of own states.
    successors : ndarray of int32, shape (K, 2 D)
        Written: the places that moves lead to; unavailable ones stay.
    costs : ndarray of float, shape (K, 2 D)
        Written: +inf where the move is unavailable.
    """
    strides, sizes = stencil.strides, stencil.sizes
    coords, Q, open_moves = room_of(stencil)
    for k in range(len(places)):
        # With a discount of 0 moves are worth their costs.
        look(stencil, 0.0, near, None, places[k], places[k] + 1, coords, Q, open_moves)
        for move in range(len(Q)):
            away = strides[move // 2] if move % 2 == 1 else -strides[move // 2]
            available = Q[move, 0] < np.inf
            costs[k, move] = Q[move, 0]
            successors[k, move] = (
                home_of(sizes, sizes[0] + places[k] + away) if available else places[k]
            )
