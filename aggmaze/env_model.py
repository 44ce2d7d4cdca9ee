"""The exact model of an environment, found through wrappers that leave it as it is."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium import wrappers

from aggmaze.dynamics import contradiction
from aggmaze.models.model import Model
from aggmaze.models.tabular import TabularMDP
from aggmaze.progress import stage


class NoModelError(TypeError, ValueError):
    """There is no model of what the steps of an environment do."""


# The `step` of wrappers under which the model of the environment inside still holds; a subclass
# with a step of its own is not among them.
_HARMLESS_STEPS = {
    wrapper.step
    for wrapper in (
        gym.Wrapper,
        gym.ObservationWrapper,
        wrappers.Autoreset,
        wrappers.FrameStackObservation,
        wrappers.HumanRendering,
        wrappers.NormalizeObservation,
        wrappers.OrderEnforcing,
        wrappers.PassiveEnvChecker,
        wrappers.RecordEpisodeStatistics,
        wrappers.RecordVideo,
        wrappers.RenderCollection,
        wrappers.TimeAwareObservation,
        wrappers.TimeLimit,
    )
}


def env_model(env: Any) -> Model:
    """Return the validated model of an environment, possibly under wrappers.

    Parameters
    ----------
    env : gymnasium.Env, or anything else with ``transition_model()``
        It offers ``transition_model()``, or a table ``P`` as Gymnasium's toy-text environments do.
        A table is compared with the environment's steps, a thousand on a copy, as far as a copy
        can be made and half a second goes.

    Raises
    ------
    NoModelError
        If there is no model in it, its steps are found to do what its ``P`` denies, or it sits
        under a wrapper that may change rewards or actions.  It is a ValueError and a TypeError.
    ValueError
        If the model is not valid.
    TypeError
        If ``transition_model()`` returns something else.
    """
    inner: Any = env
    while isinstance(inner, gym.Wrapper):
        if hasattr(type(inner), "transition_model"):
            break  # it knows what it does to the model
        if type(inner).step not in _HARMLESS_STEPS:
            raise NoModelError(
                f"wrapper {type(inner).__name__} may change rewards or actions, so the model of "
                "the environment inside need not hold; give the environment below it, or define "
                "transition_model() on the wrapper"
            )
        inner = inner.env
    if hasattr(inner, "transition_model"):
        model = inner.transition_model()
        if not isinstance(model, Model):
            raise TypeError(
                f"transition_model() of {_name(env)} must return a TabularMDP or a MoveMDP, got "
                f"{type(model).__name__}"
            )
        with stage(f"checking {model.num_states:,} states"):
            return model.validate()
    if hasattr(inner, "P"):
        model = TabularMDP.from_gym_P(
            inner.P, initial=getattr(inner, "initial_state_distrib", None)
        )
        with stage("comparing the table with steps"):
            denied = contradiction(inner)
        if denied:
            raise NoModelError(
                f"the table P of {_name(env)} is not what its steps do: {denied}; to plan for the "
                "table all the same, give env.unwrapped.P"
            )
        return model
    raise NoModelError(
        f"{_name(env)} exposes no transition model: it has neither transition_model() nor P"
    )


def _name(source: Any) -> str:
    spec = getattr(source, "spec", None)
    return type(getattr(source, "unwrapped", source)).__name__ if spec is None else spec.id
