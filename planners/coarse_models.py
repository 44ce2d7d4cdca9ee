"""A model of groups of states that lead to each other, about a quarter as many.

What an action does in a group is the mean of what it does in the states of the group where it is
available, as in hard aggregation (Bean, Birge, Smith, "Aggregation in dynamic programming",
Operations Research 35, 1987).  On lattices that is a coarser lattice on which actions drift as they
did.  States are grouped in pairs, twice, each with the one that it and the mean of its actions are
likeliest to lead to or come from (Notay, "An aggregation-based algebraic multigrid method",
Electronic Transactions on Numerical Analysis 37, 2010, for the pairs).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from aggmaze.models.tabular import TabularMDP
from planners.engine import LocalEngine
from planners.kernels.tables import Moves, num_available, weight
from planners.linear.rows import Rows

_NUM_PAIRINGS = 2
# A coarser model with more than this part of the states is none.
_MOST_LEFT = 0.7


class CoarseModel(NamedTuple):
    """A model of groups.

    Parameters
    ----------
    model : TabularMDP
        Of the groups; all terminal states are one.
    labels : ndarray of int32, shape (S,)
        The group of each state.
    """

    model: TabularMDP
    labels: NDArray[np.int32]


def coarse_model(engine: LocalEngine) -> CoarseModel | None:
    """Return a model of groups of states; None where few states can be grouped.

    Parameters
    ----------
    engine : LocalEngine
        Of either layout.
    """
    tables, terminal = engine.tables, engine.terminal
    num_states, num_actions = engine.num_states, engine.model.num_actions
    if isinstance(tables, Moves):
        room, mean, join = tables.successors.size, _mean_of_moves, _group_moves
    else:
        room, mean, join = len(tables.indices), _mean_of_outcomes, _group_outcomes
    chain = Rows(np.zeros(num_states + 1, np.int64), np.empty(room, np.int32), np.empty(room))
    labels = np.arange(num_states, dtype=np.int32)
    count = int(mean(tables, chain))
    chain = chain._replace(columns=chain.columns[:count], entries=chain.entries[:count])
    engine.checkpoint()
    for _ in range(_NUM_PAIRINGS):
        pairs = np.empty(len(terminal), dtype=np.int32)
        num_groups = int(_pair(chain, _transposed(chain), terminal, pairs))
        engine.checkpoint()
        chain = Rows(*_joined(chain, pairs, num_groups, *_members(pairs, num_groups)))
        grouped = np.zeros(num_groups, dtype=np.bool_)
        grouped[pairs[terminal]] = True
        terminal = grouped
        labels = pairs[labels]
        engine.checkpoint()
    if num_groups > _MOST_LEFT * num_states:
        return None
    group_starts, states = _members(labels, num_groups)
    starts, columns, entries, costs, mask = join(
        tables, engine.terminal, labels, group_starts, states
    )
    transitions = sp.csr_array(
        (entries, columns, starts), shape=(num_groups * num_actions, num_groups)
    )
    transitions.has_canonical_format = False
    transitions.sort_indices()
    return CoarseModel(TabularMDP(transitions, costs, action_mask=mask, terminal=terminal), labels)


@njit(cache=True, nogil=True)
def _mean_of_outcomes(outcomes, chain):
    """Write the mean over actions of where each state leads, but to itself and to the end."""
    indptr, indices, probabilities, costs, mask, terminal, _ = outcomes
    starts, columns, entries = chain
    num_states, num_actions = costs.shape
    place = np.full(num_states, -1, dtype=np.int64)
    count = 0
    for s in range(num_states):
        first = count
        if not terminal[s]:
            for a in range(num_actions):
                if not mask[s, a]:
                    continue
                row = s * num_actions + a
                for k in range(indptr[row], indptr[row + 1]):
                    t = indices[k]
                    if t == s or terminal[t]:
                        continue
                    if place[t] < first:
                        place[t] = count
                        columns[count] = t
                        entries[count] = 0.0
                        count += 1
                    entries[place[t]] += probabilities[k]
        starts[s + 1] = count
    return count


@njit(cache=True, nogil=True)
def _mean_of_moves(moves, chain):
    """Write where each state leads by its available moves, but to itself."""
    successors, costs = moves.successors, moves.costs
    starts, columns, entries = chain
    num_states, num_moves = costs.shape
    count = 0
    for s in range(num_states):
        for m in range(num_moves):
            t = successors[s, m]
            # A terminal state has no moves, which `_pair` asks.
            if costs[s, m] < np.inf and t != s:
                columns[count] = t
                entries[count] = 1.0
                count += 1
        starts[s + 1] = count
    return count


@njit(cache=True, nogil=True)
def _transposed(rows):
    """Return the rows of the transpose."""
    starts, columns, entries = rows
    num_rows = len(starts) - 1
    new_starts = np.zeros(num_rows + 1, dtype=np.int64)
    for k in range(starts[num_rows]):
        new_starts[columns[k] + 1] += 1
    for i in range(num_rows):
        new_starts[i + 1] += new_starts[i]
    ends = new_starts[:-1].copy()
    new_columns = np.empty(starts[num_rows], dtype=np.int32)
    new_entries = np.empty(starts[num_rows])
    for i in range(num_rows):
        for k in range(starts[i], starts[i + 1]):
            place = ends[columns[k]]
            ends[columns[k]] += 1
            new_columns[place] = i
            new_entries[place] = entries[k]
    return new_starts, new_columns, new_entries


@njit(cache=True, nogil=True)
def _pair(rows, transposed, terminal, labels):
    """Label pairs of states by their strongest link; the terminal ones last. Return how many."""
    starts, columns, entries = rows
    back_starts, back_columns, back_entries = transposed
    labels[:] = -1
    count = 0
    for s in range(len(labels)):
        if labels[s] >= 0 or terminal[s]:
            continue
        best = -1
        strongest = 0.0
        for k in range(starts[s], starts[s + 1]):
            t = columns[k]
            if labels[t] < 0 and not terminal[t] and entries[k] > strongest:
                strongest = entries[k]
                best = t
        for k in range(back_starts[s], back_starts[s + 1]):
            t = back_columns[k]
            if labels[t] < 0 and not terminal[t] and back_entries[k] > strongest:
                strongest = back_entries[k]
                best = t
        labels[s] = count
        if best >= 0:
            labels[best] = count
        count += 1
    last = count
    for s in range(len(labels)):
        if terminal[s]:
            labels[s] = last
            count = last + 1
    return count


@njit(cache=True, nogil=True)
def _members(labels, num_groups):
    """Return where the states of each group begin in a list, and the list."""
    starts = np.zeros(num_groups + 1, dtype=np.int64)
    for s in range(len(labels)):
        starts[labels[s] + 1] += 1
    for i in range(num_groups):
        starts[i + 1] += starts[i]
    ends = starts[:-1].copy()
    states = np.empty(len(labels), dtype=np.int32)
    for s in range(len(labels)):
        states[ends[labels[s]]] = s
        ends[labels[s]] += 1
    return starts, states


@njit(cache=True, nogil=True)
def _joined(rows, labels, num_groups, group_starts, states):
    """Return the sums of the rows of each group, over groups, but to itself."""
    starts, columns, entries = rows
    new_starts = np.zeros(num_groups + 1, dtype=np.int64)
    new_columns = np.empty(len(columns), dtype=np.int32)
    new_entries = np.empty(len(columns))
    place = np.full(num_groups, -1, dtype=np.int64)
    count = 0
    for i in range(num_groups):
        first = count
        for member in range(group_starts[i], group_starts[i + 1]):
            s = states[member]
            for k in range(starts[s], starts[s + 1]):
                t = labels[columns[k]]
                if t == i:
                    continue
                if place[t] < first:
                    place[t] = count
                    new_columns[count] = t
                    new_entries[count] = 0.0
                    count += 1
                new_entries[place[t]] += entries[k]
        new_starts[i + 1] = count
    return new_starts, new_columns[:count].copy(), new_entries[:count].copy()


@njit(cache=True, nogil=True)
def _group_outcomes(outcomes, terminal, labels, group_starts, states):
    """Return the rows, the costs and the mask of a model of groups."""
    indptr, indices, probabilities, costs, mask, _, _ = outcomes
    num_actions = costs.shape[1]
    num_groups = len(group_starts) - 1
    starts = np.zeros(num_groups * num_actions + 1, dtype=np.int64)
    room = len(indices) + num_groups * num_actions
    columns = np.empty(room, dtype=np.int32)
    entries = np.empty(room)
    new_costs = np.zeros((num_groups, num_actions))
    new_mask = np.zeros((num_groups, num_actions), dtype=np.bool_)
    place = np.full(num_groups, -1, dtype=np.int64)
    count = 0
    for i in range(num_groups):
        for a in range(num_actions):
            first = count
            number = 0
            for member in range(group_starts[i], group_starts[i + 1]):
                s = states[member]
                if terminal[s] or not mask[s, a]:
                    continue
                number += 1
                new_costs[i, a] += costs[s, a]
                row = s * num_actions + a
                for k in range(indptr[row], indptr[row + 1]):
                    t = labels[indices[k]]
                    if place[t] < first:
                        place[t] = count
                        columns[count] = t
                        entries[count] = 0.0
                        count += 1
                    entries[place[t]] += probabilities[k]
            if number == 0:
                # Unavailable, or terminal: stays.
                columns[count] = i
                entries[count] = 1.0
                count += 1
                new_mask[i, a] = terminal[states[group_starts[i]]]
            else:
                new_mask[i, a] = True
                new_costs[i, a] /= number
                for k in range(first, count):
                    entries[k] /= number
            starts[i * num_actions + a + 1] = count
    return starts, columns[:count].copy(), entries[:count].copy(), new_costs, new_mask


@njit(cache=True, nogil=True)
def _group_moves(moves, terminal, labels, group_starts, states):
    """Return the rows, the costs and the mask of a model of groups."""
    successors, costs, chosen, every = moves
    num_moves = costs.shape[1]
    num_groups = len(group_starts) - 1
    slips = every.max() > 0.0
    starts = np.zeros(num_groups * num_moves + 1, dtype=np.int64)
    room = successors.size * (num_moves if slips else 1) + num_groups * num_moves
    columns = np.empty(room, dtype=np.int32)
    entries = np.empty(room)
    new_costs = np.zeros((num_groups, num_moves))
    new_mask = np.zeros((num_groups, num_moves), dtype=np.bool_)
    place = np.full(num_groups, -1, dtype=np.int64)
    count = 0
    for i in range(num_groups):
        for a in range(num_moves):
            first = count
            number = 0
            for member in range(group_starts[i], group_starts[i + 1]):
                s = states[member]
                if terminal[s] or not costs[s, a] < np.inf:
                    continue
                number += 1
                n = num_available(costs, s)
                for m in range(num_moves):
                    p = weight(chosen, every, n, m, a)
                    if not costs[s, m] < np.inf or not p > 0.0:
                        continue
                    new_costs[i, a] += p * costs[s, m]
                    t = labels[successors[s, m]]
                    if place[t] < first:
                        place[t] = count
                        columns[count] = t
                        entries[count] = 0.0
                        count += 1
                    entries[place[t]] += p
            if number == 0:
                columns[count] = i
                entries[count] = 1.0
                count += 1
                new_mask[i, a] = terminal[states[group_starts[i]]]
            else:
                new_mask[i, a] = True
                new_costs[i, a] /= number
                for k in range(first, count):
                    entries[k] /= number
            starts[i * num_moves + a + 1] = count
    return starts, columns[:count].copy(), entries[:count].copy(), new_costs, new_mask
