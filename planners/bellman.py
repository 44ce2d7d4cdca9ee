"""Bellman backups, compiled, for both layouts of a model.

    (TV)(s) = T_s(V) = min_a c(s,a) + gamma sum_s' P(s'|s,a) V(s')

over the available actions of ``s``; ``T_s(V) = 0`` in terminal states.  Solvers are written on the
small interface `Engine`; the formulas are in `planners.kernels`, once for each layout.  Values do
not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.arrays import readonly
from aggmaze.models.model import TableModel
from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import RowSums
from planners.engine import WHOLE, LocalEngine, Parts, Reading, Sweep
from planners.kernels import compiling, moves, sparse
from planners.kernels.pieces import IN_ORDER, UNIT_ROUNDOFF, row_rounding
from planners.kernels.tables import (
    FlatMoves,
    Moves,
    Outcomes,
    Tables,
    moves_of,
    outcomes_of,
    unsigned,
)
from planners.kernels.threads import over_blocks
from planners.kernels.vectors import sup_norm

# Covers what results below the least normal number lose beyond that.
UNDERFLOW = float(np.finfo(np.float64).tiny)

#: Moves of a model from which a kernel of several states at a time is worth compiling.
LEAST_VECTOR_WORK = 1 << 16

compiling.watch()


def no_limit() -> None:
    """Let every loop go on."""


class CompiledEngine:
    """An engine by the kernels of a layout; `planners.engine.Engine` says what its methods take.

    Its tables may have the rows of some states only: those that ``terminal`` tells of.  What is
    different then is in the methods of an underscore.

    Parameters
    ----------
    model : TabularMDP, MoveMDP, or what else has the sizes of one
    gamma : float
    num_threads : int
    kernels : module
        `planners.kernels.moves` or `planners.kernels.sparse`.
    tables : Moves or Outcomes, or what else the kernels take
    terminal : ndarray of bool, shape (S,)
        Of the states whose rows the tables have.
    work : int
        Outcomes that a sweep reads.
    checkpoint : callable
    """

    # Of the actions of a greedy policy.
    _policy_type: type[np.signedinteger[Any]] = np.int64

    def __init__(
        self,
        model: Any,
        gamma: float,
        num_threads: int,
        kernels: ModuleType,
        tables: Any,
        terminal: NDArray[np.bool_],
        work: int,
        checkpoint: Callable[[], None],
    ) -> None:
        self.model = model
        self.num_states: int = model.num_states
        self.terminal = terminal
        self.parts: Parts = WHOLE
        self.gamma = gamma
        self.num_threads = num_threads
        self.checkpoint = checkpoint
        self.tables = tables
        self.work = work
        self.max_cost = 0.0
        self.row_error = 0.0
        self.most_left = 1.0
        self.steps_to_terminal: NDArray[np.int32] | None = None
        self._kernels = kernels
        # The tables as kernels for all states read them.
        self._read_tables = tables
        self._relative_rounding = 0.0

    @property
    def least_rounding(self) -> float:
        """The least share of the largest value that rounding can come to."""
        return self._relative_rounding * self.gamma

    @cached_property
    def has_absorbing_states(self) -> bool:
        """Whether some state is never left, whatever one does there."""
        return bool(self._kernels.some_absorbing(self._read_tables))

    def sweep(
        self,
        V: NDArray[np.float64],
        out: NDArray[np.float64],
        actions: NDArray[np.int32] | None = None,
    ) -> Sweep:
        """Write TV into ``out``."""
        near = self._near(V)
        return self._sweep(self._kernels.sweep, self._read_tables, near, out, actions, image=out)

    def read(
        self, V: NDArray[np.float64], out: NDArray[np.float64]
    ) -> tuple[Sweep, Reading | None]:
        """Write TV into ``out``; of the policy nothing is noted."""
        return self.sweep(V, out), None

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
            self._read_tables, self.gamma, V, states, reverse, 0, len(V)
        )
        return Sweep(residual_low, residual_high, low, high, in_place=True, image=V)

    def policy_sweep(
        self, policy: NDArray[np.int32], V: NDArray[np.float64], out: NDArray[np.float64]
    ) -> Sweep:
        """Write the backups by the policy into ``out``."""
        near = self._near(V)
        return self._sweep(self._kernels.policy_sweep, self._read_tables, policy, near, out)

    def aggregated(
        self,
        states: NDArray[np.int64],
        W: NDArray[np.float64],
        labels: NDArray[np.int32],
        out: NDArray[np.float64],
    ) -> None:
        """Write the backups of the listed states under aggregation into ``out``."""
        self._kernels.aggregated(self._read_tables, self.gamma, states, W, labels, out)

    def q_values(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the value of each action, shape (S, A)."""
        Q = np.empty((len(self.terminal), self.model.num_actions))
        self._over_states(self._kernels.q_values, self._read_tables, self.gamma, self._near(V), Q)
        return Q

    def greedy(
        self,
        V: NDArray[np.float64],
        distances: Callable[[], NDArray[np.int32]],
        slack: float,
        tie: float,
        reading: Reading | None = None,
    ) -> NDArray[np.int64]:
        """Return the policy that is greedy within ``slack``."""
        common = self._read_tables, self.gamma, self._near(V)
        if reading is None:
            policy = np.empty(len(self.terminal), dtype=self._policy_type)
            unclear = sum(self._over_states(self._kernels.clear_actions, *common, slack, policy))
        else:
            policy = reading.actions.astype(np.int64)
            has_choice = ~(reading.margins > slack)
            policy[has_choice] = -1
            unclear = np.count_nonzero(has_choice)
        if self._sum(unclear):
            steps = self._distances(distances)
            self._pick(self._near(V), steps, (slack, tie), policy)
        return policy

    def rounding(self, max_value: float) -> float:
        """Bound the rounding error of a backup."""
        raise NotImplementedError

    def sup_norm(self, vector: NDArray[np.float64]) -> float:
        """Return the largest size of an entry."""
        return sup_norm(vector)

    def count(self, flags: NDArray[np.bool_]) -> int:
        """Return how many flags are set."""
        return int(np.count_nonzero(flags))

    def _sweep(
        self,
        kernel: Callable[..., Any],
        tables: Tables | FlatMoves,
        *arguments: Any,
        image: NDArray[np.float64] | None = None,
    ) -> Sweep:
        return self._joined(self._over_states(kernel, tables, self.gamma, *arguments), image)

    def _near(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values that rows read: those of the states, and behind them of others."""
        return V

    def _distances(self, distances: Callable[[], NDArray[np.int32]]) -> NDArray[np.int32]:
        """Return the distances that rows read, in the order of `_near`."""
        return distances()

    def _pick(
        self,
        near: NDArray[np.float64],
        steps: NDArray[np.int32],
        margins: tuple[float, float],
        policy: NDArray[Any],
    ) -> None:
        """Write an action where the policy has none; both vectors are in the order of `_near`."""
        kernel = self._kernels.greedy
        self._over_states(kernel, self._read_tables, self.gamma, near, steps, margins, policy)

    def _joined(
        self,
        extremes: Sequence[tuple[float, float, float, float]],
        image: NDArray[np.float64] | None,
    ) -> Sweep:
        """Return what a sweep saw, of what kernels saw in its blocks."""
        return joined(extremes, image)

    def _sum(self, count: int) -> int:
        """Return a count of the states as that of all."""
        return count

    def _over_states(self, kernel: Callable[..., Any], *arguments: Any) -> list[Any]:
        self.checkpoint()
        return over_blocks(
            lambda lo, hi: kernel(*arguments, lo, hi),
            len(self.terminal),
            self.num_threads,
            self.work,
        )


class MoveEngine(CompiledEngine):
    """Engine of a `MoveMDP`, by its tables or those of some of its states.

    Parameters
    ----------
    model : MoveMDP, or what else has its sizes and its ``p``
    gamma : float
    num_threads : int
    checkpoint : callable
    tables : Moves, optional
        Those of the model by default.
    terminal : ndarray of bool, shape (S,), optional
        Of the states whose rows the tables have; those of the model by default.
    """

    tables: Moves

    def __init__(
        self,
        model: Any,
        gamma: float,
        num_threads: int,
        checkpoint: Callable[[], None] = no_limit,
        tables: Moves | None = None,
        terminal: NDArray[np.bool_] | None = None,
    ) -> None:
        tables = moves_of(model) if tables is None else tables
        terminal = model.terminal if terminal is None else terminal
        work = tables.successors.size
        super().__init__(model, gamma, num_threads, moves, tables, terminal, work, checkpoint)
        self.max_cost = float(max(self._over_states(moves.largest_cost, tables)))
        self._take_rounding(model.p, model.num_actions)
        self._by_vectors = (
            self.work >= LEAST_VECTOR_WORK
            and model.num_actions <= moves.MOST_MOVES
            and bool(tables.chosen.min() >= 0.0)
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
        near = self._near(V)
        return self._sweep(moves.vector_sweep, self._flat_tables, near, out, actions, image=out)

    @cached_property
    def _flat_tables(self) -> FlatMoves:
        successors, costs, chosen, every = unsigned(self.tables)
        num_states, num_moves = successors.shape
        tables = FlatMoves(
            readonly(successors.reshape(-1)),
            readonly(costs.reshape(-1)),
            tuple(chosen.tolist()),
            tuple(every.tolist()),
            np.empty((-(-num_states // moves.BLOCK), num_moves), dtype=np.int64),
        )
        over_blocks(
            lambda lo, hi: moves.find_windows(tables, lo, hi),
            len(tables.windows),
            self.num_threads,
            self.work,
        )
        return tables._replace(windows=readonly(tables.windows))

    def _take_rounding(self, p: float, num_moves: int) -> None:
        """Take note of what `rounding` depends on."""
        self._slips = p < 1.0
        self._relative_rounding = 2 * (num_moves + 10) * UNIT_ROUNDOFF

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
        return rounding_of(self._relative_rounding, size, max_value)


class SparseEngine(CompiledEngine):
    """Engine of a `TabularMDP`, by its tables or those of some of its states.

    Parameters
    ----------
    model : TabularMDP, or what else has its sizes
    gamma : float
    num_threads : int
    checkpoint : callable
    tables : Outcomes, optional
        Those of the model by default.
    row_sums : RowSums, optional
        Of the tables; those of the model by default.
    """

    def __init__(
        self,
        model: Any,
        gamma: float,
        num_threads: int,
        checkpoint: Callable[[], None] = no_limit,
        tables: Outcomes | None = None,
        row_sums: RowSums | None = None,
    ) -> None:
        tables = outcomes_of(model) if tables is None else tables
        work = int(tables.indptr[-1])
        super().__init__(
            model, gamma, num_threads, sparse, tables, tables.terminal, work, checkpoint
        )
        self._read_tables: Outcomes = unsigned(tables)
        self.max_cost = float(max(self._over_states(sparse.largest_cost, self._read_tables)))
        error, self.most_left, longest = row_sums or model.row_sums
        self.row_error = error + (longest + 4) * UNIT_ROUNDOFF
        self._relative_rounding = row_rounding(longest)

    def read(
        self, V: NDArray[np.float64], out: NDArray[np.float64]
    ) -> tuple[Sweep, Reading | None]:
        """Write TV into ``out``, and note the greedy policy."""
        actions = np.empty(len(V), dtype=np.int32)
        # Sure until a drift of the margin, from nothing on.
        margins = np.full(len(V), -1.0)
        certainty = sparse.Certainty(margins, 0.0, self._relative_rounding, sup_norm(V))
        sweep = self._sweep(
            sparse.lazy_sweep, self._read_tables, V, out, actions, certainty, image=out
        )
        return sweep, Reading(actions, margins)

    def rounding(self, max_value: float) -> float:
        """Bound the rounding error of a backup.

        A row of ``k`` entries suffers ``k`` products and sums, one product with gamma and one sum
        with the cost, all at most of the size ``max |c| + gamma max |V|`` (rows sum to 1 within
        1e-9), or of `unslipped_size`.
        """
        size = min(self.max_cost + self.gamma * max_value, unslipped_size(self.gamma, max_value))
        return rounding_of(self._relative_rounding, size, max_value)


def joined(
    extremes: Sequence[tuple[float, float, float, float]],
    image: NDArray[np.float64] | None = None,
) -> Sweep:
    """Return what a sweep saw, of what kernels saw in its blocks.

    Parameters
    ----------
    extremes : sequence of tuple of float
        Of TV - V and of TV, as kernels return them, of each block.
    image : ndarray of float, shape (S,), optional
        As in `Sweep`.
    """
    residual_low, residual_high, low, high = extremes[0]
    for block in extremes[1:]:
        residual_low, residual_high = min(residual_low, block[0]), max(residual_high, block[1])
        low, high = min(low, block[2]), max(high, block[3])
    # Adding 0 makes -0 to 0: which of the two is found depends on the order of the states.
    return Sweep(residual_low + 0.0, residual_high + 0.0, low + 0.0, high + 0.0, image=image)


def unslipped_size(gamma: float, max_value: float) -> float:
    """Return the size of what is rounded in a backup, whatever costs are not chosen.

    An action of value q costs at most ``|q| + gamma max |V|``, so what is rounded for it is at most
    ``|q| + 2 gamma max |V|``; and those that are chosen, in truth or by rounding, have
    ``|q| <= max |TV|``.

    Parameters
    ----------
    gamma : float
    max_value : float
        Bounds both |V| and |TV|.
    """
    return (1 + 2 * gamma) * max_value


def rounding_of(relative: float, size: float, max_value: float) -> float:
    """Return the rounding error of a backup.

    Parameters
    ----------
    relative : float
        In what share of the size.
    size : float
        Of what is rounded.
    max_value : float
        Bounds both |V| and |TV|.
    """
    # Only where there is nothing but 0 is nothing rounded: the size itself may underflow.
    if size == 0 and max_value == 0:
        return 0.0
    return relative * size + UNDERFLOW


def local_engine(
    model: TableModel,
    gamma: float,
    num_threads: int = 1,
    checkpoint: Callable[[], None] = no_limit,
    costs: NDArray[np.float64] | None = None,
) -> LocalEngine:
    """Return the backups of a model at a discount in [0, 1].

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
    common = model, gamma, num_threads, checkpoint
    if isinstance(model, MoveMDP):
        return MoveEngine(*common, moves_of(model, costs))
    return SparseEngine(*common, outcomes_of(model, costs))
