"""The source files of this distribution's packages, and what stands for their content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
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
