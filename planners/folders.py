"""Folders that hold a result: an array in each file, and a head that makes them one.

Arrays are raw ``.npy`` files: each process writes its slice at its place in one file, numpy maps
them into memory, so that a block is read without the rest, and nothing else is needed for either.
The head is JSON, moved into place last: a folder without one is not whole.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.files import DAMAGED
from aggmaze.formats.archive import Expected, check_scalar
from planners.slices import (
    Share,
    Sums,
    gathered_sums,
    header_of,
    move_head,
    read_slice,
    reserve,
    slices_of,
    sync_folder,
    write_slice,
)

_HEAD = "result.json"
_FORMAT = "aggmaze stored result 1"


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds other things than a result, or that cannot be made.

    Raises
    ------
    OSError
    """
    if not folder.absolute().parent.is_dir():
        raise FileNotFoundError(f"{str(folder.parent)!r}, to hold {folder.name!r}, is no folder")
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{str(folder)!r} is a file, and a folder is written")
    if folder.is_dir() and not (folder / _HEAD).exists():
        others = [entry.name for entry in folder.iterdir() if entry.suffix != ".npy"]
        if others:
            raise FileExistsError(f"{str(folder)!r} holds other things, such as {others[0]!r}")


def write_folder(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    by_state: Mapping[str, NDArray[Any]],
    whole: Mapping[str, NDArray[Any]],
    share: Share,
) -> None:
    """Write arrays into a folder, in place of a result that is there.

    Called by all processes that share the states.  What others have mapped of an older result stays
    as it is.

    Parameters
    ----------
    path : path-like
        Made where there is none.
    header : mapping
        Numbers and texts.
    by_state : mapping
        Arrays with an entry for each state of the process.
    whole : mapping
        Arrays that the first process writes.
    share : Share

    Raises
    ------
    OSError
        If the folder holds other things, or cannot be written to, or there is no room.
    """
    folder = Path(path)
    sums: dict[str, Sums] = {}

    def prepare() -> None:
        check_folder(folder)
        folder.mkdir(exist_ok=True)
        # Those of the result that is replaced, and what was left of one that was not finished.
        names = {*by_state, *whole, *_listed(folder)}
        for entry in (_HEAD, *(f"{name}.npy" for name in names)):
            (folder / entry).unlink(missing_ok=True)
        sync_folder(folder)
        for name, array in by_state.items():
            reserve(folder / f"{name}.npy", array.dtype, (share.num_states,))
        for name, array in whole.items():
            file = folder / f"{name}.npy"
            reserve(file, array.dtype, array.shape)
            sums[name] = write_slice(file, array.reshape(-1), 0, array.shape)

    def write_own() -> None:
        for name, array in by_state.items():
            file = folder / f"{name}.npy"
            sums[name] = write_slice(file, array, share.lo, (share.num_states,))

    share.first(prepare)
    share.together(write_own)
    listed: dict[str, Any] = {}
    for name, array in by_state.items():
        all_sums = gathered_sums(share, sums[name])
        listed[name] = _entry(array, (share.num_states,), all_sums)
    for name, array in whole.items():
        listed[name] = _entry(array, array.shape, sums.get(name, []))
    head = {"format": _FORMAT, **header, "files": listed}
    share.first(lambda: move_head(folder / _HEAD, head))


def _entry(array: NDArray[Any], shape: tuple[int, ...], sums: Sums) -> dict[str, Any]:
    return {"dtype": array.dtype.str, "shape": list(shape), "sums": sums}


def _listed(folder: Path) -> list[str]:
    """Return the names of the arrays of the result that a folder holds."""
    try:
        head = json.loads((folder / _HEAD).read_text(encoding="utf-8"))
        files = dict(head["files"]) if head["format"] == _FORMAT else {}
    except DAMAGED:
        return []
    return [name for name in files if Path(name).name == name]


