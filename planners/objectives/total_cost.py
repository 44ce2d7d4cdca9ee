"""Total costs until the end: the least expected cost over the policies that surely end.

Which states have such a policy is found first, on the graph of what is possible
(`total_cost_region`); then the costs are computed and certified (`total_cost_proof`).
docs/certificate.md, "Total costs", has the proofs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.events import EventMDP
from aggmaze.models.model import TableModel
from aggmaze.models.moves import MoveMDP
from aggmaze.progress import stage
from planners.adapters import as_model
from planners.auto import choose
from planners.budget import Clock, OutOfTimeError
from planners.chain_costs import NoTotalError
from planners.iterate import first_told
from planners.kernels.compiling import interruptible
from planners.kernels.threads import check_num_threads
from planners.kernels.vectors import sup_norm
from planners.linear.elimination import MOST_STATES
from planners.objective import Discounted, TotalCost
from planners.objectives.discounted import solve_discounted
from planners.objectives.request import AUTO, Request, check_method_of
from planners.objectives.total_cost_iteration import PolicyIteration, ValueIteration
from planners.objectives.total_cost_moves import MovesIteration
from planners.objectives.total_cost_proof import Bounds, Proof, unknown
from planners.objectives.total_cost_region import Places, Region, find_region
from planners.record import Record
from planners.result import KEYBOARD, SolveResult, Status

# The methods for moves, and the options of each.
_OPTIONS = {
    "forest_policy_iteration": ("start", "num_sweeps"),
    "basin_aggregation": ("num_retraced",),
}

# What the discount misses 1 by, and the accuracy, of the first policy of a large model.
_GAP, _ROUGH = 1e-4, 1e-3

# Iterations before the first trial of a proof where nothing foretells what it comes to.
_FIRST_TRIAL = 16

#: The methods by name.
METHODS = {
    "policy_iteration": "exact evaluation and improvement in turn, from a policy that surely ends",
    "forest_policy_iteration": (
        "evaluation along the forest of likeliest moves, and sweeps; mazes whose steps cost "
        "something"
    ),
    "basin_aggregation": (
        "sweeps that retrace their rows, and aggregation by where the policy goes; open grids "
        "whose moves slip and whose steps cost something"
    ),
    "value_iteration": "sweeps that come down from the costs of a policy that surely ends",
}


def solve_total_cost(model_or_env: Any, objective: TotalCost, request: Request) -> SolveResult:
    """Return least total costs, a policy that surely ends, and what is certified of both.

    Parameters
    ----------
    model_or_env
        What `as_model` takes.
    objective : TotalCost
    request : Request
    """
    check_method_of(
        objective, METHODS, request.method, request.options, _OPTIONS.get(request.method, ())
    )
    if request.V0 is not None:
        raise ValueError(
            "V0 is not for total costs: they are computed from a policy that surely ends, which "
            "no values tell"
        )
    model = as_model(model_or_env)
    if isinstance(model, EventMDP):
        raise ValueError(
            "total costs need to know from where which states can be reached, so a table of "
            "transitions, which an EventMDP does not form; a small model has one as "
            "model.to_tabular()"
        )
    run = _Run(model, objective, request)
    try:
        return run.result()
    except NoTotalError as error:
        raise ValueError(
            f"the model is too much for float64: {error}; an end may be too unlikely, or costs too "
            "large"
        ) from error


class _Iteration(Protocol):
    """A method: makes one iteration after another, each with values that replace the last."""

    V: NDArray[np.float64]
    residual: float
    num_sweeps: int

    def step(self) -> bool:
        """Make an iteration; return whether further ones would change V by rounding only."""

    def policy(self) -> Callable[[], NDArray[np.int64] | None]:
        """Return what tells actions that go with V, shape (S,), -1 in ends.

        They are None where it is the best ones for V.
        """


class _Whole(NamedTuple):
    """What there is after a whole iteration, replaced by a single assignment."""

    V: NDArray[np.float64]
    policy: Callable[[], NDArray[np.int64] | None]
    num_iterations: int
    num_sweeps: int


class _Run:
    """One solve."""

    def __init__(self, model: TableModel, objective: TotalCost, request: Request) -> None:
        self._model, self._objective, self._request = model, objective, request
        self._clock = Clock(request.time_limit)
        self._num_threads = check_num_threads(request.num_threads)
        self._budget = request.budget()
        self._record = Record()
        self._num_certificate_sweeps = 0
        self._method, self._reason = request.method, ""
        # Nothing of it takes a time that matters beside the first policy's evaluation.
        with stage("from where ends are reached"):
            self._region = find_region(model, objective.cost_of_dead_ends)
        self._proof: Proof | None = None

    @functools.cached_property
    def _places(self) -> Places:
        return Places(self._region, num_threads=self._num_threads, checkpoint=self._clock.check)

    def result(self) -> SolveResult:
        """Iterate until the tolerance is met, and return what there is."""
        V = np.zeros(self._model.num_states)
        V[self._region.ends] = self._region.end_values[self._region.ends]
        whole = _Whole(V, self._first_policy, 0, 0)
        end: tuple[Status, str] | None = None
        bounds: Bounds | None = None
        try:
            try:
                with interruptible():
                    with stage("a first policy"):
                        iteration = self._begin()
                    while end is None:
                        before = iteration.num_sweeps
                        with first_told(whole.num_iterations, len(V)):
                            settled = iteration.step()
                        whole = _Whole(
                            iteration.V,
                            iteration.policy(),
                            whole.num_iterations + 1,
                            iteration.num_sweeps,
                        )
                        bounds = None
                        self._record.add(
                            self._clock.seconds(),
                            math.nan,
                            num_updates=(iteration.num_sweeps - before) * len(V),
                            residual=iteration.residual,
                        )
                        if settled or self._is_due(whole, iteration):
                            bounds = self._bounds(whole, thorough=True)
                            end = self._judged(whole, bounds, settled)
                        elif self._request.certify == "every":
                            bounds = self._bounds(whole, thorough=False)
                        if bounds is not None:
                            self._record.set_bound(bounds.bound)
                        if end is None:
                            end = self._budget.exhausted(
                                whole.num_iterations,
                                whole.num_sweeps * len(V),
                                self._record.seconds,
                            )
                        if self._request.callback is not None:
                            shown = functools.partial(self._listed_values, whole.V)
                            if self._request.callback(self._record.progress(shown)) and end is None:
                                end = Status.INTERRUPTED, "stopped by the callback"
            except KeyboardInterrupt:
                end = Status.INTERRUPTED, KEYBOARD
            except OutOfTimeError:
                end = self._budget.out_of_time()
            self._clock.lift()
            with interruptible():
                return self._result(whole, end, bounds)
        except KeyboardInterrupt:
            self._clock.lift()
            return self._result(whole, (Status.INTERRUPTED, KEYBOARD), bounds)

    def _begin(self) -> _Iteration:
        """Choose the method, and evaluate the first policy."""
        region, model = self._region, self._model
        self._proof = Proof(region, lambda: self._places, self._num_threads, self._clock.check)
        of_moves = (
            isinstance(model, MoveMDP)
            and bool(region.finite.all())
            and not region.end_values.any()
            and self._proof.multiple is not None
        )
        if self._method == AUTO:
            if of_moves and model.num_states > MOST_STATES:
                choice = choose(model, self._request.tol)
                certain = isinstance(model, MoveMDP) and model.p == 1.0
                of_basins = choice.method == "basin_aggregation" and not certain
                self._method = choice.method if of_basins else "forest_policy_iteration"
                self._reason = f"every step that cannot end costs something; {choice.reason}"
            else:
                self._method = "policy_iteration"
                self._reason = (
                    "exact, and proper from the first policy on, whatever the signs of the costs"
                )
        if self._method in _OPTIONS:
            if not of_moves:
                raise ValueError(
                    f"{self._method} is for total costs of a MoveMDP in which every state can "
                    "reach a terminal one and every step that cannot end there costs more than 0, "
                    "which is not so here: policy_iteration does without"
                )
            if self._method == "basin_aggregation" and isinstance(model, MoveMDP) and model.p == 1:
                raise ValueError(
                    "basin_aggregation is for total costs of moves that slip, p < 1: where they "
                    "are certain, its policies need not end; forest_policy_iteration is exact there"
                )
            return MovesIteration(
                region, self._method, self._request.options, self._num_threads, self._clock.check
            )
        if self._method == "value_iteration":
            return ValueIteration(self._places, self._places.breadth_first())
        return PolicyIteration(self._places, self._first_rows())

    def _first_rows(self) -> NDArray[np.int64]:
        """Return a proper policy of places; in large models one that is likely to be good.

        That is one for a discount near 1, but where it does not surely end.
        """
        region, places = self._region, self._places
        nearest = places.breadth_first()
        is_large = region.model.num_states > MOST_STATES
        if not is_large or places.labels is not None or region.end_values.any():
            return nearest
        if not region.finite.all():
            return nearest
        seconds = self._request.time_limit
        left = None if seconds is None else max(seconds - self._clock.seconds(), 1e-3)
        found = solve_discounted(
            region.table,
            Discounted(1.0 - _GAP),
            Request(tol=_ROUGH, time_limit=left, num_threads=self._num_threads),
        )
        if found.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        actions = np.zeros(region.model.num_states, dtype=np.int64)
        actions[: len(found.policy)] = found.policy
        rows = np.arange(len(actions)) * region.model.num_actions + actions
        rows[nearest < 0] = -1
        return np.where(places.arriving(rows), rows, nearest)

    def _is_due(self, whole: _Whole, iteration: _Iteration) -> bool:
        """Whether the tolerance may be met before the method has settled."""
        assert self._proof is not None
        if not self._budget.has_tolerance or isinstance(iteration, PolicyIteration):
            return False
        size = sup_norm(whole.V)
        if self._proof.multiple is None:
            count = whole.num_iterations
            return count >= _FIRST_TRIAL and count & (count - 1) == 0
        alpha, beta = self._proof.multiple
        return 4 * iteration.residual * (alpha * size + beta) <= self._budget.target(size)

    def _first_policy(self) -> NDArray[np.int64]:
        return self._places.policy(self._places.breadth_first())

    def _bounds(self, whole: _Whole, *, thorough: bool) -> Bounds:
        assert self._proof is not None
        goal = math.inf
        if self._budget.has_tolerance:
            goal = self._budget.target(sup_norm(whole.V))
        # What is infinite is no bound.
        with stage("certifying"), np.errstate(over="ignore", invalid="ignore"):
            bounds = self._proof.bounds(whole.V, whole.policy(), thorough=thorough, goal=goal)
        self._num_certificate_sweeps += bounds.num_sweeps
        return bounds

    def _judged(self, whole: _Whole, bounds: Bounds, settled: bool) -> tuple[Status, str] | None:
        """Return how the run ends where it does."""
        bound = bounds.bound
        if not self._budget.has_tolerance:
            if settled:
                return Status.COMPLETED, "there is nothing left to improve but rounding"
            return None
        target = self._budget.target(sup_norm(whole.V))
        if bound <= target:
            return Status.CONVERGED, f"bound {bound:.3g} <= {target:.3g}"
        if not settled:
            return None
        if bounds.spoiler >= 0:
            where = self._model.naming.state(bounds.spoiler)
            return Status.STOPPED_SHORT, (
                f"float64 cannot certify the costs: around {where} one can go on for very long, or "
                "for ever, at a mean cost that rounding hides, so that no bound "
                "below is had"
            )
        return Status.STOPPED_SHORT, (
            f"nothing is left to improve but rounding, and the bound, {bound:.3g}, does not meet "
            f"the tolerance, {target:.3g}"
        )

    def _values(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of all states, with what is infinite; V itself where nothing is."""
        finite = self._region.finite
        return V if finite.all() else np.where(finite, V, np.inf)

    def _listed_values(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._values(V)[: self._model.num_listed_states].copy()

    def _result(self, whole: _Whole, end: tuple[Status, str], bounds: Bounds | None) -> SolveResult:
        region, listed = self._region, self._model.num_listed_states
        if bounds is None:
            if whole.num_iterations > 0:
                bounds = self._bounds(whole, thorough=False)
            else:
                bounds = unknown(region, self._first_policy())
        values = self._values(whole.V)
        if any(np.may_share_memory(values, end) for end in (bounds.lower, bounds.upper)):
            values = values.copy()
        bound, policy_bound = bounds.bound, bounds.policy_bound
        status, message = end
        target = self._budget.target(sup_norm(whole.V))
        is_met = self._budget.has_tolerance and bound <= target
        if is_met and status is not Status.INTERRUPTED:
            # A status never contradicts a bound.
            status, message = Status.CONVERGED, f"bound {bound:.3g} <= {target:.3g}"
        self._record.settle(bound)
        policy = bounds.policy
        _add_any(region, policy)
        return SolveResult(
            values=values[:listed],
            policy=policy[:listed],
            bound=bound,
            policy_bound=policy_bound,
            status=status,
            message=message,
            method=self._method,
            reason=self._reason,
            objective=self._objective,
            num_iterations=whole.num_iterations,
            num_sweeps=whole.num_sweeps,
            num_updates=whole.num_sweeps * len(values),
            num_certificate_sweeps=self._num_certificate_sweeps,
            seconds=self._clock.seconds(),
            history=self._record.history(whole.num_iterations),
            ends=(bounds.lower[:listed], bounds.upper[:listed]),
            state_names=self._model.state_names,
            action_names=self._model.action_names,
            proof={"steps": bounds.steps[:listed], "layers": region.layers[:listed]},
        )


def _add_any(region: Region, policy: NDArray[np.int64]) -> None:
    """Write into a policy an available action where no policy surely ends, 0 in ends."""
    lost = ~region.finite
    policy[region.ends] = 0
    if lost.any():
        policy[lost] = np.argmax(region.model.action_mask[lost], axis=1)
    dead = region.ends & ~np.asarray(region.model.terminal)
    if dead.any():
        policy[dead] = np.argmax(region.model.action_mask[dead], axis=1)
