"""Total costs of moves that may slip, straight from their tables.

Forest policy iteration and basin aggregation (`planners.solvers`) undiscounted, for models in which
every step that cannot end costs something.  Where moves are certain, forest policy iteration begins
with the exact costs of shortest paths and comes down, so that greedy moves surely end; where moves
slip every policy surely ends, and both methods converge from any V.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.moves import MoveMDP
from planners.bellman import local_engine
from planners.kernels.tables import moves_of
from planners.kernels.vectors import sup_norm
from planners.linear.move_equations import MoveEquations
from planners.objectives.total_cost_region import Region
from planners.solvers.base import Solver
from planners.solvers.basin_aggregation import BasinAggregation, BasinAggregationOptions
from planners.solvers.forest_policy_iteration import (
    ForestPolicyIteration,
    ForestPolicyIterationOptions,
)

# Rounds in a row without a smaller residual than ever before: that is rounding where the residual
# is no more than so many times what a backup may round, and else a reason to begin anew.
_MOST_STILL, _NEAR_ROUNDING, _MOST_ROUNDS = 12, 1000.0, 60
# After the second beginning it is given up after so many.
_MOST_ROUNDS_EVER = 1000
# Basins begin from this many times what a guess says, which is to be above the least costs.
_ABOVE = 1.5
# Where moves go wrong more often than this, a guess of the way says little.
_SURE = 0.6


class MovesIteration:
    """One of the methods for moves.

    Parameters
    ----------
    region : Region
        Of a `MoveMDP`, finite everywhere, whose ends cost nothing.
    method : {"forest_policy_iteration", "basin_aggregation"}
    options : dict
        Of the method, by name.
    num_threads : int
    checkpoint : callable
    """

    def __init__(
        self,
        region: Region,
        method: str,
        options: dict[str, Any],
        num_threads: int,
        checkpoint: Callable[[], None],
    ) -> None:
        assert isinstance(region.model, MoveMDP)
        self._region, self._checkpoint = region, checkpoint
        self._model = region.model
        self._engine = local_engine(region.model, 1.0, num_threads, checkpoint)
        #: Of the last sweep, shape (S,).
        self.V = np.zeros(region.model.num_states)
        self._solver: Solver
        if method == "basin_aggregation":
            self._solver = BasinAggregation(self._engine, BasinAggregationOptions(**options))
            self.V = self._guess() if self._model.p >= _SURE else self._breadth_first()
        else:
            self._solver = ForestPolicyIteration(
                self._engine, ForestPolicyIterationOptions(**options)
            )
        #: The largest change of the last sweep.
        self.residual = math.inf
        self.num_sweeps = 0
        self._least, self._num_still, self._num_rounds, self._is_second = math.inf, 0, 0, False

    def _guess(self) -> NDArray[np.float64]:
        """Return distances as costs, more rather than less."""
        costs, steps = self._model.move_costs, self._region.steps
        mean = float(np.mean(costs[np.isfinite(costs)]))
        per_step = _ABOVE * max(mean, 0.0) / max(2.0 * self._model.p - 1.0, 0.1)
        return per_step * steps.astype(np.float64)

    def _breadth_first(self) -> NDArray[np.float64]:
        """Return what shortest paths cost where moves slip."""
        actions = self._nearest()
        V = np.zeros(len(actions))
        equations = MoveEquations(
            moves_of(self._model), actions, 1.0, watch=lambda: self._checkpoint()
        )
        equations.solve(V, lambda size: 1e-6 * size)
        return V

    def _nearest(self) -> NDArray[np.int32]:
        """Return the moves that lead nearest to an end, by the fewest steps."""
        steps = self._region.steps
        following = np.where(
            self._model.available, steps[self._model.successors], np.iinfo(np.int32).max
        )
        return following.argmin(axis=1).astype(np.int32)

    def step(self) -> bool:
        """Make a round; return whether nothing but rounding is left."""
        out = np.empty_like(self.V)
        step = self._solver.step(self.V, out)
        assert step.sweep is not None
        self.num_sweeps += step.num_sweeps
        self.V, self.residual = out, step.sweep.residual
        self._num_rounds += 1
        if self.residual < self._least:
            self._num_still, self._least = 0, self.residual
        else:
            self._num_still += 1
        rounding = self._engine.rounding(sup_norm(out))
        if self.residual == 0.0:
            return True
        if self._model.p < 1.0 and self.residual <= 0.25 * rounding:
            return True
        if self._num_still > _MOST_STILL and self.residual <= _NEAR_ROUNDING * rounding:
            return True
        if self._num_rounds > _MOST_ROUNDS and not self._is_second and self._model.p < 1.0:
            # The first V was not near enough: from the costs of a policy, which are above the
            # least, it comes down.
            self._is_second = True
            self._solver = ForestPolicyIteration(
                self._engine, ForestPolicyIterationOptions(start="sweeps")
            )
            self.V = self._breadth_first()
            self._least, self._num_still, self._num_rounds = math.inf, 0, 0
        return self._num_rounds > _MOST_ROUNDS_EVER

    def policy(self) -> Callable[[], NDArray[np.int64] | None]:
        """Return what leaves it to the proof to read the policy off V."""
        return lambda: None
