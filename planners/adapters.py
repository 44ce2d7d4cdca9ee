"""The one door into the planners: anything with a transition model becomes a model."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from aggmaze.checks import is_real
from aggmaze.env_model import env_model
from aggmaze.formats.discrete_dp import is_discrete_dp
from aggmaze.formats.outcomes import is_outcome
from aggmaze.models.events import EventMDP
from aggmaze.models.model import Model
from aggmaze.models.moves import MoveMDP
from aggmaze.models.row_models import RowModel, as_row_model
from aggmaze.models.tabular import TabularMDP

_BOOLEANS = (bool, np.bool_)


def as_model(source: Any) -> Model:
    """Return the validated model of an environment, or of what holds a model.

    Parameters
    ----------
    source : Model, gymnasium.Env, mapping, sequence, pair, or quantecon.markov.DiscreteDP
        A `TabularMDP`, `MoveMDP` or `EventMDP`; an environment that offers ``transition_model()``,
        or a table ``P`` as Gymnasium's toy-text environments do, possibly under wrappers; a
        `TabularVectorEnv`, as ``gymnasium.make_vec`` makes it, possibly under wrappers of
        `aggmaze.wrappers.vector`; what `aggmaze.discretize` returns, and whatever else has
        ``transition_model()``; such a ``P``, in dicts, where states and actions may have any names,
        or in lists; a tuple ``(P, R)`` of transition
        matrices and rewards, as `TabularMDP.from_mdptoolbox` takes them; or QuantEcon's
        ``DiscreteDP``, whose ``beta`` is not read.

    Raises
    ------
    NoModelError
        If an environment has no model, its steps are found to do what its ``P`` denies, or it sits
        under a wrapper that may change rewards or actions.  It is a ValueError and a TypeError.
    ValueError
        If the model is not valid.
    TypeError
        If the source is none of these.
    """
    if isinstance(source, TabularMDP | MoveMDP | EventMDP):
        return source.validate()
    if isinstance(source, gym.Env) or hasattr(type(source), "transition_model"):
        return env_model(source)
    if isinstance(source, Mapping) or _lists_outcomes(source):
        return TabularMDP.from_gym_P(source)
    if isinstance(source, tuple) and len(source) == 2:
        return TabularMDP.from_mdptoolbox(*source)
    if is_discrete_dp(source):
        return TabularMDP.from_quantecon(source)
    raise TypeError(
        "expected a TabularMDP, a MoveMDP, an environment with transition_model() or P, such a P, "
        "a tuple (P, R) of transition matrices and rewards, an EventMDP, or a quantecon "
        "DiscreteDP, got "
        f"{_kind(source)}"
    )


def as_rows(source: Any) -> RowModel:
    """Return a model by rows: the very same if it is one, else one that slices a whole model.

    Parameters
    ----------
    source : object
        What `aggmaze.models.row_models.as_row_model` or `as_model` takes.
    """
    whole = isinstance(source, MoveMDP | TabularMDP | EventMDP)
    return as_row_model(source if whole or is_by_rows(source) else as_model(source))


def is_by_rows(source: Any) -> bool:
    """Return whether something is a model by rows, and no whole one."""
    # Without computing the key, which may take long.
    missing = object()
    names = "key", "num_states"
    return all(inspect.getattr_static(source, name, missing) is not missing for name in names)


def _lists_outcomes(source: Any) -> bool:
    """Return whether a sequence is a Gymnasium ``P``: only that has numbers that end in a bool."""
    if not isinstance(source, list | tuple):
        return False
    try:
        first = source[0][0][0]
        return is_outcome(first, (4,)) and is_real(first[0]) and isinstance(first[3], _BOOLEANS)
    except (IndexError, KeyError, TypeError):
        return False


def _kind(source: Any) -> str:
    """Name a source that is no model, and what else to write where it may hold one."""
    if isinstance(source, np.ndarray):
        found = f"an array of shape {source.shape}"
    elif isinstance(source, tuple | list):
        found = f"a {type(source).__name__} of {len(source)}"
    else:
        return type(source).__name__
    return (
        f"{found}; transition matrices P go with their rewards, as the tuple (P, R), or into "
        "TabularMDP.from_matrices(P, costs=...), and lists of outcomes whose last entry is no "
        "boolean into TabularMDP.from_gym_P(P)"
    )
