"""End components, proper regions and quotients, against brute force over sets and policies."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import planners.components
from aggmaze import TabularMDP
from planners.components import (
    ChoiceGraph,
    maximal_end_components,
    proper_region,
    quotient,
)


@st.composite
def graphs_of_choices(draw, max_states=4, num_actions=2):
    """A model whose rows are uniform over sets of states; entries twice, and of probability 0."""
    num_states = draw(st.integers(1, max_states))
    rows = [
        draw(st.lists(st.integers(0, num_states - 1), min_size=1, max_size=3))
        for _ in range(num_states * num_actions)
    ]
    mask = np.array(
        draw(
            st.lists(
                st.lists(st.booleans(), min_size=num_actions, max_size=num_actions).filter(any),
                min_size=num_states,
                max_size=num_states,
            )
        )
    )
    ended = draw(st.lists(st.booleans(), min_size=num_states, max_size=num_states))
    data, columns, starts = [], [], [0]
    for row, listed in enumerate(rows):
        state = row // num_actions
        listed = [state] if ended[state] else listed
        data += [1 / len(listed)] * len(listed) + [0.0]
        columns += [*listed, draw(st.integers(0, num_states - 1))]
        starts.append(len(columns))
    matrix = sp.csr_array(
        (np.array(data), np.array(columns), np.array(starts)),
        shape=(num_states * num_actions, num_states),
    )
    costs = np.array(draw(st.lists(st.integers(-2, 2), min_size=len(rows), max_size=len(rows))))
    costs = np.where(np.repeat(ended, num_actions), 0, costs).reshape(num_states, num_actions)
    return TabularMDP(matrix, costs, action_mask=mask, terminal=np.array(ended)).validate()


def successors(model, state, action):
    """Return the set of states that an action may lead to."""
    matrix = model.transitions
    row = state * model.num_actions + action
    entries = slice(*matrix.indptr[row : row + 2])
    return {
        int(s) for s, p in zip(matrix.indices[entries], matrix.data[entries], strict=True) if p > 0
    }


def pairs_of(model):
    """Return the available actions of each state that is not terminal."""
    return [
        [] if model.terminal[s] else np.flatnonzero(model.action_mask[s]).tolist()
        for s in range(model.num_states)
    ]


def reachable(edges, state):
    found, left = {state}, [state]
    while left:
        for other in edges[left.pop()]:
            if other not in found:
                found.add(other)
                left.append(other)
    return found


def is_end_component(model, states, actions):
    """Whether actions of each of the states lead nowhere else, and from each to each."""
    edges = {s: set() for s in states}
    for s in states:
        for a in actions[s]:
            edges[s] |= successors(model, s, a)
    if any(not actions[s] or not edges[s] <= set(states) for s in states):
        return False
    return all(reachable(edges, s) == set(states) for s in states)


def brute_force_components(model, allowed):
    """Return the maximal sets among all sets of states that are end components."""
    pairs = [[a for a in row if allowed[s, a]] for s, row in enumerate(pairs_of(model))]
    found = []
    for size in range(model.num_states, 0, -1):
        for states in itertools.combinations(range(model.num_states), size):
            if any(set(states) <= other for other, _ in found):
                continue
            inside = {
                s: [a for a in pairs[s] if successors(model, s, a) <= set(states)] for s in states
            }
            if is_end_component(model, states, inside):
                found.append((set(states), inside))
    return found


@pytest.fixture(params=[1, 256], scope="module")
def looked_at(request):
    """How far a state is followed before all are looked at."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planners.components, "_MOST_LOOKED_AT", request.param)
        yield


@pytest.mark.usefixtures("looked_at")
@settings(max_examples=300, deadline=None)
@given(model=graphs_of_choices(), data=st.data())
def test_end_components(model, data):
    allowed = np.array(
        data.draw(st.lists(st.booleans(), min_size=model.costs.size, max_size=model.costs.size))
    ).reshape(model.costs.shape)
    found = maximal_end_components(ChoiceGraph(model), allowed)
    expected = brute_force_components(model, allowed)
    assert found.count == len(expected)
    for label in range(found.count):
        states = set(np.flatnonzero(found.labels == label).tolist())
        (inside,) = [actions for others, actions in expected if others == states]
        for s in states:
            assert np.flatnonzero(found.inside[s]).tolist() == inside[s]
    assert not found.inside[found.labels < 0].any()
    firsts = [np.argmax(found.labels == label) for label in range(found.count)]
    assert firsts == sorted(firsts)


@pytest.mark.usefixtures("looked_at")
@settings(max_examples=300, deadline=None)
@given(model=graphs_of_choices())
def test_the_proper_region(model):
    found = proper_region(ChoiceGraph(model))
    pairs = pairs_of(model)
    proper = model.terminal.copy()
    for policy in itertools.product(*(row or [-1] for row in pairs)):
        edges = {s: successors(model, s, a) if a >= 0 else {s} for s, a in enumerate(policy)}
        ends = [s for s in edges if reachable(edges, s) & set(np.flatnonzero(model.terminal))]
        proper |= [reachable(edges, s) <= set(ends) for s in range(model.num_states)]
    assert found.finite.tolist() == proper.tolist()
    for s, row in enumerate(pairs):
        for a in range(model.num_actions):
            inside = a in row and proper[s] and all(proper[t] for t in successors(model, s, a))
            assert found.usable[s, a] == inside
        layer = found.layers[s]
        assert (layer == 0) == proper[s]
        for a in row if layer else []:
            layers = {int(found.layers[t]) for t in successors(model, s, a)}
            assert layers == {layer} or any(1 <= k < layer for k in layers)


