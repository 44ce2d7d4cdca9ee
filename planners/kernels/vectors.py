"""Norms and inner products that are the same on any number of threads, bit for bit.

Sums run in a fixed order: no library for linear algebra is called, whose sums depend on its
threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planners.kernels.pieces import greater

Vector = NDArray[np.float64]


def sup_norm(vector: Vector) -> float:
    """Return the sup norm, NaN where an entry is."""
    return float(_sup_norm(vector))


@njit(cache=True, nogil=True)
def _sup_norm(vector):
    """Return the sup norm; what is no number is looked for apart, so that both go by vectors."""
    largest = 0.0
    num_bad = 0
    for i in range(len(vector)):
        num_bad += 1 if vector[i] != vector[i] else 0
        largest = greater(abs(vector[i]), largest)
    return np.nan if num_bad > 0 else largest


def finite_norm(array: NDArray[np.float64]) -> float:
    """Return the largest size of a finite entry, 0 where there is none; of any shape."""
    rows = array if array.ndim == 2 else (array.reshape(-1),)
    return max((float(_finite_norm(row)) for row in rows), default=0.0)


@njit(cache=True, nogil=True)
def _finite_norm(vector):
    """Return the largest size of a finite entry, without a copy of them."""
    largest = 0.0
    for i in range(len(vector)):
        size = abs(vector[i])
        if largest < size < np.inf:  # NaN is not
            largest = size
    return largest


@njit(cache=True, nogil=True)
def dot(x, y):
    """Return the inner product of two vectors, summed from the first entry to the last."""
    # Four sums side by side: one alone waits for each addition.
    a = b = c = d = 0.0
    whole = len(x) - len(x) % 4
    for i in range(0, whole, 4):
        a += x[i] * y[i]
        b += x[i + 1] * y[i + 1]
        c += x[i + 2] * y[i + 2]
        d += x[i + 3] * y[i + 3]
    for i in range(whole, len(x)):
        a += x[i] * y[i]
    return (a + b) + (c + d)
