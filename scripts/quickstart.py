"""Solve two mazes and draw what came out, in a virtual environment that is made on the first run.

``python3 scripts/quickstart.py [--out DIR]`` writes its pictures into DIR, or into the folder
``quickstart`` of the checkout.

What is at the level of the module runs, before the virtual environment is there, on any Python and
without the project's dependencies: import those inside :func:`demonstrate`.
"""

import argparse
import os
import sys
from pathlib import Path

import _venv


def demonstrate(out: Path) -> None:
    """Solve the mazes and write the pictures into the folder ``out``, which exists."""
    raise SystemExit("demonstration not written yet")


def main() -> int:
    """Set up the virtual environment and run the demonstration in it."""
    parser = argparse.ArgumentParser(
        description="Solve two mazes and draw what came out.", allow_abbrev=False
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=_venv.ROOT / "quickstart",
        metavar="DIR",
        help="the folder for the pictures (default: %(default)s)",
    )
    # Set when this script, which starts in any Python, starts itself in that of .venv.
    parser.add_argument("--in-venv", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    try:
        arguments.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"cannot make the folder for the pictures: {error}")

    if arguments.in_venv:
        demonstrate(arguments.out)
        return 0
    python = _venv.ensure("plots")
    # It draws into files, so it needs no screen.
    environment = {"MPLBACKEND": "Agg", "SDL_VIDEODRIVER": "dummy", **os.environ}
    script = Path(__file__).resolve()
    return _venv.call([python, script, "--in-venv", *sys.argv[1:]], env=environment)


if __name__ == "__main__":
    _venv.run(main)
