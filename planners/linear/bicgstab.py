"""BiCGSTAB with a preconditioner on the right (van der Vorst, 1992).

Sums run in a fixed order, whatever the number of threads: no library for linear algebra is called.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from aggmaze.progress import report_error
from planners.kernels.vectors import Vector, dot, sup_norm

# Numbers of sizes between 2 to minus this and 2 to this have squares with all their digits.
_SAFE_EXPONENT = 400
# It ends where the residual is this many times what it was at first.
_GROWTH = 1e6


class KrylovSolution(NamedTuple):
    """What BiCGSTAB arrived at.

    Parameters
    ----------
    values : ndarray of float, shape (S,)
    reduction : float
        2-norm of the residual in units of that of ``right``; NaN or infinite where it broke down.
    num_steps : int
        Of two applications each.
    """

    values: Vector
    reduction: float
    num_steps: int


def bicgstab(
    apply: Callable[[Vector, Vector, Vector], None],
    right: Vector,
    *,
    reduction: float,
    most_steps: int,
    least_norm: float = 0.0,
    max_value: float = math.inf,
) -> KrylovSolution:
    """Solve A x = right from x = 0.

    Parameters
    ----------
    apply : callable
        ``apply(d, smoothed, image)`` writes ``M^-1 d`` and ``A M^-1 d``, M the preconditioner.
    right : ndarray of float, shape (S,)
    reduction : float
        End where the 2-norm of the residual is at most this many times that of ``right``.
    most_steps : int
        Most steps, of two applications each.
    least_norm : float
        End too where the 2-norm of the residual is at most this.
    max_value : float
        End too where an entry of x is larger in size.

    Returns
    -------
    KrylovSolution
    """
    exponent = math.frexp(sup_norm(right))[1]
    if abs(exponent) > _SAFE_EXPONENT:
        # Squares would overflow or vanish.
        unit = math.ldexp(1.0, exponent)
        found = bicgstab(
            apply,
            right / unit,
            reduction=reduction,
            most_steps=most_steps,
            least_norm=least_norm / unit,
            max_value=max_value / unit,
        )
        return found._replace(values=found.values * unit)
    x = np.zeros_like(right)
    residual, shadow, direction = right.copy(), right, right.copy()
    smoothed = np.empty_like(right)
    image, second_image = np.empty_like(right), np.empty_like(right)
    first = rho = squared = dot(right, right)
    target = max(reduction**2 * first, least_norm**2)
    num_steps = 0
    while num_steps < most_steps:
        num_steps += 1
        apply(direction, smoothed, image)
        alpha = _quotient(rho, dot(shadow, image))
        _add(x, alpha, smoothed)
        _add(residual, -alpha, image)
        apply(residual, smoothed, second_image)
        omega = _quotient(dot(second_image, residual), dot(second_image, second_image))
        _add(x, omega, smoothed)
        _add(residual, -omega, second_image)
        squared = dot(residual, residual)
        previous, rho = rho, dot(shadow, residual)
        beta = _quotient(rho, previous) * _quotient(alpha, omega)
        if first > 0.0 and target > 0.0:
            report_error(math.sqrt(squared / first), math.sqrt(target / first))
        # A beta of 0: the method has broken down, or is at its end.
        if beta == 0.0 or not target < squared < _GROWTH**2 * first:
            break
        if max_value < math.inf and not sup_norm(x) <= max_value:
            break
        _turn(direction, beta, omega, image, residual)
    left = math.sqrt(squared / first) if first else 0.0
    return KrylovSolution(x, left, num_steps)


def _quotient(numerator: float, denominator: float) -> float:
    """Return a quotient, or 0 where there is none."""
    quotient = numerator / denominator if denominator else 0.0
    return quotient if math.isfinite(quotient) else 0.0


@njit(cache=True, nogil=True)
def _add(x, factor, y):
    for i in range(len(x)):
        x[i] += factor * y[i]


@njit(cache=True, nogil=True)
def _turn(direction, beta, omega, image, residual):
    for i in range(len(direction)):
        direction[i] = residual[i] + beta * (direction[i] - omega * image[i])
