"""The paper's tables and figures, each in a readable file of its own, and what runs them."""

from __future__ import annotations

from planners.experiments import (
    bounds,
    cartpole,
    efficiency,
    epsilon,
    robustness,
    scaling_2d,
    scaling_nd,
)
from planners.experiments.study import Experiment

#: In the order of the report.
EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (epsilon, efficiency, scaling_2d, scaling_nd, robustness, cartpole, bounds)
}
