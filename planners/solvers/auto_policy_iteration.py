"""Modified policy iteration that goes over to the multilevel kind where that will be less work.

Sweeps by a policy are the cheapest way to its value where the chain mixes fast, and no way to it
where news travels far.  Which of the two a model is shows soon: modified policy iteration begins,
and ends where, at the rate at which the bound falls, it would take far more work than
`solvers.multilevel_policy_iteration` takes in most models.  Work is counted in sweeps, never by a
clock.  Where the equations of a policy are solved exactly, which modified policy iteration does
then as well, the multilevel kind takes less work, and its turn comes sooner.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from planners.engine import LocalEngine
from planners.solvers.base import Solver, Step
from planners.solvers.modified_policy_iteration import (
    ModifiedPolicyIteration,
    ModifiedPolicyIterationOptions,
)
from planners.solvers.multilevel_policy_iteration import (
    MultilevelPolicyIteration,
    MultilevelPolicyIterationOptions,
)

# Sweeps before the work that is left is foretold, and what is too much: where the equations of the
# policy are solved exactly, and elsewhere.
_EXACT_SWEEPS, _EXACT_SWEEPS_LEFT = 250, 600
_LEAST_SWEEPS, _MOST_SWEEPS_LEFT = 5000, 10000
# A horizon, 1 / (1 - gamma), that is so long that policies are far from right at first.
_FAR_HORIZON = 2000.0
# A relative bound below which V is a better start than a coarser model gives, as it is where the
# horizon is short.
_NEAR = 1e-3


class AutoPolicyIteration:
    """Modified policy iteration, and where that is slow multilevel policy iteration.

    Parameters
    ----------
    engine : LocalEngine
    tol : float
        Accuracy to come to, relative to max|V|.
    """

    def __init__(self, engine: LocalEngine, tol: float) -> None:
        self._engine = engine
        self._tol = tol
        #: Name of the method in use.
        self.method = "modified_policy_iteration"
        #: Why it took the place of the first; empty while it did not.
        self.reason = ""
        # None once another method has taken its place.
        self._modified: ModifiedPolicyIteration | None
        self._modified = ModifiedPolicyIteration(engine, ModifiedPolicyIterationOptions())
        self._solver: Solver = self._modified
        self._some_terminal = bool(engine.terminal.any())
        self._horizon = 1 / (1 - engine.gamma)
        self._num_iterations = self._num_sweeps = 0
        # Sweeps made, and the bound relative to the largest value, after each iteration.
        self._progress: list[tuple[int, float]] = []

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        """Make an iteration of the method in use."""
        if self._modified is None:
            return self._solver.step(V, out)
        reason = self._reason_to_change(self._modified)
        if reason:
            near = self._progress[-1][1] < _NEAR or self._horizon < _FAR_HORIZON
            start = "given" if near else "coarse"
            # Its room is free for the other.
            self._modified = None
            self._solver = MultilevelPolicyIteration(
                self._engine, MultilevelPolicyIterationOptions(start=start)
            )
        step = self._solver.step(V, out)
        if reason:
            # Not before its first iteration is whole.
            count = self._num_iterations
            after = "1 iteration" if count == 1 else f"{count} iterations"
            self.reason = f"changed from {self.method} after {after}, since {reason}"
            self.method = "multilevel_policy_iteration"
        self._see(step)
        return step

    def _reason_to_change(self, modified: ModifiedPolicyIteration) -> str:
        """Return why another method is to take over, if it is."""
        least, most_left = _LEAST_SWEEPS, _MOST_SWEEPS_LEFT
        if modified.eliminates:
            least, most_left = _EXACT_SWEEPS, _EXACT_SWEEPS_LEFT
        if self._num_sweeps >= least and self._sweeps_left() > most_left:
            return "the bound fell slowly"
        return ""

    def _sweeps_left(self) -> float:
        """Return how many sweeps are left at the rate of the last half of them."""
        now, bound = self._progress[-1]
        if not bound > self._tol:
            return 0.0
        before, larger = next(
            (sweeps, size) for sweeps, size in self._progress if 2 * sweeps >= now
        )
        if not bound < larger or now == before:
            return math.inf
        return (now - before) * math.log(bound / self._tol) / math.log(larger / bound)

    def _see(self, step: Step) -> None:
        self._num_iterations += 1
        self._num_sweeps += step.num_sweeps
        sweep = step.sweep
        assert sweep is not None
        low, high = sweep.residual_range(with_zero=self._some_terminal or sweep.in_place)
        gamma = self._engine.gamma
        width = gamma / (1 - gamma) * (high - low) / 2
        middle = 0.0 if self._some_terminal else gamma / (1 - gamma) * (high + low) / 2
        size = max(abs(sweep.low + middle), abs(sweep.high + middle))
        self._progress.append((self._num_sweeps, width / size if size > 0 else math.inf))
