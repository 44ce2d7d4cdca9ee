"""What pictures are drawn of in several files."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

import planners
from aggmaze import TabularMDP
from planners.plotting import (
    figure_of,
)

MAZE = gym.make("StandardMaze-v0", shape=(6, 5), p=0.9)
LAKE = gym.make("FrozenLake-v1")
AGGREGATED = planners.solve(
    MAZE, gamma=0.95, method="adaptive_aggregation", epsilon=0.8, num_iterations=40
)
LAKE_RESULT = planners.solve(LAKE, gamma=0.99)
LINE = TabularMDP.from_batched_function(
    7, 2, lambda s, a: (1.0, np.maximum(s - 1 - a, 0), np.where(s == 0, np.inf, 1.0 + a))
)


def bar_label(drawn: Any) -> str:
    """Return what is written beside the colour bar."""
    return str(figure_of(drawn).axes[-1].get_ylabel()).replace("\n", " ")
