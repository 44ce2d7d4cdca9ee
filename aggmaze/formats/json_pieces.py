"""JSON texts that are read piece by piece.

`json.load` lets nothing else run until it is through, neither Ctrl-C nor the thread that tells how
far something is.  Of a long text with two levels of brackets around many short values, such as a
table of states and actions, no piece takes long.
"""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from aggmaze.progress import report_bytes

# Brackets that are opened here; what is inside of them is read at once.
_LEVELS = 2
# Characters between two reports of how far the reading is.
_TOLD = 1 << 20

_decode = json.JSONDecoder().raw_decode
_space = re.compile(r"[ \t\n\r]*").match


class _OddError(Exception):
    """What stands between two pieces is not what should."""


def load_json(file: IO[bytes]) -> Any:
    """Return what `json.load` returns, or raise what it raises.

    Parameters
    ----------
    file : binary file
    """
    data = file.read()
    text = data.decode(json.detect_encoding(data), "surrogatepass")
    del data
    try:
        with _without_collections():
            return _Pieces(text).all()
    except _OddError:
        return json.loads(text)  # which says what is wrong


@contextmanager
def _without_collections() -> Iterator[None]:
    """Look for no garbage: lists that come by millions are none, and each look takes longer."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class _Pieces:
    """A text, and how much of it was told."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._told = 0

    def all(self) -> Any:
        """Return the value that is the text."""
        value, end = self._value(self._after_space(0), _LEVELS)
        if self._after_space(end) != len(self._text):
            raise _OddError
        return value

    def _value(self, at: int, levels: int) -> tuple[Any, int]:
        """Return the value that begins at a place, and where it ends."""
        bracket = self._text[at : at + 1]
        if levels and bracket == "[":
            return self._list(at, levels)
        if levels and bracket == "{":
            return self._object(at, levels)
        if at - self._told >= _TOLD:
            self._told = at
            report_bytes(at, len(self._text))
        return _decode(self._text, at)

    def _list(self, at: int, levels: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        at = self._after_space(at + 1)
        if self._text[at : at + 1] == "]":
            return found, at + 1
        while True:
            value, at = self._value(at, levels - 1)
            found.append(value)
            at, ends = self._next(at, "]")
            if ends:
                return found, at

    def _object(self, at: int, levels: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        at = self._after_space(at + 1)
        if self._text[at : at + 1] == "}":
            return found, at + 1
        while True:
            if self._text[at : at + 1] != '"':
                raise _OddError
            name, at = _decode(self._text, at)
            at = self._after_space(at)
            if self._text[at : at + 1] != ":":
                raise _OddError
            found[name], at = self._value(self._after_space(at + 1), levels - 1)
            at, ends = self._next(at, "}")
            if ends:
                return found, at

    def _next(self, at: int, closing: str) -> tuple[int, bool]:
        """Return where what follows a value begins, and whether that is behind the bracket."""
        at = self._after_space(at)
        mark = self._text[at : at + 1]
        if mark == closing:
            return at + 1, True
        at = self._after_space(at + 1)
        # Which of Python's versions differ in what they say of a comma before the bracket.
        if mark != "," or self._text[at : at + 1] == closing:
            raise _OddError
        return at, False

    def _after_space(self, at: int) -> int:
        match = _space(self._text, at)
        assert match is not None  # it may be empty
        return match.end()
