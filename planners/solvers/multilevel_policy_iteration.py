"""Policy iteration that begins on coarser models and evaluates by elimination in many levels.

*The start.*  Policy iteration from a V that is the same everywhere takes as many rounds as news
takes to cross the model.  So the first V comes from a model of groups of states
(`planners.coarse_models`), a quarter as many, solved in the same way: first policy iteration on a
few hundred groups, then a few rounds on each finer model.  There the policy of the groups is
evaluated, and swept a few times.

*A round.*  What is solved for is the correction, ``(I - gamma P_pi) d = TV - V``, by elimination
in many levels (`linear.policy_equations`), which keeps what is constant exact, so that the work
grows slowly as gamma nears 1.  Then a few full sweeps, in which a state whose action is sure to be
the best still has no other action looked at (`sweeps.action_elimination`); the last one certifies,
and gives the next policy.  Where the policy hardly changes any more, corrections are taken further.

*Rescue.*  Eight rounds in a row without progress are followed by four plain sweeps, then by 8, 16
and so on (`solvers.rescue`).  Sweeps are contractions, so the method converges on any model.

Source: Howard, "Dynamic programming and Markov processes" (1960), for policy iteration; Chow,
Tsitsiklis, "An optimal one-way multigrid algorithm for discrete-time stochastic control", IEEE
Transactions on Automatic Control 36 (1991), for the start on coarser models.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_choice, check_integer
from planners.bellman import local_engine
from planners.coarse_models import CoarseModel, coarse_model
from planners.engine import LocalEngine, Sweep
from planners.linear.policy_equations import PolicyEquations
from planners.solvers.base import Step
from planners.solvers.rescue import Rescue
from planners.sweeps.action_elimination import successive_sweeps

STARTS = ("auto", "coarse", "given")

# Models of so many states have no coarser one, and are solved in so many rounds at most; coarser
# models of more states are, in so many, or until less than a part of the states have a new action.
_FEWEST_STATES, _MOST_ROUNDS_COARSEST = 300, 40
_MOST_ROUNDS, _SETTLED = 4, 0.02
# How far a correction reduces the residual; and once less than a part of the states have a new
# action and no less than a tenth of it is left, a hundred times further.
_REDUCTION, _LEAST_REDUCTION, _MOST_STEPS = 0.03, 1e-8, 40
_HARDLY_CHANGED = 1e-3
_FURTHER, _PART_LEFT = 1e-2, 0.1
_FIRST_PLAIN = 4


@dataclass(frozen=True, kw_only=True)
class MultilevelPolicyIterationOptions:
    """How it begins, and how often it sweeps.

    Parameters
    ----------
    start : {"auto", "coarse", "given"}
        ``"coarse"`` begins on coarser models, ``"given"`` with ``V0``, which is 0 where none is
        given, and ``"auto"`` with ``V0`` where that is not 0, else on coarser models.
    num_sweeps : int
        Full sweeps after a correction, at least 1.
    """

    start: str = "auto"
    num_sweeps: int = 5

    def __post_init__(self) -> None:
        check_choice("start", self.start, STARTS)
        number = check_integer("num_sweeps", self.num_sweeps, least=1)
        object.__setattr__(self, "num_sweeps", number)


class MultilevelPolicyIteration:
    """Multilevel policy iteration."""

    def __init__(self, engine: LocalEngine, options: MultilevelPolicyIterationOptions) -> None:
        self._engine = engine
        self._options = options
        num_states = engine.num_states
        # What the last full sweep swept, and room for images between two steps.
        self._argument = np.empty(num_states)
        # Actions of the last sweep, and of that which ended the step before.
        self._policy = np.zeros(num_states, dtype=np.int32)
        self._last_policy = np.full(num_states, -1, dtype=np.int32)
        self._sweeps = successive_sweeps(engine)
        self._equations = PolicyEquations(engine)
        self._some_terminal = bool(engine.terminal.any())
        self._last: Sweep | None = None
        self._changed_share = 1.0
        self._reduction, self._span = _REDUCTION, math.inf
        self._rescue = Rescue(_FIRST_PLAIN)
        self._num_sweeps = self._num_coarse_updates = 0

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        """Make the start, or a round."""
        self._num_sweeps = self._num_coarse_updates = 0
        if self._last is None:
            self._argument[:] = V
            start = self._options.start
            if start == "coarse" or (start == "auto" and not V.any()):
                self._start(out)
            sweep = self._sweep(out)
        elif self._rescue.plain:
            self._move_to(V, self._last)
            sweep = self._sweep(out)
        else:
            sweep = self._round(V, out, self._last)
        self._see(sweep)
        return Step(
            self._num_sweeps * len(V) + self._num_coarse_updates,
            sweep,
            num_sweeps=self._num_sweeps,
        )

    def _start(self, out: NDArray[np.float64]) -> None:
        """Begin with what the policy of a coarser model is worth, if there is one."""
        engine = self._engine
        if engine.num_states <= _FEWEST_STATES:
            return
        coarse = coarse_model(engine)
        if coarse is None:
            return
        solver = self._solved(coarse)
        policy = solver._policy[coarse.labels]
        available = engine.model.action_mask
        lacking = ~available[np.arange(len(policy)), policy]
        policy[lacking] = available[lacking].argmax(axis=1)
        last = engine.policy_sweep(policy, self._argument, out)
        self._correct(policy, out, last)

    def _solved(self, coarse: CoarseModel) -> MultilevelPolicyIteration:
        """Solve a coarser model about, and take its values up; return what solved it."""
        engine = self._engine
        groups = local_engine(coarse.model, engine.gamma, engine.num_threads, engine.checkpoint)
        num_groups = groups.num_states
        solver = MultilevelPolicyIteration(groups, self._options)
        V, image = np.zeros(num_groups), np.empty(num_groups)
        most = _MOST_ROUNDS if num_groups > _FEWEST_STATES else _MOST_ROUNDS_COARSEST
        for _ in range(1 + most):
            self._num_coarse_updates += solver.step(V, image).num_updates
            V, image = image, V
            if solver._changed_share < _SETTLED:
                break
        self._argument[:] = V[coarse.labels]
        self._argument[engine.terminal] = 0.0
        return solver

    def _round(self, V: NDArray[np.float64], out: NDArray[np.float64], last: Sweep) -> Sweep:
        """Correct what was swept last, whose image V is, and sweep."""
        out[:] = V
        self._correct(self._policy, out, last)
        return self._sweep(out)

    def _correct(self, policy: NDArray[np.int32], image: NDArray[np.float64], last: Sweep) -> None:
        """Add to what was swept what it lacks of the policy's value, and sweep all but once.

        ``image`` is that of what was swept, and room for others.
        """
        image -= self._argument
        self._num_sweeps += self._equations.follow(policy)
        found = self._equations.solve(image, reduction=self._reduction, most_steps=_MOST_STEPS)
        self._num_sweeps += found.num_sweeps
        correction = found.values if found.reduction < 1.0 else image
        self._argument += correction
        self._changed(float(correction.min()), float(correction.max()), last)
        for _ in range(self._options.num_sweeps - 1):
            self._move_to(image, self._sweep(image))

    def _move_to(self, image: NDArray[np.float64], sweep: Sweep) -> None:
        """Take the image of what was swept last in its place."""
        self._argument[:] = image
        self._changed(sweep.residual_low, sweep.residual_high, sweep)

    def _changed(self, low: float, high: float, last: Sweep) -> None:
        """Account for a change of what is swept by ``low`` to ``high``."""
        self._sweeps.changed(low, high, last.max_value + max(-low, high))

    def _sweep(self, out: NDArray[np.float64]) -> Sweep:
        self._num_sweeps += 1
        return self._sweeps.sweep(self._argument, out, self._policy)

    def _see(self, sweep: Sweep) -> None:
        """Take note of the sweep that ended a step."""
        self._last = sweep
        num_changed = int(np.count_nonzero(self._policy != self._last_policy))
        self._changed_share = num_changed / len(self._policy)
        self._last_policy[:] = self._policy
        low, high = sweep.residual_range(with_zero=self._some_terminal)
        span = high - low
        settled = self._changed_share < _HARDLY_CHANGED
        if settled and span > _PART_LEFT * self._reduction * self._span:
            self._reduction = max(_FURTHER * self._reduction, _LEAST_REDUCTION)
        self._span = span
        self._rescue.see(span)
