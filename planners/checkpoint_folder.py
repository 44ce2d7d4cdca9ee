"""The folder that checkpoints are kept in: whose it is, the names in it, its room on the disk.

It is for checkpoints alone.  The file ``lock`` says so, and is held by who keeps a run there.  A
folder with other things in it is refused, as their names may be those of our files.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from aggmaze.files import DAMAGED
from aggmaze.memory import size_in_words
from planners.slices import (
    check_place,
    header_of,
    is_temporary,
    lock,
    move_head,
    plain,
    read_head,
    reserve,
    sync_folder,
)

_FORMAT = "aggmaze checkpoint 1"
#: The two checkpoints of a folder.
LETTERS = ("a", "b")
_HEADS = tuple(f"{letter}.json" for letter in LETTERS)
_LOCK, _LOCK_TEXT = "lock", b"aggmaze checkpoints\n"
# Beside the arrays over the states: what heads, histories and mega-states take, roughly.
_ROOM_BESIDES = 1 << 20


class CheckpointFolder:
    """A folder for two checkpoints, each of some arrays and a head.

    Parameters
    ----------
    path : path-like

    Attributes
    ----------
    name : str
        As messages call it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = repr(os.fspath(path))
        # Wherever the program goes meanwhile.
        self._folder = Path(path).absolute()
        self._lock: IO[bytes] | None = None

    @property
    def refusal(self) -> str:
        """How errors begin that say why nothing can be kept."""
        return f"no checkpoint can be kept in {self.name}"

    def check(self) -> None:
        """Refuse a folder that cannot be made or written to, or holds other things.

        Raises
        ------
        OSError
        """
        check_place(self._folder, self.refusal)
        if not self._folder.is_dir():
            return
        entries = {entry.name for entry in self._folder.iterdir()}
        lock_file = self._folder / _LOCK
        if lock_file.is_file():
            with lock_file.open("rb") as file:
                text = file.read(len(_LOCK_TEXT))
            if text == _LOCK_TEXT:
                return
            if not text:  # who made it was killed then, if there is nothing else
                entries.remove(_LOCK)
        if entries and all(read_head(self._folder / head, _FORMAT) is None for head in _HEADS):
            raise FileExistsError(
                f"{self.refusal}: it holds other things, such as {min(entries)!r}"
            )

    def take(self) -> None:
        """Make the folder, and take it for one run alone.

        Raises
        ------
        OSError
            If that cannot be done, the folder holds other things, or another run has it.
        """
        folder = self._folder
        self.check()
        folder.mkdir(exist_ok=True)
        self._lock = (folder / _LOCK).open("ab", buffering=0)
        if not lock(self._lock.fileno()):
            raise OSError(f"another run keeps its checkpoints in {self.name}")
        if self._lock.tell() == 0:
            self._lock.write(_LOCK_TEXT)
        for entry in folder.iterdir():
            if is_temporary(entry.name, _HEADS):
                entry.unlink()

    def release(self) -> None:
        """Let other runs have the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def array(self, letter: str, name: str) -> Path:
        """Return the file of an array of a checkpoint.

        Parameters
        ----------
        letter : str
            Of the checkpoint.
        name : str
            Of the array.
        """
        return self._folder / f"{letter}-{name}.npy"

    def _head(self, letter: str) -> Path:
        return self._folder / f"{letter}.json"

    def take_room(self, arrays: Mapping[str, str], count: int) -> None:
        """Have the disk keep room for arrays over the states, of two checkpoints.

        Parameters
        ----------
        arrays : mapping of str to str
            Data types by name.
        count : int
            States.

        Raises
        ------
        OSError
            If there is no room.
        """
        needed = _ROOM_BESIDES
        for letter in LETTERS:
            for name, dtype in arrays.items():
                size = len(header_of(dtype, (count,))) + np.dtype(dtype).itemsize * count
                needed += max(0, size - _room_of(self.array(letter, name)))
        free = shutil.disk_usage(self._folder).free
        if needed > free:
            raise OSError(
                f"there is no room for checkpoints in {self.name}: two of them take "
                f"{size_in_words(needed)} more, and {size_in_words(free)} is free"
            )
        made = []
        try:
            for letter in LETTERS:
                # One that holds has its files, or is the damaged one that this run does not need.
                if not self._head(letter).exists():
                    for name, dtype in arrays.items():
                        made.append(self.array(letter, name))
                        reserve(made[-1], dtype, (count,))
        except OSError:
            for path in made:
                path.unlink(missing_ok=True)
            raise

    def clear(self) -> None:
        """Remove both checkpoints."""
        self.forget(*LETTERS)
        for letter in LETTERS:
            for path in self._folder.glob(f"{letter}-*.npy"):
                path.unlink()

    def forget(self, *letters: str) -> None:
        """Take away the heads of checkpoints, which are none from then on."""
        for letter in letters:
            self._head(letter).unlink(missing_ok=True)
        sync_folder(self._folder)

    def heads(self) -> dict[str, dict[str, Any]]:
        """Return the heads that there are, by their letters; of a damaged one what is wrong."""
        found = {}
        for letter in LETTERS:
            path = self._head(letter)
            if path.exists():
                try:
                    found[letter] = _checked(json.loads(path.read_text(encoding="utf-8")))
                except DAMAGED as error:
                    found[letter] = {"damage": f"{str(path)!r} is no head of one: {error}"}
        return found

    def write_head(self, letter: str, head: Mapping[str, Any]) -> None:
        """Make arrays that are on the disk a checkpoint.

        Parameters
        ----------
        letter : str
        head : mapping
            What JSON can say.
        """
        whole = {"format": _FORMAT, **head}
        move_head(self._head(letter), {**whole, "sum": _sum_of(whole)})


def _sum_of(head: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(head, default=plain).encode())


def _checked(head: dict[str, Any]) -> dict[str, Any]:
    """Return a head as it was written, or raise."""
    if head["format"] != _FORMAT:
        raise ValueError(f"its format is {head['format']!r}")
    if head.pop("sum", None) != _sum_of(head):
        raise ValueError("it is not as it was written")
    return head


def _room_of(path: Path) -> int:
    """Return the bytes that a file takes on the disk, 0 where there is none."""
    if not path.exists():
        return 0
    found = path.stat()
    blocks: int | None = getattr(found, "st_blocks", None)  # not on every system
    return found.st_size if blocks is None else 512 * blocks
