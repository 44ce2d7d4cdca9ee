"""What rules that make any block of cells alone are keyed by, and how kernels take their grids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aggmaze.grid import Grid


class WholeOnlyError(ValueError):
    """A maze was asked for by rows that is made as a whole only."""


def drawn_key(rng: np.random.Generator) -> np.uint64:
    """Return the key of a rule: the next 64 bits that a generator draws.

    Parameters
    ----------
    rng : numpy.random.Generator
    """
    return np.uint64(rng.integers(0, 2**64, dtype=np.uint64))


def key_of_stream(key: np.uint64, number: int) -> np.uint64:
    """Return the key of one of the streams of random numbers of a rule.

    Parameters
    ----------
    key : np.uint64
    number : int
        Which stream.
    """
    from aggmaze.layouts.counter_kernels import stream  # which takes long to import

    found = np.empty(1, dtype=np.uint64)
    stream(key, np.uint64(number), found)
    return np.uint64(found[0])


def sizes_of(grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the shape and the strides of a grid as kernels take them."""
    return np.array(grid.shape, dtype=np.int64), np.array(grid.strides, dtype=np.int64)
