"""Mazes as pixels: what is painted can be read back from the frame."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from aggmaze.grid import Grid
from aggmaze.layouts.layout import Layout, open_passages
from aggmaze.rendering.colors import AGENT, BACKGROUND, FLOOR, GOAL, WALL, relief_colors
from aggmaze.rendering.panels import Panel
from aggmaze.rendering.planes import Plane
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


@pytest.mark.parametrize("make", [random_maze, random_terrain])
@pytest.mark.parametrize("shape", [(1,), (7,), (4, 3), (1, 1), (5, 4, 3), (1, 2, 1), (2,) * 8])
def test_frames_are_fresh_arrays_of_one_shape(make: Make, shape: tuple[int, ...]) -> None:
    layout = make(shape)
    raster = Raster(layout, 200)
    for state in (None, 0, layout.grid.num_states - 1, 0):
        frame = raster.frame(state)
        assert frame.shape == raster.shape
        assert frame.shape[0] % 2 == frame.shape[1] % 2 == 0
        assert frame.dtype == np.uint8
        assert frame.flags.c_contiguous
        assert frame.flags.writeable
        kept = frame.copy()
        frame[:] = 123
        np.testing.assert_array_equal(raster.frame(state), kept)


@pytest.mark.parametrize("size", [1, 40, 100, 512])
@pytest.mark.parametrize("make", [random_maze, random_terrain])
@pytest.mark.parametrize("shape", [(9, 5), (5, 9), (40, 30), (1, 12)])
def test_agent_and_goal_stand_in_their_cells(make: Make, shape: tuple[int, int], size: int) -> None:
    layout = make(shape)
    raster = Raster(layout, size)
    (panel,) = raster.panels
    nx, ny = shape
    for x, y in ((nx - 1, ny - 1), (nx - 1, 0), (0, ny - 1), (nx // 2, ny // 2)):
        frame = raster.frame(layout.grid.state((x, y)))
        row, column = centroid(frame, AGENT)
        assert (row, column) == pytest.approx(centre(panel, x, y))
        assert np.ptp(where(frame, AGENT), axis=0).min() >= 2
    # Independent of the panel's own account: the goal is at the bottom left, the agent opposite.
    frame = raster.frame(layout.grid.num_states - 1)
    height, width, _ = frame.shape
    row, column = centroid(frame, AGENT)
    assert row < height / 2
    assert nx == 1 or column > width / 2
    frame = raster.frame(None)
    row, column = centroid(frame, GOAL)
    assert row > height / 2
    assert nx == 1 or column < width / 2
    assert (row, column) == pytest.approx(centre(panel, 0, 0), abs=1)  # a star
    assert not len(where(frame, AGENT))


@pytest.mark.parametrize("make", [random_maze, random_terrain])
@pytest.mark.parametrize(("shape", "size"), [((20, 20), 512), ((300, 300), 300), ((1, 1), 64)])
def test_agent_and_goal_stay_recognizable_together(
    make: Make, shape: tuple[int, int], size: int
) -> None:
    layout = make(shape)
    raster = Raster(layout, size)
    apart, together = raster.frame(None), raster.frame(0)
    goal, agent = where(together, GOAL), where(together, AGENT)
    assert len(goal) > 0.25 * len(where(apart, GOAL))
    assert len(agent) >= 9
    # The star shows on all four sides of the disc.
    assert (goal.min(axis=0) < agent.min(axis=0)).all()
    assert (goal.max(axis=0) > agent.max(axis=0)).all()


@pytest.mark.parametrize("shape", [(100, 100), (300, 300), (2, 500), (1000, 1000)])
def test_markers_are_larger_than_small_cells(shape: tuple[int, int]) -> None:
    raster = Raster(random_terrain(shape), 300)
    state = raster.layout.grid.num_states - 1
    for color, frame in ((GOAL, raster.frame(None)), (AGENT, raster.frame(state))):
        assert (np.ptp(where(frame, color), axis=0) + 1 >= 5).all()
    changed = np.argwhere((raster.frame(None) != raster.frame(state)).any(axis=-1))
    assert (np.ptp(changed, axis=0) + 1 >= 7).all()


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


def test_one_dimension_is_a_strip() -> None:
    grid = Grid((16,))
    passages = np.arange(16)[:, np.newaxis] % 3 != 0
    passages[-1] = False
    raster = Raster(Layout(grid, passages), 512)
    frame = raster.frame(15)
    (panel,) = raster.panels
    assert (panel.columns, panel.rows) == (16, 1)
    assert frame.shape[1] > 10 * frame.shape[0]
    assert centroid(frame, AGENT)[1] > centroid(frame, GOAL)[1] + 400
    for x in range(15):
        rows, columns = panel.cell(x, 0)
        beside = frame[rows, columns.stop : columns.stop + 512 // 16 // 8]
        assert (beside == (FLOOR if x % 3 else WALL)).all()


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


BLOCKED = np.zeros((12, 10), dtype=bool)
BLOCKED[3:6, 4:6] = BLOCKED[8, 1:9] = BLOCKED[11, 9] = True


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


def test_panels_are_aligned_and_labelled() -> None:
    raster = Raster(random_maze((12, 6, 3)))
    first, second, third = raster.panels
    assert first.top + first.height == second.top + second.height
    assert first.left == third.left
    frame = raster.frame(None)
    labels = []
    for panel in raster.panels:
        bottom = panel.top + panel.height
        below = frame[bottom : bottom + 36, panel.left : panel.left + 160]
        labels.append((below != BACKGROUND).any(axis=-1))
        assert labels[-1].any()
    assert (labels[0] != labels[1]).any()
    assert (labels[1] != labels[2]).any()


@pytest.mark.parametrize("make", [random_maze, random_terrain])
def test_a_move_repaints_nothing_but_the_agent(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    painted = []
    paint = Panel.paint

    def counting(panel: Panel, plane: Plane) -> NDArray[np.uint8]:
        painted.append(panel)
        return paint(panel, plane)

    monkeypatch.setattr(Panel, "paint", counting)
    raster = Raster(make((1000, 1000)))
    frames = [raster.frame(state) for state in (0, 999_999, 500_500)]
    assert len(painted) == 1
    for one, other in itertools.combinations(frames, 2):
        changed = (one != other).any(axis=-1)
        # Two discs, of four million pixels.
        assert 0 < np.count_nonzero(changed) < 4000


def test_bad_arguments_are_refused() -> None:
    layout = random_maze((4, 3))
    with pytest.raises(ValueError, match="size must be at least 1 pixel, got 0"):
        Raster(layout, 0)
    for state in (-1, 12):
        with pytest.raises(ValueError, match=r"is not in \[0, 12\)"):
            Raster(layout).frame(state)
