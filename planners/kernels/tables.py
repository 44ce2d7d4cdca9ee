"""The tables of a model as kernels take them, one NamedTuple for each layout.

Numba passes them like the arrays that they hold.  All arrays are read-only views.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray


class Moves(NamedTuple):
    """A model of moves that may slip (`aggmaze.move_mdp`).

    With n available moves in a state and ``q_m = costs[s, m] + gamma V(successors[s, m])``, action
    m is worth ``chosen[n] q_m + every[n] sum_k q_k`` over the available k.

    Parameters
    ----------
    successors : ndarray of int32, shape (S, M)
    costs : ndarray of float, shape (S, M)
        +inf where the move is unavailable.
    chosen, every : ndarray of float, shape (M + 1,)
        By the number of available moves.
    """

    successors: NDArray[np.int32]
    costs: NDArray[np.float64]
    chosen: NDArray[np.float64]
    every: NDArray[np.float64]


class Outcomes(NamedTuple):
    """A general sparse model: row ``s * A + a`` lists what action a may lead to in state s.

    Parameters
    ----------
    indptr : ndarray of int64, shape (S * A + 1,)
    indices : ndarray of int32, or of uint32, shape (nnz,)
        Unsigned numbers of states spare kernels the question whether they are negative.
    probabilities : ndarray of float, shape (nnz,)
    costs : ndarray of float, shape (S, A)
    mask : ndarray of bool, shape (S, A)
        Whether an action is available.
    terminal : ndarray of bool, shape (S,)
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32] | NDArray[np.uint32]
    probabilities: NDArray[np.float64]
    costs: NDArray[np.float64]
    mask: NDArray[np.bool_]
    terminal: NDArray[np.bool_]


@njit(cache=True, inline="always")
def num_available(moves, s):  # type: ignore[no-untyped-def]
    """Return the number of available moves in a state."""
    n = 0
    for m in range(moves.costs.shape[1]):
        n += 1 if moves.costs[s, m] < np.inf else 0
    return n


@njit(cache=True, inline="always")
def weight(moves, n, m, action):  # type: ignore[no-untyped-def]
    """Return the probability that move m happens where ``action`` is chosen among n moves."""
    # As one sum, every[n] + (chosen[n] if ... else 0), this makes kernels four times slower.
    slip = moves.every[n]
    return slip + moves.chosen[n] if m == action else slip
