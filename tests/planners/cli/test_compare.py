"""``aggmaze compare``: what it prints, writes and refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from planners import cli


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
