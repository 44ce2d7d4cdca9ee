"""The equations of policies that change, against dense solutions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggmaze import TabularMDP
from planners.bellman import local_engine
from planners.engine import LocalEngine
from planners.linear import policy_equations
from planners.linear.policy_equations import PolicyEquations
from tests import strategies
from tests.planners.reference import Array, Model, dense, models, random_moves, random_tabular


def drawn(model: Model, rng: np.random.Generator) -> Array:
    """Return one available action a state."""
    weights = rng.random(model.action_mask.shape) * model.action_mask
    return weights.argmax(axis=1).astype(np.int32)


def solution(model: Model, gamma: float, policy: Array, right: Array) -> Array:
    tables = dense(model)
    P = tables.P[np.arange(tables.num_states), policy]
    # Terminal states are worth nothing to others, whatever is asked of themselves.
    P[:, tables.terminal] = 0.0
    return np.linalg.solve(np.eye(len(P)) - gamma * P, right)


def walk(num_states: int, *, back: float = 0.3) -> TabularMDP:
    """A queue: one action serves fast, the other slowly."""
    states = np.arange(num_states)
    up, down = np.minimum(states + 1, num_states - 1), np.maximum(states - 1, 0)
    P = np.zeros((num_states, 2, num_states))
    for action, likely in enumerate((back, 1 - back)):
        np.add.at(P, (states, action, up), 1 - likely)
        np.add.at(P, (states, action, down), likely)
    costs = states[:, np.newaxis] / num_states + np.array([0.0, 0.4])
    return TabularMDP.from_matrices(P, costs=costs)


def random_graph(num_states: int, branching: int, seed: int = 0) -> TabularMDP:
    return random_tabular(seed, num_states, 2, terminals=0, successors=branching)


@given(models, st.sampled_from([0.0, 0.5, 0.99]), strategies.seeds)
def test_solutions_of_one_policy_after_another(model: Model, gamma: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    equations = PolicyEquations(local_engine(model, gamma))
    for _ in range(4):
        policy = drawn(model, rng)
        right = rng.normal(size=model.num_states)
        equations.follow(policy)
        found = equations.solve(right, reduction=1e-13, most_steps=100)
        np.testing.assert_allclose(
            found.values, solution(model, gamma, policy, right), rtol=0, atol=1e-9
        )


def without_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pattern fills in too much."""
    monkeypatch.setattr(policy_equations, "analyse", lambda *args, **kwargs: None)


