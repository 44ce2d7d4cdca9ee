"""Markov decision processes of moves that may slip: the successors shared by all actions.

Each state has up to M moves, and an action is the intention to make one of them.  With ``n``
available moves the chosen one happens with probability ``p``, each of the others with
``b = (1-p)/(n-1)``; with a single available move it always happens.  Writing ``q_m`` for the cost
of move ``m`` plus the discounted value where it leads, choosing ``m`` is worth

    Q_m = p q_m + b sum_{k != m} q_k = (p-b) q_m + b sum_k q_k,

so one backup reads M successors instead of the M**2 entries that the same model takes as a general
sparse table.  For ``p < b`` (that is, p < 1/n) the best choice is the largest ``q_m``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from aggmaze.arrays import own, pieces, readonly
from aggmaze.checks import check_chance, check_positive
from aggmaze.formats.tables import without_rounding
from aggmaze.memory import check_memory
from aggmaze.models.base import (
    FiniteMDP,
    check_block,
    check_distribution,
    scaled_costs,
    uniform_over,
)
from aggmaze.models.rows import Rows
from aggmaze.models.tabular import TabularMDP


@dataclass(frozen=True, eq=False)
class MoveMDP(FiniteMDP):
    """A model given by moves, their costs, and the probability that the chosen one happens.

    A state without available moves is terminal: it costs nothing and has value 0.  The model owns
    its arrays as a `TabularMDP` does: they are copies, and read-only.

    Parameters
    ----------
    successors : array_like of int, shape (S, M)
        State that each move leads to; ignored where the move is unavailable.
    move_costs : array_like, shape (S, M)
        Cost of each move that happens, chosen or slipped into; ``+inf`` where it is unavailable.
    p : float
        Probability in (0, 1] that the chosen move happens.
    initial : array_like, shape (S,), optional
        Distribution of the first state; by default uniform over the states that are not terminal.
    bump_cost : float, optional
        Cost of choosing an unavailable move, which always stays in place; by default
        ``max(0, largest move cost)``, which never pays.
    """

    successors: NDArray[np.int32]
    move_costs: NDArray[np.float64]
    p: float
    initial: NDArray[np.float64]
    bump_cost: float

    def __init__(
        self,
        successors: ArrayLike,
        move_costs: ArrayLike,
        *,
        p: float = 1.0,
        initial: ArrayLike | None = None,
        bump_cost: float | None = None,
    ) -> None:
        check_chance("p", p)
        costs = own(move_costs, np.float64)
        if costs.ndim != 2 or 0 in costs.shape:
            raise ValueError(f"move_costs must have shape (S, M), not empty, got {costs.shape}")
        table = np.asarray(successors)
        if table.shape != costs.shape or not np.issubdtype(table.dtype, np.integer):
            raise ValueError(
                f"successors must hold integers of the shape {costs.shape} of move_costs, got "
                f"{table.dtype} of shape {table.shape}"
            )
        available = np.isfinite(costs)
        if table.min() < 0 or table.max() >= len(costs):
            outside = (table < 0) | (table >= len(costs))
            bad = np.argwhere(outside & available)
            if len(bad):
                state, move = bad[0]
                raise ValueError(
                    f"state {state}, move {move}: successor {table[state, move]} is not in "
                    f"[0, {len(costs)})"
                )
            # Kernels read the successors of unavailable moves too, without use of what they read.
            table = np.where(outside, np.arange(len(costs))[:, np.newaxis], table)
        if initial is None:
            initial = uniform_over(_any_move(available))
        distribution = own(without_rounding(np.asarray(initial, np.float64)), np.float64)
        if distribution.shape != (len(costs),):
            raise ValueError(f"initial must have shape ({len(costs)},), got {distribution.shape}")
        if bump_cost is None:
            bump_cost = _idle_cost(costs, available)
        object.__setattr__(self, "successors", own(table, np.int32))
        object.__setattr__(self, "move_costs", costs)
        object.__setattr__(self, "p", float(p))
        object.__setattr__(self, "initial", distribution)
        object.__setattr__(self, "bump_cost", float(bump_cost))
        # As the cached property would find it.
        self.__dict__["available"] = readonly(available)

    def __repr__(self) -> str:
        return (
            f"MoveMDP({self.num_states:,} states, {self.num_actions} moves, p={self.p:g}, "
            f"{np.count_nonzero(self.terminal):,} terminal)"
        )

    @property
    def num_states(self) -> int:
        """Number of states S."""
        return self.move_costs.shape[0]

    @property
    def num_actions(self) -> int:
        """Number of actions, equal to the number of moves M."""
        return self.move_costs.shape[1]

    @property
    def num_added_states(self) -> int:
        """Number of states that the model's source does not list: none."""
        return 0

    @property
    def num_listed_states(self) -> int:
        """Number of states that the model's source lists: all."""
        return self.num_states

    @cached_property
    def available(self) -> NDArray[np.bool_]:
        """Which moves can be made, shape (S, M)."""
        return readonly(np.isfinite(self.move_costs))

    @cached_property
    def terminal(self) -> NDArray[np.bool_]:
        """States without a move, shape (S,)."""
        return readonly(np.asarray(~_any_move(self.available)))

    @property
    def action_mask(self) -> NDArray[np.bool_]:
        """Which actions may be chosen, shape (S, M): available moves; all in terminal states."""
        mask = self.available.copy()
        mask[self.terminal] = True
        return mask

    @cached_property
    def idle_cost(self) -> float:
        """Cost of a step in place that never pays: ``max(0, largest move cost)``."""
        return _idle_cost(self.move_costs, self.available)

    @cached_property
    def slip_weights(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weights ``p - b`` of the chosen move and ``b`` of every move, by number available.

        Both have shape (M + 1,): ``Q_m = chosen[n] * q_m + every[n] * sum(q)``.
        """
        return slip_weights(self.p, self.num_actions)

    @cached_property
    def draw(self) -> Callable[..., tuple[int, float, float]]:
        """`sample`, compiled and unchecked: ``draw(model.sampling_tables, state, action, u)``."""
        from aggmaze.models.sampling import sample_move  # which takes long to import

        return sample_move

    @cached_property
    def sampling_tables(self) -> tuple[Any, ...]:
        """What `draw` draws from."""
        return self.successors, self.move_costs, self.p, self.bump_cost

    def scaled(self, factor: float) -> MoveMDP:
        """Return the model with every cost multiplied by a positive factor.

        Raises
        ------
        ValueError
            If a cost is too large for float64 then.
        """
        check_positive("factor", factor)
        costs = scaled_costs(self.move_costs.reshape(-1), factor, self.num_actions, choice="move")
        bump_cost = float(factor) * self.bump_cost
        if not np.isfinite(bump_cost):
            raise ValueError(
                f"bump_cost {self.bump_cost} times factor {factor} is too large for float64"
            )
        return replace(self, move_costs=costs.reshape(self.move_costs.shape), bump_cost=bump_cost)

    def rows(self, lo: int, hi: int) -> Rows:
        """Return the rows of the states ``lo`` to ``hi - 1`` as general sparse rows.

        Parameters
        ----------
        lo, hi : int
        """
        check_block(lo, hi, self.num_states)
        each_action = np.eye(self.num_actions)[np.newaxis]
        mask = self.available[lo:hi] | self.terminal[lo:hi, np.newaxis]
        return self._mixed_rows(lo, hi, each_action, mask)

    def policy_rows(self, lo: int, hi: int, weights: ArrayLike) -> Rows:
        """Return the rows of the states ``lo`` to ``hi - 1`` where a policy draws the actions.

        As `rows` of a model with a single action.

        Parameters
        ----------
        lo, hi : int
        weights : array_like, shape (hi - lo, M)
            Probability of each action, not negative; rows sum to 1.
        """
        check_block(lo, hi, self.num_states)
        table = np.ascontiguousarray(weights, dtype=np.float64)
        if table.shape != (hi - lo, self.num_actions):
            raise ValueError(
                f"weights must have shape ({hi - lo}, {self.num_actions}), got {table.shape}"
            )
        return self._mixed_rows(lo, hi, table[:, np.newaxis], np.ones((hi - lo, 1), dtype=bool))

    def to_tabular(self) -> TabularMDP:
        """Return the same model as a general sparse table."""
        rows = self.rows(0, self.num_states)
        return TabularMDP(
            rows.transitions,
            rows.costs,
            action_mask=rows.action_mask,
            terminal=self.terminal,
            initial=self.initial,
            outcome_costs=rows.outcome_costs,
        )

    def successor_graph(self) -> sp.csr_array:
        """Return which states each state may lead to by an available action, shape (S, S)."""
        indptr = np.concatenate([[0], np.cumsum(self.available.sum(axis=1))])
        successors = self.successors[self.available]
        return sp.csr_array(
            (np.ones(len(successors)), successors, indptr),
            shape=(self.num_states, self.num_states),
        )

    def _check(self) -> None:
        """Check costs, the initial distribution and the bump cost."""
        wrong = self.move_costs != np.inf
        wrong &= ~self.available
        if wrong.any():
            state, move = np.argwhere(wrong)[0]
            raise ValueError(
                f"state {state}, move {move}: cost {self.move_costs[state, move]} must be finite, "
                "or +inf for an unavailable move"
            )
        if not np.isfinite(self.bump_cost):
            raise ValueError(f"bump_cost must be finite, got {self.bump_cost}")
        check_distribution(self.initial)

    def _mixed_rows(
        self, lo: int, hi: int, mixtures: NDArray[np.float64], mask: NDArray[np.bool_]
    ) -> Rows:
        """Return a row for each mixture of actions, shape (hi - lo or 1, R, M), in each state."""
        tables = self.successors[lo:hi], self.move_costs[lo:hi]
        return _mixed_rows(*tables, self.p, self.bump_cost, lo, self.num_states, mixtures, mask)


def rows_of_moves(
    successors: NDArray[np.integer[Any]],
    costs: NDArray[np.float64],
    p: float,
    bump_cost: float,
    lo: int,
    num_states: int,
) -> Rows:
    """Return the moves of a block of B states as general sparse rows, as `MoveMDP.rows` does.

    Parameters
    ----------
    successors : ndarray of int, shape (B, M)
        Of the type of the numbers of states in the rows.
    costs : ndarray of float, shape (B, M)
    p, bump_cost : float
    lo : int
        First state of the block.
    num_states : int
        Of the model.
    """
    available = np.isfinite(costs)
    mask = available | ~_any_move(available)[:, np.newaxis]
    each_action = np.eye(costs.shape[1])[np.newaxis]
    return _mixed_rows(successors, costs, p, bump_cost, lo, num_states, each_action, mask)


def _mixed_rows(
    successors: NDArray[np.integer[Any]],
    move_costs: NDArray[np.float64],
    p: float,
    bump_cost: float,
    lo: int,
    num_states: int,
    mixtures: NDArray[np.float64],
    mask: NDArray[np.bool_],
) -> Rows:
    """Return a row for each mixture of actions, shape (B or 1, R, M), in each state of a block."""
    from aggmaze.models.row_kernels import count_outcomes, list_outcomes

    tables = (readonly(successors), readonly(move_costs), p, bump_cost, lo, readonly(mixtures))
    num_rows = len(move_costs) * mixtures.shape[1]
    indptr = count_outcomes(*tables)
    size = int(indptr[-1])
    # What is kept, and as much again while it becomes a model.
    check_memory(40 * size + 34 * num_rows, f"general sparse rows of {len(move_costs):,} states")
    # scipy keeps both index arrays in one type: 32 bits do unless there are very many.
    indptr = indptr.astype(np.int32 if max(size, num_states) < 2**31 else np.int64)
    outcomes = np.empty(size), np.empty(size, dtype=successors.dtype), np.empty(size)
    costs = np.empty((len(move_costs), mixtures.shape[1]))
    list_outcomes(*tables, *outcomes, costs)
    probabilities, following, outcome_costs = outcomes
    transitions = sp.csr_array((probabilities, following, indptr), shape=(num_rows, num_states))
    return Rows(transitions, costs, mask, outcome_costs)


def slip_weights(p: float, num_moves: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights ``p - b`` of the chosen move and ``b`` of every move, by number available.

    Both have shape (M + 1,): see `MoveMDP.slip_weights`.

    Parameters
    ----------
    p : float
        Probability that the chosen move happens.
    num_moves : int
        Number of moves M.
    """
    chosen = np.ones(num_moves + 1)
    every = np.zeros(num_moves + 1)
    for n in range(2, num_moves + 1):
        every[n] = (1.0 - p) / (n - 1)
        chosen[n] = p - every[n]
    return readonly(chosen), readonly(every)


def _any_move(available: NDArray[np.bool_]) -> NDArray[np.bool_]:
    # Move by move: NumPy's own "any" along short rows takes ten times as long.
    found = available[:, 0].copy()
    for move in range(1, available.shape[1]):
        found |= available[:, move]
    return found


def _idle_cost(costs: NDArray[np.float64], available: NDArray[np.bool_]) -> float:
    largest = 0.0
    with np.errstate(invalid="ignore"):
        for piece in pieces(len(costs)):
            # NaN where unavailable, which counts for nothing; NumPy's "where" takes longer.
            products = costs[piece] * available[piece]
            largest = max(largest, float(np.fmax.reduce(products, axis=None)))
    return largest
