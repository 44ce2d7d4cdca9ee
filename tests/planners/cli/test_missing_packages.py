"""Without packages that not all need, the rest works, and what needs one says what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# What a finder refuses is as good as not installed.
BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("matplotlib", "pygame", "mpi4py"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
sys.argv[0] = "aggmaze"
from planners.cli import main
main()
"""
# The command as it is installed, without one package.
WITHOUT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "MODULE":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
sys.argv[0] = "aggmaze"
from aggmaze_command import main
main()
"""
PLOTS = 'error: pictures need matplotlib: pip install "aggmaze[plots]"\n'
PETSC = (
    'error: engine="petsc" needs petsc4py and mpi4py: there is no mpi4py; on Python 3.12 or newer: '
    'pip install "aggmaze[distributed]"; docs/distributed.md has the other ways\n'
)
WINDOW = 'error: a window needs pygame: pip install "pygame-ce>=2.5"\n'


def run(folder: Path, *arguments: str, program: str = BLOCKED) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[3]
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_solving_needs_neither(tmp_path: Path) -> None:
    for arguments in (
        ("solve", "TerrainMaze-v0", "--gamma", "0.9", "--episodes", "2", "--save", "plan.npz"),
        ("compare", "TerrainMaze-v0", "--gamma", "0.9", "--methods", "value_iteration"),
        ("convert", "TerrainMaze-v0", "model.npz"),
        # Recordings are drawn with pillow, which everybody has.
        ("watch", "TerrainMaze-v0", "--gamma", "0.9", "--record", "run.gif", "--frames", "5"),
        ("watch", "TerrainMaze-v0", "--gamma", "0.9", "--record", "run.html", "--frames", "5"),
    ):
        done = run(tmp_path, *arguments)
        assert done.returncode == 0, done.stderr
        assert "error" not in done.stderr
    names = ["model.npz", "plan.npz", "run.gif", "run.html"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("solve TerrainMaze-v0 --gamma 0.9 --image plan.png", PLOTS),
        ("compare TerrainMaze-v0 --gamma 0.9 --plot runs.png", PLOTS),
        ("reproduce bounds --out reproduction", PLOTS),
        ("play TerrainMaze-v0 --gamma 0.9", WINDOW),
        ("watch TerrainMaze-v0 --gamma 0.9", WINDOW),
        ("solve TerrainMaze-v0 --gamma 0.9 --engine petsc", PETSC),
    ],
)
def test_what_needs_them_says_what_to_install(tmp_path: Path, words: str, expected: str) -> None:
    done = run(tmp_path, *words.split())
    assert done.returncode == 2
    # On a slow machine there are lines before that say what is waited for.
    assert done.stderr.endswith(expected)
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("*.png"))


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("rich", "rich"),
        ("typer", "typer"),
        ("numba", "numba"),
        ("scipy", "scipy"),
        ("PIL", "pillow"),
    ],
)
def test_what_nothing_works_without_is_named_in_a_line(
    tmp_path: Path, module: str, package: str
) -> None:
    done = run(tmp_path, "--help", program=WITHOUT.replace("MODULE", module))
    assert done.returncode == 2
    # On a slow machine it is said before that the command is loaded.
    assert done.stderr.removeprefix("loading the command\n") == (
        f"error: aggmaze needs {package}, which is not installed: pip install {package}\n"
    )
