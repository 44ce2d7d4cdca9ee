"""The forest of a policy, evaluation along it, and shortest paths, against dense solves."""

from __future__ import annotations

import numpy as np
import pytest

from aggmaze import MoveMDP
from aggmaze.recipes import StandardRecipe, TerrainRecipe
from planners.bellman import local_engine
from planners.linear.forest import PolicyForest
from planners.policies import steps_to_terminal
from tests.planners.families import some_models
from tests.planners.reference import Array, Model, dense, maze_of, random_moves, value_of


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
