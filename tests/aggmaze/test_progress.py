"""What is reported of long work, and by whom it is heard."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import aggmaze
from aggmaze.grid import Grid
from aggmaze.layouts.heights import heights
from aggmaze.layouts.spanning_tree import kruskal
from aggmaze.progress import Counted, errors_are_heard, listening, report, report_error, stage


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


def test_stages_are_told_in_the_place_of_the_outer_one() -> None:
    heard: list[str] = []
    with stage("unheard"), listening(lambda *told: None, of_stages=heard.append):
        with stage("outer"):
            with stage("inner"), listening(lambda *told: None), stage("unheard"):
                pass
            with pytest.raises(ValueError, match="no luck"), stage("broken off"):
                raise ValueError("no luck")
        with stage("next"):
            pass
    assert heard == ["outer", "inner", "outer", "broken off", "outer", "", "next", ""]


def test_making_a_maze_tells_its_stages() -> None:
    heard: list[str] = []
    with listening(lambda *told: None, of_stages=heard.append):
        gym.make("TerrainMaze-v0", shape=(30, 20))
        assert heard[0] == "heights of 600 cells"
        gym.make("StandardMaze-v0", shape=(30, 20))
    named = [words for words in heard if words]
    assert named[0] == "heights of 600 cells"
    assert "passages of 600 cells" in named
    assert "moves of 600 cells" in named


def counts(work: Callable[[], object]) -> list[tuple[int, int, str]]:
    heard: list[tuple[int, int, str]] = []
    with listening(lambda *told: heard.append(told)):
        work()
    return heard


def test_large_heights_and_mazes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aggmaze.layouts.heights._LEAST_WORK", 0)
    rng = np.random.default_rng(0)
    told = counts(lambda: heights(Grid((30, 20)), "smooth", None, rng))
    assert told == [(part, 40, "parts smoothed") for part in range(40)]
    told = counts(lambda: kruskal(Grid((60, 50)), rng))
    assert told[0] == (0, 60 * 49 + 59 * 50 - 1, "edges drawn")
    assert [done for done, _, _ in told] == sorted({done for done, _, _ in told})


def test_cells_are_counted() -> None:
    env = gym.make("MountainCar-v0")
    told = counts(lambda: aggmaze.discretize(env, bins=(10, 10)))
    assert told[-1] == (100, 100, "cells")


def test_states_are_counted_as_they_are_found() -> None:
    told = counts(lambda: aggmaze.tabularize(gym.make("FrozenLake-v1")))
    done, total, unit = told[-1]
    assert done == total > 1
    assert unit == "states found so far"
