"""Forest policy iteration against dense policy iteration, fractions, and its own pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planners
from aggmaze import MoveMDP, TabularMDP
from aggmaze.recipes import Recipe, StandardRecipe, TerrainRecipe
from planners.bellman import local_engine
from planners.linear.forest import PolicyForest
from planners.policies import steps_to_terminal
from tests.planners.reference import (
    Array,
    Model,
    check_exactly,
    dense,
    gammas,
    maze_of,
    models,
    random_moves,
    random_tabular,
    truth,
    value_of,
)

METHOD = "forest_policy_iteration"


def with_traps(model: MoveMDP, seed: int) -> MoveMDP:
    """Return the model with some states that only stay, at a cost, and are not terminal."""
    rng = np.random.default_rng(seed)
    successors, costs = model.successors.copy(), model.move_costs.copy()
    traps = rng.choice(np.flatnonzero(~model.terminal), 2, replace=False)
    successors[traps] = traps[:, np.newaxis]
    costs[traps, 0] = 0.3  # a dead end has no other move
    return MoveMDP(successors, costs, p=model.p)


def ring(size: int, seed: int, slip: float) -> TabularMDP:
    """Return a random map with long cycles, and a chance of a state drawn at random."""
    rng = np.random.default_rng(seed)
    P = np.full((size, 2, size), slip / size)
    P[np.arange(size), 0, rng.permutation(size)] += 1 - slip
    P[np.arange(size), 1, rng.integers(size, size=size)] += 1 - slip
    return TabularMDP.from_matrices(P, costs=rng.normal(size=(size, 2)))


PS = (1.0, 0.95, 0.6, 0.2, 0.05)


def some_models(seed: int) -> list[tuple[str, Model]]:
    found: list[tuple[str, Model]] = []
    recipes: list[tuple[str, Recipe]] = [
        ("maze", StandardRecipe()),
        ("long", StandardRecipe("depth_first")),
        ("looped", StandardRecipe(loops=0.2)),
        ("terrain", TerrainRecipe()),
        ("signed", TerrainRecipe("uniform", cost="difference")),
    ]
    for i, p in enumerate(PS):
        name, recipe = recipes[(seed + i) % len(recipes)]
        shape = [(6, 5), (30,), (3, 3, 3), (2, 2, 2, 2)][(seed + 2 * i) % 4]
        model = maze_of(recipe, shape, p=p, seed=seed)
        found += [(f"{name} {p}", model), (f"trapped {name} {p}", with_traps(model, seed))]
        found += [(f"moves {p}", random_moves(seed, 25, 4, p=p, terminals=seed % 3))]
    found += [(f"{name}, general", model.to_tabular()) for name, model in found[::4]]
    found += [("sparse", random_tabular(seed, 25, 3, terminals=seed % 2))]
    found += [(f"ring {slip}", ring(25, seed, slip)) for slip in (0.0, 0.1, 0.5)]
    return found


@pytest.mark.parametrize("gamma", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("seed", range(4))
def test_every_bound_holds_and_the_end_comes_soon(gamma: float, seed: int) -> None:
    for name, model in some_models(seed):
        V, off = truth(dense(model), gamma)
        for options in ({}, {"start": "sweeps", "num_sweeps": 1}):
            check_run(name, model, gamma, V, off, **options)


def check_run(
    name: str, model: Model, gamma: float, V: Array, off: float, **options: Any
) -> planners.SolveResult:
    def watch(progress: planners.Progress) -> None:
        assert np.abs(progress.values - V).max() <= progress.bound + off, name

    result = planners.solve(
        model, gamma=gamma, method=METHOD, tol=1e-9, certify="every", callback=watch, **options
    )
    assert result.status == "converged", name
    assert result.bound <= 1e-9 * np.abs(V).max() * (1 + 1e-6)
    assert result.num_iterations <= 100, name
    return result


@settings(max_examples=100)
@given(
    model=models,
    gamma=gammas,
    num_iterations=st.integers(1, 60),
    start=st.sampled_from([None, 3.0, -1e6, 1e6]),
    options=st.sampled_from([{}, {"start": "sweeps"}, {"num_sweeps": 0}]),
)
def test_the_certificate_is_exact(
    model: Model, gamma: float, num_iterations: int, start: float | None, options: dict[str, Any]
) -> None:
    check_exactly(model, gamma, METHOD, num_iterations, start, certify="every", **options)


# ---------------------------------------------------------------------------------------------
# The hard cases.


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("p", [1.0, 0.95])
@pytest.mark.parametrize("gamma", [0.9, 0.99, 0.999])
def test_a_start_that_is_the_same_everywhere(gamma: float, p: float, general: bool) -> None:
    # From a saturated bound policy iteration turns one state of a long path a round: ties abound.
    moves = maze_of(StandardRecipe("depth_first"), (50, 50), p=p)
    model = moves.to_tabular() if general else moves
    V0 = np.full(model.num_states, 1 / (1 - gamma))
    result = planners.solve(model, gamma=gamma, method=METHOD, V0=V0, tol=1e-9)
    assert (result.status, result.num_iterations) == ("converged", 1)
    result = planners.solve(model, gamma=gamma, method=METHOD, V0=V0, tol=1e-9, start="sweeps")
    assert result.status == "converged"
    assert result.num_iterations <= 200


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("p", [1.0, 0.95, 0.7])
@pytest.mark.parametrize("gamma", [0.9, 0.99, 0.999])
def test_moves_that_flicker(gamma: float, p: float, general: bool) -> None:
    # All moves cost the same on an open grid: nearly every state has two best moves, and rounding
    # decides between them anew in each sweep.  Asked for the last digit that can be certified.
    moves = maze_of(StandardRecipe(loops=1.0, step_cost=1 / 3), (30, 30), p=p)
    model = moves.to_tabular() if general else moves
    for start in ("auto", "sweeps"):
        result = planners.solve(model, gamma=gamma, method=METHOD, tol=1e-10, start=start)
        assert result.status == "converged"
        assert result.num_iterations <= 60
        result = planners.solve(model, gamma=gamma, method=METHOD, atol=0.0, start=start)
        assert result.status == "stopped_short"
        assert result.num_iterations <= 200


# ---------------------------------------------------------------------------------------------
# Its pieces.


def random_policy(model: Model, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    draws = rng.random(model.action_mask.shape) * model.action_mask
    return np.where(model.terminal, 0, draws.argmax(axis=1)).astype(np.int32)


@pytest.mark.parametrize("gamma", [0.5, 0.99])
@pytest.mark.parametrize("seed", range(3))
def test_policies_are_evaluated_from_anywhere(gamma: float, seed: int) -> None:
    for name, model in some_models(seed):
        policy = random_policy(model, seed)
        expected = value_of(dense(model), policy, gamma)
        forest = PolicyForest(local_engine(model, gamma))
        forest.follow(policy)
        V = np.random.default_rng(seed).normal(size=model.num_states)
        V[model.terminal] = 0.0
        first = forest.evaluate(V, reduction=1e-13, most_steps=200)
        if first.lagged_share > 0.0:
            forest.evaluate(V, reduction=1e-8, most_steps=200)
        size = np.abs(expected).max()
        np.testing.assert_allclose(V, expected, rtol=0, atol=1e-13 / (1 - gamma) * size + 1e-300)
        if " 1.0" in name or name == "ring 0.0":
            assert first.lagged_share == 0.0
            assert first.num_applications <= 2


@pytest.mark.parametrize("seed", range(3))
def test_states_come_after_those_they_lead_to(seed: int) -> None:
    for _, model in some_models(seed):
        forest = PolicyForest(local_engine(model, 0.9))
        forest.follow(random_policy(model, seed))
        assert sorted(forest.order) == list(range(model.num_states))
        rank = np.empty(model.num_states, dtype=np.int64)
        rank[forest.order] = np.arange(model.num_states)
        early = np.flatnonzero(rank[forest.following] > rank)
        # Each of these cuts a cycle of its own.
        seen: set[int] = set()
        for s in early:
            cycle = [int(s)]
            while (following := int(forest.following[cycle[-1]])) != s:
                cycle.append(following)
            assert seen.isdisjoint(cycle)
            seen.update(cycle)


@pytest.mark.parametrize("p", [1.0, 0.9])
def test_shortest_paths(p: float) -> None:
    walks: list[Model] = [
        maze_of(StandardRecipe(loops=loops), shape, p=p, seed=1)
        for shape in ((12, 9), (4, 3, 5), (20,))
        for loops in (0.0, 0.3)
    ]
    # Moves that cannot be taken back, and states that do not arrive.
    one_way = random_moves(3, 60, 4, p=p)
    walks.append(MoveMDP(one_way.successors, np.abs(one_way.move_costs), p=p))
    lonely = random_moves(2, 60, 2, p=p)
    walks.append(MoveMDP(lonely.successors, np.abs(lonely.move_costs), p=p))
    for model in walks:
        distances = steps_to_terminal(model)
        expected = np.where(distances < 0, -1, distances)
        for layout in (model, model.to_tabular()):
            forest = PolicyForest(local_engine(layout, 0.9))
            assert forest.follow_to_goal()
            steps = np.where(layout.terminal, 0, -1)
            for s in forest.order:
                following = forest.following[s]
                if steps[s] < 0 and steps[following] >= 0 and following != s:
                    steps[s] = steps[following] + 1
            np.testing.assert_array_equal(steps, expected)
            inside = np.flatnonzero(~layout.terminal)
            assert layout.action_mask[inside, forest.actions[inside]].all()


def test_shortest_paths_are_no_start_where_moves_pay_or_nothing_ends() -> None:
    terrain = maze_of(TerrainRecipe(cost="difference"), (8, 8), p=0.9)
    endless = random_moves(0, 20, 3, p=0.9, terminals=0)
    for model in (terrain, endless):
        for layout in (model, model.to_tabular()):
            assert not PolicyForest(local_engine(layout, 0.9)).follow_to_goal()


def test_a_good_start_is_used_and_kept() -> None:
    for name, model in some_models(0):
        first = planners.solve(model, gamma=0.99, method=METHOD, tol=1e-9)
        V0 = first.values.copy()
        again = planners.solve(model, gamma=0.99, method=METHOD, tol=1e-8, V0=V0)
        np.testing.assert_array_equal(V0, first.values)
        assert again.num_iterations <= 2, name
        # What is updated, and how often, is reported.
        assert again.num_updates == again.num_sweeps * model.num_states


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("start", "anywhere", ValueError),
        ("num_sweeps", -1, ValueError),
        ("num_sweeps", 1.5, TypeError),
        ("epsilon", 0.5, TypeError),
    ],
)
def test_options_that_make_no_sense(option: str, value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=option):
        planners.solve(random_moves(0, 5, 2, p=0.9), gamma=0.9, method=METHOD, **{option: value})
