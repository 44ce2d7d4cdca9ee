"""Sparse rows as kernels take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.arrays import readonly


class Rows(NamedTuple):
    """A matrix of R rows; row i has ``entries[starts[i]:starts[i + 1]]`` in those ``columns``.

    Parameters
    ----------
    starts : ndarray of int64, shape (R + 1,)
    columns : ndarray of int32 or of uint32, shape (nnz,)
    entries : ndarray of float, shape (nnz,)
    """

    starts: NDArray[np.int64]
    columns: NDArray[np.int32] | NDArray[np.uint32]
    entries: NDArray[np.float64]


def rows_of(matrix: sp.csr_array) -> Rows:
    """Return the rows of a matrix, read-only; entries, and columns if they fit, are not copied."""
    return Rows(
        readonly(matrix.indptr.astype(np.int64)),
        readonly(matrix.indices.astype(np.int32, copy=False)),
        readonly(matrix.data),
    )
