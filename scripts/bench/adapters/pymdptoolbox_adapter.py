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
from mdptoolbox.mdp import FiniteHorizon, RelativeValueIteration, ValueIteration
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


def horizon(tables: Tables, objective: dict[str, Any]) -> Solve:
    """Solve a finite horizon by backward induction."""
    warnings.simplefilter("ignore", sp.SparseEfficiencyWarning)
    steps = objective["steps"]
    built = FiniteHorizon(tables.matrices(), -tables.costs, 1.0, steps)

    def solve(variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        solver = copy.copy(built)
        solver.V = np.zeros((solver.S, steps + 1))
        solver.policy = np.empty((solver.S, steps), dtype=int)
        solver.run()
        return Outcome(lambda: -np.ascontiguousarray(solver.V.T))

    return solve


def average(tables: Tables, objective: dict[str, Any]) -> Solve:
    """Solve for the mean cost of a step by relative value iteration."""
    warnings.simplefilter("ignore", sp.SparseEfficiencyWarning)
    built = RelativeValueIteration(tables.matrices(), -tables.costs)

    def solve(variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        solver = copy.copy(built)
        solver.V, solver.gain, solver.iter = np.zeros(solver.S), 0.0, 0
        solver.epsilon, solver.max_iter = epsilon, MANY
        solver.run()
        return Outcome(lambda: np.full(solver.S, -solver.average_reward), int(solver.iter))

    return solve


OBJECTIVES = {"horizon": horizon, "average": average}
