"""Norms and inner products that are the same on any number of threads, bit for bit.

Sums run in a fixed order: no library for linear algebra is called, whose sums depend on its
threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def sup_norm(vector: Vector) -> float:
    """Return the sup norm, NaN where an entry is."""
    return float(max(-vector.min(), vector.max()))


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
