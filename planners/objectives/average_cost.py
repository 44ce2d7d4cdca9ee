"""Placeholder of the integrator's branch; the owner replaces it."""

from __future__ import annotations

from typing import Any

from planners.objective import AverageCost
from planners.objectives.request import Request
from planners.result import SolveResult


def solve_average_cost(model_or_env: Any, objective: AverageCost, request: Request) -> SolveResult:
    """Return the answer."""
    raise NotImplementedError
