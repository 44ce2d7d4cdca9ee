"""Models by rows: any block of states on its own, so that nobody need hold a whole model.

A model of moves (`aggmaze.models.moves`) is told by `MoveRowModel.moves`, any other by
`TableRowModel.rows`.  The numbers of states have 64 bits in both.  What is held whole is one of
these too: `as_row_model`.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from aggmaze.arrays import lock, pieces
from aggmaze.models.base import check_block
from aggmaze.models.events import EventMDP
from aggmaze.models.moves import MoveMDP
from aggmaze.models.rows import Rows
from aggmaze.models.tabular import TabularMDP
from aggmaze.summary import in_one_line


@dataclass(frozen=True, eq=False)
class MoveBlock:
    """The moves of a block of B states; what holds them becomes read-only.

    Parameters
    ----------
    successors : ndarray of int64, shape (B, M)
        Where each move leads, as numbers of states of the whole model; some state of the model
        where the move is unavailable.
    costs : ndarray of float, shape (B, M)
        +inf where the move is unavailable.  A state without a move is terminal.
    """

    successors: NDArray[np.int64]
    costs: NDArray[np.float64]

    def __post_init__(self) -> None:
        lock(self.successors)
        lock(self.costs)

    __repr__ = in_one_line


class MoveRowModel(Protocol):
    """A model of moves that may slip, as `MoveMDP`, of which any block can be had alone."""

    @property
    def num_states(self) -> int:
        """Number of states S."""

    @property
    def num_actions(self) -> int:
        """Number of actions, equal to the number of moves M."""

    @property
    def p(self) -> float:
        """Probability that the chosen move happens."""

    @property
    def key(self) -> str:
        """Names the model: equal models have equal keys, on any machine, others differ.

        Where episodes start does not count: no value depends on it.
        """

    def moves(self, lo: int, hi: int) -> MoveBlock:
        """Return the moves of the states ``lo`` to ``hi - 1``.

        Parameters
        ----------
        lo, hi : int
            At least one state.
        """


class TableRowModel(Protocol):
    """A general sparse model, as `TabularMDP`, of which any block can be had alone."""

    @property
    def num_states(self) -> int:
        """Number of states S."""

    @property
    def num_actions(self) -> int:
        """Number of actions A."""

    @property
    def key(self) -> str:
        """Names the model, as `MoveRowModel.key` does."""

    def rows(self, lo: int, hi: int) -> Rows:
        """Return the rows of the states ``lo`` to ``hi - 1``.

        Numbers of states, and of entries, have 64 bits where 32 do not hold them.

        Parameters
        ----------
        lo, hi : int
            At least one state.
        """

    def terminal(self, lo: int, hi: int) -> NDArray[np.bool_]:
        """Return which of the states ``lo`` to ``hi - 1`` are terminal, shape (hi - lo,).

        Parameters
        ----------
        lo, hi : int
            At least one state.
        """


#: A model of which any block can be had alone.
RowModel = MoveRowModel | TableRowModel


def tells_moves(model: RowModel) -> bool:
    """Return whether a model by rows is a `MoveRowModel`, rather than a `TableRowModel`."""
    return hasattr(type(model), "moves")


def as_row_model(source: Any) -> RowModel:
    """Return a model by rows: the very same if it is one, else one that slices what is held whole.

    Parameters
    ----------
    source : MoveRowModel, TableRowModel, MoveMDP, TabularMDP, or what has ``transition_model()``
        Environments are asked without their wrappers: ``env.unwrapped``, or what
        `planners.as_model` makes of one.

    Raises
    ------
    ValueError
        If the model is not valid.
    TypeError
        If it is none of these.  An `EventMDP` makes its rows from functions, which have no name
        that is the same on every machine: ``model.to_tabular()`` has one.
    """
    if isinstance(source, MoveMDP):
        return HeldMoves(source.validate())
    if isinstance(source, TabularMDP):
        return HeldTable(source.validate())
    if isinstance(source, EventMDP):
        raise TypeError(
            "an EventMDP makes its rows from functions, which have no name that is the same on "
            "every machine; give model.to_tabular(), or write it with aggmaze.save_rows"
        )
    kind = type(source)
    tells_blocks = hasattr(kind, "moves") or hasattr(kind, "rows")
    # Statically: a key may take long to find.
    if tells_blocks and inspect.getattr_static(source, "key", None) is not None:
        model: RowModel = source
        return model
    if hasattr(kind, "transition_model"):
        return as_row_model(source.transition_model())
    raise TypeError(
        "expected a model by rows, a MoveMDP, a TabularMDP or an environment with "
        f"transition_model() and no wrapper around it (env.unwrapped), got {kind.__name__}"
    )


@dataclass(frozen=True, eq=False)
class HeldMoves:
    """A `MoveMDP` as a `MoveRowModel`.

    Parameters
    ----------
    model : MoveMDP
    """

    model: MoveMDP

    @property
    def num_states(self) -> int:
        """Number of states S."""
        return self.model.num_states

    @property
    def num_actions(self) -> int:
        """Number of actions, equal to the number of moves M."""
        return self.model.num_actions

    @property
    def p(self) -> float:
        """Probability that the chosen move happens."""
        return self.model.p

    @cached_property
    def key(self) -> str:
        """Names the model, as `MoveRowModel.key` says: a digest of its arrays."""
        model = self.model
        return digest_of(
            f"moves {model.num_states} {model.num_actions} {model.p.hex()}",
            (model.successors, model.move_costs),
        )

    def moves(self, lo: int, hi: int) -> MoveBlock:
        """Return the moves of the states ``lo`` to ``hi - 1``.

        Parameters
        ----------
        lo, hi : int
        """
        check_block(lo, hi, self.num_states, name="moves")
        successors = self.model.successors[lo:hi].astype(np.int64)
        return MoveBlock(successors, self.model.move_costs[lo:hi])


@dataclass(frozen=True, eq=False)
class HeldTable:
    """A `TabularMDP` as a `TableRowModel`.

    Parameters
    ----------
    model : TabularMDP
    """

    model: TabularMDP

    @property
    def num_states(self) -> int:
        """Number of states S."""
        return self.model.num_states

    @property
    def num_actions(self) -> int:
        """Number of actions A."""
        return self.model.num_actions

    @cached_property
    def key(self) -> str:
        """Names the model, as `MoveRowModel.key` says: a digest of its arrays."""
        model = self.model
        matrix = model.transitions
        return digest_of(
            table_text(model.num_states, model.num_actions),
            (
                matrix.data,
                matrix.indices.astype(np.int64, copy=False),
                matrix.indptr.astype(np.int64, copy=False),
                model.costs,
                model.action_mask,
                model.terminal,
            ),
        )

    def rows(self, lo: int, hi: int) -> Rows:
        """Return the rows of the states ``lo`` to ``hi - 1``.

        Parameters
        ----------
        lo, hi : int
        """
        return self.model.rows(lo, hi)

    def terminal(self, lo: int, hi: int) -> NDArray[np.bool_]:
        """Return which of the states ``lo`` to ``hi - 1`` are terminal, shape (hi - lo,).

        Parameters
        ----------
        lo, hi : int
        """
        check_block(lo, hi, self.num_states, name="terminal")
        return self.model.terminal[lo:hi]


class Digest:
    """What tells models apart: 32 hexadecimal digits of a text and of what arrays hold.

    The same on machines of either byte order, and however arrays are cut into pieces.

    Parameters
    ----------
    text : str
    """

    def __init__(self, text: str) -> None:
        self._total = hashlib.sha256(text.encode())

    def begin(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        """Begin with another array.

        Parameters
        ----------
        dtype : numpy.dtype
        shape : tuple of int
        """
        self._total.update(f"{dtype.name} {shape}".encode())

    def add(self, piece: NDArray[Any]) -> None:
        """Add a piece of the array, in C order."""
        # Equal numbers have equal bytes: -0.0 becomes 0.0.
        piece = piece + 0.0 if piece.dtype.kind == "f" else piece
        self._total.update(piece.astype(piece.dtype.newbyteorder("<"), copy=False).tobytes())

    def digits(self) -> str:
        """Return the digits of what was added so far."""
        return self._total.hexdigest()[:32]


def digest_of(text: str, arrays: Iterable[NDArray[Any]] = ()) -> str:
    """Return the `Digest` of a text and arrays.

    Parameters
    ----------
    text : str
    arrays : iterable of ndarray
        In C order.
    """
    total = Digest(text)
    for array in arrays:
        total.begin(array.dtype, array.shape)
        for piece in pieces(len(array)):
            total.add(array[piece])
    return total.digits()


def table_text(num_states: int, num_actions: int) -> str:
    """Return what the digest of a general sparse model begins with.

    Parameters
    ----------
    num_states, num_actions : int
    """
    return f"table {num_states} {num_actions}"
