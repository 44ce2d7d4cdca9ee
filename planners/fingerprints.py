"""What tells one run from another: texts that are the same for the same models and options."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.events import EventMDP
from aggmaze.models.row_models import as_row_model, digest_of
from planners.engine import Engine

# Values of a function by which it is known before it is used.
_NUM_VALUES = 32


def fact(value: Any) -> Any:
    """Return what makes the value of an option this one: itself, or a text that tells it.

    Parameters
    ----------
    value : None, bool, int, float, str, sequence, ndarray, or function of 1, 2, ...
        Numbers and arrays of any type of numpy's; equal numbers are one fact.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Traced):
        return fact(value.function)
    if callable(value):
        # By what it says: a function is written down again in each process.
        said = b"".join(_said(value, t) for t in range(1, _NUM_VALUES + 1))
        return f"a function, {digest_of('', [np.frombuffer(said, dtype=np.uint8)])}"
    array = np.asarray(value)
    if array.dtype.kind == "b" and array.ndim == 0:
        return bool(array)
    if array.dtype.kind not in "biu":
        array = array.astype(np.float64)  # fractions too
    if array.ndim == 0:
        number = array.item()
        return str(number) if isinstance(number, float) and math.isinf(number) else number
    if array.dtype.kind in "biu":
        array = array.astype(np.int64)
    return f"{len(array):,} numbers, {digest_of('', [np.ascontiguousarray(array)])}"


class Traced:
    """A function of 1, 2, ... that knows what it was asked for.

    Two functions with the same values in all that a run has asked for are one to that run, whatever
    they say of what is still to come.

    Parameters
    ----------
    function : callable

    Attributes
    ----------
    function : callable
        It itself.
    """

    def __init__(self, function: Callable[[int], Any]) -> None:
        self.function = function
        # From the least to the greatest that was asked for.
        self._first = self._last = 0
        # Of the values from the first on, before ``_next``.
        self._digest, self._next = hashlib.sha256(), 0

    def __call__(self, t: int) -> Any:
        """Return the value of the function."""
        value = self.function(t)
        self._cover(t, t)
        return value

    def _cover(self, first: int, last: int) -> None:
        if self._last == 0 or first < self._first:
            self._first = self._next = first
            self._digest = hashlib.sha256()
        self._last = max(self._last, last)

    def trace(self) -> list[Any] | None:
        """Return what tells the values asked for: from where, to where, a digest; None if none."""
        if self._last == 0:
            return None
        while self._next <= self._last:
            self._digest.update(_said(self.function, self._next))
            self._next += 1
        return [self._first, self._last, self._digest.hexdigest()]

    def follows(self, trace: list[Any] | None) -> bool:
        """Return whether a trace could be of this function, and let those to come go on from it.

        Parameters
        ----------
        trace : list or None
            What `trace` returned of this function or another one.
        """
        if trace is None:
            return True
        here = Traced(self.function)
        here._cover(trace[0], trace[1])
        if here.trace() != trace:
            return False
        self.__dict__.update(here.__dict__)
        return True


def _said(function: Callable[[int], Any], t: int) -> bytes:
    """Return the value of a function as bytes, or which error it is."""
    try:
        return struct.pack("<d", float(function(t)))
    except Exception as error:  # such as IndexError, beyond a list
        return type(error).__name__.encode()


def model_key(engine: Engine) -> str:
    """Return what tells a model from others, the same on any machine.

    It is the ``key`` of the model by rows.  An `EventMDP`, whose functions cannot be compared, is
    known by what two sweeps of it come to.

    Parameters
    ----------
    engine : Engine
    """
    model: Any = engine.model
    if not isinstance(model, EventMDP):
        return str(as_row_model(model).key)
    images: list[NDArray[Any]] = []
    for V in (np.zeros(engine.num_states), np.linspace(-1.0, 1.0, engine.num_states)):
        V[engine.terminal] = 0.0
        out, actions = np.empty_like(V), np.empty(len(V), dtype=np.int32)
        engine.sweep(V, out, actions)
        images += [out, actions]
    return digest_of(f"events {model.num_actions}", images)
