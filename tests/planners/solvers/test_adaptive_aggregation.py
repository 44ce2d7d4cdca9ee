"""Algorithm 3 beyond the paper: schedules of epsilon, the one that shrinks, threads.

What the paper states is in tests/paper/test_algorithm3.py, bit for bit.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import planners
from aggmaze.recipes import StandardRecipe, TerrainRecipe
from planners.bellman import local_engine
from planners.schedules import ShrinkingEpsilon, epsilon_rule
from planners.solvers.adaptive_aggregation import AdaptiveAggregation, AdaptiveAggregationOptions
from tests.planners.reference import (
    Model,
    dense,
    gammas,
    maze_of,
    models,
    random_moves,
    random_tabular,
    truth,
)


def solve(model: Model, gamma: float, **options: Any) -> planners.SolveResult:
    return planners.solve(model, gamma=gamma, method="adaptive_aggregation", **options)


SMALL: dict[str, Model] = {
    "maze": maze_of(StandardRecipe(), (10, 11)),
    "deep maze with slip": maze_of(StandardRecipe("depth_first"), (10, 11), p=0.9),
    "looped maze": maze_of(StandardRecipe(loops=0.1), (10, 11), p=0.95),
    "maze where the chosen move is unlikely": maze_of(StandardRecipe(), (10, 11), p=0.2),
    "terrain": maze_of(TerrainRecipe(), (11, 11)),
    "terrain with slip": maze_of(TerrainRecipe("uniform"), (5, 5, 4), p=0.9),
    "signed terrain": maze_of(TerrainRecipe(cost="difference"), (11, 11), p=0.9),
    "table": random_tabular(0, 120, 3),
    "table without terminal states": random_tabular(1, 100, 2, terminals=0),
    "moves without terminal states": random_moves(2, 110, 3, p=0.7, terminals=0),
    "moves, p < 1/n": random_moves(3, 110, 4, p=0.15, terminals=2),
    "one state": random_tabular(2, 1, 2, terminals=0),
}


@functools.cache
def optimum(name: str, gamma: float) -> tuple[NDArray[Any], float]:
    return truth(dense(SMALL[name]), gamma)


# ---------------------------------------------------------------------------------------------
# The epsilon that shrinks.


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99])
def test_shrinking_converges_to_the_optimum(name: str, gamma: float) -> None:
    model = SMALL[name]
    V, off = optimum(name, gamma)
    bounds, num_phases = [], 0

    def watch(progress: planners.Progress) -> None:
        nonlocal num_phases
        num_phases += progress.num_megastates > 0
        bounds.append(progress.bound)
        values = progress.values
        assert np.abs(values - V).max() <= progress.bound + off
        assert not values[model.terminal].any()

    result = solve(model, gamma, epsilon="shrink", certify="every", callback=watch)
    assert result.status == "converged"
    assert np.abs(result.values - V).max() <= result.bound + off
    assert result.bound <= 1e-6 * np.abs(result.values).max()
    assert result.bound == bounds[-1]
    assert not np.isnan(bounds).any()
    assert num_phases >= 5 or name == "one state"
    states = np.arange(len(V))
    if not (name == "one state" or "difference" in name):
        Q = planners.q_values(model, result.values, gamma)
        assert Q[states, result.policy] == pytest.approx(Q.min(axis=1), abs=1e-4)


@pytest.mark.parametrize("gamma", [0.9, 0.99])
@pytest.mark.parametrize(
    "model",
    [
        maze_of(StandardRecipe(), (100, 100), p=0.95),
        maze_of(TerrainRecipe(), (100, 100)),
        maze_of(TerrainRecipe("uniform"), (10, 10, 10, 10), p=0.9),
        random_tabular(5, 1000, 4, terminals=0, successors=5),
    ],
    ids=["maze", "terrain", "4-D terrain", "table"],
)
def test_shrinking_takes_about_the_sweeps_of_value_iteration(model: Model, gamma: float) -> None:
    exact = planners.solve(model, gamma=gamma, method="value_iteration")
    result = solve(model, gamma, epsilon="shrink")
    assert exact.status == result.status == "converged"
    assert np.abs(result.values - exact.values).max() <= result.bound + exact.bound
    assert result.num_sweeps <= 1.2 * exact.num_sweeps + 4
    is_aggregated = result.history.num_megastates > 0
    assert 5 <= is_aggregated.sum() <= 60
    assert is_aggregated[:7].tolist() == [False] * 2 + [True] * 5
    assert result.history.num_megastates.max() <= model.num_states / 5


@settings(max_examples=100)
@given(
    model=models,
    gamma=gammas,
    num_global=st.integers(1, 3),
    step_size=st.sampled_from(["t^-0.5", 1, 0.3]),
    seed=st.integers(0, 99),
)
def test_shrinking_bounds_hold_on_any_model(
    model: Model, gamma: float, num_global: int, step_size: Any, seed: int
) -> None:
    V, off = truth(dense(model), gamma)

    def watch(progress: planners.Progress) -> None:
        assert np.abs(progress.values - V).max() <= progress.bound + off

    result = solve(
        model,
        gamma,
        epsilon="shrink",
        num_global=num_global,
        num_aggregated=1,
        step_size=step_size,
        seed=seed,
        num_iterations=60,
        certify="every",
        callback=watch,
    )
    assert np.abs(result.values - V).max() <= result.bound + off


@pytest.mark.parametrize("step_size", [1, 0.5, "t^-1"])
@pytest.mark.parametrize(("num_global", "num_aggregated"), [(1, 1), (1, 9), (3, 2), (2, 40)])
def test_shrinking_whatever_the_phases(
    step_size: Any, num_global: int, num_aggregated: int
) -> None:
    for name in ("maze", "terrain with slip", "table without terminal states"):
        V, off = optimum(name, 0.9)
        result = solve(
            SMALL[name],
            0.9,
            epsilon="shrink",
            step_size=step_size,
            num_global=num_global,
            num_aggregated=num_aggregated,
        )
        assert result.status == "converged"
        assert np.abs(result.values - V).max() <= result.bound + off


def test_shrinking_without_aggregated_phases_is_value_iteration() -> None:
    model = SMALL["terrain with slip"]
    exact = planners.solve(model, gamma=0.9, method="value_iteration")
    result = solve(model, 0.9, epsilon="shrink", num_aggregated=0)
    assert result.values.tobytes() == exact.values.tobytes()
    assert result.num_updates == exact.num_updates


def test_shrinking_from_the_answer_keeps_it() -> None:
    model = SMALL["terrain"]
    V0 = solve(model, 0.9, epsilon="shrink", tol=1e-12).values
    kept = V0.copy()
    result = solve(model, 0.9, epsilon="shrink", V0=V0, tol=1e-9)
    assert result.num_iterations <= 2
    np.testing.assert_array_equal(V0, kept)
    # Bins follow the residual, so that a good start is not lost.
    near = V0 + np.random.default_rng(0).normal(scale=1e-4, size=len(V0))
    result = solve(model, 0.9, epsilon="shrink", V0=near, tol=1e-9, certify="every")
    assert result.status == "converged"
    assert result.history.bound.max() < 0.05
    assert result.num_sweeps < solve(model, 0.9, epsilon="shrink", tol=1e-9).num_sweeps


def test_shrinking_runs_to_a_tolerance() -> None:
    model = SMALL["maze"]
    assert solve(model, 0.9, epsilon="shrink").message.startswith("bound")
    assert solve(model, 0.9, epsilon="shrink", tol=1e-2).num_sweeps < 60
    assert solve(model, 0.9, epsilon="shrink", num_iterations=9).status == "completed"
    assert solve(model, 0.9, epsilon=[0.5, 0.25]).num_iterations == 1000


def test_shrinking_needs_sweeps() -> None:
    with pytest.raises(ValueError, match="epsilon = 'shrink' needs num_global of at least 1"):
        solve(SMALL["table"], 0.9, epsilon="shrink", num_global=0)


# Residuals as phases of any kind could leave them, without a model.
residuals = st.floats(0.0, 1e3)


@given(
    gamma=st.floats(0.0, 0.999),
    num_global=st.integers(1, 4),
    cycles=st.lists(st.tuples(residuals, residuals, st.floats(0.0, 1e3)), max_size=100),
)
def test_all_but_few_cycles_contract_or_are_without_phase(
    gamma: float, num_global: int, cycles: list[tuple[float, float, float]]
) -> None:
    rule = ShrinkingEpsilon(gamma, num_global, 1e300)
    last, failures = math.inf, 0
    for first, end, span in cycles:
        width = rule.width([max(first, end)] * (num_global - 1) + [end], span)
        if end > gamma**num_global * last:
            failures += 1
        if width is not None:
            assert failures < 26
            assert 0.0 < width <= end / 4
        last = end


def test_widths_follow_the_residual() -> None:
    rule = ShrinkingEpsilon(0.9, 2, 100.0)
    assert rule.width([1.0, 0.9], 10.0) == 0.225
    assert rule.width([0.7, 0.6], 10.0) == 0.15  # it has paid
    assert rule.width([0.7, 0.6], 3.0) == 0.0375  # it has not: less than .81 was due
    assert rule.width([0.4, 0.1], 0.1) == pytest.approx(0.1 / 64)  # nor so: 1/16 was seen
    assert rule.width([1e-9, 1e-9], 10.0) is None  # more than 100 bins
    assert rule.width([1.0, 0.5], 0.01) is None  # for good


@pytest.mark.parametrize("gamma", [0.0, 0.9])
def test_widths_where_nothing_is_left(gamma: float) -> None:
    rule = ShrinkingEpsilon(gamma, 2, 100.0)
    assert rule.width([1.0, 1.0], 0.0) is None  # all values are equal: but that may change
    assert rule.width([0.5, 0.0], 1.0) is None
    rule = ShrinkingEpsilon(gamma, 1, 100.0)
    assert rule.width([0.0], 0.0) is None


# ---------------------------------------------------------------------------------------------
# Schedules of epsilon.


def history_of(epsilon: Any, **options: Any) -> tuple[bytes, list[int]]:
    result = solve(SMALL["table"], 0.9, epsilon=epsilon, num_iterations=40, **options)
    assert result.status == "completed"
    return result.values.tobytes(), result.history.num_megastates.tolist()


def test_schedules_that_say_the_same() -> None:
    widths = [0.3, 0.2, 0.1]
    expected = history_of(widths)
    assert expected == history_of(tuple(widths))
    assert expected == history_of(np.array(widths))
    assert expected == history_of(lambda cycle: widths[min(cycle, 3) - 1])
    assert history_of(0.3) == history_of([0.3]) == history_of(lambda cycle: 0.3) != expected
    assert history_of(np.float64(0.3)) == history_of(np.array(0.3)) == history_of(0.3)


def test_a_schedule_is_asked_once_a_cycle() -> None:
    asked = []

    def epsilon(cycle: int) -> float:
        asked.append(cycle)
        return 100.0 if cycle % 2 else 0.01

    _, num_megastates = history_of(epsilon, num_global=1, num_aggregated=3)
    assert asked == list(range(1, 11))
    for cycle in range(10):
        global_, *aggregated = num_megastates[4 * cycle : 4 * cycle + 4]
        assert global_ == 0
        assert len(set(aggregated)) == 1
        assert (aggregated[0] == 1) == (cycle % 2 == 0)


def test_a_schedule_that_goes_to_0_converges() -> None:
    V, _ = optimum("terrain with slip", 0.9)
    result = solve(
        SMALL["terrain with slip"], 0.9, epsilon=lambda cycle: 0.81**cycle, num_iterations=700
    )
    # Steps of 1 / sqrt(t) and bins that vanish: the values are V itself, not the midpoint.
    assert np.abs(result.values - V).max() <= min(result.bound, 1e-6)


@pytest.mark.parametrize("bad", ["", "shrinks", "0.5", None, True, [], {}, object(), np.empty(0)])
def test_epsilons_of_another_kind(bad: object) -> None:
    with pytest.raises(ValueError, match="epsilon must be positive and finite"):
        epsilon_rule(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, "0.5", None, [0.5]])
def test_schedules_with_an_epsilon_that_is_none(bad: Any) -> None:
    message = r"epsilon of cycle 2 must be positive and finite"
    with pytest.raises(ValueError, match=message):
        solve(SMALL["table"], 0.9, epsilon=[0.5, bad])
    with pytest.raises(ValueError, match=message):
        solve(SMALL["table"], 0.9, epsilon=lambda cycle: 0.5 if cycle != 2 else bad)


# ---------------------------------------------------------------------------------------------
# What must not change the run.


@pytest.mark.parametrize("epsilon", [0.1, "shrink", [1.0, 0.01]])
def test_being_watched_does_not_change_the_run(epsilon: Any) -> None:
    def look(progress: planners.Progress) -> None:
        assert np.isfinite(progress.values).all()

    for name in ("maze", "table", "moves, p < 1/n"):
        options = {"epsilon": epsilon, "num_iterations": 45}
        plain = solve(SMALL[name], 0.95, **options)
        watched = solve(
            SMALL[name],
            0.95,
            certify="every",
            callback=look,
            **options,
        )
        assert plain.values.tobytes() == watched.values.tobytes()
        assert plain.labels is not None
        assert watched.labels is not None
        assert plain.labels.tobytes() == watched.labels.tobytes()


@pytest.mark.parametrize("epsilon", [0.05, "shrink"])
def test_the_same_on_any_number_of_threads(epsilon: Any) -> None:
    model = maze_of(TerrainRecipe("uniform"), (520, 521), p=0.9)
    one, two, three = (
        solve(model, 0.95, epsilon=epsilon, num_iterations=25, num_threads=n) for n in (1, 2, 3)
    )
    assert one.history.num_megastates.max() > 10
    for other in (two, three):
        assert one.values.tobytes() == other.values.tobytes()
        assert one.labels.tobytes() == other.labels.tobytes()  # type: ignore[union-attr]
        assert one.bound == other.bound
        assert one.history.num_megastates.tolist() == other.history.num_megastates.tolist()


def test_labels_are_those_of_the_last_phase_without_gaps() -> None:
    model = SMALL["table"]
    for epsilon in (0.01, 1e-7):
        result = solve(model, 0.9, epsilon=epsilon, num_iterations=21)
        assert result.labels is not None
        assert result.labels.dtype == np.int32
        num_megastates = int(result.history.num_megastates[-1])
        assert np.unique(result.labels).tolist() == list(range(num_megastates))
        # The values are V~(W): one for each mega-state.
        assert len(np.unique(result.values)) <= num_megastates


@pytest.mark.parametrize("num_aggregated", [10**9, 10**30])
def test_phases_that_never_end_take_no_more_memory(num_aggregated: int) -> None:
    model = random_moves(0, 3, 2, p=0.9)
    run = functools.partial(solve, model, 0.9, epsilon=0.01, seed=3)
    endless = run(num_aggregated=num_aggregated, num_iterations=300)
    expected = run(num_aggregated=298, num_iterations=300)
    np.testing.assert_array_equal(endless.values, expected.values)
    assert endless.bound == expected.bound
    assert (endless.history.num_megastates[2:] > 0).all()
    stopped = run(num_aggregated=num_aggregated, num_iterations=10**9, time_limit=0.1)
    assert stopped.status == "completed"
    assert stopped.message == "time limit of 0.1 s reached"
    stopped = run(num_aggregated=num_aggregated, callback=lambda progress: progress.iteration == 7)
    assert (stopped.status, stopped.num_iterations) == ("interrupted", 7)


def test_what_shrinking_phases_come_to_is_0_in_terminal_states() -> None:
    """Claims count on it: they shift all states but those."""
    model = SMALL["terrain with slip"]
    assert model.terminal.any()
    options = AdaptiveAggregationOptions(epsilon="shrink")
    solver = AdaptiveAggregation(local_engine(model, 0.9), options, np.random.default_rng(0))
    V, out, formed = (np.zeros(model.num_states) for _ in range(3))
    deferred = 0
    for _ in range(20):
        step = solver.step(V, out)
        if step.deferred is None:
            V, out = out, V
        else:
            deferred += 1
            step.deferred(formed)
            assert not formed[model.terminal].any()
            assert formed.any()
    assert deferred >= 5
