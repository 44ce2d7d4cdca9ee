"""mdplib's compiled core, given the table that its own reader would make of a CSV file."""

from __future__ import annotations

from typing import Any

import numpy as np
from mdp import MDP
from mdp._core import _mdp_core
from outcome import Outcome, Solve
from tables import Tables


def problem(tables: Tables, gamma: float) -> Solve:
    """Keep a row (s, a, s', probability, reward) for each outcome; solve by VI, VIGS or PI."""
    matrix = tables.transitions
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    outcomes = np.empty((matrix.nnz, 5))
    outcomes[:, 0], outcomes[:, 1] = np.divmod(rows, tables.num_actions)
    outcomes[:, 2], outcomes[:, 3] = matrix.indices, matrix.data
    outcomes[:, 4] = -tables.costs.reshape(-1)[rows]
    # Its constructor calls a Python function for each of S * A * S triples.
    mdp = MDP.__new__(MDP)
    mdp.S = list(range(tables.num_states))
    mdp.A = list(range(tables.num_actions))
    mdp.transition_matrix = outcomes
    mdp.transition_index = _mdp_core.build_transition_index(outcomes)

    def solve(variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        # Its tolerance is that of the last change.
        getattr(mdp, variant["method"])(
            gamma=gamma,
            tol=epsilon * (1 - gamma) / gamma,
            max_iter=10**7,
            norm_type=1,
            verbose=False,
        )
        return Outcome(lambda: -np.asarray(mdp.value), int(mdp.n_iterations))

    return solve
