"""Archives of arrays, which are read with distrust.

An archive is an ``.npz`` file, which numpy reads too: arrays without pickle, and a JSON text named
``header`` that says what the file holds.  The sizes that an archive declares are checked against
each other, the file and the machine before an array is allocated.
"""

from __future__ import annotations

import json
import math
import os
import struct
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from aggmaze.files import atomic_file, readable_file
from aggmaze.memory import check_memory
from aggmaze.progress import Counted

# What archives hold, by the format in their header.
_CONTENTS = {
    "aggmaze model 1": "a saved model",
    "aggmaze result 1": "a saved result",
    "aggmaze certificate 1": "a certificate",
    "aggmaze exploration 1": "an unfinished exploration",
}
# Level 1 takes a quarter of the time of zlib's default, and files are hardly larger.
_COMPRESSION_LEVEL = 1
# Deflate cannot make data shorter than this.
_MOST_COMPRESSION = 1032
_MOST_HEADER_BYTES = 2**20
# Bytes of the fixed part of what stands before a member of a zip file.
_MEMBER_HEADER = 30
_MOST_DECLARATION = 1000
#: Names of the data types that an array may have, and its shape.
Expected = tuple[tuple[str, ...], tuple[int, ...]]


def write_archive(
    path: str | os.PathLike[str],
    file_format: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write numbers and arrays to an archive, whole or not at all.

    The same content makes the same bytes.

    Parameters
    ----------
    path : path-like
    file_format : str
        One of those that archives have.
    header : mapping
        Numbers and texts.
    arrays : mapping
        Arrays by their names.
    """
    with (
        atomic_file(path) as file,
        zipfile.ZipFile(
            file, "w", zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION_LEVEL
        ) as archive,
    ):
        total, done = sum(array.nbytes for array in arrays.values()), 0
        for name, array in {"header": _header(file_format, header), **arrays}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                counted = Counted(member, total, done)
                npy.write_array(counted, array, allow_pickle=False)
            done += array.nbytes


class Pieces(NamedTuple):
    """An array that is written piece by piece, and never there as a whole.

    Parameters
    ----------
    dtype : numpy.dtype
    shape : tuple of int
    pieces : iterable of ndarray
        Along the first axis, in order.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    pieces: Iterable[NDArray[Any]]


def write_mappable(
    path: str | os.PathLike[str],
    file_format: str,
    arrays: Mapping[str, Pieces],
    header: Callable[[], Mapping[str, Any]],
) -> None:
    """Write arrays, and then numbers, to an archive that is not compressed, whole or not at all.

    `Archive.mapped` reads any part of its arrays alone.

    Parameters
    ----------
    path : path-like
    file_format : str
        One of those that archives have.
    arrays : mapping
        Arrays by their names, written in this order.
    header : callable
        Returns numbers and texts, once all arrays are written.

    Raises
    ------
    ValueError
        If the pieces of an array are not as many numbers as its shape.
    """
    total = sum(dtype.itemsize * math.prod(shape) for dtype, shape, _ in arrays.values())
    done = 0
    with atomic_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, (dtype, shape, pieces) in arrays.items():
            declared = {
                "descr": npy.dtype_to_descr(dtype),
                "fortran_order": False,
                "shape": shape,
            }
            count = 0
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array_header_1_0(member, declared)
                counted = Counted(member, total, done)
                for piece in pieces:
                    count += piece.size
                    counted.write(np.ascontiguousarray(piece, dtype=dtype).tobytes())
            done = counted.done
            if count != math.prod(shape):
                raise ValueError(f"{name} of shape {shape} came in {count:,} numbers")
        with archive.open("header.npy", "w") as member:
            npy.write_array(member, _header(file_format, header()), allow_pickle=False)


def _header(file_format: str, header: Mapping[str, Any]) -> NDArray[np.str_]:
    return np.array(json.dumps({"format": file_format, **header}))


@contextmanager
def open_archive(
    path: str | os.PathLike[str], file_format: str, *, bare: Collection[str] = ()
) -> Iterator[Archive]:
    """Open an archive of the given format, and close it at the end of the block.

    Parameters
    ----------
    path : path-like
    file_format : str
    bare : collection of str
        Arrays, each of which stands for the header in archives of other programs.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        If that is what is there.
    ValueError
        In one line that names the file, if it is no such archive, damaged, or the block under
        ``with`` refuses what it holds.
    """
    with (
        readable_file(path, _CONTENTS[file_format]) as file,
        zipfile.ZipFile(file) as members,
    ):
        size = file.seek(0, os.SEEK_END)
        archive = Archive(members, size, f"the arrays of {os.fspath(path)!r}")
        if "header" in archive or not any(name in archive for name in bare):
            archive.read_header(file_format)
        yield archive


def check_scalar(header: Mapping[str, Any], name: str, kind: type) -> Any:
    """Return a number or text of a header, and refuse one of another type than expected.

    Parameters
    ----------
    header : mapping
    name : str
    kind : {float, int, str}
    """
    if name not in header:
        raise ValueError(f"{name} is missing")
    value = header[name]
    if isinstance(value, bool) or not isinstance(value, (float, int) if kind is float else kind):
        raise ValueError(f"{name} is {value!r}, not of type {kind.__name__}")
    return value


class Archive:
    """The arrays of an open archive, none of which is allocated before its size is checked.

    Made by `open_archive`; every method raises one of the errors of
    `aggmaze.files.DAMAGED` where the archive is
    not what it should be, and `open_archive` adds the name of the file.

    Parameters
    ----------
    members : zipfile.ZipFile
    file_size : int
        In bytes.
    what : str
        What needs memory, as for `check_memory`.
    """

    def __init__(self, members: zipfile.ZipFile, file_size: int, what: str) -> None:
        self._zip, self._file_size, self._what = members, file_size, what
        self._members = {info.filename: info for info in members.infolist()}
        self._header: dict[str, Any] = {}

    def read_header(self, file_format: str) -> None:
        """Read the header, which names the format."""
        header = json.loads(self.text("header"))
        found = header.get("format") if isinstance(header, dict) else None
        if found != file_format:
            other = _CONTENTS.get(found) if isinstance(found, str) else None
            reason = f"it is {other}; its" if other is not None else "its"
            raise ValueError(f"{reason} format is {found!r}, not {file_format!r}")
        self._header = header

    def __contains__(self, name: str) -> bool:
        return f"{name}.npy" in self._members

    def scalar(self, name: str, kind: type) -> Any:
        """Return a number or text of the header, of type ``float``, ``int`` or ``str``.

        Parameters
        ----------
        name : str
        kind : {float, int, str}
        """
        return check_scalar(self._header, name, kind)

    def has_scalar(self, name: str) -> bool:
        """Return whether the header has a number or text of this name."""
        return name in self._header

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all members that may be arrays."""
        return tuple(name.removesuffix(".npy") for name in self._members if name.endswith(".npy"))

    @property
    def has_header(self) -> bool:
        """Whether it is of a format of ours."""
        return bool(self._header)

    def mapped(self, name: str, dtypes: tuple[str, ...], shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array of which no more is read than what is asked for, read-only.

        Slices are to be copied before compiled code takes them: they need not be aligned.

        Parameters
        ----------
        name : str
        dtypes : tuple of str
            Names of the data types that it may have.
        shape : tuple of int
            That it must have.
        """
        dtype, declared = self._declared(name)
        info = self._members[f"{name}.npy"]
        if info.compress_type != zipfile.ZIP_STORED:
            raise ValueError(
                f"{name} is compressed, so that no part of it can be read alone: load_model reads "
                "the whole file, and save_rows writes one that can be read in parts"
            )
        if dtype.name not in dtypes or declared != shape:
            raise ValueError(
                f"{name} is {dtype} of shape {declared}, not {' or '.join(dtypes)} of shape {shape}"
            )
        file = self._zip.fp
        assert file is not None
        file.seek(info.header_offset)
        # The lengths of a name and of what follows it end the fixed part of a member's header.
        lengths = struct.unpack("<HH", file.read(_MEMBER_HEADER)[-4:])
        start = info.header_offset + _MEMBER_HEADER + sum(lengths)
        file.seek(start)
        npy.read_magic(file)
        npy.read_array_header_1_0(file, max_header_size=_MOST_DECLARATION)
        if 0 in shape:
            return np.empty(shape, dtype=dtype)
        return np.memmap(file.name, dtype=dtype, mode="r", offset=file.tell(), shape=shape)

    def text(self, name: str) -> str:
        """Return an array that is one short text."""
        dtype, shape = self._declared(name)
        if dtype.kind != "U" or shape != () or dtype.itemsize > _MOST_HEADER_BYTES:
            raise ValueError(f"{name} is {dtype} of shape {shape}, not one short text")
        return str(self._array(name))

    def shape(self, name: str, *num_axes: int) -> tuple[int, ...]:
        """Return the shape that an array declares, with one of the given numbers of axes.

        Parameters
        ----------
        name : str
        *num_axes : int
        """
        _, shape = self._declared(name)
        if len(shape) not in num_axes:
            allowed = " or ".join(map(str, num_axes))
            raise ValueError(f"{name} has shape {shape}, not one of {allowed} axes")
        return shape

    def read(
        self,
        expected: Mapping[str, Expected],
        *,
        copies: float = 1.0,
        besides: Collection[str] = ("header",),
    ) -> dict[str, NDArray[Any]]:
        """Return the arrays of the archive, which are exactly those expected.

        Parameters
        ----------
        expected : mapping
            Data types and shape of each array.
        copies : float
            How many times the memory of the arrays the caller takes, with what it makes of them.
        besides : collection of str
            What there may be as well, read otherwise.

        Raises
        ------
        ValueError
            If there are others, or one has another data type or shape, or is damaged.
        MemoryError
            If that is more memory than is available.
        """
        names = {f"{name}.npy" for name in (*besides, *expected)}
        for member in self._members:
            if member not in names:
                raise ValueError(f"it holds {member!r}, which does not belong there")
        needed = 0
        for name, (dtypes, shape) in expected.items():
            dtype, declared = self._declared(name)
            if dtype.name not in dtypes or declared != shape:
                raise ValueError(
                    f"{name} is {dtype} of shape {declared}, not {' or '.join(dtypes)} of shape "
                    f"{shape}"
                )
            needed += dtype.itemsize * math.prod(shape)
        check_memory(math.ceil(copies * needed), self._what)
        found: dict[str, NDArray[Any]] = {}
        done = 0
        for name in expected:
            found[name] = self._array(name, needed, done)
            done += found[name].nbytes
        return found

    def _declared(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Return the data type and shape that a member declares, if they fit its size."""
        if name not in self:
            raise ValueError(f"{name} is missing")
        info = self._members[f"{name}.npy"]
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} is compressed by method {info.compress_type}, not deflate")
        most = min(info.compress_size, self._file_size) * _MOST_COMPRESSION
        if info.file_size > most:
            raise ValueError(f"{name} declares {info.file_size:,} bytes, at most {most:,} can be")
        with self._zip.open(info) as member, warnings.catch_warnings():
            # Such as that an old Python wrote it, for numbers that end in L.
            warnings.simplefilter("error")
            version = npy.read_magic(member)
            if version != (1, 0):
                raise ValueError(f"{name} has version {version} of numpy's format, not (1, 0)")
            shape, _, dtype = npy.read_array_header_1_0(member, max_header_size=_MOST_DECLARATION)
            start = member.tell()
        if dtype.hasobject:
            raise ValueError(f"{name} holds Python objects, not numbers")
        if min(shape, default=0) < 0 or info.file_size != start + dtype.itemsize * math.prod(shape):
            raise ValueError(
                f"{name} is {dtype} of shape {shape}, which {info.file_size:,} bytes do not hold"
            )
        return dtype, shape

    def _array(self, name: str, total: int = 0, done: int = 0) -> NDArray[Any]:
        """Return an array as this machine stores them; call `_declared` before.

        What is read is reported as part of a number of bytes, if one is given.
        """
        with self._zip.open(self._members[f"{name}.npy"]) as member:
            source: Any = Counted(member, total, done) if total else member
            array = npy.read_array(source, allow_pickle=False, max_header_size=_MOST_DECLARATION)
        if array.dtype.kind == "b" and (array.view(np.uint8) > 1).any():
            raise ValueError(f"{name} holds other bytes than 0 and 1")
        # order="C" keeps arrays without axes as they are.
        return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
