"""The values of neighbours, exchanged by PETSc's ghosted vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from planners.distributed.partition import Partition
from planners.distributed.processes import Processes


class Ghosts:
    """Copies of what rows of the part read in others, behind what the part has itself.

    Parameters
    ----------
    processes : Processes
    partition : Partition
    states : ndarray of int64, shape (G,)
        Which states of others the rows of the part lead to, increasing.
    """

    def __init__(
        self, processes: Processes, partition: Partition, states: NDArray[np.int64]
    ) -> None:
        PETSc = processes.PETSc  # noqa: N806
        self.states = states
        self._num_own = len(partition)
        self._insert, self._add = PETSc.InsertMode.INSERT, PETSc.InsertMode.ADD
        self._forward, self._reverse = PETSc.ScatterMode.FORWARD, PETSc.ScatterMode.REVERSE
        #: The values of the part, and behind them those of its ghosts: PETSc's vector is on it.
        self._near = np.empty(self._num_own + len(states))
        self.vector: Any = PETSc.Vec().createGhostWithArray(
            states.astype(PETSc.IntType),
            self._near,
            size=(self._num_own, partition.num_states),
            comm=processes.comm,
        )
        self._near[: self._num_own], self._near[self._num_own :] = 0.0, 1.0
        self.vector.ghostUpdate(addv=self._add, mode=self._reverse)
        #: Which of its own states others read, by their places in the part.
        self.read_by_others: NDArray[np.int64] = np.flatnonzero(self._near[: self._num_own])

    @property
    def last(self) -> NDArray[np.float64]:
        """What the vector holds now, shape (S + G,): numbers of any meaning, for room."""
        return self._near

    def __len__(self) -> int:
        return len(self.states)

    def near(self, own: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of the part, and behind them those of its ghosts.

        Parameters
        ----------
        own : ndarray of float, shape (S,)

        Returns
        -------
        ndarray of float, shape (S + G,)
            The same array at each call, of this method and the next.
        """
        self._near[: self._num_own] = own
        self.vector.ghostUpdate(addv=self._insert, mode=self._forward)
        return self._near

    def of_others(self, own: NDArray[Any]) -> NDArray[Any]:
        """Return what the ghosts have, a new array: only what others read of ``own`` is moved.

        Parameters
        ----------
        own : ndarray, shape (S,)
            Numbers that float64 holds exactly.

        Returns
        -------
        ndarray, shape (G,)
            Of the type of ``own``.
        """
        self._near[self.read_by_others] = own[self.read_by_others]
        self.vector.ghostUpdate(addv=self._insert, mode=self._forward)
        return self._near[self._num_own :].astype(own.dtype)
