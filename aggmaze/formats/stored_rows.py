"""Tables in files of which any block of states is read alone, and which are written so.

The file is one that `aggmaze.load_model` reads (`aggmaze.formats.storage`), not compressed, so that
its arrays can be mapped into memory; its header has the model's key besides.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.checks import check_integer
from aggmaze.formats.archive import Pieces, open_archive, write_mappable
from aggmaze.formats.storage import MODEL_FORMAT
from aggmaze.models.base import FiniteMDP, check_block
from aggmaze.models.model import Model
from aggmaze.models.moves import rows_of_moves
from aggmaze.models.row_checks import check_moves, check_rows
from aggmaze.models.row_models import (
    Digest,
    HeldMoves,
    HeldTable,
    RowModel,
    as_row_model,
    table_text,
    tells_moves,
)
from aggmaze.models.rows import ROW_SUM_TOLERANCE, Rows
from aggmaze.names import names_from_bytes, names_to_bytes
from aggmaze.progress import report

# Rows that are made together while a file is written.
_ROWS = 1 << 16
_INT64 = np.dtype(np.int64)
# The arrays that hold names.
_NAMES = ("state_names", "action_names")


@dataclass(frozen=True, eq=False)
class StoredRows:
    """A table in a file, as a `aggmaze.models.row_models.TableRowModel`: made by `open_rows`.

    Parameters
    ----------
    path : str
    num_states, num_actions : int
    key : str
        As in the file.
    arrays : dict of str to ndarray
        Mapped: what is not asked for is not read.
    num_added_states : int
        States that the source of the model does not list, the last ones.
    """

    path: str
    num_states: int
    num_actions: int
    key: str
    arrays: dict[str, NDArray[Any]]
    num_added_states: int = 0

    def __repr__(self) -> str:
        return f"StoredRows({self.path!r}, {self.num_states:,} states, {self.num_actions} actions)"

    def __reduce__(self) -> tuple[Callable[[str], StoredRows], tuple[str]]:
        return open_rows, (str(Path(self.path).absolute()),)

    def rows(self, lo: int, hi: int) -> Rows:
        """Return the rows of the states ``lo`` to ``hi - 1``, read from the file and checked.

        Parameters
        ----------
        lo, hi : int
            At least one state.

        Raises
        ------
        ValueError
            If they are not states of the model, or what the file holds of them is not valid.
        """
        check_block(lo, hi, self.num_states)
        num_actions = self.num_actions
        indptr = self._read("indptr", lo * num_actions, hi * num_actions + 1)
        first, last = int(indptr[0]), int(indptr[-1])
        rising = first >= 0 and last <= len(self.arrays["data"]) and (np.diff(indptr) >= 0).all()
        if not rising:
            raise self._damaged(lo, hi, "its rows do not follow one another")
        data, indices = (self._read(name, first, last) for name in ("data", "indices"))
        if len(indices) and not 0 <= indices.min() <= indices.max() < self.num_states:
            raise self._damaged(lo, hi, f"a successor is not in [0, {self.num_states})")
        shape = (hi - lo) * num_actions, self.num_states
        transitions = sp.csr_array((data, indices, indptr - first), shape=shape)
        costs, mask = (self._read(name, lo, hi) for name in ("costs", "action_mask"))
        found = Rows(
            transitions,
            costs,
            mask,
            self._read("outcome_costs", first, last)
            if "outcome_costs" in self.arrays
            else np.repeat(costs.reshape(-1), np.diff(indptr)),
        )
        sums = transitions.sum(axis=1).reshape(hi - lo, num_actions)
        with np.errstate(invalid="ignore"):
            valid = (np.abs(sums - 1.0) <= ROW_SUM_TOLERANCE) & np.isfinite(costs)
        if (len(data) and not data.min() >= 0.0) or not (valid | ~mask).all():
            raise self._damaged(lo, hi, "its probabilities or costs are not valid")
        return found

    def terminal(self, lo: int, hi: int) -> NDArray[np.bool_]:
        """Return which of the states ``lo`` to ``hi - 1`` are terminal, shape (hi - lo,).

        Parameters
        ----------
        lo, hi : int
        """
        check_block(lo, hi, self.num_states, name="terminal")
        return self._read("terminal", lo, hi)

    def initial(self, lo: int, hi: int) -> NDArray[np.float64]:
        """Return with which probability episodes start in each state, shape (hi - lo,).

        Parameters
        ----------
        lo, hi : int
        """
        check_block(lo, hi, self.num_states, name="initial")
        return self._read("initial", lo, hi)

    @property
    def state_names(self) -> tuple[Hashable, ...] | None:
        """What the states that are listed are called, if they have names: all are read."""
        return self._names("state_names", self.num_states - self.num_added_states)

    @property
    def action_names(self) -> tuple[Hashable, ...] | None:
        """What actions are called, if they have names."""
        return self._names("action_names", self.num_actions)

    def _names(self, name: str, count: int) -> tuple[Hashable, ...] | None:
        if name not in self.arrays:
            return None
        return tuple(names_from_bytes(name, np.array(self.arrays[name]), count))

    def _read(self, name: str, first: int, last: int) -> NDArray[Any]:
        """Return a part of an array of the file, in this machine's byte order."""
        part = np.array(self.arrays[name][first:last])
        if part.dtype.kind == "b" and (part.view(np.uint8) > 1).any():
            raise ValueError(f"{self.path!r} is not a saved model: {name} holds more than 0 and 1")
        return part.astype(part.dtype.newbyteorder("="), copy=False)

    def _damaged(self, lo: int, hi: int, reason: str) -> ValueError:
        return ValueError(f"{self.path!r}, states {lo} to {hi - 1}: {reason}")


