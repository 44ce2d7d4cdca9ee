"""Signs of actions in the cells of frames."""

from __future__ import annotations

import numpy as np
import pytest

from tests.aggmaze.rendering.frames import cell, make


class TestArrows:
    @pytest.mark.parametrize("env_id", ["StandardMaze-v0", "TerrainMaze-v0"])
    def test_arrows_point_where_the_action_leads(self, env_id: str) -> None:
        env = make(env_id, shape=(5, 3))
        for action, (dx, dy) in enumerate([(-1, 0), (1, 0), (0, -1), (0, 1)]):
            env.set_overlay(policy=np.full(15, action))
            env.render()
            dark = np.argwhere((cell(env, 2, 1) < 60).all(axis=2))
            middle = (dark.min(axis=0) + dark.max(axis=0)) / 2
            # Next to the middle lie the wide base of the head and the thin end of the shaft.
            along = (dark - middle) @ (-dy, dx)
            near = 0.2 * np.ptp(along)
            head, shaft = ((side > 0) & (side < near) for side in (along, -along))
            assert head.sum() > 1.5 * shaft.sum()

    def test_nothing_points_from_the_goal_or_from_blocked_cells(self) -> None:
        env = make(layout="S.#\n.G.\n...")
        plain = env.render()
        env.set_overlay(policy=np.zeros(9, dtype=int))
        env.render()
        (panel,) = env._raster.panels
        for x, y in ((2, 2), (1, 1)):
            np.testing.assert_array_equal(cell(env, x, y), plain[panel.cell(x, y)])
        assert not np.array_equal(cell(env, 0, 1), plain[panel.cell(0, 1)])

    def test_moves_out_of_the_plane_are_signs(self) -> None:
        env = make("NDMaze-v0", shape=(3, 3, 3), kind="terrain")
        pictures = []
        for action in (4, 5):
            env.set_overlay(policy=np.full(27, action))
            frame = env.render()
            panel = next(p for p in env._raster.panels if p.axes == (0, 1))
            pictures.append((frame[panel.cell(1, 1)] < 60).all(axis=2))
        minus, plus = (np.ptp(np.argwhere(picture), axis=0) for picture in pictures)
        assert minus[1] > 3 * minus[0], "wide and low"
        assert plus[0] == plus[1]

    @pytest.mark.parametrize(
        ("env_id", "size", "some_arrows"),
        [("StandardMaze-v0", 200, False), ("TerrainMaze-v0", 200, True)],
    )
    def test_small_cells(self, env_id: str, size: int, some_arrows: bool) -> None:
        env = make(env_id, shape=(size, size))
        plain = env.render()
        env.set_overlay(policy=np.zeros(size * size, dtype=int))
        assert np.array_equal(env.render(), plain) != some_arrows
