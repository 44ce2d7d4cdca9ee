"""Policies of shortest paths to the terminal states, in the number of likeliest moves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from aggmaze.arrays import readonly
from planners.kernels.pieces import likely_outcome
from planners.kernels.tables import Moves, Outcomes

# A policy of shortest paths is a good beginning where in more than this fraction of the states that
# can be left no action that leads elsewhere has a negative cost.
_COSTLY = 0.9
# Most moves whose number, beside a bit for each of them, fits into the entry of a state.
_MOST_MOVES = 16


class Paths(NamedTuple):
    """What is known of shortest paths.

    Parameters
    ----------
    mean_length : float
    num_ways : float
        How many actions lead elsewhere, for each state.
    order : ndarray of int32, shape (S,), optional
        States in order of their distance, where that is known: each after the one its path leads
        to.
    distances : ndarray of int32, shape (S,), optional
        The fewest moves from each state to a terminal one, -1 where there is no way.
    """

    mean_length: float
    num_ways: float
    order: NDArray[np.int32] | None = None
    distances: NDArray[np.int32] | None = None


def shortest_moves(
    moves: Moves,
    terminal: NDArray[np.bool_],
    actions: NDArray[np.int32],
    *,
    always: bool = False,
) -> Paths | None:
    """Write the moves of shortest paths, if they may be good.

    Parameters
    ----------
    moves : Moves
    terminal : ndarray of bool, shape (S,)
    actions : ndarray of int32, shape (S,)
        Receives them; 0 in terminal states.
    always : bool
        Whether also where they may not be good.

    Returns
    -------
    Paths or None
        None where they may not be good: `linear.forest.PolicyForest.follow_to_goal` says when.
    """
    if not terminal.any():
        return None
    search = _Search.of(moves, terminal)
    num_costly, num_leaving, num_ways = search.counts
    if num_costly <= _COSTLY * num_leaving and not always:
        return None
    distances = None
    if search.is_paired:
        lengths = np.empty(len(terminal), dtype=np.int32)
        mean_length, num_found = search.go_back(lengths, actions)
        distances = lengths if search.is_grid else None
        ends = np.flatnonzero(terminal).astype(np.int32)
        if num_found + len(ends) == len(terminal):
            order = np.concatenate([ends, search.queue[:num_found]])
            return Paths(mean_length, num_ways / num_leaving, order, distances)
    # Some moves cannot be taken back as on grids, or lead nowhere.
    states = np.arange(len(terminal), dtype=np.int32)[:, np.newaxis]
    leaves = (moves.costs < np.inf) & (moves.successors != states)
    likely = np.where(leaves, moves.successors, np.int32(-1))
    mean_length = _breadth_first(likely, moves.costs, terminal, search.queue, actions)
    return Paths(mean_length, num_ways / num_leaving, distances=distances)


def distances_on_grid(moves: Moves, terminal: NDArray[np.bool_]) -> NDArray[np.int32] | None:
    """Return the fewest moves from each state to a terminal one, where moves are those of a grid.

    Parameters
    ----------
    moves : Moves
    terminal : ndarray of bool, shape (S,)

    Returns
    -------
    ndarray of int32, shape (S,), or None
        -1 where there is no way; None where some move leads not equally far from all states.
    """
    search = _Search.of(moves, terminal)
    if not search.is_grid:
        return None
    distances, actions = (np.empty(len(terminal), dtype=np.int32) for _ in range(2))
    search.go_back(distances, actions)
    return distances


def shortest_outcomes(
    outcomes: Outcomes,
    terminal: NDArray[np.bool_],
    actions: NDArray[np.int32],
    *,
    always: bool = False,
) -> Paths | None:
    """Write the actions of shortest paths along likeliest outcomes, as `shortest_moves` does.

    Parameters
    ----------
    outcomes : Outcomes
    terminal : ndarray of bool, shape (S,)
    actions : ndarray of int32, shape (S,)
    always : bool
    """
    if not terminal.any():
        return None
    likely = np.empty(outcomes.costs.shape, dtype=np.int32)
    num_costly, num_leaving, num_ways = _survey_outcomes(outcomes, likely)
    if num_costly <= _COSTLY * num_leaving and not always:
        return None
    available_costs = readonly(np.where(outcomes.mask, outcomes.costs, np.inf))
    queue = np.empty(len(terminal), dtype=np.int32)
    mean_length = _breadth_first(likely, available_costs, terminal, queue, actions)
    return Paths(mean_length, num_ways / num_leaving)


class _Search(NamedTuple):
    """A search backwards from the terminal states of a model of moves.

    Parameters
    ----------
    moves : Moves
    terminal : ndarray of bool, shape (S,)
    is_paired : bool
        Whether a move m may have one that takes it back, ``m ^ 1``.
    is_grid : bool
        Whether, besides, each leads equally far from all states in which it leads elsewhere.
    offsets : ndarray of int64, shape (M,)
        How far, then.
    places : ndarray of uint8 or uint32, shape (S,)
        For each state a bit for each move that leads elsewhere.
    queue : ndarray of int32, shape (S + 1,)
        Begins with the states that have a move to a terminal one.
    num_seeds : int
        How many these are.
    counts : tuple of int
        In how many states no move that leads elsewhere costs less than nothing; how many can be
        left, and by how many moves.
    """

    moves: Moves
    terminal: NDArray[np.bool_]
    is_paired: bool
    is_grid: bool
    offsets: NDArray[np.int64]
    places: NDArray[Any]
    queue: NDArray[np.int32]
    num_seeds: int
    counts: tuple[int, int, int]

    @classmethod
    def of(cls, moves: Moves, terminal: NDArray[np.bool_]) -> _Search:
        """Look at every move once."""
        num_states, num_moves = moves.successors.shape
        queue = np.empty(num_states + 1, dtype=np.int32)
        offsets = np.zeros(num_moves, dtype=np.int64)
        places: NDArray[Any] = np.empty(num_states, np.uint8 if num_moves <= 4 else np.uint32)
        num_seeds, num_astray, *counts = _survey_moves(moves, terminal, offsets, queue, places)
        is_paired = num_moves in range(2, _MOST_MOVES + 1, 2)
        is_grid = is_paired and num_astray == 0
        return cls(
            moves, terminal, is_paired, is_grid, offsets, places, queue, num_seeds, tuple(counts)
        )

    def go_back(
        self, distances: NDArray[np.int32], actions: NDArray[np.int32]
    ) -> tuple[float, int]:
        """Write the lengths and moves of shortest paths, where moves are paired; once only.

        On a grid these are all paths, elsewhere those by moves that can be taken back.  Returns
        their mean length, and how many states have one.
        """
        total, num_found = _go_back(
            self.moves,
            self.terminal,
            self.is_grid,
            self.offsets,
            self.places,
            self.queue,
            self.num_seeds,
            distances,
            actions,
        )
        return total / max(1, num_found), num_found


@njit(cache=True, nogil=True)
def _survey_moves(moves, terminal, offsets, seeds, places):
    """Look at every move once, as `_Search` says.

    Returns the number of seeds; how many moves lead elsewhere, but not as far as the first of that
    number did, which is written into ``offsets``; and the three counts.
    """
    successors, costs = moves.successors, moves.costs
    num_states, num_moves = successors.shape
    for m in range(num_moves):
        for s in range(num_states):
            if costs[s, m] < np.inf and successors[s, m] != s:
                offsets[m] = np.int64(successors[s, m]) - s
                break
    num_seeds = 0
    num_astray = 0
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
            leads = (costs[s, m] < np.inf) & (t != s)
            bits |= leads << m
            leaves |= leads
            num_ways += leads
            num_astray += leads & (np.int64(t) - s != offsets[m])
            costly &= (not leads) | (costs[s, m] >= 0.0)
            ends |= leads & terminal[t]
        places[s] = bits
        num_leaving += 1 if leaves else 0
        num_costly += 1 if leaves & costly else 0
        if ends:
            seeds[num_seeds] = s
            num_seeds += 1
    return num_seeds, num_astray, num_costly, num_leaving, num_ways


@njit(cache=True, nogil=True)
def _go_back(moves, terminal, is_grid, offsets, places, queue, num_seeds, distances, actions):
    """Do what `_Search.go_back` says; return the total length of the paths and their number.

    On a grid all that is read at random is a small entry for each state: its moves, whether it was
    found, and by which move; and there are no branches on walls, which no processor can guess.
    """
    successors, costs = moves.successors, moves.costs
    num_states, num_moves = successors.shape
    shift = 4 if num_moves <= 4 else 16
    width = 2 if num_moves <= 4 else 4
    found = 1 << (shift + width)
    for s in range(num_states):
        distances[s] = 0 if terminal[s] else -1
        places[s] |= found if terminal[s] else 0
    for i in range(num_seeds):
        s = queue[i]
        least = np.inf
        best = 0
        for m in range(num_moves):
            if terminal[successors[s, m]] and costs[s, m] < least:
                least = costs[s, m]
                best = m
        places[s] |= found | (best << shift)
    count = num_seeds
    done = 0
    length = 0
    total = 0
    while done < count:
        level_end = count
        length += 1
        while done < level_end:
            t = queue[done]
            done += 1
            total += length
            distances[t] = length
            for m in range(num_moves):
                # The state from which the move opposite to m may lead here.
                back = m ^ 1
                origin = np.int64(t) - offsets[back] if is_grid else np.int64(successors[t, m])
                if 0 <= origin < num_states:
                    place = np.int64(places[origin])
                    new = (place >> back) & 1 & ~(place >> (shift + width))
                    if not is_grid:
                        new &= successors[origin, back] == t
                    places[origin] = place | (new * (found | (back << shift)))
                    queue[count] = origin
                    count += new
    for s in range(num_states):
        actions[s] = 0 if terminal[s] else (places[s] >> shift) & ((1 << width) - 1)
    return total, count


@njit(cache=True, nogil=True)
def _survey_outcomes(outcomes, likely):
    """Write the likeliest successor of each action but the state itself, or -1.

    Returns in how many states no action that leads elsewhere costs less than nothing, how many can
    be left, and by how many actions.
    """
    indptr, indices, probabilities, costs, mask, terminal, _ = outcomes
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
