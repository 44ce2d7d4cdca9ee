"""Runs that are kept: gone on with to the same bits, whatever ended them and whenever."""

from __future__ import annotations

import errno
import itertools
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planners
from aggmaze import EventMDP, MoveMDP
from planners import (
    AverageCost,
    Checkpoint,
    SolveResult,
    Status,
    checkpoint,
    checkpoint_folder,
    record,
)
from planners.bellman import local_engine
from planners.budget import Budget, Clock
from planners.certificate import Certifier
from planners.checkpoint import Keeper
from planners.engine import Engine
from planners.iterate import iterate
from planners.judge import Run
from planners.result import KEYBOARD, TERMINATED
from planners.solve import METHODS
from planners.solvers.adaptive_aggregation import AdaptiveAggregation, AdaptiveAggregationOptions
from planners.solvers.base import Solver
from planners.solvers.value_iteration import ValueIteration
from tests.planners.reference import random_moves, random_tabular
from tests.planners.split_engine import in_parts

ROOT = Path(__file__).parents[2]
GAMMA = 0.9
MODEL = random_moves(0, 60, 4, p=0.9)
TABLE = random_tabular(2, 40, 3, terminals=3)

# Methods that go on as if nothing had stopped them, and what is asked of each.
EXACT: dict[str, dict[str, Any]] = {
    "sweeps to a tolerance": {"method": "value_iteration", "tol": 1e-7},
    "so many sweeps": {"method": "value_iteration", "num_iterations": 23},
    "sweeps with a bound each": {"method": "value_iteration", "certify": "every"},
    "in place": {"method": "gauss_seidel", "tol": 1e-8},
    "Algorithm 3": {"method": "adaptive_aggregation", "epsilon": 0.2, "num_iterations": 40},
    "with a bound each": {
        "method": "adaptive_aggregation",
        "epsilon": lambda cycle: 1.0 / cycle,
        "num_iterations": 33,
        "certify": "every",
    },
    "long phases": {
        "method": "adaptive_aggregation",
        "epsilon": 0.1,
        "num_global": 1,
        "num_aggregated": 12,
        "step_index": "phase",
        "num_updates": 1500,
    },
    "no global phase": {
        "method": "adaptive_aggregation",
        "epsilon": 0.1,
        "num_global": 0,
        "num_iterations": 20,
    },
    "shrink": {"method": "adaptive_aggregation", "epsilon": "shrink"},
    "shrink to a digit": {"method": "adaptive_aggregation", "epsilon": "shrink", "atol": 0.1},
    "noise": {
        "method": "adaptive_aggregation",
        "epsilon": 0.2,
        "num_iterations": 30,
        "noise_sigma": 0.1,
        "noise": "fresh",
    },
    "noise once": {
        "method": "adaptive_aggregation",
        "epsilon": 0.2,
        "num_iterations": 30,
        "noise_sigma": 0.1,
    },
    "Algorithm 1": {
        "method": "fixed_aggregation",
        "labels": np.arange(60) // 7,
        "num_iterations": 50,
    },
}
OTHERS = [name for name in METHODS if name not in {case["method"] for case in EXACT.values()}]


def solve(case: dict[str, Any], path: Any = None, **more: Any) -> SolveResult:
    result = planners.solve(MODEL, gamma=GAMMA, **{"seed": 5, "checkpoint": path} | case | more)
    assert isinstance(result, SolveResult)
    return result


def undisturbed(name: str, known: dict[str, SolveResult] = {}) -> SolveResult:  # noqa: B006
    if name not in known:
        known[name] = solve(EXACT[name])
    return known[name]


def assert_same(result: SolveResult, whole: SolveResult) -> None:
    """The two are one answer, but for seconds and what the message says of checkpoints."""
    assert result.message.startswith(whole.message)
    for name, value in vars(whole).items():
        other = getattr(result, name)
        if name == "history":
            for column, array in vars(value).items():
                if column != "seconds":
                    np.testing.assert_array_equal(getattr(other, column), array, err_msg=column)
        elif name == "proof":
            for part, array in value.items():
                np.testing.assert_array_equal(other[part], array)
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(other, value, err_msg=name)
        elif name not in ("seconds", "message"):
            assert other == value, name
    seconds = result.history.seconds
    assert (np.diff(seconds) >= 0).all()
    assert result.seconds >= seconds[-1]


