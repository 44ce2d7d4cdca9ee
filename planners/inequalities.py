"""Inequalities between V and its backups, verified row by row, rounding included.

Undiscounted costs are certified by a V that satisfies an inequality in every state, for all actions
or for those of a policy (docs/certificate.md).  Here is who looks: in difference form,

    x(s,a) = c(s,a) + sum_s' P(s'|s,a) (V(s') - V(s)) - drift(s),

with the rows of P divided by their sums, so that rows that miss 1 by rounding are no leak, and what
is equal cancels.  Rows that are 0 within rounding are computed anew in fractions, if they are few.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aggmaze.arrays import readonly
from aggmaze.models.model import TableModel
from aggmaze.models.moves import MoveMDP
from planners.bellman import no_limit
from planners.kernels import differences
from planners.kernels.tables import Moves, Outcomes, moves_of, outcomes_of
from planners.kernels.threads import over_blocks

# Rows that are computed anew in fractions, at most.
_MOST_EXACT = 10_000


class Verdict(NamedTuple):
    """What a sweep found.

    Parameters
    ----------
    value : float
        The extreme of x, rounded to the safe side; NaN where something is no number.
    state : int
        Where it is; -1 where there is nothing to look at, and the value is infinite.
    """

    value: float
    state: int


class Best(NamedTuple):
    """What a sweep found that compared the actions of each state.

    Parameters
    ----------
    least : Verdict
        As `Inequalities.least` returns it.
    actions : ndarray of int32, shape (S,)
        The first action that has the least x, as computed; 0 where none counts.
    most : float
        A number that no x of these actions is above.
    """

    least: Verdict
    actions: NDArray[np.int32]
    most: float


class _Kernels(NamedTuple):
    """The kernels of a layout, as `planners.kernels.differences` describes them."""

    least: Callable[..., Any]
    most: Callable[..., Any]
    doubtful: Callable[..., Any]


_MOVES = _Kernels(differences.least_of_moves, differences.most_of_moves, differences.doubtful_moves)
_OUTCOMES = _Kernels(
    differences.least_of_outcomes, differences.most_of_outcomes, differences.doubtful_outcomes
)


class Inequalities:
    """The sweeps in difference form of a model.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    num_threads : int
    checkpoint : callable
        What long loops call now and then.
    """

    def __init__(
        self,
        model: TableModel,
        num_threads: int = 1,
        checkpoint: Callable[[], None] = no_limit,
    ) -> None:
        self.model = model
        self._num_threads, self._checkpoint = num_threads, checkpoint
        self._tables: Moves | Outcomes
        if isinstance(model, MoveMDP):
            self._tables, self._kernels = moves_of(model), _MOVES
            self._work = self._tables.successors.size
        else:
            self._tables, self._kernels = outcomes_of(model), _OUTCOMES
            self._work = len(self._tables.indices)

    @property
    def available(self) -> NDArray[np.bool_]:
        """The available actions of states that are not terminal, shape (S, A)."""
        return self.model.action_mask & ~self.model.terminal[:, np.newaxis]

    def least(
        self,
        V: NDArray[np.float64],
        drift: NDArray[np.float64] | float = 0.0,
        *,
        usable: NDArray[np.bool_] | None = None,
        with_costs: bool = True,
    ) -> Verdict:
        """Return a number that no x(s,a) is below.

        Parameters
        ----------
        V : ndarray of float, shape (S,)
        drift : ndarray of float, shape (S,), or float
        usable : ndarray of bool, shape (S, A), optional
            The actions that count; by default the available ones of states that are not terminal.
        with_costs : bool
            Whether costs count, or are 0.
        """
        mask = self.available if usable is None else usable
        return self._least(V, drift, mask, with_costs)[0]

    def best(self, V: NDArray[np.float64], *, usable: NDArray[np.bool_] | None = None) -> Best:
        """Return what `least` does, the best action of each state, and what these come to.

        Parameters
        ----------
        V, usable
            As for `least`.
        """
        mask = self.available if usable is None else usable
        actions = np.empty(self.model.num_states, dtype=np.int32)
        least, most = self._least(V, 0.0, mask, True, actions)
        return Best(least, actions, most)

    def most(
        self,
        policy: NDArray[np.integer[Any]],
        V: NDArray[np.float64],
        drift: NDArray[np.float64] | float = 0.0,
        *,
        with_costs: bool = True,
    ) -> Verdict:
        """Return a number that no x(s, policy[s]) is above.

        Parameters
        ----------
        policy : ndarray of int, shape (S,)
            Negative in states that do not count.
        V, drift, with_costs
            As for `least`.
        """
        chosen = readonly(np.asarray(policy, dtype=np.int64))
        value, state = self._most(chosen, V, drift, with_costs, None)
        if value > 0.0:
            mask = np.zeros((self.model.num_states, self.model.num_actions), dtype=bool)
            states = np.flatnonzero(chosen >= 0)
            mask[states, chosen[states]] = True
            if self._exactly(V, drift, mask, with_costs, -1.0):
                return Verdict(0.0, state)
        return Verdict(value, state)

    def backup(
        self,
        V: NDArray[np.float64],
        drift: NDArray[np.float64] | float = 0.0,
        *,
        usable: NDArray[np.bool_] | None = None,
        with_costs: bool = True,
    ) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Return the least x of each state, as computed, and the first action that attains it.

        Parameters
        ----------
        V, drift, usable, with_costs
            As for `least`.

        Returns
        -------
        least : ndarray of float, shape (S,)
            +inf where no action counts.
        actions : ndarray of int32, shape (S,)
        """
        mask = self.available if usable is None else usable
        out = np.empty(self.model.num_states)
        actions = np.empty(self.model.num_states, dtype=np.int32)
        self._sweep(self._kernels.least, mask, with_costs, V, drift, out, actions)
        return out, actions

    def policy_backup(
        self,
        policy: NDArray[np.integer[Any]],
        V: NDArray[np.float64],
        drift: NDArray[np.float64] | float = 0.0,
        *,
        with_costs: bool = True,
    ) -> NDArray[np.float64]:
        """Return x(s, policy[s]) of each state, as computed, shape (S,); 0 where it is negative.

        Parameters
        ----------
        policy, V, drift, with_costs
            As for `most`.
        """
        out = np.zeros(self.model.num_states)
        self._most(readonly(np.asarray(policy, dtype=np.int64)), V, drift, with_costs, out)
        return out

    def _least(
        self,
        V: NDArray[np.float64],
        drift: NDArray[np.float64] | float,
        mask: NDArray[np.bool_],
        with_costs: bool,
        actions: NDArray[np.int32] | None = None,
    ) -> tuple[Verdict, float]:
        """Return what `least` does, and what no best action of a state is above."""
        found = self._sweep(self._kernels.least, mask, with_costs, V, drift, None, actions)
        # The first of equal ones, so that threads change nothing.
        value, state, _ = min(found, key=lambda one: -math.inf if math.isnan(one[0]) else one[0])
        most = max(math.inf if math.isnan(one[2]) else one[2] for one in found)
        if value < 0.0 and self._exactly(V, drift, mask, with_costs, 1.0):
            value = 0.0
        return Verdict(value, state), most

    def _most(
        self,
        policy: NDArray[np.int64],
        V: NDArray[np.float64],
        drift: NDArray[np.float64] | float,
        with_costs: bool,
        out: NDArray[np.float64] | None,
    ) -> tuple[float, int]:
        found = self._sweep(self._kernels.most, policy, with_costs, V, drift, out)
        return max(found, key=lambda one: math.inf if math.isnan(one[0]) else one[0])

    def _sweep(
        self,
        kernel: Callable[..., Any],
        chosen: NDArray[Any],
        with_costs: bool,
        V: NDArray[np.float64],
        drift: NDArray[np.float64] | float,
        *outs: NDArray[Any] | None,
    ) -> list[Any]:
        """Return what a kernel finds of the chosen actions, block by block."""
        self._checkpoint()
        arguments = (readonly(chosen), with_costs, readonly(V), *_split(drift), *outs)
        return over_blocks(
            lambda lo, hi: kernel(self._tables, *arguments, lo, hi),
            self.model.num_states,
            self._num_threads,
            self._work,
        )

    def _exactly(
        self,
        V: NDArray[np.float64],
        drift: NDArray[np.float64] | float,
        mask: NDArray[np.bool_],
        with_costs: bool,
        sign: float,
    ) -> bool:
        """Whether no ``sign`` x is negative: where rounding may hide it, by fractions."""
        array, level = _split(drift)
        rows = np.empty(_MOST_EXACT, dtype=np.int64)
        count = self._kernels.doubtful(
            self._tables, readonly(mask), with_costs, readonly(V), array, level, sign, rows
        )
        if not 0 <= count <= len(rows):
            return False
        for state, action in zip(*np.divmod(rows[:count], mask.shape[1]), strict=True):
            self._checkpoint()
            there = level if array is None else float(array[state])
            x = exact_row(self.model, int(state), int(action), V, there, with_costs)
            # Not a product with the sign, which would be a float, and might be 0.
            if (x < 0) if sign > 0 else (x > 0):
                return False
        return True


