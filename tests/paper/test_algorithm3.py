"""Algorithm 3 against the paper's own lines, written in lists and floats.

`reference` is Algorithm 3 with Algorithms 1 and 2 in it, as shared/paper states them once their
gaps are filled: fresh W at the midpoints on entering A, the maximum in the last bin, one bin where
V is constant.  The solver must agree with it to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import planners
from aggmaze import MoveMDP, TabularMDP
from aggmaze.grid import Grid
from aggmaze.recipes import StandardRecipe, TerrainRecipe, maze_model
from tests.planners.reference import Model, dense, random_tabular, small_models, truth

Backup = Callable[[int, list[float]], float]


def sparse_backup(model: TabularMDP, gamma: float) -> Backup:
    """T_s from rows as they are stored."""
    actions: list[list[tuple[float, list[tuple[float, int]]]]] = []
    for s in range(model.num_states):
        actions.append([])
        for a in range(model.num_actions):
            row = s * model.num_actions + a
            first, last = model.transitions.indptr[row : row + 2].tolist()
            outcomes = list(
                zip(
                    model.transitions.data[first:last].tolist(),
                    model.transitions.indices[first:last].tolist(),
                    strict=True,
                )
            )
            if model.action_mask[s, a] and not model.terminal[s]:
                actions[s].append((float(model.costs[s, a]), outcomes))

    def backup(s: int, V: list[float]) -> float:
        if not actions[s]:
            return 0.0
        found = []
        for cost, outcomes in actions[s]:
            mean = 0.0
            for probability, t in outcomes:
                mean += probability * V[t]
            found.append(cost + gamma * mean)
        return min(found)

    return backup


def move_backup(model: MoveMDP, gamma: float) -> Backup:
    """T_s = (p - b) extreme + b sum, b = (1 - p) / (n - 1), moves in order."""
    p = model.p
    moves: list[list[tuple[float, int]]] = []
    for costs, successors in zip(model.move_costs.tolist(), model.successors.tolist(), strict=True):
        moves.append([(c, t) for c, t in zip(costs, successors, strict=True) if c < math.inf])

    def backup(s: int, V: list[float]) -> float:
        n = len(moves[s])
        if n == 0:
            return 0.0
        q = [cost + gamma * V[t] for cost, t in moves[s]]
        total = 0.0
        for x in q:
            total += x
        b = (1.0 - p) / (n - 1) if n > 1 else 0.0
        chosen = p - b if n > 1 else 1.0
        return chosen * (min(q) if chosen >= 0.0 else max(q)) + b * total

    return backup


@dataclass(frozen=True)
class Iteration:
    values: list[float]
    num_updates: int
    num_megastates: int


def reference(
    model: Model,
    gamma: float,
    *,
    seed: int = 0,
    V0: list[float] | None = None,
    epsilon: float = 0.5,
    num_global: int = 2,
    num_aggregated: int = 5,
    alpha: Callable[[int], float] = lambda t: 1.0 / math.sqrt(t),
    step_index: str = "total",
    first_step: int = 1,
) -> Iterator[Iteration]:
    """Algorithm 3, without end."""
    is_table = isinstance(model, TabularMDP)
    backup = sparse_backup(model, gamma) if is_table else move_backup(model, gamma)
    rng = np.random.default_rng(seed)
    S = range(model.num_states)
    V = [0.0 for _ in S] if V0 is None else list(V0)
    t_sa = first_step
    while True:
        for _ in range(num_global):
            V = [backup(s, V) for s in S]
            yield Iteration(V, len(S), 0)
        if num_aggregated == 0:
            continue
        # Algorithm 2.
        b1, b2 = min(V), max(V)
        num_bins = max(1, math.ceil((b2 - b1) / epsilon))
        bins: dict[int, list[int]] = {}
        for s in S:
            bins.setdefault(min(math.floor((V[s] - b1) / epsilon), num_bins - 1), []).append(s)
        order = sorted(bins)
        members = [bins[i] for i in order]
        W = [b1 + (i + 1 - 0.5) * epsilon for i in order]
        K = len(W)
        label = {s: j for j, states in enumerate(members) for s in states}
        uniforms = rng.random((num_aggregated, K)).tolist()
        if step_index == "phase":
            t_sa = first_step
        V = [W[label[s]] for s in S]
        for row in uniforms:
            a = alpha(t_sa)
            drawn = [members[j][int(row[j] * len(members[j]))] for j in range(K)]
            W = [(1.0 - a) * W[j] + a * backup(drawn[j], V) for j in range(K)]
            t_sa += 1
            V = [W[label[s]] for s in S]
            yield Iteration(V, K, K)


def bits(values: Any) -> bytes:
    return np.asarray(values, dtype=np.float64).tobytes()


def agree(model: Model, gamma: float, num_iterations: int = 50, **options: Any) -> None:
    """Compare every iteration, bit for bit, and the counts."""
    given = {name: value for name, value in options.items() if name != "alpha"}
    given |= {} if "V0" not in options else {"V0": np.array(options["V0"])}
    options.pop("step_size", None)
    expected = reference(model, gamma, **options)
    seen: list[Iteration] = []
    updates = 0

    def watch(progress: planners.Progress) -> None:
        nonlocal updates
        wanted = next(expected)
        seen.append(wanted)
        updates += wanted.num_updates
        assert progress.iteration == len(seen)
        assert bits(progress.values) == bits(wanted.values)
        assert progress.num_updates == updates
        assert progress.num_megastates == wanted.num_megastates
        assert math.isnan(progress.residual) == (wanted.num_megastates > 0)

    result = planners.solve(
        model,
        gamma=gamma,
        method="adaptive_aggregation",
        num_iterations=num_iterations,
        callback=watch,
        **given,
    )
    assert result.status == "completed"
    assert bits(result.values) == bits(seen[-1].values)
    sizes = [iteration.num_updates for iteration in seen]
    assert result.history.num_updates.tolist() == np.cumsum(sizes).tolist()
    assert result.num_updates == sum(sizes)
    assert result.history.num_megastates.tolist() == [i.num_megastates for i in seen]
    assert result.num_sweeps == sum(i.num_megastates == 0 for i in seen)
    assert result.num_iterations == len(seen) == num_iterations


def all_models() -> dict[str, Model]:
    standard, terrain = StandardRecipe("depth_first"), TerrainRecipe("uniform")
    grids = Grid((5, 4)), Grid((3, 3, 2))
    rng = np.random.default_rng(0)
    return small_models() | {
        "table of one state": random_tabular(2, 1, 2, terminals=0),
        "standard maze": maze_model(standard.layout(grids[0], rng), standard, p=0.8),
        "terrain maze": maze_model(terrain.layout(grids[1], rng), terrain, cost_scale=3.0),
    }


MODELS = all_models()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("step_index", ["total", "phase"])
@pytest.mark.parametrize("first_step", [1, 2])
def test_bit_for_bit(name: str, step_index: str, first_step: int) -> None:
    model = MODELS[name]
    for seed, epsilon, gamma in ((0, 0.5, 0.95), (1, 0.05, 0.9), (2, 1e-4, 0.99), (3, 30.0, 0.5)):
        agree(
            model,
            gamma,
            seed=seed,
            epsilon=epsilon,
            step_index=step_index,
            first_step=first_step,
        )


@pytest.mark.parametrize("name", ["table", "moves", "moves, p < 1/n"])
@pytest.mark.parametrize(
    ("step_size", "alpha"),
    [
        ("t^-0.6", lambda t: float(t) ** -0.6),
        ("t^-1", lambda t: 1.0 / t),
        ("t^-0", lambda t: 1.0),
        (0.3, lambda t: 0.3),
        (1, lambda t: 1.0),
        (0, lambda t: 0.0),
        (lambda t: 2.0 / (t + 1.0), lambda t: 2.0 / (t + 1.0)),
    ],
)
def test_step_sizes(name: str, step_size: Any, alpha: Callable[[int], float]) -> None:
    for step_index in ("total", "phase"):
        agree(
            MODELS[name],
            0.9,
            step_size=step_size,
            alpha=alpha,
            step_index=step_index,
            first_step=3,
            epsilon=0.1,
        )


@pytest.mark.parametrize("name", ["table", "standard maze"])
@pytest.mark.parametrize(
    ("num_global", "num_aggregated"), [(1, 1), (1, 5), (3, 2), (7, 1), (0, 4), (2, 0)]
)
def test_phase_lengths(name: str, num_global: int, num_aggregated: int) -> None:
    agree(
        MODELS[name],
        0.9,
        num_iterations=40,
        num_global=num_global,
        num_aggregated=num_aggregated,
        epsilon=0.2,
    )


@pytest.mark.parametrize("num_iterations", [1, 2, 3, 7, 8, 9])
def test_stops_within_a_phase(num_iterations: int) -> None:
    agree(MODELS["moves"], 0.95, num_iterations=num_iterations)


def test_from_another_start() -> None:
    for name in ("table", "moves"):
        model = MODELS[name]
        V0 = np.random.default_rng(0).normal(scale=20.0, size=model.num_states)
        V0[model.terminal] = 0.0
        agree(model, 0.95, V0=V0.tolist())


def test_certifying_does_not_change_the_run() -> None:
    model = MODELS["moves"]
    options = {"gamma": 0.95, "method": "adaptive_aggregation", "num_iterations": 60}
    plain = planners.solve(model, **options)
    watched = planners.solve(model, certify="every", **options)
    assert bits(plain.values) == bits(watched.values)
    assert plain.num_updates == watched.num_updates
    assert watched.num_sweeps == plain.num_sweeps
    assert watched.num_certificate_sweeps > plain.num_certificate_sweeps


def test_a_thousand_iterations_by_default() -> None:
    result = planners.solve(MODELS["table"], gamma=0.95, method="adaptive_aggregation")
    assert result.status == "completed"
    assert result.num_iterations == len(result.history) == 1000
    # Two global and five aggregated iterations, from the first on.
    is_global = result.history.num_megastates == 0
    assert is_global.tolist() == [t % 7 < 2 for t in range(1000)]
    *_, last = (i for i, _ in zip(reference(MODELS["table"], 0.95), range(1000), strict=False))
    assert bits(result.values) == bits(last.values)


# ---------------------------------------------------------------------------------------------
# Found by running (shared/paper/algorithms.md), and what the paper proves.


@pytest.mark.parametrize("layout_seed", range(5))
def test_standard_mazes_of_100x100(layout_seed: int) -> None:
    recipe = StandardRecipe()
    layout = recipe.layout(Grid((100, 100)), np.random.default_rng(layout_seed))
    model, scale = planners.normalized(maze_model(layout, recipe), gamma=0.95)
    # V* in closed form: what depth d costs, by breadth first over the passages.
    depth = np.full(layout.grid.num_states, -1)
    depth[0], queue = 0, [0]
    steps = np.array([-100, 100, -1, 1])
    available = layout.available()
    for s in queue:
        for t in (s + steps[available[s]]).tolist():
            if depth[t] < 0:
                depth[t] = depth[s] + 1
                queue.append(t)
    V = scale * np.where(
        depth == 0, 0.0, (1 - 0.95 ** (depth - 1.0)) / 0.05 - 0.95 ** (depth - 1.0)
    )
    assert V.max() == pytest.approx(100.0, rel=1e-8)
    result = planners.solve(model, gamma=0.95, method="adaptive_aggregation", epsilon=0.5)
    error = np.abs(result.values - V).max()
    assert error == pytest.approx(2.233, abs=0.02)
    assert error <= result.bound


@pytest.mark.parametrize("name", ["table", "moves", "moves, p < 1/n", "standard maze"])
@pytest.mark.parametrize(("gamma", "epsilon"), [(0.9, 0.02), (0.8, 0.05), (0.95, 0.005)])
def test_theorem_1(name: str, gamma: float, epsilon: float) -> None:
    """With steps that go to 0, limsup |V_t - V*| <= 2 epsilon / (1 - gamma)."""
    model = MODELS[name]
    V = truth(dense(model), gamma)[0].astype(np.float64)
    promised = 2 * epsilon / (1 - gamma)
    assert promised < np.abs(V).max() / 2  # or V = 0 would do
    errors = []

    def watch(progress: planners.Progress) -> None:
        errors.append(np.abs(progress.values - V).max())

    for seed in range(3):
        errors.clear()
        planners.solve(
            model,
            gamma=gamma,
            method="adaptive_aggregation",
            epsilon=epsilon,
            seed=seed,
            num_iterations=3000,
            callback=watch,
        )
        assert max(errors[2000:]) <= promised
        assert errors[0] > promised


# ---------------------------------------------------------------------------------------------
# Options that are refused.


def solve(**options: Any) -> planners.SolveResult:
    return planners.solve(
        MODELS["moves"], gamma=0.9, method="adaptive_aggregation", num_iterations=20, **options
    )


@pytest.mark.parametrize(
    "text", ["", "sqrt", "t", "t^0.5", "t^-", "t^--1", "1/t", "t^-1e3", "t^-0.5x", "2"]
)
def test_step_size_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"step_size must look like 't\^-0.5'") as refusal:
        solve(step_size=text)
    assert repr(text) in str(refusal.value)


@pytest.mark.parametrize("text", ["t^-0.5", "t ^ -0.5", " t^-.5 ", "t^-0.50"])
def test_the_same_step_size_in_other_words(text: str) -> None:
    assert bits(solve(step_size=text).values) == bits(solve().values)


@pytest.mark.parametrize("constant", [-0.1, 1.0001, math.inf, -math.inf, math.nan])
def test_constant_step_sizes_outside_0_to_1(constant: float) -> None:
    with pytest.raises(ValueError, match=rf"step_size at t = 1 is {constant}, must be in \[0, 1\]"):
        solve(step_size=constant)


@pytest.mark.parametrize("bad", [-0.1, 1.5, math.nan])
def test_step_sizes_that_leave_0_to_1_later(bad: float) -> None:
    with pytest.raises(ValueError, match=rf"step_size at t = 4 is {bad}, must be in \[0, 1\]"):
        solve(step_size=lambda t: 0.5 if t < 4 else bad)


def test_a_step_size_is_asked_from_the_first_step_on() -> None:
    asked = []

    def rule(t: int) -> float:
        asked.append(t)
        return 1.0 / (t - 1)

    solve(step_size=rule, first_step=2)
    assert min(asked) == 2


@pytest.mark.parametrize("step_size", [None, [0.5], {}, object()])
def test_step_sizes_of_another_type(step_size: object) -> None:
    with pytest.raises((TypeError, ValueError), match="step_size"):
        solve(step_size=step_size)


@pytest.mark.parametrize("name", ["num_global", "num_aggregated", "first_step"])
def test_counts(name: str) -> None:
    for bad in (-1, *((0,) if name == "first_step" else ())):
        with pytest.raises(ValueError, match=f"{name} must be at least"):
            solve(**{name: bad})
    for wrong in (1.5, "2", None):
        with pytest.raises(TypeError, match=f"{name} must be an integer"):
            solve(**{name: wrong})


def test_both_phases_empty() -> None:
    with pytest.raises(ValueError, match="must not both be 0"):
        solve(num_global=0, num_aggregated=0)


@pytest.mark.parametrize("step_index", ["Total", "global", None, 1])
def test_step_index(step_index: object) -> None:
    with pytest.raises(ValueError, match="step_index must be one of total, phase"):
        solve(step_index=step_index)
