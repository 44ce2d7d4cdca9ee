"""The command ``aggmaze``: a file for each of its commands, registered by `planners.cli.entry`."""

from planners.cli.app import app
from planners.cli.entry import main

__all__ = ["app", "main"]
