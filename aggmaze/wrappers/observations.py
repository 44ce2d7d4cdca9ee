"""Other views of the state than its index.

They change nothing but observations: `info`, the model (`planners.solve` takes the environment
under them), `action_masks()` and the arguments of `reset` are what they were.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from aggmaze.checks import check_integer
from aggmaze.envs.maze import MazeEnv
from aggmaze.grid import Grid
from aggmaze.layouts.layout import Layout
from aggmaze.wrappers.encoders import (
    CoordinateEncoder,
    Encoder,
    ImageEncoder,
    LocalViewEncoder,
    OneHotEncoder,
)


class StateObservation(gym.ObservationWrapper[Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Observations that an encoder makes of states, what the wrappers below share.

    Parameters
    ----------
    env : gymnasium.Env
        Its observations are states.
    **arguments
        Of the wrapper, as its spec tells them.
    """

    def __init__(self, env: gym.Env[Any, Any], **arguments: Any) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, **arguments)
        gym.ObservationWrapper.__init__(self, env)
        check_states(type(self).__name__, env.observation_space, env)
        self._encoder = self._make_encoder()
        self.observation_space = self._encoder.space

    def observation(self, observation: Any) -> Any:
        """Return the observation of a state."""
        return self._encoder.encode(np.array([observation], dtype=np.int64))[0]

    def _make_encoder(self) -> Encoder:
        raise NotImplementedError


class LayoutObservation(StateObservation):
    """Observations that depend on the maze, and on the next one after it has changed."""

    def __init__(self, env: gym.Env[Any, Any], **arguments: Any) -> None:
        self._layout = layout_of(env)
        super().__init__(env, **arguments)

    def observation(self, observation: Any) -> Any:
        """Return the observation of a state in the maze as it is now."""
        layout = layout_of(self.env)
        if layout is not self._layout:
            self._layout = layout
            self._encoder = self._make_encoder()
        return super().observation(observation)


class CoordinateObservation(StateObservation):
    """Observe where on the grid the state lies.

    For networks: the index of a state says nothing of its neighbours, and Stable-Baselines3 turns
    it into as many inputs as there are states.

    Parameters
    ----------
    env : gymnasium.Env
        A maze, or a DiscretizedCartPole, whose failed state is seen at the last cell.
    normalized : bool
        By default ``Box(-1, 1, (D,), float32)``, each axis from -1 (first position) to 1 (last; 0
        where there is one only).  With False ``MultiDiscrete(shape)``, positions from 0.
    """

    def __init__(self, env: gym.Env[Any, Any], *, normalized: bool = True) -> None:
        self._normalized = bool(normalized)
        super().__init__(env, normalized=self._normalized)

    def _make_encoder(self) -> Encoder:
        return CoordinateEncoder(grid_of(self.env), normalized=self._normalized)


class OneHotObservation(StateObservation):
    """Observe a vector of zeros with a one at the state: ``Box(0, 1, (S,), float32)``.

    Parameters
    ----------
    env : gymnasium.Env
        One whose observations are ``Discrete``.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)

    def _make_encoder(self) -> Encoder:
        return OneHotEncoder(int(self.env.observation_space.n))  # type: ignore[attr-defined]


class ImageObservation(LayoutObservation):
    """Observe a picture of the whole maze with the agent in it: ``Box(0, 255, (H, W, 3), uint8)``.

    Both sides have 36 pixels and more, as Stable-Baselines3's ``CnnPolicy`` asks, and are the same
    for every maze of one shape.  An overlay does not show.

    Parameters
    ----------
    env : gymnasium.Env
        A maze.
    size : int
        Length in pixels that the longer side comes close to, 36 and more.  Pictures are larger
        where cells would be less than two pixels wide.
    """

    def __init__(self, env: gym.Env[Any, Any], *, size: int = 84) -> None:
        self._size = size
        self._sides: tuple[int, ...] | None = None
        super().__init__(env, size=size)
        self._sides = self.observation_space.shape[:2]  # type: ignore[index]

    def _make_encoder(self) -> Encoder:
        return ImageEncoder(self._layout, self._size, self._sides)


class LocalViewObservation(LayoutObservation):
    """Observe a square around the agent: ``Box(0, 1, (2 r + 1, 2 r + 1, 7), float32)``.

    Rows run from the top, columns from the left, whatever way the agent came.  The last axis tells
    of a position whether it is free, whether one can move left, right, down and up from it, whether
    it is the goal, and its height on terrain; zeros lie outside the maze.

    Networks of Stable-Baselines3 take three axes for an image, which this is not: flatten it for
    them (`gymnasium.wrappers.FlattenObservation`).

    States look alike from within, so that what is observed is no longer Markov; the state itself
    stays in ``info["state"]``, and the model is that of the states.

    Parameters
    ----------
    env : gymnasium.Env
        A maze of two dimensions.
    radius : int
        Positions r seen in each direction, 1 and more.
    """

    def __init__(self, env: gym.Env[Any, Any], *, radius: int = 2) -> None:
        self._radius = check_integer("radius", radius, least=1)
        super().__init__(env, radius=self._radius)

    def _make_encoder(self) -> Encoder:
        return LocalViewEncoder(self._layout, self._radius)


def grid_of(env: Any) -> Grid:
    """Return the grid that the states of an environment lie on.

    Raises
    ------
    TypeError
        If there is none.
    """
    if isinstance(env.unwrapped, MazeEnv):
        return env.unwrapped.grid
    if env.has_wrapper_attr("cells"):
        grid: Grid = env.get_wrapper_attr("cells").grid
        return grid
    raise TypeError(f"{env} has no grid: its states have no coordinates")


def layout_of(env: Any) -> Layout:
    """Return the layout of a maze, as it is now.

    Raises
    ------
    TypeError
        If the environment is no maze.
    """
    if not isinstance(env.unwrapped, MazeEnv):
        raise TypeError(f"{env} is no maze: it has no layout to be seen")
    return env.unwrapped.layout


def check_states(name: str, space: gym.Space[Any], env: Any) -> None:
    """Refuse observations that are not states."""
    if not isinstance(space, gym.spaces.Discrete) or space.start != 0:
        raise TypeError(
            f"{name} needs observations that are states, Discrete and from 0; {env} has {space}"
        )
