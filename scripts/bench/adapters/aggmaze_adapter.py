"""The project itself: `planners.solve` on the model as the project keeps it.

It is the checkout that this file lies in, wherever another may be installed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from outcome import Outcome, Solve
from tables import Tables

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
import planners
from aggmaze import MoveMDP, TabularMDP

# Loads the compiler's runtime and the kernels common to all methods, as importing other libraries
# does, so that neither counts as memory of a solve.
_tiny = MoveMDP([[1], [0]], [[1.0], [np.inf]])
for _model in (_tiny, _tiny.to_tabular()):
    planners.solve(_model, gamma=0.5, method="value_iteration")


def _model(tables: Tables | dict[str, Any]) -> MoveMDP | TabularMDP:
    if isinstance(tables, Tables):
        model: MoveMDP | TabularMDP = TabularMDP(
            tables.transitions, tables.costs, action_mask=tables.available
        )
    else:
        model = MoveMDP(tables["successors"], tables["move_costs"], p=float(tables["p"]))
    return model.validate()


def problem(tables: Tables | dict[str, Any], gamma: float) -> Solve:
    """Make a model of the project's own classes; solve it to a certified accuracy relative to V."""
    model = _model(tables)

    def solve(variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        result = planners.solve(model, gamma=gamma, tol=tol, **variant)
        return Outcome(
            lambda: result.values, result.num_iterations, result.bound, str(result.message)
        )

    return solve


def problem_of(tables: Tables | dict[str, Any], objective: dict[str, Any]) -> Solve:
    """Do the same for an objective without a discount; a run that stops short says so."""
    asked: planners.TotalCost | planners.AverageCost | planners.FiniteHorizon
    if objective["name"] == "horizon":
        asked = planners.FiniteHorizon(objective["steps"])
    else:
        asked = planners.AverageCost() if objective["name"] == "average" else planners.TotalCost()
    model = _model(tables)
    for tiny in (_tiny, _tiny.to_tabular()):
        planners.solve(tiny, objective=asked)

    def solve(variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        result = planners.solve(model, objective=asked, tol=tol, **variant)
        note = "" if result.status.success else f"{result.status}: {result.message}"
        return Outcome(lambda: result.values, result.num_iterations, result.bound, note)

    return solve


OBJECTIVES = dict.fromkeys(("total", "average", "horizon"), problem_of)
