"""The command ``aggmaze``: solve environments and model files, convert and list them."""

from __future__ import annotations

import _thread
import functools
import inspect
import math
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperCommand, TyperGroup

import aggmaze
from aggmaze.checks import check_choice, check_integer
from aggmaze.env_settings import make_env, parse_settings
from aggmaze.formats import registry
from aggmaze.layouts.text import SUFFIXES
from aggmaze.models.model import Model
from aggmaze.play import play
from planners.adapters import as_model
from planners.advice import adviser
from planners.arrival import Arrival, arrival, describe_arrival
from planners.budget import Clock
from planners.kernels.threads import num_cores
from planners.objective import (
    INFINITE,
    AverageCost,
    Discounted,
    FiniteHorizon,
    Objective,
    TotalCost,
)
from planners.plotting import check_matplotlib, figure_format, plot_plan, save_figure
from planners.policies import greedy_path
from planners.record import Progress
from planners.result import KEYBOARD, SolveResult, Status
from planners.rollout import Rollouts, episode_limit, rollout
from planners.solve import AUTO, METHODS, check_limits, check_method, solve
from planners.waiting import Waiting


def _without_metavars_of_flags(params: list[Any]) -> list[Any]:
    """Leave out of the help the type of what takes no value."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


class _Group(TyperGroup):
    """The command itself."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_metavars_of_flags(super().get_params(ctx))


class _Command(TyperCommand):
    """One of its commands: an option that takes one value is not given twice."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_metavars_of_flags(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given: list[Any] = self.make_parser(ctx).parse_args(args=list(args))[2]
        for param in given:
            if not getattr(param, "multiple", False) and given.count(param) > 1:
                raise typer.BadParameter(
                    f"given {given.count(param)} times, and it takes one value",
                    ctx=ctx,
                    param=param,
                )
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Group,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Plan in Markov decision processes with exact models.",
)
out = Console()
err = Console(stderr=True)

# Width of the names of what is printed of a result, so that its parts stand below each other.
_NAMES_WIDTH = 11

#: What a wrong command line raises; typer exports only this one of its kinds.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

# What is wrong with the arguments, the files or the machine, rather than with the program.
_USER_ERRORS = (
    ValueError,
    TypeError,
    OSError,
    ModuleNotFoundError,
    MemoryError,
    gym.error.Error,
)


_SUFFIXES = registry.suffixes()
_WRITTEN = registry.suffixes(written=True)

Command = Callable[..., None]

# What several commands take.
Gamma = Annotated[
    float | None, typer.Option(help="Discount in [0, 1); 1 asks for total costs until the end.")
]
ObjectiveName = Annotated[
    str | None,
    typer.Option(
        "--objective", metavar="NAME", help="discounted (with --gamma), total, horizon or average."
    ),
]
Horizon = Annotated[
    int | None,
    typer.Option("--horizon", metavar="STEPS", help="Costs of so many steps, by --gamma or 1."),
]
Average = Annotated[
    bool, typer.Option("--average", help="The mean cost of a step in the long run.")
]
DeadEnds = Annotated[
    str | None,
    typer.Option(
        "--dead-ends",
        metavar="COST",
        help="With total costs: what it costs to end where no way leads out; infinite by default.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Argument of the environment: --set shape=50,50; or of the reader of a model file: "
        "--set goal=done.",
    ),
]


def reported(command: Command) -> Command:
    """Turn what goes wrong in a command into one line on stderr and an exit code."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except _USER_ERRORS as error:
            _complain(f"error: {error}")
            raise typer.Exit(2) from None

    return run


def _complain(text: str) -> None:
    err.print(text, markup=False, highlight=False, soft_wrap=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        out.print(f"aggmaze {aggmaze.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _aggmaze(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version, and end."
        ),
    ] = False,
) -> None:
    pass


