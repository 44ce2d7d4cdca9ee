"""Files that several processes write: what systems do not offer is done without."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planners
from planners import open_result, slices
from tests.planners.reference import random_moves

MODEL = random_moves(0, 40, 4, p=0.9)


def kept_and_stored(folder: Path) -> None:
    """Keep a run, go on with it, and store what it comes to, twice."""
    asked: dict[str, Any] = {"gamma": 0.9, "method": "value_iteration"}
    whole = planners.solve(MODEL, **asked)
    kept = planners.Checkpoint(folder / "kept", every_iterations=3)
    planners.solve(MODEL, checkpoint=kept, num_iterations=7, **asked, tol=1e-6)
    result = planners.solve(MODEL, checkpoint=kept, **asked)
    assert "resumed at iteration 7" in result.message
    for _ in range(2):
        result.store(folder / "stored")
    np.testing.assert_array_equal(open_result(folder / "stored").values, whole.values)


def test_systems_that_open_no_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows."""
    works = os.open

    def without_folders(path: Any, *arguments: Any, **options: Any) -> int:
        if Path(path).is_dir():
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return works(path, *arguments, **options)

    monkeypatch.delattr(os, "O_DIRECTORY", raising=False)
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    monkeypatch.setattr(os, "open", without_folders)
    monkeypatch.setattr(slices, "fcntl", None)
    kept_and_stored(tmp_path)


def test_file_systems_that_sync_no_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    works, failed = os.fsync, []

    def without_folders(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            failed.append(descriptor)
            raise OSError(errno.EINVAL, "Invalid argument")
        works(descriptor)

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("no way to tell what a descriptor is of")
    monkeypatch.setattr(os, "fsync", without_folders)
    kept_and_stored(tmp_path)
    assert failed


def test_other_errors_of_folders_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="Input/output error"):
        slices.sync_folder(tmp_path)
