"""Orders of sweeps: permutations that turn every axis, and grids found by their moves alone."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggmaze import MoveMDP
from aggmaze.recipes import StandardRecipe, TerrainRecipe
from planners.bellman import local_engine
from planners.sweeps.orders import coprime_step, directions, grid_shape
from tests import strategies
from tests.planners.reference import (
    Array,
    action_values,
    dense,
    maze_of,
    random_grid,
    random_moves,
    random_tabular,
)

RECIPES = [
    StandardRecipe(),
    StandardRecipe("depth_first", loops=0.2),
    StandardRecipe(loops=1.0),
    TerrainRecipe("uniform"),
]


def along(shape: tuple[int, ...], signs: tuple[int, ...]) -> Array:
    """States row by row, an axis of sign -1 from its end to its beginning."""
    axes = [range(size)[::sign] for size, sign in zip(shape, signs, strict=True)]
    return np.array([np.ravel_multi_index(at, shape) for at in itertools.product(*axes)])


def cycle(model: MoveMDP, shape: tuple[int, ...] | None) -> list[Array]:
    """The orders of sweeps, written out, until they begin again."""
    identity = np.arange(model.num_states)
    swept = directions(model, shape)
    found: list[Array] = []
    for order, reverse in itertools.islice(swept, 16):
        states = identity if order is None else order
        found.append(states[::-1] if reverse else states)
    num_axes = 0 if shape is None else sum(size > 1 for size in shape)
    length = 2 * min(2 ** max(0, num_axes - 1), 8)
    for t, states in enumerate(found):
        np.testing.assert_array_equal(states, found[t % length])
    return found[:length]


# ---------------------------------------------------------------------------------------------
# Directions.


@settings(max_examples=50)
@given(strategies.shapes(max_dims=6, max_states=100))
def test_every_combination_of_directions_is_swept_once(shape: tuple[int, ...]) -> None:
    model = random_grid(0, shape, 0.9)
    orders = cycle(model, shape)
    identity = np.arange(model.num_states)
    np.testing.assert_array_equal(orders[0], identity)
    for states, opposite in zip(orders[::2], orders[1::2], strict=True):
        np.testing.assert_array_equal(np.sort(states), identity)
        np.testing.assert_array_equal(states[::-1], opposite)
    # Axes of one position have no direction.
    signs = itertools.product(*((1, -1) if size > 1 else (1,) for size in shape))
    possible = {along(shape, each).tobytes() for each in signs}
    swept = {states.astype(np.int64).tobytes() for states in orders}
    assert swept <= possible
    assert len(swept) == min(len(orders), len(possible))
    if len(possible) <= 16:
        assert swept == possible


def test_elsewhere_the_states_are_swept_there_and_back() -> None:
    model = random_moves(0, 12, 3, p=0.9)
    assert list(itertools.islice(directions(model, None), 4)) == [(None, False), (None, True)] * 2


def test_orders_cannot_be_written_to() -> None:
    orders = [
        order for order, _ in itertools.islice(directions(random_grid(0, (3, 4), 1), (3, 4)), 4)
    ]
    assert [order is None for order in orders] == [True, True, False, False]
    for order in orders[2:]:
        assert order is not None
        assert not order.flags.writeable


@settings(max_examples=50)
@given(strategies.shapes(max_states=40), st.sampled_from([1.0, 0.9, 0.2]), strategies.seeds)
def test_sweeps_follow_the_orders(shape: tuple[int, ...], p: float, seed: int) -> None:
    """Each state solves its equation: new values of those before it and itself, old ones after."""
    gamma = 0.9
    model = random_grid(seed, shape, p, blocked=0.1)
    tables, engine = dense(model), local_engine(model, gamma)
    V = np.where(tables.terminal, 0.0, np.random.default_rng(seed).normal(size=model.num_states))
    for order, reverse in itertools.islice(directions(model, shape), 4):
        new = V.copy()
        engine.gauss_seidel(new, order, reverse)
        states = np.arange(model.num_states) if order is None else order
        mixed = V.copy()
        for s in states[::-1] if reverse else states:
            mixed[s] = new[s]
            if not tables.terminal[s]:
                assert abs(action_values(tables, mixed, gamma)[s].min() - new[s]) < 1e-13
        V = new


# ---------------------------------------------------------------------------------------------
# Grids.


@settings(max_examples=100)
@given(
    strategies.shapes().filter(lambda shape: math.prod(shape) > 1),
    st.sampled_from(RECIPES),
    st.sampled_from([1.0, 0.8]),
    strategies.seeds,
)
def test_the_shape_of_a_maze_is_found(
    shape: tuple[int, ...], recipe: StandardRecipe | TerrainRecipe, p: float, seed: int
) -> None:
    model = maze_of(recipe, shape, p=p, seed=seed)
    # Nobody moves along an axis of one position.
    assert grid_shape(model) == tuple(size for size in shape if size > 1)


@settings(max_examples=100)
@given(strategies.shapes(), st.sampled_from([0.0, 0.5, 0.95]), strategies.seeds)
def test_walls_hide_axes_and_nothing_else(
    shape: tuple[int, ...], blocked: float, seed: int
) -> None:
    """What is found has the axes along which somebody moves; if none moves along the last, none."""
    model = random_grid(seed, shape, 0.9, blocked=blocked)
    moves = np.abs(model.successors - np.arange(model.num_states)[:, np.newaxis])
    distances = sorted(set(moves[np.isfinite(model.move_costs)].tolist()) - {0})
    if distances[:1] != [1]:
        assert grid_shape(model) is None
        return
    ends = [*distances[1:], model.num_states]
    sizes = [end // stride for stride, end in zip(distances, ends, strict=True)]
    assert grid_shape(model) == tuple(sizes[::-1])
    assert math.prod(sizes) == model.num_states


@pytest.mark.parametrize("shape", [(150, 120), (40_000,), (20, 30, 25)])
def test_some_states_tell_the_shape_of_a_large_grid(shape: tuple[int, ...]) -> None:
    assert grid_shape(maze_of(StandardRecipe(), shape)) == shape


def moving(num_states: int, steps: list[int]) -> MoveMDP:
    """Moves by fixed distances, round the ends."""
    successors = (np.arange(num_states)[:, np.newaxis] + steps) % num_states
    return MoveMDP(successors, np.ones(successors.shape), p=0.9)


@pytest.mark.parametrize(
    "model",
    [
        random_tabular(0, 12, 3),
        maze_of(StandardRecipe(), (4, 3)).to_tabular(),  # whose moves are not listed one by one
        moving(12, [1, -1]),  # a ring
        moving(12, [3, -3, 1, -1]),  # a torus
        moving(12, [2, -2]),  # steps along no last axis
        moving(12, [0, 0]),  # nobody moves
        random_moves(0, 40, 4, p=0.9),
    ],
    ids=["table", "table of a maze", "ring", "torus", "twos", "still", "graph"],
)
def test_what_is_no_grid(model: MoveMDP) -> None:
    assert grid_shape(model) is None


def test_rows_that_do_not_come_out_even() -> None:
    # Ten states in rows of three, as if cut off from a grid.
    states = np.arange(10)
    successors = np.stack([states - 3, states + 3, states - 1, states + 1], axis=1)
    costs = np.where((successors < 0) | (successors > 9), np.inf, 1.0)
    assert grid_shape(MoveMDP(np.clip(successors, 0, 9), costs, p=0.9)) is None


@given(st.integers(1, 10**6), st.integers(1, 10**5))
def test_samples_meet_enough_states(num_states: int, sample: int) -> None:
    step = coprime_step(num_states, sample)
    assert math.gcd(step, num_states) == 1
    assert len(range(0, num_states, step)) >= min(sample, num_states)