def open_rows(path: str | os.PathLike[str]) -> StoredRows:
    """Open a table of which any block of states is read alone.

    Parameters
    ----------
    path : path-like
        What `save_rows` wrote.

    Returns
    -------
    StoredRows
        Reads a block of the file when it is asked for one, and checks it then.

    Raises
    ------
    ValueError
        If it is no such file: compressed, as `save_model` writes it, or a model of moves.
    FileNotFoundError, IsADirectoryError
        If that is what is there.
    """
    with open_archive(path, MODEL_FORMAT) as archive:
        kind = archive.scalar("kind", str)
        if kind != "TabularMDP":
            raise ValueError(f"its kind is {kind!r}; a table can be read in parts")
        num_states, num_actions = shape = archive.shape("costs", 2)
        num_entries = archive.shape("data", 1)
        expected: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
            "data": (("float64",), num_entries),
            "indices": (("int32", "int64"), num_entries),
            "indptr": (("int32", "int64"), (num_states * num_actions + 1,)),
            "costs": (("float64",), shape),
            "action_mask": (("bool",), shape),
            "terminal": (("bool",), (num_states,)),
            "initial": (("float64",), (num_states,)),
        }
        for name in _NAMES:
            if name in archive:
                expected[name] = ("uint8",), archive.shape(name, 1)
        if "outcome_costs" in archive:
            expected["outcome_costs"] = (("float64",), num_entries)
        arrays = {name: archive.mapped(name, *what) for name, what in expected.items()}
        key = archive.scalar("key", str)
        added = check_integer(
            "num_added_states", archive.scalar("num_added_states", int), below=num_states
        )
    return StoredRows(os.fspath(path), num_states, num_actions, key, arrays, added)


