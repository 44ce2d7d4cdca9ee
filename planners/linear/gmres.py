"""GMRES for ``x = start + A x`` in single or double precision, if need be modulo constants.

A discounted chain without absorbing states multiplies the constant vector by gamma, which nothing
reduces faster; modulo constants (that is, on the vectors orthogonal to them) the solver spends its
steps on the rest, and the constant is added afterwards from the range of one more sweep
(`planners.solvers.modified_policy_iteration`).

Sums run over blocks of a fixed size in a fixed order, so that nothing depends on the number of
threads; no library for linear algebra is called.

Source: Saad, Schultz, "GMRES: a generalized minimal residual algorithm for solving nonsymmetric
linear systems", SIAM Journal on Scientific and Statistical Computing 7 (1986).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planners.kernels.threads import over_blocks

Vector = NDArray[Any]

# Entries that are summed in one go, and stay in the nearest cache meanwhile.
_BLOCK = 4096
_FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}


class GMRES:
    """A basis of Krylov vectors, kept for the next call.

    Parameters
    ----------
    num_steps : int
        Steps of one call at most.
    size : int
        Length of the vectors.
    dtype : type
        float32 or float64.
    num_constant : int
        Length of the constant vector to leave out, which is 0 in the entries after that; 0 for
        none.
    num_threads : int
    """

    def __init__(
        self, num_steps: int, size: int, dtype: Any, *, num_constant: int, num_threads: int
    ) -> None:
        self.num_steps = num_steps
        self._num_threads = num_threads
        self._first = 1 if num_constant else 0
        # The constant vector is the first of the basis, so that all others are orthogonal to it.
        self._basis = np.zeros((self._first + num_steps + 1, size), dtype=dtype)
        if num_constant:
            self._basis[0, :num_constant] = 1.0 / math.sqrt(num_constant)

    def solve(
        self,
        apply: Callable[[Vector, Vector], object],
        x: Vector,
        residual: Vector,
        reduction: float,
    ) -> int:
        """Improve ``x`` in place, whose ``residual = start + A x - x`` is used up.

        Parameters
        ----------
        apply : callable
            ``apply(vector, out)`` writes ``A vector`` into ``out``.
        x, residual : ndarray, shape (size,)
        reduction : float
            End where the 2-norm of the residual is down to this part of what it was.

        Returns
        -------
        num_applications : int
        """
        first, basis = self._first, self._basis
        _, norm = self._orthogonalise(residual, first)
        if not 0.0 < norm < math.inf:
            return 0
        np.multiply(residual, basis.dtype.type(1.0 / norm), out=basis[first])
        # The triangular factor of the Hessenberg matrix, one Givens rotation a step.
        triangle = np.zeros((self.num_steps, self.num_steps))
        right = np.zeros(self.num_steps + 1)
        right[0] = norm
        rotations: list[tuple[float, float]] = []
        work, steps, num_applications = residual, 0, 0
        while steps < self.num_steps:
            newest = basis[first + steps]
            apply(newest, work)
            num_applications += 1
            np.subtract(newest, work, out=work)
            column, rest = self._orthogonalise(work, first + steps + 1)
            column = column[first:]
            for i, (cosine, sine) in enumerate(rotations):
                upper, lower = column[i], column[i + 1]
                column[i] = cosine * upper + sine * lower
                column[i + 1] = cosine * lower - sine * upper
            diagonal = math.hypot(column[steps], rest)
            if not 0.0 < diagonal < math.inf:
                break
            cosine, sine = column[steps] / diagonal, rest / diagonal
            rotations.append((cosine, sine))
            triangle[:steps, steps] = column[:steps]
            triangle[steps, steps] = diagonal
            right[steps], right[steps + 1] = cosine * right[steps], -sine * right[steps]
            steps += 1
            # Beyond its precision a direction is noise.
            if abs(right[steps]) <= reduction * norm or rest <= _noise(basis.dtype):
                break
            np.multiply(work, basis.dtype.type(1.0 / rest), out=basis[first + steps])
        self._add(_back_substituted(triangle, right, steps), x)
        return num_applications

    def _orthogonalise(self, vector: Vector, count: int) -> tuple[NDArray[np.float64], float]:
        """Take the first ``count`` vectors out; return their shares and what norm is left."""
        num_blocks = -(-len(vector) // _BLOCK)
        parts = np.zeros((num_blocks, count + 1))
        basis = self._basis

        def over(kernel: Any, *arguments: Any) -> None:
            over_blocks(
                lambda lo, hi: kernel(*arguments, lo, hi),
                num_blocks,
                self._num_threads,
                len(vector) * (count + 1),
            )

        over(_project, basis, vector, count, parts)
        shares = parts.sum(axis=0)
        over(_subtract, basis, vector, count, shares, parts)
        return shares, math.sqrt(float(parts[:, count].sum()))

    def _add(self, factors: NDArray[np.float64], x: Vector) -> None:
        for factor, vector in zip(factors, self._basis[self._first :], strict=False):
            x += vector.dtype.type(factor) * vector


def _noise(dtype: Any) -> float:
    return 8.0 * float(np.finfo(dtype).eps)


def _back_substituted(
    triangle: NDArray[np.float64], right: NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    """Solve the upper triangular system."""
    solution = np.zeros(size)
    for i in range(size - 1, -1, -1):
        known = sum(triangle[i, k] * solution[k] for k in range(i + 1, size))
        solution[i] = (right[i] - known) / triangle[i, i]
    return solution


@njit(cache=True, nogil=True, fastmath=_FAST)
def _project(basis, vector, count, parts, lo, hi):
    """Write the inner products of each block with the first ``count`` vectors."""
    for block in range(lo, hi):
        begin, end = block * _BLOCK, min(len(vector), (block + 1) * _BLOCK)
        # Cut out and counted from 0: an index that might count from the end is a gather.
        piece = vector[begin:end]
        for i in range(count):
            row = basis[i, begin:end]
            total = vector.dtype.type(0.0)
            for k in range(len(piece)):
                total += row[k] * piece[k]
            parts[block, i] = total


@njit(cache=True, nogil=True, fastmath=_FAST)
def _subtract(basis, vector, count, shares, parts, lo, hi):
    """Take the shares out of each block; write the square of what is left behind them."""
    for block in range(lo, hi):
        begin, end = block * _BLOCK, min(len(vector), (block + 1) * _BLOCK)
        piece = vector[begin:end]
        for i in range(count):
            row = basis[i, begin:end]
            share = vector.dtype.type(shares[i])
            for k in range(len(piece)):
                piece[k] -= share * row[k]
        total = vector.dtype.type(0.0)
        for k in range(len(piece)):
            total += piece[k] * piece[k]
        parts[block, count] = total
