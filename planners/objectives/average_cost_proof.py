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
# What rounding takes of an inequality is made up for so many times over; how often actions are added
# that N' was not made for.
_AMPLE, _MOST_ADDED = 2.0, 60
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
    bias : ndarray of float, shape (S,)
        Relative values of the policy: ``c_pi + D_pi h`` is within the bounds, too.
    bias_lower, bias_upper : ndarray of float, shape (S,)
        With them ``(lower, bias_lower)`` and ``(upper, bias_upper)`` are the pairs that prove it.
    num_sweeps : int
        How many sweeps that took.
    """

    lower: Vector
    upper: Vector
    policy: NDArray[np.int64]
    bias: Vector
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
        high - high[0],
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
        least, error = self._rows(self.model, low)
        safe = np.where(inside, least - 2 * error, math.inf).min(axis=1)
        x, error = self._rows(self.model, high)
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
        if over is None:
            upper, bias_upper, bias = plain.upper, plain.bias_upper, plain.bias
        else:
            upper, bias_upper, bias = over
        return Bounds(
            lower,
            upper,
            plain.policy if over is None else np.maximum(policy, 0),
            bias,
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

        def try_(gains: Vector) -> float:
            gains = self._even(np.minimum(gains, caps))
            value = self._sweeps.least(gains, with_costs=False).value
            if value >= 0.0:
                candidates.append(gains)
            return value

        self._made_up(quotient, quotient.model.costs, values, found.policy, try_)
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
        slack, error = self._rows(self.model, low)
        slack = np.where(self._leaving, slack - gains[:, np.newaxis] - 2 * error, 0.0)
        if not np.isfinite(slack).all():
            return None
        members = np.flatnonzero(quotient.origin >= 0)
        costs = np.zeros_like(quotient.model.costs)
        costs[members, : self.model.num_actions] = slack[quotient.origin[members]]
        costs[quotient.model.terminal] = 0.0
        found = _Total(quotient.model, self._num_threads, self._checkpoint)
        offsets = found.solved(costs)
        if offsets is None:
            return None
        candidates: list[Vector] = []

        def try_(offset: Vector) -> float:
            candidates.append(low + offset)
            return self._sweeps.least(candidates[-1], gains).value

        if self._made_up(quotient, costs, offsets, found.policy, try_):
            return candidates[-1]
        return None

    def _made_up(
        self,
        quotient: ends.Quotient,
        costs: Vector,
        values: Vector,
        policy: NDArray[np.int32],
        try_: Callable[[Vector], float],
    ) -> bool:
        """Try values, and lower ones that make up for what rounding takes; whether one will do.

        They are lowered by a multiple of N', which falls by 1 with each action that leaves a
        component or a transient state and is near the best.

        Parameters
        ----------
        quotient : Quotient
        costs : ndarray of float
            Of the model of the quotient, that the values are least total costs for.
        values, policy : ndarray
            Of the model of the quotient.
        try_ : callable
            Takes values of the states of the source, and returns the least of what is not to be
            negative.
        """
        least = try_(values[quotient.root])
        if least >= 0.0:
            return True
        missing, model = -least, quotient.model
        states = np.arange(model.num_states)
        available = model.action_mask & ~model.terminal[:, np.newaxis]
        near = self._rows(model, values, costs)[0] <= _AMPLE * missing
        near[states, policy] = True
        near &= available
        minus_steps = np.zeros_like(costs)
        minus_steps[quotient.origin >= 0] = -1.0
        minus_steps[model.terminal] = 0.0
        for _ in range(_MOST_ADDED):
            restricted = replace(model, action_mask=near | model.terminal[:, np.newaxis])
            longest = _Total(restricted, self._num_threads, self._checkpoint, policy)
            fewer = longest.solved(minus_steps)
            if fewer is None or not math.isfinite(missing):
                return False
            policy = longest.policy
            lowered = values + _AMPLE * missing * fewer
            if try_(lowered[quotient.root]) >= 0.0:
                return True
            below = (self._rows(model, lowered, costs)[0] < 0.0) & available & ~near
            if not below.any():
                break
            near |= below
        amount = _AMPLE * missing
        for _ in range(_MOST_MARGINS):
            amount *= _AMPLE
            if try_((values + amount * fewer)[quotient.root]) >= 0.0:
                return True
        return False

    @staticmethod
    def _rows(
        model: TabularMDP, bias: Vector, costs: Vector | None = None
    ) -> tuple[Vector, Vector]:
        """Return ``c + D_a h`` of all actions, shape (S, A), and what it may be off by."""
        matrix, shape = model.transitions, model.costs.shape
        num_rows = matrix.shape[0]
        row_of_entry = np.repeat(np.arange(num_rows), np.diff(matrix.indptr))
        terms = matrix.data * (bias[matrix.indices] - bias[row_of_entry // shape[1]])
        sums = np.bincount(row_of_entry, weights=matrix.data, minlength=num_rows)
        sums = np.where(sums > 0, sums, 1.0)
        means, sizes = (
            np.bincount(row_of_entry, weights=weights, minlength=num_rows) / sums
            for weights in (terms, np.abs(terms))
        )
        x = np.where(model.action_mask, model.costs if costs is None else costs, 0.0)
        x += means.reshape(shape)
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
    ) -> tuple[Vector, Vector, Vector] | None:
        """Return a pair that proves upper bounds for a policy, and its bias; None without one."""
        labels, terminal = self.components.labels, self.model.terminal
        chosen = quotient.chosen(policy.astype(np.int64))
        within = labels >= 0
        ending = terminal.copy()
        ending[within] = chosen[labels[within]] == -2
        stays = within & ending
        gains = np.zeros(self.model.num_states)
        gains[stays] = highs[labels[stays]]
        first = np.zeros(self.components.count + 1, dtype=np.int64)
        first[labels[::-1]] = np.arange(len(labels))[::-1]
        # In stayed components, and in terminal states, gain and bias are given.
        bias = np.where(stays, high - high[first[labels]], 0.0)
        steps = np.zeros(self.model.num_states)
        if not ending.all():
            found = self._on_the_way(actions, ending, gains, bias)
            if found is None:
                return None
            gains, bias, steps = found
        checked = np.where(terminal, -1, actions)
        # Stayed components have no drift by construction; elsewhere steps count down.
        start = gains
        excess = self._sweeps.most(checked, gains, with_costs=False)
        margin = 0.0
        for _ in range(_MOST_MARGINS):
            if excess.value <= 0.0:
                break
            margin = max(_AMPLE * excess.value, 16 * margin)
            gains = start + margin * steps
            excess = self._sweeps.most(checked, gains, with_costs=False)
        if not excess.value <= 0.0:
            return None
        above, factor = bias, 0.0
        surplus = self._sweeps.most(checked, above, gains)
        for _ in range(_MOST_MARGINS):
            if surplus.value <= 0.0:
                return gains, above, bias
            if ending[surplus.state]:
                return None
            factor = max(_AMPLE * surplus.value, 16 * factor)
            above = bias + factor * steps
            surplus = self._sweeps.most(checked, above, gains)
        return None

    def _on_the_way(
        self,
        actions: NDArray[np.int64],
        ending: NDArray[np.bool_],
        gains: Vector,
        bias: Vector,
    ) -> tuple[Vector, Vector, Vector] | None:
        """Return gain, bias and expected steps of a policy until it ends, given those of ends.

        None where float64 cannot hold them.
        """
        model = with_whole_rows(self.model)
        engine = local_engine(model, 1.0, self._num_threads, self._checkpoint)
        policy = np.maximum(actions, 0).astype(np.int32)
        matrix = rows_without_ends(engine, policy)
        equations = EndingEquations(engine, ending)
        equations.follow(policy)
        size = len(gains)
        steps = equations.refined(matrix, np.ones(size))
        if not (np.isfinite(steps).all() and steps.min() >= 0):
            return None
        levels = np.unique(gains[ending])
        if len(levels) == 1:
            gains = np.full(size, levels[0])
        else:
            gains = equations.refined(matrix, np.zeros(size), gains)
        costs = self.model.costs[np.arange(size), policy]
        bias = equations.refined(matrix, costs - gains, bias)
        if not (np.isfinite(gains).all() and np.isfinite(bias).all()):
            return None
        return gains, bias, steps


class _Total:
    """Least total costs of a model all of whose policies end: policy iteration.

    Parameters
    ----------
    model : TabularMDP
    num_threads : int
    checkpoint : callable
    policy : ndarray of int32, shape (S,), optional
        Where to start; by default the shortest ways to an end.
    """

    def __init__(
        self,
        model: TabularMDP,
        num_threads: int,
        checkpoint: Callable[[], None],
        policy: NDArray[np.int32] | None = None,
    ) -> None:
        self._model = with_whole_rows(model)
        assert isinstance(self._model, TabularMDP)
        self._num_threads, self._checkpoint = num_threads, checkpoint
        if policy is not None:
            self.policy = policy
            return
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
