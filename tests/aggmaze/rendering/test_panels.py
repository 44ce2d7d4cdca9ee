"""Panels: every cell and every wall is painted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggmaze.rendering.colors import WALL, relief_colors
from aggmaze.rendering.raster import Raster
from tests.aggmaze.rendering.frames import (
    check_walls,
    panel_pixels,
    random_maze,
    random_terrain,
    two_goals,
)


@pytest.mark.parametrize("size", [1, 60, 128, 512, 777])
@pytest.mark.parametrize("shape", [(20, 20), (13, 30), (30, 7)])
def test_walls_stand_exactly_where_passages_are_missing(shape: tuple[int, int], size: int) -> None:
    frames, panel = two_goals(shape, 3, size)
    edge = max(2, size // max(shape))
    check_walls(frames, panel, edge, random_maze(shape, 3).passages.reshape(*shape, 2))


@pytest.mark.parametrize("shape", [(1, 2), (2, 1), (1, 200), (200, 1), (2, 1000), (1000, 1000)])
def test_every_cell_of_a_long_or_large_maze_is_painted(shape: tuple[int, int]) -> None:
    frames, panel = two_goals(shape, 3, 512)
    edge = max(2, 512 // max(shape))
    check_walls(frames, panel, edge, random_maze(shape, 3).passages.reshape(*shape, 2))


@given(
    shape=st.tuples(st.integers(8, 24), st.integers(8, 24)),
    size=st.integers(1, 300),
    seed=st.integers(0, 2**32 - 1),
)
def test_walls_can_be_read_back(shape: tuple[int, int], size: int, seed: int) -> None:
    frames, panel = two_goals(shape, seed, size)
    edge = max(2, size // max(shape))
    check_walls(frames, panel, edge, random_maze(shape, seed).passages.reshape(*shape, 2))


@pytest.mark.parametrize("shape", [(1, 2), (1, 200), (200, 1), (2, 1000), (20, 30), (1000, 1000)])
def test_every_cell_of_a_terrain_is_painted_in_its_color(shape: tuple[int, int]) -> None:
    edge = max(1, 512 // max(shape))
    border = max(1, edge // 8)
    right = []
    for goal in (0, shape[0] * shape[1] - 1):
        layout = random_terrain(shape, goal=goal)
        assert layout.heights is not None
        cells = relief_colors(layout.heights.reshape(shape).T[::-1])
        cells = cells.repeat(edge, axis=0).repeat(edge, axis=1)
        height, width, _ = cells.shape
        expected = np.empty((height + 2 * border, width + 2 * border, 3), dtype=np.uint8)
        expected[:] = WALL
        expected[border:-border, border:-border] = cells
        raster = Raster(layout)
        pixels = panel_pixels(raster.frame(None), raster.panels[0], edge, 0)
        assert pixels.shape == expected.shape
        right.append((pixels == expected).all(axis=-1))
    # Pixels differ only under the goal's marker, and the two markers hide no pixel in common.
    assert (right[0] | right[1]).all()
    for shown in right:
        assert (np.ptp(np.argwhere(~shown), axis=0) < max(40, edge)).all()
