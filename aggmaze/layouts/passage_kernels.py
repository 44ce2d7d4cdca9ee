"""Mazes of which any block of cells can be made alone, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from aggmaze import kernel_cache  # noqa: F401  (before any kernel)
from aggmaze.layouts.counter_kernels import bits_at, choice_of, uniform_of


@njit(cache=True, inline="always")
def to_coords(state, shape, coords):
    """Write the coordinates of a state."""
    for axis in range(len(shape) - 1, -1, -1):
        coords[axis] = state % shape[axis]
        state //= shape[axis]


@njit(cache=True, inline="always")
def next_coords(shape, coords):
    """Go on to the coordinates of the next state; beyond the last one, to those of the first."""
    axis = len(shape) - 1
    coords[axis] += 1
    while axis > 0 and coords[axis] == shape[axis]:
        coords[axis] = 0
        axis -= 1
        coords[axis] += 1


@njit(cache=True, inline="always")
def next_line(shape, coords):
    """Go on to the coordinates of the first cell of the next line along the last axis."""
    coords[len(shape) - 1] = shape[len(shape) - 1] - 1
    next_coords(shape, coords)


@njit(cache=True, inline="always")
def _way_down(key, state, coords):
    """Return the axis along which a cell is joined to the one before it; -1 at the origin."""
    count = 0
    for axis in range(len(coords)):
        count += 1 if coords[axis] > 0 else 0
    if count == 0:
        return -1
    place = np.int64(choice_of(bits_at(key, np.uint64(state)), np.uint64(count)))
    for axis in range(len(coords)):
        if coords[axis] > 0:
            if place == 0:
                return axis
            place -= 1
    return -1


@njit(cache=True, nogil=True)
def binary_tree(key, shape, strides, lo, out):
    """Write the passages of cells of a binary tree, bit k for the one at +1 along axis k.

    Parameters
    ----------
    key : np.uint64
    shape, strides : ndarray of int64, shape (D,)
    lo : int
        First state.
    out : ndarray of uint8, shape (B,)
        Written.
    """
    num_dims = len(shape)
    coords = np.empty(num_dims, dtype=np.int64)
    to_coords(lo, shape, coords)
    for i in range(len(out)):
        bits = 0
        for axis in range(num_dims):
            if coords[axis] < shape[axis] - 1:
                coords[axis] += 1
                joined = _way_down(key, lo + i + strides[axis], coords) == axis
                coords[axis] -= 1
                bits |= 1 << axis if joined else 0
        out[i] = bits
        next_coords(shape, coords)


@njit(cache=True, nogil=True)
def open_walls(key, share, shape, lo, out):
    """Add to the passages of cells a share of the walls between them, each by a draw of its own.

    Parameters
    ----------
    key : np.uint64
    share : float
        In [0, 1].
    shape : ndarray of int64, shape (D,)
    lo : int
    out : ndarray of uint8, shape (B,)
        As `binary_tree` writes it.
    """
    num_dims = len(shape)
    coords = np.empty(num_dims, dtype=np.int64)
    to_coords(lo, shape, coords)
    for i in range(len(out)):
        for axis in range(num_dims):
            if coords[axis] < shape[axis] - 1:
                # A stream of its own for each axis: numbers of walls would exceed 64 bits.
                place = bits_at(key, np.uint64(axis))
                opened = uniform_of(bits_at(place, np.uint64(lo + i))) < share
                out[i] |= np.uint8(1 << axis) if opened else np.uint8(0)
        next_coords(shape, coords)


@njit(cache=True, nogil=True)
def list_moves(shape, strides, lo, successors):
    """Write where each move of a block of states leads: the state itself at an edge of the grid.

    Parameters
    ----------
    shape, strides : ndarray of int64, shape (D,)
    lo : int
    successors : ndarray of int64, shape (B, 2 D)
        Written.
    """
    num_dims = len(shape)
    coords = np.empty(num_dims, dtype=np.int64)
    to_coords(lo, shape, coords)
    for i in range(len(successors)):
        state = lo + i
        for axis in range(num_dims):
            before = coords[axis] > 0
            behind = coords[axis] < shape[axis] - 1
            successors[i, 2 * axis] = state - strides[axis] if before else state
            successors[i, 2 * axis + 1] = state + strides[axis] if behind else state
        next_coords(shape, coords)
