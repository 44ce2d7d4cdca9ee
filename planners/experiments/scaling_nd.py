"""Scaling in dimension: the paper's right table, ten positions along each of 3 to 6 axes.

The published intervals are narrower by far than the spread between our runs; they look like
intervals over pooled iterations.
"""

from __future__ import annotations

from planners.experiments import scaling
from planners.experiments.reporting import published
from planners.experiments.scaling import Args

EXPERIMENT = scaling.experiment(
    "scaling_nd",
    "Scaling in dimension",
    "More dimensions do not substantially change the error.",
    published.SCALING_ND,
    {
        "small": Args(shapes=((10,) * 3, (10,) * 4), repetitions=4, most_states=10_000),
        "paper": Args(
            shapes=((10,) * 3, (10,) * 4, (10,) * 5, (10,) * 6),
            repetitions=20,
            most_states=100_000,
        ),
    },
)
