"""Which states share a mega-state."""

from __future__ import annotations

import itertools

import gymnasium as gym
import numpy as np
import pytest

import planners
from planners.plotting import (
    figure_of,
    plot_megastates,
)
from tests.planners.plotting.runs import MAZE


class TestMegastates:
    def test_colours_go_by_the_mean_value_and_the_bar_shows_the_bins(self) -> None:
        layout = gym.make("TerrainMaze-v0", shape=(4, 1)).get_wrapper_attr("layout")
        # Labels need not be in order.
        axes = plot_megastates(layout, [5, 5, 2, 9], [1.0, 3.0, 0.0, 10.0])
        (image,) = axes.images
        assert np.asarray(image.get_array()).ravel().tolist() == [1, 1, 0, 2]
        bar = figure_of(axes).axes[-1]
        # Half-way between the means 0, 2 and 10, and as far again outside.
        np.testing.assert_allclose(bar.get_yticks(), [-1, 1, 6, 14])
        assert "3 mega-states" in bar.get_ylabel()
        assert image.cmap(image.norm(1.0)) == pytest.approx(
            planners.plotting.canvas.sequential()(0.2), abs=0.01
        )
        # A border on either side of the two that are one.
        borders = [np.asarray(s)[:, 0].tolist() for s in axes.collections[0].get_segments()]
        assert borders == [[1.5, 1.5], [2.5, 2.5]]

    def test_refused(self) -> None:
        with pytest.raises(ValueError, match="labels must be 30 integers"):
            plot_megastates(MAZE, np.zeros(30))


def test_numbers_beside_a_low_map_do_not_lie_upon_each_other() -> None:
    env = gym.make("CliffWalking-v1")
    values = np.arange(48.0)
    figure = plot_megastates(env, np.arange(48) // 4, values).figure
    figure.canvas.draw()
    boxes = sorted(
        word.get_window_extent().extents[[1, 3]].tolist()
        for word in figure.axes[-1].get_yticklabels()
    )
    assert len(boxes) > 3
    assert all(one[1] <= other[0] + 1 for one, other in itertools.pairwise(boxes))
