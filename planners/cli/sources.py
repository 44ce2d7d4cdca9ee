"""What a command works on: an environment by its id, a model file or a map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym

import aggmaze
from aggmaze.env_settings import make_env, parse_settings
from aggmaze.formats import registry
from aggmaze.layouts.text import SUFFIXES

#: How the names of model files end.
MODEL_SUFFIXES = registry.suffixes()


def is_model_file(source: str) -> bool:
    """Return whether a source names a model file rather than an environment."""
    if registry.format_of(source) is not None:
        return True
    if Path(source).suffix in SUFFIXES:  # of maps
        return False
    if Path(source).exists() and source not in gym.registry:
        raise ValueError(f"{source!r} is not a model file: their names end in {MODEL_SUFFIXES}")
    return False


def open_env(source: str, settings: list[str], *, is_file: bool = False) -> gym.Env[Any, Any]:
    """Make an environment from its id and settings, or one that walks through a file.

    Parameters
    ----------
    source : str
        A registered id, or the path of a model file, or of a map as ``GridWorld-v0`` takes it.
    settings : list of str
        Arguments of the environment, ``key=value``; of a file those of its reader, and ``format``.
    is_file : bool
        That it is a model file, whatever its name.

    Raises
    ------
    ValueError
        If the file holds no model, or its reader takes no such settings; or as `make_env`.
    FileNotFoundError, IsADirectoryError
        If that is what is there instead of a model file.
    """
    if not is_file and Path(source).suffix in SUFFIXES:
        return make_env("GridWorld-v0", settings, layout=source)
    if not (is_file or is_model_file(source)):
        return make_env(source, settings)
    options = parse_settings(settings, "--set", "goal=done")
    for name in ("goal", "structure"):  # which may read as numbers
        if name in options and options[name] is not None:
            options[name] = str(options[name])
    return aggmaze.TabularEnv(aggmaze.load_model(source, **options))


def layout_of(env: gym.Env[Any, Any]) -> Any:
    """Return the layout of an environment, None if it has none."""
    return getattr(env.unwrapped, "layout", None)
