"""What solvers see of a model at a discount: an engine, which owns the tables and the sweeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from aggmaze.mdp import TabularMDP
from aggmaze.move_mdp import MoveMDP

Model = TabularMDP | MoveMDP


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


class Engine(Protocol):
    """Engine of one model at one discount: all that a solver sees of the two."""

    @property
    def model(self) -> Model:
        """The model."""

    @property
    def gamma(self) -> float:
        """The discount."""

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
    def tables(self) -> tuple[NDArray[Any], ...]:
        """The read-only arrays that the kernels of the layout take first."""

    @property
    def has_absorbing_states(self) -> bool:
        """Whether some state is never left, whatever one does there."""

    @property
    def work(self) -> int:
        """Outcomes that a full sweep reads."""

    @property
    def row_error(self) -> float:
        """Largest distance of the sum of a row of probabilities from 1."""

    @property
    def most_left(self) -> float:
        """Largest probability, over states and actions, of a next state that is not terminal."""

    def sweep(
        self,
        V: NDArray[np.float64],
        out: NDArray[np.float64],
        actions: NDArray[np.int32] | None = None,
    ) -> Sweep:
        """Write TV into ``out``, shape (S,) both, and return its extremes.

        Where asked for, write the first action that attains it into ``actions``, shape (S,).
        """

    def gauss_seidel(
        self,
        V: NDArray[np.float64],
        order: NDArray[np.int32] | None = None,
        reverse: bool = False,
    ) -> Sweep:
        """Back up each state in place, with its loops to itself solved for, in an order of states.

        By default the order of the states, or its reverse.
        """

    def policy_sweep(
        self, policy: NDArray[np.int32], V: NDArray[np.float64], out: NDArray[np.float64]
    ) -> Sweep:
        """Write ``c_pi + gamma P_pi V`` into ``out`` for a policy of available actions."""

    def aggregated(
        self,
        states: NDArray[np.int64],
        W: NDArray[np.float64],
        labels: NDArray[np.int32],
        out: NDArray[np.float64],
    ) -> None:
        """Write ``T_s V~`` of each listed state into ``out``, where ``V~(s) = W[labels[s]]``."""

    def q_values(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``c(s,a) + gamma sum P V``, shape (S, A); +inf where masked."""

    def greedy(
        self,
        V: NDArray[np.float64],
        distances: Callable[[], NDArray[np.float64]],
        slack: float,
        tie: float,
    ) -> NDArray[np.int64]:
        """Return the action of least expected distance among those within ``slack`` of the best.

        Among several of that distance, the first whose value is within ``tie`` of their best.  The
        distances of all states are asked for only where some state has a choice.
        """

    def rounding(self, max_value: float) -> float:
        """Bound the error of a computed ``T_s V`` where ``max_value`` bounds |V| and |TV|."""

    @property
    def least_rounding(self) -> float:
        """The least share of ``max_value`` that `rounding` can come to, whatever the costs."""
