"""``python -m planners`` is the command ``aggmaze``."""

from planners.cli import main

main()
