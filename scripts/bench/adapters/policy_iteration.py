"""Policy iteration as anybody writes it, with a library's linear solver to evaluate policies.

A few sweeps; then: evaluate the greedy policy, sweep once, and stop when MacQueen's bounds promise
the accuracy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from outcome import Outcome
from tables import Tables

NUM_SWEEPS = 8

Vector = NDArray[np.float64]
#: Solves ``M x = b`` given ``M``, ``b``, a guess of ``x``, and the error of the guess relative to
#: its largest value.
LinearSolver = Callable[[sp.csr_matrix, Vector, Vector, float], Vector]


def policy_iteration(
    tables: Tables, gamma: float, epsilon: float, solve_linear: LinearSolver
) -> Outcome:
    """Solve to an absolute accuracy; what comes back is the middle of MacQueen's interval."""
    P, costs = tables.transitions, tables.costs
    num_states, num_actions = costs.shape
    states = np.arange(num_states)
    identity = sp.identity(num_states, format="csr")
    scale = gamma / (1 - gamma)
    V: Any = np.zeros(num_states)
    for _ in range(NUM_SWEEPS):
        V = (costs + gamma * (P @ V).reshape(costs.shape)).min(axis=1)
    evaluations = 0
    while True:
        Q = costs + gamma * (P @ V).reshape(costs.shape)
        policy = Q.argmin(axis=1)
        improved = Q[states, policy]
        change = improved - V
        bound = scale * float(np.ptp(change)) / 2
        middle = improved + scale * (change.max() + change.min()) / 2
        if bound <= epsilon:
            return Outcome(partial(np.asarray, middle), evaluations, bound)
        matrix = (identity - gamma * P[states * num_actions + policy]).tocsr()
        error = bound / float(np.abs(middle).max())
        V = solve_linear(matrix, costs[states, policy], middle, error)
        evaluations += 1
