"""``aggmaze reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aggmaze.checks import check_integer
from planners.cli.app import err, out, reported
from planners.kernels.threads import num_cores

#: What help ends with.
EPILOG = (
    "Ends with 0, 1 if a task failed, 2 on bad use, 130 on Ctrl-C. The same command goes on "
    "where an earlier one was stopped, however it was."
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
