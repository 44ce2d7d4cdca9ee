"""When `auto` goes over from modified to multilevel policy iteration, and that nothing is lost."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import planners
from aggmaze import TabularMDP
from planners.bellman import local_engine
from planners.solvers import auto_policy_iteration, modified_policy_iteration
from planners.solvers.auto_policy_iteration import AutoPolicyIteration
from planners.solvers.modified_policy_iteration import (
    ModifiedPolicyIteration,
    ModifiedPolicyIterationOptions,
)
from tests.planners.reference import Array, bounds_hold, dense, random_moves, random_tabular, truth
from tests.planners.solvers.test_multilevel_policy_iteration import queue, torus


def steps_of(
    solver: AutoPolicyIteration | ModifiedPolicyIteration, num_states: int, count: int
) -> list[tuple[Array, int]]:
    """Return V and the sweeps of each step from V = 0."""
    V, out = np.zeros(num_states), np.empty(num_states)
    found = []
    for _ in range(count):
        step = solver.step(V, out)
        V, out = out, V
        found.append((V.copy(), step.num_sweeps))
    return found


def solved(model: TabularMDP, gamma: float, **options: object) -> planners.SolveResult:
    """Looked at one by one, or the rounds of a small model would be made at once."""
    options = {"callback": lambda progress: None, **options}
    return planners.solve(model, gamma=gamma, time_limit=120, **options)


def test_what_mixes_fast_stays() -> None:
    for model in (random_tabular(0, 400, 3, terminals=0), random_moves(0, 400, 3, p=0.4)):
        result = solved(model, 0.999)
        named = planners.solve(model, gamma=0.999, method="modified_policy_iteration")
        assert result.status == "converged"
        assert result.method == "modified_policy_iteration"
        assert "after" not in result.reason
        np.testing.assert_array_equal(result.values, named.values)
        assert result.num_sweeps == named.num_sweeps


@pytest.mark.parametrize("gamma", [0.9999, 1 - 1e-8])
def test_a_long_queue_goes_over(gamma: float) -> None:
    model = queue(1500)
    result = solved(model, gamma)
    assert result.status == "converged"
    assert result.method == "multilevel_policy_iteration"
    assert "after" in result.reason
    exact = solved(model, gamma, method="policy_iteration")
    assert np.abs(result.values - exact.values).max() <= result.bound + exact.bound
    again = solved(model, gamma, num_threads=2)
    np.testing.assert_array_equal(again.values, result.values)
    assert (again.reason, again.num_sweeps) == (result.reason, result.num_sweeps)


def test_bounds_hold_all_the_way() -> None:
    model = queue(150)
    V, off = truth(dense(model), 0.9995)
    result = planners.solve(model, gamma=0.9995, tol=1e-8, callback=bounds_hold(V, off))
    assert result.status == "converged"


@pytest.mark.parametrize("eliminates", [False, True])
def test_is_modified_policy_iteration_until_it_goes_over(
    eliminates: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not eliminates:
        monkeypatch.setattr(modified_policy_iteration, "_FIRST_TRIAL", math.inf)
    monkeypatch.setattr(auto_policy_iteration, "_EXACT_SWEEPS", 100)
    monkeypatch.setattr(auto_policy_iteration, "_EXACT_SWEEPS_LEFT", 0)
    model = queue(600)
    num_states = model.num_states
    operators = local_engine(model, 0.999)
    alone = ModifiedPolicyIteration(operators, ModifiedPolicyIterationOptions())
    solver = AutoPolicyIteration(operators, 1e-6)
    V, out, expected = np.zeros(num_states), np.empty(num_states), np.empty(num_states)
    num_sweeps = 0
    for _ in range(8):
        goes_over = alone.eliminates and num_sweeps >= 100
        step = solver.step(V, out)
        assert (solver.method == "multilevel_policy_iteration") == goes_over
        assert bool(solver.reason) == goes_over
        if goes_over:
            break
        plain = alone.step(V.copy(), expected)
        np.testing.assert_array_equal(out, expected)
        assert (step.num_sweeps, step.num_updates) == (plain.num_sweeps, plain.num_updates)
        num_sweeps += step.num_sweeps
        V, out = out, V
    assert goes_over == eliminates


def test_a_first_iteration_that_is_broken_off_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken_off(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(auto_policy_iteration.MultilevelPolicyIteration, "step", broken_off)
    result = solved(queue(1500), 0.9999)
    assert result.status == "interrupted"
    assert result.num_iterations > 0
    assert result.method == "modified_policy_iteration"
    assert "after" not in result.reason


def test_slow_progress_is_foretold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no equations are solved exactly, more sweeps are made before it is counted."""
    for name in ("_FIRST_TRIAL", "_MANY_BEFORE"):
        monkeypatch.setattr(modified_policy_iteration, name, math.inf)
    monkeypatch.setattr(auto_policy_iteration, "_LEAST_SWEEPS", 1000)
    monkeypatch.setattr(auto_policy_iteration, "_MOST_SWEEPS_LEFT", 1000)
    model = queue(1500)
    result = solved(model, 1 - 1e-6)
    assert result.status == "converged"
    assert "the bound fell slowly" in result.reason
    assert re.search(
        r"; changed from modified_policy_iteration after \d+ iterations, since the", result.reason
    )
    assert result.method == "multilevel_policy_iteration"


def test_how_many_sweeps_are_left() -> None:
    """Bounds that fall by a tenth each hundred sweeps take so many more."""
    model = torus(5, 0)
    solver = AutoPolicyIteration(local_engine(model, 0.9), 1e-6)
    for hundreds in range(1, 11):
        solver._progress.append((100 * hundreds, 0.9**hundreds))
    expected = 100 * math.log(1e-6 / 0.9**10) / math.log(0.9)
    assert solver._sweeps_left() == pytest.approx(expected)
    solver._progress.append((1100, 0.9**5))
    assert solver._sweeps_left() == math.inf
    solver._progress.append((1200, 1e-7))
    assert solver._sweeps_left() == 0.0


def test_a_start_of_ones_own_is_kept() -> None:
    model = queue(800)
    V = solved(model, 0.9999, method="policy_iteration").values
    assert solved(model, 0.9999, V0=V).num_iterations <= 2
