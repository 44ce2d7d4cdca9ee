"""From relative values to gains that are certified in every state (docs/certificate.md).

*Below.*  If ``D_a g >= 0`` for all available actions, and ``g <= c + D_a h`` for those inside of
each end component, then ``g <= g*``: whatever one does, one ends up in one of them.  *Above.*  If
``D_pi g <= 0``, and ``c_pi + D_pi h <= g`` in the components where the policy stays, then
``g_pi <= g``.

Where there is an h for which the inequalities hold in all states, anybody can check them who knows
nothing of end components: such an h is looked for, and is left out where float64 has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.arrays import readonly
from aggmaze.models.model import TableModel
from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP
from planners import components as ends
from planners.bellman import local_engine
from planners.inequalities import Inequalities
from planners.kernels.pieces import UNIT_ROUNDOFF
from planners.kernels.tables import outcomes_of
from planners.linear.policy_matrix import PolicyMatrix
from planners.linear.renewal import EndingEquations, lead_to, rows_without_ends
from planners.policies import distances_to
from planners.policy_gains import with_whole_rows

Vector = NDArray[np.float64]

_TINY = float(np.finfo(np.float64).tiny)

# Policies that are tried for a total cost at most, and how often a margin is made larger.
_MOST_POLICIES, _MOST_MARGINS = 200, 6
# What rounding takes of an inequality is made up for so many times over; how often actions are
# added that N' was not made for.
_AMPLE, _MORE, _MOST_ADDED = 2.0, 16.0, 60
# Groups of gains for which it is looked from where they can be reached.
_MOST_LEVELS = 256


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
    bias_lower, bias_upper : ndarray of float, shape (S,), optional
        With them ``(lower, bias_lower)`` and ``(upper, bias_upper)`` satisfy the inequalities in
        all states; None where none were found.
    num_sweeps : int
        How many sweeps that took.
    """

    lower: Vector
    upper: Vector
    policy: NDArray[np.int64]
    bias: Vector
    bias_lower: Vector | None
    bias_upper: Vector | None
    num_sweeps: int


