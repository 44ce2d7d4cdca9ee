"""Which method to use for a model: the rule behind ``method="auto"``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planners.bellman import Model
from planners.measure import measure

#: Share of the moves available on a grid without walls, of those that do not leave it.
_OPEN = 0.9
#: With so likely a chosen move, where the greedy moves lead tells the basins, on grids of two
#: dimensions and of more.
_SURE_ENOUGH_2D, _SURE_ENOUGH = 0.5, 0.6
#: Below this exact evaluation pays, where it costs next to nothing.
_HIGH_ACCURACY = 1e-7
#: Likeliest outcomes that carry so much make a forest of policies, where there is a goal; the less
#: certain ones only where shortest paths are a good beginning.
_NEARLY_CERTAIN = 0.93
_RATHER_CERTAIN = 0.75
#: Share of costs that are not negative with which they are.
_MOSTLY_COSTS = 0.9


@dataclass(frozen=True)
class Choice:
    """A method and why.

    Parameters
    ----------
    method : str
        A key of `planners.METHODS`.
    reason : str
        What was measured, in words.
    """

    method: str
    reason: str


def choose(model: Model, tol: float | None = None) -> Choice:
    """Choose a method from cheap measurements of a model.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    tol : float, optional
        Relative accuracy asked for.
    """
    found = measure(model)
    if found.p is not None and found.shape is not None:
        if len(found.shape) == 1:
            return Choice("forest_policy_iteration", f"a corridor of {found.shape[0]} positions")
        grid = " x ".join(str(size) for size in found.shape) + " grid"
        inner = np.mean([1 - 1 / size for size in found.shape if size > 1])
        if found.openness < _OPEN * inner:
            return Choice("forest_policy_iteration", f"a {grid} with walls")
        if found.p < (_SURE_ENOUGH_2D if len(found.shape) == 2 else _SURE_ENOUGH):
            return Choice(
                "forest_policy_iteration", f"a {grid} where moves slip often (p = {found.p:g})"
            )
        if found.p == 1 and len(found.shape) == 2 and tol is not None and tol < _HIGH_ACCURACY:
            return Choice(
                "forest_policy_iteration",
                f"an open {grid} where moves never slip, to an accuracy of {tol:g}",
            )
        return Choice("basin_aggregation", f"an open {grid}")
    share = f"likeliest outcomes carry {found.determinism:.0%} of the probability"
    if found.has_absorbing_states and (
        found.determinism > _NEARLY_CERTAIN
        or (found.determinism > _RATHER_CERTAIN and found.nonnegative > _MOSTLY_COSTS)
    ):
        return Choice("forest_policy_iteration", f"{share}, and there is an end to reach")
    return Choice("modified_policy_iteration", share)
