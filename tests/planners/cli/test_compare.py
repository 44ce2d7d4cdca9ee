"""``aggmaze compare``: what it prints, writes and refuses."""

from __future__ import annotations

import json
import linecache
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import gymnasium as gym
import pytest

import planners
from planners import cli, comparison


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["aggmaze", "compare", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_a_table_numbers_and_a_picture(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    names = "value_iteration,policy_iteration"
    files = ["--json", "numbers.json", "--plot", "runs.png"]
    code = run(
        monkeypatch, "TerrainMaze-v0", "--gammas", ".9,1", "--methods", names,
        "--set", "shape=6,6", *files,
    )  # fmt: skip
    assert code == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "environment TerrainMaze-v0"
    assert lines[1] == "gamma 0.9, 36 states with 4 actions"
    assert lines[2].split() == [
        "method", "seconds", "updates", "sweeps", "bound", "error", "ended",
    ]  # fmt: skip
    assert [line.split()[0] for line in lines[3:5]] == names.split(",")
    told = json.loads(Path("numbers.json").read_text())
    assert told["environment"] == "TerrainMaze-v0"
    assert [run["objective"] for run in told["runs"]] == ["gamma 0.9"] * 2 + ["total cost"] * 2
    assert Path("runs.png").read_bytes().startswith(b"\x89PNG")


def test_one_that_does_not_run_is_told_by_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = "basin_aggregation,value_iteration"
    assert run(monkeypatch, "FrozenLake-v1", "--gamma", ".9", "--methods", names) == 1
    printed = capsys.readouterr().out
    assert "not here: basin_aggregation is for models of moves" in printed
    assert "converged" in printed


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "say what is asked"),
        (["--gammas", ".9", "--gamma", ".9"], "--gammas asks for several"),
        (["--gammas", "a,b"], "got 'a,b'"),
        (["--gamma", ".9", "--methods", "value_iteration,foo"], "got 'foo'"),
        (["--gamma", ".9", "--option", "epsilon=1"], "--option METHOD.epsilon=1"),
        (["--gamma", ".9", "--json", "nowhere/numbers.json"], "no folder 'nowhere'"),
        (["--gamma", ".9", "--plot", "runs.bmp"], "'runs.bmp'"),
    ],
)
def test_bad_use(
    arguments: list[str],
    complaint: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "FrozenLake-v1", *arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert complaint in said
    assert said.count("\n") == 1


def test_ctrl_c_prints_what_is_finished(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def press(self: Any, progress: Any) -> None:
        if self._of.startswith("run 2, gauss_seidel"):
            raise KeyboardInterrupt

    monkeypatch.setattr(cli.compare.ProgressLine, "show", press)
    names = "value_iteration,gauss_seidel,policy_iteration"
    assert run(monkeypatch, "TerrainMaze-v0", "--gamma", ".9", "--methods", names) == 130
    captured = capsys.readouterr()
    assert captured.err.endswith("interrupted\n")
    rows = {line.split()[0]: line.split()[-1] for line in captured.out.splitlines()[3:]}
    assert rows == {"value_iteration": "converged", "gauss_seidel": "interrupted"}


def test_ctrl_c_at_any_line_of_a_comparison_leaves_what_is_finished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wherever it strikes once the runs have begun, those that were over are returned."""
    model = planners.as_model(gym.make("TerrainMaze-v0", shape=(4, 4)))
    names = ["value_iteration", "gauss_seidel"]
    # The same lines however fast the machine is.
    monkeypatch.setattr(comparison, "_SHORT", math.inf)
    monkeypatch.setattr(comparison, "_NUM_MORE", 1)
    counted = Strike(0)
    whole = counted.trace(lambda: planners.compare(model, names, gamma=0.9))
    assert [run.ended for run in whole.runs] == ["converged"] * 2
    finished = set()
    for number in range(counted.begun, counted.count):
        strike = Strike(number)
        found = strike.trace(lambda: planners.compare(model, names, gamma=0.9))
        done = [run for run in found.runs if run.result is not None and run.result.success]
        assert [run.method for run in done] == names[: len(done)]
        assert len(done) >= strike.over
        assert found.interrupted == (strike.count >= number)
        finished.add(len(done))
    assert finished == {0, 1, 2}


class Strike:
    """A tracer that raises as Ctrl-C does before the n-th line of `planners.comparison`."""

    def __init__(self, number: int) -> None:
        self.count = 0
        #: The line with which the first run begins.
        self.begun = 0
        #: How many runs had been over when it struck.
        self.over = 0
        self._number = number

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if frame.f_code.co_filename == comparison.__file__ else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        # No signal is heard at "try:", which does nothing, and what is raised there none catches.
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if event == "line" and text != "try:":
            self.count += 1
            if not self.begun and frame.f_locals.get("under_way"):
                self.begun = self.count
            if self.count == self._number:
                self.over = len(frame.f_locals.get("runs", ()))
                raise KeyboardInterrupt
        return self._line

    def trace(self, call: Callable[[], planners.Comparison]) -> planners.Comparison:
        before = sys.gettrace()
        sys.settrace(self)
        try:
            return call()
        finally:
            sys.settrace(before)


# Runs that take long enough to be met, with files that are to be whole or not there.
LONG = (
    "compare TerrainMaze-v0 --set shape=60,60 --set p=0.9 --gamma 0.99 --json runs.json "
    "--plot runs.png --methods policy_iteration,value_iteration,gauss_seidel --tol 1e-8"
)


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals to send")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("stage", ["making the model", "run 2, value_iteration", "drawing"])
def test_a_signal_at_every_stage(tmp_path: Path, stage: str, number: int) -> None:
    program = STAGED.replace("STAGE", stage).replace("NUMBER", str(int(number)))
    done = subprocess.run(
        [sys.executable, "-c", program, *LONG.split()],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 130, done.stderr
    assert done.stderr.endswith("interrupted\n")
    assert "Traceback" not in done.stderr
    rows = [line.split()[0] for line in done.stdout.splitlines() if "converged" in line]
    left = sorted(path.name for path in tmp_path.iterdir())
    if stage == "making the model":
        assert (done.stdout, left) == ("", [])
        return
    told = json.loads((tmp_path / "runs.json").read_text())
    if stage == "drawing":
        assert rows == ["policy_iteration", "value_iteration", "gauss_seidel"]
        assert not told["interrupted"]
        assert left == ["runs.json"]
        return
    assert rows == ["policy_iteration"]
    assert told["interrupted"]
    assert [run["status"] for run in told["runs"]] == ["converged", "interrupted"]
    assert left == ["runs.json", "runs.png"]
    assert (tmp_path / "runs.png").read_bytes().startswith(b"\x89PNG")


# The command, which sends itself a signal when it is so far.
STAGED = """
import os, sys, signal

import planners.cli.progress
import planners.waiting
from matplotlib.figure import Figure

sys.argv[0] = "aggmaze"
strike = lambda: os.kill(os.getpid(), NUMBER)
enter = planners.waiting.Waiting.__enter__
show = planners.cli.progress.ProgressLine.show

def entered(self):
    if self._what == "STAGE" == "making the model":
        strike()
    return enter(self)

def shown(self, progress):
    show(self, progress)
    if self._of.startswith("STAGE") and progress.iteration == 3:
        strike()

def saved(self, file, **options):
    file.write(b"half of a picture")
    if "STAGE" == "drawing":
        strike()
    save(self, file, **options)

save = Figure.savefig
planners.waiting.Waiting.__enter__ = entered
planners.cli.progress.ProgressLine.show = shown
Figure.savefig = saved if "STAGE" == "drawing" else save
from planners.cli import main
main()
"""
