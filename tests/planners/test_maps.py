"""Where states lie that are not positions of a maze."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from aggmaze.layouts.layout import Layout
from planners.maps import StateMap, map_of, named_map


@pytest.mark.parametrize(
    ("env_id", "arguments", "actions"),
    [
        # Actions as Gymnasium documents them, as LEFT, RIGHT, DOWN and UP, 0 to 3.
        ("FrozenLake-v1", {"map_name": "8x8"}, [0, 2, 1, 3]),
        ("FrozenLake-v1", {"is_slippery": False}, [0, 2, 1, 3]),
        ("CliffWalking-v1", {}, [3, 1, 2, 0]),
    ],
)
def test_toy_grids(env_id: str, arguments: dict[str, Any], actions: list[int]) -> None:
    env = gym.make(env_id, **arguments)
    inner: Any = env.unwrapped
    found = map_of(env)
    assert isinstance(found, StateMap)
    assert found.states is not None
    rows, columns = inner.desc.shape if hasattr(inner, "desc") else inner.shape
    # The top row first, from the left, as they are numbered.
    image = found.grid.to_image(found.states)
    assert np.array_equal(image, np.arange(rows * columns).reshape(rows, columns))
    assert found.moves is not None
    assert found.moves.tolist() == actions
    assert found.layout is not None
    assert found.states[found.layout.goal] == rows * columns - 1


def test_actions_that_lead_nowhere_are_no_moves() -> None:
    class Still(gym.Env[Any, Any]):
        def __init__(self) -> None:
            self.shape = (1, 2)
            self.P = {s: {0: [(1.0, 1, 0.0, True)], 1: [(1.0, s, 0.0, False)]} for s in (0, 1)}

    found = map_of(Still())
    assert isinstance(found, StateMap)
    assert found.moves is None


def test_mazes_have_their_layout_and_others_nothing() -> None:
    env = gym.make("StandardMaze-v0", shape=(3, 3))
    assert isinstance(map_of(env), Layout)
    assert map_of(gym.make("Taxi-v4")) is None
    assert map_of(gym.make("CartPole-v1")) is None
    assert map_of({0: {0: [(1.0, 0, 0.0, True)]}}) is None
    assert named_map(None) is None
    assert named_map(("a", "b")) is None
    assert named_map(((0, 0, 1), (0, 1, 0))) is None


def test_cells_are_cut_through_the_middle() -> None:
    found = map_of(gym.make("DiscretizedCartPole-v0"))
    assert isinstance(found, StateMap)
    assert [found.axis_names[axis] for axis in found.plane] == ["angle", "angular velocity"]
    assert found.through == tuple(n // 2 for n in found.grid.shape)
