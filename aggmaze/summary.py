"""Objects in one line: how they are shown where they hold arrays."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp


def in_one_line(value: Any) -> str:
    """Return the ``repr`` of a dataclass in which arrays are told by their type and shape."""
    parts = (f"{field.name}={_short(getattr(value, field.name))}" for field in fields(value))
    return f"{type(value).__name__}({', '.join(parts)})"


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<{value.dtype} {value.shape}>"
    if isinstance(value, sp.csr_array):
        return f"<{value.dtype} {value.shape}, {value.nnz} stored>"
    return repr(value)
