"""The command takes maps as files, and GridWorld-v0 its settings."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import aggmaze
from planners import cli

MAP = "...G\n.#.H\nS...\n"
RULES = ["p=0.8", "step_cost=0.04", "pays=leaving", 'signs={"H": -1}']


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["aggmaze", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.fixture(params=["world.txt", "world.map"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a file with AIMA's map."""
    file = tmp_path / str(request.param)
    file.write_text(MAP)
    return file


def settings(*given: str) -> list[str]:
    return [part for each in given for part in ("--set", each)]


def test_solve(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    image, saved = path.with_suffix(".png"), path.with_suffix(".npz")
    outputs = ("--image", image, "--save", saved)
    assert run(monkeypatch, "solve", path, "--gamma", 1, *settings(*RULES), *outputs) == 0
    shown = capsys.readouterr().out
    assert "cost         -0.705308 from the start" in shown
    assert "0.705308 promised" in " ".join(shown.split())
    assert image.stat().st_size > 1000
    with np.load(saved) as file:
        assert file["values"].shape == (12,)
    assert path.read_text() == MAP


def test_the_same_as_a_layout(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = settings(f"layout={path}", *RULES)
    assert run(monkeypatch, "solve", "GridWorld-v0", "--gamma", 1, *given) == 0
    assert "-0.705308 from the start" in capsys.readouterr().out
    assert run(monkeypatch, "solve", "GridWorld-v0", "--gamma", 1, "--set", "layout=windy") == 0
    assert "15 from the start" in capsys.readouterr().out


def test_convert(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = path.with_suffix(".npz")
    assert run(monkeypatch, "convert", path, target, *settings(*RULES)) == 0
    model = aggmaze.load_model(target)
    env = aggmaze.GridWorldEnv(
        MAP, p=0.8, step_cost=0.04, pays="leaving", signs={"H": -1}
    ).transition_model()
    np.testing.assert_array_equal(
        model.to_tabular().transitions.toarray(), env.to_tabular().transitions.toarray()
    )
    np.testing.assert_array_equal(model.to_tabular().costs, env.to_tabular().costs)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "layout=S.G"], "here layout is always"),
        (["--set", "slip=left"], "slip must be one of perpendicular, uniform, got 'left'"),
        (["--set", "colour=red"], "GridWorld-v0 takes no 'colour'"),
        (["--set", "signs=H"], "signs must be a table"),
    ],
)
def test_settings_refused(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "world.txt"
    path.write_text(MAP)
    assert run(monkeypatch, "solve", path, "--gamma", 1, *arguments) == 2
    assert message in capsys.readouterr().err


def test_files_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refusal(path: Path) -> str:
        assert run(monkeypatch, "solve", path, "--gamma", 1) == 2
        return capsys.readouterr().err

    path = tmp_path / "world.map"
    assert "there is no file" in refusal(path)
    path.write_text("S.G\n..?\n")
    assert "line 2, column 3: '?' is not among" in refusal(path)
    path.write_bytes(b"\xff\xfe\x00")
    assert "is not a maze as text" in refusal(path)
    path.unlink()
    path.mkdir()
    assert "is a directory" in refusal(path)


def test_files_may_be_called_as_ready_layouts_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("aima.txt").write_text("S..G\n")
    assert run(monkeypatch, "solve", "aima.txt", "--gamma", 1) == 0
    assert "4 with 4 actions" in capsys.readouterr().out
