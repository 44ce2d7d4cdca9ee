"""What a library's solver returned, in the benchmark's terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """Costs-to-go and what is known about them.

    Parameters
    ----------
    values : callable
        Returns costs-to-go, shape (S,); called when the clock has stopped, since some libraries
        hand them over one by one.
    iterations : int, optional
    bound : float, optional
        Error that the library itself vouches for.
    note : str
    """

    values: Callable[[], Any]
    iterations: int | None = None
    bound: float | None = None
    note: str = ""


#: Called with a variant of the peer, and the accuracy absolute and relative to the largest value.
Solve = Callable[[dict[str, Any], float, float], Outcome]
