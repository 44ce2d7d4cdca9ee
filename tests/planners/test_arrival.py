"""The agent arrives, from every cell of the mazes it should; and `arrival` itself."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.sparse.linalg import spsolve

import aggmaze
import planners
from aggmaze import MoveMDP, TabularMDP
from aggmaze.grid import Grid
from aggmaze.progress import listening
from aggmaze.recipes import Recipe, StandardRecipe, TerrainRecipe, maze_model
from planners.arrival import describe_arrival
from planners.policies import greedy_path, policy_model, steps_to_terminal
from tests.planners.reference import random_moves

assert aggmaze.ENV_IDS  # registers the mazes

Array = NDArray[Any]
SEEDS = range(50)
MAZES: list[tuple[Recipe, int, float]] = [
    (StandardRecipe("kruskal"), 20, 0.95),
    (StandardRecipe("depth_first"), 20, 0.95),
    (StandardRecipe("kruskal"), 50, 0.95),
    (StandardRecipe("depth_first"), 50, 0.95),
    (TerrainRecipe("smooth"), 20, 0.95),
    (TerrainRecipe("uniform"), 20, 0.95),
    (TerrainRecipe("smooth"), 50, 0.99),
    (TerrainRecipe("uniform"), 50, 0.99),
    (TerrainRecipe("smooth"), 100, 0.99),
    (TerrainRecipe("uniform"), 100, 0.99),
]


def maze_name(maze: tuple[Recipe, int, float]) -> str:
    recipe, size, _ = maze
    kind = recipe.generator if isinstance(recipe, StandardRecipe) else recipe.terrain  # type: ignore[attr-defined]
    return f"{kind}-{size}x{size}"


def chosen_moves(model: MoveMDP, policy: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Where the chosen move leads; terminal states keep to themselves."""
    states = np.arange(model.num_states)
    return np.where(model.terminal, states, model.successors[states, policy])


@pytest.mark.parametrize("p", [1.0, 0.95, 0.9])
@pytest.mark.parametrize("maze", MAZES, ids=maze_name)
def test_the_agent_arrives(maze: tuple[Recipe, int, float], p: float) -> None:
    recipe, size, gamma = maze
    failing: dict[int, str] = {}
    for seed in SEEDS:
        layout = recipe.layout(Grid((size, size)), np.random.default_rng(seed))
        model = maze_model(layout, recipe, p=p)
        result = planners.solve(model, gamma=gamma)
        found = planners.arrival(model, result)
        # With slip any policy gets there some day; this one heads for the goal: its chosen moves,
        # if they all happen, lead there too.
        following = chosen_moves(model, result.policy)
        for _ in range(12):  # 2**12 steps
            following = following[following]
        lost = np.flatnonzero(~found.arrives | ~model.terminal[following])
        if len(lost) or result.status != "converged":
            failing[seed] = f"{result.status}, {len(lost)} cells, first {lost[:5]}"
            continue
        assert found.share_of_states == found.share_of_starts == 1.0
        assert found.attractors == ()
        distance = steps_to_terminal(model)
        assert found.farthest == distance.max()
        assert found.expected_steps is not None
        assert found.expected_steps_exact
        start = distance[-1]
        if p == 1.0:
            # The fewest steps in a perfect maze, or a detour around hills.
            assert (
                start <= found.expected_steps <= (1.0 if recipe_is_perfect(recipe) else 2) * start
            )
        else:
            assert start <= found.expected_steps <= 2 * start
    assert not failing


def recipe_is_perfect(recipe: Recipe) -> bool:
    return isinstance(recipe, StandardRecipe)


