"""Policy iteration whose evaluations are PETSc's: Krylov methods, with a preconditioner if need be.

A round solves ``(I - gamma P_pi) d = T_pi V - V`` for the policy pi that was greedy for V, and ends
with a full sweep of V + d, which certifies and gives the next policy.  What PETSc returns is a
guess like any other: no bound and no value rests on it but by that sweep.

- `KrylovPolicyIteration` solves anew for what is left until the residual is that of rounding, or
  comes no further: exact policy iteration.
- `KrylovModified` solves to a tenth of the residual at most, in few steps at first and twice as
  many each round: the policy that is greedy for a V that knows little is not worth more.

Corrections of any kind could go in circles: where rounds make no progress, some are plain sweeps
(`planners.solvers.rescue`).  The sums of Krylov methods depend on the parts, so that values differ
in their last digits from one number of processes to another, within the bounds.

Source: Howard (1960); Puterman, Shin (1978); Gargiani, Sieber, Balta, Liao-McPherson, Lygeros,
"Inexact policy iteration methods for large-scale Markov decision processes" (2024) for the solvers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.checks import check_choice
from planners.distributed.engine import PartEngine
from planners.distributed.partition import check_index
from planners.engine import Sweep
from planners.kernels.tables import Moves, Outcomes, StateNumbers
from planners.solvers.base import Solver, Step
from planners.solvers.modified_policy_iteration import ModifiedPolicyIterationOptions
from planners.solvers.policy_sweeps import PolicySweeps
from planners.solvers.rescue import Rescue

#: Krylov methods and preconditioners by their names here, with PETSc's.
KSPS = {"gmres": "gmres", "bicgstab": "bcgs"}
PCS = {"none": "none", "jacobi": "jacobi", "block_jacobi": "bjacobi", "gamg": "gamg"}
# What an exact evaluation reduces a residual by at once, how often, and in how many steps at most.
_FAR, _MOST_ROUNDS, _MOST_STEPS = 1e-10, 8, 2000
# The same of a round of the modified method: the steps of the first, and of any.
_NEAR, _FIRST_STEPS = 0.1, 10
# A linear solver that does not halve its residual in so many steps is given up.
_PATIENCE = 50
# Plain sweeps of the first rescue.
_PLAIN = 4
_PREFIX = "aggmaze_"
# Multigrid for matrices that are far from symmetric: the usual smoothers look for the spectrum of a
# symmetric one.  What the user says by PETSC_OPTIONS goes before it.
_GAMG = {
    "mg_levels_ksp_type": "richardson",
    "mg_levels_pc_type": "sor",
    "pc_gamg_agg_nsmooths": 0,
}


@dataclass(frozen=True, kw_only=True)
class PolicyIterationOptions:
    """Which of PETSc's solvers evaluates a policy.

    Parameters
    ----------
    ksp : {"gmres", "bicgstab"}
    pc : {"none", "jacobi", "block_jacobi", "gamg"}
        Preconditioner: "block_jacobi" is incomplete factors of each process's own block, "gamg"
        PETSc's algebraic multigrid.
    """

    ksp: str = "gmres"
    pc: str = "block_jacobi"

    def __post_init__(self) -> None:
        check_choice("ksp", self.ksp, KSPS)
        check_choice("pc", self.pc, PCS)


@dataclass(frozen=True, kw_only=True)
class ModifiedOptions(ModifiedPolicyIterationOptions):
    """How a policy is evaluated in part.

    Parameters
    ----------
    inner_sweeps : int, optional
        Sweeps by the policy between two full ones, at least 0; by default PETSc evaluates.
    ksp, pc : str, optional
        As for `PolicyIterationOptions`; not beside ``inner_sweeps``.
    """

    ksp: str | None = None
    pc: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [name for name in ("ksp", "pc") if getattr(self, name) is not None]
        if self.inner_sweeps is not None and given:
            raise ValueError(
                f"inner_sweeps = {self.inner_sweeps!r} evaluates by sweeps, and {given[0]} = "
                f"{getattr(self, given[0])!r} by PETSc: give one of them"
            )
        _ = self.solver

    @property
    def solver(self) -> PolicyIterationOptions:
        """The solver that is asked for."""
        given = {"ksp": self.ksp, "pc": self.pc}
        return PolicyIterationOptions(**{k: v for k, v in given.items() if v is not None})


def make_modified(engine: PartEngine, options: ModifiedOptions) -> Solver:
    """Return modified policy iteration by sweeps, or by PETSc's solvers.

    Parameters
    ----------
    engine : PartEngine
    options : ModifiedOptions
    """
    if options.inner_sweeps is not None:
        return PolicySweeps(engine, options)
    return KrylovModified(engine, options.solver)


def reads_tables(options: Any) -> bool:
    """Return whether a method makes matrices of the rows of policies.

    Parameters
    ----------
    options : object
        Of the method.
    """
    by_sweeps = isinstance(options, ModifiedOptions) and options.inner_sweeps is not None
    return isinstance(options, PolicyIterationOptions | ModifiedOptions) and not by_sweeps


class _Solved(NamedTuple):
    """What a linear solver returns."""

    values: NDArray[np.float64]
    num_products: int


class _Equations:
    """``(I - gamma P_pi) d = r`` for one policy after another, in PETSc's matrices."""

    def __init__(self, engine: PartEngine, options: PolicyIterationOptions) -> None:
        self._engine, self._options = engine, options
        self._near_states = np.concatenate(
            [engine.first_state + np.arange(len(engine.terminal)), engine.ghosts.states]
        )
        self._matrix: Any = None
        self._ksp: Any = None
        self._failure: BaseException | None = None

    def follow(self, policy: NDArray[np.int32]) -> None:
        """Take up a policy of available actions, shape (S,)."""
        engine = self._engine
        processes, partition = engine.parts, engine.partition
        PETSc = processes.PETSc  # noqa: N806
        tables = engine.tables
        rows, columns, probabilities = (
            _of_moves(tables, policy) if isinstance(tables, Moves) else _of_outcomes(tables, policy)
        )
        own = np.arange(len(partition))
        # Added up, since a row may list one state several times.
        block = sp.csr_array(
            (
                np.concatenate([np.ones(len(own)), -engine.gamma * probabilities]),
                (
                    np.concatenate([own, rows]),
                    np.concatenate([partition.lo + own, self._near_states[columns]]),
                ),
            ),
            shape=(len(partition), partition.num_states),
        )
        block.sort_indices()
        processes.together(
            lambda: check_index(
                block.nnz, processes.index_bits, "entries of a policy's rows in one process"
            )
        )
        self.release()
        sizes = len(partition), partition.num_states
        matrix = PETSc.Mat().createAIJ(
            (sizes, sizes),
            csr=(
                block.indptr.astype(PETSc.IntType),
                block.indices.astype(PETSc.IntType),
                block.data,
            ),
            comm=processes.comm,
        )
        self._matrix = matrix
        self._ksp = PETSc.KSP().create(comm=processes.comm)
        self._ksp.setOptionsPrefix(_PREFIX)
        self._ksp.setType(KSPS[self._options.ksp])
        self._ksp.getPC().setType(PCS[self._options.pc])
        self._ksp.setOperators(matrix)
        if self._options.pc == "gamg":
            options = PETSc.Options(_PREFIX)
            for name, value in _GAMG.items():
                if not options.hasName(name):
                    options[name] = value
        self._ksp.setFromOptions()

    def solve(
        self, right: NDArray[np.float64], *, reduction: float, most_steps: int
    ) -> _Solved | None:
        """Solve for the policy that was taken up last; None where PETSc comes to nothing.

        Parameters
        ----------
        right : ndarray of float, shape (S,)
        reduction : float
            End where the residual, as the method sees it, is down to this part of the first.
        most_steps : int
        """
        reasons = self._engine.parts.PETSc.KSP.ConvergedReason
        first = mark = math.inf

        def test(ksp: Any, step: int, norm: float) -> int:
            nonlocal first, mark
            try:
                self._engine.checkpoint()
            except BaseException as failure:
                # PETSc is left in order first: all processes come here.
                self._failure = failure
                return int(reasons.DIVERGED_NULL)
            if not norm < math.inf:
                return int(reasons.DIVERGED_NANORINF)
            first = norm if step == 0 else first
            if norm <= reduction * first:
                return int(reasons.CONVERGED_RTOL)
            is_stuck = False
            if step % _PATIENCE == 0:
                is_stuck, mark = norm > 0.5 * mark, norm
            ends = is_stuck or step >= most_steps
            return int(reasons.CONVERGED_ITS if ends else reasons.ITERATING)

        b, x = self._matrix.createVecs()
        try:
            b.array[:] = right
            self._ksp.setConvergenceTest(test)
            self._ksp.setTolerances(max_it=most_steps + 1)
            self._ksp.solve(b, x)
            values, steps = x.array.copy(), int(self._ksp.getIterationNumber())
            reason = int(self._ksp.getConvergedReason())
        finally:
            b.destroy()
            x.destroy()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if reason < 0 or not self._engine.sup_norm(values) < math.inf:
            return None
        # BiCGSTAB makes two products a step.
        return _Solved(values, 1 + steps * (2 if self._options.ksp == "bicgstab" else 1))

    def release(self) -> None:
        """Give up what PETSc holds of the last policy."""
        for held in (self._ksp, self._matrix):
            if held is not None:
                held.destroy()
        self._ksp = self._matrix = None


