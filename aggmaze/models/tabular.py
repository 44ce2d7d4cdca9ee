"""Markov decision processes as validated sparse tables.

Costs are minimised and ``rewards == -costs``; the discount belongs to the planner, not to the
model.  Models are immutable: their arrays are their own and read-only, so copies share them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, NoReturn, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from aggmaze.arrays import lock, own, readonly
from aggmaze.checks import check_choice, check_positive
from aggmaze.formats.discrete_dp import read_discrete_dp, read_pairs
from aggmaze.formats.endings import Endings, Paid, terminal_states
from aggmaze.formats.functions import (
    CostOutcome,
    Watch,
    explore_function,
    read_batched,
    read_function,
)
from aggmaze.formats.gym_table import Outcome as GymOutcome
from aggmaze.formats.gym_table import read_gym_P
from aggmaze.formats.matrices import priced, read_matrices, read_mdptoolbox
from aggmaze.formats.tables import Word, check_probabilities, table, without_rounding
from aggmaze.models.base import (
    FiniteMDP,
    check_block,
    check_distribution,
    scaled_costs,
    uniform_over,
)
from aggmaze.models.rows import ROW_SUM_TOLERANCE, Rows
from aggmaze.names import Naming, as_names, chances, listed, shown

# States that a message lists before it only counts them.
_MOST_NAMED = 5
# Entries of the transitions that are looked at together.
_ENTRIES_AT_ONCE = 1 << 18
# What to write where a state that leads only to itself has a cost or reward.
_SAY_TERMINAL = (
    "If the episode ends there, mark the state in terminal= and make its {word} 0; to have the "
    "{word} once, let the state lead to one more, of {word} 0. If it goes on for ever, say so by "
    "a terminal= without the state ([] for none)"
)
_SAY_TERMINATED = (
    "If the episode ends there, give None for its actions, or True as the fourth entry of its "
    "outcomes to have the {word} once. If not, give False as the fourth entry"
)
_SAY_TERMINATED_AT_ONCE = (
    "If the episode ends there, let none of its actions have an outcome, or return terminated, the "
    "fourth array, to have the {word} once. If not, return a terminated that is False there"
)
# States that are found by following outcomes, unless more are allowed.
MOST_EXPLORED = 1_000_000

#: A state by its name or index, chances by state, or the distribution, shape (S,).
Initial = ArrayLike | Hashable | Mapping[Any, float]
#: What `TabularMDP.from_function` asks.
StepFunction = Callable[[Any, Any], Iterable[CostOutcome] | None]
#: How many actions there are, or their names, or a function that gives those of a state.
Actions = int | Iterable[Hashable] | Callable[[Any], Iterable[Hashable] | None]


class RowSums(NamedTuple):
    """What the rows of probabilities come to.

    Parameters
    ----------
    error : float
        Largest distance of a sum from 1.
    most_left : float
        Largest sum over next states that are not terminal, of available actions.
    longest : int
        Largest number of entries, of available actions.
    """

    error: float
    most_left: float
    longest: int


@dataclass(frozen=True, eq=False)
class TabularMDP(FiniteMDP):
    """A finite Markov decision process with sparse transitions.

    The model owns its arrays: they are copies, and read-only, so that nothing changes a model once
    it is checked.  Arrays that nobody can write to, such as another model's, are shared.

    Parameters
    ----------
    transitions : sparse array or matrix, shape (S*A, S)
        Row ``s*A + a`` holds the probabilities of the next state after action ``a`` in ``s``.
        A row may list one next state several times.  Probabilities down to -1e-12, which rounding
        makes of 0 (as in ``1 - win - lose``), count as 0.
    costs : array_like, shape (S, A)
        Expected cost of each action.
    action_mask : array_like of bool, shape (S, A), optional
        Which actions are available; all by default.  Every state needs one.  The row of an
        unavailable action may be empty: it then stays in place, at ``max(0, largest cost)``, or
        at no cost where that is all that the available ones do.
    terminal : array_like of bool, shape (S,), or [], optional
        Terminal states: every action leads back to the state and costs nothing; [] for none.  By
        default exactly the states of which that is true.
    initial : array_like, shape (S,), a state, or mapping, optional
        Distribution of the first state; by default uniform over the states that are not terminal.
        A single state, or chances by state, in a mapping; both by name where states have names,
        else by index.
    outcome_costs : array_like, shape (nnz,), optional
        Cost of each stored outcome, aligned with ``transitions.data``, where the outcomes of an
        action cost differently; their mean is ``costs``.
    num_added_states : int
        Trailing states that the model's source does not list (see `from_gym_P`); planners leave
        them out of what they return.
    state_names, action_names : iterable of hashable, optional
        What the states that are listed, and the actions, are called, each differently; kept as
        tuples.  Messages, results and pictures then tell them by name, and ``terminal`` may list
        names instead of booleans.

    Raises
    ------
    ValueError
        If shapes do not fit together.  `validate` checks the contents.
    """

    transitions: sp.csr_array
    costs: NDArray[np.float64]
    action_mask: NDArray[np.bool_]
    terminal: NDArray[np.bool_]
    initial: NDArray[np.float64]
    outcome_costs: NDArray[np.float64] | None
    num_added_states: int
    state_names: tuple[Hashable, ...] | None = None
    action_names: tuple[Hashable, ...] | None = None

    def __init__(
        self,
        transitions: Any,
        costs: ArrayLike,
        *,
        action_mask: ArrayLike | None = None,
        terminal: ArrayLike | Iterable[Hashable] | None = None,
        initial: Initial | None = None,
        outcome_costs: ArrayLike | None = None,
        num_added_states: int = 0,
        state_names: Iterable[Hashable] | None = None,
        action_names: Iterable[Hashable] | None = None,
    ) -> None:
        costs = table(costs, "costs", np.float64)
        if costs.ndim != 2 or 0 in costs.shape:
            raise ValueError(f"costs must have shape (S, A), not empty, got {costs.shape}")
        num_states, num_actions = costs.shape
        rows = (num_states * num_actions, num_states)
        matrix = sp.csr_array(transitions)
        if matrix.shape != rows:
            raise ValueError(
                f"transitions must have shape (S*A, S) = {rows} for {num_states} states and "
                f"{num_actions} actions, got {matrix.shape}"
            )
        mask = np.ones(costs.shape, bool) if action_mask is None else action_mask
        mask = table(mask, "action_mask", np.bool_, costs.shape)
        if outcome_costs is not None:
            outcome_costs = table(outcome_costs, "outcome_costs", np.float64, (matrix.nnz,))
        empty = np.flatnonzero(~mask.reshape(-1) & (np.diff(matrix.indptr) == 0))
        if len(empty):
            matrix, costs, outcome_costs = _with_loops(matrix, costs, mask, outcome_costs, empty)
        # By attribute: the constructor would copy indices to change their type.
        matrix.data = own(without_rounding(matrix.data), np.float64)
        matrix.indices = own(matrix.indices, matrix.indices.dtype)
        matrix.indptr = own(matrix.indptr, matrix.indptr.dtype)
        if not 0 <= num_added_states < num_states:
            raise ValueError(
                f"num_added_states must be in [0, {num_states}), got {num_added_states}"
            )
        num_listed = num_states - num_added_states
        state_names = as_names("state_names", state_names, num_listed)
        action_names = as_names("action_names", action_names, num_actions)
        naming = Naming(state_names, action_names)
        ends = terminal_states(terminal, naming, num_states)
        if ends is None:
            ends = own(_absorbing(matrix, costs), np.bool_)
        if initial is None:
            initial = uniform_over(~ends)
            if num_added_states:
                initial = uniform_over(~ends & (np.arange(num_states) < num_listed))
        initial = chances(initial, state_names, num_listed, num_states)
        initial = table(initial, "initial", np.float64, (num_states,))
        initial = own(without_rounding(initial), np.float64)
        for name, value in (
            ("transitions", matrix),
            ("costs", costs),
            ("action_mask", mask),
            ("terminal", ends),
            ("initial", initial),
            ("outcome_costs", outcome_costs),
            ("num_added_states", int(num_added_states)),
            ("state_names", state_names),
            ("action_names", action_names),
        ):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        added = f" ({self.num_added_states} added)" if self.num_added_states else ""
        states = "" if self.state_names is None else f" ({listed(self.state_names)})"
        actions = "" if self.action_names is None else f" ({listed(self.action_names)})"
        return (
            f"TabularMDP({self.num_states:,} states{states}{added}, "
            f"{self.num_actions} actions{actions}, "
            f"{np.count_nonzero(self.terminal):,} terminal, {self.transitions.nnz:,} transitions)"
        )

    @property
    def num_states(self) -> int:
        """Number of states S."""
        return self.costs.shape[0]

    @property
    def num_actions(self) -> int:
        """Number of actions A."""
        return self.costs.shape[1]

    @property
    def num_listed_states(self) -> int:
        """Number of states that the model's source lists: the first ones, without those added."""
        return self.num_states - self.num_added_states

    @property
    def rewards(self) -> NDArray[np.float64]:
        """Expected reward of each action, the negative of its cost, shape (S, A)."""
        return -self.costs

    @cached_property
    def idle_cost(self) -> float:
        """Cost of a step in place that never pays: ``max(0, largest cost)``, masked ones aside."""
        return max(0.0, float(self.costs.max(where=self.action_mask, initial=0.0)))

    @cached_property
    def row_sums(self) -> RowSums:
        """Sums of the rows, and the length of the longest."""
        from aggmaze.models.row_kernels import row_sums  # which takes long to import

        matrix = self.transitions
        error, most_left, longest = row_sums(
            readonly(matrix.indptr.astype(np.int64)),
            readonly(matrix.indices),
            readonly(matrix.data),
            readonly(self.action_mask),
            readonly(self.terminal),
        )
        return RowSums(float(error), float(most_left), int(longest))

    @cached_property
    def draw(self) -> Callable[..., tuple[int, float, float]]:
        """`sample`, compiled and unchecked: ``draw(model.sampling_tables, state, action, u)``."""
        from aggmaze.models.sampling import sample_entry

        return sample_entry

    @cached_property
    def sampling_tables(self) -> tuple[Any, ...]:
        """What `draw` draws from."""
        from aggmaze.models.sampling import sums_below

        matrix, by_entry = self.transitions, self.outcome_costs is not None
        return (
            matrix.indptr,
            matrix.indices,
            matrix.data,
            readonly(sums_below(matrix.indptr, matrix.data)),
            int(np.diff(matrix.indptr).max() - 1).bit_length(),
            self.costs.reshape(-1) if self.outcome_costs is None else self.outcome_costs,
            self.num_actions,
            by_entry,
        )

    def scaled(self, factor: float) -> TabularMDP:
        """Return the model with every cost multiplied by a positive factor.

        Raises
        ------
        ValueError
            If a cost is too large for float64 then.
        """
        check_positive("factor", factor)
        num_actions, outcome_costs = self.num_actions, self.outcome_costs
        naming = self.naming
        costs = scaled_costs(self.costs.reshape(-1), factor, num_actions, naming=naming)
        if outcome_costs is not None:
            counts = np.diff(self.transitions.indptr)
            rows = np.repeat(np.arange(len(counts)), counts)
            outcome_costs = scaled_costs(
                outcome_costs, factor, num_actions, rows=rows, naming=naming
            )
        return replace(self, costs=costs.reshape(self.costs.shape), outcome_costs=outcome_costs)

    def to_tabular(self) -> TabularMDP:
        """Return this model."""
        return self

    def rows(self, lo: int, hi: int) -> Rows:
        """Return the rows of the states ``lo`` to ``hi - 1``.

        Parameters
        ----------
        lo, hi : int
        """
        check_block(lo, hi, self.num_states)
        num_actions = self.num_actions
        block = self.transitions[lo * num_actions : hi * num_actions]
        if self.outcome_costs is None:
            outcome_costs = np.repeat(self.costs[lo:hi].reshape(-1), np.diff(block.indptr))
        else:
            first, last = self.transitions.indptr[[lo * num_actions, hi * num_actions]]
            outcome_costs = self.outcome_costs[first:last]
        return Rows(block, self.costs[lo:hi], self.action_mask[lo:hi], outcome_costs)

    def successor_graph(self) -> sp.csr_array:
        """Return which states each state may lead to by an available action, shape (S, S)."""
        matrix, num_actions = self.transitions, self.num_actions
        row_of_entry = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        possible = (matrix.data > 0) & self.action_mask.reshape(-1)[row_of_entry]
        counts = np.bincount(row_of_entry[possible] // num_actions, minlength=self.num_states)
        return sp.csr_array(
            (
                matrix.data[possible],
                matrix.indices[possible],
                np.concatenate([[0], np.cumsum(counts)]),
            ),
            shape=(self.num_states, self.num_states),
        )

    def _check(self) -> None:
        """Check probabilities, costs, terminal states and the initial distribution."""
        matrix, num_actions, naming = self.transitions, self.num_actions, self.naming
        if matrix.nnz and not 0 <= matrix.indices.min() <= matrix.indices.max() < self.num_states:
            raise ValueError(f"transitions name a state outside [0, {self.num_states})")

        def row_of_entry() -> NDArray[np.int64]:
            # As long as all entries: only where it is needed.
            return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))

        def describe(row: int) -> str:
            return naming.row(row, num_actions)

        def refuse(row: int, problem: str) -> NoReturn:
            raise ValueError(f"{describe(row)}: {problem}")

        if matrix.nnz and not (matrix.data.min() >= 0 and matrix.data.max() < np.inf):
            check_probabilities(matrix.data, matrix.indices, row_of_entry(), describe, naming)
        available = self.action_mask.reshape(-1)
        if self.row_sums.error > ROW_SUM_TOLERANCE:
            sums = np.bincount(row_of_entry(), weights=matrix.data, minlength=matrix.shape[0])
            row = int(np.argmax(np.abs(sums - 1.0) > ROW_SUM_TOLERANCE))
            refuse(row, f"probabilities sum to {sums[row]}, must sum to 1")
        bad = np.flatnonzero(~np.isfinite(self.costs.reshape(-1)) & available)
        if len(bad):
            refuse(bad[0], f"cost {self.costs.reshape(-1)[bad[0]]} must be finite")
        stuck = np.flatnonzero(~self.action_mask.any(axis=1))
        if len(stuck):
            raise ValueError(f"{naming.state(int(stuck[0]))} has no available action")
        if self.outcome_costs is not None:
            self._check_outcome_costs(row_of_entry(), available, refuse)
        fake = np.flatnonzero(self.terminal & ~_absorbing(matrix, self.costs))
        if len(fake):
            raise ValueError(
                f"{naming.state(int(fake[0]))} is declared terminal, so every action must lead "
                "back to it and neither cost nor pay anything"
            )
        check_distribution(self.initial, naming)

    def _check_outcome_costs(
        self, row_of_entry: NDArray[np.int64], available: NDArray[np.bool_], refuse: Any
    ) -> None:
        assert self.outcome_costs is not None
        bad = np.flatnonzero(~np.isfinite(self.outcome_costs) & available[row_of_entry])
        if len(bad):
            refuse(
                row_of_entry[bad[0]], f"outcome cost {self.outcome_costs[bad[0]]} must be finite"
            )
        weighted = self.transitions.data * np.where(
            available[row_of_entry], self.outcome_costs, 0.0
        )
        means = np.bincount(row_of_entry, weights=weighted, minlength=len(available))
        size = np.bincount(row_of_entry, weights=np.abs(weighted), minlength=len(available))
        costs = np.where(available, self.costs.reshape(-1), 0.0)
        allowed = 1e-9 * size + 1e-9 * np.abs(costs)  # their sum may be beyond float64
        bad = np.flatnonzero(available & (np.abs(means - costs) > allowed))
        if len(bad):
            refuse(bad[0], f"cost {costs[bad[0]]} is not the mean {means[bad[0]]} of its outcomes'")

    @classmethod
    def from_matrices(
        cls,
        P: Any,
        *,
        costs: Any = None,
        rewards: Any = None,
        order: Literal["sas", "ass"] | None = None,
        terminal: ArrayLike | Iterable[Hashable] | None = None,
        initial: Initial | None = None,
        action_mask: ArrayLike | None = None,
        terminal_costs: ArrayLike | Mapping[Any, float] | None = None,
        terminal_rewards: ArrayLike | Mapping[Any, float] | None = None,
        terminal_paid: Paid = "once",
        state_names: Iterable[Hashable] | None = None,
        action_names: Iterable[Hashable] | None = None,
    ) -> TabularMDP:
        """Build a validated model from transition matrices.

        Numbers of any real type will do.  Rows in single or half precision that miss 1 by a few
        roundings, as they must, are divided by their sum; probabilities that rounding has left
        below 0, down to -1e-12 (in less than double precision a few of its roundings), count as 0.

        A reward of -inf, or a cost of +inf, means that the action is unavailable; what its row
        holds does not count.

        Parameters
        ----------
        P : array_like, shape (S, A, S), sequence of A matrices (S, S), or one matrix (S*A, S)
            Matrices are two-dimensional arrays, dense or sparse.  The row of state s and action a
            of one matrix is ``s*A + a``.
        costs, rewards : array_like, shape (S, A) or (S,), or in the form of P
            Exactly one of the two.  (S,) is what each step from a state costs or pays, whatever the
            action.  In the form of P, as an array of three axes, a sequence of matrices or one
            sparse matrix, they are those of each next state; where P has no entry they do not
            count.
        order : {"sas", "ass"}, optional
            Order of the axes: ``"ass"`` for an array (A, S, S) or one matrix with the row
            ``a*S + s``, ``"sas"`` for a sequence of S matrices (A, S).
        terminal, initial, action_mask : array_like, optional
            As for `TabularMDP`.  What ``action_mask`` leaves out is unavailable too.  Rows of
            terminal states may be empty.
        terminal_costs, terminal_rewards : array_like, shape (S,), or mapping, optional
            What it costs, or pays, to end in each terminal state: as an array that is 0 elsewhere,
            or by state, by name where states have names.  The sort that the model has.  Without
            ``terminal`` the states that have some are terminal, and those that nothing leads away
            from.  What P and the costs or rewards hold of terminal states then does not count.
        terminal_paid : {"once", "entering"}
            Whether the terminal state pays, one step after it is entered, so that this is its
            value; or the step that enters it, so that it is not discounted once more.
        state_names, action_names : iterable of hashable, optional
            As for `TabularMDP`.

        Raises
        ------
        ValueError
            If shapes do not fit together, or the model is not valid.

        Warns
        -----
        UserWarning
            Without ``terminal``, of absorbing states whose cost or reward is not 0: they are read
            as having it for ever.  An explicit ``terminal``, [] for none, says that this is meant.
        """
        endings = None
        check_choice("terminal_paid", terminal_paid, ("once", "entering"))
        if terminal_costs is not None or terminal_rewards is not None:
            word, prices, _ = priced(terminal_costs, terminal_rewards, "terminal_")
            endings = Endings(prices, word, terminal_paid)
        tables = read_matrices(
            P,
            costs=costs,
            rewards=rewards,
            order=order,
            action_mask=action_mask,
            terminal=terminal,
            initial=initial,
            state_names=state_names,
            action_names=action_names,
            endings=endings,
        )
        model = cls(**tables).validate()
        if terminal is None and endings is None:
            _warn_of_perpetuities(model, "cost" if rewards is None else "reward", _SAY_TERMINAL)
        return model

    @classmethod
    def from_mdptoolbox(
        cls,
        P: Any,
        R: Any,
        *,
        terminal: ArrayLike | Iterable[Hashable] | None = None,
        initial: Initial | None = None,
        state_names: Iterable[Hashable] | None = None,
        action_names: Iterable[Hashable] | None = None,
    ) -> TabularMDP:
        """Build a validated model from MDPtoolbox's pair.

        Parameters
        ----------
        P : array_like, shape (A, S, S), sequence of A matrices (S, S), or one matrix (S*A, S)
            An array (S, A, S) is recognised by its shape.  One matrix is taken if it means the
            same in both orders of rows, as with a single action.
        R : array_like, shape (S, A) or (S,), or in the form of P
            Rewards; as in `from_matrices`, with -inf where an action is unavailable.
        terminal, initial, state_names, action_names : optional
            As for `TabularMDP`; without ``terminal`` it warns as `from_matrices` does.

        Raises
        ------
        ValueError
            If the model is not valid, or if P is an array with as many actions as states that
            means one thing in the order (A, S, S) and another in the order (S, A, S):
            `from_matrices` is told which.
        """
        tables = read_mdptoolbox(
            P,
            R,
            terminal=terminal,
            initial=initial,
            state_names=state_names,
            action_names=action_names,
        )
        model = cls(**tables).validate()
        if terminal is None:
            _warn_of_perpetuities(model, "reward", _SAY_TERMINAL)
        return model

    @classmethod
    def from_quantecon(
        cls,
        ddp: Any,
        *,
        terminal: ArrayLike | Iterable[Hashable] | None = None,
        initial: Initial | None = None,
        state_names: Iterable[Hashable] | None = None,
        action_names: Iterable[Hashable] | None = None,
    ) -> TabularMDP:
        """Build a validated model from QuantEcon's ``DiscreteDP``, in either of its forms.

        Its ``beta`` is not read: the discount belongs to the planner.

        Parameters
        ----------
        ddp : quantecon.markov.DiscreteDP
            Actions with reward -inf, and pairs that are not listed, are unavailable.
        terminal, initial, state_names, action_names : optional
            As for `TabularMDP`; without ``terminal`` it warns as `from_matrices` does.
        """
        tables = read_discrete_dp(
            ddp,
            terminal=terminal,
            initial=initial,
            state_names=state_names,
            action_names=action_names,
        )
        model = cls(**tables).validate()
        if terminal is None:
            _warn_of_perpetuities(model, "reward", _SAY_TERMINAL)
        return model

    @classmethod
    def from_state_action_pairs(
        cls,
        s_indices: Any,
        a_indices: Any,
        Q: Any,
        *,
        costs: ArrayLike | None = None,
        rewards: ArrayLike | None = None,
        num_actions: int | None = None,
        terminal: ArrayLike | Iterable[Hashable] | None = None,
        initial: Initial | None = None,
        state_names: Iterable[Hashable] | None = None,
        action_names: Iterable[Hashable] | None = None,
    ) -> TabularMDP:
        """Build a validated model from the pairs of state and action that are available.

        The form of QuantEcon's ``DiscreteDP(R, Q, beta, s_indices, a_indices)``, which need not be
        installed.

        Parameters
        ----------
        s_indices, a_indices : array_like of int, or lists of names, shape (L,)
            State and action of each pair, in any order; pairs that are not listed are unavailable.
        Q : array_like or sparse matrix, shape (L, S)
            The probabilities of the next state after each pair.
        costs, rewards : array_like, shape (L,)
            Exactly one of the two: what each pair costs or pays.  A reward of -inf, or a cost of
            +inf, means that the pair is unavailable.
        num_actions : int, optional
            A, by default one more than the largest of ``a_indices``, or as many as there are names.
        terminal, initial, state_names, action_names : optional
            As for `TabularMDP`; without ``terminal`` it warns as `from_matrices` does.  Terminal
            states need not list pairs.

        Raises
        ------
        ValueError
            If shapes do not fit together, a pair is listed twice, or the model is not valid.
        """
        tables = read_pairs(
            s_indices,
            a_indices,
            Q,
            costs=costs,
            rewards=rewards,
            num_actions=num_actions,
            terminal=terminal,
            initial=initial,
            state_names=state_names,
            action_names=action_names,
        )
        model = cls(**tables).validate()
        if terminal is None:
            _warn_of_perpetuities(model, "cost" if rewards is None else "reward", _SAY_TERMINAL)
        return model

    @overload
    @classmethod
    def from_function(
        cls,
        num_states: int,
        num_actions: int,
        fn: StepFunction,
        *,
        rewards: bool = False,
        initial: Initial | None = None,
        progress: Watch | None = None,
    ) -> TabularMDP: ...

    @overload
    @classmethod
    def from_function(
        cls,
        num_states: StepFunction,
        *,
        states: int | Iterable[Hashable],
        actions: Actions,
        rewards: bool = False,
        initial: Initial | None = None,
        progress: Watch | None = None,
    ) -> TabularMDP: ...

    @overload
    @classmethod
    def from_function(
        cls,
        num_states: StepFunction,
        *,
        start: Hashable | Mapping[Any, float],
        actions: Actions,
        rewards: bool = False,
        max_states: int = MOST_EXPLORED,
        progress: Watch | None = None,
    ) -> TabularMDP: ...

    @classmethod
    def from_function(
        cls,
        num_states: Any = None,
        num_actions: Any = None,
        fn: Any = None,
        *,
        states: Any = None,
        actions: Any = None,
        start: Any = None,
        rewards: bool = False,
        initial: Any = None,
        max_states: int = MOST_EXPLORED,
        progress: Watch | None = None,
    ) -> TabularMDP:
        """Build a validated model from a function of state and action.

        Called as ``from_function(num_states, num_actions, fn)``, where states and actions are
        numbers; as ``from_function(fn, states=..., actions=...)``, where they are whatever is
        listed; or as ``from_function(fn, start=..., actions=...)``, which finds the states by
        following outcomes from the first ones, breadth first.

        Parameters
        ----------
        num_states, num_actions : int
            S and A, at least 1.
        fn : callable
            ``fn(state, action)`` gives the outcomes, ``(probability, next_state, cost)`` or
            ``(probability, next_state, cost, terminated)``; None, or none at all, where the action
            is unavailable.  A state without available actions is terminal.  An outcome that
            terminates elsewhere leads to one more state, as in `from_gym_P`.
        states : int, or iterable of hashable
            The states by any names, such as texts or tuples, which the function gets and returns;
            kept as ``state_names``.  A number means 0 to S - 1.
        actions : int, iterable of hashable, or callable
            Likewise, kept as ``action_names``.  ``actions(state)`` lists those available in a
            state, none where it is terminal; they are numbered as they are met.
        start : hashable or mapping
            The first state, or chances by state: the distribution of the first state too.
        rewards : bool
            Whether the third entry of an outcome is a reward; a cost by default.
        initial : array_like, shape (S,), a state, or mapping, optional
            Distribution of the first state, as for `TabularMDP`.
        max_states : int
            With ``start``: refuse to find more.
        progress : callable, optional
            ``progress(done, known)``, called now and then with the number of states that were
            asked for, and of those known by then.

        Raises
        ------
        ValueError
            If what the function gives is no outcome, or the model is not valid; it names the first
            state and action that are wrong.
        TypeError
            If the arguments do not go together.

        Warns
        -----
        UserWarning
            Of absorbing states whose cost is not 0 and whose outcomes do not say that they do not
            terminate, by a fourth entry: they are read as having that cost for ever.
        """
        word = _word(rewards)
        if fn is None and (states is not None or start is not None or callable(num_states)):
            fn, num_states = num_states, None
        states = _one_of("states", "num_states", states, num_states)
        actions = _one_of("actions", "num_actions", actions, num_actions)
        if fn is None or actions is None or (states is None) == (start is None):
            raise TypeError(
                "from_function takes fn, actions= and either states=, all of them, or start=, to "
                "find them from there; or num_states, num_actions, fn"
            )
        if start is None:
            read = read_function(fn, states, actions, word=word, initial=initial, progress=progress)
        elif initial is not None:
            raise TypeError("start says where episodes begin: leave initial out")
        else:
            read = explore_function(
                fn, start, actions, word=word, max_states=max_states, progress=progress
            )
        model = cls(**read.tables).validate()
        _warn_of_perpetuities(model, word, _SAY_TERMINATED, read.unsaid)
        return model

    @classmethod
    def from_batched_function(
        cls,
        num_states: int,
        num_actions: int,
        fn: Callable[[NDArray[np.int64], NDArray[np.int64]], Any],
        *,
        rewards: bool = False,
        initial: Initial | None = None,
        state_names: Iterable[Hashable] | None = None,
        action_names: Iterable[Hashable] | None = None,
        progress: Watch | None = None,
    ) -> TabularMDP:
        """Build a validated model from a function of many states and actions at once.

        Parameters
        ----------
        num_states, num_actions : int
            S and A, at least 1.
        fn : callable
            ``fn(states, actions)`` gets two arrays of N integers and returns arrays
            ``(probabilities, next_states, costs)`` or ``(probabilities, next_states, costs,
            terminated)``.  ``next_states`` has the shape (N, K), or (N,) for one outcome each; the
            others that shape, (N,) for a number an action, or none for a number in all, such as a
            probability 1.0.  What has probability 0 is left out, whatever else is said of it, and
            K may differ from call to call.  An action is unavailable if all its probabilities are
            0 or its cost is +inf (its reward -inf); a state without available actions is terminal.
            N is chosen so that a call takes little memory.
        rewards : bool
            Whether the third array holds rewards; costs by default.
        initial, state_names, action_names : optional
            As for `TabularMDP`.
        progress : callable, optional
            ``progress(done, num_states)``, called after each block of states.

        Raises
        ------
        ValueError
            If what the function returns does not fit together, or the model is not valid.
        MemoryError
            If the model needs more memory than is available, as its first states tell.

        Warns
        -----
        UserWarning
            As `from_function` does, where the function does not return ``terminated``.
        """
        word = _word(rewards)
        naming = Naming(
            as_names("state_names", state_names, num_states),
            as_names("action_names", action_names, num_actions),
        )
        read = read_batched(
            fn,
            num_states,
            num_actions,
            word=word,
            initial=initial,
            naming=naming,
            progress=progress,
        )
        model = cls(**read.tables).validate()
        _warn_of_perpetuities(model, word, _SAY_TERMINATED_AT_ONCE, read.unsaid)
        return model

    @classmethod
    def from_gym_P(  # noqa: N802 (P is the attribute's name)
        cls,
        P: Mapping[Any, Mapping[Any, Sequence[GymOutcome]]]
        | Sequence[Sequence[Sequence[GymOutcome]]],
        *,
        initial: Initial | None = None,
        state_names: Iterable[Hashable] | None = None,
        action_names: Iterable[Hashable] | None = None,
    ) -> TabularMDP:
        """Build a validated model from the table ``P`` of Gymnasium's toy-text environments.

        ``P[s][a]`` lists ``(probability, next_state, reward, terminated)``.  An outcome that
        terminates in a state that is not absorbing at no cost, as in CliffWalking and Taxi, leads
        to one more, absorbing, state, counted in ``num_added_states``.

        Parameters
        ----------
        P : mapping or sequence
            States and actions are numbers from 0; or, in mappings, any names, with which outcomes
            tell their next state.  By names a state may lack actions, which are unavailable there,
            and one without any is terminal.
        initial : array_like, shape (S,), a state, or mapping, optional
            Distribution of the first state, as for `TabularMDP`.
        state_names, action_names : iterable of hashable, optional
            What to call numbers.
        """
        return cls(**read_gym_P(P, initial, state_names, action_names)).validate()


