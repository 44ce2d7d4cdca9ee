"""An engine whose vectors are cut into parts, and a way to run the same program on each of them.

The parts are threads that meet wherever one asks for what the others have, so that a program which
asks in one part and not in another stands still, and is found out.  Each part is built from
``model.rows(lo, hi)`` alone, in NumPy: a second writing of what the kernels do, with sums in the
same order, so that general models give the same bits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from aggmaze.mdp import TabularMDP
from planners.bellman import local_engine
from planners.engine import Reading, Sweep

T = TypeVar("T")

# Seconds after which parts that wait for each other are given up.
PATIENCE = 60.0


class Meeting:
    """Where the parts hand over what they have."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._barrier = threading.Barrier(size, timeout=PATIENCE)
        self._held: list[NDArray[Any] | None] = [None] * size

    def gathered(self, rank: int, part: NDArray[Any]) -> NDArray[Any]:
        """Return the arrays of all parts, one after another."""
        self._held[rank] = part.copy()
        self._barrier.wait()
        whole = np.concatenate([held for held in self._held if held is not None])
        self._barrier.wait()  # nobody hands over anew before all have read
        return whole

    def give_up(self) -> None:
        """Let nobody wait for a part that failed."""
        self._barrier.abort()


class Part:
    """One part of several."""

    def __init__(self, meeting: Meeting, rank: int) -> None:
        self.rank, self.size = rank, meeting.size
        self._meeting = meeting

    def gathered(self, part: NDArray[Any]) -> NDArray[Any]:
        """Return the arrays of all parts, one after another."""
        return self._meeting.gathered(self.rank, part)

    def added_up(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the sums over the parts before this one, and over all."""
        rows = self.gathered(numbers[np.newaxis])
        return rows[: self.rank].sum(axis=0), rows.sum(axis=0)

    def union(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the numbers of all parts, increasing, each once."""
        return np.unique(self.gathered(numbers))

    def together(self, function: Callable[[], T]) -> T:
        """Call a function in each part; where it fails in one, all raise what the first raised."""
        result: Any = None
        failure: BaseException | None = None
        try:
            result = function()
        except BaseException as error:
            failure = error
        told = np.empty(1, dtype=object)
        told[0] = failure
        for error in self.gathered(told):
            if error is not None:
                raise error
        return result  # type: ignore[no-any-return]


class PartEngine:
    """What one part sees of a model."""

    num_threads = 1

    def __init__(self, model: TabularMDP, gamma: float, parts: Part, lo: int, hi: int) -> None:
        self.model, self.gamma, self.parts = model, gamma, parts
        self.num_states = model.num_states
        self.terminal = model.terminal[lo:hi]
        self.checkpoint: Callable[[], None] = lambda: None
        rows = model.rows(lo, hi)
        self._first, self._num_actions = lo, model.num_actions
        self._matrix, self._costs, self._mask = rows.transitions, rows.costs, rows.action_mask
        self.work = int(parts.gathered(np.array([self._matrix.nnz])).sum())
        whole = local_engine(model, gamma)  # its bounds on errors are numbers of the model
        self.max_cost, self.row_error = whole.max_cost, whole.row_error
        self.most_left, self.least_rounding = whole.most_left, whole.least_rounding
        self.rounding = whole.rounding

    def q_values(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        means = self._matrix @ self.parts.gathered(V)
        Q = self._costs + self.gamma * means.reshape(self._costs.shape)
        Q[~self._mask] = np.inf
        Q[self.terminal] = 0.0
        return Q

    def sweep(
        self,
        V: NDArray[np.float64],
        out: NDArray[np.float64],
        actions: NDArray[np.int32] | None = None,
    ) -> Sweep:
        Q = self.q_values(V)
        if actions is not None:
            actions[:] = Q.argmin(axis=1)
        return self._write(V, Q.min(axis=1), out, image=out)

    def read(
        self, V: NDArray[np.float64], out: NDArray[np.float64]
    ) -> tuple[Sweep, Reading | None]:
        return self.sweep(V, out), None

    def policy_sweep(
        self, policy: NDArray[np.int32], V: NDArray[np.float64], out: NDArray[np.float64]
    ) -> Sweep:
        Q = self.q_values(V)
        return self._write(V, Q[np.arange(len(V)), policy], out, image=None)

    def aggregated(
        self,
        states: NDArray[np.int64],
        W: NDArray[np.float64],
        labels: NDArray[np.int32],
        out: NDArray[np.float64],
    ) -> None:
        means = self._matrix @ W[self.parts.gathered(labels)]
        Q = self._costs + self.gamma * means.reshape(self._costs.shape)
        Q[~self._mask] = np.inf
        Q[self.terminal] = 0.0
        out[:] = self.parts.gathered(Q.min(axis=1))[states]

    def gauss_seidel(self, *arguments: Any) -> Sweep:
        raise NotImplementedError("sweeps in place are not cut into parts")

    def greedy(self, *arguments: Any) -> NDArray[np.int64]:
        raise NotImplementedError("policies of progress are not cut into parts")

    def sup_norm(self, vector: NDArray[np.float64]) -> float:
        return float(self.parts.gathered(np.array([np.abs(vector).max(initial=0.0)])).max())

    def count(self, flags: NDArray[np.bool_]) -> int:
        return int(self.parts.gathered(np.array([np.count_nonzero(flags)])).sum())

    def _write(
        self,
        V: NDArray[np.float64],
        new: NDArray[np.float64],
        out: NDArray[np.float64],
        image: NDArray[np.float64] | None,
    ) -> Sweep:
        residual = new - V
        ends = np.array([[residual.min(), -residual.max(), new.min(), -new.max()]])
        out[:] = new
        extremes = self.parts.gathered(ends).min(axis=0) + 0.0
        residual_low, residual_high, low, high = extremes * [1, -1, 1, -1] + 0.0
        return Sweep(residual_low, residual_high, low, high, image=image)


def in_parts(
    model: TabularMDP, gamma: float, cuts: list[int], program: Callable[[PartEngine], T]
) -> list[T]:
    """Run a program in parts that end at the cuts and at the last state; return what each returns.

    Parameters
    ----------
    model : TabularMDP
    gamma : float
    cuts : list of int
        Increasing, within the states.
    program : callable
        Takes the engine of its part.
    """
    ends = [0, *cuts, model.num_states]
    meeting = Meeting(len(ends) - 1)

    def run(rank: int) -> T:
        try:
            part = Part(meeting, rank)
            return program(PartEngine(model, gamma, part, ends[rank], ends[rank + 1]))
        except BaseException:
            meeting.give_up()
            raise

    with ThreadPoolExecutor(meeting.size) as pool:
        futures = [pool.submit(run, rank) for rank in range(meeting.size)]
        errors = [future.exception() for future in futures]
    first = [e for e in errors if e is not None and not isinstance(e, threading.BrokenBarrierError)]
    for error in (*first, *errors):
        if error is not None:
            raise error
    return [future.result() for future in futures]
