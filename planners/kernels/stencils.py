"""Backups of mazes without a table of moves: a grid, and heights or walls, say what a move does.

A cell takes the 8 bytes of its height, or the byte of its walls, where the tables of
`planners.kernels.moves` take 12 bytes a move.  The kernels do what those of the same name do there
with the tables of the same maze, with the same roundings: equal results bit for bit.

They act on a slab: the consecutive states of a part of the maze, with those within a step of them,
whose values come from other parts.  Values, labels and distances lie in the order of `Stencil`;
``lo <= s < hi`` are places in that order.  Cells are taken in pieces, for all of which the same
moves stay on the grid and lead equally far in memory, move by move.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from aggmaze.arrays import readonly
from aggmaze.maze_rows import MazeRows
from aggmaze.models.base import check_block
from aggmaze.models.moves import slip_weights
from planners.kernels.moves import _reverses
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

# Cells of a piece, at most: what is found of them stays in the fastest cache.
_PIECE = 128


class Stencil(NamedTuple):
    """A slab of a maze: N consecutive states, those below them and those above that moves lead to.

    Values are in the order: the N states, the states below, the states above.  ``heights`` and
    ``passages`` are in order of the states: those below, the N states, those above.

    Parameters
    ----------
    heights : ndarray of float, shape (below + N + above,)
        Empty for a maze of walls.
    passages : ndarray of uint8, shape (below + N + above,)
        Bit k: whether there is a passage to the next cell along axis k.  Empty for a terrain.
    shape, strides : ndarray of int64, shape (D,)
        Of the whole grid.
    sizes : ndarray of int64, shape (4,)
        The first state of the slab, N, the number of states below, and the goal, which need not lie
        in it.
    prices : ndarray of float, shape (4,)
        Least climb, cost of a step, goal reward and cost scale: `aggmaze.recipes.CostTerms`.
    chosen, every : ndarray of float, shape (2 D + 1,)
        As of `planners.kernels.tables.Moves`.
    """

    heights: NDArray[np.float64]
    passages: NDArray[np.uint8]
    shape: NDArray[np.int64]
    strides: NDArray[np.int64]
    sizes: NDArray[np.int64]
    prices: NDArray[np.float64]
    chosen: NDArray[np.float64]
    every: NDArray[np.float64]


def stencil_of(maze: MazeRows, lo: int, hi: int) -> Stencil:
    """Return the slab of the states ``lo`` to ``hi - 1`` of a maze.

    Parameters
    ----------
    maze : MazeRows
    lo, hi : int
        At least one state.
    """
    check_block(lo, hi, maze.num_states, name="stencil_of")
    first, last = ghosts_of(maze, lo, hi)
    heights, passages = np.empty(0), np.empty(0, dtype=np.uint8)
    if maze.has_heights:
        heights = maze.heights(first, last)
    else:
        passages = maze.passage_bits(first, last)
    terms = maze.terms
    return Stencil(
        readonly(heights),
        readonly(passages),
        readonly(np.array(maze.grid.shape, dtype=np.int64)),
        readonly(np.array(maze.grid.strides, dtype=np.int64)),
        readonly(np.array([lo, hi - lo, lo - first, maze.goal], dtype=np.int64)),
        readonly(np.array([terms.least_climb, terms.step, terms.goal_reward, maze.cost_scale])),
        *slip_weights(maze.p, maze.num_actions),
    )


def ghosts_of(maze: MazeRows, lo: int, hi: int) -> tuple[int, int]:
    """Return the first state that a slab knows, and the one behind the last.

    Those from the first to ``lo - 1``, and from ``hi`` on, are its ghosts: a step along the first
    axis with more than one cell away from its own.

    Parameters
    ----------
    maze : MazeRows
    lo, hi : int
    """
    reach = max(
        (stride for n, stride in zip(maze.grid.shape, maze.grid.strides, strict=True) if n > 1),
        default=0,
    )
    return max(0, lo - reach), min(maze.num_states, hi + reach)


@njit(cache=True, inline="always")
def home_of(sizes, state):
    """Return where the value of a state lies."""
    place = state - sizes[0]
    if place < 0:
        return sizes[1] + sizes[2] + place
    return place if place < sizes[1] else sizes[2] + place


@njit(cache=True)
def look(stencil, gamma, V, labels, begin, end, coords, Q, open_moves):
    """Write what the moves of a piece of the cells from ``begin`` on are worth; return its size.

    Parameters
    ----------
    begin, end : int
        Places of own states; the piece ends before ``end``.
    coords : ndarray of int64, shape (D,)
        Room for the coordinates of a cell.
    Q : ndarray of float, shape (2 D, _PIECE)
        Written: cost and discounted value of each move, +inf where it is unavailable.
    open_moves : ndarray of int64, shape (_PIECE,)
        Written: bit m says whether move m is available.
    """
    shape, strides, sizes = stencil.shape, stencil.strides, stencil.sizes
    heights, passages = stencil.heights, stencil.passages
    num_dims = len(shape)
    first, num_own, num_below, goal = sizes[0], sizes[1], sizes[2], sizes[3]
    least_climb, step, goal_reward, scale = stencil.prices
    state = first + begin
    rest = state
    for axis in range(num_dims - 1, -1, -1):
        coords[axis] = rest % shape[axis]
        rest //= shape[axis]
    # How many cells on the same moves stay on the grid, and lead where values lie in a row.
    last = num_dims - 1
    size = min(_PIECE, end - begin)
    if coords[last] == 0 or coords[last] == shape[last] - 1:
        size = 1
    else:
        size = min(size, shape[last] - 1 - coords[last])
    if state <= goal:
        size = min(size, max(1, goal - state))
    for axis in range(num_dims):
        for away in (-strides[axis], strides[axis]):
            if shape[axis] == 1:
                continue
            for border in (first, first + num_own):
                if state + away < border:
                    size = min(size, border - state - away)
            if state + away <= goal:
                size = min(size, max(1, goal - state - away))
    here = state - first + num_below
    terrain = len(heights) > 0
    bits = 0
    for move in range(2 * num_dims):
        axis = move // 2
        inside = coords[axis] < shape[axis] - 1 if move % 2 == 1 else coords[axis] > 0
        bits |= 1 << move if inside and state != goal else 0
    for i in range(size):
        open_moves[i] = bits
    for move in range(2 * num_dims):
        worth = Q[move]
        if not bits >> move & 1:
            for i in range(size):
                worth[i] = np.inf
            continue
        axis = move // 2
        away = strides[axis] if move % 2 == 1 else -strides[axis]
        home = home_of(sizes, state + away)
        into_goal = state + away == goal
        if terrain:
            low, high = heights[here : here + size], heights[here + away : here + away + size]
            for i in range(size):
                climb = high[i] - low[i]
                cost = (climb if climb > least_climb else least_climb) + step
                if into_goal:
                    cost -= goal_reward
                worth[i] = cost * scale + gamma * value_of(V, labels, home + i)
        else:
            cost = (-goal_reward if into_goal else step) * scale
            walls = passages[here + min(away, 0) : here + min(away, 0) + size]
            for i in range(size):
                passable = walls[i] >> axis & 1
                q = cost + gamma * value_of(V, labels, home + i)
                worth[i] = q if passable else np.inf
                open_moves[i] &= ~(0 if passable else 1 << move)
    return size


@njit(cache=True, inline="always")
def room_of(stencil):
    """Return the arrays that `look` writes to."""
    num_dims = len(stencil.shape)
    return (
        np.empty(num_dims, dtype=np.int64),
        np.empty((2 * num_dims, _PIECE)),
        np.empty(_PIECE, dtype=np.int64),
    )


@njit(cache=True, inline="always")
def _total(Q, open_moves, i):
    """Return the sum over the available moves of a cell, and their number."""
    total = 0.0
    n = 0
    for m in range(len(Q)):
        available = open_moves[i] >> m & 1
        total += Q[m, i] if available else 0.0
        n += available
    return total, n


@njit(cache=True, inline="always")
def _backup(Q, open_moves, reverses, chosen, every, i):
    """Return the backup of a cell and the first move that attains it."""
    total, n = _total(Q, open_moves, i)
    smallest = np.inf
    largest = -np.inf
    best = worst = 0
    for m in range(len(Q)):
        q = Q[m, i]
        best = m if q < smallest else best
        smallest = q if q < smallest else smallest
        if reverses:
            available = open_moves[i] >> m & 1
            worst = m if available and q > largest else worst
            largest = q if available and q > largest else largest
    if reverses and chosen[n] < 0.0:
        smallest = largest
        best = worst
    return (mixed(chosen[n], smallest, every[n], total) if n > 0 else 0.0), best


@njit(cache=True, nogil=True)
def sweep(stencil, gamma, V, out, actions, lo, hi):
    """Write TV and, unless ``actions`` is None, the first action that attains it.

    Return the extremes of TV - V and of TV.
    """
    chosen, every = stencil.chosen, stencil.every
    reverses = _reverses(chosen)
    is_terrain = len(stencil.heights) > 0
    coords, Q, open_moves = room_of(stencil)
    sums = np.empty((3, _PIECE))
    extremes = NOTHING_SEEN
    begin = lo
    while begin < hi:
        size = look(stencil, gamma, V, None, begin, hi, coords, Q, open_moves)
        old, new = V[begin : begin + size], out[begin : begin + size]
        if reverses:
            for i in range(size):
                new[i], action = _backup(Q, open_moves, True, chosen, every, i)
                if actions is not None:
                    actions[begin + i] = action
        else:
            _add_up(Q, open_moves, size, is_terrain, sums)
            _weigh(size, is_terrain, chosen, every, sums, new)
            if actions is not None:
                _first_best(Q, sums[1], size, actions[begin : begin + size])
        for i in range(size):
            extremes = seen_by_vectors(extremes, old[i], new[i])
        begin += size
    return extremes


@njit(cache=True)
def _add_up(Q, open_moves, size, is_terrain, sums):
    """Write the sum over the available moves of each cell of a piece, the least, and the number."""
    totals, least, counts = sums[0, :size], sums[1, :size], sums[2, :size]
    totals[:] = 0.0
    least[:] = np.inf
    counts[:] = 0.0
    for m in range(len(Q)):
        worth = Q[m, :size]
        if is_terrain:
            # All cells of a piece have the same moves.
            if open_moves[0] >> m & 1:
                for i in range(size):
                    totals[i] += worth[i]
                    counts[i] += 1.0
                    least[i] = worth[i] if worth[i] < least[i] else least[i]
        else:
            for i in range(size):
                available = open_moves[i] & (1 << m) != 0
                totals[i] += worth[i] if available else 0.0
                counts[i] += 1.0 if available else 0.0
                least[i] = worth[i] if worth[i] < least[i] else least[i]


@njit(cache=True)
def _weigh(size, is_terrain, chosen, every, sums, new):
    """Write the backups of the cells of a piece, of what `_add_up` found."""
    totals, least, counts = sums[0], sums[1], sums[2]
    if is_terrain:
        n = int(counts[0])
        to_chosen, to_every = chosen[n], every[n]
        for i in range(size):
            new[i] = mixed(to_chosen, least[i], to_every, totals[i]) if n > 0 else 0.0
        return
    for i in range(size):
        n = int(counts[i])
        new[i] = mixed(chosen[n], least[i], every[n], totals[i]) if n > 0 else 0.0


@njit(cache=True)
def _first_best(Q, least, size, actions):
    """Write the first move of each cell that is worth the least."""
    for i in range(size):
        best = 0
        for m in range(len(Q) - 1, -1, -1):
            best = m if Q[m, i] == least[i] else best
        actions[i] = best if least[i] < np.inf else 0


@njit(cache=True, nogil=True)
def aggregated(stencil, gamma, states, W, labels, out):
    """Write the backups of the listed states under aggregation."""
    chosen, every = stencil.chosen, stencil.every
    reverses = _reverses(chosen)
    coords, Q, open_moves = room_of(stencil)
    for j in range(len(states)):
        s = states[j]
        look(stencil, gamma, W, labels, s, s + 1, coords, Q, open_moves)
        value, _ = _backup(Q, open_moves, reverses, chosen, every, 0)
        out[j] = value


@njit(cache=True, nogil=True)
def policy_sweep(stencil, gamma, policy, V, out, lo, hi):
    """Write the backups by a policy; ``policy`` is of the slab's own states."""
    chosen, every = stencil.chosen, stencil.every
    slips = every.max() > 0.0
    coords, Q, open_moves = room_of(stencil)
    extremes = NOTHING_SEEN
    begin = lo
    while begin < hi:
        size = look(stencil, gamma, V, None, begin, hi, coords, Q, open_moves)
        for i in range(size):
            s = begin + i
            a = policy[s]
            value = 0.0
            if slips:
                total, n = _total(Q, open_moves, i)
                if n > 0:
                    value = mixed(chosen[n], Q[a, i], every[n], total)
            elif open_moves[i] >> a & 1:
                value = Q[a, i]
            extremes = seen(extremes, V[s], value)
            out[s] = value
        begin += size
    return extremes


