"""Compressed bytes from strangers, taken piece by piece and no further than they may go."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Iterator
from typing import IO

from aggmaze.memory import check_memory
from aggmaze.progress import report_bytes

# What may come of a byte: as much as deflate can make, so that xz, which can do more, is no bomb.
_MOST_EXPANSION = 1032
_PIECE = 2**20
# What xz may ask for to unpack; its strongest preset takes 65 MB.
_XZ_MEMORY = 2**28
_MAGIC = {b"\x1f\x8b": "gzip", b"\xfd7": "xz", b"BZ": "bzip2"}


class Stream:
    """The bytes of a file, unpacked as they are asked for if it is compressed.

    Parameters
    ----------
    file : binary file
        Open at its beginning; gzip, xz, bzip2 or neither, as its first bytes say.

    Raises
    ------
    ValueError, EOFError, OSError, lzma.LZMAError, zlib.error
        In `read` and `skip`, if more than 1032 bytes come of one, or they are damaged.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file_size = file.seek(0, os.SEEK_END)
        file.seek(0)
        self.compression = _MAGIC.get(file.read(2), "")
        file.seek(0)
        self.most = self.file_size * (_MOST_EXPANSION if self.compression else 1)
        self._file = file
        self._pieces = _pieces(file, self.compression)
        self._rest = b""
        self._taken = 0

    def read(self, count: int) -> bytes:
        """Return so many bytes, or fewer at the end.

        Parameters
        ----------
        count : int
            The caller has checked that there is memory for them.
        """
        parts: list[bytes] = []
        while count > 0 and self._fill():
            part, self._rest = self._rest[:count], self._rest[count:]
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def skip(self, count: int) -> int:
        """Pass over so many bytes, and return how many there were."""
        passed = 0
        while passed < count and self._fill():
            step = min(count - passed, len(self._rest))
            self._rest = self._rest[step:]
            passed += step
        return passed

    def _fill(self) -> bool:
        if not self._rest:
            self._rest = next(self._pieces, b"")
            self._taken += len(self._rest)
            report_bytes(self._file.tell(), self.file_size)
            if self._taken > self.most:
                raise ValueError(f"it unpacks to more than {self.most:,} bytes: it is refused")
        return bool(self._rest)


def _pieces(file: IO[bytes], compression: str) -> Iterator[bytes]:
    if compression in ("", "gzip"):
        source: IO[bytes] | gzip.GzipFile
        source = gzip.GzipFile(fileobj=file) if compression else file
        while piece := source.read(_PIECE):
            yield piece
        return
    unpack: lzma.LZMADecompressor | bz2.BZ2Decompressor
    unpack = (
        lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
        if compression == "xz"
        else (bz2.BZ2Decompressor())
    )
    while not unpack.eof:
        packed = file.read(_PIECE) if unpack.needs_input else b""
        if unpack.needs_input and not packed:
            raise EOFError("it ends within its compressed data")
        if piece := unpack.decompress(packed, _PIECE):
            yield piece


def read_text(file: IO[bytes], what: str, copies: float) -> str:
    """Return all the text of a file, compressed or not.

    Parameters
    ----------
    file : binary file
    what : str
        What needs memory, as for `check_memory`.
    copies : float
        Bytes that the caller takes for each byte of the text, the text included.

    Raises
    ------
    ValueError
        If it is not text in UTF-8, or more than 1032 bytes come of one.
    MemoryError
        If it takes more memory than is available.
    """
    stream = Stream(file)
    check_memory(int(copies * stream.file_size), what)
    pieces: list[bytes] = []
    total = 0
    while piece := stream.read(_PIECE):
        pieces.append(piece)
        total += len(piece)
        if stream.compression and len(pieces) % 16 == 0:
            check_memory(int(copies * total), what)
    check_memory(int(copies * total), what)
    data = b"".join(pieces)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line}: it is no text in UTF-8") from None
