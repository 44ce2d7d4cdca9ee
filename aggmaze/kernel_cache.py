"""Compiled kernels are kept on disk in a folder that is named after the sources of all of them.

Numba keeps a compiled function until its own file changes.  Ours call each other across files, and
many are inlined, so an edit in one file must not leave what was compiled of another: every edit of
a file with kernels makes a folder of its own, below the place that numba chooses, be it
``__pycache__``, ``NUMBA_CACHE_DIR`` or the user's cache.  So processes of old and of new code do
not meet in one either.

Importing this module puts that in effect, for kernels of this project only.  Each file with kernels
in `aggmaze`, and the package `planners`, does so before any kernel is defined.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.caching import CacheImpl

from aggmaze.sources import PACKAGES, digest, source_files

#: How the folders' names begin.
PREFIX = "kernels-"

# Folders of other sources that are kept, so that going back and forth compiles nothing anew.
_KEPT = 3


@functools.cache
def kernel_sources() -> tuple[Path, ...]:
    """Return the files that kernels are made of: those that import numba."""
    return tuple(path for path in source_files() if b"numba" in path.read_bytes())


@functools.cache
def folder_name() -> str:
    """Return the name of the folder for kernels of the sources as they were first read."""
    return PREFIX + digest(kernel_sources())


class KernelCache:
    """Numba's choice of a place for the kernels of this project, one folder further down."""

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Any:
        """Return the locator of a function's cache; None for functions that are not ours.

        Parameters
        ----------
        function : callable
        file : str
            Where it is defined.
        """
        if function.__module__.partition(".")[0] not in PACKAGES:
            return None
        others: list[Any] = [other for other in CacheImpl._locator_classes if other is not cls]
        found = (other.from_function(function, file) for other in others)
        locator = next((each for each in found if each is not None), None)
        if locator is not None:
            folder = Path(locator.get_cache_path()) / folder_name()
            if not folder.is_dir():
                _remove_oldest(folder.parent)
            locator.get_cache_path = lambda: str(folder)
            locator.ensure_cache_path()
        return locator


def _remove_oldest(parent: Path) -> None:
    """Remove all but the newest folders of other sources."""
    with contextlib.suppress(OSError):  # another process removes them too
        folders = sorted(parent.glob(PREFIX + "*"), key=lambda folder: folder.stat().st_mtime)
        for folder in folders[:-_KEPT]:
            shutil.rmtree(folder, ignore_errors=True)


# Where this module is imported anew, in the place of its former self.
CacheImpl._locator_classes[:] = [
    KernelCache,  # type: ignore[list-item]
    *(other for other in CacheImpl._locator_classes if other.__module__ != __name__),
]
