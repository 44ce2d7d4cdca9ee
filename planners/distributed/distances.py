"""Fewest steps to a terminal state, across parts.

Each process carries what it knows through its own part, by order of distance; then neighbours
exchange what they found, until nobody finds a shorter way.  There are as many rounds as a shortest
way goes from part to part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planners.distributed.ghosts import Ghosts
from planners.distributed.processes import Processes
from planners.kernels.parts import (
    NO_WAY,
    add_up,
    leading_by_moves,
    leading_by_outcomes,
    spread,
)
from planners.kernels.tables import Moves, Outcomes

#: ``carry(sources, distances, queue)`` does what `planners.kernels.parts.spread` does.
Spread = Callable[[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]], None]


class Links(NamedTuple):
    """Which states of the part lead to each one near: t has ``leading[ends[t]:ends[t + 1]]``.

    Parameters
    ----------
    ends : ndarray of int64, shape (N + 1,)
    leading : ndarray of int32
    """

    ends: NDArray[np.int64]
    leading: NDArray[np.int32]


def links_of_moves(tables: Moves, num_near: int) -> Links:
    """Return the links of moves, which one may choose all.

    Parameters
    ----------
    tables : Moves
    num_near : int
        States of the part and ghosts.
    """
    return _links(leading_by_moves, (tables.successors, tables.costs), num_near)


def links_of_rows(tables: Outcomes, num_near: int) -> Links:
    """Return the links of outcomes of positive probability.

    Parameters
    ----------
    tables : Outcomes
    num_near : int
        States of the part and ghosts.
    """
    return _links(leading_by_outcomes, (tables,), num_near)


def by_links(links: Links) -> Spread:
    """Return what carries distances by links.

    Parameters
    ----------
    links : Links
    """
    return lambda sources, distances, queue: spread(*links, sources, distances, queue)


def _links(kernel: Callable[..., Any], tables: tuple[Any, ...], num_near: int) -> Links:
    ends = np.zeros(num_near + 1, dtype=np.int64)
    kernel(*tables, ends, np.empty(0, dtype=np.int32))
    leading = np.empty(int(add_up(ends)), dtype=np.int32)
    if len(leading):
        kernel(*tables, ends, leading)
    return Links(ends, leading)


def distances_across(
    processes: Processes,
    ghosts: Ghosts,
    terminal: NDArray[np.bool_],
    carry: Spread,
    checkpoint: Callable[[], None],
) -> NDArray[np.int32]:
    """Return the fewest steps from each state of the part to a terminal one, -1 without a way.

    Parameters
    ----------
    processes : Processes
    ghosts : Ghosts
    terminal : ndarray of bool, shape (S,)
    carry : callable
    checkpoint : callable
        Called in each round, by all processes.

    Returns
    -------
    ndarray of int32, shape (S,)
    """
    num_own = len(terminal)
    distances = np.full(num_own + len(ghosts), NO_WAY, dtype=np.int32)
    distances[:num_own][terminal] = 0
    queue = np.empty(num_own, dtype=np.int32)
    sources = np.flatnonzero(distances == 0).astype(np.int32)
    while processes.any(len(sources) > 0):
        checkpoint()
        carry(sources, distances, queue)
        found = ghosts.of_others(distances[:num_own])
        nearer = np.flatnonzero(found < distances[num_own:])
        distances[num_own:] = found
        nearer = nearer[np.argsort(found[nearer], kind="stable")]
        sources = (num_own + nearer).astype(np.int32)
    own = distances[:num_own]
    return np.where(own == NO_WAY, np.int32(-1), own)