@pytest.mark.parametrize("terrain", ["smooth", "uniform"])
@pytest.mark.parametrize("seed", range(3))
def test_a_goal_too_far_for_gamma_is_not_reached(terrain: str, seed: int) -> None:
    recipe = TerrainRecipe(terrain)
    layout = recipe.layout(Grid((100, 100)), np.random.default_rng(seed))
    model = maze_model(layout, recipe)
    result = planners.solve(model, gamma=0.95)
    found = planners.arrival(model, result)
    assert 0.1 < found.share_of_states < 0.7
    assert not found.arrives[-1]
    assert found.share_of_starts == 0.0
    assert found.expected_steps is None
    assert found.farthest == 198
    shares = [place.share_of_states for place in found.attractors]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) + found.share_of_states == pytest.approx(1.0, abs=1e-12)
    following = chosen_moves(model, result.policy)
    for place in found.attractors:
        # Nothing leads out, and all of it is one cycle.
        walk, state = [], int(place.states[0])
        while state not in walk:
            walk.append(state)
            state = int(following[state])
        assert sorted(walk) == place.states.tolist()
        assert not found.arrives[place.states].any()
        assert not model.terminal[place.states].any()
    text = describe_arrival(found, 0.95)
    assert "settles in" in text
    assert "try gamma" in text


# ---------------------------------------------------------------------------------------------
# By hand.


def chain(
    rows: list[dict[int, float]], initial: list[float] | None = None
) -> tuple[TabularMDP, list[int]]:
    """A model of one action from the outcomes of each state; an empty one is terminal."""
    size = len(rows)
    P, costs = np.zeros((size, 1, size)), np.ones((size, 1))
    for s, row in enumerate(rows):
        for t, probability in (row or {s: 1.0}).items():
            P[s, 0, t] = probability
        costs[s] = float(bool(row))
    terminal = [not row for row in rows]
    model = TabularMDP.from_matrices(P, costs=costs, terminal=terminal, initial=initial)
    return model, [0] * size


def places(found: planners.Arrival) -> list[tuple[list[int], float]]:
    return [(place.states.tolist(), place.share_of_states) for place in found.attractors]


def test_a_line_to_the_end() -> None:
    found = planners.arrival(*chain([{}, {0: 1}, {1: 1}, {2: 1}]))
    assert found.arrives.tolist() == [True] * 4
    assert found.share_of_states == found.share_of_starts == 1.0
    assert found.expected_steps == 2.0  # the mean of 1, 2 and 3
    assert found.attractors == ()
    assert found.farthest == 3


def test_two_traps_and_an_end() -> None:
    # 0 ends; 1 -> 0; 2 <-> 3; 4 -> 3; 5 -> 4; 6 stays; 7 -> 6 or 0.
    rows = [{}, {0: 1.0}, {3: 1.0}, {2: 1.0}, {3: 1.0}, {4: 1.0}, {6: 1.0}, {6: 0.5, 0: 0.5}]
    model, policy = chain(rows, initial=[0, 0.25, 0, 0, 0, 0.5, 0, 0.25])
    found = planners.arrival(model, policy)
    assert found.arrives.tolist() == [True, True, False, False, False, False, False, False]
    assert found.share_of_states == 1 / 7
    assert found.share_of_starts == 0.25
    assert found.expected_steps == 1.0
    assert places(found) == [([2, 3], 4 / 7), ([6], 2 / 7)]
    assert found.farthest == 1


def test_nowhere_to_arrive() -> None:
    found = planners.arrival(*chain([{1: 1.0}, {2: 1.0}, {1: 1.0}, {3: 1.0}]))
    assert not found.arrives.any()
    assert found.share_of_states == found.share_of_starts == 0.0
    assert found.expected_steps is None
    assert places(found) == [([1, 2], 3 / 4), ([3], 1 / 4)]
    assert found.farthest == 0
    assert describe_arrival(found, 0.9) == "there is no terminal state to reach"


def test_nothing_but_ends() -> None:
    found = planners.arrival(*chain([{}, {}]))
    assert found.arrives.all()
    assert found.share_of_states == found.share_of_starts == 1.0
    assert found.attractors == ()
    assert found.farthest == 0


def test_a_free_rest_that_is_not_declared_terminal_is_a_trap() -> None:
    model = TabularMDP.from_matrices(
        np.eye(2)[:, np.newaxis], costs=np.zeros((2, 1)), terminal=[True, False]
    )
    assert places(planners.arrival(model, [0, 0])) == [([1], 1.0)]


