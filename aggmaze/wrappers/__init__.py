"""Wrappers, as `gymnasium.wrappers` are; those of vector environments are in :mod:`.vector`."""

from aggmaze.wrappers import vector
from aggmaze.wrappers.new_maze import TEST, TRAIN, NewMazeEachEpisode
from aggmaze.wrappers.observations import (
    CoordinateObservation,
    ImageObservation,
    LocalViewObservation,
    OneHotObservation,
)
from aggmaze.wrappers.regret import RegretWrapper
from aggmaze.wrappers.shaping import PotentialShaping

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
