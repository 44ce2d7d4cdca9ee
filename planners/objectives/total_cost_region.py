"""What of a model total costs are about: where it ends, from where it can, and what is one place.

- *Ends* are the terminal states, and dead ends where these have a cost.
- The states that have a policy which surely gets to an end have finite costs; actions that may lead
  to any other are as good as unavailable (`planners.components.proper_region`).
- States between which one can go for ever by actions that cost exactly 0 are one *place*: their
  costs are equal, and a policy of places cannot stay for ever at no cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.arrays import readonly
from aggmaze.models.model import TableModel
from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP
from planners.bellman import no_limit
from planners.chain_costs import arriving, normalised, total_costs_of_chain
from planners.components import ChoiceGraph, maximal_end_components, proper_region
from planners.inequalities import Inequalities
from planners.kernels import improvement
from planners.kernels.tables import outcomes_of
from planners.kernels.threads import over_blocks
from planners.linear.shortest_paths import GridPaths
from planners.policies import steps_and_paths


@dataclass(frozen=True, eq=False)
class Region:
    """Where total costs are finite.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    ends : ndarray of bool, shape (S,)
    end_values : ndarray of float, shape (S,)
        What it costs to have come there: 0 in terminal states and wherever it is no end.
    finite : ndarray of bool, shape (S,)
        Whether some policy surely gets to an end.
    usable : ndarray of bool, shape (S, A)
        Available actions of finite states that are no ends which lead to finite states only.
    steps : ndarray of int32, shape (S,)
        Fewest steps to a terminal state by usable actions; -1 where there is no way.
    layers : ndarray of int64, shape (S,)
        Of `ProperRegion`; 0 in finite states, -1 in ends that are not terminal.
    paths : GridPaths, optional
        The shortest paths that ``steps`` was counted along, where moves are those of a grid.
    """

    model: TableModel
    ends: NDArray[np.bool_]
    end_values: NDArray[np.float64]
    finite: NDArray[np.bool_]
    usable: NDArray[np.bool_]
    steps: NDArray[np.int32]
    layers: NDArray[np.int64]
    paths: GridPaths | None = None

    @cached_property
    def table(self) -> TabularMDP:
        """The model as a general sparse table."""
        return self.model.to_tabular()

    @cached_property
    def graph(self) -> ChoiceGraph:
        """The graph of its choices."""
        return ChoiceGraph(self.table)

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Finite states that are no ends, shape (S,)."""
        return self.finite & ~self.ends


def find_region(model: TableModel, cost_of_dead_ends: float | None) -> Region:
    """Return where total costs are finite.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    cost_of_dead_ends : float or None
        Of states from which no terminal state can be reached at all; None where they are no ends.

    Raises
    ------
    ValueError
        If there is no end.
    """
    terminal = np.asarray(model.terminal)
    if cost_of_dead_ends is None and not terminal.any():
        raise ValueError(
            "the model has no terminal state, so no policy ever ends and every total cost is "
            "infinite; what may be meant are discounted costs, gamma= below 1, or the mean cost of "
            "a step, objective=AverageCost(); or mark the states where it ends in terminal="
        )
    ends, end_values = terminal.copy(), np.zeros(model.num_states)
    available = model.available if isinstance(model, MoveMDP) else model.action_mask
    if terminal.any():
        steps, paths = steps_and_paths(model)
    else:
        paths = None
        steps = np.full(model.num_states, -1, dtype=np.int32)
    finite = np.ones(model.num_states, dtype=bool)
    layers = np.zeros(model.num_states, dtype=np.int64)
    stuck = steps < 0
    if stuck.any():
        if cost_of_dead_ends is not None:
            ends |= stuck
            layers[stuck] = -1
            end_values[stuck] = cost_of_dead_ends
        else:
            table = model.to_tabular()
            graph = ChoiceGraph(table)
            found = proper_region(graph)
            steps, _ = graph.steps_to(np.flatnonzero(terminal), found.usable.reshape(-1))
            layers = found.layers.astype(np.int64)
            region = Region(
                model, ends, end_values, found.finite, readonly(found.usable), steps, layers
            )
            region.__dict__.update(table=table, graph=graph)
            return region
    usable = available & ~ends[:, np.newaxis]
    return Region(model, ends, end_values, finite, readonly(usable), steps, layers, paths)


