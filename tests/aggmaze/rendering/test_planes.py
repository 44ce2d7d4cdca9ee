"""Planes: what is cut from a layout, and its colours."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from aggmaze.grid import Grid
from aggmaze.layouts.layout import Layout, open_passages
from aggmaze.rendering.colors import AGENT, BACKGROUND, FLOOR, GOAL, WALL, relief_colors
from aggmaze.rendering.raster import Raster
from tests.aggmaze.rendering.frames import (
    BLOCKED,
    Make,
    centre,
    check_walls,
    random_maze,
    random_terrain,
    where,
)


def test_low_is_pale_and_high_is_dark() -> None:
    low, high = relief_colors([0.0, 1.0]).astype(int)
    assert (low - high > 100).all()
    levels = relief_colors(np.linspace(0, 1, 40)).astype(int)
    assert (np.diff(levels, axis=0) <= 1).all(), "a sequence, in each channel"
    grid = Grid((3, 1))
    raster = Raster(Layout(grid, open_passages(grid), np.array([0.5, 0.0, 1.0])))
    frame = raster.frame(None)
    rows, columns = raster.panels[0].cell(1, 0)
    assert (frame[rows, columns] == low).all()
    rows, columns = raster.panels[0].cell(2, 0)
    assert (frame[rows, columns] == high).all()


def test_terrain_with_walls_shows_both() -> None:
    shape = (12, 10)
    grid = Grid(shape)
    passages = random_maze(shape).passages
    heights = np.full(grid.num_states, 0.25)
    raster = Raster(Layout(grid, passages, heights), 360)
    frame = raster.frame(None)
    (panel,) = raster.panels
    for x, y in ((3, 4), (5, 5), (10, 8), (7, 2)):
        rows, columns = panel.cell(x, y)
        right, up = passages.reshape(*shape, 2)[x, y]
        floor = relief_colors(0.25)
        assert (frame[rows, columns] == floor).all()
        assert (frame[rows, columns.stop : columns.stop + 3] == (floor if right else WALL)).all()
        assert (frame[rows.start - 3 : rows.start, columns] == (floor if up else WALL)).all()


@pytest.mark.parametrize("size", [60, 360, 512])
@pytest.mark.parametrize("heights", [None, np.full(120, 0.25)], ids=["plain", "terrain"])
def test_blocked_cells_are_solid(heights: NDArray[np.float64] | None, size: int) -> None:
    grid = Grid(BLOCKED.shape)
    solid = BLOCKED.reshape(-1)
    floor = np.array(FLOOR) if heights is None else relief_colors(0.25)
    layout = Layout(grid, open_passages(grid, solid), heights, blocked=solid)
    raster = Raster(layout, size)
    (panel,) = raster.panels
    assert panel.line == 0  # blocks need no lines in between
    frame = raster.frame(None)
    for x, y in np.argwhere(BLOCKED):
        assert (frame[panel.cell(x, y)] == WALL).all()
    for x, y in np.argwhere(~BLOCKED)[20:]:  # the first are under the goal's marker
        assert (frame[panel.cell(x, y)] == floor).all()
    # With a wall somewhere there are lines, and what is blocked is solid across them.
    passages = layout.passages.copy()
    passages[grid.state((6, 6)), 0] = False
    walled = Raster(Layout(grid, passages, heights, blocked=solid), size)
    (panel,) = walled.panels
    assert panel.line > 0
    frame = walled.frame(None)
    down, across = panel.cell(3, 5)
    lower, right = panel.cell(5, 4)
    assert (frame[down.start : lower.stop, across.start : right.stop] == WALL).all()
    assert (frame[panel.cell(7, 7)] == floor).all()


def test_three_dimensions_are_slices_through_the_agent() -> None:
    shape = (14, 12, 10)
    layout = random_maze(shape)
    grid, passages = layout.grid, layout.passages.reshape(*shape, 3)
    raster = Raster(layout, 700)
    edge = raster.panels[0].edge
    assert [panel.axes for panel in raster.panels] == [(0, 1), (0, 2), (1, 2)]
    assert 500 < max(raster.shape) < 800
    # The second visit to a slice must not show what a frame in between has left.
    for x, y, z in ((13, 11, 9), (2, 3, 4), (2, 0, 0), (2, 3, 4)):
        # The agent hides some pixels; two steps along an axis show them without changing the slice.
        cuts = (passages[:, :, z, :2], passages[:, y, :, ::2], passages[x, :, :, 1:])
        others = (((x + 7) % 14, y, z), (x, (y + 6) % 12, z), (x, y, (z + 5) % 10))
        for panel, cut, moved in zip(
            raster.panels, cuts, (others[0], others[2], others[1]), strict=True
        ):
            frames = [raster.frame(grid.state(point)) for point in ((x, y, z), moved)]
            has_goal = all((x, y, z)[axis] == 0 for axis in range(3) if axis not in panel.axes)
            drawn = frames[0][panel.top : panel.top + panel.height]
            drawn = drawn[:, panel.left : panel.left + panel.width]
            assert bool(len(where(drawn, GOAL))) == has_goal
            assert len(where(drawn, AGENT)) > 0
            if has_goal:
                continue
            check_walls(frames, panel, edge, cut)
            at = [(x, y, z)[axis] for axis in panel.axes]
            shown = where(drawn, AGENT).mean(axis=0) + np.array([panel.top, panel.left])
            assert tuple(shown) == pytest.approx(centre(panel, at[0], at[1]))


def test_slices_without_an_agent_go_through_the_goal() -> None:
    raster = Raster(random_maze((4, 5, 6)))
    raster.frame(37)
    frame = raster.frame(None)
    assert not len(where(frame, AGENT))
    for panel in raster.panels:
        rows, columns = panel.cell(0, 0)
        assert len(where(frame[rows, columns], GOAL)) > 0


@pytest.mark.parametrize("make", [random_maze, random_terrain])
@pytest.mark.parametrize("size", [30, 512])
def test_eight_dimensions_have_a_panel_for_each_pair_of_axes(make: Make, size: int) -> None:
    shape = (2, 3, 2, 3, 2, 3, 2, 3)
    layout = make(shape)
    raster = Raster(layout, size)
    assert len({panel.axes for panel in raster.panels}) == 28
    frame = raster.frame(layout.grid.num_states - 1)
    covered = np.zeros(frame.shape[:2], dtype=int)
    for panel in raster.panels:
        box = (
            slice(panel.top, panel.top + panel.height),
            slice(panel.left, panel.left + panel.width),
        )
        assert len(where(frame[box], AGENT)) > 0
        covered[box] += 1
    assert covered.max() == 1
    assert covered.sum() == sum(panel.width * panel.height for panel in raster.panels)
    assert (frame[0] == BACKGROUND).all()
    assert (frame[:, -1] == BACKGROUND).all()
    if size == 512:
        assert 380 < max(frame.shape) <= 540
