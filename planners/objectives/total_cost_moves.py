"""Total costs of moves that may slip, straight from their tables.

Forest policy iteration (`solvers.forest_policy_iteration`) undiscounted, for models in which every
step that cannot end costs something: then greedy policies of values that are not below the least
surely end, and where moves slip all do.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.moves import MoveMDP
from planners.bellman import local_engine
from planners.inequalities import Inequalities
from planners.kernels.vectors import sup_norm
from planners.objectives.total_cost_region import Region
from planners.solvers.forest_policy_iteration import (
    ForestPolicyIteration,
    ForestPolicyIterationOptions,
)

# Rounds in a row without a smaller residual than ever before, after which it is rounding.
_MOST_STILL = 12


class ForestIteration:
    """Forest policy iteration from the policy of shortest paths.

    Parameters
    ----------
    region : Region
        Of a `MoveMDP`, finite everywhere, whose ends cost nothing.
    options : ForestPolicyIterationOptions
    num_threads : int
    checkpoint : callable
    """

    def __init__(
        self,
        region: Region,
        options: ForestPolicyIterationOptions,
        num_threads: int,
        checkpoint: Callable[[], None],
    ) -> None:
        assert isinstance(region.model, MoveMDP)
        self._region, self._num_threads, self._checkpoint = region, num_threads, checkpoint
        self._engine = local_engine(region.model, 1.0, num_threads, checkpoint)
        self._solver = ForestPolicyIteration(self._engine, options)
        #: Of the last sweep, shape (S,).
        self.V = np.zeros(region.model.num_states)
        #: The largest change of the last sweep.
        self.residual = math.inf
        self.num_sweeps = 0
        self._least, self._num_still = math.inf, 0
        self._policy: NDArray[np.int64] | None = None

    def step(self) -> bool:
        """Make a round; return whether nothing but rounding is left."""
        out = np.empty_like(self.V)
        step = self._solver.step(self.V, out)
        assert step.sweep is not None
        self.num_sweeps += step.num_sweeps
        self.V, self.residual, self._policy = out, step.sweep.residual, None
        if not self.residual < self._least:
            self._num_still += 1
        else:
            self._num_still, self._least = 0, self.residual
        is_rounding = self.residual <= 0.25 * self._engine.rounding(sup_norm(out))
        exact = isinstance(self._region.model, MoveMDP) and self._region.model.p == 1.0
        return self.residual == 0.0 or (is_rounding and not exact) or self._num_still > _MOST_STILL

    def policy(self) -> NDArray[np.int64]:
        """Return the greedy actions, shape (S,), -1 in ends."""
        if self._policy is None:
            inequalities = Inequalities(self._region.model, self._num_threads, self._checkpoint)
            _, actions = inequalities.backup(self.V, usable=self._region.usable)
            self._policy = np.where(self._region.ends, np.int64(-1), actions)
        return self._policy
