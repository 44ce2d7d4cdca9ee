"""The error of Algorithm 3, under every convention that the paper leaves open.

The step index ("steps"): alpha = 1/sqrt(t) with t counted over all aggregated iterations ("total",
as Algorithm 3 is printed), or within the phase, as the section on experiments writes it, from 1
("phase from 1", the default here) or from 2.  That the phase is meant is inferred: "total" leaves
no spread between runs, which the published intervals show.  From 2 was tried after seeing the
published numbers, to which it comes nearer.

Where in the cycle the error is read: after iteration 1000 itself, which is the fourth aggregated
one of its phase (the default, to the letter), after the last global phase, or after the last whole
aggregated phase.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.model import Model
from planners.record import Progress
from planners.solve import solve

STEPS: dict[str, dict[str, Any]] = {
    "phase from 1": {"step_index": "phase", "first_step": 1},
    "phase from 2": {"step_index": "phase", "first_step": 2},
    "total": {"step_index": "total", "first_step": 1},
}
DEFAULT_STEPS = "phase from 1"

READINGS = ("last iteration", "global phase", "aggregated phase")
DEFAULT_READING = "last iteration"


@dataclass(frozen=True)
class Algorithm3:
    """The parameters of the paper's experiments.

    Parameters
    ----------
    gamma : float
        Discount.
    epsilon : float
        Width of a bin, in the unit of costs.
    num_global, num_aggregated : int
        Iterations of a global and of an aggregated phase.
    iterations : int
        Of the run.
    """

    gamma: float = 0.95
    epsilon: float = 0.5
    num_global: int = 2
    num_aggregated: int = 5
    iterations: int = 1000

    def options(self, steps: str) -> dict[str, Any]:
        """Return what `planners.solve` takes; ``steps`` is a key of `STEPS`."""
        return {
            "gamma": self.gamma,
            "method": "adaptive_aggregation",
            "epsilon": self.epsilon,
            "num_global": self.num_global,
            "num_aggregated": self.num_aggregated,
            "num_iterations": self.iterations,
            "num_threads": 1,
            **STEPS[steps],
        }

    def readings(self) -> dict[str, int]:
        """Return after which iteration each reading is taken."""
        cycle = self.num_global + self.num_aggregated
        last = self.iterations
        whole = last - last % cycle
        last_global = whole + self.num_global
        return {
            "last iteration": last,
            "global phase": last_global if last_global <= last else last_global - cycle,
            "aggregated phase": whole,
        }

    def with_epsilon(self, epsilon: float) -> Algorithm3:
        """Return the same with another width of bins."""
        return replace(self, epsilon=epsilon)

    def errors(
        self,
        model: Model,
        V: NDArray[np.float64],
        seed: int,
        steps: Sequence[str] = tuple(STEPS),
        **options: Any,
    ) -> dict[str, dict[str, float]]:
        """Return the sup-norm error against V by steps and reading.

        Parameters
        ----------
        model : TabularMDP or MoveMDP
        V : ndarray of float, shape (S,)
            V*.
        seed : int
            Of the run.
        steps : sequence of str
            Keys of `STEPS`, each of which is a run.
        **options
            Further ones of the method.
        """
        positions = self.readings()
        wanted = set(positions.values())
        found: dict[str, dict[str, float]] = {}
        for name in steps:
            errors: dict[int, float] = {}

            def note(progress: Progress, errors: dict[int, float] = errors) -> None:
                if progress.iteration in wanted:
                    errors[progress.iteration] = float(np.abs(progress.values - V).max())

            solve(model, seed=seed, callback=note, **self.options(name), **options)
            found[name] = {reading: errors[t] for reading, t in positions.items()}
        return found


def seeds(sequence: np.random.SeedSequence) -> tuple[np.random.Generator, int]:
    """Return a Generator for the maze, and a seed for the method."""
    for_maze, for_method = sequence.spawn(2)
    return np.random.default_rng(for_maze), int(for_method.generate_state(1)[0])
