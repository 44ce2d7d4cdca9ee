"""Rounds of modified policy iteration, many in one call: in small models calls take longest.

A round is a full sweep, and a correction of what was swept towards the value of the policy that is
greedy for it.  How the two kinds of models differ, and why, is what
`planners.solvers.modified_policy_iteration` says: without absorbing states corrections are full
sweeps by the policy, of which only the span has to shrink; with them they are sweeps in place, and
so are the first sweeps of all.  Where sweeps shrink a correction slowly, and the states that its
rows lead to are near in number, as in queues and on lines, it is solved for by elimination within
that band instead, if that takes less time by a count of what both read and compute.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planners.bellman import joined
from planners.engine import Engine, LocalEngine, Sweep
from planners.kernels.pieces import IN_ORDER, ONE
from planners.kernels.sparse import gauss_seidel, sweep
from planners.kernels.tables import Outcomes, apart, row_mean, unsigned

# Most outcomes of a small model, and most states.
_MOST_WORK, _MOST_STATES = 1 << 16, 1 << 13
# Most rounds of a call, and those after which it ends if the residual has not shrunk by a tenth.
_MOST_ROUNDS, _PATIENCE = 40, 6
# How far a correction shrinks its increment: at first, at least and at most.
_FIRST_DROP, _LEAST_DROP, _MOST_DROP = 0.1, 1e-3, 0.3
# Most sweeps of a correction, and the share that they may leave of its increment.
_MOST_SWEEPS, _MOST_LEFT = 150, 0.3
# Sweeps of a correction that tell how many more it takes.
_TRIAL_SWEEPS = 8
# Sweeps in place at the start go on while they shrink the residual so much in so many.
_START_PROGRESS, _START_WINDOW = 0.4, 4
# What a bound has to be below the tolerance, so that what is rounded does not spoil it.
_SAFETY = 0.95


def is_small(engine: Engine) -> bool:
    """Whether a model is small, and has a table of outcomes."""
    return (
        engine.num_states <= _MOST_STATES
        and engine.work <= _MOST_WORK
        and isinstance(getattr(engine, "tables", None), Outcomes)
    )


def make_rounds(
    engine: LocalEngine, tol: float, V: NDArray[np.float64], out: NDArray[np.float64]
) -> tuple[Sweep, int]:
    """Go on from V until the bound of ``out`` meets a tolerance, or that takes too long.

    Parameters
    ----------
    engine : LocalEngine
        Of a small model.
    tol : float
        Relative to the largest value.
    V, out : ndarray of float, shape (S,)

    Returns
    -------
    sweep : Sweep
        The last one, which wrote ``out``.
    num_sweeps : int
        Those by a policy included.
    """
    engine.checkpoint()
    assert isinstance(engine.tables, Outcomes)
    extremes, in_place, num_sweeps = _rounds(
        unsigned(engine.tables),
        engine.gamma,
        tol,
        engine.has_absorbing_states,
        V,
        out,
        np.empty(len(V), dtype=np.int32),
        np.empty((4, len(V))),
    )
    return replace(joined([extremes], image=out), in_place=in_place), num_sweeps


@njit(cache=True, inline="always")
def _span_and_end(extremes, gamma, tol, with_zero):
    """Return the span of a residual, and whether MacQueen's bounds meet the tolerance."""
    residual_low, residual_high, low, high = extremes
    if with_zero:
        residual_low, residual_high = min(residual_low, 0.0), max(residual_high, 0.0)
    horizon = gamma / (1.0 - gamma)
    span = residual_high - residual_low
    middle = horizon * (residual_low + residual_high) / 2.0
    # Terminal states have TV = 0, so that any other extreme is another state's.
    size = 0.0
    if low < 0.0 or not with_zero:
        size = abs(low + middle)
    if high > 0.0 or not with_zero:
        size = max(size, abs(high + middle))
    return span, horizon * span / 2.0 <= _SAFETY * tol * size


