"""What ends a run early, decided by all processes at once, so that none waits for the others.

A signal that reaches one process, a clock that runs out and a callback that asks to stop are told
to all at the next sweep; all then leave the loop at the same place.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from types import TracebackType
from typing import Any, NoReturn, Self

import numpy as np

from planners.budget import Clock, OutOfTimeError
from planners.distributed.processes import Processes
from planners.record import Callback, Progress
from planners.result import KEYBOARD, TERMINATED

# Seconds after an interruption in which more signals are the same one, on its way to all processes.
_ONE_SIGNAL = 2.0


class Signals:
    """Ctrl-C and SIGTERM, noted instead of raised while in force, and raised by `Clock.check`.

    Only in the main thread, and only those that nobody ignores.  One that is still noted at the end
    goes to who heard signals before.
    """

    def __init__(self) -> None:
        self._usual: dict[int, Any] = {}
        self._noted = 0
        self._deaf_until = -math.inf

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._usual[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, usual in self._usual.items():
            signal.signal(number, usual)
        self._usual.clear()
        # An interruption that is on its way ends what there is.
        if self._noted and not isinstance(error, KeyboardInterrupt):
            number, self._noted = self._noted, 0
            signal.raise_signal(number)

    def _note(self, number: int, frame: object) -> None:
        if time.monotonic() >= self._deaf_until:
            self._noted = number

    @property
    def noted(self) -> int:
        """The number of one that has not been raised, 0 without one."""
        return self._noted

    def forget(self) -> None:
        """Take what was noted here, or in another process, as heard."""
        self._noted = 0
        self._deaf_until = time.monotonic() + _ONE_SIGNAL

    def raise_as(self, number: int) -> NoReturn:
        """Raise a signal that was noted here, or in another process."""
        self.forget()
        raise KeyboardInterrupt(words_of(number))

    def raise_noted(self) -> None:
        """Raise what was noted, in this process alone."""
        if self._noted:
            self.raise_as(self._noted)


def words_of(number: int) -> str:
    """Return what is said of a run that a signal ended.

    Parameters
    ----------
    number : int
    """
    return TERMINATED if number == signal.SIGTERM else KEYBOARD


class CommonClock(Clock):
    """The clock of the first process, which all go by.

    All methods are called by all processes at once.

    Parameters
    ----------
    processes : Processes
    signals : Signals
    limit : float, optional
        Seconds.
    """

    def __init__(self, processes: Processes, signals: Signals, limit: float | None = None) -> None:
        super().__init__(limit)
        self._processes, self._signals = processes, signals

    def seconds(self) -> float:
        """Return the seconds so far."""
        return self._processes.first(super().seconds())

    def check(self) -> None:
        """Raise in all processes what one has a reason for: time out, or a signal."""
        is_late = self._limit < math.inf and super().seconds() > self._limit
        reasons = np.array([self._signals.noted, is_late and self._processes.rank == 0], float)
        number, late = self._processes.largest(reasons)
        if number:
            self._signals.raise_as(int(number))
        if late:
            raise OutOfTimeError


def common_callback(processes: Processes, callback: Callback | None) -> Callback | None:
    """Return a callback that asks to stop in all processes if one of theirs does.

    Parameters
    ----------
    processes : Processes
    callback : callable, optional
        Of this process; others may have another, or none.
    """
    if not processes.any(callback is not None):
        return None

    def call(progress: Progress) -> bool:
        asks = processes.together(lambda: callback is not None and bool(callback(progress)))
        return processes.any(asks)

    return call
