"""Many copies of one environment in step: compiled, over the same tables."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_integer
from aggmaze.envs.cartpole import DiscretizedCartPoleEnv
from aggmaze.envs.discretized import (
    DiscretizedAcrobotEnv,
    DiscretizedMountainCarEnv,
    DiscretizedPendulumEnv,
)
from aggmaze.envs.grid_world import GridWorldEnv
from aggmaze.envs.layout_env import LayoutEnv
from aggmaze.envs.maze import NOTHING_DRAWN, MazeEnv
from aggmaze.envs.nd_maze import NDMazeEnv
from aggmaze.envs.standard_maze import StandardMazeEnv
from aggmaze.envs.tabular import TabularEnv, refuse_other_options
from aggmaze.envs.terrain_maze import TerrainMazeEnv
from aggmaze.memory import check_memory
from aggmaze.models.model import Model
from aggmaze.models.moves import MoveMDP
from aggmaze.models.sampling import (
    Batch,
    Rules,
    all_within,
    draw_starts,
    step_entries,
    step_moves,
    step_own_moves,
    write_coords,
)

# State, number of steps and spaces of a copy, at least.
_BYTES_A_COPY = 50
_NEVER = np.iinfo(np.int64).max


class TabularVectorEnv(VectorEnv[NDArray[np.int64], ArrayLike, NDArray[Any]]):
    """N independent copies of a tabular environment, advanced by one compiled call.

    ``gym.make_vec("StandardMaze-v0", num_envs=64, shape=(50, 50), p=0.9)`` makes one, and so with
    all ids; this class does the same for any `TabularEnv`, or model.  All that a step or a reset
    returns is as `gymnasium.vector.SyncVectorEnv` gives it, in new arrays: observations int64
    (N,), rewards float64 (N,), terminated and truncated bool (N,); infos ``state`` and ``prob``
    (N,), ``action_mask`` int8 (N, A) and, of mazes, ``coords`` int64 (N, D), each beside a mask
    such as ``_state``.

    Copies share the model, which is in memory once, and one random generator: a seed settles the
    whole batch.  Given the same uniform numbers, each copy does as the single environment.

    Parameters
    ----------
    source : TabularEnv, TabularMDP or MoveMDP
        An environment without wrappers, which is copied, render mode included; or a model.
    num_envs : int
        N, at least 1.
    max_episode_steps : int, optional
        Steps after which an episode is truncated; never by default.  `gymnasium.make_vec` gives
        what is registered, 1000.
    autoreset_mode : AutoresetMode or str
        What follows the end of an episode: with "NextStep" the copy starts anew in the next step,
        whose action counts for nothing there (it must be one nevertheless) and whose reward is 0;
        with "SameStep" at once, and the infos keep ``final_obs`` and ``final_info``; with
        "Disabled" when the caller resets it, by ``options={"reset_mask": ...}``.

    Raises
    ------
    TypeError
        If the source is neither, or has wrappers.
    ValueError
        If an argument is none of these; if the environment has a step of its own, which the
        compiled one would pass over; or if its render mode is "human".
    """

    def __init__(
        self,
        source: TabularEnv | Model,
        num_envs: int = 1,
        *,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        self.num_envs, self.max_episode_steps, self._mode = _checked_batch(
            num_envs, max_episode_steps, autoreset_mode
        )
        self._env = _single_env(source)
        modes = [mode for mode in self._env.metadata["render_modes"] if mode != "human"]
        self.metadata = {
            **self._env.metadata,
            "render_modes": modes,
            "autoreset_mode": self._mode,
        }
        self.render_mode = self._env.render_mode
        self.single_observation_space = self._env.observation_space
        self.single_action_space = self._env.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._rules = self._read_rules()
        self._copies = (self._env,) * self.num_envs
        self._mazes: _Mazes | None = None
        self._started = False
        self._states = np.zeros(self.num_envs, np.int64)
        self._num_steps = np.zeros(self.num_envs, np.int64)
        self._ended = np.zeros(self.num_envs, bool)

    @property
    def single_env(self) -> TabularEnv:
        """The environment whose copies these are, with its ``grid``, ``layout`` and model.

        It draws them too: what its ``set_overlay`` is told is in every picture.  Where it stands
        itself means nothing; leave it there.  Where copies have mazes of their own these are in
        `single_envs`.
        """
        return self._env

    @property
    def single_envs(self) -> tuple[TabularEnv, ...]:
        """The environment that each copy is one of, N of them: one and the same, or its own maze.

        Another tuple whenever a copy has got another maze of its own.
        """
        return self._copies if self._mazes is None else self._mazes.envs

    def transition_model(self) -> Model:
        """Return the exact model that the steps of each copy are drawn from.

        Raises
        ------
        ValueError
            If each copy has a maze of its own, and so a model.
        """
        if self._mazes is not None:
            raise ValueError(
                "each copy has a maze of its own, there is no model of all: "
                "single_envs[i].transition_model() is that of one"
            )
        return self._env.transition_model()

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are available now, shape (N, A)."""
        self._check_started("action_masks")
        return self._masks_in(np.arange(self.num_envs), self._states).astype(bool)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Start an episode in every copy, or in some.

        Parameters
        ----------
        seed : int, optional
            Seeds all that is drawn from now on, for every copy; the maze stays.
        options : dict, optional
            ``state`` or ``coords``: where to start, one for all copies or N, one for each; as for
            the single environment.  ``layout_seed``: draw another maze for all copies, and keep it;
            or N, a maze of its own for each copy that starts anew.
            ``reset_mask``: bool array (N,) of the copies that start anew, at least one; the others
            stay where they are, and their infos are 0.

        Raises
        ------
        TypeError, ValueError
            If an option is none of these, or the single environment refuses it.  Then nothing has
            changed.
        """
        if isinstance(seed, list | tuple | np.ndarray):
            raise TypeError(
                f"seed must be one integer, or None, got {seed!r}: all copies draw from one "
                "generator; vectorization_mode='sync' seeds each of its environments"
            )
        options = dict(options or {})
        refuse_other_options(options, (*self._env._reset_options, "reset_mask"))
        selected = self._selected(options)
        states = self._requested_starts(options, selected)
        own_seeds = self._own_layout_seeds(options, selected)
        if "layout_seed" in options and not own_seeds:
            if not selected.all():
                raise ValueError(
                    "options['layout_seed'] changes the maze of every copy; it does not go with a "
                    "reset_mask that leaves some of them where they are"
                )
            # Refuses what cannot be, the seed too, before anything changes.
            self._env.reset(seed=seed, options={"layout_seed": options["layout_seed"]})
            self._rules, self._mazes = self._read_rules(), None
        super().reset(seed=seed)
        if own_seeds:
            self._draw_mazes(own_seeds)
        probabilities = np.ones(self.num_envs)
        if states is None:
            states = np.empty(self.num_envs, np.int64)
            n = self.num_envs
            uniforms = np.zeros(n) if self._starts_are_certain else self.np_random.random(n)
            draw_starts(self._rules.starts, uniforms, states, probabilities)
        self._started = True
        self._states[selected] = states[selected]
        self._num_steps[selected] = 0
        self._ended[selected] = False
        return self._states.copy(), self._infos(self._states, probabilities, selected)

    def step(
        self, actions: ArrayLike
    ) -> tuple[
        NDArray[np.int64],
        NDArray[np.float64],
        NDArray[np.bool_],
        NDArray[np.bool_],
        dict[str, Any],
    ]:
        """Take an action in every copy.

        Parameters
        ----------
        actions : array_like of int, shape (N,)

        Raises
        ------
        gymnasium.error.ResetNeeded
            Before the first reset, and with autoreset "Disabled" while an episode is over.
        TypeError
            If the actions are not integers.
        ValueError
            If there are not N of them, or one is not in ``[0, A)``.  Then nothing has changed.
        """
        self._check_started("step")
        if self._mode is AutoresetMode.DISABLED and self._ended.any():
            first, count = int(np.argmax(self._ended)), np.count_nonzero(self._ended)
            raise ResetNeeded(
                f"the episode of sub-environment {first} is over, {count} of {self.num_envs} are; "
                "with autoreset_mode 'Disabled' reset them first: "
                "reset(options={'reset_mask': terminated | truncated})"
            )
        model, n, rules = self._env.transition_model(), self.num_envs, self._rules
        num_finals = n if rules.same_step else 0
        num_draws = 2 if rules.same_step and not self._starts_are_certain else 1
        batch = Batch(
            actions=self._checked(actions),
            uniforms=self.np_random.random((num_draws, n)),
            states=self._states,
            num_steps=self._num_steps,
            ended=self._ended,
            rewards=np.empty(n),
            probabilities=np.empty(n),
            terminated=np.empty(n, bool),
            truncated=np.empty(n, bool),
            coords=np.empty((n, len(rules.strides)), np.int64),
            final_states=np.zeros(num_finals, np.int64),
            final_probabilities=np.zeros(num_finals),
        )
        if self._mazes is not None:
            step_own_moves(self._mazes.sampling_tables, model.terminal, rules, batch)
        else:
            advance = step_moves if isinstance(model, MoveMDP) else step_entries
            advance(model.sampling_tables, model.terminal, rules, batch)
        infos = _infos(
            self._states.copy(),
            batch.probabilities,
            self._masks_in(np.arange(n), self._states),
            batch.coords,
            np.ones(n, bool),
        )
        if rules.same_step and (over := batch.terminated | batch.truncated).any():
            infos |= self._final_infos(batch.final_states, batch.final_probabilities, over)
        return self._states.copy(), batch.rewards, batch.terminated, batch.truncated, infos

    def render(self) -> Any:
        """Return a picture of each copy, as the single environment draws it, in a tuple."""
        if self.render_mode is None:
            return self._env.render()
        self._check_started("render")
        pairs = zip(self.single_envs, self._states.tolist(), strict=True)
        return tuple(self._picture(env, state) for env, state in pairs)

    def _repr_html_(self) -> str:
        from aggmaze.envs.cards import vector_html

        return vector_html(self)

    def close_extras(self, **kwargs: Any) -> None:
        """Release what drawing has taken."""
        # Older versions of Gymnasium also close what its constructor has refused.
        if hasattr(self, "_env"):
            self._env.close()

    def _picture(self, env: TabularEnv, state: int) -> Any:
        env._state = state
        return env.render()

    def _read_rules(self) -> Rules:
        env = self._env
        strides = env.grid.strides if isinstance(env, LayoutEnv) else ()
        return Rules(
            starts=env._starts,
            strides=np.array(strides, np.int64),
            limit=self.max_episode_steps or _NEVER,
            same_step=self._mode is AutoresetMode.SAME_STEP,
        )

    @property
    def _starts_are_certain(self) -> bool:
        return len(self._rules.starts[0]) == 1

    def _masks_in(self, copies: NDArray[np.int64], states: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return which actions are available where some copies are."""
        if self._mazes is not None:
            return self._mazes.masks[copies, states]
        return self._env._mask.take(states, axis=0)

    def _own_layout_seeds(
        self, options: Mapping[str, Any], selected: NDArray[np.bool_]
    ) -> dict[int, int]:
        """Return the layout seeds of copies that are to have a maze of their own."""
        seeds = options.get("layout_seed", 0)
        if np.ndim(seeds) == 0:
            return {}
        if len(seeds) != self.num_envs:
            raise ValueError(
                "options['layout_seed'] must be one for all sub-environments, or one for each of "
                f"{self.num_envs}, got {len(seeds)}"
            )
        if not (isinstance(self._env, MazeEnv) and self._env.is_drawn):
            raise ValueError(f"options['layout_seed'] {NOTHING_DRAWN}")
        return {
            i: check_integer(f"sub-environment {i}: options['layout_seed']", seeds[i])
            for i in np.flatnonzero(selected).tolist()
        }

    def _draw_mazes(self, layout_seeds: Mapping[int, int]) -> None:
        """Give copies the mazes of layout seeds, each one of its own."""
        if self._mazes is None:
            assert isinstance(self._env, MazeEnv)
            self._mazes = _Mazes(self._env, self.num_envs)
        self._mazes.draw(layout_seeds)

    def _check_started(self, what: str) -> None:
        if not self._started:
            raise ResetNeeded(f"reset comes before {what}")

    def _checked(self, actions: ArrayLike) -> NDArray[np.int64]:
        array = np.asarray(actions)
        num_actions = self._env.transition_model().num_actions
        if array.dtype.kind not in "iu":
            raise TypeError(
                f"actions must be integers in [0, {num_actions}), got dtype {array.dtype}"
            )
        if array.shape != (self.num_envs,):
            raise ValueError(
                f"actions must have shape ({self.num_envs},), one a sub-environment, got "
                f"{array.shape}"
            )
        whole = array.astype(np.int64)  # and for compiled code always of the same kind
        if not all_within(whole, num_actions):
            bad = int(np.argmax((array < 0) | (array >= num_actions)))
            raise ValueError(
                f"the action of sub-environment {bad} must be in [0, {num_actions}), got "
                f"{array[bad]}"
            )
        return whole

    def _selected(self, options: dict[str, Any]) -> NDArray[np.bool_]:
        """Take the reset mask out of the options: which copies start anew."""
        if "reset_mask" not in options:
            return np.ones(self.num_envs, bool)
        mask = np.asarray(options.pop("reset_mask"))
        if mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise ValueError(
                f"options['reset_mask'] must hold booleans of shape ({self.num_envs},), got "
                f"{mask.dtype} of shape {mask.shape}"
            )
        if not mask.any():
            raise ValueError("options['reset_mask'] must select a sub-environment, it selects none")
        if not mask.all():
            self._check_started("a reset of some of the copies")
        return mask

    def _requested_starts(
        self, options: Mapping[str, Any], selected: NDArray[np.bool_]
    ) -> NDArray[np.int64] | None:
        """Return where the caller wants each copy to start, None where it is to be drawn."""
        # Another layout has the same goal and the same blocked positions: this model will do.
        model = self._env.transition_model()
        of_each = {
            name: options[name]
            for name, num_axes in (("state", 0), ("coords", 1))
            if name in options and np.ndim(options[name]) > num_axes
        }
        if not of_each:
            state = self._env._requested_start(options, model)
            return None if state is None else np.full(self.num_envs, state)
        for name, values in of_each.items():
            if len(values) != self.num_envs:
                raise ValueError(
                    f"options[{name!r}] must be one for all sub-environments, or one for each of "
                    f"{self.num_envs}, got {len(values)}"
                )
        states = np.zeros(self.num_envs, np.int64)
        for i in np.flatnonzero(selected):
            own = {name: values[i] for name, values in of_each.items()}
            try:
                state = self._env._requested_start({**options, **own}, model)
            except (TypeError, ValueError) as error:
                raise type(error)(f"sub-environment {i}: {error}") from None
            assert state is not None
            states[i] = state
        return states

    def _infos(
        self,
        states: NDArray[np.int64],
        probabilities: NDArray[np.float64],
        present: NDArray[np.bool_],
    ) -> dict[str, Any]:
        """Return the infos of some copies, 0 for the others."""
        strides, own = self._rules.strides, states[present]
        coords = np.empty((len(own), len(strides)), np.int64)
        write_coords(strides, own, coords)

        def among_all(values: NDArray[Any]) -> NDArray[Any]:
            array = np.zeros((self.num_envs, *values.shape[1:]), values.dtype)
            array[present] = values
            return array

        return _infos(
            among_all(own),
            among_all(probabilities[present]),
            among_all(self._masks_in(np.flatnonzero(present), own)),
            among_all(coords),
            present,
        )

    def _final_infos(
        self,
        states: NDArray[np.int64],
        probabilities: NDArray[np.float64],
        over: NDArray[np.bool_],
    ) -> dict[str, Any]:
        """Return how the episodes ended of the copies that have started anew since."""
        observations = np.full(self.num_envs, None, dtype=object)
        observations[over] = states[over]
        return {
            "final_obs": observations,
            "_final_obs": over.copy(),
            "final_info": self._infos(states, probabilities, over),
            "_final_info": over.copy(),
        }


