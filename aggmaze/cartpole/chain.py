"""The exact model of the chain of CartPole's cells."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import lru_cache

from aggmaze.cartpole.cells import Cells
from aggmaze.cartpole.physics import AXES, Physics
from aggmaze.cells.cells import check_counts
from aggmaze.cells.chain import BLOCK, Chain, Words, chain_of
from aggmaze.models.tabular import TabularMDP

#: Points of a cell along each axis.  With these and the default bins every axis changes cell about
#: as often as in CartPole, and position does at any velocity, the slowest included.
DEFAULT_SUB_POINTS = (24, 4, 3, 3)

# Points advanced at a time.
_BLOCK = BLOCK
_WORDS = Words(
    end="fails", unlike=", and no smaller limits of position and angle than the default ones"
)


def check_sub_points(sub_points: int | Iterable[int]) -> tuple[int, ...]:
    """Return the number of points along each axis, given one number for all or one for each.

    Raises
    ------
    ValueError, TypeError
        If that is not an integer of at least 1, or four of them.
    """
    return check_counts("sub_points", sub_points, AXES)


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


# Models cannot change, so environments made alike share theirs.
@lru_cache(maxsize=2)
def _chain(cells: Cells, physics: Physics, sub_points: tuple[int, ...]) -> Chain:
    return chain_of(cells, physics, sub_points, words=_WORDS, block=_BLOCK)