def save_rows(model: Model | RowModel, path: str | os.PathLike[str]) -> None:
    """Write a model as a table that `open_rows` reads in parts, whole or not at all.

    The model is asked for blocks of its rows, for each array in turn, and never for all at once: an
    `EventMDP` or a maze by rows becomes a table that no memory holds.  `load_model` reads the file
    too.  How far it is, is told as `aggmaze.progress` says.

    Parameters
    ----------
    model : TabularMDP, MoveMDP, EventMDP, MoveRowModel or TableRowModel
        Episodes of a model by rows begin where its ``start`` says, a number of a state, or in any
        state that is not terminal.
    path : path-like

    Raises
    ------
    ValueError
        If the model is not valid, or has a name that a file cannot hold.
    TypeError
        If it is no model.
    FileNotFoundError
        If there is no such folder.
    """
    source = _source_of(model)
    num_states, num_actions = source.num_states, source.num_actions
    step = _step(num_actions)

    def blocks() -> Iterator[Rows]:
        for lo in range(0, num_states, step):
            yield source.rows(lo, min(num_states, lo + step))

    def by_state(tell: Callable[[int, int], NDArray[Any]]) -> Iterator[NDArray[Any]]:
        for lo in range(0, num_states, step):
            yield tell(lo, min(num_states, lo + step))

    num_entries = done = 0
    for block in blocks():
        num_entries += block.transitions.nnz
        done += block.num_states
        report(done, num_states, "states")
    small = max(num_states, num_entries) < 2**31
    index = np.dtype(np.int32 if small else np.int64)
    digest = Digest(table_text(num_states, num_actions))

    def ends() -> Iterator[NDArray[np.int64]]:
        yield np.zeros(1, dtype=np.int64)
        last = 0
        for block in blocks():
            found = block.transitions.indptr[1:].astype(np.int64) + last
            last = int(found[-1])
            yield found

    def keyed(
        dtype: Any, shape: tuple[int, ...], found: Iterator[NDArray[Any]], *, as_dtype: Any = None
    ) -> Pieces:
        """Return pieces that the digest sees as they are written."""

        def pieces() -> Iterator[NDArray[Any]]:
            digest.begin(np.dtype(as_dtype or dtype), shape)
            for piece in found:
                digest.add(piece.astype(as_dtype or dtype, copy=False))
                yield piece

        return Pieces(np.dtype(dtype), shape, pieces())

    entries, rows = (num_entries,), (num_states * num_actions + 1,)
    table = num_states, num_actions
    # In the order in which the key of a table that is held whole takes them.
    arrays = {
        "data": keyed(float, entries, (block.transitions.data for block in blocks())),
        "indices": keyed(
            index, entries, (block.transitions.indices for block in blocks()), as_dtype=_INT64
        ),
        "indptr": keyed(index, rows, ends(), as_dtype=_INT64),
        "costs": keyed(float, table, (block.costs for block in blocks())),
        "action_mask": keyed(bool, table, (block.action_mask for block in blocks())),
        "terminal": keyed(bool, (num_states,), by_state(source.terminal)),
        "outcome_costs": Pieces(
            np.dtype(float), entries, (block.outcome_costs for block in blocks())
        ),
        "initial": Pieces(np.dtype(float), (num_states,), by_state(source.initial)),
    }
    for name, texts in source.names.items():
        arrays[name] = Pieces(texts.dtype, texts.shape, iter([texts]))
    write_mappable(
        path,
        MODEL_FORMAT,
        arrays,
        lambda: {
            "kind": "TabularMDP",
            "num_added_states": source.num_added_states,
            "key": digest.digits(),
        },
    )


class _Source(NamedTuple):
    """What a file is written of: blocks of a model of any kind, the states ``lo`` to ``hi - 1``."""

    num_states: int
    num_actions: int
    rows: Callable[[int, int], Rows]
    terminal: Callable[[int, int], NDArray[np.bool_]]
    initial: Callable[[int, int], NDArray[np.float64]]
    num_added_states: int = 0
    names: Mapping[str, NDArray[np.uint8]] = {}


