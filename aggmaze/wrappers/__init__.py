"""Wrappers, as `gymnasium.wrappers` are; those of vector environments are in :mod:`.vector`."""

from typing import TYPE_CHECKING

from aggmaze.later import importing_later
from aggmaze.wrappers.new_maze import TEST, TRAIN, NewMazeEachEpisode
from aggmaze.wrappers.observations import (
    CoordinateObservation,
    ImageObservation,
    LocalViewObservation,
    OneHotObservation,
)
from aggmaze.wrappers.regret import RegretWrapper
from aggmaze.wrappers.shaping import PotentialShaping

if TYPE_CHECKING:
    from aggmaze.wrappers import vector
else:
    __getattr__, __dir__ = importing_later(__name__, {"vector": "aggmaze.wrappers.vector"})

__all__ = [
    "TEST",
    "TRAIN",
    "CoordinateObservation",
    "ImageObservation",
    "LocalViewObservation",
    "NewMazeEachEpisode",
    "OneHotObservation",
    "PotentialShaping",
    "RegretWrapper",
    "vector",
]