def bounds_of_whole(sweeps: Inequalities, bias: Vector) -> Bounds:
    """Return the bounds that are the same in all states.

    Parameters
    ----------
    sweeps : Inequalities
        Of a model without terminal states.
    bias : ndarray of float, shape (S,)
        Relative values to prove them with.
    """
    num_states = sweeps.model.num_states
    _, actions = sweeps.backup(bias)
    lower, upper = sweeps.least(bias).value, sweeps.most(actions, bias).value
    # Where something is no number nothing is known.
    lower = lower if lower > -math.inf else -math.inf
    upper = upper if upper < math.inf else math.inf
    return Bounds(
        np.full(num_states, lower),
        np.full(num_states, upper),
        actions.astype(np.int64),
        bias - bias[0],
        bias.copy(),
        bias.copy(),
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
        # Of what may happen instead of the chosen move, the largest cost.
        self._slip_costs: Vector | None = None
        if isinstance(model, MoveMDP) and model.p < 1.0:
            sizes = np.abs(np.where(model.available, model.move_costs, 0.0))
            self._slip_costs = sizes.max(axis=1)[:, np.newaxis]
        self._num_threads, self._checkpoint = num_threads, checkpoint
        self._sweeps = Inequalities(model, num_threads, checkpoint)
        self._graph = ends.ChoiceGraph(self.model)
        self.components = ends.maximal_end_components(self._graph)
        self._available = self.model.action_mask & ~self.model.terminal[:, np.newaxis]
        self._leaving = self._available & ~self.components.inside

    @property
    def sweeps(self) -> Inequalities:
        """The sweeps in difference form of the model."""
        return self._sweeps

    def bounds(self, bias: Vector, fineness: float) -> Bounds:
        """Return bounds on the gain of each state.

        Parameters
        ----------
        bias : ndarray of float, shape (S,)
            Relative values in the components.
        fineness : float
            Gains of components are rounded to multiples of about this, so that what is equal but
            for rounding is equal.
        """
        components = self.components
        labels, inside, count = components.labels, components.inside, components.count
        states = np.arange(self.model.num_states)
        x, error = self._rows(bias)
        safe = np.where(inside, x - 2 * error, math.inf).min(axis=1)
        actions = np.where(inside, x, math.inf).argmin(axis=1).astype(np.int32)
        above = x[states, actions] + 2 * error[states, actions]
        lows, highs = np.full(count, math.inf), np.full(count, -math.inf)
        within = np.flatnonzero(labels >= 0)
        np.minimum.at(lows, labels[within], safe[within])
        np.maximum.at(highs, labels[within], above[within])
        if not (np.isfinite(lows).all() and np.isfinite(highs).all()):
            return self._unknown(bias)
        lows, highs = _rounded(lows, fineness, -1.0), _rounded(highs, fineness, 1.0)
        quotient = ends.quotient(
            replace(self.model, costs=np.zeros_like(self.model.costs), outcome_costs=None),
            self.components,
            self._available,
            lows,
        )
        found = _Total(quotient.model, self._num_threads, self._checkpoint)
        lower = self._subharmonic(quotient, found, lows)
        policy = self._policy(quotient, found.policy, actions)
        over = self._over(quotient, found.policy, policy, highs, bias)
        return replace(over, lower=lower, bias_lower=self._bias_below(quotient, lower, bias))

    def _rows(self, bias: Vector) -> tuple[Vector, Vector]:
        """Return ``c + D_a h`` of all actions, shape (S, A), and what it may be off by."""
        x, error = rows_of(self.model, bias)
        if self._slip_costs is not None:
            # The sums of moves have costs in them, and the weights of the table are rounded.
            room = 64 * (self.model.num_actions + 2) * UNIT_ROUNDOFF
            error = (16 + self.model.num_actions) * error + room * self._slip_costs
        return x, error

    def _unknown(self, bias: Vector) -> Bounds:
        """Return what is known where relative values are no numbers: nothing."""
        size = self.model.num_states
        infinite = np.full(size, math.inf)
        first = self.model.action_mask.argmax(axis=1)
        return Bounds(-infinite, infinite, first, bias, None, None, 1)

    def _subharmonic(self, quotient: ends.Quotient, found: _Total, lows: Vector) -> Vector:
        """Return gains g with ``D_a g >= 0`` that are at most those of components."""
        labels = self.components.labels
        caps = np.append(lows, math.inf)[labels]
        caps[self.model.terminal] = 0.0
        tried: list[Vector] = []

        def try_(gains: Vector) -> float:
            tried.append(self._even(np.minimum(gains, caps)))
            return self._sweeps.least(tried[-1], with_costs=False).value

        costs = quotient.model.costs
        values = found.solved(costs)
        if values is not None and self._made_up(quotient, costs, values, found.policy, try_):
            return tried[-1]
        # The least gain of what can be reached: equal numbers, nothing of which is rounded.
        reached = np.full(self.model.num_states, math.inf)
        levels, of_level = np.unique(caps, return_inverse=True)
        width = -(-len(levels) // _MOST_LEVELS)
        for first in range(0, len(levels), width):
            # Of several at a time the least.
            level = levels[first]
            here = (of_level >= first) & (of_level < first + width) & (caps < math.inf)
            steps, _ = self._graph.steps_to(np.flatnonzero(here), self._available.reshape(-1))
            reached[(steps >= 0) & (reached == math.inf)] = level
            if (reached < math.inf).all():
                break
        return reached

    def _even(self, gains: Vector) -> Vector:
        """Return gains that are the same in all states of a component: the least of them."""
        labels = self.components.labels
        within = np.flatnonzero(labels >= 0)
        least = np.full(self.components.count, math.inf)
        np.minimum.at(least, labels[within], gains[within])
        gains = gains.copy()
        gains[within] = least[labels[within]]
        return gains

    def _bias_below(self, quotient: ends.Quotient, gains: Vector, low: Vector) -> Vector | None:
        """Return h with ``c + D_a h - g >= 0`` for all actions, None where none was found."""
        if self._sweeps.least(low, gains).value >= 0.0:
            return low
        slack, error = self._rows(low)
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
        # Less than their last digit cannot be taken off values.
        missing = max(-least, 8 * UNIT_ROUNDOFF * float(np.abs(values).max()))
        model = quotient.model
        states = np.arange(model.num_states)
        available = model.action_mask & ~model.terminal[:, np.newaxis]
        near = rows_of(model, values, costs)[0] <= _AMPLE * missing
        near[states, policy] = True
        near &= available
        minus_steps = np.zeros_like(costs)
        minus_steps[quotient.origin >= 0] = -1.0
        minus_steps[model.terminal] = 0.0
        fewer: Vector | None = None
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
            below = (rows_of(model, lowered, costs)[0] < 0.0) & available & ~near
            if not below.any():
                break
            near |= below
        assert fewer is not None
        amount = _AMPLE * missing
        for _ in range(_MOST_MARGINS):
            amount *= _AMPLE
            if try_((values + amount * fewer)[quotient.root]) >= 0.0:
                return True
        return False

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
            inside = readonly(self.components.inside)
            steps, _ = self._graph.steps_to(doors, inside.reshape(-1))
            ways = np.zeros(self.model.num_states, dtype=np.int32)
            lead_to(outcomes_of(self.model)._replace(mask=inside), steps, ways)
            leaves = within & ~stays
            result[leaves] = ways[leaves]
            result[doors] = policy[quotient.member[doors]]
        return result

    def _over(
        self,
        quotient: ends.Quotient,
        policy: NDArray[np.int32],
        actions: NDArray[np.int64],
        highs: Vector,
        high: Vector,
    ) -> Bounds:
        """Return what is known of a policy, given that of a quotient that it stands for."""
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
        checked = np.where(terminal, -1, actions)
        if not ending.all():
            gains, bias, steps = self._on_the_way(checked, ending, gains, bias)
        above = self._bias_above(checked, gains, bias, steps)
        return Bounds(gains, gains, np.maximum(checked, 0), bias, None, above, 10)

    def _on_the_way(
        self,
        actions: NDArray[np.int64],
        ending: NDArray[np.bool_],
        gains: Vector,
        bias: Vector,
    ) -> tuple[Vector, Vector, Vector]:
        """Return gains with ``D_pi g <= 0``, bias and expected steps of a policy until it ends."""
        size = len(gains)
        model = with_whole_rows(self.model)
        engine = local_engine(model, 1.0, self._num_threads, self._checkpoint)
        policy = np.maximum(actions, 0).astype(np.int32)
        matrix = rows_without_ends(engine, policy)
        equations = EndingEquations(engine, ending)
        equations.follow(policy)
        steps = equations.refined(matrix, np.ones(size))
        costs = self.model.costs[np.arange(size), policy]
        levels = np.unique(gains[ending])
        if len(levels) == 1:
            gains = np.full(size, levels[0])
        else:
            found = equations.refined(matrix, np.zeros(size), gains)
            # Steps count down, and make up for what rounding takes.
            gains_found = self._superharmonic(actions, found, steps)
            if gains_found is None:
                # The largest gain of what can be reached: equal numbers, none of them rounded.
                gains_found = self._most_reachable(matrix, ending, gains)
            gains = gains_found
        bias = equations.refined(matrix, costs - gains, bias)
        return gains, bias, steps

    def _superharmonic(
        self, actions: NDArray[np.int64], gains: Vector, steps: Vector
    ) -> Vector | None:
        """Return gains with ``D_pi g <= 0``, raised by a multiple of steps; None if that fails."""
        raised, margin = gains, 0.0
        for _ in range(_MOST_MARGINS):
            excess = self._sweeps.most(actions, raised, with_costs=False).value
            if excess <= 0.0:
                return raised
            margin = max(_AMPLE * excess, _MORE * margin)
            raised = gains + margin * steps
        return None

    def _most_reachable(
        self, matrix: PolicyMatrix, ending: NDArray[np.bool_], gains: Vector
    ) -> Vector:
        """Return the largest gain of where a policy may end from each state."""
        size = len(gains)
        chain = sp.csr_array(
            (matrix.entries, matrix.columns.copy(), matrix.starts.copy()), shape=(size, size)
        )
        reached = np.full(size, -math.inf)
        levels, of_level = np.unique(-gains[ending], return_inverse=True)
        states = np.flatnonzero(ending)
        width = -(-len(levels) // _MOST_LEVELS)
        for first in range(0, len(levels), width):
            # Of several at a time the largest.
            level = -levels[first]
            here = (of_level >= first) & (of_level < first + width)
            steps, _ = distances_to(chain, states[here])
            reached[(steps >= 0) & (reached == -math.inf)] = level
        return reached

    def _bias_above(
        self, actions: NDArray[np.int64], gains: Vector, bias: Vector, steps: Vector
    ) -> Vector | None:
        """Return h with ``c_pi + D_pi h - g <= 0``, None where none was found."""
        above, factor = bias, 0.0
        for _ in range(_MOST_MARGINS):
            surplus = self._sweeps.most(actions, above, gains).value
            if surplus <= 0.0:
                return above
            factor = max(_AMPLE * surplus, _MORE * factor)
            above = bias + factor * steps
        return None


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
        self._num_threads, self._checkpoint = num_threads, checkpoint
        if policy is not None:
            self.policy = policy
            return
        graph = ends.ChoiceGraph(self._model)
        steps, _ = graph.steps_to(np.flatnonzero(model.terminal), graph.available)
        #: The last policy, shape (S,).
        self.policy = np.zeros(model.num_states, dtype=np.int32)
        lead_to(outcomes_of(self._model), steps, self.policy)

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
        available = model.action_mask
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
            x, error = rows_of(model, values)
            x = np.where(available, x, math.inf)
            best = x.argmin(axis=1)
            gain = x[states, policy] - x[states, best]
            better = ~terminal & (gain > 2 * (error[states, policy] + error[states, best]))
            if not better.any():
                break
            self.policy = np.where(better, best, policy).astype(np.int32)
            last = values
        return values


def rows_of(model: TabularMDP, bias: Vector, costs: Vector | None = None) -> tuple[Vector, Vector]:
    """Return ``c + D_a h`` of all actions, shape (S, A), and what it may be off by.

    Parameters
    ----------
    model : TabularMDP
    bias : ndarray of float, shape (S,)
    costs : ndarray of float, shape (S, A), optional
        In the place of the model's.
    """
    matrix, shape = model.transitions, model.costs.shape
    num_rows = matrix.shape[0]
    row_of_entry = np.repeat(np.arange(num_rows), np.diff(matrix.indptr))
    steps = bias[matrix.indices] - bias[row_of_entry // shape[1]]
    terms = matrix.data * steps
    sums = np.bincount(row_of_entry, weights=matrix.data, minlength=num_rows)
    sums = np.where(sums > 0, sums, 1.0)
    means, sizes = (
        np.bincount(row_of_entry, weights=weights, minlength=num_rows) / sums
        for weights in (terms, np.abs(terms))
    )
    x = np.where(model.action_mask, model.costs if costs is None else costs, 0.0)
    x += means.reshape(shape)
    lengths = np.diff(matrix.indptr).reshape(shape)
    error = (2 * lengths + 8) * UNIT_ROUNDOFF * sizes.reshape(shape) + UNIT_ROUNDOFF * np.abs(x)
    # Products of what is not 0 may be.
    moved = np.bincount(row_of_entry, (matrix.data > 0) & (steps != 0), num_rows) > 0
    return x, np.where(moved.reshape(shape), error + _TINY, 0.0)


def _rounded(gains: Vector, fineness: float, sign: float) -> Vector:
    """Return gains rounded to multiples of a power of two: down for the sign -1, else up."""
    # Finer than float64 there is nothing.
    step = max(fineness, 4 * UNIT_ROUNDOFF * float(np.abs(gains).max(initial=0.0)))
    if step == 0.0:
        return gains
    unit = 2.0 ** math.floor(math.log2(step))
    return (np.floor if sign < 0 else np.ceil)(gains / unit) * unit