def stop_at(iteration: int) -> Callable[[planners.Progress], bool]:
    return lambda progress: progress.iteration == iteration


# ---------------------------------------------------------------------------------------------
# Stopped between two iterations.


@pytest.mark.parametrize("name", EXACT)
def test_gone_on_with_wherever_it_was_stopped(name: str, tmp_path: Path) -> None:
    whole = undisturbed(name)
    for stop in range(1, whole.num_iterations + 1, 1 if whole.num_iterations < 60 else 7):
        path = tmp_path / str(stop)
        stopped = solve(EXACT[name], path, callback=stop_at(stop))
        assert stopped.num_iterations == stop
        if stop < whole.num_iterations:
            assert stopped.status == Status.INTERRUPTED
            assert f"the checkpoint in {str(path)!r} is of iteration {stop}" in stopped.message
        assert_same(solve(EXACT[name], path), whole)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(list(EXACT)), data=st.data())
def test_gone_on_with_again_and_again(name: str, data: st.DataObject) -> None:
    whole = undisturbed(name)
    stops = sorted(data.draw(st.sets(st.integers(1, whole.num_iterations - 1), min_size=1)))
    every = data.draw(st.none() | st.integers(1, 9))
    with tempfile.TemporaryDirectory() as folder:
        kept = Checkpoint(folder, every_iterations=every)
        for stop in stops:
            seen: list[planners.Progress] = []
            result = solve(
                EXACT[name],
                kept,
                callback=lambda p, stop=stop, seen=seen: seen.append(p) or p.iteration == stop,  # type: ignore[func-returns-value]
            )
            # Every iteration is seen once, in all runs together.
            before = 0 if stop == stops[0] else stops[stops.index(stop) - 1]
            assert [p.iteration for p in seen] == list(range(before + 1, stop + 1))
            assert {p.resumed_at for p in seen} == {before}
            assert result.num_iterations == stop
        assert_same(solve(EXACT[name], kept), whole)
        assert_same(solve(EXACT[name], kept), whole)  # the same call again


@pytest.mark.parametrize("method", OTHERS)
@pytest.mark.parametrize("stop", [1, 2, 3])
def test_other_methods_begin_from_the_v_that_was_reached(
    method: str, stop: int, tmp_path: Path
) -> None:
    case = {"method": method}
    whole = solve(case)
    stopped = solve(case, tmp_path, callback=stop_at(stop))
    again = solve(case, tmp_path)
    assert again.success
    assert np.abs(again.values - whole.values).max() <= again.bound + whole.bound
    assert again.num_iterations > stopped.num_iterations
    assert again.num_updates > stopped.num_updates
    np.testing.assert_array_equal(
        again.history.iteration, np.arange(1, len(again.history) + 1, dtype=np.int64)
    )


def fuller(state: int, action: int, event: int) -> int:
    return min(max(state + action - event, 0), 19)


def dearer(state: int, action: int) -> float:
    return 2.0 * action + 0.1 * state + (5.0 if state == 0 else 0.0)


def inventory(chances: list[float]) -> EventMDP:
    return EventMDP(20, 4, fuller, chances, dearer)


def test_auto_and_models_of_random_events(tmp_path: Path) -> None:
    model = inventory([0.2, 0.5, 0.3])
    for number, method in enumerate(("auto", "value_iteration")):
        path = tmp_path / str(number)
        whole = planners.solve(model, gamma=0.95, method=method)
        planners.solve(model, gamma=0.95, method=method, checkpoint=path, callback=stop_at(2))
        again = planners.solve(model, gamma=0.95, method=method, checkpoint=path)
        assert again.success
        assert np.abs(again.values - whole.values).max() <= again.bound + whole.bound
        with pytest.raises(ValueError, match="model is"):
            planners.solve(inventory([0.2, 0.4, 0.4]), gamma=0.95, method=method, checkpoint=path)


