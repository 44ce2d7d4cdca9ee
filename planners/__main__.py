"""``python -m planners`` is the command ``aggmaze``."""

from aggmaze_command import main

main()
