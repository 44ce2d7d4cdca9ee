"""Every example in the README runs, in order, and its policies arrive."""

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

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


def test_the_python_examples_run_and_arrive(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    examples = blocks("python")
    assert len(examples) >= 3
    names: dict[str, Any] = {}
    for example in examples:
        exec(compile(example, "README.md", "exec"), names)
        if isinstance(names["env"], gym.Env):
            found = planners.arrival(names["env"], names["result"])
            assert found.share_of_states == 1.0
            assert found.share_of_starts == 1.0
    lines = capsys.readouterr().out.splitlines()
    bound, observed, share, loss, crossing, soon, farthest, gains, chosen, regret = lines
    assert "converged" in bound
    values = [float(number) for number in observed.split()]
    assert abs(values[0] - values[1]) < 1.0
    assert share == "1.0"
    assert float(crossing) == pytest.approx(14 / 17)
    assert 0.0 < float(soon.split()[0]) < 14 / 17
    maze = planners.as_model(gym.make("StandardMaze-v0"))
    assert float(farthest) == steps_to_terminal(maze).max()
    # Mended whenever it is worn: 1 / .3 steps at 10, and one at -2.
    gain = (10 / 0.3 - 2) / (1 / 0.3 + 1)
    assert [float(g) for g in gains.strip("[]").split()] == pytest.approx([gain, gain], rel=1e-6)
    assert chosen.startswith("forest_policy_iteration chosen for a 100 x 100 grid")
    assert 0.0 < float(loss) < 20.0
    told = ast.literal_eval(regret)
    assert 0.0 <= told["discounted"] <= told["sum"]
    # Staying in state 1 with action 1 gains 2 a step.
    values = planners.solve(names["model"], gamma=0.9, tol=1e-9).values
    assert values[1] == pytest.approx(-20.0)


def test_the_commands_run_and_arrive(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    # Who plays gives up at once.
    monkeypatch.setattr(Window, "pressed", lambda self: [Key(ESCAPE, "")])
    commands = [
        shlex.split(line, comments=True)
        for block in blocks("sh")
        for line in block.splitlines()
        if "aggmaze " in line
    ]
    assert len(commands) >= 3
    for command in commands:
        monkeypatch.setattr(sys, "argv", ["aggmaze", *command[1:]])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 0
        printed = capsys.readouterr().out
        # Where a policy goes that changes with the step is not told.
        if command[1] == "solve" and "--horizon" not in command:
            assert "100 % of the starts and 100 % of the states" in printed
    assert (tmp_path / "plan.png").is_file()
    assert (tmp_path / "maze.npz").is_file()


def test_files_and_names_that_the_readme_mentions_exist() -> None:
    paths = re.findall(r"`((?:planners|aggmaze|scripts)/[\w/.]*)`", README)
    assert len(paths) > 5
    for path in paths:
        assert (ROOT / path).exists(), path
    for pattern, owner in (
        (r"\bplanners\.(\w+)[`(]", planners),
        (r"\baggmaze\.([a-z]\w+|[A-Z]\w+)[`(.]", aggmaze),
        (r"\bTabularMDP\.(\w+)", aggmaze.TabularMDP),
        (r"\bmodel\.(\w+)\(", aggmaze.TabularMDP),
    ):
        names = re.findall(pattern, README)
        assert names
        for name in names:
            assert hasattr(owner, name), name
