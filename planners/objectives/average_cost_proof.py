"""From relative values to gains that are certified in every state (docs/certificate.md).

Below, a pair (g, h) with ``D_a g >= 0`` and ``c + D_a h - g >= 0`` for all available actions, above one
with ``D_pi g <= 0`` and ``c_pi + D_pi h - g <= 0`` for the policy that is returned: then
``g <= g*`` and ``g_pi <= g``.  Both are verified in the model itself by `planners.inequalities`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.model import TableModel
from aggmaze.models.tabular import TabularMDP
from planners import components as ends
from planners.bellman import local_engine
from planners.inequalities import Inequalities
from planners.kernels.pieces import UNIT_ROUNDOFF
from planners.linear.renewal import EndingEquations, rows_without_ends
from planners.policy_gains import with_whole_rows

Vector = NDArray[np.float64]

# Policies that are tried for a total cost at most, and how often a margin is made larger.
_MOST_POLICIES, _MOST_MARGINS = 200, 6
# Improvements below this part of what is summed up are rounding.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class Bounds:
    """Gains between two bounds, and a policy that stays below the upper one.

    Parameters
    ----------
    lower, upper : ndarray of float, shape (S,)
        The gain of each state is between them, and so is that of the policy.
    policy : ndarray of int64, shape (S,)
    bias_lower, bias_upper : ndarray of float, shape (S,)
        With them ``(lower, bias_lower)`` and ``(upper, bias_upper)`` are the pairs that prove it.
    num_sweeps : int
        How many sweeps that took.
    """

    lower: Vector
    upper: Vector
    policy: NDArray[np.int64]
    bias_lower: Vector
    bias_upper: Vector
    num_sweeps: int


def bounds_of_whole(sweeps: Inequalities, low: Vector, high: Vector) -> Bounds:
    """Return the bounds that are the same in all states.

    Parameters
    ----------
    sweeps : Inequalities
    low, high : ndarray of float, shape (S,)
        Relative values to prove the lower and the upper bound with.
    """
    num_states = sweeps.model.num_states
    terminal = sweeps.model.terminal
    _, actions = sweeps.backup(high)
    policy = np.where(terminal, -1, actions).astype(np.int64)
    lower, upper = sweeps.least(low).value, sweeps.most(policy, high).value
    if terminal.any():
        lower, upper = min(lower, 0.0), max(upper, 0.0)
    # Where something is no number nothing is known.
    lower = lower if lower > -math.inf else -math.inf
    upper = upper if upper < math.inf else math.inf
    return Bounds(
        np.full(num_states, lower),
        np.full(num_states, upper),
        np.where(terminal, 0, actions).astype(np.int64),
        low.copy(),
        high.copy(),
        3,
    )


class Assembly:
    """Puts the gains of components together to those of all states.

    Parameters
    ----------
    model : TableModel
    num_threads : int
    checkpoint : callable
    """

    def __init__(self, model: TableModel, num_threads: int, checkpoint: Callable[[], None]) -> None:
        self.model = model.to_tabular()
        self._num_threads, self._checkpoint = num_threads, checkpoint
        self._sweeps = Inequalities(self.model, num_threads, checkpoint)
        self._graph = ends.ChoiceGraph(self.model)
        self.components = ends.maximal_end_components(self._graph)
        self._available = self.model.action_mask & ~self.model.terminal[:, np.newaxis]
        self._leaving = self._available & ~self.components.inside
        self._row_of_entry = np.repeat(
            np.arange(self.model.transitions.shape[0]), np.diff(self.model.transitions.indptr)
        )

    @property
    def sweeps(self) -> Inequalities:
        """The sweeps in difference form of the model."""
        return self._sweeps

    def bounds(self, low: Vector, high: Vector, fineness: float) -> Bounds:
        """Return bounds on the gain of each state.

        Parameters
        ----------
        low, high : ndarray of float, shape (S,)
            Relative values in the components, to prove lower and upper bounds with.
        fineness : float
            Gains of components are rounded to multiples of about this, so that what is equal but
            for rounding is equal.
        """
        plain = bounds_of_whole(self._sweeps, low, high)
        labels, inside, count = (
            self.components.labels,
            self.components.inside,
            self.components.count,
        )
        states = np.arange(self.model.num_states)
        least, error = self._rows(low)
        safe = np.where(inside, least - 2 * error, math.inf).min(axis=1)
        x, error = self._rows(high)
        x = np.where(inside, x, math.inf)
        actions = x.argmin(axis=1).astype(np.int32)
        above = x[states, actions] + 2 * error[states, actions]
        lows, highs = np.full(count, math.inf), np.full(count, -math.inf)
        within = np.flatnonzero(labels >= 0)
        np.minimum.at(lows, labels[within], safe[within])
        np.maximum.at(highs, labels[within], above[within])
        if not (np.isfinite(lows).all() and np.isfinite(highs).all()):
            return plain
        lows, highs = _rounded(lows, fineness, -1.0), _rounded(highs, fineness, 1.0)
        quotient = ends.quotient(
            replace(self.model, costs=np.zeros_like(self.model.costs), outcome_costs=None),
            self.components,
            self._available,
            lows,
        )
        found = _Total(quotient.model, self._num_threads, self._checkpoint)
        values = found.solved(quotient.model.costs)
        below = None if values is None else self._below(quotient, found, values, lows, low)
        policy = self._policy(quotient, found.policy, actions)
        over = self._over(quotient, found.policy, policy, highs, high)
        lower, bias_lower = (plain.lower, plain.bias_lower) if below is None else below
        upper, bias_upper = (plain.upper, plain.bias_upper) if over is None else over
        return Bounds(
            lower,
            upper,
            plain.policy if over is None else np.maximum(policy, 0),
            bias_lower,
            bias_upper,
            10,
        )

    def _below(
        self,
        quotient: ends.Quotient,
        found: _Total,
        values: Vector,
        lows: Vector,
        low: Vector,
    ) -> tuple[Vector, Vector] | None:
        """Return a pair that proves lower bounds, None where none was found."""
        for gains in self._subharmonic(quotient, found, values, lows):
            bias = self._bias_below(quotient, gains, low)
            if bias is not None:
                return gains, bias
        return None

    def _subharmonic(
        self, quotient: ends.Quotient, found: _Total, values: Vector, lows: Vector
    ) -> list[Vector]:
        """Return gains g with ``D_a g >= 0``, the best first, that are at most those of components."""
        labels = self.components.labels
        caps = np.where(labels >= 0, lows[labels], math.inf) if len(lows) else np.inf
        caps = np.where(self.model.terminal, 0.0, caps)
        candidates = []

        def try_(gains: Vector) -> bool:
            gains = self._even(np.minimum(gains, caps))
            verdict = self._sweeps.least(gains, with_costs=False)
            if verdict.value >= 0.0 or verdict.state < 0:
                candidates.append(gains)
                return True
            return False

        size = float(np.abs(values).max(initial=0.0))
        if not try_(values[quotient.root]):
            margin = 8 * _ROUNDING * size
            for _ in range(_MOST_MARGINS):
                costs = quotient.model.costs.copy()
                costs[quotient.origin >= 0] -= margin
                costs[quotient.model.terminal] = 0.0
                lowered = found.solved(costs)
                if lowered is not None and try_(lowered[quotient.root]):
                    break
                margin *= 16
        # The least gain of the components that can be reached: equal numbers, without rounding.
        try_(self._least_reachable(lows))
        return candidates

    def _even(self, gains: Vector) -> Vector:
        """Return gains that are the same in all states of a component: the least of them."""
        labels = self.components.labels
        within = np.flatnonzero(labels >= 0)
        least = np.full(self.components.count, math.inf)
        np.minimum.at(least, labels[within], gains[within])
        gains = gains.copy()
        gains[within] = least[labels[within]]
        return gains

    def _least_reachable(self, lows: Vector) -> Vector:
        """Return the least gain of a component, or of an end, that each state may come to."""
        labels, terminal = self.components.labels, self.model.terminal
        gains = np.full(self.model.num_states, math.inf)
        levels = np.unique(np.append(lows, 0.0) if terminal.any() else lows)
        for level in levels:
            here = (
                (labels >= 0) & (lows[labels] == level)
                if len(lows)
                else np.zeros(len(labels), bool)
            )
            if level == 0.0:
                here = here | terminal
            steps, _ = self._graph.steps_to(np.flatnonzero(here), self._available.reshape(-1))
            gains[(steps >= 0) & (gains == math.inf)] = level
            if (gains < math.inf).all():
                break
        return gains

    def _bias_below(self, quotient: ends.Quotient, gains: Vector, low: Vector) -> Vector | None:
        """Return h with ``c + D_a h - g >= 0`` for all actions, None where none was found."""
        if self._sweeps.least(low, gains).value >= 0.0:
            return low
        slack, error = self._rows(low)
        slack = np.where(self._leaving, slack - gains[:, np.newaxis] - 2 * error, 0.0)
        size = float(np.abs(slack).max(initial=0.0))
        if not size < math.inf:
            return None
        members = np.flatnonzero(quotient.origin >= 0)
        sources = quotient.origin[members]
        found = _Total(quotient.model, self._num_threads, self._checkpoint)
        margin = 1e-10 * size
        for _ in range(_MOST_MARGINS):
            costs = np.zeros_like(quotient.model.costs)
            costs[members, : self.model.num_actions] = slack[sources] - margin
            costs[quotient.model.terminal] = 0.0
            offsets = found.solved(costs)
            if offsets is None:
                return None
            bias = low + offsets[quotient.root]
            if self._sweeps.least(bias, gains).value >= 0.0:
                return bias
            margin *= 100
        return None

    def _rows(self, bias: Vector) -> tuple[Vector, Vector]:
        """Return ``c + D_a h`` of all actions, shape (S, A), and what it may be off by."""
        matrix, shape = self.model.transitions, self.model.costs.shape
        num_rows = matrix.shape[0]
        here = bias[self._row_of_entry // shape[1]]
        terms = matrix.data * (bias[matrix.indices] - here)
        sums = np.bincount(self._row_of_entry, weights=matrix.data, minlength=num_rows)
        sums = np.where(sums > 0, sums, 1.0)
        means, sizes = (
            np.bincount(self._row_of_entry, weights=weights, minlength=num_rows) / sums
            for weights in (terms, np.abs(terms))
        )
        costs = np.where(self._available, self.model.costs, 0.0)
        x = costs + means.reshape(shape)
        lengths = np.diff(matrix.indptr).reshape(shape)
        error = (2 * lengths + 8) * UNIT_ROUNDOFF * sizes.reshape(shape)
        return x, np.where(sizes.reshape(shape) > 0, error + UNIT_ROUNDOFF * np.abs(x), 0.0)

    def _policy(
        self, quotient: ends.Quotient, policy: NDArray[np.int32], actions: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """Return the policy that a policy of the quotient stands for; -1 in terminal states."""
        labels = self.components.labels
        result = np.full(self.model.num_states, -1, dtype=np.int64)
        chosen = quotient.chosen(policy.astype(np.int64))
        within = labels >= 0
        stays = within.copy()
        stays[within] = chosen[labels[within]] == -2
        result[stays] = actions[stays]
        transient = ~within & ~self.model.terminal
        result[transient] = policy[quotient.member[transient]]
        doors = chosen[chosen >= 0]
        if len(doors):
            steps, first = self._graph.steps_to(doors, self.components.inside.reshape(-1))
            leaves = within & ~stays
            result[leaves] = first[leaves]
            result[doors] = policy[quotient.member[doors]]
        return result

    def _over(
        self,
        quotient: ends.Quotient,
        policy: NDArray[np.int32],
        actions: NDArray[np.int64],
        highs: Vector,
        high: Vector,
    ) -> tuple[Vector, Vector] | None:
        """Return a pair that proves upper bounds for a policy, None where none was found."""
        labels, terminal = self.components.labels, self.model.terminal
        chosen = quotient.chosen(policy.astype(np.int64))
        within = labels >= 0
        ending = terminal.copy()
        ending[within] = chosen[labels[within]] == -2
        gains = np.zeros(self.model.num_states)
        stays = within & ending
        gains[stays] = highs[labels[stays]]
        # In stayed components, and in terminal states, the gain is given.
        model = with_whole_rows(self.model)
        engine = local_engine(model, 1.0, self._num_threads, self._checkpoint)
        acts = np.maximum(actions, 0).astype(np.int32)
        steps = np.zeros(self.model.num_states)
        if not ending.all():
            equations = EndingEquations(engine, ending)
            equations.follow(acts)
            steps = equations.refined(
                rows_without_ends(engine, acts), np.ones(self.model.num_states)
            )
            if not (np.isfinite(steps).all() and steps.min() >= 0):
                return None
            levels = np.unique(gains[ending])
            if len(levels) == 1:
                gains[:] = levels[0]
            else:
                gains = equations.refined(
                    rows_without_ends(engine, acts), np.zeros(len(gains)), gains
                )
                if not np.isfinite(gains).all():
                    return None
        # Stayed components have no drift by construction; elsewhere steps count down.
        checked = np.where(terminal, -1, actions)
        start = gains
        excess = self._sweeps.most(checked, gains, with_costs=False)
        margin = 0.0
        for _ in range(_MOST_MARGINS):
            if excess.value <= 0.0 or excess.state < 0:
                break
            margin = max(2 * excess.value, 16 * margin)
            gains = start + margin * steps
            excess = self._sweeps.most(checked, gains, with_costs=False)
        else:
            return None
        bias = high
        surplus = self._sweeps.most(checked, bias, gains)
        factor = 0.0
        for _ in range(_MOST_MARGINS):
            if surplus.value <= 0.0 or surplus.state < 0:
                return gains, bias
            if ending[surplus.state]:
                # Of a component's own proof only rounding can be missing.
                gains = np.where(gains == gains, gains + 2 * surplus.value, gains)
                again = self._sweeps.most(checked, gains, with_costs=False)
                if not (again.value <= 0.0 or again.state < 0):
                    return None
            else:
                factor = max(2 * surplus.value, 16 * factor)
                bias = high + factor * steps
            surplus = self._sweeps.most(checked, bias, gains)
        return None


class _Total:
    """Least total costs of a model all of whose policies end: policy iteration.

    Parameters
    ----------
    model : TabularMDP
    num_threads : int
    checkpoint : callable
    """

    def __init__(self, model: TabularMDP, num_threads: int, checkpoint: Callable[[], None]) -> None:
        self._model = with_whole_rows(model)
        assert isinstance(self._model, TabularMDP)
        self._num_threads, self._checkpoint = num_threads, checkpoint
        graph = ends.ChoiceGraph(self._model)
        alive = graph.available
        _, first = graph.steps_to(np.flatnonzero(model.terminal), alive)
        #: The last policy, shape (S,).
        self.policy = np.maximum(first, 0)

    def solved(self, costs: Vector) -> Vector | None:
        """Return the values of the best policy, None where float64 cannot hold them.

        Parameters
        ----------
        costs : ndarray of float, shape (S, A)
        """
        model = replace(self._model, costs=costs, outcome_costs=None)
        terminal = model.terminal
        states = np.arange(model.num_states)
        engine = local_engine(model, 1.0, self._num_threads, self._checkpoint)
        sweeps = Inequalities(model, self._num_threads, self._checkpoint)
        equations = EndingEquations(engine, terminal)
        values, last = None, None
        for _ in range(_MOST_POLICIES):
            policy = self.policy
            equations.follow(policy)
            right = costs[states, policy]
            values = equations.refined(rows_without_ends(engine, policy), right, last)
            size = float(np.abs(values).max(initial=0.0))
            if not size < math.inf:
                return None
            least, best = sweeps.backup(values)
            own = sweeps.policy_backup(np.where(terminal, -1, policy), values)
            slack = _ROUNDING * (size + float(np.abs(right).max(initial=0.0)))
            better = ~terminal & (least < own - slack)
            if not better.any():
                break
            self.policy = np.where(better, best, policy).astype(np.int32)
            last = values
        return values


def _rounded(gains: Vector, fineness: float, sign: float) -> Vector:
    """Return gains rounded to multiples of a power of two: down for the sign -1, else up."""
    # Finer than float64 there is nothing.
    step = max(fineness, 4 * UNIT_ROUNDOFF * float(np.abs(gains).max(initial=0.0)))
    if step == 0.0:
        return gains
    unit = 2.0 ** math.floor(math.log2(step))
    return (np.floor if sign < 0 else np.ceil)(gains / unit) * unit
