"""How far a run is, on a terminal and without one."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from planners.experiments import progress
from planners.experiments.progress import ProgressBar
from tests.planners.experiments import fakes


class Clock:
    """Stands for the time module."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


def watch(monkeypatch: pytest.MonkeyPatch, **options: Any) -> str:
    """Two tasks of work 1, one of 4 and one that was done before; the times are made up."""
    clock, text = Clock(), io.StringIO()
    monkeypatch.setattr(progress, "time", clock)
    tasks = fakes.tasks(numbers=(1, 4), repetitions=2)
    with ProgressBar(Console(file=text, width=100, **options)) as bar:
        bar.begin(tasks, 1, work_left=6.0)
        clock.now += 60
        bar.tick()
        bar.done(tasks[2])
        clock.now += 60
        bar.tick()
        bar.report("a worker died [of course]")
        bar.done(tasks[0])
        bar.done(tasks[1])
    return text.getvalue()


def test_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = watch(monkeypatch).splitlines()
    assert lines == [
        "1 of 4 tasks were done before",
        "1 of 4 tasks, 60 s",
        # Four of six units of work in 120 seconds.
        "2 of 4 tasks, 120 s, about 60 s left",
        "a worker died [of course]",
    ]


def test_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = watch(monkeypatch, force_terminal=True, force_interactive=True)
    assert "a worker died [of course]" in shown
    assert "4 of 4 tasks" in shown
    assert "100 %" in shown


@pytest.mark.parametrize(
    ("work", "expected"),
    [(2.0, "about 60 s left"), (11.0, "about 10 min left"), (361.0, "about 6.0 h left")],
)
def test_what_is_left(monkeypatch: pytest.MonkeyPatch, work: float, expected: str) -> None:
    clock, text = Clock(), io.StringIO()
    monkeypatch.setattr(progress, "time", clock)
    tasks = fakes.tasks(numbers=(1,), repetitions=3)
    with ProgressBar(Console(file=text)) as bar:
        bar.begin(tasks, 0, work_left=work)
        clock.now += 60
        bar.done(tasks[0])
        bar.tick()
    assert expected in text.getvalue()
