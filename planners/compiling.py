"""A word to the user while kernels are compiled, and how long that took.

Kernels are compiled at their first call and kept on disk, so only the very first run waits.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from numba.core import event

#: Seconds of compilation after which a notice is printed.
NOTICE_AFTER = 1.0

_PACKAGES = ("planners", "aggmaze")


class _Watcher(event.Listener):
    """Measures compilation, and says so on stderr, once, where it takes over a second."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._started = 0.0
        self._timer: threading.Timer | None = None
        self._announced = False

    def on_start(self, event: Any) -> None:
        if not event.data["dispatcher"].py_func.__module__.startswith(_PACKAGES):
            return
        self._depth += 1
        if self._depth > 1:  # a kernel that calls another
            return
        self._started = time.perf_counter()
        if not self._announced:
            self._timer = threading.Timer(max(0.0, NOTICE_AFTER - self.seconds), self._announce)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        if not event.data["dispatcher"].py_func.__module__.startswith(_PACKAGES):
            return
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._started
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _announce(self) -> None:
        self._announced = True
        print("compiling kernels (first run only; kept on disk)...", file=sys.stderr, flush=True)


_watcher = _Watcher()
_watching = False


def watch() -> None:
    """Begin to watch the compilation of this project's kernels."""
    global _watching
    if not _watching:
        event.register("numba:compile", _watcher)  # type: ignore[no-untyped-call]
        _watching = True


def seconds() -> float:
    """Return the seconds spent so far on compiling kernels; loading them from disk is none."""
    return _watcher.seconds
