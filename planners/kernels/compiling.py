"""How long threads waited for compiled kernels, and a word to the user while they are compiled.

Kernels are compiled at their first call and kept on disk, so only the very first run waits for
that; every process loads those that it calls, which takes longer than a small solve.  Neither is
time of a method.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from numba.core import event
from numba.core.caching import NullCache

T = TypeVar("T")

#: Seconds of compilation after which a notice is printed.
NOTICE_AFTER = 1.0

# Seconds without compilation after which the next one gets a notice of its own.
_PAUSE = 1.0

_PACKAGES = ("planners", "aggmaze")


class _Waits(threading.local):
    """What one thread has waited."""

    seconds = 0.0
    depth = 0
    started = 0.0


class _Stopwatch(event.Listener):
    """Measures in each thread how long it is about kernels that are not ready.

    Numba loads and compiles under a lock, which a thread asks for again for each kernel that
    another one calls; to wait for it, since another thread compiles, counts too.
    """

    def __init__(self) -> None:
        self._waits = _Waits()

    def on_start(self, event: Any) -> None:
        waits = self._waits
        waits.depth += 1
        if waits.depth == 1:
            waits.started = time.perf_counter()

    def on_end(self, event: Any) -> None:
        waits = self._waits
        waits.depth -= 1
        if waits.depth == 0:
            self.add(time.perf_counter() - waits.started)

    def add(self, seconds: float) -> None:
        self._waits.seconds += seconds

    def seconds(self) -> float:
        # Who asks does not compile: what has begun was broken off by Ctrl-C, and does not end.
        self._waits.depth = 0
        return self._waits.seconds


class _Notice(event.Listener):
    """Says on stderr that kernels are compiled, once in each stretch that takes over a second.

    Numba compiles one at a time, in whatever threads.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._seconds = 0.0  # of this stretch
        self._started = 0.0
        self._ended = 0.0
        self._timer: threading.Timer | None = None
        self._announced = False
        self._where = ""
        #: Whether Ctrl-C ended the last compilation.
        self.broken_off = False

    def on_start(self, event: Any) -> None:
        if not _is_ours(event):
            return
        self._depth += 1
        if self._depth > 1:  # a kernel that calls another
            return
        self._started = time.perf_counter()
        self._where = _where_kept(event.data["dispatcher"])
        if self._started - self._ended > _PAUSE:
            self._seconds, self._announced = 0.0, False
        if not self._announced:
            self._timer = threading.Timer(max(0.0, NOTICE_AFTER - self._seconds), self._announce)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        if not _is_ours(event):
            return
        self._depth -= 1
        # `is_failed` of numba's events says the opposite.
        kind = (getattr(event, "_exc_details", None) or [None])[0]
        self.broken_off = kind is not None and issubclass(kind, KeyboardInterrupt)
        if self._depth == 0:
            self._ended = time.perf_counter()
            self._seconds += self._ended - self._started
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def is_underway(self) -> bool:
        return self._depth > 0

    def _announce(self) -> None:
        self._announced = True
        if _quiet:
            return
        print(f"compiling kernels (once; {self._where})...", file=sys.stderr, flush=True)


def _where_kept(dispatcher: Any) -> str:
    """Say how long a kernel is kept."""
    # What calls a user's functions has no cache (`planners.kernels.events`).
    lasting = not isinstance(getattr(dispatcher, "_cache", None), NullCache)
    return "they are kept on disk" if lasting else "for this process and these functions"


def _is_ours(event: Any) -> bool:
    # What `exec` defines, as a model's functions may be, is of no module.
    module = event.data["dispatcher"].py_func.__module__ or ""
    return module.partition(".")[0] in _PACKAGES


_stopwatch = _Stopwatch()
_notice = _Notice()
_watching = False
_quiet = False


def watch() -> None:
    """Begin to measure, and to give notice of the compilation of this project's kernels."""
    global _watching
    if not _watching:
        event.register("numba:compiler_lock", _stopwatch)  # type: ignore[no-untyped-call]
        event.register("numba:compile", _notice)  # type: ignore[no-untyped-call]
        _watching = True


def be_quiet() -> None:
    """Give no notice of compilation any more."""
    global _quiet
    _quiet = True


def is_underway() -> bool:
    """Return whether a kernel of this project is being compiled, in whatever thread."""
    return _notice.is_underway()


def was_broken_off() -> bool:
    """Return whether this thread is the main one, and Ctrl-C broke off the last compilation."""
    return _notice.broken_off and threading.current_thread() is threading.main_thread()


def seconds() -> float:
    """Return the seconds that this thread has spent so far on compiling and loading kernels."""
    return _stopwatch.seconds()


def timed(function: Callable[[], T]) -> tuple[T, float]:
    """Return what a function returns, and the seconds of compiling and loading that it took."""
    before = seconds()
    result = function()
    return result, seconds() - before


def add(waited: float) -> None:
    """Count seconds in which this thread waited for others that compiled or loaded kernels."""
    _stopwatch.add(waited)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C be a KeyboardInterrupt within kernels too.

    Where it strikes while numba makes Python objects of what a kernel returns, the interpreter
    complains of a result with an exception set.
    """
    try:
        yield
    except SystemError as error:
        # Each C function on the way may have complained.
        reason: BaseException | None = error
        while isinstance(reason, SystemError):
            reason = reason.__cause__ or reason.__context__
        if isinstance(reason, KeyboardInterrupt):
            raise KeyboardInterrupt(*reason.args) from None
        raise
