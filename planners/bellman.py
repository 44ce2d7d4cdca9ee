"""Bellman backups, compiled, for both layouts of a model.

    (TV)(s) = T_s(V) = min_a c(s,a) + gamma sum_s' P(s'|s,a) V(s')

over the available actions of ``s``; ``T_s(V) = 0`` in terminal states.  Solvers are written on the
small interface `Backups`; what a layout needs stands here once: `_move_backup` for shared
successors with slip (`aggmaze.move_mdp`), `_sparse_q` for general sparse rows.  The same formula
serves full sweeps, which read V(s'), and mega-states, which read W(label(s')).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from aggmaze.mdp import TabularMDP, readonly
from aggmaze.move_mdp import MoveMDP
from planners import compiling

Model = TabularMDP | MoveMDP

# Half the distance from 1 to the next number: the largest relative error of one rounding.
UNIT_ROUNDOFF = 2.0**-53
# Covers what results below the least normal number lose beyond that.
UNDERFLOW = float(np.finfo(np.float64).tiny)

compiling.watch()


@dataclass(frozen=True)
class Sweep:
    """What one full sweep ``out = TV`` saw.

    Parameters
    ----------
    residual_low, residual_high : float
        Extremes of ``TV - V`` over all states.
    low, high : float
        Extremes of ``TV``.
    """

    residual_low: float
    residual_high: float
    low: float
    high: float

    @property
    def residual(self) -> float:
        """Sup norm of ``TV - V``."""
        return max(-self.residual_low, self.residual_high)


class Backups(Protocol):
    """Backups of one model at one discount: all that a solver sees of the two."""

    @property
    def model(self) -> Model:
        """The model."""

    @property
    def gamma(self) -> float:
        """The discount."""

    @property
    def max_cost(self) -> float:
        """Largest size of the cost of an available action."""

    def sweep(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Sweep:
        """Write TV into ``out``, shape (S,) both, and return its extremes."""

    def aggregated(
        self,
        states: NDArray[np.int64],
        W: NDArray[np.float64],
        labels: NDArray[np.int32],
        out: NDArray[np.float64],
    ) -> None:
        """Write ``T_s V~`` of each listed state into ``out``, where ``V~(s) = W[labels[s]]``."""

    def q_values(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``c(s,a) + gamma sum P V``, shape (S, A); +inf where masked."""

    def greedy(
        self, V: NDArray[np.float64], distances: NDArray[np.float64], slack: float, tie: float
    ) -> NDArray[np.int64]:
        """Return the action of least expected distance among those within ``slack`` of the best.

        Among several of that distance, the first whose value is within ``tie`` of their best.
        """

    def rounding(self, max_value: float) -> float:
        """Bound the error of a computed ``T_s V`` where ``max_value`` bounds |V| and |TV|."""


# ---------------------------------------------------------------------------------------------
# Kernels.  Helpers are inlined by numba: an ordinary call for each state makes a sweep four times
# slower.  Extremes are kept by comparison, which costs less than min() and max() do.

# Shared successors with slip.

_LARGEST = float(np.finfo(np.float64).max)
_NO_LABELS = readonly(np.empty(0, dtype=np.int32))


@njit(cache=True, inline="always")
def _move_backup(  # type: ignore[no-untyped-def]
    successors, move_costs, chosen, every, reverses, gamma, V, labels, aggregated, s
):
    # Without branches on availability, which mazes make hard to predict: half the time.
    total = 0.0
    smallest = np.inf
    largest = -np.inf
    n = 0
    for m in range(successors.shape[1]):
        cost = move_costs[s, m]
        following = successors[s, m]
        q = cost + gamma * (V[labels[following]] if aggregated else V[following])
        available = cost < np.inf
        total += q if available else 0.0
        n += 1 if available else 0
        smallest = q if q < smallest else smallest
        if reverses:
            largest = q if available and q > largest else largest
    extreme = smallest
    if reverses and chosen[n] < 0.0:
        extreme = largest
    return chosen[n] * extreme + every[n] * total if n > 0 else 0.0


