"""Pieces that kernels here and in solvers' files are made of.

They are inlined: an ordinary call for each state makes a sweep four times slower.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from aggmaze.arrays import readonly

#: Half the distance from 1 to the next number: the largest relative error of one rounding.
UNIT_ROUNDOFF = 2.0**-53
LARGEST = float(np.finfo(np.float64).max)
# How much more often a move happens if it is chosen, where a distance of one more is more than what
# is rounded off the mean of distances.
_LEAST_SHARE = 1e-6
# A distance times this and the number of a move are one integer; and one larger than any.
_PLACES, _FAR_OFF = 1 << 20, 1 << 62
#: What indices that are never negative are counted by (`planners.kernels.tables`).
ONE = np.uint64(1)
#: Stands for the order of the states where a sweep takes one.
IN_ORDER = readonly(np.empty(0, dtype=np.int32))

#: Extremes of the residual and of the values before any state is seen.
NOTHING_SEEN = (np.inf, -np.inf, np.inf, -np.inf)


@njit(cache=True, inline="always")
def value_of(V, labels, s):
    """Return the value of a state, or of its mega-state unless ``labels`` is None."""
    return V[s] if labels is None else V[labels[s]]


@njit(cache=True, inline="always")
def seen(extremes, old, new):
    """Widen the extremes of new - old and of new; comparisons cost less than min() and max()."""
    residual_low, residual_high, low, high = extremes
    residual = new - old
    residual_low = residual if residual < residual_low else residual_low
    residual_high = residual if residual > residual_high else residual_high
    low = new if new < low else low
    high = new if new > high else high
    return residual_low, residual_high, low, high


@njit(cache=True, inline="always")
def mixed(chosen, q, every, total):
    """Return what an action is worth that moves into the worth ``q`` or slips, by its weights.

    ``total`` is the sum over the available moves.  The formula of models of moves
    (`aggmaze.models.moves.slip_weights`), for tables and for grids.
    """
    return chosen * q + every * total


@njit(cache=True, inline="always")
def mix(Q, n, total, chosen, every):
    """Turn what the moves of a state are worth, +inf if unavailable, into that of its actions.

    Parameters
    ----------
    Q : ndarray of float, shape (M,)
        In place.
    n : int
        Number of available moves.
    total : float
        The sum over them.
    chosen, every : ndarray of float, shape (M + 1,)
    """
    for m in range(len(Q)):
        if Q[m] < np.inf:
            Q[m] = mixed(chosen[n], Q[m], every[n], total)


@njit(cache=True, inline="always")
def pick_near(Q, far, n, chosen, every, in_order, margins, steps):
    """Choose an action of a model of moves as `Engine.greedy` says.

    Where moves happen more often if chosen, actions stand in the order of the distances to which
    their moves lead, and what slips adds to all of them does not matter.

    Parameters
    ----------
    Q : ndarray of float, shape (M,)
        What the moves are worth, +inf where they are unavailable; used up.
    far : ndarray of int64, shape (M,)
        Distances of the states that they lead to.
    n : int
        Number of available moves.
    chosen, every : ndarray of float, shape (M + 1,)
    in_order : bool
        What `near_in_order` says.
    margins : tuple of float
        ``slack`` and ``tie``.
    steps : ndarray of float, shape (M,)
        Room.
    """
    slack, _ = margins
    if in_order:
        least = np.inf
        for m in range(len(Q)):
            least = Q[m] if Q[m] < least else least
        # Without branches: the two least of the distances, each with its move.
        nearest = second = np.int64(_FAR_OFF)
        for m in range(len(Q)):
            close = (chosen[n] * (Q[m] - least) <= slack) & (Q[m] < np.inf)
            place = far[m] * _PLACES + m
            place = place if close else np.int64(_FAR_OFF)
            other = place if place > nearest else nearest
            nearest = place if place < nearest else nearest
            second = other if other < second else second
        if nearest // _PLACES < second // _PLACES:
            return nearest % _PLACES
    total = total_far = 0.0
    for m in range(len(Q)):
        total += Q[m] if Q[m] < np.inf else 0.0
        total_far += far[m] if Q[m] < np.inf else 0
    for m in range(len(Q)):
        steps[m] = mixed(chosen[n], far[m], every[n], total_far)
    mix(Q, n, total, chosen, every)
    return pick(Q, steps, margins)


@njit(cache=True, inline="always")
def near_in_order(chosen):
    """Return whether each move happens more often if it is chosen."""
    return chosen[1:].min() > _LEAST_SHARE


def row_rounding(longest: int) -> float:
    """Bound the relative rounding error of a backup whose rows have at most so many entries."""
    return 1.0001 * (longest + 4) * UNIT_ROUNDOFF


def _chooser(comparison: str) -> Any:
    """Return a function of two numbers, neither a NaN, that chooses by a comparison.

    The promises that there is no NaN and that the sign of zero does not matter let the compiler
    take an extreme over states by vectors; njit can give them for arithmetic only, not for this.
    """
    promises = ("nnan", "nsz")

    def choose(typing_context, one, other):
        def generate(context, builder, signature, arguments):
            first, second = arguments
            holds = builder.fcmp_ordered(comparison, first, second, flags=promises)
            return builder.select(holds, first, second, flags=promises)

        return types.float64(types.float64, types.float64), generate

    return intrinsic(choose)


lesser = _chooser("<")
greater = _chooser(">")


def _prefetch_once(typing_context: Any, array: Any, index: Any) -> Any:
    """Have the entry of an array, and its neighbours, brought near, to be read once and soon.

    What is brought so does not push anything else out of the caches: not the values, which a sweep
    over a large table fetches at random meanwhile.  A hint only, which may point behind the end.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tools: Any = cgutils
        ir, number = tools.ir, tools.int32_t
        data = tools.create_struct_proxy(signature.args[0])(context, builder, arguments[0]).data
        address = builder.gep(data, [arguments[1]])
        kind = ir.FunctionType(ir.VoidType(), [ir.PointerType(), number, number, number])
        hint = tools.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        reads, once, data_cache = (ir.Constant(number, flag) for flag in (0, 0, 1))
        builder.call(hint, [builder.bitcast(address, ir.PointerType()), reads, once, data_cache])
        return context.get_dummy_value()

    return types.none(array, types.uint64), generate


