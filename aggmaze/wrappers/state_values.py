"""Numbers of the states of a model, and where an environment tells its state and its model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.env_model import env_model
from aggmaze.models.model import Model

#: Numbers of the states of a model, or what computes them of a model.
Values = ArrayLike | Callable[[Model], ArrayLike]


def values_of(name: str, given: Values, model: Model) -> NDArray[np.float64]:
    """Return a number for each state of a model, shape (S,), 0 in those that are terminal.

    Parameters
    ----------
    name : str
        What errors call them.
    given : array_like or callable
        For the states that the model's source lists; or what computes them of the model.
    model : Model

    Raises
    ------
    ValueError
        If they are not one finite number a state.
    """
    num_listed = model.num_listed_states
    values = np.array(given(model) if callable(given) else given, dtype=np.float64)
    if values.shape != (num_listed,):
        raise ValueError(f"{name} must have shape ({num_listed},), one a state, got {values.shape}")
    if not np.isfinite(values).all():
        state = int(np.argmax(~np.isfinite(values)))
        raise ValueError(f"{name} must be finite, got {values[state]} in state {state}")
    # States that the source does not list are absorbing, at no cost.
    full = np.zeros(model.num_states)
    full[:num_listed] = values
    full[model.terminal] = 0.0
    return full


def state_of(what: str, observation: Any, info: dict[str, Any]) -> int:
    """Return the state that an environment tells of; errors name what needs it.

    Parameters
    ----------
    what : str
        Who needs it.
    observation : object
    info : dict
    """
    state = info.get("state", observation)
    if not isinstance(state, int | np.integer):
        raise ValueError(
            f"{what} needs the state: info['state'], or an observation that is the state, not "
            f"{type(observation).__name__}"
        )
    return int(state)


def model_finder(env: gym.Env[Any, Any]) -> Callable[[], Model]:
    """Return what finds the present model of an environment."""
    if env.has_wrapper_attr("transition_model"):
        return partial(env_model, env)
    # A table P is given once, and each reading of it makes another model.
    return partial(_same, env_model(env))


def _same(model: Model) -> Model:
    return model