@njit(cache=True, inline="always")
def _sweep_by_policy(outcomes, gamma, policy, start, vector, out):
    """Write ``start + gamma P_pi vector``; return the extremes of out - vector."""
    indptr, indices, probabilities = outcomes.indptr, outcomes.indices, outcomes.probabilities
    num_actions = np.uint64(outcomes.costs.shape[1])
    low, high = np.inf, -np.inf
    for s in range(np.uint64(len(start))):
        row = s * num_actions + np.uint64(policy[s])
        begin, end = np.uint64(indptr[row]), np.uint64(indptr[row + ONE])
        new = start[s] + gamma * row_mean(indices, probabilities, vector, None, begin, end)
        change = new - vector[s]
        low = change if change < low else low
        high = change if change > high else high
        out[s] = new
    return low, high


@njit(cache=True, inline="always")
def _sweep_by_policy_in_place(outcomes, gamma, policy, start, vector, reverse):
    """Solve each equation of ``d = start + gamma P_pi d`` in turn; return the extreme changes."""
    indptr, indices, probabilities = outcomes.indptr, outcomes.indices, outcomes.probabilities
    terminal = outcomes.terminal
    num_states, num_actions = np.uint64(len(start)), np.uint64(outcomes.costs.shape[1])
    low, high = np.inf, -np.inf
    for i in range(num_states):
        s = num_states - ONE - i if reverse else i
        if terminal[s]:
            continue
        row = s * num_actions + np.uint64(policy[s])
        begin, end = np.uint64(indptr[row]), np.uint64(indptr[row + ONE])
        elsewhere, stay = apart(indices, probabilities, vector, s, begin, end)
        new = start[s] + gamma * elsewhere
        if stay > 0.0:
            new /= 1.0 - gamma * stay
        change = new - vector[s]
        low = change if change < low else low
        high = change if change > high else high
        vector[s] = new
    return min(low, 0.0), max(high, 0.0)


@njit(cache=True, nogil=True)
def band(outcomes, policy):
    """Return how far the rows of a policy lead from their states at most, and their entries."""
    indptr, indices, num_actions = outcomes.indptr, outcomes.indices, outcomes.costs.shape[1]
    width, num_entries = np.int64(0), 0
    for s in range(len(policy)):
        row = s * num_actions + policy[s]
        for entry in range(indptr[row], indptr[row + 1]):
            distance = abs(np.int64(indices[entry]) - s)
            width = distance if distance > width else width
        num_entries += indptr[row + 1] - indptr[row]
    return width, num_entries


@njit(cache=True, nogil=True, error_model="numpy")
def solve_band(outcomes, gamma, policy, width, vector):
    """Solve ``(I - gamma P_pi) d = vector`` in place, by elimination within the band.

    Without looking for pivots: each row has more on the diagonal than beside it.
    """
    indptr, indices, probabilities = outcomes.indptr, outcomes.indices, outcomes.probabilities
    num_states, num_actions = outcomes.costs.shape
    terminal = outcomes.terminal
    rows = np.zeros((num_states, 2 * width + 1))
    for s in range(num_states):
        rows[s, width] = 1.0
        if terminal[s]:
            vector[s] = 0.0
            continue
        row = s * num_actions + policy[s]
        for entry in range(indptr[row], indptr[row + 1]):
            place = width + np.int64(indices[entry]) - s
            rows[s, place] -= gamma * probabilities[entry]
    for s in range(num_states):
        upper = rows[s, width + 1 :]
        for below in range(1, min(width, num_states - 1 - s) + 1):
            lower = rows[s + below, width - below :]
            if lower[0] != 0.0:
                factor = lower[0] / rows[s, width]
                for k in range(width):
                    lower[1 + k] -= factor * upper[k]
                vector[s + below] -= factor * vector[s]
    for s in range(num_states - 1, -1, -1):
        total = vector[s]
        for k in range(1, min(width, num_states - 1 - s) + 1):
            total -= rows[s, width + k] * vector[s + k]
        vector[s] = total / rows[s, width]


@njit(cache=True, inline="always")
def _band_work(num_states, width):
    """Return how many entries a sweep reads in the time of an elimination, about."""
    return num_states * (8 + 8 * width + width * width)


