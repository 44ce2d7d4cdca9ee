"""What stands for the content of the sources, and which of them a file depends on."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from aggmaze import sources
from planners.experiments import EXPERIMENTS
from planners.experiments.running import tasks

FILES = {
    "aggmaze/__init__.py": "from aggmaze.c import C",
    "aggmaze/a.py": "import numpy, aggmaze.b\nfrom planners import solve",
    "aggmaze/b.py": "def late():\n    from aggmaze.deep import d",
    "aggmaze/c.py": "C = 1",
    "aggmaze/deep/__init__.py": "",
    "aggmaze/deep/d.py": "import aggmaze.a",  # a circle
    "planners/__init__.py": "from planners.solve import other",
    "planners/cli.py": "from aggmaze import a",
    "planners/solve.py": "from aggmaze import C\nfrom planners.solving import pi",
    "planners/solving.py": "pi = 3",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(sources, "_HOME", tmp_path)
    return tmp_path


def names(home: Path, start: str, *besides: str) -> list[str]:
    found = sources.imported_files(home / start, [home / name for name in besides])
    return [path.relative_to(home).as_posix() for path in found]


def test_all_imports_are_followed(home: Path) -> None:
    everything = set(FILES)
    assert {path.relative_to(home).as_posix() for path in sources.source_files()} == everything
    unused = {"aggmaze/deep/__init__.py", "planners/__init__.py", "planners/cli.py"}
    assert names(home, "aggmaze/a.py") == sorted(everything - unused)
    assert names(home, "planners/solve.py") == [
        "aggmaze/__init__.py",
        "aggmaze/c.py",
        "planners/solve.py",
        "planners/solving.py",
    ]
    assert names(home, "planners/__init__.py", "aggmaze/__init__.py") == [
        "planners/__init__.py",
        "planners/solve.py",
        "planners/solving.py",
    ]
    assert names(home, "planners/solving.py") == ["planners/solving.py"]


def test_imports_are_ones_that_can_be_followed() -> None:
    for path in sources.source_files():
        for node in ast.walk(ast.parse(path.read_bytes())):
            assert not (isinstance(node, ast.ImportFrom) and node.level > 0), path


def test_digests_tell_names_and_contents_apart(tmp_path: Path) -> None:
    for name, text in {"a": "x", "b": "", "c": "x"}.items():
        (tmp_path / name).write_text(text)
    a, b, c = (tmp_path / name for name in "abc")
    assert sources.digest([a, b]) == sources.digest([a, b])
    assert len({sources.digest(files) for files in ([a], [b], [c], [a, b], [b, a], [])}) == 6


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_outcomes_depend_on_the_kernels_and_not_on_the_command(name: str) -> None:
    run = EXPERIMENTS[name].run
    found = sources.imported_files(Path(inspect.getfile(run)))
    names = {path.relative_to(sources._HOME).as_posix() for path in found}
    assert names > {
        "planners/kernels/pieces.py",
        "planners/kernels/sparse.py",
        "planners/solvers/adaptive_aggregation.py",
        "planners/aggregation.py",
        "aggmaze/models/tabular.py",
        "aggmaze/models/moves.py",
        "planners/experiments/algorithm3.py",
    }
    assert not any(name.startswith("planners/cli/") for name in names)
    assert "planners/experiments/running/runner.py" not in names
    assert len(tasks.code_of(run)) == 16


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_no_outcome_depends_on_what_draws_and_prints(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = EXPERIMENTS[name].run
    found = set(sources.imported_files(Path(inspect.getfile(run))))
    deciding: list[Path] = []
    monkeypatch.setattr(tasks, "digest", deciding.extend)
    tasks.code_of.__wrapped__(run)
    reporting = {path for path in found if path.parent.name == "reporting"}
    assert {path.name for path in reporting} >= {"figures.py", "statistics.py"}
    assert Path(inspect.getfile(run)) in deciding
    assert set(deciding) <= found - reporting
    # What is left out beside reports is imported by these alone.
    for path in deciding:
        assert sources._imports(path) - reporting <= set(deciding)
