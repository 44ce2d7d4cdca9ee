"""Maps of mazes that are too large to be drawn, or held: thinned out to what a screen shows.

What is drawn is read from the result block by block, and the rest is not read where it is mapped
into memory (`planners.open_result`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_choice
from aggmaze.grid import Grid
from planners.boards import Board, board_of_grid
from planners.plotting.marks import draw_goals, draw_start
from planners.plotting.policies import plot_policy
from planners.plotting.values import plot_values
from planners.result import SolveResult

#: Points along each axis of a map at most.
MOST_SIDE = 600
#: Positions beyond which one is drawn of each block, rather than the mean of all.
MOST_READ = 1 << 28
#: What there are maps of.
KINDS = ("values", "policy")


def plot_thinned(
    result: SolveResult,
    grid: Grid,
    what: str = "values",
    *,
    goal: int | None = None,
    start: int | None = None,
    title: str | None = None,
    **options: Any,
) -> Any:
    """Draw the values or the policy of a maze of any size, in a plane of two axes.

    Where there are more than 600 positions along an axis, a point of the map stands for a block of
    them, and the title says for how many: with the mean of their values, of very large planes with
    the value of one in the middle, as with the action of a policy.  Of more than two dimensions it
    is the plane of the first two through 0 along the others.

    Parameters
    ----------
    result : SolveResult
        Such as `planners.open_result` returns.
    grid : Grid
        Of the maze.
    what : {"values", "policy"}
    goal, start : int, optional
        States that are marked, where they lie in the plane.
    title : str, optional
    **options
        As for `plot_values` and `plot_policy`: ``ax``, ``label``, ``scale``, ``returns``,
        ``colorbar``.
    """
    check_choice("what", what, KINDS)
    # The same along both axes, so that the map keeps its proportions.
    steps = (-(-max(grid.shape[:2]) // MOST_SIDE),) * min(2, grid.num_dims)
    board = _board(grid, steps)
    block = " x ".join(str(step) for step in steps)
    array: NDArray[Any]
    if what == "policy":
        words = f"one of each {block} positions"
        array = _middles(_plane(result.policy, grid), steps).astype(np.int64)
    else:
        plane = _plane(result.values, grid)
        whole = plane.size <= MOST_READ
        words = f"{'means of' if whole else 'one of each'} {block} positions"
        array = _means(plane, steps) if whole else _middles(plane, steps)
    if max(steps) > 1:
        title = words if title is None else f"{title}\n{words}"
    draw: Callable[..., Any] = plot_policy if what == "policy" else plot_values
    axes = draw(board, array.reshape(-1), title=title, **options)
    for state, mark in ((goal, draw_goals), (start, draw_start)):
        if state is not None and not grid.coords(state)[2:].any():
            at = np.zeros(2)
            at[: len(steps)] = (grid.coords(state)[: len(steps)] + 0.5) / steps - 0.5
            mark(axes, float(at[0]), float(at[1]), cell=0.0)
    return axes


def _board(grid: Grid, steps: tuple[int, ...]) -> Board:
    """Return the board of what is left, with the coordinates of the maze."""
    shape = tuple(-(-count // step) for count, step in zip(grid.shape, steps, strict=False))
    # Beyond that there are arrows of blocks, which nobody takes for those of positions.
    directions = None
    if max(steps) == 1:
        directions = np.array(grid.directions, dtype=np.float64)[:, : len(shape)]
    return board_of_grid(
        Grid(shape),
        origin=tuple((step - 1) / 2 for step in steps),
        step=tuple(float(step) for step in steps),
        directions=directions,
        action_names=grid.action_names,
    )


def _plane(array: NDArray[Any], grid: Grid) -> NDArray[Any]:
    """Return what lies in the plane of the first two axes, shape (nx, ny), without reading it."""
    if array.shape != (grid.num_states,):
        raise ValueError(
            f"the result has shape {array.shape}, and the maze {grid.num_states:,} states"
        )
    plane = array.reshape(*grid.shape[:2], -1) if grid.num_dims > 1 else array[:, None, None]
    return plane[:, :, 0]


def _means(plane: NDArray[Any], steps: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the means of blocks, read one row of blocks after another."""
    across, up = (*steps, 1)[:2]
    edges = np.arange(0, plane.shape[1], up)
    sizes = np.diff(edges, append=plane.shape[1])
    rows = []
    for first in range(0, len(plane), across):
        slab = np.asarray(plane[first : first + across], dtype=np.float64)
        rows.append(np.add.reduceat(slab.mean(axis=0), edges) / sizes)
    return np.array(rows)


def _middles(plane: NDArray[Any], steps: tuple[int, ...]) -> NDArray[Any]:
    """Return one entry of each block, near its middle."""
    picks = []
    for count, step in zip(plane.shape, (*steps, 1), strict=False):
        picks.append(np.minimum(np.arange(0, count, step) + step // 2, count - 1))
    return np.asarray(plane[np.ix_(*picks)])
