"""Numbers as they were printed, beside answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from planners.result import SolveResult

# How much of an answer float64 may have rounded away.
_ROUNDING = 1e-9


def assert_printed(
    result: SolveResult, published: float, *, at: Any, digits: int | None = None
) -> None:
    """Assert that an answer is what was published, and its certified interval too.

    Parameters
    ----------
    result : SolveResult
        Its interval must be narrower than what the printed digits leave open.
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
    open_to = _ROUNDING * max(1.0, abs(published))
    if digits is not None:
        open_to += 0.5 * 10.0**-digits
    assert lower <= value <= upper
    assert abs(value - published) <= open_to, (value, published)
    assert lower - open_to <= published <= upper + open_to, (lower, published, upper)
    assert upper - lower <= (1e-5 if digits is None else 2 * open_to), (lower, upper)
