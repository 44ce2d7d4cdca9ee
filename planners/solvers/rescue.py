"""The rule that makes a method converge on any model: plain sweeps where it comes no further."""

from __future__ import annotations

import math

# Rounds in a row without progress, and the part of the best residual that counts as progress.
_PATIENCE, _PROGRESS = 8, 0.9


class Rescue:
    """Says when rounds are to be plain sweeps, which contract.

    Eight rounds in a row that do not bring the residual a tenth below the best one so far are
    followed by plain rounds: ``num_plain`` the first time, twice as many each time after that.
    Plain rounds do not count among the eight, but the residuals that they reach do.

    Parameters
    ----------
    num_plain : int
        Plain rounds of the first rescue.
    """

    def __init__(self, num_plain: int) -> None:
        self._best = math.inf
        self._num_stalled = self._num_left = 0
        self._num_plain = num_plain

    @property
    def plain(self) -> bool:
        """Whether the next round is to be plain."""
        return self._num_left > 0

    def see(self, residual: float) -> None:
        """Take note of the residual, in any norm but always the same, that a round ended with."""
        better = residual < _PROGRESS * self._best
        if better:
            self._best = residual
            self._num_stalled = 0
        if self._num_left > 0:
            self._num_left -= 1
        elif not better:
            self._num_stalled += 1
            if self._num_stalled >= _PATIENCE:
                self._num_left, self._num_stalled = self._num_plain, 0
                self._num_plain *= 2