@pytest.mark.parametrize("q", [1.0, 0.5, 0.1, 0.01])
def test_waiting_for_luck_takes_1_over_q(q: float) -> None:
    rows = [{}, {0: q, 1: 1 - q} if q < 1 else {0: 1.0}]
    found = planners.arrival(*chain(rows))
    assert found.share_of_states == 1.0
    assert found.expected_steps == pytest.approx(1 / q, rel=1e-12)


@pytest.mark.parametrize("q", [0.5, 0.1, 0.01])
def test_going_back_and_forth(q: float) -> None:
    # 1 -> 2, 2 -> 0 with q, else back to 1: 2/q steps from 1.
    rows = [{}, {2: 1.0}, {0: q, 1: 1 - q}]
    model, policy = chain(rows, initial=[0, 1, 0])
    found = planners.arrival(model, policy)
    assert found.expected_steps == pytest.approx(2 / q, rel=1e-6)


def test_gamblers_ruin_takes_k_times_n_minus_k() -> None:
    n = 30
    rows = [{}, *({s - 1: 0.5, s + 1: 0.5} for s in range(1, n)), {}]
    for start in (1, 7, 15, 29):
        model, policy = chain(rows, initial=np.eye(n + 1)[start].tolist())
        found = planners.arrival(model, policy)
        assert found.share_of_states == 1.0
        assert found.expected_steps == pytest.approx(start * (n - start), rel=1e-6)


def uphill(n: int) -> tuple[TabularMDP, list[int]]:
    """A walk from n to 0 that steps forward with probability .3 and back with .7."""
    rows = [{}, *({s - 1: 0.3, s + 1: 0.7} for s in range(1, n)), {n - 1: 1.0}]
    return chain(rows, initial=np.eye(n + 1)[n].tolist())


def uphill_steps(n: int) -> float:
    """From s to s - 1 it takes ``t(s) = (1 + .7 t(s + 1)) / .3`` steps, and 1 from n."""
    steps, total = 1.0, 1.0
    for _ in range(n - 1):
        steps = (1 + 0.7 * steps) / 0.3
        total += steps
    return total


@pytest.mark.parametrize("n", [4, 8, 12, 20])  # 79, 2,284, 68,335 and 60 million steps
def test_a_walk_uphill_is_counted_exactly(n: int) -> None:
    found = planners.arrival(*uphill(n))
    assert found.expected_steps_exact
    assert found.expected_steps == pytest.approx(uphill_steps(n), rel=1e-6)


@pytest.mark.parametrize("n", [30, 60, 200, 900])  # up to 10**331 steps, more than float64 has
def test_a_walk_too_steep_is_said_to_take_longer(n: int) -> None:
    model, policy = uphill(n)
    found = planners.arrival(model, policy)
    assert found.expected_steps is not None
    assert 0 < found.expected_steps <= uphill_steps(n) * (1 + 1e-9)
    if not found.expected_steps_exact:
        assert "in over " in describe_arrival(found, 0.9)
    assert not (found.expected_steps_exact and n >= 60)


@pytest.mark.parametrize("terrain", ["smooth", "uniform"])
def test_valleys_that_slip_lets_out_of_some_day(terrain: str) -> None:
    recipe = TerrainRecipe(terrain)
    layout = recipe.layout(Grid((60, 60)), np.random.default_rng(0))
    model = maze_model(layout, recipe, p=0.95)
    policy = planners.solve(model, gamma=0.9, tol=1e-3).policy
    found = planners.arrival(model, policy)
    assert found.share_of_states == 1.0
    assert found.expected_steps is not None
    assert found.expected_steps > 20 * found.farthest
    assert "try gamma" in describe_arrival(found, 0.9)


@pytest.mark.parametrize("p", [0.9, 0.6])
@pytest.mark.parametrize("terrain", ["smooth", "uniform"])
def test_expected_steps_of_terrain_against_a_sparse_solve(terrain: str, p: float) -> None:
    recipe = TerrainRecipe(terrain)
    layout = recipe.layout(Grid((30, 30)), np.random.default_rng(1))
    model = maze_model(layout, recipe, p=p, start="uniform")
    policy = planners.solve(model, gamma=0.98, tol=1e-3).policy
    found = planners.arrival(model, policy)
    P = policy_model(model, policy).transitions[1:][:, 1:]
    steps = spsolve((sp.eye_array(899) - P).tocsc(), np.ones(899))
    assert found.expected_steps_exact
    assert found.expected_steps == pytest.approx(steps.mean(), rel=1e-6)


