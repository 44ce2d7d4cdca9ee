"""Results in folders, opened without being read."""

from __future__ import annotations

import os

from aggmaze.files import DAMAGED
from planners.folders import ResultFolder
from planners.result import SolveResult


def open_result(path: str | os.PathLike[str], *, verify: bool = False) -> SolveResult:
    """Return a result that `SolveResult.store` wrote, or several processes did together.

    Its arrays are mapped into memory and cannot be written to: what is asked of them is read from
    the disk, a block at a time, and the rest is not.  So is what `rollout` looks up, and with
    ``states=`` what `q_values` does.  `SolveResult.lower` and `SolveResult.upper` are computed, for
    all states.

    Parameters
    ----------
    path : path-like
        The folder.
    verify : bool
        Whether to read all of it first, and compare it with its checksums.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If that is what is there.
    ValueError
        If it is no folder of a result, or one that was not written to the end, or damaged.
    """
    folder = ResultFolder(path)
    if verify:
        folder.verify()
    try:
        return SolveResult.read(folder)
    except DAMAGED as error:
        raise folder.error(error) from None
