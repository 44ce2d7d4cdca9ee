"""The best way, for those who play: what `aggmaze.play` shows beside the game."""

from __future__ import annotations

from typing import Any

from aggmaze.envs.tabular import Model
from aggmaze.play import Advice, Adviser
from planners.solve import solve


def adviser(gamma: float, **options: Any) -> Adviser:
    """Return an adviser who solves each model that is played.

    Parameters
    ----------
    gamma : float
        Discount in [0, 1).
    **options
        As for `solve`.  The adviser raises `NotSolvedError` where a solve does not reach what they
        ask for.
    """

    def advise(model: Model) -> Advice:
        result = solve(model, gamma=gamma, **options).require()
        return Advice(result.values, result.policy, gamma)

    return advise
