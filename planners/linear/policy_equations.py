"""The equations ``(I - gamma P_pi) x = r`` of policies that change little by little.

They are solved by elimination in many levels (`linear.multilevel`), which is exact on lines, trees
and stars, and elsewhere the preconditioner of BiCGSTAB.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planners.engine import LocalEngine
from planners.linear.bicgstab import bicgstab
from planners.linear.multilevel import MultilevelElimination
from planners.linear.policy_matrix import PolicyMatrix, multiply, policy_matrix

# Up to this part of the states with a new action, the elimination for the last policy serves.
_FEW = 1e-3


class Solution(NamedTuple):
    """What solving came to.

    Parameters
    ----------
    values : ndarray of float, shape (S,)
    reduction : float
        2-norm of the residual in units of that of the right hand side; NaN or infinite where it
        broke down.
    num_sweeps : int
        Work, in sweeps by the policy.
    """

    values: NDArray[np.float64]
    reduction: float
    num_sweeps: int


class PolicyEquations:
    """Equations of the policies of one model.

    Parameters
    ----------
    engine : LocalEngine
    """

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._policy: NDArray[np.int32] | None = None
        # The policy whose matrix was eliminated.
        self._eliminated: NDArray[np.int32] | None = None
        self._matrix: PolicyMatrix
        self._elimination: MultilevelElimination

    def follow(self, policy: NDArray[np.int32]) -> None:
        """Take up a policy, shape (S,); the array is copied."""
        if self._policy is not None and np.array_equal(policy, self._policy):
            return
        self._matrix = policy_matrix(self._engine, policy)
        self._policy = policy.copy()
        if self._eliminated is not None:
            num_changed = np.count_nonzero(policy != self._eliminated)
            if num_changed <= _FEW * self._engine.num_states:
                return
        self._eliminated = None
        self._elimination = MultilevelElimination(self._matrix, self._engine.checkpoint)
        self._eliminated = self._policy

    def solve(self, right: NDArray[np.float64], *, reduction: float, most_steps: int) -> Solution:
        """Solve for the policy that was taken up last.

        Parameters
        ----------
        right : ndarray of float, shape (S,)
        reduction : float
            End where the 2-norm of the residual is down to this part of that of ``right``.
        most_steps : int
            Most steps of BiCGSTAB, of two applications each.
        """
        found = bicgstab(self._apply, right, reduction=reduction, most_steps=most_steps)
        size = max(1, len(self._matrix.entries))
        work = 2 * found.num_steps * (1 + self._elimination.num_entries / size)
        return Solution(found.values, found.reduction, math.ceil(work))

    def _apply(
        self,
        direction: NDArray[np.float64],
        smoothed: NDArray[np.float64],
        image: NDArray[np.float64],
    ) -> None:
        self._engine.checkpoint()
        self._elimination.apply(direction, smoothed)
        multiply(self._matrix, smoothed, image)
