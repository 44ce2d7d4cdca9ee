"""The exact model of the chain of CartPole's cells."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.cartpole.cells import Cells, four_numbers
from aggmaze.cartpole.physics import AXES, NUM_ACTIONS, Physics
from aggmaze.checks import check_integer
from aggmaze.memory import check_memory
from aggmaze.models.tabular import TabularMDP

#: Points of a cell along each axis.  With these and the default bins every axis changes cell about
#: as often as in CartPole, and position does at any velocity, the slowest included.
DEFAULT_SUB_POINTS = (24, 4, 3, 3)

# Points advanced at a time: few enough to stay in cache, enough to pay for the calls.
_BLOCK = 2**17
# About what a cell takes while a model is made whose actions each lead to a dozen cells.
_BYTES_PER_CELL = 1500
# What a point takes while it is advanced.
_BYTES_PER_POINT = 250


def check_sub_points(sub_points: int | Iterable[int]) -> tuple[int, ...]:
    """Return the number of points along each axis, given one number for all or one for each.

    Raises
    ------
    ValueError, TypeError
        If that is not an integer of at least 1, or four of them.
    """
    if not np.iterable(sub_points):
        return (check_integer("sub_points", sub_points, least=1),) * len(AXES)
    return tuple(
        check_integer(f"sub_points[{axis}]", n, least=1)
        for axis, n in enumerate(four_numbers("sub_points", sub_points))
    )


def cartpole_model(
    cells: Cells, physics: Physics, *, sub_points: int | Iterable[int] = DEFAULT_SUB_POINTS
) -> TabularMDP:
    """Return the exact model of the chain of cells.

    It starts as CartPole does: uniformly in a small cube around the origin.

    Parameters
    ----------
    cells : Cells
    physics : Physics
    sub_points : int or sequence of int
        Points of a cell along each axis, all of which count alike.

    Warns
    -----
    UserWarning
        If no step changes cell along an axis of two bins or more, or no policy can fail: the chain
        then knows less than CartPole does, and more sub-points or bins are needed.

    Raises
    ------
    ValueError, TypeError
        If ``sub_points`` are not an integer of at least 1, or four of them.
    MemoryError
        If more is needed than is available.
    """
    chain = _chain(cells, physics, check_sub_points(sub_points))
    for fault in chain.faults:
        # Shown where an environment is made, or asked for its model.
        warnings.warn(fault, stacklevel=3)
    return chain.model


class _Chain(NamedTuple):
    """A model, and sentences on what it fails to show."""

    model: TabularMDP
    faults: tuple[str, ...]


# Models cannot change, so environments made alike share theirs.
@lru_cache(maxsize=2)
def _chain(cells: Cells, physics: Physics, sub_points: tuple[int, ...]) -> _Chain:
    num_points = math.prod(sub_points)
    block = max(1, _BLOCK // (NUM_ACTIONS * num_points))
    check_memory(
        _BYTES_PER_CELL * cells.num_states + _BYTES_PER_POINT * NUM_ACTIONS * num_points * block,
        f"transitions of {cells.num_cells:,} cells",
    )
    counts, paid = [], []
    changes = np.zeros(len(AXES), dtype=bool)  # whether a step changes cell along an axis
    farthest = np.zeros(len(AXES))  # how far a step goes along an axis
    for first in range(0, cells.num_cells, block):
        states = np.arange(first, min(first + block, cells.num_cells))
        starts = cells.points(states, sub_points)[:, np.newaxis]
        shape = (len(states), NUM_ACTIONS, num_points)
        actions = np.broadcast_to(np.arange(NUM_ACTIONS)[:, np.newaxis], shape).reshape(-1)
        points = np.broadcast_to(starts, (*shape, len(AXES))).reshape(-1, len(AXES))
        after = physics.advance(points, actions)
        following = np.where(after.failed, cells.failure, cells.states(after.points))
        # One row for each state and action, an entry for each cell that a point comes to.
        counts.append(_summed(following, np.ones(len(following)), num_points, cells.num_states))
        paid.append(_summed(following, after.rewards, num_points, cells.num_states))
        changes |= _changes(cells, states, counts[-1])
        farthest = np.maximum(farthest, np.abs(after.points - points).max(axis=0))
    absorbed = sp.csr_array(
        (np.ones(NUM_ACTIONS), ([*range(NUM_ACTIONS)], [cells.failure] * NUM_ACTIONS)),
        shape=(NUM_ACTIONS, cells.num_states),
    )
    visits = sp.csr_array(sp.vstack([*counts, absorbed], format="csr"))
    rewards = sp.csr_array(sp.vstack([*paid, 0.0 * absorbed], format="csr"))
    costs = 0.0 - rewards.sum(axis=1).reshape(cells.num_states, NUM_ACTIONS)
    costs[: cells.failure] /= num_points
    outcome_costs = 0.0 - rewards.data / visits.data
    visits.data[: -len(absorbed.data)] /= num_points
    alike = np.repeat(costs.reshape(-1), np.diff(visits.indptr)) == outcome_costs
    terminal = np.arange(cells.num_states) == cells.failure
    model = TabularMDP(
        visits,
        costs,
        terminal=terminal,
        initial=cells.shares(*physics.start),
        outcome_costs=None if alike.all() else outcome_costs,
    ).validate()
    return _Chain(model, _faults(cells, sub_points, changes, farthest, model))


def _faults(
    cells: Cells,
    sub_points: tuple[int, ...],
    changes: NDArray[np.bool_],
    farthest: NDArray[np.float64],
    model: TabularMDP,
) -> tuple[str, ...]:
    """Say in which ways the model knows less than CartPole does, and what to change."""
    about = f"with bins {cells.bins} and sub_points {sub_points}"
    faults = []
    # A single bin is never left, whatever moves.
    if frozen := np.flatnonzero(~changes & (np.array(cells.bins) > 1)).tolist():
        needs = ", ".join(_need(AXES[axis], cells.widths[axis], farthest[axis]) for axis in frozen)
        faults.append(
            f"{about}, the model never changes cell along "
            f"{', '.join(AXES[axis] for axis in frozen)}, where CartPole does: no point of a cell "
            f"is within a step of its edge. Take more bins, or as sub_points {needs}"
        )
    if not _can_fail(model, cells.failure):
        faults.append(
            f"{about}, no policy of the model ever fails from where it starts, so that it tells "
            "none from another. Take more bins or sub_points, and no smaller limits of position "
            "and angle than the default ones"
        )
    return tuple(faults)


def _need(axis: str, width: float, farthest: float) -> str:
    """Say which sub-points put some of them within a step of a cell's edge."""
    if farthest == 0:
        return f"more along the others for {axis}"
    return f"at least {math.floor(width / (2 * farthest)) + 1} along {axis}"


