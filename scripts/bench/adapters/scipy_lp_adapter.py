"""Linear programs of an undiscounted model, solved by HiGHS through scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from outcome import Outcome, Solve
from scipy.optimize import linprog
from tables import Tables


def total(tables: Tables, objective: dict[str, Any]) -> Solve:
    """Maximise the sum of V with ``V(s) <= c(s, a) + sum p V``, V = 0 at the end."""
    states, _, costs, rows = tables.pairs()
    inside = np.flatnonzero(~tables.terminal)
    kept = ~tables.terminal[states]
    above = sp.csr_matrix(
        (np.ones(len(states)), states, np.arange(len(states) + 1)), shape=rows.shape
    )
    matrix = (above - rows)[kept][:, inside]

    def solve(variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        V = np.zeros(tables.num_states)
        V[inside] = _solved(-np.ones(len(inside)), matrix, costs[kept])
        return Outcome(lambda: V)

    return solve


def average(tables: Tables, objective: dict[str, Any]) -> Solve:
    """Maximise g with ``g + h(s) <= c(s, a) + sum p h``: one gain for all states."""
    states, _, costs, rows = tables.pairs()
    above = sp.csr_matrix(
        (np.ones(len(states)), states, np.arange(len(states) + 1)), shape=rows.shape
    )
    matrix = sp.hstack([above - rows, np.ones((len(states), 1))], format="csr")
    goal = np.zeros(tables.num_states + 1)
    goal[-1] = -1.0

    def solve(variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        gain = _solved(goal, matrix, costs)[-1]
        return Outcome(lambda: np.full(tables.num_states, gain))

    return solve


def _solved(goal: Any, matrix: Any, limits: Any) -> Any:
    answer = linprog(goal, A_ub=matrix, b_ub=limits, bounds=(None, None), method="highs")
    if answer.status != 0:
        raise ArithmeticError(answer.message)
    return answer.x


OBJECTIVES = {"total": total, "average": average}
