"""Scaling in two dimensions: the paper's left table, from 100x100 to 1000x1000.

What it shows: the error of Algorithm 3 after 1000 iterations, which does not grow with the maze.
"""

from __future__ import annotations

from planners.experiments import scaling
from planners.experiments.reporting import published
from planners.experiments.scaling import Args

EXPERIMENT = scaling.experiment(
    "scaling_2d",
    "Scaling in two dimensions",
    "The error does not grow with the maze.",
    published.SCALING_2D,
    {
        "small": Args(shapes=((30, 30), (100, 100)), repetitions=4, most_states=10_000),
        "paper": Args(
            shapes=((100, 100), (200, 200), (300, 300), (500, 500), (1000, 1000)),
            repetitions=20,
            most_states=90_000,
        ),
    },
)
