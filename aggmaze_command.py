"""Where the command ``aggmaze`` begins: so light that Ctrl-C has a handler while the rest is read.

It lies outside the packages since whatever lies in one is run after the imports of the package.
"""

from __future__ import annotations

import os
import signal


def main() -> None:
    """Run the command; on Ctrl-C while it is imported, say so and end at once."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # else whoever started the command ignores Ctrl-C
        # No exception: imports may lose one, or print it and go on.
        signal.signal(signal.SIGINT, _end)
    from planners.cli import main as run

    signal.signal(signal.SIGINT, usual)
    run()


def _end(*signal_and_frame: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)
