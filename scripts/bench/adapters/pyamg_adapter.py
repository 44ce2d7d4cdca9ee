"""Policy iteration with pyamg's algebraic multigrid for nonsymmetric matrices to evaluate policies.

Approximate ideal restriction: Manteuffel, Ruge, Southworth, "Nonsymmetric algebraic multigrid based
on local approximate ideal restriction", SIAM Journal on Scientific Computing 40 (2018).
"""

from __future__ import annotations

from typing import Any

import pyamg
import scipy.sparse as sp
from outcome import Outcome, Solve
from policy_iteration import Vector, policy_iteration
from tables import Tables

#: Accuracy of an evaluation, of what the guess leaves: loose while the policy is far from optimal.
FAR, LOOSE, TIGHT = 1e-3, 1e-4, 1e-8
MOST_STEPS = 20


def problem(tables: Tables, gamma: float) -> Solve:
    """Evaluate policies by BiCGSTAB, with a cycle of AIR as its preconditioner."""

    def evaluate(M: sp.csr_matrix, b: Vector, guess: Vector, error: float) -> Vector:
        levels = pyamg.air_solver(M, max_coarse=50)
        tol = LOOSE if error > FAR else TIGHT
        return guess + levels.solve(b - M @ guess, tol=tol, maxiter=MOST_STEPS, accel="bicgstab")

    def solve(variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        return policy_iteration(tables, gamma, epsilon, evaluate)

    return solve
