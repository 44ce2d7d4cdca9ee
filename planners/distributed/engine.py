"""Backups on a part of the states: the kernels of one process, and PETSc's exchange before each.

A backup reads the same values in the same order wherever its row is, so that values do not depend
on the number of processes.  Extremes of parts are put together without rounding
(docs/certificate.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.arrays import readonly
from aggmaze.maze_rows import MazeRows
from aggmaze.models.row_kernels import row_sums
from aggmaze.models.row_models import MoveRowModel, RowModel, TableRowModel, tells_moves
from aggmaze.models.tabular import RowSums
from planners.bellman import CompiledEngine, MoveEngine, SparseEngine, joined
from planners.distributed.distances import (
    Spread,
    by_links,
    distances_across,
    links_of_moves,
    links_of_rows,
)
from planners.distributed.ghosts import Ghosts
from planners.distributed.partition import (
    Partition,
    check_near,
    check_sizes,
    partition_of,
)
from planners.distributed.processes import Processes
from planners.distributed.reading import BYTES_A_STATE, check_room, read_moves, read_outcomes
from planners.engine import Reading, Sweep
from planners.kernels import moves, sparse, stencils
from planners.kernels.parts import moves_at, spread_on_grid
from planners.kernels.tables import Moves, Outcomes, StateNumbers
from planners.kernels.vectors import sup_norm

# Of each state of a maze by rows: what any has, and its height.
_BYTES_OF_A_MAZE = BYTES_A_STATE + 8


class PartEngine(CompiledEngine):
    """What engines of a part have in common; `planners.engine.Engine` says what methods take.

    All methods are called by all processes.
    """

    parts: Processes
    partition: Partition
    ghosts: Ghosts

    @property
    def policy_work(self) -> int:
        """Outcomes that a sweep by a policy reads: its share of those of all actions."""
        return self.work // self.model.num_actions

    @property
    def first_state(self) -> int:
        """The number of the first state of the part in the model."""
        return self.partition.lo

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
        """Refuse: values would depend on where parts end."""
        raise NotImplementedError("sweeps in place are not cut into parts")

    def aggregated(
        self,
        states: NDArray[np.int64],
        W: NDArray[np.float64],
        labels: NDArray[np.int32],
        out: NDArray[np.float64],
    ) -> None:
        """Write the backups of the listed states under aggregation into ``out``.

        Each process makes those of its own states, and all get them.
        """
        self.checkpoint()
        owners = self.partition.owners(states)
        own = states[owners == self.parts.rank] - self.partition.lo
        labels_of_ghosts = self.ghosts.of_others(labels)
        values = np.empty(len(own))
        self._aggregate(own, W, labels, labels_of_ghosts, values)
        # By process, and within one in the order of the list.
        out[np.argsort(owners, kind="stable")] = self.parts.gathered(values)

    def sup_norm(self, vector: NDArray[np.float64]) -> float:
        """Return the largest size of an entry, of all parts."""
        return float(self.parts.largest(np.array([sup_norm(vector)]))[0])

    def count(self, flags: NDArray[np.bool_]) -> int:
        """Return how many flags are set, in all parts."""
        return self.parts.total(int(np.count_nonzero(flags)))

    def _aggregate(
        self,
        own: NDArray[np.int64],
        W: NDArray[np.float64],
        labels: NDArray[np.int32],
        labels_of_ghosts: NDArray[np.int32],
        out: NDArray[np.float64],
    ) -> None:
        """Write the backups of some states of the part under aggregation."""
        raise NotImplementedError

    def _spread(self) -> Spread:
        """Return what carries distances through the part."""
        raise NotImplementedError

    def _near(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.ghosts.near(V)

    def _distances(self, distances: Callable[[], NDArray[np.int32]]) -> NDArray[np.int32]:
        """Return the steps to a terminal state; S where there is no way."""
        if self.steps_to_terminal is None:
            self.steps_to_terminal = distances_across(
                self.parts, self.ghosts, self.terminal, self._spread(), self.checkpoint
            )
        own = self.steps_to_terminal
        steps = np.concatenate([own, self.ghosts.of_others(own)])
        farthest = np.int32(min(self.num_states, np.iinfo(np.int32).max))
        return np.where(steps < 0, farthest, steps)

    def _joined(
        self,
        extremes: Sequence[tuple[float, float, float, float]],
        image: NDArray[np.float64] | None,
    ) -> Sweep:
        here = joined(extremes)
        # A least number is what is largest of the negatives, exactly.
        ends = np.array([-here.residual_low, here.residual_high, -here.low, here.high])
        residual_low, residual_high, low, high = self.parts.largest(ends) * [-1, 1, -1, 1] + 0.0
        return Sweep(
            float(residual_low), float(residual_high), float(low), float(high), image=image
        )

    def _sum(self, count: int) -> int:
        return self.parts.total(count)

    def _share(self, processes: Processes, partition: Partition, ghosts: Ghosts) -> None:
        """Take note of who shares the states, and what is then of all of them."""
        self.parts, self.partition, self.ghosts = processes, partition, ghosts
        self._policy_type = np.min_scalar_type(-self.model.num_actions).type
        self.work = processes.total(self.work)
        self.max_cost = float(processes.largest(np.array([self.max_cost]))[0])


class _MovesOfPart(PartEngine, MoveEngine):
    """What engines of moves have in common, with a table or without."""

    def _table_of(self, own: NDArray[np.int64]) -> Moves:
        """Return the rows of some states of the part, with local numbers of successors."""
        raise NotImplementedError

    def _aggregate(
        self,
        own: NDArray[np.int64],
        W: NDArray[np.float64],
        labels: NDArray[np.int32],
        labels_of_ghosts: NDArray[np.int32],
        out: NDArray[np.float64],
    ) -> None:
        table = self._table_of(own)
        # A row each, whose successors are mega-states.
        following = readonly(_labels_at(table.successors, labels, labels_of_ghosts))
        table = table._replace(successors=following)
        moves.aggregated(table, self.gamma, np.arange(len(own)), W, None, out)


class MovePartEngine(_MovesOfPart):
    """Engine of a part of a model of moves, by tables.

    Parameters
    ----------
    model : MoveRowModel
    gamma : float
    processes : Processes
    partition : Partition
    num_threads : int
    checkpoint : callable
    reading : callable
        What is called after each block of rows is read; asks nothing of other processes.
    """

    def __init__(
        self,
        model: MoveRowModel,
        gamma: float,
        processes: Processes,
        partition: Partition,
        num_threads: int,
        checkpoint: Callable[[], None],
        reading: Callable[[], None],
    ) -> None:
        sharing = processes.on_this_machine()
        local = processes.together(
            lambda: read_moves(
                model, partition.lo, partition.hi, sharing=sharing, checkpoint=reading
            )
        )
        ghosts = _ghosts(processes, partition, local.ghosts)
        super().__init__(model, gamma, num_threads, checkpoint, local.tables, local.terminal)
        self._share(processes, partition, ghosts)

    def _table_of(self, own: NDArray[np.int64]) -> Moves:
        tables = self.tables
        return tables._replace(
            successors=readonly(tables.successors[own]), costs=readonly(tables.costs[own])
        )

    def _spread(self) -> Spread:
        num_near = len(self.terminal) + len(self.ghosts)
        return by_links(links_of_moves(self.tables, num_near))


class MazePartEngine(_MovesOfPart):
    """Engine of a part of a maze by rows, by its heights or walls alone: a slab of it.

    Parameters
    ----------
    model : MazeRows
    gamma, processes, partition, num_threads, checkpoint, reading
        As for `MovePartEngine`.
    """

    def __init__(
        self,
        model: MazeRows,
        gamma: float,
        processes: Processes,
        partition: Partition,
        num_threads: int,
        checkpoint: Callable[[], None],
        reading: Callable[[], None],
    ) -> None:
        sharing = processes.on_this_machine()
        lo, hi = partition.lo, partition.hi

        def read() -> tuple[stencils.Stencil, NDArray[np.int64]]:
            first, last = stencils.ghosts_of(model, lo, hi)
            check_near(hi - lo, last - first - (hi - lo))
            check_room(sharing, hi - lo, _BYTES_OF_A_MAZE * (last - first))
            states = np.concatenate([np.arange(first, lo), np.arange(hi, last)])
            found = stencils.stencil_of(model, lo, hi)
            reading()
            return found, states

        stencil, states = processes.together(read)
        ghosts = _ghosts(processes, partition, states)
        terminal = np.zeros(hi - lo, dtype=bool)
        if lo <= model.goal < hi:
            terminal[model.goal - lo] = True
        work = (hi - lo) * model.num_actions
        # The kernels of a slab in the place of those of a table.
        CompiledEngine.__init__(
            self,
            model,
            gamma,
            num_threads,
            stencils,
            stencil,
            readonly(terminal),
            work,
            checkpoint,
        )
        self.max_cost = float(max(self._over_states(stencils.largest_cost, stencil)))
        self._take_rounding(model.p, model.num_actions)
        self._by_vectors = False
        self._share(processes, partition, ghosts)

    def _table_of(self, own: NDArray[np.int64]) -> Moves:
        stencil: Any = self.tables
        shape = len(own), self.model.num_actions
        successors, costs = np.empty(shape, dtype=np.int32), np.empty(shape)
        moves_at(stencil, self.ghosts.last, own, successors, costs)
        return Moves(readonly(successors), readonly(costs), stencil.chosen, stencil.every)

    def _spread(self) -> Spread:
        stencil: Any = self.tables
        return lambda sources, distances, queue: spread_on_grid(stencil, sources, distances, queue)


class SparsePartEngine(PartEngine, SparseEngine):
    """Engine of a part of a general sparse model.

    Parameters
    ----------
    model : TableRowModel
    gamma, processes, partition, num_threads, checkpoint, reading
        As for `MovePartEngine`.
    """

    tables: Outcomes

    def __init__(
        self,
        model: TableRowModel,
        gamma: float,
        processes: Processes,
        partition: Partition,
        num_threads: int,
        checkpoint: Callable[[], None],
        reading: Callable[[], None],
    ) -> None:
        sharing = processes.on_this_machine()
        local = processes.together(
            lambda: read_outcomes(
                model, partition.lo, partition.hi, sharing=sharing, checkpoint=reading
            )
        )
        ghosts = _ghosts(processes, partition, local.ghosts)
        tables = local.tables
        near_terminal = np.concatenate([tables.terminal, ghosts.of_others(tables.terminal)])
        error, most_left, longest = processes.largest(
            np.array(
                row_sums(
                    tables.indptr,
                    tables.indices,
                    tables.probabilities,
                    tables.mask,
                    readonly(near_terminal),
                ),
                dtype=np.float64,
            )
        )
        sums = RowSums(float(error), float(most_left), int(longest))
        super().__init__(model, gamma, num_threads, checkpoint, tables, sums)
        self._share(processes, partition, ghosts)

    def _aggregate(
        self,
        own: NDArray[np.int64],
        W: NDArray[np.float64],
        labels: NDArray[np.int32],
        labels_of_ghosts: NDArray[np.int32],
        out: NDArray[np.float64],
    ) -> None:
        tables = self.tables
        num_actions = tables.costs.shape[1]
        rows = (own[:, np.newaxis] * num_actions + np.arange(num_actions)).reshape(-1)
        starts = tables.indptr[rows]
        counts = tables.indptr[rows + 1] - starts
        indptr = np.concatenate([[0], np.cumsum(counts)])
        entries = np.repeat(starts - indptr[:-1], counts) + np.arange(indptr[-1])
        # A table of those rows, whose next states are mega-states.
        table = Outcomes(
            readonly(indptr),
            readonly(_labels_at(tables.indices[entries], labels, labels_of_ghosts)),
            readonly(tables.probabilities[entries]),
            readonly(tables.costs[own]),
            readonly(tables.mask[own]),
            readonly(tables.terminal[own]),
            readonly(tables.num_rows[own]),
        )
        sparse.aggregated(table, self.gamma, np.arange(len(own)), W, None, out)

    def _spread(self) -> Spread:
        return by_links(links_of_rows(self.tables, len(self.terminal) + len(self.ghosts)))


def part_engine(
    model: RowModel,
    gamma: float,
    processes: Processes,
    num_threads: int = 1,
    checkpoint: Callable[[], None] = lambda: None,
    reading: Callable[[], None] = lambda: None,
    with_tables: bool = False,
) -> PartEngine:
    """Return the backups of this process's part of a model at a discount in [0, 1].

    Parameters
    ----------
    model : RowModel
        In all processes the same.
    gamma : float
    processes : Processes
    num_threads : int
        Of each process.
    checkpoint : callable
        What long loops call now and then, in all processes at once.
    reading : callable
        Called after each block of rows is read; asks nothing of other processes.
    with_tables : bool
        Whether a maze is to have a table of its moves, too.

    Raises
    ------
    ValueError
        If the model is not valid, or there are more processes than states.
    MemoryError, OverflowError
        If there is no room for the part, or no number for a state.
    """
    num_states = processes.first(model.num_states)
    check_sizes(num_states, processes.size, processes.index_bits)
    length, _ = processes.PETSc.Sys.splitOwnership(num_states, comm=processes.comm)
    lengths = processes.gathered(np.array([length], dtype=np.int64))
    partition = partition_of(lengths, processes.rank)
    make: Callable[..., PartEngine] = SparsePartEngine
    if tells_moves(model):
        by_slabs = isinstance(model, MazeRows) and not with_tables
        make = MazePartEngine if by_slabs else MovePartEngine
    return make(model, gamma, processes, partition, num_threads, checkpoint, reading)


def _ghosts(processes: Processes, partition: Partition, states: NDArray[np.int64]) -> Ghosts:
    processes.together(lambda: check_near(len(partition), len(states)))
    return Ghosts(processes, partition, states)


def _labels_at(
    near: StateNumbers, labels: NDArray[np.int32], labels_of_ghosts: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return the labels of states by local numbers, of the shape of ``near``."""
    num_own = len(labels)
    found = labels[np.minimum(near, num_own - 1)]
    is_ghost = near >= num_own
    found[is_ghost] = labels_of_ghosts[near[is_ghost] - num_own]
    return found
