"""Scripts that set themselves up: what they tell as they wait, and of wrong command lines."""

from __future__ import annotations

import importlib
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


@pytest.fixture
def venv(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("_venv")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("output", [io.StringIO(), Terminal()])
def test_what_an_installation_waits_for_is_told(
    venv: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, output: io.StringIO
) -> None:
    """The command goes on only when what it printed was told."""
    go = tmp_path / "go"
    tell = venv._Waiting.__call__

    def tell_and_let_go(waiting: Any) -> None:
        tell(waiting)
        if "Collecting numpy" in output.getvalue():
            go.touch()

    monkeypatch.setattr(venv, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(venv, "LINE_EVERY", 0.0)
    monkeypatch.setattr(venv._Waiting, "__call__", tell_and_let_go)
    monkeypatch.setattr(sys, "stdout", output)
    program = "import pathlib, sys, time\nprint('\\n  Collecting numpy\\n\\n', flush=True)\n"
    program += "while not pathlib.Path(sys.argv[1]).exists():\n    time.sleep(0.01)"
    command = [sys.executable, "-c", program, go]
    venv._call_quietly(command, "starting pip", "it failed", None)
    told = output.getvalue()
    assert re.search(r"  \d+ s: Collecting numpy *\n?", told)
    if output.isatty():  # all in one line, which is empty in the end
        assert "\n" not in told
        assert told.split("\r")[-2].strip() == told.split("\r")[-1] == ""
    else:
        assert "\r" not in told


def test_a_command_that_fails_shows_what_it_printed(
    venv: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "print('ERROR: no luck'); raise SystemExit(3)"
    with pytest.raises(venv.SetupError, match=r"it failed .*exit code 3\): no luck"):
        venv._call_quietly([sys.executable, "-c", program], "starting", "it failed", None)
    assert capsys.readouterr().err == "ERROR: no luck\n\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "a", "--out", "b"], "--out is given 2 times"),
        (["--nothing"], "unrecognized arguments: --nothing"),
        (["--out", "file/below"], "cannot make the folder for the pictures"),
    ],
)
def test_wrong_command_lines(arguments: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = subprocess.run(
        [sys.executable, SCRIPTS / "quickstart.py", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert re.fullmatch(r"error: .*; see quickstart.py --help\n", done.stderr)
    assert message in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
