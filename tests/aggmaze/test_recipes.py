"""The rules of the mazes, against plain Python: costs, the goal, bumps, starts, directions."""

from __future__ import annotations

import itertools
import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import aggmaze
import planners
from aggmaze.envs.terrain_maze import TerrainMazeEnv
from aggmaze.grid import Grid
from aggmaze.layouts.layout import Layout, open_passages
from aggmaze.recipes import TERRAIN_COSTS, StandardRecipe, TerrainRecipe, maze_model
from tests.strategies import seeds, shapes

Point = tuple[int, ...]
RECIPES = {
    "standard": StandardRecipe(),
    "standard-loops": StandardRecipe(loops=0.4, step_cost=2.5, goal_reward=7.0),
    "standard-depth-first": StandardRecipe(generator="depth_first", goal_reward=-3.0),
    "standard-paid-moves": StandardRecipe(step_cost=-1.0),
    **{
        f"{cost}-{terrain}": TerrainRecipe(terrain=terrain, cost=cost)
        for cost in TERRAIN_COSTS
        for terrain in ("smooth", "uniform", "fractal")
    },
    "shifted-priced": TerrainRecipe(cost="shifted", step_cost=0.25, goal_reward=10.0),
    "climb-priced": TerrainRecipe(cost="climb", step_cost=-2.0, goal_reward=0.0),
    "difference-priced": TerrainRecipe(cost="difference", step_cost=99.0, goal_reward=10.0),
}
recipes = pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
positions = shapes(max_states=60).filter(lambda shape: math.prod(shape) > 1)


def neighbour(point: Point, action: int) -> Point:
    axis, step = action // 2, 1 if action % 2 else -1
    return (*point[:axis], point[axis] + step, *point[axis + 1 :])


def points(shape: tuple[int, ...]) -> list[Point]:
    """Return the coordinates of states 0, 1, ... : the last axis runs fastest."""
    return list(itertools.product(*map(range, shape)))


def expected_cost(
    recipe: Any, heights: dict[Point, float], here: Point, there: Point, goal: Point
) -> float:
    """Return the cost of a move as the contract words it."""
    at_goal = there == goal
    if isinstance(recipe, StandardRecipe):
        return -recipe.goal_reward if at_goal else recipe.step_cost
    climb = heights[there] - heights[here]
    cost = {
        "shifted": recipe.step_cost + climb,
        "difference": climb,
        "climb": recipe.step_cost + max(0.0, climb),
    }[recipe.cost]
    return cost - recipe.goal_reward if at_goal else cost


