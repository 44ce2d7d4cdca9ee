"""Arguments checked, with errors that name the argument, the value and what is allowed."""

from __future__ import annotations

import difflib
import math
import numbers
import operator
from collections.abc import Iterable
from typing import Any


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse a value that is not one of the choices, listing them."""
    names = list(choices)
    if value not in names:
        hint = did_you_mean(value, names)
        raise ValueError(f"{name} must be one of {', '.join(names)}, got {value!r}{hint}")


def did_you_mean(value: Any, choices: Iterable[str]) -> str:
    """Return the end of a message that suggests the choice nearest to a value; "" if none is."""
    close = difflib.get_close_matches(str(value), list(choices), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def check_finite(name: str, value: Any) -> None:
    """Refuse what is not a finite real number."""
    if not is_real(value) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}")


def check_positive(name: str, value: Any) -> None:
    """Refuse what is not a finite real number above 0."""
    if not is_real(value) or not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value!r}")


def check_time_limit(value: Any) -> None:
    """Refuse a time limit that is neither None nor a positive number of seconds."""
    if value is not None and not (is_real(value) and value > 0):
        raise ValueError(f"time_limit must be a positive number of seconds, got {value!r}")


def check_share(name: str, value: Any) -> None:
    """Refuse what is not a number in [0, 1]."""
    if not is_real(value) or not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must be in [0, 1], got {value!r}")


def check_probability(name: str, value: Any) -> None:
    """Refuse what is not a number in (0, 1]."""
    if not is_real(value) or not 0.0 < value <= 1.0:
        raise ValueError(f"{name} must be in (0, 1], got {value!r}")


def check_uniform(name: str, value: Any) -> None:
    """Refuse what is not a number in [0, 1), as a generator draws it."""
    if not is_real(value) or not 0.0 <= value < 1.0:
        raise ValueError(f"{name} must be in [0, 1), got {value!r}")


def check_integer(name: str, value: Any, least: int = 0, below: int | None = None) -> int:
    """Return an integer at least ``least`` and below ``below``, and refuse anything else.

    Numpy integers and integer arrays without axes, as Stable-Baselines3 gives them, will do.
    """
    allowed = f"at least {least}" if below is None else f"in [{least}, {below})"
    try:
        index = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer {allowed}, got {value!r}") from None
    if index < least or (below is not None and index >= below):
        raise ValueError(f"{name} must be {allowed}, got {index}")
    return index


def is_real(value: Any) -> bool:
    """Return whether a value is a real number, booleans aside."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def check_gamma(gamma: float) -> float:
    """Return a discount in [0, 1), and refuse any other."""
    if not is_real(gamma):
        raise TypeError(f"gamma must be a number in [0, 1), got {gamma!r}")
    if gamma == 1:
        raise ValueError(
            "gamma must be in [0, 1), got 1: undiscounted costs are not supported; take a "
            "discount near 1, such as 1 - 1/(longest path)"
        )
    if not 0 <= gamma < 1:
        raise ValueError(f"gamma must be in [0, 1), got {gamma!r}")
    return float(gamma)
