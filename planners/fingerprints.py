"""What tells one run from another: texts that are the same for the same models and options."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.arrays import pieces
from aggmaze.models.events import EventMDP
from aggmaze.models.moves import MoveMDP
from planners.engine import Engine

_DIGEST_BYTES = 16
# Values of a function by which it is known again.
_NUM_VALUES = 32


def digest(*arrays: NDArray[Any]) -> str:
    """Return a digest of types, shapes and entries of arrays."""
    total = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for array in arrays:
        total.update(f"{array.dtype.str} {array.shape} ".encode())
        rows = array if array.ndim else array[np.newaxis]
        for piece in pieces(len(rows)):
            total.update(np.ascontiguousarray(rows[piece]).data)
    return total.hexdigest()


def fact(value: Any) -> Any:
    """Return what makes the value of an option this one: itself, or a text that tells it.

    Parameters
    ----------
    value : None, bool, int, float, str, sequence, ndarray, or function of 1, 2, ...
    """
    if value is None or isinstance(value, bool | str):
        return value
    if callable(value):
        # By what it says: a function is written down again in each process.
        values = np.array([float(value(t)) for t in range(1, _NUM_VALUES + 1)])
        return f"a function, {digest(values)}"
    array = np.asarray(value)
    if array.ndim == 0:
        number = array.item()
        return str(number) if isinstance(number, float) and math.isinf(number) else number
    return f"{len(array):,} numbers, {digest(array)}"


def model_key(engine: Engine) -> str:
    """Return what tells a model from others, the same on any machine.

    Models that know their own ``key`` are asked for it.  Those with tables are known by these, an
    `EventMDP`, whose functions cannot be compared, by what two sweeps of it come to.

    Parameters
    ----------
    engine : Engine
    """
    model: Any = engine.model
    key = getattr(model, "key", None)
    if key is not None:
        return str(key)
    if isinstance(model, EventMDP):
        images: list[NDArray[Any]] = []
        for V in (np.zeros(engine.num_states), np.linspace(-1.0, 1.0, engine.num_states)):
            V[engine.terminal] = 0.0
            out, actions = np.empty_like(V), np.empty(len(V), dtype=np.int32)
            engine.sweep(V, out, actions)
            images += [out, actions]
        return digest(np.array([model.num_actions]), *images)
    if isinstance(model, MoveMDP):
        return digest(np.array([model.p]), model.successors, model.move_costs)
    table = model.transitions
    return digest(
        table.indptr.astype(np.int64),
        table.indices.astype(np.int64),
        table.data,
        model.costs,
        model.action_mask,
        model.terminal,
    )
