"""What the paper proves, as tests: Theorem 1 and Propositions 1 to 3.

Its assumptions hold here: costs are at most 1 in size, so that |V*| <= 1/(1-gamma), and steps are
counted over the whole run.  The proofs bound how far an aggregated phase of ``a`` iterations moves
W by ``2 alpha / (1-gamma)`` a step, and need ``epsilon / 2`` in all ("Condition 1"): that is
``a alpha <= epsilon (1-gamma) / 4``.  Proposition 2 as printed asks for less, which its own proof
cannot do with; see `test_proposition_2_as_printed`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import planners
from aggmaze import TabularMDP
from aggmaze.grid import Grid
from aggmaze.recipes import Recipe, StandardRecipe, TerrainRecipe, maze_model
from planners.aggregation import aggregate_by_value
from planners.record import Progress
from tests.planners.reference import (
    Array,
    Dense,
    Model,
    backup,
    dense,
    greedy_loss,
    random_moves,
    random_tabular,
    spread,
    truth,
)

RECIPES: list[Recipe] = [
    StandardRecipe(),
    StandardRecipe("depth_first", loops=0.1),
    TerrainRecipe(),
    TerrainRecipe("uniform", cost="difference"),
]


def unit_costs(model: Model) -> Model:
    """The model with costs of at most 1 in size."""
    if isinstance(model, TabularMDP):
        costs = model.costs[model.action_mask]
    else:
        costs = model.move_costs[model.available]
    return model.scaled(1.0 / float(np.abs(costs).max()))


def instance(seed: int) -> Model:
    """Random models and small mazes in turn, in both layouts."""
    rng = np.random.default_rng(seed)
    p = float(rng.choice([1.0, 0.9, 0.6]))
    kind = seed % 5
    if kind == 0:
        return unit_costs(random_tabular(seed, 40, 3, terminals=int(rng.integers(3))))
    if kind == 1:
        return unit_costs(random_moves(seed, 40, 3, p=p, terminals=int(rng.integers(3))))
    recipe = RECIPES[seed // 5 % 4]
    maze = maze_model(recipe.layout(Grid((7, 6)), rng), recipe, p=p, start="uniform")
    return unit_costs(maze if kind < 4 else maze.to_tabular())


@dataclass(frozen=True)
class Phases:
    """How a run of Algorithm 3 is laid out."""

    gamma: float
    epsilon: float
    num_global: int
    num_aggregated: int

    @property
    def cycle(self) -> int:
        return self.num_global + self.num_aggregated

    def small_enough(self, alpha: float) -> bool:
        """Whether a phase of such steps moves W by at most epsilon / 2: Condition 1."""
        return self.num_aggregated * alpha <= self.epsilon * (1 - self.gamma) / 4

    def settling(self) -> int:
        """Cycles in which what a start in [0, 1/(1-gamma)] is off falls to epsilon/(1-gamma)."""
        return max(1, math.ceil(math.log(self.epsilon) / math.log(self.gamma))) + 2


def errors(
    model: Model,
    V: Array,
    phases: Phases,
    step_size: str | float | Callable[[int], float],
    num_cycles: int,
    V0: Array | None = None,
) -> Array:
    """The error of V_t for t = 1, 2, ..."""
    found: list[float] = []

    def note(progress: Progress) -> None:
        found.append(float(np.abs(progress.values - V).max()))

    planners.solve(
        model,
        gamma=phases.gamma,
        method="adaptive_aggregation",
        epsilon=phases.epsilon,
        num_global=phases.num_global,
        num_aggregated=phases.num_aggregated,
        step_size=step_size,
        num_iterations=num_cycles * phases.cycle,
        V0=V0,
        callback=note,
    )
    return np.array(found)


def optimum(model: Model, gamma: float) -> Array:
    V, off = truth(dense(model), gamma)
    assert off < 1e-12
    return V.astype(np.float64)


# ---------------------------------------------------------------------------------------------
# Theorem 1.


@pytest.mark.parametrize("seed", range(50))
def test_theorem_1(seed: int) -> None:
    """Theorem 1: where alpha_t -> 0, limsup |V_t - V*| <= 2 epsilon / (1-gamma).

    With alpha_t = 1/t.  The proof says from when on: once steps are small enough, each cycle leaves
    gamma of the error and adds epsilon.  So at every iteration from then on, not at the end only,
    the error is at most ``2 epsilon / (1-gamma)`` and what the cycles since have left of the start,
    ``gamma^n 2 / (1-gamma)``.
    """
    rng = np.random.default_rng(1000 + seed)
    phases = Phases(
        gamma=float(rng.choice([0.5, 0.8, 0.9])),
        epsilon=float(rng.choice([0.1, 0.3, 1.0])),
        num_global=int(rng.integers(1, 4)),
        num_aggregated=int(rng.integers(1, 6)),
    )
    gamma, epsilon = phases.gamma, phases.epsilon
    model = instance(seed)
    V = optimum(model, gamma)
    # The first step of cycle i (from 0) is alpha at i a + 1.
    small = math.ceil(4 / (epsilon * (1 - gamma)))
    assert phases.small_enough(1 / (small * phases.num_aggregated + 1))
    found = errors(model, V, phases, "t^-1", small + 3 * phases.settling())
    for since, error in enumerate(found[small * phases.cycle :]):
        left = gamma ** (since // phases.cycle) * 2 / (1 - gamma)
        assert error <= 2 * epsilon / (1 - gamma) + left
    assert found[-phases.cycle :].max() <= 2 * epsilon / (1 - gamma)


# ---------------------------------------------------------------------------------------------
# Proposition 1.


def fixed_point(tables: Dense, labels: Array, gamma: float) -> Array:
    """W*(j), the mean over S_j of T_s V~(W*): a contraction by gamma."""
    sizes = np.bincount(labels)
    W = np.zeros(len(sizes))
    while True:
        means = np.bincount(labels, weights=backup(tables, W[labels], gamma)) / sizes
        change = np.abs(means - W).max()
        W = means
        if change <= 1e-13:
            return W


def aggregated_phase(
    model: Model, V: Array, gamma: float, epsilon: float, num_steps: int, seed: int
) -> planners.SolveResult:
    """One phase of ``num_steps`` aggregated iterations that begins at V, with alpha = t^-0.6."""
    return planners.solve(
        model,
        gamma=gamma,
        method="adaptive_aggregation",
        V0=V,
        epsilon=epsilon,
        num_global=0,
        num_aggregated=num_steps,
        num_iterations=num_steps,
        step_size="t^-0.6",
        seed=seed,
    )


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_proposition_1(seed: int, epsilon: float) -> None:
    """Proposition 1: with mega-states of which V* differs by at most e, Algorithm 1 tends to W*.

    And ``|V~(W*) - V*| <= e / (1-gamma)``, and a greedy policy for V~(W*) costs at most
    ``2 gamma e / (1-gamma)^2`` more than V*.  Both are checked on W* itself, solved directly; and
    that Algorithm 1 (one aggregated phase that begins at V = V*) tends there, with
    alpha = t^-0.6.

    How close it is after N steps: the error of W obeys ``D <- (1 - alpha (1-gamma)) D`` at worst,
    plus alpha times noise of mean 0, at most d in size where T_s V~(W*) differs by d within a
    mega-state.  What is left of the start is ``exp(-(1-gamma) sum alpha)`` of it; the noise has a
    standard deviation of at most ``d sqrt(alpha / (1-gamma))``, of which six are allowed.
    """
    gamma, num_steps = 0.8, 3000
    model = instance(seed)
    tables = dense(model)
    V = optimum(model, gamma)
    labels = aggregate_by_value(V, epsilon).labels
    e = spread(labels, V)
    assert e <= epsilon * (1 + 1e-12)
    W = fixed_point(tables, labels, gamma)
    within = e / (1 - gamma)
    assert np.abs(W[labels] - V).max() <= within + 1e-10
    assert greedy_loss(tables, W[labels], gamma, V) <= 2 * gamma * e / (1 - gamma) ** 2 + 1e-10

    result = aggregated_phase(model, V, gamma, epsilon, num_steps, seed)
    assert result.labels is not None
    np.testing.assert_array_equal(result.labels, labels)
    alphas = np.arange(1.0, num_steps + 1) ** -0.6
    d = spread(labels, backup(tables, W[labels], gamma))
    start = np.abs(aggregate_by_value(V, epsilon).midpoints - W).max()
    left = start * math.exp(-(1 - gamma) * alphas.sum())
    allowance = left + 6 * d * math.sqrt(alphas[-1] / (1 - gamma)) + 1e-10
    assert np.abs(result.values - W[labels]).max() <= allowance
    error = within + allowance
    assert np.abs(result.values - V).max() <= error
    assert greedy_loss(tables, result.values, gamma, V) <= 2 * gamma * error / (1 - gamma)


@pytest.mark.parametrize("seed", range(5))
def test_one_aggregated_phase_is_algorithm_1(seed: int) -> None:
    """Algorithm 1, line by line: all mega-states update from the same old W."""
    gamma, epsilon, num_steps = 0.9, 0.4, 30
    model = instance(seed)
    tables = dense(model)
    V = optimum(model, gamma)
    aggregation = aggregate_by_value(V, epsilon)
    labels, W = aggregation.labels, aggregation.midpoints
    members = [np.flatnonzero(labels == j) for j in range(len(W))]
    for t, row in enumerate(np.random.default_rng(seed).random((num_steps, len(W))), start=1):
        drawn = [states[int(u * len(states))] for states, u in zip(members, row, strict=True)]
        alpha = t**-0.6
        W = (1 - alpha) * W + alpha * backup(tables, W[labels], gamma)[drawn]
    result = aggregated_phase(model, V, gamma, epsilon, num_steps, seed)
    np.testing.assert_allclose(result.values, W[labels], rtol=0, atol=1e-12)


# ---------------------------------------------------------------------------------------------
# Propositions 2 and 3.

LAYOUTS = [
    Phases(gamma=0.8, epsilon=0.1, num_global=1, num_aggregated=5),
    Phases(gamma=0.9, epsilon=0.5, num_global=2, num_aggregated=5),
    Phases(gamma=0.5, epsilon=0.3, num_global=3, num_aggregated=1),
]


def starts(model: Model, gamma: float, seed: int) -> list[Array]:
    """Corners of [0, 1/(1-gamma)]^S and a point within."""
    top = 1 / (1 - gamma)
    rng = np.random.default_rng(seed)
    size = model.num_states
    return [
        np.zeros(size),
        np.full(size, top),
        top * rng.random(size),
        top * rng.integers(2, size=size),
    ]


@pytest.mark.parametrize("phases", LAYOUTS, ids=str)
@pytest.mark.parametrize("seed", range(10))
def test_proposition_2(phases: Phases, seed: int) -> None:
    """Proposition 2: for small steps, |V_t - V*| <= 3 epsilon / (1-gamma) from soon on, for good.

    Soon is O(max(1, log epsilon / log gamma)) iterations: so many cycles and two more.  Steps are
    as large as the proof allows, ``alpha = epsilon (1-gamma) / (4 a)``, and constant.
    """
    gamma, epsilon = phases.gamma, phases.epsilon
    model = instance(seed)
    V = optimum(model, gamma)
    alpha = epsilon * (1 - gamma) / (4 * phases.num_aggregated)
    assert phases.small_enough(alpha)
    for V0 in starts(model, gamma, seed):
        found = errors(model, V, phases, alpha, phases.settling() + 20, V0)
        settled = found[phases.settling() * phases.cycle :]
        assert settled.max() <= 3 * epsilon / (1 - gamma)


@pytest.mark.parametrize("num_aggregated", [1, 5, 50])
def test_proposition_2_as_printed(num_aggregated: int) -> None:
    """Proposition 2 prints ``alpha < epsilon / ((1-gamma) a)``, for which its proof fails.

    The proof has an aggregated phase add at most epsilon to the error.  Here it adds more, from a
    start at V* itself: nine in ten states cost epsilon on their way to one that is free, all of
    them in one mega-state, whose W climbs towards ``.9 epsilon / (1-gamma)``.  The proposition
    itself is not refuted: here and on the instances above, 3 epsilon / (1-gamma) is kept (25
    instances, gamma .5 to .95, epsilon .1 to 1, a 1 to 50, b 1 and 2: at most .41 of it).
    """
    phases = Phases(gamma=0.95, epsilon=0.1, num_global=1, num_aggregated=num_aggregated)
    gamma, epsilon = phases.gamma, phases.epsilon
    alpha = min(1.0, 0.999 * epsilon / ((1 - gamma) * num_aggregated))
    assert not phases.small_enough(alpha)
    P = np.zeros((10, 1, 10))
    P[:, 0, 0] = 1.0
    V = np.where(np.arange(10) > 0, 0.999 * epsilon, 0.0)
    never = np.zeros(10, dtype=bool)  # nor need the values of a free state be known to be 0
    model = TabularMDP.from_matrices(P, costs=V[:, np.newaxis], terminal=never)
    found = errors(model, V, phases, alpha, 60, V)
    before, after = found[0 :: phases.cycle], found[phases.cycle - 1 :: phases.cycle]
    assert before[0] == 0.0
    assert (after - before).max() > epsilon
    assert found.max() <= 3 * epsilon / (1 - gamma)
    for seed in range(5):
        model = instance(seed)
        found = errors(model, optimum(model, gamma), phases, alpha, phases.settling() + 20)
        assert found[phases.settling() * phases.cycle :].max() <= 3 * epsilon / (1 - gamma)


@pytest.mark.parametrize("beta", [0.5, 0.75, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(5))
def test_proposition_3(beta: float, seed: int) -> None:
    """Proposition 3: for alpha_t = t^-beta, the same after a number of iterations.

    Which is ``O(log epsilon / log gamma + ((1-gamma) epsilon)^(-1/beta))``; the proof has
    ``(4 a / ((1-gamma) epsilon))^(1/beta)`` aggregated iterations, then the cycles of
    Proposition 2.
    """
    phases = Phases(gamma=0.75, epsilon=0.5, num_global=1, num_aggregated=2)
    gamma, epsilon, a = phases.gamma, phases.epsilon, phases.num_aggregated
    model = instance(seed)
    V = optimum(model, gamma)
    aggregated = (4 * a / ((1 - gamma) * epsilon)) ** (1 / beta)
    assert phases.small_enough((aggregated * (1 + 1e-12)) ** -beta)
    settled = math.ceil(aggregated / a) + phases.settling()
    for V0 in starts(model, gamma, seed)[1:3]:
        found = errors(model, V, phases, f"t^-{beta}", settled + 20, V0)
        assert found[settled * phases.cycle :].max() <= 3 * epsilon / (1 - gamma)
