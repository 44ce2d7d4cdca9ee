"""Environments by their id, and arguments for them given as text."""

from __future__ import annotations

import ast
import inspect
import os
from collections.abc import Iterable
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from aggmaze.checks import did_you_mean
from aggmaze.layouts.text import names_file, read_text

#: What environments mean to raise where an argument is wrong.
_REFUSALS = (ValueError, OSError, ModuleNotFoundError, MemoryError, gym.error.Error)


def make_env(env_id: str, settings: Iterable[str], **arguments: Any) -> gym.Env[Any, Any]:
    """Make an environment from its id and settings ``key=value``.

    A ``layout`` may be the name of a file, any that there is or one that ends in ``.txt`` or
    ``.map``, which is then read.

    Parameters
    ----------
    env_id : str
    settings : iterable of str
    **arguments
        Further arguments for the environment, not to be set.

    Raises
    ------
    ValueError
        If there is no such id, a key is given twice or not to be set, or the environment takes no
        such argument, or refuses its value.
    TypeError
        If it refuses the type of a value.
    FileNotFoundError, IsADirectoryError
        If that is what is there instead of the file of a layout.
    """
    given = parse_settings(settings)
    for name in arguments:
        if name in given:
            raise ValueError(
                f"--set {name}={given[name]!r}: here {name} is always {arguments[name]!r}"
            )
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
                    raise ValueError(
                        f"{env_id} takes no {name!r}{did_you_mean(name, allowed)}; it takes "
                        f"{', '.join(allowed)}"
                    )
    if "layout" in given:
        given["layout"] = _read_layout(given["layout"])
    try:
        return gym.make(env_id, **{**given, **arguments})
    except TypeError as error:
        # Gymnasium's own says in addition how Gymnasium called the environment.
        cause = error.__cause__
        raise (cause if isinstance(cause, TypeError) else error) from None
    except _REFUSALS:
        raise
    except Exception as error:
        if not given:
            raise
        words = ", ".join(f"{name}={value!r}" for name, value in given.items())
        raise ValueError(
            f"{env_id} cannot be made with {words}: {type(error).__name__}: {error}"
        ) from error


def parse_settings(
    settings: Iterable[str], option: str = "--set", example: str = "shape=50,50"
) -> dict[str, Any]:
    """Return keys and values of settings ``key=value``, as `parse_setting` reads them.

    Parameters
    ----------
    settings : iterable of str
    option, example : str
        What errors call a setting, and an example of one.

    Raises
    ------
    ValueError
        If a setting is none, or a key is given twice.
    """
    given: dict[str, Any] = {}
    for setting in settings:
        name, value = parse_setting(setting, option, example)
        if name in given:
            raise ValueError(f"{option} {name} is given twice: as {given[name]!r} and as {value!r}")
        given[name] = value
    return given


def parse_setting(
    setting: str, option: str = "--set", example: str = "shape=50,50"
) -> tuple[str, Any]:
    """Return key and value of ``key=value``; the value is a Python literal, or else text.

    Parameters
    ----------
    setting : str
    option, example : str
        As for `parse_settings`.
    """
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


def _read_layout(layout: Any) -> Any:
    """Return the text in a file where a layout is the name of one, else the layout as it is."""
    if not isinstance(layout, str) or names_file(layout):
        return layout  # the environment reads it itself
    # Path.exists refuses what is too long for a name, as a maze may be.
    return read_text(layout) if os.path.exists(layout) else layout  # noqa: PTH110
