"""Folders that hold a result: an array in each file, and a head that makes them one.

Arrays are raw ``.npy`` files: each process writes its slice at its place in one file, numpy maps
them into memory, so that a block is read without the rest, and nothing else is needed for either.
The head is JSON, moved into place last: a folder without one is not whole.

A result that replaces another is written beside it, into files of other names, and the head says
which: until the new head is in place the folder holds the old result.  A second list, ``left``, is
written first and has all files of the folder's own.  Those that the head does not name are of a
result that was replaced, or not finished, and are removed; a file on neither list is the user's.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.files import DAMAGED
from aggmaze.formats.archive import Expected, check_scalar
from planners.slices import (
    Share,
    Sums,
    check_place,
    gathered_sums,
    header_of,
    is_temporary,
    lock,
    move_head,
    open_folder,
    read_head,
    read_slice,
    reserve,
    slices_of,
    sync_folder,
    write_slice,
)

_HEAD, _LEFT = "result.json", "left.json"
_FORMAT, _LEFT_FORMAT = "aggmaze stored result 1", "aggmaze files of stored results 1"


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds other things than a result, or that cannot be made.

    Raises
    ------
    OSError
    """
    check_place(folder, _refusal(folder))
    if not folder.is_dir():
        return
    present = {entry.name for entry in folder.iterdir()}
    own = {name for name in (_HEAD, _LEFT) if _named(folder, name) is not None}
    # Beside a result the user may keep what he likes.
    foreign = (present & {_HEAD, _LEFT} if own else present) - own
    others = sorted(name for name in foreign if not is_temporary(name, (_HEAD, _LEFT)))
    if others:
        raise FileExistsError(f"{_refusal(folder)}: it holds other things, such as {others[0]!r}")


def _refusal(folder: Path) -> str:
    return f"no result can be stored in {str(folder)!r}"


class _Storing:
    """What the first process does with a folder while a result is written into it.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None
        self._is_open = False

    def begin(self, arrays: Iterable[str]) -> int:
        """Make the folder and take it; return the number that names of files get.

        Parameters
        ----------
        arrays : iterable of str
            Names.
        """
        folder = self._folder
        check_folder(folder)
        folder.mkdir(exist_ok=True)
        self._descriptor = open_folder(folder)
        if self._descriptor is not None and not lock(self._descriptor):
            raise OSError(f"{_refusal(folder)}: another process is writing one there")
        self._is_open = True
        self._sweep()
        own = {*(_named(folder, _HEAD) or ()), *(_named(folder, _LEFT) or ())}
        for number in itertools.count(1):
            files = [file_of(name, number) for name in arrays]
            if own.isdisjoint(files):
                break
        for file in files:
            if os.path.lexists(folder / file):
                raise FileExistsError(
                    f"{_refusal(folder)}: it holds {file!r}, which is of no stored result"
                )
        listed = sorted(own.union(files))
        move_head(folder / _LEFT, {"format": _LEFT_FORMAT, "files": listed})
        return number

    def end(self) -> None:
        """Remove what does not belong to the result that the folder holds, and let go of it."""
        if self._is_open:
            self._is_open = False
            self._sweep()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _sweep(self) -> None:
        held, left = _named(self._folder, _HEAD) or (), _named(self._folder, _LEFT)
        try:
            for entry in self._folder.iterdir():
                if is_temporary(entry.name, (_HEAD, _LEFT)):
                    entry.unlink()
            if left is not None:
                for file in left.difference(held):
                    (self._folder / file).unlink(missing_ok=True)
                (self._folder / _LEFT).unlink(missing_ok=True)
                sync_folder(self._folder)
        except OSError:
            pass  # what is mapped cannot be removed on Windows, and stays on the list


def file_of(name: str, number: int) -> str:
    """Return the name of the file of an array, of the first result of a folder or a later one.

    Parameters
    ----------
    name : str
        Of the array.
    number : int
        Of the result, from 1 on.
    """
    return f"{name}.npy" if number == 1 else f"{name}-{number}.npy"


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
        If the folder holds other things, or cannot be written to, or there is no room; a result
        that it holds is then still there.
    """
    folder = Path(path)
    storing = _Storing(folder)
    sums: dict[str, Sums] = {}
    number = 1

    def prepare() -> None:
        nonlocal number
        number = storing.begin([*by_state, *whole])
        for name, array in by_state.items():
            reserve(folder / file_of(name, number), array.dtype, (share.num_states,))
        for name, array in whole.items():
            file = folder / file_of(name, number)
            reserve(file, array.dtype, array.shape)
            sums[name] = write_slice(file, array.reshape(-1), 0, array.shape)

    def write_own() -> None:
        for name, array in by_state.items():
            file = folder / file_of(name, number)
            sums[name] = write_slice(file, array, share.lo, (share.num_states,))

    def entry(name: str, array: NDArray[Any], shape: tuple[int, ...], sums: Sums) -> dict[str, Any]:
        file = file_of(name, number)
        return {"file": file, "dtype": array.dtype.str, "shape": list(shape), "sums": sums}

    try:
        share.first(prepare)
        number = share.told(number)
        share.together(write_own)
        listed: dict[str, Any] = {}
        for name, array in by_state.items():
            all_sums = gathered_sums(share, sums[name])
            listed[name] = entry(name, array, (share.num_states,), all_sums)
        for name, array in whole.items():
            listed[name] = entry(name, array, array.shape, sums.get(name, []))
        head = {"format": _FORMAT, **header, "files": listed}
        share.first(lambda: move_head(folder / _HEAD, head))
    except OSError as error:
        if error.errno is None:  # said already
            raise
        raise OSError(f"{_refusal(folder)}: {error.strerror or error}") from None
    finally:
        storing.end()


def _named(folder: Path, entry: str) -> set[str] | None:
    """Return the files that a head or a list of a folder names; None where it is none of ours."""
    head = read_head(folder / entry, _FORMAT if entry == _HEAD else _LEFT_FORMAT)
    try:
        if head is None:
            return None
        if entry == _HEAD:
            named = {each["file"] for each in dict(head["files"]).values()}
        else:
            named = set(head["files"])
        return named if all(_is_plain(file) for file in named) else None
    except DAMAGED:
        return None


def _is_plain(file: Any) -> bool:
    """Return whether this is the name of an array's file, and leads nowhere else."""
    return isinstance(file, str) and Path(file).name == file and file.endswith(".npy")


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
            if _named(self._folder, _LEFT) is not None:
                raise ValueError(f"{self._name} holds a result that was not written to the end")
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
        file = self._path(name)
        if not file.is_file():
            raise ValueError(f"{file.name} is missing")
        header = header_of(dtype, shape)
        size = len(header) + dtype.itemsize * math.prod(shape)
        with file.open("rb") as opened:
            if file.stat().st_size != size or opened.read(len(header)) != header:
                raise ValueError(f"{file.name} is not {dtype} of shape {shape}")

    def _path(self, name: str) -> Path:
        file = self._files[name]["file"]
        if not _is_plain(file):
            raise ValueError(f"the file of {name} is {file!r}, not a name ending in .npy")
        return self._folder / file

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
            path = self._path(name)
            array = np.load(path, mmap_mode="r") if math.prod(shape) else np.empty(shape, dtype)
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
                    read_slice(self._path(name), out, piece.start, shape, entry["sums"])
                except OSError as error:
                    raise self.error(error) from None
