"""Other views of the state than its index.

They change nothing but observations: `info`, the model (`planners.solve` takes the environment
under them), `action_masks()` and the arguments of `reset` are what they were.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym

from aggmaze.checks import check_integer
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
    make_encoder : callable
        Called with the environment and the arguments.
    **arguments
        Of the wrapper and the encoder.
    """

    def __init__(
        self, env: gym.Env[Any, Any], make_encoder: Callable[..., Encoder], **arguments: Any
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, **arguments)
        gym.ObservationWrapper.__init__(self, env)
        check_states(type(self).__name__, env.observation_space, env)
        self._bare = env.unwrapped
        self._encoder = make_encoder(env, **arguments)
        self.observation_space = self._encoder.space

    def observation(self, observation: Any) -> Any:
        """Return the observation of a state in the environment as it is now."""
        self._encoder = self._encoder.following(self._bare)
        return self._encoder.encode_one(observation)


class CoordinateObservation(StateObservation):
    """Observe where on the grid the state lies.

    Two or three inputs instead of one a state, for open terrain, where neighbours are much alike.
    Between walls they are not, and PPO, DQN and MaskablePPO learned no maze of corridors from
    coordinates (docs/rl.md): `OneHotObservation` and `LocalViewObservation` are for those.

    Parameters
    ----------
    env : gymnasium.Env
        A maze, or a DiscretizedCartPole, whose failed state is seen at the last cell.
    normalized : bool
        By default ``Box(-1, 1, (D,), float32)``, each axis from -1 (first position) to 1 (last; 0
        where there is one only).  With False ``MultiDiscrete(shape)``, positions from 0.
    """

    def __init__(self, env: gym.Env[Any, Any], *, normalized: bool = True) -> None:
        super().__init__(env, CoordinateEncoder.of, normalized=bool(normalized))


class OneHotObservation(StateObservation):
    """Observe a vector of zeros with a one at the state: ``Box(0, 1, (S,), float32)``.

    Parameters
    ----------
    env : gymnasium.Env
        One whose observations are ``Discrete``.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env, OneHotEncoder.of)


class ImageObservation(StateObservation):
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
        super().__init__(env, ImageEncoder.of, size=size)


class LocalViewObservation(StateObservation):
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
        # An int of Python's, for the spec.
        radius = check_integer("radius", radius, least=1)
        super().__init__(env, LocalViewEncoder.of, radius=radius)


def check_states(name: str, space: gym.Space[Any], env: Any) -> None:
    """Refuse observations that are not states.

    Parameters
    ----------
    name : str
        Who needs them.
    space : gymnasium.Space
        Of the observations.
    env : gymnasium.Env or gymnasium.vector.VectorEnv
    """
    if not isinstance(space, gym.spaces.Discrete) or space.start != 0:
        raise TypeError(
            f"{name} needs observations that are states, Discrete and from 0; {env} has {space}"
        )
