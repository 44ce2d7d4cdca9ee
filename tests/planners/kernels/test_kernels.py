"""Full sweeps against the formula in numpy, bit for bit, on every path through the kernels."""

from __future__ import annotations

import gc
import math
import weakref
from typing import Any

import numpy as np
import pytest

from aggmaze import MoveMDP, TabularMDP
from aggmaze.grid import Grid
from aggmaze.recipes import StandardRecipe, TerrainRecipe, maze_model
from planners import bellman
from planners.bellman import MoveEngine, SparseEngine, local_engine
from planners.engine import Sweep
from planners.kernels import moves
from planners.kernels.tables import outcomes_of
from planners.kernels.vectors import sup_norm
from tests.planners.reference import Array, random_moves, random_tabular

GAMMA = 0.97


def grid(shape: tuple[int, ...], recipe: Any, p: float, seed: int = 0) -> MoveMDP:
    return maze_model(recipe.layout(Grid(shape), np.random.default_rng(seed)), recipe, p=p)


def ring(num_states: int, p: float) -> MoveMDP:
    """Four moves by fixed distances around a ring: they lead equally far but at its ends."""
    distances = np.array([-7, 7, -1, 1])
    successors = (np.arange(num_states)[:, np.newaxis] + distances) % num_states
    costs = np.random.default_rng(1).normal(size=successors.shape)
    costs[::5, 1] = np.inf
    costs[600:900, 2] = np.inf  # nowhere in some blocks
    costs[-3] = np.inf
    return MoveMDP(successors, costs, p=p)


MODELS = {
    "terrain": lambda: grid((37, 41), TerrainRecipe("smooth"), 0.95),
    "terrain, p = 1": lambda: grid((37, 41), TerrainRecipe("smooth"), 1.0),
    "maze": lambda: grid((30, 31), StandardRecipe(loops=0.1), 0.8),
    "six axes": lambda: grid((3, 4, 3, 3, 4, 3), TerrainRecipe("uniform"), 0.9),
    "ring": lambda: ring(2000, 0.7),
    "any successors, three moves": lambda: random_moves(2, 700, 3, p=0.6, terminals=5),
    "any successors, four moves": lambda: random_moves(3, 700, 4, p=0.5, terminals=5),
    "any successors, twelve moves": lambda: random_moves(4, 300, 12, p=0.5, terminals=5),
    "fewer states than a piece": lambda: random_moves(5, 9, 4, p=0.9),
    "costs of both signs of zero": lambda: MoveMDP(
        np.arange(160).reshape(40, 4) % 40, np.tile([0.0, -0.0, 0.0, np.inf], (40, 1)), p=0.9
    ),
}


def by_numpy(model: MoveMDP, V: Array) -> tuple[Array, Array]:
    """Return TV and the first best actions, every operation rounded as in the kernels."""
    chosen, every = model.slip_weights
    total = np.zeros(len(V))
    n = np.zeros(len(V), dtype=np.int64)
    q = model.move_costs + GAMMA * V[model.successors]
    for m in range(model.num_actions):
        available = np.isfinite(model.move_costs[:, m])
        total = np.where(available, total + q[:, m], total)
        n += available
    best = np.where(np.isfinite(model.move_costs), q, np.inf)
    actions = best.argmin(axis=1)
    if model.p < 1:
        worst = np.where(np.isfinite(model.move_costs), q, -np.inf)
        actions = np.where(chosen[n] < 0, worst.argmax(axis=1), actions)
    extreme = np.where(n > 0, q[np.arange(len(V)), actions], 0.0)
    return np.where(n > 0, chosen[n] * extreme + every[n] * total, 0.0), np.where(n > 0, actions, 0)


def same_bits(one: Array, other: Array) -> bool:
    """Whether two arrays are equal, zeros with the same sign."""
    return one.tobytes() == other.tobytes()