def test_a_policy_may_draw_its_actions() -> None:
    # Action 0 waits, action 1 goes: a walk of 3 takes 3/w steps.
    model = MoveMDP([[0, 0], [1, 0], [2, 1], [3, 2]], [[np.inf] * 2, *[[1.0, 1.0]] * 3])
    weights = np.array([[1.0, 0.0], *[[0.75, 0.25]] * 3])
    found = planners.arrival(model, weights)
    assert found.share_of_states == 1.0
    assert found.expected_steps == pytest.approx((4 + 8 + 12) / 3, rel=1e-9)
    found = planners.arrival(model, [0, 1, 0, 1])
    assert found.arrives.tolist() == [True, True, False, False]
    assert places(found) == [([2], 2 / 3)]
    assert found.farthest == 3


def test_slip_may_lead_into_a_trap() -> None:
    # From 1, left ends and right falls into 2, which keeps.
    model = MoveMDP([[0, 0], [0, 2], [2, 2]], [[np.inf] * 2, [1.0, 1.0], [1.0, 1.0]], p=0.9)
    found = planners.arrival(model, [0, 0, 0])
    assert found.arrives.tolist() == [True, False, False]
    assert places(found) == [([2], 1.0)]
    sure = MoveMDP(model.successors, model.move_costs, p=1.0)
    assert planners.arrival(sure, [0, 0, 0]).arrives.tolist() == [True, True, False]


def test_frozen_lake() -> None:
    for options, size in (({}, 4), ({"map_name": "8x8"}, 8), ({"is_slippery": False}, 4)):
        env = gym.make("FrozenLake-v1", **options)
        result = planners.solve(env, gamma=0.99)
        found = planners.arrival(env, result)
        # Holes end an episode too.
        assert found.arrives.all()
        assert found.share_of_states == found.share_of_starts == 1.0
        P = env.unwrapped.P
        matrix = np.eye(size * size)
        steps = np.ones(size * size)
        for s in range(size * size):
            if all(t == s and done for outcomes in P[s].values() for _, t, _, done in outcomes):
                steps[s] = 0.0
                continue
            for probability, t, _, done in P[s][int(result.policy[s])]:
                if not done:
                    matrix[s, t] -= probability
        expected = np.linalg.solve(matrix, steps)[0]
        assert found.expected_steps == pytest.approx(expected, rel=1e-6)
    assert found.expected_steps == 6.0


def test_added_states_are_ends() -> None:
    env = gym.make("CliffWalking-v1")
    result = planners.solve(env, gamma=0.9)
    found = planners.arrival(env, result)
    assert found.arrives.shape == (48,)
    assert found.arrives.all()
    assert found.share_of_states == 1.0
    assert found.expected_steps == 13.0
    stay = np.full(48, 3)  # to the left for ever
    found = planners.arrival(env, stay)
    assert found.share_of_starts == 0.0
    assert {int(place.states[0]) for place in found.attractors} == {0, 12, 24, 36}


# ---------------------------------------------------------------------------------------------
# Paths and distances.


def test_greedy_path_walks_to_the_goal() -> None:
    recipe = StandardRecipe("depth_first")
    layout = recipe.layout(Grid((15, 15)), np.random.default_rng(0))
    for p in (1.0, 0.9):
        model = maze_model(layout, recipe, p=p)
        result = planners.solve(model, gamma=0.95)
        distance = steps_to_terminal(model)
        path = greedy_path(model, result.policy, 224)
        assert distance[path].tolist() == list(range(distance[224], -1, -1))
        # The likeliest outcome of the general table is the chosen move.
        np.testing.assert_array_equal(greedy_path(model.to_tabular(), result.policy, 224), path)


