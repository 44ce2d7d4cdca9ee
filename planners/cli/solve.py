"""``aggmaze solve``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import numpy as np
import typer

import aggmaze
from aggmaze.checks import check_integer
from aggmaze.layouts.text import SUFFIXES
from aggmaze.models.model import Model
from aggmaze.progress import stage
from planners.arrival import Arrival, arrival, describe_arrival
from planners.budget import Clock
from planners.checkpoint_folder import CheckpointFolder
from planners.cli.app import err, out, reported
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
    kept_in,
    method_settings,
    number_or_text,
)
from planners.cli.outputs import check_not_source, check_outputs
from planners.cli.progress import Goal, ProgressLine
from planners.cli.rows import print_rows, result_rows, rollout_rows
from planners.cli.sources import MODEL_SUFFIXES, is_model_file, layout_of
from planners.folders import check_folder
from planners.objective import AverageCost, Discounted, FiniteHorizon
from planners.policies import greedy_path
from planners.result import SolveResult, Status
from planners.rollout import episode_limit, rollout
from planners.solve import (
    AUTO,
    LOCAL,
    METHODS,
    PETSC,
    check_engine,
    check_limits,
    check_method,
    solve,
)
from planners.waiting import Waiting

#: What help ends with.
EPILOG = (
    "Ends with 0 if the accuracy or budget asked for is met, 1 if it stopped short of the "
    "accuracy, 2 on bad use, 130 on Ctrl-C (with the best so far), with --checkpoint also on "
    "SIGTERM."
)


@reported
def solve_command(
    env_id: Annotated[
        str,
        typer.Argument(
            metavar="ENV",
            help="A registered id that exposes a model, such as TerrainMaze-v0 or FrozenLake-v1, "
            f"a model file ({MODEL_SUFFIXES}), or a map for GridWorld-v0 ({', '.join(SUFFIXES)}).",
        ),
    ],
    gamma: Gamma = None,
    objective_name: ObjectiveName = None,
    horizon: Horizon = None,
    average: Average = False,
    dead_ends: DeadEnds = None,
    settings: Settings = None,
    method: Annotated[str, typer.Option(help=f"One of {AUTO}, {', '.join(METHODS)}.")] = AUTO,
    tol: Tol = None,
    atol: Atol = None,
    num_iterations: NumIterations = None,
    num_updates: NumUpdates = None,
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
    num_threads: Threads = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep the run there, also on Ctrl-C and SIGTERM; the same command goes on.",
        ),
    ] = None,
    checkpoint_every: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="How often; every 600 seconds by default."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            help=f"{LOCAL}, or {PETSC}: in all processes that mpiexec started, each with a part "
            "of the states, without episodes."
        ),
    ] = LOCAL,
    episodes: Annotated[int, typer.Option(help="Episodes to roll out; 0 for none.")] = 100,
    save: Annotated[Path | None, typer.Option(metavar="FILE.npz", help="Write the result.")] = None,
    store: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write the result to a folder of arrays, opened block by block."
        ),
    ] = None,
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
    if engine == PETSC:
        # PETSc and MPI are for those who ask for them.
        from planners.cli.parts import let_the_first_print, solve_parts

        let_the_first_print()
    check_integer("--episodes", episodes)
    check_seed_and_threads(seed, num_threads)
    if image is not None and is_model_file(env_id):
        raise ValueError(f"--image draws mazes, and a model file holds none: {env_id!r}")
    kept = kept_in(checkpoint, checkpoint_every)
    if save is not None and save == certificate:
        raise ValueError(f"--save and --certificate are one file, {str(save)!r}")
    options = method_settings(
        method_options or [],
        epsilon=number_or_text(epsilon),
        num_global=num_global,
        num_aggregated=num_aggregated,
        step_size=number_or_text(step_size),
        step_index=step_index,
        first_step=first_step,
    )

    def check_files() -> None:
        for name, path, what in (
            ("--save", save, "a result"),
            ("--certificate", certificate, "a certificate"),
        ):
            check_not_source(env_id, name, path, what)
        check_outputs(save, image, certificate)
        if store is not None:
            check_folder(store)
            if checkpoint is not None and store.absolute() == checkpoint.absolute():
                raise ValueError(f"--store and --checkpoint are one folder, {str(store)!r}")
        if checkpoint is not None:
            CheckpointFolder(checkpoint).check()

    if engine != PETSC:
        check_files()
    # Before the environment, which may take long to make.
    asked = asked_objective(gamma, objective_name, horizon, average, dead_ends)
    check_limits(tol, atol, num_iterations, num_updates, time_limit)
    check_engine(engine, asked)
    limits: dict[str, Any] = {
        "tol": tol,
        "atol": atol,
        "num_iterations": num_iterations,
        "num_updates": num_updates,
        "time_limit": time_limit,
    }
    if engine == PETSC and isinstance(asked, Discounted):
        if image is not None:
            raise ValueError(
                f"--image needs the whole result: draw it from --save, without {PETSC}"
            )
        solve_parts(
            env_id,
            settings or [],
            asked,
            method,
            options,
            limits=limits,
            seed=seed,
            num_threads=num_threads,
            checkpoint=kept,
            store=store,
            save=save,
            certificate=certificate,
            check_files=check_files,
        )
        return
    if isinstance(asked, Discounted):
        check_method(method, options)
    env = opened(env_id, settings or [])
    if image is not None and not isinstance(layout_of(env), aggmaze.Layout):
        raise ValueError("--image draws mazes: this environment has no layout to draw")
    model = model_of(env)
    clock = Clock()
    with ProgressLine(err, "solving", Goal(asked, method, options, **limits)) as line:
        result = solve(
            model,
            objective=asked,
            method=method,
            seed=seed,
            num_threads=num_threads,
            callback=line.show,
            checkpoint=kept,
            **limits,
            **options,
        )
    if save is not None:
        with Waiting(err, f"writing {save}"):
            result.save(save)
    if store is not None:
        with Waiting(err, f"writing {store}"):
            result.store(store)
    with Waiting(err, "summing up"):
        rows = result_rows(env_id, model, result)
    print_rows(rows)
    if save is not None:
        out.print(f"result in {save}", highlight=False, soft_wrap=True)
    if store is not None:
        out.print(f"result in {store}", highlight=False, soft_wrap=True)
    if certificate is not None and result.success:
        with Waiting(err, f"writing {certificate}"):
            result.certificate(certificate)
        out.print(f"certificate in {certificate}", highlight=False, soft_wrap=True)
    if image is not None:
        with Waiting(err, "drawing"):
            with stage("loading what draws"):
                from planners.plotting import save_figure  # which takes long to import
            picture = _drawn(env_id, layout_of(env), model, result)
            with stage(f"writing {image}"):
                save_figure(picture, image)
        out.print(f"values, policy and greedy path in {image}", highlight=False, soft_wrap=True)
    if result.status == Status.INTERRUPTED:
        raise KeyboardInterrupt

    def left() -> float | None:
        return None if time_limit is None else max(time_limit - clock.seconds(), 1e-9)

    if time_limit is not None and clock.seconds() >= time_limit:
        print_rows([("policy", f"not followed: the time limit of {time_limit:g} s is used up")])
    else:
        limit = episode_limit(env)
        # Where a policy goes that changes with the steps is said by the steps alone.
        if not isinstance(asked, FiniteHorizon):
            with Waiting(err, "looking where the policy goes"):
                found = arrival(model, result, time_limit=left())
            print_rows([("policy", describe_arrival(found, result.gamma))])
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
            print_rows(rollout_rows(rolled, limit, asked))
    if not result.success:
        raise typer.Exit(1)


def _episode_limit(env: gym.Env[Any, Any], found: Arrival) -> int:
    """Return the registered limit, or more where the way is too long for it."""
    limit = episode_limit(env)
    if found.expected_steps is not None and found.expected_steps > limit / 2:
        limit = math.ceil(4 * found.expected_steps)
    return limit


def _drawn(env_id: str, layout: aggmaze.Layout, model: Model, result: SolveResult) -> Any:
    """Return the picture of a plan; of one for a number of steps that of the first."""
    from planners.plotting import plot_plan

    title = f"{env_id}, {result.objective}: {result.method}, bound {result.bound:.2g}"
    if isinstance(result.objective, FiniteHorizon):
        return plot_plan(layout, result.values[0], result.policy[0], title=title)
    path = greedy_path(model, result.policy, int(np.argmax(model.initial)))
    average = isinstance(result.objective, AverageCost)
    label = "mean cost of a step" if average else "cost-to-go"
    return plot_plan(layout, result.values, result.policy, path, title=title, label=label)
