"""QuantEcon's ``DiscreteDP`` in its sparse state-action form, unavailable pairs left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from outcome import Outcome, Solve
from quantecon.markov import DiscreteDP, backward_induction
from tables import Tables


def problem(tables: Tables, gamma: float) -> Solve:
    """Solve by a method, from 0, which is nearer than QuantEcon's own start."""
    states, actions, costs, rows = tables.pairs()
    # Compiles what it compiles at the first call, beside the time measured.
    tiny = DiscreteDP(
        np.ones(4), sp.csr_matrix(np.eye(2)[[0, 1, 0, 1]]), 0.9, [0, 0, 1, 1], [0, 1, 0, 1]
    )
    for method in ("value_iteration", "policy_iteration", "modified_policy_iteration"):
        tiny.solve(method=method, v_init=np.zeros(2))
    ddp = DiscreteDP(-costs, sp.csr_matrix(rows), gamma, states, actions)
    zeros = np.zeros(tables.num_states)

    def solve(variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        result = ddp.solve(v_init=zeros, epsilon=epsilon, max_iter=10**7, **variant)
        return Outcome(lambda: -result.v, int(result.num_iter))

    return solve


def horizon(tables: Tables, objective: dict[str, Any]) -> Solve:
    """Solve a finite horizon by backward induction."""
    states, actions, costs, rows = tables.pairs()
    tiny = DiscreteDP(
        np.ones(4), sp.csr_matrix(np.eye(2)[[0, 1, 0, 1]]), 1.0, [0, 0, 1, 1], [0, 1, 0, 1]
    )
    backward_induction(tiny, 2)
    ddp = DiscreteDP(-costs, sp.csr_matrix(rows), 1.0, states, actions)

    def solve(variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        values, _ = backward_induction(ddp, objective["steps"])
        return Outcome(lambda: -values)

    return solve


OBJECTIVES = {"horizon": horizon}
