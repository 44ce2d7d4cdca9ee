"""Gymnasium environments that step through exact models."""

from typing import TYPE_CHECKING

from aggmaze.later import importing_later

if not TYPE_CHECKING:
    __getattr__, __dir__ = importing_later(__name__, {"vector": "aggmaze.envs.vector"})
