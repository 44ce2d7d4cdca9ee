"""What both kinds of models share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import fields
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.arrays import lock
from aggmaze.checks import check_integer, check_uniform
from aggmaze.formats.discrete_dp import to_quantecon
from aggmaze.formats.gym_table import GymP, to_gym_P
from aggmaze.formats.matrices import to_mdptoolbox
from aggmaze.formats.tables import SupportsRows
from aggmaze.models.rows import ROW_SUM_TOLERANCE, Rows
from aggmaze.names import UNNAMED, Naming, as_names, index_of


class FiniteMDP(ABC):
    """A finite Markov decision process whose arrays are its own and read-only: copies share them.

    The two kinds of models are its subclasses; what they hold is theirs.
    """

    #: What the states that are listed, and the actions, are called, where they have names.
    state_names: tuple[Hashable, ...] | None = None
    action_names: tuple[Hashable, ...] | None = None

    @property
    @abstractmethod
    def num_states(self) -> int:
        """Number of states S."""

    @property
    @abstractmethod
    def num_actions(self) -> int:
        """Number of actions A."""

    @property
    def naming(self) -> Naming:
        """How messages call states and actions: by number, and by name where they have one."""
        return Naming(self.state_names, self.action_names)

    def state_index(self, state: Hashable) -> int:
        """Return the index of a state that is given by its name, or by its index if it has none.

        Raises
        ------
        ValueError, TypeError
            If there is no such state.
        """
        names = as_names("state_names", self.state_names)
        return index_of("state", state, names, self.num_states)

    def action_index(self, action: Hashable) -> int:
        """Return the index of an action that is given by its name, or by its index if it has none.

        Raises
        ------
        ValueError, TypeError
            If there is no such action.
        """
        names = as_names("action_names", self.action_names)
        return index_of("action", action, names, self.num_actions)

    @property
    @abstractmethod
    def draw(self) -> Callable[..., tuple[int, float, float]]:
        """`sample`, compiled and unchecked: ``draw(model.sampling_tables, state, action, u)``."""

    @property
    @abstractmethod
    def sampling_tables(self) -> tuple[Any, ...]:
        """What `draw` draws from."""

    @abstractmethod
    def rows(self, lo: int, hi: int) -> Rows:
        """Return the rows of the states ``lo`` to ``hi - 1``.

        Parameters
        ----------
        lo, hi : int
            At least one state.
        """

    def sample(self, state: int, action: int, uniform: float) -> tuple[int, float, float]:
        """Return the next state, its cost and its probability for a uniform number in [0, 1).

        Of a `TabularMDP` outcomes are taken in the order in which the row stores them.  Of a
        `MoveMDP` the chosen move happens below ``p``; the rest is split evenly over the other
        available moves in order of their index.

        Parameters
        ----------
        state, action : int
        uniform : float

        Raises
        ------
        TypeError
            If the state or the action is not an integer.
        ValueError
            If it is not one of the model, or the number not in [0, 1).
        """
        state = check_integer("state", state, below=self.num_states)
        action = check_integer("action", action, below=self.num_actions)
        check_uniform("uniform", uniform)
        return self.draw(self.sampling_tables, state, action, uniform)

    def to_gym_P(self: SupportsRows) -> GymP:  # noqa: N802 (P is the attribute's name)
        """Return Gymnasium's table ``P``: see `aggmaze.formats.to_gym_P`."""
        return to_gym_P(self)

    def to_mdptoolbox(self: SupportsRows) -> tuple[list[sp.csr_matrix], NDArray[np.float64]]:
        """Return MDPtoolbox's pair ``(P, R)``: see `aggmaze.formats.to_mdptoolbox`."""
        return to_mdptoolbox(self)

    def to_quantecon(self: SupportsRows, gamma: float) -> Any:
        """Return QuantEcon's ``DiscreteDP``: see `aggmaze.formats.to_quantecon`."""
        return to_quantecon(self, gamma)

    def validate(self) -> Self:
        """Check the contents of the model and return it; once is enough, since it can't change.

        Raises
        ------
        ValueError
            Naming the first state and action that are wrong, and what is allowed.
        """
        if not self.__dict__.get("_valid", False):
            self._check()
            object.__setattr__(self, "_valid", True)
        return self

    @abstractmethod
    def _check(self) -> None:
        """Refuse contents that are not valid."""

    def _repr_html_(self) -> str:
        from aggmaze.models.cards import model_html  # which imports the kinds of models

        return model_html(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Unpickled arrays can be written to.
        for value in state.values():
            is_matrix = isinstance(value, sp.csr_array)
            for part in (value.data, value.indices, value.indptr) if is_matrix else (value,):
                if isinstance(part, np.ndarray):
                    lock(part)
        self.__dict__.update(state)


def uniform_over(states: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the uniform distribution over the marked states, or over all if none is marked."""
    chosen = states if states.any() else np.ones_like(states)
    return chosen / np.count_nonzero(chosen)


def check_distribution(initial: NDArray[np.float64], naming: Naming = UNNAMED) -> None:
    """Refuse an initial distribution that is none, naming the first bad entry.

    Parameters
    ----------
    initial : ndarray of float, shape (S,)
    naming : Naming
        What states are called.
    """
    if not (initial.min() >= 0 and initial.max() < np.inf):
        bad = np.flatnonzero(~np.isfinite(initial) | (initial < 0))
        where = "" if naming.states is None else f" of {naming.state(int(bad[0]))}"
        raise ValueError(
            f"initial[{bad[0]}] = {initial[bad[0]]}{where} must be a finite number, not negative"
        )
    if abs(initial.sum() - 1.0) > ROW_SUM_TOLERANCE:
        raise ValueError(f"initial sums to {initial.sum()}, must sum to 1")


def check_block(lo: int, hi: int, num_states: int, *, name: str = "rows") -> None:
    """Refuse a block of states that is not within the model, or has none.

    Parameters
    ----------
    lo, hi : int
        First state, and the one behind the last.
    num_states : int
    name : str
        What errors call the method that was asked.
    """
    if not 0 <= lo < hi <= num_states:
        raise ValueError(f"{name}({lo}, {hi}) must satisfy 0 <= lo < hi <= {num_states}")


def scaled_costs(
    costs: NDArray[np.float64],
    factor: float,
    width: int,
    *,
    rows: NDArray[np.integer[Any]] | None = None,
    choice: str = "action",
    naming: Naming = UNNAMED,
) -> NDArray[np.float64]:
    """Return costs times a factor, and refuse one that becomes infinite.

    Parameters
    ----------
    costs : ndarray of float, shape (N,)
        Infinite ones, which stand where nothing is available, may stay so.
    factor : float
    width, choice : int, str
        Number of choices in a state, and what they are called.
    naming : Naming
        What states and actions are called.
    rows : ndarray of int, shape (N,), optional
        ``s * width + k`` for a cost of choice ``k`` in state ``s``; by default one each, in order.
    """
    with np.errstate(over="ignore"):
        scaled = float(factor) * costs
    lost = np.flatnonzero(np.isfinite(costs) & ~np.isfinite(scaled))
    if len(lost):
        state, number = divmod(int(lost[0] if rows is None else rows[lost[0]]), width)
        raise ValueError(
            f"{naming.state(state)}, {naming.action(number, choice)}: cost {costs[lost[0]]} times "
            f"factor {factor} is too large for float64"
        )
    return lock(scaled)
