"""How far a run of tasks is, and an estimate of what is left, on a terminal or in lines."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from planners.experiments.running.tasks import Task
from planners.experiments.study import Outcome
from planners.waiting import time_left

# Seconds before the first line and between others where there is no terminal.
_FIRST_LINE, _LINE_EVERY = 1.0, 30.0


class Pace:
    """How long tasks take, learned from those that are done.

    A task takes about as long as others of its configuration did; where there are none, as others
    of its experiment did for their work; and where there are none of these, as all others did, but
    no less than those of its experiment have been running.  Medians, since the first task of a
    process loads or compiles kernels besides.
    """

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, ...], list[float]] = {}

    def learn(self, task: Task, outcome: Outcome) -> None:
        """Note how long a task took.

        Parameters
        ----------
        task : Task
        outcome : Outcome
            Of that task, whose seconds count.
        """
        seconds = outcome.seconds.get("task", 0.0)
        for group in _groups(task):
            self._seconds.setdefault(group, []).append(seconds / task.work)

    def seconds_left(self, running: Sequence[tuple[Task, float]], waiting: Sequence[Task]) -> float:
        """Return how long it takes until all are done, as many at once as are running.

        Parameters
        ----------
        running : sequence of (Task, float)
            With the seconds that each has been running.
        waiting : sequence of Task

        Raises
        ------
        statistics.StatisticsError
            If no task is done from which to tell.
        """
        rates = {group: statistics.median(seconds) for group, seconds in self._seconds.items()}
        if not rates:
            raise statistics.StatisticsError("no task is done yet")
        for task, passed in running:
            group = (task.experiment,)
            if group not in self._seconds:
                rates[group] = max(rates.get(group, rates[()]), passed / task.work)

        def estimate(task: Task) -> float:
            return task.work * next(rates[group] for group in _groups(task) if group in rates)

        left = [max(0.0, estimate(task) - passed) for task, passed in running]
        left += map(estimate, waiting)
        return max(sum(left) / max(1, len(running)), *left, 0.0)


def _groups(task: Task) -> tuple[tuple[str, ...], ...]:
    """Return the groups of tasks that a task is of, the most similar first."""
    return (task.experiment, str(task.configuration)), (task.experiment,), ()


class ProgressBar:
    """Shows tasks done, time taken and time left; a `runner.Watcher`.

    Parameters
    ----------
    console : Console
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
        self._pace = Pace()
        self._num_done = self._num_tasks = 0
        self._waiting: dict[str, Task] = {}
        self._running: dict[str, tuple[Task, float]] = {}

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    def begin(self, tasks: Sequence[Task], outcomes: Sequence[Outcome | None]) -> None:
        """Begin to count, as `runner.Watcher.begin` says."""
        self._start = time.monotonic()
        self._next_line = self._start + _FIRST_LINE
        self._num_tasks = len(tasks)
        for task, outcome in zip(tasks, outcomes, strict=True):
            if outcome is None:
                self._waiting[_key(task)] = task
            else:
                self._num_done += 1
                self._pace.learn(task, outcome)
        if self._num_done:
            self.report(f"{self._num_done:,} of {len(tasks):,} tasks were done before")
        self._show()

    def started(self, task: Task) -> None:
        """Count from here how long a task has been running."""
        self._waiting.pop(_key(task), None)
        self._running[_key(task)] = (task, time.monotonic())
        self._show()

    def done(self, task: Task, outcome: Outcome) -> None:
        """Count a task, as `runner.Watcher.done` says."""
        self._running.pop(_key(task))
        self._num_done += 1
        self._pace.learn(task, outcome)
        self._show()

    def given_up(self, task: Task) -> None:
        """Wait for a task no longer."""
        self._running.pop(_key(task))
        self._show()

    def tick(self) -> None:
        """Show that time passes."""
        now = time.monotonic()
        self._show()
        if not self._console.is_terminal and now >= self._next_line:
            self._next_line = now + _LINE_EVERY
            parts = (self._description(), f"{now - self._start:.0f} s", self._left()[1])
            self.report(", ".join(filter(None, parts)))

    def report(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _show(self) -> None:
        if not self._console.is_terminal:
            return
        passed, left = self._left()
        self._bar.update(
            self._id, description=self._description(), total=1.0, completed=passed, left=left
        )

    def _description(self) -> str:
        return f"{self._num_done:,} of {self._num_tasks:,} tasks"

    def _left(self) -> tuple[float, str]:
        """Return the fraction of the time that has passed, and how much is left in words."""
        if not (self._waiting or self._running):
            return 1.0, ""
        now = time.monotonic()
        running = [(task, now - start) for task, start in self._running.values()]
        try:
            seconds = self._pace.seconds_left(running, list(self._waiting.values()))
        except statistics.StatisticsError:
            return 0.0, ""
        passed = now - self._start
        return passed / max(passed + seconds, 1e-9), time_left(seconds)


def _key(task: Task) -> str:
    return f"{task.experiment}/{task.name}"