def values(num_states: int) -> Array:
    return np.random.default_rng(num_states).normal(size=num_states) * 1e3


def check_sweep(operators: bellman.Engine, V: Array, expected: Array, actions: Array) -> None:
    residuals = expected - V
    extremes = Sweep(residuals.min(), residuals.max(), expected.min(), expected.max())
    out = np.full(len(V), np.nan)
    assert operators.sweep(V, out) == extremes
    assert same_bits(out, expected)
    out[:] = np.nan
    found = np.full(len(V), -1, dtype=np.int32)
    assert operators.sweep(V, out, found) == extremes
    assert same_bits(out, expected)
    assert (found == actions).all()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("by_vectors", [False, True], ids=["one state", "vectors"])
def test_sweeps_of_moves(name: str, by_vectors: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bellman, "LEAST_VECTOR_WORK", 0 if by_vectors else 1 << 40)
    model = MODELS[name]()
    V = values(model.num_states)
    if "zero" in name:
        V[:] = np.where(V > 0, 0.0, -0.0)
    operators = MoveEngine(model, GAMMA, 1)
    assert operators._by_vectors == by_vectors
    check_sweep(operators, V, *by_numpy(model, V))


def test_moves_one_would_rather_not_make(monkeypatch: pytest.MonkeyPatch) -> None:
    """With p < 1/n the worst move is chosen, whatever the size of the model."""
    monkeypatch.setattr(bellman, "LEAST_VECTOR_WORK", 0)
    model = random_moves(6, 500, 4, p=0.1)
    V = values(500)
    check_sweep(local_engine(model, GAMMA), V, *by_numpy(model, V))


@pytest.mark.parametrize("name", ["terrain", "ring", "any successors, twelve moves"])
def test_values_do_not_depend_on_where_blocks_end(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bellman, "LEAST_VECTOR_WORK", 0)
    model = MODELS[name]()
    V = values(model.num_states)
    expected, expected_actions = by_numpy(model, V)
    tables = MoveEngine(model, GAMMA, 1)._flat_tables
    rng = np.random.default_rng(0)
    for count in (1, 2, 7):
        cuts = np.sort(rng.integers(model.num_states + 1, size=count)).tolist()
        out = np.full(len(V), np.nan)
        actions = np.full(len(V), -1, dtype=np.int32)
        for lo, hi in zip([0, *cuts], [*cuts, len(V)], strict=True):
            extremes = moves.vector_sweep(tables, GAMMA, V, out, actions, lo, hi)
            if lo < hi:
                residuals = (expected - V)[lo:hi]
                part = expected[lo:hi]
                assert extremes == (residuals.min(), residuals.max(), part.min(), part.max())
        assert same_bits(out, expected)
        assert (actions == expected_actions).all()


def windows(model: MoveMDP) -> Array:
    return MoveEngine(model, GAMMA, 1)._flat_tables.windows