def test_small_models_that_the_value_of_a_policy_ends(tmp_path: Path) -> None:
    model = MoveMDP([[1], [0]], [[1.0], [0.0]])
    options: dict[str, Any] = {"gamma": 0.9999, "method": "value_iteration", "tol": 1e-9}
    whole = planners.solve(model, **options)
    assert "exact value of a policy" in whole.message
    planners.solve(model, checkpoint=tmp_path, callback=stop_at(4000), **options)
    assert_same(planners.solve(model, checkpoint=tmp_path, **options), whole)
    assert_same(planners.solve(model, checkpoint=tmp_path, **options), whole)


def test_histories_that_thin_themselves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "_MOST_ROWS", 8)
    whole = solve(EXACT["with a bound each"])
    assert len(whole.history) < 20
    for stop in range(1, 33):
        solve(EXACT["with a bound each"], tmp_path / str(stop), callback=stop_at(stop))
        assert_same(solve(EXACT["with a bound each"], tmp_path / str(stop)), whole)


# ---------------------------------------------------------------------------------------------
# Limits.


def test_a_limit_that_was_reached_can_be_raised(tmp_path: Path) -> None:
    for name, case in (
        ("value_iteration", {"method": "value_iteration"}),
        ("adaptive_aggregation", EXACT["Algorithm 3"] | {"num_iterations": None}),
    ):
        for count in (10, 20, 31):
            kept = solve(case, tmp_path / name, num_iterations=count)
            assert_same(kept, solve(case, num_iterations=count))


def test_a_tolerance_may_be_another_one(tmp_path: Path) -> None:
    rough, fine = ({"method": "value_iteration", "tol": tol} for tol in (1e-3, 1e-9))
    assert_same(solve(rough, tmp_path), solve(rough))
    finer, whole = solve(fine, tmp_path), solve(fine)
    np.testing.assert_array_equal(finer.values, whole.values)
    assert finer.num_iterations == whole.num_iterations
    assert solve(rough, tmp_path).success


def test_a_time_limit_is_of_each_call(tmp_path: Path) -> None:
    case = EXACT["sweeps to a tolerance"] | {"tol": None, "num_iterations": 40}

    def slow(progress: planners.Progress) -> None:
        time.sleep(0.01)

    results = []
    for _ in range(40):
        results.append(solve(case, tmp_path, time_limit=0.05, callback=slow))
        if "time limit" not in results[-1].message:
            break
        assert "the checkpoint in" in results[-1].message
    assert len(results) > 2
    assert_same(results[-1], solve(case))
    assert results[-1].seconds > 0.4  # those of all calls


def test_fewer_iterations_than_were_made_are_refused(tmp_path: Path) -> None:
    solve(EXACT["so many sweeps"], tmp_path)
    with pytest.raises(ValueError, match="is of iteration 23, and num_iterations=22"):
        solve(EXACT["so many sweeps"], tmp_path, num_iterations=22)


# ---------------------------------------------------------------------------------------------
# Struck down at any moment.


