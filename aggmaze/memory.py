"""Memory that is asked for before it is taken, so that a machine refuses what it cannot hold."""

from __future__ import annotations

import os
from pathlib import Path

# Where Linux says what is free, and what a control group (a container, a batch job) may take.
_MEMINFO = Path("/proc/meminfo")
_OWN_GROUPS = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


def check_memory(needed_bytes: int, what: str) -> None:
    """Refuse what takes more memory than is available.

    Parameters
    ----------
    needed_bytes : int
        Bytes that are about to be allocated.
    what : str
        What needs them, as the plural subject of a sentence: "transitions of 400 states".

    Raises
    ------
    MemoryError
        If fewer bytes are available.  Where the system does not tell, nothing is refused.
    """
    available = available_memory()
    if available is not None and needed_bytes > available:
        raise MemoryError(
            f"{what} need {size_in_words(needed_bytes)}, {size_in_words(available)} of memory is "
            "available"
        )


def available_memory() -> int | None:
    """Return the bytes that this process can still take without swapping, None if unknown.

    On Linux what the kernel deems available, or what the control groups of the process leave if
    that is less; elsewhere the memory of the machine, where the system tells.
    """
    limits = [room for room in (_free_in_system(), *_free_in_groups()) if room is not None]
    return min(limits, default=None)


def _free_in_system() -> int | None:
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
    return size if size > 0 else None


def _free_in_groups() -> list[int]:
    """Return what each limited control group of this process and those around it leave."""
    try:
        entries = [line.split(":", 2) for line in _OWN_GROUPS.read_text().splitlines()]
    except OSError:
        return []
    rooms = []
    for _, controllers, own in (entry for entry in entries if len(entry) == 3):
        if controllers == "":
            root, most, used = _GROUPS, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            root = _GROUPS / "memory"
            most, used = "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        group = Path(os.path.normpath(f"{root}/{own}"))
        for folder in (group, *group.parents):
            if folder.is_relative_to(root):
                room = _free_in_group(folder, most, used)
                rooms += [] if room is None else [room]
    return rooms


def _free_in_group(folder: Path, most: str, used: str) -> int | None:
    try:
        limit = int((folder / most).read_text())
        usage = int((folder / used).read_text())
        counts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        # Files that were read long ago count as used and are dropped when memory is needed.
        reclaimable = int(counts.get("total_inactive_file", counts.get("inactive_file", "0")))
    except (OSError, ValueError):
        return None  # no such group in this mount, or no limit, which reads "max"
    return max(0, limit - usage + reclaimable)


def size_in_words(count: int) -> str:
    """Format a number of bytes, as 3.2 GB."""
    size, units = float(count), ["bytes", "kB", "MB", "GB", "TB", "PB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:,.1f} {units[0]}" if units[0] != "bytes" else f"{count} bytes"
