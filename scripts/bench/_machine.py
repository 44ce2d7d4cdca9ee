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
    info = Path("/proc/cpuinfo")
    cpu = re.search(r"^model name\s*: (.+)$", info.read_text() if info.exists() else "", re.M)
    return {
        "processor": cpu[1] if cpu else platform.processor() or platform.machine(),
        "processors": str(os.cpu_count()),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "aggmaze": aggmaze.__version__,
    }


def machine_line() -> str:
    """Return the same in one line."""
    return ", ".join(f"{name} {value}" for name, value in machine().items())
