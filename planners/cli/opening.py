"""What a command works on, opened with words about it while that takes long."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import gymnasium as gym

from aggmaze.env_settings import make_env
from aggmaze.models.model import Model
from planners.adapters import as_model
from planners.cli.app import err
from planners.cli.sources import open_env
from planners.waiting import Waiting


def opened(source: str, settings: list[str], *, is_file: bool = False) -> gym.Env[Any, Any]:
    """Open an environment as `open_env` does, and say so where it takes long.

    Parameters
    ----------
    source : str
    settings : list of str
    is_file : bool
    """
    # A name too long for one of a file is none, and no error yet.
    size = os.path.getsize(source) if os.path.isfile(source) else None  # noqa: PTH113, PTH202
    words = f"making {source}" if size is None else f"reading {source}, {size / 1e6:,.1f} MB"
    with Waiting(err, words):
        return open_env(source, settings, is_file=is_file)


def model_of(env: gym.Env[Any, Any]) -> Model:
    """Return the model of an environment, and say so where it takes long.

    Parameters
    ----------
    env : gymnasium.Env
    """
    with Waiting(err, "making the model"):
        return as_model(env)


def made(env_id: str, settings: Iterable[str], **arguments: Any) -> gym.Env[Any, Any]:
    """Make an environment as `make_env` does, and say so where it takes long.

    Parameters
    ----------
    env_id : str
    settings : iterable of str
    **arguments
    """
    with Waiting(err, f"making {env_id}"):
        return make_env(env_id, settings, **arguments)
