"""`MoveMDP`, for those who import it from here."""

from aggmaze.models.moves import MoveMDP

__all__ = ["MoveMDP"]
