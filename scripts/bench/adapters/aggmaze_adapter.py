"""The project itself: `planners.solve` on the model as the project keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from outcome import Outcome, Solve
from tables import read_tables

import planners
from aggmaze import MoveMDP, TabularMDP

# Loads the compiler's runtime and the kernels common to all methods, as importing other libraries
# does, so that neither counts as memory of a solve.
_tiny = MoveMDP([[1], [0]], [[1.0], [np.inf]])
for _model in (_tiny, _tiny.to_tabular()):
    planners.solve(_model, gamma=0.5, method="value_iteration")


def problem(path: Path, gamma: float) -> Solve:
    """Read a model of the project's own classes; solve it to a certified accuracy relative to V."""
    with np.load(path) as arrays:
        is_moves = "successors" in arrays
        if is_moves:
            model: MoveMDP | TabularMDP = MoveMDP(
                arrays["successors"], arrays["move_costs"], p=float(arrays["p"])
            )
    if not is_moves:
        tables = read_tables(path)
        model = TabularMDP(tables.transitions, tables.costs, action_mask=tables.available)
    model.validate()

    def solve(variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        result = planners.solve(model, gamma=gamma, tol=tol, **variant)
        return Outcome(
            lambda: result.values, result.num_iterations, result.bound, str(result.message)
        )

    return solve
