"""Arrays in files that several processes write and read together, each its own slice.

An array over the states of a model is one ``.npy`` file of the shape of all of them.  Whoever holds
the states from ``lo`` to ``hi`` writes them where they belong, and reads them from there, be it one
process or many, as many as wrote the file or others.  Nothing else than a file system that all of
them see is needed, and numpy reads the file too, or maps it into memory.

What was written is told by checksums of pieces, which the writers hand on, so that a file that was
torn, in a crash of the machine, is not taken for a whole one.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import re
import secrets
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from aggmaze.files import DAMAGED
from planners.engine import Parts

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")

# What file systems say that cannot do what they are asked to.
_NOT_THERE = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS)

# Entries of a piece, which has a checksum of its own and is in memory at once.
_PIECE = 1 << 21

#: Pieces of an array: from which entry on, to which, and the checksum.
Sums = list[list[int]]


@dataclass(frozen=True)
class Share:
    """The states of one process among those of all.

    Parameters
    ----------
    parts : Parts
        The processes.
    lo, hi : int
        The states of this one, from ``lo`` to ``hi - 1``.
    num_states : int
        Those of all.
    """

    parts: Parts
    lo: int
    hi: int
    num_states: int

    @classmethod
    def of(cls, parts: Parts, count: int) -> Share:
        """Return the share of a process that holds so many states."""
        if parts.size == 1:
            return cls(parts, 0, count, count)
        counts = parts.gathered(np.array([count], dtype=np.int64))
        lo = int(counts[: parts.rank].sum())
        return cls(parts, lo, lo + count, int(counts.sum()))

    @property
    def leads(self) -> bool:
        """Whether this process does what one of them has to do for all."""
        return self.parts.rank == 0

    def together(self, action: Callable[[], T]) -> T:
        """Do something in each process, and return when all have done it.

        Parameters
        ----------
        action : callable
            Meets no other process.

        Raises
        ------
        BaseException
            In all processes the same, where one of them could not do it.
        """
        return self.parts.together(action)

    def first(self, action: Callable[[], object]) -> None:
        """Do something in one process, and return when it has done it.

        Raises
        ------
        BaseException
            In all processes the same, where it could not.
        """
        self.together(lambda: action() if self.leads else None)

    def told(self, value: Any) -> Any:
        """Return in each process what the first one gives.

        Parameters
        ----------
        value : object
            What JSON can say; not looked at in the other processes.
        """
        if self.parts.size == 1:
            return value
        text = json.dumps(value).encode() if self.leads else b""
        return json.loads(self.parts.gathered(np.frombuffer(text, dtype=np.uint8)).tobytes())


def header_of(dtype: DTypeLike, shape: tuple[int, ...]) -> bytes:
    """Return what stands before the entries in a ``.npy`` file.

    Parameters
    ----------
    dtype : dtype_like
    shape : tuple of int
    """
    text = io.BytesIO()
    npy.write_array_header_1_0(
        text,
        {"descr": npy.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape},
    )
    return text.getvalue()


def reserve(path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> None:
    """Make a file for an array, with room on the disk for all of it; one that is there may stay.

    Parameters
    ----------
    path : Path
    dtype : dtype_like
    shape : tuple of int

    Raises
    ------
    OSError
        If there is no room, or the file cannot be written.
    """
    header = header_of(dtype, shape)
    size = len(header) + np.dtype(dtype).itemsize * math.prod(shape)
    with path.open("r+b" if path.exists() else "x+b") as file:
        if os.fstat(file.fileno()).st_size != size:
            file.truncate(size)
        file.write(header)
        file.flush()
        _take_room(file.fileno(), size)


def _take_room(descriptor: int, size: int) -> None:
    """Have the disk keep room for a file; where it cannot do that, it is taken by the writing."""
    allocate = getattr(os, "posix_fallocate", None)  # not on every system
    if allocate is None:
        return
    try:
        allocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise


def write_slice(path: Path, part: NDArray[Any], first: int, shape: tuple[int, ...]) -> Sums:
    """Write entries of an array where they belong, and return when they are on the disk.

    Parameters
    ----------
    path : Path
        Made by `reserve`.
    part : ndarray of one axis
    first : int
        Number of its first entry in the whole array.
    shape : tuple of int
        Of the whole array.

    Returns
    -------
    list of [int, int, int]
        The pieces.
    """
    start, width = len(header_of(part.dtype, shape)), part.dtype.itemsize
    part = np.ascontiguousarray(part)
    sums: Sums = []
    with path.open("r+b", buffering=0) as file:
        file.seek(start + first * width)
        for lo in range(0, len(part), _PIECE):
            piece = part[lo : lo + _PIECE].view(np.uint8).data
            sums.append([first + lo, first + min(lo + _PIECE, len(part)), zlib.crc32(piece)])
            while len(piece):
                piece = piece[file.write(piece) :]
        os.fsync(file.fileno())
    return sums


def read_slice(
    path: Path, out: NDArray[Any], first: int, shape: tuple[int, ...], sums: Sums
) -> None:
    """Read entries of an array into ``out``, and refuse them if they are not what was written.

    Parameters
    ----------
    path : Path
    out : ndarray of one axis
        Receives the entries.
    first : int
        Number of its first entry in the whole array.
    shape : tuple of int
        Of the whole array.
    sums : list of [int, int, int]
        The pieces, of all who wrote.

    Raises
    ------
    OSError
        If a piece is missing, or its checksum is another one.
    """
    header, width = header_of(out.dtype, shape), out.dtype.itemsize
    with path.open("rb", buffering=0) as file:
        if _read(file, len(header)) != header:
            raise OSError(f"{str(path)!r} is no {out.dtype} of shape {shape}")
        place = first
        for lo, hi, checksum in sorted(sums):
            if hi <= first or lo >= first + len(out):
                continue
            if lo > place:
                break
            file.seek(len(header) + lo * width)
            piece = _read(file, (hi - lo) * width)
            if len(piece) != (hi - lo) * width or zlib.crc32(piece) != checksum:
                raise OSError(f"{str(path)!r} is damaged: the entries {lo:,} to {hi - 1:,} changed")
            entries = np.frombuffer(piece, dtype=out.dtype)
            begin, end = max(lo, first), min(hi, first + len(out))
            out[begin - first : end - first] = entries[begin - lo : end - lo]
            place = hi
        if place < first + len(out):
            raise OSError(f"{str(path)!r} is damaged: the entries from {place:,} on are missing")


def _read(file: io.FileIO, count: int) -> bytearray:
    """Return so many bytes, or those that there are."""
    data = bytearray(count)
    view, done = memoryview(data), 0
    while done < count:
        got = file.readinto(view[done:])
        if not got:
            break
        done += got
    view.release()
    del data[done:]
    return data


def gathered_sums(share: Share, sums: Sums) -> Sums:
    """Return the pieces that all processes wrote.

    Parameters
    ----------
    share : Share
    sums : Sums
        Those of this process.
    """
    flat = share.parts.gathered(np.array(sums, dtype=np.int64).reshape(-1, 3))
    return flat.tolist()


def move_head(path: Path, head: dict[str, Any]) -> None:
    """Write the text that makes files a whole, and move it into place when it is on the disk.

    Parameters
    ----------
    path : Path
    head : dict
        What JSON can say.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("x", encoding="utf-8") as file:
            json.dump(head, file, indent=1, default=plain)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def plain(number: Any) -> Any:
    """Turn a number of numpy's into one of Python's, for JSON."""
    return number.item()


