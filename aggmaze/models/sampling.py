"""What a uniform number makes happen, compiled: in one environment, or in many at once.

Models, environments and vector environments draw by the same functions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from aggmaze import kernel_cache  # noqa: F401  (before any kernel)


class Rules(NamedTuple):
    """Where episodes of a model begin and end, and where its states lie.

    Parameters
    ----------
    starts : tuple
        As for `sample_start`.
    strides : ndarray of int, shape (D,)
        Difference in state of one step along each axis; D is 0 where there are no coordinates.
    limit : int
        Steps after which an episode is cut off.
    same_step : bool
        Whether the step that ends an episode begins the next one.
    """

    starts: tuple[Any, ...]
    strides: NDArray[np.int64]
    limit: int
    same_step: bool


class Batch(NamedTuple):
    """N environments before and after a step.

    Parameters
    ----------
    actions : ndarray of int, shape (N,)
    uniforms : ndarray of float, shape (1, N) or (2, N)
        Numbers in [0, 1): the first row for what happens, be it a step or a start; the last for a
        start that follows in the same step, which takes a second row unless it is certain.
    states : ndarray of int, shape (N,)
        Overwritten, like the next two.
    num_steps : ndarray of int, shape (N,)
        Steps of the episode so far.
    ended : ndarray of bool, shape (N,)
        Whether the episode is over; what happens next is then a start.
    rewards, probabilities : ndarray of float, shape (N,)
        Written, like all that follow.
    terminated, truncated : ndarray of bool, shape (N,)
    coords : ndarray of int, shape (N, D)
    final_states : ndarray of int, shape (N,)
        State and probability before the start that follows in the same step; left alone where
        there is none, and of no length in other modes.
    final_probabilities : ndarray of float, shape (N,)
    """

    actions: NDArray[np.int64]
    uniforms: NDArray[np.float64]
    states: NDArray[np.int64]
    num_steps: NDArray[np.int64]
    ended: NDArray[np.bool_]
    rewards: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    coords: NDArray[np.int64]
    final_states: NDArray[np.int64]
    final_probabilities: NDArray[np.float64]


# How these are written more than halves the time of a batch: inlined, and without branches on what
# no processor can guess (whether an action is available, which outcome it is); unsigned indices,
# which need no check for being negative; no check of divisors, which are never 0.  Single draws
# keep the lock that other threads wait for, since to let go of it would take longer.


@njit(cache=True, inline="always", error_model="numpy")
def sample_move(tables, state, action, uniform):
    """Return next state, cost and probability of an action in a model of moves.

    ``tables`` is ``(successors, move_costs, p, bump_cost)`` of a `MoveMDP`.  Below ``p`` the chosen
    move happens; the rest is split evenly over the other available moves in order of their index.

    Parameters
    ----------
    tables : tuple
    state, action : int
    uniform : float
        In [0, 1).
    """
    successors, move_costs, p, bump_cost = tables
    here, move = np.uintp(state), np.uintp(action)
    count = 0
    for other in range(move_costs.shape[1]):
        count += move_costs[here, other] < np.inf
    available = np.int64(move_costs[here, move] < np.inf)
    may_slip = available & (count > 1)
    probability = p if may_slip else 1.0
    if may_slip & (uniform >= p):
        probability = (1.0 - p) / (count - 1)
        skip = min(int((uniform - p) / (1.0 - p) * (count - 1)), count - 2)
        for other in range(move_costs.shape[1]):
            if other != action and move_costs[here, other] < np.inf:
                if skip == 0:
                    move = np.uintp(other)
                skip -= 1
    cost = move_costs[here, move]
    idle_cost = bump_cost if count else 0.0
    following = state + available * (np.int64(successors[here, move]) - state)
    return following, cost if cost < np.inf else idle_cost, probability


@njit(cache=True, inline="always", error_model="numpy")
def sample_entry(tables, state, action, uniform):
    """Return next state, cost and probability of an action in a sparse table.

    ``tables`` is ``(indptr, indices, probabilities, below, num_bits, costs, num_actions,
    by_entry)`` of a `TabularMDP`: ``below`` are the `sums_below` the probabilities in their row,
    the last place in the longest row takes ``num_bits`` bits, and the costs are one an entry or one
    a row.  Outcomes are taken in the order in which the row stores them.

    Parameters
    ----------
    tables : tuple
    state, action : int
    uniform : float
        In [0, 1).
    """
    indptr, indices, probabilities, below, num_bits, costs, num_actions, by_entry = tables
    row = np.uintp(state * num_actions + action)
    entry = _last_at_most(below, indptr[row], indptr[row + np.uintp(1)], num_bits, uniform)
    return np.int64(indices[entry]), costs[entry if by_entry else row], probabilities[entry]


@njit(cache=True, inline="always", error_model="numpy")
def sample_start(tables, uniform):
    """Return the first state of an episode and its probability.

    ``tables`` is ``(starts, probabilities, below, num_bits)``: the states that may be the first,
    the probability of each and the sum of those before it, and the number of bits of the last
    place among them.

    Parameters
    ----------
    tables : tuple
    uniform : float
        In [0, 1).
    """
    starts, probabilities, below, num_bits = tables
    k = _last_at_most(below, 0, len(starts), num_bits, uniform)
    return starts[k], probabilities[k]


@njit(cache=True, inline="always", error_model="numpy")
def _last_at_most(values, first, end, num_bits, limit):
    """Return the last place, of sorted values between two, whose value is at most the limit.

    The first is at most the limit.  Found bit by bit.
    """
    place, last = np.uintp(first), np.uintp(end) - np.uintp(1)
    for bit in range(num_bits - 1, -1, -1):
        ahead = place + (np.uintp(1) << np.uintp(bit))
        fits = np.uintp(ahead <= last) & np.uintp(values[min(ahead, last)] <= limit)
        place += fits << np.uintp(bit)
    return place


@njit(cache=True, nogil=True)
def sums_below(indptr, probabilities):
    """Return the sum of the probabilities that come before each one in its row.

    It is +inf behind the last possible outcome of a row, to which what its sum lacks of 1 belongs.

    Parameters
    ----------
    indptr : ndarray of int, shape (R + 1,)
    probabilities : ndarray of float, shape (nnz,)
    """
    below = np.empty_like(probabilities)
    for row in range(len(indptr) - 1):
        total = 0.0
        last = indptr[row]
        for entry in range(indptr[row], indptr[row + 1]):
            below[entry] = total
            total += probabilities[entry]
            if probabilities[entry] > 0.0:
                last = entry
        below[last + 1 : indptr[row + 1]] = np.inf
    return below


@njit(cache=True, nogil=True, error_model="numpy")
def all_within(values, below):
    """Return whether all values are in ``[0, below)``.

    Parameters
    ----------
    values : ndarray of int, shape (N,)
    below : int
    """
    outside = 0
    for i in range(len(values)):
        outside += (values[i] < 0) | (values[i] >= below)
    return outside == 0


# Where an episode begins a step is drawn too, and what came of it overwritten: simpler, and faster.


@njit(cache=True, nogil=True, error_model="numpy")
def step_moves(tables, terminal, rules, batch):
    """Advance a batch in a model of moves.

    Parameters
    ----------
    tables : tuple
        As for `sample_move`.
    terminal : ndarray of bool, shape (S,)
    rules : Rules
    batch : Batch
    """
    states, actions, uniforms = batch.states, batch.actions, batch.uniforms
    costs, probabilities = batch.rewards, batch.probabilities
    for i in range(len(states)):
        states[i], costs[i], probabilities[i] = sample_move(
            tables, states[i], actions[i], uniforms[0, i]
        )
    _settle(terminal, rules, batch)


@njit(cache=True, nogil=True, error_model="numpy")
def step_own_moves(tables, terminal, rules, batch):
    """Advance a batch in which each environment has moves of its own, as `step_moves`.

    ``tables`` is ``(successors, move_costs, p, bump_costs)``, as for `sample_move`, but with costs
    of shape (N, S, M) and (N,).

    Parameters
    ----------
    tables, terminal, rules, batch
        As for `step_moves`, the tables aside.
    """
    successors, move_costs, p, bump_costs = tables
    states, actions, uniforms = batch.states, batch.actions, batch.uniforms
    costs, probabilities = batch.rewards, batch.probabilities
    for i in range(len(states)):
        own = successors, move_costs[i], p, bump_costs[i]
        states[i], costs[i], probabilities[i] = sample_move(
            own, states[i], actions[i], uniforms[0, i]
        )
    _settle(terminal, rules, batch)


@njit(cache=True, nogil=True, error_model="numpy")
def step_entries(tables, terminal, rules, batch):
    """Advance a batch in a sparse table, as `step_moves`; its tables are as for `sample_entry`.

    Parameters
    ----------
    tables, terminal, rules, batch
        As for `step_moves`, the tables aside.
    """
    states, actions, uniforms = batch.states, batch.actions, batch.uniforms
    costs, probabilities = batch.rewards, batch.probabilities
    for i in range(len(states)):
        states[i], costs[i], probabilities[i] = sample_entry(
            tables, states[i], actions[i], uniforms[0, i]
        )
    _settle(terminal, rules, batch)


@njit(cache=True, nogil=True, error_model="numpy")
def draw_starts(tables, uniforms, states, probabilities):
    """Write the state in which each of N episodes begins, and its probability.

    Parameters
    ----------
    tables : tuple
        As for `sample_start`.
    uniforms : ndarray of float, shape (N,)
        In [0, 1).
    states, probabilities : ndarray, shape (N,)
        Written.
    """
    for i in range(len(states)):
        states[i], probabilities[i] = sample_start(tables, uniforms[i])


@njit(cache=True, nogil=True, error_model="numpy")
def write_coords(strides, states, coords):
    """Write the coordinates of each of N states, shape (N, D).

    Parameters
    ----------
    strides : ndarray of int, shape (D,)
    states : ndarray of int, shape (N,)
    coords : ndarray of int, shape (N, D)
        Written.
    """
    last = len(strides) - 1
    for i in range(len(states)):
        rest = np.uintp(states[i])
        for axis in range(last):
            stride = np.uintp(strides[axis])
            place = rest // stride
            coords[i, axis] = place
            rest -= place * stride
        if last >= 0:
            coords[i, last] = rest


@njit(cache=True, nogil=True, error_model="numpy")
def _settle(terminal, rules, batch):
    """End and begin episodes, where the rewards hold the costs of the steps that were made."""
    limit, same_step = rules.limit, rules.same_step
    states, num_steps, ended = batch.states, batch.num_steps, batch.ended
    rewards, probabilities = batch.rewards, batch.probabilities
    terminated, truncated = batch.terminated, batch.truncated
    for i in range(len(states)):
        # 0.0 - cost, since -0.0 reads oddly.
        rewards[i] = 0.0 - rewards[i]
        num_steps[i] += 1
        truncated[i] = limit <= num_steps[i]
    for i in range(len(states)):
        terminated[i] = terminal[np.uintp(states[i])]
    for i in range(len(states)):
        if ended[i]:
            rewards[i] = 0.0
            terminated[i] = False
            truncated[i] = False
            num_steps[i] = 0
            states[i], probabilities[i] = sample_start(rules.starts, batch.uniforms[0, i])
        elif same_step and (terminated[i] or truncated[i]):
            batch.final_states[i] = states[i]
            batch.final_probabilities[i] = probabilities[i]
            num_steps[i] = 0
            states[i], probabilities[i] = sample_start(rules.starts, batch.uniforms[-1, i])
    for i in range(len(states)):
        ended[i] = (terminated[i] | truncated[i]) & (not same_step)
    write_coords(rules.strides, states, batch.coords)
