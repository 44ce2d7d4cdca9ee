"""How far something long is, told to who listens.

Between a command and the loop that knows how far it is may stand `gymnasium.make`, or a reader
whose keywords are what users may ask of it: so the loop reports to whoever listens in its thread,
and to nobody otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO

#: Takes what is done, of how much, and what is counted, in the plural.
Listener = Callable[[int, int, str], object]

#: Takes an error that shrinks, and how small it is to become.
ErrorListener = Callable[[float, float], object]

#: Takes what goes on from now on, "" where what goes on is no stage of its own.
StageListener = Callable[[str], object]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_error_listener: ContextVar[ErrorListener | None] = ContextVar("error_listener", default=None)
_stage_listener: ContextVar[StageListener | None] = ContextVar("stage_listener", default=None)
_stage: ContextVar[str] = ContextVar("stage", default="")
_MEGABYTE = 10**6


@contextmanager
def listening(
    listener: Listener,
    of_errors: ErrorListener | None = None,
    of_stages: StageListener | None = None,
) -> Iterator[None]:
    """Let functions hear what is reported in the block, by this thread.

    Parameters
    ----------
    listener : callable
        Hears how much is done.  Called often: it must be quick.
    of_errors : callable, optional
        Hears how near what converges is; by default nobody does.
    of_stages : callable, optional
        Hears which part of it goes on; by default nobody does.
    """
    token, error_token = _listener.set(listener), _error_listener.set(of_errors)
    stage_token, name_token = _stage_listener.set(of_stages), _stage.set("")
    try:
        yield
    finally:
        _listener.reset(token)
        _error_listener.reset(error_token)
        _stage_listener.reset(stage_token)
        _stage.reset(name_token)


@contextmanager
def stage(words: str) -> Iterator[None]:
    """Tell what goes on in the block, a part of something longer.

    A stage within a stage is told in its place; after it the outer one goes on.

    Parameters
    ----------
    words : str
        Such as "choosing a method".
    """
    listener = _stage_listener.get()
    if listener is None:
        yield
        return
    token = _stage.set(words)
    listener(words)
    try:
        yield
    finally:
        _stage.reset(token)
        listener(_stage.get())


def report(done: int, total: int, unit: str) -> None:
    """Tell how much is done.

    Parameters
    ----------
    done, total : int
        Of the units.
    unit : str
        What is counted, in the plural.
    """
    listener = _listener.get()
    if listener is not None:
        listener(done, total, unit)


def errors_are_heard() -> bool:
    """Return whether anybody hears `report_error`, for which an error may have to be computed."""
    return _error_listener.get() is not None


def report_error(error: float, target: float) -> None:
    """Tell how near something that converges is.

    Parameters
    ----------
    error, target : float
        What is left of the error or residual, and at how much it ends, in one unit.
    """
    listener = _error_listener.get()
    if listener is not None:
        listener(error, target)


def report_bytes(done: int, total: int) -> None:
    """Tell how many bytes are done.

    Parameters
    ----------
    done, total : int
    """
    # Heads and frames of files are in no sum.
    report(min(done, total) // _MEGABYTE, -(-total // _MEGABYTE), "MB")


class Counted:
    """A binary file that reports how much of a number of bytes went through it.

    Parameters
    ----------
    file : binary file
        Read from, or written to.
    total : int
        Bytes, of this file and those before it.
    before : int
        Of them, those that went through others.
    """

    def __init__(self, file: IO[bytes], total: int, before: int = 0) -> None:
        self._file, self._total = file, total
        #: Bytes that went through this file and those before it.
        self.done = before

    def write(self, data: bytes) -> int:
        """Write bytes, as the file does."""
        count = self._file.write(data)
        self._passed(len(data))
        return count

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, as the file does."""
        data = self._file.read(size)
        self._passed(len(data))
        return data

    def _passed(self, count: int) -> None:
        self.done += count
        report_bytes(self.done, self._total)