@njit(cache=True, inline="always")
def _actions(Q, open_moves, chosen, every, i, values):
    """Write the value of each action in a cell, shape (2 D,); return their number."""
    total, n = _total(Q, open_moves, i)
    for m in range(len(Q)):
        values[m] = Q[m, i] if open_moves[i] >> m & 1 else np.inf
    mix(values, n, total, chosen, every)
    return n


@njit(cache=True, nogil=True)
def q_values(stencil, gamma, V, values, lo, hi):
    """Write the value of each action."""
    chosen, every = stencil.chosen, stencil.every
    coords, Q, open_moves = room_of(stencil)
    begin = lo
    while begin < hi:
        size = look(stencil, gamma, V, None, begin, hi, coords, Q, open_moves)
        for i in range(size):
            if _actions(Q, open_moves, chosen, every, i, values[begin + i]) == 0:
                values[begin + i] = 0.0
        begin += size


@njit(cache=True, nogil=True)
def clear_actions(stencil, gamma, V, slack, policy, lo, hi):
    """Write the best actions, -1 where others are within ``slack``; return the number of these."""
    chosen, every = stencil.chosen, stencil.every
    reverses = _reverses(chosen)
    coords, Q, open_moves = room_of(stencil)
    values = np.empty(len(Q))
    unclear = 0
    begin = lo
    while begin < hi:
        size = look(stencil, gamma, V, None, begin, hi, coords, Q, open_moves)
        for i in range(size):
            if reverses:
                _actions(Q, open_moves, chosen, every, i, values)
                action = clear(values, slack)
            else:
                n = best = 0
                least = second = np.inf
                for m in range(len(Q)):
                    q = Q[m, i]
                    n += open_moves[i] >> m & 1
                    worse = q if q > least else least
                    second = worse if worse < second else second
                    best = m if q < least else best
                    least = q if q < least else least
                # Of a terminal state this is NaN, which is no reason to doubt.
                action = -1 if chosen[n] * (second - least) <= slack else best
            policy[begin + i] = action
            unclear += 1 if action < 0 else 0
        begin += size
    return unclear


