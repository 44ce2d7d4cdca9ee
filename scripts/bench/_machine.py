"""The machine and the versions that a measurement was made with."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

import numba
import numpy as np
import scipy

import aggmaze


def machine() -> dict[str, str]:
    """Return processor, cores, system and versions."""
    return {
        "processor": processor(),
        "processors": str(os.cpu_count()),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "aggmaze": aggmaze.__version__,
    }


def processor() -> str:
    """Return make and model of the processor; clouds give it a name that says little."""
    info = Path("/proc/cpuinfo")
    text = info.read_text() if info.exists() else ""
    found = dict(re.findall(r"^([a-z_ ]+?)\s*: (.+)$", text.partition("\n\n")[0], re.M))
    if "model name" not in found:
        return platform.processor() or platform.machine()
    numbers = ("vendor_id", "cpu family", "model", "stepping")
    return f"{found['model name']} ({', '.join(f'{n} {found[n]}' for n in numbers if n in found)})"


def machine_line() -> str:
    """Return the same in one line."""
    return ", ".join(f"{name} {value}" for name, value in machine().items())
