"""Bellman backups, compiled, for both layouts of a model.

    (TV)(s) = T_s(V) = min_a c(s,a) + gamma sum_s' P(s'|s,a) V(s')

over the available actions of ``s``; ``T_s(V) = 0`` in terminal states.  Solvers are written on the
small interface `Engine`; the formulas are in `planners.kernels`, once for each layout.  Values do
not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.mdp import TabularMDP, readonly
from aggmaze.models.model import Model
from aggmaze.move_mdp import MoveMDP
from planners.engine import WHOLE, LocalEngine, Parts, Sweep
from planners.kernels import compiling, moves, sparse
from planners.kernels.pieces import IN_ORDER, UNIT_ROUNDOFF
from planners.kernels.tables import Moves, Outcomes
from planners.kernels.threads import over_blocks
from planners.kernels.vectors import sup_norm

# Covers what results below the least normal number lose beyond that.
UNDERFLOW = float(np.finfo(np.float64).tiny)

#: Moves of a model from which a kernel of several states at a time is worth compiling.
LEAST_VECTOR_WORK = 1 << 16

compiling.watch()


def _no_limit() -> None:
    """Let every loop go on."""


class _CompiledEngine:
    """Engine by the kernels of a layout."""

    def __init__(
        self,
        model: Model,
        gamma: float,
        num_threads: int,
        kernels: ModuleType,
        tables: tuple[NDArray[Any], ...],
        work: int,
        checkpoint: Callable[[], None],
    ) -> None:
        self.model = model
        self.num_states = model.num_states
        self.terminal = model.terminal
        self.parts: Parts = WHOLE
        self.gamma = gamma
        self.num_threads = num_threads
        self.checkpoint = checkpoint
        self.tables = tables
        self.work = work
        self.max_cost = 0.0
        self.row_error = 0.0
        self.most_left = 1.0
        self._kernels = kernels
        self._operations = 0.0

    @property
    def least_rounding(self) -> float:
        """The least share of the largest value that rounding can come to."""
        return self._operations * UNIT_ROUNDOFF * self.gamma

    def sweep(
        self,
        V: NDArray[np.float64],
        out: NDArray[np.float64],
        actions: NDArray[np.int32] | None = None,
    ) -> Sweep:
        """Write TV into ``out``."""
        if actions is None:
            return self._sweep(self._kernels.sweep, V, out, image=out)
        return self._sweep(self._kernels.greedy_sweep, V, out, actions, image=out)

    def gauss_seidel(
        self,
        V: NDArray[np.float64],
        order: NDArray[np.int32] | None = None,
        reverse: bool = False,
    ) -> Sweep:
        """Back up each state in place."""
        self.checkpoint()
        states = IN_ORDER if order is None else readonly(order)
        residual_low, residual_high, low, high = self._kernels.gauss_seidel(
            *self.tables, self.gamma, V, states, reverse, 0, len(V)
        )
        return Sweep(residual_low, residual_high, low, high, in_place=True, image=V)

    def policy_sweep(
        self, policy: NDArray[np.int32], V: NDArray[np.float64], out: NDArray[np.float64]
    ) -> Sweep:
        """Write the backups by the policy into ``out``."""
        return self._sweep(self._kernels.policy_sweep, policy, V, out)

    def aggregated(
        self,
        states: NDArray[np.int64],
        W: NDArray[np.float64],
        labels: NDArray[np.int32],
        out: NDArray[np.float64],
    ) -> None:
        """Write the backups of the listed states under aggregation into ``out``."""
        self._kernels.aggregated(*self.tables, self.gamma, states, W, labels, out)

    def q_values(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the value of each action, shape (S, A)."""
        Q = np.empty((self.model.num_states, self.model.num_actions))
        self._over_states(self._kernels.q_values, V, Q)
        return Q

    def greedy(
        self,
        V: NDArray[np.float64],
        distances: Callable[[], NDArray[np.float64]],
        slack: float,
        tie: float,
    ) -> NDArray[np.int64]:
        """Return the policy that is greedy within ``slack``."""
        policy = np.empty(self.model.num_states, dtype=np.int64)
        if sum(self._over_states(self._kernels.clear_actions, V, slack, policy)):
            self._over_states(self._kernels.greedy, V, distances(), slack, tie, policy)
        return policy

    def sup_norm(self, vector: NDArray[np.float64]) -> float:
        """Return the largest size of an entry."""
        return sup_norm(vector)

    def count(self, flags: NDArray[np.bool_]) -> int:
        """Return how many flags are set."""
        return int(np.count_nonzero(flags))

    def _sweep(
        self,
        kernel: Callable[..., Any],
        *arguments: Any,
        tables: tuple[Any, ...] | None = None,
        image: NDArray[np.float64] | None = None,
    ) -> Sweep:
        extremes = self._over_states(kernel, *arguments, tables=tables)
        residual_low, residual_high, low, high = zip(*extremes, strict=True)
        # Adding 0 makes -0 to 0: which of the two is found depends on the order of the states.
        return Sweep(
            min(residual_low) + 0.0,
            max(residual_high) + 0.0,
            min(low) + 0.0,
            max(high) + 0.0,
            image=image,
        )

    def _over_states(
        self,
        kernel: Callable[..., Any],
        *arguments: Any,
        discounted: bool = True,
        tables: tuple[Any, ...] | None = None,
    ) -> list[Any]:
        self.checkpoint()
        tables = self.tables if tables is None else tables
        arguments = (*tables, *([self.gamma] if discounted else []), *arguments)
        return over_blocks(
            lambda lo, hi: kernel(*arguments, lo, hi),
            self.model.num_states,
            self.num_threads,
            self.work,
        )


