"""The numbers that the paper prints.

Chen, Gaebler, Peng, Sun, Ye, "An Adaptive State Aggregation Algorithm for Markov Decision
Processes": means of 20 runs with the half widths of their 95 % intervals.
"""

from __future__ import annotations

from typing import Any

from planners.experiments.reporting.statistics import Estimate

#: Repetitions of each experiment.
RUNS = 20


def _table(rows: dict[tuple[object, ...], tuple[float, float]]) -> dict[Any, Estimate]:
    return {key: Estimate(mean, half_width, RUNS) for key, (mean, half_width) in rows.items()}


#: Table "Scaling properties", left: error by kind and shape.
SCALING_2D = _table(
    {
        ("terrain", (100, 100)): (4.41, 0.14),
        ("terrain", (200, 200)): (4.34, 0.16),
        ("terrain", (300, 300)): (4.65, 0.18),
        ("terrain", (500, 500)): (4.27, 0.17),
        ("terrain", (1000, 1000)): (4.27, 0.16),
        ("standard", (100, 100)): (1.43, 0.16),
        ("standard", (200, 200)): (1.39, 0.15),
        ("standard", (300, 300)): (1.42, 0.20),
        ("standard", (500, 500)): (1.11, 0.16),
        ("standard", (1000, 1000)): (1.40, 0.16),
    }
)

#: The same, right: by kind and shape, ten positions along each axis.
SCALING_ND = _table(
    {
        ("terrain", (10,) * 3): (1.91, 0.007),
        ("terrain", (10,) * 4): (3.02, 0.009),
        ("terrain", (10,) * 5): (3.59, 0.008),
        ("terrain", (10,) * 6): (3.85, 0.005),
        ("standard", (10,) * 3): (1.36, 0.019),
        ("standard", (10,) * 4): (1.36, 0.017),
        ("standard", (10,) * 5): (1.23, 0.013),
        ("standard", (10,) * 6): (1.31, 0.013),
    }
)

#: Shape of the mazes of the table of robustness, and of the studies of epsilon and efficiency.
ROBUSTNESS_SHAPE = EPSILON_SHAPE = EFFICIENCY_SHAPE = (500, 500)

#: Table on robustness: error by kind, p and sigma.
ROBUSTNESS = _table(
    {
        ("terrain", 0.92, 0.0): (4.44, 0.24),
        ("terrain", 0.92, 0.01): (4.41, 0.18),
        ("terrain", 0.92, 0.05): (4.97, 0.17),
        ("terrain", 0.92, 0.1): (6.36, 0.19),
        ("terrain", 0.95, 0.0): (4.43, 0.17),
        ("terrain", 0.95, 0.01): (4.32, 0.14),
        ("terrain", 0.95, 0.05): (4.93, 0.17),
        ("terrain", 0.95, 0.1): (6.39, 0.17),
        ("terrain", 0.98, 0.0): (4.37, 0.19),
        ("terrain", 0.98, 0.01): (4.31, 0.14),
        ("terrain", 0.98, 0.05): (5.01, 0.14),
        ("terrain", 0.98, 0.1): (6.52, 0.20),
        ("standard", 0.92, 0.0): (1.39, 0.19),
        ("standard", 0.92, 0.01): (1.61, 0.23),
        ("standard", 0.92, 0.05): (2.62, 0.15),
        ("standard", 0.92, 0.1): (5.56, 0.46),
        ("standard", 0.95, 0.0): (1.49, 0.17),
        ("standard", 0.95, 0.01): (1.57, 0.14),
        ("standard", 0.95, 0.05): (2.86, 0.17),
        ("standard", 0.95, 0.1): (5.72, 0.39),
        ("standard", 0.98, 0.0): (1.43, 0.18),
        ("standard", 0.98, 0.01): (1.88, 0.16),
        ("standard", 0.98, 0.05): (3.48, 0.28),
        ("standard", 0.98, 0.1): (5.86, 0.26),
    }
)

#: A table that the paper's source leaves commented out: error by kind and epsilon.
EPSILON = _table(
    {
        ("terrain", 0.1): (0.179, 0.034),
        ("terrain", 0.5): (1.166, 0.255),
        ("terrain", 1.0): (2.778, 0.633),
        ("standard", 0.1): (0.131, 0.0675),
        ("standard", 0.5): (0.585, 0.2395),
        ("standard", 1.0): (1.236, 0.5015),
    }
)
