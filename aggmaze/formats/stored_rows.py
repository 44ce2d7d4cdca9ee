"""Tables in files of which any block of states is read alone, and which are written so.

The file is one that `aggmaze.load_model` reads (`aggmaze.formats.storage`), not compressed, so that
its arrays can be mapped into memory; its header has the model's key besides.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.formats.archive import Pieces, open_archive, write_mappable
from aggmaze.formats.storage import MODEL_FORMAT
from aggmaze.models.base import check_block
from aggmaze.models.model import Model
from aggmaze.models.row_models import Digest, table_text
from aggmaze.models.rows import ROW_SUM_TOLERANCE, Rows

# Rows that are made together while a file is written.
_ROWS = 1 << 16
_INT64 = np.dtype(np.int64)


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
    """

    path: str
    num_states: int
    num_actions: int
    key: str
    arrays: dict[str, NDArray[Any]]

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
        }
        if "outcome_costs" in archive:
            expected["outcome_costs"] = (("float64",), num_entries)
        arrays = {name: archive.mapped(name, *what) for name, what in expected.items()}
        key = archive.scalar("key", str)
    return StoredRows(os.fspath(path), num_states, num_actions, key, arrays)


def save_rows(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model as a table that `open_rows` reads in parts, whole or not at all.

    The model is asked for blocks of its rows, for each array in turn, and never for all at once: an
    `EventMDP` becomes a table that no memory holds.  `load_model` reads the file too.

    Parameters
    ----------
    model : TabularMDP, MoveMDP or EventMDP
        Names of states and actions are not written.
    path : path-like

    Raises
    ------
    ValueError
        If the model is not valid.
    FileNotFoundError
        If there is no such folder.
    """
    model.validate()
    num_states, num_actions = model.num_states, model.num_actions
    step = max(1, _ROWS // num_actions)

    def blocks() -> Iterator[Rows]:
        for lo in range(0, num_states, step):
            yield model.rows(lo, min(num_states, lo + step))

    num_entries = sum(block.transitions.nnz for block in blocks())
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
        "terminal": keyed(bool, (num_states,), iter([model.terminal])),
        "outcome_costs": Pieces(
            np.dtype(float), entries, (block.outcome_costs for block in blocks())
        ),
        "initial": Pieces(np.dtype(float), (num_states,), iter([model.initial])),
    }
    write_mappable(
        path,
        MODEL_FORMAT,
        arrays,
        lambda: {
            "kind": "TabularMDP",
            "num_added_states": model.num_added_states,
            "key": digest.digits(),
        },
    )
