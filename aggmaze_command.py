"""Where the command ``aggmaze`` begins: so light that Ctrl-C has a handler while the rest is read.

It lies outside the packages since whatever lies in one is run after the imports of the package.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

# Of what is imported by another name than it is installed by.
_PACKAGES = {"PIL": "pillow", "pygame": "pygame-ce"}
_OURS = ("aggmaze", "planners")
# Seconds of imports before that is said, and between two words about it on a terminal.
_SAY_AFTER, _SAY_EVERY = 2.0, 0.5


def main() -> None:
    """Run the command; on Ctrl-C while it is imported, say so and end at once.

    Where a package that it cannot do without is not installed, it says which and ends with 2.
    """
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # else whoever started the command ignores Ctrl-C
        # No exception: imports may lose one, or print it and go on.
        signal.signal(signal.SIGINT, _end)
    try:
        with _Loading():
            from planners.cli import main as run
    except ModuleNotFoundError as error:
        if _root(error) in _OURS:
            raise
        print(f"error: {what_to_install(error)}", file=sys.stderr)
        sys.exit(2)

    signal.signal(signal.SIGINT, usual)
    run()


class _Loading:
    """Says on stderr that the command is loaded, where that takes long: the first time, mostly."""

    def __enter__(self) -> None:
        self._over = threading.Event()
        self._start = time.monotonic()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        if self._over.wait(_SAY_AFTER):
            return
        if not sys.stderr.isatty():
            print("loading the command", file=sys.stderr, flush=True)
            return
        while True:
            seconds = time.monotonic() - self._start
            print(f"\rloading the command, {seconds:.0f} s", end="", file=sys.stderr, flush=True)
            if self._over.wait(_SAY_EVERY):
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)
                return


def what_to_install(error: ModuleNotFoundError) -> str:
    """Say what to install for a module that is not there.

    Parameters
    ----------
    error : ModuleNotFoundError
        Left as it is where it says more than Python does.
    """
    root = _root(error)
    if not root or root in _OURS or not str(error).startswith("No module named"):
        return str(error)
    package = _PACKAGES.get(root, root)
    return f"aggmaze needs {package}, which is not installed: pip install {package}"


def _root(error: ModuleNotFoundError) -> str:
    return (error.name or "").partition(".")[0]


def _end(*signal_and_frame: object) -> None:
    os.write(2, b"\r\x1b[Kinterrupted\n" if os.isatty(2) else b"interrupted\n")
    os._exit(130)
