"""The equations ``(I - gamma P_pi) x = r`` of policies that change little by little.

Where few entries fill in, they are eliminated exactly (`linear.sparse_elimination`): on lines,
bands and trees, where policies mostly lead one way, and in the plane up to some size.  Elsewhere
elimination in many levels (`linear.multilevel`) is the preconditioner of BiCGSTAB.  Which it is
follows from counted work, which the pattern of the policy's rows foretells.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planners.engine import LocalEngine
from planners.kernels.vectors import sup_norm
from planners.linear.bicgstab import bicgstab
from planners.linear.elimination_tree import analyse
from planners.linear.multilevel import MultilevelElimination
from planners.linear.policy_matrix import PolicyMatrix, multiply, policy_matrix
from planners.linear.rows import Rows
from planners.linear.sparse_elimination import Factors, PatternError

# Rows that are longer than this on average, for which a search for an order takes long; states that
# are looked at for where they lead, and the part of all states that is far.
_MOST_LENGTH, _SAMPLE, _FAR_OFF = 32, 500, 0.05
# Exact factors may have so many entries, and take so many products, for an entry of the matrix:
# elimination in levels and a few steps of BiCGSTAB take about as long.
_MOST_ENTRIES, _MOST_OPERATIONS = 30, 400
# A round of BiCGSTAB, and how many there may be, where values are wanted to the last digit.
_FAR, _MOST_STEPS, _MOST_ROUNDS = 1e-6, 200, 20
# Work for an entry, in those of a sweep: of an analysis, and of elimination in levels.
_ANALYSIS_WORK, _ELIMINATION_WORK = 30, 20
# Up to this part of the states with a new action, what was made for the last policy may serve.
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


class Refinement(NamedTuple):
    """How near to the value of a policy `PolicyEquations.refine` came.

    Parameters
    ----------
    residual : float
        Sup norm of ``T_pi V - V``, as computed; infinite where nothing is known of it.
    num_sweeps : int
        Work, in sweeps by the policy.
    exact : bool
        Whether that is no more than rounding.
    """

    residual: float
    num_sweeps: int
    exact: bool


def _surely_fills_in(matrix: PolicyMatrix) -> bool:
    """Whether rows are long, or most lead to several states far off, as in random graphs."""
    num_states = len(matrix.slack)
    if len(matrix.columns) > _MOST_LENGTH * num_states:
        return True
    step = max(1, num_states // _SAMPLE)
    lo, hi = matrix.starts[:-1:step], matrix.starts[1::step]
    states = np.repeat(np.arange(0, num_states, step), hi - lo)
    places = np.concatenate([np.arange(a, b) for a, b in zip(lo, hi, strict=True)])
    far = np.abs(matrix.columns[places] - states) > _FAR_OFF * num_states
    return bool(np.mean(np.bincount(states[far], minlength=num_states)[::step] > 1) > 0.5)


class PolicyEquations:
    """Equations of the policies of one model.

    Parameters
    ----------
    engine : LocalEngine
    """

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._policy: NDArray[np.int32] | None = None
        self._matrix: PolicyMatrix
        # Whether it was taken up without a limit, or within it.
        self._is_solvable = False
        self._factors: Factors | None = None
        self._factor_work = self._solve_work = 0
        # Policies to let go by before the next is analysed, and after the next that fills in.
        self._num_to_skip, self._next_skip = 0, 1
        self._elimination: MultilevelElimination | None = None
        # The policy whose matrix was eliminated.
        self._eliminated: NDArray[np.int32] | None = None

    def follow(self, policy: NDArray[np.int32], *, most_work: int | None = None) -> int:
        """Take up a policy; return the work of it, in sweeps by the policy.

        Parameters
        ----------
        policy : ndarray of int32, shape (S,)
            Of available actions; the array is copied.
        most_work : int, optional
            Where exact factors have more than so many numbers, or take more than so many products,
            for an entry of the matrix, solving comes to nothing.  By default there is no such
            limit, and what fills in is solved in steps.
        """
        is_last = self._policy is not None and np.array_equal(policy, self._policy)
        if is_last and (self._is_solvable or most_work is not None):
            return 0
        self._policy = None
        self._matrix = policy_matrix(self._engine, policy)
        work = self._factor(most_work)
        if self._factors is None and most_work is None:
            work += self._eliminate(policy)
        self._is_solvable = self._factors is not None or most_work is None
        self._policy = policy.copy()
        return math.ceil(work / self._size)

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
        if self._factors is not None:
            values = self._factors.solve(right)
            reduction = 0.0 if math.isfinite(sup_norm(values)) else math.inf
            return Solution(values, reduction, math.ceil(self._solve_work / self._size))
        if not self._is_solvable:
            return Solution(right, math.inf, 0)
        assert self._elimination is not None
        found = bicgstab(self._apply, right, reduction=reduction, most_steps=most_steps)
        work = 2 * found.num_steps * (self._size + self._elimination.num_entries)
        return Solution(found.values, found.reduction, math.ceil(work / self._size))

    def refine(self, V: NDArray[np.float64]) -> Refinement:
        """Bring V, in place, to the value of the policy that was taken up last.

        The equations are solved for what V lacks until the residual of a sweep by the policy is
        down to its rounding, or comes no further.

        Parameters
        ----------
        V : ndarray of float, shape (S,)
            Finite.
        """
        engine, image = self._engine, np.empty_like(V)
        assert self._policy is not None
        best, num_sweeps, last = V.copy(), 0, math.inf
        for _ in range(_MOST_ROUNDS):
            residual = engine.policy_sweep(self._policy, V, image).residual
            num_sweeps += 1
            size = sup_norm(V)
            if not size < math.inf:
                # The rounding of what is infinite would be, and no residual is seen of a NaN.
                V[:] = best
                return Refinement(last, num_sweeps, exact=False)
            if residual <= engine.rounding(size):
                return Refinement(residual, num_sweeps, exact=True)
            if not residual < last:
                V[:] = best
                return Refinement(last, num_sweeps, exact=False)
            if not residual <= 0.5 * last:
                return Refinement(residual, num_sweeps, exact=False)
            last = residual
            best[:] = V
            image -= V
            found = self.solve(image, reduction=_FAR, most_steps=_MOST_STEPS)
            num_sweeps += found.num_sweeps
            V += found.values
        return Refinement(last, num_sweeps, exact=False)

    @property
    def _size(self) -> int:
        """Work of a sweep by the policy."""
        return len(self._matrix.slack) + len(self._matrix.entries)

    def _is_near(self, policy: NDArray[np.int32], other: NDArray[np.int32]) -> bool:
        """Whether few states have another action."""
        return bool(np.count_nonzero(policy != other) <= _FEW * self._engine.num_states)

    def _factor(self, most_work: int | None) -> int:
        """Factor the matrix exactly if it does not fill in; return the work of that.

        The last order of elimination serves wherever the rows fit it.
        """
        starts, columns, entries, slack, _ = self._matrix
        rows = Rows(starts, columns, entries)
        if self._factors is not None:
            try:
                if self._factors.load(rows, 1.0, slack):
                    return self._factor_work
            except PatternError:
                pass
        self._factors = None
        if self._num_to_skip > 0:
            self._num_to_skip -= 1
            return 0
        size, checkpoint = self._size, self._engine.checkpoint
        analysis, work = None, size
        if most_work is None or not _surely_fills_in(self._matrix):
            analysis = analyse(
                starts,
                columns,
                most_entries=(most_work or _MOST_ENTRIES) * size,
                most_operations=(most_work or _MOST_OPERATIONS) * size,
                checkpoint=checkpoint,
            )
            work = _ANALYSIS_WORK * size
        if analysis is not None:
            factors = Factors(analysis, checkpoint)
            self._factor_work, self._solve_work = analysis.factor_work, analysis.solve_work
            work += self._factor_work
            if factors.load(rows, 1.0, slack):
                self._factors = factors
        if self._factors is None:
            self._num_to_skip, self._next_skip = self._next_skip, 2 * self._next_skip
        return work

    def _eliminate(self, policy: NDArray[np.int32]) -> int:
        """Eliminate in levels, if the last elimination does not serve; return the work of it."""
        if self._eliminated is not None and self._is_near(policy, self._eliminated):
            return 0
        self._eliminated = None
        self._elimination = MultilevelElimination(self._matrix, self._engine.checkpoint)
        self._eliminated = policy.copy()
        return _ELIMINATION_WORK * self._elimination.num_entries

    def _apply(
        self,
        direction: NDArray[np.float64],
        smoothed: NDArray[np.float64],
        image: NDArray[np.float64],
    ) -> None:
        assert self._elimination is not None
        self._engine.checkpoint()
        self._elimination.apply(direction, smoothed)
        multiply(self._matrix, smoothed, image)
