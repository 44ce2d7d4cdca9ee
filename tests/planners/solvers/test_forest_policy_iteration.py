"""Forest policy iteration against dense policy iteration and fractions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planners
from aggmaze.recipes import StandardRecipe
from tests.planners.families import some_models
from tests.planners.reference import (
    Array,
    Model,
    check_exactly,
    dense,
    gammas,
    maze_of,
    models,
    random_moves,
    truth,
)

METHOD = "forest_policy_iteration"


@pytest.mark.parametrize("gamma", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("seed", range(4))
def test_every_bound_holds_and_the_end_comes_soon(gamma: float, seed: int) -> None:
    for name, model in some_models(seed):
        V, off = truth(dense(model), gamma)
        for options in ({}, {"start": "sweeps", "num_sweeps": 1}):
            check_run(name, model, gamma, V, off, **options)


def check_run(
    name: str, model: Model, gamma: float, V: Array, off: float, **options: Any
) -> planners.SolveResult:
    def watch(progress: planners.Progress) -> None:
        assert np.abs(progress.values - V).max() <= progress.bound + off, name

    result = planners.solve(
        model, gamma=gamma, method=METHOD, tol=1e-9, certify="every", callback=watch, **options
    )
    assert result.status == "converged", name
    assert result.bound <= 1e-9 * np.abs(V).max() * (1 + 1e-6)
    assert result.num_iterations <= 100, name
    return result


@settings(max_examples=100)
@given(
    model=models,
    gamma=gammas,
    num_iterations=st.integers(1, 60),
    start=st.sampled_from([None, 3.0, -1e6, 1e6]),
    options=st.sampled_from([{}, {"start": "sweeps"}, {"num_sweeps": 0}]),
)
def test_the_certificate_is_exact(
    model: Model, gamma: float, num_iterations: int, start: float | None, options: dict[str, Any]
) -> None:
    check_exactly(model, gamma, METHOD, num_iterations, start, certify="every", **options)


# ---------------------------------------------------------------------------------------------
# The hard cases.


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("p", [1.0, 0.95])
@pytest.mark.parametrize("gamma", [0.9, 0.99, 0.999])
def test_a_start_that_is_the_same_everywhere(gamma: float, p: float, general: bool) -> None:
    # From a saturated bound policy iteration turns one state of a long path a round: ties abound.
    moves = maze_of(StandardRecipe("depth_first"), (50, 50), p=p)
    model = moves.to_tabular() if general else moves
    V0 = np.full(model.num_states, 1 / (1 - gamma))
    result = planners.solve(model, gamma=gamma, method=METHOD, V0=V0, tol=1e-9)
    assert (result.status, result.num_iterations) == ("converged", 1)
    result = planners.solve(model, gamma=gamma, method=METHOD, V0=V0, tol=1e-9, start="sweeps")
    assert result.status == "converged"
    assert result.num_iterations <= 200


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("p", [1.0, 0.95, 0.7])
@pytest.mark.parametrize("gamma", [0.9, 0.99, 0.999])
def test_moves_that_flicker(gamma: float, p: float, general: bool) -> None:
    # All moves cost the same on an open grid: nearly every state has two best moves, and rounding
    # decides between them anew in each sweep.  Asked for the last digit that can be certified.
    moves = maze_of(StandardRecipe(loops=1.0, step_cost=1 / 3), (30, 30), p=p)
    model = moves.to_tabular() if general else moves
    for start in ("auto", "sweeps"):
        result = planners.solve(model, gamma=gamma, method=METHOD, tol=1e-10, start=start)
        assert result.status == "converged"
        assert result.num_iterations <= 60
        result = planners.solve(model, gamma=gamma, method=METHOD, atol=0.0, start=start)
        assert result.status == "stopped_short"
        assert result.num_iterations <= 200


def test_a_good_start_is_used_and_kept() -> None:
    for name, model in some_models(0):
        first = planners.solve(model, gamma=0.99, method=METHOD, tol=1e-9)
        V0 = first.values.copy()
        again = planners.solve(model, gamma=0.99, method=METHOD, tol=1e-8, V0=V0)
        np.testing.assert_array_equal(V0, first.values)
        assert again.num_iterations <= 2, name
        # What is updated, and how often, is reported.
        assert again.num_updates == again.num_sweeps * model.num_states


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("start", "anywhere", ValueError),
        ("num_sweeps", -1, ValueError),
        ("num_sweeps", 1.5, TypeError),
        ("epsilon", 0.5, TypeError),
    ],
)
def test_options_that_make_no_sense(option: str, value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=option):
        planners.solve(random_moves(0, 5, 2, p=0.9), gamma=0.9, method=METHOD, **{option: value})
