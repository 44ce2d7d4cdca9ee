"""Run the tests in a virtual environment that is made on the first run.

``python3 scripts/run_tests.py [ARGUMENT ...]`` passes its arguments on to pytest, which runs in the
root of the checkout, and ends with pytest's exit code.
"""

import sys

import _venv


def main() -> int:
    """Set up the virtual environment and run pytest in it."""
    python = _venv.ensure("test")
    return _venv.call([python, "-m", "pytest", *sys.argv[1:]], cwd=str(_venv.ROOT))


if __name__ == "__main__":
    _venv.run(main)
