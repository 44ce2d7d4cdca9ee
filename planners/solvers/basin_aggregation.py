"""Aggregation by where the greedy policy goes, between sweeps that retrace their rows.

One iteration is

1. the basin correction (`linear.basins`) of the last V, where that still has much to say;
2. sweeps in place: on plane grids one along the rows, with the last rows retraced
   (`sweeps.grid_rows`); elsewhere one of Gauss-Seidel against the paths of the greedy moves,
   each state after the one that its move leads to;
3. a full sweep ``V = TV``, which certifies and finds the greedy moves.

Where nearly every state has to pay, ``T0 > 0``, the first V is not 0 but the constant above V* that
one sweep gives, ``max (T0) / (1 - gamma)``: from above the way to a goal spreads as fast as sweeps
go, from below each backup may add no more than the cost of a step, and states that hold one another
down are let go one after another.  A V that is given is kept.

Corrections and over-relaxed sweeps are no contractions.  Eight iterations in a row in which the
bound has not fallen by a tenth are followed by eight of plain sweeps alone, which are, then by 16
and so on (`solvers.rescue`): rows without relaxation, or the states in their order and back.
So it converges whatever the model.  The values are the middle of the certified interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_integer
from aggmaze.models.moves import MoveMDP
from planners.engine import LocalEngine, Sweep
from planners.linear.basins import BasinCorrection
from planners.solvers.base import Step
from planners.solvers.rescue import Rescue
from planners.sweeps.grid_rows import RowSweeps
from planners.sweeps.orders import grid_shape

# Rows are swept where at least this fraction of them is regular: sweeps of others are slow.
_LEAST_SHARE = 0.9
# An iteration begins with a correction if the one before left over this part of the residual.
_SLOW = 0.25
# A correction that changes no value by more than this times gamma / (1 - gamma) times the residual,
# which is the most that may be left to correct, is followed by an iteration without one.
_SMALL = 0.03
# Iterations of plain sweeps the first time that the bound does not fall.
_FIRST_PLAIN = 8
# V starts from above where over this fraction of the states that are not terminal has to pay.
_MOSTLY = 0.9


@dataclass(frozen=True, kw_only=True)
class BasinAggregationOptions:
    """Options of the method.

    Parameters
    ----------
    num_retraced : int, optional
        Rows that a row sweep goes back; by default 2, and 3 where the chosen move happens with
        probability below 0.9.
    """

    num_retraced: int | None = None

    def __post_init__(self) -> None:
        if self.num_retraced is not None:
            number = check_integer("num_retraced", self.num_retraced, least=0)
            object.__setattr__(self, "num_retraced", number)


class BasinAggregation:
    """Row sweeps and basin corrections; for models of moves."""

    def __init__(self, engine: LocalEngine, options: BasinAggregationOptions) -> None:
        model = engine.model
        if not isinstance(model, MoveMDP):
            raise ValueError(
                "basin_aggregation is for models of moves (MoveMDP); general models are solved by "
                "modified_policy_iteration, forest_policy_iteration or gauss_seidel"
            )
        self._engine = engine
        shape = grid_shape(model)
        self._rows: RowSweeps | None = None
        if shape is not None and len(shape) == 2:
            retraced = options.num_retraced
            if retraced is None:
                retraced = 2 if model.p >= 0.9 else 3
            rows = RowSweeps(engine, (shape[0], shape[1]), retraced)
            self._rows = rows if rows.share >= _LEAST_SHARE else None
        self._basins = BasinCorrection(engine)
        self._actions = np.zeros(model.num_states, dtype=np.int32)
        # What the last full sweep swept.
        self._argument = np.empty(model.num_states)
        self._first = True
        # Of the last iteration: the residual; and how corrections go.
        self._residual = np.inf
        self._due = self._pausing = False
        self._rescue = Rescue(_FIRST_PLAIN, plain_count=True)

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        """Make one iteration."""
        num_states, num_sweeps = len(V), 0
        out[:] = V
        if self._first:
            self._first = False
            if not V.any():
                self._raise(V, out)
                num_sweeps += 1
        plain = self._rescue.plain
        if self._due and not plain:
            self._correct(out)
        num_sweeps += self._sweep_in_place(plain, out) + 1
        # From now on, the last V is not needed any more but as it is: what is swept is kept.
        self._argument[:] = out
        sweep = self._engine.sweep(self._argument, out, self._actions)
        self._judge(sweep)
        return Step(
            num_sweeps * num_states,
            sweep,
            num_sweeps=num_sweeps,
            labels=self._labels if self._basins.num_basins > 0 else None,
        )

    def _labels(self) -> NDArray[np.int32]:
        """Return the basins of the last correction."""
        return self._basins.labels

    def _raise(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Start from a constant that is above V*, where 0 is below it nearly everywhere."""
        sweep = self._engine.sweep(V, out)
        terminal = self._engine.terminal
        inside = len(terminal) - np.count_nonzero(terminal)
        raised = 0.0
        if self._engine.gamma < 1.0 and np.count_nonzero(out > 0.0) > _MOSTLY * inside:
            raised = sweep.high / (1.0 - self._engine.gamma)
        out[:] = raised
        out[terminal] = 0.0

    def _correct(self, image: NDArray[np.float64]) -> None:
        gamma = self._engine.gamma
        size = self._basins.apply(self._actions, self._argument, image)
        # Undiscounted there is no limit to what may be left to correct.
        self._pausing = (1.0 - gamma) * size <= _SMALL * gamma * self._residual and gamma < 1.0

    def _sweep_in_place(self, plain: bool, V: NDArray[np.float64]) -> int:
        """Sweep V; return how often that went over the states."""
        self._engine.checkpoint()
        if self._rows is not None:
            return self._rows.sweep(V, relaxed=not plain)
        if not plain:
            self._engine.gauss_seidel(V, self._basins.order)
            return 1
        for reverse in (False, True):
            self._engine.gauss_seidel(V, reverse=reverse)
        return 2

    def _judge(self, sweep: Sweep) -> None:
        """Decide on what the next iteration does."""
        corrected = self._due and not self._rescue.plain
        slow = sweep.residual > _SLOW * self._residual
        # Without rows, corrections are made for the sake of the order, too.
        slow = slow or self._rows is None
        self._due = slow and not (corrected and self._pausing)
        self._residual = sweep.residual
        self._rescue.see(sweep.residual_high - sweep.residual_low)
