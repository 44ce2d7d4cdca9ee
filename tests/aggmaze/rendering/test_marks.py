"""Marks of agent and goal: where they stand, and that they are recognized."""

from __future__ import annotations

import numpy as np
import pytest

from aggmaze.rendering.colors import AGENT, GOAL
from aggmaze.rendering.raster import Raster
from tests.aggmaze.rendering.frames import (
    Make,
    centre,
    centroid,
    random_maze,
    random_terrain,
    where,
)


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
