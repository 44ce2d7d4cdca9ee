"""Modified policy iteration on models without a table: full sweeps, and others by the policy.

A round takes the policy that is greedy for V, applies its own backup a number of times, and ends
with a full sweep TV, which certifies and gives the next policy.  `modified_policy_iteration` is the
same on models with tables, where more is known of the policy.

With ``inner_sweeps=k`` that is the textbook method, ``V <- T_pi^k T V``.  By default sweeps by the
policy go on until they have shrunk the range of their increment far enough, and take no more work
than the full sweep: none where a policy's sweep is no cheaper, as where most of the work is in what
all actions share.  How far is far enough follows the rounds: deeper where the next residual is what
they left, less deep where it comes from new actions.

Source: Puterman, Shin, "Modified policy iteration algorithms for discounted Markov decision
problems", Management Science 24 (1978).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planners.engine import PolicyEngine, Sweep
from planners.solvers.base import Step
from planners.solvers.modified_policy_iteration import ModifiedPolicyIterationOptions

# How far a round shrinks the increment: at first, at least and at most.
_FIRST_DROP, _LEAST_DROP, _MOST_DROP = 0.2, 1e-3, 0.3
# What of a residual is taken for what a round left.
_LEFT = 2.0
# Most sweeps by one policy.
_MOST_SWEEPS = 100


class PolicySweeps:
    """Modified policy iteration by the sweeps of an engine alone."""

    def __init__(self, engine: PolicyEngine, options: ModifiedPolicyIterationOptions) -> None:
        self._engine = engine
        self._num_fixed = options.inner_sweeps
        cheaper = engine.work // max(1, engine.policy_work)
        self._most = min(_MOST_SWEEPS, cheaper) if cheaper > 1 else 0
        self._some_terminal = engine.count(engine.terminal) > 0
        num_here = len(engine.terminal)
        self._policy = np.zeros(num_here, dtype=np.int32)
        self._inner, self._spare = np.empty(num_here), np.empty(num_here)
        self._last: float | None = None  # range of the last full sweep's residual
        self._left = 0.0  # of what the last sweep by the policy changed
        self._drop = _FIRST_DROP

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        """Make one round: sweeps by the last policy, and a full sweep."""
        num_inner = 0 if self._last is None else self._evaluate(V, self._last)
        argument = self._inner if num_inner else V
        sweep = self._engine.sweep(argument, out, self._policy)
        reached = self._range(sweep)
        if num_inner:
            deeper = reached <= _LEFT * self._left
            drop = self._drop / 4 if deeper else 2 * self._drop
            self._drop = min(_MOST_DROP, max(_LEAST_DROP, drop))
        self._last = reached
        return Step((num_inner + 1) * self._engine.num_states, sweep, num_sweeps=num_inner + 1)

    def _evaluate(self, V: NDArray[np.float64], before: float) -> int:
        """Sweep by the policy from V on, and return how often; ``before`` is the range at first."""
        count = self._most if self._num_fixed is None else self._num_fixed
        source = V
        for done in range(1, count + 1):
            self._left = self._range(self._engine.policy_sweep(self._policy, source, self._spare))
            self._inner, self._spare = self._spare, self._inner
            source = self._inner
            if self._num_fixed is None and self._left <= self._drop * before:
                return done
        return count

    def _range(self, sweep: Sweep) -> float:
        """Return the range of a residual, with 0 where there are terminal states."""
        low, high = sweep.residual_range(with_zero=self._some_terminal)
        return high - low
