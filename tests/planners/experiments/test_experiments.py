"""The paper's experiments at a tiny size: what they measure, and what the report makes of it."""

from __future__ import annotations

import csv
import functools
import html.parser
import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import planners
from planners import cli
from planners.experiments import (
    EXPERIMENTS,
    bounds,
    cartpole,
    efficiency,
    epsilon,
    mazes,
    robustness,
    scaling,
)
from planners.experiments.algorithm3 import Algorithm3, seeds
from planners.experiments.mazes import Maze
from planners.experiments.reporting import report
from planners.experiments.reporting.report import Section, merged, shown, write_report
from planners.experiments.reporting.statistics import Estimate, estimate
from planners.experiments.reproduce import chosen, reproduce
from planners.experiments.running.tasks import Task, perform, plan
from planners.experiments.study import Experiment, Picture, Run
from tests.planners.experiments import fakes
from tests.planners.experiments.fakes import Notes, inline
from tests.planners.reference import backup, dense, greedy_loss, truth

TINY: dict[str, Any] = {
    "epsilon": epsilon.Args(shape=(6, 5), repetitions=2, iterations=30),
    "efficiency": efficiency.Args(shape=(6, 6), num_sweeps=40, repetitions=2),
    "scaling_2d": scaling.Args(
        shapes=((5, 4), (6, 6)), repetitions=2, most_states=25, iterations=30
    ),
    "scaling_nd": scaling.Args(shapes=((3, 3, 3),), repetitions=2, most_states=100, iterations=30),
    "robustness": robustness.Args(
        shape=(6, 6), ps=(0.9,), sigmas=(0.0, 0.1), repetitions=2, iterations=30
    ),
    "cartpole": cartpole.Args(bins=((3, 3, 3, 3),), num_sweeps=2, episodes=3, repetitions=2),
    "bounds": bounds.Args(shape=(5, 5), repetitions=2, iterations=400, betas=(2.0,)),
}


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every experiment tiny, at both scales, and the files of figures blank."""
    monkeypatch.setattr(report, "_write_picture", blank)
    for name, experiment in list(EXPERIMENTS.items()):
        args = TINY[name]
        monkeypatch.setitem(
            EXPERIMENTS, name, replace(experiment, scales={"small": args, "paper": args})
        )


draw_picture = report._write_picture


def blank(folder: Path, picture: Picture) -> None:
    (folder / f"{picture.name}.png").write_bytes(b"blank")


def test_all_are_here() -> None:
    assert sorted(TINY) == sorted(EXPERIMENTS)


@functools.cache
def runs_of(name: str) -> list[Run]:
    return made(EXPERIMENTS[name])


def made(experiment: Experiment) -> list[Run]:
    tasks = plan(experiment, "small", 0)
    assert len({task.name for task in tasks}) == len(tasks)
    outcomes = [perform(task) for task in tasks]
    return [
        Run(task.identity["configuration"], task.repetition, o.values, o.seconds)
        for task, o in zip(tasks, outcomes, strict=True)
    ]


def make(names: list[str], folder: Path, **options: Any) -> Any:
    return reproduce(
        names,
        scale="small",
        seed=options.pop("seed", 0),
        out=folder,
        make_executor=inline,
        watcher=Notes(),
        workers="this process",
        **options,
    )


def tables(folder: Path) -> dict[str, bytes]:
    """The CSVs that must not depend on who ran the tasks, or when."""
    return {
        path.name: path.read_bytes()
        for path in folder.glob("*.csv")
        if not path.name.endswith("seconds.csv")
    }


# ---------------------------------------------------------------------------------------------
# What is measured.


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


# ---------------------------------------------------------------------------------------------
# Statistics and tables.


def test_intervals() -> None:
    # t of 2 degrees of freedom at .975 is 4.302653, the standard deviation is 1.
    found = estimate([3.0, 1.0, 2.0])
    assert found.mean == 2.0
    assert found.half_width == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert estimate([1.5]) == Estimate(1.5, None, 1)
    assert found.overlaps(Estimate(4.6, 0.2, 20))
    assert not found.overlaps(Estimate(4.9, 0.2, 20))
    assert found.overlaps(Estimate(4.6, None, 1)) is None


def test_cells_as_text() -> None:
    assert [shown(x) for x in (None, True, False, 1.23456, 12345, 12345.6, "a")] == [
        "",
        "yes",
        "no",
        "1.23",
        "12,345",
        "12,346",
        "a",
    ]


# ---------------------------------------------------------------------------------------------
# From the tasks to the report.


class Checker(html.parser.HTMLParser):
    """Keeps tags in balance, and what they refer to."""

    VOID = ("meta", "img", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        self.sources += [v or "" for name, v in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_same_tables_however_the_tasks_are_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, other = tmp_path / "first", tmp_path / "second", tmp_path / "other"
    with monkeypatch.context() as patch:
        patch.setattr(report, "_write_picture", draw_picture)
        one = make([], first)
    assert one.completed.failures == {}
    # One alone, with others after it, and then only from what is there.
    make(["scaling_2d"], second)
    some = make(["robustness", "scaling_2d"], second)
    assert sum(outcome is not None for outcome in some.completed.outcomes) == len(some.tasks)
    make(["scaling_2d"], second, run=False)
    expected = tables(first)
    assert tables(second).items() <= expected.items()
    assert len(tables(second)) == 5
    make(["scaling_2d"], other, seed=1)
    assert tables(other)["scaling_2d.csv"] != expected["scaling_2d.csv"]

    page = (first / "report.html").read_text()
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    # Nothing from elsewhere.
    assert all(s.startswith(("data:", "#")) for s in checker.sources)
    assert "http" not in re.sub(r"base64,[^\"]*", "", page)
    markdown = (first / "report.md").read_text()
    for name, experiment in EXPERIMENTS.items():
        assert experiment.title in page
        assert experiment.title in markdown
        with Image.open(first / f"{name}.png") as picture:
            assert picture.width > 500
        assert (first / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    for path in first.glob("*.csv"):
        rows = list(csv.reader(path.read_text().splitlines()))
        assert len(rows) > 1
        assert {len(row) for row in rows} == {len(rows[0])}


def test_the_published_numbers_stand_beside(tmp_path: Path) -> None:
    args = scaling.Args(shapes=((100, 100),), repetitions=1, most_states=0)
    runs = [
        Run(
            configuration,
            repetition,
            {"errors": {"phase from 1": {"last iteration": 4.0 + repetition}}},
            {},
        )
        for configuration in scaling.configurations(args)
        for repetition in (0, 1)
    ]
    summary = EXPERIMENTS["scaling_2d"].summarize(args, runs)
    columns, rows = merged(summary.tables[0])
    table = {row[0]: dict(zip(columns, row, strict=True)) for row in rows}
    # t of one degree of freedom is 12.7062, the standard error 1/2.
    assert table["terrain"]["published"] == "4.41 ± 0.14"
    assert table["terrain"]["ours"] == "4.5 ± 6.4 ✓"
    assert table["standard"]["published"] == "1.43 ± 0.16"
    assert table["standard"]["total"] == ""


@pytest.mark.parametrize("name", list(TINY))
def test_reports_of_what_is_not_there_yet(name: str, tmp_path: Path) -> None:
    experiment, runs = EXPERIMENTS[name], runs_of(name)
    for some in ([], runs[-1:]):
        summary = experiment.summarize(TINY[name], some)
        for picture in summary.pictures:
            # Nothing to draw must not be a warning, here an error.
            picture.figure.canvas.draw()
        write_report(tmp_path, [Section(name, name, summary, some, len(runs))], {})
        page = (tmp_path / "report.html").read_text()
        assert f"{len(runs) - len(some)} of {len(runs)} runs are missing" in page


def test_unknown_experiments() -> None:
    with pytest.raises(ValueError, match="there is no 'scaling2d'; did you mean 'scaling_2d'"):
        chosen(["epsilon", "scaling2d"])
    assert [e.name for e in chosen(["bounds", "epsilon"])] == ["epsilon", "bounds"]


# ---------------------------------------------------------------------------------------------
# The command.


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["aggmaze", "reproduce", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr("planners.experiments.running.runner.process_pool", lambda workers: inline)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(monkeypatch, "scaling_2d", "--out", tmp_path / "out", "--workers", 1) == 0
    printed = capsys.readouterr().out
    assert str(tmp_path / "out" / "report.html") in printed
    # The numbers, as in the tables of the report, and nothing of its details.
    assert EXPERIMENTS["scaling_2d"].title in printed
    lines = [line.split() for line in printed.splitlines()]
    markdown = (tmp_path / "out" / "report.md").read_text()
    rows = [row.strip("| ").split(" | ") for row in re.findall(r"^\| .* \|$", markdown, re.M)]
    of_mazes = [row for row in rows if row[0] in ("terrain", "standard")]
    assert len(of_mazes) == 4
    for row in of_mazes:
        assert " ".join(row).split() in lines
    assert sum(line[:1] in (["terrain"], ["standard"]) for line in lines) == 4
    assert run(monkeypatch, "--list") == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in EXPERIMENTS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["effciency"], "did you mean 'efficiency'"),
        (["--scale", "huge"], "scale must be one of small, paper"),
        (["--workers", "0"], "--workers must be at least 1"),
        (["--seed", "-1"], "seed must be at least 0"),
        (["--scheduler", "tcp://localhost:1", "--dask-local"], "--scheduler has workers of its"),
    ],
)
def test_bad_use(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: list[str],
    message: str,
) -> None:
    assert run(monkeypatch, "--out", tmp_path / "out", *arguments) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    assert run(monkeypatch, "--out", tmp_path / "file") == 2
    assert "is not a folder to write to" in capsys.readouterr().err
    assert run(monkeypatch, "--out", tmp_path / "file" / "below") == 2


def test_a_task_that_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(EXPERIMENTS, "fake", fakes.experiment(fakes.fail))
    assert run(monkeypatch, "fake", "--out", tmp_path) == 1
    captured = capsys.readouterr()
    assert "4 of 8 tasks failed" in captured.err
    assert "RuntimeError: no luck" in captured.err
    assert "4 of 8 runs are missing" in (tmp_path / "report.md").read_text()


def test_interrupted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupt(task: Task) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setitem(EXPERIMENTS, "fake", fakes.experiment())
    monkeypatch.setattr("planners.experiments.running.runner.perform", interrupt)
    assert run(monkeypatch, "fake", "--out", tmp_path) == 130
    assert "interrupted" in capsys.readouterr().err
