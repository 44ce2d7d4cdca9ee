"""Value-based aggregation (Algorithm 2), representatives, and back to states.

With ``b1 = min V`` and ``b2 = max V``, mega-state ``i = 1, 2, ...`` holds the states with
``V(s)`` in ``[b1 + (i-1) epsilon, b1 + i epsilon)`` and starts at the midpoint
``W(i) = b1 + (i - 1/2) epsilon``; empty ones are dropped, order is kept.

Two cases the paper leaves open: where ``(b2 - b1) / epsilon`` is an integer the maximum falls in no
bin, and joins the last one; where V is constant there would be no bin, and there is one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from aggmaze.checks import check_positive


@dataclass(frozen=True, eq=False)
class Aggregation:
    """A partition of the states into K mega-states.

    Parameters
    ----------
    labels : ndarray of int32, shape (S,)
        Mega-state of each state.
    sizes : ndarray of int64, shape (K,)
        Number of states in each mega-state, at least 1.
    midpoints : ndarray of float, shape (K,)
        Middle of the bin of values, increasing.
    """

    labels: NDArray[np.int32]
    sizes: NDArray[np.int64]
    midpoints: NDArray[np.float64]

    @property
    def num_megastates(self) -> int:
        """Number of mega-states K."""
        return len(self.sizes)


def aggregate_by_value(V: NDArray[np.float64], epsilon: float) -> Aggregation:
    """Partition the states by value: Algorithm 2.

    Parameters
    ----------
    V : ndarray of float, shape (S,)
        Costs-to-go, finite.
    epsilon : float
        Width of a bin, positive, in the unit of V.

    Raises
    ------
    ValueError
        If a value or epsilon is not finite, or epsilon is not positive or so small that bins of
        that width cannot be told apart in the range of V.
    """
    check_positive("epsilon", epsilon)
    V = np.ascontiguousarray(V, dtype=np.float64)
    if V.ndim != 1 or len(V) == 0:
        raise ValueError(f"V must have shape (S,), not empty, got {V.shape}")
    low, high = float(V.min()), float(V.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        bad = int(np.flatnonzero(~np.isfinite(V))[0])
        raise ValueError(f"V[{bad}] = {V[bad]} must be finite")
    width = (high - low) / epsilon
    if not width < 2.0**53:
        raise ValueError(
            f"epsilon = {epsilon!r} is too small for values from {low} to {high}: at least "
            f"{1.1 * (high - low) / 2.0**53:.1e} tells their bins apart"
        )
    num_bins = max(1, math.ceil(width))
    if num_bins <= 4 * len(V) + 1024:
        labels, counts = _bins(V, low, epsilon, num_bins)
        kept = np.flatnonzero(counts)
        if len(kept) < num_bins:
            new_label = np.zeros(num_bins, dtype=np.int32)
            new_label[kept] = np.arange(len(kept), dtype=np.int32)
            labels = new_label[labels]
        sizes = counts[kept]
    else:
        # Far more bins than states: sort the states instead of counting over bins.
        index = np.minimum(np.floor((V - low) / epsilon), num_bins - 1)
        kept, labels, sizes = np.unique(index, return_inverse=True, return_counts=True)
        labels = labels.astype(np.int32)
    midpoints = np.asarray(low + (kept + 0.5) * epsilon, dtype=np.float64)
    return Aggregation(labels, sizes, midpoints)


def draw_representatives(
    aggregation: Aggregation, uniforms: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Pick states uniformly from each mega-state.

    Parameters
    ----------
    aggregation : Aggregation
    uniforms : ndarray of float, shape (N, K)
        N draws for each mega-state, in [0, 1).

    Returns
    -------
    ndarray of int64, shape (N, K)
        Draw ``i`` of mega-state ``j`` is its member number ``floor(uniforms[i, j] * size)``, in
        the order of the states.
    """
    ranks = np.minimum((uniforms * aggregation.sizes).astype(np.int64), aggregation.sizes - 1)
    order = np.argsort(ranks.T, axis=1, kind="stable")
    sorted_ranks = np.take_along_axis(ranks.T, order, axis=1)
    return _members(aggregation.labels, sorted_ranks, order)


@njit(cache=True)
def _bins(V, low, epsilon, num_bins):  # type: ignore[no-untyped-def]
    labels = np.empty(len(V), dtype=np.int32)
    counts = np.zeros(num_bins, dtype=np.int64)
    for s in range(len(V)):
        i = min(int((V[s] - low) / epsilon), num_bins - 1)
        labels[s] = i
        counts[i] += 1
    return labels, counts


@njit(cache=True)
def _members(labels, sorted_ranks, order):  # type: ignore[no-untyped-def]
    """Find the members of the given ranks in one pass over the states."""
    num_megastates, num_draws = sorted_ranks.shape
    states = np.empty((num_draws, num_megastates), dtype=np.int64)
    seen = np.zeros(num_megastates, dtype=np.int64)
    found = np.zeros(num_megastates, dtype=np.int64)
    wanted = sorted_ranks[:, 0].copy()
    for s in range(len(labels)):
        j = labels[s]
        rank = seen[j]
        seen[j] = rank + 1
        if rank == wanted[j]:
            i = found[j]
            while i < num_draws and sorted_ranks[j, i] == rank:
                states[order[j, i], j] = s
                i += 1
            found[j] = i
            wanted[j] = sorted_ranks[j, i] if i < num_draws else -1
    return states
