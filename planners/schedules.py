"""Step sizes as functions of the step."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from aggmaze.checks import is_real

StepSize = str | float | Callable[[int], float]

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
        constant = float(step_size)

        def rule(t: int) -> float:
            return constant

    else:
        raise TypeError(
            f"step_size must be text such as 't^-0.5', a number or a function of t, got "
            f"{step_size!r}"
        )

    def checked(t: int) -> float:
        alpha = float(rule(t))
        if not 0.0 <= alpha <= 1.0:
            raise ValueError(f"step_size at t = {t} is {alpha}, must be in [0, 1]")
        return alpha

    if not callable(step_size):
        checked(1)
    return checked
