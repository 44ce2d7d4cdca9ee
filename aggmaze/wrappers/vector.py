"""The wrappers of this package for `TabularVectorEnv`, all copies at once.

Other vector environments take the wrappers of single ones:
``gym.make_vec(..., vectorization_mode="sync", wrappers=[CoordinateObservation])``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from aggmaze.checks import check_integer
from aggmaze.envs.tabular import Model
from aggmaze.envs.vector import TabularVectorEnv
from aggmaze.wrappers.encoders import (
    CoordinateEncoder,
    Encoder,
    ImageEncoder,
    LocalViewEncoder,
    OneHotEncoder,
)
from aggmaze.wrappers.observations import check_states
from aggmaze.wrappers.regret import RegretTable, Values

if TYPE_CHECKING:
    _Wrapper = VectorWrapper[Any, Any, Any, Any, Any]
else:  # older versions of Gymnasium do not know what it is a wrapper of
    _Wrapper = VectorWrapper


class StateObservation(_Wrapper):
    """Observations that an encoder makes of states, what the wrappers below share."""

    def __init__(
        self, env: VectorEnv[Any, Any, Any], make_encoder: Callable[..., Encoder], **arguments: Any
    ) -> None:
        self._bare = _native(env)
        super().__init__(env)
        check_states(type(self).__name__, env.single_observation_space, env)
        self._encoder = make_encoder(self._bare.single_env, **arguments)
        self.single_observation_space = self._encoder.space
        self.observation_space = batch_space(self._encoder.space, self.num_envs)

    def transition_model(self) -> Model:
        """Return the exact model of the environment."""
        return self._bare.transition_model()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start episodes; arguments as for the environment."""
        states, infos = self.env.reset(seed=seed, options=options)
        self._encoder = self._encoder.following(self._bare.single_env)
        return self._encoder.encode(states), infos

    def step(
        self, actions: Any
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Take an action in every copy."""
        states, rewards, terminated, truncated, infos = self.env.step(actions)
        if "final_obs" in infos:
            over = infos["_final_obs"]
            seen = self._encoder.encode(infos["final_obs"][over].astype(np.int64))
            last = np.full(self.num_envs, None, dtype=object)
            for copy, observation in zip(np.flatnonzero(over), seen, strict=True):
                last[copy] = observation
            infos = {**infos, "final_obs": last}
        return self._encoder.encode(states), rewards, terminated, truncated, infos


class CoordinateObservation(StateObservation):
    """As `aggmaze.wrappers.CoordinateObservation`, for all copies at once."""

    def __init__(self, env: VectorEnv[Any, Any, Any], *, normalized: bool = True) -> None:
        super().__init__(env, CoordinateEncoder.of, normalized=bool(normalized))


class OneHotObservation(StateObservation):
    """As `aggmaze.wrappers.OneHotObservation`, for all copies at once."""

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        super().__init__(env, OneHotEncoder.of)


class ImageObservation(StateObservation):
    """As `aggmaze.wrappers.ImageObservation`, for all copies; they are drawn one by one."""

    def __init__(self, env: VectorEnv[Any, Any, Any], *, size: int = 84) -> None:
        super().__init__(env, ImageEncoder.of, size=size)


class LocalViewObservation(StateObservation):
    """As `aggmaze.wrappers.LocalViewObservation`, for all copies at once."""

    def __init__(self, env: VectorEnv[Any, Any, Any], *, radius: int = 2) -> None:
        super().__init__(env, LocalViewEncoder.of, radius=radius)


class RegretWrapper(_Wrapper):
    """As `aggmaze.wrappers.RegretWrapper`, for all copies at once.

    Infos hold ``regret`` (N,), with the mask ``_regret`` of the copies that took a step: not those
    that began an episode instead.  Where episodes have ended ``episode_regret`` is a dict of arrays
    (N,), with the mask ``_episode_regret``.

    Parameters
    ----------
    env : TabularVectorEnv
        Possibly under wrappers of observations.
    values, gamma, buffer_length
        As for the single environment.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        values: Values,
        gamma: float,
        *,
        buffer_length: int = 100,
    ) -> None:
        self._bare = _native(env)
        super().__init__(env)
        check_integer("buffer_length", buffer_length, least=1)
        self._mode = self._bare.metadata["autoreset_mode"]
        self._table = RegretTable(self._bare.transition_model, values, gamma)
        self.regret_queue: deque[float] = deque(maxlen=buffer_length)
        self.discounted_regret_queue: deque[float] = deque(maxlen=buffer_length)
        self.realized_regret_queue: deque[float] = deque(maxlen=buffer_length)
        n = self.num_envs
        self._states, self._first_states = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._lengths, self._weights = np.zeros(n, np.int64), np.ones(n)
        self._sums, self._discounted, self._paid = np.zeros(n), np.zeros(n), np.zeros(n)
        self._over = np.zeros(n, bool)

    def transition_model(self) -> Model:
        """Return the exact model of the environment."""
        return self._bare.transition_model()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes; arguments as for the environment."""
        observations, infos = self.env.reset(seed=seed, options=options)
        self._table.refresh()
        self._begin(infos["_state"], infos["state"])
        return observations, infos

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Take an action in every copy."""
        before, resting = self._states.copy(), self._over.copy()
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        infos = dict(infos)
        states, after = infos["state"], infos["state"].copy()
        over = terminated | truncated
        if "final_info" in infos:
            after[over] = infos["final_info"]["state"][over]
        steps = ~resting
        table = self._table
        regrets = np.where(steps, table.regrets[before, np.asarray(actions)], 0.0)
        self._lengths += steps
        self._sums += regrets
        self._discounted += self._weights * regrets
        self._paid -= np.where(steps, self._weights * rewards, 0.0)
        self._weights[steps] *= table.gamma
        infos |= {"regret": regrets, "_regret": steps}
        if over.any():
            left = np.where(terminated, 0.0, self._weights * table.values[after])
            realized = self._paid + left - table.values[self._first_states]
            told = {"sum": self._sums, "discounted": self._discounted, "realized": realized}
            infos["episode_regret"] = {
                **{name: np.where(over, of, 0.0) for name, of in told.items()},
                "l": np.where(over, self._lengths, 0),
            }
            infos["_episode_regret"] = over.copy()
            self.regret_queue.extend(self._sums[over].tolist())
            self.discounted_regret_queue.extend(self._discounted[over].tolist())
            self.realized_regret_queue.extend(realized[over].tolist())
        begun = over if self._mode is AutoresetMode.SAME_STEP else resting
        self._states[:] = states
        self._begin(begun, states)
        if self._mode is not AutoresetMode.SAME_STEP:
            self._over[:] = over
        return observations, rewards, terminated, truncated, infos

    def _begin(self, which: NDArray[np.bool_], states: NDArray[np.int64]) -> None:
        self._states[which] = self._first_states[which] = states[which]
        self._lengths[which], self._weights[which] = 0, 1.0
        self._sums[which] = self._discounted[which] = self._paid[which] = 0.0
        self._over[which] = False


def _native(env: Any) -> TabularVectorEnv:
    if not isinstance(env, VectorEnv):
        raise TypeError(
            f"expected a vector environment, got {type(env).__name__}; aggmaze.wrappers has the "
            "wrappers of single ones"
        )
    if not isinstance(env.unwrapped, TabularVectorEnv):
        raise TypeError(
            f"expected a TabularVectorEnv, got {type(env.unwrapped).__name__}; wrap each of its "
            "environments instead: gym.make_vec(..., wrappers=[...])"
        )
    return env.unwrapped
