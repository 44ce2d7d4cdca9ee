"""Every method on 500 generated models: true error <= bound at every iteration, and an end.

The truth is dense policy iteration in extended precision (`reference.truth`).
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import planners
from aggmaze import MoveMDP, TabularMDP
from planners.bellman import local_engine
from planners.certificate import Certifier
from tests.planners.reference import PLAIN_METHODS, Array, dense, methods_for, truth

Model = MoveMDP | TabularMDP

KINDS = ("maze", "looped", "terrain", "difference", "cube", "moves", "graph", "costs", "rewards")
GAMMAS = (0.5, 0.9, 0.99, 0.999)


def generate(seed: int) -> tuple[Model, float]:
    """Return a model of at most about 50 states and a discount."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    gamma = GAMMAS[seed // len(KINDS) % len(GAMMAS)]
    p = float(rng.choice([1.0, 0.95, 0.8, 0.5, 0.2, 1e-9]))
    shape = tuple(int(n) for n in rng.integers(2, 8, 2))
    layout = int(rng.integers(1000))
    if kind in ("maze", "looped"):
        loops = 0.2 if kind == "looped" else 0.0
        keywords = {"shape": shape, "loops": loops, "layout_seed": layout, "p": p}
        model = planners.as_model(gym.make("StandardMaze-v0", **keywords))
    elif kind in ("terrain", "difference"):
        keywords = {"shape": shape, "layout_seed": layout, "p": p, "terrain": "uniform"}
        cost = "shifted" if kind == "terrain" else "difference"
        model = planners.as_model(gym.make("TerrainMaze-v0", cost=cost, **keywords))
    elif kind == "cube":
        cube = tuple(int(n) for n in rng.integers(1, 4, 3))
        if np.prod(cube) == 1:
            cube = (2, 2, 2)
        keywords = {"shape": cube, "layout_seed": layout, "p": p}
        sort = str(rng.choice(["standard", "terrain"]))
        model = planners.as_model(gym.make("NDMaze-v0", kind=sort, **keywords))
    elif kind == "moves":
        size, moves = int(rng.integers(1, 40)), int(rng.integers(1, 5))
        costs = rng.normal(rng.integers(-1, 2), 1.0, (size, moves))
        costs[rng.random((size, moves)) < 0.3] = np.inf
        model = MoveMDP(rng.integers(0, size, (size, moves)), costs, p=p)
    else:
        model = graph(rng, kind)
    # Half of the grids as general sparse models.
    if isinstance(model, MoveMDP) and rng.random() < 0.5:
        model = model.to_tabular()
    return model, gamma


def graph(rng: np.random.Generator, kind: str) -> TabularMDP:
    size, actions = int(rng.integers(1, 40)), int(rng.integers(1, 5))
    likely = rng.choice([0.0, 0.9, 1.0])
    P = np.zeros((size, actions, size))
    rows, columns = np.indices((size, actions))
    for _ in range(3):
        P[rows, columns, rng.integers(0, size, (size, actions))] += rng.random((size, actions))
    P *= (1 - likely) / P.sum(axis=2, keepdims=True)
    P[rows, columns, rng.integers(0, size, (size, actions))] += likely
    P /= P.sum(axis=2, keepdims=True)
    mean = {"graph": 0.0, "costs": 2.0, "rewards": -2.0}[kind]
    costs = rng.normal(mean, 1.0, (size, actions))
    terminal = rng.random(size) < rng.choice([0.0, 0.1])
    P[terminal], costs[terminal] = np.eye(size)[terminal, np.newaxis], 0.0
    mask = rng.random((size, actions)) < 0.8
    mask[:, 0] = True
    return TabularMDP.from_matrices(P, costs=costs, terminal=terminal, action_mask=mask)


def violation(progress: planners.Progress, V: Array, off: float) -> str | None:
    error = float(np.abs(progress.values - V).max())
    if error <= progress.bound + off:
        return None
    return f"iteration {progress.iteration}: error {error}, bound {progress.bound}"


@pytest.mark.parametrize("first", range(0, 500, 20))
def test_the_bound_holds_at_every_iteration(first: int) -> None:
    for seed in range(first, first + 20):
        model, gamma = generate(seed)
        V, off = truth(dense(model), gamma)
        least = Certifier(local_engine(model, gamma)).least_tol
        for method in methods_for(model):
            found = []
            slow = method in PLAIN_METHODS
            result = planners.solve(
                model,
                gamma=gamma,
                method=method,
                tol=None if slow else max(1e-9, 100 * least),
                # Value iteration may need twice as many as the others are allowed.
                num_iterations=40 if slow else 400 + round(10 / (1 - gamma)),
                certify="every",
                callback=lambda progress: found.append(violation(progress, V, off)),  # noqa: B023
                num_threads=1,
            )
            assert not any(found), (seed, method, next(filter(None, found)))
            assert np.abs(result.values - V).max() <= result.bound + off, (seed, method)
            # Where V* is 0, no relative tolerance is met.
            if not slow and np.abs(V).max() > 0:
                assert result.status == "converged", (seed, method, result.message)