@njit(cache=True, nogil=True)
def greedy(stencil, gamma, V, distances, margins, policy, lo, hi):
    """Write an action where the policy has none; ``distances`` are in the order of V."""
    chosen, every = stencil.chosen, stencil.every
    strides, sizes = stencil.strides, stencil.sizes
    in_order = near_in_order(chosen)
    coords, Q, open_moves = room_of(stencil)
    num_moves = len(Q)
    worths, steps = np.empty(num_moves), np.empty(num_moves)
    far = np.empty(num_moves, dtype=np.int64)
    begin = lo
    while begin < hi:
        if policy[begin] >= 0:
            begin += 1
            continue
        size = look(stencil, gamma, V, None, begin, hi, coords, Q, open_moves)
        for i in range(size):
            s = begin + i
            if policy[s] >= 0:
                continue
            n = 0
            for m in range(num_moves):
                away = strides[m // 2] if m % 2 == 1 else -strides[m // 2]
                available = open_moves[i] >> m & 1
                n += available
                worths[m] = Q[m, i]
                far[m] = distances[home_of(sizes, sizes[0] + s + away) if available else s]
            policy[s] = pick_near(worths, far, n, chosen, every, in_order, margins, steps)
        begin += size


@njit(cache=True, nogil=True)
def largest_cost(stencil, lo, hi):
    """Return the largest size of the cost of an available move."""
    coords, Q, open_moves = room_of(stencil)
    # Worth nothing wherever they lead, moves are worth their costs.
    nothing = np.zeros(stencil.sizes[1] + max(len(stencil.heights), len(stencil.passages)))
    largest = 0.0
    begin = lo
    while begin < hi:
        size = look(stencil, 0.0, nothing, None, begin, hi, coords, Q, open_moves)
        for m in range(len(Q)):
            for i in range(size):
                cost = abs(Q[m, i])
                largest = cost if largest < cost < np.inf else largest
        begin += size
    return largest