class AtLine:
    """A tracer that raises as Ctrl-C does before the n-th line of `planners`; 0 for never."""

    def __init__(self, number: int = 0) -> None:
        self.count = 0
        self._number = number
        self._folder = str(ROOT / "planners")

    def __call__(self, frame: Any, event: str, argument: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(self._folder) else None

    def _line(self, frame: Any, event: str, argument: Any) -> Any:
        if event == "line":
            self.count += 1
            if self.count == self._number:
                raise KeyboardInterrupt
        return self._line

    def trace(self, call: Callable[[], SolveResult]) -> SolveResult | None:
        before = sys.gettrace()
        sys.settrace(self)
        try:
            return call()
        except KeyboardInterrupt:
            return None  # before the first iteration, or after the last checkpoint
        finally:
            sys.settrace(before)


# Where it strikes between open() and what closes the file, Python closes it, and says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["sweeps to a tolerance", "Algorithm 3", "Algorithm 1"])
def test_ctrl_c_before_any_line(name: str, tmp_path: Path) -> None:
    whole = undisturbed(name)
    kept = Checkpoint(tmp_path / "counted", every_iterations=9)
    counted = AtLine()
    counted.trace(lambda: solve(EXACT[name], kept))
    for number in range(1, counted.count, counted.count // 40):
        path = tmp_path / str(number)
        kept = Checkpoint(path, every_iterations=9)
        result = AtLine(number).trace(lambda kept=kept: solve(EXACT[name], kept))  # type: ignore[misc]
        if result is not None and result.num_iterations and not result.success:
            assert result.message.startswith(KEYBOARD)
        assert_same(solve(EXACT[name], kept), whole)
        shutil.rmtree(path)


KEPT = """
import sys, time
import planners
from tests.planners.test_checkpoint import EXACT, MODEL, GAMMA, solve

name, path, target = sys.argv[1:]

def slow(progress):
    if not progress.iteration == progress.resumed_at + 1:
        time.sleep(0.005)
    else:
        print("ready", flush=True)

result = solve(EXACT[name], planners.Checkpoint(path, every_iterations=2), callback=slow)
print(result.status, result.message, flush=True)
if result.success:
    result.save(target)
"""


def child(*arguments: str, program: str = KEPT) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def iterations_kept(path: Path) -> int:
    heads = [json.loads(head.read_text()) for head in path.glob("?.json")]
    return max((head["run"]["num_iterations"] for head in heads), default=0)


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to send")
@pytest.mark.parametrize("name", ["sweeps to a tolerance", "Algorithm 3"])
def test_killed_ten_times_and_gone_on_with(name: str, tmp_path: Path) -> None:
    """Kill -9 at random moments, of writing too: what is there is always whole."""
    rng = np.random.default_rng(0)
    kills = finished = 0
    while kills < 10 or finished == 0:
        # A run that was over before the next blow is checked, and another one begun.
        path, target = tmp_path / f"kept {finished}", tmp_path / f"{finished}.npz"
        before = iterations_kept(path)
        with child(name, str(path), str(target)) as running:
            assert running.stdout is not None
            line = running.stdout.readline()
            if line == "ready\n" and kills < 10:
                time.sleep(rng.uniform(0.0, 0.1))
                running.kill()
                kills += 1
            else:
                told, errors = running.communicate(timeout=300)
                assert running.returncode == 0, errors
                assert before == 0 or f"resumed at iteration {before}" in line + told
        if target.exists():
            assert_same(SolveResult.load(target), undisturbed(name))
            finished += 1
        else:
            assert iterations_kept(path) >= before


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to send")
def test_sigterm_ends_a_run_with_a_checkpoint(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    whole = undisturbed("Algorithm 3")

    def strike(progress: planners.Progress) -> None:
        if progress.iteration == 17:
            signal.raise_signal(signal.SIGTERM)

    result = solve(EXACT["Algorithm 3"], tmp_path, callback=strike)
    assert result.status == Status.INTERRUPTED
    assert result.message == (
        f"{TERMINATED}; the checkpoint in {str(tmp_path)!r} is of iteration 17"
    )
    assert signal.getsignal(signal.SIGTERM) == before
    with pytest.raises(KeyboardInterrupt):
        result.require()
    assert_same(solve(EXACT["Algorithm 3"], tmp_path), whole)
    # It is no affair of a run that is not kept.
    heard: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        assert solve(EXACT["Algorithm 3"], callback=strike).success
        assert heard == [signal.SIGTERM]
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        assert solve(EXACT["Algorithm 3"], tmp_path / "ignored", callback=strike).success
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to send")
def test_a_scheduler_ends_a_process(tmp_path: Path) -> None:
    program = KEPT.replace("0.005", "0.2 if progress.iteration > 5 else 0")
    path, target = tmp_path / "kept", tmp_path / "result.npz"
    with child("Algorithm 3", str(path), str(target), program=program) as running:
        deadline = time.monotonic() + 300
        while not list(path.glob("?.json")):
            assert running.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        running.send_signal(signal.SIGTERM)
        told, errors = running.communicate(timeout=300)
    assert running.returncode == 0, errors
    assert TERMINATED in told
    assert_same(solve(EXACT["Algorithm 3"], path), undisturbed("Algorithm 3"))


# ---------------------------------------------------------------------------------------------
# Another run's.


def test_another_run_is_refused_by_what_differs(tmp_path: Path) -> None:
    case = EXACT["Algorithm 3"]
    solve(case, tmp_path, callback=stop_at(12))
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for change, words in (
        ({"epsilon": 0.25}, "epsilon is 0.2 there and 0.25 here"),
        ({"seed": 6}, "seed is 5 there and 6 here"),
        ({"gamma": 0.95}, "gamma is 0.9 there and 0.95 here"),
        ({"method": "value_iteration", "epsilon": ...}, "method is adaptive_aggregation there"),
        ({"num_global": 3, "first_step": 2}, "num_global is 2 there and 3 here; first_step"),
        ({"step_size": lambda t: 1 / t}, "step_size is t^-0.5 there and a function"),
        ({"tol": 1e-3}, "tolerance is not given there and given here"),
        ({"certify": "every"}, "certify is final there and every here"),
        ({"V0": np.ones(60)}, "V0 is 0 there and 60 numbers"),
    ):
        options = {"gamma": GAMMA, "seed": 5} | case | change
        options = {name: value for name, value in options.items() if value is not ...}
        with pytest.raises(ValueError, match="is of another run") as refusal:
            planners.solve(MODEL, checkpoint=tmp_path, **options)
        assert words in str(refusal.value)
    for model in (random_moves(1, 60, 4, p=0.9), random_moves(0, 60, 4, p=0.8), TABLE):
        with pytest.raises(ValueError, match="model is"):
            planners.solve(model, gamma=GAMMA, seed=5, checkpoint=tmp_path, **case)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files
    assert_same(solve(case, tmp_path, num_threads=2), undisturbed("Algorithm 3"))


def test_functions_are_known_by_what_they_say(tmp_path: Path) -> None:
    case = EXACT["with a bound each"]
    solve(case, tmp_path, callback=stop_at(12))
    again = solve(case | {"epsilon": lambda c: 1 / c}, tmp_path)
    assert_same(again, undisturbed("with a bound each"))


def test_starting_over(tmp_path: Path) -> None:
    solve(EXACT["Algorithm 3"], tmp_path, callback=stop_at(12))
    seen: list[int] = []
    anew = Checkpoint(tmp_path, resume=False)
    result = solve(EXACT["shrink"], anew, callback=lambda p: seen.append(p.iteration))
    assert seen[0] == 1
    assert_same(result, undisturbed("shrink"))
    assert_same(solve(EXACT["shrink"], tmp_path), undisturbed("shrink"))


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")

    def another(progress: planners.Progress) -> None:
        with pytest.raises(OSError, match="another run keeps its checkpoints in"):
            solve(EXACT["so many sweeps"], tmp_path)

    assert solve(EXACT["so many sweeps"], tmp_path, callback=another).success


def test_other_objectives_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="checkpoint is for discounted costs, and average cost"):
        planners.solve(MODEL, objective=AverageCost(), checkpoint=tmp_path)
    with pytest.raises(TypeError, match="path of a folder"):
        planners.solve(MODEL, gamma=GAMMA, checkpoint=3)
    with pytest.raises(ValueError, match="every_seconds must be positive"):
        Checkpoint(tmp_path, every_seconds=0)
    with pytest.raises(ValueError, match="every_iterations"):
        Checkpoint(tmp_path, every_iterations=0)


# ---------------------------------------------------------------------------------------------
# The disk.


def newest(folder: Path) -> str:
    numbers = {path.stem: json.loads(path.read_text())["number"] for path in folder.glob("?.json")}
    return max(numbers, key=lambda letter: numbers[letter])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-3] ^= 64
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-8])


