"""The environment of any tabular model: its steps are drawn from the model's own tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_integer
from aggmaze.formats.gym_table import GymP
from aggmaze.mdp import TabularMDP
from aggmaze.move_mdp import MoveMDP

Model = TabularMDP | MoveMDP


class TabularEnv(gym.Env[Any, Any]):
    """A Gymnasium environment that walks through a tabular model.

    Observations are state indices, ``Discrete(S)``; actions are ``Discrete(A)``.  A step pays
    ``-cost`` of the outcome that happens and terminates in the model's terminal states.  ``info``
    holds ``state`` (int), ``prob`` (probability of what happened) and ``action_mask`` (int8, shape
    (A,)), fresh at every call.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    render_mode : str, optional
        A plain model has no picture: None only.
    """

    metadata: dict[str, Any] = {"render_modes": [], "render_fps": 10}

    def __init__(self, model: Model, *, render_mode: str | None = None) -> None:
        modes = self.metadata["render_modes"]
        if render_mode is not None and render_mode not in modes:
            raise ValueError(
                f"render_mode must be {', '.join(map(repr, modes)) or 'None'}"
                f"{' or None' if modes else ''}, got {render_mode!r}"
            )
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Discrete(model.num_states)
        self.action_space = gym.spaces.Discrete(model.num_actions)
        self._set_model(model)

    def _set_model(self, model: Model) -> None:
        """Walk through a model, of the sizes that the spaces have, from now on."""
        self._model = model.validate()
        self._state = int(np.argmax(model.initial))
        self._table: GymP | None = None
        self._mask = model.action_mask.astype(np.int8)
        self._starts = np.flatnonzero(model.initial)
        self._start_cdf = np.cumsum(model.initial[self._starts])

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
            state = int(self._starts[0])
            if len(self._starts) > 1:
                uniform = self.np_random.random()
                index = int(np.searchsorted(self._start_cdf, uniform, side="right"))
                state = int(self._starts[min(index, len(self._starts) - 1)])
                probability = float(self._model.initial[state])
        self._state = state
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
        action = check_integer("action", action, below=self._model.num_actions)
        state, cost, probability = self._model.sample(self._state, action, self.np_random.random())
        self._state = state
        # 0.0 - cost, since -0.0 reads oddly.
        return state, 0.0 - cost, bool(self._model.terminal[state]), False, self._info(probability)

    def render(self) -> Any:
        """Return a picture of where the agent is: an array (H, W, 3) of uint8, or text."""
        if self.render_mode is None:
            gym.logger.warn(
                "You are calling render method without specifying any render mode. You can specify "
                'the render_mode at initialization, e.g. render_mode="rgb_array"'
            )
            return None
        return self._text() if self.render_mode == "ansi" else self._frame()

    def _text(self) -> str:
        """Write where the agent is; for environments with the mode "ansi"."""
        raise NotImplementedError

    def _frame(self) -> NDArray[np.uint8]:
        """Draw where the agent is, shape (H, W, 3); for environments with the mode "rgb_array"."""
        raise NotImplementedError

    def _requested_start(self, options: Mapping[str, Any], model: Model) -> int | None:
        """Return where the caller wants to start in a model, refusing what cannot be."""
        refuse_other_options(options, ("state",))
        if "state" not in options:
            return None
        state = check_integer("options['state']", options["state"], below=model.num_states)
        if model.terminal[state]:
            raise ValueError(f"options['state'] = {state} is terminal: no episode starts there")
        return state

    def _info(self, probability: float) -> dict[str, Any]:
        return {
            "state": self._state,
            "prob": probability,
            "action_mask": self._mask[self._state].copy(),
        }


def refuse_other_options(options: Mapping[str, Any], allowed: Iterable[str]) -> None:
    """Refuse reset options that are not among the allowed ones."""
    for name in options:
        if name not in allowed:
            raise ValueError(f"unknown reset option {name!r}; allowed: {', '.join(allowed)}")
