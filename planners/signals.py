"""Signals that ask a run to end, heard while it runs: SIGTERM, and Ctrl-C."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self

import numpy as np

from planners.engine import Parts
from planners.result import KEYBOARD

#: Message of a run that a scheduler ended.
TERMINATED = "terminated by SIGTERM"


class Signals:
    """Takes note of what asks for an end, during a block, and puts back what was there before.

    Of one process alone SIGTERM is a KeyboardInterrupt, as Ctrl-C is without this.  Where several
    processes work together none may leave in the middle of what all of them do: Ctrl-C and SIGTERM
    are noted, for all to agree at the end of an iteration, and only a second Ctrl-C is raised.
    Only the main thread of a program hears signals; elsewhere nothing is done.

    Parameters
    ----------
    terminates : bool
        Whether SIGTERM is heard.
    together : bool
        Whether there are several processes.

    """

    def __init__(self, *, terminates: bool, together: bool) -> None:
        self._wanted = self._terminated = False
        self._together = together
        self._heard = [signal.SIGTERM] if terminates else []
        if together:
            self._heard.append(signal.SIGINT)
        self._before: list[tuple[signal.Signals, Any]] = []

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in self._heard:
                before = signal.getsignal(number)
                # What is ignored, as Ctrl-C is in the background of a shell, stays so.
                if before != signal.SIG_IGN:
                    self._before.append((number, before))
                    signal.signal(number, self._hear)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, before in self._before:
            # One that was not Python's own cannot be put back by Python.
            signal.signal(number, signal.SIG_DFL if before is None else before)

    @property
    def words(self) -> str:
        """What the signal that was heard says of the end of a run."""
        return TERMINATED if self._terminated else KEYBOARD

    def shared(self, stop: bool, parts: Parts) -> tuple[bool, str]:
        """Return what all processes agree on: whether one wants to stop, and what a signal says.

        Parameters
        ----------
        stop : bool
            Whether this one wants to.
        parts : Parts

        Returns
        -------
        stop : bool
        words : str
            Empty where no signal was heard.
        """
        if parts.size > 1:
            own = np.array([[stop, self._wanted, self._terminated]])
            told = np.flatnonzero(parts.gathered(own).any(axis=0))
            stop, self._wanted, self._terminated = (place in told for place in range(3))
        return stop, self.words if self._wanted else ""

    def _hear(self, number: int, frame: FrameType | None) -> None:
        again, self._wanted = self._wanted, True
        if number == signal.SIGTERM:
            self._terminated = True
            if self._together or again:
                return  # it is ending already
        elif not again:
            return
        raise KeyboardInterrupt
