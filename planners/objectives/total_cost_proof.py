"""Bounds on total costs, verified by sweeps in difference form.

docs/certificate.md, "Total costs", has the proofs.

*Below.*  Any L that is 0 in terminal states, with ``c + P L - L >= 0`` for every action that may
count, is at most what any policy that surely ends costs.  *Above.*  A policy with N >= 0 and
``P N - N <= -1/2`` surely ends, and costs at most U if ``c + P U - U <= 0`` for its actions.

Both are found from an approximate V: ``L = V - d N'`` and ``U = V + d N``, N' falling by 1 with
every action that is near the best.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.arrays import pieces, readonly
from aggmaze.models.moves import MoveMDP
from planners.chain_costs import NoTotalError, normalised, total_costs_of_chain
from planners.inequalities import Inequalities
from planners.kernels import improvement
from planners.kernels.pieces import UNIT_ROUNDOFF
from planners.kernels.tables import Moves, moves_of, outcomes_of
from planners.kernels.threads import over_blocks
from planners.kernels.vectors import sup_norm
from planners.objectives.total_cost_iteration import PolicyIteration, UndecidedError
from planners.objectives.total_cost_region import Places, Region

# What is missing of an inequality is made up for this many times over, then as often again.
_AMPLE, _MOST_TRIALS = 2.0, 6
# What is nothing beside a step.
_LITTLE = 1e-5
# How often the actions are added that N' was not made for.
_MOST_ADDED = 60


@dataclass(frozen=True, eq=False)
class Bounds:
    """What is certified.

    Parameters
    ----------
    lower, upper : ndarray of float, shape (S,)
        Of V*, and ``upper`` of the policy's costs too; +inf where no policy surely ends.
    policy : ndarray of int64, shape (S,)
        -1 in ends and where no policy surely ends.
    steps : ndarray of float, shape (S,)
        N: it falls by at least 1/2 with each step of the policy.  0 in ends, and where no policy
        surely ends.
    spoiler : int
        A state whose actions no finite bound below could be had for; -1 where there is one.
    num_sweeps : int
        Sweeps that were made.
    bound, policy_bound : float
        Of the error of V, and of what the policy costs more than V*, where that is finite.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    policy: NDArray[np.int64]
    steps: NDArray[np.float64]
    spoiler: int
    num_sweeps: int
    bound: float
    policy_bound: float


def _within(
    V: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    finite: NDArray[np.bool_],
) -> tuple[float, float]:
    """Return the bounds of the error of V and of what the policy loses, rounded up."""
    apart = np.maximum(_farthest(upper, V, finite), _farthest(V, lower, finite))
    return _rounded_up(float(apart)), _rounded_up(_farthest(upper, lower, finite))


def _farthest(
    above: NDArray[np.float64], below: NDArray[np.float64], where: NDArray[np.bool_]
) -> float:
    """Return the largest difference of two vectors in some states, NaN where it is no number."""
    found = 0.0
    # Piece by piece, which takes half the time.
    for piece in pieces(len(above)):
        high, low, some = above[piece], below[piece], where[piece]
        if not some.all():
            high, low = high[some], low[some]
        # What is no number is not passed over.
        found = float(np.maximum(found, (high - low).max(initial=0.0)))
    return found


def unknown(region: Region, policy: NDArray[np.int64]) -> Bounds:
    """Return what is certified before any value is known.

    Parameters
    ----------
    region : Region
    policy : ndarray of int64, shape (S,)
    """
    known = np.where(region.ends, region.end_values, np.inf)
    lower = np.where(region.inside, -np.inf, known)
    bound = math.inf if region.inside.any() else 0.0
    return Bounds(lower, known, policy, np.zeros_like(known), -1, 0, bound, bound)


def _more(amount: float, trial: int, V: NDArray[np.float64]) -> float:
    """Return what to try after an amount was not enough."""
    if trial == 0:
        return _AMPLE * amount
    # Less than that is lost where V less a multiple of N is rounded.
    return _AMPLE * max(amount, 2 * UNIT_ROUNDOFF * sup_norm(V))


def _ample(alpha: float, beta: float) -> tuple[float, float] | None:
    """Return a little more than two numbers, for what is rounded; None if they overflow."""
    if not (alpha < math.inf and beta < math.inf):
        return None
    return 1.0001 * alpha, 1.0001 * beta + 0.001


