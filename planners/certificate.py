"""How far a computed V can be from the optimum V*: MacQueen's bounds, made safe in floating point.

Let r = TV - V on a real full sweep.  If V + d is such that T(V + d) <= V + d for a number d, then
V* <= V + d, and V* = TV* <= T(V + d).  With rows that sum to 1 within eta, and d >= 0,

    T(V + d) <= TV + gamma (1 + eta) d,

so d = max r / (1 - gamma (1 + eta)) will do, and V* <= TV + gamma (1 + eta) d; the lower bound is
the mirror image (MacQueen, "A modified dynamic programming method for Markovian decision problems",
1966).  For d < 0 the worst row sum is 1 - eta instead.  Terminal states have T = 0 whatever d is,
so where there are any, max r counts as at least 0 and min r as at most 0.

Where V is 0 in terminal states, only the others need to be shifted, so that the sums of rows are
those over states that are not terminal: gamma times the largest of them takes the place of gamma.

A sweep in place computes V'(s) = T_s(M) from a mixture M of V and V'.  Let d >= 0 bound V' - V;
then V' <= M + d, so T_s(V' + D) <= T_s(M) + gamma (d + D) <= V'(s) + D for any D from
gamma d / (1 - gamma) on, and V* <= V' + D.  That is the bound above on TV, with the range of r
reaching 0.  It holds too where a state's loops to itself are solved for, since V'(s) then is among
what M holds.

The computed TV is off by at most `Backups.rounding`, so the range of r is widened by that before
use, and the result by the roundings of this file.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planners.bellman import UNIT_ROUNDOFF, Backups, Sweep

# Each bound takes fewer than eight roundings.
_SLIP = 16 * UNIT_ROUNDOFF


@dataclass(frozen=True)
class Certificate:
    """``low <= V* - V <= high`` in every state, for some V.

    Parameters
    ----------
    low, high : float
    allowance : float
        What of the half width is due to the rounding of backups: no more sweeps remove it.
    """

    low: float
    high: float
    allowance: float

    @property
    def midpoint(self) -> float:
        """What to add to V for the smallest bound; 0 where there is none."""
        return (self.low + self.high) / 2 if np.isfinite(self.high - self.low) else 0.0

    @property
    def half_width(self) -> float:
        """Sup-norm bound of V + midpoint."""
        return (self.high - self.low) / 2

    @property
    def radius(self) -> float:
        """Sup-norm bound of V itself."""
        return max(-self.low, self.high, 0.0)


class Certifier:
    """Turns what a sweep saw into bounds on V*."""

    def __init__(self, backups: Backups) -> None:
        self.backups = backups
        self._gamma = backups.gamma
        terminal = backups.model.terminal
        self._some_terminal, self._all_terminal = bool(terminal.any()), bool(terminal.all())
        # gamma times the largest and the least sum of a row, and the largest over states that are
        # not terminal.
        gamma, error = backups.gamma, backups.row_error
        self._largest, self._least = gamma * (1 + error), gamma * (1 - error)
        self._largest_left = gamma * (min(1.0, backups.most_left) + error)

    def of_argument(self, sweep: Sweep, anchored: bool = False) -> Certificate:
        """Return the bounds on ``V* - V`` for the V that was swept.

        ``anchored`` says that V is 0 in terminal states.
        """
        if self._all_terminal:
            return Certificate(sweep.residual_low, sweep.residual_high, 0.0)
        residuals, rounding = self._residuals(sweep, anchored)
        low, high = (_amplified(residual, g) for residual, g in residuals)
        return self._widened(low, high, 0.0, rounding)

    def of_image(self, sweep: Sweep, anchored: bool = False) -> Certificate:
        """Return the bounds on ``V* - TV`` for the TV that the sweep computed.

        ``anchored`` says that V is 0 in terminal states.
        """
        if self._all_terminal:
            return Certificate(0.0, 0.0, 0.0)
        residuals, rounding = self._residuals(sweep, anchored)
        low, high = (g * _amplified(residual, g) for residual, g in residuals)
        # TV is computed, and so is its sum with the midpoint.
        size = max(-sweep.low, sweep.high) + max(-low, high)
        return self._widened(low, high, rounding + 4 * UNIT_ROUNDOFF * size, rounding)

    @property
    def least_tol(self) -> float:
        """The least bound, relative to max|V|, that rounding leaves any V."""
        share = self.backups.least_rounding + self._gamma * self.backups.row_error
        return share / (1 - min(self._largest_left, self._gamma))

    def size(self, sweep: Sweep, shift: float) -> float:
        """Return max |TV + shift| over the states that are not terminal, or less if unsure."""
        sizes = [0.0]
        # Terminal states have TV = 0, so that any other extreme is another state's.
        if not self._some_terminal or sweep.low < 0:
            sizes.append(abs(sweep.low + shift))
        if not self._some_terminal or sweep.high > 0:
            sizes.append(abs(sweep.high + shift))
        return max(sizes)

    def _residuals(
        self, sweep: Sweep, anchored: bool
    ) -> tuple[tuple[tuple[float, float], ...], float]:
        """Return the safe range of r, each end with gamma times its row sum, and the rounding."""
        max_value = max(-sweep.low, sweep.high) + sweep.residual
        # Rows that miss 1 are taken for rounded ones: the bounds cover those that were meant.
        missing = self._gamma * self.backups.row_error * max_value
        rounding = self.backups.rounding(max_value) + missing
        if sweep.in_place:
            rounding *= 2  # what solving for loops adds
        widen = rounding + UNIT_ROUNDOFF * sweep.residual
        low, high = sweep.residual_low - widen, sweep.residual_high + widen
        if self._some_terminal or sweep.in_place:
            low, high = min(low, 0.0), max(high, 0.0)
        largest = self._largest_left if anchored else self._largest
        ends = (
            (low, largest if low < 0 else self._least),
            (high, largest if high > 0 else self._least),
        )
        return ends, rounding

    def _widened(self, low: float, high: float, slack: float, rounding: float) -> Certificate:
        return Certificate(
            low - slack - _SLIP * abs(low),
            high + slack + _SLIP * abs(high),
            rounding / (1 - min(self._largest_left, self._gamma)),
        )


def _amplified(residual: float, g: float) -> float:
    """Return the d with ``d = residual + g d``; without limit where g, row sums in, reaches 1."""
    if residual == 0:
        return 0.0
    return residual / (1 - g) if g < 1 else float(np.copysign(np.inf, residual))
