"""Arrays that nobody can write to any more, and large ones piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

# Rows that are looked at together: what is written of them is still in the cache when it is read.
_PIECE = 1 << 14


def pieces(num_rows: int) -> Iterator[slice]:
    """Return slices that cover the rows of an array, each few enough for temporaries in the cache.

    Parameters
    ----------
    num_rows : int
    """
    return (slice(lo, lo + _PIECE) for lo in range(0, num_rows, _PIECE))


def own(values: ArrayLike, dtype: DTypeLike) -> NDArray[Any]:
    """Return values as an array in C order that nobody can write to.

    A copy, so that what the caller does to its own array later changes nothing; one that nobody
    can write to already is shared.

    Parameters
    ----------
    values : array_like
    dtype : dtype_like
    """
    array = np.asarray(values)
    if array.dtype == dtype and array.flags.c_contiguous and _is_locked(array):
        return array
    return lock(np.array(array, dtype=dtype, order="C"))


def lock(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only, with what it is a view of, and return it.

    For arrays that nobody else holds.
    """
    part: Any = array
    while isinstance(part, np.ndarray):
        part.flags.writeable = False
        part = part.base
    return array


def readonly(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view of an array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def _is_locked(array: NDArray[Any]) -> bool:
    part: Any = array
    while isinstance(part, np.ndarray):
        if part.flags.writeable:
            return False
        part = part.base
    # Of other objects' memory nobody knows who writes to it.
    return part is None
