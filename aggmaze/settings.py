"""Environments by their id, and arguments for them given as text."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator


def make_env(env_id: str, settings: Iterable[str], **arguments: Any) -> gym.Env[Any, Any]:
    """Make an environment from its id and settings ``key=value``.

    Parameters
    ----------
    env_id : str
    settings : iterable of str
    **arguments
        Further arguments for the environment.

    Raises
    ------
    ValueError
        If there is no such id, or the environment takes no such argument, or refuses its value.
    """
    given = dict(map(parse_setting, settings))
    try:
        spec = gym.spec(env_id)
    except gym.error.Error as error:
        raise ValueError(f"{error}; `aggmaze list` names those with a model") from None
    entry = spec.entry_point
    creator = load_env_creator(entry) if isinstance(entry, str) else entry
    if creator is not None:
        parameters = inspect.signature(creator).parameters.values()
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            allowed = [parameter.name for parameter in parameters] + ["max_episode_steps"]
            for name in given:
                if name not in allowed:
                    raise ValueError(f"{env_id} takes no {name!r}; it takes {', '.join(allowed)}")
    return gym.make(env_id, **{**given, **arguments})


def parse_setting(
    setting: str, option: str = "--set", example: str = "shape=50,50"
) -> tuple[str, Any]:
    """Return key and value of ``key=value``; the value is a Python literal, or else text."""
    name, equals, text = setting.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"{option} takes KEY=VALUE, such as {option} {example}, got {setting!r}")
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return name, words[text.lower()]
    try:
        return name, ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return name, text
