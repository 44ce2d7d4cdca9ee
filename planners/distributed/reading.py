"""The tables of a part, read from a model by rows in blocks, with local numbers of states.

The states of the part come first, by their order; behind them its ghosts, the states of other parts
that its rows lead to, by theirs.  Nothing here is over all states, and no array over the part is
made of the wide numbers that models tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from aggmaze.arrays import readonly
from aggmaze.checks import check_chance
from aggmaze.memory import check_memory
from aggmaze.models.moves import slip_weights
from aggmaze.models.row_checks import check_moves, check_rows
from aggmaze.models.row_models import MoveRowModel, TableRowModel
from planners.distributed.partition import blocks, check_near
from planners.kernels.tables import Moves, Outcomes, count_rows

_Number = TypeVar("_Number", bound=np.generic)

#: Of each state, beside its rows: V, the next V, that with ghosts, the values of the result, what
# is read of a policy, and flags.
BYTES_A_STATE = 44
_BYTES_AN_ENTRY = 12


@dataclass(frozen=True)
class LocalMoves:
    """The moves of a part.

    Parameters
    ----------
    tables : Moves
        Successors by local numbers; unavailable moves stay in place.
    terminal : ndarray of bool, shape (S,)
    ghosts : ndarray of int64, shape (G,)
        The numbers of the ghosts in the model.
    """

    tables: Moves
    terminal: NDArray[np.bool_]
    ghosts: NDArray[np.int64]


@dataclass(frozen=True)
class LocalOutcomes:
    """The rows of a part of a general sparse model.

    Parameters
    ----------
    tables : Outcomes
        Next states by local numbers.
    ghosts : ndarray of int64, shape (G,)
        The numbers of the ghosts in the model.
    """

    tables: Outcomes
    ghosts: NDArray[np.int64]


class _Numbering:
    """Gives local numbers to states of the model, block by block.

    Those of ghosts are settled at last: until then each block has numbers of its own for them, so
    that no more need be kept than which state each of these is.
    """

    def __init__(self, lo: int, hi: int, num_states: int) -> None:
        self._lo, self._hi, self._num_states = lo, hi, num_states
        self._found: list[NDArray[np.int64]] = []
        self._next = hi - lo

    def local(self, states: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return local numbers, of ghosts those for now; of the shape of ``states``."""
        is_ghost = (states < self._lo) | (states >= self._hi)
        numbers = states - self._lo
        if is_ghost.any():
            found, places = np.unique(states[is_ghost], return_inverse=True)
            num_own = self._hi - self._lo
            # As many as these are at most: what several blocks lead to is counted for each.
            check_near(num_own, self._next - num_own + len(found))
            numbers[is_ghost] = self._next + places
            self._next += len(found)
            self._found.append(found)
        return numbers.astype(np.int32)

    def settle(self, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
        """Replace the numbers for now by the last ones, in place; return the ghosts."""
        num_own = self._hi - self._lo
        if not self._found:
            return np.empty(0, dtype=np.int64)
        ghosts, places = np.unique(np.concatenate(self._found), return_inverse=True)
        self._found.clear()
        last = (num_own + places).astype(np.int32)
        flat = numbers.reshape(-1)
        for first in range(0, len(flat), 1 << 20):
            piece = flat[first : first + (1 << 20)]
            is_ghost = piece >= num_own
            piece[is_ghost] = last[piece[is_ghost] - num_own]
        return ghosts


def read_moves(
    model: MoveRowModel, lo: int, hi: int, *, sharing: int, checkpoint: Callable[[], None]
) -> LocalMoves:
    """Read the moves of the states from ``lo`` to ``hi - 1``.

    Parameters
    ----------
    model : MoveRowModel
    lo, hi : int
    sharing : int
        Processes that share the memory of the machine.
    checkpoint : callable
        Called after each block.

    Raises
    ------
    ValueError
        If a move is not one, as `aggmaze.MoveMDP` says.
    MemoryError
        If the tables need more memory than is available.
    OverflowError
        If there are more ghosts than can be numbered.
    """
    num_own, num_moves, num_states = hi - lo, model.num_actions, model.num_states
    check_chance("p", model.p)
    check_room(sharing, num_own, (12 * num_moves + BYTES_A_STATE) * num_own)
    successors = np.empty((num_own, num_moves), dtype=np.int32)
    costs = np.empty((num_own, num_moves))
    terminal = np.empty(num_own, dtype=bool)
    numbering = _Numbering(lo, hi, num_states)
    for first, last in blocks(lo, hi, num_moves):
        block = model.moves(first, last)
        _check_shape("moves", first, last, block.costs.shape, (last - first, num_moves))
        available = np.isfinite(block.costs)
        check_moves(block.successors, block.costs, available, first, num_states)
        here = slice(first - lo, last - lo)
        costs[here] = block.costs
        terminal[here] = ~available.any(axis=1)
        own = np.arange(first, last)[:, np.newaxis]
        successors[here] = numbering.local(np.where(available, block.successors, own))
        checkpoint()
    ghosts = numbering.settle(successors)
    weights = slip_weights(model.p, num_moves)
    tables = Moves(readonly(successors), readonly(costs), *weights)
    return LocalMoves(tables, readonly(terminal), ghosts)


def read_outcomes(
    model: TableRowModel, lo: int, hi: int, *, sharing: int, checkpoint: Callable[[], None]
) -> LocalOutcomes:
    """Read the rows of the states from ``lo`` to ``hi - 1``.

    Parameters
    ----------
    model : TableRowModel
    lo, hi : int
    sharing : int
        Processes that share the memory of the machine.
    checkpoint : callable
        Called after each block.

    Raises
    ------
    ValueError
        If a row is not one, as `aggmaze.TabularMDP` says.
    MemoryError
        If the tables need more memory than is available.
    OverflowError
        If there are more ghosts than can be numbered.
    """
    num_own, num_actions, num_states = hi - lo, model.num_actions, model.num_states
    check_room(sharing, num_own, (17 * num_actions + BYTES_A_STATE) * num_own)
    costs = np.empty((num_own, num_actions))
    mask = np.empty((num_own, num_actions), dtype=bool)
    terminal = np.empty(num_own, dtype=bool)
    indptr = np.zeros(num_own * num_actions + 1, dtype=np.int64)
    indices: list[NDArray[np.int32]] = []
    probabilities: list[NDArray[np.float64]] = []
    numbering = _Numbering(lo, hi, num_states)
    num_entries = 0
    for first, last in blocks(lo, hi, num_actions):
        rows = model.rows(first, last)
        shape = last - first, num_actions
        _check_shape("rows", first, last, rows.costs.shape, shape)
        here = slice(first - lo, last - lo)
        costs[here], mask[here] = rows.costs, rows.action_mask
        terminal[here] = model.terminal(first, last)
        matrix = rows.transitions
        if first == lo:
            # As much again while blocks are put together.
            each = _BYTES_AN_ENTRY * matrix.nnz // (last - first)
            check_room(sharing, num_own, 2 * each * num_own)
        starts = indptr[here.start * num_actions : here.stop * num_actions + 1]
        starts[1:] = num_entries + matrix.indptr[1:].astype(np.int64)
        following = matrix.indices.astype(np.int64, copy=False)
        check_rows(
            starts - num_entries,
            following,
            matrix.data,
            (costs[here], mask[here], terminal[here]),
            first,
            num_states,
        )
        num_entries += len(following)
        indices.append(numbering.local(following))
        probabilities.append(matrix.data.astype(np.float64))
        checkpoint()
    flat = _joined(indices)
    ghosts = numbering.settle(flat)
    num_rows = np.empty(num_own, dtype=np.int32)
    count_rows(readonly(mask), num_rows)
    arrays = indptr, flat, _joined(probabilities), costs, mask, terminal, num_rows
    return LocalOutcomes(Outcomes(*(readonly(array) for array in arrays)), ghosts)


def _joined(parts: list[NDArray[_Number]]) -> NDArray[_Number]:
    """Return arrays one after another; they are given up one by one on the way."""
    whole = np.empty(sum(len(part) for part in parts), dtype=parts[0].dtype)
    place = 0
    for i in range(len(parts)):
        part, parts[i] = parts[i], parts[i][:0]
        whole[place : place + len(part)] = part
        place += len(part)
    return whole


def _check_shape(
    name: str, first: int, last: int, shape: tuple[int, ...], expected: tuple[int, int]
) -> None:
    if shape != expected:
        raise ValueError(f"{name}({first}, {last}) has costs of shape {shape}, not {expected}")


def check_room(sharing: int, num_own: int, needed: int) -> None:
    """Refuse what the processes of this machine have no memory for together.

    Parameters
    ----------
    sharing : int
        How many these are.
    num_own : int
        States of this one.
    needed : int
        Bytes that this one needs.
    """
    check_memory(
        sharing * needed, f"{sharing} processes on this machine with {num_own:,} states each"
    )
