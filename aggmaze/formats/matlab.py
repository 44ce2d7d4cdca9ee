"""Matlab's ``.mat`` files with ``P`` and ``R``, as MDPtoolbox for Matlab and R save them.

In Matlab ``[P, R] = mdp_example_forest(); save('forest.mat', 'P', 'R', '-v7')``; in R
``forest <- mdp_example_forest(); R.matlab::writeMat("forest.mat", P=forest$P, R=forest$R)``.

Read here and not by ``scipy.io.loadmat``, which believes what a file declares: on damaged files it
ended the process by a segmentation fault in one case of sixty.  The tests compare with it.
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.files import readable_file
from aggmaze.memory import check_memory
from aggmaze.models.tabular import TabularMDP

# Deflate cannot make data shorter than this.
_MOST_COMPRESSION = 1032
_PIECE = 2**20
# Memory over that of the matrices, of which sparse rows are made: measured, of full ones.
_COPIES = 8.0
# By their numbers in the format: types of stored data, and classes of arrays.
_STORED = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
}  # fmt: skip
_CLASSES = {
    6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8",
}  # fmt: skip
_MATRIX, _COMPRESSED, _CELL, _SPARSE, _COMPLEX = 14, 15, 1, 5, 0x0800
_MOST_AXES, _MOST_NAME = 8, 64


def read_mat(
    path: str | os.PathLike[str], *, terminal: Any = None, initial: Any = None
) -> TabularMDP:
    """Read MDPtoolbox's ``P`` and ``R`` from a ``.mat`` file of version 5, which is 6 and 7 too.

    ``P`` is an array (S, S, A) as in Matlab and R, or a cell array of A matrices, dense or sparse;
    ``R`` is (S, A), (S, 1), or of the form of P.  Version 7.3 is another format (HDF5) and not
    read: save with ``-v7``.  Names other than ``P`` and ``R`` are passed over.

    Parameters
    ----------
    path : path-like
    terminal, initial : array_like, optional
        As for `TabularMDP.from_mdptoolbox`.

    Returns
    -------
    TabularMDP
        Validated.

    Raises
    ------
    ValueError
        If the file is not such a pair, or damaged.
    FileNotFoundError, IsADirectoryError
        If that is what is there.
    MemoryError
        If the model needs more memory than is available.
    """
    with readable_file(path, "a .mat file of P and R") as file:
        found = _File(file, f"the matrices of {os.fspath(path)!r}").read()
        P, R = _by_action(found["P"], "P"), _by_action(found["R"], "R")
        num_states = P[0].shape[0]
        for matrix in P:
            if matrix.shape != (num_states, num_states):
                raise ValueError(f"P must hold matrices (S, S), got shape {matrix.shape}")
        rewards: Any = R
        if len(R) == 1 and (len(P) > 1 or R[0].shape != (num_states, num_states)):
            shape = R[0].shape
            if shape not in ((num_states, len(P)), (num_states, 1)):
                raise ValueError(f"R must have shape (S, A) or (S, 1), or that of P, got {shape}")
            rewards = R[0].toarray() if _is_sparse(R[0]) else R[0]
            rewards = rewards[:, 0] if shape[1] == 1 and len(P) > 1 else rewards
        return TabularMDP.from_matrices(
            P, rewards=rewards, order="ass", terminal=terminal, initial=initial
        )


class _File:
    """The arrays of a file, of which ``P`` and ``R`` are read."""

    def __init__(self, file: Any, what: str) -> None:
        self._what = what
        self._needed = 0
        self._size = file.seek(0, os.SEEK_END)
        file.seek(0)
        head = file.read(128)
        if head.startswith(b"\x89HDF") or b"MATLAB 7.3" in head:
            raise ValueError("it is of version 7.3: save it with -v7")
        if len(head) < 128 or head[124:128] not in (b"\x00\x01IM", b"\x01\x00MI"):
            raise ValueError("it is no .mat file of version 5 to 7")
        self._order = "<" if head[126:128] == b"IM" else ">"
        self._file = file

    def read(self) -> dict[str, Any]:
        """Return the arrays or lists of matrices named ``P`` and ``R``."""
        found: dict[str, Any] = {}
        names = []
        place = 128
        while place < self._size:
            self._file.seek(place)
            tag = self._file.read(8)
            if len(tag) < 8:
                raise EOFError("it ends within a tag")
            kind, count = struct.unpack(f"{self._order}II", tag)
            place += 8 + count
            if place > self._size:
                raise EOFError(f"an element of {count:,} bytes ends beyond the file")
            if kind not in (_MATRIX, _COMPRESSED):
                raise ValueError(f"there is an element of type {kind}, no matrix")
            check_memory(math.ceil(_COPIES * (self._needed + count)), self._what)
            body = self._file.read(count)
            if kind == _COMPRESSED:
                # What it holds begins with a tag; the name is in the first few bytes.
                name = self._name(zlib.decompressobj().decompress(body, 8 + 1024)[8:])
            else:
                name = self._name(body)
            names.append(name)
            if name not in ("P", "R"):
                continue
            if name in found:
                raise ValueError(f"{name} is there twice")
            if kind == _COMPRESSED:
                body = self._unpacked(body)
                kind, count = struct.unpack(f"{self._order}II", body[:8])
                if kind != _MATRIX or count != len(body) - 8:
                    raise ValueError(f"{name} is packed, and is no matrix of its length")
                body = body[8:]
            self._needed += len(body)
            found[name] = self._array(body, name, inside=False)
        for name in ("P", "R"):
            if name not in found:
                raise ValueError(f"{name} is missing: it holds {', '.join(names) or 'nothing'}")
        return found

    def _unpacked(self, packed: bytes) -> bytes:
        unpack, pieces, total = zlib.decompressobj(), [], 0
        rest = packed
        while not unpack.eof:
            piece = unpack.decompress(rest, _PIECE)
            rest = unpack.unconsumed_tail
            if not piece and not rest and not unpack.eof:
                raise EOFError("it ends within its compressed data")
            total += len(piece)
            if total > _MOST_COMPRESSION * len(packed) + _PIECE:
                raise ValueError("it unpacks to more than its length allows: it is refused")
            check_memory(math.ceil(_COPIES * (self._needed + total)), self._what)
            pieces.append(piece)
        return b"".join(pieces)

    def _elements(self, body: bytes, most: int) -> list[tuple[int, bytes]]:
        """Return the types and data of the first parts of a matrix."""
        parts: list[tuple[int, bytes]] = []
        place = 0
        while place + 8 <= len(body) and len(parts) < most:
            word, count = struct.unpack_from(f"{self._order}II", body, place)
            if word >> 16:  # a small one, in the tag itself
                kind, count = word & 0xFFFF, word >> 16
                if count > 4:
                    raise ValueError(f"a part of {count} bytes is said to fit in 4")
                parts.append((kind, body[place + 4 : place + 4 + count]))
                place += 8
                continue
            if place + 8 + count > len(body):
                raise EOFError(f"a part of {count:,} bytes ends beyond its matrix")
            parts.append((word, body[place + 8 : place + 8 + count]))
            place += 8 + count + (-count % 8)
        return parts

    def _head(self, body: bytes) -> tuple[int, int, tuple[int, ...], str]:
        """Return class, flags, shape and name of a matrix."""
        parts = self._elements(body[:1024], 3)
        if len(parts) < 3 or [kind for kind, _ in parts[:2]] != [6, 5] or len(parts[0][1]) != 8:
            raise ValueError("a matrix has no head of flags, shape and name")
        flags = struct.unpack(f"{self._order}II", parts[0][1])[0]
        axes = np.frombuffer(parts[1][1], f"{self._order}i4").tolist()
        if not 2 <= len(axes) <= _MOST_AXES or min(axes) < 0 or len(parts[2][1]) > _MOST_NAME:
            raise ValueError(f"a matrix has shape {tuple(axes)} and a name as long")
        return flags & 0xFF, flags, tuple(axes), parts[2][1].decode("latin-1")

    def _name(self, body: bytes) -> str:
        return self._head(body)[3]

    def _array(self, body: bytes, name: str, inside: bool) -> Any:
        kind, flags, shape, _ = self._head(body)
        if flags & _COMPLEX:
            raise ValueError(f"{name} holds complex numbers")
        if kind == _CELL and not inside:
            count = math.prod(shape)
            cells = self._elements(body, 3 + count)[3:]
            if len(cells) != count or count == 0 or any(part[0] != _MATRIX for part in cells):
                raise ValueError(f"{name} is a cell array of shape {shape} with {len(cells)} cells")
            return [
                self._array(part, f"{name}{{{k + 1}}}", True) for k, (_, part) in enumerate(cells)
            ]
        if kind == _SPARSE:
            return self._sparse(self._elements(body, 6)[3:], shape, name)
        if kind not in _CLASSES:
            raise ValueError(f"{name} is of class {kind}, not numbers, sparse or a cell array")
        parts = self._elements(body, 4)[3:]
        if len(parts) != 1:
            raise ValueError(f"{name} has no numbers")
        numbers = self._numbers(parts[0], name)
        if len(numbers) != math.prod(shape):
            raise ValueError(f"{name} has shape {shape}, and {len(numbers):,} numbers")
        array = numbers.reshape(shape, order="F")
        return array.astype(np.float32) if kind == 7 else array.astype(np.float64)

    def _sparse(
        self, parts: list[tuple[int, bytes]], shape: tuple[int, ...], name: str
    ) -> sp.csr_array:
        if len(shape) != 2 or len(parts) != 3:
            raise ValueError(f"{name} is sparse, of shape {shape} and {len(parts)} parts")
        rows, ends, numbers = (self._numbers(part, name) for part in parts)
        rows, ends = rows.astype(np.int64), ends.astype(np.int64)
        last = int(ends[-1]) if len(ends) == shape[1] + 1 else -1
        if last < 0 or ends[0] != 0 or (np.diff(ends) < 0).any():
            raise ValueError(f"{name} is sparse, and its columns do not rise from 0")
        if last > len(rows) or last > len(numbers):
            raise ValueError(f"{name} is sparse, and tells of {last:,} entries that are not there")
        rows, numbers = rows[:last], numbers[:last].astype(np.float64)
        if last and not 0 <= rows.min() <= rows.max() < shape[0]:
            raise ValueError(f"{name} has an entry outside its {shape[0]:,} rows")
        # What is beside it is no larger than the file; its own number of rows is only declared.
        check_memory(math.ceil(_COPIES * (self._needed + 8 * shape[0])), self._what)
        return sp.csr_array(sp.csc_array((numbers, rows, ends), shape=shape))

    def _numbers(self, part: tuple[int, bytes], name: str) -> NDArray[Any]:
        kind, held = part
        if kind not in _STORED:
            raise ValueError(f"{name} is stored in type {kind}, which is none of numbers")
        return np.frombuffer(held, f"{self._order}{_STORED[kind]}")


def _by_action(found: Any, name: str) -> list[Any]:
    """Return a list of matrices, or of one where that is all."""
    if isinstance(found, list):
        for matrix in found:
            if len(matrix.shape) != 2:
                raise ValueError(f"{name} must hold matrices, got shape {matrix.shape}")
        return found
    if len(found.shape) == 2:
        return [found]
    if len(found.shape) != 3 or 0 in found.shape:
        raise ValueError(f"{name} must have shape (S, S, A), got {found.shape}")
    return [np.ascontiguousarray(found[:, :, action]) for action in range(found.shape[2])]


def _is_sparse(values: Any) -> bool:
    return bool(sp.issparse(values))
