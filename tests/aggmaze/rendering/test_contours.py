"""Lines of equal height."""

from __future__ import annotations

import numpy as np

from aggmaze.rendering import legend
from aggmaze.rendering.colors import relief_colors, value_colors
from aggmaze.rendering.contours import has_contours
from aggmaze.rendering.raster import Raster
from tests.aggmaze.rendering.frames import make


class TestTerrain:
    def test_overlays_keep_the_contours(self) -> None:
        env = make("TerrainMaze-v0", shape=(30, 30))
        heights = env.layout.heights.reshape(30, 30)
        env.set_overlay(values=np.zeros(900))
        frame = env.render()
        (panel,) = env._raster.panels
        ground = value_colors(0.0)
        line = (frame[..., 0] < 0.75 * ground[0]) & (frame[..., 1] < 0.75 * ground[1])
        assert line.any()
        # Each line separates heights: none runs where all around lie in one band.
        bands = np.floor(heights / legend.HEIGHT_STEP)
        for x, y in np.argwhere(bands >= 0)[31:-31].tolist():
            around = bands[max(0, x - 1) : x + 2, max(0, y - 1) : y + 2]
            if np.ptp(around) == 0:
                assert not line[panel.cell(x, y)].any()

    def test_noise_has_none(self) -> None:
        env = make("TerrainMaze-v0", shape=(30, 30), terrain="uniform")
        env.set_overlay(values=np.zeros(900))
        env.render()
        assert not has_contours(env._raster.layout)

    def test_a_policy_over_relief_brings_the_key(self) -> None:
        env = make("TerrainMaze-v0", shape=(30, 30))
        assert env.render().shape[1] == env._raster.panels[0].width, "a plain frame has none"
        env.set_overlay(policy=np.zeros(900, dtype=int))
        env.render()
        assert env._raster.shape[1] >= env._raster.panels[0].width + legend.SIZE[0]

    def test_windows_have_a_key_of_heights(self) -> None:
        env = make("TerrainMaze-v0", shape=(30, 30))
        raster = Raster.within((700, 600), env.layout)
        frame = raster.frame(None)
        key = frame[:, raster._legend_left :]
        for height in (0.0, 0.5, 1.0):
            near = np.abs(key.astype(int) - relief_colors(height).astype(int)).sum(axis=2)
            assert near.min() < 12, "the bar, beyond rounding"
