"""Mazes, frames of them, and what these hold: for the tests of drawing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

import aggmaze
from aggmaze.grid import Grid
from aggmaze.layouts.layout import Layout, open_passages
from aggmaze.rendering.colors import FLOOR, WALL
from aggmaze.rendering.panels import Panel
from aggmaze.rendering.raster import Raster


def random_maze(shape: tuple[int, ...], seed: int = 0, goal: int = 0) -> Layout:
    grid = Grid(shape)
    passages = open_passages(grid)
    passages &= np.random.default_rng(seed).random(passages.shape) < 0.6
    return Layout(grid, passages, goal=goal)


def random_terrain(shape: tuple[int, ...], seed: int = 0, goal: int = 0) -> Layout:
    grid = Grid(shape)
    heights = np.random.default_rng(seed).random(grid.num_states)
    return Layout(grid, open_passages(grid), heights, goal)


Make = Callable[[tuple[int, ...]], Layout]


def where(frame: NDArray[np.uint8], color: tuple[int, int, int]) -> NDArray[np.intp]:
    """Return row and column of each pixel of a colour, shape (n, 2)."""
    return np.argwhere((frame == np.array(color)).all(axis=-1))


def centre(panel: Panel, x: int, y: int) -> tuple[float, float]:
    rows, columns = panel.cell(x, y)
    return (rows.start + rows.stop - 1) / 2, (columns.start + columns.stop - 1) / 2


def centroid(frame: NDArray[np.uint8], color: tuple[int, int, int]) -> tuple[float, float]:
    row, column = where(frame, color).mean(axis=0)
    return float(row), float(column)


def mesh_pixels(n: int, edge: int, line: int, border: int) -> NDArray[np.intp]:
    """Return, for each pixel along a side, its place among border, cell, line, ..., border."""
    runs = [0] * border
    for k in range(n):
        runs += [2 * k + 1] * (edge - line) + [2 * k + 2] * (line if k < n - 1 else border)
    return np.array(runs)


def panel_pixels(frame: NDArray[np.uint8], panel: Panel, edge: int, line: int) -> NDArray[np.uint8]:
    """Cut a panel out, without the extra row and column that may make its lengths even."""
    border = max(1, edge // 8)
    width, height = (n * edge - line + 2 * border for n in (panel.columns, panel.rows))
    assert panel.width - width in (0, 1)
    assert panel.height - height in (0, 1)
    return frame[panel.top : panel.top + height, panel.left : panel.left + width]


def expected_walls(passages: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return walls on the mesh from the passages of a plane (nx, ny, 2), by a plain loop."""
    columns, rows, _ = passages.shape
    walls = np.zeros((2 * columns + 1, 2 * rows + 1), dtype=bool)
    for x in range(columns):
        for y in range(rows):
            right, up = passages[x, y]
            if not right or x == columns - 1:
                walls[2 * x + 2, 2 * y : 2 * y + 3] = True
            if not up or y == rows - 1:
                walls[2 * x : 2 * x + 3, 2 * y + 2] = True
    walls[0] = walls[:, 0] = True
    return walls.T[::-1]


def check_walls(
    frames: list[NDArray[np.uint8]], panel: Panel, edge: int, passages: NDArray[np.bool_]
) -> None:
    """Compare every pixel with the walls; each must be free of markers in some frame."""
    line = max(1, edge // 8)
    walls = expected_walls(passages)
    down = mesh_pixels(panel.rows, edge, line, line)
    across = mesh_pixels(panel.columns, edge, line, line)
    expected = np.where(walls[down][:, across, np.newaxis], WALL, FLOOR)
    seen = np.zeros(expected.shape[:2], dtype=bool)
    for frame in frames:
        pixels = panel_pixels(frame, panel, edge, line)
        assert pixels.shape == expected.shape
        is_wall, is_floor = ((pixels == color).all(axis=-1) for color in (WALL, FLOOR))
        visible = is_wall | is_floor
        np.testing.assert_array_equal(pixels[visible], expected[visible])
        seen |= visible
    assert seen.all()


def two_goals(
    shape: tuple[int, int], seed: int, size: int
) -> tuple[list[NDArray[np.uint8]], Panel]:
    """Draw a maze with the goal in one corner and then in the other, so that nothing is hidden."""
    rasters = [
        Raster(random_maze(shape, seed, goal), size) for goal in (0, shape[0] * shape[1] - 1)
    ]
    return [raster.frame(None) for raster in rasters], rasters[0].panels[0]


BLOCKED = np.zeros((12, 10), dtype=bool)
BLOCKED[3:6, 4:6] = BLOCKED[8, 1:9] = BLOCKED[11, 9] = True


every_id = pytest.mark.parametrize("env_id", aggmaze.ENV_IDS)


mazes = pytest.mark.parametrize("env_id", aggmaze.ENV_IDS[:3])


def make(env_id: str = "StandardMaze-v0", mode: str = "rgb_array", **options: Any) -> Any:
    env = gym.make(env_id, render_mode=mode, **options).unwrapped
    env.reset(seed=0)
    return env


def cell(env: Any, x: int, y: int) -> NDArray[np.uint8]:
    """Return the pixels of a cell of a maze of two dimensions."""
    (panel,) = env._raster.panels
    return env.render()[panel.cell(x, y)]


def some(env: Any, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Return an overlay of all kinds."""
    rng = np.random.default_rng(seed)
    num_states, num_actions = env.observation_space.n, env.action_space.n
    return {
        "values": rng.normal(size=num_states),
        "policy": rng.integers(num_actions, size=num_states),
        "labels": rng.integers(5, size=num_states),
    }


def luminance(color: tuple[int, ...]) -> float:
    """Return the relative luminance of WCAG 2."""
    levels = np.array(color) / 255
    linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))
