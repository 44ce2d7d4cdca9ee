"""Folders of checkpoints: whose they are, and what is wrong with one."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planners
from planners import Checkpoint, checkpoint_folder
from tests.planners.reference import random_moves

MODEL = random_moves(0, 60, 4, p=0.9)


def solve(path: Any, **more: Any) -> planners.SolveResult:
    asked = {"gamma": 0.9, "method": "value_iteration", "num_iterations": 20} | more
    result = planners.solve(MODEL, checkpoint=path, **asked)
    assert isinstance(result, planners.SolveResult)
    return result


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("name", ["a-V.npy", "a.json", "lock", "letter.txt", ".a.json.0123"])
def test_files_of_others_stop_a_run_before_it_begins(
    name: str, resume: bool, tmp_path: Path
) -> None:
    (tmp_path / name).write_text('{"format": "of others"}')
    before = contents(tmp_path)
    with pytest.raises(FileExistsError) as refusal:
        solve(Checkpoint(tmp_path, resume=resume))
    assert str(refusal.value) == (
        f"no checkpoint can be kept in {str(tmp_path)!r}: it holds other things, such as {name!r}"
    )
    assert contents(tmp_path) == before


def test_results_and_checkpoints_do_not_share_a_folder(tmp_path: Path) -> None:
    result = solve(tmp_path / "kept")
    with pytest.raises(FileExistsError, match="it holds other things, such as 'a-V"):
        result.store(tmp_path / "kept")
    result.store(tmp_path / "stored")
    with pytest.raises(FileExistsError, match="it holds other things, such as 'history_"):
        solve(tmp_path / "stored")


def test_what_is_kept_beside_checkpoints_stays(tmp_path: Path) -> None:
    solve(tmp_path)
    (tmp_path / "letter.txt").write_text("dear reader")
    assert "resumed at iteration 20" in solve(tmp_path).message
    assert "resumed" not in solve(Checkpoint(tmp_path, resume=False)).message
    assert (tmp_path / "letter.txt").read_text() == "dear reader"


def test_who_is_killed_at_the_beginning_leaves_a_folder_that_can_be_taken(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    assert solve(tmp_path).success
    left = tmp_path / ".a.json.0123456789abcdef"
    left.write_text("{")
    assert "resumed at iteration 20" in solve(tmp_path).message
    assert not left.exists()


def test_starting_over_leaves_nothing_of_the_run_before(tmp_path: Path) -> None:
    more: dict[str, Any] = {"method": "adaptive_aggregation", "epsilon": 0.2}
    solve(Checkpoint(tmp_path, every_iterations=5), **more)
    assert (tmp_path / "a-codes.npy").exists()
    solve(Checkpoint(tmp_path, resume=False))
    assert sorted(contents(tmp_path)) == [
        "a-V.npy", "a-history.npy", "a.json", "b-V.npy", "lock",
    ]  # fmt: skip


def test_a_head_that_was_changed_is_none(tmp_path: Path) -> None:
    solve(tmp_path)
    head = json.loads((tmp_path / "a.json").read_text())
    head["run"]["num_updates"] += 1
    (tmp_path / "a.json").write_text(json.dumps(head))
    with pytest.raises(ValueError, match="no head of one: it is not as it was written"):
        solve(tmp_path)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("file", "it is a file, and a folder is written"),
        ("none/kept", "there is no folder .*none' to make it in"),
        ("file/kept", "there is no folder .*file' to make it in"),
        ("closed", "it cannot be written to"),
        ("closed/kept", "it cannot be written to"),
    ],
)
def test_what_is_wrong_with_a_place_is_said_in_a_line(
    path: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "closed").mkdir()
    allowed = os.access
    # Root may write anywhere.
    monkeypatch.setattr(os, "access", lambda p, mode: "closed" not in str(p) and allowed(p, mode))
    place = tmp_path / path
    name = repr(str(place))
    with pytest.raises(OSError, match=rf"no checkpoint can be kept in {name}: {words}"):
        solve(place)
    result = planners.solve(MODEL, gamma=0.9)
    with pytest.raises(OSError, match=rf"no result can be stored in {name}: {words}"):
        result.store(place)
    assert sorted(contents_of_all(tmp_path)) == ["closed", "file"]


def contents_of_all(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*")]


def test_arguments_that_are_none() -> None:
    with pytest.raises(ValueError, match="path of a folder, got an empty text"):
        Checkpoint("")
    with pytest.raises(TypeError, match="resume must be True or False, got 'no'"):
        Checkpoint("run", resume="no")  # type: ignore[arg-type]


def test_a_program_may_go_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    solve("kept", callback=lambda p: os.chdir("other") if p.iteration == 3 else None)
    monkeypatch.chdir(tmp_path)
    assert not list((tmp_path / "other").iterdir())
    assert "resumed at iteration 20" in solve("kept").message


def test_room_that_is_not_there_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = checkpoint_folder.reserve

    def full(path: Path, *arguments: Any) -> None:
        works(path, *arguments)
        if path.name == "b-V.npy":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_folder, "reserve", full)
        with pytest.raises(OSError, match=r"can be kept in .*: No space left on device"):
            solve(tmp_path)
    assert list(contents(tmp_path)) == ["lock"]
    whole = planners.solve(MODEL, gamma=0.9, method="value_iteration", num_iterations=20)
    np.testing.assert_array_equal(solve(tmp_path).values, whole.values)
