"""Truth that owes nothing to the planners: dense tables, exact fractions, plain loops.

`Dense` reads a model's own fields into dense arrays (the slip of a `MoveMDP` is expanded here, not
by the product); `truth` solves it by policy iteration, refined in long double, and says how far it
can be off.  `Exact` does the same with fractions, for models of a few states, and is not off at
all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

import planners
from aggmaze import MoveMDP, TabularMDP
from aggmaze.grid import Grid
from aggmaze.recipes import Recipe, maze_model

Model = TabularMDP | MoveMDP
Array = NDArray[Any]


@dataclass(frozen=True)
class Dense:
    """P (S, A, S), costs (S, A), mask (S, A) and terminal (S,); nothing in rows that are masked."""

    P: Array
    costs: Array
    mask: Array
    terminal: Array

    @property
    def num_states(self) -> int:
        return len(self.terminal)


def dense(model: Model) -> Dense:
    num_states, num_actions = model.num_states, model.num_actions
    P = np.zeros((num_states, num_actions, num_states))
    costs = np.zeros((num_states, num_actions))
    if isinstance(model, TabularMDP):
        mask = model.action_mask & ~model.terminal[:, np.newaxis]
        P[:] = model.transitions.toarray().reshape(P.shape)
        costs[:] = model.costs
        P[~mask] = 0.0
        costs[~mask] = 0.0
        return Dense(P, costs, mask, np.array(model.terminal))
    mask = np.isfinite(model.move_costs)
    for s in range(num_states):
        moves = np.flatnonzero(mask[s])
        for chosen, happens in itertools.product(moves, moves):
            if len(moves) == 1:
                probability = 1.0
            elif chosen == happens:
                probability = model.p
            else:
                probability = (1 - model.p) / (len(moves) - 1)
            P[s, chosen, model.successors[s, happens]] += probability
            costs[s, chosen] += probability * model.move_costs[s, happens]
    return Dense(P, costs, mask, ~mask.any(axis=1))


#: Methods that make one sweep, or one aggregated update, an iteration, and many iterations.
PLAIN_METHODS = ("value_iteration", "gauss_seidel", "adaptive_aggregation")


def methods_for(model: Model) -> list[str]:
    """Return the methods that take a model, and nothing else."""
    only_moves = {"basin_aggregation"}
    methods = [m for m in planners.METHODS if m != "fixed_aggregation"]  # which needs labels
    return [m for m in methods if isinstance(model, MoveMDP) or m not in only_moves]


def value_of(tables: Dense, policy: Array, gamma: float) -> Array:
    """Return the value of actions (S,) or probabilities (S, A), in long double."""
    if policy.ndim == 1:
        policy = np.eye(tables.mask.shape[1])[policy]
    policy = np.where(tables.mask, policy, 0.0)
    P = np.einsum("sa,sat->st", policy, tables.P)
    costs = np.einsum("sa,sa->s", policy.astype(np.longdouble), tables.costs)
    matrix = np.eye(len(P)) - gamma * P
    factor = np.longdouble(gamma)
    P_long = P.astype(np.longdouble)
    V = np.linalg.solve(matrix, costs.astype(np.float64)).astype(np.longdouble)
    for _ in range(4):
        residual = costs + factor * (P_long @ V) - V
        V += np.linalg.solve(matrix, residual.astype(np.float64))
    return V


def action_values(tables: Dense, V: Array, gamma: float) -> Array:
    """Return c + gamma P V in long double, +inf where masked and in terminal states."""
    V = np.asarray(V, dtype=np.longdouble)
    Q = tables.costs + np.longdouble(gamma) * (tables.P.astype(np.longdouble) @ V)
    return np.where(tables.mask, Q, np.inf)


def truth(tables: Dense, gamma: float) -> tuple[Array, float]:
    """Return V* by policy iteration, in long double, and a bound on its error."""
    policy = np.where(tables.terminal, 0, tables.mask.argmax(axis=1))
    states = np.arange(tables.num_states)
    for _ in range(1000):
        V = value_of(tables, policy, gamma)
        Q = action_values(tables, V, gamma)
        Q[tables.terminal] = 0.0
        best = Q.min(axis=1)
        # Only what is better beyond long double's rounding, or ties would turn in circles.
        better = best < Q[states, policy] - 1e-17 * np.abs(V).max()
        if not better.any():
            return V, float(np.abs(best - V).max()) / (1 - gamma)
        policy = np.where(better, Q.argmin(axis=1), policy)
    raise AssertionError("policy iteration does not end")


def backup(tables: Dense, V: Array, gamma: float) -> Array:
    """Return TV in float64."""
    return np.where(tables.terminal, 0.0, action_values(tables, V, gamma).min(axis=1)).astype(float)


def greedy_loss(tables: Dense, values: Array, gamma: float, V: Array) -> float:
    """Return how much more than V a greedy policy for some values costs, at most."""
    policy = np.where(tables.terminal, 0, action_values(tables, values, gamma).argmin(axis=1))
    return float((value_of(tables, policy, gamma) - V).max())


def spread(labels: Array, values: Array) -> float:
    """Return the largest difference of values within a mega-state."""
    return max(float(np.ptp(values[labels == j])) for j in range(labels.max() + 1))


def bounds_hold(V: Array, off: float = 0.0) -> Callable[[planners.Progress], None]:
    """Return a callback that checks every bound against V, which is off by ``off`` at most."""

    def check(progress: planners.Progress) -> None:
        assert np.abs(progress.values - V).max() <= progress.bound + off

    return check


def exact_bounds_hold(V: Sequence[Fraction]) -> Callable[[planners.Progress], None]:
    """Return a callback that checks every bound against exact values."""

    def check(progress: planners.Progress) -> None:
        assert within(exact_error(progress.values, V), progress.bound)

    return check


def all_policies(tables: Dense) -> Iterator[Array]:
    choices = [
        [0] if terminal else np.flatnonzero(mask)
        for mask, terminal in zip(tables.mask, tables.terminal, strict=True)
    ]
    for policy in itertools.product(*choices):
        yield np.array(policy)


# ---------------------------------------------------------------------------------------------
# Fractions.

Outcomes = list[tuple[Fraction, int]]


class Exact:
    """A model in fractions; `actions[s]` maps an action to its cost and its outcomes.

    Rows are taken as they are stored, or with ``normalized`` as they were meant: to sum to 1 where
    they miss that by no more than the roundings of their entries.
    """

    def __init__(self, model: Model, gamma: float, *, normalized: bool = False) -> None:
        self.gamma = Fraction(gamma)
        self.actions: list[dict[int, tuple[Fraction, Outcomes]]] = []
        # Costs without their signs, by state and action.
        self._sizes: list[dict[int, Fraction]] = []
        for s in range(model.num_states):
            self.actions.append({})
            self._sizes.append({})
            if model.terminal[s]:
                continue
            for a in np.flatnonzero(model.action_mask[s]).tolist():
                if isinstance(model, TabularMDP):
                    cost, size, outcomes = self._tabular(model, s, a)
                else:
                    cost, size, outcomes = self._moves(model, s, a)
                if normalized:
                    total = sum(p for p, _ in outcomes)
                    if abs(total - 1) <= Fraction(2 * len(outcomes), 2**53):
                        outcomes = [(p / total, t) for p, t in outcomes]
                self.actions[s][a] = cost, outcomes
                self._sizes[s][a] = size

    @staticmethod
    def _tabular(model: TabularMDP, s: int, a: int) -> tuple[Fraction, Fraction, Outcomes]:
        matrix = model.transitions
        row = slice(*matrix.indptr[s * model.num_actions + a :][:2])
        outcomes = [
            (Fraction(float(p)), int(t))
            for p, t in zip(matrix.data[row], matrix.indices[row], strict=True)
        ]
        cost = Fraction(float(model.costs[s, a]))
        return cost, abs(cost), outcomes

    @staticmethod
    def _moves(model: MoveMDP, s: int, chosen: int) -> tuple[Fraction, Fraction, Outcomes]:
        moves = [int(m) for m in np.flatnonzero(np.isfinite(model.move_costs[s]))]
        p = Fraction(model.p) if len(moves) > 1 else Fraction(1)
        other = (1 - p) / max(1, len(moves) - 1)
        shares = [p if m == chosen else other for m in moves]
        costs = [
            share * Fraction(float(model.move_costs[s, m]))
            for share, m in zip(shares, moves, strict=True)
        ]
        outcomes = [
            (share, int(model.successors[s, m])) for share, m in zip(shares, moves, strict=True)
        ]
        return Fraction(sum(costs)), Fraction(sum(map(abs, costs))), outcomes

    def q(self, V: Sequence[Fraction], s: int, a: int) -> Fraction:
        cost, outcomes = self.actions[s][a]
        return cost + self.gamma * sum(p * V[t] for p, t in outcomes)

    def value(self, policy: Sequence[int]) -> list[Fraction]:
        """Return the value of actions."""
        return self.value_and_sizes(np.array(policy))[0]

    def value_and_sizes(self, policy: Array) -> tuple[list[Fraction], list[Fraction]]:
        """Return the value of actions (S,) or weights (S, A), and what it were if every cost paid.

        Weights are divided by their sum.  By elimination of V = c + gamma P V.
        """
        size = len(self.actions)
        rows = [[Fraction(int(i == j)) for j in range(size + 2)] for i in range(size)]
        for s, actions in enumerate(self.actions):
            if not actions:
                continue
            if policy.ndim == 1:
                weights = {int(policy[s]): Fraction(1)}
            else:
                weights = {a: Fraction(float(policy[s, a])) for a in actions if policy[s, a] > 0}
            total = sum(weights.values())
            for a, weight in weights.items():
                cost, outcomes = actions[a]
                rows[s][size] += weight / total * cost
                rows[s][size + 1] += weight / total * self._sizes[s][a]
                for p, t in outcomes:
                    rows[s][t] -= self.gamma * p * weight / total
        for i in range(size):
            # The matrix is diagonally dominant: no pivot is 0.
            pivot = rows[i]
            for k in range(size):
                if k != i and rows[k][i]:
                    factor = rows[k][i] / pivot[i]
                    rows[k] = [x - factor * y for x, y in zip(rows[k], pivot, strict=True)]
        values = [rows[i][size] / rows[i][i] for i in range(size)]
        return values, [rows[i][size + 1] / rows[i][i] for i in range(size)]

    def optimum(self) -> list[Fraction]:
        """Policy iteration: exact, so it ends."""
        policy = [min(actions, default=0) for actions in self.actions]
        while True:
            V = self.value(policy)
            changed = False
            for s, actions in enumerate(self.actions):
                for a in actions:
                    if self.q(V, s, a) < self.q(V, s, policy[s]):
                        policy[s] = a
                        changed = True
            if not changed:
                return V


def exact_error(values: Array, V: Sequence[Fraction]) -> Fraction:
    return max(abs(Fraction(float(x)) - y) for x, y in zip(values, V, strict=True))


def within(error: Fraction, bound: float) -> bool:
    """Compare without rounding; a bound may be infinite, but not NaN or negative."""
    return bound == math.inf or (bound >= 0 and error <= Fraction(bound))


def check_exactly(
    model: Model,
    gamma: float,
    method: str,
    num_iterations: int,
    last: float | None,
    **options: Any,
) -> None:
    """Check every bound in fractions, from V = 0 or from values that rise from 0 to ``last``."""
    planners.solve(
        model,
        gamma=gamma,
        method=method,
        num_iterations=num_iterations,
        V0=None if last is None else np.linspace(0, last, model.num_states),
        callback=exact_bounds_hold(Exact(model, gamma).optimum()),
        **options,
    )


# ---------------------------------------------------------------------------------------------
# Random models.


def random_tabular(
    seed: int, num_states: int, num_actions: int, *, terminals: int = 1, successors: int = 3
) -> TabularMDP:
    """Return a sparse random model with masked actions; its last states are terminal."""
    rng = np.random.default_rng(seed)
    P = np.zeros((num_states, num_actions, num_states))
    for s, a in itertools.product(range(num_states), range(num_actions)):
        following = rng.choice(num_states, min(successors, num_states), replace=False)
        P[s, a, following] = rng.dirichlet(np.ones(len(following)))
    costs = rng.normal(size=(num_states, num_actions))
    mask = rng.random((num_states, num_actions)) < 0.8
    mask[np.arange(num_states), rng.integers(num_actions, size=num_states)] = True
    for s in range(num_states - terminals, num_states):
        P[s] = 0.0
        P[s, :, s] = 1.0
        costs[s] = 0.0
    return TabularMDP.from_matrices(P, costs=costs, action_mask=mask)


def random_moves(
    seed: int, num_states: int, num_moves: int, *, p: float, terminals: int = 1
) -> MoveMDP:
    """Return a random model of moves with some unavailable; its last states are terminal."""
    rng = np.random.default_rng(seed)
    successors = rng.integers(num_states, size=(num_states, num_moves))
    costs = rng.normal(size=(num_states, num_moves))
    blocked = rng.random((num_states, num_moves)) < 0.3
    blocked[np.arange(num_states), rng.integers(num_moves, size=num_states)] = False
    costs[blocked] = np.inf
    costs[num_states - terminals :] = np.inf
    return MoveMDP(successors, costs, p=p)


def random_grid(seed: int, shape: tuple[int, ...], p: float, blocked: float = 0.0) -> MoveMDP:
    """Return random costs on a grid, some moves blocked, the first state terminal or not."""
    rng = np.random.default_rng(seed)
    grid = Grid(shape)
    coords = np.indices(shape).reshape(len(shape), -1)
    states = np.arange(grid.num_states)
    successors = np.repeat(states[:, np.newaxis], 2 * len(shape), axis=1)
    costs = rng.normal(size=successors.shape) + rng.choice([0.0, 1.0])
    for axis, size in enumerate(shape):
        for sign in (0, 1):
            inside = coords[axis] > 0 if sign == 0 else coords[axis] < size - 1
            move = 2 * axis + sign
            successors[inside, move] += (2 * sign - 1) * grid.strides[axis]
            # At the border some moves are unavailable, others stay in place.
            missing = ~inside & (rng.random(grid.num_states) < 0.5)
            missing |= rng.random(grid.num_states) < blocked
            costs[missing, move] = np.inf
    if rng.random() < 0.5:
        costs[0] = np.inf
    return MoveMDP(successors, costs, p=p)


def maze_of(recipe: Recipe, shape: tuple[int, ...], *, p: float = 1.0, seed: int = 0) -> MoveMDP:
    """Return a maze, drawn."""
    return maze_model(recipe.layout(Grid(shape), np.random.default_rng(seed)), recipe, p=p)


def small_models() -> dict[str, Model]:
    """Return random models of both layouts and all kinds, by what they are."""
    return {
        "table": random_tabular(0, 30, 3),
        "table without terminal states": random_tabular(1, 12, 2, terminals=0),
        "moves": random_moves(0, 30, 4, p=0.9),
        "moves, p < 1/n": random_moves(1, 25, 4, p=0.15, terminals=2),
        "moves that never slip": random_moves(2, 25, 3, p=1.0),
        "moves without terminal states": random_moves(3, 10, 3, p=0.5, terminals=0),
    }


gammas = st.sampled_from([0.0, 0.5, 0.9, 0.95, 0.99, 0.999]) | st.floats(
    0, 0.999, allow_subnormal=False
)

# Ties among costs are common; none is so small that products with it underflow.
_costs = st.sampled_from([0.0, 1.0, -1.0, 0.5]) | st.floats(-1, 1, width=16)
_scales = st.sampled_from([1.0, 1.0, 1e6, 1e-3])


@st.composite
def tabular_models(draw: st.DrawFn) -> TabularMDP:
    """Any model of up to five states: ties, self-loops, unreachable and terminal states.

    Some rows list a next state twice.
    """
    num_states = draw(st.integers(1, 5))
    num_actions = draw(st.integers(1, 3))
    shape = (num_states, num_actions)
    weights = draw(hnp.arrays(np.int64, (*shape, num_states), elements=st.integers(0, 3)))
    costs = draw(hnp.arrays(np.float64, shape, elements=_costs)) * draw(_scales)
    mask = draw(hnp.arrays(np.bool_, shape, elements=st.sampled_from([True, True, False])))
    terminal = draw(hnp.arrays(np.bool_, num_states, elements=st.sampled_from([False, True])))
    mask[:, 0] |= ~mask.any(axis=1)
    costs[terminal] = 0.0
    data, indices, counts = [], [], []
    for s, a in itertools.product(range(num_states), range(num_actions)):
        row = weights[s, a]
        if terminal[s] or not row.any():
            row = np.eye(num_states, dtype=np.int64)[s]
        following = np.flatnonzero(row)
        probabilities = row[following] / row.sum()
        if (s + a) % 3 == 2:  # the same row in halves
            following = np.concatenate([following, following])
            probabilities = np.concatenate([probabilities, probabilities]) / 2
        data.append(probabilities)
        indices.append(following)
        counts.append(len(following))
    matrix = sp.csr_array(
        (np.concatenate(data), np.concatenate(indices), np.concatenate([[0], np.cumsum(counts)])),
        shape=(num_states * num_actions, num_states),
    )
    return TabularMDP(matrix, costs, action_mask=mask).validate()


@st.composite
def move_models(draw: st.DrawFn) -> MoveMDP:
    """Any model of up to five states and three moves, with slip down to below 1/n."""
    shape = (draw(st.integers(1, 5)), draw(st.integers(1, 3)))
    successors = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, shape[0] - 1)))
    costs = draw(hnp.arrays(np.float64, shape, elements=_costs)) * draw(_scales)
    blocked = draw(hnp.arrays(np.bool_, shape, elements=st.sampled_from([False, False, True])))
    costs[blocked] = np.inf
    p = draw(st.sampled_from([1.0, 0.95, 0.5, 1 / 3, 0.25, 0.1, 1e-3]))
    return MoveMDP(successors, costs, p=p).validate()


models = tabular_models() | move_models()
