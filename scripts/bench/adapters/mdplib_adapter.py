"""mdplib's compiled core, given the table that its own reader would make of a CSV file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from mdp import MDP
from mdp._core import _mdp_core
from outcome import Outcome
from tables import read_tables


class Problem:
    """A model as mdplib keeps it: a row (s, a, s', probability, reward) for each outcome."""

    def __init__(self, path: Path, gamma: float) -> None:
        tables = read_tables(path)
        matrix = tables.transitions
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        outcomes = np.empty((matrix.nnz, 5))
        outcomes[:, 0], outcomes[:, 1] = np.divmod(rows, tables.num_actions)
        outcomes[:, 2], outcomes[:, 3] = matrix.indices, matrix.data
        outcomes[:, 4] = -tables.costs.reshape(-1)[rows]
        # Its constructor calls a Python function for each of S * A * S triples.
        self._mdp = MDP.__new__(MDP)
        self._mdp.S = list(range(tables.num_states))
        self._mdp.A = list(range(tables.num_actions))
        self._mdp.transition_matrix = outcomes
        self._mdp.transition_index = _mdp_core.build_transition_index(outcomes)
        self._gamma = gamma

    def solve(self, variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        """Solve by VI, VIGS or PI; its tolerance is that of the last change."""
        getattr(self._mdp, variant["method"])(
            gamma=self._gamma,
            tol=epsilon * (1 - self._gamma) / self._gamma,
            max_iter=10**7,
            norm_type=1,
            verbose=False,
        )
        return Outcome(lambda: -np.asarray(self._mdp.value), int(self._mdp.n_iterations))
