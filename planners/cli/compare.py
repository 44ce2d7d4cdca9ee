"""``aggmaze compare``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from aggmaze.env_settings import parse_settings
from aggmaze.files import atomic_file
from aggmaze.layouts.text import SUFFIXES
from aggmaze.progress import stage
from planners.cli.app import complain, err, out, reported
from planners.cli.opening import model_of, opened
from planners.cli.options import (
    Atol,
    Average,
    DeadEnds,
    Gamma,
    Horizon,
    NumIterations,
    NumUpdates,
    ObjectiveName,
    Settings,
    Threads,
    Tol,
    asked_objective,
    check_seed_and_threads,
)
from planners.cli.outputs import check_not_source, check_picture, check_writable
from planners.cli.progress import Goal, ProgressLine
from planners.cli.sources import MODEL_SUFFIXES
from planners.comparison import Comparison, compare, planned_runs
from planners.objective import Objective
from planners.solve import METHODS, check_limits
from planners.waiting import Waiting

#: What help ends with.
EPILOG = (
    "Ends with 0 if each run met the accuracy or budget asked for, 1 if one stopped short or does "
    "not run on this model, 2 on bad use, 130 on Ctrl-C or SIGTERM (with what is finished)."
)


@reported
def compare_command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="ENV",
            help="A registered id that exposes a model, "
            f"a model file ({MODEL_SUFFIXES}), or a map for GridWorld-v0 ({', '.join(SUFFIXES)}).",
        ),
    ],
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C", help=f"Of auto, {', '.join(METHODS)}; by default all that suit."
        ),
    ] = None,
    gamma: Gamma = None,
    gammas: Annotated[
        str | None,
        typer.Option(metavar="X,Y", help="Several discounts, each with all methods."),
    ] = None,
    objective_name: ObjectiveName = None,
    horizon: Horizon = None,
    average: Average = False,
    dead_ends: DeadEnds = None,
    settings: Settings = None,
    tol: Tol = None,
    atol: Atol = None,
    num_iterations: NumIterations = None,
    num_updates: NumUpdates = None,
    time_limit: Annotated[float | None, typer.Option(help="Most seconds of a run.")] = None,
    method_options: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="METHOD.KEY=VALUE",
            help="Option of a method: --option adaptive_aggregation.epsilon=0.1.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the methods.")] = 0,
    num_threads: Threads = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png", help="Draw how the runs came near the optimum (.png, .pdf, .svg)."
        ),
    ] = None,
    against: Annotated[
        str, typer.Option(help="Of the picture: seconds, updates, sweeps or iterations.")
    ] = "seconds",
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE.json", help="Write the numbers.")
    ] = None,
) -> None:
    """Solve a model by several methods in turn: what each took, and how far off it is."""
    check_seed_and_threads(seed, num_threads)
    check_limits(tol, atol, num_iterations, num_updates, time_limit)
    asked = _questions(gamma, gammas, objective_name, horizon, average, dead_ends)
    options = _options(method_options or [])
    if plot is not None:
        check_picture(plot)
    for name, path, what in (("--plot", plot, "a picture"), ("--json", json_file, "numbers")):
        if path is not None:
            check_writable(path)
            check_not_source(source, name, path, what)
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    # Before the environment, which may take long to make.
    planned_runs(names, **asked, options=options)
    model = model_of(opened(source, settings or []))
    limits: dict[str, Any] = {
        "tol": tol,
        "atol": atol,
        "num_iterations": num_iterations,
        "num_updates": num_updates,
        "time_limit": time_limit,
    }
    num_runs = 0
    found: Comparison | None = None

    def begin(method: str, objective: Objective) -> None:
        nonlocal num_runs
        num_runs += 1
        goal = Goal(objective, method, options.get(method), **limits)
        line.begin(f"run {num_runs}, {method}, {objective}", goal)

    try:
        with ProgressLine(err, "solving") as line:
            found = compare(
                model,
                names,
                **asked,
                options=options,
                begun=begin,
                callback=line.show,
                seed=seed,
                num_threads=num_threads,
                **limits,
            )
    except KeyboardInterrupt:
        if found is None:
            raise
        # What is finished is not lost for the line that told how it went.
        found = replace(found, interrupted=True)
    out.print(f"environment {source}", markup=False, highlight=False, soft_wrap=True)
    out.print(str(found) or "no run is finished", markup=False, highlight=False, soft_wrap=True)
    if json_file is not None:
        text = json.dumps({"environment": source, **found.to_dict()}, indent=1)
        with atomic_file(json_file) as file:
            file.write(text.encode())
        out.print(f"numbers in {json_file}", highlight=False, soft_wrap=True)
    if plot is not None and not any(run.has_history for run in found.runs):
        complain(f"no picture in {plot}: no run noted anything on its way")
    elif plot is not None:
        with Waiting(err, "drawing"):
            with stage("loading what draws"):
                from planners.plotting import save_figure  # which takes long to import
            picture = found.plot(against=against, title=source)
            with stage(f"writing {plot}"):
                save_figure(picture, plot)
        out.print(f"picture in {plot}", highlight=False, soft_wrap=True)
    if found.interrupted:
        raise KeyboardInterrupt
    if not all(run.result is not None and run.result.success for run in found.runs):
        raise typer.Exit(1)


def _questions(
    gamma: float | None,
    gammas: str | None,
    name: str | None,
    horizon: int | None,
    average: bool,
    dead_ends: str | None,
) -> dict[str, Any]:
    """Return what `compare` is to be asked."""
    if gammas is None:
        return {"objective": asked_objective(gamma, name, horizon, average, dead_ends)}
    others = gamma, name, horizon, dead_ends
    if average or any(other is not None for other in others):
        raise ValueError("--gammas asks for several discounts, another option for one objective")
    try:
        return {"gammas": [float(each) for each in gammas.split(",")]}
    except ValueError:
        raise ValueError(f"--gammas takes numbers, such as 0.9,0.99, got {gammas!r}") from None


def _options(given: list[str]) -> dict[str, dict[str, Any]]:
    """Return options by method and name."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in parse_settings(
        given, "--option", "adaptive_aggregation.epsilon=0.1"
    ).items():
        method, dot, key = name.partition(".")
        if not (dot and method and key):
            raise ValueError(
                f"--option says of which method: --option METHOD.{name}={value}, such as "
                "adaptive_aggregation.epsilon=0.1"
            )
        found.setdefault(method, {})[key] = value
    return found
