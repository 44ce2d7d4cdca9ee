"""Names of a package that are imported when they are first asked for.

What is compiled needs numba, which takes long to import: who makes environments and compiles
nothing does without.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Any


def importing_later(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package.

    Parameters
    ----------
    package : str
        Name of the package.
    homes : mapping
        Where each name is found: ``module``, or ``module:name``.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return resolve_name(homes[name])

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return find, names
