"""SIGTERM, by which a scheduler ends what runs, heard as Ctrl-C is."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self

from planners.result import TERMINATED

#: Said of what is still to be done once a run was interrupted.
AGAIN = " (Ctrl-C again ends at once)"


class Terminations:
    """Makes the first SIGTERM within a block a `KeyboardInterrupt` that says so.

    What comes after the first changes nothing: the run is ending already.  Only the main thread of
    a program hears signals, and one that the program ignores stays ignored.
    """

    def __init__(self) -> None:
        self._before: Any = signal.SIG_IGN
        self._heard = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGTERM)
            if self._before != signal.SIG_IGN:
                signal.signal(signal.SIGTERM, self._hear)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._before != signal.SIG_IGN:
            # One that was not Python's own cannot be put back by Python.
            before = signal.SIG_DFL if self._before is None else self._before
            signal.signal(signal.SIGTERM, before)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        again, self._heard = self._heard, True
        if not again:
            raise KeyboardInterrupt(TERMINATED)
