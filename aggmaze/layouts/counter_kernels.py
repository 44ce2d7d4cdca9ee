"""Random numbers by their number: the i-th of a stream, without those before it.

The generator is SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators,
OOPSLA 2014): number i of the stream of a key is a mixture of the bits of ``key + (i + 1) G``, so
that any block of a maze draws what it would as a part of the whole, on any number of processes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from aggmaze import kernel_cache  # noqa: F401  (before any kernel)

# The golden ratio as a fraction of 2**64, and the multipliers of the mixture.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)
_ONE, _11, _32 = np.uint64(1), np.uint64(11), np.uint64(32)
# 53 bits as a fraction.
_SPACING = 2.0**-53


@njit(cache=True, inline="always")
def bits_at(key, index):
    """Return the 64 bits at a place of the stream of a key.

    Parameters
    ----------
    key, index : np.uint64
    """
    bits = key + (index + _ONE) * _STEP
    bits = (bits ^ (bits >> _30)) * _FIRST
    bits = (bits ^ (bits >> _27)) * _SECOND
    return bits ^ (bits >> _31)


@njit(cache=True, inline="always")
def uniform_of(bits):
    """Return 64 bits as a number in [0, 1), of the highest 53."""
    return np.float64(bits >> _11) * _SPACING


@njit(cache=True, inline="always")
def choice_of(bits, count):
    """Return 64 bits as one of ``count`` choices, 2**31 at most, each as likely up to 2**-32.

    Parameters
    ----------
    bits, count : np.uint64
    """
    return ((bits >> _32) * count) >> _32


@njit(cache=True)
def stream(key, first, out):
    """Write the bits at consecutive places of the stream of a key.

    Parameters
    ----------
    key, first : np.uint64
    out : ndarray of uint64
        Written.
    """
    for i in range(len(out)):
        out[i] = bits_at(key, first + np.uint64(i))
