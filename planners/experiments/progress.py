"""How far a run of tasks is, and an estimate of what is left, on a terminal or in lines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from planners.experiments.tasks import Task

# Seconds between lines where there is no terminal.
_LINE_EVERY = 30.0


class ProgressBar:
    """Shows tasks done, time taken and time left; a `planners.experiments.runner.Watcher`.

    What is left is estimated from the work of tasks, not from their number.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._id = self._bar.add_task("tasks", total=None, left="")
        self._start = self._next_line = 0.0
        self._num_done = self._num_tasks = 0
        self._work = self._work_done = 0.0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    def begin(self, tasks: Sequence[Task], num_done: int, work_left: float) -> None:
        """Begin to count."""
        self._start = time.monotonic()
        self._next_line = self._start + _LINE_EVERY
        self._num_done, self._num_tasks = num_done, len(tasks)
        self._work = work_left
        if num_done:
            self.report(f"{num_done:,} of {len(tasks):,} tasks were done before")
        self._show()

    def done(self, task: Task) -> None:
        """Count a task."""
        self._num_done += 1
        self._work_done += task.work
        self._show()

    def tick(self) -> None:
        """Show that time passes."""
        now = time.monotonic()
        if not self._console.is_terminal and now >= self._next_line:
            self._next_line = now + _LINE_EVERY
            parts = (self._description(), f"{now - self._start:.0f} s", self._left())
            self.report(", ".join(filter(None, parts)))

    def report(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _show(self) -> None:
        self._bar.update(
            self._id,
            description=self._description(),
            total=self._work or 1.0,
            completed=self._work_done if self._work else 1.0,
            left=self._left(),
        )

    def _description(self) -> str:
        return f"{self._num_done:,} of {self._num_tasks:,} tasks"

    def _left(self) -> str:
        if self._work_done == 0:
            return ""
        passed = time.monotonic() - self._start
        left = passed * (self._work - self._work_done) / self._work_done
        if left < 90:
            return f"about {left:.0f} s left"
        return (
            f"about {left / 60:.0f} min left" if left < 5400 else f"about {left / 3600:.1f} h left"
        )
