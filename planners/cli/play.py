"""``aggmaze play``."""

from __future__ import annotations

from typing import Annotated

import typer

import aggmaze
from aggmaze.checks import check_integer
from aggmaze.env_settings import make_env
from aggmaze.play import play
from planners.advice import adviser
from planners.cli.app import reported
from planners.cli.options import Gamma, ObjectiveName, Settings, asked_objective

#: What help ends with.
EPILOG = "Ends with 0, 2 on bad use, 130 on Ctrl-C."


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