def is_temporary(name: str, heads: tuple[str, ...]) -> bool:
    """Return whether a file is what `move_head` left that was killed, of one of these heads.

    Parameters
    ----------
    name : str
        Of the file.
    heads : tuple of str
        Names of heads.
    """
    match = re.fullmatch(r"\.(.+)\.[0-9a-f]{16}", name)
    return match is not None and match[1] in heads


def read_head(path: Path, form: str) -> dict[str, Any] | None:
    """Return what a head says, and None where there is none of that format.

    Parameters
    ----------
    path : Path
    form : str
        What its ``format`` says.
    """
    try:
        head: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return head if head["format"] == form else None
    except DAMAGED:
        return None


def open_folder(folder: Path) -> int | None:
    """Return a descriptor of a folder, None on systems that open none, such as Windows."""
    flag = getattr(os, "O_DIRECTORY", None)
    return None if flag is None else os.open(folder, os.O_RDONLY | flag)


def sync_folder(folder: Path) -> None:
    """Return when what a folder lists is on the disk, where the system can be asked for that."""
    descriptor = open_folder(folder)
    if descriptor is None:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise
    finally:
        os.close(descriptor)


def lock(descriptor: int) -> bool:
    """Take an open file or folder until it is closed; return False where another process has it.

    Where the system or the file system has no locks, no other process has it.
    """
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass
    return True


def check_place(folder: Path, refusal: str) -> None:
    """Refuse a folder that cannot be made or written to.

    Parameters
    ----------
    folder : Path
    refusal : str
        How the error begins.

    Raises
    ------
    FileNotFoundError, FileExistsError, PermissionError
    """
    parent = folder.absolute().parent
    if not parent.is_dir():
        raise FileNotFoundError(
            f"{refusal}: there is no folder {str(folder.parent)!r} to make it in"
        )
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{refusal}: it is a file, and a folder is written")
    if not os.access(folder if folder.exists() else parent, os.W_OK | os.X_OK):
        raise PermissionError(f"{refusal}: it cannot be written to")


def slices_of(num_entries: int) -> Iterator[slice]:
    """Return slices that cover an array, each of the length of a piece at most."""
    return (slice(lo, min(lo + _PIECE, num_entries)) for lo in range(0, num_entries, _PIECE))
