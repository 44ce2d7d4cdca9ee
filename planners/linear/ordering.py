"""In which order to eliminate the states of a sparse chain, so that little fills in.

A chain falls into strong components; between them nothing has to be eliminated.  Within one, arcs
count in both directions, and the state with the fewest neighbours goes next: what it led to and
what led to it become neighbours of each other.  They are kept as one *element*, a list of states,
in place of all the pairs (a quotient graph), so that the room never grows.  An element inside
another is absorbed; states with the same neighbours are one from then on; a state all of whose
neighbours are in the new element goes along with it.  Degrees are bounds that are cheap to keep up.
States with very many neighbours, such as a hub, are left out and come last.

Source: Tarjan, "Depth-first search and linear graph algorithms", SIAM Journal on Computing 1
(1972); Amestoy, Davis, Duff, "An approximate minimum degree ordering algorithm", SIAM Journal on
Matrix Analysis and Applications 17 (1996).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Steps between two looks at the clock.
_STEPS_AT_ONCE = 1 << 24

# What `foreseen_operations` takes for few cycles, for a hub, and for the part of a level.
_LEAST_MEAN_DEGREE = 3.0
_HUB = 8.0
_NEAR_PART = 0.125

# Where the numbers of a quotient graph stand in its `state`.
_LEFT, _LEAST_DEGREE, _MARK, _FREE, _ORDERED, _ENTRIES, _OPERATIONS = range(7)


class _Quotient(NamedTuple):
    """States that are left, and elements in place of those eliminated.

    Objects are states and elements; an element has the number of the state that made it.

    Parameters
    ----------
    starts, lengths : ndarray, shape (S,)
        Where the list of each object is: for a state its elements, then states; for an element its
        states.  Length 0 for what is absorbed.
    num_elements : ndarray of int32, shape (S,)
    weights : ndarray of int32, shape (S,)
        How many states each stands for; 0 for those gone, negative within the newest element.
    degrees : ndarray of int32, shape (S,)
        Bounds for states, sizes of elements.
    stamps : ndarray of int64, shape (S,)
        0 for elements that are absorbed.
    heads, following, previous : ndarray of int32, shape (S,)
        States of each degree as linked lists.
    buckets : ndarray of int32, shape (S,)
        States of each hash of their lists, linked by ``following``.
    members, last_members : ndarray of int32, shape (S,)
        The states that each stands for, as linked lists.
    lists, spare : ndarray of int32, shape (room,)
    order : ndarray of int32, shape (S,)
        Those eliminated, the first first; at its end those left out.
    state : ndarray of int64
    """

    starts: NDArray[np.int64]
    lengths: NDArray[np.int32]
    num_elements: NDArray[np.int32]
    weights: NDArray[np.int32]
    degrees: NDArray[np.int32]
    stamps: NDArray[np.int64]
    heads: NDArray[np.int32]
    following: NDArray[np.int32]
    previous: NDArray[np.int32]
    buckets: NDArray[np.int32]
    members: NDArray[np.int32]
    last_members: NDArray[np.int32]
    lists: NDArray[np.int32]
    spare: NDArray[np.int32]
    order: NDArray[np.int32]
    state: NDArray[np.int64]


def minimum_degree(
    starts: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    dense: int,
    *,
    most_entries: int,
    most_operations: int,
    checkpoint: Callable[[], object],
) -> NDArray[np.int32] | None:
    """Return an order of elimination, shape (S,).

    Parameters
    ----------
    starts : ndarray of int64, shape (S + 1,)
    neighbours : ndarray of int32
        Those of state s are ``neighbours[starts[s]:starts[s + 1]]``; none twice, nor s itself, and
        s is one of theirs.
    dense : int
        States with more neighbours come last.
    most_entries : int
        How many pairs of neighbours all eliminations may meet; beyond it there is no order.  Those
        with dense states do not count.
    most_operations : int
        The same of the sum of the squares of the numbers of neighbours.
    checkpoint : callable
        Called now and then.

    Returns
    -------
    ndarray of int32 or None
    """
    num_states = len(starts) - 1
    int32s, int64s = np.empty((10, num_states), dtype=np.int32), np.empty((2, num_states), np.int64)
    # Absorbed lists are swept up when this is full.
    lists, spare = np.empty((2, len(neighbours) + len(neighbours) // 4 + num_states + 1), np.int32)
    quotient = _Quotient(
        int64s[0],
        int32s[0],
        int32s[1],
        int32s[2],
        int32s[3],
        int64s[1],
        int32s[4],
        int32s[5],
        int32s[6],
        int32s[7],
        int32s[8],
        int32s[9],
        lists,
        spare,
        np.empty(num_states, dtype=np.int32),
        np.zeros(7, dtype=np.int64),
    )
    _begin(starts, neighbours, dense, quotient)
    while True:
        checkpoint()
        if not _eliminate(quotient, most_entries, most_operations, _STEPS_AT_ONCE):
            return None
        if quotient.state[_LEFT] == 0:
            break
    return quotient.order


@njit(cache=True, nogil=True)
def strong_components(starts, columns, components):
    """Write the strong component of each state, shape (S,); return how many there are.

    A component leads to those of smaller numbers only.
    """
    num_states = len(components)
    rank = np.zeros(num_states, dtype=np.int32)
    lowest = np.empty(num_states, dtype=np.int32)
    cursor = np.empty(num_states, dtype=np.int64)
    path = np.empty(num_states, dtype=np.int32)
    stack = np.empty(num_states, dtype=np.int32)
    components[:] = -1
    seen = 0
    height = 0
    count = 0
    for root in range(num_states):
        if rank[root] > 0:
            continue
        depth = 0
        s = np.int32(root)
        entering = True
        while True:
            if entering:
                seen += 1
                rank[s] = seen
                lowest[s] = seen
                cursor[s] = starts[s]
                path[depth] = s
                depth += 1
                stack[height] = s
                height += 1
                entering = False
            low = lowest[s]
            end = starts[s + 1]
            entry = cursor[s]
            while entry < end:
                t = columns[entry]
                entry += 1
                if rank[t] == 0:
                    entering = True
                    break
                if components[t] < 0 and rank[t] < low:
                    low = rank[t]
            lowest[s] = low
            cursor[s] = entry
            if entering:
                s = t
                continue
            depth -= 1
            if low == rank[s]:
                while True:
                    height -= 1
                    t = stack[height]
                    components[t] = count
                    if t == s:
                        break
                count += 1
            if depth == 0:
                break
            t = path[depth - 1]
            if low < lowest[t]:
                lowest[t] = low
            s = t
    return count


@njit(cache=True, nogil=True)
def symmetrised(starts, columns, components):
    """Return starts and neighbours: who leads to whom within a component, one way or the other."""
    num_states = len(components)
    back_starts = np.zeros(num_states + 1, dtype=np.int64)
    for s in range(num_states):
        for entry in range(starts[s], starts[s + 1]):
            t = columns[entry]
            if t != s and components[t] == components[s]:
                back_starts[t + 1] += 1
    for s in range(num_states):
        back_starts[s + 1] += back_starts[s]
    total = back_starts[num_states]
    back = np.empty(total, dtype=np.int32)
    fill = back_starts[:-1].copy()
    for s in range(num_states):
        for entry in range(starts[s], starts[s + 1]):
            t = columns[entry]
            if t != s and components[t] == components[s]:
                back[fill[t]] = s
                fill[t] += 1
    seen = np.full(num_states, -1, dtype=np.int32)
    out_starts = np.zeros(num_states + 1, dtype=np.int64)
    neighbours = np.empty(2 * total, dtype=np.int32)
    count = 0
    for s in range(num_states):
        seen[s] = s
        for entry in range(starts[s], starts[s + 1]):
            t = columns[entry]
            if seen[t] != s and components[t] == components[s]:
                seen[t] = s
                neighbours[count] = t
                count += 1
        for entry in range(back_starts[s], back_starts[s + 1]):
            t = back[entry]
            if seen[t] != s:
                seen[t] = s
                neighbours[count] = t
                count += 1
        out_starts[s + 1] = count
    return out_starts, neighbours[:count]


@njit(cache=True, nogil=True)
def foreseen_operations(starts, neighbours):
    """Guess, from below, the sum of the squares of the numbers of neighbours met in eliminating.

    States at the same distance from an outlying one separate those nearer from those farther away.
    The widest of these levels, on grids and the like, is about the clique that is left at the end;
    where all is near, as in a random graph, the clique is some part of it.  Graphs with few cycles
    have smaller separators, and no guess is made.
    """
    num_states = len(starts) - 1
    num_alone = 0
    for s in range(num_states):
        num_alone += starts[s] == starts[s + 1]
    mean = len(neighbours) / max(1, num_states - num_alone)
    if mean < _LEAST_MEAN_DEGREE:
        return 0.0
    # Hubs would bring all near, and are eliminated late.
    most = _HUB * (mean + 1.0)
    seen = np.zeros(num_states, dtype=np.int8)
    queue = np.empty(num_states, dtype=np.int32)
    total = 0.0
    for root in range(num_states):
        degree = starts[root + 1] - starts[root]
        if seen[root] > 0 or degree == 0 or degree > most:
            continue
        queue[0] = root
        for turn in range(1, 3):
            seen[queue[0]] = turn
            begin, end = 0, 1
            widest, num_levels = 0, 0
            while begin < end:
                widest = max(widest, end - begin)
                num_levels += 1
                stop = end
                for k in range(begin, stop):
                    s = queue[k]
                    for entry in range(starts[s], starts[s + 1]):
                        t = neighbours[entry]
                        if seen[t] < turn and starts[t + 1] - starts[t] <= most:
                            seen[t] = turn
                            queue[end] = t
                            end += 1
                begin = stop
            part = _NEAR_PART if num_levels <= 3 * np.log2(end) else 1.0
            if part < 1.0:
                break
            # Once more from the one farthest away.
            queue[0] = queue[end - 1]
        total += (part * widest) ** 3
    return total


@njit(cache=True, nogil=True)
def neighbourhood(starts, neighbours, dense, num_members):
    """Return starts and neighbours of the graph of the states around the middle one.

    So many at most, the nearest first, and without dense states, as in `minimum_degree`.
    """
    num_states = len(starts) - 1
    root = num_states // 2
    while root < num_states - 1 and not 0 < starts[root + 1] - starts[root] <= dense:
        root += 1
    numbers = np.full(num_states, -1, dtype=np.int32)
    members = np.empty(num_members, dtype=np.int32)
    members[0] = root
    numbers[root] = 0
    end = 1
    begin = 0
    while begin < end < num_members:
        s = members[begin]
        begin += 1
        for entry in range(starts[s], starts[s + 1]):
            t = neighbours[entry]
            if end < num_members and numbers[t] < 0 and starts[t + 1] - starts[t] <= dense:
                numbers[t] = end
                members[end] = t
                end += 1
    sub_starts = np.zeros(end + 1, dtype=np.int64)
    total = 0
    for i in range(end):
        total += starts[members[i] + 1] - starts[members[i]]
    sub_neighbours = np.empty(total, dtype=np.int32)
    count = 0
    for i in range(end):
        s = members[i]
        for entry in range(starts[s], starts[s + 1]):
            t = numbers[neighbours[entry]]
            if t >= 0:
                sub_neighbours[count] = t
                count += 1
        sub_starts[i + 1] = count
    return sub_starts, sub_neighbours[:count]


@njit(cache=True, nogil=True)
def _begin(starts, neighbours, dense, quotient):
    """Eliminate states of one neighbour as long as there are any; dense states count for none."""
    begins, lengths, num_elements, weights, degrees, stamps = quotient[:6]
    heads, following, previous, buckets, members, last_members = quotient[6:12]
    lists, order, state = quotient.lists, quotient.order, quotient.state
    num_states = len(begins)
    lists[: len(neighbours)] = neighbours
    heads[:] = -1
    buckets[:] = -1
    place = num_states
    for s in range(num_states - 1, -1, -1):
        begins[s] = starts[s]
        lengths[s] = starts[s + 1] - starts[s]
        num_elements[s] = 0
        stamps[s] = 1
        members[s] = -1
        last_members[s] = s
        degrees[s] = lengths[s]
        weights[s] = 1
        if lengths[s] > dense:
            weights[s] = 0
            lengths[s] = 0
            place -= 1
            order[place] = s
    if place < num_states:
        for s in range(num_states):
            degrees[s] = 0
            for k in range(starts[s], starts[s] + lengths[s]):
                degrees[s] += weights[neighbours[k]]
    left = place
    count = 0
    for s in range(num_states - 1, -1, -1):
        if weights[s] == 0:
            continue
        if degrees[s] > 0:
            after = heads[degrees[s]]
            following[s] = after
            previous[s] = -1
            if after >= 0:
                previous[after] = s
            heads[degrees[s]] = s
        else:
            weights[s] = 0
            lengths[s] = 0
            order[count] = s
            count += 1
    entries = 0
    while num_states > 1 and heads[1] >= 0:
        p = heads[1]
        after, before = following[p], previous[p]
        if after >= 0:
            previous[after] = before
        if before >= 0:
            following[before] = after
        else:
            heads[1] = after
        weights[p] = 0
        k = begins[p]
        while weights[lists[k]] == 0:
            k += 1
        lengths[p] = 0
        order[count] = p
        count += 1
        entries += 1
        i = lists[k]
        after, before = following[i], previous[i]
        if after >= 0:
            previous[after] = before
        if before >= 0:
            following[before] = after
        else:
            heads[degrees[i]] = after
        degrees[i] -= 1
        if degrees[i] > 0:
            after = heads[degrees[i]]
            following[i] = after
            previous[i] = -1
            if after >= 0:
                previous[after] = i
            heads[degrees[i]] = i
        else:
            weights[i] = 0
            lengths[i] = 0
            order[count] = i
            count += 1
    state[_LEFT] = left - count
    state[_LEAST_DEGREE] = 0
    state[_MARK] = 2
    state[_FREE] = len(neighbours)
    state[_ORDERED] = count
    state[_ENTRIES] = state[_OPERATIONS] = entries


@njit(cache=True, nogil=True)
def _eliminate(quotient, most_entries, most_operations, most_steps):
    """Eliminate for some steps, or all that is left; return False where it comes to too much."""
    begins, lengths, num_elements, weights, degrees, stamps = quotient[:6]
    heads, following, previous, buckets, members, last_members = quotient[6:12]
    lists, spare, order, state = quotient[12:]
    num_states = len(begins)
    left, least, mark, free = state[_LEFT], state[_LEAST_DEGREE], state[_MARK], state[_FREE]
    ordered, entries, operations = state[_ORDERED], state[_ENTRIES], state[_OPERATIONS]
    steps = 0
    while left > 0 and steps < most_steps:
        while heads[least] < 0:
            least += 1
        # About so many pairs of neighbours are there already, and nothing takes them away.
        pairs = left * least // 2
        if entries + pairs > most_entries or operations + pairs * least // 2 > most_operations:
            return False
        p = heads[least]
        after, before = following[p], previous[p]
        if after >= 0:
            previous[after] = before
        if before >= 0:
            following[before] = after
        else:
            heads[least] = after
        size_p = weights[p]
        left -= size_p
        weights[p] = -size_p
        elements = num_elements[p]
        begin_p = begins[p]
        variables = lengths[p] - elements
        first = begin_p
        if elements > 0:
            need = np.int64(variables)
            for k in range(begin_p, begin_p + elements):
                need += lengths[lists[k]]
            need = min(need, left)
            if free + need > len(lists):
                # Lists in use move together.
                to = 0
                for x in range(num_states):
                    count = lengths[x]
                    if count > 0:
                        at = begins[x]
                        for k in range(count):
                            spare[to + k] = lists[at + k]
                        begins[x] = to
                        to += count
                for k in range(to):
                    lists[k] = spare[k]
                free = to
                steps += to
                begin_p = begins[p]
            first = free
        # The new element: the neighbours of p, itself left out.
        write = first
        size = 0
        for source in range(elements + 1):
            if source < elements:
                e = lists[begin_p + source]
                lo = begins[e]
                hi = lo + lengths[e]
            else:
                e = p
                lo = begin_p + elements
                hi = lo + variables
            steps += hi - lo
            for k in range(lo, hi):
                i = lists[k]
                weight = weights[i]
                if weight > 0:
                    size += weight
                    weights[i] = -weight
                    lists[write] = i
                    write += 1
                    after, before = following[i], previous[i]
                    if after >= 0:
                        previous[after] = before
                    if before >= 0:
                        following[before] = after
                    else:
                        heads[degrees[i]] = after
            if source < elements:
                stamps[e] = 0
                lengths[e] = 0
        last = write
        # How much of each element lies outside the new one.
        for k in range(first, last):
            i = lists[k]
            weight = weights[i]
            at = begins[i]
            steps += num_elements[i]
            for place in range(at, at + num_elements[i]):
                e = lists[place]
                outside = stamps[e]
                if outside >= mark:
                    stamps[e] = outside + weight
                elif outside != 0:
                    stamps[e] = degrees[e] + mark + weight
        # Shorter lists, new bounds of degrees, and hashes.
        for k in range(first, last):
            i = lists[k]
            at = begins[i]
            middle = at + num_elements[i]
            end = at + lengths[i]
            steps += lengths[i]
            write = at
            outside = np.int64(0)
            key = np.int64(0)
            for place in range(at, middle):
                e = lists[place]
                if stamps[e] != 0:
                    beyond = stamps[e] - mark
                    if beyond > 0:
                        outside += beyond
                        key += e
                        lists[write] = e
                        write += 1
                    else:
                        stamps[e] = 0
                        lengths[e] = 0
            border = write
            for place in range(middle, end):
                j = lists[place]
                if weights[j] > 0:
                    outside += weights[j]
                    key += j
                    lists[write] = j
                    write += 1
            if outside == 0:
                # It would be next without any fill.
                weight = -weights[i]
                size -= weight
                size_p += weight
                left -= weight
                weights[i] = 0
                lengths[i] = 0
                members[last_members[p]] = i
                last_members[p] = last_members[i]
            else:
                if outside < degrees[i]:
                    degrees[i] = outside
                lists[write] = lists[border]
                lists[border] = p
                num_elements[i] = border + 1 - at
                lengths[i] = write + 1 - at
                key %= num_states
                previous[i] = key
                following[i] = buckets[key]
                buckets[key] = i
        mark += num_states + 1
        # States with the same lists are one from now on.
        for k in range(first, last):
            i = lists[k]
            if weights[i] == 0:
                continue
            key = previous[i]
            i = buckets[key]
            buckets[key] = -1
            while i >= 0 and following[i] >= 0:
                count, elements = lengths[i], num_elements[i]
                at = begins[i]
                for place in range(at, at + count):
                    stamps[lists[place]] = mark
                before = i
                j = following[i]
                steps += count
                while j >= 0:
                    same = lengths[j] == count and num_elements[j] == elements
                    if same:
                        at = begins[j]
                        for place in range(at, at + count):
                            if stamps[lists[place]] != mark:
                                same = False
                                break
                    if same:
                        weights[i] += weights[j]
                        weights[j] = 0
                        lengths[j] = 0
                        members[last_members[i]] = j
                        last_members[i] = last_members[j]
                        j = following[j]
                        following[before] = j
                    else:
                        before = j
                        j = following[j]
                mark += 1
                i = following[i]
        # What is left of the element goes back into the lists by degree.
        write = first
        for k in range(first, last):
            i = lists[k]
            weight = -weights[i]
            if weight == 0:
                continue
            weights[i] = weight
            degree = min(degrees[i] + size - weight, left - weight)
            degrees[i] = degree
            after = heads[degree]
            following[i] = after
            previous[i] = -1
            if after >= 0:
                previous[after] = i
            heads[degree] = i
            if degree < least:
                least = degree
            lists[write] = i
            write += 1
        begins[p] = first
        lengths[p] = write - first
        degrees[p] = size
        weights[p] = 0
        stamps[p] = 1 if write > first else 0
        if first == free:
            free = write
        entries += size_p * size + size_p * (size_p - 1) // 2
        for r in range(size_p):
            operations += (size + r) * (size + r)
        steps += 8
        i = p
        while i >= 0:
            order[ordered] = i
            ordered += 1
            i = members[i]
    state[_LEFT], state[_LEAST_DEGREE], state[_MARK], state[_FREE] = left, least, mark, free
    state[_ORDERED], state[_ENTRIES], state[_OPERATIONS] = ordered, entries, operations
    return entries <= most_entries and operations <= most_operations
