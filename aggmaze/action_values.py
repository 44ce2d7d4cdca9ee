"""What each action costs in all, those included that are unavailable and stay in place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.model import Model


def action_values(
    model: Model, values: NDArray[np.float64], gamma: float, lo: int, hi: int
) -> NDArray[np.float64]:
    """Return ``c(s,a) + gamma sum_s' P(s'|s,a) V(s')`` of the states ``lo`` to ``hi - 1``.

    `planners.q_values` is for planning: it has +inf for unavailable actions.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    values : ndarray of float, shape (S,)
        V, costs-to-go.
    gamma : float
        Discount in [0, 1].
    lo, hi : int

    Returns
    -------
    ndarray of float, shape (hi - lo, A)
    """
    rows = model.rows(lo, hi)
    return rows.costs + gamma * (rows.transitions @ values).reshape(rows.costs.shape)