def spoil(path: Path) -> None:
    path.write_text("{")


@pytest.mark.parametrize("name", ["V.npy", "codes.npy", "W.npy", "history.npy", ".json"])
@pytest.mark.parametrize("damage", [flip, cut, Path.unlink, spoil])
def test_what_is_torn_is_noticed(name: str, damage: Callable[[Path], None], tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path, every_iterations=6)
    solve(EXACT["Algorithm 3"], kept, callback=stop_at(13))
    letter = newest(tmp_path)
    path = tmp_path / (f"{letter}.json" if name == ".json" else f"{letter}-{name}")
    damage(path)
    if name == ".json" and damage is Path.unlink:
        result = solve(EXACT["Algorithm 3"], kept)  # as if it had never been
    else:
        with pytest.warns(UserWarning, match="the last checkpoint cannot be used"):
            result = solve(EXACT["Algorithm 3"], kept)
    assert "resumed at iteration 12" in result.message
    assert_same(result, undisturbed("Algorithm 3"))


def test_two_that_are_torn_are_not_started_over_in_silence(tmp_path: Path) -> None:
    solve(EXACT["Algorithm 3"], Checkpoint(tmp_path, every_iterations=6), callback=stop_at(13))
    for letter in "ab":
        flip(tmp_path / f"{letter}-V.npy")
    with pytest.raises(ValueError, match=r"cannot be used: .*resume=False\) starts over"):
        solve(EXACT["Algorithm 3"], tmp_path)
    assert_same(
        solve(EXACT["Algorithm 3"], Checkpoint(tmp_path, resume=False)), undisturbed("Algorithm 3")
    )


