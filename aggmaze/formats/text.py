"""Texts line by line, with errors that name the line and show it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import NoReturn

from aggmaze.progress import report

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,5})?")
_FRACTION = re.compile(r"[+-]?\d{1,2000}/\d{1,2000}")
# A line is shown up to here.
_SHOWN = 60
# Lines between two reports of how far the reading is.
_BLOCK = 4096


class Lines:
    """The lines of a text without blanks around them, empty ones and comments left out.

    Parameters
    ----------
    text : str
    comment : str
        What comments begin with, at the beginning of a line.
    """

    def __init__(self, text: str, comment: str) -> None:
        self._lines = text.split("\n")
        self._comment = comment
        self._next = 0

    def __iter__(self) -> Iterator[str]:
        while self._next < len(self._lines):
            if self._next % _BLOCK == 0:
                report(self._next, len(self._lines), "lines")
            line = self._lines[self._next].strip()
            self._next += 1
            if line and not line.startswith(self._comment):
                yield line

    def __len__(self) -> int:
        return len(self._lines)

    def raw_next(self) -> str:
        """Return the next line as it is, "" at the end."""
        if self._next >= len(self._lines):
            return ""
        self._next += 1
        return self._lines[self._next - 1].rstrip("\r")

    def refuse(self, problem: str) -> NoReturn:
        """Raise a ValueError that says what is wrong with the line last read.

        Parameters
        ----------
        problem : str
        """
        raise ValueError(f"line {self._next}: {_short(problem)}")


def number(lines: Lines, text: str) -> float:
    """Return a decimal number or a fraction of integers, which must be finite.

    Parameters
    ----------
    lines : Lines
        Refuses what is none.
    text : str
    """
    token = text.strip()
    value = math.nan
    if _NUMBER.fullmatch(token) and len(token) <= 4000:
        value = float(token)
    elif _FRACTION.fullmatch(token):
        numerator, _, denominator = token.partition("/")
        try:
            value = float(Fraction(int(numerator), int(denominator)))
        except (ZeroDivisionError, OverflowError):
            value = math.nan
    if not math.isfinite(value):
        lines.refuse(f"{_short(token)!r} is no finite number, such as 0.5, 1e-3 or 1/2")
    return value


def whole(lines: Lines, text: str, what: str) -> int:
    """Return an integer from 0 on, of at most 18 digits.

    Parameters
    ----------
    lines : Lines
        Refuses what is none.
    text, what : str
        The integer, and what it is.
    """
    token = text.strip()
    if not re.fullmatch(r"[0-9]{1,18}", token):
        lines.refuse(f"{what} must be an integer from 0 on, got {_short(token)!r}")
    return int(token)


def _short(text: str) -> str:
    return text if len(text) <= 4 * _SHOWN else f"{text[: 4 * _SHOWN]}..."
