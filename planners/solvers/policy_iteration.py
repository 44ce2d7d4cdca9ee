"""Policy iteration.

    V = value of the policy;  policy(s) = argmin_a c(s,a) + gamma sum_s' P(s'|s,a) V(s')

A policy is evaluated exactly: along its paths where moves are certain (`linear.forest`), elsewhere
by the cheapest of the ways of `linear.policy_equations`, begun anew until the residual is down to
rounding; where that fails, by elimination without subtractions in small models
(`linear.elimination`), by incomplete factors (`linear.chain`) in others.  An
action is replaced only by one that is better by more than rounding, so that ties do not
turn in circles; the first policy is greedy on V0, and of its ties takes what leads to a terminal
state.  Each iteration ends with a sweep V = TV, which bounds the error.  Once no action is better,
or the values fall by no more than rounding, such sweeps are all that is left to do; where the
evaluation was exact, not even those.

Source: Howard, "Dynamic programming and Markov processes" (1960).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planners.engine import LocalEngine
from planners.kernels.vectors import sup_norm
from planners.linear.chain import ChainEquations
from planners.linear.elimination import MOST_STATES, eliminate
from planners.linear.forest import PolicyForest
from planners.linear.policy_equations import PolicyEquations
from planners.policies import greedy_policy, policy_model
from planners.solvers.base import Step


class PolicyIteration:
    """Policy iteration from the policy that is greedy on the first V."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._forest = PolicyForest(engine)
        self._equations = PolicyEquations(engine)
        # The policy, and the value of the last one; empty before the first.
        self._policy = np.empty(0, dtype=np.int32)
        self._value = np.empty(0)
        self._settled = False
        self._exact = False
        self._num_sweeps = 0

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        """Evaluate the policy and improve it, then sweep."""
        self._num_sweeps = 0
        if not self._settled:
            self._iterate(V)
            V = self._value
        sweep = self._engine.sweep(V, out)
        self._num_sweeps += 1
        return Step(
            self._num_sweeps * len(V),
            sweep,
            num_sweeps=self._num_sweeps,
            settled=self._settled and self._exact,
        )

    def _iterate(self, V: NDArray[np.float64]) -> None:
        """Evaluate the policy from V on, and take a better one, if there is any."""
        is_first = len(self._policy) == 0
        if is_first:
            tie = 2 * self._rounding(V)
            policy = greedy_policy(self._engine, V, slack=tie, tie=tie)
            self._policy = policy.astype(np.int32)
        last, self._value = self._value, V.copy()
        self._exact = self._evaluate(self._value)
        rounding = self._rounding(self._value)
        fall = np.inf if is_first else float((last - self._value).max())
        negligible = rounding / (1 - self._engine.gamma)
        self._settled = fall <= negligible or not self._improve(2 * rounding)

    def _improve(self, rounding: float) -> bool:
        """Replace actions by better ones; return whether there was one."""
        Q = self._engine.q_values(self._value)
        self._num_sweeps += 1
        current = np.take_along_axis(Q, self._policy[:, np.newaxis], axis=1)[:, 0]
        better = Q.min(axis=1) < current - rounding
        self._policy[better] = Q[better].argmin(axis=1)
        return bool(better.any())

    def _evaluate(self, V: NDArray[np.float64]) -> bool:
        """Bring V to the value of the policy; return whether that is exact but for rounding."""
        engine = self._engine
        if self._forest.certain:
            self._forest.follow(self._policy)
            found = self._forest.evaluate(V, reduction=0.0, most_steps=1)
            self._num_sweeps += found.num_applications
            residual = self._residual(V, np.empty_like(V))
            if residual <= self._rounding(V):
                return True
        self._num_sweeps += self._equations.follow(self._policy)
        refined = self._equations.refine(V)
        self._num_sweeps += refined.num_sweeps
        if refined.exact:
            return True
        chain = policy_model(engine.model, self._policy)
        if len(V) <= MOST_STATES:
            exact = eliminate(chain, engine.gamma)
            if exact is not None:
                V[:] = exact
                return True
        equations = ChainEquations(chain.transitions, chain.terminal, engine.gamma)
        solution = equations.solve(chain.costs[:, 0])
        if not refined.residual <= max(-solution.residual_low, solution.residual_high):
            V[:] = solution.values
        return self._residual(V, np.empty_like(V)) <= self._rounding(V)

    def _residual(self, V: NDArray[np.float64], scratch: NDArray[np.float64]) -> float:
        self._num_sweeps += 1
        return self._engine.policy_sweep(self._policy, V, scratch).residual

    def _rounding(self, V: NDArray[np.float64]) -> float:
        return self._engine.rounding(sup_norm(V))
