"""Mazes as pixels: what is painted can be read back from the frame."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from aggmaze.grid import Grid
from aggmaze.layouts.layout import Layout
from aggmaze.rendering.colors import AGENT, BACKGROUND, FLOOR, GOAL, WALL
from aggmaze.rendering.panels import Panel
from aggmaze.rendering.planes import Plane
from aggmaze.rendering.raster import Raster
from tests.aggmaze.rendering.frames import Make, centroid, random_maze, random_terrain


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
