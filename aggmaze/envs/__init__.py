"""Gymnasium environments that step through exact models."""

from aggmaze.later import importing_later

__getattr__, __dir__ = importing_later(__name__, {"vector": "aggmaze.envs.vector"})