def _of_moves(
    tables: Moves, policy: NDArray[np.int32]
) -> tuple[NDArray[np.intp], StateNumbers, NDArray[np.float64]]:
    """Return what a policy may lead to: states, next ones and probabilities, by local numbers."""
    available = tables.costs < np.inf
    counts = available.sum(axis=1)
    chance = np.repeat(tables.every[counts], tables.costs.shape[1]).reshape(tables.costs.shape)
    states = np.arange(len(policy))
    chance[states, policy] += tables.chosen[counts]
    rows, moves = np.nonzero(available & (chance > 0.0))
    return rows, tables.successors[rows, moves], chance[rows, moves]


def _of_outcomes(
    tables: Outcomes, policy: NDArray[np.int32]
) -> tuple[NDArray[np.intp], StateNumbers, NDArray[np.float64]]:
    """Return what a policy may lead to, as `_of_moves` does; nothing from terminal states."""
    states = np.flatnonzero(~tables.terminal)
    listed = states * tables.costs.shape[1] + policy[states]
    starts = tables.indptr[listed]
    counts = tables.indptr[listed + 1] - starts
    first = np.cumsum(counts) - counts
    entries = np.repeat(starts - first, counts) + np.arange(counts.sum())
    return np.repeat(states, counts), tables.indices[entries], tables.probabilities[entries]


