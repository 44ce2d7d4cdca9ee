"""Greedy policies, action values, and exact evaluation."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import planners
from aggmaze import MoveMDP, TabularMDP
from aggmaze.grid import Grid
from aggmaze.recipes import StandardRecipe, TerrainRecipe, maze_model
from planners.bellman import local_engine
from planners.iterate import iterate
from planners.linear.chain import ChainEquations, Solution
from planners.linear.policy_equations import PolicyEquations, Refinement
from planners.policies import StepVariances, greedy_path, greedy_policy, policy_model
from tests.planners.reference import (
    Array,
    Dense,
    Model,
    action_values,
    dense,
    gammas,
    models,
    random_moves,
    random_tabular,
    small_models,
    truth,
    value_of,
)

MODELS = small_models() | {"table": random_tabular(0, 30, 3, terminals=2)}
named = pytest.mark.parametrize("name", MODELS)


def chain_cost(n: int) -> TabularMDP:
    """0 <- 1 <- ... <- n-1; action 0 waits, action 1 goes on; both cost nothing."""
    P = np.zeros((n, 2, n))
    P[np.arange(n), 0, np.arange(n)] = 1.0
    P[np.arange(1, n), 1, np.arange(n - 1)] = 1.0
    P[0, 1, 0] = 1.0
    terminal = np.zeros(n, dtype=bool)
    terminal[0] = True
    return TabularMDP.from_matrices(P, costs=np.zeros((n, 2)), terminal=terminal)


def breadth_first(tables: Dense) -> Array:
    """Fewest steps to a terminal state; S where there is none."""
    size = tables.num_states
    leads = (tables.P > 0).any(axis=1)
    distance = np.where(tables.terminal, 0, size)
    for steps in range(1, size):
        reached = (leads & (distance == steps - 1)).any(axis=1) & (distance == size)
        distance[reached & ~tables.terminal] = steps
    return distance


def plain_greedy(tables: Dense, Q: Array, slack: float) -> Array:
    """Least expected distance among those within slack of the best, then the lowest index."""
    expected = tables.P @ breadth_first(tables).astype(float)
    policy = np.zeros(tables.num_states, dtype=np.int64)
    for s in np.flatnonzero(~tables.terminal):
        close = [a for a in np.flatnonzero(tables.mask[s]) if Q[s, a] <= Q[s].min() + slack]
        nearest = min(expected[s, a] for a in close)
        policy[s] = next(a for a in close if expected[s, a] <= nearest + 1e-9)
    return policy


# ---------------------------------------------------------------------------------------------
# Action values.


@named
@pytest.mark.parametrize("gamma", [0.0, 0.7, 0.99])
def test_action_values(name: str, gamma: float) -> None:
    model = MODELS[name]
    tables = dense(model)
    V = np.random.default_rng(0).normal(scale=10.0, size=model.num_states)
    zeroed = np.where(tables.terminal, 0.0, V)
    expected = action_values(tables, zeroed, gamma)
    expected[tables.terminal] = 0.0
    kept = V.copy()
    Q = planners.q_values(model, V, gamma)
    assert Q.shape == (model.num_states, model.num_actions)
    np.testing.assert_array_equal(np.isinf(Q), ~tables.mask & ~tables.terminal[:, np.newaxis])
    assert (Q[np.isinf(Q)] > 0).all()
    np.testing.assert_allclose(Q, expected.astype(np.float64), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(V, kept)


def test_action_values_leave_added_states_out() -> None:
    env = gym.make("CliffWalking-v1")
    V = np.random.default_rng(0).normal(size=48)
    Q = planners.q_values(env, V, 0.9)
    assert Q.shape == (48, 4)
    for s in range(48):
        for a in range(4):
            expected = sum(
                p * (-reward + (0.0 if done else 0.9 * V[t]))
                for p, t, reward, done in env.unwrapped.P[s][a]
            )
            assert Q[s, a] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("shape", [(29,), (31,), (30, 1), ()])
def test_values_of_another_shape(shape: tuple[int, ...]) -> None:
    for call in (planners.q_values, planners.greedy):
        with pytest.raises(ValueError, match=re.escape("must have shape (30,)")):
            call(MODELS["moves"], np.zeros(shape), 0.9)


@pytest.mark.parametrize("gamma", [1.1, -0.1, float("nan")])
def test_discounts_are_checked(gamma: float) -> None:
    for call in (planners.q_values, planners.greedy):
        with pytest.raises(ValueError, match="gamma"):
            call(MODELS["moves"], np.zeros(30), gamma)
    with pytest.raises(ValueError, match="gamma"):
        planners.evaluate(MODELS["table"], np.zeros(30, dtype=int), gamma)


# ---------------------------------------------------------------------------------------------
# Greedy.


@named
@pytest.mark.parametrize("slack", [0.0, 0.1, 1.0, 100.0, np.inf])
def test_greedy_is_that_of_plain_python(name: str, slack: float) -> None:
    model = MODELS[name]
    tables = dense(model)
    rng = np.random.default_rng(1)
    for _ in range(5):
        V = np.where(tables.terminal, 0.0, rng.normal(scale=3.0, size=model.num_states))
        policy = planners.greedy(model, V, 0.9, slack)
        Q = planners.q_values(model, V, 0.9)
        np.testing.assert_array_equal(policy, plain_greedy(tables, Q, slack))
        assert not policy[tables.terminal].any()
        inside = np.flatnonzero(~tables.terminal)
        assert tables.mask[inside, policy[inside]].all()


@settings(max_examples=200)
@given(
    model=models,
    gamma=gammas,
    slack=st.sampled_from([0.0, 0.0, 1e-9, 0.5, 2.0]),
    seed=st.integers(0, 100),
)
def test_greedy_on_any_small_model(model: Model, gamma: float, slack: float, seed: int) -> None:
    V = np.random.default_rng(seed).integers(-2, 3, size=model.num_states).astype(float)
    V[model.terminal] = 0.0
    policy = planners.greedy(model, V, gamma, slack)
    Q = planners.q_values(model, V, gamma)
    np.testing.assert_array_equal(policy, plain_greedy(dense(model), Q, slack))


@settings(max_examples=200)
@given(
    model=models,
    gamma=gammas,
    slack=st.sampled_from([0.0, 1e-9, 0.5, 2.0]),
    tie=st.sampled_from([0.0, 1e-9, 0.5]),
    seed=st.integers(0, 100),
)
def test_what_a_sweep_notes_is_the_policy(
    model: Model, gamma: float, slack: float, tie: float, seed: int
) -> None:
    V = np.random.default_rng(seed).integers(-2, 3, size=model.num_states).astype(float)
    V[model.terminal] = 0.0
    engine = local_engine(model, gamma)
    out, expected = np.empty_like(V), np.empty_like(V)
    sweep, reading = engine.read(V, out)
    assert sweep == engine.sweep(V, expected)
    np.testing.assert_array_equal(out, expected)
    policy = greedy_policy(engine, V, slack, tie)
    np.testing.assert_array_equal(greedy_policy(engine, V, slack, tie, reading), policy)
    assert (reading is None) == isinstance(model, MoveMDP)
    if reading is not None:
        Q = planners.q_values(model, V, gamma)
        np.testing.assert_array_equal(reading.actions, Q.argmin(axis=1))
        if Q.shape[1] > 1:
            margins = np.diff(np.sort(Q, axis=1)[:, :2], axis=1)[:, 0]
            inside = ~model.terminal
            assert (reading.margins <= margins)[inside & np.isfinite(margins)].all()
            rounding = 1e-11 * (1.0 + engine.max_cost)
            assert (reading.margins >= margins - rounding)[inside].all()


def test_without_slack_only_exact_ties_are_broken() -> None:
    model = chain_cost(6)
    V = np.zeros(6)
    np.testing.assert_array_equal(planners.greedy(model, V, 0.9), [0, 1, 1, 1, 1, 1])
    V[2] = 1e-12  # what lies beyond 2 would rather wait than enter it
    np.testing.assert_array_equal(planners.greedy(model, V, 0.9), [0, 1, 1, 0, 1, 1])
    np.testing.assert_array_equal(planners.greedy(model, V, 0.9, 1e-11), [0, 1, 1, 1, 1, 1])


def test_without_terminal_states_the_lowest_index() -> None:
    model = MoveMDP([[1, 0, 1], [0, 1, 0]], [[1.0, 1.0, 1.0], [2.0, 1.0, 1.5]])
    np.testing.assert_array_equal(planners.greedy(model, np.zeros(2), 0.9), [0, 1])
    np.testing.assert_array_equal(planners.greedy(model, np.zeros(2), 0.9, 0.5), [0, 1])
    np.testing.assert_array_equal(planners.greedy(model, np.zeros(2), 0.9, 1.0), [0, 0])


def test_expected_distance_decides_not_the_likeliest() -> None:
    # From 3: action 0 leads to 1 or 2 (expected 1.6), action 1 surely to 2 (2), action 2 waits.
    P = np.zeros((4, 3, 4))
    P[0, :, 0] = P[1, :, 0] = P[2, :, 1] = 1.0
    P[3, 0, [1, 2]] = 0.4, 0.6
    P[3, 1, 2] = 1.0
    P[3, 2, 3] = 1.0
    costs = np.zeros((4, 3))
    terminal = [True, False, False, False]
    model = TabularMDP.from_matrices(P[:, ::-1], costs=costs, terminal=terminal)
    np.testing.assert_array_equal(planners.greedy(model, np.zeros(4), 0.9), [0, 0, 0, 2])


def test_states_that_cannot_arrive_count_as_farthest() -> None:
    # From 2: action 0 leads into a trap for ever, action 1 to the end.
    P = np.zeros((3, 2, 3))
    P[0, :, 0] = P[1, :, 1] = P[2, 0, 1] = P[2, 1, 0] = 1.0
    model = TabularMDP.from_matrices(
        P, costs=[[0, 0], [1, 1], [0, 0]], terminal=[True, False, False]
    )
    np.testing.assert_array_equal(planners.greedy(model, np.zeros(3), 0.9), [0, 0, 1])


@named
@pytest.mark.parametrize("slack", [0.0, 0.01, 0.3, 2.0])
@pytest.mark.parametrize("gamma", [0.5, 0.95])
def test_the_loss_stays_within_the_slack(name: str, slack: float, gamma: float) -> None:
    tables = dense(MODELS[name])
    V, off = truth(tables, gamma)
    policy = planners.greedy(MODELS[name], V.astype(np.float64), gamma, slack)
    loss = value_of(tables, policy, gamma) - V
    assert loss.min() >= -1e-12
    assert loss.max() <= slack / (1 - gamma) + 1e-12 + off


def test_the_loss_of_a_solve_stays_within_its_certificate() -> None:
    for recipe in (StandardRecipe("depth_first"), TerrainRecipe()):
        layout = recipe.layout(Grid((8, 8)), np.random.default_rng(0))
        for p in (1.0, 0.9):
            model = maze_model(layout, recipe, p=p)
            tables = dense(model)
            V, _ = truth(tables, 0.95)
            for tol in (1e-2, 1e-4, 1e-6):
                result = planners.solve(model, gamma=0.95, tol=tol)
                loss = (value_of(tables, result.policy, 0.95) - V).max()
                assert loss <= result.policy_bound
                assert result.policy_bound <= 4 * result.bound + 1e-10


@pytest.mark.parametrize("slack", [-1e-9, -1.0, float("nan")])
def test_slack_must_not_be_negative(slack: float) -> None:
    with pytest.raises(ValueError, match="slack must not be negative"):
        planners.greedy(MODELS["moves"], np.zeros(30), 0.9, slack)


# ---------------------------------------------------------------------------------------------
# Exact evaluation.


def random_policies(tables: Dense, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    weights = np.where(tables.mask, rng.random(tables.mask.shape), 0.0)
    weights[tables.terminal, 0] = 1.0
    actions = np.where(tables.terminal, 0, weights.argmax(axis=1))
    # Some actions get no probability at all.
    weights = np.where((weights < 0.3) & (weights < weights.max(axis=1, keepdims=True)), 0, weights)
    return actions, weights / weights.sum(axis=1, keepdims=True)


@named
@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.95, 0.999])
def test_evaluation_against_a_linear_solve(name: str, gamma: float) -> None:
    model = MODELS[name]
    tables = dense(model)
    for seed in range(3):
        for policy in random_policies(tables, seed):
            V = value_of(tables, policy, gamma)
            found = planners.evaluate(model, policy, gamma)
            atol = 1e-14 / (1 - gamma) * max(1.0, float(np.abs(V).max()))
            np.testing.assert_allclose(found, V.astype(np.float64), rtol=0, atol=atol)


@named
def test_the_chain_of_a_policy(name: str) -> None:
    model = MODELS[name]
    tables = dense(model)
    states = np.arange(model.num_states)
    actions, weights = random_policies(tables, 7)
    for policy, P, costs in (
        (actions, tables.P[states, actions], tables.costs[states, actions]),
        (
            weights,
            np.einsum("sa,sat->st", weights, tables.P),
            np.einsum("sa,sa->s", weights, tables.costs),
        ),
    ):
        chain = policy_model(model, policy).validate()
        assert (chain.num_states, chain.num_actions) == (model.num_states, 1)
        P[tables.terminal] = np.eye(len(P))[tables.terminal]
        np.testing.assert_allclose(chain.transitions.toarray(), P, rtol=0, atol=1e-15)
        np.testing.assert_allclose(chain.costs[:, 0], costs, rtol=0, atol=1e-14)
        np.testing.assert_array_equal(chain.terminal, tables.terminal)
        np.testing.assert_array_equal(chain.initial, model.initial)


def test_evaluation_of_the_optimal_policy_is_the_optimum() -> None:
    for model in MODELS.values():
        result = planners.solve(model, gamma=0.9, tol=1e-11)
        V = planners.evaluate(model, result.policy, 0.9)
        assert np.abs(V - result.values).max() <= result.policy_bound + result.bound + 1e-12


def test_both_layouts_agree() -> None:
    model = MODELS["moves, p < 1/n"]
    for policy in random_policies(dense(model), 3):
        np.testing.assert_allclose(
            planners.evaluate(model, policy, 0.95),
            planners.evaluate(model.to_tabular(), policy, 0.95),
            rtol=0,
            atol=1e-12,
        )


def test_lists_will_do() -> None:
    model = MoveMDP([[1, 0], [1, 1]], [[3.0, 1.0], [np.inf, np.inf]])
    assert planners.evaluate(model, [0, 0], 0.5).tolist() == [3.0, 0.0]
    assert planners.evaluate(model, [1, 1], 0.5)[0] == pytest.approx(2.0, abs=1e-14)
    V = planners.evaluate(model, [[0.5, 0.5], [1.0, 0.0]], 0.5)
    assert V[0] == pytest.approx(2.0 / 0.75, abs=1e-14)
    assert planners.evaluate(model, [[1, 0], [1, 0]], 0.5).tolist() == [3.0, 0.0]


def test_evaluation_on_models_with_added_states() -> None:
    env = gym.make("CliffWalking-v1")
    rng = np.random.default_rng(0)
    for policy in (
        rng.integers(4, size=48),
        rng.dirichlet(np.ones(4), size=48),
        np.full((48, 4), 0.25),
    ):
        weights = np.eye(4)[policy] if policy.ndim == 1 else policy
        matrix, costs = np.eye(48), np.zeros(48)
        for s in range(48):
            for a in range(4):
                for p, t, reward, done in env.unwrapped.P[s][a]:
                    costs[s] -= weights[s, a] * p * reward
                    if not done:
                        matrix[s, t] -= 0.95 * weights[s, a] * p
        V = planners.evaluate(env, policy, 0.95)
        assert V.shape == (48,)
        expected = np.linalg.solve(matrix, costs)
        np.testing.assert_allclose(V, expected, rtol=0, atol=1e-13 * np.abs(expected).max())
        # With the added state spelled out it is the same.
        longer = np.concatenate([policy, policy[:1]])
        np.testing.assert_array_equal(planners.evaluate(env, longer, 0.95), V)


def test_unavailable_actions_stay_and_pay_where_they_are_allowed() -> None:
    # The largest cost of a move is 1: to stay for ever in state 0 costs 1 / (1 - .9).
    for model in (WALK, WALK.to_tabular()):
        V = planners.evaluate(model, [1, 0, 0], 0.9, allow_unavailable=True)
        np.testing.assert_allclose(V, [10.0, 1.0, 0.0], atol=1e-12)
        mixed = [[0.5, 0.5, 0], [1, 0, 0], [0, 0, 1]]
        V = planners.evaluate(model, mixed, 0.9, allow_unavailable=True)
        # V0 = 1 + .9 (V1 + V0) / 2, and V1 = 1.
        np.testing.assert_allclose(V, [1.45 / 0.55, 1.0, 0.0], atol=1e-12)
        allowed = planners.evaluate(model, [0, 0, 0], 0.9, allow_unavailable=True)
        np.testing.assert_array_equal(allowed, planners.evaluate(model, [0, 0, 0], 0.9))


# ---------------------------------------------------------------------------------------------
# Errors.

WALK = MoveMDP(
    [[1, 0, 0], [2, 0, 1], [0, 0, 0]], [[1.0, np.inf, 1.0], [1.0, 1.0, 1.0], [np.inf] * 3]
)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([1, 0, 0], "action 1 in state 0, which is unavailable"),
        ([0, 3, 0], "policy[1] = 3 is not an action in [0, 3)"),
        ([0, -1, 0], "policy[1] = -1 is not an action in [0, 3)"),
        ([0.0, 1.0, 0.0], "integer actions"),
        ([True, False, False], "integer actions"),
        ([0, 0], "policy must have shape (3,) or (3, 3), got (2,)"),
        ([0, 0, 0, 0], "got (4,)"),
        (0, "got ()"),
        (np.zeros((3, 2)), "got (3, 2)"),
        (np.zeros((3, 3, 1), dtype=int), "got (3, 3, 1)"),
        ([[0.5, 0.5, 0], [1, 0, 0], [1, 0, 0]], "action 1 in state 0, which is unavailable"),
        ([[1, 0, 0], [0.5, 0.4, 0], [1, 0, 0]], "policy[1]"),
        ([[1, 0, 0], [1.5, -0.5, 0], [1, 0, 0]], "policy[1]"),
        ([[1, 0, 0], [1, 0, 0], [np.nan, 1, 0]], "policy[2]"),
        ([[1, 0, 0], [np.inf, 0, 0], [1, 0, 0]], "policy[1]"),
        ([[1, 0, 0], [0, 0, 0], [1, 0, 0]], "policy[1]"),
    ],
)
def test_policies_that_do_not_fit(policy: Any, message: str) -> None:
    for model in (WALK, WALK.to_tabular()):
        with pytest.raises(ValueError, match=re.escape(message)):
            planners.evaluate(model, policy, 0.9)
        with pytest.raises(ValueError, match=re.escape(message)):
            planners.arrival(model, policy)


# ---------------------------------------------------------------------------------------------
# Masked entries.


def masked_model(price: float, *, leads: int = 0, by_outcome: bool = False) -> TabularMDP:
    """State 0: action 0 stays at cost 1, action 1 is masked; state 1 stays at cost 2."""
    P = np.zeros((4, 2))
    P[0, 0] = P[2, 1] = P[3, 1] = P[1, leads] = 1.0
    return TabularMDP(
        sp.csr_array(P),
        [[1.0, price], [2.0, 2.0]],
        action_mask=[[True, False], [True, True]],
        outcome_costs=[1.0, price, 2.0, 2.0] if by_outcome else None,
    )


@pytest.mark.parametrize("by_outcome", [False, True])
@pytest.mark.parametrize("leads", [0, 1])
@pytest.mark.parametrize("price", [np.inf, np.nan, -np.inf])
def test_masked_entries_are_not_read(price: float, leads: int, by_outcome: bool) -> None:
    model = masked_model(price, leads=leads, by_outcome=by_outcome)
    # To stay in place costs the largest cost, 2, a step: 2 / (1 - .9); state 1 as well.
    V = planners.evaluate(model, [1, 0], 0.9, allow_unavailable=True)
    np.testing.assert_allclose(V, [20.0, 20.0], rtol=1e-14)
    V = planners.evaluate(model, [[0.5, 0.5], [1, 0]], 0.9, allow_unavailable=True)
    np.testing.assert_allclose(V, [15.0, 20.0], rtol=1e-14)
    for policy in ([0, 0], [[1.0, 0.0], [0.3, 0.7]]):
        V = planners.evaluate(model, policy, 0.9)
        np.testing.assert_allclose(V, [10.0, 20.0], rtol=1e-14)
    with pytest.raises(ValueError, match="action 1 in state 0, which is unavailable"):
        planners.evaluate(model, [1, 0], 0.9)


def test_a_masked_step_in_place_pays_what_the_model_has_for_it() -> None:
    V = planners.evaluate(masked_model(5.0), [1, 0], 0.9, allow_unavailable=True)
    np.testing.assert_allclose(V, [50.0, 20.0], rtol=1e-14)


def test_a_masked_action_never_leads_elsewhere() -> None:
    V = planners.evaluate(masked_model(5.0, leads=1), [1, 0], 0.9, allow_unavailable=True)
    np.testing.assert_allclose(V, [20.0, 20.0], rtol=1e-14)


@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_evaluate_takes_what_solve_returns(gamma: float) -> None:
    # Action 0 of the terminal state 1 is masked.
    model = TabularMDP(
        sp.csr_array(np.array([[0, 1.0], [1.0, 0], [0, 1.0], [0, 1.0]])),
        [[3.0, 1.0], [0.0, 0.0]],
        action_mask=[[True, True], [False, True]],
    )
    result = planners.solve(model, gamma=gamma)
    expected = min(3.0, 1.0 / (1.0 - gamma))
    for policy in (result, result.policy):
        V = planners.evaluate(model, policy, gamma)
        np.testing.assert_allclose(V, [expected, 0.0], rtol=1e-14)
    # A probability of it does not count either.
    V = planners.evaluate(model, [[1.0, 0.0], [0.5, 0.5]], gamma)
    np.testing.assert_allclose(V, [3.0, 0.0], rtol=1e-14)


@pytest.mark.parametrize("name", list(MODELS))
def test_everything_takes_what_solve_returns(name: str) -> None:
    model = MODELS[name]
    result = planners.solve(model, gamma=0.9)
    planners.evaluate(model, result, 0.9)
    planners.arrival(model, result)
    planners.rollout(model, result, episodes=2, max_steps=5)
    greedy_path(model, result.policy, 0)


@pytest.mark.parametrize("bound", [np.inf, np.nan])
def test_an_evaluation_that_failed_is_not_passed_on(
    bound: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def give_up(equations: ChainEquations, costs: np.ndarray) -> Solution:
        return Solution(np.zeros_like(costs), -1.0, 1.0, 0.0)

    def fail(*args: Any, **named: Any) -> Any:
        return replace(iterate(*args, **named), bound=bound, message="it broke down")

    def stay(equations: PolicyEquations, V: np.ndarray) -> Refinement:
        return Refinement(1.0, 1, exact=False)

    # As in a model too large for elimination, and too much for the linear solvers.
    monkeypatch.setattr(planners.evaluation, "MOST_STATES", 0)
    monkeypatch.setattr(PolicyEquations, "refine", stay)
    monkeypatch.setattr(ChainEquations, "solve", give_up)
    monkeypatch.setattr(planners.evaluation, "iterate", fail)
    with pytest.raises(FloatingPointError, match="could not be evaluated: it broke down"):
        planners.evaluate(MODELS["table"], np.zeros(30, dtype=int), 0.9)


# ---------------------------------------------------------------------------------------------
# Variances.


@pytest.mark.parametrize("seed", range(3))
def test_variances_of_a_step(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for model in (random_moves(seed, 9, 3, p=0.7), random_moves(seed, 9, 3, p=0.7).to_tabular()):
        tables = dense(model)
        for policy in random_policies(tables, seed):
            weights = np.eye(3)[policy] if policy.ndim == 1 else policy
            V = rng.standard_normal(9)
            V[tables.terminal] = 0.0
            P = model.to_gym_P()
            found = StepVariances(model, policy, V, 0.9)
            for s in np.flatnonzero(~tables.terminal):
                expected = sum(
                    weights[s, a] * p * (-reward + 0.9 * V[t] - V[s]) ** 2
                    for a in range(3)
                    for p, t, reward, _ in P[s][a]
                )
                assert found[s] == pytest.approx(expected, rel=1e-12)
