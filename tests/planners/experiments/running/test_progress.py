"""How far a run is, on a terminal and without one."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from planners.experiments.running import progress
from planners.experiments.running.progress import ProgressBar
from planners.experiments.running.tasks import Task
from planners.experiments.study import Outcome
from tests.planners.experiments import fakes


class Clock:
    """Stands for the time module."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


def took(seconds: float) -> Outcome:
    return Outcome({}, {"task": seconds})


def watch(monkeypatch: pytest.MonkeyPatch, **options: Any) -> str:
    """Two tasks of work 1 and two of 4, one of which was done before; the times are made up."""
    clock, text = Clock(), io.StringIO()
    monkeypatch.setattr(progress, "time", clock)
    tasks = fakes.tasks(numbers=(1, 4), repetitions=2)
    with ProgressBar(Console(file=text, width=100, **options)) as bar:
        bar.begin(tasks, [None, None, None, took(40.0)])
        bar.started(tasks[2])
        clock.now += 30
        bar.tick()
        clock.now += 30
        bar.done(tasks[2], took(60.0))
        bar.started(tasks[0])
        bar.tick()
        bar.report("a worker died [of course]")
        bar.done(tasks[0], took(1.0))
        bar.started(tasks[1])
        clock.now += 30
        bar.tick()
        bar.given_up(tasks[1])
    return text.getvalue()


def test_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = watch(monkeypatch).splitlines()
    assert lines == [
        "1 of 4 tasks were done before",
        # 40 s for work 4: another 10 s for the one that runs, and 10 s for each of work 1.
        "1 of 4 tasks, 30 s, about 30 s left",
        # 40 s and 60 s: 12.5 s for work 1.
        "2 of 4 tasks, 60 s, about 25 s left",
        "a worker died [of course]",
        # One like it took 1 s, so it might end at any time.
        "3 of 4 tasks, 90 s, about 0 s left",
    ]


def test_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = watch(monkeypatch, force_terminal=True, force_interactive=True)
    assert "a worker died [of course]" in shown
    assert "3 of 4 tasks" in shown
    assert "100 %" in shown


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, "about 60 s left"), (10, "about 10 min left"), (360, "about 6.0 h left")],
)
def test_what_is_left(monkeypatch: pytest.MonkeyPatch, count: int, expected: str) -> None:
    clock, text = Clock(), io.StringIO()
    monkeypatch.setattr(progress, "time", clock)
    tasks = fakes.tasks(numbers=(1,), repetitions=count + 1)
    with ProgressBar(Console(file=text)) as bar:
        bar.begin(tasks, [None] * len(tasks))
        bar.started(tasks[0])
        clock.now += 60
        bar.done(tasks[0], took(60.0))
        bar.tick()
    assert expected in text.getvalue()


class TestPace:
    @pytest.fixture
    def pace(self) -> progress.Pace:
        """One task of each experiment is done; work says nothing of what takes longer."""
        pace = progress.Pace()
        pace.learn(self.tasks("long", 1, 10.0)[0], took(10.0))
        pace.learn(self.tasks("short", 1, 1.0)[0], took(5.0))
        return pace

    @staticmethod
    def tasks(experiment: str, count: int, work: float) -> list[Task]:
        made = fakes.tasks(numbers=(work,), repetitions=count)
        return [replace(task, experiment=experiment) for task in made]

    def test_experiments_have_paces_of_their_own(self, pace: progress.Pace) -> None:
        left = [*self.tasks("long", 3, 10.0), *self.tasks("short", 19, 1.0)]
        assert pace.seconds_left([], left) == pytest.approx(3 * 10.0 + 19 * 5.0)

    def test_tasks_that_run_at_once_share_the_time(self, pace: progress.Pace) -> None:
        first, second, *others = self.tasks("short", 10, 1.0)
        assert pace.seconds_left([(first, 4.0), (second, 0.0)], others) == pytest.approx(
            (1.0 + 5.0 + 8 * 5.0) / 2
        )

    def test_the_longest_task_is_waited_for(self, pace: progress.Pace) -> None:
        (huge,) = self.tasks("long", 1, 500.0)
        short = self.tasks("short", 1, 1.0)[0]
        assert pace.seconds_left([(huge, 100.0), (short, 5.0)], []) == pytest.approx(400.0)

    def test_configurations_have_paces_of_their_own(self, pace: progress.Pace) -> None:
        pace.learn(self.tasks("short", 1, 2.0)[0], took(40.0))
        assert pace.seconds_left([], self.tasks("short", 2, 2.0)) == pytest.approx(80.0)
        assert pace.seconds_left([], self.tasks("short", 2, 1.0)) == pytest.approx(10.0)
        # Another one: the median of 5 and 20 s for a work of 1.
        assert pace.seconds_left([], self.tasks("short", 2, 4.0)) == pytest.approx(2 * 4 * 12.5)

    def test_an_experiment_of_which_nothing_is_done(self, pace: progress.Pace) -> None:
        new, *others = self.tasks("new", 3, 1.0)
        # The median of the others: 1 and 5 s for a work of 1.
        assert pace.seconds_left([(new, 1.0)], others) == pytest.approx(2.0 + 2 * 3.0)
        # One of them has been running for longer than that.
        assert pace.seconds_left([(new, 50.0)], others) == pytest.approx(2 * 50.0)

    def test_the_first_task_of_a_process_is_an_exception(self, pace: progress.Pace) -> None:
        for seconds in (100.0, 1.0, 1.0):
            pace.learn(self.tasks("new", 1, 1.0)[0], took(seconds))
        assert pace.seconds_left([], self.tasks("new", 5, 1.0)) == pytest.approx(5.0)
