"""Step sizes as functions of the step, and widths of bins as functions of the cycle."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import as_float, check_positive, is_real

StepSize = str | float | Callable[[int], float]
Epsilon = str | float | Sequence[float] | NDArray[np.float64] | Callable[[int], float]

#: The epsilon that `ShrinkingEpsilon` chooses.
SHRINK = "shrink"

_POWER = re.compile(r"t\^-(\d+(?:\.\d*)?|\.\d+)")


def step_size_rule(step_size: StepSize) -> Callable[[int], float]:
    """Return the step size of step t = 1, 2, ... as a function that checks its own results.

    Parameters
    ----------
    step_size : str, float or callable
        ``"t^-0.5"`` (any exponent), a constant, or a function of t.

    Raises
    ------
    ValueError
        If the text is not of that form, or (when it is called) if a step size is not in [0, 1].
    """
    rule: Callable[[int], float]
    if isinstance(step_size, str):
        match = _POWER.fullmatch(step_size.replace(" ", ""))
        if match is None:
            raise ValueError(
                f"step_size must look like 't^-0.5', or be a number or a function of t, got "
                f"{step_size!r}"
            )
        exponent = float(match[1])

        def rule(t: int) -> float:
            return 1.0 / math.sqrt(t) if exponent == 0.5 else float(t) ** -exponent

    elif callable(step_size):
        rule = step_size
    elif is_real(step_size):
        constant = as_float(step_size)

        def rule(t: int) -> float:
            return constant

    else:
        raise TypeError(
            f"step_size must be text such as 't^-0.5', a number or a function of t, got "
            f"{step_size!r}"
        )

    def checked(t: int) -> float:
        alpha = as_float(rule(t))
        if not 0.0 <= alpha <= 1.0:
            raise ValueError(f"step_size at t = {t} is {alpha}, must be in [0, 1]")
        return alpha

    if not callable(step_size):
        checked(1)
    return checked


def epsilon_rule(epsilon: Epsilon) -> Callable[[int], float] | None:
    """Return the width of bins in cycle c = 1, 2, ... as a function that checks its own results.

    Parameters
    ----------
    epsilon : str, float, sequence, ndarray or callable
        A constant, one width for each cycle (the last for all further ones), or a function of c;
        ``"shrink"`` depends on more than c, and None is returned for it.

    Raises
    ------
    ValueError
        If it is none of these, or (for a function, when it is called) a width is not positive and
        finite.
    """
    if isinstance(epsilon, str):
        if epsilon == SHRINK:
            return None
        raise ValueError(
            f"epsilon must be positive and finite, {SHRINK!r}, a sequence or a function of the "
            f"cycle, got {epsilon!r}"
        )
    if callable(epsilon):
        function = epsilon

        def rule(cycle: int) -> float:
            width = function(cycle)
            check_positive(f"epsilon of cycle {cycle}", width)
            return float(width)

        return rule
    if isinstance(epsilon, np.ndarray):
        epsilon = epsilon.tolist()
    if isinstance(epsilon, Sequence) and len(epsilon) > 0:
        for cycle, width in enumerate(epsilon, start=1):
            check_positive(f"epsilon of cycle {cycle}", width)
        widths = [float(width) for width in epsilon]
        return lambda cycle: widths[min(cycle, len(widths)) - 1]
    check_positive("epsilon", epsilon)
    constant = float(cast(float, epsilon))
    return lambda cycle: constant


class ShrinkingEpsilon:
    """Widths that follow the residual down until aggregation no longer pays, and then end.

    Let ``r`` be the range of the residual TV - V at the last sweep of a global phase, with 0 in it
    where there are terminal states: what the certificate amplifies to its bound.  Bins are
    ``share * r`` wide, 1/4 of r at first, and put no more than that much noise on V, so that a
    phase spoils little of what has been reached.  A phase has paid if ``r`` fell from one cycle to
    the next at least as far as the sweeps alone bring it: by ``gamma ** num_global``, and by the
    rate seen between the sweeps of the later cycle where that is faster.  Where it has not, the
    share is quartered.

    Phases end for good once the share has been quartered 26 times, or where bins would be more
    than ``most_bins``: mostly after three to five phases.  So all but finitely many cycles make
    ``r`` smaller by ``gamma ** num_global``, whatever the model and the step sizes are: r goes to
    0, and with it the bound r / (1 - gamma).

    Parameters
    ----------
    gamma : float
        Discount.
    num_global : int
        Sweeps in a global phase, at least 1.
    most_bins : float
        Number of bins beyond which aggregation does not pay.
    """

    # On mazes, terrain and random graphs, gamma .9 to .99, bound 1e-6 of max |V|, these take
    # between 0.95 and 1.11 times the sweeps of value iteration; a share that is halved takes up
    # to 1.14 times.  The sooner the phases end, the nearer to 1.
    _FIRST_SHARE = 0.25
    _CUT = 0.25
    _MOST_CUTS = 26

    def __init__(self, gamma: float, num_global: int, most_bins: float) -> None:
        self._num_global = num_global
        self._contraction = gamma ** float(min(num_global, 1 << 53))
        self._most_bins = most_bins
        self._num_cuts = 0
        self._last_residual = math.inf
        self._ended = False

    def width(self, residuals: Sequence[float], span: float) -> float | None:
        """Return the width after a global phase, or None where there is to be no aggregated phase.

        Parameters
        ----------
        residuals : sequence of float
            Range of the residual at the sweeps of the phase, with 0 in it where there are terminal
            states: at all of them, or at the first and the last.
        span : float
            ``max V - min V``.
        """
        residual = residuals[-1]
        if not self._ended and residual > self._fall(residuals) * self._last_residual:
            self._num_cuts += 1
        self._last_residual = residual
        width = self._FIRST_SHARE * self._CUT**self._num_cuts * residual
        too_many = width * self._most_bins < span
        self._ended |= too_many or self._num_cuts >= self._MOST_CUTS
        # Nothing is left to gain, or to tell apart.
        idle = not (0.0 < width < math.inf and span > 0.0)
        return None if self._ended or idle else width

    def state(self) -> dict[str, Any]:
        """Return what is known of the cycles so far."""
        return {
            "num_cuts": self._num_cuts,
            "last_residual": self._last_residual,
            "ended": self._ended,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from there.

        Parameters
        ----------
        state : dict
        """
        self._num_cuts, self._last_residual, self._ended = (
            state[name] for name in ("num_cuts", "last_residual", "ended")
        )

    def _fall(self, residuals: Sequence[float]) -> float:
        if self._num_global == 1 or not residuals[0] > 0.0:
            return self._contraction
        seen = (residuals[-1] / residuals[0]) ** (self._num_global / (self._num_global - 1))
        return min(self._contraction, seen)
