"""The README: its example runs, its policies arrive, and what it names is there."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import aggmaze
import planners
from planners import cli

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: Of the picture that moves.
MOST_BYTES = 500_000


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


def test_the_python_example_runs_and_arrives(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = blocks("python")
    names: dict[str, Any] = {}
    exec(compile(example, "README.md", "exec"), names)
    found = planners.arrival(names["env"], names["result"])
    assert found.share_of_states == 1.0
    bound, observed = capsys.readouterr().out.splitlines()
    assert "converged" in bound
    values = [float(number) for number in observed.split()]
    assert abs(values[0] - values[1]) < 1.0


def test_the_commands_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [shlex.split(line, comments=True) for b in blocks("sh") for line in b.splitlines()]
    commands = [line for line in lines if line]
    assert [command[1] for command in commands[:2]] == [
        "scripts/quickstart.py",  # which has tests of its own
        "scripts/run_tests.py",
    ]
    (watch,) = commands[2:]
    monkeypatch.setattr(sys, "argv", ["aggmaze", *watch[1:], "--record", "run.html"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    assert "adaptive_aggregation" in capsys.readouterr().out
    assert (tmp_path / "run.html").stat().st_size > 10_000


def test_it_is_read_in_two_minutes() -> None:
    """At 200 words a minute, tables and code included."""
    assert len(README.split()) < 450


def test_the_picture_moves_and_is_small() -> None:
    picture = ROOT / "docs" / "aggregation.gif"
    assert "(docs/aggregation.gif)" in README
    assert picture.stat().st_size < MOST_BYTES
    with Image.open(picture) as film:
        assert film.n_frames > 10


def test_files_and_names_that_the_readme_mentions_exist() -> None:
    paths = re.findall(r"\b((?:planners|aggmaze|scripts)/[\w/.]+\.py)\b", README)
    assert paths
    for path in paths:
        assert (ROOT / path).exists(), path
    for pattern, owner in (
        (r"\bplanners\.(\w+)[`(]", planners),
        (r"\baggmaze\.([a-z]\w+|[A-Z]\w+)[`(.]", aggmaze),
    ):
        for name in re.findall(pattern, README):
            assert hasattr(owner, name), name
