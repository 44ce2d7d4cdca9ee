"""What a command waits for, told on stderr: as it goes on a terminal, else in lines."""

from __future__ import annotations

import math
import threading
import time
from contextlib import ExitStack
from typing import Protocol, Self

from rich.console import Console
from rich.markup import escape

from aggmaze.progress import listening
from planners.kernels import compiling

# Seconds before anything is shown, between updates on a terminal, and elsewhere between the first
# two lines, from where on the pauses grow, and between lines at last.
_SHOW_AFTER = 0.5
_UPDATE_EVERY = 0.5
_FIRST_PAUSE, _LINE_EVERY = 1.5, 10.0

# A forecast needs so many points over so many seconds, and that the rate of its later half and of
# its last quarter differ by no more than this factor: else what is to come is anybody's guess.
_LEAST_POINTS, _LEAST_SECONDS, _LARGEST_CHANGE = 4, 1.0, 3.0
# Points that are kept; beyond these every second one is dropped.
_MOST_POINTS = 256


class Ending(Protocol):
    """What can tell when something ends."""

    def seconds_left(self, now: float) -> float | None:
        """Return in how many seconds, None where that cannot be told.

        Parameters
        ----------
        now : float
            In seconds.
        """


class Forecast:
    """Foretells when a number will have fallen to a goal, from how it fell so far.

    It is one that falls evenly with time: what is left to do, or the logarithm of an error that
    shrinks by about the same factor in each iteration.  The latest half of the time counts, since
    what was at first is seldom typical.

    Attributes
    ----------
    goal : float
    """

    def __init__(self, goal: float = 0.0) -> None:
        self.goal = goal
        self._points: list[tuple[float, float]] = []
        self._apart = 0.0

    def note(self, number: float, now: float) -> None:
        """Say what the number is.

        Parameters
        ----------
        number : float
        now : float
            In seconds, since any beginning.
        """
        points = self._points.copy()
        # The newest point is always there, the others as far apart as there is room for.
        if len(points) > 2 and points[-1][0] - points[-2][0] < self._apart:
            points.pop()
        points.append((now, number))
        if len(points) > _MOST_POINTS:
            self._apart = 2 * (now - points[0][0]) / _MOST_POINTS
            points = [*points[:-1:2], points[-1]]
        self._points = points  # at once, as another thread reads them

    def seconds_left(self, now: float) -> float | None:
        """Return in how many seconds the goal is reached, None where that cannot be told.

        Parameters
        ----------
        now : float
            By the clock of `note`.
        """
        points, goal = self._points, self.goal
        if len(points) < _LEAST_POINTS:
            return None
        (start, _), (end, number) = points[0], points[-1]
        # Where the goal is reached and this goes on, something else is waited for.
        if end - start < _LEAST_SECONDS or number <= goal:
            return None
        later, last = (_fall(points, end - share * (end - start)) for share in (0.5, 0.25))
        if min(later, last) <= 0 or max(later, last) > _LARGEST_CHANGE * min(later, last):
            return None
        seconds = (number - goal) / later - (now - end)
        # What should be over and is not takes nobody knows how long.
        return seconds if seconds >= 0 else None


def _fall(points: list[tuple[float, float]], since: float) -> float:
    """Return by how much a number fell each second, since the last point before some time."""
    then, before = next((point for point in reversed(points[:-1]) if point[0] <= since), points[0])
    end, number = points[-1]
    return (before - number) / (end - then) if end > then else 0.0


class Waiting:
    """Tells what is being waited for, and for how long, as long as its block runs.

    A thread of its own tells it, so that it is told however long a single step takes.  What is
    reported in the block (`aggmaze.progress`) is counted.

    Parameters
    ----------
    console : Console
    what : str
        What goes on, until `tell` or `count` know more.
    """

    def __init__(self, console: Console, what: str) -> None:
        self._console = console
        self._what = self._text = what
        self._left: Ending | None = None
        self._stage = ""
        # What was told before the stage, and is told again after it.
        self._before: tuple[str, Ending | None] = (what, None)
        self._counts = Forecast()
        self._counted: tuple[int, str] | None = None
        self._errors = Forecast()
        self._target: float | None = None
        self._hears = ExitStack()
        self._start = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._start = time.monotonic()
        self._hears.enter_context(listening(self.count, self.approach, self.enter))
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()
        self._hears.close()

    def tell(self, text: str, left: Ending | None = None) -> None:
        """Say how it goes.

        Parameters
        ----------
        text : str
        left : Ending, optional
            When it ends, by the clock of `passed`.
        """
        self._text, self._left = text, left

    def enter(self, stage: str) -> None:
        """Say which part of it goes on from now on; what is counted is counted anew.

        Parameters
        ----------
        stage : str
            "" where it is no part with a name.
        """
        if not self._stage:
            self._before = self._text, self._left
        self._stage = stage
        self._counted = self._target = None
        if stage:
            self.tell(self._doing())
        else:
            self.tell(*self._before)

    def _doing(self) -> str:
        return f"{self._what}: {self._stage}" if self._stage else self._what

    @property
    def passed(self) -> float:
        """Seconds since the block began."""
        return time.monotonic() - self._start

    def count(self, done: int, total: int, unit: str) -> None:
        """Say how much of it is done, from which follows what is left.

        Parameters
        ----------
        done, total : int
            Of the units.
        unit : str
            What is counted, in the plural.
        """
        if self._counted != (total, unit):  # something else than before
            self._counted, self._counts = (total, unit), Forecast()
        self._counts.note(total - done, self.passed)
        self.tell(f"{self._doing()}: {done:,} of {total:,} {unit}", self._counts)

    def approach(self, error: float, target: float) -> None:
        """Say how near to its end something is that converges, from which follows what is left.

        Parameters
        ----------
        error, target : float
            What is left of the error, and at how much it ends.
        """
        if not (0 < error < math.inf and 0 < target < math.inf):
            return
        if self._target != target:  # something else than before
            self._target, self._errors = target, Forecast(math.log(target))
        self._errors.note(math.log(error), self.passed)
        self.tell(f"{self._doing()}: error {error:.2g}, to be {target:.2g}", self._errors)

    def _watch(self) -> None:
        if self._ended.wait(_SHOW_AFTER):
            return
        if self._console.is_terminal:
            with self._console.status(escape(self._line())) as status:
                while not self._ended.wait(_UPDATE_EVERY):
                    status.update(escape(self._line()))
        else:
            pause = _FIRST_PAUSE
            while True:
                self._console.print(self._line(), markup=False, highlight=False, soft_wrap=True)
                if self._ended.wait(pause):
                    return
                pause = min(2 * pause, _LINE_EVERY)

    def _line(self) -> str:
        passed = self.passed
        seconds = None if self._left is None else self._left.seconds_left(passed)
        parts = [self._text, f"{passed:.0f} s"]
        if compiling.is_underway():
            parts.insert(1, "compiling kernels")
        if seconds is not None:
            parts.append(time_left(seconds))
        return ", ".join(parts)


def time_left(seconds: float) -> str:
    """Say how long something will take, no more exactly than an estimate is."""
    if seconds < 90:
        return f"about {seconds:.0f} s left"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} min left"
    return f"about {seconds / 3600:.1f} h left"
