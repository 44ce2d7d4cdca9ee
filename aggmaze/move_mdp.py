"""Where `MoveMDP` is imported from."""

from aggmaze.models.moves import MoveMDP

__all__ = ["MoveMDP"]
