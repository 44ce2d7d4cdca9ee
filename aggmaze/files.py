"""Files: written whole or not at all, and read with one error for whatever is wrong with them."""

from __future__ import annotations

import lzma
import os
import secrets
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

# What an error repeats of a file, which may hold a number of a million digits.
_MOST_WORDS = 400
# What reading damaged contents may raise, in numpy, zipfile and json.
DAMAGED = (
    ValueError,
    TypeError,
    AttributeError,
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    Warning,
    struct.error,
    tokenize.TokenError,
    lzma.LZMAError,
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file beside ``path``, and move it there if nothing goes wrong."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {str(target.parent)!r} to write {target.name!r} to"
        )
    # A new file by open(), which gives it the permissions that any file of the user's gets; those
    # of tempfile are private, and to read the umask is to change it for every thread.
    temporary = target.parent / f".{target.name}.{secrets.token_hex(8)}"
    try:
        with temporary.open("xb") as file:
            yield file
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def readable_file(path: str | os.PathLike[str], content: str) -> Iterator[IO[bytes]]:
    """Open a file, and turn whatever is wrong with what it holds into one error.

    Parameters
    ----------
    path : path-like
    content : str
        What the file should be: "a saved model".

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        If that is what is there.
    ValueError
        In one line that names the file, if the block under ``with`` cannot make sense of it.
    """
    source, name = Path(path), repr(os.fspath(path))
    if source.is_dir():
        raise IsADirectoryError(f"{name} is a directory, not {content}")
    if not source.exists():
        raise FileNotFoundError(f"there is no file {name}")
    if not source.is_file():
        raise ValueError(f"{name} is not {content}: it is not an ordinary file")
    with source.open("rb") as file:
        try:
            yield file
        except DAMAGED as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            if len(reason) > _MOST_WORDS:
                reason = f"{reason[:_MOST_WORDS]}..."
            raise ValueError(f"{name} is not {content}: {reason}") from None