prefetch_once: Any = intrinsic(_prefetch_once)


@njit(cache=True, inline="always")
def seen_by_vectors(extremes, old, new):
    """Do what `seen` does where neither is a NaN, so that it can be done for several at a time."""
    residual_low, residual_high, low, high = extremes
    residual = new - old
    return (
        lesser(residual, residual_low),
        greater(residual, residual_high),
        lesser(new, low),
        greater(new, high),
    )


@njit(cache=True, inline="always")
def clear(Q, slack):
    """Return the best action where no other is within ``slack`` of it, else -1."""
    best = 0
    for a in range(1, len(Q)):
        best = a if Q[a] < Q[best] else best
    limit = min(Q[best] + slack, LARGEST)
    close = 0
    for a in range(len(Q)):
        close += 1 if Q[a] <= limit else 0
    return best if close <= 1 else -1


@njit(cache=True, inline="always")
def pick(Q, steps, margins):
    """Choose an action as `Engine.greedy` says; Q is +inf where it is unavailable.

    ``margins`` are ``slack`` and ``tie``.
    """
    slack, tie = margins
    best = np.inf
    for a in range(len(Q)):
        best = Q[a] if Q[a] < best else best
    if not best < np.inf:
        return 0  # no action is available
    limit = min(best + slack, LARGEST)
    least = np.inf
    for a in range(len(Q)):
        if Q[a] <= limit and steps[a] < least:
            least = steps[a]
    # Distances are small integers or means of such: 1e-9 is rounding.
    least += 1e-9
    best_of_least = np.inf
    for a in range(len(Q)):
        if Q[a] <= limit and steps[a] <= least and Q[a] < best_of_least:
            best_of_least = Q[a]
    for a in range(len(Q)):
        if Q[a] <= limit and steps[a] <= least and Q[a] <= best_of_least + tie:
            return a
    return 0


@njit(cache=True, inline="always")
def likely_outcome(indptr, indices, probabilities, s, row):
    """Return the likeliest successor of a row but s itself; s where there is none."""
    likeliest = s
    largest = 0.0
    for entry in range(indptr[row], indptr[row + 1]):
        if probabilities[entry] > largest and indices[entry] != s:
            largest = probabilities[entry]
            likeliest = indices[entry]
    return likeliest


@njit(cache=True, inline="always")
def turn_around(order, begin, end):
    """Reverse a part of an order, in place."""
    end -= 1
    while begin < end:
        order[begin], order[end] = order[end], order[begin]
        begin += 1
        end -= 1
