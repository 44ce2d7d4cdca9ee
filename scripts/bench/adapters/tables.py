"""The model that every solver of the benchmark is given, and how it travels between processes.

Read by the Pythons of other environments: nothing but numpy and scipy is imported here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Tables:
    """A model as sparse rows of state-action pairs; costs are minimised.

    Parameters
    ----------
    transitions : csr_matrix, shape (S*A, S)
        Row ``s*A + a``; columns sorted, none twice, no zero stored.  An unavailable action stays
        in place at a cost that never pays, so a peer without masks solves the same model.
    costs : ndarray, shape (S, A)
    available : ndarray of bool, shape (S, A)
    """

    transitions: sp.csr_matrix
    costs: NDArray[np.float64]
    available: NDArray[np.bool_]

    @property
    def num_states(self) -> int:
        """Number of states S."""
        return self.costs.shape[0]

    @property
    def num_actions(self) -> int:
        """Number of actions A."""
        return self.costs.shape[1]

    @property
    def terminal(self) -> NDArray[np.bool_]:
        """States that stay in place at no cost, by every action there is; shape (S,)."""
        states, _, costs, rows = self.pairs()
        diagonal = np.asarray(rows[np.arange(len(states)), states]).reshape(-1)
        goes_on = (costs != 0) | (diagonal != 1)
        return np.bincount(states, goes_on, self.num_states) == 0

    def pairs(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], sp.csr_matrix]:
        """Return states, actions, costs and rows of the pairs that are available."""
        states, actions = np.nonzero(self.available)
        rows = self.transitions
        if not self.available.all():
            rows = rows[states * self.num_actions + actions]
        return states, actions, self.costs[states, actions], rows

    def matrices(self) -> list[sp.csr_matrix]:
        """Return a matrix (S, S) for each action."""
        return [sp.csr_matrix(self.transitions[a :: self.num_actions]) for a in self._actions]

    def nested(self) -> tuple[list[list[list[int]]], list[list[list[float]]]]:
        """Return columns and probabilities as lists ``[state][action][outcome]``."""
        bounds = self.transitions.indptr.tolist()
        columns = self.transitions.indices.tolist()
        probabilities = self.transitions.data.tolist()
        rows = range(0, self.num_states * self.num_actions, self.num_actions)
        return (
            [[columns[bounds[r + a] : bounds[r + a + 1]] for a in self._actions] for r in rows],
            [
                [probabilities[bounds[r + a] : bounds[r + a + 1]] for a in self._actions]
                for r in rows
            ],
        )

    @property
    def _actions(self) -> range:
        return range(self.num_actions)


def write_tables(path: Path, tables: Tables) -> None:
    """Write tables to an ``.npz`` file."""
    matrix = tables.transitions
    np.savez(
        path,
        indptr=matrix.indptr,
        indices=matrix.indices,
        data=matrix.data,
        costs=tables.costs,
        available=tables.available,
    )


def read_model(path: Path) -> Tables | dict[str, NDArray[Any]]:
    """Read what `write_tables` wrote; of a model as the project keeps it, its arrays by name."""
    with np.load(path) as file:
        arrays = dict(file)
    if "successors" in arrays:
        return arrays
    costs = arrays["costs"]
    parts = (arrays["data"], arrays["indices"], arrays["indptr"])
    matrix = sp.csr_matrix(parts, shape=(costs.size, costs.shape[0]))
    return Tables(matrix, costs, arrays["available"])
