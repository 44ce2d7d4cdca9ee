"""``aggmaze play``."""

from __future__ import annotations

from typing import Annotated

import typer

import aggmaze
from aggmaze.checks import check_integer
from aggmaze.models.model import Model
from aggmaze.play import Advice, play
from planners.advice import adviser
from planners.cli.app import err, reported
from planners.cli.opening import made
from planners.cli.options import Gamma, ObjectiveName, Settings, asked_objective
from planners.cli.progress import Goal, ProgressLine

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
    # Nothing is asked of it before there is a model, and what cannot be asked is refused here.
    adviser(objective=asked)

    def advise(model: Model) -> Advice:
        with ProgressLine(err, f"solving {env_id}", Goal(asked)) as line:
            return adviser(objective=asked, callback=line.show)(model)

    play(made(env_id, settings or [], render_mode="human"), seed=seed, adviser=advise)
