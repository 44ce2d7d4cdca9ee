"""A solve in a thread of its own, which is paused, stepped, slowed down and ended from outside."""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections.abc import Callable
from typing import Any

from planners.record import Callback, Progress
from planners.result import SolveResult
from planners.watching.film import Film, Frame

# Seconds in which an iteration may come to its end before it is given up.
_GRACE = 0.5
# Delays shorter than this are not kept one by one: a thread cannot sleep that exactly.
_SHORTEST_SLEEP = 0.002


class Session:
    """Runs a solve in a thread, and hands frames over.

    Frames are copied where each iteration is waited for, and at full speed only when one is asked
    for, so that who does not look costs nothing.

    Parameters
    ----------
    run : callable
        ``run(callback)`` solves, and returns the result.
    film : Film
        Takes the frames; read it under `lock`.
    num_states : int
        That the model lists.
    speed : float
        Iterations a second; infinite for as fast as it goes.
    also : callable, optional
        A callback of the user's, called in the solver's thread.
    """

    def __init__(
        self,
        run: Callable[[Callback], SolveResult],
        film: Film,
        num_states: int,
        speed: float,
        also: Callback | None = None,
    ) -> None:
        #: Held while the film changes.
        self.lock = threading.Lock()
        self.film = film
        self._run, self._also = run, also
        self._num_states = num_states
        self._changed = threading.Condition()
        self._speed = speed
        self._paused = False
        self._steps = 0
        self._stop = False
        self._due = 0.0
        self._wanted = True
        self._result: SolveResult | None = None
        self._error: BaseException | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="solver", daemon=True)

    @property
    def is_running(self) -> bool:
        """Whether the solve goes on, paused or not."""
        return not self._ended.is_set()

    @property
    def paused(self) -> bool:
        """Whether it waits to be resumed or stepped."""
        return self._paused

    @property
    def speed(self) -> float:
        """Iterations a second."""
        return self._speed

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def ask(self) -> None:
        """Ask for a frame of the next iteration."""
        self._wanted = True

    def pause(self, paused: bool = True) -> None:
        """Pause, or go on."""
        with self._changed:
            self._paused, self._steps = paused, 0
            self._changed.notify()

    def step(self) -> None:
        """Make one iteration, and pause."""
        with self._changed:
            self._paused = True
            self._steps += 1
            self._changed.notify()

    def run_at(self, speed: float) -> None:
        """Set the iterations a second."""
        with self._changed:
            self._speed = speed
            self._changed.notify()

    def end(self) -> SolveResult:
        """End the solve after its iteration, or within it where that takes long; return the result.

        Raises
        ------
        Exception
            What the solve raised.
        """
        with self._changed:
            self._stop = True
            self._changed.notify()
        self._thread.join(_GRACE)
        if self._thread.is_alive():
            # As Ctrl-C would, and once: `solve` then returns the last whole iteration.
            identity = ctypes.c_ulong(self._thread.ident or 0)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                identity, ctypes.py_object(KeyboardInterrupt)
            )
        return self.result()

    def result(self) -> SolveResult:
        """Return the result of a solve that has ended, or raise what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def _work(self) -> None:
        try:
            result = self._run(self._see)
            with self.lock:
                self.film.finish(result)
            self._result = result
        except BaseException as error:  # whoever waits for the result gets it
            self._error = error
        finally:
            self._ended.set()

    def _see(self, progress: Progress) -> Any:
        """Take an iteration in; a callback of `solve`."""
        film = self.film
        film.note(progress)
        slowed = self._speed < math.inf or self._paused
        if slowed or self._wanted:
            self._wanted = False
            frame = Frame.of(progress, self._num_states)
            with self.lock:
                film.add(frame)
        if self._also is not None and self._also(progress):
            return True
        if slowed:
            self._wait()
        return self._stop

    def _wait(self) -> None:
        """Wait until the next iteration is due."""
        with self._changed:
            while not self._stop:
                if self._paused:
                    if self._steps > 0:
                        self._steps -= 1
                        return
                    self._changed.wait()
                    self._due = time.monotonic()
                    continue
                if self._speed == math.inf:
                    return
                now = time.monotonic()
                # What is late by a drawing or two is caught up, and not more.
                due = max(self._due + 1 / self._speed, now - 0.1)
                if due - now < _SHORTEST_SLEEP:
                    self._due = due
                    return
                if not self._changed.wait(due - now):
                    self._due = due
                    return
