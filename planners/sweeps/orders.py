"""Orders in which Gauss-Seidel sweeps visit the states."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numba import njit
from numpy.typing import NDArray

from aggmaze.arrays import readonly
from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP
from planners.kernels.tables import moves_of

# Number of states whose moves tell the shape of a grid.
_SAMPLE = 10_000
# Beyond so many pairs of directions a grid of many dimensions makes a choice among them.
_MOST_PAIRS = 8


def coprime_step(num_states: int, sample: int) -> int:
    """Return a step through the states that meets no column of a grid more often than others.

    Parameters
    ----------
    num_states : int
    sample : int
        About how many states are to be met; all, if there are fewer.
    """
    step = max(1, num_states // sample)
    while math.gcd(step, num_states) > 1:
        step -= 1
    return step


def grid_shape(model: TabularMDP | MoveMDP) -> tuple[int, ...] | None:
    """Return the shape of the grid that a model's moves are steps on, or None.

    It is read off the distances ``successor - state`` of some states: on a grid those are the
    strides of its axes, the last of which is 1.  Nothing but the speed of sweeps depends on it.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    """
    if not isinstance(model, MoveMDP):
        return None
    most = model.num_actions // 2 + 1
    step = coprime_step(model.num_states, _SAMPLE)
    strides = np.sort(_strides(moves_of(model), most, step))
    strides = strides[strides > 0]
    if len(strides) == 0 or len(strides) == most or strides[0] != 1:
        return None
    sizes = np.append(strides[1:], model.num_states) / strides
    if (sizes != np.floor(sizes)).any():
        return None
    return tuple(int(size) for size in sizes[::-1])


@njit(cache=True, nogil=True)
def _strides(moves, most, step):
    """Return up to ``most`` different distances, 0 where there are fewer."""
    successors, costs = moves.successors, moves.costs
    found = np.zeros(most, dtype=np.int64)
    count = 0
    for s in range(0, costs.shape[0], step):
        for m in range(costs.shape[1]):
            distance = abs(successors[s, m] - s)
            if distance == 0 or costs[s, m] == np.inf:
                continue
            known = False
            for i in range(count):
                known = known or found[i] == distance
            if not known:
                found[count] = distance
                count += 1
                if count == most:
                    return found
    return found


def directions(
    model: TabularMDP | MoveMDP, shape: tuple[int, ...] | None
) -> Iterator[tuple[NDArray[np.int32] | None, bool]]:
    """Yield for ever the order of the next sweep, as `Engine.gauss_seidel` takes it.

    On a grid every combination of up and down the axes in turn, each followed by its opposite;
    elsewhere the order of the states and its reverse.  At most 8 pairs where there are more.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    shape : tuple of int, optional
        Of the grid.

    Yields
    ------
    order : ndarray of int32, shape (S,), optional
        None for the order of the states.
    reverse : bool
    """
    orders: list[NDArray[np.int32] | None] = [None]
    if shape is not None:
        axes = [axis for axis, size in enumerate(shape) if size > 1]
        pairs = min(2 ** max(0, len(axes) - 1), _MOST_PAIRS)
        states = np.arange(model.num_states, dtype=np.int32).reshape(shape)
        # The first axis keeps its direction: the reverse order turns them all.
        for pair in range(1, pairs):
            turned = tuple(axis for bit, axis in enumerate(axes[:0:-1]) if pair >> bit & 1)
            orders.append(readonly(np.flip(states, turned).reshape(-1)))
    while True:
        for order in orders:
            yield order, False
            yield order, True
