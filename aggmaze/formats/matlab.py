"""Matlab's ``.mat`` files with ``P`` and ``R``, as MDPtoolbox for Matlab and R save them.

In Matlab ``[P, R] = mdp_example_forest(); save('forest.mat', 'P', 'R', '-v7')``; in R
``forest <- mdp_example_forest(); R.matlab::writeMat("forest.mat", P=forest$P, R=forest$R)``.
"""

from __future__ import annotations

import math
import os
import struct
import warnings
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from scipy.io import loadmat, whosmat
from scipy.io.matlab import MatReadError

from aggmaze.files import readable_file
from aggmaze.memory import check_memory
from aggmaze.models.tabular import TabularMDP

_CLASSES = (
    "double", "single", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "sparse", "cell", "logical",
)  # fmt: skip
# Deflate cannot make data shorter than this.
_MOST_COMPRESSION = 1032
# Memory over that of dense matrices in double precision, of which sparse rows are made.
_COPIES = 4.0


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
    with readable_file(path, "a .mat file of P and R") as file, warnings.catch_warnings():
        warnings.simplefilter("error")
        _check_head(file, os.fspath(path))
        try:
            found = loadmat(
                file,
                variable_names=["P", "R"],
                struct_as_record=True,
                verify_compressed_data_integrity=True,
            )
        except MatReadError as error:
            raise ValueError(str(error)) from None
        except MemoryError:
            raise MemoryError(
                f"the matrices of {os.fspath(path)!r} need more memory than is available"
            ) from None
        P, R = _matrices(found["P"], "P"), _matrices(found["R"], "R")
        if not isinstance(P, list):
            if P.ndim == 2:  # A = 1: Matlab drops the last axis
                P = P[:, :, None]
            if P.ndim != 3:
                raise ValueError(f"P must have shape (S, S, A), got {P.shape}")
            P = np.ascontiguousarray(np.moveaxis(P, 2, 0))
        if not isinstance(R, list) and R.ndim == 3:
            R = np.ascontiguousarray(np.moveaxis(R, 2, 0))
        elif not isinstance(R, list) and R.ndim == 2 and R.shape[1] == 1:
            R = R[:, 0]
        warnings.simplefilter("default")
        return TabularMDP.from_matrices(
            P, rewards=R, order="ass", terminal=terminal, initial=initial
        )


def _check_head(file: IO[bytes], path: str) -> None:
    """Refuse what is another version, or would take more memory than the file can fill."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(128)
    if head.startswith(b"\x89HDF") or b"MATLAB 7.3" in head:
        raise ValueError("it is of version 7.3: save it with -v7")
    if len(head) < 128 or head[124:128] not in (b"\x00\x01IM", b"\x01\x00MI"):
        raise ValueError("it is no .mat file of version 5 to 7")
    _check_elements(file, size, "<" if head[126:128] == b"IM" else ">")
    file.seek(0)
    try:
        listed = whosmat(file)
    except MatReadError as error:
        raise ValueError(str(error)) from None
    file.seek(0)
    told = {name: (shape, kind) for name, shape, kind in listed}
    needed = 0
    for name in ("P", "R"):
        if name not in told:
            raise ValueError(f"{name} is missing: it holds {', '.join(told) or 'nothing'}")
        shape, kind = told[name]
        if kind not in _CLASSES:
            raise ValueError(f"{name} is of class {kind}, not numbers, sparse or a cell array")
        count = math.prod(shape)
        # A dense array is in the file, one byte an entry at least.
        if kind != "sparse" and count > size * _MOST_COMPRESSION:
            raise ValueError(f"{name} has shape {shape}, which {size:,} bytes do not hold")
        needed += 8 * count
    check_memory(math.ceil(_COPIES * needed), f"the matrices of {path!r}")


def _check_elements(file: IO[bytes], size: int, order: str) -> None:
    """Refuse a file whose top-level parts do not fill it: readers believe what they declare."""
    place = 128
    while place < size:
        file.seek(place)
        tag = file.read(8)
        if len(tag) < 8:
            raise EOFError("it ends within a tag")
        kind, count = struct.unpack(f"{order}II", tag)
        if kind not in (14, 15):  # a matrix, or one that is compressed
            raise ValueError(f"byte {place}: no matrix but an element of type {kind}")
        place += 8 + count
        if place > size:
            raise EOFError(f"an element of {count:,} bytes ends beyond the file")


def _matrices(found: Any, name: str) -> Any:
    """Return an array, or a list of matrices."""
    if sp.issparse(found):
        return [sp.csr_array(found)] if name == "P" else found.toarray()
    if found.dtype != object:
        if found.dtype.kind not in "biuf":
            raise ValueError(f"{name} must hold real numbers, got dtype {found.dtype}")
        return found
    matrices = []
    for place, matrix in enumerate(found.reshape(-1, order="F")):
        if not (sp.issparse(matrix) or isinstance(matrix, np.ndarray)) or matrix.dtype.kind not in (
            "biuf"
        ):
            raise ValueError(f"{name}{{{place + 1}}} is no matrix of real numbers")
        matrices.append(sp.csr_array(matrix) if sp.issparse(matrix) else matrix)
    if not matrices:
        raise ValueError(f"{name} is empty")
    return matrices