def _source_of(model: Any) -> _Source:
    """Return what a file is written of."""
    # An `EventMDP` is no model by rows, since it has no key.
    by_rows: Any = model if isinstance(model, FiniteMDP) else as_row_model(model)
    held = by_rows.model if isinstance(by_rows, HeldMoves | HeldTable) else by_rows
    if isinstance(held, FiniteMDP):
        return _held(held)
    if isinstance(by_rows, StoredRows):
        return _Source(
            by_rows.num_states,
            by_rows.num_actions,
            by_rows.rows,
            by_rows.terminal,
            by_rows.initial,
            by_rows.num_added_states,
            {name: np.array(by_rows.arrays[name]) for name in _NAMES if name in by_rows.arrays},
        )
    return _of_moves(by_rows) if tells_moves(by_rows) else _of_rows(by_rows)


def _held(model: Any) -> _Source:
    model.validate()
    given = {name: getattr(model, name) for name in _NAMES}
    return _Source(
        model.num_states,
        model.num_actions,
        model.rows,
        lambda lo, hi: model.terminal[lo:hi],
        lambda lo, hi: model.initial[lo:hi],
        model.num_added_states,
        {name: names_to_bytes(name, told) for name, told in given.items() if told is not None},
    )


def _of_moves(model: Any) -> _Source:
    """Return what there is of moves by rows, each block of which is checked once."""
    num_states, num_actions = model.num_states, model.num_actions
    index: type[np.integer[Any]] = np.int32 if num_states < 2**31 else np.int64
    # As a `MoveMDP` has it: choosing an unavailable move never pays.
    bump_cost, num_free = 0.0, 0
    step = _step(num_actions)
    for lo in range(0, num_states, step):
        block = model.moves(lo, min(num_states, lo + step))
        available = np.isfinite(block.costs)
        check_moves(block.successors, block.costs, available, lo, num_states)
        bump_cost = max(bump_cost, float(block.costs.max(where=available, initial=0.0)))
        num_free += int(np.count_nonzero(available.any(axis=1)))
        report(lo + len(available), num_states, "states")

    def rows(lo: int, hi: int) -> Rows:
        block = model.moves(lo, hi)
        own = np.arange(lo, hi)[:, np.newaxis]
        successors = np.where(np.isfinite(block.costs), block.successors, own).astype(index)
        return rows_of_moves(successors, block.costs, model.p, bump_cost, lo, num_states)

    def terminal(lo: int, hi: int) -> NDArray[np.bool_]:
        return np.asarray(~np.isfinite(model.moves(lo, hi).costs).any(axis=1))

    initial = _initial(getattr(model, "start", None), terminal, num_free, num_states)
    return _Source(num_states, num_actions, rows, terminal, initial)


def _of_rows(model: Any) -> _Source:
    """Return what there is of general rows, each block of which is checked once."""
    num_states, num_actions = model.num_states, model.num_actions
    num_free = 0
    step = _step(num_actions)
    for lo in range(0, num_states, step):
        hi = min(num_states, lo + step)
        rows, terminal = model.rows(lo, hi), model.terminal(lo, hi)
        matrix = rows.transitions
        check_rows(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int64, copy=False),
            matrix.data,
            (rows.costs, rows.action_mask, terminal),
            lo,
            num_states,
        )
        num_free += int(np.count_nonzero(~terminal))
        report(hi, num_states, "states")
    initial = _initial(getattr(model, "start", None), model.terminal, num_free, num_states)
    return _Source(num_states, num_actions, model.rows, model.terminal, initial)


def _initial(
    start: int | None,
    terminal: Callable[[int, int], NDArray[np.bool_]],
    num_free: int,
    num_states: int,
) -> Callable[[int, int], NDArray[np.float64]]:
    """Return the distribution of the first state, by block."""

    def tell(lo: int, hi: int) -> NDArray[np.float64]:
        if start is not None:
            return (np.arange(lo, hi) == start).astype(float)
        if num_free == 0:
            return np.full(hi - lo, 1.0 / num_states)
        return np.where(terminal(lo, hi), 0.0, 1.0 / num_free)

    return tell


def _step(num_actions: int) -> int:
    """Return of how many states the rows are made together."""
    return max(1, _ROWS // num_actions)
