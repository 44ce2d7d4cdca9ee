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

With ``epsilon="shrink"`` the method is exact: bins get narrower with the residual until aggregated
phases no longer pay and end (`planners.schedules.ShrinkingEpsilon`, which says why that converges
for every model and every step size).  It then runs to a tolerance, and the values are the middle
of the certified interval, so V~ is 0 in terminal states, as the certificate of such methods
presumes.  It takes about as many sweeps as value iteration.  With any other epsilon, a schedule of
epsilons included, the values are exactly Algorithm 3's.

Algorithm 2 gets the extremes of V from the sweep before it.  V~(W) is formed before the next sweep
or when it is asked for: a sweep that reads W through the bin of each state instead looks that
up for every move, and takes longer than both (at a million states 8.4 ms, against 6.4 and .5).

With ``noise_sigma`` the method makes its backups on noisy action costs (`planners.noise`), as the
paper's study of robustness does.  Its sweeps then certify nothing; the result's bound is that of
its values under the true costs.

Source: Chen, Gaebler, Peng, Sun, Ye, "An Adaptive State Aggregation Algorithm for Markov Decision
Processes", Algorithms 1 to 3 and section "Benchmarks and parameters".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_choice, check_finite, check_integer
from planners.aggregation import (
    Aggregation,
    aggregate_by_value,
    aggregation_of_codes,
    representatives,
)
from planners.engine import Engine, Sweep
from planners.noise import NOISES, NoisyBackups
from planners.schedules import (
    SHRINK,
    Epsilon,
    ShrinkingEpsilon,
    StepSize,
    epsilon_rule,
    step_size_rule,
)
from planners.solvers.base import State, Step

STEP_INDICES = ("total", "phase")


@dataclass(frozen=True, kw_only=True)
class AdaptiveAggregationOptions:
    """Parameters of Algorithm 3; the defaults are the paper's.

    Parameters
    ----------
    epsilon : float, "shrink", sequence of float or callable
        Width of a bin of values, in the unit of the costs.  The paper's 0.5 goes with costs
        scaled so that max |V*| is 100 (`planners.normalized`).  One width for each cycle of a
        global and an aggregated phase (the last for all further ones), or a function of the cycle
        1, 2, ...; ``"shrink"`` chooses widths so that the values converge to V*.
    num_global, num_aggregated : int
        Iterations in each global and each aggregated phase, not both 0.
    step_size : str, float or callable
        alpha_t: ``"t^-0.5"`` (any exponent), a constant, or a function of t, in [0, 1].
    step_index : {"total", "phase"}
        Whether t counts the aggregated iterations of the whole run or of the phase.
    first_step : int
        Where the count begins.
    noise_sigma : float
        Standard deviation of normal noise on the costs of actions, in their unit, for studies of
        robustness; 0 for none.  The paper's 0.01 to 0.1 go with max |V*| = 100.
    noise : {"once", "fresh"}
        Whether it is drawn once for the run, or anew at each backup.
    """

    epsilon: Epsilon = 0.5
    num_global: int = 2
    num_aggregated: int = 5
    step_size: StepSize = "t^-0.5"
    step_index: str = "total"
    first_step: int = 1
    noise_sigma: float = 0.0
    noise: str = "once"

    def __post_init__(self) -> None:
        epsilon_rule(self.epsilon)
        for name in ("num_global", "num_aggregated", "first_step"):
            least = 1 if name == "first_step" else 0
            object.__setattr__(self, name, check_integer(name, getattr(self, name), least=least))
        if self.num_global + self.num_aggregated == 0:
            raise ValueError("num_global and num_aggregated must not both be 0")
        if self.converges and self.num_global == 0:
            raise ValueError(f"epsilon = {SHRINK!r} needs num_global of at least 1")
        check_choice("step_index", self.step_index, STEP_INDICES)
        step_size_rule(self.step_size)
        check_finite("noise_sigma", self.noise_sigma)
        if self.noise_sigma < 0:
            raise ValueError(f"noise_sigma must not be negative, got {self.noise_sigma!r}")
        check_choice("noise", self.noise, NOISES)
        if self.converges and self.noise_sigma > 0:
            raise ValueError(
                f"epsilon = {SHRINK!r} runs to a tolerance, which noise_sigma = "
                f"{self.noise_sigma!r} keeps it from"
            )

    @property
    def converges(self) -> bool:
        """Whether the values converge to V*, so that the method runs to a tolerance."""
        return isinstance(self.epsilon, str)

    @property
    def num_iterations(self) -> int | None:
        """Iterations that are the method's normal end; None where it runs to a tolerance."""
        return None if self.converges else 1000


