"""The command itself, and what all of its commands share: one line for an error, exit codes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any

import gymnasium as gym
import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup

import aggmaze
from aggmaze_command import what_to_install
from planners.signals import Terminations


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


class OneValueCommand(TyperCommand):
    """One of its commands: an option that takes one value is not given twice."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the arguments and options, as typer does."""
        return _without_metavars_of_flags(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read a command line, and refuse an option that is given twice.

        Parameters
        ----------
        ctx : Context
            Click's.
        args : list of str
        """
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


# What is wrong with the arguments, the files or the machine, rather than with the program.
_USER_ERRORS = (
    ValueError,
    TypeError,
    OSError,
    ModuleNotFoundError,
    MemoryError,
    gym.error.Error,
)

Command = Callable[..., None]


def reported(command: Command) -> Command:
    """Turn what goes wrong in a command into one line on stderr and an exit code.

    SIGTERM ends it as Ctrl-C does, with what there is by then.
    """

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            with Terminations():
                command(*arguments, **options)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except _USER_ERRORS as error:
            words = what_to_install(error) if isinstance(error, ModuleNotFoundError) else error
            complain(f"error: {words}")
            raise typer.Exit(2) from None

    return run


def complain(text: str) -> None:
    """Print a line on stderr as it is."""
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