@settings(max_examples=200, deadline=None)
@given(model=graphs_of_choices(max_states=5))
def test_a_quotient_has_the_same_ways_out(model):
    graph = ChoiceGraph(model)
    region = proper_region(graph)
    components = maximal_end_components(graph, region.usable)
    if not region.finite.any():
        with pytest.raises(ValueError, match="no state is left"):
            quotient(model, components, region.usable)
        return
    small = quotient(model, components, region.usable)
    small.model.validate()
    assert (small.root[region.finite] >= 0).all()
    # Nobody can stay anywhere.
    assert maximal_end_components(ChoiceGraph(small.model)).count == 0
    assert proper_region(ChoiceGraph(small.model)).finite.all()
    # Each exit is an action of its member, and leads where it led.
    for s, a in zip(*np.nonzero(region.usable & ~components.inside), strict=True):
        place = small.member[s]
        assert small.origin[place] == s
        assert small.model.costs[place, a] == model.costs[s, a]
        targets = {int(small.root[t]) for t in successors(model, s, a)}
        assert successors(small.model, place, a) == targets
    # All exits of a component are reached from its root, at no cost.
    for label in range(components.count):
        members = np.flatnonzero(components.labels == label)
        (root,) = set(small.root[members].tolist())
        left, leaves = [root], set()
        while left:
            q = left.pop()
            if small.origin[q] >= 0:
                leaves.add(int(small.origin[q]))
                continue
            for b in np.flatnonzero(small.model.action_mask[q]):
                assert small.model.costs[q, b] == 0
                left.extend(successors(small.model, q, b))
        exits = (region.usable & ~components.inside)[members].any(axis=1)
        assert leaves == set(members[exits].tolist())


def test_whoever_stays_ends_there():
    # Two states that lead to each other, and a third that one may leave them for.
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[1, 0, 0] = P[1, 1, 2] = P[0, 1, 0] = P[2, :, 2] = 1
    model = TabularMDP.from_matrices(P, costs=np.ones((3, 2)), terminal=[])
    graph = ChoiceGraph(model)
    components = maximal_end_components(graph)
    assert components.labels.tolist() == [0, 0, 1]
    usable = graph.available.reshape(3, 2)
    small = quotient(model, components, usable, stay=np.array([5.0, 7.0]))
    assert small.model.num_states == 5 + 0
    stays = small.origin == -2
    assert sorted(small.model.costs[stays & ~small.model.terminal, 0].tolist()) == [5.0, 7.0]
    policy = np.zeros(small.model.num_states, dtype=np.int64)
    assert set(small.chosen(policy).tolist()) <= {-2, 1}


def test_a_long_line_peels_in_one_go():
    n = 20_000
    i = np.arange(n)
    heads = np.concatenate([2 * i, 2 * i + 1])
    tails = np.concatenate([np.minimum(i + 1, n - 1), np.minimum(i + 1, n - 1)])
    P = sp.csr_array((np.ones(2 * n), (heads, tails)), shape=(2 * n, n))
    model = TabularMDP(P, np.ones((n, 2)), terminal=[])
    found = maximal_end_components(ChoiceGraph(model))
    assert found.labels.tolist() == [-1] * (n - 1) + [0]
    region = proper_region(ChoiceGraph(model))
    assert not region.finite.any()
    assert set(region.layers.tolist()) == {1}


def line_with_stays(num_states, last):
    """Each state may stay, or go on or back with equal chances; the last gets where it is told.

    The state after the last is an end, and the one after that a trap.
    """
    n = num_states
    i = np.arange(n)
    heads = np.concatenate([2 * i, 2 * i + 1, 2 * i + 1, 2 * n + np.arange(4)])
    ahead = np.where(i == n - 1, last, i + 1)
    tails = np.concatenate([i, np.where(last == n, np.maximum(i - 1, 0), n), ahead])
    tails = np.concatenate([tails, [n, n, n + 1, n + 1]])
    shares = np.concatenate([np.ones(n), np.full(2 * n, 0.5), np.ones(4)])
    P = sp.coo_array((shares, (heads, tails)), shape=(2 * n + 4, n + 2)).tocsr()
    costs = np.ones((n + 2, 2))
    costs[n] = 0
    return TabularMDP(P, costs, terminal=np.arange(n + 2) == n)


def test_states_that_come_off_a_line_one_by_one_take_no_time_each():
    n = 100_000
    found = maximal_end_components(ChoiceGraph(line_with_stays(n, last=n)))
    assert found.labels.tolist() == [*range(n), -1, n]
    assert not found.inside[:n, 1].any()
    region = proper_region(ChoiceGraph(line_with_stays(n, last=n + 1)))
    assert np.flatnonzero(region.finite).tolist() == [n]
    assert region.layers[[n - 1, n - 2, 0]].tolist() == [2, 3, n + 1]


def test_a_usable_action_may_not_lead_out():
    P = np.zeros((2, 1, 2))
    P[0, 0, 1] = P[1, 0, 1] = 1
    model = TabularMDP.from_matrices(P, costs=np.ones((2, 1)), terminal=[])
    graph = ChoiceGraph(model)
    components = maximal_end_components(graph, np.zeros((2, 1), dtype=bool))
    with pytest.raises(ValueError, match="leads to a state that is left out"):
        quotient(model, components, np.array([[True], [False]]))