def test_greedy_path_ends_where_it_comes_back() -> None:
    model, policy = chain([{1: 1.0}, {2: 1.0}, {1: 1.0}, {}])
    assert greedy_path(model, np.array(policy), 0).tolist() == [0, 1, 2, 1]
    assert greedy_path(model, np.array(policy), 3).tolist() == [3]


def test_steps_to_terminal_are_those_of_available_moves() -> None:
    model = MoveMDP(
        [[0, 0], [0, 2], [1, 3], [3, 3]],
        [[np.inf] * 2, [np.inf, 1.0], [1.0, 1.0], [1.0, 1.0]],
    )
    assert steps_to_terminal(model).tolist() == [0, -1, -1, -1]
    tabular, _ = chain([{}, {0: 0.001, 2: 0.999}, {3: 1.0}, {1: 1.0}])
    assert steps_to_terminal(tabular).tolist() == [0, 1, 3, 2]


@given(
    seed=st.integers(0, 10**6),
    num_states=st.integers(2, 60),
    reach=st.integers(1, 60),
    num_ends=st.integers(0, 2),
)
def test_steps_to_terminal_in_models_of_any_width(
    seed: int, num_states: int, reach: int, num_ends: int
) -> None:
    """A reach of one makes a line; actions may be masked, and outcomes without probability."""
    rng = np.random.default_rng(seed)
    P = np.zeros((num_states, 3, num_states))
    graph = np.zeros((num_states, num_states))
    mask = rng.random((num_states, 3)) < 0.7
    mask[np.arange(num_states), rng.integers(3, size=num_states)] = True
    terminal = np.arange(num_states) < num_ends
    mask[terminal] = True
    for s, a in np.ndindex(num_states, 3):
        steps = rng.integers(-reach, reach + 1, size=2)
        P[s, a, [s] if terminal[s] else np.clip(s + steps, 0, num_states - 1)] = 1.0
        P[s, a] /= P[s, a].sum()
        graph[P[s, a] > 0, s] = 1.0 if mask[s, a] else graph[P[s, a] > 0, s]
    costs = np.where(terminal[:, np.newaxis], 0.0, np.ones((num_states, 3)))
    model = TabularMDP.from_matrices(P, costs=costs, action_mask=mask, terminal=terminal)
    expected = np.full(num_states, -1)
    if num_ends:
        found = dijkstra(graph, indices=np.arange(num_ends), unweighted=True).min(axis=0)
        expected[np.isfinite(found)] = found[np.isfinite(found)]
    np.testing.assert_array_equal(steps_to_terminal(model), expected)


# ---------------------------------------------------------------------------------------------
# Successors listed twice.


def test_a_successor_listed_twice() -> None:
    half = [(0.5, 1.0), (0.5, 1.0)]
    model = TabularMDP.from_function(
        3, 1, lambda s, a: None if s == 2 else [(p, s + 1, cost) for p, cost in half]
    )
    found = planners.arrival(model, planners.solve(model, gamma=0.95))
    assert found.arrives.all()
    # One step from state 1 and two from state 0, starts in either.
    assert found.expected_steps == pytest.approx(1.5)
    assert found.farthest == 2


def split_rows(rng: np.random.Generator, size: int) -> tuple[TabularMDP, Array]:
    """A chain whose rows name their successors several times, and its P."""
    P = np.zeros((size, size))
    outcomes: list[list[tuple[float, int, float, bool]] | None] = []
    for s in range(size):
        if s == 0 or rng.random() < 0.1:
            outcomes.append(None)
            P[s, s] = 1.0
            continue
        following = rng.choice(rng.integers(0, size, 2), size=rng.integers(1, 6))
        shares = rng.dirichlet(np.ones(len(following)))
        np.add.at(P[s], following, shares)
        pairs = zip(shares, following, strict=True)
        outcomes.append([(float(p), int(t), 1.0, False) for p, t in pairs])
    return TabularMDP.from_function(size, 1, lambda s, a: outcomes[s]), P