@app.command(
    "solve",
    cls=_Command,
    epilog="Ends with 0 if the accuracy or budget asked for is met, 1 if it stopped short of the "
    "accuracy, 2 on bad use, 130 on Ctrl-C (with the best so far).",
)
@reported
def solve_command(
    env_id: Annotated[
        str,
        typer.Argument(
            metavar="ENV",
            help="A registered id that exposes a model, such as TerrainMaze-v0 or FrozenLake-v1, "
            f"a model file ({_SUFFIXES}), or a map for GridWorld-v0 ({', '.join(SUFFIXES)}).",
        ),
    ],
    gamma: Gamma = None,
    objective_name: ObjectiveName = None,
    horizon: Horizon = None,
    average: Average = False,
    dead_ends: DeadEnds = None,
    settings: Settings = None,
    method: Annotated[str, typer.Option(help=f"One of {AUTO}, {', '.join(METHODS)}.")] = AUTO,
    tol: Annotated[float | None, typer.Option(help="Accuracy relative to max|V|.")] = None,
    atol: Annotated[float | None, typer.Option(help="Accuracy in the unit of V.")] = None,
    num_iterations: Annotated[int | None, typer.Option(help="Most iterations.")] = None,
    num_updates: Annotated[int | None, typer.Option(help="Most backups.")] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Most seconds, also for where the policy goes.")
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(help="Width of a bin of values, or shrink.")
    ] = None,
    num_global: Annotated[int | None, typer.Option(help="Iterations of a global phase.")] = None,
    num_aggregated: Annotated[
        int | None, typer.Option(help="Iterations of an aggregated phase.")
    ] = None,
    step_size: Annotated[str | None, typer.Option(help="Such as t^-0.5, or a constant.")] = None,
    step_index: Annotated[str | None, typer.Option(help="total or phase.")] = None,
    first_step: Annotated[int | None, typer.Option(help="Where the step index begins.")] = None,
    method_options: Annotated[
        list[str] | None,
        typer.Option(
            "--option", metavar="KEY=VALUE", help="Option of the method: --option inner_sweeps=10."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the method and the episodes.")] = 0,
    num_threads: Annotated[
        int | None, typer.Option("--threads", help="By default one for each core.")
    ] = None,
    episodes: Annotated[int, typer.Option(help="Episodes to roll out; 0 for none.")] = 100,
    save: Annotated[Path | None, typer.Option(metavar="FILE.npz", help="Write the result.")] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="FILE.npz", help="Write what scripts/check_certificate.py can check."),
    ] = None,
    image: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png",
            help="Draw values, policy and greedy path (mazes only; .png, .pdf, .svg).",
        ),
    ] = None,
) -> None:
    """Solve an environment or a model file, roll the policy out, and say how good the result is."""
    check_integer("--episodes", episodes)
    check_integer("--seed", seed)
    if num_threads is not None:
        check_integer("--threads", num_threads, least=1)
    if image is not None and is_model_file(env_id):
        raise ValueError(f"--image draws mazes, and a model file holds none: {env_id!r}")
    for name, path, what in (
        ("--save", save, "a result"),
        ("--certificate", certificate, "a certificate"),
    ):
        if path is not None and _is_same_file(path, env_id):
            raise ValueError(f"{name} would overwrite the model file {env_id!r} with {what}")
    if save is not None and save == certificate:
        raise ValueError(f"--save and --certificate are one file, {str(save)!r}")
    options = method_settings(
        method_options or [],
        epsilon=_number_or_text(epsilon),
        num_global=num_global,
        num_aggregated=num_aggregated,
        step_size=_number_or_text(step_size),
        step_index=step_index,
        first_step=first_step,
    )
    check_outputs(save, image, certificate)
    # Before the environment, which may take long to make.
    asked = asked_objective(gamma, objective_name, horizon, average, dead_ends)
    check_limits(tol, atol, num_iterations, num_updates, time_limit)
    if isinstance(asked, Discounted):
        check_method(method, options)
    env = open_env(env_id, settings or [])
    if image is not None and not isinstance(_layout(env), aggmaze.Layout):
        raise ValueError("--image draws mazes: this environment has no layout to draw")
    model = as_model(env)
    clock = Clock()
    with _ProgressLine(err, "solving") as line:
        result = solve(
            model,
            objective=asked,
            method=method,
            tol=tol,
            atol=atol,
            num_iterations=num_iterations,
            num_updates=num_updates,
            time_limit=time_limit,
            seed=seed,
            num_threads=num_threads,
            callback=line.show,
            **options,
        )
    if save is not None:
        result.save(save)
    _print_rows(_result_rows(env_id, model, result))
    if save is not None:
        out.print(f"result in {save}", highlight=False, soft_wrap=True)
    if certificate is not None and result.success:
        result.certificate(certificate)
        out.print(f"certificate in {certificate}", highlight=False, soft_wrap=True)
    if image is not None:
        with Waiting(err, "drawing"):
            save_figure(_drawn(env_id, _layout(env), model, result), image)
        out.print(f"values, policy and greedy path in {image}", highlight=False, soft_wrap=True)
    if result.status == Status.INTERRUPTED:
        raise KeyboardInterrupt

    def left() -> float | None:
        return None if time_limit is None else max(time_limit - clock.seconds(), 1e-9)

    if time_limit is not None and clock.seconds() >= time_limit:
        _print_rows([("policy", f"not followed: the time limit of {time_limit:g} s is used up")])
    else:
        limit = episode_limit(env)
        # Where a policy goes that changes with the steps is said by the steps alone.
        if not isinstance(asked, FiniteHorizon):
            with Waiting(err, "looking where the policy goes") as waiting:
                found = arrival(
                    model,
                    result,
                    time_limit=left(),
                    callback=lambda p: waiting.tell(
                        f"looking where the policy goes: {p.num_products:,} products"
                    ),
                )
            _print_rows([("policy", describe_arrival(found, result.gamma))])
            limit = _episode_limit(env, found)
        else:
            limit = asked.steps
        if episodes > 0:
            with Waiting(err, "rolling out") as waiting:
                rolled = rollout(
                    env.unwrapped,
                    result,
                    episodes=episodes,
                    seed=seed,
                    max_steps=limit,
                    time_limit=left(),
                    callback=lambda p: waiting.count(p.episodes, p.num_episodes, "episodes"),
                )
            _print_rows(_rollout_rows(rolled, limit, asked))
    if not result.success:
        raise typer.Exit(1)


