"""Gain and bias of policies, by what happens between two visits of a state.

In each component of a model one state, the anchor, is visited again and again.  With

    x = c + P_pi x,   y = 1 + P_pi y   elsewhere,   x = y = 0 at the anchor,

the mean cost of a step, the gain, is the cost of a cycle by its length, both one step on from the
anchor, and ``h = x - g y`` solves ``c + P_pi h - h = g``.  These are equations of episodes that end
at the anchors, which `linear.policy_equations` solves.  What is lost of digits where cycles are
long is brought back by solving once more for what is left.

Source: Puterman, "Markov decision processes" (1994), section 8.2 and theorem 8.2.6; the renewal
reward theorem, Ross, "Stochastic processes" (1996), theorem 3.6.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from planners.engine import LocalEngine
from planners.kernels.tables import Moves, Tables, num_available, weight
from planners.kernels.vectors import sup_norm
from planners.linear.policy_equations import PolicyEquations
from planners.linear.policy_matrix import PolicyMatrix, multiply, policy_matrix

# Steps of a random walk by a policy, whose likeliest place is an anchor: for each state, and in
# all.
_STEPS_A_STATE, _MOST_STEPS_OF_WALKS = 16, 1 << 22
# How far a solution goes, how many steps of BiCGSTAB that may take, and how often it is improved.
_REDUCTION, _MOST_STEPS, _MOST_ROUNDS = 1e-8, 200, 8


class _Ending(NamedTuple):
    """What `PolicyEquations` asks of an engine, with episodes that end at the anchors."""

    tables: Any
    terminal: NDArray[np.bool_]
    gamma: float
    num_states: int
    checkpoint: Callable[[], None]


@dataclass(frozen=True)
class Evaluation:
    """The gain and the bias of a policy that has one recurrent class in each component.

    Parameters
    ----------
    gains : ndarray of float, shape (K,)
        Of each component.
    bias : ndarray of float, shape (S,)
        0 at the anchor of each component.
    residual : float
        Sup norm of ``c_pi + D_pi h - g``, as computed; NaN or infinite where solving failed.
    num_sweeps : int
        Work, in sweeps by the policy.
    """

    gains: NDArray[np.float64]
    bias: NDArray[np.float64]
    residual: float
    num_sweeps: int


class EndingEquations:
    """Equations ``x = r + P_pi x``, x = 0 in states that are taken for ends.

    Parameters
    ----------
    engine : LocalEngine
        Its discount and terminal states play no part; rows sum to 1 but for rounding.
    ends : ndarray of bool, shape (S,)
    """

    def __init__(self, engine: LocalEngine, ends: NDArray[np.bool_]) -> None:
        self._ends = ends
        view = _Ending(engine.tables, ends, 1.0, engine.num_states, engine.checkpoint)
        self._equations = PolicyEquations(cast(LocalEngine, view))

    def follow(self, policy: NDArray[np.int32]) -> int:
        """Take up a policy that reaches an end for certain; return the work, in its sweeps.

        Parameters
        ----------
        policy : ndarray of int32, shape (S,)
        """
        return self._equations.follow(policy)

    def solve(self, right: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
        """Return x for the policy that was taken up last, and the work.

        Parameters
        ----------
        right : ndarray of float, shape (S,)
            What it has in ends does not count.
        """
        right = np.where(self._ends, 0.0, right)
        found = self._equations.solve(right, reduction=_REDUCTION, most_steps=_MOST_STEPS)
        return np.where(self._ends, 0.0, found.values), found.num_sweeps

    def refined(
        self,
        matrix: PolicyMatrix,
        right: NDArray[np.float64],
        start: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Return x, solved for again and again until no residual gets smaller.

        Parameters
        ----------
        matrix : PolicyMatrix
            Of the policy, with no ends.
        right : ndarray of float, shape (S,)
        start : ndarray of float, shape (S,), optional
            What x is in ends, and anything elsewhere; 0 by default.
        """
        x = np.zeros(len(right)) if start is None else start.copy()
        image, last = np.empty(len(right)), np.inf
        best = x
        for _ in range(_MOST_ROUNDS):
            multiply(matrix, x, image)
            left = np.where(self._ends, 0.0, right - image)
            size = sup_norm(left)
            if not size < last:
                break
            best = x
            if size == 0.0 or not size < 0.5 * last:
                break
            last = size
            x = x + self.solve(left)[0]
        return best


