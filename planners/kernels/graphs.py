"""Walks over the graph of a general sparse model, whose nodes are states and state-action pairs.

A pair ``s * A + a`` is alive as long as it may be chosen; its successors are the states that it
leads to with positive probability.  All kernels take the rows of successors (``starts``,
``following``: pairs to states) or those of predecessors (``before_starts``, ``before``: states to
pairs), without entries of probability 0.
"""

from __future__ import annotations

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


@njit(cache=True, nogil=True)
def cut(starts, following, num_actions, alive, num_alive, labels, states, touched):
    """Kill the pairs of the listed states that may leave their component; mark those touched."""
    for i in range(len(states)):
        s = states[i]
        for row in range(s * num_actions, (s + 1) * num_actions):
            if not alive[row]:
                continue
            for entry in range(starts[row], starts[row + 1]):
                if labels[following[entry]] != labels[s]:
                    alive[row] = False
                    num_alive[s] -= 1
                    touched[labels[s]] = True
                    break


@njit(cache=True, nogil=True)
def starve(before_starts, before, num_actions, alive, num_alive, dead, labels, touched, queue):
    """Kill pairs that may lead to a dead state, and states without pairs, again and again.

    ``queue`` begins with the states that died, as many as ``dead`` marks anew; those found are
    added.  ``touched`` marks their components, unless ``labels`` is None.  Returns how many died.
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
                if labels is not None:
                    touched[labels[other]] = True
                if num_alive[other] == 0 and not dead[other]:
                    dead[other] = True
                    queue[count] = other
                    count += 1
    return count


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
