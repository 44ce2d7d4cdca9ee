"""What is told while a command waits."""

from __future__ import annotations

import io
import time
from collections.abc import Callable

import pytest
from rich.console import Console

from planners import waiting
from planners.waiting import Waiting, time_left


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_SHOW_AFTER", "_UPDATE_EVERY", "_LINE_EVERY"):
        monkeypatch.setattr(waiting, name, 1e-3)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(1e-3)


@pytest.mark.parametrize("terminal", [False, True])
def test_it_is_told_while_nothing_happens(terminal: bool) -> None:
    """A step may take for ever: nobody calls anything while it is told."""
    text = io.StringIO()
    with Waiting(Console(file=text, width=100, force_terminal=terminal), "looking") as told:
        until(lambda: "looking, 0 s" in text.getvalue())
        told.tell("iteration 7 [of many]")
        until(lambda: "iteration 7 [of many], 0 s" in text.getvalue())
    told.tell("all is over")
    printed = text.getvalue()
    time.sleep(0.05)
    assert text.getvalue() == printed
    assert ("\x1b" in printed) == terminal


def test_what_is_short_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_SHOW_AFTER", 3600.0)
    text = io.StringIO()
    with Waiting(Console(file=text), "looking"):
        time.sleep(0.05)
    assert text.getvalue() == ""


def test_it_ends_with_what_it_waits_for() -> None:
    text = io.StringIO()
    with pytest.raises(KeyboardInterrupt), Waiting(Console(file=text), "looking") as told:
        raise KeyboardInterrupt
    assert not told._thread.is_alive()


def test_counts_tell_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    with Waiting(Console(file=text, width=100), "rolling out") as told:
        told.count(0, 1000, "episodes")
        until(lambda: "rolling out: 0 of 1,000 episodes, 0 s" in text.getvalue())
        # A quarter of them took 10 s.
        started = told._start
        with monkeypatch.context() as patch:
            patch.setattr(time, "monotonic", lambda: started + 10.0)
            told.count(250, 1000, "episodes")
        line = "rolling out: 250 of 1,000 episodes, about 30 s left"
        until(lambda: line in text.getvalue())


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.4, "about 0 s left"),
        (89.0, "about 89 s left"),
        (90.0, "about 2 min left"),
        (600.0, "about 10 min left"),
        (5400.0, "about 1.5 h left"),
    ],
)
def test_times_left(seconds: float, expected: str) -> None:
    assert time_left(seconds) == expected
