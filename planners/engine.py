"""What solvers see of a model at a discount: an engine, which owns the tables and the sweeps.

An engine may be one process or one of several that work on a model together, each on a part of the
states, all running the same program.  A vector over the states, such as V, is then the part of it
that this process holds, in the order of the states; the first process has the first states.
Extremes and counts are those of all states, the same in every process; so are
numbers of states and mega-states, W, what is drawn, and every decision.  What neighbours of a part
have is the engine's business: a sweep fetches the values that its rows read.

`planners.bellman` has the engine of one process.  `LocalEngine` says what it has beyond this, for
methods that follow a policy from state to state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.model import Model, TableModel
from planners.kernels.tables import Tables

T = TypeVar("T")


@dataclass(frozen=True)
class Sweep:
    """What one full sweep ``out = TV`` saw.

    Parameters
    ----------
    residual_low, residual_high : float
        Extremes of ``TV - V`` over all states.
    low, high : float
        Extremes of ``TV``.
    in_place : bool
        Whether states were backed up one after another, each from the new values of those before
        it; V is then what there was before.
    image : ndarray of float, shape (S,), optional
        The array that received TV, so that no other is taken for it; None for a sweep by a policy
        or on other costs, whose image is not TV.
    """

    residual_low: float
    residual_high: float
    low: float
    high: float
    in_place: bool = False
    image: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)

    @property
    def residual(self) -> float:
        """Sup norm of ``TV - V``."""
        return max(-self.residual_low, self.residual_high)

    @property
    def max_value(self) -> float:
        """Bounds |V| and |TV|."""
        return max(-self.low, self.high) + self.residual

    def residual_range(self, *, with_zero: bool) -> tuple[float, float]:
        """Return the extremes of ``TV - V``, or if asked for of that and 0.

        With terminal states, whose values are not shifted, and in place it is the second that
        contracts.
        """
        if with_zero:
            return min(self.residual_low, 0.0), max(self.residual_high, 0.0)
        return self.residual_low, self.residual_high


class Reading(NamedTuple):
    """The greedy policy as a full sweep saw it.

    Parameters
    ----------
    actions : ndarray of int32, shape (S,)
        The first best action of each state, 0 in terminal ones.
    margins : ndarray of float, shape (S,)
        By how much every other action is worse, less what is rounded; +inf where there is none.
    """

    actions: NDArray[np.int32]
    margins: NDArray[np.float64]


class Parts(Protocol):
    """The processes that share the states of a model, as one of them sees them."""

    @property
    def rank(self) -> int:
        """The number of this process, from 0 on."""

    @property
    def size(self) -> int:
        """How many processes there are."""

    def gathered(self, part: NDArray[Any]) -> NDArray[Any]:
        """Return the arrays of all processes one after another, along the first axis."""

    def added_up(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the sums of each number over the processes before this one, and over all.

        The arrays are of one shape in all processes, and no process makes room for those of all.
        """

    def union(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return all numbers that some process has, increasing, each once."""

    def together(self, function: Callable[[], T]) -> T:
        """Call a function that asks nothing of the others; what fails in one, fails in all.

        Where it fails, all processes raise what the first of those raised in which it did.
        """


class OnePart:
    """A process that holds all states."""

    rank, size = 0, 1

    def gathered(self, part: NDArray[Any]) -> NDArray[Any]:
        """Return the array."""
        return part

    def added_up(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return zeros, and the numbers."""
        return np.zeros_like(numbers), numbers

    def union(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the numbers, increasing, each once."""
        return np.unique(numbers)

    def together(self, function: Callable[[], T]) -> T:
        """Call the function."""
        return function()


#: What a process that holds all states sees.
WHOLE = OnePart()


class Engine(Protocol):
    """Bellman backups of one model at one discount, over the states of one process or several.

    To build its part an engine needs the rows of a model, ``model.rows(lo, hi)``, and which of its
    states are terminal.
    """

    @property
    def gamma(self) -> float:
        """The discount."""

    @property
    def model(self) -> Model:
        """The model, to ask for sizes and rows."""

    @property
    def num_states(self) -> int:
        """Number S of states of the model, those of all processes."""

    @property
    def terminal(self) -> NDArray[np.bool_]:
        """Whether each state of the part is terminal."""

    @property
    def parts(self) -> Parts:
        """Who has the states."""

    @property
    def max_cost(self) -> float:
        """Largest size of the cost of an available action."""

    @property
    def num_threads(self) -> int:
        """Number of threads that sweeps may use; no value depends on it."""

    @property
    def checkpoint(self) -> Callable[[], None]:
        """What long loops call now and then; raises where time is up."""

    @property
    def work(self) -> int:
        """Outcomes that a full sweep reads."""

    @property
    def row_error(self) -> float:
        """Largest distance of the sum of a row of probabilities from 1."""

    @property
    def most_left(self) -> float:
        """Largest probability, over states and actions, of a next state that is not terminal."""

    #: Fewest steps from each state to a terminal one, -1 where there is no way, by available
    #: actions; None until somebody has counted them.
    steps_to_terminal: NDArray[np.int32] | None

    def sweep(
        self,
        V: NDArray[np.float64],
        out: NDArray[np.float64],
        actions: NDArray[np.int32] | None = None,
    ) -> Sweep:
        """Make a full sweep.

        Parameters
        ----------
        V : ndarray of float, shape (S,)
        out : ndarray of float, shape (S,)
            Receives TV; not V itself.
        actions : ndarray of int32, shape (S,), optional
            Receives the first action that attains it.
        """

    def read(
        self, V: NDArray[np.float64], out: NDArray[np.float64]
    ) -> tuple[Sweep, Reading | None]:
        """Make a full sweep, and note the greedy policy where that costs little more.

        Parameters
        ----------
        V : ndarray of float, shape (S,)
        out : ndarray of float, shape (S,)
            Receives TV; not V itself.
        """

    def gauss_seidel(
        self,
        V: NDArray[np.float64],
        order: NDArray[np.int32] | None = None,
        reverse: bool = False,
    ) -> Sweep:
        """Back up one state after another in place, with its loops to itself solved for.

        Parameters
        ----------
        V : ndarray of float, shape (S,)
        order : ndarray of int32, shape (S,), optional
            By default the order of the states.
        reverse : bool
            Whether it is gone through from its end.
        """

    def policy_sweep(
        self, policy: NDArray[np.int32], V: NDArray[np.float64], out: NDArray[np.float64]
    ) -> Sweep:
        """Write ``c_pi + gamma P_pi V`` into ``out``.

        Parameters
        ----------
        policy : ndarray of int32, shape (S,)
            Available actions.
        V, out : ndarray of float, shape (S,)
        """

    def aggregated(
        self,
        states: NDArray[np.int64],
        W: NDArray[np.float64],
        labels: NDArray[np.int32],
        out: NDArray[np.float64],
    ) -> None:
        """Write ``T_s V~`` of each listed state into ``out``, where ``V~(s) = W[labels[s]]``.

        Parameters
        ----------
        states : ndarray of int64, shape (K,)
            By their numbers in the model, in every process the same.
        W : ndarray of float
            In every process the same.
        labels : ndarray of int32, shape (S,)
            Indices into W.
        out : ndarray of float, shape (K,)
            In every process the same.
        """

    def q_values(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``c(s,a) + gamma sum P V``, shape (S, A); +inf where masked."""

    def greedy(
        self,
        V: NDArray[np.float64],
        distances: Callable[[], NDArray[np.int32]],
        slack: float,
        tie: float,
        reading: Reading | None = None,
    ) -> NDArray[np.int64]:
        """Return the action of least expected distance among those within ``slack`` of the best.

        Parameters
        ----------
        V : ndarray of float, shape (S,)
        distances : callable
            Returns the distance of every state, an integer, shape (S,); called only where some
            state has a choice.
        slack : float
        tie : float
            Among several actions of that distance, the first whose value is within ``tie`` of their
            best is taken.
        reading : Reading, optional
            What `read` returned for V: only states with a choice are then looked at.
        """

    def rounding(self, max_value: float) -> float:
        """Bound the error of a computed ``T_s V`` where ``max_value`` bounds |V| and |TV|."""

    @property
    def least_rounding(self) -> float:
        """The least share of ``max_value`` that `rounding` can come to, whatever the costs."""

    def sup_norm(self, vector: NDArray[np.float64]) -> float:
        """Return the largest size of an entry, NaN where one is no number."""

    def count(self, flags: NDArray[np.bool_]) -> int:
        """Return how many flags are set."""


class PolicyEngine(Engine, Protocol):
    """An engine that knows what a sweep by a policy takes."""

    @property
    def policy_work(self) -> int:
        """Outcomes that a sweep by a policy reads."""


class LocalEngine(Engine, Protocol):
    """An engine of one process, with its tables for those who follow a policy through them."""

    @property
    def model(self) -> TableModel:
        """The model, to ask for sizes and rows."""

    @property
    def tables(self) -> Tables:
        """The read-only arrays of the model's layout."""

    @property
    def has_absorbing_states(self) -> bool:
        """Whether some state is never left, whatever one does there."""