class _Rounds:
    """Rounds of a correction by the last policy, and a full sweep."""

    def __init__(self, engine: PartEngine, options: PolicyIterationOptions) -> None:
        self._engine = engine
        self._equations = _Equations(engine, options)
        self._some_terminal = engine.count(engine.terminal) > 0
        self._policy = np.zeros(len(engine.terminal), dtype=np.int32)
        self._has_policy = False
        self._image = np.empty(len(engine.terminal))
        self._rescue = Rescue(_PLAIN)
        self._num_sweeps = 0

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        """Make one round: the last policy is evaluated, and a full sweep gives the next."""
        engine = self._engine
        self._num_sweeps = 1
        if self._has_policy and not self._rescue.plain:
            V = self._evaluated(V)
        sweep = engine.sweep(V, out, self._policy)
        self._has_policy = True
        self._rescue.see(self._range(sweep))
        return Step(
            self._num_sweeps * engine.num_states,
            sweep,
            num_sweeps=self._num_sweeps,
        )

    def _evaluated(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a new V, nearer to the value of the policy; or V where there is none."""
        raise NotImplementedError

    def _residual(self, V: NDArray[np.float64]) -> float:
        """Write ``T_pi V - V`` into the room for it; return its sup norm."""
        self._num_sweeps += 1
        residual = self._engine.policy_sweep(self._policy, V, self._image).residual
        self._image -= V
        return residual

    def _corrected(
        self, V: NDArray[np.float64], reduction: float, most_steps: int
    ) -> NDArray[np.float64] | None:
        """Return V with what PETSc finds for the residual added; None where that is nothing."""
        found = self._equations.solve(self._image, reduction=reduction, most_steps=most_steps)
        if found is None:
            return None
        self._num_sweeps += found.num_products
        values = V + found.values
        return values if self._engine.sup_norm(values) < math.inf else None

    def _range(self, sweep: Sweep) -> float:
        low, high = sweep.residual_range(with_zero=self._some_terminal)
        return high - low


class KrylovPolicyIteration(_Rounds):
    """Policy iteration whose evaluations are exact, but for rounding."""

    def _evaluated(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        engine, last, best = self._engine, math.inf, V
        self._equations.follow(self._policy)
        for _ in range(_MOST_ROUNDS):
            residual = self._residual(V)
            if not residual < last:
                return best
            best = V
            if residual <= engine.rounding(engine.sup_norm(V)) or residual > 0.5 * last:
                return best
            last = residual
            found = self._corrected(V, _FAR, _MOST_STEPS)
            if found is None:
                return best
            V = found
        return best


class KrylovModified(_Rounds):
    """Modified policy iteration whose evaluations go part of the way."""

    def __init__(self, engine: PartEngine, options: PolicyIterationOptions) -> None:
        super().__init__(engine, options)
        self._most_steps = _FIRST_STEPS

    def _evaluated(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        self._equations.follow(self._policy)
        self._residual(V)
        found = self._corrected(V, _NEAR, self._most_steps)
        self._most_steps = min(2 * self._most_steps, _MOST_STEPS)
        return V if found is None else found
