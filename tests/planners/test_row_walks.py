"""Walks through models by rows: what is kept of the way."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import aggmaze
import planners
from aggmaze.models.row_models import MoveBlock


def test_episodes_of_one_call_ask_for_the_moves_of_a_state_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    maze = aggmaze.model_by_rows("TerrainMaze-v0", shape=(12, 9), terrain="noise", p=0.9)
    result = planners.solve(maze.to_model(), gamma=0.95)
    asked: Counter[tuple[int, int]] = Counter()
    moves = type(maze).moves

    def counted(self: Any, lo: int, hi: int) -> MoveBlock:
        asked[lo, hi] += 1
        return moves(self, lo, hi)

    monkeypatch.setattr(type(maze), "moves", counted)
    walked = planners.rollout(maze, result, episodes=40, seed=0)
    assert walked.lengths.sum() > 3 * maze.num_states  # so that states were met again
    assert asked.keys() <= {(state, state + 1) for state in range(maze.num_states)}
    assert set(asked.values()) == {1}
