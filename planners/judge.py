"""What is known of the values of a run, and whether that ends it.

Steps make claims: the bounds that their own sweeps give.  A claim that meets the tolerance is
checked by a sweep of the values, which has the last word, and from which the policy is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP
from planners.budget import Budget
from planners.certificate import Certificate, Certifier, Check
from planners.engine import Engine
from planners.kernels.pieces import UNIT_ROUNDOFF
from planners.linear.elimination import MOST_STATES, eliminate
from planners.policies import policy_model
from planners.result import History, Status
from planners.solvers.base import Step

# After so many sweeps the greedy policy of a small model is first evaluated exactly; and where a
# policy's value ends a run although the tolerance is not met, in allowances for rounding.
_FIRST_CLOSING, _EXACT = 4096, 2.5
# Policies that are evaluated, if need be, before a run is given up.
_LAST_POLICIES = 16
# How much larger V is than the values where it is on the way to them.
_FAR = 4


@dataclass(frozen=True)
class Run:
    """What the loop leaves to `planners.solve` to make a result of.

    Parameters
    ----------
    V : ndarray of float, shape (S,)
        What the method came to.
    values : ndarray of float, shape (S,)
        V, or the middle of the interval that is certified around it.
    check : Check
        Of V, by a sweep of the loop's own.
    bound : float
        Of ``values``.
    status : Status
    message : str
    num_iterations, num_sweeps, num_updates, num_certificate_sweeps : int
    labels : ndarray of int, shape (S,), optional
    history : History
    seconds_before : float
        Taken before the run was gone on with from a checkpoint.
    """

    V: NDArray[np.float64]
    values: NDArray[np.float64]
    check: Check
    bound: float
    status: Status
    message: str
    num_iterations: int
    num_sweeps: int
    num_updates: int
    num_certificate_sweeps: int
    labels: NDArray[np.int32] | None
    history: History
    seconds_before: float = 0.0


class Whole(NamedTuple):
    """All that is known after a whole iteration, replaced by a single assignment.

    Whatever is interrupted, by Ctrl-C at any instruction too, the last one of these stands.
    """

    V: NDArray[np.float64]  # where ``deferred`` is set, room for it
    spare: NDArray[np.float64]  # for the next V
    deferred: Callable[[NDArray[np.float64]], None] | None
    claim: Certificate | None  # what the step's own sweep says of V
    labels: Callable[[], NDArray[np.int32]] | None
    num_iterations: int
    num_sweeps: int
    num_updates: int

    def values(self) -> NDArray[np.float64]:
        """Return the V of the iteration."""
        if self.deferred is not None:
            self.deferred(self.V)
        return self.V

    def after(self, step: Step, claim: Certificate | None) -> Whole:
        """Return what there is after one more iteration.

        Parameters
        ----------
        step : Step
            What the iteration did.
        claim : Certificate, optional
            What its sweep says of the new V.
        """
        new = (self.spare, self.V) if step.deferred is None else (self.V, self.spare)
        return Whole(
            *new,
            step.deferred,
            claim,
            step.labels or self.labels,
            self.num_iterations + 1,
            self.num_sweeps + step.num_sweeps,
            self.num_updates + step.num_updates,
        )


class Judge:
    """Certifies what steps return, and says when a run ends.

    Parameters
    ----------
    certifier : Certifier
    budget : Budget
    defines_values : bool
        Whether the values are the method's own V even where it runs to a tolerance.
    """

    def __init__(self, certifier: Certifier, budget: Budget, *, defines_values: bool) -> None:
        #: Sweeps made to certify.
        self.num_sweeps = 0
        self._certifier = certifier
        self._budget = budget
        self._recentres = budget.has_tolerance and not defines_values
        # Such values may be other than 0 in terminal states.
        self._anchored = not defines_values
        self._terminal = certifier.engine.terminal
        self._num_states = certifier.engine.num_states
        self._floor = _Floor(certifier.engine)
        self._checked: tuple[Whole, Check] | None = None
        # Updates when something was last known of V.
        self._updates_known = 0
        self._next_closing = _FIRST_CLOSING

    def state(self) -> dict[str, Any]:
        """Return what was learned of the run so far, as numbers."""
        return {
            "num_sweeps": self.num_sweeps,
            "updates_known": self._updates_known,
            "next_closing": self._next_closing,
            "floor": self._floor.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on with a run of which that was learned.

        Parameters
        ----------
        state : dict
        """
        self.num_sweeps = state["num_sweeps"]
        self._updates_known = state["updates_known"]
        self._next_closing = state["next_closing"]
        self._floor.restore(state["floor"])

    def claim(self, step: Step, out: NDArray[np.float64]) -> Certificate | None:
        """Return what the step's own sweep says of the new V, if it made that V.

        Parameters
        ----------
        step : Step
        out : ndarray of float, shape (S,)
            What the step was given to write V into.
        """
        sweep = step.sweep
        if sweep is None or step.deferred is not None or sweep.image is not out:
            return None
        return self._certifier.of_image(sweep, self._anchored)

    def bound(self, certificate: Certificate | None) -> float:
        """Return the bound of the values that a certificate gives; NaN for none."""
        if certificate is None:
            return math.nan
        return certificate.half_width if self._recentres else certificate.radius

    def is_due(self, whole: Whole) -> bool:
        """Whether a sweep to certify is no more work than what was done since the last."""
        work = whole.num_updates - self._updates_known
        return self._budget.has_tolerance and work >= self._num_states

    def checked_bound(self, whole: Whole) -> float:
        """Return the bound of the values by a sweep made for it."""
        return self._bound_and_shift(self._check(whole))[0]

    def has_checked(self, whole: Whole) -> bool:
        """Whether a sweep was made of this V: then its bound, and its midpoint, are the ones."""
        return self._found(whole) is not None

    def end(self, step: Step, whole: Whole) -> tuple[Status, str] | None:
        """Return how the run ends here, if its accuracy does end it.

        Parameters
        ----------
        step : Step
            Of the last iteration.
        whole : Whole
            What there is after it.
        """
        if not self._budget.has_tolerance:
            return None
        claim = whole.claim
        if claim is None and not self.has_checked(whole):
            return None
        self._updates_known = whole.num_updates
        if claim is not None and step.sweep is not None:
            bound = self.bound(claim)
            shift = claim.midpoint if self._recentres else 0.0
            size = self._certifier.size(step.sweep, shift)
            extent = max(-step.sweep.low, step.sweep.high)
            allowance = claim.allowance
            low, high = step.sweep.residual_range(with_zero=step.sweep.in_place)
            width = high - low
        else:
            check = self._check(whole)
            bound, shift = self._bound_and_shift(check)
            size, extent = self._size(whole, shift), check.size
            allowance = check.certificate.allowance
            width = check.certificate.high - check.certificate.low
        if bound <= self._budget.target(size) or not bound < math.inf:
            # The claim is good enough, or there is something wrong with the values.
            check = self._check(whole)
            if not check.size < math.inf:
                return OVERFLOW
            if claim is not None:
                _confirm(claim, check.certificate)
            bound, shift = self._bound_and_shift(check)
            end = self._met(bound, self._size(whole, shift))
            if end is not None:
                return end
        # What Algorithm 3 defines stays where it is for other reasons.
        if self._recentres and (
            step.settled or self._floor.reached(width, bound, allowance, size, extent)
        ):
            return self._no_better(bound, size)
        return None

    def closes(self, whole: Whole, end: tuple[Status, str] | None) -> bool:
        """Whether it is time to end a run by policy iteration, if that is short.

        Where to evaluate a policy exactly is always affordable, a run that goes on and on after its
        policy is right, or nearly so, is ended by the value of that policy, or of what it is
        improved to: at numbers of sweeps each twice the last.  And one that is about to give up may
        do so for no more than the roundings of a V that is far larger than V*.

        Parameters
        ----------
        whole : Whole
        end : tuple of Status and str, optional
            How the run is about to end.
        """
        engine = self._certifier.engine
        # What an `EventMDP` has in no more states may be too much for a table; and a model by rows
        # is treated alike by one process and by several.
        has_table = engine.parts.size == 1 and isinstance(engine.model, MoveMDP | TabularMDP)
        if not (self._recentres and has_table and self._num_states <= MOST_STATES):
            return False
        if end is None:
            return whole.num_sweeps >= self._next_closing
        return end[0] == Status.STOPPED_SHORT and end is not OVERFLOW

    def closed(
        self, whole: Whole, end: tuple[Status, str] | None
    ) -> tuple[tuple[Status, str], Whole] | None:
        """Return how the exact value of a policy ends the run, and that value, if one does.

        The first policy is greedy for V.  So many are looked at that elimination, S^3 / 3, takes no
        larger share of the work than the sweeps have taken.

        Parameters
        ----------
        whole : Whole
        end : tuple of Status and str, optional
            How the run is about to end.
        """
        engine, checked = self._certifier.engine, self._checked
        num_policies = 1 + 3 * engine.work * self._next_closing // self._num_states**3
        if end is not None:
            num_policies = max(num_policies, _LAST_POLICIES)
        self._next_closing *= 2
        policy = np.full(self._num_states, -1, dtype=np.int32)
        V = whole.values()
        for _ in range(num_policies):
            self.num_sweeps += 1
            last = policy.copy()
            engine.sweep(V, whole.spare, policy)
            if np.array_equal(policy, last):
                break
            value = eliminate(policy_model(engine.model, policy), engine.gamma)
            if value is None:
                break
            V = value
            found = whole._replace(V=V, deferred=None, claim=None)
            check = self._check(found)
            bound, shift = self._bound_and_shift(check)
            end = self._met(bound, self._size(found, shift))
            if end is not None:
                return (end[0], f"{end[1]}, by the exact value of a policy"), found
            if bound <= _EXACT * check.certificate.allowance:
                return self._no_better(bound, check.size), found
        self._checked = checked
        return None

    def values(self, whole: Whole) -> NDArray[np.float64]:
        """Return what the method's values are now, as a new array."""
        V = whole.values()
        if not self._recentres:
            return V.copy()
        check = self._found(whole)
        if check is not None:
            return self._moved(V, check.certificate.midpoint)
        return V.copy() if whole.claim is None else self._moved(V, whole.claim.midpoint)

    def run(self, whole: Whole, end: tuple[Status, str], history: History) -> Run:
        """Return the outcome, certified by a sweep of the values, whoever computed them.

        Parameters
        ----------
        whole : Whole
        end : tuple of Status and str
            How the run ended.
        history : History
        """
        check = self._check(whole)
        bound, shift = self._bound_and_shift(check)
        V = whole.V  # formed by the check
        values = self._moved(V, shift)
        if end[0] != Status.INTERRUPTED:
            end = self._last_word(end, bound, check, values)
        return Run(
            V,
            values,
            check,
            bound,
            *end,
            whole.num_iterations,
            whole.num_sweeps,
            whole.num_updates,
            self.num_sweeps,
            None if whole.labels is None else whole.labels(),
            history,
        )

    def _last_word(
        self, end: tuple[Status, str], bound: float, check: Check, values: NDArray[np.float64]
    ) -> tuple[Status, str]:
        """Return how a run ends, given the bound of its result."""
        if not check.size < math.inf:
            return OVERFLOW
        if not self._budget.has_tolerance:
            return end
        met = self._met(bound, self._certifier.engine.sup_norm(values))
        if met is None and end[0] == Status.CONVERGED:
            raise AssertionError(f"converged with a bound of {bound!r}")
        return end if end[0] == Status.CONVERGED or met is None else met

    def _found(self, whole: Whole) -> Check | None:
        """Return what the sweep of this V said, if one was made."""
        checked = self._checked
        return checked[1] if checked is not None and checked[0] is whole else None

    def _check(self, whole: Whole) -> Check:
        check = self._found(whole)
        if check is None:
            self.num_sweeps += 1
            check = self._certifier.check(whole.values(), whole.spare)
            self._checked = whole, check
        return check

    def _bound_and_shift(self, check: Check) -> tuple[float, float]:
        shift = check.certificate.midpoint if self._recentres else 0.0
        return check.bound(shift), shift

    def _moved(self, V: NDArray[np.float64], shift: float) -> NDArray[np.float64]:
        values = V.copy()
        if shift != 0.0:
            values += shift
            values[self._terminal] = 0.0
        return values

    def _size(self, whole: Whole, shift: float) -> float:
        return self._certifier.engine.sup_norm(self._moved(whole.V, shift))

    def _met(self, bound: float, size: float) -> tuple[Status, str] | None:
        target = self._budget.target(size)
        if bound <= target:
            return Status.CONVERGED, f"bound {bound:.3g} <= {target:.3g}"
        return None

    def _no_better(self, bound: float, size: float) -> tuple[Status, str]:
        return (
            Status.STOPPED_SHORT,
            f"float64 can certify no better than {_relative(bound, size)} here, "
            f"{_relative(self._budget.target(size), size)} was asked for",
        )


