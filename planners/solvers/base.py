"""What a solver is to the loop (`planners.iterate`), and the loop to a solver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from planners.engine import Sweep


@dataclass(frozen=True)
class Step:
    """What one iteration of a solver did.

    Parameters
    ----------
    num_updates : int
        Backups made, those by a policy included.
    sweep : Sweep, optional
        What `Engine.sweep` or `Engine.gauss_seidel` returned, where that made the new V in
        ``out``: it certifies the new V for nothing.  Without it the loop makes sweeps of its own.
    num_megastates : int
        K where the iteration was aggregated, else 0.
    num_sweeps : int
        How often it went over all states: Bellman and Gauss-Seidel sweeps, sweeps by a policy, and
        products with its matrix in a linear solver.
    deferred : callable, optional
        ``deferred(array)`` writes the new V into an array of shape (S,), any number of times until
        the next step but one: for iterations that cost less than to write V does.  ``out`` is then
        not read.
    labels : callable, optional
        Returns the mega-state of each state after this iteration, shape (S,).
    settled : bool
        Whether further iterations change V by rounding only.
    """

    num_updates: int
    sweep: Sweep | None = None
    num_megastates: int = 0
    num_sweeps: int = 0
    deferred: Callable[[NDArray[np.float64]], None] | None = None
    labels: Callable[[], NDArray[np.int32]] | None = None
    settled: bool = False


class Solver(Protocol):
    """A method, which makes one iteration after another."""

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        """Make one iteration: from the last V a new one, written into ``out``, shape (S,) both.

        V stays as it is: it is what there is to return if the iteration is not finished.  Only
        where the last step was deferred, V is room for what it deferred.  The two arrays change
        places from one step to the next, and are the loop's.
        """


@dataclass(frozen=True)
class State:
    """What a solver knows after an iteration, beside V, so that another one can go on from there.

    Its arrays stay as they are until the step after the next.

    Parameters
    ----------
    numbers : dict
        Numbers, texts, and lists and dictionaries of them, in every process the same.
    arrays : dict of str to ndarray
        In every process the same, of one axis.
    by_state : dict of str to ndarray, shape (S,)
        Those of `Resumable.by_state`, or some of them.
    """

    numbers: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    by_state: Mapping[str, NDArray[Any]] = field(default_factory=dict)


Labels = Callable[[], NDArray[np.int32]]


@runtime_checkable
class Resumable(Solver, Protocol):
    """A method that can go on where another run of it stopped, with the same bits from there on."""

    @property
    def by_state(self) -> Mapping[str, str]:
        """Arrays with an entry a state that it keeps: their names and data types."""

    def state(self) -> State:
        """Return what is known after the last step; cheap, as it is asked for after each one."""

    def restore(self, state: State) -> Labels | None:
        """Go on from there, before the first step.

        Parameters
        ----------
        state : State
            Of a solver of the same model, with the same options.

        Returns
        -------
        callable, optional
            Returns the last mega-state of each state, where there are any.
        """
