"""mdpsolver, from nested lists."""

from __future__ import annotations

from typing import Any

import mdpsolver
import numpy as np
from outcome import Outcome, Solve
from tables import Tables


def problem(tables: Tables, gamma: float) -> Solve:
    """Solve on one thread from 0."""
    columns, probabilities = tables.nested()
    model = mdpsolver.model()
    model.mdp(
        discount=gamma,
        rewards=(-tables.costs).tolist(),
        tranMatProbs=probabilities,
        tranMatColumns=columns,
    )
    zeros = [0.0] * tables.num_states

    def solve(variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        model.solve(tolerance=epsilon, initValueVector=zeros, parallel=False, **variant)
        return Outcome(lambda: [-value for value in model.getValueVector()])

    return solve


def average(tables: Tables, objective: dict[str, Any]) -> Solve:
    """Solve for the mean cost of a step, of which it returns relative values and no gain.

    What those say of the gain is what a sweep adds to them, in each state: the middle of that is
    the gain, and half its width the bound, in models that have one gain.
    """
    columns, probabilities = tables.nested()
    rewards = (-tables.costs).tolist()
    model = mdpsolver.model()
    model.mdp(rewards=rewards, tranMatProbs=probabilities, tranMatColumns=columns)

    def solve(variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        # Without both it goes on from what it found last, and repeats cost nothing.
        model.solve(
            tolerance=epsilon,
            criterion="average",
            initValueVector=[0.0] * tables.num_states,
            initPolicy=[0] * tables.num_states,
            parallel=False,
            **variant,
        )
        V = -np.array(model.getValueVector())
        added = (tables.costs + (tables.transitions @ V).reshape(tables.costs.shape)).min(1) - V
        least, most = float(added.min()), float(added.max())
        gain = np.full(tables.num_states, (least + most) / 2)
        return Outcome(lambda: gain, bound=(most - least) / 2)

    return solve


OBJECTIVES = {"average": average}
