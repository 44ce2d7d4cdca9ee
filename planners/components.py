"""Where one can stay, and from where one surely gets to an end: the graph of a model's choices.

Only which outcomes are possible counts, not how likely they are, so that nothing here is rounded.

- An *end component* is a set of states with actions in each that lead to no other states, and by
  which each of the states can be reached from each other.  Whoever wants to can stay in it for
  ever, and nobody stays anywhere else for ever; the largest ones have no state in common (de
  Alfaro, "Formal verification of probabilistic systems", 1997, section 3.3).
- A policy is *proper* if it reaches a terminal state with probability 1.  The states that have a
  proper policy are the largest set X such that each of its states can reach a terminal state by
  actions that do not leave X (de Alfaro, 1997, section 3.5; Baier and Katoen, "Principles of model
  checking", 2008, section 10.6.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from aggmaze.arrays import readonly
from aggmaze.models.tabular import TabularMDP
from planners.kernels import graphs

# How many outcomes are looked at for what a state can still reach, before all states are.
_MOST_LOOKED_AT = 256


class ChoiceGraph:
    """The states and state-action pairs of a model, and what leads where.

    Parameters
    ----------
    model : TabularMDP
    """

    def __init__(self, model: TabularMDP) -> None:
        self.num_states, self.num_actions = model.num_states, model.num_actions
        self.terminal = model.terminal
        self.available = readonly((model.action_mask & ~model.terminal[:, np.newaxis]).reshape(-1))
        matrix = model.transitions
        starts = np.empty(matrix.shape[0] + 1, dtype=np.int64)
        following = np.empty(matrix.nnz, dtype=np.int32)
        count = graphs.successors(
            readonly(matrix.indptr),
            readonly(matrix.indices),
            readonly(matrix.data),
            starts,
            following,
        )
        self.starts, self.following = readonly(starts), readonly(following[:count])

    @cached_property
    def before(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which pairs lead to each state: starts, shape (S + 1,), and pairs."""
        starts = np.zeros(self.num_states + 1, dtype=np.int64)
        pairs = np.empty(len(self.following), dtype=np.int64)
        graphs.predecessors(self.starts, self.following, starts, pairs)
        return readonly(starts), readonly(pairs)

    def steps_to(
        self, sources: NDArray[np.int64], alive: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the fewest steps by which each state may reach a source, and the first action.

        Parameters
        ----------
        sources : ndarray of int
        alive : ndarray of bool, shape (S * A,)
            The pairs that may be chosen.

        Returns
        -------
        steps, actions : ndarray of int32, shape (S,)
            -1 where there is no way; the action is -1 in sources too.  A policy of these actions
            reaches a source with probability 1 from wherever it does not leave what it reaches.
        """
        steps = np.full(self.num_states, -1, dtype=np.int32)
        actions = np.full(self.num_states, -1, dtype=np.int32)
        graphs.reach(
            *self.before,
            self.num_actions,
            readonly(alive),
            readonly(sources.astype(np.int64)),
            steps,
            actions,
            np.empty(self.num_states, dtype=np.int64),
        )
        return steps, actions


class ProperRegion(NamedTuple):
    """The states that have a proper policy.

    Parameters
    ----------
    finite : ndarray of bool, shape (S,)
        Whether each state has one; true in terminal states.
    usable : ndarray of bool, shape (S, A)
        Available actions that lead to such states only; none in terminal states.
    layers : ndarray of int32, shape (S,)
        0 where there is a proper policy; else in which round it was found that there is none.  Each
        available action of a state of layer k may lead to a layer from 1 to k - 1, or leads to
        states of layer k only: by induction none of them ever surely gets to an end.
    """

    finite: NDArray[np.bool_]
    usable: NDArray[np.bool_]
    layers: NDArray[np.int32]


def proper_region(graph: ChoiceGraph, ends: NDArray[np.bool_] | None = None) -> ProperRegion:
    """Find the states from which some policy reaches an end with probability 1.

    Parameters
    ----------
    graph : ChoiceGraph
    ends : ndarray of bool, shape (S,), optional
        What counts as an end; the terminal states by default.
    """
    ends = graph.terminal if ends is None else ends
    num_states, num_actions = graph.num_states, graph.num_actions
    alive = graph.available & ~np.repeat(ends, num_actions)
    num_alive = alive.reshape(num_states, num_actions).sum(axis=1, dtype=np.int64)
    layers = np.zeros(num_states, dtype=np.int32)
    dead = np.zeros(num_states, dtype=bool)
    room = _room(num_states)
    queues = room[1]
    sources = np.flatnonzero(ends)
    layer = 0
    while True:
        steps, _ = graph.steps_to(sources, alive)
        lost = np.flatnonzero((steps < 0) & ~dead)
        if len(lost) == 0:
            break
        layer += 1
        dead[lost] = True
        layers[lost] = layer
        alive.reshape(num_states, num_actions)[lost] = False
        num_alive[lost] = 0
        queues[0, : len(lost)] = lost
        layer = graphs.strand(
            graph.starts,
            graph.following,
            *graph.before,
            num_actions,
            alive,
            num_alive,
            dead,
            readonly(ends),
            layers,
            layer,
            *room,
            len(lost),
            len(graph.following),
        )
    return ProperRegion(~dead, alive.reshape(num_states, num_actions), layers)


def _room(
    num_states: int,
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return what `graphs.split` and `graphs.strand` need room for."""
    return (
        np.zeros(num_states, dtype=bool),
        np.empty((2, num_states), dtype=np.int64),
        np.empty(num_states, dtype=np.int64),
        np.empty(_MOST_LOOKED_AT + 2, dtype=np.int64),
    )


@dataclass(frozen=True, eq=False)
class Components:
    """Maximal end components.

    Parameters
    ----------
    labels : ndarray of int32, shape (S,)
        The component of each state, numbered by their first states; -1 in none.
    inside : ndarray of bool, shape (S, A)
        The actions by which one stays in it.
    """

    labels: NDArray[np.int32]
    inside: NDArray[np.bool_]

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.labels.max(initial=-1)) + 1


