"""``aggmaze solve --checkpoint``: stopped, gone on with, and refused in one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import planners
from tests.planners.cli.test_cli import run

ROOT = Path(__file__).parents[3]
PATIENCE = 300
SOLVE = ("solve", "TerrainMaze-v0", "--set", "shape=20,15", "--gamma", "0.95", "--episodes", "0")
SOLVE += ("--method", "adaptive_aggregation", "--epsilon", "0.2")


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to send")
def test_a_command_that_a_scheduler_ends_is_gone_on_with(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    kept, saved, other = (tmp_path / name for name in ("kept", "kept.npz", "other.npz"))
    command = [*SOLVE, "--num-iterations", "1000000", "--checkpoint", str(kept)]
    with subprocess.Popen(
        [sys.executable, "-m", "planners", *command, "--checkpoint-every", "0.2"],
        env=os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "300"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        deadline = time.monotonic() + PATIENCE
        while not (kept / "b.json").exists():
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        child.send_signal(signal.SIGTERM)
        printed, told = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130, told
    assert "interrupted, terminated by SIGTERM; the checkpoint in" in printed
    done = int(printed.partition("is of iteration ")[2].split()[0].replace(",", ""))
    limit = ("--num-iterations", done + 200)
    assert run(monkeypatch, *SOLVE, *limit, "--checkpoint", kept, "--save", saved) == 0
    assert f"resumed at iteration {done:,}" in capsys.readouterr().out
    assert run(monkeypatch, *SOLVE, *limit, "--save", other) == 0
    first, second = (planners.SolveResult.load(path) for path in (saved, other))
    np.testing.assert_array_equal(first.values, second.values)
    assert first.bound == second.bound


def test_what_is_wrong_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file, kept, other, none = (tmp_path / name for name in ("file", "kept", "other", "none"))
    file.write_text("text")
    other.mkdir()
    (other / "a-V.npy").write_text("text")
    assert run(monkeypatch, *SOLVE, "--checkpoint", kept, "--num-iterations", 9) == 0
    entries = sorted(tmp_path.rglob("*"))
    for arguments, words in (
        (("--checkpoint-every", "5"), "--checkpoint-every says how often, and --checkpoint FOLDER"),
        (("--checkpoint", file), "it is a file, and a folder is written"),
        (("--checkpoint", none / "kept"), f"there is no folder {str(none)!r} to make it in"),
        (("--checkpoint", other), "it holds other things, such as 'a-V.npy'"),
        (("--checkpoint", ""), "no checkpoint can be kept in '.'"),
        (("--checkpoint", kept, "--checkpoint-every", "0"), "--checkpoint-every must be positive"),
        (("--checkpoint", kept, "--checkpoint-every", "-5"), "--checkpoint-every must be positive"),
        (("--checkpoint", kept, "--checkpoint-every", "nan"), "--checkpoint-every must be positiv"),
        (("--checkpoint", kept, "--seed", "1"), "seed is 0 there and 1 here"),
        (("--checkpoint", none, "--store", none), "--store and --checkpoint are one folder"),
        (("--store", kept), "no result can be stored in"),
        (("--store", other), "it holds other things, such as 'a-V.npy'"),
    ):
        capsys.readouterr()
        assert run(monkeypatch, *SOLVE, *arguments) == 2
        told = capsys.readouterr().err.splitlines()
        assert words in told[-1]
        assert told[-1].startswith("error: ")
        assert sorted(tmp_path.rglob("*")) == entries
