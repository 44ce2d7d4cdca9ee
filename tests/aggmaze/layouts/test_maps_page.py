"""The page on maps: its examples run, and its tables are those of the code."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from aggmaze.grid_worlds import GridWorldRules
from aggmaze.layouts.ready import READY
from aggmaze.layouts.signs import KNOWN
from planners import cli

PAGE = Path(__file__).parents[3] / "docs" / "models" / "maps.md"
TEXT = PAGE.read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, flags=re.DOTALL | re.MULTILINE)


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading."""
    part = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    examples = blocks("python")
    assert len(examples) >= 5
    for example in examples:
        exec(compile(example, PAGE.name, "exec"), names)
    assert (tmp_path / "aima.png").stat().st_size > 1000


def test_the_first_example_is_short() -> None:
    assert len([line for line in blocks("python")[0].splitlines() if line]) < 12


def test_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "world.txt").write_text("...G\n.#.H\nS...\n")
    (line,) = blocks("sh")
    monkeypatch.setattr(sys, "argv", shlex.split(line))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    assert "-0.705308 from the start" in capsys.readouterr().out


def test_signs_are_those_that_are_known() -> None:
    told = {}
    for signs, _, reward in rows("What signs mean"):
        told.update(dict.fromkeys(re.findall(r"`(.)`", signs), reward))
    assert {sign: float(told.pop(sign)) for sign in KNOWN} == {
        sign: cell.reward for sign, cell in KNOWN.items()
    }
    assert sorted(told) == ["#", ".", "F", "S"]


def test_rules_have_their_defaults() -> None:
    defaults = {"moves": '"four"'}
    for name, value in vars(GridWorldRules()).items():
        defaults[name] = f'"{value}"' if isinstance(value, str) else f"{value}".removesuffix(".0")
    assert {name.strip("`"): default for name, default, _ in rows("Rules")} == defaults


def test_ready_layouts_are_all() -> None:
    assert [name.strip("`") for name, *_ in rows("Ready layouts")] == list(READY)
