"""How the command begins and ends."""

from __future__ import annotations

import _thread
import sys
import threading
import warnings
from typing import Any

import typer

from planners.cli import compare, convert, play, reproduce, solve, watch
from planners.cli.app import OneValueCommand, app, complain
from planners.cli.listing import list_command

# In the order in which help lists them.
for name, command, epilog in (
    ("solve", solve.solve_command, solve.EPILOG),
    ("compare", compare.compare_command, compare.EPILOG),
    ("watch", watch.watch_command, watch.EPILOG),
    ("play", play.play_command, play.EPILOG),
    ("convert", convert.convert_command, convert.EPILOG),
    ("reproduce", reproduce.reproduce_command, reproduce.EPILOG),
    ("list", list_command, None),
):
    app.command(name, cls=OneValueCommand, epilog=epilog)(command)

#: What a wrong command line raises; typer exports only this one of its kinds.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def main() -> None:
    """Run the command and end the process with its exit code."""
    warnings.showwarning = _show_warning
    usual, sys.unraisablehook = sys.unraisablehook, _raise_again
    try:
        code = app(standalone_mode=False)
    except _UsageError as error:
        if words := _usage_in_words(error):  # else it was no command at all, and help is shown
            complain(words)
        code = 2
    except (KeyboardInterrupt, typer.Abort):  # before or after a command
        code = 130
    finally:
        sys.unraisablehook = usual
    if code == 130:
        complain("interrupted")
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
    elif not _is_half_made(unraisable):
        sys.__unraisablehook__(unraisable)


def _is_half_made(unraisable: Any) -> bool:
    """Whether LLVM's binding lets go of what Ctrl-C left half made, of which nobody need hear."""
    module = getattr(unraisable.object, "__module__", None) or ""
    return issubclass(unraisable.exc_type, AttributeError) and module.startswith("llvmlite.")


def _show_warning(message: object, *where: object, **more: object) -> None:
    complain(f"warning: {message}")
