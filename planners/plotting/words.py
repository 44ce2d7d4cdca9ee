"""Words and numbers of pictures."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

_MOST_LETTERS = 16
#: What values are, unless that is said.
COST, RETURN = "cost-to-go (unit of costs)", "return (unit of rewards)"


def short(name: Hashable) -> str:
    """Return a name as a picture has room for it, free of matplotlib's signs for formulas."""
    text = str(name)
    text = text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}…"
    return text.replace("$", r"\$")


def in_digits(number: float, digits: int = 3) -> str:
    """Return a number in a few digits, and from a thousand to a million in whole ones.

    Parameters
    ----------
    number : float
    digits : int
    """
    words = f"{number + 0.0:.{digits}g}"
    if 1000 <= abs(float(words)) < 1e6:
        return f"{number:,.{max(0, digits - 4)}f}"
    return words


def told_apart(numbers: NDArray[np.float64]) -> list[str]:
    """Return numbers in as many digits, up to 10, as it takes to tell each from the next."""
    for digits in range(3, 11):
        words = [in_digits(number, digits) for number in numbers]
        if len({*words}) == len(words):
            break
    return words


def fitted(text: str, inches: float, size: float = 10.0) -> str:
    """Break a text into lines that fit a length.

    Parameters
    ----------
    text : str
    inches : float
    size : float
        Of the font, in points.
    """
    return textwrap.fill(text, max(16, int(inches * 72 / (0.53 * size))))