@njit(cache=True)
def _move_sweep(successors, move_costs, chosen, every, gamma, V, out):  # type: ignore[no-untyped-def]
    # Whether it may pay to choose the worst move, hoping to slip: with p < 1/n.
    reverses = chosen.min() < 0.0
    residual_low, residual_high, low, high = np.inf, -np.inf, np.inf, -np.inf
    for s in range(successors.shape[0]):
        value = _move_backup(
            successors, move_costs, chosen, every, reverses, gamma, V, _NO_LABELS, False, s
        )
        residual = value - V[s]
        residual_low = residual if residual < residual_low else residual_low
        residual_high = residual if residual > residual_high else residual_high
        low = value if value < low else low
        high = value if value > high else high
        out[s] = value
    return residual_low, residual_high, low, high


@njit(cache=True)
def _move_aggregated(  # type: ignore[no-untyped-def]
    successors, move_costs, chosen, every, gamma, states, W, labels, out
):
    reverses = chosen.min() < 0.0
    for j in range(len(states)):
        out[j] = _move_backup(
            successors, move_costs, chosen, every, reverses, gamma, W, labels, True, states[j]
        )


@njit(cache=True, inline="always")
def _move_actions(successors, move_costs, chosen, every, gamma, V, s, Q):  # type: ignore[no-untyped-def]
    """Write the value of each action in a state into Q, shape (M,); return their number."""
    total = 0.0
    n = 0
    for m in range(len(Q)):
        cost = move_costs[s, m]
        Q[m] = np.inf
        if cost < np.inf:
            Q[m] = cost + gamma * V[successors[s, m]]
            total += Q[m]
            n += 1
    for m in range(len(Q)):
        if Q[m] < np.inf:
            Q[m] = chosen[n] * Q[m] + every[n] * total
    return n


@njit(cache=True)
def _move_q_values(successors, move_costs, chosen, every, gamma, V, Q):  # type: ignore[no-untyped-def]
    for s in range(successors.shape[0]):
        if _move_actions(successors, move_costs, chosen, every, gamma, V, s, Q[s]) == 0:
            Q[s] = 0.0


@njit(cache=True)
def _move_greedy(  # type: ignore[no-untyped-def]
    successors, move_costs, chosen, every, gamma, V, distances, slack, tie, policy
):
    num_moves = successors.shape[1]
    Q = np.empty(num_moves)
    steps = np.empty(num_moves)
    for s in range(successors.shape[0]):
        n = _move_actions(successors, move_costs, chosen, every, gamma, V, s, Q)
        total = 0.0
        for m in range(num_moves):
            if move_costs[s, m] < np.inf:
                total += distances[successors[s, m]]
        for m in range(num_moves):
            steps[m] = chosen[n] * distances[successors[s, m]] + every[n] * total
        policy[s] = _pick(Q, steps, slack, tie)


@njit(cache=True, inline="always")
def _pick(Q, steps, slack, tie):  # type: ignore[no-untyped-def]
    """Choose an action as `Backups.greedy` says; Q is +inf where it is unavailable."""
    best = np.inf
    for a in range(len(Q)):
        best = Q[a] if Q[a] < best else best
    if not best < np.inf:
        return 0  # no action is available
    limit = min(best + slack, _LARGEST)
    least = np.inf
    for a in range(len(Q)):
        if Q[a] <= limit and steps[a] < least:
            least = steps[a]
    # Distances are small integers or means of such: 1e-9 is rounding.
    least += 1e-9
    best_of_least = np.inf
    for a in range(len(Q)):
        if Q[a] <= limit and steps[a] <= least and Q[a] < best_of_least:
            best_of_least = Q[a]
    for a in range(len(Q)):
        if Q[a] <= limit and steps[a] <= least and Q[a] <= best_of_least + tie:
            return a
    return 0


# General sparse rows.


@njit(cache=True, inline="always")
def _sparse_q(indptr, indices, probabilities, costs, gamma, V, labels, aggregated, s, a):  # type: ignore[no-untyped-def]
    row = s * costs.shape[1] + a
    mean = 0.0
    for entry in range(indptr[row], indptr[row + 1]):
        following = indices[entry]
        mean += probabilities[entry] * (V[labels[following]] if aggregated else V[following])
    return costs[s, a] + gamma * mean


