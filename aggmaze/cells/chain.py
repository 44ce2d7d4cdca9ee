"""Models of problems in cells: by averaging over points of each cell, or between corners."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.cells.cells import Cells
from aggmaze.cells.interpolation import Corners
from aggmaze.cells.problem import Problem
from aggmaze.memory import check_memory
from aggmaze.models.tabular import TabularMDP
from aggmaze.progress import report

#: Points advanced at a time: few enough to stay in cache, enough to pay for the calls.
BLOCK = 2**17
# About what a cell takes for each action while a model is made, and for each corner of it.
_BYTES_PER_ACTION = 900
_BYTES_PER_CORNER = 80
# What a point takes while it is advanced.
_BYTES_PER_POINT = 250
# Points at which an axis is looked at that stands still, and the seed that draws them.
_PROBES, _PROBE_SEED = 1000, 0
# Sub-points beyond which no more of them are asked for.
_MOST_ASKED = 1e6


class Words(NamedTuple):
    """How faults of a model are told.

    Parameters
    ----------
    end : str
        What no policy of the model comes to, as a verb: "fails".
    unlike : str
        Which of the limits matter to that, as the end of a sentence.
    """

    end: str = "ends"
    unlike: str = ""


class Chain(NamedTuple):
    """A model, and sentences on what it fails to show.

    Parameters
    ----------
    model : TabularMDP
    faults : tuple of str
    """

    model: TabularMDP
    faults: tuple[str, ...]


class CellsProgress(NamedTuple):
    """What a callback sees while a model is made.

    Parameters
    ----------
    cells : int
        Cells whose steps have been taken.
    num_cells : int
        All of them.
    """

    cells: int
    num_cells: int


def chain_of(
    cells: Cells,
    problem: Problem,
    sub_points: tuple[int, ...],
    *,
    words: Words | None = None,
    block: int = BLOCK,
    callback: Callable[[CellsProgress], object] | None = None,
) -> Chain:
    """Return the model of a problem in cells, or between corners.

    Parameters
    ----------
    cells : Cells
        `Corners` are interpolated between, of others points are counted.
    problem : Problem
    sub_points : tuple of int
        Points of a cell along each axis, all of which count alike; ones for corners.
    words : Words, optional
    block : int
        Points advanced at a time.
    callback : callable, optional
        Called with a `CellsProgress` after each block of cells.

    Raises
    ------
    MemoryError
        If more is needed than is available.
    """
    num_actions, num_points = problem.num_actions, math.prod(sub_points)
    size = max(1, block // (num_actions * num_points))
    corners = 2**cells.num_axes if isinstance(cells, Corners) else 1
    check_memory(
        (_BYTES_PER_ACTION if corners == 1 else _BYTES_PER_CORNER * corners)
        * num_actions
        * cells.num_states
        + _BYTES_PER_POINT * num_actions * num_points * size,
        f"transitions of {cells.num_cells:,} cells",
    )
    seen = _Seen(np.zeros(cells.num_axes, dtype=bool), np.zeros(cells.num_axes))
    steps = _steps(cells, problem, sub_points, size, seen, callback)
    if isinstance(cells, Corners):
        visits, costs, outcome_costs = _interpolated(cells, steps, num_actions)
    else:
        visits, costs, outcome_costs = _counted(cells, steps, num_actions, num_points)
    model = TabularMDP(
        visits,
        costs,
        terminal=np.arange(cells.num_states) == cells.end,
        initial=_initial(cells, problem),
        outcome_costs=outcome_costs,
    ).validate()
    return Chain(model, _faults(cells, problem, sub_points, seen, model, words or Words()))


class _Seen(NamedTuple):
    """What is noted along each axis while steps are taken, shape (D,) each.

    Parameters
    ----------
    changes : ndarray of bool
        Whether a step changes cell.
    farthest : ndarray of float
        How far a step goes.
    """

    changes: NDArray[np.bool_]
    farthest: NDArray[np.float64]


class _Block(NamedTuple):
    """Where the points of some cells come to, M of them: of each cell, of each action."""

    states: NDArray[np.int64]
    following: NDArray[np.int64]  # (M, K)
    weights: NDArray[np.float64]  # (M, K)
    rewards: NDArray[np.float64]  # (M,)


def _steps(
    cells: Cells,
    problem: Problem,
    sub_points: tuple[int, ...],
    size: int,
    seen: _Seen,
    callback: Callable[[CellsProgress], object] | None,
) -> Iterator[_Block]:
    """Take all steps from all points, so many cells at a time."""
    num_actions, num_points = problem.num_actions, math.prod(sub_points)
    for first in range(0, cells.num_cells, size):
        states = np.arange(first, min(first + size, cells.num_cells))
        starts = cells.points(states, sub_points)[:, np.newaxis]
        shape = (len(states), num_actions, num_points)
        actions = np.broadcast_to(np.arange(num_actions)[:, np.newaxis], shape).reshape(-1)
        points = np.broadcast_to(starts, (*shape, cells.num_axes)).reshape(-1, cells.num_axes)
        after = problem.advance(points, actions)
        if isinstance(cells, Corners):
            following, weights = cells.spread(after.points)
            following[after.terminated] = cells.end
            weights[after.terminated] = np.eye(1, weights.shape[1])
        else:
            following = np.where(after.terminated, cells.end, cells.states(after.points))
            following, weights = following[:, np.newaxis], np.ones((len(following), 1))
        gone = np.abs(cells.differences(points, after.points)).max(axis=0)
        np.maximum(seen.farthest, gone, out=seen.farthest)
        before = np.repeat(states, num_actions * num_points)[:, np.newaxis]
        inside = (following != cells.end) & (weights > 0)
        for axis, (stride, n) in enumerate(zip(cells.grid.strides, cells.bins, strict=True)):
            moved = (following // stride) % n != (before // stride) % n
            seen.changes[axis] |= bool((moved & inside).any())
        report(int(states[-1]) + 1, cells.num_cells, "cells")
        yield _Block(states, following, weights, np.asarray(after.rewards, dtype=np.float64))
        if callback is not None:
            callback(CellsProgress(int(states[-1]) + 1, cells.num_cells))


def _counted(
    cells: Cells, steps: Iterator[_Block], num_actions: int, num_points: int
) -> tuple[sp.csr_array, NDArray[np.float64], NDArray[np.float64] | None]:
    """Count the points of each cell that come to each cell, and add up what they are paid."""
    counts, paid = [], []
    for block in steps:
        # One row for each state and action, an entry for each cell that a point comes to.
        following = block.following[:, 0]
        counts.append(_summed(following, block.weights[:, 0], num_points, cells.num_states))
        paid.append(_summed(following, block.rewards, num_points, cells.num_states))
    absorbed = _absorbed(cells, num_actions)
    visits = sp.csr_array(sp.vstack([*counts, absorbed], format="csr"))
    rewards = sp.csr_array(sp.vstack([*paid, 0.0 * absorbed], format="csr"))
    sums = np.asarray(rewards.sum(axis=1), dtype=np.float64)
    costs = 0.0 - sums.reshape(cells.num_states, num_actions)
    costs[: cells.num_cells] /= num_points
    outcome_costs = 0.0 - rewards.data / visits.data
    visits.data[: len(visits.data) - absorbed.nnz] /= num_points
    alike = np.repeat(costs.reshape(-1), np.diff(visits.indptr)) == outcome_costs
    return visits, costs, None if alike.all() else outcome_costs


def _interpolated(
    cells: Cells, steps: Iterator[_Block], num_actions: int
) -> tuple[sp.csr_array, NDArray[np.float64], None]:
    """Add up the weights with which the step of each corner comes to each corner."""
    parts, paid = [], []
    for block in steps:
        _, num_corners = block.weights.shape
        parts.append(
            _summed(
                block.following.reshape(-1),
                block.weights.reshape(-1),
                num_corners,
                cells.num_states,
            )
        )
        paid.append(block.rewards)
    shares = sp.csr_array(sp.vstack([*parts, _absorbed(cells, num_actions)], format="csr"))
    costs = np.zeros((cells.num_states, num_actions))
    costs[: cells.num_cells] = 0.0 - np.concatenate(paid).reshape(-1, num_actions)
    return shares, costs, None


def _absorbed(cells: Cells, num_actions: int) -> sp.csr_array:
    """Return the rows of the state of having ended, none where episodes do not end."""
    rows = num_actions if cells.ends else 0
    return sp.csr_array(
        (np.ones(rows), ([*range(rows)], [cells.end] * rows)), shape=(rows, cells.num_states)
    )


def _initial(cells: Cells, problem: Problem) -> NDArray[np.float64]:
    low, high = (cells.low, cells.high) if problem.start is None else problem.start
    return cells.shares(low, high)


def _faults(
    cells: Cells,
    problem: Problem,
    sub_points: tuple[int, ...],
    seen: _Seen,
    model: TabularMDP,
    words: Words,
) -> tuple[str, ...]:
    """Say in which ways the model knows less than the problem does, and what to change."""
    name, axes = problem.name, problem.axes
    interpolates = isinstance(cells, Corners)
    about = f"with bins {cells.bins}" + ("" if interpolates else f" and sub_points {sub_points}")
    faults = []
    # A single bin is never left, whatever moves.
    frozen = np.flatnonzero(~seen.changes & (np.array(cells.bins) > 1))
    frozen = frozen[_moves(cells, problem, frozen.tolist(), seen.farthest[frozen])]
    if len(frozen):
        still = ", ".join(axes[axis] for axis in frozen)
        needs = ", ".join(
            _need(axes[axis], cells.widths[axis], seen.farthest[axis]) for axis in frozen
        )
        faults.append(
            f"{about}, the model never changes cell along {still}, where {name} does: "
            + (
                "no corner moves along it. Take more bins along the others"
                if interpolates
                else "no point of a cell is within a step of its edge. Take more bins, or as "
                f"sub_points {needs}"
            )
        )
    if cells.ends and not _can_end(model, cells.end):
        faults.append(
            f"{about}, no policy of the model ever {words.end} from where it starts, so that it "
            f"tells none from another. Take more bins or sub_points{words.unlike}"
        )
    return tuple(faults)


def _moves(
    cells: Cells, problem: Problem, axes: list[int], farthest: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which of these axes the problem itself moves along, from anywhere in the box."""
    moving = farthest > 0
    if moving.all():
        return moving
    rng = np.random.default_rng(_PROBE_SEED)
    points = rng.uniform(cells.low, cells.high, (_PROBES, cells.num_axes))
    after = problem.advance(points, np.arange(_PROBES) % problem.num_actions)
    return moving | (cells.differences(points, after.points) != 0).any(axis=0)[axes]


