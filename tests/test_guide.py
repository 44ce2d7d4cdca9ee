"""The pages of the guide: their examples run, in order, and come to what is said there."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import aggmaze
import planners
from aggmaze.keys import ESCAPE
from aggmaze.rendering.window import Key, Window
from planners import cli
from planners.policies import steps_to_terminal

DOCS = Path(__file__).resolve().parent.parent / "docs"
#: Pages with Python, each of which runs by itself.  Those of docs/environments and docs/models have
#: tests of their own.
PYTHON = ("getting_started", "objectives", "methods", "models", "learning", "watch")
COMMANDS = ("command_line", "watch", "paper")


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[dict[str, Any], list[str]]:
    """Run the Python of a page; return its names, and the lines that it prints."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    examples = blocks(page, "python")
    assert examples
    for example in examples:
        exec(compile(example, f"{page}.md", "exec"), names)
        if isinstance(names.get("env"), gym.Env):
            found = planners.arrival(names["env"], names["result"])
            assert found.share_of_states == 1.0
            assert found.share_of_starts == 1.0
    return names, capsys.readouterr().out.splitlines()


def test_getting_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names, (bound, observed, share, loss) = run("getting_started", tmp_path, monkeypatch, capsys)
    assert "converged" in bound
    values = [float(number) for number in observed.split()]
    assert abs(values[0] - values[1]) < 1.0
    assert share == "1.0"
    assert 0.0 < float(loss) < 20.0
    # Staying in state 1 with action 1 gains 2 a step.
    values = planners.solve(names["model"], gamma=0.9, tol=1e-9).values
    assert values[1] == pytest.approx(-20.0)


def test_objectives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, (crossing, soon, farthest, gains) = run("objectives", tmp_path, monkeypatch, capsys)
    assert float(crossing) == pytest.approx(14 / 17)
    assert 0.0 < float(soon.split()[0]) < 14 / 17
    maze = planners.as_model(gym.make("StandardMaze-v0"))
    assert float(farthest) == steps_to_terminal(maze).max()
    # Mended whenever it is worn: 1 / .3 steps at 10, and one at -2.
    gain = (10 / 0.3 - 2) / (1 / 0.3 + 1)
    assert [float(g) for g in gains.strip("[]").split()] == pytest.approx([gain, gain], rel=1e-6)


def test_methods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, (chosen,) = run("methods", tmp_path, monkeypatch, capsys)
    assert chosen.startswith("forest_policy_iteration chosen for a 100 x 100 grid")


def test_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("models", tmp_path, monkeypatch, capsys)
    lake = aggmaze.load_model(tmp_path / "lake.json")
    assert -planners.solve(lake, gamma=1).values[0] == pytest.approx(14 / 17)


def test_learning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, (regret,) = run("learning", tmp_path, monkeypatch, capsys)
    told = ast.literal_eval(regret)
    assert 0.0 <= told["discounted"] <= told["sum"]


def test_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, (result,) = run("watch", tmp_path, monkeypatch, capsys)
    assert result.startswith("SolveResult(adaptive_aggregation: completed, 400 states")
    assert (tmp_path / "run.html").stat().st_size > 10_000


@pytest.mark.parametrize("page", COMMANDS)
def test_commands_run_and_arrive(
    page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    # Who plays gives up at once.
    monkeypatch.setattr(Window, "pressed", lambda self: [Key(ESCAPE, "")])
    commands = [
        shlex.split(line, comments=True)
        for block in blocks(page, "sh")
        for line in block.splitlines()
        # That one runs for minutes: `.ci/run` has experiments, and tests of their own.
        if "aggmaze " in line and "reproduce bounds" not in line
    ]
    assert commands
    for command in commands:
        if command[1] == "watch" and "--record" not in command:
            command += ["--record", "window.html"]
        monkeypatch.setattr(sys, "argv", ["aggmaze", *command[1:]])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 0
        printed = capsys.readouterr().out
        # Where a policy goes that changes with the step is not told.
        if command[1] == "solve" and "--horizon" not in command:
            assert "100 % of the starts and 100 % of the states" in printed
    if page == "command_line":
        assert (tmp_path / "plan.png").is_file()
        assert (tmp_path / "maze.npz").is_file()


@pytest.mark.parametrize("page", sorted({*PYTHON, *COMMANDS}))
def test_what_pages_mention_exists(page: str) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    for path in re.findall(r"`((?:planners|aggmaze|scripts)/[\w/.]*)`", text):
        assert (DOCS.parent / path).exists(), path
    for pattern, owner in (
        (r"\bplanners\.(\w+)[`(]", planners),
        (r"`aggmaze\.([a-z]\w+|[A-Z]\w+)[`(.]", aggmaze),
        (r"\bTabularMDP\.(\w+)", aggmaze.TabularMDP),
    ):
        for name in re.findall(pattern, text):
            assert hasattr(owner, name), name
