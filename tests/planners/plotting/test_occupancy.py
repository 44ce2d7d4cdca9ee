"""How often a policy is where."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import planners
from planners.plotting import (
    plot_occupancy,
)
from tests.planners.plotting.runs import bar_label


class TestOccupancy:
    def test_what_is_hardly_visited_is_grey(self) -> None:
        env = gym.make("StandardMaze-v0", shape=(6, 5))
        result = planners.solve(env, gamma=0.9)
        axes = plot_occupancy(env, result)
        visits = planners.occupancy(env, result)
        (image,) = axes.images
        grey = np.asarray(image.get_array()) > image.norm.vmax
        assert grey.sum() == (visits == 0).sum() > 0
        assert "grey: hardly ever" in bar_label(axes)
        with pytest.raises(ValueError, match="give the environment instead of its layout"):
            plot_occupancy(env.get_wrapper_attr("layout"), result)