class ResultFolder:
    """The arrays of a folder, mapped into memory: as an `aggmaze.formats.archive.Archive` is read.

    Parameters
    ----------
    path : path-like

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If that is what is there.
    ValueError
        If it is no folder that `write_folder` wrote to the end, or a file is not as its head says.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._folder, self._name = Path(path), repr(os.fspath(path))
        if not self._folder.exists():
            raise FileNotFoundError(f"there is no folder {self._name}")
        if not self._folder.is_dir():
            raise NotADirectoryError(f"{self._name} is a file, not the folder of a stored result")
        head = self._folder / _HEAD
        if not head.exists():
            raise ValueError(
                f"{self._name} is no stored result: it has no {_HEAD}, which is written last"
            )
        try:
            self._header: dict[str, Any] = json.loads(head.read_text(encoding="utf-8"))
            if self._header["format"] != _FORMAT:
                raise ValueError(f"its format is {self._header['format']!r}, not {_FORMAT!r}")
            self._files: dict[str, Any] = self._header["files"]
            for name in self._files:
                self._check(name)
        except DAMAGED as error:
            raise self.error(error) from None

    def error(self, error: BaseException) -> ValueError:
        """Return what is wrong with the folder as an error that names it."""
        reason = (str(error) or type(error).__name__).splitlines()[0]
        return ValueError(f"{self._name} is not a stored result: {reason}")

    def _check(self, name: str) -> None:
        """Refuse a file that is not as long as the head says, or not of its type."""
        dtype, shape = self._declared(name)
        file = self._folder / f"{name}.npy"
        if not file.is_file():
            raise ValueError(f"{file.name} is missing")
        header = header_of(dtype, shape)
        size = len(header) + dtype.itemsize * math.prod(shape)
        with file.open("rb") as opened:
            if file.stat().st_size != size or opened.read(len(header)) != header:
                raise ValueError(f"{file.name} is not {dtype} of shape {shape}")

    def _declared(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        if name not in self._files:
            raise ValueError(f"{name} is missing")
        entry = self._files[name]
        dtype = np.dtype(entry["dtype"])
        if dtype.hasobject:
            raise ValueError(f"{name} holds Python objects, not numbers")
        return dtype, tuple(int(size) for size in entry["shape"])

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def scalar(self, name: str, kind: type) -> Any:
        """Return a number or text of the header, of type ``float``, ``int`` or ``str``."""
        return check_scalar(self._header, name, kind)

    def has_scalar(self, name: str) -> bool:
        """Return whether the header has a number or text of this name."""
        return name in self._header

    def shape(self, name: str, *num_axes: int) -> tuple[int, ...]:
        """Return the shape of an array, with one of the given numbers of axes."""
        _, shape = self._declared(name)
        if len(shape) not in num_axes:
            raise ValueError(f"{name} has shape {shape}, not one of {num_axes} axes")
        return shape

    def read(self, expected: Mapping[str, Expected]) -> dict[str, NDArray[Any]]:
        """Return the arrays, which are exactly those expected, mapped and read-only.

        Parameters
        ----------
        expected : mapping
            Data types and shape of each array.
        """
        for name in self._files:
            if name not in expected:
                raise ValueError(f"it holds {name!r}, which does not belong there")
        arrays = {}
        for name, (dtypes, wanted) in expected.items():
            dtype, shape = self._declared(name)
            if dtype.name not in dtypes or shape != wanted:
                raise ValueError(
                    f"{name} is {dtype} of shape {shape}, not {' or '.join(dtypes)} of shape "
                    f"{wanted}"
                )
            # Nothing can be mapped of an array without entries.
            file = self._folder / f"{name}.npy"
            array = np.load(file, mmap_mode="r") if math.prod(shape) else np.empty(shape, dtype)
            array.flags.writeable = False
            arrays[name] = array
        return arrays

    def verify(self) -> None:
        """Read all files, and compare them with their checksums.

        Raises
        ------
        ValueError
            If one holds other bytes than were written.
        """
        for name, entry in self._files.items():
            dtype, shape = self._declared(name)
            for piece in slices_of(math.prod(shape)):
                out = np.empty(piece.stop - piece.start, dtype=dtype)
                try:
                    file = self._folder / f"{name}.npy"
                    read_slice(file, out, piece.start, shape, entry["sums"])
                except OSError as error:
                    raise self.error(error) from None
