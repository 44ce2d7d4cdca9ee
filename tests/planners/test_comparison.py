"""Several methods on one model: the same numbers as each alone, and true errors."""

from __future__ import annotations

import json
import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import aggmaze
import planners
from planners.comparison import COLUMNS, methods_of


@pytest.fixture
def maze() -> Any:
    return gym.make("TerrainMaze-v0", shape=(8, 8), p=0.9)


def test_each_run_is_that_of_solve(maze: Any) -> None:
    names = ["value_iteration", "policy_iteration", "adaptive_aggregation"]
    found = planners.compare(maze, names, gamma=0.95, seed=3)
    assert [run.method for run in found.runs] == names
    for run in found.runs:
        alone = planners.solve(maze, gamma=0.95, method=run.method, seed=3)
        assert run.result is not None
        np.testing.assert_array_equal(run.result.values, alone.values)
        assert run.result.num_updates == alone.num_updates
        assert run.result.bound == alone.bound
    assert not found.interrupted


def test_errors_are_true_ones() -> None:
    """Beside 14/17 and the rest of FrozenLake in closed form: a linear system of the policy."""
    lake = gym.make("FrozenLake-v1")
    found = planners.compare(lake, gamma=0.9, tol=1e-3)
    policy = planners.solve(lake, gamma=0.9, tol=1e-12).policy
    optimum = planners.evaluate(lake, policy, gamma=0.9)
    for run in found.runs:
        if run.result is None:
            continue
        error = float(np.abs(run.result.values - optimum).max())
        assert run.error_low <= error + 1e-12
        assert error <= run.error_high + 1e-12
        assert run.error_high <= run.result.bound * (1 + 1e-9) + 1e-12


def test_a_method_that_does_not_run_says_so_and_the_others_go_on() -> None:
    lake = gym.make("FrozenLake-v1")
    found = planners.compare(lake, ["basin_aggregation", "value_iteration"], gamma=0.9)
    refused, solved = found.runs
    assert refused.result is None
    assert "MoveMDP" in refused.refusal
    assert math.isnan(refused.error_high)
    assert solved.result is not None
    assert solved.result.success
    assert f"not here: {refused.refusal}" in str(found)


@pytest.mark.parametrize(
    "objective",
    [planners.TotalCost(), planners.AverageCost(), planners.FiniteHorizon(5)],
    ids=str,
)
def test_every_objective(objective: planners.TotalCost) -> None:
    lake = gym.make("FrozenLake-v1")
    found = planners.compare(lake, objective=objective)
    ran = [run for run in found.runs if run.result is not None]
    assert {run.method for run in ran} >= {"auto", methods_of(objective)[0]}
    for run in ran:
        assert run.error_high <= 1e-5


def test_infinite_costs_are_no_error() -> None:
    """From one of the two states no end is reached: its cost is infinite, and known to be."""
    model = aggmaze.TabularMDP.from_matrices(
        [np.eye(3), [[0, 0, 1], [0, 1, 0], [0, 0, 1]]],
        costs=[[1.0, 2.0], [1.0, 1.0], [0.0, 0.0]],
        terminal=[False, False, True],
        order="ass",
    )
    found = planners.compare(model, ["policy_iteration", "value_iteration"], gamma=1)
    for run in found.runs:
        assert run.result is not None
        assert run.result.infinite.tolist() == [False, True, False]
        assert run.error_high <= 1e-5


def test_several_discounts(maze: Any) -> None:
    found = planners.compare(maze, ["auto", "policy_iteration"], gammas=[0.5, 0.9, 1])
    assert [str(objective) for objective in found.objectives] == [
        "gamma 0.5",
        "gamma 0.9",
        "total cost",
    ]
    assert [len(found.of(objective)) for objective in found.objectives] == [2, 2, 2]
    for objective, rows in found.cells():
        assert all(len(row) == len(COLUMNS) for row in rows)
        assert str(objective) in str(found)


def test_what_json_holds(maze: Any) -> None:
    names = ["auto", "value_iteration"]
    found = planners.compare(maze, names, gamma=0.9, time_limit=60)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["num_states"] == 64
    assert [run["method"] for run in told["runs"]] == names
    assert [run["gamma"] for run in told["runs"]] == [0.9, 0.9]
    for run, row in zip(found.runs, told["runs"], strict=True):
        assert run.result is not None
        assert row["chosen"] == run.result.method
        assert row["num_updates"] == run.result.num_updates
        assert row["bound"] == run.result.bound


def test_options_go_to_their_method(maze: Any) -> None:
    found = planners.compare(
        maze,
        ["value_iteration", "adaptive_aggregation"],
        gamma=0.9,
        options={"adaptive_aggregation": {"epsilon": "shrink"}},
    )
    assert all(run.result is not None and run.result.success for run in found.runs)
    assert found.runs[1].result.bound < 1e-3  # type: ignore[union-attr]


def test_a_callback_ends_the_comparison(maze: Any) -> None:
    begun: list[str] = []
    found = planners.compare(
        maze,
        ["value_iteration", "gauss_seidel"],
        gamma=0.9,
        begun=lambda method, objective: begun.append(f"{method}, {objective}"),
        callback=lambda progress: progress.iteration == 3,
    )
    assert begun == ["value_iteration, gamma 0.9"]
    assert found.interrupted
    (run,) = found.runs
    assert run.result is not None
    assert run.result.num_iterations == 3
    assert run.result.status == planners.Status.INTERRUPTED


def test_ctrl_c_leaves_what_is_finished(maze: Any) -> None:
    def interrupt(method: str, objective: Any) -> None:
        if method == "gauss_seidel":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # outside of a run it is the caller's
        planners.compare(maze, ["gauss_seidel"], gamma=0.9, begun=interrupt)

    def press(progress: planners.Progress) -> None:
        if progress.iteration == 2:
            raise KeyboardInterrupt

    found = planners.compare(maze, ["value_iteration", "gauss_seidel"], gamma=0.9, callback=press)
    assert found.interrupted
    assert [run.method for run in found.runs] == ["value_iteration"]
    assert found.runs[0].ended == "interrupted"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"methods": ["value_iteratoin"], "gamma": 0.9}, "did you mean 'value_iteration'"),
        ({"methods": [], "gamma": 0.9}, "at least one"),
        ({"gammas": []}, "at least one discount"),
        ({"gammas": [0.9], "gamma": 0.9}, "gammas= and gamma="),
        ({"gamma": 0.9, "tol": -1}, "tol"),
        ({"gamma": 0.9, "options": {"foo": {"epsilon": 1}}}, "none of the methods"),
        ({"gamma": 1, "methods": ["gauss_seidel"]}, "for TotalCost"),
    ],
)
def test_bad_use_is_refused_before_the_first_run(
    arguments: dict[str, Any], complaint: str, maze: Any
) -> None:
    def begun(method: str, objective: Any) -> None:
        raise AssertionError("a run began")

    with pytest.raises(ValueError, match=complaint):
        planners.compare(maze, begun=begun, **arguments)


def test_pictures(maze: Any) -> None:
    names = ["value_iteration", "gauss_seidel"]
    one = planners.compare(maze, names, gamma=0.9).plot(against="updates")
    assert len(one.lines) == 2
    panels = planners.compare(maze, names, gammas=[0.5, 0.9]).plot(title="terrain")
    assert [panel.get_title() for panel in panels] == ["terrain, gamma 0.5", "terrain, gamma 0.9"]
    with pytest.raises(ValueError, match="2 were asked"):
        planners.compare(maze, names, gammas=[0.5, 0.9]).plot(ax=one)