@njit(cache=True, inline="always")
def _sweeps_left(size, first, goal, count):
    """Return how many more sweeps shrink an increment to a goal at the rate of the first ones."""
    if not size < first:
        return np.inf
    return count * np.log(size / goal) / np.log(first / size)


@njit(cache=True, inline="always")
def _sweeps_in_place(outcomes, gamma, tol, V):
    """Sweep in place, up and down in turn, while that shrinks the residual fast.

    Return what the last sweep saw, whether it meets the tolerance, and the number of sweeps.
    """
    spans = np.empty(_MOST_ROUNDS)
    count, num_slow = 0, 0
    while True:
        extremes = gauss_seidel(outcomes, gamma, V, IN_ORDER, count % 2 == 1, 0, len(V))
        spans[count], meets = _span_and_end(extremes, gamma, tol, True)
        if count >= _START_WINDOW:
            slow = not spans[count] <= _START_PROGRESS * spans[count - _START_WINDOW]
            num_slow = num_slow + 1 if slow else 0
        count += 1
        if meets or num_slow == 2 or count == _MOST_ROUNDS:
            return extremes, meets, count


@njit(cache=True, nogil=True, error_model="numpy")
def _rounds(outcomes, gamma, tol, absorbing, V, out, policy, room):
    """Do what `make_rounds` does; return what the last sweep saw, and whether it was in place.

    ``policy``, shape (S,), and ``room``, shape (4, S), are written.
    """
    num_states = len(V)
    argument, start, vector, spare = room[0], room[1], room[2], room[3]
    num_sweeps = 0
    argument[:] = V
    if absorbing:
        out[:] = V
        extremes, meets, num_sweeps = _sweeps_in_place(outcomes, gamma, tol, out)
        if meets:
            return extremes, True, num_sweeps
        argument[:] = out
    some_terminal = outcomes.terminal.any()
    drop, left, before = _FIRST_DROP, 0.0, np.inf
    least, num_idle = np.inf, 0
    # Whether sweeps took longer than elimination, the last time they were tried.
    is_slow = False
    for _ in range(_MOST_ROUNDS):
        extremes = sweep(outcomes, gamma, argument, out, policy, 0, num_states)
        num_sweeps += 1
        span, meets = _span_and_end(extremes, gamma, tol, some_terminal)
        num_idle = 0 if is_slow or span < 0.9 * least else num_idle + 1
        least = min(least, span)
        if meets or left > _MOST_LEFT or num_idle == _PATIENCE or not 0.0 <= span < np.inf:
            break
        # Deeper where the residual is what the correction left, less deep where new actions are.
        if before < np.inf:
            by_correction = span < 3.0 * left * before
            drop = max(drop / 5.0, _LEAST_DROP) if by_correction else min(2.0 * drop, _MOST_DROP)
        before = span
        for s in range(num_states):
            start[s] = out[s] - argument[s]
            vector[s] = start[s]
        low, high = extremes[0], extremes[1]
        first = high - low if not absorbing else max(-low, high)
        size, count = first, 0
        width, num_entries = band(outcomes, policy)
        while size > drop * first and count < _MOST_SWEEPS:
            if is_slow or count == _TRIAL_SWEEPS:
                work = _band_work(num_states, width)
                sweeps_left = _sweeps_left(size, first, drop * first, count) if count else np.inf
                if work <= min(sweeps_left, _MOST_SWEEPS - count) * num_entries:
                    is_slow = True
                    vector[:] = start
                    solve_band(outcomes, gamma, policy, width, vector)
                    num_sweeps += 1 + work // num_entries
                    low = high = size = 0.0
                    break
                is_slow = False
            if absorbing:
                low, high = _sweep_by_policy_in_place(
                    outcomes, gamma, policy, start, vector, count % 2 == 1
                )
                size = max(-low, high)
            else:
                low, high = _sweep_by_policy(outcomes, gamma, policy, start, vector, spare)
                vector, spare = spare, vector
                size = high - low
            count += 1
        num_sweeps += count
        left = size / first if first > 0.0 else 0.0
        constant = 0.0 if absorbing else gamma / (1.0 - gamma) * (low + high) / 2.0
        for s in range(num_states):
            argument[s] += vector[s] + constant
    return extremes, False, num_sweeps
