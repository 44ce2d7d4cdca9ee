"""The files that a command writes, looked at before its work begins."""

from __future__ import annotations

import os
from pathlib import Path

from aggmaze.formats import registry

#: How the names of model files that can be written end.
WRITTEN_SUFFIXES = registry.suffixes(written=True)


def check_outputs(save: Path | None, image: Path | None, certificate: Path | None = None) -> None:
    """Refuse before the work what could not be written after it.

    Parameters
    ----------
    save : Path or None
        Of the result.
    image : Path or None
        Of the picture.
    certificate : Path or None

    Raises
    ------
    ValueError, IsADirectoryError
        If one has another suffix, or cannot be written.
    ModuleNotFoundError
        If there is to be a picture, and no matplotlib.
    """
    for name, path in (("--save", save), ("--certificate", certificate)):
        if path is not None and path.suffix != ".npz":
            raise ValueError(f"{name} must end in .npz, got {str(path)!r}")
    if image is not None:
        check_picture(image)
    for path in (save, image, certificate):
        if path is not None:
            check_writable(path)


def check_target(source: str, target: Path, name: str | None = None) -> registry.Format:
    """Refuse before the work a file that could not be written after it, or is the source.

    Parameters
    ----------
    source : str
        An environment or a model file.
    target : Path
        Of the model file to be written.
    name : str, optional
        Of its format.

    Returns
    -------
    Format
        In which it is written.

    Raises
    ------
    ValueError, IsADirectoryError
        If it is the source, has another suffix than model files have, or cannot be written.
    """
    if name is None and (not target.suffix or registry.format_of(target) is None):
        raise ValueError(
            f"TARGET must end in {WRITTEN_SUFFIXES}, or --to FORMAT say it, got {str(target)!r}"
        )
    entry = registry.target_format(target, name)
    check_writable(target)
    if is_same_file(target, source):
        raise ValueError(f"TARGET is SOURCE: {str(target)!r} would be overwritten by itself")
    return entry


def check_picture(path: Path) -> None:
    """Refuse a picture that could not be drawn, or not in the format that its name asks for.

    Raises
    ------
    ValueError
        If it has another suffix than pictures have.
    ModuleNotFoundError
        Without matplotlib.
    """
    # Here, since what draws takes long to import.
    from planners.plotting import check_matplotlib, figure_format

    figure_format(path)
    check_matplotlib()


def check_not_source(source: str, name: str, path: Path | None, what: str) -> None:
    """Refuse to write over the model file that a command reads.

    Parameters
    ----------
    source : str
        An environment or a model file.
    name : str
        Of the option.
    path : Path or None
        Of the file to be written.
    what : str
        What it will hold.
    """
    if path is not None and is_same_file(path, source):
        raise ValueError(f"{name} would overwrite the model file {source!r} with {what}")


def is_same_file(target: Path, source: str) -> bool:
    """Return whether a file to be written is what a command reads.

    Parameters
    ----------
    target : Path
    source : str
        An environment or a file.
    """
    return target.exists() and Path(source).exists() and target.samefile(source)


def check_writable(path: Path) -> None:
    """Refuse a folder, and a file in a folder that cannot be written to."""
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a directory, not a file to write")
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise ValueError(f"there is no folder {str(path.parent)!r} that can be written to")