@app.command(
    "watch",
    cls=_Command,
    epilog="Ends with 0, also where the window was closed before the end, 1 if it stopped short of "
    "the accuracy, 2 on bad use, 130 on Ctrl-C (with the best so far).",
)
@reported
def watch_command(
    env_id: Annotated[
        str,
        typer.Argument(
            metavar="ENV",
            help="As for solve: a registered id, a model file, or a map for GridWorld-v0.",
        ),
    ],
    gamma: Gamma = None,
    objective_name: ObjectiveName = None,
    horizon: Horizon = None,
    average: Average = False,
    dead_ends: DeadEnds = None,
    settings: Settings = None,
    method: Annotated[
        str | None,
        typer.Option(
            help=f"One of {AUTO}, {', '.join(METHODS)}; by default adaptive_aggregation, in 16 bins."
        ),
    ] = None,
    tol: Annotated[float | None, typer.Option(help="Accuracy relative to max|V|.")] = None,
    atol: Annotated[float | None, typer.Option(help="Accuracy in the unit of V.")] = None,
    num_iterations: Annotated[int | None, typer.Option(help="Most iterations.")] = None,
    num_updates: Annotated[int | None, typer.Option(help="Most backups.")] = None,
    epsilon: Annotated[
        str | None, typer.Option(help="Width of a bin of values, or shrink.")
    ] = None,
    method_options: Annotated[
        list[str] | None,
        typer.Option(
            "--option", metavar="KEY=VALUE", help="Option of the method: --option num_global=5."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the method.")] = 0,
    num_threads: Annotated[
        int | None, typer.Option("--threads", help="By default one for each core.")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write a .gif, .mp4 or .html page; no window, no screen needed."
        ),
    ] = None,
    speed: Annotated[
        float | None,
        typer.Option(help="Of the window: iterations a second, 10 by default; inf for all it has."),
    ] = None,
    theme: Annotated[str, typer.Option(help="light or dark.")] = "light",
    size: Annotated[
        str | None, typer.Option(metavar="W,H", help="Of recorded pictures, at most: 720,480.")
    ] = None,
    frames: Annotated[int | None, typer.Option(help="Of a recording, at most.")] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE.npz", help="Write the result.")] = None,
) -> None:
    """Watch a solve: values, mega-states that split and merge, the greedy path, the bound.

    Closing the window ends the solve, and the result so far is printed with its bound.
    """
    # Here, since what draws takes long to import.
    from planners.watching import check_recording, watch

    check_integer("--seed", seed)
    if num_threads is not None:
        check_integer("--threads", num_threads, least=1)
    check_outputs(save, None)
    for name, path, what in (("--save", save, "a result"), ("--record", record, "a recording")):
        if path is not None and _is_same_file(path, env_id):
            raise ValueError(f"{name} would overwrite the model file {env_id!r} with {what}")
    if record is not None:
        check_recording(record)
        _check_writable(record)
    options = method_settings(method_options or [], epsilon=_number_or_text(epsilon))
    asked = asked_objective(gamma, objective_name, horizon, average, dead_ends)
    check_limits(tol, atol, num_iterations, num_updates, None)
    if isinstance(asked, Discounted):
        check_method(method or "adaptive_aggregation", options)
    env = open_env(env_id, settings or [])
    with _ProgressLine(err, "solving") if record is not None else nullcontext() as line:
        result = watch(
            env,
            objective=asked,
            method=method,
            record=record,
            speed=speed,
            theme=theme,
            title=env_id if is_model_file(env_id) else None,
            size=_picture_size(size),
            frames=frames,
            tol=tol,
            atol=atol,
            num_iterations=num_iterations,
            num_updates=num_updates,
            seed=seed,
            num_threads=num_threads,
            callback=None if line is None else line.show,
            telling=None if line is None else line.tell,
            **options,
        )
    if save is not None:
        result.save(save)
    _print_rows(_result_rows(env_id, as_model(env), result))
    if save is not None:
        out.print(f"result in {save}", highlight=False, soft_wrap=True)
    if record is not None:
        out.print(f"recording in {record}", highlight=False, soft_wrap=True)
    if result.message == KEYBOARD:
        raise KeyboardInterrupt
    if not result.success and result.status != Status.INTERRUPTED:
        raise typer.Exit(1)


def _picture_size(text: str | None) -> tuple[int, int] | None:
    """Return width and height of what was written as ``W,H``."""
    if text is None:
        return None
    width, comma, height = text.partition(",")
    if not (comma and width.strip().isdecimal() and height.strip().isdecimal()):
        raise ValueError(f"--size must be a width and a height such as 720,480, got {text!r}")
    return int(width), int(height)


@app.command("play", cls=_Command, epilog="Ends with 0, 2 on bad use, 130 on Ctrl-C.")
@reported
def play_command(
    env_id: Annotated[
        str, typer.Argument(metavar="ENV", help=f"One of {', '.join(aggmaze.ENV_IDS)}.")
    ],
    gamma: Gamma = None,
    objective_name: ObjectiveName = None,
    settings: Settings = None,
    seed: Annotated[int | None, typer.Option(help="Seeds the episodes.")] = None,
) -> None:
    """Solve an environment, then walk through it by the keyboard; V shows the optimum."""
    if seed is not None:
        check_integer("--seed", seed)
    asked = asked_objective(gamma, objective_name)
    env = make_env(env_id, settings or [], render_mode="human")
    play(env, seed=seed, adviser=adviser(objective=asked))


@app.command(
    "convert",
    cls=_Command,
    epilog="Ends with 0, 2 on bad use, 130 on Ctrl-C (with TARGET as it was before).",
)
@reported
def convert_command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help=f"A registered id that exposes a model, or a model file ({_SUFFIXES}).",
        ),
    ],
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help=f"The file to write ({_WRITTEN}).")
    ],
    settings: Settings = None,
    source_format: Annotated[
        str | None,
        typer.Option("--from", metavar="FORMAT", help="Of SOURCE, if its suffix does not say it."),
    ] = None,
    target_format: Annotated[
        str | None,
        typer.Option("--to", metavar="FORMAT", help="Of TARGET, if its suffix does not say it."),
    ] = None,
) -> None:
    """Write the model of an environment, or of a model file, to a file.

    The suffix of TARGET says how: .npz exactly as it is; what another format does not hold is said.
    `aggmaze list` lists the formats.
    """
    written = check_target(source, target, target_format)
    if source_format is not None:
        if source in gym.registry and not Path(source).exists():
            raise ValueError(f"--from is of model files, and {source!r} is an environment")
        settings = [*(settings or []), f"format={source_format}"]
    model = as_model(open_env(source, settings or [], is_file=source_format is not None))
    lost = written.losses(model)
    with Waiting(err, "writing"):
        written.write(model, target)
    out.print(
        f"{source}: {model.num_listed_states:,} states with "
        f"{model.num_actions} actions in {target}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    for words in lost:
        out.print(
            f"not kept by format {written.name}: {words}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


@app.command(
    "reproduce",
    cls=_Command,
    epilog="Ends with 0, 1 if a task failed, 2 on bad use, 130 on Ctrl-C. The same command goes on "
    "where an earlier one was stopped, however it was.",
)
@reported
def reproduce_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Experiments; all by default. See --list."),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="small, in minutes, or paper: full size, 20 repetitions.")
    ] = "small",
    workers: Annotated[
        int | None, typer.Option(help="Processes, by default one for each core.")
    ] = None,
    folder: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Results and report; made if missing.")
    ] = Path("reproduction"),
    seed: Annotated[int, typer.Option(help="Of mazes and methods.")] = 0,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on the workers of a Dask cluster.")
    ] = None,
    dask_local: Annotated[
        bool, typer.Option("--dask-local", help="Run on a Dask cluster of this machine.")
    ] = False,
    run: Annotated[
        bool, typer.Option(help="With --no-run, only write the report of what is done so far.")
    ] = True,
    show_list: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
) -> None:
    """Repeat the paper's experiments, and print our numbers beside the published ones."""
    # Here, since no other command needs them.
    from planners.experiments import EXPERIMENTS
    from planners.experiments.reporting.report import opening_lines, section_lines
    from planners.experiments.reproduce import reproduce
    from planners.experiments.running.progress import ProgressBar
    from planners.experiments.running.runner import dask_cluster, process_pool

    if show_list:
        for experiment in EXPERIMENTS.values():
            out.print(f"{experiment.name:12} {experiment.title}", highlight=False)
        return
    if scheduler is not None and (dask_local or workers is not None):
        raise ValueError("--scheduler has workers of its own: give no --workers or --dask-local")
    if workers is not None:
        check_integer("--workers", workers, least=1)
    check_integer("--seed", seed)
    num_workers = workers or num_cores()
    if scheduler is not None or dask_local:
        make_executor = dask_cluster(scheduler, num_workers)
        words = f"Dask at {scheduler}" if scheduler else f"{num_workers} of a local Dask cluster"
    else:
        make_executor, words = process_pool(num_workers), f"{num_workers} processes"
    with ProgressBar(err) as watcher:
        made = reproduce(
            names or [],
            scale=scale,
            seed=seed,
            out=folder,
            make_executor=make_executor,
            watcher=watcher,
            workers=words,
            run=run,
        )
    lines = opening_lines(made.sections, scale)
    for text in [*lines, *(line for s in made.sections for line in section_lines(s))]:
        out.print(text, markup=False, highlight=False, soft_wrap=True)
    for page in made.pages:
        out.print(f"report in {page}", highlight=False, soft_wrap=True)
    failures = made.completed.failures
    if failures:
        err.print(f"{len(failures)} of {len(made.tasks)} tasks failed", highlight=False)
        raise typer.Exit(1)


