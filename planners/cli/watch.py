"""``aggmaze watch``."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from planners.adapters import as_model
from planners.cli.app import err, out, reported
from planners.cli.opening import opened
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
    method_settings,
    number_or_text,
)
from planners.cli.outputs import check_not_source, check_outputs
from planners.cli.progress import ProgressLine
from planners.cli.rows import print_rows, result_rows
from planners.cli.sources import is_model_file
from planners.objective import Discounted
from planners.result import KEYBOARD, TERMINATED, Status
from planners.solve import AUTO, METHODS, check_limits, check_method
from planners.waiting import Waiting

#: What help ends with.
EPILOG = (
    "Ends with 0, also where the window was closed before the end, 1 if it stopped short of the "
    "accuracy, 2 on bad use, 130 on Ctrl-C or SIGTERM (with the best so far)."
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
            help=f"One of {AUTO}, {', '.join(METHODS)}; by default adaptive_aggregation, in 16 "
            "bins or more."
        ),
    ] = None,
    tol: Tol = None,
    atol: Atol = None,
    num_iterations: NumIterations = None,
    num_updates: NumUpdates = None,
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
    num_threads: Threads = None,
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

    check_seed_and_threads(seed, num_threads)
    check_outputs(save, None)
    for name, path, what in (("--save", save, "a result"), ("--record", record, "a recording")):
        check_not_source(env_id, name, path, what)
    if record is not None:
        check_recording(record)
    options = method_settings(method_options or [], epsilon=number_or_text(epsilon))
    asked = asked_objective(gamma, objective_name, horizon, average, dead_ends)
    check_limits(tol, atol, num_iterations, num_updates, None)
    if isinstance(asked, Discounted):
        check_method(method or "adaptive_aggregation", options)
    env = opened(env_id, settings or [])
    with ProgressLine(err, "recording") if record is not None else nullcontext() as line:
        result = watch(
            env,
            objective=asked,
            method=method,
            record=record,
            speed=speed,
            theme=theme,
            title=Path(env_id).name if is_model_file(env_id) else None,
            size=_picture_size(size),
            frames=frames,
            tol=tol,
            atol=atol,
            num_iterations=num_iterations,
            num_updates=num_updates,
            seed=seed,
            num_threads=num_threads,
            callback=None if line is None else line.show,
            **options,
        )
    if save is not None:
        with Waiting(err, f"writing {save}"):
            result.save(save)
    with Waiting(err, "summing up"):
        rows = result_rows(env_id, as_model(env), result)
    print_rows(rows)
    if save is not None:
        out.print(f"result in {save}", highlight=False, soft_wrap=True)
    if record is not None:
        out.print(f"recording in {record}", highlight=False, soft_wrap=True)
    if result.message in (KEYBOARD, TERMINATED):
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
