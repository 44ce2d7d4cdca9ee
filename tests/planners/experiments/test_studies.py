"""What the paper's experiments measure, at a tiny size."""

from __future__ import annotations

import numpy as np
import pytest

import planners
from planners.experiments import EXPERIMENTS, bounds, cartpole, efficiency, mazes
from planners.experiments.algorithm3 import Algorithm3, seeds
from planners.experiments.mazes import Maze
from planners.experiments.running.tasks import perform, plan
from tests.planners.experiments.tiny import TINY, runs_of
from tests.planners.reference import backup, dense, greedy_loss, truth

pytestmark = pytest.mark.usefixtures("tiny")


def test_all_are_here() -> None:
    assert sorted(TINY) == sorted(EXPERIMENTS)


@pytest.mark.parametrize(
    "maze",
    [
        Maze("standard", (6, 4), p=0.9),
        *mazes.every_terrain(Maze("terrain", (5, 5))),
        Maze("terrain", (3, 3, 3), p=0.92),
    ],
    ids=str,
)
def test_mazes_are_scaled_to_a_cost_to_go_of_100(maze: Maze) -> None:
    model, V = mazes.draw_scaled(maze, 0.95, np.random.default_rng(0))
    exact = truth(dense(model), 0.95)[0].astype(float)
    assert np.abs(exact).max() == pytest.approx(100, rel=1e-8)
    np.testing.assert_allclose(V, exact, rtol=0, atol=1e-6)
    assert mazes.of(maze.configuration()) == maze
    assert (model.p, model.num_states) == (maze.p, maze.num_states)


def test_every_terrain() -> None:
    variants = mazes.every_terrain(Maze("terrain", (4, 4), p=0.9))
    assert [variant.terrain for variant in variants] == [
        "shifted, uniform",
        "shifted, normal",
        "shifted, smooth",
        "difference, uniform",
    ]
    assert {variant.p for variant in variants} == {0.9}
    standard = Maze("standard", (4, 4))
    assert mazes.every_terrain(standard) == [standard]


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        # 1000 = 142 * 7 + 6: the fourth aggregated iteration of its phase.
        (Algorithm3(), (1000, 996, 994)),
        (Algorithm3(iterations=994), (994, 989, 994)),
        (Algorithm3(iterations=995), (995, 989, 994)),
        (Algorithm3(iterations=996), (996, 996, 994)),
    ],
)
def test_where_the_error_is_read(algorithm: Algorithm3, expected: tuple[int, int, int]) -> None:
    assert tuple(algorithm.readings().values()) == expected


def test_errors_are_those_of_the_values_after_so_many_iterations() -> None:
    maze = Maze("terrain", (5, 5))
    model, _ = mazes.draw_scaled(maze, 0.95, np.random.default_rng(2))
    V = truth(dense(model), 0.95)[0].astype(float)
    algorithm = Algorithm3(iterations=40, epsilon=3.0)
    errors = algorithm.errors(model, V, 5)
    for steps, by_reading in errors.items():
        index, first = {
            "total": ("total", 1),
            "phase from 1": ("phase", 1),
            "phase from 2": ("phase", 2),
        }[steps]
        for reading, iterations in algorithm.readings().items():
            result = planners.solve(
                model,
                gamma=0.95,
                method="adaptive_aggregation",
                epsilon=3.0,
                num_iterations=iterations,
                seed=5,
                step_index=index,
                first_step=first,
            )
            assert by_reading[reading] == np.abs(result.values - V).max()
    assert len({error for by_reading in errors.values() for error in by_reading.values()}) > 3


def test_efficiency_follows_value_iteration() -> None:
    runs = runs_of("efficiency")
    for task, each in zip(plan(EXPERIMENTS["efficiency"], "small", 0), runs, strict=True):
        rng, _ = seeds(task.seed_sequence)
        model, _ = mazes.draw_scaled(mazes.of(each.configuration), 0.95, rng)
        tables = dense(model)
        exact = truth(tables, 0.95)[0].astype(float)
        V = np.zeros(model.num_states)
        for error in each.values["errors"][efficiency.SWEEPS]:
            V = backup(tables, V, 0.95)
            assert error == pytest.approx(np.abs(V - exact).max(), abs=1e-7)
        # The middle of MacQueen's bounds is another V than the iterate where costs differ.
        if each.configuration["kind"] == "terrain":
            centred = each.values["errors"][efficiency.CENTRED]
            assert centred[4] != pytest.approx(each.values["errors"][efficiency.SWEEPS][4], rel=0.1)
        # Two global iterations come first.
        ours = each.values["errors"][efficiency.AGGREGATION]
        assert ours[:2] == each.values["errors"][efficiency.SWEEPS][:2]
        for clock in (each.seconds[method] for method in efficiency.METHODS):
            assert len(clock) == 40
            assert clock == sorted(clock)


def test_noise_makes_the_error_larger() -> None:
    for each in runs_of("robustness"):
        sigmas, errors = each.configuration["sigmas"], each.values["errors"]
        assert len(errors) == len(sigmas)
        if sigmas[0] == 0.0:
            assert errors[0]["total"] != errors[1]["total"]


def test_bounds_hold() -> None:
    runs = runs_of("bounds")
    summary = bounds.summarize(TINY["bounds"], runs)
    for row in summary.tables[0].rows:
        assert row[6] is not False
    claims = {row[0] for row in summary.tables[0].rows}
    assert len(claims) == 6
    for each in runs:
        if each.configuration["claim"] == bounds.PROPOSITION_1:
            assert each.values["spread"] <= TINY["bounds"].epsilon * (1 + 1e-12)
            assert min(each.values["losses"]) >= -1e-9


def test_losses_of_greedy_policies() -> None:
    task = next(
        task
        for task in plan(EXPERIMENTS["bounds"], "small", 0)
        if task.configuration["claim"] == bounds.PROPOSITION_1
    )
    found = perform(task).values
    rng, method_seed = seeds(task.seed_sequence)
    model = mazes.draw(mazes.of(task.configuration), rng)
    model = model.scaled(1 / np.abs(model.move_costs[model.available]).max())
    tables = dense(model)
    V = truth(tables, bounds.GAMMA)[0].astype(float)
    labels = np.floor((V - V.min()) / task.configuration["epsilon"]).astype(int)
    result = planners.solve(
        model,
        gamma=bounds.GAMMA,
        method="fixed_aggregation",
        labels=labels,
        num_iterations=400,
        seed=method_seed,
    )
    assert found["errors"][-1] == pytest.approx(np.abs(result.values - V).max(), abs=1e-8)
    loss = greedy_loss(tables, result.values, bounds.GAMMA, V)
    assert found["losses"][-1] == pytest.approx(loss, abs=1e-8)


def test_cartpole_without_global_iterations_learns_nothing() -> None:
    runs = runs_of("cartpole")
    for each in runs:
        rewards = each.values["rewards"]
        assert all(1 <= reward <= cartpole.MAX_STEPS for reward in rewards)
        if each.configuration["method"] == "aggregation, no global":
            assert len(set(rewards)) == 1


def test_cartpole_is_the_one_of_the_published_run() -> None:
    """The first row of docs/reproduction.md: all of 20 runs balanced after 10,130 updates."""
    configuration = {"bins": [5, 5, 9, 9], "method": cartpole.SWEEPS, "num_sweeps": 5}
    found = cartpole.run({**configuration, "episodes": 20}, np.random.SeedSequence(0)).values
    assert (found["num_cells"], found["balanced_at"]) == (2025, 10_130)
    assert found["rewards"][-1] == 200