@app.command("list", cls=_Command)
@reported
def list_command() -> None:
    """List the environments that expose a model, and the formats of model files."""
    table = Table(box=None, pad_edge=False)
    for column in ("environment", "states", "actions", ""):
        table.add_column(column, justify="right" if column in ("states", "actions") else "left")
    for env_id in solvable_ids():
        env = gym.make(env_id)
        model = as_model(env)
        num_states = model.num_listed_states
        summary = (inspect.getdoc(type(env.unwrapped)) or "").strip().split("\n")[0]
        table.add_row(env_id, f"{num_states:,}", str(model.num_actions), summary)
    out.print(table)
    files = Table(box=None, pad_edge=False)
    for column in ("format", "model files", "", ""):
        files.add_column(column)
    for entry in registry.FORMATS.values():
        done = [word for word, way in (("read", entry.reader), ("written", entry.writer)) if way]
        if done:
            files.add_row(entry.name, " ".join(entry.suffixes), " and ".join(done), entry.holds)
    out.print()
    out.print(files)


def solvable_ids() -> list[str]:
    """Return the ids of this project, then those of Gymnasium's toy-text that have a table P."""
    latest: dict[str, gym.envs.registration.EnvSpec] = {}
    for spec in gym.registry.values():
        known = latest.get(spec.name)
        if str(spec.entry_point).startswith("gymnasium.envs.toy_text") and (
            known is None or (spec.version or 0) > (known.version or 0)
        ):
            latest[spec.name] = spec
    # Blackjack, the one without a P, says so only once it is made.
    toys = [spec.id for spec in latest.values() if hasattr(spec.make().unwrapped, "P")]
    return [*aggmaze.ENV_IDS, *sorted(toys)]


