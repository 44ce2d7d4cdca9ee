"""Full sweeps of a general sparse model that read most states' best rows only, and are exact.

A state's margin is how much worse its second best action is than its best.  When V changes by d,
the difference between two actions changes by ``gamma |(P_a - P_b) d|``, at most gamma times the
span of d (rows sum to 1).  So while the changes since the margin was taken add up to less than it,
the best action is still the best, ``T_s V`` is what that action gives, and no other row needs to be
read.  What is computed is ``TV`` as ever: nothing is assumed, and certificates hold.

Source: the temporary elimination of actions of Hastings, van Nunen, "The action elimination
algorithm for Markov decision processes" (1977), with margins in the place of bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from aggmaze.mdp import ROW_SUM_TOLERANCE, readonly
from planners.bellman import SparseEngine
from planners.engine import Sweep
from planners.kernels.pieces import UNIT_ROUNDOFF
from planners.kernels.threads import over_blocks

# Covers the roundings of sums of a few numbers.
_SLIP = 16 * UNIT_ROUNDOFF


class LazySweeps:
    """Sweeps in a row over one model, each of which knows how V changed since the last.

    Parameters
    ----------
    engine : SparseEngine
    """

    def __init__(self, engine: SparseEngine) -> None:
        self._gamma = engine.gamma
        self._checkpoint = engine.checkpoint
        self._num_threads = engine.num_threads
        self._work = engine.work
        # Unsigned numbers of states spare kernels the question whether they are negative.
        indptr, indices, *others = engine.tables
        self._tables = (indptr, readonly(indices.view(np.uint32)), *others)
        longest = int(np.diff(indptr).max())
        # Relative rounding error of an action's value, and by how much two row sums can differ.
        self._rounding = 1.0001 * (longest + 4) * UNIT_ROUNDOFF
        self._row_sums = 2 * (ROW_SUM_TOLERANCE + longest * UNIT_ROUNDOFF)
        # Up to which drift the best action of a state is sure to be the best.
        self._sure_until = np.full(engine.model.num_states, -1.0)
        self._drift = 0.0

    def changed(self, low: float, high: float, max_value: float) -> None:
        """Account for a change of V by ``low`` to ``high``; |V| is at most ``max_value``."""
        # V + d is rounded where it is added up.
        span = (high - low) * (1 + _SLIP) + _SLIP * max_value
        size = max(-low, high)
        self._drift += self._gamma * (span + self._row_sums * size) * (1 + _SLIP)

    def sweep(
        self,
        V: NDArray[np.float64],
        out: NDArray[np.float64],
        actions: NDArray[np.int32],
        max_value: float,
    ) -> Sweep:
        """Write TV into ``out`` and the best actions into ``actions``, shape (S,) each.

        Parameters
        ----------
        V, out, actions : ndarray, shape (S,)
            ``actions`` as the last sweep left them.
        max_value : float
            Bounds |V|; 0 spares the sweep to read any row.
        """
        self._checkpoint()
        allowance = 4 * self._gamma * self._rounding * max_value
        arguments: tuple[Any, ...] = (
            *self._tables,
            self._gamma,
            V,
            out,
            actions,
            self._sure_until,
            self._drift,
            self._rounding,
            allowance,
            max_value == 0.0,
        )
        kernel: Any = _lazy_sweep
        extremes = over_blocks(
            lambda lo, hi: kernel(*arguments, lo, hi), len(V), self._num_threads, self._work
        )
        residual_low, residual_high, low, high = zip(*extremes, strict=True)
        return Sweep(min(residual_low), max(residual_high), min(low), max(high), image=out)


@njit(cache=True, nogil=True)
def _lazy_sweep(  # type: ignore[no-untyped-def]
    indptr,
    indices,
    probabilities,
    costs,
    mask,
    terminal,
    gamma,
    V,
    out,
    actions,
    sure_until,
    drift,
    rounding,
    allowance,
    zero,
    lo,
    hi,
):
    """Write TV and the best actions; return the extremes of TV - V and of TV.

    The roundings of the two values of a margin, each ``rounding`` of what is rounded, that is of
    ``|q| + 2 gamma max|V|``, are taken off it.
    """
    num_actions = costs.shape[1]
    residual_low, residual_high, low, high = np.inf, -np.inf, np.inf, -np.inf
    for s in range(lo, hi):
        best = np.inf
        if terminal[s]:
            best = 0.0
        elif sure_until[s] > drift:
            row = s * num_actions + actions[s]
            mean = 0.0
            for entry in range(indptr[row], indptr[row + 1]):
                mean += probabilities[entry] * V[indices[entry]]
            best = costs[s, actions[s]] + gamma * mean
        else:
            second = np.inf
            action = 0
            for a in range(num_actions):
                q = np.inf
                if mask[s, a]:
                    mean = 0.0
                    if not zero:
                        row = s * num_actions + a
                        for entry in range(indptr[row], indptr[row + 1]):
                            mean += probabilities[entry] * V[indices[entry]]
                    q = costs[s, a] + gamma * mean
                # Selected, not branched on: which action is better cannot be predicted.
                worse = best if best > q else q
                second = worse if worse < second else second
                action = a if q < best else action
                best = q if q < best else best
            actions[s] = action
            sure_until[s] = np.inf
            if second < np.inf:
                margin = second - best - rounding * (abs(second) + abs(best)) - allowance
                sure_until[s] = drift + margin - 1e-12 * (drift + abs(margin))
        out[s] = best
        residual = best - V[s]
        residual_low = residual if residual < residual_low else residual_low
        residual_high = residual if residual > residual_high else residual_high
        low = best if best < low else low
        high = best if best > high else high
    return residual_low, residual_high, low, high