class _Mazes:
    """A maze of its own for each of N copies: all of one grid, goal and blocked positions.

    Parameters
    ----------
    env : MazeEnv
        Whose maze all have at first.
    num_envs : int
    """

    def __init__(self, env: MazeEnv, num_envs: int) -> None:
        model = env.transition_model()
        assert isinstance(model, MoveMDP)
        # Tables of costs and masks, and the environments with theirs, their layout and starts.
        check_memory(
            num_envs * model.num_states * (35 * model.num_actions + 25),
            f"{num_envs} mazes of {model.num_states:,} positions",
        )
        self.envs: tuple[MazeEnv, ...] = (env,) * num_envs
        self._successors, self._p = model.successors, model.p
        self._move_costs = np.repeat(model.move_costs[np.newaxis], num_envs, axis=0)
        self._bump_costs = np.full(num_envs, model.bump_cost)
        self.masks = np.repeat(env._mask[np.newaxis], num_envs, axis=0)

    @property
    def sampling_tables(self) -> tuple[Any, ...]:
        """What `step_own_moves` draws from."""
        return self._successors, self._move_costs, self._p, self._bump_costs

    def draw(self, layout_seeds: Mapping[int, int]) -> None:
        """Give copies the mazes of layout seeds."""
        envs = list(self.envs)
        for i, layout_seed in layout_seeds.items():
            envs[i] = copy.copy(envs[i])
            envs[i].reset(options={"layout_seed": layout_seed})
            model = envs[i].transition_model()
            assert isinstance(model, MoveMDP)
            self._move_costs[i], self._bump_costs[i] = model.move_costs, model.bump_cost
            self.masks[i] = envs[i]._mask
        self.envs = tuple(envs)