class RenewalEquations:
    """Gain and bias of policies of one model that change little by little.

    Parameters
    ----------
    engine : LocalEngine
        Of a model without terminal states.
    labels : ndarray of int32, shape (S,)
        The component of each state, which no action leaves.
    num_components : int
    """

    def __init__(self, engine: LocalEngine, labels: NDArray[np.int32], num_components: int) -> None:
        self._engine = engine
        self._labels = labels
        self._num_components = num_components
        #: A state of the recurrent class of each component, shape (K,); -1 before there is one.
        self.anchors = np.full(num_components, -1, dtype=np.int64)
        self._equations: EndingEquations | None = None

    def evaluate(
        self,
        matrix: PolicyMatrix,
        policy: NDArray[np.int32],
        costs: NDArray[np.float64],
        anchors: NDArray[np.int64],
        rounding: Callable[[float], float],
    ) -> Evaluation:
        """Return gain and bias of a policy.

        Parameters
        ----------
        matrix : PolicyMatrix
            Of the policy, as `rows_without_ends` returns it.
        policy : ndarray of int32, shape (S,)
            With one recurrent class in each component.
        costs : ndarray of float, shape (S,)
            Of the policy's actions.
        anchors : ndarray of int64, shape (K,)
            A state in each of these classes.
        rounding : callable
            ``rounding(size)`` is what a residual of a bias of that size is off by.
        """
        if self._equations is None or not np.array_equal(anchors, self.anchors):
            self.anchors = anchors.copy()
            ends = np.zeros(len(policy), dtype=bool)
            ends[anchors] = True
            self._equations = EndingEquations(self._engine, ends)
        labels, equations = self._labels, self._equations
        num_sweeps = equations.follow(policy)
        lengths, made = equations.solve(np.ones(len(labels)))
        change = np.empty(len(labels))
        multiply(matrix, lengths, change)
        cycles = 1.0 - change[anchors]
        gains, bias = np.zeros(self._num_components), np.zeros(len(labels))
        left = costs.copy()
        residual, num_sweeps = np.inf, num_sweeps + made + 1
        for _ in range(_MOST_ROUNDS):
            correction, made = equations.solve(left)
            multiply(matrix, correction, change)
            more = (left[anchors] - change[anchors]) / cycles
            new_gains = gains + more
            new_bias = bias + correction - more[labels] * lengths
            multiply(matrix, new_bias, change)
            left = costs - change - new_gains[labels]
            num_sweeps += made + 2
            size = sup_norm(left)
            if not size < residual:
                break
            last, residual, gains, bias = residual, size, new_gains, new_bias
            if residual <= rounding(sup_norm(bias)) or not residual < 0.5 * last:
                break
        return Evaluation(gains, bias, residual, num_sweeps)


def rows_without_ends(engine: LocalEngine, policy: NDArray[np.int32]) -> PolicyMatrix:
    """Return the rows of a policy: ``multiply`` of it is minus D_pi.

    Parameters
    ----------
    engine : LocalEngine
        Its discount and terminal states play no part.
    policy : ndarray of int32, shape (S,)
    """
    nowhere = np.zeros(engine.num_states, dtype=bool)
    view = _Ending(engine.tables, nowhere, 1.0, engine.num_states, engine.checkpoint)
    matrix = policy_matrix(cast(LocalEngine, view), policy)
    # What rows miss 1 by in rounding is no leak.
    nothing = np.zeros(len(matrix.slack))
    return matrix._replace(slack=nothing, diagonal=matrix.diagonal - matrix.slack)


def recurrent_classes(matrix: PolicyMatrix) -> tuple[int, NDArray[np.int32]]:
    """Return the number of recurrent classes of a policy, and that of each state.

    Parameters
    ----------
    matrix : PolicyMatrix
        Of the policy.

    Returns
    -------
    count : int
    classes : ndarray of int32, shape (S,)
        -1 in transient states.
    """
    num_states = len(matrix.slack)
    graph = sp.csr_array(
        (np.ones(len(matrix.columns)), matrix.columns.copy(), matrix.starts.copy()),
        shape=(num_states, num_states),
    )
    graph.sum_duplicates()
    count, found = connected_components(graph, connection="strong")
    is_left = np.zeros(count, dtype=bool)
    _mark_left(graph.indptr, graph.indices, found, is_left)
    numbers = np.cumsum(~is_left, dtype=np.int32) - 1
    numbers[is_left] = -1
    return int(np.count_nonzero(~is_left)), numbers[found].astype(np.int32)


