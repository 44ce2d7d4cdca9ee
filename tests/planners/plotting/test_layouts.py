"""Walls, blocked cells and goals."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.quiver import Quiver
from PIL import Image

import planners
from aggmaze.rendering.colors import WALL
from planners.plotting import (
    plot_megastates,
    plot_plan,
    save_figure,
)
from planners.policies import greedy_path


@pytest.mark.parametrize(
    ("env_id", "arguments"),
    [
        ("StandardMaze-v0", {"shape": (7, 5)}),
        ("StandardMaze-v0", {"shape": (1, 40)}),
        ("StandardMaze-v0", {"shape": (250, 210)}),
        ("TerrainMaze-v0", {"shape": (90, 100)}),
        ("TerrainMaze-v0", {"shape": (30, 40), "terrain": "fractal", "goal": (3, 20)}),
        ("StandardMaze-v0", {"layout": "..#S\n.#..\n...#\nG..."}),
        ("TerrainMaze-v0", {"layout": "\n".join([".#...#...."] * 9 + ["G........."])}),
        ("NDMaze-v0", {"shape": (9,)}),
        ("NDMaze-v0", {"shape": (3, 4, 30)}),
        ("NDMaze-v0", {"shape": (3, 4, 2, 3), "kind": "terrain"}),
    ],
)
def test_every_maze_is_drawn(env_id: str, arguments: dict[str, object], tmp_path: Path) -> None:
    env = gym.make(env_id, **arguments)
    layout = env.get_wrapper_attr("layout")
    model = planners.as_model(env)
    result = planners.solve(env, gamma=0.95, method="adaptive_aggregation", num_iterations=20)
    path = greedy_path(model, result.policy, int(np.argmax(model.initial)))
    assert result.labels is not None
    for name, drawn in {
        "plan": plot_plan(layout, result.values, result.policy, path, title="A plan"),
        "megastates": plot_megastates(layout, result.labels, title="Mega-states"),
    }.items():
        target = tmp_path / f"{name}.png"
        save_figure(drawn, target)
        with Image.open(target) as picture:
            colors = picture.convert("RGB").getcolors(picture.width * picture.height)
        assert len(colors) > 10


def test_walls_are_drawn_where_passages_are_missing() -> None:
    layout = gym.make("StandardMaze-v0", shape=(6, 4)).get_wrapper_attr("layout")
    axes = plot_plan(layout, np.arange(24.0))
    drawn = {tuple(np.asarray(segment).ravel()) for segment in axes.collections[0].get_segments()}
    expected = set()
    for state, (x, y) in enumerate(layout.grid.coords(np.arange(24))):
        if x < 5 and not layout.passages[state, 0]:
            expected.add((x + 0.5, y - 0.5, x + 0.5, y + 0.5))
        if y < 3 and not layout.passages[state, 1]:
            expected.add((x - 0.5, y + 0.5, x + 0.5, y + 0.5))
    assert drawn == expected


BLOCKED = """
    +---+---+---+---+
    | S         |###|
    +   +---+   +---+
    |   |###|       |
    +   +---+---+   +
    |         G |   |
    +---+---+---+---+
"""


@pytest.mark.parametrize("env_id", ["StandardMaze-v0", "TerrainMaze-v0"])
def test_blocked_cells_are_solid(env_id: str, tmp_path: Path) -> None:
    env = gym.make(env_id, layout=BLOCKED)
    layout = env.get_wrapper_attr("layout")
    values = np.where(layout.blocked, -1e6, np.arange(12.0) + 5)
    policy = np.zeros(12, dtype=np.int64)
    for axes in (
        plot_plan(layout, values, policy, np.array([2, 1, 0])),
        plot_megastates(layout, np.arange(12, dtype=np.int32)),
    ):
        figure = axes.figure
        drawn = axes.images[0].get_array()
        np.testing.assert_array_equal(
            np.ma.getmaskarray(drawn)[::-1], layout.grid.to_image(layout.blocked)
        )
        # Between free cells only: what is blocked needs no outline.
        walls = [each for each in axes.collections if isinstance(each, LineCollection)][-1]
        assert {tuple(np.asarray(segment).ravel()) for segment in walls.get_segments()} == {
            (2.5, -0.5, 2.5, 0.5),
            (1.5, 0.5, 2.5, 0.5),
        }
        # As dark as a wall on paper.
        save_figure(figure, tmp_path / "figure.png")
        to_pixels = axes.transData.transform
        with Image.open(tmp_path / "figure.png") as picture:
            scale = 150 / figure.dpi
            for x, y in ((1, 1), (3, 2)):
                across, up = to_pixels((x, y)) * scale
                pixel = picture.convert("RGB").getpixel((across, picture.height - up))
                assert pixel == WALL
    plan = plot_plan(layout, values, policy)
    # Their values do not stretch the colours.
    assert plan.images[0].get_clim() == (5.0, 15.0)
    arrows = [each for each in plan.collections if isinstance(each, Quiver)]
    assert sum(len(each.U) for each in arrows) == 12 - 2 - 1


def test_goals_are_drawn_where_they_are() -> None:
    env = gym.make("NDMaze-v0", shape=(4, 3, 2), goal=(2, 1, 1))
    layout = env.get_wrapper_attr("layout")
    drawn = plot_plan(layout, np.arange(24.0))
    stars = [
        [tuple(line.get_xydata()[0]) for line in axes.lines if line.get_marker() == "*"]
        for axes in drawn
    ]
    assert stars == [[], [(2.0, 1.0)]]
