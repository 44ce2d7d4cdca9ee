"""What anybody writes in twenty lines: policy iteration with scipy's sparse LU (SuperLU)."""

from __future__ import annotations

from typing import Any

import scipy.sparse.linalg as spla
from outcome import Outcome, Solve
from policy_iteration import policy_iteration
from tables import Tables


def problem(tables: Tables, gamma: float) -> Solve:
    """Evaluate policies exactly; the variant is how columns and pivots are chosen."""

    def solve(variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        return policy_iteration(
            tables, gamma, epsilon, lambda M, b, *_: spla.splu(M.tocsc(), **variant).solve(b)
        )

    return solve
