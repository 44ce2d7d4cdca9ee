"""Mazes of blocks within blocks, each with a spanning tree of its own, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from aggmaze import kernel_cache  # noqa: F401  (before any kernel)
from aggmaze.layouts.counter_kernels import bits_at
from aggmaze.layouts.passage_kernels import next_coords, to_coords


@njit(cache=True, inline="always")
def _block_number(shape, size, coords):
    """Return the number of the block of so many cells a side that coordinates lie in."""
    number = 0
    for axis in range(len(shape)):
        number = number * ((shape[axis] - 1) // size + 1) + coords[axis] // size
    return number


@njit(cache=True)
def list_blocks(shape, side, lo, hi, numbers):
    """Write the numbers of the blocks that cells lie in, run by run along the last axis.

    Parameters
    ----------
    shape : ndarray of int64, shape (D,)
    side : int
        Cells along each side of a block.
    lo, hi : int
        The cells are ``lo`` to ``hi - 1``.
    numbers : ndarray of int64
        Written; one for each run at most.

    Returns
    -------
    int
        How many were written.  One may be there more than once.
    """
    last = len(shape) - 1
    coords = np.empty(len(shape), dtype=np.int64)
    to_coords(lo, shape, coords)
    state = lo
    count = 0
    while state < hi:
        numbers[count] = _block_number(shape, side, coords)
        count += 1
        end = min(coords[last] - coords[last] % side + side, shape[last])
        state += end - coords[last]
        coords[last] = end - 1
        next_coords(shape, coords)
    return count


@njit(cache=True, inline="always")
def _place_of(numbers, number):
    """Return where a number stands among sorted ones."""
    low, high = 0, len(numbers)
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, inline="always")
def _is_door(key, level, size, axis, shape, coords):
    """Return whether it is at this cell that its part of a block is joined to the next one.

    Parameters
    ----------
    key : np.uint64
    level, size : int
        The parts have ``size`` cells a side.
    axis : int
        Along which they are neighbours.
    """
    num_dims = len(shape)
    part = bits_at(key, np.uint64(level * num_dims + axis))
    for k in range(num_dims):
        part = bits_at(part, np.uint64(coords[k] // size))
    for k in range(num_dims):
        if k != axis:
            first = coords[k] - coords[k] % size
            extent = min(size, shape[k] - first)
            door = np.int64(bits_at(part, np.uint64(k)) % np.uint64(extent))
            if coords[k] != first + door:
                return False
    return True


@njit(cache=True, nogil=True)
def join_blocks(key, shape, side, ends, numbers, trees, lo, out):
    """Write the passages of cells, bit k for the one at +1 along axis k.

    A block of level l has ``side`` parts along each axis, which are blocks of level l - 1; those of
    level 0 are made of cells.  Parts that the tree of their block joins have one door.

    Parameters
    ----------
    key : np.uint64
        Of the doors.
    shape : ndarray of int64, shape (D,)
    side : int
    ends : ndarray of int64, shape (L + 1,)
        Blocks of level l are those from ``ends[l]`` to ``ends[l + 1]``.
    numbers : ndarray of int64, shape (N,)
        Sorted within a level: all blocks in which the cells lie.
    trees : ndarray of uint8, shape (N, side ** D)
        Passages of the parts of each.
    lo : int
        First state.
    out : ndarray of uint8, shape (B,)
        Written.
    """
    num_dims = len(shape)
    last = num_dims - 1
    coords = np.empty(num_dims, dtype=np.int64)
    to_coords(lo, shape, coords)
    block = inside = 0
    for i in range(len(out)):
        if i == 0 or coords[last] % side == 0:
            block = _place_of(numbers[: ends[1]], _block_number(shape, side, coords))
            inside = 0
            for axis in range(num_dims):
                inside = inside * side + coords[axis] % side
        else:
            inside += 1
        bits = trees[block, inside]
        for axis in range(num_dims):
            x = coords[axis]
            if x % side < side - 1 or x == shape[axis] - 1:
                continue
            level, size = 1, side
            while (x // size) % side == side - 1:
                level += 1
                size *= side
            known = numbers[ends[level] : ends[level + 1]]
            number = ends[level] + _place_of(known, _block_number(shape, size * side, coords))
            part = 0
            for k in range(num_dims):
                part = part * side + (coords[k] // size) % side
            if trees[number, part] >> axis & 1 and _is_door(key, level, size, axis, shape, coords):
                bits |= np.uint8(1 << axis)
        out[i] = bits
        next_coords(shape, coords)
