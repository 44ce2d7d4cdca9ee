"""``python -m aggmaze`` is the installed command ``aggmaze``, whoever provides it.

It is found by its name among the installed commands: the planners provide it, and this package
knows nothing of them.
"""

import sys
from importlib.metadata import entry_points

commands = [*entry_points(group="console_scripts", name="aggmaze")]
if not commands:
    sys.exit("error: the command aggmaze is not installed: pip install aggmaze")
sys.exit(commands[0].load()())