def is_model_file(source: str) -> bool:
    """Return whether a source names a model file rather than an environment."""
    if registry.format_of(source) is not None:
        return True
    if Path(source).suffix in SUFFIXES:  # of maps
        return False
    if Path(source).exists() and source not in gym.registry:
        raise ValueError(f"{source!r} is not a model file: their names end in {_SUFFIXES}")
    return False


def open_env(source: str, settings: list[str], *, is_file: bool = False) -> gym.Env[Any, Any]:
    """Make an environment from its id and settings, or one that walks through a file.

    Parameters
    ----------
    source : str
        A registered id, or the path of a model file, or of a map as ``GridWorld-v0`` takes it.
    settings : list of str
        Arguments of the environment, ``key=value``; of a file those of its reader, and ``format``.
    is_file : bool
        That it is a model file, whatever its name.

    Raises
    ------
    ValueError
        If the file holds no model, or its reader takes no such settings; or as `make_env`.
    FileNotFoundError, IsADirectoryError
        If that is what is there instead of a model file.
    """
    if not is_file and Path(source).suffix in SUFFIXES:
        return make_env("GridWorld-v0", settings, layout=source)
    if not (is_file or is_model_file(source)):
        return make_env(source, settings)
    options = parse_settings(settings, "--set", "goal=done")
    for name in ("goal", "structure"):  # which may read as numbers
        if name in options and options[name] is not None:
            options[name] = str(options[name])
    return aggmaze.TabularEnv(aggmaze.load_model(source, **options))