def _changes(cells: Cells, states: NDArray[np.int64], visits: sp.csr_array) -> NDArray[np.bool_]:
    """Return along which axes some step changes cell, given the visits from these states."""
    before = np.repeat(np.repeat(states, NUM_ACTIONS), np.diff(visits.indptr))
    inside = visits.indices != cells.failure
    after = cells.grid.coords(visits.indices[inside])
    return (after != cells.grid.coords(before[inside])).any(axis=0)


def _can_fail(model: TabularMDP, failure: int) -> bool:
    """Return whether some policy comes from a first state to the failed one."""
    from scipy.sparse.csgraph import breadth_first_order  # which takes long to import

    transitions = model.transitions
    backwards = sp.csr_array(
        (transitions.data, transitions.indices, transitions.indptr[::NUM_ACTIONS]),
        shape=(model.num_states, model.num_states),
    ).T.tocsr()
    backwards.sum_duplicates()
    failing = breadth_first_order(backwards, failure, return_predecessors=False)
    return bool(model.initial[failing].any())


def _summed(
    following: NDArray[np.int64], weights: NDArray[np.float64], num_points: int, num_states: int
) -> sp.csr_array:
    """Return the weights added up by next state, a row for every ``num_points`` of them."""
    num_rows = len(following) // num_points
    rows = sp.csr_array(
        (weights, following.astype(np.int32), np.arange(num_rows + 1, dtype=np.int32) * num_points),
        shape=(num_rows, num_states),
    )
    rows.sum_duplicates()
    return rows
