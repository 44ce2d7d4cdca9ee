"""Modified policy iteration for models so small that the calls of a round take longer than it.

The first iteration makes as many rounds as it takes to meet the tolerance, all in one call
(`planners.linear.rounds`).  Where they would be too many, or sweeps by a policy are slow, the
methods for larger models go on from there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planners.engine import LocalEngine
from planners.linear.rounds import make_rounds
from planners.solvers.auto_policy_iteration import AutoPolicyIteration
from planners.solvers.base import Step


class SmallPolicyIteration:
    """Modified policy iteration whose first iteration makes all rounds that it takes.

    Parameters
    ----------
    engine : LocalEngine
        Of a small model.
    tol : float
        Accuracy to come to, relative to max|V|.
    """

    def __init__(self, engine: LocalEngine, tol: float) -> None:
        self._engine = engine
        self._tol = tol
        # What goes on after the first iteration.
        self._following: AutoPolicyIteration | None = None
        self._begun = False

    @property
    def method(self) -> str:
        """Name of the method in use."""
        return "modified_policy_iteration" if self._following is None else self._following.method

    @property
    def reason(self) -> str:
        """Why that took the place of the first; empty while it did not."""
        return "" if self._following is None else self._following.reason

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        """Make all rounds at once, and later one."""
        if self._begun:
            if self._following is None:
                self._following = AutoPolicyIteration(self._engine, self._tol)
            return self._following.step(V, out)
        sweep, num_sweeps = make_rounds(self._engine, self._tol, V, out)
        self._begun = True
        return Step(num_sweeps * len(V), sweep, num_sweeps=num_sweeps)