def asked_objective(
    gamma: float | None,
    name: str | None = None,
    horizon: int | None = None,
    average: bool = False,
    dead_ends: str | None = None,
) -> Objective:
    """Return the objective that options of a command line ask for.

    Parameters
    ----------
    gamma : float or None
    name : str or None
        One of discounted, total, horizon and average.
    horizon : int or None
        Steps.
    average : bool
    dead_ends : str or None
        A number, or "infinite".

    Raises
    ------
    ValueError
        If they ask for nothing, or for two things at once.
    """
    if name is not None:
        check_choice("--objective", name, ("discounted", "total", "horizon", "average"))
    asked = {word for word in (name,) if word is not None}
    asked |= {"horizon"} if horizon is not None else set()
    asked |= {"average"} if average else set()
    if len(asked) > 1:
        raise ValueError(f"the command line asks for two objectives, {' and '.join(sorted(asked))}")
    kind = next(iter(asked), None)
    if kind is None:
        if gamma is None:
            raise ValueError(
                "say what is asked: --gamma, a discount (1 for total costs), --objective total, "
                "--horizon STEPS or --average"
            )
        kind = "total" if gamma == 1 else "discounted"
    if dead_ends is not None and kind != "total":
        raise ValueError(f"--dead-ends belongs to total costs, and {kind} is asked for")
    if kind == "discounted":
        if gamma is None:
            raise ValueError("--objective discounted needs a discount: --gamma")
        return Discounted(gamma)
    if kind == "horizon":
        if horizon is None:
            raise ValueError("--objective horizon needs a number of steps: --horizon STEPS")
        check_integer("--horizon", horizon, least=1)
        return FiniteHorizon(horizon, 1.0 if gamma is None else gamma)
    if gamma is not None and (gamma != 1 or kind == "average"):
        raise ValueError(f"--gamma {gamma:g} is of discounted costs, and {kind} is asked for")
    if kind == "average":
        return AverageCost()
    try:
        return TotalCost(dead_ends=INFINITE if dead_ends in (None, INFINITE) else float(dead_ends))
    except ValueError:
        raise ValueError(
            f"--dead-ends must be a finite number or {INFINITE}, got {dead_ends!r}"
        ) from None


def method_settings(settings: Iterable[str], **options: Any) -> dict[str, Any]:
    """Return the options of a method, those with an option of the command and the others.

    Parameters
    ----------
    settings : iterable of str
        What ``--option`` gives: ``key=value``.
    **options
        The others; None for those that are not given.

    Raises
    ------
    ValueError
        If one is given both ways or twice, or ``--option`` gives what is of no method.
    """
    options = {name: value for name, value in options.items() if value is not None}
    for name, value in parse_settings(settings, "--option", "inner_sweeps=10").items():
        if name in options:
            raise ValueError(
                f"--{name.replace('_', '-')} {options[name]} and --option {name}={value} are two "
                "values for one option"
            )
        if name in inspect.signature(solve).parameters:
            raise ValueError(
                f"--option gives options of the method, and {name!r} is of every run: see "
                "aggmaze solve --help"
            )
        options[name] = value
    return options


