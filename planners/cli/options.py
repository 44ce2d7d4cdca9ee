"""Options that several commands take, and what they ask for."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from aggmaze.checks import check_choice, check_integer, check_positive
from aggmaze.env_settings import parse_settings
from planners.checkpoint import Checkpoint
from planners.objective import (
    INFINITE,
    AverageCost,
    Discounted,
    FiniteHorizon,
    Objective,
    TotalCost,
    as_objective,
)
from planners.solve import solve

# What several commands take.
Gamma = Annotated[
    float | None, typer.Option(help="Discount in [0, 1]; 1 asks for total costs until the end.")
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


Tol = Annotated[float | None, typer.Option(help="Accuracy relative to max|V|.")]
Atol = Annotated[float | None, typer.Option(help="Accuracy in the unit of V.")]
NumIterations = Annotated[int | None, typer.Option(help="Most iterations.")]
NumUpdates = Annotated[int | None, typer.Option(help="Most backups.")]
Threads = Annotated[int | None, typer.Option("--threads", help="By default one for each core.")]


def check_seed_and_threads(seed: int, num_threads: int | None) -> None:
    """Refuse what is no seed or no number of threads, by the option's name.

    Parameters
    ----------
    seed : int
    num_threads : int or None
    """
    check_integer("--seed", seed)
    if num_threads is not None:
        check_integer("--threads", num_threads, least=1)


def kept_in(folder: Path | None, every: float | None) -> Checkpoint | None:
    """Return where a run is kept, None where it is not.

    Parameters
    ----------
    folder : Path or None
    every : float or None
        Seconds between two checkpoints.

    Raises
    ------
    ValueError
        If it is said how often, and not where.
    """
    if folder is None:
        if every is not None:
            raise ValueError("--checkpoint-every says how often, and --checkpoint FOLDER where")
        return None
    if every is None:
        return Checkpoint(folder)
    check_positive("--checkpoint-every", every)
    return Checkpoint(folder, every_seconds=every)


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
        # 1 is in the range of --gamma, and total costs; of discounted ones it is not.
        return as_objective(gamma) if name is None else Discounted(gamma)
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


def number_or_text(text: str | None) -> float | str | None:
    """Return an option as a number if it reads as one."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text
