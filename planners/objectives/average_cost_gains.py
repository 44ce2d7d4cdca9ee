"""The gains of the components of a model: relative value iteration, and policy iteration.

A component is a set of states that no action leaves and in which some policy leads from everywhere
to everywhere, so that its least mean cost is one number.  Components lie side by side and are solved
together.  Whatever h is,

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
from aggmaze.models.tabular import TabularMDP
from planners.bellman import local_engine
from planners.engine import Engine, LocalEngine
from planners.linear.policy_matrix import PolicyMatrix
from planners.linear.renewal import (
    RenewalEquations,
    lead_to,
    likely_states,
    recurrent_classes,
)
from planners.policies import distances_to

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


def with_whole_rows(model: TableModel) -> TableModel:
    """Return a model whose rows sum to 1 but for rounding: what they miss is shared out.

    Parameters
    ----------
    model : TableModel
    """
    if not isinstance(model, TabularMDP) or model.row_sums.error <= 64 * np.finfo(float).eps:
        return model
    matrix = model.transitions
    sums = np.asarray(matrix.sum(axis=1)).reshape(-1)
    sums[sums == 0] = 1.0
    data = matrix.data / np.repeat(sums, np.diff(matrix.indptr))
    transitions = sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
    return replace(model, transitions=transitions, terminal=model.terminal)


@dataclass(frozen=True)
class State:
    """What is known after an iteration.

    Parameters
    ----------
    bias : ndarray of float, shape (S,)
        The h that the interval is from.
    low, high : ndarray of float, shape (K,)
        Extremes of ``Th - h`` in each component, as computed.
    policy : ndarray of int32, shape (S,)
        Actions that attain Th.
    residual : float
        Sup norm of ``Th - h``.
    num_sweeps : int
        Made in this iteration.
    is_settled : bool
        Whether further iterations are not expected to change anything.
    """

    bias: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    policy: NDArray[np.int32]
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
    policy = np.empty(len(h), dtype=np.int32)
    while True:
        sweep = engine.sweep(h, image, policy)
        if components is None or components.count == 1:
            low, high = np.array([sweep.residual_low]), np.array([sweep.residual_high])
        else:
            low, high = components.ranges(image - h)
        yield State(h, low, high, policy, sweep.residual, 1)
        middle = 0.5 * low + 0.5 * high
        image -= h
        image -= middle[0] if len(middle) == 1 else middle[components.labels]  # type: ignore[union-attr]
        image *= _DAMPING
        image += h
        h, image = image, h.copy()


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

    def run(self, policy: NDArray[np.int32]) -> Iterator[State]:
        """Evaluate and improve until nothing is improved beyond rounding.

        Parameters
        ----------
        policy : ndarray of int32, shape (S,)
            Where to start.
        """
        engine = self.engine
        num_states = engine.num_states
        policy = policy.copy()
        image, by_policy = np.empty(num_states), np.empty(num_states)
        best = np.empty(num_states, dtype=np.int32)
        zero = np.zeros(num_states)
        last = math.inf
        while True:
            matrix, anchors, policy = self._connected(policy)
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
            yield State(
                h, low, high, best.copy(), sweep.residual, found.num_sweeps + 3, is_settled
            )
            if is_settled:
                return
            policy = following

    def _connected(
        self, policy: NDArray[np.int32]
    ) -> tuple[PolicyMatrix, NDArray[np.int64], NDArray[np.int32]]:
        """Return a policy's rows and anchors, and it, changed if it had several classes somewhere.

        Then the class of least gain in each component stays, and whatever may end in another is
        led to it.
        """
        count, labels = self._components.count, self._components.labels
        matrix = self._equations.matrix(policy)
        num_classes, classes = recurrent_classes(matrix)
        if num_classes > count:
            keeps = self._best_classes(policy, matrix, num_classes, classes)
            policy = self._led_to(keeps, policy, matrix, classes)
            matrix = self._equations.matrix(policy)
            num_classes, classes = recurrent_classes(matrix)
        anchors = self._equations.anchors
        if anchors.min() >= 0 and classes[anchors].min() >= 0:
            return matrix, anchors, policy
        states = likely_states(matrix, classes, num_classes)
        anchors = np.empty(count, dtype=np.int64)
        anchors[labels[states]] = states
        return matrix, anchors, policy

    def _best_classes(
        self,
        policy: NDArray[np.int32],
        matrix: PolicyMatrix,
        num_classes: int,
        classes: NDArray[np.int32],
    ) -> NDArray[np.bool_]:
        """Return which recurrent classes have the least gain of their component."""
        # Every state is led somewhere, and a policy has a class wherever it starts: those that are
        # transient are taken for one of the components' anchors, apart from what counts.
        gains = class_gains(self.engine, policy, matrix, num_classes, classes)
        states = likely_states(matrix, classes, num_classes)
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
        lead_to(self.engine, distances, policy)
        return policy


def class_gains(
    engine: LocalEngine,
    policy: NDArray[np.int32],
    matrix: PolicyMatrix,
    num_classes: int,
    classes: NDArray[np.int32],
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
    anchors = likely_states(matrix, classes, num_classes)
    # What transient states come to is not looked at: any label will do.
    equations = RenewalEquations(engine, np.maximum(classes, 0), num_classes)
    return equations.evaluate(matrix, policy, costs, anchors, engine.rounding).gains
