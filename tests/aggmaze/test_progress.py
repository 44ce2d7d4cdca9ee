"""What is reported of long work, and by whom it is heard."""

from __future__ import annotations

import io
from pathlib import Path

import gymnasium as gym
import pytest

import aggmaze
from aggmaze.progress import Counted, errors_are_heard, listening, report, report_error


def test_it_is_heard_in_the_block_alone() -> None:
    heard: list[tuple[int, int, str]] = []
    report(1, 9, "things")
    with listening(lambda *told: heard.append(told)):
        report(2, 9, "things")
        with listening(lambda *told: None):
            report(3, 9, "things")
        report(4, 9, "things")
    report(5, 9, "things")
    assert heard == [(2, 9, "things"), (4, 9, "things")]


def test_errors_are_heard_by_who_asks_for_them() -> None:
    heard: list[tuple[float, float]] = []
    report_error(1.0, 0.1)
    assert not errors_are_heard()
    with listening(lambda *told: None, lambda *told: heard.append(told)):
        assert errors_are_heard()
        report_error(0.5, 0.1)
        with listening(lambda *told: None):
            assert not errors_are_heard()
            report_error(0.25, 0.1)
    assert heard == [(0.5, 0.1)]


def test_bytes_are_counted_and_never_more_than_there_are() -> None:
    heard: list[tuple[int, int, str]] = []
    file = io.BytesIO()
    with listening(lambda *told: heard.append(told)):
        counted = Counted(file, 3_000_000, 1_000_000)
        counted.write(b"a" * 1_500_000)
        counted.write(b"b" * 1_000_000)
    assert heard == [(2, 3, "MB"), (3, 3, "MB")]
    assert len(file.getvalue()) == 2_500_000


@pytest.mark.parametrize("suffix", ["npz", "json", "drn", "umb"])
def test_files_tell_how_far_they_are(tmp_path: Path, suffix: str) -> None:
    model = gym.make("TerrainMaze-v0", shape=(50, 50)).unwrapped.transition_model()
    path = tmp_path / f"model.{suffix}"
    for work in (lambda: aggmaze.save_model(model, path), lambda: aggmaze.load_model(path)):
        heard: list[tuple[int, int, str]] = []
        with listening(lambda *told, heard=heard: heard.append(told)):  # type: ignore[misc]
            work()
        assert heard
        assert all(0 <= done <= total for done, total, _ in heard)
