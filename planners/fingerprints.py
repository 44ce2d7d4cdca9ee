"""What tells one run from another: texts that are the same for the same models and options."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.events import EventMDP
from aggmaze.models.row_models import as_row_model, digest_of
from planners.engine import Engine

# Values of a function by which it is known again.
_NUM_VALUES = 32


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
        return f"a function, {digest_of('', [values])}"
    array = np.asarray(value)
    if array.ndim == 0:
        number = array.item()
        return str(number) if isinstance(number, float) and math.isinf(number) else number
    return f"{len(array):,} numbers, {digest_of('', [np.ascontiguousarray(array)])}"


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