def likely_states(
    matrix: PolicyMatrix, classes: NDArray[np.int32], count: int, bias: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return a state of each recurrent class that is visited often, shape (C,).

    A walk by the policy finds it, with numbers that are the same each time.

    Parameters
    ----------
    matrix : PolicyMatrix
    classes : ndarray of int32, shape (S,)
        As `recurrent_classes` returns them.
    count : int
        How many there are.
    bias : ndarray of float, shape (S,)
        Walks begin where it is least: where costs are low one tends to be.
    """
    states = np.full(count, -1, dtype=np.int64)
    sizes = np.bincount(classes[classes >= 0], minlength=count)
    _least_of(bias, classes, states)
    steps = np.minimum(_STEPS_A_STATE * sizes, max(_MOST_STEPS_OF_WALKS // count, 1))
    visits = np.zeros(len(classes), dtype=np.int32)
    _walk(matrix, states, np.where(sizes > 1, steps, 0), visits)
    return states


@njit(cache=True, nogil=True)
def _mark_left(indptr, indices, classes, is_left):
    """Mark the strong components that some entry leaves."""
    for s in range(len(classes)):
        for entry in range(indptr[s], indptr[s + 1]):
            if classes[indices[entry]] != classes[s]:
                is_left[classes[s]] = True


@njit(cache=True, nogil=True)
def _least_of(values, classes, states):
    """Write the state of the least value in each class, where there is -1 before."""
    for s in range(len(classes)):
        k = classes[s]
        if k >= 0 and (states[k] < 0 or values[s] < values[states[k]]):
            states[k] = s


@njit(cache=True, nogil=True)
def _walk(matrix, states, steps, visits):
    """Write in the place of each state the one that is most visited from there in so many steps."""
    starts, columns, entries, _, _ = matrix
    number = np.uint64(88172645463325252)
    for k in range(len(states)):
        s = states[k]
        for _ in range(steps[k]):
            # Xorshift (Marsaglia, 2003), whose upper 53 bits are a number in [0, 1).
            number ^= number << np.uint64(13)
            number ^= number >> np.uint64(7)
            number ^= number << np.uint64(17)
            left = np.float64(number >> np.uint64(11)) * 2.0**-53
            for place in range(starts[s], starts[s + 1]):
                left -= entries[place]
                if left < 0.0:
                    s = columns[place]
                    break
            visits[s] += 1
            if visits[s] > visits[states[k]]:
                states[k] = s


def lead_to(tables: Tables, distances: NDArray[np.int32], policy: NDArray[np.int32]) -> None:
    """Let a policy come nearer with positive probability, where the distance is positive.

    Parameters
    ----------
    tables : Moves or Outcomes
    distances : ndarray of int32, shape (S,)
        Fewest steps to where it is to lead, by available actions.
    policy : ndarray of int32, shape (S,)
        Changed where the distance is positive.
    """
    if isinstance(tables, Moves):
        _approach_by_moves(tables, distances, policy)
    else:
        _approach_by_outcomes(tables, distances, policy)


@njit(cache=True, nogil=True)
def _approach_by_moves(moves, distances, policy):
    successors, costs, chosen, every = moves
    for s in range(len(policy)):
        if distances[s] <= 0:
            continue
        n = num_available(costs, s)
        most = 0.0
        for a in range(costs.shape[1]):
            if not costs[s, a] < np.inf:
                continue
            share = 0.0
            for m in range(costs.shape[1]):
                nearer = costs[s, m] < np.inf and distances[successors[s, m]] == distances[s] - 1
                share += weight(chosen, every, n, m, a) if nearer else 0.0
            if share > most:
                most = share
                policy[s] = a


@njit(cache=True, nogil=True)
def _approach_by_outcomes(outcomes, distances, policy):
    indptr, indices, probabilities = outcomes.indptr, outcomes.indices, outcomes.probabilities
    mask = outcomes.mask
    num_actions = mask.shape[1]
    for s in range(len(policy)):
        if distances[s] <= 0:
            continue
        most = 0.0
        for a in range(num_actions):
            if not mask[s, a]:
                continue
            row = s * num_actions + a
            share = 0.0
            for entry in range(indptr[row], indptr[row + 1]):
                nearer = distances[indices[entry]] == distances[s] - 1
                share += probabilities[entry] if nearer else 0.0
            if share > most:
                most = share
                policy[s] = a