def _word(rewards: Any) -> Word:
    """Return what outcomes hold."""
    if not isinstance(rewards, bool | np.bool_):
        raise TypeError(
            "rewards must be True or False: whether outcomes hold rewards, not costs; got "
            f"{shown(rewards)}"
        )
    return "reward" if rewards else "cost"


def _one_of(name: str, other_name: str, value: Any, other: Any) -> Any:
    """Return an argument that is given by one of its names."""
    if value is not None and other is not None:
        raise TypeError(f"{name} and {other_name} are one: give one of them")
    return other if value is None else value


def _with_loops(
    matrix: sp.csr_array,
    costs: NDArray[np.float64],
    mask: NDArray[np.bool_],
    outcome_costs: NDArray[np.float64] | None,
    rows: NDArray[np.intp],
) -> tuple[sp.csr_array, NDArray[np.float64], NDArray[np.float64] | None]:
    """Fill empty rows of unavailable actions with a step in place that never pays."""
    num_actions = costs.shape[1]
    costs = costs.copy()
    costs.reshape(-1)[rows] = 0.0
    absorbing = _absorbing(matrix, costs)[rows // num_actions]
    prices = np.where(absorbing, 0.0, max(0.0, float(costs.max(where=mask, initial=0.0))))
    places = matrix.indptr[rows]
    added = np.zeros(matrix.shape[0] + 1, dtype=matrix.indptr.dtype)
    added[rows + 1] = 1
    filled = sp.csr_array(
        (
            lock(np.insert(matrix.data.astype(np.float64), places, 1.0)),
            lock(np.insert(matrix.indices, places, rows // num_actions)),
            lock(matrix.indptr + np.cumsum(added, dtype=matrix.indptr.dtype)),
        ),
        shape=matrix.shape,
    )
    costs.reshape(-1)[rows] = prices
    if outcome_costs is not None:
        outcome_costs = lock(np.insert(outcome_costs, places, prices))
    return filled, lock(costs), outcome_costs


def _stays(
    matrix: sp.csr_array, num_actions: int, mask: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_]:
    """Return the states that all actions, or those marked in (S, A), lead back to, shape (S,)."""
    num_states = matrix.shape[1]
    stays = np.ones(num_states, dtype=bool)
    # Piece by piece: numbers of states as long as all entries would be the most that a model takes.
    step = max(1, _ENTRIES_AT_ONCE * num_states // max(matrix.nnz, 1))
    for lo in range(0, num_states, step):
        indptr = matrix.indptr[lo * num_actions : (lo + step) * num_actions + 1]
        part = slice(indptr[0], indptr[-1])
        own_states = np.arange(lo, lo + (len(indptr) - 1) // num_actions)
        state_of_entry = np.repeat(own_states, np.diff(indptr[::num_actions]))
        leaves = (matrix.indices[part] != state_of_entry) & (matrix.data[part] != 0)
        if mask is not None:
            leaves &= np.repeat(mask[lo : lo + step].reshape(-1), np.diff(indptr))
        stays[state_of_entry[leaves]] = False
    return stays


def _absorbing(matrix: sp.csr_array, costs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the states that every action leads back to at no cost, shape (S,)."""
    return _stays(matrix, costs.shape[1]) & (costs == 0).all(axis=1)


def _warn_of_perpetuities(
    model: TabularMDP,
    word: str,
    advice: str,
    counted: NDArray[np.bool_] | None = None,
) -> None:
    """Warn of absorbing states that pay or cost something, which may be meant to be terminal.

    Parameters
    ----------
    model : TabularMDP
        As a reader made it that was not told which states are terminal.
    word : str
        What the reader was given: "cost" or "reward".
    advice : str
        How to tell the reader which of the two is meant; formatted with the word.
    counted : ndarray of bool, shape (S,), optional
        States of which it was not told; all by default.
    """
    stays = _stays(model.transitions, model.num_actions, model.action_mask)
    if stays.all():
        return  # nothing ever moves: there is no episode that could end
    found = stays & ((model.costs != 0) & model.action_mask).any(axis=1)
    if counted is not None:
        found[: len(counted)] &= counted
    states = np.flatnonzero(found)
    if len(states) == 0:
        return
    named = model.naming.list_states(states[:_MOST_NAMED])
    more = f" and {len(states) - _MOST_NAMED} more" if len(states) > _MOST_NAMED else ""
    subject = f"state {named} leads" if len(states) == 1 else f"states {named}{more} lead"
    warnings.warn(
        f"{subject} back only to {'itself' if len(states) == 1 else 'themselves'}, with a {word} "
        f"that counts at every step, for ever. {advice.format(word=word)}",
        stacklevel=3,
    )