def check_outputs(save: Path | None, image: Path | None, certificate: Path | None = None) -> None:
    """Refuse before the work what could not be written after it.

    Parameters
    ----------
    save : Path or None
        Of the result.
    image : Path or None
        Of the picture.
    certificate : Path or None

    Raises
    ------
    ValueError, IsADirectoryError
        If one has another suffix, or cannot be written.
    ModuleNotFoundError
        If there is to be a picture, and no matplotlib.
    """
    for name, path in (("--save", save), ("--certificate", certificate)):
        if path is not None and path.suffix != ".npz":
            raise ValueError(f"{name} must end in .npz, got {str(path)!r}")
    if image is not None:
        figure_format(image)
        check_matplotlib()
    for path in (save, image, certificate):
        if path is not None:
            _check_writable(path)


def check_target(source: str, target: Path, name: str | None = None) -> registry.Format:
    """Refuse before the work a file that could not be written after it, or is the source.

    Parameters
    ----------
    source : str
        An environment or a model file.
    target : Path
        Of the model file to be written.
    name : str, optional
        Of its format.

    Returns
    -------
    Format
        In which it is written.

    Raises
    ------
    ValueError, IsADirectoryError
        If it is the source, has another suffix than model files have, or cannot be written.
    """
    if name is None and (not target.suffix or registry.format_of(target) is None):
        raise ValueError(
            f"TARGET must end in {_WRITTEN}, or --to FORMAT say it, got {str(target)!r}"
        )
    entry = registry.target_format(target, name)
    _check_writable(target)
    if _is_same_file(target, source):
        raise ValueError(f"TARGET is SOURCE: {str(target)!r} would be overwritten by itself")
    return entry


def _is_same_file(target: Path, source: str) -> bool:
    return target.exists() and Path(source).exists() and target.samefile(source)


