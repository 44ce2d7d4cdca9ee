"""Policy iteration whose policies are evaluated by elimination along their likeliest moves.

Each iteration is a starting sweep or a round.

*The start.*  Policy iteration from a V that is the same everywhere is slow: all actions tie, and of
a long path one state a round learns where to go.  So the first V is better than that:

1. The policy of shortest paths to the terminal states, counted in moves, is evaluated, and its
   value swept once.  This is done only where the policy is likely to be a good one: there are
   terminal states, in over 90 % of the states no move out has a negative cost, and either there are
   at most 3.2 moves out of a state or a path has at most 3 / (1 - gamma) moves, both on average.
   Where a V0 is given, that is swept once too, and whichever has the smaller range of residuals is
   kept.
2. Where that is not done, or with ``start="sweeps"``, a V0 that is given is swept once.  Without
   one, each iteration is a Gauss-Seidel sweep, in alternating directions, until two in a row have
   changed V by more than 0.7 times what the sweep four before them did, or 32 have been made.

*A round.*  The policy consists of the greedy moves of the last full sweep.

1. A Gauss-Seidel sweep goes along the policy's paths, each state after the one that it leads to, so
   that one sweep carries a change over a path of any length.
2. The policy is evaluated by `linear.forest`.  Where moves are certain or form a tree, this takes
   one elimination and is exact; it then comes before step 1, not after it.  Elsewhere the
   elimination preconditions BiCGSTAB, which ends after 20 steps or at 0.3 % of the residual, later
   where that proves to be too early.  The evaluation is left out as long as it does not pay: while
   3 % of the states or more have a new move, unless three rounds in a row each left over 70 % of
   the bound.  It always pays where the elimination leaves out less than half an entry a state, and
   where moves lead to states far off in the order of the states, which makes the sweeps of step 3
   useless.
3. ``num_sweeps`` Gauss-Seidel sweeps in alternating directions; half as many after an evaluation,
   and none after one that is not exact but always pays.
4. A full sweep ``V = TV`` certifies, and finds the next moves.

*Rescue.*  Evaluations of ever new policies may go in circles.  Eight rounds in a row without a
bound a tenth below the best are followed by four rounds without step 2, then by 8, 16 and so on
(`solvers.rescue`).  Sweeps are contractions, so the method converges on any model.

Source: Howard, "Dynamic programming and Markov processes" (1960), for policy iteration; the
evaluation by elimination along likeliest moves, and the rules here, are our own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_choice, check_integer
from planners.engine import LocalEngine, Sweep
from planners.linear.forest import PolicyForest
from planners.linear.shortest_paths import GridPaths
from planners.solvers.base import Step
from planners.solvers.rescue import Rescue
from planners.sweeps.orders import directions, grid_shape

STARTS = ("auto", "sweeps")

# Starting sweeps end after _GAIN_PATIENCE in a row whose largest change was over _GAIN times that
# of the sweep _GAIN_WINDOW before.
_GAIN, _GAIN_WINDOW, _GAIN_PATIENCE = 0.7, 4, 2
_MOST_STARTING_SWEEPS = 32
# A policy is evaluated where less than this fraction of the states have a new move, or after
# _SLOW_ROUNDS rounds in a row whose bound was over _SLOW times the one before.
_SETTLED = 0.03
_SLOW_ROUNDS, _SLOW = 3, 0.7
# Every policy is, where the last evaluation left fewer entries a state than this to BiCGSTAB.
_NEARLY_A_FOREST = 0.5
# An evaluation ends where the residual is _REDUCTION times what it was, or after _MOST_STEPS steps
# of BiCGSTAB.  Where the bound was then over _POOR times the one before, the next may take twice as
# many steps; or, if they were enough and less than the fraction _FEW of the states have a new move,
# is to reduce the residual ten times as far.
_POOR, _FEW = 0.5, 1e-3
_REDUCTION, _MOST_STEPS = 0.003, 20
_LEAST_REDUCTION, _MOST_STEPS_EVER = 1e-8, 160
# Rounds without evaluation the first time that the bound does not fall.
_FIRST_PLAIN = 4


@dataclass(frozen=True, kw_only=True)
class ForestPolicyIterationOptions:
    """How it begins, and how often it sweeps.

    Parameters
    ----------
    start : {"auto", "sweeps"}
        ``"auto"`` takes the value of shortest paths where that may be good, and Gauss-Seidel sweeps
        elsewhere; ``"sweeps"`` always takes these.
    num_sweeps : int
        Gauss-Seidel sweeps in alternating directions in a round, beside the one along the policy;
        half as many after an evaluation.
    """

    start: str = "auto"
    num_sweeps: int = 4

    def __post_init__(self) -> None:
        check_choice("start", self.start, STARTS)
        number = check_integer("num_sweeps", self.num_sweeps, least=0)
        object.__setattr__(self, "num_sweeps", number)


class ForestPolicyIteration:
    """Forest policy iteration.

    Parameters
    ----------
    engine : LocalEngine
    options : ForestPolicyIterationOptions
    paths : GridPaths, optional
        The shortest paths of the model, where they are known.
    """

    def __init__(
        self,
        engine: LocalEngine,
        options: ForestPolicyIterationOptions,
        paths: GridPaths | None = None,
    ) -> None:
        self._engine = engine
        self._paths = paths
        self._options = options
        num_states = engine.num_states
        # What is worked on between two full sweeps: the last V at first.
        self._V = np.empty(num_states)
        # The moves of the last sweep, -1 before the first, and room for those of the next.
        self._actions = np.full(num_states, -1, dtype=np.int32)
        self._new_actions = np.empty_like(self._actions)
        self._forest = PolicyForest(engine)
        self._directions: Iterator[tuple[NDArray[np.int32] | None, bool]] | None = None
        self._some_terminal = bool(engine.terminal.any())
        self._begun = self._started = False
        # The largest change of each starting sweep.
        self._changes: list[float] = []
        self._rule = _Rule(num_states)
        if self._forest.certain:
            self._rule.lagged_share = 0.0
        self._num_sweeps = 0

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        """Make a sweep of the start, or a round."""
        self._num_sweeps = 0
        sweep = self._round(V, out) if self._started else self._start(V, out)
        return Step(self._num_sweeps * len(V), sweep, num_sweeps=self._num_sweeps)

    def _start(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Sweep:
        if not self._begun:
            self._begun = True
            sweep = self._first_sweep(V, out)
            if sweep is not None:
                self._started = True
                return sweep
        if self._still_gains():
            out[:] = V
            sweep = self._gauss_seidel(out)
            self._changes.append(sweep.residual)
            return sweep
        self._started = True
        return self._sweep(V, out)

    def _first_sweep(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Sweep | None:
        """Sweep the given V, or the value of shortest paths if nearer; None for neither."""
        given = self._sweep(V, out) if V.any() else None
        if self._options.start == "sweeps" or not self._forest.follow_to_goal(self._paths):
            return given
        actions, width = self._actions.copy(), self._rule.width
        self._actions.fill(-1)
        paths = np.zeros_like(V)
        self._evaluate(paths, _LEAST_REDUCTION, 2 * _MOST_STEPS)
        if given is None:
            return self._sweep(paths, out)
        image = np.empty_like(V)
        sweep = self._sweep(paths, image)
        if self._rule.width < width:
            out[:] = image
            return replace(sweep, image=out)
        self._actions[:] = actions
        self._rule.observe(width, len(V))
        return given

    def _still_gains(self) -> bool:
        """Whether starting sweeps have not yet slowed down."""
        changes = self._changes
        first = len(changes) - _GAIN_PATIENCE
        if first < _GAIN_WINDOW:
            return True
        return len(changes) < _MOST_STARTING_SWEEPS and any(
            changes[i] <= _GAIN * changes[i - _GAIN_WINDOW] for i in range(first, len(changes))
        )

    def _round(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Sweep:
        rule = self._rule
        if rule.num_changed:
            self._forest.follow(self._actions)
        rule.begin_round(scattered=self._forest.is_scattered)
        num_sweeps = self._options.num_sweeps
        work = self._V
        work[:] = V
        if not rule.evaluates:
            self._gauss_seidel_along_paths(work)
        elif rule.lagged_share == 0.0:
            self._evaluate(work, rule.reduction, rule.most_steps)
            self._gauss_seidel_along_paths(work)
            num_sweeps = (num_sweeps + 1) // 2
        else:
            self._gauss_seidel_along_paths(work)
            self._evaluate(work, rule.reduction, rule.most_steps)
            # Where a few states take another move now, an evaluation leaves them far off.
            num_sweeps = 0 if rule.evaluates_always else (num_sweeps + 1) // 2
        for _ in range(num_sweeps):
            self._gauss_seidel(work)
        return self._sweep(work, out)

    def _sweep(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Sweep:
        """Make a full sweep and note its moves."""
        sweep = self._engine.sweep(V, out, self._new_actions)
        self._num_sweeps += 1
        self._actions, self._new_actions = self._new_actions, self._actions
        num_changed = int(np.count_nonzero(self._actions != self._new_actions))
        low, high = sweep.residual_range(with_zero=self._some_terminal)
        self._rule.observe(high - low, num_changed)
        return sweep

    def _gauss_seidel(self, V: NDArray[np.float64]) -> Sweep:
        if self._directions is None:
            model = self._engine.model
            self._directions = directions(model, grid_shape(model))
        self._num_sweeps += 1
        return self._engine.gauss_seidel(V, *next(self._directions))

    def _gauss_seidel_along_paths(self, V: NDArray[np.float64]) -> None:
        self._num_sweeps += 1
        self._engine.gauss_seidel(V, self._forest.order)

    def _evaluate(self, V: NDArray[np.float64], reduction: float, most_steps: int) -> None:
        found = self._forest.evaluate(V, reduction=reduction, most_steps=most_steps)
        self._num_sweeps += found.num_applications
        self._rule.lagged_share = found.lagged_share
        self._rule.complete = found.complete


class _Rule:
    """Says when to evaluate, and how far.

    Parameters
    ----------
    num_states : int
    """

    def __init__(self, num_states: int) -> None:
        #: As in the last `Evaluation`; of the next one they are likely to be much the same.
        self.lagged_share = math.inf
        self.complete = True
        self.evaluates = self.evaluates_always = False
        self.reduction, self.most_steps = _REDUCTION, _MOST_STEPS
        #: Range of the residual in the last sweep; gamma / (1 - gamma) times that is 2 bounds.
        self.width = math.inf
        self.num_changed = num_states
        self._num_states = num_states
        self._last_width = math.inf
        self._num_slow = 0
        self._rescue = Rescue(_FIRST_PLAIN, below_best=True)

    def observe(self, width: float, num_changed: int) -> None:
        """Take note of a sweep.

        Parameters
        ----------
        width : float
            Range of its residual.
        num_changed : int
            States with a move other than in the sweep before.
        """
        self._last_width, self.width = self.width, width
        self.num_changed = num_changed

    def begin_round(self, *, scattered: bool) -> None:
        """Decide on what the round does.

        Where the policy leads far off, sweeps in the order of the states carry nothing along.
        """
        if self.evaluates and self.width > _POOR * self._last_width:
            if not self.complete:
                self.most_steps = min(2 * self.most_steps, _MOST_STEPS_EVER)
            elif self.num_changed < _FEW * self._num_states:
                self.reduction = max(0.1 * self.reduction, _LEAST_REDUCTION)
        self._num_slow = self._num_slow + 1 if self.width > _SLOW * self._last_width else 0
        settled = self.num_changed < _SETTLED * self._num_states
        if self._num_slow >= _SLOW_ROUNDS:
            self._num_slow = 0
            settled = True
        self._rescue.see(self.width)
        self.evaluates_always = scattered or self.lagged_share < _NEARLY_A_FOREST
        self.evaluates = not self._rescue.plain and (self.evaluates_always or settled)