def test_chains_that_list_successors_several_times(monkeypatch: pytest.MonkeyPatch) -> None:
    def spy(graph: sp.csr_array, **options: Any) -> Any:
        assert sp.csr_array((graph.data, graph.indices, graph.indptr)).has_canonical_format
        return connected_components(graph, **options)

    monkeypatch.setattr(sys.modules["planners.arrival"], "connected_components", spy)
    rng = np.random.default_rng(0)
    for size in [*range(2, 12)] * 20:
        model, P = split_rows(rng, size)
        reached = np.linalg.matrix_power(np.eye(size) + (P > 0), size) > 0
        closed = np.array([(~reached[s] | reached[:, s]).all() for s in range(size)])
        traps = closed & ~model.terminal
        found = planners.arrival(model, np.zeros(size, dtype=int))
        np.testing.assert_array_equal(found.arrives, ~reached[:, traps].any(axis=1))
        settled = np.concatenate([[], *(place.states for place in found.attractors)])
        assert sorted(settled) == np.flatnonzero(traps).tolist()
        inside = found.arrives & ~model.terminal
        if found.expected_steps is not None and model.initial[found.arrives].sum() > 0:
            steps = np.zeros(size)
            steps[inside] = np.linalg.solve(
                np.eye(inside.sum()) - P[np.ix_(inside, inside)], np.ones(inside.sum())
            )
            weights = np.where(found.arrives, model.initial, 0.0)
            assert found.expected_steps == pytest.approx(steps @ weights / weights.sum(), rel=2e-6)


def test_components_of_layouts_are_found_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []

    def spy(graph: sp.csr_array, **options: Any) -> Any:
        assert sp.csr_array((graph.data, graph.indices, graph.indptr)).has_canonical_format
        looked_at.append(graph.shape[0])
        return connected_components(graph, **options)

    # The layout imports it where it needs it.
    monkeypatch.setattr("scipy.sparse.csgraph.connected_components", spy)
    for shape in ((4, 5), (3, 1), (2, 3, 4)):
        layout = StandardRecipe("kruskal").layout(Grid(shape), np.random.default_rng(0))
        assert layout.reaches_goal().all()
    assert looked_at == [20, 3, 24]


def test_greedy_path_adds_up_what_is_listed_twice() -> None:
    rows = {0: [(0.3, 1, 1.0), (0.4, 2, 1.0), (0.3, 1, 1.0)], 1: None, 2: None}
    model = TabularMDP.from_function(3, 1, lambda s, a: rows[s])
    assert greedy_path(model, np.zeros(3, dtype=int), 0).tolist() == [0, 1]


# ---------------------------------------------------------------------------------------------
# Progress, limits, and a word on it.


def slow_walk() -> tuple[MoveMDP, planners.SolveResult]:
    recipe = TerrainRecipe("uniform")
    layout = recipe.layout(Grid((12, 12)), np.random.default_rng(1))
    model = maze_model(layout, recipe, p=0.9)
    return model, planners.solve(model, gamma=0.99)


def test_it_tells_how_near_it_is() -> None:
    env = gym.make("TerrainMaze-v0", shape=(30, 30), p=0.8)
    result = planners.solve(env, gamma=0.99)
    heard: list[tuple[float, float]] = []
    with listening(lambda *told: None, lambda *told: heard.append(told)):
        told = planners.arrival(env, result)
    assert told.expected_steps == planners.arrival(env, result).expected_steps
    assert len(heard) > 2
    assert heard[-1][0] <= heard[-1][1] < heard[0][0]


def test_a_callback_sees_the_search_and_may_end_it() -> None:
    model, result = slow_walk()
    seen: list[planners.ArrivalProgress] = []
    whole = planners.arrival(model, result, callback=seen.append)
    assert whole.expected_steps is not None
    assert whole.expected_steps_exact
    assert [progress.num_products for progress in seen] == list(range(len(seen)))
    assert len(seen) > 2
    for stopped in (
        planners.arrival(model, result, callback=lambda progress: True),
        planners.arrival(model, result, callback=lambda progress: progress.num_products == 2),
        planners.arrival(model, result, time_limit=1e-9),
    ):
        assert not stopped.expected_steps_exact
        assert stopped.expected_steps is not None
        assert 0 < stopped.expected_steps <= whole.expected_steps * (1 + 1e-6)
        np.testing.assert_array_equal(stopped.arrives, whole.arrives)
    unlimited = planners.arrival(model, result, time_limit=3600.0)
    assert unlimited.expected_steps == whole.expected_steps