def test_folders_that_cannot_be_written_are_refused_before_the_solve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(progress: planners.Progress) -> None:
        raise AssertionError("it has begun")

    file = tmp_path / "file"
    file.write_text("text")
    for path in (file, file / "below", tmp_path / "no" / "such"):
        with pytest.raises(OSError, match="no checkpoint can be kept in") as refusal:
            solve(EXACT["so many sweeps"], path, callback=never)
        assert repr(str(path)) in str(refusal.value)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(OSError, match=r"there is no room .* 1.0 kB is free"):
        solve(EXACT["so many sweeps"], tmp_path / "kept", callback=never)


LIMITED = """
import resource, sys
import planners
from tests.planners.reference import random_moves

resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    planners.solve(random_moves(0, 50_000, 2, p=1.0), gamma=0.9, method="value_iteration",
                   checkpoint=sys.argv[1])
except OSError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="files keep room where there is fallocate")
def test_room_is_taken_before_the_solve(tmp_path: Path) -> None:
    with child(str(tmp_path), program=LIMITED) as running:
        told, errors = running.communicate(timeout=300)
    assert "no checkpoint can be kept in" in told, errors
    assert "File too large" in told


@pytest.mark.parametrize(
    ("home", "failing"), [(checkpoint, "write_slice"), (checkpoint_folder, "move_head")]
)
def test_a_disk_that_fails_on_the_way_does_not_end_the_run(
    home: Any, failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = getattr(home, failing)
    calls = itertools.count()

    def fails(*arguments: Any) -> Any:
        if next(calls) >= (10 if failing == "write_slice" else 2):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return works(*arguments)

    kept = Checkpoint(tmp_path, every_iterations=6)
    with monkeypatch.context() as patch:
        patch.setattr(home, failing, fails)
        with pytest.warns(UserWarning, match="could be written to .* No space left") as warned:
            result = solve(EXACT["Algorithm 3"], kept)
    assert len(warned) > 2
    assert_same(result, undisturbed("Algorithm 3"))
    # What was whole before is there.
    again = solve(EXACT["Algorithm 3"], kept)
    assert "resumed at iteration 12" in again.message
    assert_same(again, undisturbed("Algorithm 3"))


def test_how_often(tmp_path: Path) -> None:
    for options, expected in (
        ({}, []),
        ({"every_seconds": 1e-9}, list(range(1, 20))),
        ({"every_iterations": 7}, [7, 14]),
        ({"every_iterations": 7, "every_seconds": None}, [7, 14]),
    ):
        folder, seen = tmp_path / str(len(list(tmp_path.iterdir()))), []

        def look(progress: planners.Progress, folder: Path = folder, seen: Any = seen) -> None:
            heads = [json.loads(path.read_text())["run"] for path in folder.glob("?.json")]
            seen.append(max((head["num_iterations"] for head in heads), default=0))

        solve(
            {"method": "value_iteration"},
            Checkpoint(folder, **options),
            num_iterations=20,
            callback=look,
        )
        assert sorted(set(seen) - {0}) == expected
        assert sorted(path.name for path in folder.glob("?.json")) == (
            ["a.json", "b.json"] if expected else ["a.json"]
        )


def test_values_lie_in_the_folder_as_numpy_reads_them(tmp_path: Path) -> None:
    result = solve(EXACT["so many sweeps"], tmp_path)
    values = np.load(tmp_path / f"{newest(tmp_path)}-V.npy", mmap_mode="r")
    np.testing.assert_array_equal(values, result.values)


# ---------------------------------------------------------------------------------------------
# In parts.

Make = Callable[[Engine], Solver]
SOLVERS: dict[str, Make] = {
    "value_iteration": ValueIteration,
    "adaptive_aggregation": lambda engine: AdaptiveAggregation(
        engine, AdaptiveAggregationOptions(epsilon=0.3), np.random.default_rng(0)
    ),
    "shrink": lambda engine: AdaptiveAggregation(
        engine, AdaptiveAggregationOptions(epsilon="shrink"), np.random.default_rng(0)
    ),
}


def part_of(engine: Engine, name: str, path: Path, stop: int | None = None, every: int = 4) -> Run:
    """Solve a part of a model, and keep it."""
    solver = SOLVERS[name](engine)
    kept = Checkpoint(path, every_seconds=None, every_iterations=every)
    with Keeper(kept, {"name": name}, engine, solver) as keeper:
        return iterate(
            solver,
            np.zeros(len(engine.terminal)),
            Certifier(engine),
            Budget(tol=1e-8, num_iterations=60),
            Clock(),
            defines_values=name == "adaptive_aggregation",
            callback=None if stop is None else stop_at(stop),
            keeper=keeper,
        )


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("stop", [1, 5, 17])
def test_kept_by_two_and_gone_on_with_by_any_number(name: str, stop: int, tmp_path: Path) -> None:
    whole = part_of(local_engine(TABLE, GAMMA), name, tmp_path / "whole")
    in_parts(TABLE, GAMMA, [13], lambda engine: part_of(engine, name, tmp_path / "two", stop))
    for cuts in ([], [13], [9, 30], [3, 4, 20]):
        path = tmp_path / str(cuts)
        shutil.copytree(tmp_path / "two", path)
        runs = in_parts(TABLE, GAMMA, cuts, lambda engine, path=path: part_of(engine, name, path))  # type: ignore[misc]
        assert f"resumed at iteration {stop}" in runs[0].message
        np.testing.assert_array_equal(np.concatenate([run.values for run in runs]), whole.values)
        for run in runs:
            assert (run.bound, run.status) == (whole.bound, whole.status)
            assert run.num_iterations == whole.num_iterations
            assert run.num_updates == whole.num_updates
            assert run.num_certificate_sweeps == whole.num_certificate_sweeps
            np.testing.assert_array_equal(run.history.bound, whole.history.bound)
            np.testing.assert_array_equal(run.history.num_megastates, whole.history.num_megastates)


def test_what_one_part_cannot_do_all_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept"
    in_parts(TABLE, GAMMA, [13], lambda engine: part_of(engine, "value_iteration", path, 9))
    # Entries of the second part, in the newest: all take the one before.
    letter = newest(path)
    flip(path / f"{letter}-V.npy")
    with pytest.warns(UserWarning, match="cannot be used"):
        runs = in_parts(TABLE, GAMMA, [13], lambda e: part_of(e, "value_iteration", path))
    assert {run.message.partition("; ")[2] for run in runs} == {
        f"resumed at iteration 8; the checkpoint in {str(path)!r} is of iteration 60"
    }

    works = checkpoint.write_slice

    def fails(path: Path, part: Any, first: int, num_entries: int) -> Any:
        if first > 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return works(path, part, first, num_entries)

    monkeypatch.setattr(checkpoint, "write_slice", fails)
    other = tmp_path / "other"
    with pytest.warns(UserWarning, match="could be written") as warned:
        runs = in_parts(TABLE, GAMMA, [13], lambda e: part_of(e, "value_iteration", other, 9))
    assert len(warned) == 3  # of one part
    assert all("there is no checkpoint" in run.message for run in runs)
    assert not list(other.glob("?.json"))


def test_numbers_that_json_rounds_would_be_noticed(tmp_path: Path) -> None:
    """What heads hold is read as the very number that was written."""
    model = MoveMDP([[1], [2], [2]], [[math.pi * 1e-300], [1 / 3], [math.inf]])
    options: dict[str, Any] = {"gamma": 1 / 3, "method": "value_iteration", "tol": 1e-13}
    whole = planners.solve(model, **options)
    for stop in range(1, whole.num_iterations):
        path = tmp_path / str(stop)
        planners.solve(model, checkpoint=path, callback=stop_at(stop), **options)
        assert_same(planners.solve(model, checkpoint=path, **options), whole)