class AdaptiveAggregation:
    """Algorithm 3."""

    by_state: Mapping[str, str] = {"codes": "int32"}

    def __init__(
        self, engine: Engine, options: AdaptiveAggregationOptions, rng: np.random.Generator
    ) -> None:
        self._engine = engine
        # A stream of its own for the noise: the representatives are those of a run without.
        self._noisy = (
            NoisyBackups(engine, options.noise_sigma, options.noise, rng.spawn(1)[0])
            if options.noise_sigma > 0
            else None
        )
        self._rng = rng
        self._options = options
        self._step_size = step_size_rule(options.step_size)
        self._epsilon = epsilon_rule(options.epsilon)
        num_states = engine.num_states
        self._shrinking = ShrinkingEpsilon(
            engine.gamma, options.num_global, num_states / max(1, options.num_aggregated)
        )
        self._terminal = np.flatnonzero(engine.terminal)
        self._some_terminal = engine.count(engine.terminal) > 0
        self._cycle = 1
        self._position = 0  # in the cycle
        self._t_sa = 0
        # Of the values, where they are known, and of the residual at the first and the last sweep
        # of the phase.
        self._extremes: tuple[float, float] | None = None
        self._residuals: tuple[float, float] | None = None
        self._aggregation: Aggregation | None = None
        self._labels: Callable[[], NDArray[np.int32]] | None = None
        # Of W, by mega-state and by code.
        self._W = self._spare_W = self._table = np.empty(0)
        # Of this phase and the one before, which what was deferred may still be read by.
        self._codes = self._spare_codes = np.empty(0, dtype=np.int32)
        self._representatives: Iterator[NDArray[np.int64]] = iter(())  # of each iteration
        # Of this phase, how many were taken, and what the generator was like before.
        self._num_taken, self._before = 0, rng.bit_generator.state
        # What forms the last V, where it has not been formed.
        self._deferred: Callable[[NDArray[np.float64]], None] | None = None

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        """Make one global or one aggregated iteration."""
        options = self._options
        if self._position == options.num_global and not self._enter_aggregated_phase(V):
            self._next_cycle()
        if self._position < options.num_global:
            step = self._global_iteration(V, out)
        else:
            step = self._aggregated_iteration(self._position - options.num_global)
        self._deferred = step.deferred
        self._position += 1
        if self._position == options.num_global + options.num_aggregated:
            self._next_cycle()
        return step

    def _next_cycle(self) -> None:
        self._cycle += 1
        self._position = 0
        self._residuals = None

    def _form(self, V: NDArray[np.float64]) -> None:
        """Form the last V, if it was deferred."""
        if self._deferred is not None:
            self._deferred(V)
            self._deferred = None

    def _global_iteration(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        self._form(V)
        sweep = (self._noisy or self._engine).sweep(V, out)
        self._extremes = sweep.low, sweep.high
        residual = self._residual_range(sweep)
        first = residual if self._residuals is None else self._residuals[0]
        self._residuals = first, residual
        # A sweep on noisy costs says nothing of the true ones.
        return Step(self._engine.num_states, sweep if self._noisy is None else None, num_sweeps=1)

    def _residual_range(self, sweep: Sweep) -> float:
        low, high = sweep.residual_range(with_zero=self._some_terminal)
        return high - low

    def _enter_aggregated_phase(self, V: NDArray[np.float64]) -> bool:
        """Partition the states, if there is to be a phase."""
        epsilon = self._next_epsilon()
        if epsilon is None:
            return False
        self._form(V)
        if len(self._spare_codes) == 0:
            self._spare_codes = np.empty(len(V), dtype=np.int32)
        aggregation = aggregate_by_value(
            V,
            epsilon,
            extremes=self._extremes,
            out=self._spare_codes,
            num_threads=self._engine.num_threads,
            parts=self._engine.parts,
        )
        self._codes, self._spare_codes = self._spare_codes, self._codes
        self._num_taken, self._before = 0, self._rng.bit_generator.state
        self._begin_phase(aggregation, aggregation.midpoints.copy())
        return True

    def _begin_phase(self, aggregation: Aggregation, W: NDArray[np.float64]) -> None:
        """Let a phase begin with a partition and a W."""
        self._representatives = representatives(
            aggregation, self._rng, self._options.num_aggregated
        )
        self._aggregation = aggregation
        self._labels = functools.partial(getattr, aggregation, "labels")
        self._W = W
        self._spare_W = np.empty_like(W)
        self._table = np.zeros(aggregation.num_codes)
        self._table[aggregation.kept] = W

    def state(self) -> State:
        """Return where in the cycle it is, the partition and W, and where the draws are."""
        numbers = {
            "cycle": self._cycle,
            "position": self._position,
            "t_sa": self._t_sa,
            "extremes": self._extremes,
            "residuals": self._residuals,
            "shrinking": self._shrinking.state(),
            "rng": self._before,
            "num_taken": self._num_taken,
            "noise": None if self._noisy is None else self._noisy.state(),
        }
        if self._aggregation is None:
            return State(numbers)
        numbers["num_codes"] = self._aggregation.num_codes
        arrays = {"W": self._W, "midpoints": self._aggregation.midpoints}
        return State(numbers, arrays, {"codes": self._codes})

    def restore(self, state: State) -> Callable[[], NDArray[np.int32]] | None:
        """Go on from there, with a V that is formed."""
        numbers = state.numbers
        self._cycle, self._position, self._t_sa = (
            numbers[name] for name in ("cycle", "position", "t_sa")
        )
        self._extremes, self._residuals = (
            None if numbers[name] is None else (numbers[name][0], numbers[name][1])
            for name in ("extremes", "residuals")
        )
        self._shrinking.restore(numbers["shrinking"])
        self._before = self._rng.bit_generator.state = numbers["rng"]
        if self._noisy is not None:
            self._noisy.restore(numbers["noise"])
        if "num_codes" not in numbers:
            return None
        self._codes = state.by_state["codes"]
        aggregation = aggregation_of_codes(
            self._codes,
            numbers["num_codes"],
            state.arrays["midpoints"],
            num_threads=self._engine.num_threads,
            parts=self._engine.parts,
        )
        self._begin_phase(aggregation, state.arrays["W"])
        self._num_taken = numbers["num_taken"]
        for _ in range(self._num_taken):
            next(self._representatives)
        return self._labels

    def _next_epsilon(self) -> float | None:
        if self._epsilon is not None:
            return self._epsilon(self._cycle)
        assert self._extremes is not None
        assert self._residuals is not None
        low, high = self._extremes
        return self._shrinking.width(self._residuals, high - low)

    def _aggregated_iteration(self, position: int) -> Step:
        assert self._aggregation is not None
        options = self._options
        count = self._t_sa if options.step_index == "total" else position
        alpha = self._step_size(options.first_step + count)
        target = self._spare_W
        (self._noisy or self._engine).aggregated(
            next(self._representatives), self._table, self._codes, target
        )
        self._num_taken += 1
        target *= alpha
        target += (1.0 - alpha) * self._W
        self._W, self._spare_W = target, self._W
        self._table[self._aggregation.kept] = target
        self._extremes = float(target.min()), float(target.max())
        self._t_sa += 1
        return Step(
            len(target),
            None,
            len(target),
            deferred=functools.partial(self._expand, self._aggregation, target),
            labels=self._labels,
        )

    def _expand(
        self,
        aggregation: Aggregation,
        W: NDArray[np.float64],
        out: NDArray[np.float64],
    ) -> None:
        """Write V~(W) into ``out``."""
        table = np.zeros(aggregation.num_codes)
        table[aggregation.kept] = W
        aggregation.expand(table, out, self._engine.num_threads)
        if self._options.converges:
            out[self._terminal] = 0.0
