"""The project itself: `planners.solve` on the model as the project keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from outcome import Outcome
from tables import read_tables

import planners
from aggmaze import MoveMDP, TabularMDP

# Loads the compiler's runtime and the kernels common to all methods, as importing other libraries
# does, so that neither counts as memory of a solve.
_tiny = MoveMDP([[1], [0]], [[1.0], [np.inf]])
for _model in (_tiny, _tiny.to_tabular()):
    planners.solve(_model, gamma=0.5, method="value_iteration")


class Problem:
    """A model of the project's own classes."""

    def __init__(self, path: Path, gamma: float) -> None:
        with np.load(path) as arrays:
            parts = {name: arrays[name] for name in arrays.files}
        if "successors" in parts:
            self._model: MoveMDP | TabularMDP = MoveMDP(
                parts["successors"], parts["move_costs"], p=float(parts["p"])
            )
        else:
            tables = read_tables(path)
            self._model = TabularMDP(tables.transitions, tables.costs, action_mask=tables.available)
        self._model.validate()
        self._gamma = gamma

    def solve(self, variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        """Solve to a certified accuracy relative to the largest value; policy and bound as well."""
        result = planners.solve(self._model, gamma=self._gamma, tol=tol, **variant)
        return Outcome(
            lambda: result.values, result.num_iterations, result.bound, str(result.message)
        )
