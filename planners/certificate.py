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
`Certifier.check` looks whether it is.

A sweep in place computes V'(s) = T_s(M) + e_s from a mixture M of V and V', with a rounding
|e_s| <= e.  Let d >= 0 bound V' - V; then V' <= M + d, so

    T_s(V' + D) <= T_s(M) + gamma (d + D) <= V'(s) + e + gamma (d + D) <= V'(s) + D

for any D from (gamma d + e) / (1 - gamma) on, and V* <= V' + D.  It holds too where a state's loops
to itself are solved for, since V'(s) then is among what M holds.

The computed TV is off by at most `Engine.rounding`, so the range of r is widened by that before
use, and the result by the roundings of this file.  Kernels skip what is no number when they look
for extremes, so only `Certifier.check`, which looks at the values themselves, certifies a result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planners.engine import Engine, Reading, Sweep
from planners.kernels.pieces import UNIT_ROUNDOFF

#: No cost-to-go may be larger: sums of a few such numbers and of costs do not overflow.
LARGEST_VALUE = 1e300
#: (1 - gamma) times this bounds costs and first values: methods add up whole horizons of them.
LARGEST_START = 1e285

# So many times the least tolerance can be certified, where costs are not much larger than values.
_SURELY = 8

# Each bound takes fewer than eight roundings.
_SLIP = 16 * UNIT_ROUNDOFF


@dataclass(frozen=True)
class Certificate:
    """``low <= V* - V <= high`` in every state, for some V.

    Parameters
    ----------
    low, high : float
        -inf and +inf where nothing is known.
    allowance : float
        What of the half width is due to the rounding of backups: no more sweeps remove it.
    """

    low: float
    high: float
    allowance: float

    def __post_init__(self) -> None:
        # NaN would pass for small in comparisons, and so would an empty interval.
        if not self.low <= self.high:
            object.__setattr__(self, "low", -math.inf)
            object.__setattr__(self, "high", math.inf)

    @property
    def midpoint(self) -> float:
        """What to add to V for the smallest bound; 0 where there is none."""
        return (self.low + self.high) / 2 if math.isfinite(self.high - self.low) else 0.0

    @property
    def half_width(self) -> float:
        """Sup-norm bound of V + midpoint."""
        return (self.high - self.low) / 2

    @property
    def radius(self) -> float:
        """Sup-norm bound of V itself."""
        return max(-self.low, self.high, 0.0)


@dataclass(frozen=True)
class Check:
    """What a full sweep, made for the purpose, says of values V, whoever computed them.

    Parameters
    ----------
    certificate : Certificate
        Bounds on ``V* - V``.
    size : float
        Bounds |V|.
    rounding : float
        Bounds the error of each backup.
    largest : float
        gamma times the largest sum of a row.
    reading : Reading, optional
        The greedy policy, as far as the sweep noted it.
    """

    certificate: Certificate
    size: float
    rounding: float
    largest: float
    reading: Reading | None = field(default=None, repr=False, compare=False)

    def bound(self, shift: float = 0.0) -> float:
        """Return the sup-norm bound of V + shift, as it is rounded."""
        low, high = self.certificate.low, self.certificate.high
        if shift == 0.0:
            return self.certificate.radius
        moved = max(high - shift, shift - low)
        return moved + 2 * UNIT_ROUNDOFF * (moved + self.size + abs(shift))

    def policy_bound(self, slack: float) -> float:
        """Return what a policy loses at most whose backups, as computed, exceed TV by ``slack``.

        ``T_pi V <= TV + x`` with ``x = slack + 2 rounding`` gives ``V_pi <= V + d`` for
        ``d = high + x / (1 - gamma sigma)``, sigma the largest sum of a row.
        """
        if not (self.largest < 1 and self.size < math.inf):
            return math.inf
        certificate = self.certificate
        lost = (slack + 2 * self.rounding) / (1 - self.largest)
        return (certificate.high - certificate.low + lost) * (1 + _SLIP)


class Certifier:
    """Turns what a sweep saw into bounds on V*."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._gamma = engine.gamma
        self._terminal = np.flatnonzero(engine.terminal)
        num_terminal = engine.count(engine.terminal)
        self._some_terminal, self._all_terminal = (
            num_terminal > 0,
            num_terminal == engine.num_states,
        )
        # gamma times the largest and the least sum of a row, and the largest over states that are
        # not terminal.
        gamma, error = engine.gamma, engine.row_error
        self._largest, self._least = gamma * (1 + error), gamma * (1 - error)
        self._largest_left = gamma * (min(1.0, engine.most_left) + error)

    def of_argument(self, sweep: Sweep, anchored: bool = False) -> Certificate:
        """Return the bounds on ``V* - V`` for the V that was swept.

        Parameters
        ----------
        sweep : Sweep
            Not in place.
        anchored : bool
            Whether V is 0 in terminal states.
        """
        if self._all_terminal:
            return Certificate(sweep.residual_low, sweep.residual_high, 0.0)
        rounding = self._rounding(sweep)
        (low, of_low), (high, of_high) = self._ends(sweep, anchored, rounding)
        allowance = self._allowance(rounding, anchored)
        return _widened(_amplified(low, of_low), _amplified(high, of_high), allowance)

    def of_image(self, sweep: Sweep, anchored: bool = False) -> Certificate:
        """Return the bounds on ``V* - TV`` for the TV that the sweep computed.

        Parameters
        ----------
        sweep : Sweep
            In place or not.
        anchored : bool
            Whether V is 0 in terminal states.
        """
        if self._all_terminal:
            return Certificate(0.0, 0.0, 0.0)
        rounding = self._rounding(sweep)
        (low, of_low), (high, of_high) = self._ends(sweep, anchored, rounding)
        # The rounding of a sweep in place recurs in every state that the next are computed from.
        allowance = self._allowance(rounding, anchored)
        lost = allowance if sweep.in_place else rounding
        low = of_low * _amplified(low, of_low) - lost
        high = of_high * _amplified(high, of_high) + lost
        # The sum of TV with the midpoint is rounded too.
        slack = 4 * UNIT_ROUNDOFF * (max(-sweep.low, sweep.high) + max(-low, high))
        return _widened(low - slack, high + slack, allowance)

    def check(self, V: NDArray[np.float64], image: NDArray[np.float64]) -> Check:
        """Sweep values and return what that says of them.

        What is no number, or too large to compute with, leaves nothing known.

        Parameters
        ----------
        V : ndarray of float, shape (S,)
            Whoever computed them.
        image : ndarray of float, shape (S,)
            Receives TV.
        """
        sweep, reading = self.engine.read(V, image)
        anchored = self.engine.count(V[self._terminal] != 0.0) == 0
        certificate = self.of_argument(sweep, anchored)
        size, image_size = self.engine.sup_norm(V), self.engine.sup_norm(image)
        if not (size <= LARGEST_VALUE and image_size <= LARGEST_VALUE):
            certificate = Certificate(-math.inf, math.inf, math.inf)
            size = math.inf
        return Check(
            certificate,
            size,
            self._rounding(sweep),
            self._row_sum(anchored),
            reading,
        )

    @property
    def least_tol(self) -> float:
        """The least bound, relative to max|V|, that rounding leaves any V; inf where none is."""
        if not self._largest_left < 1:
            return math.inf
        share = self.engine.least_rounding + self._gamma * self.engine.row_error
        return share / (1 - self._largest_left)

    def attainable(self, tol: float) -> float:
        """Return ``tol``, or what is surely certifiable if that is larger; inf where nothing is."""
        return max(tol, _SURELY * self.least_tol)

    def check_attainable(self, tol: float | None) -> None:
        """Refuse a tolerance that no values meet; None stands for one that is absolute."""
        gamma, least = self.engine.gamma, self.least_tol
        if tol is not None and tol < least:
            raise ValueError(
                f"tol = {tol!r} is below what float64 can certify for this model at gamma = "
                f"{gamma!r}; the smallest possible is {least:.1e} (of max|V|)"
            )
        if least == math.inf or (tol is not None and tol >= 1):
            raise ValueError(
                f"float64 can certify nothing for this model at gamma = {gamma!r}, so near to 1; "
                "ask for num_iterations or num_updates, without a tolerance"
            )

    def size(self, sweep: Sweep, shift: float) -> float:
        """Return max |TV + shift| over the states that are not terminal, or less if unsure.

        Parameters
        ----------
        sweep : Sweep
            That made TV.
        shift : float
            In the unit of the costs.
        """
        sizes = [0.0]
        # Terminal states have TV = 0, so that any other extreme is another state's.
        if not self._some_terminal or sweep.low < 0:
            sizes.append(abs(sweep.low + shift))
        if not self._some_terminal or sweep.high > 0:
            sizes.append(abs(sweep.high + shift))
        return max(sizes)

    def _rounding(self, sweep: Sweep) -> float:
        """Return a bound on the error of each backup of a sweep."""
        max_value = sweep.max_value
        # Rows that miss 1 are taken for rounded ones: the bounds cover those that were meant.
        missing = self._gamma * self.engine.row_error * max_value
        rounding = self.engine.rounding(max_value) + missing
        # Twice that is what solving for loops adds.
        return 2 * rounding if sweep.in_place else rounding

    def _allowance(self, rounding: float, anchored: bool) -> float:
        """Return what the rounding of backups adds to each end, however small the residual."""
        return _amplified(rounding, self._row_sum(anchored))

    def _row_sum(self, anchored: bool) -> float:
        """Return gamma times the largest sum of a row, over the states that a shift moves."""
        return self._largest_left if anchored else self._largest

    def _ends(
        self, sweep: Sweep, anchored: bool, rounding: float
    ) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the safe range of r, each end with gamma times its row sum.

        Of a sweep in place it is the range of V' - V, as stored, with 0 in it.
        """
        widen = UNIT_ROUNDOFF * sweep.residual
        if not sweep.in_place:
            widen += rounding
        low, high = sweep.residual_low - widen, sweep.residual_high + widen
        if self._some_terminal or sweep.in_place:
            low, high = min(low, 0.0), max(high, 0.0)
        largest = self._row_sum(anchored)
        return (
            (low, largest if low < 0 else self._least),
            (high, largest if high > 0 else self._least),
        )


def _widened(low: float, high: float, allowance: float) -> Certificate:
    return Certificate(low - _SLIP * abs(low), high + _SLIP * abs(high), allowance)


def _amplified(residual: float, g: float) -> float:
    """Return the d with ``d = residual + g d``; without limit where g, row sums in, reaches 1."""
    if residual == 0:
        return 0.0
    return residual / (1 - g) if g < 1 else math.copysign(math.inf, residual)