class MoveEngine(_CompiledEngine):
    """Engine of a `MoveMDP`."""

    def __init__(
        self,
        model: MoveMDP,
        gamma: float,
        num_threads: int,
        checkpoint: Callable[[], None] = _no_limit,
        costs: NDArray[np.float64] | None = None,
    ) -> None:
        costs = model.move_costs if costs is None else costs
        super().__init__(
            model,
            gamma,
            num_threads,
            moves,
            Moves(readonly(model.successors), readonly(costs), *model.slip_weights),
            model.successors.size,
            checkpoint,
        )
        self.max_cost = float(max(self._over_states(moves.largest_cost, discounted=False)))
        self._slips = model.p < 1.0
        self._operations = 2 * (model.num_actions + 10)
        self._by_vectors = (
            self.work >= LEAST_VECTOR_WORK
            and model.num_actions <= moves.MOST_MOVES
            and bool(model.slip_weights[0].min() >= 0.0)
        )

    def sweep(
        self,
        V: NDArray[np.float64],
        out: NDArray[np.float64],
        actions: NDArray[np.int32] | None = None,
    ) -> Sweep:
        """Write TV into ``out``."""
        if not self._by_vectors:
            return super().sweep(V, out, actions)
        return self._sweep(
            moves.vector_sweep, V, out, actions, tables=self._vector_tables, image=out
        )

    @cached_property
    def _vector_tables(self) -> tuple[Any, ...]:
        """The tables as `moves.vector_sweep` takes them."""
        successors, move_costs, chosen, every = self.tables
        num_states, num_moves = successors.shape
        tables = (
            readonly(successors.reshape(-1).view(np.uint32)),
            readonly(move_costs.reshape(-1)),
            tuple(chosen.tolist()),
            tuple(every.tolist()),
        )
        windows = np.empty((-(-num_states // moves.BLOCK), num_moves), dtype=np.int64)
        over_blocks(
            lambda lo, hi: moves.windows(*tables[:3], windows, lo, hi),
            len(windows),
            self.num_threads,
            self.work,
        )
        return (*tables, readonly(windows))

    def rounding(self, max_value: float) -> float:
        """Bound the rounding error of a backup.

        Each of the ``n <= M`` terms ``c + gamma V`` suffers two roundings, their sum n - 1 more,
        the two products, the weights (three operations each) and the final sum eight, all at most
        of the size ``max |c| + gamma max |V|``, on which the weights are convex combinations but
        for the sign of ``p - b``, hence the factor two.  With p = 1 there is no sum, and
        `unslipped_size` may be smaller.
        """
        size = self.max_cost + self.gamma * max_value
        if not self._slips:
            size = min(size, unslipped_size(self.gamma, max_value))
        return _rounding(self._operations, size, max_value)


class SparseEngine(_CompiledEngine):
    """Engine of a `TabularMDP`."""

    def __init__(
        self,
        model: TabularMDP,
        gamma: float,
        num_threads: int,
        checkpoint: Callable[[], None] = _no_limit,
        costs: NDArray[np.float64] | None = None,
    ) -> None:
        costs = model.costs if costs is None else costs
        matrix = model.transitions
        super().__init__(
            model,
            gamma,
            num_threads,
            sparse,
            Outcomes(
                readonly(matrix.indptr.astype(np.int64)),
                readonly(matrix.indices.astype(np.int32, copy=False)),
                readonly(matrix.data),
                readonly(costs),
                readonly(model.action_mask),
                readonly(model.terminal),
            ),
            int(matrix.nnz),
            checkpoint,
        )
        self.max_cost = float(np.abs(costs).max(where=model.action_mask, initial=0.0))
        error, self.most_left, longest = model.row_sums
        self.row_error = error + (longest + 4) * UNIT_ROUNDOFF
        self._operations = 1.0001 * (longest + 4)
        # Unsigned numbers of states spare kernels the question whether they are negative.
        indptr, indices, *others = self.tables
        self._unsigned_tables = (indptr, readonly(indices.view(np.uint32)), *others)

    def sweep(
        self,
        V: NDArray[np.float64],
        out: NDArray[np.float64],
        actions: NDArray[np.int32] | None = None,
    ) -> Sweep:
        """Write TV into ``out``."""
        if actions is None:
            return self._sweep(sparse.sweep, V, out, tables=self._unsigned_tables, image=out)
        return self._sweep(
            sparse.greedy_sweep, V, out, actions, tables=self._unsigned_tables, image=out
        )

    def rounding(self, max_value: float) -> float:
        """Bound the rounding error of a backup.

        A row of ``k`` entries suffers ``k`` products and sums, one product with gamma and one sum
        with the cost, all at most of the size ``max |c| + gamma max |V|`` (rows sum to 1 within
        1e-9), or of `unslipped_size`.
        """
        size = min(self.max_cost + self.gamma * max_value, unslipped_size(self.gamma, max_value))
        return _rounding(self._operations, size, max_value)


def unslipped_size(gamma: float, max_value: float) -> float:
    """Return the size of what is rounded in a backup, whatever costs are not chosen.

    An action of value q costs at most ``|q| + gamma max |V|``, so what is rounded for it is at most
    ``|q| + 2 gamma max |V|``; and those that are chosen, in truth or by rounding, have
    ``|q| <= max |TV|``.  Here ``max_value`` bounds both ``|V|`` and ``|TV|``.
    """
    return (1 + 2 * gamma) * max_value


def _rounding(operations: float, size: float, max_value: float) -> float:
    # Only where there is nothing but 0 is nothing rounded: the size itself may underflow.
    if size == 0 and max_value == 0:
        return 0.0
    return operations * UNIT_ROUNDOFF * size + UNDERFLOW


def local_engine(
    model: Model,
    gamma: float,
    num_threads: int = 1,
    checkpoint: Callable[[], None] = _no_limit,
    costs: NDArray[np.float64] | None = None,
) -> LocalEngine:
    """Return the backups of a model at a discount in [0, 1).

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    gamma : float
    num_threads : int
    checkpoint : callable
        What long loops call now and then.
    costs : ndarray of float, shape (S, A), optional
        Read in place of the model's ``costs``, or ``move_costs``, at each backup: its owner may
        write to it in between.  The size of costs is taken once.
    """
    if isinstance(model, MoveMDP):
        return MoveEngine(model, gamma, num_threads, checkpoint, costs)
    return SparseEngine(model, gamma, num_threads, checkpoint, costs)
