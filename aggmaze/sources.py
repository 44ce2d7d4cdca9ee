"""The source files of this distribution's packages, and what stands for their content."""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Collection, Iterable
from pathlib import Path

_HOME = Path(__file__).parents[1]

#: The packages that are developed and installed together.
PACKAGES = ("aggmaze", "planners")


def source_files() -> list[Path]:
    """Return the Python files of the packages, in an order of their own."""
    return sorted(path for name in PACKAGES for path in (_HOME / name).rglob("*.py"))


def digest(files: Iterable[Path]) -> str:
    """Return 16 hexadecimal digits that change with the content of the files, and their names."""
    total = hashlib.sha256()
    for path in files:
        total.update(hashlib.sha256(path.name.encode()).digest())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def imported_files(start: Path, besides: Collection[Path] = ()) -> list[Path]:
    """Return a file, and the files of the packages that it imports, directly or through others.

    A package's ``__init__`` counts where a name is imported from it, not where one of its modules
    is.

    Parameters
    ----------
    start : Path
        Of any Python file.
    besides : collection of Path
        Files that are left out, with what only they import.
    """
    found, waiting = set(), {start}
    while waiting:
        path = waiting.pop()
        found.add(path)
        waiting |= _imports(path) - found - set(besides)
    return sorted(found)


@functools.cache
def _imports(path: Path) -> set[Path]:
    """Return the files of the packages that a file imports, with imports inside functions."""
    names: list[tuple[str, ...]] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names += [(alias.name,) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names += [(f"{node.module}.{alias.name}", node.module) for alias in node.names]
    found = (next(filter(None, map(_file_of, either)), None) for either in names)
    return {path for path in found if path is not None}


def _file_of(module: str) -> Path | None:
    """Return the file of a module of the packages; None for any other name."""
    parts = module.split(".")
    if parts[0] not in PACKAGES:
        return None
    path = _HOME.joinpath(*parts)
    candidates = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next((each for each in candidates if each.is_file()), None)