@njit(cache=True, inline="always")
def _sparse_backup(  # type: ignore[no-untyped-def]
    indptr, indices, probabilities, costs, mask, terminal, gamma, V, labels, aggregated, s
):
    if terminal[s]:
        return 0.0
    best = np.inf
    for a in range(costs.shape[1]):
        if mask[s, a]:
            q = _sparse_q(indptr, indices, probabilities, costs, gamma, V, labels, aggregated, s, a)
            best = q if q < best else best
    return best


@njit(cache=True)
def _sparse_sweep(indptr, indices, probabilities, costs, mask, terminal, gamma, V, out):  # type: ignore[no-untyped-def]
    residual_low, residual_high, low, high = np.inf, -np.inf, np.inf, -np.inf
    for s in range(costs.shape[0]):
        value = _sparse_backup(
            indptr, indices, probabilities, costs, mask, terminal, gamma, V, _NO_LABELS, False, s
        )
        residual = value - V[s]
        residual_low = residual if residual < residual_low else residual_low
        residual_high = residual if residual > residual_high else residual_high
        low = value if value < low else low
        high = value if value > high else high
        out[s] = value
    return residual_low, residual_high, low, high


@njit(cache=True)
def _sparse_aggregated(  # type: ignore[no-untyped-def]
    indptr, indices, probabilities, costs, mask, terminal, gamma, states, W, labels, out
):
    for j in range(len(states)):
        out[j] = _sparse_backup(
            indptr, indices, probabilities, costs, mask, terminal, gamma, W, labels, True, states[j]
        )


@njit(cache=True)
def _sparse_q_values(indptr, indices, probabilities, costs, mask, terminal, gamma, V, Q):  # type: ignore[no-untyped-def]
    for s in range(costs.shape[0]):
        for a in range(costs.shape[1]):
            if terminal[s]:
                Q[s, a] = 0.0
            elif mask[s, a]:
                Q[s, a] = _sparse_q(
                    indptr, indices, probabilities, costs, gamma, V, _NO_LABELS, False, s, a
                )
            else:
                Q[s, a] = np.inf


@njit(cache=True)
def _sparse_greedy(  # type: ignore[no-untyped-def]
    indptr, indices, probabilities, costs, mask, terminal, gamma, V, distances, slack, tie, policy
):
    num_actions = costs.shape[1]
    Q = np.empty(num_actions)
    steps = np.empty(num_actions)
    for s in range(costs.shape[0]):
        for a in range(num_actions):
            Q[a] = np.inf
            if mask[s, a]:
                Q[a] = _sparse_q(
                    indptr, indices, probabilities, costs, gamma, V, _NO_LABELS, False, s, a
                )
                row = s * num_actions + a
                steps[a] = 0.0
                for entry in range(indptr[row], indptr[row + 1]):
                    steps[a] += probabilities[entry] * distances[indices[entry]]
        policy[s] = 0 if terminal[s] else _pick(Q, steps, slack, tie)


# ---------------------------------------------------------------------------------------------
# The interface.


class Kernels(NamedTuple):
    """The compiled functions of a layout, all of the same tables, gamma and what they act on."""

    sweep: Callable[..., tuple[float, float, float, float]]
    aggregated: Callable[..., None]
    q_values: Callable[..., None]
    greedy: Callable[..., None]


