"""Arguments checked, with errors that name the argument, the value and what is allowed."""

from __future__ import annotations

import difflib
import math
import numbers
import operator
import sys
from collections.abc import Iterable
from typing import Any


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse a value that is not one of the choices, listing them.

    Parameters
    ----------
    name : str
        What the error calls it.
    value : object
    choices : iterable of str
    """
    names = list(choices)
    if value not in names:
        hint = did_you_mean(value, names)
        raise ValueError(f"{name} must be one of {', '.join(names)}, got {value!r}{hint}")


def did_you_mean(value: Any, choices: Iterable[str]) -> str:
    """Return the end of a message that suggests the choice nearest to a value; "" if none is.

    Parameters
    ----------
    value : object
    choices : iterable of str
    """
    close = difflib.get_close_matches(str(value), list(choices), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def check_finite(name: str, value: Any) -> None:
    """Refuse what is not a finite real number.

    Parameters
    ----------
    name : str
        What the error calls it.
    value : object
    """
    if not math.isfinite(as_float(value)):
        raise ValueError(f"{name} must be a finite number, got {shown(value)}")


def check_positive(name: str, value: Any) -> None:
    """Refuse what is not a finite real number above 0.

    Parameters
    ----------
    name : str
        What the error calls it.
    value : object
    """
    if not 0.0 < as_float(value) < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {shown(value)}")


def check_not_negative(name: str, value: Any) -> None:
    """Refuse what is not a finite real number, 0 or more.

    Parameters
    ----------
    name : str
        What the error calls it.
    value : object
    """
    if not 0.0 <= as_float(value) < math.inf:
        raise ValueError(f"{name} must be finite and not negative, got {shown(value)}")


def check_time_limit(value: Any) -> None:
    """Refuse a time limit that is neither None nor a positive number of seconds."""
    if value is None:
        return
    seconds = as_float(value)
    if not seconds > 0.0 or (math.isinf(seconds) and value != seconds):
        raise ValueError(f"time_limit must be a positive number of seconds, got {shown(value)}")


def check_share(name: str, value: Any) -> None:
    """Refuse what is not a number in [0, 1].

    Parameters
    ----------
    name : str
        What the error calls it.
    value : object
    """
    if not 0.0 <= as_float(value) <= 1.0:
        raise ValueError(f"{name} must be in [0, 1], got {shown(value)}")


def check_chance(name: str, value: Any) -> None:
    """Refuse what is not a number in (0, 1].

    Parameters
    ----------
    name : str
        What the error calls it.
    value : object
    """
    if not 0.0 < as_float(value) <= 1.0:
        raise ValueError(f"{name} must be in (0, 1], got {shown(value)}")


def check_uniform(name: str, value: Any) -> None:
    """Refuse what is not a number in [0, 1), as a generator draws it.

    Parameters
    ----------
    name : str
        What the error calls it.
    value : object
    """
    if not 0.0 <= as_float(value) < 1.0:
        raise ValueError(f"{name} must be in [0, 1), got {shown(value)}")


def check_integer(name: str, value: Any, least: int = 0, below: int | None = None) -> int:
    """Return an integer at least ``least`` and below ``below``, and refuse anything else.

    Numpy integers and integer arrays without axes, as Stable-Baselines3 gives them, will do.

    Parameters
    ----------
    name : str
        What the error calls it.
    value : object
    least : int
    below : int, optional
        No limit by default.
    """
    allowed = f"at least {least}" if below is None else f"in [{least}, {below})"
    try:
        index = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer {allowed}, got {shown(value)}") from None
    if index < least or (below is not None and index >= below):
        raise ValueError(f"{name} must be {allowed}, got {shown(index)}")
    if index > sys.float_info.max:
        raise ValueError(f"{name} must be {allowed} and within float64, got {shown(index)}")
    return index


def is_real(value: Any) -> bool:
    """Return whether a value is a real number, booleans aside."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def as_float(value: Any) -> float:
    """Return a real number in float64, infinite beyond its range; NaN for what is no number."""
    if not is_real(value):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def shown(value: Any) -> str:
    """Return a value as messages show it; integers and fractions beyond float64 in words."""
    if isinstance(value, numbers.Rational) and math.isinf(as_float(value)):
        return f"a number beyond float64, which ends at {sys.float_info.max:.2g}"
    return repr(value)


def check_gamma(gamma: float) -> float:
    """Return a discount in [0, 1), and refuse any other."""
    if not is_real(gamma):
        raise TypeError(f"gamma must be a number in [0, 1), got {gamma!r}")
    if gamma == 1:
        raise ValueError(
            f"gamma must be in [0, 1) for discounted costs, got {gamma!r}: without a discount it "
            "is another objective, TotalCost()"
        )
    if not 0 <= gamma < 1:
        raise ValueError(f"gamma must be in [0, 1), got {gamma!r}")
    return float(gamma)


def check_discount(gamma: float) -> float:
    """Return a discount in [0, 1], and refuse any other."""
    if not is_real(gamma):
        raise TypeError(f"gamma must be a number in [0, 1], got {gamma!r}")
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma must be in [0, 1], got {gamma!r}")
    return float(gamma)
