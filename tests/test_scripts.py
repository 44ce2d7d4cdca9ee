"""Scripts that set themselves up: what they tell as they wait, and of wrong command lines."""

from __future__ import annotations

import importlib
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

import planners
from aggmaze import MoveMDP

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
        (["--out", "file/below"], "cannot make the folder for the picture"),
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


def test_the_first_minute(tmp_path: Path) -> None:
    """What the quickstart prints is so, by value iteration written down here."""
    done = subprocess.run(
        [sys.executable, SCRIPTS / "quickstart.py", "--in-venv", "--out", tmp_path],
        cwd=SCRIPTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    places = [done.stdout.index(f"\n{number}. ") for number in (1, 2, 3)]
    assert places == sorted(places)

    rows: dict[str, list[float]] = {}
    for words in re.findall(r"^ {5}(error after sweeps|\S.*?) {2,}([\d. ]+)$", done.stdout, re.M):
        rows.setdefault(words[0], []).extend(map(float, words[1].split()))
    sweeps = [int(x) for x in rows["error after sweeps"]]
    ours, theirs = rows["aggregation"], rows["value iteration"]
    assert len(sweeps) == len(ours)

    model, _ = planners.normalized(gym.make("TerrainMaze-v0", shape=(50, 50)), 0.95)
    assert isinstance(model, MoveMDP)
    exact = planners.solve(model, gamma=0.95, method="policy_iteration").require().values
    V, errors = np.zeros(model.num_states), {}
    costs, follow = np.asarray(model.move_costs), np.asarray(model.successors)
    for x in range(1, max(sweeps) + 1):
        V = np.where(model.terminal, 0.0, np.min(costs + 0.95 * V[follow], axis=1))
        errors[x] = np.abs(V - exact).max()
    assert theirs[: len(sweeps)] == pytest.approx([errors[x] for x in sweeps], rel=6e-3)
    # Aggregation is ahead in the beginning, and held in the end.
    assert ours[sweeps.index(10)] < 0.9 * errors[10]
    assert ours[-1] > 2 * errors[sweeps[-1]]
    since = int(re.search(r"is ahead from sweep (\d+) on", done.stdout)[1])  # type: ignore[index]
    assert 20 < since <= 60

    with Image.open(tmp_path / "aggregation.gif") as picture:
        assert picture.n_frames > 30  # type: ignore[attr-defined]
        assert picture.width > 600
    command = done.stdout.splitlines()[-1].split()
    assert command[1:3] == ["watch", "TerrainMaze-v0"]
    assert Path(command[0]).name == "aggmaze"
    assert Path(command[0]).parts[0] == ".venv"


def check_truth(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPTS / "check_truth.py", "--in-venv", "--seed", "4", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_random_models_that_hold() -> None:
    done = check_truth("--models", "30", "--workers", "2", "--time-limit", "60")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"30 of 30 models, 0 wrong, \d+ s\n$", done.stdout)


def test_what_is_wrong_with_random_models_is_told() -> None:
    # Nothing ends in a nanosecond.
    done = check_truth("--models", "20", "--workers", "1", "--time-limit", "1e-9")
    assert done.returncode == 1, done.stderr
    assert re.search(r"model \d+: planners.solve\(", done.stdout)
    assert "    does not end: bound" in done.stdout
    again = r"    again: python3 scripts/check_truth.py --seed 4 --time-limit 1e-09 --first \d+ "
    assert re.search(again + "--models 1\n", done.stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "0"], "--models must be at least 1, got 0"),
        (["--workers", "0"], "--workers must be at least 1, got 0"),
        (["--first", "-1"], "--first must be at least 0, got -1"),
        (["--time-limit", "nan"], "--time-limit must be positive and finite, got nan"),
    ],
)
def test_wrong_numbers_of_random_models(arguments: list[str], message: str) -> None:
    done = check_truth(*arguments)
    assert done.returncode == 2
    assert done.stderr == f"error: {message}; see check_truth.py --help\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name another checkout of the project, got None"),
        ([str(SCRIPTS)], f"name another checkout of the project, got {SCRIPTS}"),
        ([str(SCRIPTS.parent), "--rounds", "0"], "--rounds must be at least 1, got 0"),
    ],
)
def test_wrong_comparisons_of_checkouts(arguments: list[str], message: str) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPTS / "compare_results.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == f"error: {message}; see compare_results.py --help\n"


def test_what_two_checkouts_compute_differently_is_told(
    venv: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    compare_results = importlib.import_module("compare_results")
    assert compare_results.compare({"same": "1", "case": "2"}, {"same": "1", "case": "3"}) == 1
    assert capsys.readouterr().out == "case\n  here:  2\n  there: 3\n"
    assert compare_results.compare({"same": "1"}, {"same": "1", "more": "2"}) == 1
    assert capsys.readouterr().out == "more\n  here:  None\n  there: 2\n"


@pytest.mark.parametrize("name", ["compare_results.py", "bench/families.py"])
def test_models_that_are_compared_are_made_by_public_names(name: str) -> None:
    """Modules may have moved since the other checkout."""
    source = (SCRIPTS / name).read_text()
    assert re.findall(r"^ *(?:import|from) (?:aggmaze|planners)\b", source, flags=re.MULTILINE)
    assert not re.search(r"(?:import|from) (?:aggmaze|planners)\.", source)
