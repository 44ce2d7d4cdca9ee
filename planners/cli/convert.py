"""``aggmaze convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import gymnasium as gym
import typer

from planners.cli.app import err, out, reported
from planners.cli.opening import model_of, opened
from planners.cli.options import Settings
from planners.cli.outputs import WRITTEN_SUFFIXES, check_target
from planners.cli.sources import MODEL_SUFFIXES
from planners.waiting import Waiting

#: What help ends with.
EPILOG = "Ends with 0, 2 on bad use, 130 on Ctrl-C (with TARGET as it was before)."


@reported
def convert_command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help=f"A registered id that exposes a model, or a model file ({MODEL_SUFFIXES}).",
        ),
    ],
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help=f"The file to write ({WRITTEN_SUFFIXES}).")
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
    model = model_of(opened(source, settings or [], is_file=source_format is not None))
    with Waiting(err, "looking what the format keeps"):
        lost = written.losses(model)
    with Waiting(err, f"writing {model.num_listed_states:,} states to {target}"):
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
