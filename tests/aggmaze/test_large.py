"""What a machine cannot hold is refused before it is begun."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

import aggmaze.memory
from aggmaze import MoveMDP


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggmaze.memory, "available_memory", lambda: 1_000_000)


@pytest.mark.parametrize(
    ("env_id", "arguments"),
    [
        ("StandardMaze-v0", {"shape": (200, 300)}),
        ("TerrainMaze-v0", {"shape": (200, 300)}),
        ("NDMaze-v0", {"shape": (40, 50, 30)}),
    ],
)
@pytest.mark.usefixtures("little_memory")
def test_mazes_beyond_memory_are_refused_before_they_are_drawn(
    env_id: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(*arguments: Any) -> None:
        raise AssertionError("drawn")

    monkeypatch.setattr("aggmaze.envs.maze.MazeEnv._draw_layout", draw)
    with pytest.raises(MemoryError, match=r"mazes of 60,000 positions need .* MB, 1\.0 MB of mem"):
        gym.make(env_id, **arguments)


@pytest.mark.usefixtures("little_memory")
def test_small_mazes_are_made_with_little_memory() -> None:
    assert gym.make("TerrainMaze-v0").get_wrapper_attr("grid").num_states == 400


def test_tables_beyond_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model: MoveMDP = gym.make("TerrainMaze-v0", shape=(60, 60), p=0.9).get_wrapper_attr(
        "transition_model"
    )()
    monkeypatch.setattr(aggmaze.memory, "available_memory", lambda: 1_000_000)
    with pytest.raises(MemoryError, match="general sparse rows of 3,600 states need"):
        model.to_tabular()
    # Blocks of it are still to be had.
    assert model.rows(0, 100).num_states == 100
