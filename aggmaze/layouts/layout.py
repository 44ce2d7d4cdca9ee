"""The layout of a maze: which neighbours are joined, which are blocked, how high each one lies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from aggmaze.arrays import own
from aggmaze.checks import check_integer
from aggmaze.grid import Grid


@dataclass(frozen=True, eq=False)
class Layout:
    """A grid, the passages between its positions, their heights, and which of them are blocked.

    It owns its arrays as models do: they are copies, and read-only.

    Parameters
    ----------
    grid : Grid
    passages : ndarray of bool, shape (S, D)
        Whether state ``s`` and its neighbour at +1 along axis ``k`` are joined; False where that
        neighbour would lie outside the grid.
    heights : ndarray of float, shape (S,), optional
        Height of each position in [0, 1].  None for a maze without terrain.
    goal : int
        The state where an episode ends.
    blocked : ndarray of bool, shape (S,), optional
        Positions that are solid: they keep their index, but no passage leads to them.  None where
        all are free.
    ends : ndarray of bool, shape (S,), optional
        Positions where an episode ends, the goal among them, none of them blocked.  None where it
        ends at the goal only.
    signs : ndarray of uint32, shape (S,), optional
        The character that marks each position in text and pictures, as a code point, 0 where there
        is none.  None where the goal alone is marked, by ``G``.
    untrod : ndarray of bool, shape (S,), optional
        Positions that nobody is at after a step, such as cliffs that send back to the start.  None
        where there are none.

    Raises
    ------
    ValueError
        If the goal is not a state, is blocked or not among the ends, if there is not one entry of
        ``blocked``, ``ends`` and ``signs`` a state, or if a passage leads to a blocked position.
    """

    grid: Grid
    passages: NDArray[np.bool_]
    heights: NDArray[np.float64] | None = None
    goal: int = 0
    blocked: NDArray[np.bool_] | None = None
    ends: NDArray[np.bool_] | None = None
    signs: NDArray[np.uint32] | None = None
    untrod: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        check_integer("goal", self.goal, below=self.grid.num_states)
        for name in ("passages", "heights", "blocked", "ends", "signs", "untrod"):
            array = getattr(self, name)
            if array is not None:
                object.__setattr__(self, name, own(array, array.dtype))
        num_states = self.grid.num_states
        for name in ("signs", "untrod"):
            array = getattr(self, name)
            if array is not None and array.shape != (num_states,):
                raise ValueError(f"{name} must have shape ({num_states},), got {array.shape}")
        if self.ends is not None:
            if self.ends.shape != (num_states,) or self.ends.dtype != np.bool_:
                raise ValueError(
                    f"ends must be booleans of shape ({num_states},), got {self.ends.dtype} of "
                    f"shape {self.ends.shape}"
                )
            if not self.ends[self.goal]:
                raise ValueError(f"the goal, state {self.goal}, must be among the ends")
            if self.blocked is not None and (self.ends & self.blocked).any():
                state = int(np.argmax(self.ends & self.blocked))
                raise ValueError(f"state {state} is an end and blocked")
        if self.blocked is None:
            return
        if self.blocked.shape != (self.grid.num_states,) or self.blocked.dtype != np.bool_:
            raise ValueError(
                f"blocked must be booleans of shape ({self.grid.num_states},), got "
                f"{self.blocked.dtype} of shape {self.blocked.shape}"
            )
        if self.blocked[self.goal]:
            point = tuple(self.grid.coords(self.goal).tolist())
            raise ValueError(f"the goal at {point} is blocked; give another goal")
        bad = np.argwhere(self.passages & ~open_passages(self.grid, self.blocked))
        if len(bad):
            state, axis = bad[0]
            raise ValueError(
                f"state {state} has a passage along axis {axis} that starts or ends in a blocked "
                "position, or leaves the grid"
            )

    def __repr__(self) -> str:
        goal = tuple(self.grid.coords(self.goal).tolist())
        parts = [repr(self.grid), f"{self.num_passages:,} passages", f"goal {goal}"]
        if self.blocked is not None:
            parts.append(f"{np.count_nonzero(self.blocked):,} blocked")
        if self.ends is not None:
            count = np.count_nonzero(self.ends)
            parts.append(f"{count:,} end{'' if count == 1 else 's'}")
        if self.heights is not None:
            parts.append("with heights")
        return f"Layout({', '.join(parts)})"

    @property
    def num_passages(self) -> int:
        """Number of pairs of joined neighbours."""
        return int(np.count_nonzero(self.passages))

    @property
    def num_walls(self) -> int:
        """Number of pairs of neighbours, both of them free, with a wall in between."""
        free = self.free().reshape(self.grid.shape)
        pairs = 0
        for axis in range(self.grid.num_dims):
            behind, ahead = _neighbours_along(axis)
            pairs += int(np.count_nonzero(free[behind] & free[ahead]))
        return pairs - self.num_passages

    def free(self) -> NDArray[np.bool_]:
        """Return which positions are not blocked, shape (S,)."""
        if self.blocked is None:
            return np.ones(self.grid.num_states, dtype=bool)
        return np.asarray(~self.blocked)

    def is_end(self) -> NDArray[np.bool_]:
        """Return where an episode ends, shape (S,)."""
        if self.ends is not None:
            return self.ends
        ends = np.zeros(self.grid.num_states, dtype=bool)
        ends[self.goal] = True
        return ends

    def acting(self) -> NDArray[np.bool_]:
        """Return where an action is chosen, shape (S,): free, no end, and no cliff."""
        acting = self.free() & ~self.is_end()
        return acting if self.untrod is None else acting & ~self.untrod

    def available(self) -> NDArray[np.bool_]:
        """Return which of the 2 D moves pass no wall, shape (S, 2 D)."""
        grid = self.grid
        moves = np.zeros((*grid.shape, 2 * grid.num_dims), dtype=bool)
        passages = self.passages.reshape(*grid.shape, grid.num_dims)
        moves[..., 1::2] = passages
        for axis in range(grid.num_dims):
            behind, ahead = _neighbours_along(axis)
            moves[..., 2 * axis][ahead] = passages[..., axis][behind]
        return moves.reshape(grid.num_states, 2 * grid.num_dims)

    def reaches_goal(self) -> NDArray[np.bool_]:
        """Return from which positions passages lead to the goal, shape (S,)."""
        component = self._components()
        return np.asarray(component == component[self.goal])

    def reaches_end(self) -> NDArray[np.bool_]:
        """Return from which positions passages lead to an end, shape (S,)."""
        component = self._components()
        reached = np.zeros(component.max() + 1, dtype=bool)
        reached[component[self.is_end()]] = True
        return reached[component]

    def _components(self) -> NDArray[np.int32]:
        """Return a number for each position, the same for those that passages join."""
        from scipy.sparse.csgraph import connected_components  # which takes long to import

        num_states = self.grid.num_states
        neighbours = np.arange(num_states)[:, np.newaxis] + np.array(self.grid.strides)
        joined = neighbours[self.passages]
        indptr = np.concatenate([[0], np.cumsum(np.count_nonzero(self.passages, axis=1))])
        graph = sp.csr_array((np.ones(len(joined)), joined, indptr), shape=(num_states, num_states))
        graph.sum_duplicates()  # which sorts, as scipy's routines want it
        return np.asarray(connected_components(graph, directed=False)[1])


def open_passages(grid: Grid, blocked: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
    """Return the passages of a grid without walls, shape (S, D); none lead to what is blocked.

    Parameters
    ----------
    grid : Grid
    blocked : ndarray of bool, shape (S,), optional
        As in `Layout`.
    """
    passages = np.zeros((grid.num_states, grid.num_dims), dtype=bool)
    cells = passages.reshape(*grid.shape, grid.num_dims)
    for axis in range(grid.num_dims):
        behind, ahead = _neighbours_along(axis)
        cells[..., axis][behind] = True
        if blocked is not None:
            taken = blocked.reshape(grid.shape)
            cells[..., axis][behind] = ~(taken[behind] | taken[ahead])
    return passages


def position(name: str, grid: Grid, coords: ArrayLike) -> int:
    """Return the state at coordinates; errors name the argument that they come from.

    Parameters
    ----------
    name : str
    grid : Grid
    coords : array_like of int, shape (D,)
    """
    try:
        return grid.state(coords)
    except ValueError as error:
        raise ValueError(f"{name}={coords!r}: {error}") from None


def _neighbours_along(axis: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return the index of all positions with a neighbour at +1 along an axis, and of those."""
    before = (slice(None),) * axis
    return (*before, slice(None, -1)), (*before, slice(1, None))
