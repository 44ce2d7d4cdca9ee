"""Models and runs that one process and several must agree on; read by both sides of the checks."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import scipy.sparse as sp

import aggmaze
import planners
from aggmaze import MoveMDP, TabularMDP

GAMMA = 0.95


def garnet(num_states: int, num_actions: int, branching: int, seed: int, ends: int) -> TabularMDP:
    """A random sparse model: each row leads to some states drawn from all."""
    rng = np.random.default_rng(seed)
    num_rows = num_states * num_actions
    following = rng.integers(num_states, size=(num_rows, branching))
    shares = rng.dirichlet(np.ones(branching), size=num_rows)
    costs = rng.random((num_states, num_actions))
    mask = rng.random((num_states, num_actions)) < 0.8
    mask[:, 0] = True
    terminal = np.zeros(num_states, dtype=bool)
    terminal[rng.choice(num_states, ends, replace=False)] = True
    rows_of_ends = np.flatnonzero(np.repeat(terminal, num_actions))
    following[rows_of_ends] = (rows_of_ends // num_actions)[:, np.newaxis]
    costs[terminal] = 0.0
    matrix = sp.csr_array(
        (
            shares.reshape(-1),
            following.reshape(-1),
            np.arange(0, num_rows * branching + 1, branching),
        ),
        shape=(num_rows, num_states),
    )
    matrix.sum_duplicates()
    return TabularMDP(matrix, costs, action_mask=mask, terminal=terminal).validate()


def scattered(num_states: int, num_moves: int, p: float, seed: int) -> MoveMDP:
    """Moves that lead anywhere, some of them unavailable, and a few terminal states."""
    rng = np.random.default_rng(seed)
    costs = rng.standard_normal((num_states, num_moves))
    costs[rng.random(costs.shape) < 0.3] = np.inf
    costs[:3] = np.inf
    return MoveMDP(rng.integers(num_states, size=costs.shape), costs, p=p)


def made(env_id: str, **arguments: Any) -> Callable[[], Any]:
    return lambda: gym.make(env_id, **arguments).unwrapped.transition_model()


#: By name: what makes the model, and the same model as several processes are given it.
MODELS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {}


def _add(name: str, make: Callable[[], Any], by_rows: Callable[[], Any] | None = None) -> None:
    MODELS[name] = make, by_rows or make


def _add_maze(name: str, env_id: str, **arguments: Any) -> None:
    _add(name, made(env_id, **arguments), lambda: aggmaze.model_by_rows(env_id, **arguments))


_add("terrain", made("TerrainMaze-v0", shape=(37, 41)))
_add("terrain, slips", made("TerrainMaze-v0", shape=(40, 31), p=0.8, cost="difference"))
_add("terrain, large", made("TerrainMaze-v0", shape=(211, 190), p=0.9))
_add("maze", made("StandardMaze-v0", shape=(40, 35), loops=0.1))
_add("maze, slips", made("StandardMaze-v0", shape=(30, 33), p=0.9))
_add("maze, reversed", made("StandardMaze-v0", shape=(20, 21), loops=0.5, p=0.1))
_add("3-D", made("NDMaze-v0", shape=(11, 9, 10), p=0.9))
_add("3-D terrain", made("NDMaze-v0", shape=(12, 8, 9), kind="terrain"))
_add("scattered", lambda: scattered(3001, 5, 0.7, 1))
_add("garnet", lambda: garnet(2000, 3, 5, 2, ends=4))
_add("garnet without ends", lambda: garnet(1501, 4, 3, 3, ends=0))
_add("garnet, long rows", lambda: garnet(700, 3, 40, 4, ends=1))
_add("five states", lambda: garnet(5, 2, 2, 5, ends=1))
# An episode that ends in state 1, from where another action leads on: one state more.
_add(
    "an added state",
    lambda: planners.as_model({0: {0: [(1.0, 1, -1.0, True)]}, 1: {0: [(1.0, 0, -2.0, False)]}}),
)
_add_maze("noise by rows", "TerrainMaze-v0", shape=(90, 71), terrain="noise", p=0.9)
_add_maze("binary tree by rows", "StandardMaze-v0", shape=(60, 51), generator="binary_tree")


def _in_a_file(model: TabularMDP) -> Any:
    """Return a table as it is read by block from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        aggmaze.save_rows(model, path)
        return aggmaze.open_rows(path)  # mapped: it stays when its name is gone


_add(
    "a file of rows",
    lambda: garnet(900, 3, 4, 6, ends=2),
    lambda: _in_a_file(garnet(900, 3, 4, 6, ends=2)),
)
_BINARY: dict[str, Any] = {"shape": (31, 29), "generator": "binary_tree", "p": 0.9}
_add(
    "a file of a maze by rows",
    lambda: made("StandardMaze-v0", **_BINARY)().to_tabular(),
    lambda: _in_a_file(aggmaze.model_by_rows("StandardMaze-v0", **_BINARY)),
)

_SWEEPS: list[dict[str, Any]] = [
    {"method": "value_iteration"},
    {"method": "value_iteration", "num_iterations": 37},
    {"method": "adaptive_aggregation", "num_iterations": 60, "epsilon": 0.2},
    {"method": "adaptive_aggregation", "epsilon": "shrink"},
]
_MORE: list[dict[str, Any]] = [
    {"method": "value_iteration", "atol": 1e-3, "certify": "every"},
    {
        "method": "adaptive_aggregation",
        "num_iterations": 50,
        "epsilon": 1e-6,
        "step_index": "phase",
        "num_global": 0,
        "seed": 7,
    },
    {"method": "adaptive_aggregation", "epsilon": "shrink", "num_global": 3, "certify": "every"},
]


def runs(name: str) -> list[dict[str, Any]]:
    """Runs that must give the same bits on any number of processes, and in one without PETSc."""
    if name.startswith("a file"):
        return _SWEEPS[::2]  # the methods once: what differs is where rows come from
    return [*_SWEEPS, *(_MORE if name in ("terrain, slips", "garnet", "scattered") else [])]


#: Runs of which only bounds must hold: PETSc's solvers sum in the order of the parts.
EVALUATING: list[dict[str, Any]] = [
    {"method": "policy_iteration"},
    {"method": "policy_iteration", "ksp": "bicgstab", "pc": "jacobi"},
    {"method": "policy_iteration", "pc": "gamg"},
    {"method": "policy_iteration", "pc": "none"},
    {"method": "modified_policy_iteration"},
    {"method": "modified_policy_iteration", "ksp": "bicgstab", "pc": "gamg"},
    {"method": "modified_policy_iteration", "inner_sweeps": 7},
]
EVALUATED = ("terrain, slips", "scattered", "garnet")
