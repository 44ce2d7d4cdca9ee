"""Paths and trails in frames."""

from __future__ import annotations

import numpy as np

from aggmaze.rendering.colors import PATH
from aggmaze.rendering.raster import Raster
from tests.aggmaze.rendering.frames import cell, make


class TestWalks:
    def test_the_path_of_a_policy(self) -> None:
        env = make("TerrainMaze-v0", shape=(4, 3))
        env.set_overlay(policy=np.zeros(12, dtype=int), path=True)  # always left
        assert env._overlay.path.tolist() == [11, 8, 5, 2]
        env.reset(options={"coords": (2, 0)})
        assert env._overlay.path.tolist() == [6, 3, 0], "from where the episode starts"
        frame = env.render()
        assert (frame == PATH).all(axis=2).any()
        env.set_overlay(policy=np.tile([3, 3, 2], 4), path=True)
        env.reset(options={"coords": (1, 0)})
        assert env._overlay.path.tolist() == [3, 4, 5], "it ends where it turns back"

    def test_a_path_that_is_given_runs_through_its_cells(self) -> None:
        env = make("TerrainMaze-v0", shape=(5, 5))
        states = [24, 19, 18, 17, 12, 7, 6]
        env.set_overlay(path=states)
        env.render()
        for state in range(1, 24):
            crossed = (cell(env, *divmod(state, 5)) == PATH).all(axis=2).any()
            assert crossed == (state in states)

    def test_a_trail(self) -> None:
        env = make("TerrainMaze-v0", shape=(5, 5))
        raster = Raster(env.layout)
        plain = raster.frame(6)
        frame = raster.frame(6, [24, 19, 18, 17, 12, 7, 6])
        (panel,) = raster.panels
        for state in set(range(25)) - {6}:
            place = panel.cell(*divmod(state, 5))
            drawn = not np.array_equal(frame[place], plain[place])
            assert drawn == (state in (24, 19, 18, 17, 12, 7))
        np.testing.assert_array_equal(raster.frame(6), plain)

    def test_trails_in_a_slice_are_those_within_it(self) -> None:
        env = make("NDMaze-v0", shape=(3, 3, 3), kind="terrain")
        raster = Raster(env.layout)
        grid = env.grid
        walk = [grid.state(at) for at in ((0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1), (1, 1, 2))]
        plain, frame = raster.frame(walk[-1]), raster.frame(walk[-1], walk)
        differs = {}
        for panel in raster.panels:
            place = np.s_[
                panel.top : panel.top + panel.height, panel.left : panel.left + panel.width
            ]
            differs[panel.axes] = not np.array_equal(frame[place], plain[place])
        assert differs == {(0, 1): False, (0, 2): True, (1, 2): True}