@pytest.mark.parametrize("exactly", [False, True])
def test_policies_that_change_little_and_much(
    exactly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exactly:
        without_factors(monkeypatch)
    rng = np.random.default_rng(0)
    for model in (walk(1200), random_moves(1, 1200, 3, p=0.9), random_graph(1200, 3)):
        equations = PolicyEquations(local_engine(model, 0.99))
        policy = drawn(model, rng)
        for num_changed in (1200, 1, 1, 1200, 1, 0):
            changed = rng.choice(1200, num_changed, replace=False)
            policy[changed] = drawn(model, rng)[changed]
            right = rng.normal(size=1200)
            equations.follow(policy)
            found = equations.solve(right, reduction=1e-10, most_steps=200)
            assert found.reduction <= 1e-10
            expected = solution(model, 0.99, policy, right)
            np.testing.assert_allclose(
                found.values, expected, rtol=0, atol=1e-6 * np.abs(expected).max()
            )


@pytest.mark.parametrize("gamma", [0.99, 1 - 1e-6, 1 - 1e-12, 1 - 2.0**-53])
@pytest.mark.parametrize("exactly", [False, True])
def test_constants_are_exact_at_any_discount(
    gamma: float, exactly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exactly:
        without_factors(monkeypatch)
    model = walk(1000)
    equations = PolicyEquations(local_engine(model, gamma))
    equations.follow(drawn(model, np.random.default_rng(0)))
    found = equations.solve(np.full(1000, 1 - gamma), reduction=1e-3, most_steps=3)
    np.testing.assert_allclose(found.values, 1.0, rtol=1e-11)


def test_the_same_policy_is_no_work_and_its_array_is_copied() -> None:
    model = walk(500)
    equations = PolicyEquations(local_engine(model, 0.9))
    policy = np.zeros(500, np.int32)
    assert equations.follow(policy) > 0
    assert equations.follow(policy) == 0
    policy[:] = 1
    assert equations.follow(policy) > 0
    right = np.ones(500)
    right[0] = 5.0
    found = equations.solve(right, reduction=1e-12, most_steps=50)
    np.testing.assert_allclose(found.values, solution(model, 0.9, policy, right), rtol=1e-11)


@pytest.mark.parametrize("exactly", [False, True])
def test_nothing_and_what_is_no_number(exactly: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not exactly:
        without_factors(monkeypatch)
    equations = PolicyEquations(local_engine(walk(400), 0.9))
    equations.follow(np.zeros(400, np.int32))
    found = equations.solve(np.zeros(400), reduction=0.1, most_steps=10)
    np.testing.assert_array_equal(found.values, 0.0)
    assert found.reduction == 0.0
    for bad in (math.inf, math.nan):
        right = np.ones(400)
        right[7] = bad
        with np.errstate(invalid="ignore"):
            broken = equations.solve(right, reduction=0.1, most_steps=10)
        assert not broken.reduction < 1.0


@pytest.mark.parametrize(
    ("model", "is_solved"),
    [
        (walk(1500), True),
        (random_moves(0, 1500, 3, p=1.0), True),
        (random_graph(1500, 15), False),
        # Rows so long that no order is looked for.
        (random_graph(60, 40), False),
    ],
)
def test_what_takes_more_work_is_left(
    model: Model, is_solved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    eliminated: list[object] = []
    monkeypatch.setattr(policy_equations, "MultilevelElimination", eliminated.append)
    equations = PolicyEquations(local_engine(model, 0.99))
    policy = drawn(model, np.random.default_rng(0))
    right = np.random.default_rng(1).normal(size=model.num_states)
    work = equations.follow(policy, most_work=15)
    found = equations.solve(right, reduction=0.0, most_steps=0)
    assert not eliminated
    assert equations.follow(policy, most_work=15) == 0
    assert work >= 1
    if is_solved:
        assert found.reduction == 0.0
        np.testing.assert_allclose(
            found.values, solution(model, 0.99, policy, right), rtol=1e-10, atol=1e-12
        )
    else:
        assert found.reduction == math.inf
        assert found.num_sweeps == 0


def test_what_was_left_is_taken_up_without_a_limit() -> None:
    model = random_graph(300, 15)
    rng = np.random.default_rng(0)
    equations = PolicyEquations(local_engine(model, 0.99))
    first, second = drawn(model, rng), drawn(model, rng)
    right = rng.normal(size=300)
    for policy in (first, second):
        equations.follow(policy, most_work=1)
        assert equations.solve(right, reduction=1e-12, most_steps=100).reduction == math.inf
        assert equations.follow(policy) > 0
        found = equations.solve(right, reduction=1e-12, most_steps=100)
        np.testing.assert_allclose(
            found.values, solution(model, 0.99, policy, right), rtol=1e-8, atol=1e-8
        )


def test_what_fills_in_is_looked_at_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    number = 0
    monkeypatch.setattr(
        policy_equations, "analyse", lambda *args, **kwargs: looks.append(number) or None
    )
    rng = np.random.default_rng(0)
    model = walk(300)
    equations = PolicyEquations(local_engine(model, 0.9))
    for number in range(20):  # noqa: B007
        equations.follow(drawn(model, rng))
    assert looks == [0, 2, 5, 10, 19]


def test_time_may_be_up_at_every_look() -> None:
    model = random_graph(600, 6)
    looks_left = 10**9

    def checkpoint() -> None:
        nonlocal looks_left
        looks_left -= 1
        if looks_left == 0:
            raise TimeoutError

    engine: LocalEngine = local_engine(model, 0.99, 1, checkpoint)
    policy = np.zeros(600, np.int32)
    right = np.random.default_rng(0).normal(size=600)

    def work() -> Array:
        equations = PolicyEquations(engine)
        equations.follow(policy)
        return equations.solve(right, reduction=1e-9, most_steps=100).values

    # The engine may have looked too.
    looks_left = 10**9
    expected = work()
    num_looks = 10**9 - looks_left
    assert num_looks > 10
    for last in range(1, num_looks + 1):
        looks_left = last
        with pytest.raises(TimeoutError):
            work()
    looks_left = 10**9
    np.testing.assert_array_equal(work(), expected)