def _need(axis: str, width: float, farthest: float) -> str:
    """Say which sub-points put some of them within a step of a cell's edge."""
    if not farthest > width / _MOST_ASKED:
        return f"more along the others for {axis}"
    return f"at least {math.floor(width / (2 * farthest)) + 1} along {axis}"


def _can_end(model: TabularMDP, end: int) -> bool:
    """Return whether some policy comes from a first state to the last one."""
    from scipy.sparse.csgraph import breadth_first_order  # which takes long to import

    transitions = model.transitions
    backwards = sp.csr_array(
        (transitions.data, transitions.indices, transitions.indptr[:: model.num_actions]),
        shape=(model.num_states, model.num_states),
    ).T.tocsr()
    backwards.sum_duplicates()
    ending = breadth_first_order(backwards, end, return_predecessors=False)
    return bool(model.initial[ending].any())


def _summed(
    following: NDArray[np.int64], weights: NDArray[np.float64], width: int, num_states: int
) -> sp.csr_array:
    """Return the weights added up by next state, a row for every ``width`` of them."""
    num_rows = len(following) // width
    rows = sp.csr_array(
        (weights, following.astype(np.int32), np.arange(num_rows + 1, dtype=np.int32) * width),
        shape=(num_rows, num_states),
    )
    rows.sum_duplicates()
    return rows