class _CompiledBackups:
    """Backups by the kernels of a layout."""

    def __init__(
        self,
        model: Model,
        gamma: float,
        kernels: Kernels,
        tables: tuple[NDArray[Any], ...],
        max_cost: float,
    ) -> None:
        self.model = model
        self.gamma = gamma
        self.max_cost = max_cost
        self._kernels = kernels
        self._tables = tables

    def sweep(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Sweep:
        """Write TV into ``out``."""
        return Sweep(*self._kernels.sweep(*self._tables, self.gamma, V, out))

    def aggregated(
        self,
        states: NDArray[np.int64],
        W: NDArray[np.float64],
        labels: NDArray[np.int32],
        out: NDArray[np.float64],
    ) -> None:
        """Write the backups of the listed states under aggregation into ``out``."""
        self._kernels.aggregated(*self._tables, self.gamma, states, W, labels, out)

    def q_values(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the value of each action, shape (S, A)."""
        Q = np.empty((self.model.num_states, self.model.num_actions))
        self._kernels.q_values(*self._tables, self.gamma, V, Q)
        return Q

    def greedy(
        self, V: NDArray[np.float64], distances: NDArray[np.float64], slack: float, tie: float
    ) -> NDArray[np.int64]:
        """Return the policy that is greedy within ``slack``."""
        policy = np.empty(self.model.num_states, dtype=np.int64)
        self._kernels.greedy(*self._tables, self.gamma, V, distances, slack, tie, policy)
        return policy


class MoveBackups(_CompiledBackups):
    """Backups of a `MoveMDP`."""

    def __init__(self, model: MoveMDP, gamma: float) -> None:
        super().__init__(
            model,
            gamma,
            Kernels(_move_sweep, _move_aggregated, _move_q_values, _move_greedy),
            (readonly(model.successors), readonly(model.move_costs), *model.slip_weights),
            float(np.abs(model.move_costs).max(where=model.available, initial=0.0)),
        )
        self._slips = model.p < 1.0

    def rounding(self, max_value: float) -> float:
        """Bound the rounding error of a backup.

        Each of the ``n <= M`` terms ``c + gamma V`` suffers two roundings, their sum n - 1 more,
        the two products, the weights (three operations each) and the final sum eight, all at most
        of the size ``max |c| + gamma max |V|``, on which the weights are convex combinations but
        for the sign of ``p - b``, hence the factor two.  With p = 1 there is no sum, and
        `unslipped_size` may be smaller.
        """
        size = self.max_cost + self.gamma * max_value
        if not self._slips:
            size = min(size, unslipped_size(self.gamma, max_value))
        return _rounding(2 * (self.model.num_actions + 10), size)


class SparseBackups(_CompiledBackups):
    """Backups of a `TabularMDP`."""

    def __init__(self, model: TabularMDP, gamma: float) -> None:
        matrix = model.transitions
        super().__init__(
            model,
            gamma,
            Kernels(_sparse_sweep, _sparse_aggregated, _sparse_q_values, _sparse_greedy),
            (
                readonly(matrix.indptr.astype(np.int64)),
                readonly(matrix.indices.astype(np.int32, copy=False)),
                readonly(matrix.data),
                readonly(model.costs),
                readonly(model.action_mask),
                readonly(model.terminal),
            ),
            float(np.abs(model.costs).max(where=model.action_mask, initial=0.0)),
        )
        self._longest_row = int(np.diff(matrix.indptr).max())

    def rounding(self, max_value: float) -> float:
        """Bound the rounding error of a backup.

        A row of ``k`` entries suffers ``k`` products and sums, one product with gamma and one sum
        with the cost, all at most of the size ``max |c| + gamma max |V|`` (rows sum to 1 within
        1e-9), or of `unslipped_size`.
        """
        size = min(self.max_cost + self.gamma * max_value, unslipped_size(self.gamma, max_value))
        return _rounding(1.0001 * (self._longest_row + 4), size)


def unslipped_size(gamma: float, max_value: float) -> float:
    """Return the size of what is rounded in a backup, whatever costs are not chosen.

    An action of value q costs at most ``|q| + gamma max |V|``, so what is rounded for it is at most
    ``|q| + 2 gamma max |V|``; and those that are chosen, in truth or by rounding, have
    ``|q| <= max |TV|``.  Here ``max_value`` bounds both ``|V|`` and ``|TV|``.
    """
    return (1 + 2 * gamma) * max_value


def _rounding(operations: float, size: float) -> float:
    return operations * UNIT_ROUNDOFF * size + UNDERFLOW if size > 0 else 0.0


def backups(model: Model, gamma: float) -> Backups:
    """Return the backups of a model at a discount in [0, 1)."""
    return MoveBackups(model, gamma) if isinstance(model, MoveMDP) else SparseBackups(model, gamma)
