"""The models that the benchmarks run on, and their tables."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from adapters.tables import Tables, write_tables
from families import FAMILIES, garnet, maze, terrain

from aggmaze import MoveMDP, TabularMDP

Model = TabularMDP | MoveMDP

#: Beyond the families that others use: small ones, and cells that only this benchmark asks for.
CASES: dict[str, Callable[[int], Model]] = {
    **FAMILIES,
    "maze-20": partial(maze, 20),
    "slip-terrain-20": partial(terrain, 20, p=0.95),
    "garnet-1e3-5": partial(garnet, 1000, 4, 5),
    "rewarding-slip-terrain-316": partial(terrain, 316, p=0.95, goal_reward=10.0),
    "mild-difference-slip-terrain-316": partial(terrain, 316, p=0.95, cost="difference"),
    "slip-terrain-3d-46": partial(terrain, 46, num_axes=3, p=0.95),
}

#: More entries of the general table than this are not written: a model of six dimensions holds
#: 144 a state.
MOST_ENTRIES = 100_000_000


def case(name: str) -> Callable[[int], Model]:
    """Return what makes the named model from a seed."""
    try:
        return CASES[name]
    except KeyError:
        close = difflib.get_close_matches(name, CASES, n=3, cutoff=0.4)
        raise ValueError(
            f"no family {name!r}; closest: {', '.join(close)}" if close else f"no family {name!r}"
        ) from None


def tables_of(model: Model) -> Tables:
    """Return the general table of a model, every outcome once."""
    if isinstance(model, MoveMDP):
        moves = model.available.sum(axis=1, dtype=np.int64)
        if int((moves * moves).sum()) > MOST_ENTRIES:
            raise ValueError(f"its general table has more than {MOST_ENTRIES:,} entries")
    table = model.to_tabular()
    matrix = sp.csr_matrix(
        (
            table.transitions.data.copy(),
            table.transitions.indices.astype(np.int32),
            table.transitions.indptr.astype(np.int32),
        ),
        shape=table.transitions.shape,
    )
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    costs = table.costs.copy()
    # Terminal states stay in place at no cost by one action, and need no more of them.
    available = table.action_mask.copy()
    costs[table.terminal] = 0.0
    available[table.terminal] = False
    available[table.terminal, 0] = True
    return Tables(matrix, costs, available)


def write_model(folder: Path, model: Model, tables: Tables) -> tuple[Path, Path]:
    """Write a model as the peers take it and as the project keeps it; return both paths."""
    general = folder / "tables.npz"
    write_tables(general, tables)
    if not isinstance(model, MoveMDP):
        return general, general
    own = folder / "moves.npz"
    np.savez(own, successors=model.successors, move_costs=model.move_costs, p=model.p)
    return general, own
