"""The solver against truth found in other ways: closed forms, all policies, fractions, an LP."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

import planners
from aggmaze import MoveMDP, TabularMDP
from aggmaze.grid import Grid
from aggmaze.recipes import StandardRecipe, maze_model
from tests.planners.reference import (
    PLAIN_METHODS,
    Array,
    Dense,
    Exact,
    Model,
    all_policies,
    dense,
    exact_error,
    gammas,
    methods_for,
    models,
    random_moves,
    random_tabular,
    truth,
    value_of,
    within,
)


def check(result: planners.SolveResult, tables: Dense, gamma: float, V: Array, off: float) -> None:
    """Values within the bound of V* on both sides, the policy within its own."""
    listed = len(result.values)
    assert result.bound >= 0
    assert np.abs(result.values - V[:listed]).max() <= result.bound + off
    policy = np.zeros(tables.num_states, dtype=np.int64)
    policy[:listed] = result.policy
    inside = ~tables.terminal
    assert tables.mask[inside, policy[inside]].all()
    assert (value_of(tables, policy, gamma) - V).max() <= result.policy_bound + 2 * off


def check_every(model: Model, gamma: float, V: Array, off: float, **options: Any) -> None:
    """Check the bound of every iteration of both methods, as their callbacks see it."""
    gaps = []

    def watch(progress: planners.Progress) -> None:
        assert np.abs(V - progress.values).max() <= progress.bound + off
        gaps.append(progress.bound)

    result = planners.solve(model, gamma=gamma, certify="every", callback=watch, **options)
    assert len(gaps) == result.num_iterations
    np.testing.assert_array_equal(result.history.bound, gaps)
    assert np.abs(result.values - V).max() <= result.bound + off


# ---------------------------------------------------------------------------------------------
# Closed form: a perfect maze without slip has one path to the goal.


def depths(passages: NDArray[np.bool_], grid: Grid) -> NDArray[np.int64]:
    """Breadth first from position 0, over the passages alone."""
    neighbours: list[list[int]] = [[] for _ in range(grid.num_states)]
    for s, axis in np.argwhere(passages):
        t = s + grid.strides[axis]
        neighbours[s].append(t)
        neighbours[t].append(s)
    found = np.full(grid.num_states, -1)
    found[0] = 0
    queue = [0]
    for s in queue:
        for t in neighbours[s]:
            if found[t] < 0:
                found[t] = found[s] + 1
                queue.append(t)
    assert (found >= 0).all()
    return found


def closed_form(
    depth: NDArray[np.int64], gamma: float, step_cost: float = 1.0, goal_reward: float = 1.0
) -> NDArray[np.longdouble]:
    """V*(d) = sum of step_cost gamma^i over i < d - 1, less goal_reward gamma^(d-1)."""
    by_depth = [np.longdouble(0), np.longdouble(-goal_reward)]
    for _ in range(2, depth.max() + 1):
        by_depth.append(np.longdouble(step_cost) + np.longdouble(gamma) * by_depth[-1])
    return np.array(by_depth)[depth]


@pytest.mark.parametrize("generator", ["kruskal", "depth_first"])
@pytest.mark.parametrize("shape", [(20, 20), (7, 31), (2, 1), (5, 6, 7), (3, 2, 3, 2, 3), (40,)])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.95, 0.999])
def test_perfect_mazes_have_their_closed_form(
    generator: str, shape: tuple[int, ...], gamma: float
) -> None:
    grid = Grid(shape)
    recipe = StandardRecipe(generator)
    for seed in range(3):
        layout = recipe.layout(grid, np.random.default_rng(seed))
        depth = depths(layout.passages, grid)
        V = closed_form(depth, gamma)
        result = planners.solve(maze_model(layout, recipe), gamma=gamma)
        assert result.status == "converged"
        assert result.bound <= 1e-6 * np.abs(V).max() * (1 + 1e-6)
        assert np.abs(result.values - V).max() <= result.bound


@pytest.mark.parametrize(("step_cost", "goal_reward"), [(1.0, 10.0), (0.25, 0.0), (3.0, -2.0)])
def test_perfect_mazes_with_other_costs(step_cost: float, goal_reward: float) -> None:
    grid = Grid((15, 15))
    recipe = StandardRecipe(step_cost=step_cost, goal_reward=goal_reward)
    layout = recipe.layout(grid, np.random.default_rng(5))
    V = closed_form(depths(layout.passages, grid), 0.95, step_cost, goal_reward)
    result = planners.solve(maze_model(layout, recipe), gamma=0.95, tol=1e-9)
    assert np.abs(result.values - V).max() <= result.bound <= 1e-8 * np.abs(V).max()
    scaled = maze_model(layout, recipe, cost_scale=7.0)
    result = planners.solve(scaled, gamma=0.95, tol=1e-9)
    assert np.abs(result.values - 7 * V).max() <= result.bound <= 1e-7 * np.abs(V).max()


# ---------------------------------------------------------------------------------------------
# All policies.


def small_models() -> list[Model]:
    found: list[Model] = []
    for seed in range(4):
        for size, actions, terminals in ((1, 3, 0), (3, 2, 0), (4, 3, 1), (5, 3, 0), (5, 3, 2)):
            found.append(random_tabular(seed, size, actions, terminals=terminals))
        for p in (1.0, 0.9, 0.4, 0.2):  # the last two are below 1/n for two and three moves
            found.append(random_moves(seed, 5, 3, p=p))
            found.append(random_moves(seed, 4, 3, p=p, terminals=0))
    return found


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9, 0.99])
def test_no_policy_is_better(gamma: float) -> None:
    for model in small_models():
        tables = dense(model)
        V = np.min([value_of(tables, policy, gamma) for policy in all_policies(tables)], axis=0)
        off = 1e-16 * float(np.abs(V).max())
        for tol in (1e-3, 1e-6, 1e-10):
            result = planners.solve(model, gamma=gamma, tol=tol)
            assert result.status == "converged"
            assert result.bound <= tol * np.abs(V).max() * (1 + 1e-3)
            check(result, tables, gamma, V, off)
        for method in methods_for(model):
            check_every(model, gamma, V, off, method=method, num_iterations=60)
        options = {"method": "adaptive_aggregation", "epsilon": 0.1, "step_index": "phase"}
        check_every(model, gamma, V, off, num_iterations=60, num_global=1, **options)
        result = planners.solve(model, gamma=gamma, num_iterations=75, **options)
        check(result, tables, gamma, V, off)


@pytest.mark.parametrize("num_iterations", [1, 2, 3, 5, 8, 20])
def test_the_bound_of_every_stop_holds(num_iterations: int) -> None:
    for model in small_models():
        tables = dense(model)
        V, off = truth(tables, 0.9)
        for method in methods_for(model):
            for V0 in (None, np.full(model.num_states, 50.0), np.arange(model.num_states) * -9.0):
                result = planners.solve(
                    model, gamma=0.9, method=method, num_iterations=num_iterations, V0=V0
                )
                check(result, tables, 0.9, V, off)


# ---------------------------------------------------------------------------------------------
# Fractions: not a rounding is forgiven.


@settings(max_examples=300)
@given(
    model=models,
    gamma=gammas,
    data=st.data(),
    num_iterations=st.integers(1, 40) | st.integers(1, 2000),
    start=st.sampled_from([None, 0.0, 3.0, -1e6, 1e6]),
)
def test_the_certificate_is_exact(
    model: Model, gamma: float, data: st.DataObject, num_iterations: int, start: float | None
) -> None:
    method = data.draw(st.sampled_from(methods_for(model)))
    exact = Exact(model, gamma)
    V = exact.optimum()
    V0 = None if start is None else np.linspace(0, start, model.num_states)
    result = planners.solve(model, gamma=gamma, method=method, num_iterations=num_iterations, V0=V0)
    assert within(exact_error(result.values, V), result.bound)
    achieved = exact.value([int(a) for a in result.policy])
    loss = max(x - y for x, y in zip(achieved, V, strict=True))
    assert within(loss, result.policy_bound)
    assert not result.values[model.terminal].any() or method == "adaptive_aggregation"


@settings(max_examples=150)
@given(model=models, gamma=gammas, epsilon=st.sampled_from([1e-3, 0.5, 20.0]), data=st.data())
def test_the_certificate_of_every_iteration_is_exact(
    model: Model, gamma: float, epsilon: float, data: st.DataObject
) -> None:
    V = Exact(model, gamma).optimum()
    options = {
        "num_global": data.draw(st.integers(0, 3)),
        "num_aggregated": data.draw(st.integers(1, 4)),
        "step_index": data.draw(st.sampled_from(["total", "phase"])),
    }

    def watch(progress: planners.Progress) -> None:
        assert within(exact_error(progress.values, V), progress.bound)

    planners.solve(
        model,
        gamma=gamma,
        method="adaptive_aggregation",
        epsilon=epsilon * max(1.0, float(max(map(abs, V)))),
        num_iterations=25,
        certify="every",
        callback=watch,
        **options,
    )


@settings(max_examples=150)
@given(
    model=models,
    # From 1e9 down to V* = 0, near which nothing is relative, is a long way at .999.
    gamma=st.sampled_from([0.0, 0.5, 0.9, 0.99]),
    tol=st.sampled_from([0.1, 1e-3, 1e-6, 1e-10]),
    start=st.sampled_from([None, 3.0, 1e9, -1e9]),
)
def test_converged_means_within_the_tolerance(
    model: Model, gamma: float, tol: float, start: float | None
) -> None:
    V = Exact(model, gamma).optimum()
    V0 = None if start is None else np.full(model.num_states, start)
    result = planners.solve(model, gamma=gamma, tol=tol, V0=V0)
    assert within(exact_error(result.values, V), result.bound)
    assert result.status in ("converged", "stopped_short")
    if result.status == "converged":
        assert result.bound <= tol * (np.abs(result.values).max() + result.bound)


@pytest.mark.parametrize("start", [1e9, -1e9])
def test_a_bad_start_does_not_loosen_the_tolerance(start: float) -> None:
    model = random_tabular(0, 20, 3, terminals=0)
    result = planners.solve(model, gamma=0.9, V0=np.full(20, start))
    assert result.status == "converged"
    assert result.bound <= 1e-6 * (np.abs(result.values).max() + result.bound)


@pytest.mark.parametrize("gamma", [0.3, 0.9, 0.99])
@pytest.mark.parametrize("start", [1e9, -1e9])
def test_the_bound_holds_where_floats_underflow(gamma: float, start: float) -> None:
    # V* = 0: no bound is small beside it, and V goes down to the smallest numbers there are.
    for seed in range(3):
        model = random_tabular(seed, 5, 3)
        model = TabularMDP(
            model.transitions,
            0.0 * model.costs,
            action_mask=model.action_mask,
            terminal=model.terminal,
        )
        result = planners.solve(model, gamma=gamma, V0=np.full(5, start))
        assert np.abs(result.values).max() <= result.bound <= 1e-100


@pytest.mark.parametrize("gamma", [1 - 1e-9, 1 - 1e-12, 1 - 1e-15, float(np.nextafter(1, 0))])
def test_discounts_next_to_1_give_honest_bounds(gamma: float) -> None:
    for model in (
        random_tabular(3, 4, 3, terminals=0),
        random_tabular(2, 5, 2),
        random_moves(1, 4, 3, p=0.8, terminals=0),
    ):
        V = Exact(model, gamma).optimum()
        for method in methods_for(model):
            result = planners.solve(model, gamma=gamma, method=method, num_iterations=30)
            assert within(exact_error(result.values, V), result.bound)
        with pytest.raises(ValueError, match="below what float64 can certify") as error:
            planners.solve(model, gamma=gamma, tol=1e-8)
        smallest = float(str(error.value).split("possible is ")[1].split()[0])
        assert smallest > 1e-8


@pytest.mark.parametrize("gamma", [0.9, 0.999999, 1 - 1e-9, 1 - 5e-10, 1 - 1e-10])
def test_rows_that_miss_1_are_allowed_for(gamma: float) -> None:
    P = np.array([[[0.1, 0.2, 0.7]], [[0.3, 0.3, 0.4]], [[1 / 3, 1 / 3, 1 / 3]]])
    costs = np.array([[1.0], [2.0], [3.0]])
    exact = TabularMDP.from_matrices(P, costs=costs)
    V = Exact(exact, gamma).optimum()
    for factor in (1 + 9e-10, 1 - 9e-10):
        model = TabularMDP.from_matrices(P * factor, costs=costs)
        for method in methods_for(model):
            result = planners.solve(model, gamma=gamma, method=method, num_iterations=100)
            # The bound covers the model with the rows that were meant.
            assert within(exact_error(result.values, V), result.bound)
    assert planners.solve(model, gamma=0.9, tol=1e-6).status == "converged"
    with pytest.raises(ValueError, match="below what float64 can certify"):
        planners.solve(model, gamma=0.9, tol=1e-9)


# ---------------------------------------------------------------------------------------------
# A linear program: V* is the largest V with V <= c + gamma P V.


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("gamma", [0.5, 0.95])
def test_linear_program(seed: int, gamma: float) -> None:
    size, actions = 200, 4
    model = random_tabular(seed, size, actions, terminals=2, successors=6)
    tables = dense(model)
    rows, right = [], []
    for s, a in np.argwhere(tables.mask):
        row = -gamma * tables.P[s, a]
        row[s] += 1.0
        rows.append(row)
        right.append(tables.costs[s, a])
    bounds = [(0, 0) if terminal else (None, None) for terminal in tables.terminal]
    program = linprog(
        -np.ones(size), A_ub=sp.csr_array(np.array(rows)), b_ub=right, bounds=bounds, method="highs"
    )
    assert program.status == 0
    # HiGHS meets constraints within 1e-7.
    result = planners.solve(model, gamma=gamma, tol=1e-9)
    np.testing.assert_allclose(result.values, program.x, rtol=0, atol=1e-6 / (1 - gamma))
    # The policy of its active constraints is optimal, and its value is known well.
    slack = np.full(tables.mask.shape, np.inf)
    slack[tables.mask] = program.slack
    V = value_of(tables, slack.argmin(axis=1), gamma)
    np.testing.assert_allclose(V.astype(np.float64), program.x, rtol=0, atol=1e-6 / (1 - gamma))
    check(result, tables, gamma, V, 1e-15 * float(np.abs(V).max()))
    check_every(model, gamma, V, 1e-15, method="value_iteration", num_iterations=50)
    check_every(
        model, gamma, V, 1e-15, method="adaptive_aggregation", epsilon=0.05, num_iterations=50
    )


@pytest.mark.parametrize("p", [1.0, 0.7, 0.2])
def test_larger_models_of_moves(p: float) -> None:
    model = random_moves(4, 150, 4, p=p, terminals=3)
    tables = dense(model)
    for gamma in (0.9, 0.99):
        V, off = truth(tables, gamma)
        assert off <= 1e-15 * np.abs(V).max() / (1 - gamma)
        check(planners.solve(model, gamma=gamma), tables, gamma, V, off)
        for method in methods_for(model):
            check_every(model, gamma, V, off, method=method, num_iterations=100)


# ---------------------------------------------------------------------------------------------
# Gymnasium's own tables.


def gym_policy_iteration(P: Any, gamma: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Plain policy iteration for costs on env.P; after `terminated` nothing more is paid."""
    size, actions = len(P), len(P[0])
    following = np.zeros((size, actions, size))
    costs = np.zeros((size, actions))
    for s in range(size):
        for a in range(actions):
            for probability, t, reward, terminated in P[s][a]:
                costs[s, a] -= probability * reward
                if not terminated:
                    following[s, a, t] += probability
    states = np.arange(size)
    policy = np.zeros(size, dtype=np.int64)
    for _ in range(1000):
        V = np.linalg.solve(np.eye(size) - gamma * following[states, policy], costs[states, policy])
        Q = costs + gamma * following @ V
        better = Q.min(axis=1) < Q[states, policy] - 1e-11 * max(1.0, np.abs(V).max())
        if not better.any():
            return V, policy
        policy[better] = Q[better].argmin(axis=1)
    raise AssertionError("policy iteration does not end")


