"""What is told while a command waits."""

from __future__ import annotations

import io
import math
import time
from collections.abc import Callable, Iterable

import pytest
from rich.console import Console

from aggmaze.progress import report, report_error, stage
from planners import waiting
from planners.waiting import Forecast, Waiting, time_left


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_SHOW_AFTER", "_UPDATE_EVERY", "_FIRST_PAUSE", "_LINE_EVERY"):
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
        for done in range(50, 251, 50):
            now = started + done / 25
            monkeypatch.setattr(time, "monotonic", lambda now=now: now)
            told.count(done, 1000, "episodes")
        line = "rolling out: 250 of 1,000 episodes, 10 s, about 30 s left"
        try:
            started_here = time.perf_counter()
            while line not in text.getvalue():
                assert time.perf_counter() < started_here + 60
                time.sleep(1e-3)
        finally:
            monkeypatch.undo()


def noted(numbers: Iterable[tuple[float, float]], goal: float = 0.0) -> Forecast:
    forecast = Forecast(goal)
    for now, number in numbers:
        forecast.note(number, now)
    return forecast


def test_a_steady_fall_is_foretold_exactly() -> None:
    """A bound of 100 * 0.9 ** t falls to 1e-4 at t = log(1e6) / log(1 / 0.9)."""
    bounds = ((t, math.log(100 * 0.9**t)) for t in range(31))
    forecast = noted(bounds, goal=math.log(1e-4))
    end = math.log(1e6) / math.log(1 / 0.9)
    assert forecast.seconds_left(30) == pytest.approx(end - 30)
    assert forecast.seconds_left(35) == pytest.approx(end - 35)


def test_many_points_foretell_as_well_as_few() -> None:
    """Of 100,000 only so many are kept, the newest among them."""
    forecast = noted((t / 1000, 200 - t / 1000) for t in range(100_000))
    assert len(forecast._points) <= waiting._MOST_POINTS
    assert forecast.seconds_left(99.999) == pytest.approx(100.001, rel=1e-6)


def test_a_slow_beginning_is_forgotten() -> None:
    """Kernels are loaded for 5 s, then 10 a second are done."""
    points = [(0.0, 1000.0)] + [(5 + t, 1000.0 - 10 * t) for t in range(31)]
    assert noted(points).seconds_left(35) == pytest.approx(70)


@pytest.mark.parametrize(
    "points",
    [
        pytest.param([], id="nothing is known"),
        pytest.param([(0, 3), (2, 2), (4, 1)], id="too few points"),
        pytest.param([(t / 10, 10 - t) for t in range(9)], id="too short a time"),
        pytest.param([(t, 5) for t in range(20)], id="nothing goes on"),
        pytest.param([(t, 5 + t) for t in range(20)], id="it grows"),
        pytest.param([(t, max(10 - t, 1)) for t in range(20)], id="it has come to a halt"),
        pytest.param([(t, 3 - t) for t in range(8)], id="the goal is reached"),
    ],
)
def test_no_guess_is_better_than_a_wild_one(points: list[tuple[float, float]]) -> None:
    assert noted(points).seconds_left(points[-1][0] if points else 0.0) is None


def test_what_should_be_over_takes_nobody_knows_how_long() -> None:
    forecast = noted((t, 10 - t) for t in range(9))
    assert forecast.seconds_left(8) == pytest.approx(2)
    assert forecast.seconds_left(11) is None


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


def test_what_is_reported_in_the_block_is_counted_anew_by_what_it_is() -> None:
    with Waiting(Console(file=io.StringIO()), "reading") as told:
        report(1, 4, "MB")
        assert told._text == "reading: 1 of 4 MB"
        counts = told._counts
        report(2, 4, "MB")
        assert told._counts is counts
        report(0, 4, "lines")
        assert told._text == "reading: 0 of 4 lines"
        assert told._counts is not counts
    report(3, 4, "lines")
    assert told._text == "reading: 0 of 4 lines"


def test_an_error_that_shrinks_evenly_tells_its_end() -> None:
    with Waiting(Console(file=io.StringIO()), "looking") as told:
        now = 0.0
        told.__class__ = type("At", (Waiting,), {"passed": property(lambda self: now)})
        for now in range(11):
            report_error(10.0**-now, 1e-30)
        assert told._text == "looking: error 1e-10, to be 1e-30"
        assert told._left is not None
        assert told._left.seconds_left(10.0) == pytest.approx(20.0)
        for nothing in (0.0, math.inf, math.nan):
            report_error(nothing, 1e-30)
        assert told._text == "looking: error 1e-10, to be 1e-30"
        report_error(0.5, 0.25)  # of something else, nothing is foretold yet
        assert told._text == "looking: error 0.5, to be 0.25"
        assert told._left.seconds_left(10.0) is None


def test_stages_have_their_place_in_the_line_and_give_it_back() -> None:
    with Waiting(Console(file=io.StringIO()), "making it") as told:
        told.tell("making it, as was said")
        with stage("walls"):
            assert told._text == "making it: walls"
            report(1, 4, "parts")
            assert told._text == "making it: walls: 1 of 4 parts"
            counts = told._counts
            with stage("doors"):
                assert told._text == "making it: doors"
                report(2, 4, "parts")  # others than before
                assert told._counts is not counts
            assert told._text == "making it: walls"
            report_error(0.5, 0.25)
            assert told._text == "making it: walls: error 0.5, to be 0.25"
        assert told._text == "making it, as was said"
    with stage("unheard"):
        assert told._text == "making it, as was said"


def test_compilation_is_told_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    with Waiting(Console(file=text, width=100), "solving"):
        until(lambda: "solving, 0 s" in text.getvalue())
        monkeypatch.setattr("planners.kernels.compiling.is_underway", lambda: True)
        until(lambda: "solving, compiling kernels, 0 s" in text.getvalue())
