"""The rule that makes a method converge on any model: plain sweeps where it comes no further."""

from __future__ import annotations

import math

# Rounds in a row without progress, and the part of an earlier residual that counts as progress.
_PATIENCE, _PROGRESS = 8, 0.9


class Rescue:
    """Says when rounds are to be plain sweeps, which contract.

    Eight rounds in a row without progress are followed by plain rounds: ``num_plain`` the first
    time, twice as many each time after that.  A round makes progress if its residual is a tenth
    below a mark: by default the residual of the last round that did, so that many small steps add
    up.

    Parameters
    ----------
    num_plain : int
        Plain rounds of the first rescue.
    below_best : bool
        Whether the mark is the least residual of all rounds instead: small steps then lower it, and
        are not progress.
    plain_count : bool
        Whether plain rounds without progress are among the eight in a row, too: if there are eight
        of them, one other round without progress is enough for the next rescue.
    """

    def __init__(
        self, num_plain: int, *, below_best: bool = False, plain_count: bool = False
    ) -> None:
        self._num_plain = num_plain
        self._below_best = below_best
        self._plain_count = plain_count
        self._mark = math.inf
        self._num_stalled = self._num_left = 0

    @property
    def plain(self) -> bool:
        """Whether the next round is to be plain."""
        return self._num_left > 0

    def see(self, residual: float) -> None:
        """Take note of the residual that a round ended with, always in the same norm."""
        progress = residual < _PROGRESS * self._mark
        if progress:
            self._num_stalled = 0
        elif self._plain_count or not self.plain:
            self._num_stalled += 1
        if progress or (self._below_best and residual < self._mark):
            self._mark = residual
        if self.plain:
            self._num_left -= 1
        elif self._num_stalled >= _PATIENCE:
            self._num_left, self._num_stalled = self._num_plain, 0
            self._num_plain *= 2