def _infos(
    states: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    action_masks: NDArray[np.int8],
    coords: NDArray[np.int64],
    present: NDArray[np.bool_],
) -> dict[str, Any]:
    infos = {
        "state": states,
        "_state": present.copy(),
        "prob": probabilities,
        "_prob": present.copy(),
        "action_mask": action_masks,
        "_action_mask": present.copy(),
    }
    if coords.shape[1]:
        infos |= {"coords": coords, "_coords": present.copy()}
    return infos


def _single_env(source: Any) -> TabularEnv:
    """Return an environment of the vector environment's own."""
    if isinstance(source, Model):
        return TabularEnv(source)
    if not isinstance(source, TabularEnv):
        hint = "; give env.unwrapped" if isinstance(source, gym.Wrapper) else ""
        raise TypeError(
            f"source must be a TabularEnv, a TabularMDP or a MoveMDP, got {type(source).__name__}"
            f"{hint}"
        )
    if type(source).step is not TabularEnv.step:
        raise ValueError(
            f"{type(source).__name__} has a step of its own, which a compiled step would pass "
            "over; gymnasium.vector.SyncVectorEnv takes any environment"
        )
    _refuse_window(source.render_mode)
    return copy.deepcopy(source)


def _refuse_window(render_mode: str | None) -> None:
    if render_mode == "human":
        raise ValueError(
            "render_mode='human' shows one agent; a vector environment draws "
            "'rgb_array' or 'ansi' for each of its copies"
        )