def _rounded_up(largest: float) -> float:
    """Return what the largest of some differences is at most, as they are rounded."""
    return largest if largest == 0.0 else math.nextafter(largest, math.inf)


class Proof:
    """Proves bounds of values in a region.

    Parameters
    ----------
    region : Region
    places : callable
        Returns the `Places` of the region; not called for moves that each cost something, which
        need no table.
    num_threads : int
    checkpoint : callable
    """

    def __init__(
        self,
        region: Region,
        places: Callable[[], Places],
        num_threads: int,
        checkpoint: Callable[[], None],
    ) -> None:
        self._region, self._places = region, places
        self._num_threads = num_threads
        self._inequalities = Inequalities(region.model, num_threads, checkpoint)
        self._checkpoint = checkpoint
        self._usable = region.usable
        # Where alpha and beta are had straight from the tables of moves, all of which they cover.
        self._moves: MoveMDP | None = None
        if isinstance(region.model, MoveMDP) and region.finite.all():
            self._moves = region.model
        self._are_certain = self._moves is not None and self._moves.p == 1.0
        self.num_sweeps = 0
        self.multiple = self._multiple()

    def _multiple(self) -> tuple[float, float] | None:
        """Return alpha and beta, not negative, with ``alpha c + beta q >= 1`` for all actions.

        q is the probability that the step ends.  None where there are none.
        """
        region = self._region
        if region.end_values.any():
            return None
        ends = readonly(region.ends)
        if self._moves is not None:
            tables = moves_of(self._moves)
            if self._are_certain:
                return self._multiple_of_certain_moves(tables, ends)
            costs = self._over_states(improvement.least_cost_of_moves, tables, ends)
        else:
            places = self._places()
            outcomes = outcomes_of(region.table)
            usable = places.usable
            costs = self._over_states(improvement.least_cost_of_outcomes, outcomes, usable, ends)
        least = min(costs)
        if not least > 0.0:
            return None
        alpha = 0.0 if least == math.inf else 1.0 / least
        if self._moves is not None:
            missing = self._over_states(improvement.most_missing_of_moves, tables, ends, alpha)
        else:
            missing = self._over_states(
                improvement.most_missing_of_outcomes, outcomes, usable, ends, alpha
            )
        return _ample(alpha, max(missing))

    def _multiple_of_certain_moves(
        self, tables: Moves, ends: NDArray[np.bool_]
    ) -> tuple[float, float] | None:
        """Return the same in one pass, since each move ends surely or not at all."""
        found = self._over_states(improvement.least_costs_of_certain_moves, tables, ends)
        going_on, ending = (min(costs) for costs in zip(*found, strict=True))
        if not going_on > 0.0:
            return None
        alpha = 0.0 if going_on == math.inf else 1.0 / going_on
        return _ample(alpha, max(0.0, 1.0 - alpha * ending) if ending < math.inf else 0.0)

    def bounds(
        self,
        V: NDArray[np.float64],
        policy: NDArray[np.int64] | None,
        *,
        thorough: bool = True,
        goal: float = math.inf,
    ) -> Bounds:
        """Return what can be certified of values and a policy.

        Parameters
        ----------
        V : ndarray of float, shape (S,)
            The values of ends, and 0 where no policy surely ends.
        policy : ndarray of int64, shape (S,), optional
            A usable action in each state, -1 in ends and where no policy surely ends; by default
            the first best one for V.
        thorough : bool
            Whether a bound below may take policy iterations.
        goal : float
            A distance of the bounds from V that is small enough.
        """
        region = self._region
        begun = self.num_sweeps
        N = self._of_multiple(V)
        most = None
        if policy is None:
            best = self._inequalities.best(V, usable=self._usable)
            self.num_sweeps += 1
            first = best.least.value, best.least.state
            policy = best.actions.astype(np.int64)
            policy[~region.inside] = -1
            most = best.most
        else:
            first = self._least(V)
        goal = goal if thorough else math.inf
        lower, spoiler = self._lower(V, N, policy, first, thorough, goal)
        steps, upper = self._upper(V, N, policy, most, goal)
        lower, upper = self._completed(lower, V), self._completed(upper, V)
        within = _within(V, lower, upper, region.finite)
        num_sweeps = self.num_sweeps - begun
        return Bounds(lower, upper, policy, steps, spoiler, num_sweeps, *within)

    def _completed(self, found: NDArray[np.float64], V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a bound with what it is in ends and where costs are infinite, for reading."""
        region = self._region
        if found is V and region.finite.all():
            # Where V is its own bound no copy is made: it has the values of ends.
            return readonly(V)
        found = found.copy() if found is V else found
        np.copyto(found, region.end_values, where=region.ends)
        np.copyto(found, np.inf, where=~region.finite)
        return readonly(found)

    def _of_multiple(self, V: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return ``alpha V + beta``, 0 in ends; None where that does not do."""
        if self.multiple is None:
            return None
        alpha, beta = self.multiple
        # In place: of large models each more array takes longer than what is done with it.
        N = alpha * V
        N += beta
        outside = ~self._region.inside
        N[outside] = 0.0
        low = float(N.min())
        if low < 0.0:
            # More does no harm, and N is not negative then.
            N -= low
            N[outside] = 0.0
        return N

    def _least(self, V: NDArray[np.float64]) -> tuple[float, int]:
        self.num_sweeps += 1
        found = self._inequalities.least(V, usable=self._usable)
        return found.value, found.state

    def _lower(
        self,
        V: NDArray[np.float64],
        N: NDArray[np.float64] | None,
        policy: NDArray[np.int64],
        first: tuple[float, int],
        thorough: bool,
        goal: float,
    ) -> tuple[NDArray[np.float64], int]:
        """Return L, and a state that there is none for, or -1; ``first`` was said of V.

        N is what `_of_multiple` returns for V, also of the next.
        """
        value, state = first
        if value >= 0.0:
            return V, -1
        if not value > -math.inf:
            return np.full_like(V, -np.inf), state
        found: NDArray[np.float64] | None = None
        if N is not None and self.multiple is not None:
            found, state = self._lowered(V, N, -value, self.multiple[0])
            if found is not None and _farthest(V, found, self._region.finite) <= goal:
                return found, -1
        # A step that costs next to nothing makes the multiple large.
        if thorough and (N is None or goal < math.inf):
            other, state = self._lowered_near_the_best(V, policy, -value)
            if other is not None and (found is None or other.sum() > found.sum()):
                found = other
        return (np.full_like(V, -np.inf), state) if found is None else (found, -1)

    def _lowered(
        self, V: NDArray[np.float64], N: NDArray[np.float64], missing: float, alpha: float = 0.0
    ) -> tuple[NDArray[np.float64] | None, int]:
        """Return ``V - d N`` that satisfies all inequalities, or None and a state that does not.

        ``alpha`` is that of N where it is a multiple of V.
        """
        amount, state = _AMPLE * missing, -1
        for trial in range(_MOST_TRIALS):
            with np.errstate(over="ignore"):  # what is infinite is no bound
                L = amount / (1.0 + alpha * amount) * N
                np.subtract(V, L, out=L)
            value, state = self._least(L)
            if value >= 0.0:
                return L, -1
            if not value > -math.inf:
                break
            amount = _more(amount, trial, V)
        return None, state

    def _lowered_near_the_best(
        self, V: NDArray[np.float64], policy: NDArray[np.int64], missing: float
    ) -> tuple[NDArray[np.float64] | None, int]:
        """Return the same with an N' for the actions that are near the best."""
        region, places = self._region, self._places()
        num_states, num_actions = places.usable.shape
        near = np.zeros((num_states, num_actions), dtype=bool)
        states = np.flatnonzero(policy >= 0)
        near[states, policy[states]] = True
        near &= places.usable
        places.mark_below(V, missing, near)
        rows = self._exits(places, policy)
        minus_steps = np.full((num_states, num_actions), -1.0)
        state = -1
        for _ in range(_MOST_ADDED):
            self._checkpoint()
            longest = Places(
                region,
                minus_steps,
                readonly(near),
                places,
                self._num_threads,
                self._checkpoint,
            )
            try:
                iteration = PolicyIteration(longest, rows, strict=True)
                while not iteration.step():
                    pass
            except UndecidedError as error:
                return None, error.state
            except NoTotalError:
                return None, state
            rows, N = iteration.rows, -iteration.V
            amount = _AMPLE * missing
            L = V - amount * N
            value, state = self._least(L)
            if value >= 0.0:
                return L, -1
            if not value > -math.inf:
                return None, state
            if places.mark_below(L, 0.0, near) == 0:
                # All that is missing is the rounding of L itself.
                return self._lowered(V, N, 2 * missing)
        return None, state

    def _exits(self, places: Places, policy: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the policy of places that a policy of states amounts to."""
        states = np.flatnonzero(policy >= 0)
        states = states[places.usable[states, policy[states]]][::-1]
        rows = np.full(places.count, -1, dtype=np.int64)
        numbers = states * places.usable.shape[1] + policy[states]
        rows[states if places.labels is None else places.labels[states]] = numbers
        return rows

    def _upper(
        self,
        V: NDArray[np.float64],
        N: NDArray[np.float64] | None,
        policy: NDArray[np.int64],
        most: float | None,
        goal: float,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return N and U; infinite where there is no proof.

        ``most`` is the most that V lacks of the inequalities of the policy, where that is known.
        """
        if most is None:
            self.num_sweeps += 1
            most = self._inequalities.most(policy, V).value
        if N is not None and (self._is_counted(V, N, most) or self._counts_steps(N, policy)):
            U = self._raised(V, N, policy, most)
            if U is not None and _farthest(U, V, self._region.finite) <= goal:
                return N, U
        N = self._steps(policy)
        if N is None or not self._counts_steps(N, policy):
            return np.zeros_like(V), np.full_like(V, np.inf)
        U = self._raised(V, N, policy, most)
        return N, np.full_like(V, np.inf) if U is None else U

    def _is_counted(self, V: NDArray[np.float64], N: NDArray[np.float64], most: float) -> bool:
        """Whether ``N = alpha V + beta`` falls enough because of what V lacks at most.

        So it does by nearly 1 where moves are certain, whose costs are as they are given, as long
        as that and the rounding of N are small.  Alpha and beta must be those of all available
        moves: where some state has no policy that ends, they leave out moves within a place, which
        a policy may take.
        """
        if self.multiple is None or not self._are_certain:
            return False
        alpha, beta = self.multiple
        size = alpha * sup_norm(V) + beta + sup_norm(N)
        return bool(alpha * most <= _LITTLE and UNIT_ROUNDOFF * size <= _LITTLE)

    def _raised(
        self,
        V: NDArray[np.float64],
        N: NDArray[np.float64],
        policy: NDArray[np.int64],
        most: float,
    ) -> NDArray[np.float64] | None:
        """Return ``V + d N`` that satisfies the inequalities of a policy, None if that fails."""
        U, amount = V, 0.0
        for trial in range(_MOST_TRIALS):
            value = most
            if trial > 0:
                self.num_sweeps += 1
                value = self._inequalities.most(policy, U).value
            if value <= 0.0:
                return U
            if not value < math.inf:
                break
            amount = _more(max(amount, value), trial, V)
            with np.errstate(over="ignore"):  # what is infinite is no bound
                U = amount * N
                U += V
        return None

    def _counts_steps(self, N: NDArray[np.float64], policy: NDArray[np.int64]) -> bool:
        """Whether N falls by 1/2 at least with each step of the policy."""
        if not float(N.min()) >= 0.0:
            return False
        self.num_sweeps += 1
        return bool(self._inequalities.most(policy, N, -0.5, with_costs=False).value <= 0.0)

    def _steps(self, policy: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Return the expected steps of a policy, or None where they are too many for float64."""
        table, stays = self._region.table, policy < 0
        rows = np.where(stays, 0, np.arange(len(policy)) * table.num_actions + policy)
        try:
            found = total_costs_of_chain(
                normalised(table.transitions[rows]), np.ones(len(policy)), stays, self._checkpoint
            )
        except NoTotalError:
            return None
        return found if sup_norm(found) < math.inf else None

    def _over_states(self, kernel: Callable[..., Any], *arguments: Any) -> list[Any]:
        self._checkpoint()
        return over_blocks(
            lambda lo, hi: kernel(*arguments, lo, hi),
            self._region.model.num_states,
            self._num_threads,
            self._usable.size,
        )
