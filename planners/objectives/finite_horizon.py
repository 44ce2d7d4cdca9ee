"""Placeholder of the integrator's branch; the owner replaces it."""

from __future__ import annotations

from typing import Any

from planners.objective import FiniteHorizon
from planners.objectives.request import Request
from planners.result import SolveResult


def solve_finite_horizon(
    model_or_env: Any, objective: FiniteHorizon, request: Request
) -> SolveResult:
    """Return the answer."""
    raise NotImplementedError
