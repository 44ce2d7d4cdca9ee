"""Planes through one point."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from planners.plotting import (
    plot_slices,
)


class TestSlices:
    def test_a_plane_for_each_pair(self) -> None:
        env = gym.make("NDMaze-v0", shape=(4, 3, 2))
        values = np.arange(24.0)
        drawn = plot_slices(env, values, through=(1, 2, 1))
        labels = [(axes.get_xlabel()[:6], axes.get_ylabel()[:6]) for axes in drawn]
        assert labels == [("axis 0", "axis 1"), ("axis 0", "axis 2"), ("axis 1", "axis 2")]
        shown = np.asarray(drawn[1].images[0].get_array())
        np.testing.assert_array_equal(shown, values.reshape(4, 3, 2)[:, 2].T)
        # The goal (0, 0, 0) is in none of these planes.
        assert not any(line.get_marker() == "*" for axes in drawn for line in axes.lines)
