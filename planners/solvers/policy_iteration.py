"""Policy iteration.

    V = value of the policy;  policy(s) = argmin_a c(s,a) + gamma sum_s' P(s'|s,a) V(s')

A policy is evaluated exactly: by elimination along its paths (`planners.forest`), which is all
there is to it where moves are certain or form a tree, with BiCGSTAB for what that leaves out, begun
anew until the residual is down to rounding; by incomplete factors (`planners.chains`) where that
fails.  An action is replaced only by one that is better by more than rounding, so that ties do not
turn in circles; the first policy is greedy on V0, and of its ties takes what leads to a terminal
state.  Each iteration ends with a sweep V = TV, which bounds the error.  Once no action is better,
or the values fall by no more than rounding, such sweeps are all that is left to do.

Source: Howard, "Dynamic programming and Markov processes" (1960).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planners.bellman import Backups
from planners.chains import ChainEquations
from planners.forest import PolicyForest
from planners.iterate import Step
from planners.policies import greedy_policy, policy_model

# A round of BiCGSTAB, and how many there may be; each is to halve the residual at least.
_REDUCTION, _MOST_STEPS = 1e-6, 200
_MOST_ROUNDS = 20


@dataclass(frozen=True, kw_only=True)
class PolicyIterationOptions:
    """Policy iteration has no options of its own."""


class PolicyIteration:
    """Policy iteration from the policy that is greedy on a given V."""

    recentres = True

    def __init__(
        self,
        backups: Backups,
        V0: NDArray[np.float64],
        rng: np.random.Generator,
        options: PolicyIterationOptions,
    ) -> None:
        self._backups = backups
        self._V = V0.copy()
        # The value of the last policy that was evaluated, but for what is added to it.
        self._image = np.empty_like(V0)
        self._forest = PolicyForest(backups)
        self._policy = np.empty(0, dtype=np.int32)
        self._settled = False
        self._num_sweeps = 0

    def step(self) -> Step:
        """Evaluate the policy and improve it, then sweep."""
        self._num_sweeps = 0
        if not self._settled:
            self._iterate()
        sweep = self._backups.sweep(self._V, self._image)
        self._num_sweeps += 1
        self._V, self._image = self._image, self._V
        return Step(self._num_sweeps * len(self._V), sweep, num_sweeps=self._num_sweeps)

    def values(self) -> NDArray[np.float64]:
        """Return the current V, which is T of the value of a policy."""
        return self._V

    def labels(self) -> None:
        """Return None: states are not aggregated."""

    def _iterate(self) -> None:
        """Evaluate the policy into V, and take a better one for the next time, if there is any."""
        is_first = len(self._policy) == 0
        if is_first:
            tie = 2 * self._rounding()
            policy = greedy_policy(self._backups, self._V, slack=tie, tie=tie)
            self._policy = policy.astype(np.int32)
        self._evaluate()
        rounding = self._rounding()
        # The image is still the value of the last policy.
        fall = np.inf if is_first else float((self._image - self._V).max())
        negligible = rounding / (1 - self._backups.gamma)
        self._settled = fall <= negligible or not self._improve(2 * rounding)

    def _improve(self, rounding: float) -> bool:
        """Replace actions by better ones; return whether there was one."""
        Q = self._backups.q_values(self._V)
        self._num_sweeps += 1
        current = np.take_along_axis(Q, self._policy[:, np.newaxis], axis=1)[:, 0]
        better = Q.min(axis=1) < current - rounding
        self._policy[better] = Q[better].argmin(axis=1)
        return bool(better.any())

    def _evaluate(self) -> None:
        """Bring V to the value of the policy."""
        backups, V = self._backups, self._V
        self._forest.follow(self._policy)
        residual = np.inf
        scratch = np.empty_like(V)
        for _ in range(_MOST_ROUNDS):
            found = self._forest.evaluate(V, reduction=_REDUCTION, most_steps=_MOST_STEPS)
            self._num_sweeps += found.num_applications
            if found.lagged_share == 0.0:
                return
            previous, residual = residual, self._residual(scratch)
            if residual <= self._rounding():
                return
            if not residual <= 0.5 * previous:
                break
        chain = policy_model(backups.model, self._policy)
        equations = ChainEquations(chain.transitions, chain.terminal, backups.gamma)
        solution = equations.solve(chain.costs[:, 0])
        if max(-solution.residual_low, solution.residual_high) < residual:
            V[:] = solution.values

    def _residual(self, scratch: NDArray[np.float64]) -> float:
        self._num_sweeps += 1
        return self._backups.policy_sweep(self._policy, self._V, scratch).residual

    def _rounding(self) -> float:
        return self._backups.rounding(float(np.abs(self._V).max()))
