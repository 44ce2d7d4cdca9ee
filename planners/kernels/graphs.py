"""Walks over the graph of a general sparse model, whose nodes are states and state-action pairs.

A pair ``s * A + a`` is alive as long as it may be chosen; its successors are the states that it
leads to with positive probability.  All kernels take the rows of successors (``starts``,
``following``: pairs to states) or those of predecessors (``before_starts``, ``before``: states to
pairs), without entries of probability 0.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def successors(indptr, indices, probabilities, starts, following):
    """Write the rows of what has positive probability; return how many entries there are."""
    count = 0
    for row in range(len(indptr) - 1):
        starts[row] = count
        for entry in range(indptr[row], indptr[row + 1]):
            if probabilities[entry] > 0.0:
                following[count] = indices[entry]
                count += 1
    starts[len(indptr) - 1] = count
    return count


@njit(cache=True, nogil=True)
def predecessors(starts, following, before_starts, before):
    """Write which pairs lead to each state; ``before_starts`` is 0 before."""
    for entry in range(len(following)):
        before_starts[following[entry] + 1] += 1
    for s in range(len(before_starts) - 1):
        before_starts[s + 1] += before_starts[s]
    place = before_starts[:-1].copy()
    for row in range(len(starts) - 1):
        for entry in range(starts[row], starts[row + 1]):
            s = following[entry]
            before[place[s]] = row
            place[s] += 1


@njit(cache=True, nogil=True)
def edges(starts, following, alive, states, num_actions, place, heads, tails):
    """Write where alive pairs of the listed states lead, by places in the list; return a count.

    ``place`` has the place of each listed state, -1 for others.
    """
    count = 0
    for i in range(len(states)):
        s = states[i]
        for row in range(s * num_actions, (s + 1) * num_actions):
            if alive[row]:
                for entry in range(starts[row], starts[row + 1]):
                    heads[count] = i
                    tails[count] = place[following[entry]]
                    count += 1
    return count


@njit(cache=True, inline="always")
def _kill(row, num_actions, alive, num_alive, dead, labels, touched, waiting, queues, counts):
    """Kill a pair; put its state among those that died, or among those that lost a pair."""
    s = row // num_actions
    alive[row] = False
    num_alive[s] -= 1
    touched[labels[s]] = True
    if num_alive[s] == 0:
        dead[s] = True
        queues[0, counts[0]] = s
        counts[0] += 1
    elif not waiting[s]:
        waiting[s] = True
        queues[1, counts[1]] = s
        counts[1] += 1


@njit(cache=True, nogil=True)
def split(
    starts,
    following,
    before_starts,
    before,
    num_actions,
    alive,
    num_alive,
    dead,
    labels,
    num_labels,
    states,
    touched,
    waiting,
    queues,
    stamps,
    found,
    allowance,
):
    """Kill the pairs of the listed states that may leave their part; return the number of parts.

    Parts are states of one label, and those that lose a pair are ``touched``.  What a state that
    lost one can still reach is looked for in a few steps (as many as ``found`` has room for): if
    that is a closed set, it becomes a part of its own, with the next label, and pairs that lead
    there from outside, which are in no end component, die too.  So a line from whose end one state
    after another comes off takes one call.  ``allowance`` limits what is looked at in vain.
    ``queues`` is room for (2, S), ``stamps`` for (S,), and ``waiting`` is false before and after.
    """
    for i in range(len(states)):
        stamps[states[i]] = -1
    counts = np.zeros(2, dtype=np.int64)
    for i in range(len(states)):
        s = states[i]
        for row in range(s * num_actions, (s + 1) * num_actions):
            if not alive[row]:
                continue
            for entry in range(starts[row], starts[row + 1]):
                if labels[following[entry]] != labels[s]:
                    _kill(
                        row,
                        num_actions,
                        alive,
                        num_alive,
                        dead,
                        labels,
                        touched,
                        waiting,
                        queues,
                        counts,
                    )
                    break
    budget = len(found) - 2
    stamp = -1
    while True:
        while counts[0] > 0:
            counts[0] -= 1
            s = queues[0, counts[0]]
            for entry in range(before_starts[s], before_starts[s + 1]):
                if alive[before[entry]]:
                    _kill(
                        before[entry],
                        num_actions,
                        alive,
                        num_alive,
                        dead,
                        labels,
                        touched,
                        waiting,
                        queues,
                        counts,
                    )
        if counts[1] == 0:
            return num_labels
        counts[1] -= 1
        s = queues[1, counts[1]]
        waiting[s] = False
        if dead[s] or allowance < 0 or num_labels >= len(touched):
            continue
        stamp += 1
        stamps[s] = stamp
        found[0] = s
        count, done, work = 1, 0, 0
        while done < count and work <= budget:
            here = found[done]
            done += 1
            for row in range(here * num_actions, (here + 1) * num_actions):
                if not alive[row]:
                    continue
                for entry in range(starts[row], starts[row + 1]):
                    work += 1
                    if work > budget:
                        break
                    t = following[entry]
                    if stamps[t] != stamp:
                        stamps[t] = stamp
                        found[count] = t
                        count += 1
        if work > budget:
            allowance -= work
            continue
        for i in range(count):
            labels[found[i]] = num_labels
        touched[num_labels] = True
        for i in range(count):
            for entry in range(before_starts[found[i]], before_starts[found[i] + 1]):
                row = before[entry]
                if alive[row] and labels[row // num_actions] != num_labels:
                    _kill(
                        row,
                        num_actions,
                        alive,
                        num_alive,
                        dead,
                        labels,
                        touched,
                        waiting,
                        queues,
                        counts,
                    )
        num_labels += 1


@njit(cache=True, nogil=True)
def starve(before_starts, before, num_actions, alive, num_alive, dead, queue):
    """Kill pairs that may lead to a dead state, and states without pairs, again and again.

    ``queue`` begins with the states that died, and is -1 behind them; those found are added.
    Return how many died.
    """
    count = 0
    while count < len(queue) and queue[count] >= 0:
        count += 1
    done = 0
    while done < count:
        s = queue[done]
        done += 1
        for entry in range(before_starts[s], before_starts[s + 1]):
            row = before[entry]
            if alive[row]:
                alive[row] = False
                other = row // num_actions
                num_alive[other] -= 1
                if num_alive[other] == 0 and not dead[other]:
                    dead[other] = True
                    queue[count] = other
                    count += 1
    return count


@njit(cache=True, nogil=True)
def strand(
    starts,
    following,
    before_starts,
    before,
    num_actions,
    alive,
    num_alive,
    dead,
    ends,
    layers,
    layer,
    waiting,
    queues,
    stamps,
    found,
    count,
    allowance,
):
    """Let all die who may only get to the dead, or who cannot get to an end; return the last layer.

    The first ``count`` states of ``queues[0]`` died, without alive pairs.  Those who are left
    without a pair get a layer each, in their order.  What one that lost a pair can still reach is
    looked for as in `split`: a closed set without an end gets a layer too.
    """
    budget = len(found) - 2
    num_waiting = 0
    for s in range(len(dead)):
        stamps[s] = -1
    stamp = -1
    while True:
        while count > 0:
            count -= 1
            s = queues[0, count]
            for entry in range(before_starts[s], before_starts[s + 1]):
                row = before[entry]
                if not alive[row]:
                    continue
                other = row // num_actions
                alive[row] = False
                num_alive[other] -= 1
                if num_alive[other] == 0:
                    layer += 1
                    dead[other] = True
                    layers[other] = layer
                    queues[0, count] = other
                    count += 1
                elif not waiting[other]:
                    waiting[other] = True
                    queues[1, num_waiting] = other
                    num_waiting += 1
        if num_waiting == 0:
            return layer
        num_waiting -= 1
        s = queues[1, num_waiting]
        waiting[s] = False
        if dead[s] or allowance < 0:
            continue
        stamp += 1
        stamps[s] = stamp
        found[0] = s
        size, done, work = 1, 0, 0
        while done < size and work <= budget:
            here = found[done]
            done += 1
            for row in range(here * num_actions, (here + 1) * num_actions):
                if not alive[row]:
                    continue
                for entry in range(starts[row], starts[row + 1]):
                    work += 1
                    t = following[entry]
                    if ends[t] or work > budget:
                        work += budget + 1
                        break
                    if stamps[t] != stamp:
                        stamps[t] = stamp
                        found[size] = t
                        size += 1
                if work > budget:
                    break
        if work > budget:
            allowance -= done
            continue
        layer += 1
        for i in range(size):
            here = found[i]
            dead[here] = True
            layers[here] = layer
            num_alive[here] = 0
            for row in range(here * num_actions, (here + 1) * num_actions):
                alive[row] = False
            queues[0, count] = here
            count += 1


@njit(cache=True, nogil=True)
def reach(before_starts, before, num_actions, alive, sources, steps, choice, queue):
    """Write the fewest steps to a source by alive pairs, -1 where there is no way, and the pair.

    ``steps`` is -1 and ``choice`` -1 before; ``queue`` is room for (S,).
    """
    count = 0
    for i in range(len(sources)):
        if steps[sources[i]] < 0:
            steps[sources[i]] = 0
            queue[count] = sources[i]
            count += 1
    done = 0
    while done < count:
        s = queue[done]
        done += 1
        for entry in range(before_starts[s], before_starts[s + 1]):
            row = before[entry]
            other = row // num_actions
            if alive[row] and steps[other] < 0:
                steps[other] = steps[s] + 1
                choice[other] = row - other * num_actions
                queue[count] = other
                count += 1
