"""Numbers as they were printed, beside answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from planners.result import SolveResult

# What rounding may have taken from a model in float64, and from what was worked out by hand.
_ROUNDING = 1e-12
# How wide an interval may be beside the values; by default runs go to 1e-6.
_WIDTH = 5e-6


def assert_printed(
    result: SolveResult, published: float, *, at: Any, digits: int | None = None
) -> None:
    """Assert that an answer is what was published, and its certified interval too.

    Parameters
    ----------
    result : SolveResult
        Its certified interval must be narrow.
    published : float
        As a cost.
    at : int or tuple of int
        Where in the values.
    digits : int, optional
        How many digits after the decimal point were printed; all of them by default.
    """
    assert result.success, result.message
    lower, value, upper = (float(a[at]) for a in (result.lower, result.values, result.upper))
    if np.isinf(published):
        assert lower == value == upper == published
        return
    finite = np.isfinite(result.values)
    open_to = _ROUNDING * max(1.0, abs(published))
    if digits is not None:
        open_to += 0.5 * 10.0**-digits
    assert lower <= value <= upper
    assert lower - open_to <= published <= upper + open_to, (lower, published, upper)
    assert abs(value - published) <= result.bound + open_to, (value, published)
    assert upper - lower <= _WIDTH * max(
        1.0, float(np.abs(result.values).max(where=finite, initial=0.0))
    )
