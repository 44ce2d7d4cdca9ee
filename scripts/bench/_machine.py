"""The machine and the versions that a measurement was made with."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numba
import numpy as np
import scipy

import aggmaze


def machine() -> dict[str, str]:
    """Return processor, cores, system and versions."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip()
            for line in info.read_text().splitlines()
            if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    return {
        "processor": cpu,
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
