"""Arguments are checked before work is done: no layout is drawn for a call that is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import aggmaze
from aggmaze.envs import maze as maze_module
from aggmaze.envs import terrain_maze as terrain_module
from aggmaze.recipes import StandardRecipe, TerrainRecipe

BEYOND = 10**400


class DrawnError(Exception):
    """A layout was about to be made."""


@pytest.fixture
def nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise DrawnError

    for recipe in (StandardRecipe, TerrainRecipe):
        monkeypatch.setattr(recipe, "layout", fail)
        monkeypatch.setattr(recipe, "complete", fail)
    monkeypatch.setattr(maze_module, "layout_from_text", fail)
    monkeypatch.setattr(terrain_module, "layout_from_heights", fail)
    monkeypatch.setattr(terrain_module, "heights_from_image", fail)
    monkeypatch.setattr("aggmaze.envs.cartpole.cartpole_model", fail)


# What is wrong of any maze, whatever the layout.
ANY_MAZE: dict[str, list[Any]] = {
    "p": [1.5, 0, -0.1, float("nan"), "much", None, True, BEYOND],
    "cost_scale": [0, -1.0, float("inf"), "2", BEYOND, 1e308],
    "step_cost": [float("inf"), float("nan"), None, "1", BEYOND, -BEYOND, 1.7e308],
    "goal_reward": [float("-inf"), [1], BEYOND, 1.7e308],
    "layout_seed": [-1, 0.5, "seven", None, BEYOND],
    "start": ["middle", 3, None],
    "render_mode": ["rgb", "human_window", 3],
}
# What is wrong of a maze of so many positions along two axes.
IN_A_GRID: dict[str, list[Any]] = {
    "start": [(-1, 0), (5, 0), (0, 0, 0), (0.5, 0), (0, 0), (BEYOND, 0)],
    "goal": [(0, 6), (1,), "here", (BEYOND, 0)],
    "shape": [(5, 0), (5,) * 9, 5, "5x5", (5, 1.5), (1, 1), (BEYOND, 2)],
}
WALLS = {"generator": ["prim", None, 3], "loops": [1.5, -0.1, "all", float("nan"), BEYOND]}
HEIGHTS = {
    "terrain": ["rough", None],
    "smoothness": [-1.0, float("inf"), "very", BEYOND],
    "cost": ["free", None],
}
OF_EACH: dict[str, dict[str, list[Any]]] = {
    "StandardMaze-v0": ANY_MAZE | WALLS,
    "TerrainMaze-v0": ANY_MAZE | HEIGHTS,
    "NDMaze-v0": ANY_MAZE
    | {"kind": ["round", None], "generator": ["prim"], "loops": [1.5, -0.1]}
    | {"terrain": ["smooth"], "smoothness": [1.0], "cost": ["climb"]},
}
LARGER = {"cost_scale": {"step_cost": 1e10}, "step_cost": {"cost_scale": 10.0}}
LARGER["goal_reward"] = LARGER["step_cost"]
BAD = [
    (env_id, name, value)
    for env_id, arguments in OF_EACH.items()
    for name, values in arguments.items()
    for value in values
]
BAD_IN_A_GRID = [
    (env_id, name, value)
    for env_id in OF_EACH
    for name, values in IN_A_GRID.items()
    for value in values
]


def refusal(make: Callable[[], Any]) -> str:
    """Return the one line in which a call is refused, by an error that is no layout's."""
    with pytest.raises((ValueError, TypeError)) as error:
        make()
    text = str(error.value)
    assert "\n" not in text
    return text


