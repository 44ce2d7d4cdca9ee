"""Symmetric filters along an axis, compiled, in the order in which SciPy adds: the same bits."""

from __future__ import annotations

import numpy as np
from numba import njit

from aggmaze import kernel_cache  # noqa: F401  (before any kernel)

# Lines that are filtered side by side; places of each that are filtered at once; and the fewest
# places of a line that are worth filtering apart, where lines are few.
_WIDTH, _ROWS, _LEAST_PIECE = 16, 4, 4096


@njit(cache=True)
def correlate(field, weights, out, part, num_parts):
    """Filter along the middle axis of three, reflecting at the borders: one part of the lines.

    Each sum begins in the middle and goes on with pairs of places, the farthest first.

    Parameters
    ----------
    field : ndarray of float, shape (N, size, M)
    weights : ndarray of float, shape (2 R + 1,)
        Symmetric.
    out : ndarray of float, shape (N, size, M)
        Written; not the field itself.
    part, num_parts : int
        Which of how many parts, that together are the whole.
    """
    num_slabs, size, num_columns = field.shape
    radius = len(weights) // 2
    length = min(size, max(_LEAST_PIECE, 4 * radius))
    num_pieces = (size + length - 1) // length
    # Place by place, and what reaches into a piece from both sides.
    padded = np.zeros((length + _ROWS + 2 * radius) * _WIDTH)
    sums = np.empty((length + _ROWS) * _WIDTH)
    num_lines = num_slabs * num_pieces * num_columns
    slabs = np.empty(_WIDTH, dtype=np.int64)
    firsts = np.empty(_WIDTH, dtype=np.int64)
    columns = np.empty(_WIDTH, dtype=np.int64)
    last_line = num_lines * (part + 1) // num_parts
    for first_line in range(num_lines * part // num_parts, last_line, _WIDTH):
        width = min(_WIDTH, last_line - first_line)
        for i in range(width):
            line = first_line + i
            columns[i] = line % num_columns
            firsts[i] = line // num_columns % num_pieces * length
            slabs[i] = line // (num_columns * num_pieces)
        for j in range(length + 2 * radius):
            for i in range(width):
                place = _reflected(firsts[i] + j - radius, size)
                padded[j * _WIDTH + i] = field[slabs[i], place, columns[i]]
        _filter(padded, weights, length, sums)
        for j in range(length):
            for i in range(width):
                if firsts[i] + j < size:
                    out[slabs[i], firsts[i] + j, columns[i]] = sums[j * _WIDTH + i]


@njit(cache=True, inline="always")
def _reflected(place, size):
    """Return the place within a line that one beyond its ends is the mirror image of."""
    if 0 <= place < size:
        return place
    place %= 2 * size
    return place if place < size else 2 * size - 1 - place


@njit(cache=True)
def _filter(padded, weights, length, sums):
    """Filter lines side by side, four places at once: what they read lies in the cache then.

    Parameters
    ----------
    padded : ndarray of float, shape ((length + 4 + 2 R) * _WIDTH,)
    weights : ndarray of float, shape (2 R + 1,)
    length : int
    sums : ndarray of float, shape ((length + 4) * _WIDTH,)
        Written.
    """
    w = _WIDTH
    radius = len(weights) // 2
    for j in range(0, length, _ROWS):
        out = sums[j * w : (j + _ROWS) * w]
        middle = padded[(j + radius) * w : (j + radius + _ROWS) * w]
        for i in range(_ROWS * w):
            out[i] = middle[i] * weights[radius]
        # Four pairs at a time, one after another.
        k = 0
        while k + 4 <= radius:
            a, b, c, d = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
            mirror = j + 2 * radius - k
            left = padded[(j + k) * w : (j + k + 7) * w]
            right = padded[(mirror - 3) * w : (mirror + 4) * w]
            for i in range(w):
                l1, l2, l3 = left[w + i], left[2 * w + i], left[3 * w + i]
                l4, l5 = left[4 * w + i], left[5 * w + i]
                r1, r2, r3 = right[w + i], right[2 * w + i], right[3 * w + i]
                r4, r5 = right[4 * w + i], right[5 * w + i]
                total = out[i] + (left[i] + r3) * a
                total += (l1 + r2) * b
                total += (l2 + r1) * c
                out[i] = total + (l3 + right[i]) * d
                total = out[w + i] + (l1 + r4) * a
                total += (l2 + r3) * b
                total += (l3 + r2) * c
                out[w + i] = total + (l4 + r1) * d
                total = out[2 * w + i] + (l2 + r5) * a
                total += (l3 + r4) * b
                total += (l4 + r3) * c
                out[2 * w + i] = total + (l5 + r2) * d
                total = out[3 * w + i] + (l3 + right[6 * w + i]) * a
                total += (l4 + r5) * b
                total += (l5 + r4) * c
                out[3 * w + i] = total + (left[6 * w + i] + r3) * d
            k += 4
        while k < radius:
            left = padded[(j + k) * w : (j + k + _ROWS) * w]
            right = padded[(j + 2 * radius - k) * w : (j + 2 * radius - k + _ROWS) * w]
            for i in range(_ROWS * w):
                out[i] += (left[i] + right[i]) * weights[k]
            k += 1
