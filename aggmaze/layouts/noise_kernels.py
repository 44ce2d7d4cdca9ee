"""Smooth random heights of which any block of cells can be made alone, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from aggmaze import kernel_cache  # noqa: F401  (before any kernel)
from aggmaze.layouts.counter_kernels import bits_at, uniform_of
from aggmaze.layouts.passage_kernels import next_line, to_coords


@njit(cache=True, inline="always")
def _fade(t):
    """Return how far from one point of a lattice to the next a value is: 6 t^5 - 15 t^4 + 10 t^3.

    Slope and curvature are 0 at both ends (Perlin, Improving noise, SIGGRAPH 2002).
    """
    return t * t * t * (t * (t * 6.0 - 15.0) + 10.0)


@njit(cache=True)
def _lattice_value(keys, weights, place):
    """Return the value on a line where it passes a point of the lattice along the last axis.

    It is the mean of those at the corners around it, whose ``keys`` and ``weights``, both of shape
    (2 ** (D - 1),), `_around` finds.
    """
    total = 0.0
    for corner in range(len(keys)):
        total += weights[corner] * uniform_of(bits_at(keys[corner], np.uint64(place)))
    return total


@njit(cache=True)
def _around(key, spacing, coords, keys, weights):
    """Write the keys and weights of the corners of the lattice around a line of cells."""
    keys[0] = key
    weights[0] = 1.0
    count = 1
    for axis in range(len(coords) - 1):
        low = coords[axis] // spacing[axis]
        share = _fade((coords[axis] - low * spacing[axis]) / spacing[axis])
        for corner in range(count):
            # The upper half first: the lower one takes the place of what it is made from.
            keys[count + corner] = bits_at(keys[corner], np.uint64(low + 1))
            weights[count + corner] = weights[corner] * share
            keys[corner] = bits_at(keys[corner], np.uint64(low))
            weights[corner] *= 1.0 - share
        count *= 2


@njit(cache=True, nogil=True)
def value_noise(octave_keys, amplitudes, spacings, shape, lo, out):
    """Write the heights of cells: sums of values drawn on lattices, interpolated in between.

    Parameters
    ----------
    octave_keys : ndarray of uint64, shape (N,)
        Of the N lattices.
    amplitudes : ndarray of float, shape (N,)
        What each adds at most; they sum to 1.
    spacings : ndarray of int64, shape (N, D)
        Cells from one point of each lattice to the next, along each axis.
    shape : ndarray of int64, shape (D,)
    lo : int
        First state.
    out : ndarray of float, shape (B,)
        Written, in [0, 1].
    """
    num_dims = len(shape)
    last = num_dims - 1
    coords = np.empty(num_dims, dtype=np.int64)
    keys = np.empty(1 << last, dtype=np.uint64)
    weights = np.empty(1 << last)
    to_coords(lo, shape, coords)
    done = 0
    while done < len(out):
        first = coords[last]
        line = out[done : done + min(len(out) - done, shape[last] - first)]
        line[:] = 0.0
        for octave in range(len(octave_keys)):
            spacing = spacings[octave, last]
            amplitude = amplitudes[octave]
            _around(octave_keys[octave], spacings[octave], coords, keys, weights)
            place = first // spacing
            here = _lattice_value(keys, weights, place)
            begin = 0
            while begin < len(line):
                there = _lattice_value(keys, weights, place + 1)
                offset = first - place * spacing
                end = min(spacing - offset, len(line))
                for i in range(begin, end):
                    share = _fade((offset + i) / spacing)
                    line[i] += amplitude * (here + (there - here) * share)
                begin = end
                here = there
                place += 1
        for i in range(len(line)):
            line[i] = min(line[i], 1.0)  # which rounding may exceed
        done += len(line)
        next_line(shape, coords)
