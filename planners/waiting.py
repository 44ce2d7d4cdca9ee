"""What a command waits for, told on stderr: as it goes on a terminal, else in lines."""

from __future__ import annotations

import threading
import time
from typing import Self

from rich.console import Console
from rich.markup import escape

# Seconds before anything is shown, between updates on a terminal, and between lines elsewhere.
_SHOW_AFTER = 1.0
_UPDATE_EVERY = 0.5
_LINE_EVERY = 10.0


class Waiting:
    """Tells what is being waited for, and for how long, as long as its block runs.

    A thread of its own tells it, so that it is told however long a single step takes.

    Parameters
    ----------
    console : Console
    what : str
        What goes on, until `tell` or `count` know more.
    """

    def __init__(self, console: Console, what: str) -> None:
        self._console = console
        self._what = self._text = what
        self._start = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._start = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()

    def tell(self, text: str) -> None:
        """Say how it goes."""
        self._text = text

    def count(self, done: int, total: int, unit: str) -> None:
        """Say how much of it is done, from which follows what is left.

        Parameters
        ----------
        done, total : int
            Of the units.
        unit : str
            What is counted, in the plural.
        """
        text = f"{self._what}: {done:,} of {total:,} {unit}"
        if done > 0:
            passed = time.monotonic() - self._start
            text += f", {time_left(passed * (total - done) / done)}"
        self._text = text

    def _watch(self) -> None:
        if self._ended.wait(_SHOW_AFTER):
            return
        if self._console.is_terminal:
            with self._console.status(escape(self._line())) as status:
                while not self._ended.wait(_UPDATE_EVERY):
                    status.update(escape(self._line()))
        else:
            while not self._ended.wait(_LINE_EVERY):
                self._console.print(self._line(), markup=False, highlight=False, soft_wrap=True)

    def _line(self) -> str:
        return f"{self._text}, {time.monotonic() - self._start:.0f} s"


def time_left(seconds: float) -> str:
    """Say how long something will take, no more exactly than an estimate is."""
    if seconds < 90:
        return f"about {seconds:.0f} s left"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} min left"
    return f"about {seconds / 3600:.1f} h left"
