"""The scale at which the largest cost-to-go is 100, as in the paper's experiments."""

from __future__ import annotations

from typing import Any

from aggmaze.checks import check_positive
from aggmaze.models.model import Model, with_table
from planners.adapters import as_model
from planners.bellman import local_engine
from planners.certificate import Certifier
from planners.kernels.vectors import finite_norm
from planners.objective import Discounted, Objective, TotalCost, as_objective
from planners.solve import solve

# Relative accuracy of the scale, where float64 can certify it.
_TOL = 1e-10


def normalized(
    model_or_env: Any,
    gamma: float | None = None,
    max_cost_to_go: float = 100.0,
    *,
    objective: Objective | None = None,
) -> tuple[Model, float]:
    """Return the model with its costs scaled so that ``max |V*|`` is a given number, and the scale.

    Chen et al., "An Adaptive State Aggregation Algorithm for Markov Decision Processes", section
    "Benchmarks and parameters", scale to 100.

    Parameters
    ----------
    model_or_env
        What `as_model` takes.
    gamma : float, optional
        Discount in [0, 1]; 1 stands for `TotalCost`.
    max_cost_to_go : float
        Positive.  Infinite costs-to-go do not count.
    objective : Discounted or TotalCost, optional
        In place of ``gamma``.

    Returns
    -------
    model : TabularMDP or MoveMDP
    scale : float
        Factor of the costs.  Values divided by it are in the unit of the source.

    Raises
    ------
    ValueError
        If V* is 0, so that no scale gives it another size, gamma so near to 1 that float64 can
        certify nothing, or the objective one that has no costs-to-go.
    NotSolvedError
        If the scale is not found within 1e-10 of its size, or very near to 1 within the least that
        float64 can certify.
    """
    check_positive("max_cost_to_go", max_cost_to_go)
    asked = as_objective(gamma, objective)
    if not isinstance(asked, Discounted | TotalCost):
        raise ValueError(f"normalized scales costs-to-go, discounted or total, not {asked}")
    model = with_table(as_model(model_or_env))
    tol = _TOL
    if isinstance(asked, Discounted):
        certifier = Certifier(local_engine(model, asked.gamma))
        tol = certifier.attainable(_TOL)
        certifier.check_attainable(tol)
    result = solve(model, objective=asked, tol=tol).require()  # there is no approximate scale
    size = finite_norm(result.values)
    if size <= result.bound:
        raise ValueError("the optimal costs-to-go are all 0: no scale gives them another size")
    scale = max_cost_to_go / size
    return model.scaled(scale), scale
