"""The gains of the components of a model: relative value iteration, and policy iteration.

A component is a set of states that no action leaves and in which some policy leads from wherever
one is to where costs are least, so that the least mean cost is one number.  Components lie side by
side and are solved together.  Whatever h is,

    min (c + D_a h)  <=  gain  <=  max_s min_a (c + D_a h)(s)

over the states of a component (Odoni, "On finding the maximal gain for Markov decision processes",
Operations Research 17, 1969).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.models.model import TableModel
from planners.bellman import local_engine
from planners.budget import Clock
from planners.engine import Engine, LocalEngine
from planners.linear.policy_matrix import PolicyMatrix
from planners.linear.renewal import (
    RenewalEquations,
    lead_to,
    likely_states,
    recurrent_classes,
    rows_without_ends,
)
from planners.objective import Discounted
from planners.objectives.discounted import solve_discounted
from planners.objectives.request import Request
from planners.policies import distances_to
from planners.result import Status

# When sweeps are first looked at for how fast they close the interval, by which part of it, how
# many more are too many, and how many are not counted.
_FIRST_LOOK, _RELATIVE, _MOST_SWEEPS, _COUNTLESS = 16, 1e-6, 400, 1e9
# What discounts miss 1 by from whose policies policy iteration starts; rounds that do not narrow
# the interval to so much of the last that it may make, and with the last of them.
_GAPS = (1e-5, 1e-7)
_PATIENCE, _LAST_PATIENCE, _ENOUGH = 2, 50, 0.8
# Sweeps that need not narrow it to so much: after policy iteration, and by themselves.
_FEW_IDLE, _MOST_IDLE, _ENOUGH_OF_MANY = 2000, 20_000, 0.99
# How much of the way to Th value iteration goes: less than all, so that nothing swings for ever
# (Schweitzer, "Iterative solution of the functional equations of undiscounted Markov renewal
# programming", Journal of Mathematical Analysis and Applications 34, 1971).
_DAMPING = 0.9


@dataclass(frozen=True)
class Components:
    """Components of a model, or copies of them, side by side.

    Parameters
    ----------
    model : TableModel
        Without terminal states; no action leaves a component.
    labels : ndarray of int32, shape (S,)
        Component of each state; states of one stand together, in the order of the components.
    starts : ndarray of int64, shape (K,)
        The first state of each.
    """

    model: TableModel
    labels: NDArray[np.int32]
    starts: NDArray[np.int64]

    @property
    def count(self) -> int:
        """Number K of components."""
        return len(self.starts)

    def ranges(self, vector: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """Return the least and the largest entry of a vector in each component, shape (K,) each."""
        low = np.minimum.reduceat(vector, self.starts)
        return low, np.maximum.reduceat(vector, self.starts)


def whole(model: TableModel) -> Components:
    """Return a model that is one component."""
    return Components(model, np.zeros(model.num_states, dtype=np.int32), np.zeros(1, np.int64))


@dataclass(frozen=True)
class State:
    """What is known after an iteration.

    Parameters
    ----------
    bias : ndarray of float, shape (S,)
        The h that the interval is from; its owner goes on to use the array.
    low, high : ndarray of float, shape (K,)
        Extremes of ``Th - h`` in each component, as computed.
    residual : float
        Sup norm of ``Th - h``.
    num_sweeps : int
        Made in this iteration.
    is_settled : bool
        Whether policy iteration has nothing left to improve.
    """

    bias: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    residual: float
    num_sweeps: int
    is_settled: bool = False


def relative_value_iteration(
    engine: Engine, bias: NDArray[np.float64], components: Components | None
) -> Iterator[State]:
    """Iterate ``h + t (Th - h)``, t below 1, less what its middle has grown by.

    Parameters
    ----------
    engine : Engine
        Without a discount.
    bias : ndarray of float, shape (S,)
        Where to start.
    components : Components, optional
        None where the model is taken for one.
    """
    h, image = bias.copy(), np.empty_like(bias)
    while True:
        sweep = engine.sweep(h, image)
        image -= h
        if components is None or components.count == 1:
            low, high = np.array([sweep.residual_low]), np.array([sweep.residual_high])
        else:
            low, high = components.ranges(image)
        yield State(h, low, high, sweep.residual, 1)
        middle = 0.5 * low + 0.5 * high
        image -= middle[0] if components is None else middle[components.labels]
        image *= _DAMPING
        h += image
        # So that it does not grow.
        if components is None or components.count == 1:
            h -= h[0]
        else:
            h -= h[components.starts][components.labels]


class Iteration:
    """The iterations of a method on components.

    Parameters
    ----------
    method : {"auto", "value_iteration", "policy_iteration"}
    components : Components
    num_threads : int
    clock : Clock
    time_limit : float, optional
        Of the clock.
    """

    def __init__(
        self,
        method: str,
        components: Components,
        num_threads: int,
        clock: Clock,
        time_limit: float | None = None,
    ) -> None:
        #: The method, and why it was chosen.
        self.method, self.reason = method, ""
        self._components = components
        self._num_threads = num_threads
        self._clock, self._time_limit = clock, time_limit
        self._howard = PolicyIteration(components, num_threads, clock.check)
        self.engine = self._howard.engine

    def run(self, bias: NDArray[np.float64]) -> Iterator[State]:
        """Iterate until nothing more is to be expected.

        Parameters
        ----------
        bias : ndarray of float, shape (S,)
            Where to start.
        """
        if self.method == "value_iteration":
            yield from until_stalled(self._values(bias))
            return
        if self.method == "auto":
            self.method = "value_iteration"
            self.reason = "sweeps close the interval fast here"
            widths: list[float] = []
            for state in self._values(bias):
                yield state
                widths.append(_width(state))
                count = len(widths)
                if count >= _FIRST_LOOK and count & (count - 1) == 0:
                    needed = _sweeps_needed(widths)
                    if needed > _MOST_SWEEPS:
                        expected = f"about {needed:,.0f}" if needed < _COUNTLESS else "countless"
                        self.reason = f"value iteration would take {expected} sweeps"
                        break
            bias = state.bias.copy()
            self.method = "policy_iteration"
        best: State | None = None
        for gap in _GAPS:
            patience = _LAST_PATIENCE if gap == _GAPS[-1] else _PATIENCE
            for state in self._improved(bias, gap, patience):
                yield state
                if best is None or _width(state) < _width(best):
                    best = replace(state, bias=state.bias.copy())
                if state.is_settled:
                    return
            assert best is not None
            bias = best.bias
        yield from until_stalled(self._values(bias), _FEW_IDLE)

    def _values(self, bias: NDArray[np.float64]) -> Iterator[State]:
        return relative_value_iteration(self.engine, bias, self._components)

    def _improved(self, bias: NDArray[np.float64], gap: float, patience: int) -> Iterator[State]:
        """Improve policies, from one that is good where costs are discounted a little.

        Parameters
        ----------
        bias : ndarray of float, shape (S,)
        gap : float
            1 less the discount.
        patience : int
            Rounds that may bring next to nothing.
        """
        components, engine = self._components, self.engine
        h, made = self._discounted(bias, gap)
        image = np.empty_like(h)
        policy = np.empty(len(h), dtype=np.int32)
        sweep = engine.sweep(h, image, policy)
        low, high = components.ranges(image - h)
        state = State(h, low, high, sweep.residual, made + 1)
        yield state
        last = math.inf
        for state in self._howard.run(policy, h):
            yield state
            width = _width(state)
            patience -= 0 if width <= _ENOUGH * last else 1
            if patience < 0 and not state.is_settled:
                return
            last = min(last, width)

    def _discounted(self, bias: NDArray[np.float64], gap: float) -> tuple[NDArray[np.float64], int]:
        """Return relative values at a discount near 1, and the sweeps that took."""
        left = None
        if self._time_limit is not None:
            left = max(self._time_limit - self._clock.seconds(), 1e-3)
        request = Request(num_threads=self._num_threads, time_limit=left, V0=bias)
        found = solve_discounted(self._components.model, Discounted(1.0 - gap), request)
        if found.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        self._clock.check()
        first = found.values[self._components.starts][self._components.labels]
        return found.values - first, found.num_sweeps + found.num_certificate_sweeps


def _width(state: State) -> float:
    """Return the widest interval of a component."""
    return float((state.high - state.low).max())


def _sweeps_needed(widths: list[float]) -> float:
    """Return how many more sweeps it may take until the interval is a `_RELATIVE` part of now."""
    now, before = widths[-1], widths[len(widths) // 2]
    if now == 0.0:
        return math.inf  # and yet more is asked for
    rate = (now / before) ** (1 / (len(widths) - 1 - len(widths) // 2)) if before > 0 else 1.0
    return math.log(_RELATIVE) / math.log(rate) if rate < 1.0 else math.inf


def until_stalled(states: Iterator[State], most_idle: int = _MOST_IDLE) -> Iterator[State]:
    """Hand on iterations until the interval has not become narrower for long.

    Parameters
    ----------
    states : iterator of State
    most_idle : int
        How many iterations that is.
    """
    at, seen = math.inf, 0
    for state in states:
        yield state
        width = _width(state)
        if width <= _ENOUGH_OF_MANY * at:
            at, seen = width, 0
        seen += 1
        if seen > most_idle:
            return


class PolicyIteration:
    """Howard's policy iteration on components.

    Parameters
    ----------
    components : Components
    num_threads : int
    checkpoint : callable
    """

    def __init__(
        self,
        components: Components,
        num_threads: int,
        checkpoint: Callable[[], None],
    ) -> None:
        self._components = components
        model = components.model
        self.engine: LocalEngine = local_engine(model, 1.0, num_threads, checkpoint)
        self._equations = RenewalEquations(self.engine, components.labels, components.count)
        self._graph: sp.csr_array | None = None

    def run(self, policy: NDArray[np.int32], h: NDArray[np.float64]) -> Iterator[State]:
        """Evaluate and improve until nothing is improved beyond rounding.

        Parameters
        ----------
        policy : ndarray of int32, shape (S,)
            Where to start.
        h : ndarray of float, shape (S,)
            What it was read off; says where one tends to be.
        """
        engine = self.engine
        num_states = engine.num_states
        policy = policy.copy()
        # Anchors of policies that came to nothing may do so again.
        components = self._components
        self._equations = RenewalEquations(engine, components.labels, components.count)
        image, by_policy = np.empty(num_states), np.empty(num_states)
        best = np.empty(num_states, dtype=np.int32)
        zero = np.zeros(num_states)
        while True:
            matrix, anchors, policy = self._connected(policy, h)
            engine.policy_sweep(policy, zero, by_policy)
            costs = by_policy.copy()
            found = self._equations.evaluate(matrix, policy, costs, anchors, engine.rounding)
            if not found.residual < math.inf:
                return
            h = found.bias
            sweep = engine.sweep(h, image, best)
            engine.policy_sweep(policy, h, by_policy)
            slack = 4 * engine.rounding(sweep.max_value)
            switched = image < by_policy - slack
            following = np.where(switched, best, policy).astype(np.int32)
            image -= h
            low, high = self._components.ranges(image)
            is_settled = not switched.any()
            yield State(h, low, high, sweep.residual, found.num_sweeps + 3, is_settled)
            if is_settled:
                return
            policy = following

    def _connected(
        self, policy: NDArray[np.int32], h: NDArray[np.float64]
    ) -> tuple[PolicyMatrix, NDArray[np.int64], NDArray[np.int32]]:
        """Return a policy's rows and anchors, and it, changed if it had several classes somewhere.

        Then the class of least gain in each component stays, and whatever may end in another is
        led to it.
        """
        count, labels = self._components.count, self._components.labels
        matrix = rows_without_ends(self.engine, policy)
        num_classes, classes = recurrent_classes(matrix)
        if num_classes > count:
            keeps = self._best_classes(policy, matrix, num_classes, classes, h)
            policy = self._led_to(keeps, policy, matrix, classes)
            matrix = rows_without_ends(self.engine, policy)
            num_classes, classes = recurrent_classes(matrix)
        anchors = self._equations.anchors
        if anchors.min() >= 0 and classes[anchors].min() >= 0:
            return matrix, anchors, policy
        states = likely_states(matrix, classes, num_classes, h)
        anchors = np.empty(count, dtype=np.int64)
        anchors[labels[states]] = states
        return matrix, anchors, policy

    def _best_classes(
        self,
        policy: NDArray[np.int32],
        matrix: PolicyMatrix,
        num_classes: int,
        classes: NDArray[np.int32],
        h: NDArray[np.float64],
    ) -> NDArray[np.bool_]:
        """Return which recurrent classes have the least gain of their component."""
        # Every state is led somewhere, and a policy has a class wherever it starts: those that are
        # transient are taken for one of the components' anchors, apart from what counts.
        gains = class_gains(self.engine, policy, matrix, num_classes, classes, h)
        states = likely_states(matrix, classes, num_classes, h)
        of_class = self._components.labels[states]
        order = np.lexsort((gains, of_class))
        first = np.concatenate([[True], of_class[order][1:] != of_class[order][:-1]])
        keeps = np.zeros(num_classes, dtype=bool)
        keeps[order[first]] = True
        return keeps

    def _led_to(
        self,
        keeps: NDArray[np.bool_],
        policy: NDArray[np.int32],
        matrix: PolicyMatrix,
        classes: NDArray[np.int32],
    ) -> NDArray[np.int32]:
        """Return the policy with a single class in each component."""
        num_states = len(policy)
        others = np.flatnonzero((classes >= 0) & ~keeps[classes])
        chain = sp.csr_array(
            (matrix.entries, matrix.columns.copy(), matrix.starts.copy()),
            shape=(num_states, num_states),
        )
        reaches_other, _ = distances_to(chain, others)
        settled = np.flatnonzero(reaches_other < 0)
        if self._graph is None:
            self._graph = self._components.model.successor_graph()
        distances, _ = distances_to(self._graph, settled)
        policy = policy.copy()
        lead_to(self.engine.tables, distances, policy)
        return policy


def class_gains(
    engine: LocalEngine,
    policy: NDArray[np.int32],
    matrix: PolicyMatrix,
    num_classes: int,
    classes: NDArray[np.int32],
    h: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the gain of each recurrent class of a policy, shape (C,).

    Parameters
    ----------
    engine : LocalEngine
        Without a discount.
    policy : ndarray of int32, shape (S,)
    matrix : PolicyMatrix
        Of the policy.
    num_classes : int
    classes : ndarray of int32, shape (S,)
        As `recurrent_classes` returns them.
    """
    zero, costs = np.zeros(len(policy)), np.empty(len(policy))
    engine.policy_sweep(policy, zero, costs)
    anchors = likely_states(matrix, classes, num_classes, h)
    # What transient states come to is not looked at: any label will do.
    equations = RenewalEquations(engine, np.maximum(classes, 0), num_classes)
    return equations.evaluate(matrix, policy, costs, anchors, engine.rounding).gains
