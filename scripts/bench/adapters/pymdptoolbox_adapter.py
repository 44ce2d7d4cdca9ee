"""pymdptoolbox with a sparse matrix for each action.

Its constructors take the accuracy together with the model, which they check and copy for longer
than they then solve it; so that this counts as building, one is constructed and its copies are
given other accuracies.  The bound of the number of iterations, found in a Python loop over
S * S * A entries, is replaced by a large number.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from mdptoolbox.mdp import ValueIteration
from outcome import Outcome, Solve
from tables import Tables

MANY = 10**7


def problem(tables: Tables, gamma: float) -> Solve:
    """Solve by value iteration from 0."""
    ValueIteration._boundIter = lambda solver, epsilon: setattr(solver, "max_iter", MANY)
    # About its own code.
    warnings.simplefilter("ignore", sp.SparseEfficiencyWarning)
    built = ValueIteration(tables.matrices(), -tables.costs, gamma)

    def solve(variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        solver = copy.copy(built)
        solver.V = np.zeros(solver.S)
        solver.epsilon = epsilon
        solver.thresh = epsilon * (1 - gamma) / gamma
        solver.iter = 0
        solver.run()
        return Outcome(lambda: -np.asarray(solver.V), int(solver.iter))

    return solve
