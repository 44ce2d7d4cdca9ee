"""What is asked of a model: which sum of costs is to be least.

Costs are minimised under each of them.  `planners.objectives` has how each is answered.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from aggmaze.arrays import readonly
from aggmaze.checks import as_float, check_discount, check_gamma, check_integer, shown

#: What `TotalCost` says of states from which no terminal state is reached for certain.
INFINITE = "infinite"


@dataclass(frozen=True)
class Discounted:
    """The discounted cost, ``E sum_t gamma**t c_t``, without end.

    Parameters
    ----------
    gamma : float
        Discount in [0, 1).
    """

    gamma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", check_gamma(self.gamma))

    def __str__(self) -> str:
        return f"gamma {self.gamma:g}"


@dataclass(frozen=True)
class TotalCost:
    """The cost until a terminal state is reached: a stochastic shortest path.

    ``V*(s)`` is the least expected sum of costs over the policies that reach a terminal state from
    ``s`` with probability 1, as in Bertsekas and Tsitsiklis, "An analysis of stochastic shortest
    path problems" (1991); where there is none it is infinite.  Policies that never end count for
    nothing, be they ever so cheap (Bertsekas and Yu, "Stochastic shortest path problems under weak
    conditions", 2016).

    Parameters
    ----------
    dead_ends : "infinite" or float
        A number is the cost at which the episode ends on entering a state from which no terminal
        state can be reached at all.  All other states then have a policy that ends.
    """

    dead_ends: float | str = INFINITE

    def __post_init__(self) -> None:
        value = self.dead_ends
        if isinstance(value, str) and value == INFINITE:
            return
        number = as_float(value)
        if not math.isfinite(number):
            raise ValueError(
                f"dead_ends must be {INFINITE!r} or the cost of ending there, a finite number, "
                f"got {shown(value)}"
            )
        object.__setattr__(self, "dead_ends", number)

    @property
    def gamma(self) -> float:
        """The weight of each step beside the one before."""
        return 1.0

    @property
    def cost_of_dead_ends(self) -> float | None:
        """The cost of ending in a state that no way leads out of; None where it is infinite."""
        return None if isinstance(self.dead_ends, str) else self.dead_ends

    def __str__(self) -> str:
        cost = self.cost_of_dead_ends
        return "total cost" + ("" if cost is None else f", dead ends at {cost:g}")


@dataclass(frozen=True, eq=False)
class FiniteHorizon:
    """The cost of a number of steps, ``E sum_{t < T} gamma**t c_t + gamma**T terminal_costs``.

    Parameters
    ----------
    steps : int
        The horizon T, at least 1.
    gamma : float
        Discount in [0, 1].
    terminal_costs : array_like, shape (S,), optional
        What it costs to be in each state after the last step; 0 by default.  Terminal states, where
        the episode ended before, have 0.
    stages : callable, optional
        ``stages(t)``, for ``t`` from 0 to T - 1, returns the costs of step t, shape (S, A), or a
        model with them, of the same states and actions.  By default each step is as the model says.
        Of a `MoveMDP` they are costs of moves, chosen or slipped into.
    """

    steps: int
    gamma: float = 1.0
    terminal_costs: ArrayLike | None = None
    stages: Callable[[int], Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", check_integer("steps", self.steps, least=1))
        object.__setattr__(self, "gamma", check_discount(self.gamma))
        if self.terminal_costs is not None:
            costs = np.array(self.terminal_costs, dtype=np.float64)
            if costs.ndim != 1:
                raise ValueError(
                    f"terminal_costs must have shape (S,), one a state, got {costs.shape}"
                )
            bad = np.flatnonzero(~np.isfinite(costs))
            if len(bad):
                raise ValueError(f"terminal_costs[{bad[0]}] = {costs[bad[0]]} must be finite")
            object.__setattr__(self, "terminal_costs", readonly(costs))
        if self.stages is not None and not callable(self.stages):
            raise TypeError(
                f"stages must be a function of the step, got {type(self.stages).__name__}"
            )

    def __str__(self) -> str:
        discount = "" if self.gamma == 1 else f", gamma {self.gamma:g}"
        return f"a horizon of {self.steps:,} step{'s' * (self.steps != 1)}{discount}"


@dataclass(frozen=True)
class AverageCost:
    """The mean cost of a step in the long run, ``lim E (1/n) sum_{t < n} c_t``.

    Terminal states go on for ever at no cost.
    """

    @property
    def gamma(self) -> float:
        """The weight of each step beside the one before."""
        return 1.0

    def __str__(self) -> str:
        return "average cost"


Objective = Discounted | TotalCost | FiniteHorizon | AverageCost


def as_objective(gamma: float | None = None, objective: Any = None) -> Objective:
    """Return what is asked, said as a discount or as an objective.

    Parameters
    ----------
    gamma : float, optional
        Discount in [0, 1]; 1 stands for `TotalCost`.
    objective : Objective, optional

    Raises
    ------
    TypeError
        If neither is given, or the objective is none.
    ValueError
        If both are given, or gamma is out of range.
    """
    if objective is None:
        if gamma is None:
            raise TypeError(
                "say what is asked: gamma=, a discount (1 for total costs), or objective=, one of "
                "TotalCost(), FiniteHorizon(steps), AverageCost() and Discounted(gamma)"
            )
        discount = check_discount(gamma)
        return TotalCost() if discount == 1 else Discounted(discount)
    if not isinstance(objective, Objective):
        hint = ""
        if isinstance(objective, type) and issubclass(objective, Objective):
            hint = f": say {objective.__name__}(...), with parentheses"
        raise TypeError(
            "objective must be a Discounted, TotalCost, FiniteHorizon or AverageCost, got "
            f"{objective!r}{hint}"
        )
    if gamma is not None:
        raise ValueError(
            f"gamma={shown(gamma)} and objective={objective!r} are two answers to one question: "
            "give one of them; Discounted and FiniteHorizon have a gamma of their own"
        )
    return objective