def named(name: str, text: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None or "costs overflow" in text


@pytest.mark.usefixtures("nothing_is_made")
class TestMazes:
    @pytest.mark.parametrize("env_id", OF_EACH)
    def test_a_layout_would_be_made_where_nothing_is_wrong(self, env_id: str) -> None:
        for arguments in ({}, {"p": 0.5, "start": (3, 4), "goal": (4, 3), "render_mode": "ansi"}):
            with pytest.raises(DrawnError):
                gym.make(env_id, shape=(5, 6), **arguments)
        with pytest.raises(DrawnError):
            gym.make(env_id, layout="S..G")

    @pytest.mark.parametrize(("env_id", "name", "value"), BAD, ids=lambda value: repr(value)[:20])
    def test_a_bad_argument_is_refused_before_it(self, env_id: str, name: str, value: Any) -> None:
        others = LARGER.get(name, {}) if isinstance(value, float) and value > 1e300 else {}
        env_class = gym.spec(env_id).entry_point
        assert isinstance(env_class, str)
        make = getattr(aggmaze, env_class.partition(":")[2])
        sources: list[dict[str, Any]] = [{"shape": (5, 6)}]
        if name not in ("generator", "loops"):  # those are refused beside a text as such
            sources.append({"layout": "S..G"})
        for source in sources:
            text = refusal(lambda s=source: make(**s, **{name: value}, **others))  # type: ignore[misc]
            assert named(name, text)
            assert len(text) < 200, "a number of 401 digits is not to be printed"

    @pytest.mark.parametrize(
        ("env_id", "name", "value"), BAD_IN_A_GRID, ids=lambda value: repr(value)[:20]
    )
    def test_so_is_one_that_the_grid_tells(self, env_id: str, name: str, value: Any) -> None:
        shape = {} if name == "shape" else {"shape": (5, 6)}
        assert named(name, refusal(lambda: gym.make(env_id, **shape, **{name: value})))

    @pytest.mark.parametrize("name", ["p", "cost_scale", "step_cost", "start", "render_mode"])
    def test_of_heights_and_of_pictures_too(self, name: str) -> None:
        env_class = aggmaze.TerrainMazeEnv
        for make in (env_class.from_heights, env_class.from_image):
            with pytest.raises(DrawnError):
                make(np.eye(3))
            for bad in ({name: ANY_MAZE[name][0]}, {"cost": "free"}):
                text = refusal(lambda m=make, b=bad: m(np.eye(3), **b))  # type: ignore[misc]
                assert named(next(iter(bad)), text)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("num_envs", 0),
            ("max_episode_steps", 0),
            ("autoreset_mode", "Never"),
            ("render_mode", "human"),
            ("p", 1.5),
        ],
    )
    def test_of_vector_environments_too(self, name: str, value: Any) -> None:
        make = aggmaze.envs.vector.standard_maze
        with pytest.raises(DrawnError):
            make(num_envs=2, shape=(5, 6))
        assert named(name, refusal(lambda: make(**{"num_envs": 2, "shape": (5, 6), name: value})))


def test_the_chain_of_cartpole(nothing_is_made: None) -> None:
    make = aggmaze.DiscretizedCartPoleEnv
    with pytest.raises(DrawnError):
        make(bins=(3, 3, 3, 3))
    for name, value in {"render_mode": "rgb", "bins": (3, 3), "limits": (1.0, BEYOND)}.items():
        assert named(name, refusal(lambda n=name, v=value: make(**{n: v})))  # type: ignore[misc]


@pytest.mark.parametrize(
    "options",
    [
        {"layout_seed": -1},
        {"layout_seed": 1, "state": 0},
        {"layout_seed": 1, "state": 30},
        {"layout_seed": 1, "coords": (5, 5)},
        {"layout_seed": 1, "state": 3, "coords": (1, 1)},
        {"layout_seed": 1, "colour": "red"},
    ],
)
def test_a_reset_that_is_refused_draws_nothing(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    env = gym.make("StandardMaze-v0", shape=(5, 6)).unwrapped
    before = env.layout  # type: ignore[attr-defined]
    env.reset(seed=1)

    def fail(*args: Any) -> Any:
        raise DrawnError

    monkeypatch.setattr(StandardRecipe, "layout", fail)
    refusal(lambda: env.reset(options=options))
    with pytest.raises(gym.error.Error):
        env.reset(seed=-1, options={"layout_seed": 1})
    with pytest.raises(DrawnError):
        env.reset(options={"layout_seed": 1})
    assert env.layout is before  # type: ignore[attr-defined]


def test_a_reset_where_nothing_is_drawn() -> None:
    env = gym.make("StandardMaze-v0", layout="S..G")
    with pytest.raises(ValueError, match=r"options\['layout_seed'\] has nothing to draw"):
        env.reset(options={"layout_seed": 1})
