"""The environment of any tabular model: its steps are drawn from the model's own tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_integer
from aggmaze.formats.gym_table import GymP
from aggmaze.models.model import Model, with_table
from aggmaze.rendering.window import Window


@dataclass
class Episode:
    """What of an episode is shown beside the picture: states in order, and rewards."""

    trail: list[int]
    last_reward: float = 0.0
    total_reward: float = 0.0
    terminated: bool = False

    def append(self, state: int, reward: float, terminated: bool) -> None:
        """Add a step.

        Parameters
        ----------
        state : int
            The next one.
        reward : float
        terminated : bool
        """
        self.trail.append(state)
        self.last_reward = reward
        self.total_reward += reward
        self.terminated = terminated

    def __str__(self) -> str:
        parts = [
            f"step {len(self.trail) - 1:,}",
            f"reward {self.last_reward:.4g}",
            f"return {self.total_reward:.6g}",
        ]
        return "     ".join([*parts, "terminated"] if self.terminated else parts)


class TabularEnv(gym.Env[Any, Any]):
    """A Gymnasium environment that walks through a tabular model.

    Observations are state indices, ``Discrete(S)``; actions are ``Discrete(A)``.  A step pays
    ``-cost`` of the outcome that happens and terminates in the model's terminal states.  ``info``
    holds ``state`` (int), ``prob`` (probability of what happened) and ``action_mask`` (int8, shape
    (A,)), fresh at every call; of a model whose states have names ``state_name`` too.

    Parameters
    ----------
    model : TabularMDP, MoveMDP or EventMDP
        The last as a table, as far as memory holds it.
    render_mode : str, optional
        A plain model has no picture: None only.
    """

    metadata: dict[str, Any] = {"render_modes": [], "render_fps": 10}
    _reset_options: tuple[str, ...] = ("state",)
    # Whether pictures tell values as returns: where what counts is what is earned.
    _tells_returns = False

    def __init__(self, model: Model, *, render_mode: str | None = None) -> None:
        self.check_render_mode(render_mode)
        model = with_table(model)
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Discrete(model.num_states)
        self.action_space = gym.spaces.Discrete(model.num_actions)
        self._num_actions = model.num_actions
        self._window: Window | None = None
        self._set_model(model)
        self._episode = Episode([self._state])

    @classmethod
    def check_render_mode(cls, render_mode: Any) -> None:
        """Refuse a render mode that the environment does not have."""
        modes = cls.metadata["render_modes"]
        if render_mode is not None and render_mode not in modes:
            raise ValueError(
                f"render_mode must be {', '.join(map(repr, modes)) or 'None'}"
                f"{' or None' if modes else ''}, got {render_mode!r}"
            )

    def _set_model(self, model: Model) -> None:
        """Walk through a model, of the sizes that the spaces have, from now on."""
        self._model = model.validate()
        self._state = self._start_state = int(np.argmax(model.initial))
        self._table: GymP | None = None
        self._mask = model.action_mask.view(np.int8)
        starts = np.flatnonzero(model.initial)
        shares = model.initial[starts] if len(starts) > 1 else np.ones(1)
        below = np.concatenate([[0.0], np.cumsum(shares)[:-1]])
        # As `sample_start` takes them.
        self._starts = starts, shares, below, (len(starts) - 1).bit_length()

    def transition_model(self) -> Model:
        """Return the exact model that the steps are drawn from."""
        return self._model

    @property
    def P(self) -> GymP:
        """The model as the table ``P`` of Gymnasium's toy-text environments, built as it is read.

        ``P[s][a]`` lists ``(probability, next_state, reward, terminated)``.
        """
        if self._table is None:
            self._table = self._model.to_gym_P()
        return self._table

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are available now, shape (A,)."""
        return self._mask[self._state].astype(bool)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Start an episode.

        Parameters
        ----------
        seed : int, optional
            Seeds what is drawn from now on; it never changes the model.
        options : dict, optional
            ``state``: where to start, any state that is not terminal.
        """
        state = self._requested_start(options or {}, self._model)
        super().reset(seed=seed)
        probability = 1.0
        if state is None:
            possible = self._starts[0]
            state = int(possible[0])
            if len(possible) > 1:
                from aggmaze.models.sampling import sample_start  # which takes long to import

                state, probability = sample_start(self._starts, self.np_random.random())
        self._starts_at(state)
        if self.render_mode == "human":
            self._episode = Episode([state])
            self._show()
        return state, self._info(probability)

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action and return observation, reward, terminated, truncated and info.

        Raises
        ------
        TypeError
            If the action is not an integer.
        ValueError
            If it is not in ``[0, A)``.
        """
        if type(action) is not int or not 0 <= action < self._num_actions:
            action = check_integer("action", action, below=self._num_actions)
        model, uniform = self._model, self.np_random.random()
        state, cost, probability = model.draw(model.sampling_tables, self._state, action, uniform)
        self._state = state
        reward = 0.0 - cost  # since -0.0 reads oddly
        terminated = bool(model.terminal[state])
        if self.render_mode == "human":
            self._episode.append(state, reward, terminated)
            self._show()
        return state, reward, terminated, False, self._info(probability)

    def render(self) -> Any:
        """Return a picture of where the agent is, or show it.

        An array (H, W, 3) of uint8 in the mode "rgb_array", text in the mode "ansi".  In the mode
        "human", in which `reset` and `step` show a picture by themselves, None; a window that the
        user has closed stays closed until `close` is called.
        """
        if self.render_mode is None:
            gym.logger.warn(
                "You are calling render method without specifying any render mode. You can specify "
                'the render_mode at initialization, e.g. render_mode="rgb_array"'
            )
            return None
        if self.render_mode == "human":
            return self._show()
        return self._text() if self.render_mode == "ansi" else self._picture()

    def close(self) -> None:
        """Close the window, if there is one; whatever is shown afterwards opens it anew."""
        if self._window is not None:
            self._window.close()

    def _repr_html_(self) -> str:
        from aggmaze.envs.cards import env_html  # which imports the kinds of environments

        return env_html(self)

    def __getstate__(self) -> dict[str, Any]:
        # A copy opens a window of its own.
        return self.__dict__ | {"_window": None}

    @property
    def window(self) -> Window:
        """The window of the mode "human", which opens at the first picture."""
        if self._window is None:
            title = type(self).__name__ if self.spec is None else self.spec.id
            self._window = Window(title, self.metadata["render_fps"], self._first_area)
        return self._window

    @property
    def _first_area(self) -> int:
        """Pixels of the picture's longer side when its window opens, if the screen has room."""
        return 640

    def _show(self) -> None:
        self.window.show(self._picture, str(self._episode))

    def _picture(self, area: tuple[int, int] | None = None) -> NDArray[np.uint8]:
        """Draw where the agent is, shape (H, W, 3); for environments with a mode that shows it.

        In a window there is an area, so many pixels wide and high, and the trail is drawn too.
        """
        raise NotImplementedError

    def _text(self) -> str:
        """Write where the agent is; for environments with the mode "ansi"."""
        raise NotImplementedError

    def _starts_at(self, state: int) -> None:
        """Begin an episode in a state."""
        self._state = self._start_state = state

    def _requested_start(self, options: Mapping[str, Any], model: Model) -> int | None:
        """Return where the caller wants to start in a model, refusing what cannot be."""
        refuse_other_options(options, self._reset_options)
        if "state" not in options:
            return None
        state = check_integer("options['state']", options["state"], below=model.num_listed_states)
        if model.terminal[state]:
            raise ValueError(f"options['state'] = {state} is terminal: no episode starts there")
        return state

    def _info(self, probability: float) -> dict[str, Any]:
        info = {
            "state": self._state,
            "prob": probability,
            "action_mask": self._mask[self._state].copy(),
        }
        names = self._model.state_names
        if names is not None:
            # An added state, where an episode ends, has none.
            info["state_name"] = names[self._state] if self._state < len(names) else None
        return info


def refuse_other_options(options: Mapping[str, Any], allowed: Iterable[str]) -> None:
    """Refuse reset options that are not among the allowed ones.

    Parameters
    ----------
    options : mapping
    allowed : iterable of str
    """
    for name in options:
        if name not in allowed:
            raise ValueError(f"unknown reset option {name!r}; allowed: {', '.join(allowed)}")
