"""Bellman backups of an `EventMDP`, without a table of transitions.

A sweep first sums up the values of each stage, from the last to the first, and then goes over the
states: what many actions share is computed once.  Each sum is over the events of one row in their
order, so that values do not depend on the number of threads; pieces of a sweep are short enough for
time limits and Ctrl-C.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.memory import check_memory
from aggmaze.models.events import EventMDP
from aggmaze.models.model import Model
from planners.bellman import joined, local_engine, rounding_of, unslipped_size
from planners.engine import WHOLE, Engine, Parts, Reading, Sweep
from planners.kernels.events import kernels_of
from planners.kernels.pieces import UNIT_ROUNDOFF
from planners.kernels.threads import over_blocks
from planners.kernels.vectors import sup_norm

# Elementary operations, of all threads, between two checkpoints: some tenths of a second.
_PIECE = 1 << 26


class EventEngine:
    """An engine of a matrix-free model; `planners.engine.Engine` says what its methods take."""

    def __init__(
        self,
        model: EventMDP,
        gamma: float,
        num_threads: int,
        checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        self.model = model
        self.num_states = model.num_states
        self.terminal = model.terminal
        self.parts: Parts = WHOLE
        self.gamma = gamma
        self.num_threads = num_threads
        self.checkpoint = checkpoint
        self.most_left = 1.0
        self._kernels = kernels_of(model.functions)
        extent, stages, chances = model.extent, model.all_stages, model.chances
        self.max_cost = extent.max_cost + math.fsum(extent.event_costs)
        self._event_cost = math.fsum(extent.event_costs)
        errors = [
            float(np.abs(_row_sums(rows.probabilities, rows.indptr) - 1.0).max())
            + (rows.longest + 4) * UNIT_ROUNDOFF
            for rows in chances
        ]
        self.steps_to_terminal: NDArray[np.int32] | None = None
        self.row_error = math.prod(1.0 + error for error in errors) - 1.0
        operations = 2 + sum(2 * rows.longest + 4 for rows in chances)
        self._relative_rounding = 1.0001 * operations * UNIT_ROUNDOFF
        self._state_work = model.num_actions * chances[0].longest
        self._work_of = [stage.lanes * stage.chances.longest for stage in stages]
        self.work = self.num_states * self._state_work + sum(
            stage.num_points * stage.chances.longest for stage in stages
        )
        #: Outcomes that a sweep by a policy reads.
        self.policy_work = self.work - self.num_states * self._state_work
        self.policy_work += self.num_states * chances[0].longest
        num_points = sum(stage.num_points for stage in stages)
        check_memory(8 * num_points, f"values of {num_points:,} points of stages")
        self._values = [np.empty(stage.num_points) for stage in stages]

    @property
    def least_rounding(self) -> float:
        """The least share of the largest value that rounding can come to."""
        return self._relative_rounding * self.gamma

    def rounding(self, max_value: float) -> float:
        """Bound the rounding error of a backup.

        A row of n events suffers n products, n with the discount, n sums, and where events cost
        something as many products and sums again; stages follow each other, and the cost is added
        last.  All is at most of the size ``max |c| + gamma max |V|``, c with the costs of events,
        or, where events cost nothing, of `unslipped_size`.
        """
        size = self.max_cost + self.gamma * max_value
        if not self._event_cost:
            size = min(size, unslipped_size(self.gamma, max_value))
        # Distributions that miss 1 are taken for rounded ones, and their mean costs with them.
        missing = self.row_error * self._event_cost
        return rounding_of(self._relative_rounding, size, max_value) + missing

    def sweep(
        self,
        V: NDArray[np.float64],
        out: NDArray[np.float64],
        actions: NDArray[np.int32] | None = None,
    ) -> Sweep:
        """Write TV into ``out``."""
        return joined(self._over_states(self._kernels.sweep, V, V, out, actions), out)

    def read(
        self, V: NDArray[np.float64], out: NDArray[np.float64]
    ) -> tuple[Sweep, Reading | None]:
        """Write TV into ``out``; what the sweep saw of the policy is not kept."""
        return self.sweep(V, out), None

    def policy_sweep(
        self, policy: NDArray[np.int32], V: NDArray[np.float64], out: NDArray[np.float64]
    ) -> Sweep:
        """Write the backups by the policy into ``out``."""
        return joined(self._over_states(self._kernels.policy_sweep, V, policy, V, out))

    def gauss_seidel(
        self,
        V: NDArray[np.float64],
        order: NDArray[np.int32] | None = None,
        reverse: bool = False,
    ) -> Sweep:
        """Refuse: values of stages are summed up for all states before the first is backed up."""
        raise NotImplementedError("an EventMDP has no sweeps in place")

    def aggregated(
        self,
        states: NDArray[np.int64],
        W: NDArray[np.float64],
        labels: NDArray[np.int32],
        out: NDArray[np.float64],
    ) -> None:
        """Write the backups of the listed states under aggregation into ``out``."""
        model = self.model
        work = model.num_actions * math.prod(rows.longest for rows in model.chances)
        common = model.chances, self.terminal, self.gamma, states, W, labels, out
        self._in_pieces(lambda lo, hi: self._kernels.aggregated(*common, lo, hi), len(states), work)

    def q_values(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the value of each action, shape (S, A)."""
        size = self.model.num_states * self.model.num_actions
        check_memory(8 * size, f"values of {size:,} actions")
        Q = np.empty((self.model.num_states, self.model.num_actions))
        self._over_states(self._kernels.q_values, V, Q)
        return Q

    def greedy(
        self,
        V: NDArray[np.float64],
        distances: Callable[[], NDArray[np.int32]],
        slack: float,
        tie: float,
        reading: Reading | None = None,
    ) -> NDArray[np.int64]:
        """Return the policy that is greedy within ``slack``.

        Distances are found by sweeps, where there are terminal states.
        """
        policy = np.empty(self.num_states, dtype=np.int64)
        if not sum(self._over_states(self._kernels.clear_actions, V, slack, policy)):
            return policy
        D = np.empty(0)
        if self.terminal.any():
            # A copy: the room of stages is for values again.
            D = self._first_values(self._distances(), 1.0, with_costs=False).copy()
        self._over_states(self._kernels.greedy, V, D, (slack, tie), policy)
        return policy

    def sup_norm(self, vector: NDArray[np.float64]) -> float:
        """Return the largest size of an entry."""
        return sup_norm(vector)

    def count(self, flags: NDArray[np.bool_]) -> int:
        """Return how many flags are set."""
        return int(np.count_nonzero(flags))

    def _distances(self) -> NDArray[np.float64]:
        """Return the fewest steps to a terminal state, S where none can be reached.

        By sweeps in place, in alternating directions, until nothing changes; through stages they
        carry a distance one step further each.
        """
        steps = np.where(self.terminal, 0.0, float(self.num_states))
        for reverse in itertools.cycle((False, True)):
            D = steps
            for place, fill, room in self._backwards(self._kernels.fill_least):
                self._fill(fill, place, (D, room))
                D = room
            changed = self._in_pieces(
                functools.partial(
                    self._kernels.nearest, self.model.chances[0], self.terminal, D, steps, reverse
                ),
                self.num_states,
                self._state_work,
                num_threads=1,
            )
            if not sum(changed):
                break
        return steps

    def _over_states(
        self, kernel: Callable[..., Any], V: NDArray[np.float64], *arguments: Any
    ) -> list[Any]:
        """Call a kernel on all states, with the values of what follows actions where V holds."""
        U = self._first_values(V, self.gamma, with_costs=True)
        factor = 1.0 if self.model.all_stages else self.gamma
        common = self.model.chances[0], self.terminal, factor, U, *arguments
        return self._in_pieces(
            functools.partial(kernel, *common), self.num_states, self._state_work
        )

    def _first_values(
        self, V: NDArray[np.float64], factor: float, *, with_costs: bool
    ) -> NDArray[np.float64]:
        """Return the values of the points that actions lead to, of the states if there are none.

        Parameters
        ----------
        V : ndarray of float, shape (S,)
        factor : float
            Of V, where there are points.
        with_costs : bool
            Whether costs of the events behind are in them.
        """
        for place, fill, room in self._backwards(self._kernels.fill):
            self._fill(fill, place, (factor, V, with_costs, room))
            V, factor = room, 1.0
        return V

    def _backwards(self, kernels: tuple[Callable[..., Any], ...]) -> list[tuple[int, Any, Any]]:
        """Return number, kernel and room of each stage, the last one first."""
        places = range(len(kernels))
        return [(k, kernels[k], self._values[k]) for k in reversed(places)]

    def _fill(self, kernel: Callable[..., Any], place: int, arguments: tuple[Any, ...]) -> None:
        """Sum up the values of a stage."""
        stage = self.model.all_stages[place]
        self._in_pieces(
            functools.partial(kernel, stage.chances, *arguments),
            stage.num_points // stage.lanes,
            self._work_of[place],
        )

    def _in_pieces(
        self,
        kernel: Callable[[int, int], Any],
        count: int,
        work: int,
        num_threads: int | None = None,
    ) -> list[Any]:
        """Call ``kernel(lo, hi)`` on blocks of so many items, each so much work."""
        size = max(1, _PIECE // max(1, work))
        found = []
        for lo in range(0, count, size):
            self.checkpoint()
            length = min(size, count - lo)
            found += over_blocks(
                lambda a, b, lo=lo: kernel(lo + a, lo + b),  # type: ignore[misc]
                length,
                num_threads or self.num_threads,
                length * work,
            )
        return found


def _row_sums(probabilities: NDArray[np.float64], indptr: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the sum of each row, rounded once."""
    rows = [probabilities[a:b] for a, b in itertools.pairwise(indptr)]
    return np.array([math.fsum(row) for row in rows])


def make_engine(
    model: Model,
    gamma: float,
    num_threads: int = 1,
    checkpoint: Callable[[], None] = lambda: None,
) -> Engine:
    """Return the backups of a model of any kind at a discount in [0, 1].

    Parameters
    ----------
    model : Model
    gamma : float
    num_threads : int
    checkpoint : callable
        What long loops call now and then.
    """
    if isinstance(model, EventMDP):
        return EventEngine(model, gamma, num_threads, checkpoint)
    return local_engine(model, gamma, num_threads, checkpoint)