def _check_writable(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a directory, not a file to write")
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise ValueError(f"there is no folder {str(path.parent)!r} that can be written to")


def _layout(env: gym.Env[Any, Any]) -> Any:
    return getattr(env.unwrapped, "layout", None)


def main() -> None:
    """Run the command and end the process with its exit code."""
    warnings.showwarning = _show_warning
    usual, sys.unraisablehook = sys.unraisablehook, _raise_again
    try:
        code = app(standalone_mode=False)
    except _UsageError as error:
        if words := _usage_in_words(error):  # else it was no command at all, and help is shown
            _complain(words)
        code = 2
    except (KeyboardInterrupt, typer.Abort):  # before or after a command
        code = 130
    finally:
        sys.unraisablehook = usual
    if code == 130:
        _complain("interrupted")
    sys.exit(code or 0)


def _usage_in_words(error: Any) -> str:
    """Return what is wrong with the command line as the errors of the commands are written."""
    text = " ".join(error.format_message().split()).rstrip(".")
    if not text:
        return ""
    return f"error: {text[0].lower()}{text[1:]}; see {error.ctx.command_path} --help"


def _raise_again(unraisable: Any) -> None:
    """Let no Ctrl-C be lost in a callback, such as those of LLVM, that cannot raise it."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        threading.Timer(0.01, _thread.interrupt_main).start()
    else:
        sys.__unraisablehook__(unraisable)


def _show_warning(message: object, *where: object, **more: object) -> None:
    _complain(f"warning: {message}")


class _ProgressLine(Waiting):
    """Tells how a run goes."""

    def show(self, progress: Progress) -> None:
        """Tell an iteration; as a callback, never ask to stop."""
        text = f"iteration {progress.iteration:,}, {progress.num_updates:,} updates"
        if not math.isnan(progress.bound):
            text += f", bound {progress.bound:.3g}"
        self.tell(text)


def _episode_limit(env: gym.Env[Any, Any], found: Arrival) -> int:
    """Return the registered limit, or more where the way is too long for it."""
    limit = episode_limit(env)
    if found.expected_steps is not None and found.expected_steps > limit / 2:
        limit = math.ceil(4 * found.expected_steps)
    return limit


Rows = list[tuple[str, str]]


def _print_rows(rows: Rows) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True, width=_NAMES_WIDTH)
    table.add_column()
    for row in rows:
        table.add_row(*row)
    out.print(table, highlight=False)


def _drawn(env_id: str, layout: aggmaze.Layout, model: Model, result: SolveResult) -> Any:
    """Return the picture of a plan; of one for a number of steps that of the first."""
    title = f"{env_id}, {result.objective}: {result.method}, bound {result.bound:.2g}"
    if isinstance(result.objective, FiniteHorizon):
        return plot_plan(layout, result.values[0], result.policy[0], title=title)
    path = greedy_path(model, result.policy, int(np.argmax(model.initial)))
    average = isinstance(result.objective, AverageCost)
    label = "mean cost of a step" if average else "cost-to-go"
    return plot_plan(layout, result.values, result.policy, path, title=title, label=label)


def _result_rows(env_id: str, model: Model, result: SolveResult) -> Rows:
    finite = result.values[np.isfinite(result.values)]
    size = float(np.abs(finite).max(initial=0.0))
    relative = f" ({result.bound / size:.2g} of max|V| = {size:.6g})" if size > 0 else ""
    num_states = result.values.shape[-1]
    return [
        ("environment", f"{env_id}, {result.objective}"),
        ("method", f"{result.method}: {result.status}, {result.message}"),
        *([("chosen for", result.reason)] if result.reason else []),
        ("states", f"{num_states:,} with {model.num_actions} actions"),
        (
            "updates",
            f"{result.num_updates:,} in {result.num_iterations:,} iterations, "
            f"with {result.num_sweeps:,} sweeps over all states",
        ),
        ("seconds", f"{result.seconds:.3g}"),
        *_answer_rows(model, result),
        ("bound", f"|V - V*| <= {result.bound:.3g}{relative}"),
    ]


def _answer_rows(model: Model, result: SolveResult) -> Rows:
    """Return what an objective is about in a line: of discounted costs nothing is said here."""
    initial = model.initial[: model.num_listed_states]
    if isinstance(result.objective, AverageCost):
        low, high = float(result.lower.min()), float(result.upper.max())
        if high - low <= 2 * result.bound:
            return [("gain", f"{result.gain[0]:.6g} a step, from every state")]
        start = float(initial @ result.gain)
        return [
            ("gain", f"{start:.6g} a step from the start, {low:.6g} to {high:.6g} by state"),
        ]
    if isinstance(result.objective, FiniteHorizon):
        return [("cost", f"{float(initial @ result.values[0]):.6g} from the start")]
    if isinstance(result.objective, TotalCost):
        count = int(np.count_nonzero(result.infinite))
        start = float(initial[initial > 0] @ result.values[initial > 0])
        rows = [("cost", f"{start:.6g} from the start")]
        if count:
            rows.append(
                ("infinite", f"{count:,} states, from which no policy surely reaches an end")
            )
        return rows
    return []


def _rollout_rows(rolled: Rollouts, limit: int, objective: Objective) -> Rows:
    if rolled.promised is None:
        return []
    of = " a step" if isinstance(objective, AverageCost) else ""
    promised = f"{rolled.promised:.6g}{of} promised"
    count = len(rolled.returns)
    if count == 0:
        return [("return", f"{promised}; the time was up within an episode")]
    assert rolled.discounted_returns is not None
    steps = (
        f"{rolled.lengths.mean():.1f} steps, {100 * rolled.successes.mean():.3g} % of the episodes "
        "terminated"
    )
    observed = f"observed in {count:,} episodes of at most {limit:,} steps; {promised}"
    if isinstance(objective, AverageCost):
        return [
            ("return", f"{_mean(rolled.mean_rewards)}{of}, {observed}"),
            ("", f"{_mean(rolled.returns)} in all, {steps}"),
        ]
    if objective.gamma == 1:
        return [("return", f"{_mean(rolled.discounted_returns)} {observed}"), ("", steps)]
    return [
        ("return", f"{_mean(rolled.discounted_returns)} discounted, {observed}"),
        ("", f"{_mean(rolled.returns)} undiscounted, {steps}"),
    ]


def _mean(samples: np.ndarray[Any, np.dtype[np.float64]]) -> str:
    """Format a mean with the half width of its 95 % interval, where samples differ."""
    text = f"{samples.mean():.6g}"
    if len(samples) > 1 and np.ptp(samples) > 0:
        text += f" +- {1.96 * samples.std(ddof=1) / math.sqrt(len(samples)):.2g}"
    return text


def _number_or_text(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text
