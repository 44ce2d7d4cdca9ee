"""How a solve goes and when it will end, as the command tells it."""

from __future__ import annotations

import io
import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from rich.console import Console

import aggmaze  # noqa: F401
import planners
from aggmaze.progress import stage
from planners import AverageCost, Discounted, FiniteHorizon, TotalCost
from planners.cli.progress import Goal, ProgressLine
from planners.record import Progress


def seen(iteration: int, *, bound: float = math.nan, residual: float = math.nan) -> Progress:
    """An iteration a second of 400 updates, on values of 100 at most, one of them infinite."""
    return Progress(
        iteration,
        400 * iteration,
        float(iteration),
        0,
        residual,
        bound,
        lambda: np.array([-100.0, 7.0, np.inf]),
    )


def after(goal: Goal, iterations: int, **rates: float) -> float | None:
    """What a goal foretells where errors begin at 100 and shrink by these factors."""
    for k in range(1, iterations + 1):
        goal.note(seen(k, **{name: 100 * rate**k for name, rate in rates.items()}), float(k))
    return goal.seconds_left(float(iterations))


def reached(rate: float, target: float) -> float:
    """The iteration in which 100 * rate ** k is the target."""
    return math.log(target / 100) / math.log(rate)


def test_the_default_accuracy_is_relative_to_the_values() -> None:
    goal = Goal(Discounted(0.9), "value_iteration")
    assert after(goal, 20, bound=0.9) == pytest.approx(reached(0.9, 1e-4) - 20)


def test_the_looser_of_two_accuracies_ends_it() -> None:
    goal = Goal(Discounted(0.9), "value_iteration", tol=1e-6, atol=0.5)
    assert after(goal, 20, bound=0.9) == pytest.approx(reached(0.9, 0.5) - 20)


def test_without_a_bound_the_residual_tells() -> None:
    assert after(Goal(TotalCost()), 20, residual=0.9) == pytest.approx(reached(0.9, 1e-4) - 20)
    goal = Goal(Discounted(0.9))
    assert after(goal, 20, bound=0.8, residual=0.9) == pytest.approx(reached(0.8, 1e-4) - 20)


def test_the_first_of_several_ends_counts() -> None:
    limits: dict[str, Any] = {"tol": 1e-6, "num_iterations": 100, "num_updates": 16_000}
    goal = Goal(Discounted(0.99), "value_iteration", **limits)
    assert after(goal, 20, bound=0.99) == pytest.approx(20)  # 40 iterations of 400 updates
    goal = Goal(Discounted(0.99), "value_iteration", **limits, time_limit=30.0)
    assert after(goal, 20, bound=0.99) == pytest.approx(10)


def test_methods_that_end_by_a_number_of_iterations_count_them() -> None:
    goal = Goal(Discounted(0.9), "adaptive_aggregation", {"epsilon": 0.5})
    assert goal.num_iterations == 1000
    assert after(goal, 20) == pytest.approx(980)
    assert Goal(FiniteHorizon(50)).num_iterations == 50
    assert Goal(Discounted(0.9)).num_iterations is None


def test_nothing_is_foretold_of_what_does_not_come_nearer() -> None:
    assert after(Goal(AverageCost()), 20, bound=1.0) is None
    assert after(Goal(Discounted(0.9)), 20) is None


@pytest.mark.parametrize("objective", [Discounted(0.95), TotalCost(), FiniteHorizon(30)])
def test_every_solve_can_be_watched(objective: Any) -> None:
    """A line is told of each kind of run, and the results are those of an unwatched one."""
    env = gym.make("TerrainMaze-v0", p=0.9)
    line = ProgressLine(Console(file=io.StringIO()), "solving", Goal(objective))
    watched = planners.solve(env, objective=objective, callback=line.show)
    assert line._text.startswith("iteration ")
    assert ("of 30," in line._text) == isinstance(objective, FiniteHorizon)
    np.testing.assert_allclose(
        watched.values, planners.solve(env, objective=objective).values, rtol=1e-5
    )


def test_a_solve_tells_what_it_does_before_and_after_its_iterations() -> None:
    env = gym.make("TerrainMaze-v0", p=0.9)
    line = ProgressLine(Console(file=io.StringIO()), "solving", Goal(Discounted(0.95)))
    told: list[str] = []
    tell = line.tell

    def note(text: str, *more: Any) -> None:
        told.append(text)
        tell(text, *more)

    line.tell = note  # type: ignore[method-assign]
    with line:
        result = planners.solve(env, gamma=0.95, callback=line.show)
    assert told.index("solving: choosing a method") < told.index(
        f"solving: preparing {result.method}"
    )
    assert "solving: first iteration, 400 states" in told
    last = f"iteration {result.num_iterations}, {result.num_updates:,} updates, bound"
    assert any(text.startswith(last) and text.endswith(": certifying") for text in told)
    assert any(text.endswith(": reading off the policy") for text in told)


def test_runs_of_a_comparison_are_told_by_their_number() -> None:
    line = ProgressLine(Console(file=io.StringIO()), "solving")
    with line:
        line.begin("run 2, auto", Goal(Discounted(0.9)))
        with stage("choosing a method"):
            assert line._text == "run 2, auto: solving: choosing a method"
        line.show(seen(3, bound=7.0))
        with stage("again, to time it"):
            assert line._text == "run 2, auto: iteration 3, bound 7: again, to time it"
            line.begin("run 3, value_iteration", Goal(Discounted(0.9)))
        assert line._text == "run 3, value_iteration: solving"