ENVS = [
    ("FrozenLake-v1", {}),
    ("FrozenLake-v1", {"is_slippery": False}),
    ("FrozenLake-v1", {"map_name": "8x8"}),
    ("CliffWalking-v1", {}),
    ("CliffWalking-v1", {"is_slippery": True}),
    ("Taxi-v4", {}),
    ("Taxi-v4", {"is_rainy": True}),
]


@pytest.mark.parametrize(("name", "options"), ENVS)
@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99])
def test_gymnasium_environments(name: str, options: dict[str, Any], gamma: float) -> None:
    env = gym.make(name, **options)
    V, _ = gym_policy_iteration(env.unwrapped.P, gamma)
    off = 1e-12 * max(1.0, np.abs(V).max())
    result = planners.solve(env, gamma=gamma)
    assert result.status == "converged"
    assert result.values.shape == result.policy.shape == V.shape
    assert np.abs(result.values - V).max() <= result.bound + off
    assert result.bound <= 1e-6 * (np.abs(V).max() + result.bound)
    value = planners.evaluate(env, result.policy, gamma)
    assert (value - V).max() <= result.policy_bound + off

    def watch(progress: planners.Progress) -> None:
        assert np.abs(progress.values[: len(V)] - V).max() <= progress.bound + off

    planners.solve(
        env,
        gamma=gamma,
        method="adaptive_aggregation",
        certify="every",
        num_iterations=100,
        epsilon=0.05,
        callback=watch,
    )