def _checked_batch(
    num_envs: int, max_episode_steps: int | None, autoreset_mode: AutoresetMode | str
) -> tuple[int, int | None, AutoresetMode]:
    """Return what says how a batch runs, or refuse it."""
    num_envs = check_integer("num_envs", num_envs, least=1)
    check_memory(num_envs * _BYTES_A_COPY, f"{num_envs:,} copies of an environment")
    if max_episode_steps is not None:
        max_episode_steps = check_integer("max_episode_steps", max_episode_steps, least=1)
    return num_envs, max_episode_steps, _autoreset_mode(autoreset_mode)


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        names = ", ".join(repr(known.value) for known in AutoresetMode)
        raise ValueError(f"autoreset_mode must be {names}, got {mode!r}") from None


# What the ids' `vector_entry_point` calls: the single environment checks all other arguments.


def standard_maze(num_envs: int = 1, **kwargs: Any) -> TabularVectorEnv:
    """Return N copies of StandardMaze-v0; arguments as for it and `TabularVectorEnv`."""
    return _copies(StandardMazeEnv, num_envs, **kwargs)


def terrain_maze(num_envs: int = 1, **kwargs: Any) -> TabularVectorEnv:
    """Return N copies of TerrainMaze-v0; arguments as for it and `TabularVectorEnv`."""
    return _copies(TerrainMazeEnv, num_envs, **kwargs)