#: How a run ends whose values are no numbers to compute with.
OVERFLOW = (
    Status.STOPPED_SHORT,
    "values are beyond what float64 can hold, or no numbers any more",
)


def _confirm(claim: Certificate, found: Certificate) -> None:
    """Refuse a claim that a sweep of the values refutes."""
    # Both intervals hold V* - V.
    if claim.low > found.high or claim.high < found.low:
        raise RuntimeError(
            f"the solver's sweep says that V* - V is in [{claim.low!r}, {claim.high!r}], a sweep "
            f"of its V that it is in [{found.low!r}, {found.high!r}]: V was changed after the "
            "solver's sweep"
        )


class _Floor:
    """Tells when rounding keeps the bound from getting smaller."""

    def __init__(self, engine: Engine) -> None:
        gamma = engine.gamma
        # In exact arithmetic this many sweeps halve the range of the residual: where they do not,
        # rounding may have the better of it.
        self._window = max(1, math.ceil(math.log(0.5) / math.log(gamma))) if gamma > 0 else 1
        # With a rounding d a sweep leaves at most gamma r + 4 d of a range r.  If over .9 r is left
        # after a window, r <= 5 d / (1 - gamma), and the bound 2.5 allowances / (1 - gamma).
        # A method that stays above that has reasons of its own.
        self._level = 8 / (1 - gamma)
        self._max_cost = engine.max_cost
        # Least range before this window, and in it.
        self._before = self._least = math.inf
        self._count = 0
        self._first_size: float | None = None

    def state(self) -> list[float | None]:
        """Return what was taken note of."""
        return [self._before, self._least, self._count, self._first_size]

    def restore(self, state: list[Any]) -> None:
        """Go on from there."""
        self._before, self._least, self._count, self._first_size = state

    def reached(
        self, width: float, bound: float, allowance: float, size: float, extent: float
    ) -> bool:
        """Take note of the range of a residual, and return whether no smaller bound will come.

        ``extent`` is max |V|, ``size`` that of the values, which the midpoint is added to.
        """
        if self._first_size is None:
            self._first_size = size
        self._least = min(self._least, width)
        self._count += 1
        stalls = False
        if self._count == self._window:
            stalls = self._least >= 0.9 * self._before and bound <= self._level * allowance
            self._before = min(self._before, self._least)
            self._least, self._count = math.inf, 0
        # Far below the last digit of any value, and nothing known of how large V* is: where it is
        # 0, no relative accuracy is reached.
        negligible = UNIT_ROUNDOFF**2 * min(self._first_size, self._max_cost)
        # A V that is still far from its values shrinks, and what rounding does to it.
        shrinks = extent > _FAR * (size + bound)
        limited = not shrinks and (stalls or bound <= 1.1 * allowance)
        return limited or size <= bound <= negligible


def _relative(bound: float, max_value: float) -> str:
    if max_value > 0:
        return f"{bound / max_value:.2g} of max|V| ({bound:.2g})"
    return f"{bound:.2g}"
