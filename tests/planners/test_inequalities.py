"""Sweeps in difference form, against fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggmaze import MoveMDP, TabularMDP
from planners.inequalities import Inequalities, exact_row

NUMBERS = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-1e3, 1e3),
    st.sampled_from([0.1, 1 / 3, 1e-300, 1e-9, 1e12, -0.7]),
)


@st.composite
def sparse_models(draw):
    num_states, num_actions = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    P = np.zeros((num_states, num_actions, num_states))
    for s in range(num_states):
        for a in range(num_actions):
            weights = draw(
                st.lists(st.integers(0, 3), min_size=num_states, max_size=num_states).filter(any)
            )
            P[s, a] = np.array(weights) / sum(weights)
    costs = [
        draw(st.lists(NUMBERS, min_size=num_actions, max_size=num_actions))
        for _ in range(num_states)
    ]
    return TabularMDP.from_matrices(P, costs=np.array(costs), terminal=[])


@st.composite
def move_models(draw):
    num_states, num_moves = draw(st.integers(2, 4)), draw(st.integers(1, 4))
    successors = np.array(
        draw(
            st.lists(
                st.integers(0, num_states - 1),
                min_size=num_states * num_moves,
                max_size=num_states * num_moves,
            )
        )
    ).reshape(num_states, num_moves)
    costs = np.array(
        draw(
            st.lists(
                st.one_of(NUMBERS, st.just(np.inf)),
                min_size=num_states * num_moves,
                max_size=num_states * num_moves,
            )
        )
    ).reshape(num_states, num_moves)
    costs[0] = np.inf
    p = draw(st.sampled_from([1.0, 0.9, 0.5, 0.2, 0.05]))
    return MoveMDP(successors, costs, p=p).validate()


def exactly(model, pairs, V, drift, with_costs):
    return [(exact_row(model, s, a, V, float(drift[s]), with_costs), s, a) for s, a in pairs]


@settings(max_examples=400, deadline=None)
@given(model=st.one_of(sparse_models(), move_models()), data=st.data())
def test_extremes_are_on_the_safe_side_and_near(model, data):
    n = model.num_states
    V = np.array(data.draw(st.lists(NUMBERS, min_size=n, max_size=n)))
    drift = np.array(data.draw(st.lists(NUMBERS, min_size=n, max_size=n)))
    with_costs = data.draw(st.booleans())
    looked = Inequalities(model)
    mask = looked.available
    pairs = list(zip(*np.nonzero(mask), strict=True))
    if not pairs:
        assert looked.least(V, drift).state == -1
        return
    exact = exactly(model, pairs, V, drift, with_costs)
    low = min(exact)[0]
    found = looked.least(V, drift, with_costs=with_costs)
    size = np.abs(V).max() * 2 + np.abs(drift).max() + np.abs(model_costs(model)).max()
    assert Fraction(found.value) <= low or (found.value == 0.0 and low >= 0)
    if found.value != 0.0:
        assert found.value >= float(low) - 1e-14 * size
    # By a policy.
    policy = np.full(n, -1)
    for s, a in pairs:
        policy[s] = a
    high = max(x for x, s, a in exact if policy[s] == a)
    found = looked.most(policy, V, drift, with_costs=with_costs)
    assert Fraction(found.value) >= high or (found.value == 0.0 and high <= 0)
    if found.value != 0.0:
        assert found.value <= float(high) + 1e-14 * size
    # What is written is x.
    least, actions = looked.backup(V, drift, with_costs=with_costs)
    by_policy = looked.policy_backup(policy, V, drift, with_costs=with_costs)
    for s in range(n):
        mine = [x for x, t, a in exact if t == s]
        if not mine:
            assert least[s] == np.inf
            continue
        assert least[s] == pytest.approx(float(min(mine)), abs=1e-14 * size)
        (chosen,) = [x for x, t, a in exact if t == s and a == actions[s]]
        assert float(chosen) == pytest.approx(float(min(mine)), abs=1e-14 * size)
        (taken,) = [x for x, t, a in exact if t == s and a == policy[s]]
        assert by_policy[s] == pytest.approx(float(taken), abs=1e-14 * size)


def model_costs(model):
    costs = model.move_costs if isinstance(model, MoveMDP) else model.costs
    return np.where(np.isfinite(costs), costs, 0.0)


def test_what_is_equal_is_exact():
    thirds = np.full((1, 1, 3), 1 / 3)
    P = np.concatenate([thirds, thirds, thirds])
    free = TabularMDP.from_matrices(P, costs=np.zeros((3, 1)), terminal=[])
    assert Inequalities(free).least(np.full(3, 0.1)) == (0.0, 0)
    priced = TabularMDP.from_matrices(P, costs=np.full((3, 1), 0.7), terminal=[])
    assert Inequalities(priced).least(np.full(3, 0.1), 0.7).value == 0.0
    assert Inequalities(priced).most(np.zeros(3, int), np.full(3, 0.1), 0.7).value == 0.0


def test_a_circle_of_whole_numbers_is_exact():
    P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    model = TabularMDP.from_matrices(P, costs=np.array([[1.0], [-1.0]]), terminal=[])
    assert Inequalities(model).least(np.array([1.0, 0.0])).value == 0.0
    assert Inequalities(model).least(np.array([1.0, 1e-9])).value < 0.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 1])
def test_what_is_no_number_is_the_worst(bad, place):
    P = np.full((2, 1, 2), 0.5)
    model = TabularMDP.from_matrices(P, costs=np.ones((2, 1)), terminal=[])
    V = np.zeros(2)
    V[place] = bad
    assert not Inequalities(model).least(V).value >= 0.0
    assert not Inequalities(model).most(np.zeros(2, int), V).value <= 0.0


def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    n = 400_000
    successors = rng.integers(0, n, (n, 3))
    costs = rng.random((n, 3))
    model = MoveMDP(successors, costs, p=0.9)
    V = rng.random(n)
    one, two = Inequalities(model, 1), Inequalities(model, 2)
    assert one.least(V) == two.least(V)
    policy = rng.integers(0, 3, n)
    assert one.most(policy, V) == two.most(policy, V)
    assert (one.backup(V)[0] == two.backup(V)[0]).all()


def test_what_is_wrong_by_less_than_the_least_number_is_wrong() -> None:
    P = np.zeros((3, 1, 3))
    P[0, 0, [2, 1]] = [0.24999999992479294, 0.7499999997743788]
    P[1, 0, 1] = P[2, 0, 2] = 1
    costs = np.array([[-1e-310], [0.0], [0.0]])
    model = TabularMDP.from_matrices(P, costs=costs, terminal=[])
    V = np.array([-7.5e-311, 0.0, 1e-310])
    exact = exact_row(model, 0, 0, V)
    assert -Fraction(1, 10**323) < exact < 0
    assert Inequalities(model).least(V).value < 0.0
    assert Inequalities(model).most(np.array([0, -1, -1]), V).value == 0.0


@settings(max_examples=150, deadline=None)
@given(model=st.one_of(sparse_models(), move_models()), data=st.data())
def test_best_actions_and_what_none_of_them_is_above(model, data):
    V = np.array(data.draw(st.lists(NUMBERS, min_size=model.num_states, max_size=model.num_states)))
    looked = Inequalities(model)
    best = looked.best(V)
    assert best.least == looked.least(V)
    least, actions = looked.backup(V)
    np.testing.assert_array_equal(best.actions, actions)
    some = np.flatnonzero(looked.available.any(axis=1))
    exact = [exact_row(model, int(s), int(actions[s]), V) for s in some]
    if not exact:
        assert best.most == -np.inf
        return
    assert Fraction(best.most) >= max(exact)
    assert best.most <= least[some].max() + 1e-14 * (np.abs(V).max() * 2 + 1e12)
    policy = np.full(model.num_states, -1)
    policy[some] = actions[some]
    assert looked.most(policy, V).value <= best.most


def test_no_number_is_above_what_is_none():
    model = MoveMDP(np.array([[1, 1], [1, 1]]), np.array([[1.0, 2.0], [np.inf, np.inf]]))
    assert Inequalities(model).best(np.array([0.0, np.nan])).most == np.inf
    assert Inequalities(model).best(np.array([0.0, np.inf])).most == np.inf
