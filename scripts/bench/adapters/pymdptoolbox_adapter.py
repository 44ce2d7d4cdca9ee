"""pymdptoolbox with a sparse matrix for each action.

Its constructors take the accuracy together with the model, which they check and copy for longer
than they then solve it; so that this counts as building, one is constructed and its copies are
given other accuracies.  The bound of the number of iterations, found in a Python loop over
S * S * A entries, is replaced by a large number.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import mdptoolbox.mdp
import numpy as np
import scipy.sparse as sp
from outcome import Outcome
from tables import read_tables

MANY = 10**7


class Problem:
    """A model as pymdptoolbox takes it."""

    def __init__(self, path: Path, gamma: float) -> None:
        tables = read_tables(path)
        mdptoolbox.mdp.ValueIteration._boundIter = lambda solver, epsilon: setattr(
            solver, "max_iter", MANY
        )
        # About its own code.
        warnings.simplefilter("ignore", sp.SparseEfficiencyWarning)
        self._built = mdptoolbox.mdp.ValueIteration(tables.matrices(), -tables.costs, gamma)
        self._gamma = gamma
        # Where its modified policy iteration starts; its value iteration starts from 0.
        self._lowest = -float(tables.costs.max()) / (1 - gamma)

    def solve(self, variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        """Solve by one of its classes."""
        kind = getattr(mdptoolbox.mdp, variant["method"])
        solver = kind.__new__(kind)
        solver.__dict__.update(self._built.__dict__)
        is_modified = variant["method"] == "PolicyIterationModified"
        solver.V = np.full(solver.S, self._lowest if is_modified else 0.0)
        solver.epsilon = epsilon
        solver.thresh = epsilon * (1 - self._gamma) / self._gamma
        solver.iter = 0
        solver.run()
        return Outcome(lambda: -np.asarray(solver.V), int(solver.iter))
