"""The wrappers of this package for `TabularVectorEnv`, all copies at once.

Other vector environments take the wrappers of single ones:
``gym.make_vec(..., vectorization_mode="sync", wrappers=[CoordinateObservation])``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import (
    AutoresetMode,
    VectorEnv,
    VectorObservationWrapper,
    VectorWrapper,
)
from gymnasium.vector.utils import batch_space
from gymnasium.wrappers import vector as wrappers
from numpy.typing import NDArray

from aggmaze.checks import check_integer
from aggmaze.envs.vector import TabularVectorEnv
from aggmaze.models.model import Model
from aggmaze.wrappers.encoders import (
    CoordinateEncoder,
    Encoder,
    ImageEncoder,
    LocalViewEncoder,
    OneHotEncoder,
)
from aggmaze.wrappers.new_maze import LayoutSeeds
from aggmaze.wrappers.observations import check_states
from aggmaze.wrappers.regret import RegretTable
from aggmaze.wrappers.shaping import Potential
from aggmaze.wrappers.state_values import Values

if TYPE_CHECKING:
    _Wrapper = VectorWrapper[Any, Any, Any, Any, Any]
else:  # older versions of Gymnasium do not know what it is a wrapper of
    _Wrapper = VectorWrapper

# The `step` of wrappers under which the model of the environment inside still holds.
_HARMLESS_STEPS = {
    wrapper.step
    for wrapper in (
        VectorWrapper,
        VectorObservationWrapper,
        wrappers.HumanRendering,
        wrappers.RecordEpisodeStatistics,
        wrappers.VectorizeTransformObservation,
    )
}


class StateObservation(_Wrapper):
    """Observations that an encoder makes of states, what the wrappers below share.

    Parameters
    ----------
    env : gymnasium.vector.VectorEnv
        A `TabularVectorEnv`, possibly under wrappers.
    make_encoder : callable
        Makes the encoder of a single environment.
    **arguments
        For ``make_encoder``.
    """

    def __init__(
        self, env: VectorEnv[Any, Any, Any], make_encoder: Callable[..., Encoder], **arguments: Any
    ) -> None:
        self._bare = _native(env)
        super().__init__(env)
        check_states(type(self).__name__, env.single_observation_space, env)
        encoder = make_encoder(self._bare.single_env, **arguments)
        self._encoders = [encoder] * self.num_envs
        self._follow()
        self.single_observation_space = encoder.space
        self.observation_space = batch_space(encoder.space, self.num_envs)

    def transition_model(self) -> Model:
        """Return the exact model of the environment."""
        return _model_finder(self.env)()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start episodes; arguments as for the environment."""
        states, infos = self.env.reset(seed=seed, options=options)
        self._follow()
        return self._encode(np.arange(self.num_envs), states), infos

    def step(
        self, actions: Any
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Take an action in every copy."""
        states, rewards, terminated, truncated, infos = self.env.step(actions)
        if "final_obs" in infos:
            over = infos["_final_obs"]
            # As it was in the maze that ended; the next one may be another.
            finals = infos["final_obs"][over].astype(np.int64)
            seen = self._encode(np.flatnonzero(over), finals)
            last = np.full(self.num_envs, None, dtype=object)
            for copy, observation in zip(np.flatnonzero(over), seen, strict=True):
                last[copy] = observation
            infos = {**infos, "final_obs": last}
        if self._envs is not self._bare.single_envs:
            self._follow()
        observations = self._encode(np.arange(self.num_envs), states)
        return observations, rewards, terminated, truncated, infos

    def _follow(self) -> None:
        """Take notice of the mazes as they are now; copies in one maze share an encoder."""
        self._envs = self._bare.single_envs
        num_mazes = len(set(map(id, self._envs)))
        found: dict[int, Encoder] = {}
        for i, env in enumerate(self._envs):
            if id(env) not in found:
                found[id(env)] = self._encoders[i].following(env, num_encoders=num_mazes)
            self._encoders[i] = found[id(env)]
        self._alike = all(encoder is self._encoders[0] for encoder in self._encoders)

    def _encode(self, copies: NDArray[np.int64], states: NDArray[np.int64]) -> NDArray[Any]:
        """Return an observation of the state of each of some copies."""
        if self._alike:
            return self._encoders[0].encode(states)
        pairs = zip(copies.tolist(), states.tolist(), strict=True)
        return np.stack([self._encoders[i].encode_one(state) for i, state in pairs])


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


class NewMazeEachEpisode(_Wrapper):
    """As `aggmaze.wrappers.NewMazeEachEpisode`, for all copies: each has a maze of its own.

    A copy that begins an episode, by a reset or within a step, gets a new maze.  Infos hold
    ``layout_seed`` (N,), with the mask ``_layout_seed`` of the copies that have just begun; the
    mazes are in ``env.unwrapped.single_envs``.  The seed of `reset` settles them all: a single
    sequence, taken in order of the copies.  Wrappers of observations go around it; those that need
    one model, such as of regrets, refuse it.

    Parameters
    ----------
    env : TabularVectorEnv
        Of mazes that are drawn, without wrappers.
    first_seed, num_mazes
        As for the single environment.
    """

    def __init__(
        self, env: TabularVectorEnv, *, first_seed: int = 0, num_mazes: int | None = None
    ) -> None:
        self._bare = _native(env)
        if env is not self._bare:
            raise TypeError(
                f"expected a TabularVectorEnv without wrappers, got one in a {type(env).__name__}; "
                "put other wrappers around NewMazeEachEpisode"
            )
        super().__init__(env)
        self._same_step = env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
        self._seeds = LayoutSeeds(env.single_env, first_seed, num_mazes)

    def transition_model(self) -> Model:
        """Refuse to return a model: each copy has its own.

        Raises
        ------
        ValueError
            Always.
        """
        raise ValueError(
            "each copy has a maze of its own, and another in each episode: there is no model of "
            "all; unwrapped.single_envs[i].transition_model() is that of one"
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Draw mazes and start episodes in them.

        Parameters
        ----------
        seed : int, optional
            Seeds the sequence of mazes, and starts and slips.
        options : dict, optional
            As for the environment; ``layout_seed``, one for all copies or N, asks for mazes.
        """
        options, n = dict(options or {}), self.num_envs
        begun = self._bare._selected(dict(options))
        seeds = self._seeds.after(seed)
        if "layout_seed" not in options:
            options["layout_seed"] = self._placed(begun, seeds.draw(int(begun.sum())))
        elif np.ndim(options["layout_seed"]) == 0:
            options["layout_seed"] = [options["layout_seed"]] * n
        states, infos = self.env.reset(seed=seed, options=options)
        self._seeds = seeds
        layout_seeds = np.where(begun, options["layout_seed"], 0)
        return states, {**infos, "layout_seed": layout_seeds, "_layout_seed": begun}

    def step(
        self, actions: Any
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Take an action in every copy; those that begin an episode do so in a new maze."""
        resting = self._bare._ended.copy()
        states, rewards, terminated, truncated, infos = self.env.step(actions)
        begun = terminated | truncated if self._same_step else resting
        if begun.any():
            # Where an episode begins is the same in all mazes; what can be done there is not.
            copies = np.flatnonzero(begun)
            seeds = self._seeds.draw(len(copies))
            self._bare._draw_mazes(dict(zip(copies.tolist(), seeds, strict=True)))
            infos["action_mask"][begun] = self._bare._masks_in(copies, states[begun])
            infos |= {"layout_seed": self._placed(begun, seeds), "_layout_seed": begun}
        return states, rewards, terminated, truncated, infos

    def _placed(self, which: NDArray[np.bool_], seeds: list[int]) -> NDArray[np.int64]:
        """Return seeds in the places of their copies, 0 in the others."""
        placed = np.zeros(self.num_envs, np.int64)
        placed[which] = seeds
        return placed


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
        self._walk = _Walk(_native(env))
        super().__init__(env)
        check_integer("buffer_length", buffer_length, least=1)
        self._table = RegretTable(_model_finder(env), values, gamma)
        self.regret_queue: deque[float] = deque(maxlen=buffer_length)
        self.discounted_regret_queue: deque[float] = deque(maxlen=buffer_length)
        self.realized_regret_queue: deque[float] = deque(maxlen=buffer_length)
        n = self.num_envs
        self._first_states = np.zeros(n, np.int64)
        self._lengths, self._weights = np.zeros(n, np.int64), np.ones(n)
        self._sums, self._discounted, self._paid = np.zeros(n), np.zeros(n), np.zeros(n)

    def transition_model(self) -> Model:
        """Return the exact model of the environment."""
        return _model_finder(self.env)()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes; arguments as for the environment."""
        observations, infos = self.env.reset(seed=seed, options=options)
        self._table.refresh()
        self._begin(self._walk.reset(infos))
        return observations, infos

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Take an action in every copy."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        infos = dict(infos)
        over = terminated | truncated
        before, after, steps, begun = self._walk.step(over, infos)
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
        self._begin(begun)
        return observations, rewards, terminated, truncated, infos

    def _begin(self, which: NDArray[np.bool_]) -> None:
        self._first_states[which] = self._walk.states[which]
        self._lengths[which], self._weights[which] = 0, 1.0
        self._sums[which] = self._discounted[which] = self._paid[which] = 0.0


class PotentialShaping(_Wrapper):
    """As `aggmaze.wrappers.PotentialShaping`, for all copies at once.

    Parameters
    ----------
    env : TabularVectorEnv
        Possibly under wrappers of observations.
    potential, gamma
        As for the single environment.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], potential: Values, gamma: float) -> None:
        self._walk = _Walk(_native(env))
        super().__init__(env)
        self._potential = Potential(_model_finder(env), potential, gamma)

    def transition_model(self) -> Model:
        """Return the exact model with shaped rewards, as a general sparse table."""
        return self._potential.shaped_model()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes; arguments as for the environment."""
        observations, infos = self.env.reset(seed=seed, options=options)
        self._potential.refresh()
        self._walk.reset(infos)
        return observations, infos

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Take an action in every copy; those that begin an episode instead are paid nothing."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        before, after, steps, _ = self._walk.step(terminated | truncated, infos)
        values = self._potential.values
        left = np.where(terminated, 0.0, values[after])
        shaping = self._potential.shaping(values[before], left)
        return observations, rewards + np.where(steps, shaping, 0.0), terminated, truncated, infos


class _Walk:
    """Where each copy is, in whatever way episodes follow each other.

    Attributes
    ----------
    states : ndarray of int, shape (N,)
    """

    def __init__(self, env: TabularVectorEnv) -> None:
        self._same_step = env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
        self.states = np.zeros(env.num_envs, np.int64)
        self._over = np.zeros(env.num_envs, bool)

    def reset(self, infos: dict[str, Any]) -> NDArray[np.bool_]:
        """Return which copies have begun an episode in a reset."""
        begun: NDArray[np.bool_] = infos["_state"]
        self.states[begun] = infos["state"][begun]
        self._over[begun] = False
        return begun

    def step(
        self, over: NDArray[np.bool_], infos: dict[str, Any]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return where a step began and ended, which copies made it, and which began an episode."""
        before, begun, after = self.states, self._over, infos["state"].copy()
        self.states = infos["state"].copy()
        steps = ~begun
        if "final_info" in infos:
            after[over] = infos["final_info"]["state"][over]
        if self._same_step:
            begun = over
        else:
            self._over = over.copy()
        return before, after, steps, begun


def _model_finder(env: Any) -> Callable[[], Model]:
    """Return what finds the present model: the nearest wrapper that knows what it does to it."""
    while not hasattr(type(env), "transition_model"):
        if type(env).step not in _HARMLESS_STEPS:
            raise ValueError(
                f"wrapper {type(env).__name__} may change rewards or actions, so the model of the "
                "environment inside need not hold; put it around this one"
            )
        env = env.env
    finder: Callable[[], Model] = env.transition_model
    return finder


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