def maximal_end_components(
    graph: ChoiceGraph, allowed: NDArray[np.bool_] | None = None
) -> Components:
    """Find the largest sets of states, none of them terminal, in which one can stay for ever.

    Parameters
    ----------
    graph : ChoiceGraph
    allowed : ndarray of bool, shape (S, A), optional
        The actions that may be used; all available ones by default.
    """
    num_states, num_actions = graph.num_states, graph.num_actions
    alive = graph.available.copy()
    if allowed is not None:
        alive &= allowed.reshape(-1)
    num_alive = alive.reshape(num_states, num_actions).sum(axis=1, dtype=np.int64)
    dead = num_alive == 0
    labels = np.full(num_states, -1, dtype=np.int64)
    queue = np.full(num_states, -1, dtype=np.int64)
    first = np.flatnonzero(dead)
    queue[: len(first)] = first
    graphs.starve(*graph.before, num_actions, alive, num_alive, dead, queue)
    states = np.flatnonzero(~dead)
    num_labels = 0
    room = _room(num_states)
    place = np.full(num_states, -1, dtype=np.int64)
    while len(states):
        # Only components that lost something can fall apart.
        place[states] = np.arange(len(states))
        count, parts = _strong_components(graph, alive, states, place)
        labels[states] = num_labels + parts
        num_labels += count
        # Room for as many parts again.
        touched = np.zeros(num_labels + len(states), dtype=bool)
        num_labels = graphs.split(
            graph.starts,
            graph.following,
            *graph.before,
            num_actions,
            alive,
            num_alive,
            dead,
            labels,
            num_labels,
            states,
            touched,
            *room,
            len(graph.following),
        )
        place[states] = -1
        states = states[touched[labels[states]] & ~dead[states]]
    labels[dead] = -1
    living = np.flatnonzero(~dead)
    found, first_of, number = np.unique(labels[living], return_index=True, return_inverse=True)
    rank = np.empty(len(found), dtype=np.int32)
    rank[np.argsort(first_of, kind="stable")] = np.arange(len(found), dtype=np.int32)
    result = np.full(num_states, -1, dtype=np.int32)
    result[living] = rank[number]
    return Components(result, alive.reshape(num_states, num_actions))