def expected_costs(recipe: Any, layout: aggmaze.Layout, scale: float) -> NDArray[np.float64]:
    """Return the cost of each move, +inf where a wall, the border or the goal forbids it."""
    shape = layout.grid.shape
    goal = points(shape)[layout.goal]
    states = {point: state for state, point in enumerate(points(shape))}
    heights = {}
    if layout.heights is not None:
        heights = {point: float(layout.heights[state]) for point, state in states.items()}
    costs = np.full((len(states), 2 * len(shape)), np.inf)
    for here, state in states.items():
        for action in range(2 * len(shape)):
            there = neighbour(here, action)
            if here == goal or there not in states:
                continue
            if layout.blocked is not None and layout.blocked[[state, states[there]]].any():
                continue
            if layout.passages[states[min(here, there)], action // 2]:
                costs[state, action] = scale * expected_cost(recipe, heights, here, there, goal)
    return costs


@recipes
@settings(max_examples=15)
@given(shape=positions, seed=seeds, scale=st.sampled_from([1.0, 0.01, 300.0]))
def test_costs_of_moves(recipe: Any, shape: tuple[int, ...], seed: int, scale: float) -> None:
    layout = recipe.layout(Grid(shape), np.random.default_rng(seed))
    assert layout.goal == 0
    model = maze_model(layout, recipe, cost_scale=scale)
    costs = expected_costs(recipe, layout, scale)
    np.testing.assert_allclose(model.move_costs, costs, rtol=1e-13, atol=1e-13 * scale)
    coords = points(shape)
    for state, action in np.argwhere(np.isfinite(costs)):
        assert coords[model.successors[state, action]] == neighbour(coords[state], action)
    assert model.bump_cost == max(0.0, model.move_costs[np.isfinite(model.move_costs)].max())
    assert model.terminal.tolist() == [True] + [False] * (len(coords) - 1)
    assert model.validate() is model


@recipes
@settings(max_examples=15)
@given(shape=positions, seed=seeds)
def test_all_follows_the_goal_and_what_is_blocked(
    recipe: Any, shape: tuple[int, ...], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    grid = Grid(shape)
    goal = int(rng.integers(grid.num_states))
    blocked = rng.random(grid.num_states) < 0.2
    blocked[goal] = False
    assume(np.count_nonzero(~blocked) > 1)
    plan = Layout(grid, open_passages(grid, blocked), goal=goal, blocked=blocked)
    layout = recipe.complete(plan, rng)
    assert (layout is plan) == isinstance(recipe, StandardRecipe)
    model = maze_model(layout, recipe, start="uniform").validate()
    costs = expected_costs(recipe, layout, 1.0)
    np.testing.assert_allclose(model.move_costs, costs, rtol=1e-13, atol=1e-13)
    stuck = np.isinf(costs).all(axis=1)
    assert model.terminal.tolist() == stuck.tolist()
    assert stuck[blocked].all()
    assert stuck[goal]
    # No move leads to what is blocked, and no episode starts there or at the goal.
    assert not blocked[model.successors[model.available]].any()
    starts = ~blocked & (np.arange(grid.num_states) != goal)
    np.testing.assert_array_equal(model.initial, starts / starts.sum())
    values = planners.solve(model, gamma=0.9).values
    assert (values[blocked] == 0).all()


@recipes
@pytest.mark.parametrize("p", [1.0, 0.9, 0.1])
def test_bumping_is_never_better(recipe: Any, p: float) -> None:
    gamma = 0.95
    layout = recipe.layout(Grid((5, 4)), np.random.default_rng(3))
    model = maze_model(layout, recipe, p=p)
    result = planners.solve(model, gamma=gamma, tol=1e-10)
    V = result.values
    assert (model.bump_cost / (1 - gamma) + result.bound >= V).all()
    # Without the mask every action can be chosen, bumps among them.
    table = model.to_tabular()
    Q = table.costs + gamma * (table.transitions @ V).reshape(table.costs.shape)
    bumps = ~model.action_mask
    assert bumps.any()
    slack = 2 * result.bound
    assert (Q[bumps] >= np.broadcast_to(V[:, np.newaxis], Q.shape)[bumps] - slack).all()
    np.testing.assert_allclose(
        Q[bumps], (model.bump_cost + gamma * V)[np.nonzero(bumps)[0]], rtol=1e-12
    )


def test_shifted_costs_of_the_defaults_are_not_negative_but_at_the_goal() -> None:
    recipe = TerrainRecipe()
    layout = recipe.layout(Grid((15, 15)), np.random.default_rng(0))
    model = maze_model(layout, recipe)
    elsewhere = model.available & (model.successors != 0)
    assert (model.move_costs[elsewhere] >= 0).all()


class TestStarts:
    @recipes
    def test_corner(self, recipe: Any) -> None:
        layout = recipe.layout(Grid((3, 4, 2)), np.random.default_rng(0))
        initial = maze_model(layout, recipe).initial
        assert initial.tolist() == [0.0] * 23 + [1.0]

    @recipes
    def test_uniform(self, recipe: Any) -> None:
        layout = recipe.layout(Grid((3, 4)), np.random.default_rng(0))
        initial = maze_model(layout, recipe, start="uniform").initial
        assert initial.tolist() == [0.0] + [1 / 11] * 11

    @pytest.mark.parametrize("env_id", ["StandardMaze-v0", "TerrainMaze-v0"])
    def test_the_corner_is_opposite_the_goal(self, env_id: str) -> None:
        env = gym.make(env_id, shape=(4, 3))
        for seed in range(3):
            state, info = env.reset(seed=seed)
            assert state == info["state"] == 11
            assert info["coords"].tolist() == [3, 2]
            assert info["prob"] == 1.0

    def test_uniform_starts_are_uniform(self) -> None:
        env = gym.make("StandardMaze-v0", shape=(3, 2), start="uniform")
        env.reset(seed=5)
        runs = 5000
        counts = np.zeros(6)
        for _ in range(runs):
            state, info = env.reset()
            assert info["prob"] == pytest.approx(1 / 5)
            counts[state] += 1
        assert counts[0] == 0
        spread = math.sqrt(runs * (1 / 5) * (4 / 5))
        np.testing.assert_allclose(counts[1:], runs / 5, atol=5 * spread)

    @given(shape=positions, data=st.data())
    def test_the_corner_is_the_farthest_from_the_goal(
        self, shape: tuple[int, ...], data: st.DataObject
    ) -> None:
        grid = Grid(shape)
        goal = data.draw(st.integers(0, grid.num_states - 1))
        layout = Layout(grid, open_passages(grid), goal=goal)
        corners = itertools.product(*({0, n - 1} for n in shape))
        target = points(shape)[goal]

        def rank(corner: Point) -> tuple[int, int]:
            distance = sum(abs(x - y) for x, y in zip(corner, target, strict=True))
            return distance, grid.state(corner)  # of equals the highest

        initial = maze_model(layout, StandardRecipe()).initial
        assert np.flatnonzero(initial).tolist() == [grid.state(max(corners, key=rank))]

    @pytest.mark.parametrize("start", [(1, 2), [1, 2], np.array([1, 2]), (np.int64(1), 2)])
    def test_coordinates(self, start: Any) -> None:
        recipe = StandardRecipe()
        layout = recipe.layout(Grid((3, 4)), np.random.default_rng(0))
        assert np.flatnonzero(maze_model(layout, recipe, start=start).initial).tolist() == [6]
        env = gym.make("TerrainMaze-v0", shape=(3, 4), start=start)
        assert env.reset(seed=0)[1]["coords"].tolist() == [1, 2]
        env.reset(options={"layout_seed": 3})
        assert env.reset(seed=0)[1]["coords"].tolist() == [1, 2]

    def test_what_the_caller_changes_later_does_not_matter(self) -> None:
        start, goal = [1, 2], [2, 2]
        env = gym.make("TerrainMaze-v0", shape=(3, 4), start=start, goal=goal)
        start[0] = goal[0] = 0
        env.reset(options={"layout_seed": 3})
        assert env.reset()[1]["coords"].tolist() == [1, 2]
        assert env.unwrapped.layout.goal == 10  # type: ignore[attr-defined]

    @pytest.mark.parametrize("start", ["middle", "", None, 3])
    def test_other_starts_are_refused(self, start: str) -> None:
        recipe = StandardRecipe()
        layout = recipe.layout(Grid((3, 3)), np.random.default_rng(0))
        with pytest.raises(ValueError, match=rf"start must be .*corner.*uniform.*{start!r}"):
            maze_model(layout, recipe, start=start)


def open_env(env_id: str, **kwargs: Any) -> gym.Env[Any, Any]:
    """Return an environment without walls and without chance."""
    return gym.make(env_id, **({"loops": 1.0} if env_id == "StandardMaze-v0" else {}), **kwargs)


class TestDirections:
    @pytest.mark.parametrize("env_id", ["StandardMaze-v0", "TerrainMaze-v0"])
    @pytest.mark.parametrize(
        ("action", "end"),
        [(0, (1, 1)), (1, (3, 1)), (2, (2, 0)), (3, (2, 2))],
        ids=["LEFT", "RIGHT", "DOWN", "UP"],
    )
    def test_in_two_dimensions(self, env_id: str, action: int, end: Point) -> None:
        env = open_env(env_id, shape=(4, 3))
        env.reset(options={"coords": (2, 1)})
        state, *_, info = env.step(action)
        assert tuple(info["coords"]) == end
        assert state == info["state"] == end[0] * 3 + end[1]

    @pytest.mark.parametrize("shape", [(5,), (3, 4, 3), (3, 3, 3, 3)])
    def test_in_other_dimensions(self, shape: tuple[int, ...]) -> None:
        env = gym.make("NDMaze-v0", shape=shape, loops=1.0)
        middle = tuple(n // 2 for n in shape)
        for action in range(2 * len(shape)):
            env.reset(options={"coords": middle})
            state, *_, info = env.step(action)
            assert tuple(info["coords"]) == neighbour(middle, action)
            assert state == np.ravel_multi_index(neighbour(middle, action), shape)

    def test_the_names_of_the_actions(self) -> None:
        assert Grid((2, 2)).action_names == ("LEFT", "RIGHT", "DOWN", "UP")


class TestRewards:
    """What a step pays, with numbers worked out by hand."""

    def test_standard(self) -> None:
        env = gym.make(
            "StandardMaze-v0", shape=(3, 1), step_cost=2.0, goal_reward=5.0, cost_scale=10.0
        )
        env.reset(seed=0)
        assert env.step(0)[1:3] == (-20.0, False)
        assert env.step(2)[:3] == (1, -20.0, False)  # into the border: stays, pays the dearest
        assert env.step(0)[:3] == (0, 50.0, True)

    @staticmethod
    def terrain(heights: list[float], cost: str) -> gym.Env[Any, Any]:
        """Return a terrain of positions in a row with these heights."""
        table = np.array(heights)[:, np.newaxis]
        return TerrainMazeEnv.from_heights(table, cost=cost, goal_reward=5.0)

    @pytest.mark.parametrize(
        ("cost", "down", "up"),
        [("shifted", 5.0, 3.0), ("difference", 6.0, 4.0), ("climb", 4.0, 3.0)],
    )
    def test_terrain_into_the_goal(self, cost: str, down: float, up: float) -> None:
        for heights, reward in (([0.0, 1.0], down), ([1.0, 0.0], up)):
            env = self.terrain(heights, cost)
            env.reset(seed=0)
            assert env.step(1)[:3] == (1, 0.0, False)  # no move costs anything: bumps are free
            assert env.step(0)[:3] == (0, reward, True)

    @pytest.mark.parametrize(
        ("cost", "up", "down"),
        [("shifted", -2.0, 0.0), ("difference", -1.0, 1.0), ("climb", -2.0, -1.0)],
    )
    def test_terrain_elsewhere(self, cost: str, up: float, down: float) -> None:
        env = self.terrain([0.5, 0.0, 1.0], cost)
        env.reset(options={"state": 1})
        assert env.step(1)[:3] == (2, up, False)
        assert env.step(1)[:3] == (2, up, False)  # into the border: pays as the dearest move does
        assert env.step(0)[:3] == (1, down, False)