class Places:
    """The states of a region, those between which one goes at no cost taken for one place.

    A policy of places is a row ``s * A + a`` for each: where it is left, and how; -1 in ends.

    Parameters
    ----------
    region : Region
    costs : ndarray of float, shape (S, A), optional
        In the place of the model's; ends then cost nothing.
    usable : ndarray of bool, shape (S, A), optional
        The actions that may be used, of those of the region.
    of : Places, optional
        Whose places these are; by default they are found.
    num_threads : int
    checkpoint : callable
        What long loops call now and then.
    """

    def __init__(
        self,
        region: Region,
        costs: NDArray[np.float64] | None = None,
        usable: NDArray[np.bool_] | None = None,
        of: Places | None = None,
        num_threads: int = 1,
        checkpoint: Callable[[], None] = no_limit,
    ) -> None:
        self.region, self.checkpoint, self._num_threads = region, checkpoint, num_threads
        table = region.table
        self._costs = table.costs if costs is None else costs
        self._tables = outcomes_of(table, costs)
        self._end_values = region.end_values if costs is None else np.zeros_like(region.end_values)
        usable = region.usable if usable is None else usable
        if of is None:
            #: The place of each state, shape (S,), or None where each is its own.
            self.labels: NDArray[np.int64] | None = None
            #: The actions by which one stays in a place, shape (S, A), or None.
            self.staying: NDArray[np.bool_] | None = None
            self.count = table.num_states
            self._contract()
        else:
            self.labels, self.staying, self.count = of.labels, of.staying, of.count
        if self.staying is not None:
            usable = usable & ~self.staying
        #: The actions that lead out of a place, shape (S, A).
        self.usable = readonly(usable)

    def _contract(self) -> None:
        """Find the places of several states, or that can be stayed in."""
        region = self.region
        free = region.usable & (self._costs == 0)
        if not free.any():
            return
        components = maximal_end_components(region.graph, readonly(free))
        if components.count == 0:
            return
        labels = components.labels.astype(np.int64)
        alone = labels < 0
        labels[alone] = components.count + np.arange(np.count_nonzero(alone))
        self.labels, self.staying = labels, components.inside
        self.count = components.count + int(np.count_nonzero(alone))

    def breadth_first(self) -> NDArray[np.int64]:
        """Return the policy that most likely gets nearer to a terminal state, shape (C,)."""
        region, num_actions = self.region, self.region.model.num_actions
        actions = np.empty(len(region.steps), dtype=np.int32)
        self._over_states(
            improvement.nearest_first, self._tables, region.usable, readonly(region.steps), actions
        )
        states = np.flatnonzero(region.inside)
        rows = np.full(self.count, -1, dtype=np.int64)
        if self.labels is not None:
            # The member that is nearest is left by an action that gets nearer, out of the place.
            states = states[np.lexsort((states, region.steps[states]))[::-1]]
            rows[self.labels[states]] = states * num_actions + actions[states]
        else:
            rows[states] = states * num_actions + actions[states]
        return rows

    def chain(self, rows: NDArray[np.int64]) -> sp.csr_array:
        """Return the probabilities of going from place to place under a policy, shape (C, C)."""
        matrix = self.region.table.transitions[np.maximum(rows, 0)]
        if self.labels is None:
            return normalised(matrix)
        indices = self.labels[matrix.indices]
        return normalised(
            sp.csr_array((matrix.data, indices, matrix.indptr), shape=(self.count, self.count))
        )

    def is_proper(self, rows: NDArray[np.int64]) -> bool:
        """Whether a policy surely gets to an end from everywhere."""
        return bool(self.arriving(rows).all())

    def arriving(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return from where a policy surely gets to an end, shape (C,)."""
        return arriving(self.chain(rows), rows < 0)

    def evaluate(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what a proper policy costs in each state, shape (S,); 0 where it is infinite."""
        chain = self.chain(rows)
        costs = self._costs.reshape(-1)[np.maximum(rows, 0)]
        if self._end_values.any():
            of_place = np.zeros(self.count)
            self._spread_back(self._end_values, of_place)
            costs = costs + chain @ of_place
        found = total_costs_of_chain(chain, costs, rows < 0, self.checkpoint)
        return self.spread(found)

    def spread(self, found: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return values of states, shape (S,), of values of places, shape (C,)."""
        V = found.copy() if self.labels is None else found[self.labels]
        ends = self.region.ends
        V[ends] = self._end_values[ends]
        return V

    def _spread_back(self, values: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        if self.labels is None:
            out[:] = values
        else:
            out[self.labels] = values

    def actions_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the action of the member by which each place is left, shape (S,), else -1."""
        actions = np.full(self.region.model.num_states, -1, dtype=np.int64)
        states, chosen = np.divmod(rows[rows >= 0], self.region.model.num_actions)
        actions[states] = chosen
        return actions

    def compare(
        self,
        V: NDArray[np.float64],
        rows: NDArray[np.int64],
        allowed: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Return what is best in each place beside a policy, all of shape (C,).

        Parameters
        ----------
        V : ndarray of float, shape (S,)
        rows : ndarray of int64, shape (C,)
        allowed : ndarray of bool, shape (S, A), optional
            The rows that count, of those that lead out of a place; all by default.

        Returns
        -------
        best : ndarray of float
            The least upper end of ``c + P V - V`` of a row, +inf in ends.
        which : ndarray of int64
            That row.
        own_low, own_high : ndarray of float
            The ends of that of the policy.
        """
        num_states, num_actions = self.region.model.num_states, self.region.model.num_actions
        best, low, high = (np.empty(num_states) for _ in range(3))
        actions = np.empty(num_states, dtype=np.int64)
        self._over_states(
            improvement.compare,
            self._tables,
            self.usable if allowed is None else readonly(allowed),
            readonly(V),
            readonly(self.actions_of(rows)),
            best,
            actions,
            low,
            high,
        )
        which = np.arange(num_states) * num_actions + actions
        if self.labels is None:
            return best, which, low, high
        first = self._first_of_least(best)
        own = np.where(rows >= 0, rows // num_actions, first)
        return best[first], which[first], low[own], high[own]

    def backup(
        self, V: NDArray[np.float64], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the least ``c + P V - V`` of each place, 0 in ends, and the rows that have it.

        Parameters
        ----------
        V : ndarray of float, shape (S,)
        rows : ndarray of int64, shape (C,)
            A policy, which tells where the ends are.
        """
        inequalities = Inequalities(self.region.table, self._num_threads, self.checkpoint)
        least, actions = inequalities.backup(V, usable=self.usable)
        which = np.arange(len(V)) * self.region.model.num_actions + actions
        if self.labels is not None:
            first = self._first_of_least(least)
            least, which = least[first], which[first]
        live = rows >= 0
        return np.where(live, least, 0.0), np.where(live, which, -1)

    def _first_of_least(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the member of each place that has the least value."""
        assert self.labels is not None
        order = np.lexsort((np.arange(len(values)), values, self.labels))
        return order[np.flatnonzero(np.diff(self.labels[order], prepend=-1))]

    def mark_below(self, V: NDArray[np.float64], level: float, marked: NDArray[np.bool_]) -> int:
        """Mark the rows whose ``c + P V - V`` may be below a level; return how many are new.

        Parameters
        ----------
        V : ndarray of float, shape (S,)
        level : float
        marked : ndarray of bool, shape (S, A)
            Those that are marked already are not looked at.
        """
        found = self._over_states(
            improvement.mark_below, self._tables, self.usable, readonly(V), level, marked
        )
        return sum(found)

    def policy(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the action of each state, shape (S,), -1 in ends and where there is none.

        Within a place of several states it goes, step by step, to where that is left.
        """
        actions = self.actions_of(rows)
        if self.staying is None:
            return actions
        exits = np.flatnonzero(actions >= 0)
        alive = readonly(np.ascontiguousarray(self.staying).reshape(-1))
        _, towards = self.region.graph.steps_to(exits, alive)
        return np.where(actions >= 0, actions, towards.astype(np.int64))

    def _over_states(self, kernel: Callable[..., Any], *arguments: Any) -> list[Any]:
        self.checkpoint()
        return over_blocks(
            lambda lo, hi: kernel(*arguments, lo, hi),
            self.region.model.num_states,
            self._num_threads,
            len(self._tables.indices),
        )