def test_windows_are_the_distances_of_moves() -> None:
    """In a grid, all but the blocks with its first and its last row have them."""
    model = grid((60, 50), StandardRecipe(), 1.0)
    found = windows(model)
    inside = found[:, 0] < model.num_states
    assert found.shape == (-(-3000 // moves.BLOCK), 4)
    assert inside[1:-1].all()
    assert {tuple(np.abs(row)) for row in found[inside]} == {(50, 50, 1, 1)}


def test_one_successor_elsewhere_spoils_a_window() -> None:
    model = ring(2000, 0.9)
    assert (windows(model)[1:-1, 0] < 2000).all()
    successors = np.array(model.successors)
    successors[2 * moves.BLOCK + 5, 3] += 1
    spoilt = windows(MoveMDP(successors, model.move_costs, p=0.9))
    assert np.flatnonzero(spoilt[1:-1, 0] == 2000).tolist() == [1]


def test_windows_stay_inside_the_model() -> None:
    """Moves that would leave the model were they available in the whole block are looked up."""
    successors = np.tile(np.arange(300)[:, np.newaxis], (1, 2))
    costs = np.full((300, 2), np.inf)
    successors[40, 0], costs[40, 0] = 0, 1.0
    successors[290, 1], costs[290, 1] = 299, 1.0
    assert (windows(MoveMDP(successors, costs))[:, 0] == 300).all()


def row_mean(shares: Array, following: Array) -> float:
    """Return the mean over a row, summed from its begin, or from 16 entries on in four sums."""
    products = shares * following
    whole = len(products) - len(products) % 4 if len(products) >= 16 else 0
    sums = [0.0] * 4
    for i in range(whole):
        sums[i % 4] += products[i]
    total = (sums[0] + sums[1]) + (sums[2] + sums[3])
    for product in products[whole:]:
        total += product
    return float(total)


@pytest.mark.parametrize("successors", [3, 15, 16, 18, 23])
@pytest.mark.parametrize("seed", range(3))
def test_sweeps_of_general_models(seed: int, successors: int) -> None:
    model = random_tabular(seed, 60, 4, terminals=3, successors=successors)
    V = values(60)
    matrix = model.transitions
    expected, actions = np.zeros(60), np.zeros(60, dtype=np.int64)
    Q = np.full((60, 4), np.inf)
    for s in np.flatnonzero(~model.terminal):
        for a in np.flatnonzero(model.action_mask[s]):
            row = slice(matrix.indptr[4 * s + a], matrix.indptr[4 * s + a + 1])
            mean = row_mean(matrix.data[row], V[matrix.indices[row]])
            Q[s, a] = model.costs[s, a] + GAMMA * mean
        expected[s], actions[s] = Q[s].min(), Q[s].argmin()
    Q[model.terminal] = 0.0
    engine = SparseEngine(model, GAMMA, 1)
    check_sweep(engine, V, expected, actions)
    assert same_bits(engine.q_values(V), Q)
    out = np.empty(60)
    _, reading = engine.read(V, out)
    assert same_bits(out, expected)
    assert reading is not None
    np.testing.assert_array_equal(reading.actions, actions)
    available = np.arange(4) < outcomes_of(model).num_rows[:, np.newaxis]
    assert not (model.action_mask & ~available).any()
    assert model.action_mask[np.arange(60), outcomes_of(model).num_rows - 1].all()


def test_the_largest_cost_is_one_of_an_available_action() -> None:
    """Whatever the others cost, though it be no number."""
    costs = np.array([[1.0, np.nan, -3.0], [-np.inf, 2.0, np.nan]])
    model = TabularMDP.from_matrices(
        np.full((2, 3, 2), 0.5), costs=costs, action_mask=np.isfinite(costs)
    )
    assert SparseEngine(model, GAMMA, 1).max_cost == 3.0


def test_tables_go_when_their_model_does() -> None:
    model = random_tabular(0, 5, 2)
    assert outcomes_of(model) is outcomes_of(model)
    costs = np.zeros((5, 2))
    assert outcomes_of(model, costs).costs.base is costs
    room = weakref.ref(outcomes_of(model).num_rows)
    del model
    gc.collect()
    assert room() is None


@pytest.mark.parametrize("size", [1, 3, 64, 1001])
def test_sup_norm(size: int) -> None:
    vector = np.random.default_rng(size).normal(size=size)
    assert sup_norm(vector) == np.abs(vector).max()
    assert sup_norm(-np.abs(vector)) == np.abs(vector).max()
    for place in {0, size // 2, size - 1}:
        for bad in (math.inf, -math.inf):
            spoilt = vector.copy()
            spoilt[place] = bad
            assert sup_norm(spoilt) == math.inf
            spoilt[0] = math.nan
            assert math.isnan(sup_norm(spoilt))
        spoilt[:] = vector
        spoilt[place] = math.nan
        assert math.isnan(sup_norm(spoilt))
