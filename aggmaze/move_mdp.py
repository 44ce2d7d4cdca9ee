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

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_positive, is_real
from aggmaze.mdp import (
    Immutable,
    Rows,
    TabularMDP,
    check_block,
    check_distribution,
    readonly,
    uniform_over,
)

# Entries of a dense block while rows are expanded; bounds the memory of `rows`.
_BLOCK_ENTRIES = 2**22


@dataclass(frozen=True, eq=False)
class MoveMDP(Immutable):
    """A model given by moves, their costs, and the probability that the chosen one happens.

    A state without available moves is terminal: it costs nothing and has value 0.

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
        costs = readonly(np.ascontiguousarray(move_costs, dtype=np.float64))
        if costs.ndim != 2 or 0 in costs.shape:
            raise ValueError(f"move_costs must have shape (S, M), not empty, got {costs.shape}")
        table = np.asarray(successors)
        if table.shape != costs.shape or not np.issubdtype(table.dtype, np.integer):
            raise ValueError(
                f"successors must hold integers of the shape {costs.shape} of move_costs, got "
                f"{table.dtype} of shape {table.shape}"
            )
        available = np.isfinite(costs)
        bad = np.argwhere(((table < 0) | (table >= len(costs))) & available)
        if len(bad):
            state, move = bad[0]
            raise ValueError(
                f"state {state}, move {move}: successor {table[state, move]} is not in "
                f"[0, {len(costs)})"
            )
        if not is_real(p) or not 0.0 < p <= 1.0:
            raise ValueError(f"p must be in (0, 1], got {p!r}")
        if initial is None:
            initial = uniform_over(available.any(axis=1))
        distribution = readonly(np.ascontiguousarray(initial, dtype=np.float64))
        if distribution.shape != (len(costs),):
            raise ValueError(f"initial must have shape ({len(costs)},), got {distribution.shape}")
        if bump_cost is None:
            bump_cost = max(0.0, float(costs.max(where=available, initial=0.0)))
        # Kernels read the successors of unavailable moves too, without use of what they read.
        if not available.all():
            own = np.arange(len(costs))[:, np.newaxis]
            table = np.where((table >= 0) & (table < len(costs)), table, own)
        object.__setattr__(
            self, "successors", readonly(np.ascontiguousarray(table, dtype=np.int32))
        )
        object.__setattr__(self, "move_costs", costs)
        object.__setattr__(self, "p", float(p))
        object.__setattr__(self, "initial", distribution)
        object.__setattr__(self, "bump_cost", float(bump_cost))

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

    @cached_property
    def available(self) -> NDArray[np.bool_]:
        """Which moves can be made, shape (S, M)."""
        return readonly(np.isfinite(self.move_costs))

    @cached_property
    def terminal(self) -> NDArray[np.bool_]:
        """States without a move, shape (S,)."""
        return readonly(np.asarray(~self.available.any(axis=1)))

    @property
    def action_mask(self) -> NDArray[np.bool_]:
        """Which actions may be chosen, shape (S, M): available moves; all in terminal states."""
        return self.available | self.terminal[:, np.newaxis]

    @cached_property
    def slip_weights(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weights ``p - b`` of the chosen move and ``b`` of every move, by number available.

        Both have shape (M + 1,): ``Q_m = chosen[n] * q_m + every[n] * sum(q)``.
        """
        chosen = np.ones(self.num_actions + 1)
        every = np.zeros(self.num_actions + 1)
        for n in range(2, self.num_actions + 1):
            every[n] = (1.0 - self.p) / (n - 1)
            chosen[n] = self.p - every[n]
        return readonly(chosen), readonly(every)

    def scaled(self, factor: float) -> MoveMDP:
        """Return the model with every cost multiplied by a positive factor."""
        check_positive("factor", factor)
        return replace(self, move_costs=factor * self.move_costs, bump_cost=factor * self.bump_cost)

    def sample(self, state: int, action: int, uniform: float) -> tuple[int, float, float]:
        """Return the next state, its cost and its probability for a uniform number in [0, 1).

        Below ``p`` the chosen move happens; the rest is split evenly over the other available
        moves in order of their index.
        """
        move, probability = _sample_move(self.move_costs, self.p, state, action, uniform)
        if move >= 0:
            return (
                int(self.successors[state, move]),
                float(self.move_costs[state, move]),
                probability,
            )
        return state, 0.0 if self.terminal[state] else self.bump_cost, 1.0

    def rows(self, lo: int, hi: int) -> Rows:
        """Return the rows of the states ``lo`` to ``hi - 1`` as general sparse rows."""
        check_block(lo, hi, self.num_states)
        step = max(1, _BLOCK_ENTRIES // self.num_actions**2)
        blocks = [self._rows(a, min(a + step, hi)) for a in range(lo, hi, step)]
        if len(blocks) == 1:
            return blocks[0]
        return Rows(
            sp.vstack([block.transitions for block in blocks], format="csr"),
            np.concatenate([block.costs for block in blocks]),
            np.concatenate([block.action_mask for block in blocks]),
            np.concatenate([block.outcome_costs for block in blocks]),
        )

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
        bad = np.argwhere(~self.available & (self.move_costs != np.inf))
        if len(bad):
            state, move = bad[0]
            raise ValueError(
                f"state {state}, move {move}: cost {self.move_costs[state, move]} must be finite, "
                "or +inf for an unavailable move"
            )
        if not np.isfinite(self.bump_cost):
            raise ValueError(f"bump_cost must be finite, got {self.bump_cost}")
        check_distribution(self.initial)

    def _rows(self, lo: int, hi: int) -> Rows:
        num_states, num_moves = hi - lo, self.num_actions
        available, terminal = self.available[lo:hi], self.terminal[lo:hi]
        chosen, every = (weights[available.sum(axis=1)] for weights in self.slip_weights)
        # Axes: state, chosen action, move that happens.
        probabilities = np.zeros((num_states, num_moves, num_moves))
        probabilities += (every[:, np.newaxis] * available)[:, np.newaxis, :]
        moves = np.arange(num_moves)
        probabilities[:, moves, moves] += chosen[:, np.newaxis]
        stays = ~available
        probabilities[stays] = 0.0
        probabilities[:, moves, moves] = np.where(stays, 1.0, probabilities[:, moves, moves])
        successors = np.broadcast_to(self.successors[lo:hi, np.newaxis, :], probabilities.shape)
        outcome_costs = np.broadcast_to(self.move_costs[lo:hi, np.newaxis, :], probabilities.shape)
        here = np.arange(lo, hi, dtype=np.int32)[:, np.newaxis, np.newaxis]
        bump = np.where(terminal, 0.0, self.bump_cost)[:, np.newaxis, np.newaxis]
        successors = np.where(stays[:, :, np.newaxis], here, successors)
        outcome_costs = np.where(stays[:, :, np.newaxis], bump, outcome_costs)
        occurs = probabilities > 0.0
        indptr = np.concatenate([[0], np.cumsum(occurs.sum(axis=2))])
        weighted = np.zeros(probabilities.shape)
        np.multiply(probabilities, outcome_costs, out=weighted, where=occurs)
        transitions = sp.csr_array(
            (probabilities[occurs], successors[occurs], indptr),
            shape=(num_states * num_moves, self.num_states),
        )
        return Rows(
            transitions,
            weighted.sum(axis=2),
            available | terminal[:, np.newaxis],
            outcome_costs[occurs],
        )


@njit(cache=True)
def _sample_move(move_costs, p, state, action, uniform):  # type: ignore[no-untyped-def]
    """Return the move that happens and its probability, or -1 where the state is kept."""
    if not move_costs[state, action] < np.inf:
        return -1, 1.0
    others = 0
    for move in range(move_costs.shape[1]):
        others += move != action and move_costs[state, move] < np.inf
    if others == 0:
        return action, 1.0
    if uniform < p:
        return action, p
    skip = min(int((uniform - p) / (1.0 - p) * others), others - 1)
    happening = action
    for move in range(move_costs.shape[1]):
        if move != action and move_costs[state, move] < np.inf:
            if skip == 0:
                happening = move
            skip -= 1
    return happening, (1.0 - p) / others
