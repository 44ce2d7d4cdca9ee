"""What models of random events are made of: compiled functions, and distributions by row."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.arrays import lock, own
from aggmaze.formats.tables import without_rounding
from aggmaze.models.rows import ROW_SUM_TOLERANCE


class Chances(NamedTuple):
    """Rows of events that can happen, as compiled functions take them.

    Parameters
    ----------
    indptr : ndarray of int64, shape (R + 1,)
        Where each row begins and ends.
    events : ndarray of int64, shape (nnz,)
    probabilities : ndarray of float, shape (nnz,)
        Positive.
    """

    indptr: NDArray[np.int64]
    events: NDArray[np.int64]
    probabilities: NDArray[np.float64]

    @property
    def longest(self) -> int:
        """Number of events of the longest row."""
        return int(np.diff(self.indptr).max())


class StageFunctions(NamedTuple):
    """What is compiled for a stage depends on: its functions and the number of its lanes."""

    following: Callable[[int, int], int]
    row: Callable[[int], int] | None
    cost: Callable[[int, int], float] | None
    lanes: int


class Functions(NamedTuple):
    """What is compiled for a model depends on: its functions and the number of its actions."""

    num_actions: int
    next_state: Callable[..., int]
    cost: Callable[[int, int], float]
    row: Callable[..., int] | None
    rows_by_action: bool
    event_cost: Callable[..., float] | None
    post: Callable[[int, int], int] | None
    available: Callable[[int, int], bool] | None
    all_stages: tuple[StageFunctions, ...]


@dataclass(frozen=True)
class Extent:
    """What a look at all of an `EventMDP` found.

    Parameters
    ----------
    max_cost : float
        Largest size of ``cost`` of an available action, terminal states aside.
    highest_cost : float
        The largest of them; -inf where there is none.
    event_costs : tuple of float
        Largest size of the cost of an event, first and in each stage.
    """

    max_cost: float
    highest_cost: float
    event_costs: tuple[float, ...]


def chances_of(probabilities: NDArray[np.float64]) -> Chances:
    """Return the events that can happen, by row.

    Parameters
    ----------
    probabilities : ndarray of float, shape (R, E)
    """
    rows, events = np.nonzero(probabilities)
    indptr = np.searchsorted(rows, np.arange(len(probabilities) + 1))
    return Chances(
        lock(indptr.astype(np.int64)),
        lock(events.astype(np.int64)),
        lock(probabilities[rows, events]),
    )


def num_parameters(function: Callable[..., Any]) -> int:
    """Return how many arguments a function takes, compiled or not."""
    return len(inspect.signature(getattr(function, "py_func", function)).parameters)


def compiled(name: str, function: Any, arguments: tuple[str, ...], kind: str) -> Callable[..., Any]:
    """Return a function compiled by numba for whole numbers, and refuse one that cannot be.

    Parameters
    ----------
    name : str
        What errors call it.
    function : callable
        Compiled already or not.
    arguments : tuple of str
        What it takes.
    kind : str
        What it returns: "integer", "number" or "boolean".
    """
    from numba import njit, types  # which takes long to import
    from numba.core.dispatcher import Dispatcher
    from numba.core.errors import NumbaError

    if not callable(function):
        raise TypeError(f"{name} must be a function, got {function!r}")
    found = num_parameters(function)
    if found != len(arguments):
        count = "1 argument" if len(arguments) == 1 else f"{len(arguments)} arguments"
        raise TypeError(f"{name} must take {count} ({', '.join(arguments)}), takes {found}")
    made: Any = function if isinstance(function, Dispatcher) else njit(nogil=True)(function)
    whole = (types.int64,) * len(arguments)
    try:
        made.compile(whole)
    except NumbaError as error:
        raise TypeError(f"{name} cannot be compiled by numba for whole numbers: {error}") from error
    returned = made.overloads[whole].signature.return_type
    allowed: tuple[Any, ...] = {
        "integer": (types.Integer,),
        "number": (types.Integer, types.Float),
        "boolean": (types.Boolean,),
    }[kind]
    if not isinstance(returned, allowed):
        raise TypeError(
            f"{name} must return {'an' if kind == 'integer' else 'a'} {kind}, returns {returned}"
        )
    return made


def distributions(probabilities: ArrayLike, row: Callable[..., int] | None) -> NDArray[np.float64]:
    """Return distributions of events, shape (R, E), and refuse what are none.

    Parameters
    ----------
    probabilities : array_like, shape (E,) or (R, E)
    row : callable, optional
        Which says which of several holds.
    """
    array = np.asarray(probabilities, dtype=np.float64)
    table = np.atleast_2d(without_rounding(array))
    if array.ndim not in (1, 2) or 0 in table.shape:
        raise ValueError(
            f"probabilities must have shape (E,) or (R, E), not empty, got {array.shape}"
        )
    if row is None and len(table) > 1:
        raise ValueError(f"probabilities has {len(table)} rows: row must say which one holds")
    for r, distribution in enumerate(table):
        bad = np.flatnonzero(~np.isfinite(distribution) | (distribution < 0))
        if len(bad):
            raise ValueError(
                f"row {r}, event {bad[0]}: probability {distribution[bad[0]]} must be a finite "
                "number, not negative"
            )
        total = math.fsum(distribution)
        if abs(total - 1.0) > ROW_SUM_TOLERANCE:
            raise ValueError(f"row {r}: probabilities sum to {total!r}, must sum to 1")
    return own(table, np.float64)