def _strong_components(
    graph: ChoiceGraph,
    alive: NDArray[np.bool_],
    states: NDArray[np.int64],
    place: NDArray[np.int64],
) -> tuple[int, NDArray[np.int32]]:
    """Return how many strong components the listed states form, and which each is in."""
    num_actions = graph.num_actions
    rows = (states[:, np.newaxis] * num_actions + np.arange(num_actions)).reshape(-1)
    rows = rows[alive[rows]]
    size = int((graph.starts[rows + 1] - graph.starts[rows]).sum())
    heads, tails = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    graphs.edges(graph.starts, graph.following, alive, states, num_actions, place, heads, tails)
    # Alive pairs lead to living states; of those only the listed ones have a place, and whoever
    # leads to another is in no cycle with it.
    kept = tails >= 0
    matrix = sp.coo_array(
        (np.ones(np.count_nonzero(kept), dtype=np.int8), (heads[kept], tails[kept])),
        shape=(len(states), len(states)),
    ).tocsr()
    # Where an entry is listed twice, scipy's search for strong components may never end.
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return connected_components(matrix, directed=True, connection="strong")


@dataclass(frozen=True, eq=False)
class Quotient:
    """A model in which each component is one place, which is left by any of its exits.

    A component may have very many exits, and a row of the table has one place for each action.  So
    the members that have exits stay states of their own, with these actions only, and above them
    stands a tree of added states, in which the exit is chosen on the way from its root, at no cost.
    Whatever leads into the component leads to the root.

    Parameters
    ----------
    model : TabularMDP
    root : ndarray of int64, shape (S,)
        The state of ``model`` where one is that is in a state of the source; -1 for those that were
        left out.
    origin : ndarray of int64
        The state of the source of each state of ``model``, whose actions have the same numbers;
        -1 in trees, and -2 where one decides to stay, which has the action 0.
    member : ndarray of int64, shape (S,)
        The state of ``model`` with a state's own exits; -1 where it has none, or is left out.
    components : Components
    """

    model: TabularMDP
    root: NDArray[np.int64]
    origin: NDArray[np.int64]
    member: NDArray[np.int64]
    components: Components

    def chosen(self, policy: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where a policy of ``model`` leaves each component, shape (number of components,).

        Parameters
        ----------
        policy : ndarray of int

        Returns
        -------
        ndarray of int64
            A member, or -2 where it stays.
        """
        inside = self.components.labels >= 0
        roots = np.full(self.components.count, -1, dtype=np.int64)
        roots[self.components.labels[inside]] = self.root[inside]
        left = roots[roots >= 0]
        while True:
            in_tree = self.origin[left] == -1
            if not in_tree.any():
                break
            rows = left[in_tree] * self.model.num_actions + policy[left[in_tree]]
            left[in_tree] = self.model.transitions.indices[self.model.transitions.indptr[rows]]
        found = np.full(self.components.count, -1, dtype=np.int64)
        found[roots >= 0] = self.origin[left]
        return found


def quotient(
    model: TabularMDP,
    components: Components,
    usable: NDArray[np.bool_],
    stay: NDArray[np.float64] | None = None,
) -> Quotient:
    """Return the model in which components are places.

    Parameters
    ----------
    model : TabularMDP
    components : Components
    usable : ndarray of bool, shape (S, A)
        The actions that count; states that are not terminal and have none are left out, and no
        usable action may lead to one.
    stay : ndarray of float, shape (number of components,), optional
        What it costs, once, to end by staying in each; by default one cannot.

    Raises
    ------
    ValueError
        If a usable action leads to a state that is left out, or none is left.
    """
    num_states, num_actions = model.num_states, model.num_actions
    labels = components.labels
    exits = usable & ~components.inside
    keeps = exits.any(axis=1) | (model.terminal & (labels < 0))
    member = np.full(num_states, -1, dtype=np.int64)
    kept = np.flatnonzero(keeps)
    member[kept] = np.arange(len(kept))
    count = len(kept)
    origin = [kept]
    # The leaves of each tree, by component.
    leaves = kept[labels[kept] >= 0]
    owner, nodes = labels[leaves].astype(np.int64), member[leaves]
    num_stays = 0
    if stay is not None:
        num_stays = len(stay)
        owner = np.concatenate([owner, np.arange(num_stays)])
        nodes = np.concatenate([nodes, count + np.arange(num_stays)])
        origin.append(np.full(num_stays, -2, dtype=np.int64))
        first_stay = count
        count += num_stays
    order = np.argsort(owner, kind="stable")
    owner, nodes = owner[order], nodes[order]
    width = max(num_actions, 2)
    parents, choices, children = ([np.empty(0, dtype=np.int64)] for _ in range(3))
    # One more, which the label -1 of states in no component names.
    roots = np.full(components.count + 1, -1, dtype=np.int64)
    while len(owner):
        first = np.flatnonzero(np.diff(owner, prepend=-1))
        sizes = np.diff(np.append(first, len(owner)))
        alone = np.repeat(sizes == 1, sizes)
        roots[owner[alone]] = nodes[alone]
        position = (np.arange(len(owner)) - np.repeat(first, sizes))[~alone]
        owner, nodes = owner[~alone], nodes[~alone]
        if len(owner) == 0:
            break
        begins = position % width == 0
        above = count + np.cumsum(begins) - 1
        parents.append(above)
        choices.append(position % width)
        children.append(nodes)
        owner, nodes = owner[begins], above[begins]
        origin.append(np.full(len(nodes), -1, dtype=np.int64))
        count += len(nodes)
    if count == 0:
        raise ValueError("no state is left: none has a usable action")
    root = member.copy()
    root[labels >= 0] = roots[labels[labels >= 0]]
    # The end of those who stay.
    end = count
    if stay is not None:
        origin.append(np.full(1, -2, dtype=np.int64))
        count += 1
    # Rows: exits of the source, then those who stay, then trees.
    rows = np.flatnonzero(exits.reshape(-1))
    matrix = model.transitions[rows]
    lengths = np.diff(matrix.indptr)
    states, actions = np.divmod(rows, num_actions)
    heads = [np.repeat(member[states] * width + actions, lengths)]
    tails, shares = [root[matrix.indices]], [matrix.data]
    if not np.all((tails[0] >= 0) | (shares[0] == 0)):
        raise ValueError("a usable action leads to a state that is left out")
    costs = np.zeros((count, width))
    mask = np.zeros((count, width), dtype=bool)
    costs[member[states], actions] = model.costs.reshape(-1)[rows]
    mask[member[states], actions] = True
    above, choice, below = map(np.concatenate, (parents, choices, children))
    heads.append(above * width + choice)
    tails.append(below)
    shares.append(np.ones(len(above)))
    mask[above, choice] = True
    if stay is not None:
        staying = first_stay + np.arange(num_stays)
        heads.append(staying * width)
        tails.append(np.full(num_stays, end))
        shares.append(np.ones(num_stays))
        costs[staying, 0] = stay
        mask[staying, 0] = True
    terminal = np.zeros(count, dtype=bool)
    terminal[: len(kept)] = model.terminal[kept]
    if stay is not None:
        terminal[end] = True
    ended = np.flatnonzero(terminal)
    mask[ended] = True
    heads.append((ended[:, np.newaxis] * width + np.arange(width)).reshape(-1))
    tails.append(np.repeat(ended, width))
    shares.append(np.ones(len(ended) * width))
    head, tail, share = map(np.concatenate, (heads, tails, shares))
    positive = share > 0
    transitions = sp.coo_array(
        (share[positive], (head[positive], tail[positive])), shape=(count * width, count)
    ).tocsr()
    made = TabularMDP(transitions, costs, action_mask=mask, terminal=terminal)
    return Quotient(made, root, np.concatenate(origin), member, components)
