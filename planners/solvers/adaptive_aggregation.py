"""Value iteration with adaptive state aggregation: Algorithm 3 of the paper.

Phases B_1, A_1, B_2, A_2, ... alternate, beginning with B (global):

- B: ``V_t = T V_{t-1}``, ``num_global`` times.  On entering B after A, ``V = V~(W)``.
- on entering A: Algorithm 2 (`planners.aggregation`) partitions the states by the current V into
  bins of width ``epsilon``; W starts at their midpoints.
- A: ``W_t(j) = (1 - alpha) W_{t-1}(j) + alpha T_s V~(W_{t-1})`` for every mega-state j at once,
  with a representative s drawn uniformly from its states anew at each iteration,
  ``num_aggregated`` times.  Here ``V~(s) = W(label(s))``, also for terminal states, whose own
  backup is 0.

The step size alpha is taken at ``t_sa``, counted over all aggregated iterations, or within the
phase, as the paper's experiments write it.  As printed, the first aggregated iteration mixes the
new partition with the W of the old one; it uses the fresh W of Algorithm 2 here.  A global
iteration is S updates, an aggregated one K.  The values are V (in B) or V~(W) (in A).

Source: Chen, Gaebler, Peng, Sun, Ye, "An Adaptive State Aggregation Algorithm for Markov Decision
Processes", Algorithms 1 to 3 and section "Benchmarks and parameters".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_choice, check_integer, check_positive
from planners.aggregation import (
    Aggregation,
    aggregate_by_value,
    draw_representatives,
)
from planners.bellman import Backups
from planners.iterate import Step
from planners.schedules import StepSize, step_size_rule

STEP_INDICES = ("total", "phase")


@dataclass(frozen=True, kw_only=True)
class AdaptiveAggregationOptions:
    """Parameters of Algorithm 3; the defaults are the paper's.

    Parameters
    ----------
    epsilon : float
        Width of a bin of values, in the unit of the costs.  The paper's 0.5 goes with costs
        scaled so that max |V*| is 100 (`planners.normalized`).
    num_global, num_aggregated : int
        Iterations in each global and each aggregated phase, not both 0.
    step_size : str, float or callable
        alpha_t: ``"t^-0.5"`` (any exponent), a constant, or a function of t, in [0, 1].
    step_index : {"total", "phase"}
        Whether t counts the aggregated iterations of the whole run or of the phase.
    first_step : int
        Where the count begins.
    """

    epsilon: float = 0.5
    num_global: int = 2
    num_aggregated: int = 5
    step_size: StepSize = "t^-0.5"
    step_index: str = "total"
    first_step: int = 1

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        for name in ("num_global", "num_aggregated", "first_step"):
            check_integer(name, getattr(self, name), least=1 if name == "first_step" else 0)
        if self.num_global + self.num_aggregated == 0:
            raise ValueError("num_global and num_aggregated must not both be 0")
        check_choice("step_index", self.step_index, STEP_INDICES)
        step_size_rule(self.step_size)


class AdaptiveAggregation:
    """Algorithm 3 from a given V."""

    recentres = False

    def __init__(
        self,
        backups: Backups,
        V0: NDArray[np.float64],
        rng: np.random.Generator,
        options: AdaptiveAggregationOptions,
    ) -> None:
        self._backups = backups
        self._rng = rng
        self._options = options
        self._step_size = step_size_rule(options.step_size)
        self._t = 0
        self._t_sa = 0
        self._V = V0.copy()
        self._spare = np.empty_like(V0)
        self._aggregation: Aggregation | None = None
        self._W = self._spare_W = np.empty(0)
        self._representatives = np.empty((0, 0), dtype=np.int64)
        # Whether _V is current; in an aggregated phase it is V~(W), formed when asked for.
        self._expanded = True

    def step(self) -> Step:
        """Make one global or one aggregated iteration."""
        position = self._t % (self._options.num_global + self._options.num_aggregated)
        if position < self._options.num_global:
            step = self._global_iteration()
        else:
            if position == self._options.num_global:
                self._aggregate()
            step = self._aggregated_iteration(position - self._options.num_global)
        self._t += 1
        return step

    def values(self) -> NDArray[np.float64]:
        """Return V, or V~(W) in an aggregated phase."""
        if not self._expanded:
            assert self._aggregation is not None
            np.take(self._W, self._aggregation.labels, out=self._V, mode="clip")
            self._expanded = True
        return self._V

    def labels(self) -> NDArray[np.int32] | None:
        """Return the mega-states of the last aggregated phase."""
        return None if self._aggregation is None else self._aggregation.labels

    def _global_iteration(self) -> Step:
        sweep = self._backups.sweep(self.values(), self._spare)
        self._V, self._spare = self._spare, self._V
        return Step(len(self._V), sweep)

    def _aggregate(self) -> None:
        aggregation = aggregate_by_value(self.values(), self._options.epsilon)
        uniforms = self._rng.random((self._options.num_aggregated, aggregation.num_megastates))
        self._representatives = draw_representatives(aggregation, uniforms)
        self._aggregation = aggregation
        self._W = aggregation.midpoints.copy()
        self._spare_W = np.empty_like(self._W)

    def _aggregated_iteration(self, position: int) -> Step:
        assert self._aggregation is not None
        options = self._options
        count = self._t_sa if options.step_index == "total" else position
        alpha = self._step_size(options.first_step + count)
        target = self._spare_W
        self._backups.aggregated(
            self._representatives[position], self._W, self._aggregation.labels, target
        )
        target *= alpha
        target += (1.0 - alpha) * self._W
        self._W, self._spare_W = target, self._W
        self._expanded = False
        self._t_sa += 1
        return Step(len(target), None, len(target))
