"""Models of many kinds, and policies, for the tests of what a policy is worth."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

from aggmaze import MoveMDP, TabularMDP
from aggmaze.grid import Grid
from aggmaze.recipes import Recipe, StandardRecipe, TerrainRecipe, maze_model
from tests.planners.reference import Array, Model, maze_of, random_moves, random_tabular

MAZES: dict[str, Recipe] = {
    "kruskal": StandardRecipe(),
    "depth first": StandardRecipe("depth_first"),
    "loops": StandardRecipe(loops=0.1),
    "smooth": TerrainRecipe(),
    "uniform": TerrainRecipe("uniform"),
    "difference": TerrainRecipe(cost="difference"),
}


def maze(name: str, size: int, p: float) -> MoveMDP:
    recipe = MAZES[name]
    return maze_model(recipe.layout(Grid((size, size)), np.random.default_rng(5)), recipe, p=p)


def drawn(model: Model, seed: int) -> tuple[Array, Array]:
    """One available action in each state, and probabilities of all of them."""
    weights = np.where(
        model.action_mask, np.random.default_rng(seed).random(model.action_mask.shape), 0.0
    )
    return weights.argmax(axis=1), weights / weights.sum(axis=1, keepdims=True)


def by_lu(chain: TabularMDP, gamma: float) -> Array:
    inside = np.flatnonzero(~chain.terminal)
    matrix = sp.eye_array(len(inside)) - gamma * chain.transitions[inside][:, inside]
    V = np.zeros(chain.num_states)
    V[inside] = spsolve(matrix.tocsc(), chain.costs[inside, 0])
    return V


def chain_of(successors: Array, costs: Array) -> TabularMDP:
    """Each state leads to one other; none is terminal."""
    size = len(successors)
    matrix = sp.csr_array((np.ones(size), successors, np.arange(size + 1)), shape=(size, size))
    return TabularMDP(matrix, costs[:, np.newaxis], terminal=np.zeros(size, dtype=bool))


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
