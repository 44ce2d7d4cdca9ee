"""The models of the benchmarks as tables, and as files for the processes that solve them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from adapters.tables import Tables, write_tables
from families import Model

from aggmaze import MoveMDP

#: More entries of the general table than this are not written: a model of six dimensions holds
#: 144 a state.
MOST_ENTRIES = 100_000_000


def num_entries(model: MoveMDP) -> int:
    """Return how many outcomes the general table of a grid model lists."""
    moves = model.available.sum(axis=1, dtype=np.int64)
    return int((moves * moves).sum())


def tables_of(model: Model) -> Tables:
    """Return the general table of a model, every outcome once."""
    if isinstance(model, MoveMDP) and num_entries(model) > MOST_ENTRIES:
        raise ValueError(f"its general table has more than {MOST_ENTRIES:,} entries")
    table = model.to_tabular()
    matrix = sp.csr_matrix(table.transitions, copy=True)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
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
    return general, write_moves(folder, model) if isinstance(model, MoveMDP) else general


def write_moves(folder: Path, model: MoveMDP) -> Path:
    """Write a grid model as the project keeps it; return the path."""
    path = folder / "moves.npz"
    np.savez(path, successors=model.successors, move_costs=model.move_costs, p=model.p)
    return path
