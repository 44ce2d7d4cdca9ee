"""What is said where there is no PETSc; what there is with it, is in tests/distributed."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import planners
from aggmaze import MoveMDP
from planners.budget import OutOfTimeError
from planners.distributed import processes
from planners.distributed.control import CommonClock, Signals, common_callback
from planners.engine import WHOLE
from planners.result import TERMINATED

MODEL = MoveMDP([[0], [0]], [[np.inf], [1.0]])


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let petsc4py be missing, also where it is installed."""

    monkeypatch.setitem(sys.modules, "mpi4py", None)
    processes.world.cache_clear()


def test_without_petsc_the_error_names_the_extra_and_the_page() -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        planners.solve(MODEL, gamma=0.9, engine="petsc")
    message = str(caught.value)
    assert "\n" not in message
    for word in ("mpi4py", "aggmaze[distributed]", "docs/distributed.md"):
        assert word in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"engine": "mpi"}, "engine must be one of local, petsc, got 'mpi'"),
        ({"gamma": 1.0}, 'engine="petsc" solves for discounted costs, gamma below 1'),
        ({"objective": planners.AverageCost()}, "and average cost is asked for"),
        ({"method": "gauss_seidel"}, "methods that do: value_iteration, modified_policy_iteration"),
        ({"method": "value_iterations"}, "did you mean 'value_iteration'"),
        ({"method": "policy_iteration", "ksp": "cg"}, "ksp must be one of gmres, bicgstab"),
        ({"method": "modified_policy_iteration", "pc": "lu"}, "pc must be one of none, jacobi"),
        (
            {"method": "modified_policy_iteration", "pc": "gamg", "inner_sweeps": 3},
            "inner_sweeps = 3 evaluates by sweeps, and pc = 'gamg' by PETSc",
        ),
        (
            {"method": "adaptive_aggregation", "noise_sigma": 0.1},
            "noise_sigma = 0.1 needs one process",
        ),
    ],
)
def test_what_several_processes_do_not_do(arguments: dict[str, Any], message: str) -> None:
    given = {"gamma": 0.9, "engine": "petsc", **arguments}
    if "objective" in given:
        del given["gamma"]
    with pytest.raises(ValueError, match=message):
        planners.solve(MODEL, **given)


def test_an_option_of_another_method() -> None:
    with pytest.raises(TypeError, match="value_iteration does not take 'ksp'"):
        planners.solve(MODEL, gamma=0.9, engine="petsc", method="value_iteration", ksp="gmres")


def test_the_local_engine_is_the_usual_one() -> None:
    result = planners.solve(MODEL, gamma=0.9, engine="local")
    assert isinstance(result, planners.SolveResult)
    assert result.values.tolist() == [0.0, 1.0]


class OneProcess:
    """What control asks of processes, of a single one."""

    rank, size = 0, 1
    gathered = staticmethod(WHOLE.gathered)

    def largest(self, numbers: Any) -> Any:
        return numbers

    def first(self, thing: Any) -> Any:
        return thing

    def any(self, flag: bool) -> bool:
        return flag

    def together(self, function: Any) -> Any:
        return function()


def clock_of(signals: Signals, limit: float | None = None) -> CommonClock:
    return CommonClock(OneProcess(), signals, limit)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("number", "message"),
    [(signal.SIGINT, "interrupted from the keyboard"), (signal.SIGTERM, TERMINATED)],
)
def test_a_signal_is_raised_at_the_next_check_and_once(number: int, message: str) -> None:
    before = signal.getsignal(number)
    with Signals() as signals:
        clock = clock_of(signals)
        clock.check()
        signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt, match=message):
            clock.check()
        signal.raise_signal(number)  # still the same one, on its way
        clock.check()
    assert signal.getsignal(number) == before


def interrupted(signals: Signals) -> None:
    raise KeyboardInterrupt


def test_a_late_signal_goes_to_who_heard_them_before() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with Signals():
            signal.raise_signal(signal.SIGTERM)
            assert heard == []
        assert heard == [signal.SIGTERM]
        # One on its way ends what there is: no second one.
        # An interruption that is on its way ends what there is, and no signal is heard twice.
        for interrupt in (Signals.raise_noted, interrupted):
            with suppress(KeyboardInterrupt), Signals() as signals:
                signal.raise_signal(signal.SIGTERM)
                interrupt(signals)
            assert heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


class OddError(OSError):
    """An exception that cannot be read by others."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} {two}")


def test_what_is_told_of_an_exception_is_of_its_kind() -> None:
    told = processes._portable(FileNotFoundError(2, "No such file", "here"))
    assert type(told) is FileNotFoundError
    assert (told.errno, told.filename) == (2, "here")
    assert type(processes._portable(OddError("no", "room"))) is OSError
    assert str(processes._portable(OddError("no", "room"))) == "no room"


def test_only_the_main_thread_hears_signals() -> None:
    before = signal.getsignal(signal.SIGTERM)
    found = []

    def run() -> None:
        with Signals():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [before]


def test_time_is_up_for_all() -> None:
    clock = clock_of(Signals(), limit=-1.0)
    with pytest.raises(OutOfTimeError):
        clock.check()
    clock.lift()
    clock.check()


def test_a_callback_in_some_process_is_asked_for_all() -> None:
    one: Any = OneProcess()
    assert common_callback(one, None) is None
    asked = common_callback(one, lambda progress: 1)
    assert asked is not None
    assert asked(None) is True  # type: ignore[arg-type]