@pytest.mark.parametrize("limit", [0, -1.0, np.nan, "1"])
def test_time_limits_are_checked(limit: Any) -> None:
    model, policy = chain([{}])
    with pytest.raises(ValueError, match="time_limit must be a positive number of seconds"):
        planners.arrival(model, policy, time_limit=limit)


def test_ctrl_c_ends_the_search() -> None:
    def press(progress: planners.ArrivalProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        planners.arrival(*slow_walk(), callback=press)


def test_short_reprs() -> None:
    model, policy = chain([{1: 0.5, 3: 0.5}, {2: 1.0}, {1: 1.0}, {}, {4: 1.0}])
    found = planners.arrival(model, policy)
    assert repr(found) == (
        "Arrival(from 0 % of the starts and 0 % of 5 states, expected steps: none, attractors: 2)"
    )
    assert repr(found.attractors) == (
        "(Attractor(2 states from 1 on, nearest of 75 % of the states), "
        "Attractor(state 4, nearest of 25 % of the states))"
    )
    found = planners.arrival(*chain([{}, {0: 1.0}]))
    assert "100 % of the starts" in repr(found)
    assert "expected steps: 1.0" in repr(found)


def test_what_a_policy_has_for_terminal_states_does_not_count() -> None:
    model = TabularMDP(
        sp.csr_array(np.array([[0, 1.0], [0, 1.0], [0, 1.0], [0, 1.0]])),
        [[1.0, 2.0], [0.0, 0.0]],
        action_mask=[[True, True], [False, True]],
    )
    result = planners.solve(model, gamma=0.9)
    assert planners.arrival(model, result).arrives.all()
    assert planners.arrival(model, [1, 0]).arrives.all()


# ---------------------------------------------------------------------------------------------
# Straight from the tables of moves.


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    p=st.sampled_from([1.0, 1.0, 0.9, 0.4]),
    size=st.integers(2, 40),
    num_moves=st.integers(1, 4),
    terminals=st.integers(0, 3),
)
def test_moves_arrive_as_their_general_table_does(
    seed: int, p: float, size: int, num_moves: int, terminals: int
) -> None:
    model = random_moves(seed, size, num_moves, p=p, terminals=min(terminals, size - 1))
    chances = np.random.default_rng(seed).random((size, num_moves))
    chances[~np.isfinite(model.move_costs)] = -1.0
    policy = chances.argmax(axis=1)
    found, expected = (planners.arrival(of, policy) for of in (model, model.to_tabular()))
    np.testing.assert_array_equal(found.arrives, expected.arrives)
    assert found.share_of_starts == pytest.approx(expected.share_of_starts, abs=1e-12)
    assert found.share_of_states == expected.share_of_states
    assert found.farthest == expected.farthest
    assert places(found) == places(expected)
    assert (found.expected_steps is None) == (expected.expected_steps is None)
    if found.expected_steps is None:
        return
    if found.expected_steps_exact and expected.expected_steps_exact:
        assert found.expected_steps == pytest.approx(expected.expected_steps, rel=2e-6)


@pytest.mark.parametrize("p", [1.0, 0.9, 0.5])
def test_expected_steps_of_larger_mazes_against_a_sparse_solve(p: float) -> None:
    recipe = StandardRecipe(loops=0.2)
    layout = recipe.layout(Grid((45, 40)), np.random.default_rng(2))
    model = maze_model(layout, recipe, p=p, start="uniform")
    policy = planners.solve(model, gamma=0.999).policy
    found = planners.arrival(model, policy)
    P = policy_model(model, policy).transitions[1:][:, 1:]
    steps = spsolve((sp.eye_array(1799) - P).tocsc(), np.ones(1799))
    assert found.expected_steps_exact
    assert found.expected_steps == pytest.approx(steps.mean(), rel=1e-6)