def nd_maze(num_envs: int = 1, **kwargs: Any) -> TabularVectorEnv:
    """Return N copies of NDMaze-v0; arguments as for it and `TabularVectorEnv`."""
    return _copies(NDMazeEnv, num_envs, **kwargs)


def grid_world(num_envs: int = 1, **kwargs: Any) -> TabularVectorEnv:
    """Return N copies of GridWorld-v0; arguments as for it and `TabularVectorEnv`."""
    return _copies(GridWorldEnv, num_envs, **kwargs)


def discretized_cartpole(num_envs: int = 1, **kwargs: Any) -> TabularVectorEnv:
    """Return N copies of DiscretizedCartPole-v0; arguments as for it and `TabularVectorEnv`."""
    return _copies(DiscretizedCartPoleEnv, num_envs, **kwargs)


def discretized_mountain_car(num_envs: int = 1, **kwargs: Any) -> TabularVectorEnv:
    """Return N copies of DiscretizedMountainCar-v0; arguments as for it and `TabularVectorEnv`."""
    return _copies(DiscretizedMountainCarEnv, num_envs, **kwargs)


def discretized_acrobot(num_envs: int = 1, **kwargs: Any) -> TabularVectorEnv:
    """Return N copies of DiscretizedAcrobot-v0; arguments as for it and `TabularVectorEnv`."""
    return _copies(DiscretizedAcrobotEnv, num_envs, **kwargs)


def discretized_pendulum(num_envs: int = 1, **kwargs: Any) -> TabularVectorEnv:
    """Return N copies of DiscretizedPendulum-v0; arguments as for it and `TabularVectorEnv`."""
    return _copies(DiscretizedPendulumEnv, num_envs, **kwargs)


def _copies(
    env_class: type[TabularEnv],
    num_envs: int,
    *,
    max_episode_steps: int | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    **kwargs: Any,
) -> TabularVectorEnv:
    # Before an environment is made in vain.
    _checked_batch(num_envs, max_episode_steps, autoreset_mode)
    _refuse_window(kwargs.get("render_mode"))
    return TabularVectorEnv(
        env_class(**kwargs),
        num_envs,
        max_episode_steps=max_episode_steps,
        autoreset_mode=autoreset_mode,
    )
