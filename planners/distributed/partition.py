"""Which states are whose, and how many states and entries PETSc can count.

The parts are PETSc's: consecutive, and of the same length but for one state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Kernels number the states of a part, and those that its rows lead to, in 32 bits.
MOST_NEAR = 2**31 - 1
#: States whose rows are read at once, divided by the actions: some 20 MB of moves.
_ROWS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Partition:
    """Consecutive parts of the states, one a process.

    Parameters
    ----------
    starts : ndarray of int64, shape (N + 1,)
        First state of each part, and at last the number of states.
    rank : int
        Whose part is one's own.
    """

    starts: NDArray[np.int64]
    rank: int

    @property
    def lo(self) -> int:
        """First state of the part."""
        return int(self.starts[self.rank])

    @property
    def hi(self) -> int:
        """First state behind the part."""
        return int(self.starts[self.rank + 1])

    @property
    def num_states(self) -> int:
        """Number of states of all parts."""
        return int(self.starts[-1])

    def __len__(self) -> int:
        return self.hi - self.lo

    def owners(self, states: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return whose each state is.

        Parameters
        ----------
        states : ndarray of int64
        """
        return np.searchsorted(self.starts, states, side="right") - 1


def partition_of(lengths: Sequence[int] | NDArray[np.int64], rank: int) -> Partition:
    """Return the parts of these lengths.

    Parameters
    ----------
    lengths : sequence of int, shape (N,)
    rank : int
    """
    return Partition(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]), rank)


def blocks(lo: int, hi: int, num_actions: int) -> Iterator[tuple[int, int]]:
    """Yield the ends of blocks of states, short enough to be read at once.

    Parameters
    ----------
    lo, hi : int
    num_actions : int
    """
    step = max(1, _ROWS_AT_ONCE // num_actions)
    for first in range(lo, hi, step):
        yield first, min(first + step, hi)


def check_sizes(num_states: int, num_processes: int, index_bits: int) -> None:
    """Refuse more states than PETSc can count, or than there is a process for.

    Parameters
    ----------
    num_states, num_processes : int
    index_bits : int
        Of PETSc's numbers.

    Raises
    ------
    OverflowError
        If there are too many states.
    ValueError
        If there are more processes than states.
    """
    check_index(num_states, index_bits, "states")
    if num_processes > num_states:
        raise ValueError(f"{num_processes} processes cannot share {num_states} states")


def check_index(count: int, index_bits: int, what: str) -> None:
    """Refuse a count beyond what PETSc's numbers hold.

    Parameters
    ----------
    count : int
    index_bits : int
    what : str
        What is counted.

    Raises
    ------
    OverflowError
    """
    if count > 2 ** (index_bits - 1) - 1:
        more = (
            "take a PETSc of 64-bit indices (Debian's python3-petsc4py-64-real, or one configured "
            "with --with-64-bit-indices); see docs/distributed.md"
            if index_bits == 32
            else "no PETSc counts further"
        )
        raise OverflowError(
            f"{count:,} {what} are more than the {2 ** (index_bits - 1) - 1:,} that a PETSc with "
            f"{index_bits}-bit indices, the one in use, can count: {more}"
        )


def check_near(num_own: int, num_ghosts: int) -> None:
    """Refuse a part that 32 bits cannot number, with the states of others that its rows lead to.

    Parameters
    ----------
    num_own, num_ghosts : int

    Raises
    ------
    OverflowError
    """
    if num_own + num_ghosts > MOST_NEAR:
        raise OverflowError(
            f"a process with {num_own:,} states, whose rows lead to {num_ghosts:,} of others, has "
            f"more than the {MOST_NEAR:,} that it can number: start more processes"
        )
