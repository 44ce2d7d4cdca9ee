"""Policy iteration for total costs of moves that may slip, from a policy for a discount near 1.

Any move may happen where moves slip, so that every policy surely ends, and Howard's policy iteration
may begin with any.  It begins with one that is optimal for a discount so near to 1 that an end at
the farthest distance hardly counts less: that is found by whatever is fast for discounted costs.
After that each round evaluates the policy exactly, straight from the tables
(`linear.move_equations`), and improves it; two to four of them are the rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.moves import MoveMDP
from planners.bellman import local_engine
from planners.chain_costs import total_cost_of_policy
from planners.kernels.tables import moves_of
from planners.kernels.vectors import sup_norm
from planners.linear.move_equations import MoveEquations
from planners.objective import Discounted
from planners.objectives.discounted import solve_discounted
from planners.objectives.request import Request
from planners.objectives.total_cost_region import Region
from planners.result import KEYBOARD

# How little the farthest end may be discounted, and how well that is solved.
_DISCOUNT, _TOL = 0.02, 1e-4


class SlipIteration:
    """Policy iteration on a `MoveMDP` whose moves slip.

    Parameters
    ----------
    region : Region
        Of such a model, finite everywhere, whose ends cost nothing.
    num_threads : int
    seconds_left : callable
        Returns what is left of the time limit, or None.
    checkpoint : callable
    """

    def __init__(
        self,
        region: Region,
        num_threads: int,
        seconds_left: Callable[[], float | None],
        checkpoint: Callable[[], None],
    ) -> None:
        assert isinstance(region.model, MoveMDP)
        self._model, self._region = region.model, region
        self._num_threads, self._seconds_left = num_threads, seconds_left
        self._engine = local_engine(region.model, 1.0, num_threads, checkpoint)
        self._actions: NDArray[np.int32] | None = None
        #: The values of the last policy, shape (S,).
        self.V = np.zeros(region.model.num_states)
        #: By how much the last sweep lowered a value at most.
        self.residual = math.inf
        self.num_sweeps = 0

    def step(self) -> bool:
        """Evaluate a policy and look for a better; return whether there is none."""
        V = self.V.copy()
        if self._actions is None:
            actions = self._first(V)
        else:
            actions = self._better
        self._evaluate(actions, V)
        image, greedy = np.empty_like(V), np.empty(len(V), dtype=np.int32)
        sweep = self._engine.sweep(V, image, greedy)
        self.num_sweeps += 1
        improved = image < V - 2 * self._engine.rounding(sup_norm(V))
        self.V, self._actions, self.residual = V, actions, sweep.residual
        self._better = np.where(improved, greedy, actions)
        return not improved.any()

    def policy(self) -> NDArray[np.int64]:
        """Return the actions that V is the value of, shape (S,), -1 in ends."""
        assert self._actions is not None
        return np.where(self._region.ends, np.int64(-1), self._actions)

    def _first(self, V: NDArray[np.float64]) -> NDArray[np.int32]:
        """Return the policy for a discount, and write its values."""
        gamma = 1.0 - _DISCOUNT / max(2, int(self._region.steps.max()))
        request = Request(tol=_TOL, num_threads=self._num_threads, time_limit=self._seconds_left())
        found = solve_discounted(self._model, Discounted(gamma), request)
        if found.message == KEYBOARD:
            raise KeyboardInterrupt
        self.num_sweeps += found.num_sweeps + found.num_certificate_sweeps
        V[:] = np.where(self._model.terminal, 0.0, found.values)
        return found.policy.astype(np.int32)

    def _evaluate(self, actions: NDArray[np.int32], V: NDArray[np.float64]) -> None:
        """Write the values of a policy, from values that may be near."""
        engine = self._engine
        equations = MoveEquations(
            moves_of(self._model), actions, 1.0, watch=lambda: engine.checkpoint() or False
        )
        found = equations.solve(V, engine.rounding)
        self.num_sweeps += 1
        if not found.size <= 2 * engine.rounding(sup_norm(V)):
            V[:] = total_cost_of_policy(self._model, actions)
