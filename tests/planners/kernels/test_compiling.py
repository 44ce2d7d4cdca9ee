"""Time that kernels take to be compiled or loaded is no method's, and compilation is announced."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from numba.core import event

from planners.budget import Clock
from planners.kernels import compiling, threads


class FakeTime:
    """A clock that is set by hand, and timers that go by it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[FakeTimer] = []

    def perf_counter(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        for timer in self.timers:
            if timer.at is not None and timer.at <= self.now:
                timer.at = None
                timer.function()


class FakeTimer:
    def __init__(self, clock: FakeTime, interval: float, function: Callable[[], None]) -> None:
        self.clock, self.interval, self.function = clock, interval, function
        self.at: float | None = None

    def start(self) -> None:
        self.at = self.clock.now + self.interval
        self.clock.timers.append(self)

    def cancel(self) -> None:
        self.at = None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    clock = FakeTime()
    monkeypatch.setattr(compiling, "time", clock)
    timers = SimpleNamespace(Timer=lambda interval, f: FakeTimer(clock, interval, f))
    monkeypatch.setattr(compiling, "threading", timers)
    return clock


def kernel_of(module: str) -> Any:
    dispatcher = SimpleNamespace(py_func=SimpleNamespace(__module__=module))
    return SimpleNamespace(data={"dispatcher": dispatcher})


OURS = kernel_of("planners.kernels.sparse")


def compile_for(notice: Any, clock: FakeTime, seconds: float, kernel: Any = OURS) -> None:
    notice.on_start(kernel)
    clock.pass_by(seconds)
    notice.on_end(kernel)


def announced(capsys: pytest.CaptureFixture[str]) -> int:
    return capsys.readouterr().err.count("compiling kernels")


def test_each_stretch_of_compilation_is_announced_once(
    clock: FakeTime, capsys: pytest.CaptureFixture[str]
) -> None:
    notice = compiling._Notice()
    for _ in range(3):
        for _ in range(4):  # together over a second
            compile_for(notice, clock, 0.3)
            clock.pass_by(0.5)
        assert announced(capsys) == 1
        compile_for(notice, clock, 5.0)
        assert announced(capsys) == 0
        clock.pass_by(1.1)
    for _ in range(5):  # never over a second
        compile_for(notice, clock, 0.9)
        clock.pass_by(1.1)
    assert announced(capsys) == 0


def test_kernels_that_others_call_belong_to_the_same_stretch(
    clock: FakeTime, capsys: pytest.CaptureFixture[str]
) -> None:
    notice = compiling._Notice()
    assert not notice.is_underway()
    notice.on_start(OURS)
    compile_for(notice, clock, 0.6)
    assert notice.is_underway()
    compile_for(notice, clock, 0.6)
    assert announced(capsys) == 1
    notice.on_end(OURS)
    assert not notice.is_underway()
    clock.pass_by(1.1)
    compile_for(notice, clock, 1.1)
    assert announced(capsys) == 1


@pytest.mark.parametrize("module", ["__main__", "planners_of_others.kernels"])
def test_kernels_of_others_are_not_announced(
    module: str, clock: FakeTime, capsys: pytest.CaptureFixture[str]
) -> None:
    compile_for(compiling._Notice(), clock, 5.0, kernel_of(module))
    assert announced(capsys) == 0


def test_waits_inside_waits_are_counted_once(clock: FakeTime) -> None:
    stopwatch = compiling._Stopwatch()
    stopwatch.on_start(None)
    for _ in range(2):
        stopwatch.on_start(None)
        clock.pass_by(1.0)
        stopwatch.on_end(None)
    clock.pass_by(1.0)
    stopwatch.on_end(None)
    clock.pass_by(1.0)
    assert stopwatch.seconds() == 3.0


def test_a_wait_that_was_broken_off_spoils_none_of_the_next(clock: FakeTime) -> None:
    stopwatch = compiling._Stopwatch()
    stopwatch.on_start(None)  # and Ctrl-C: no end comes
    clock.pass_by(1.0)
    assert stopwatch.seconds() == 0.0
    stopwatch.on_start(None)
    clock.pass_by(2.0)
    stopwatch.on_end(None)
    assert stopwatch.seconds() == 2.0


def test_threads_wait_for_themselves_and_for_whom_they_started() -> None:
    before = compiling.seconds()
    stranger = threading.Thread(target=compiling.add, args=(64.0,))
    stranger.start()
    stranger.join()
    assert compiling.seconds() == before
    # Side by side: the longest wait, not the sum.
    threads.run_all([lambda wait=wait: compiling.add(wait) for wait in (1.0, 4.0, 2.0)])  # type: ignore[misc]
    assert compiling.seconds() == before + 4.0
    threads.run_all([lambda wait=wait: compiling.add(wait) for wait in (1.0, 2.0, 8.0)])  # type: ignore[misc]
    assert compiling.seconds() == before + 12.0


def test_clocks_leave_waits_out(monkeypatch: pytest.MonkeyPatch, clock: FakeTime) -> None:
    monkeypatch.setattr("planners.budget.time", clock)
    run = Clock()
    clock.pass_by(5.0)
    compiling.add(3.0)
    assert run.seconds() == 2.0


FRESH = """
import time, gymnasium as gym, aggmaze, planners
from planners.kernels import compiling
from planners.kernels import moves

model = planners.as_model(gym.make("StandardMaze-v0", shape=(5, 5), p=0.9))
before, start = compiling.seconds(), time.perf_counter()
result = planners.solve(model, gamma=0.9, method="value_iteration")
elapsed, waited = time.perf_counter() - start, compiling.seconds() - before
compiled = sum(moves.sweep.stats.cache_misses.values())
loaded = sum(moves.sweep.stats.cache_hits.values())
print(compiled, loaded, waited > 0, result.seconds <= elapsed - waited)
"""


def test_loading_counts_as_compiling_does() -> None:
    printed = [
        subprocess.run(
            [sys.executable, "-c", FRESH], capture_output=True, text=True, timeout=300, check=True
        ).stdout
        for _ in range(2)
    ]
    assert printed[1] == "0 1 True True\n"


def test_ctrl_c_within_numba_is_a_keyboard_interrupt() -> None:
    def complain(times: int, reason: BaseException) -> None:
        try:
            if times == 0:
                raise reason
            complain(times - 1, reason)
        except BaseException as error:
            raise SystemError("returned a result with an exception set") from error

    for times in range(3):
        with pytest.raises(KeyboardInterrupt), compiling.interruptible():
            complain(times, KeyboardInterrupt())
        with pytest.raises(SystemError), compiling.interruptible():
            complain(times, ValueError())
    with pytest.raises(SystemError, match="mine"), compiling.interruptible():
        raise SystemError("mine")


def test_ctrl_c_that_breaks_off_a_compilation_is_remembered_until_the_next() -> None:
    """In the main thread, whose Ctrl-C it is; by numba's own events."""
    data = {"dispatcher": OURS.data["dispatcher"]}
    compiling.watch()
    with pytest.raises(KeyboardInterrupt), event.trigger_event("numba:compile", data=data):
        raise KeyboardInterrupt
    assert not compiling.is_underway()
    assert compiling.was_broken_off()
    others: list[bool] = []
    other = threading.Thread(target=lambda: others.append(compiling.was_broken_off()))
    other.start()
    other.join()
    assert others == [False]
    with pytest.raises(TypeError), event.trigger_event("numba:compile", data=data):
        raise TypeError
    assert not compiling.was_broken_off()
