"""What actions cost, and the gaps between them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from matplotlib.collections import PolyCollection

import planners
from planners.plotting import (
    action_gaps,
    plot_action_gaps,
    plot_q_values,
)
from tests.planners.plotting.runs import AGGREGATED, LINE, MAZE


class TestQValues:
    def test_a_triangle_for_each_available_action(self) -> None:
        Q = planners.q_values(MAZE, AGGREGATED)
        axes = plot_q_values(MAZE, Q)
        drawn = sum(
            len(each.get_paths()) for each in axes.collections if isinstance(each, PolyCollection)
        )
        acting = MAZE.get_wrapper_attr("layout").acting()
        assert drawn == np.isfinite(Q[acting]).sum()
        with pytest.raises(ValueError, match=r"Q must have shape \(30, 4\), got \(30, 3\)"):
            plot_q_values(MAZE, Q[:, :3])

    def test_gaps(self) -> None:
        Q = np.array([[1.0, 4.0, 2.5], [3.0, 3.0, 9.0], [np.inf, 2.0, np.inf]])
        assert action_gaps(Q).tolist() == [1.5, 0.0, np.inf]
        with pytest.raises(ValueError, match=r"of a finite horizon take one step, Q\[t\]"):
            action_gaps(Q[np.newaxis])


def test_gaps_of_which_most_are_small_have_a_scale_that_tells_them_apart() -> None:
    layout = gym.make("TerrainMaze-v0", shape=(10, 10)).get_wrapper_attr("layout")
    Q = np.zeros((100, 4))
    Q[:, 1:] = np.linspace(0.0, 0.01, 100)[:, np.newaxis]
    Q[0, 1:] = 5.0
    shades = {
        scale: plot_action_gaps(layout, Q, scale=scale).images[0] for scale in (None, "linear")
    }
    spread = {
        scale: np.ptp(np.asarray(image.norm(image.get_array()))[5:])
        for scale, image in shades.items()
    }
    assert spread[None] > 0.4 > 0.01 > spread["linear"]


def test_what_is_not_available_is_said() -> None:
    def label(Q: Any) -> str:
        figure = plot_q_values(LINE, Q).figure
        return str(figure.axes[-1].get_ylabel())

    Q = np.arange(14.0).reshape(7, 2)
    assert "not available" not in label(Q)
    Q[3, 1] = np.inf
    assert "(dark: not available)" in " ".join(label(Q).split())
