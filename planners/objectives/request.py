"""What is asked of a solve beside the model and the objective, and the checks all of them share."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import ArrayLike

from aggmaze.checks import (
    as_float,
    check_choice,
    check_integer,
    check_not_negative,
    check_time_limit,
    did_you_mean,
    shown,
)
from planners.budget import Budget
from planners.checkpoint import as_checkpoint
from planners.objective import Objective
from planners.record import Callback

#: The method that chooses among the others.
AUTO = "auto"

#: Relative accuracy of methods that run to a tolerance, where none is given.
DEFAULT_TOL = 1e-6


@dataclass(frozen=True, kw_only=True)
class Request:
    """The arguments of `planners.solve`, checked as far as they do not depend on the objective.

    Parameters
    ----------
    method, tol, atol, num_iterations, num_updates, time_limit, V0, seed, num_threads, certify, \
callback, checkpoint
        As for `planners.solve`.
    options : dict
        Those of the method, by their names.
    """

    method: str = AUTO
    tol: float | None = None
    atol: float | None = None
    num_iterations: int | None = None
    num_updates: int | None = None
    time_limit: float | None = None
    V0: ArrayLike | None = None
    seed: int = 0
    num_threads: int | None = None
    certify: str = "final"
    callback: Callback | None = None
    checkpoint: Any = None
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_limits(self.tol, self.atol, self.num_iterations, self.num_updates, self.time_limit)
        # Numbers of any type become Python's, which neither overflow nor are unknown to JSON.
        for name in ("tol", "atol", "time_limit"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else as_float(value))
        for name in ("num_iterations", "num_updates"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else operator.index(value))
        object.__setattr__(self, "seed", check_integer("seed", self.seed))
        check_choice("certify", self.certify, ("final", "every"))
        object.__setattr__(self, "checkpoint", as_checkpoint(self.checkpoint))

    @property
    def has_accuracy(self) -> bool:
        """Whether an accuracy is asked for."""
        return self.tol is not None or self.atol is not None

    def budget(self) -> Budget:
        """Return when a run ends that goes to `DEFAULT_TOL` where nothing else ends it."""
        tol = self.tol
        if not self.has_accuracy and self.num_iterations is None and self.num_updates is None:
            tol = DEFAULT_TOL
        return Budget(tol, self.atol, self.num_iterations, self.num_updates, self.time_limit)


def check_limits(
    tol: float | None,
    atol: float | None,
    num_iterations: int | None,
    num_updates: int | None,
    time_limit: float | None,
) -> None:
    """Refuse a tolerance or a limit that is out of range, by its name.

    Parameters
    ----------
    tol, atol, num_iterations, num_updates, time_limit
        As for `planners.solve`.

    Raises
    ------
    TypeError, ValueError
    """
    for name, value in (("tol", tol), ("atol", atol)):
        if value is not None:
            check_not_negative(name, value)
    if tol is not None and tol >= 1:
        raise ValueError(f"tol is relative to max|V| and must be below 1, got {shown(tol)}")
    for name, count in (("num_iterations", num_iterations), ("num_updates", num_updates)):
        if count is not None:
            check_integer(name, count, least=1)
    check_time_limit(time_limit)


def check_method_of(
    objective: Objective,
    methods: Iterable[str],
    name: str,
    options: dict[str, Any],
    allowed: Iterable[str] = (),
) -> None:
    """Refuse a method or an option that an objective does not have, naming those that it has.

    Parameters
    ----------
    objective : Objective
    methods : iterable of str
        Those it has, beside "auto".
    name : str
    options : dict
        By their names.
    allowed : iterable of str
        Names of the options that the method takes.

    Raises
    ------
    ValueError
        If there is no such method.
    TypeError
        If it takes no such option.
    """
    known = (AUTO, *methods)
    if not isinstance(name, str) or name not in known:
        raise ValueError(
            f"method must be one of {', '.join(known)} for {type(objective).__name__}, got "
            f"{name!r}{did_you_mean(name, known)}"
        )
    allowed = list(allowed)
    for option in options:
        if option not in allowed:
            takes = f"takes {', '.join(allowed)}" if allowed else "takes no options of its own"
            raise TypeError(
                f"{name} does not take {option!r} for {type(objective).__name__}; it {takes}"
                f"{did_you_mean(option, allowed)}"
            )