def absorption(env: gym.Env[Any, Any], policy: NDArray[np.int64]) -> NDArray[np.float64]:
    """The probability of ever being paid 1 under a policy, by a linear solve."""
    P = env.unwrapped.P
    size = len(P)
    matrix, right = np.eye(size), np.zeros(size)
    for s in range(size):
        for probability, t, reward, terminated in P[s][int(policy[s])]:
            right[s] += probability * reward
            if not terminated:
                matrix[s, t] -= probability
    return np.linalg.solve(matrix, right)


def test_frozen_lake_is_crossed_with_probability_14_of_17() -> None:
    env = gym.make("FrozenLake-v1")
    previous = 1.0
    for exponent in range(2, 7):
        gamma = 1 - 10.0**-exponent
        result = planners.solve(env, gamma=gamma)
        assert result.status == "converged"
        success = -result.values[0]
        gap = 14 / 17 - success
        # Discounting costs about 0.82 * (1 - gamma) for each of some 50 steps.
        assert 0 < gap < 60 * (1 - gamma) + result.bound
        assert gap < previous
        previous = gap
        assert absorption(env, result.policy)[0] <= 14 / 17 + 1e-12
    assert absorption(env, result.policy)[0] == pytest.approx(14 / 17, abs=1e-12)
    assert success == pytest.approx(14 / 17, abs=1e-4)


def test_frozen_lake_without_ice_is_a_walk_of_six() -> None:
    env = gym.make("FrozenLake-v1", is_slippery=False)
    result = planners.solve(env, gamma=0.9)
    assert abs(result.values[0] + 0.9**5) <= result.bound
    np.testing.assert_array_equal(absorption(env, result.policy)[0], 1.0)


# ---------------------------------------------------------------------------------------------
# Both layouts.


@pytest.mark.parametrize("method", PLAIN_METHODS)
def test_both_layouts_agree(method: str) -> None:
    for p in (1.0, 0.8, 0.15):
        model = random_moves(11, 30, 4, p=p)
        table = model.to_tabular()
        assert isinstance(model, MoveMDP)
        first, second = (
            planners.solve(m, gamma=0.95, method=method, num_iterations=100) for m in (model, table)
        )
        np.testing.assert_allclose(first.values, second.values, rtol=0, atol=1e-12)
