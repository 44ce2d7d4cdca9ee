"""The paper's experiments at a tiny size, and their runs."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from planners.experiments import (
    EXPERIMENTS,
    bounds,
    cartpole,
    efficiency,
    epsilon,
    robustness,
    scaling,
)
from planners.experiments.running.tasks import perform, plan
from planners.experiments.study import Run

TINY: dict[str, Any] = {
    "epsilon": epsilon.Args(shape=(6, 5), repetitions=2, iterations=30),
    "efficiency": efficiency.Args(shape=(6, 6), num_sweeps=40, repetitions=2),
    "scaling_2d": scaling.Args(
        shapes=((5, 4), (6, 6)), repetitions=2, most_states=25, iterations=30
    ),
    "scaling_nd": scaling.Args(shapes=((3, 3, 3),), repetitions=2, most_states=100, iterations=30),
    "robustness": robustness.Args(
        shape=(6, 6), ps=(0.9,), sigmas=(0.0, 0.1), repetitions=2, iterations=30
    ),
    "cartpole": cartpole.Args(bins=((3, 3, 3, 3),), num_sweeps=2, episodes=3, repetitions=2),
    "bounds": bounds.Args(shape=(5, 5), repetitions=2, iterations=400, betas=(2.0,)),
}


@functools.cache
def runs_of(name: str) -> list[Run]:
    experiment = replace(EXPERIMENTS[name], scales={"small": TINY[name]})
    tasks = plan(experiment, "small", 0)
    assert len({task.name for task in tasks}) == len(tasks)
    outcomes = [perform(task) for task in tasks]
    return [
        Run(task.identity["configuration"], task.repetition, o.values, o.seconds)
        for task, o in zip(tasks, outcomes, strict=True)
    ]