def exact_row(
    model: TableModel,
    state: int,
    action: int,
    V: NDArray[np.float64],
    drift: float = 0.0,
    with_costs: bool = True,
) -> Fraction:
    """Return x(s,a) in exact arithmetic.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    state, action : int
    V : ndarray of float, shape (S,)
        Finite in the state and all that the row lists.
    drift : float
    with_costs : bool
    """
    here = Fraction(float(V[state]))

    def step(following: int) -> Fraction:
        return Fraction(float(V[following])) - here

    if isinstance(model, MoveMDP):
        available = np.flatnonzero(model.action_mask[state])
        p = Fraction(model.p) if len(available) > 1 else Fraction(1)
        slip = (1 - p) / (len(available) - 1) if len(available) > 1 else Fraction(0)
        total = Fraction(0)
        for move in available:
            cost = Fraction(float(model.move_costs[state, move])) if with_costs else Fraction(0)
            share = p if move == action else slip
            total += share * (cost + step(int(model.successors[state, move])))
        return total - Fraction(drift)
    matrix = model.transitions
    row = state * model.num_actions + action
    entries = range(int(matrix.indptr[row]), int(matrix.indptr[row + 1]))
    shares = [Fraction(float(matrix.data[entry])) for entry in entries]
    steps = [
        share * step(int(matrix.indices[entry]))
        for share, entry in zip(shares, entries, strict=True)
        if share
    ]
    cost = Fraction(float(model.costs[state, action])) if with_costs else Fraction(0)
    return cost + sum(steps, Fraction(0)) / sum(shares) - Fraction(drift)


def _split(
    drift: NDArray[np.float64] | float,
) -> tuple[NDArray[np.float64] | None, float]:
    """Return an array or None, and the number that stands for it."""
    if isinstance(drift, np.ndarray):
        return readonly(drift), 0.0
    return None, float(drift)
