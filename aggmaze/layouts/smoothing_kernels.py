"""Symmetric filters along an axis, compiled, in the order in which SciPy adds: the same bits."""

from __future__ import annotations

import numpy as np
from numba import njit

from aggmaze import kernel_cache  # noqa: F401  (before any kernel)

# Places that are filtered together: few enough for what they read to stay in the cache.
_PIECE = 128


@njit(cache=True, inline="always")
def _reflected(place, size):
    """Return the place within a line that one beyond its ends is the mirror image of."""
    place %= 2 * size
    return place if place < size else 2 * size - 1 - place


@njit(cache=True)
def correlate_lines(field, weights, out):
    """Filter along the last axis, reflecting at the borders.

    Each sum begins in the middle and goes on with pairs of places, the farthest first.

    Parameters
    ----------
    field : ndarray of float, shape (N, size)
    weights : ndarray of float, shape (2 R + 1,)
        Symmetric.
    out : ndarray of float, shape (N, size)
        Written; not the field itself.
    """
    num_lines, size = field.shape
    radius = len(weights) // 2
    line = np.empty(size + 2 * radius)
    for n in range(num_lines):
        for i in range(len(line)):
            line[i] = field[n, _reflected(i - radius, size)]
        for first in range(0, size, _PIECE):
            last = min(first + _PIECE, size)
            sums = out[n, first:last]
            for i in range(last - first):
                sums[i] = line[radius + first + i] * weights[radius]
            # Four pairs at a time, one after another.
            k = 0
            while k + 4 <= radius:
                a, b, c, d = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
                left = line[first + k : last + k + 3]
                right = line[2 * radius + first - k - 3 : 2 * radius + last - k]
                for i in range(last - first):
                    total = sums[i] + (left[i] + right[i + 3]) * a
                    total += (left[i + 1] + right[i + 2]) * b
                    total += (left[i + 2] + right[i + 1]) * c
                    total += (left[i + 3] + right[i]) * d
                    sums[i] = total
                k += 4
            while k < radius:
                left = line[first + k : last + k]
                right = line[2 * radius + first - k : 2 * radius + last - k]
                for i in range(last - first):
                    sums[i] += (left[i] + right[i]) * weights[k]
                k += 1


@njit(cache=True)
def correlate_columns(field, weights, out):
    """Do what `correlate_lines` does along the middle axis of three.

    Parameters
    ----------
    field : ndarray of float, shape (N, size, M)
    weights : ndarray of float, shape (2 R + 1,)
    out : ndarray of float, shape (N, size, M)
    """
    num_slabs, size, num_columns = field.shape
    radius = len(weights) // 2
    for n in range(num_slabs):
        slab = field[n]
        for first in range(0, num_columns, _PIECE):
            last = min(first + _PIECE, num_columns)
            for j in range(size):
                sums = out[n, j, first:last]
                middle = slab[j, first:last]
                for i in range(last - first):
                    sums[i] = middle[i] * weights[radius]
                k = 0
                while k + 4 <= radius:
                    reach = radius - k
                    a, b, c, d = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
                    left_a = slab[_reflected(j - reach, size), first:last]
                    left_b = slab[_reflected(j - reach + 1, size), first:last]
                    left_c = slab[_reflected(j - reach + 2, size), first:last]
                    left_d = slab[_reflected(j - reach + 3, size), first:last]
                    right_a = slab[_reflected(j + reach, size), first:last]
                    right_b = slab[_reflected(j + reach - 1, size), first:last]
                    right_c = slab[_reflected(j + reach - 2, size), first:last]
                    right_d = slab[_reflected(j + reach - 3, size), first:last]
                    for i in range(last - first):
                        total = sums[i] + (left_a[i] + right_a[i]) * a
                        total += (left_b[i] + right_b[i]) * b
                        total += (left_c[i] + right_c[i]) * c
                        total += (left_d[i] + right_d[i]) * d
                        sums[i] = total
                    k += 4
                while k < radius:
                    left = slab[_reflected(j - radius + k, size), first:last]
                    right = slab[_reflected(j + radius - k, size), first:last]
                    for i in range(last - first):
                        sums[i] += (left[i] + right[i]) * weights[k]
                    k += 1
