"""The rows of a block of states of a model, in which engines and formats read any model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.arrays import lock
from aggmaze.summary import in_one_line

# A row may miss 1 by this much: what printing and adding probabilities loses, no more.
ROW_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a block of B states of a model; what holds them becomes read-only.

    Parameters
    ----------
    transitions : sparse array, shape (B*A, S)
    costs : ndarray of float, shape (B, A)
    action_mask : ndarray of bool, shape (B, A)
    outcome_costs : ndarray of float, shape (nnz,)
        Cost of each stored outcome, aligned with ``transitions.data``.
    """

    transitions: sp.csr_array
    costs: NDArray[np.float64]
    action_mask: NDArray[np.bool_]
    outcome_costs: NDArray[np.float64]

    def __post_init__(self) -> None:
        matrix = self.transitions
        for array in (matrix.data, matrix.indices, matrix.indptr, self.costs, self.outcome_costs):
            lock(array)

    __repr__ = in_one_line

    @cached_property
    def num_states(self) -> int:
        """Number of states B of the block."""
        return self.costs.shape[0]
