"""``aggmaze solve --engine petsc``: one run in all processes that ``mpiexec`` started.

Only the first of them prints.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import typer

from aggmaze.env_settings import parse_settings
from aggmaze.envs.by_rows import BY_ROWS, model_by_rows
from aggmaze.formats.stored_rows import open_rows
from aggmaze.layouts.rule import WholeOnlyError
from aggmaze.memory import check_memory
from aggmaze.models.row_models import RowModel, as_row_model
from planners.adapters import as_model
from planners.checkpoint import Checkpoint
from planners.cli.app import err, out
from planners.cli.progress import Goal, ProgressLine
from planners.cli.rows import Rows, bound_row, method_rows, print_rows
from planners.cli.sources import open_env
from planners.distributed.discounted import METHODS, check_request
from planners.distributed.processes import Processes, world
from planners.distributed.result import BYTES_OF_WHOLE, PartResult
from planners.kernels import compiling
from planners.kernels.vectors import finite_norm, sup_norm
from planners.objective import Discounted
from planners.objectives.request import Request
from planners.record import Progress
from planners.result import Status
from planners.solve import solve
from planners.waiting import Waiting

# By which those who start processes tell them which one they are.
_RANKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")


def solve_parts(
    env_id: str,
    settings: list[str],
    asked: Discounted,
    method: str,
    options: Mapping[str, Any],
    *,
    limits: Mapping[str, Any],
    seed: int,
    num_threads: int | None,
    checkpoint: Checkpoint | None,
    store: Path | None,
    save: Path | None,
    certificate: Path | None,
    check_files: Callable[[], None],
) -> None:
    """Solve in parts, print what there is to say in the first process, and leave as `solve` does.

    Parameters
    ----------
    env_id : str
    settings : list of str
        ``key=value``.
    asked : Discounted
    method : str
    options, limits : mapping
        Of the method, and of any.
    seed : int
    num_threads : int, optional
        Of each process.
    checkpoint : Checkpoint, optional
    store : Path, optional
        Folder that each process writes its part to.
    save, certificate : Path, optional
        Files for the whole result.
    check_files : callable
        Refuses before the work what could not be written after it; files that one process sees,
        another may not.

    Raises
    ------
    typer.Exit
        With 1 if the run stopped short of the accuracy.
    KeyboardInterrupt
        If it was interrupted.
    """
    check_request(Request(method=method, options=dict(options)))
    processes = world()
    with processes.all_or_none():
        processes.together(check_files)
        with Waiting(err, f"making {env_id}"):
            model = processes.together(lambda: _opened(env_id, settings))
        if save is not None or certificate is not None:
            needed = BYTES_OF_WHOLE * model.num_states * processes.on_this_machine()
            processes.together(
                lambda: check_memory(
                    needed,
                    "files of the whole result, which each process puts "
                    f"together from all parts, and {model.num_states:,} states",
                )
            )
        goal = Goal(asked, method, options, methods=METHODS, **limits)
        with ProgressLine(err, "reading the model", goal) as line:
            result: PartResult = solve(
                model,
                engine="petsc",
                objective=asked,
                method=method,
                seed=seed,
                num_threads=num_threads,
                callback=_common(processes, line, goal),
                checkpoint=checkpoint,
                **limits,
                **options,
            )
        print_rows(_rows(env_id, model.num_actions, processes, result))
        if store is not None:
            with Waiting(err, f"writing {store}"):
                result.store(store)
            out.print(f"result in {store}", highlight=False, soft_wrap=True)
        _write(processes, result, save, certificate)
    if result.status == Status.INTERRUPTED:
        raise KeyboardInterrupt
    if not result.success:
        raise typer.Exit(1)


def _common(processes: Processes, line: ProgressLine, goal: Goal) -> Callable[[Progress], None]:
    """Return what tells an iteration in the first process, by max|V| of all of them.

    Called by all; they look at their values when the first says that it is time.
    """

    def show(progress: Progress) -> None:
        if processes.first(goal.looks(line.passed)):
            size = processes.together(lambda: finite_norm(progress.values))
            goal.see(float(processes.largest(np.array([size]))[0]), line.passed)
        if processes.rank == 0:
            line.show(progress)

    return show


def let_the_first_print() -> None:
    """Print nothing from here on, unless this is the first of the processes, or the only one."""
    if any(os.environ.get(name, "0") != "0" for name in _RANKS):
        out.quiet = err.quiet = True
        compiling.be_quiet()


def _opened(env_id: str, settings: list[str]) -> RowModel:
    """Return a model by rows, made so if it can be, else whole, with a word about that."""
    why = f"{env_id} is made as a whole only"
    if Path(env_id).suffix == ".npz" and not settings:
        try:
            return open_rows(env_id)
        except ValueError as error:
            why = str(error)
    if env_id in BY_ROWS:
        try:
            return model_by_rows(env_id, **parse_settings(settings))
        except WholeOnlyError as error:
            why = str(error)
    model = as_row_model(as_model(open_env(env_id, settings)))
    err.print(
        f"note: each process makes and holds all {model.num_states:,} states to begin with: {why}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    return model


def _rows(env_id: str, num_actions: int, processes: Processes, result: PartResult) -> Rows:
    """Return what is said of a result: called by all processes."""
    size = float(processes.largest(np.array([sup_norm(result.values)]))[0])
    each = math.ceil(result.num_states / processes.size)
    return [
        *method_rows(env_id, num_actions, result.num_states, result),
        (
            "processes",
            f"{processes.size:,} with {each:,} states each at most, PETSc "
            f"{'.'.join(map(str, processes.PETSc.Sys.getVersion()))} with "
            f"{processes.index_bits}-bit indices",
        ),
        bound_row(result.bound, size),
    ]


def _write(
    processes: Processes, result: PartResult, save: Path | None, certificate: Path | None
) -> None:
    """Write the files of the whole result, in the first process: called by all."""
    if save is None and (certificate is None or not result.success):
        return
    whole = result.gathered()
    leads = processes.rank == 0
    if save is not None:
        with Waiting(err, f"writing {save}"):
            processes.together(lambda: whole.save(save) if leads else None)
        out.print(f"result in {save}", highlight=False, soft_wrap=True)
    if certificate is not None and result.success:
        with Waiting(err, f"writing {certificate}"):
            processes.together(lambda: whole.certificate(certificate) if leads else None)
        out.print(f"certificate in {certificate}", highlight=False, soft_wrap=True)
