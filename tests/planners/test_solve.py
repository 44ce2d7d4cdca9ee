"""Options, budgets and statuses of `planners.solve`."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import scipy.sparse as sp

import aggmaze
import planners
from aggmaze import MoveMDP, TabularMDP
from tests.planners.reference import (
    PLAIN_METHODS,
    dense,
    methods_for,
    random_moves,
    random_tabular,
    truth,
)

assert aggmaze.ENV_IDS  # registers the mazes

MOVES = random_moves(0, 40, 4, p=0.9)
TABLE = random_tabular(0, 30, 3, terminals=0)
METHODS = [m for m in planners.METHODS if m != "fixed_aggregation"]  # which needs labels


def solve(**options: Any) -> planners.SolveResult:
    return planners.solve(MOVES, **{"gamma": 0.9, "method": "value_iteration"} | options)


# ---------------------------------------------------------------------------------------------
# Errors.


@pytest.mark.parametrize("gamma", [1.5, -0.1, math.nan, math.inf, -math.inf])
def test_gamma_out_of_range(gamma: float) -> None:
    with pytest.raises(ValueError, match=r"gamma must be in \[0, 1\], got"):
        solve(gamma=gamma)


@pytest.mark.parametrize("gamma", ["0.9", True, [0.9], 0.5j])
def test_gamma_of_another_type(gamma: object) -> None:
    with pytest.raises(TypeError, match=r"gamma must be a number in \[0, 1\]"):
        solve(gamma=gamma)


def test_gamma_has_no_default() -> None:
    with pytest.raises(TypeError, match="gamma"):
        planners.solve(MOVES)


@pytest.mark.parametrize("gamma", [np.float32(0.5), np.float64(0.5), 0])
def test_numbers_of_numpy_will_do(gamma: Any) -> None:
    result = solve(gamma=gamma)
    assert result.gamma == float(gamma)
    assert type(result.gamma) is float


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ({}, {"gamma": 0.5, "tol": 0.125, "time_limit": 60.0, "seed": 100, "num_threads": 1}),
        ({}, {"gamma": 0.5, "atol": 0.125, "num_updates": 120, "num_iterations": 100}),
        ({"method": "auto"}, {"gamma": 0.5, "num_iterations": 5}),
        ({"method": "modified_policy_iteration"}, {"gamma": 0.5, "inner_sweeps": 100}),
        ({"method": "forest_policy_iteration"}, {"gamma": 0.5, "num_sweeps": 100}),
        ({"method": "multilevel_policy_iteration"}, {"gamma": 0.5, "num_sweeps": 100}),
        ({"method": "basin_aggregation"}, {"gamma": 0.5, "num_retraced": 100}),
        (
            {"method": "fixed_aggregation", "labels": np.arange(40, dtype=np.int8) // 2},
            {"gamma": 0.5, "first_step": 120, "num_iterations": 100, "step_size": 0.5},
        ),
        ({"objective": planners.TotalCost()}, {"tol": 0.125, "num_iterations": 100, "seed": 1}),
        ({"objective": planners.AverageCost()}, {"tol": 0.125, "num_iterations": 100, "seed": 1}),
        ({"objective": planners.FiniteHorizon(np.int8(100))}, {"seed": 100, "time_limit": 50.0}),
    ],
)
def test_arguments_of_numpy_are_those_of_python(
    options: dict[str, Any], numbers: dict[str, float], tmp_path: Path
) -> None:
    """Small types too, whose sums would overflow."""
    typed = {
        name: np.int8(value) if isinstance(value, int) else np.float16(value)
        for name, value in numbers.items()
    }
    expected, found = (planners.solve(MOVES, **options, **given) for given in (numbers, typed))
    np.testing.assert_array_equal(found.values, expected.values)
    assert found.bound == expected.bound
    assert found.message == expected.message
    assert found.num_iterations == expected.num_iterations
    found.save(tmp_path / "result.npz")
    found.store(tmp_path / "result")
    opened = planners.open_result(tmp_path / "result")
    for again in (planners.SolveResult.load(tmp_path / "result.npz"), opened):
        np.testing.assert_array_equal(again.values, expected.values)
        assert again.objective == expected.objective or "steps" in repr(expected.objective)


@pytest.mark.parametrize("method", ["value_iteraton", "adaptive", "", None, 3, ["value_iteration"]])
def test_unknown_method(method: object) -> None:
    with pytest.raises(ValueError, match=r"must be one of .*value_iteration, .*adaptive_agg"):
        solve(method=method)


def test_unknown_method_suggests() -> None:
    with pytest.raises(ValueError, match="did you mean 'value_iteration'"):
        solve(method="value_iteraton")
    with pytest.raises(ValueError, match="did you mean 'adaptive_aggregation'"):
        solve(method="adaptive_agregation")


def test_unknown_options_list_the_known() -> None:
    with pytest.raises(TypeError, match="value_iteration does not take 'epsilon'"):
        solve(epsilon=0.5)
    with pytest.raises(TypeError, match="does not take 'eps'") as refusal:
        solve(method="adaptive_aggregation", eps=0.5)
    for name in (
        "epsilon",
        "num_global",
        "num_aggregated",
        "step_size",
        "step_index",
        "first_step",
    ):
        assert name in str(refusal.value)


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, "0.5", None])
def test_epsilon(epsilon: object) -> None:
    with pytest.raises(ValueError, match="epsilon must be positive and finite"):
        solve(method="adaptive_aggregation", epsilon=epsilon)


@pytest.mark.parametrize("name", ["num_iterations", "num_updates"])
def test_counts(name: str) -> None:
    for bad in (0, -1):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got {bad}"):
            solve(**{name: bad})
    for wrong in (2.0, "3", [1]):
        with pytest.raises(TypeError, match=f"{name} must be an integer"):
            solve(**{name: wrong})


@pytest.mark.parametrize("tol", [1, 2.0, -1e-9, math.nan, math.inf])
def test_tol_out_of_range(tol: float) -> None:
    with pytest.raises(ValueError, match="tol"):
        solve(tol=tol)


@pytest.mark.parametrize("atol", [-1e-9, math.nan, math.inf])
def test_atol_out_of_range(atol: float) -> None:
    with pytest.raises(ValueError, match="atol"):
        solve(atol=atol)


@pytest.mark.parametrize("time_limit", [0, -1.0, math.nan])
def test_time_limit_out_of_range(time_limit: float) -> None:
    with pytest.raises(ValueError, match="time_limit must be a positive number of seconds"):
        solve(time_limit=time_limit)


@pytest.mark.parametrize("name", ["tol", "atol", "time_limit"])
@pytest.mark.parametrize("value", ["1e-6", [1e-6], 1j])
def test_numbers_of_another_type_are_named(name: str, value: object) -> None:
    with pytest.raises((TypeError, ValueError), match=name):
        solve(**{name: value})


@pytest.mark.parametrize("shape", [(), (39,), (41,), (40, 1), (1, 40)])
def test_starts_of_another_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=re.escape(f"V0 must have shape (40,), got {shape}")):
        solve(V0=np.zeros(shape))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_starts_must_be_finite(bad: float) -> None:
    V0 = np.zeros(40)
    V0[7] = bad
    with pytest.raises(ValueError, match=re.escape("V0[7]")):
        solve(V0=V0)


@pytest.mark.parametrize("certify", ["always", "", None, True])
def test_certify(certify: object) -> None:
    with pytest.raises(ValueError, match="certify must be one of final, every"):
        solve(certify=certify)


def test_a_model_that_is_not_valid_is_refused() -> None:
    bad = TabularMDP(sp.csr_array(np.eye(2) * 0.5), np.ones((2, 1)))
    with pytest.raises(ValueError, match=r"sum to 0\.5"):
        planners.solve(bad, gamma=0.9)


def test_an_error_in_the_callback_is_the_callers() -> None:
    def broken(progress: planners.Progress) -> None:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        solve(callback=broken)


# ---------------------------------------------------------------------------------------------
# How runs end.


def check_bound(result: planners.SolveResult, gamma: float = 0.9) -> None:
    V, off = truth(dense(MOVES), gamma)
    assert np.abs(result.values - V).max() <= result.bound + off


def test_converged() -> None:
    result = solve()
    assert result.status == "converged"
    assert result.bound <= 1e-6 * (np.abs(result.values).max() + result.bound)
    assert "<=" in result.message
    check_bound(result)
    tighter = solve(tol=1e-9)
    assert tighter.status == "converged"
    assert tighter.bound < result.bound
    assert tighter.num_iterations > result.num_iterations


def test_the_looser_of_both_tolerances_counts() -> None:
    result = solve(atol=0.5, tol=0.0)
    assert result.status == "converged"
    assert 1e-6 < result.bound <= 0.5
    assert solve(atol=0.5, tol=1e-9).num_iterations == result.num_iterations
    assert solve(atol=1e-12, tol=1e-3).status == "converged"


def test_completed_without_tolerance() -> None:
    result = solve(num_iterations=7)
    assert result.status == "completed"
    assert result.num_iterations == result.num_sweeps == 7
    assert "7 iterations" in result.message
    check_bound(result)


@pytest.mark.parametrize("method", METHODS)
def test_stopped_short_of_the_tolerance(method: str) -> None:
    num_iterations = 7 if method in PLAIN_METHODS else 1
    result = solve(method=method, tol=1e-9, num_iterations=num_iterations)
    assert result.status == "stopped_short"
    assert result.num_iterations == num_iterations
    assert "before the tolerance was met" in result.message
    assert result.bound > 1e-9 * np.abs(result.values).max()
    check_bound(result)


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("options", [{"tol": 1e-17}, {"tol": 0.0}])
def test_a_tolerance_that_no_values_meet_is_refused(
    gamma: float, options: dict[str, float]
) -> None:
    for model in (MOVES, TABLE):
        with pytest.raises(ValueError, match="the smallest possible is") as error:
            planners.solve(model, gamma=gamma, **options)
        smallest = float(str(error.value).split("possible is ")[1].split()[0])
        V, _ = truth(dense(model), gamma)
        best = planners.solve(model, gamma=gamma, atol=1e-300)
        assert best.bound / np.abs(V).max() >= 0.9 * smallest
        assert planners.solve(model, gamma=gamma, tol=20 * smallest).status == "converged"


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("options", [{"atol": 1e-300}, {"atol": 0.0, "tol": 0.0}])
def test_a_tolerance_beyond_floats_ends_by_itself(gamma: float, options: dict[str, float]) -> None:
    for model in (MOVES, TABLE):
        result = planners.solve(model, gamma=gamma, **options)
        assert result.status == "stopped_short"
        assert "float64 can certify no better" in result.message
        # But it comes as close as rounding lets it.
        V, off = truth(dense(model), gamma)
        assert np.abs(result.values - V).max() <= result.bound + off
        assert result.bound <= 1e-13 / (1 - gamma) * np.abs(V).max()


def test_adaptive_aggregation_can_converge() -> None:
    result = solve(method="adaptive_aggregation", tol=0.3, epsilon=0.01)
    assert result.status == "converged"
    assert result.bound <= 0.3 * (np.abs(result.values).max() + result.bound)
    check_bound(result)


@pytest.mark.parametrize(
    ("method", "stop_at"),
    [(m, t) for m in METHODS for t in (1, 2, 3, 6, 8) if t <= 2 or m in PLAIN_METHODS],
)
def test_interrupted_by_the_callback(method: str, stop_at: int) -> None:
    seen = []

    def stop(progress: planners.Progress) -> bool:
        seen.append(progress)
        return progress.iteration == stop_at

    result = solve(method=method, callback=stop)
    assert result.status == "interrupted"
    assert "callback" in result.message
    assert result.num_iterations == stop_at == len(seen)
    assert seen[-1].num_updates == result.num_updates
    check_bound(result)


@pytest.mark.parametrize(
    ("method", "stop_at"),
    [(m, t) for m in METHODS for t in (1, 2, 3, 6, 8) if t <= 2 or m in PLAIN_METHODS],
)
def test_interrupted_from_the_keyboard(method: str, stop_at: int) -> None:
    def interrupt(progress: planners.Progress) -> None:
        if progress.iteration == stop_at:
            raise KeyboardInterrupt

    result = solve(method=method, callback=interrupt)
    assert result.status == "interrupted"
    assert "keyboard" in result.message
    assert result.num_iterations == len(result.history) == stop_at
    check_bound(result)
    assert MOVES.action_mask[np.arange(40), result.policy].all()


def test_a_false_callback_changes_nothing() -> None:
    for nothing in (None, False, 0, ""):
        result = solve(callback=lambda progress, nothing=nothing: nothing)
        np.testing.assert_array_equal(result.values, solve().values)


def test_budget_of_updates() -> None:
    result = solve(num_updates=200)
    assert result.status == "completed"
    assert result.num_updates == 200  # five sweeps of forty states
    assert "200 updates" in result.message
    assert solve(num_updates=201).num_updates == 240
    assert solve(num_updates=1).num_iterations == 1
    assert solve(num_updates=200, num_iterations=3).num_updates == 120
    assert solve(num_updates=200, tol=1e-9).status == "stopped_short"
    aggregated = solve(method="adaptive_aggregation", num_updates=500)
    assert aggregated.status == "completed"
    assert aggregated.history.num_updates[-2] < 500 <= aggregated.num_updates
    # A budget of updates replaces the thousand iterations.
    assert solve(method="adaptive_aggregation", num_updates=10**5).num_iterations > 1000


def test_budget_of_time() -> None:
    # No iteration takes less than a hundredth of a nanosecond.
    result = solve(time_limit=1e-11)
    assert result.status == "stopped_short"  # of the default tolerance
    assert result.num_iterations == 1
    assert "time limit of 1e-11 s" in result.message
    check_bound(result)
    assert solve(time_limit=1e-11, num_iterations=50).status == "completed"
    aggregated = solve(method="adaptive_aggregation", time_limit=1e-11)
    assert aggregated.status == "completed"
    assert aggregated.num_iterations == 1
    assert solve(time_limit=1e9).status == "converged"


# ---------------------------------------------------------------------------------------------
# Starts, seeds, what is left alone.


@pytest.mark.parametrize(
    ("method", "model"), [(m, model) for model in (MOVES, TABLE) for m in methods_for(model)]
)
def test_nothing_of_the_callers_changes(method: str, model: Any) -> None:
    V0 = np.random.default_rng(0).normal(size=model.num_states)
    kept = V0.copy()
    before = [(name, np.array(a)) for name, a in arrays_of(model)]
    first = planners.solve(model, gamma=0.9, method=method, V0=V0, num_iterations=20)
    np.testing.assert_array_equal(V0, kept)
    first.values[:] = 0.0
    first.policy[:] = 0
    second = planners.solve(model, gamma=0.9, method=method, V0=V0, num_iterations=20)
    assert second.values.any()
    np.testing.assert_array_equal(V0, kept)
    for (name, array), (_, after) in zip(before, arrays_of(model), strict=True):
        np.testing.assert_array_equal(array, after, err_msg=name)


def arrays_of(model: Any) -> list[tuple[str, np.ndarray[Any, Any]]]:
    found = []
    for name, value in vars(model).items():
        if isinstance(value, np.ndarray):
            found.append((name, value))
        elif sp.issparse(value):
            found += [(f"{name}.{part}", getattr(value, part)) for part in ("data", "indices")]
    return found


def test_arrays_given_to_a_model_stay_writeable() -> None:
    successors, costs = np.array([[0, 1], [1, 1]]), np.array([[1.0, 2.0], [np.inf, np.inf]])
    kept = successors.copy(), costs.copy()
    planners.solve(MoveMDP(successors, costs), gamma=0.9)
    assert successors.flags.writeable
    assert costs.flags.writeable
    np.testing.assert_array_equal(successors, kept[0])
    np.testing.assert_array_equal(costs, kept[1])


def test_values_seen_by_a_callback_are_copies() -> None:
    def vandal(progress: planners.Progress) -> None:
        progress.values[:] = 1e6

    for method in METHODS:
        np.testing.assert_array_equal(
            solve(method=method, callback=vandal).values, solve(method=method).values
        )


def test_a_warm_start_is_where_the_run_begins() -> None:
    cold = solve(tol=1e-10)
    warm = solve(tol=1e-10, V0=cold.values)
    assert warm.status == "converged"
    assert warm.num_iterations < cold.num_iterations / 4
    seen = []
    solve(
        V0=cold.values.tolist(),
        method="adaptive_aggregation",
        num_iterations=2,
        callback=lambda progress: seen.append(progress.values),
    )
    np.testing.assert_allclose(seen[0], cold.values, rtol=0, atol=2 * cold.bound)


def test_values_of_terminal_states_in_a_start_do_not_count() -> None:
    V0 = np.zeros(40)
    V0[MOVES.terminal] = 1e6
    for method in METHODS:
        options = {"method": method, "num_iterations": 3}
        np.testing.assert_array_equal(solve(V0=V0, **options).values, solve(**options).values)


@pytest.mark.parametrize("method", METHODS)
def test_one_seed_gives_one_result(method: str) -> None:
    first, second, other = (
        solve(method=method, seed=seed, num_iterations=60, epsilon=0.05)
        if method == "adaptive_aggregation"
        else solve(method=method, seed=seed)
        for seed in (5, 5, 6)
    )
    for name in ("values", "policy"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert first.bound == second.bound
    np.testing.assert_array_equal(first.history.num_updates, second.history.num_updates)
    np.testing.assert_array_equal(first.history.residual, second.history.residual)
    same = bool((first.values == other.values).all())
    assert same == (method != "adaptive_aggregation")


@pytest.mark.parametrize("method", METHODS)
def test_a_run_does_not_touch_the_global_generator(method: str) -> None:
    np.random.seed(3)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    solve(method=method)
    assert np.random.random() == expected  # noqa: NPY002


def test_no_foresight() -> None:
    tables = dense(MOVES)
    best = np.where(tables.mask, tables.costs, np.inf).min(axis=1)
    best[tables.terminal] = 0.0
    result = solve(gamma=0)
    assert result.status == "converged"
    np.testing.assert_allclose(result.values, best, rtol=0, atol=1e-15)
    assert result.num_iterations <= 2


def test_costs_of_0() -> None:
    model = MoveMDP([[1, 0], [0, 1]], np.zeros((2, 2)))
    result = planners.solve(model, gamma=0.9)
    assert result.status == "converged"
    assert result.values.tolist() == [0.0, 0.0]
    assert result.bound == 0.0


# ---------------------------------------------------------------------------------------------
# History and counts.


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("certify", ["final", "every"])
def test_history(method: str, certify: str) -> None:
    result = solve(method=method, certify=certify, num_iterations=30)
    history = result.history
    assert len(history) == result.num_iterations == 30
    for name, array in vars(history).items():
        assert array.shape == (30,), name
    assert (np.diff(history.num_updates) > 0).all()
    assert history.num_updates[-1] == result.num_updates
    assert (np.diff(history.seconds) >= 0).all()
    assert 0 <= history.seconds[-1] <= result.seconds
    is_sweep = history.num_megastates == 0
    assert np.count_nonzero(is_sweep) <= result.num_sweeps
    np.testing.assert_array_equal(np.isnan(history.residual), ~is_sweep)
    assert (history.residual[is_sweep] >= 0).all()
    known = ~np.isnan(history.bound)
    np.testing.assert_array_equal(known, np.ones(30, bool) if certify == "every" else is_sweep)
    assert (history.bound[known] > 0).all()
    steps = np.diff(history.num_updates, prepend=0)
    np.testing.assert_array_equal(steps[~is_sweep], history.num_megastates[~is_sweep])
    assert steps[is_sweep].sum() == 40 * result.num_sweeps
    if method in PLAIN_METHODS:
        assert np.count_nonzero(is_sweep) == result.num_sweeps
    if method == "value_iteration":
        assert is_sweep.all()
        assert history.bound[-1] == result.bound
        # The range of the residual, of which the bound is made, contracts.
        assert (np.diff(history.bound) <= 1e-12).all()


def test_certificate_sweeps_are_counted_apart() -> None:
    # One for the policy in any case; value iteration's bound is that of its own sweeps.
    assert solve(num_iterations=9).num_certificate_sweeps == 1
    assert solve(num_iterations=9, certify="every").num_certificate_sweeps == 1
    # Two global and five aggregated iterations: one sweep bounds both values and policy.
    options = {"method": "adaptive_aggregation", "num_iterations": 7}
    assert solve(**options).num_certificate_sweeps == 1
    # That of the last iteration is the result's.
    assert solve(certify="every", **options).num_certificate_sweeps == 5
    assert solve(certify="every", **options).num_updates == solve(**options).num_updates
    assert solve(**options).num_sweeps == 2


def test_residual_is_that_of_the_sweep() -> None:
    residuals, values = [], [np.zeros(40)]

    def watch(progress: planners.Progress) -> None:
        residuals.append(progress.residual)
        values.append(progress.values)

    result = solve(
        method="adaptive_aggregation", num_aggregated=0, callback=watch, num_iterations=20
    )
    seen = [np.abs(after - before).max() for before, after in itertools.pairwise(values)]
    np.testing.assert_array_equal(residuals, seen)
    np.testing.assert_array_equal(result.history.residual, residuals)
    plain = solve(num_iterations=20)
    np.testing.assert_array_equal(plain.history.residual, residuals)


def test_result_says_what_was_done() -> None:
    result = solve(method="adaptive_aggregation", num_iterations=20)
    assert result.method == "adaptive_aggregation"
    assert result.gamma == 0.9
    assert isinstance(result.status, planners.Status)
    assert result.labels is not None
    assert result.labels.shape == (40,)
    assert result.labels.max() + 1 == result.history.num_megastates.max()
    assert solve().labels is None
    assert "adaptive_aggregation: completed, 40 states" in repr(result)
    assert result.values.dtype == np.float64
    assert np.issubdtype(result.policy.dtype, np.integer)


# ---------------------------------------------------------------------------------------------
# Models with added states.


@pytest.mark.parametrize("method", methods_for(TABLE))
@pytest.mark.parametrize(("name", "size"), [("CliffWalking-v1", 48), ("Taxi-v4", 500)])
def test_added_states_are_left_out(method: str, name: str, size: int) -> None:
    env = gym.make(name)
    model = planners.as_model(env)
    assert model.num_added_states == 1
    assert model.num_states == size + 1
    result = planners.solve(env, gamma=0.9, method=method)
    assert result.values.shape == result.policy.shape == (size,)
    if result.labels is not None:
        assert result.labels.shape == (size,)
    assert result.num_updates >= size + 1
    # What is returned fits what is taken.
    again = planners.solve(env, gamma=0.9, V0=result.values)
    assert again.status == "converged"
    assert again.values.shape == (size,)
    longer = planners.solve(env, gamma=0.9, V0=np.append(result.values, 0.0))
    np.testing.assert_array_equal(again.values, longer.values)
    with pytest.raises(ValueError, match=re.escape(f"must have shape ({size},)")):
        planners.solve(env, gamma=0.9, V0=np.zeros(size - 1))


def test_cliff_walking_by_hand() -> None:
    result = planners.solve(gym.make("CliffWalking-v1"), gamma=0.9)
    # Up, eleven to the right, down: thirteen moves at cost 1.
    assert abs(result.values[36] - (1 - 0.9**13) / 0.1) <= result.bound
    assert result.policy[36] == 0
    assert (result.policy[24:35] == 1).all()
    assert result.policy[35] == 2


# ---------------------------------------------------------------------------------------------
# The scale of the paper.


@pytest.mark.parametrize("name", ["TerrainMaze-v0", "StandardMaze-v0", "FrozenLake-v1"])
def test_normalized(name: str) -> None:
    env = gym.make(name)
    plain = planners.solve(env, gamma=0.9, tol=1e-9)
    for size in (100.0, 3.0):
        options = {} if size == 100.0 else {"max_cost_to_go": size}
        model, scale = planners.normalized(env, 0.9, **options)
        result = planners.solve(model, gamma=0.9, tol=1e-9)
        assert np.abs(result.values).max() == pytest.approx(size, rel=1e-8)
        assert scale == pytest.approx(size / np.abs(plain.values).max(), rel=1e-8)
        np.testing.assert_allclose(result.values / scale, plain.values, rtol=0, atol=1e-7)


def test_normalized_of_nothing() -> None:
    model = MoveMDP([[1], [0]], np.zeros((2, 1)))
    with pytest.raises(ValueError, match="all 0"):
        planners.normalized(model, 0.9)


@pytest.mark.parametrize("size", [0, -1.0, math.inf, math.nan])
def test_normalized_to_what_is_no_size(size: float) -> None:
    with pytest.raises(ValueError, match="max_cost_to_go must be positive"):
        planners.normalized(MOVES, 0.9, size)
