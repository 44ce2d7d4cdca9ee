"""Modified policy iteration for models so small that the calls of a round take longer than it.

The first iteration makes as many rounds as it takes to meet the tolerance, all in one call
(`planners.kernels.rounds`).  Where they would be too many, or sweeps by a policy are slow, the
methods for larger models go on from there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planners.bellman import joined
from planners.engine import Engine, LocalEngine, Sweep
from planners.kernels.rounds import rounds
from planners.kernels.tables import Outcomes, unsigned
from planners.solvers.auto_policy_iteration import AutoPolicyIteration
from planners.solvers.base import Step

# Most outcomes of a small model, and most states.
_MOST_WORK, _MOST_STATES = 1 << 16, 1 << 13


def is_small(engine: Engine) -> bool:
    """Whether a model is small, and has a table of outcomes."""
    return (
        engine.num_states <= _MOST_STATES
        and engine.work <= _MOST_WORK
        and isinstance(getattr(engine, "tables", None), Outcomes)
    )


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
        engine, num_states = self._engine, len(V)
        assert isinstance(engine.tables, Outcomes)
        engine.checkpoint()
        extremes, in_place, num_sweeps = rounds(
            unsigned(engine.tables),
            engine.gamma,
            self._tol,
            engine.has_absorbing_states,
            V,
            out,
            np.empty(num_states, dtype=np.int32),
            np.empty((4, num_states)),
        )
        self._begun = True
        sweep = joined([extremes], image=out)
        if in_place:
            sweep = Sweep(*extremes, in_place=True, image=out)
        return Step(num_sweeps * num_states, sweep, num_sweeps=num_sweeps)
