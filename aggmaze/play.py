"""Walk through an environment by the keyboard: ``python -m aggmaze.play StandardMaze-v0``.

Nothing here knows the best way.  Who plans can pass an adviser, as ``aggmaze play`` does.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import aggmaze
from aggmaze import keys
from aggmaze.action_values import action_values
from aggmaze.checks import check_integer
from aggmaze.env_settings import make_env
from aggmaze.envs.discretized import CellsEnv
from aggmaze.envs.layout_env import LayoutEnv
from aggmaze.models.model import Model
from aggmaze.models.moves import MoveMDP
from aggmaze.rendering.window import Key, Window, check_pygame
from aggmaze.summary import in_one_line

_FRAMES_PER_SECOND = 60


@dataclass(frozen=True)
class Advice:
    """What is known of a model.

    Parameters
    ----------
    values : ndarray of float, shape (S,)
        Optimal costs-to-go.
    policy : ndarray of int, shape (S,)
        A best action in each state.
    gamma : float
        The discount for which they are the best.
    """

    values: NDArray[np.float64]
    policy: NDArray[np.int64]
    gamma: float

    __repr__ = in_one_line


Adviser = Callable[[Model], Advice]


class Game:
    """An environment with a window, and what is played in it.

    Parameters
    ----------
    env : gymnasium.Env
        Made with ``render_mode="human"``.
    seed : int, optional
        Seeds the first episode, and by that all that follow.
    adviser : callable, optional
        Called with the model, and again with that of every new maze.

    Attributes
    ----------
    advice : Advice or None
        Of the model that is played.
    over : bool
        Whether the episode has ended.
    quit : bool
        Whether the player wants no more.
    cost : float
        Paid so far in the episode, without discount.
    discounted_cost : float
        The same with the discount of the advice; without advice as `cost`.
    regret : float
        What the actions of the episode cost more than the best ones, in expectation.
    discounted_regret : float
        The same with the discount of the advice, as values are: where moves have one outcome, the
        optimum less the return.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        seed: int | None = None,
        adviser: Adviser | None = None,
    ) -> None:
        bare = env.unwrapped
        if not isinstance(bare, LayoutEnv | CellsEnv):
            raise ValueError(
                f"{env.spec.id if env.spec else type(bare).__name__} cannot be played here; "
                f"{', '.join(aggmaze.ENV_IDS)} can"
            )
        if env.render_mode != "human":
            raise ValueError(f"the environment needs render_mode='human', not {env.render_mode!r}")
        check_pygame()  # before an adviser works long for a window that cannot be
        self.env = env
        self.bare = bare
        self.quit = False
        self._adviser = adviser
        self._actions = {code: action for (code,), action in bare.get_keys_to_action().items()}
        given = {} if env.spec is None else env.spec.kwargs
        self._layout_seed = int(given.get("layout_seed", 0))
        self._advised = False
        self._helps = True
        self._notes: tuple[str, ...] = ()
        self.window.frames_per_second = _FRAMES_PER_SECOND
        self._plan()
        self._begin(seed=seed)
        self._refresh()

    @property
    def window(self) -> Window:
        """The window that it is played in."""
        return self.bare.window

    def press(self, key: Key) -> None:
        """Do what a key means; one that means nothing does nothing."""
        letter = key.text.lower()
        if key.code in self._actions:
            if not self.over:
                self._move(self._actions[key.code])
        elif key.code == keys.ESCAPE:
            self.quit = True
        elif letter == "r":
            self._begin()
        elif letter == "n":
            self._draw_another()
        elif letter == "h":
            self._helps = not self._helps
        elif letter == "v" and self.advice is not None:
            self._advised = not self._advised
            self._draw_plan()
        self._refresh()

    def _plan(self) -> None:
        self.advice = None
        if self._adviser is not None:
            self.advice = self._adviser(self.bare.transition_model())

    def _begin(self, **arguments: Any) -> None:
        # Lines are there from the first picture on, so that it keeps its size.
        self.window.notes = self._notes or ("",) * (2 if self._adviser is None else 3)
        _, info = self.env.reset(**arguments)
        self._state: int = info["state"]
        self.over = False
        self.cost = self.discounted_cost = 0.0
        self.regret = self.discounted_regret = 0.0
        self._start, self._steps = self._state, 0
        self.window.banner = ()
        self._last_regret: float | None = None
        self._message = ""

    def _move(self, action: int) -> None:
        before, model = self._state, self.bare.transition_model()
        available = self.bare.action_masks()[action]
        _, reward, terminated, truncated, info = self.env.step(action)
        self._state = info["state"]
        self.cost -= float(reward)
        gamma = 1.0 if self.advice is None else self.advice.gamma
        weight = gamma**self._steps
        self.discounted_cost -= weight * float(reward)
        self._steps += 1
        if self.advice is not None:
            (Q,) = action_values(model, self.advice.values, gamma, before, before + 1)
            self._last_regret = float(Q[action] - Q.min())
            self.regret += self._last_regret
            self.discounted_regret += weight * self._last_regret
        self._message = ""
        if not available:
            self._message = "that way is closed"
        elif isinstance(model, MoveMDP) and model.successors[before, action] != self._state:
            self._message = f"slipped, as happens with probability {1 - model.p:.3g}"
        self.over = terminated or truncated
        if self.over:
            self._message = "the end" if terminated else "out of steps"
            if terminated and self.bare.reached_goal:
                self._message = "the end: the goal is reached"
                self.window.banner = tuple(self._praise())

    @property
    def _has_others(self) -> bool:
        return isinstance(self.bare, LayoutEnv) and self.bare.is_drawn

    def _draw_another(self) -> None:
        if not self._has_others:
            self._message = "there is no other: nothing of this is drawn by a seed"
            return
        self._layout_seed += 1
        self._begin(options={"layout_seed": self._layout_seed})
        self._plan()
        self._draw_plan()

    def _draw_plan(self) -> None:
        if self._advised and self.advice is not None:
            self.bare.set_overlay(
                values=self.advice.values, policy=self.advice.policy, gamma=self.advice.gamma
            )
        else:
            self.bare.set_overlay()

    def _refresh(self) -> None:
        """Write the lines below the picture, and show them."""
        self._notes = (self._told(), self._keys_in_words() if self._helps else "H: help")
        if self.advice is not None:
            self._notes = (self._notes[0], self._advice_in_words(), self._notes[1])
        self.window.notes = self._notes
        self.env.render()

    def _told(self) -> str:
        # Cost and return are the same but for the sign: the line above tells the return.
        return self._message

    def _praise(self) -> list[str]:
        """Return what a reached goal is worth beside the optimum."""
        steps = f"{self._steps:,} step{'s' if self._steps != 1 else ''}"
        lines = [f"The goal, in {steps}!"]
        if self.advice is None:
            return lines
        best = float(self.advice.values[self._start])
        returned = 0.0 - self.discounted_cost
        told = f"return {returned:.6g}{self._discount}, optimum {0.0 - best:.6g}"
        # Values are known as far as they were asked for; luck is good or bad, where there is any.
        if self.regret <= 1e-6 * abs(best) < abs(returned + best):
            told += " on average"
        if self.regret <= 1e-6 * max(1.0, abs(best)):
            lines.append(f"No move could have been better: {told}")
        else:
            lines.append(f"{told}, regret {self.discounted_regret:.4g}")
        return lines

    @property
    def _discount(self) -> str:
        """What stands beside a value: its discount."""
        assert self.advice is not None
        return f" (gamma {self.advice.gamma:.6g})" if self.advice.gamma < 1 else ""

    def _advice_in_words(self) -> str:
        assert self.advice is not None
        if not self._advised:
            return "V: show the optimum"
        best = 0.0 - float(self.advice.values[self._state])
        parts = [f"best return from here {best:.6g}{self._discount}"]
        if not self.over:
            action = int(self.advice.policy[self._state])
            parts.append(f"best {self.bare.action_with_key(action)}")
        if self._last_regret is not None:
            told = f"regret of the move {self._last_regret:.4g}"
            parts.append(f"{told}, so far {self.discounted_regret:.4g}")
        return "     ".join([*parts, "V: hide"])

    def _keys_in_words(self) -> str:
        others = "N: new maze   " if self._has_others else ""
        return f"{self.bare.keys_in_words}   R: again   {others}H: hide this   Esc: quit"


def play(
    env: gym.Env[Any, Any], *, seed: int | None = None, adviser: Adviser | None = None
) -> Game:
    """Play until the window is closed or the player quits; the environment is closed then.

    Parameters
    ----------
    env : gymnasium.Env
        One of this project, made with ``render_mode="human"``.
    seed, adviser
        As for `Game`.

    Returns
    -------
    Game
        As it was left.

    Raises
    ------
    ValueError
        If it is another environment, or has another render mode.
    OSError
        If there is no screen.
    gymnasium.error.DependencyNotInstalled
        If pygame is missing.
    """
    try:
        game = Game(env, seed=seed, adviser=adviser)
        while True:
            for key in game.window.pressed():
                game.press(key)
            if game.quit or game.window.dismissed:
                break
            time.sleep(1 / _FRAMES_PER_SECOND)
    finally:
        env.close()
    return game


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as all commands of this project do."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message}; see {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = _Parser(
        prog="python -m aggmaze.play",
        description="Walk by the keyboard; `aggmaze play` knows the best way as well.",
        epilog="Ends with 0, 2 on bad use, 130 on Ctrl-C.",
    )
    parser.add_argument("env_id", metavar="ENV", help=f"one of {', '.join(aggmaze.ENV_IDS)}")
    parser.add_argument(
        "--set",
        dest="settings",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="argument of the environment: --set shape=8,8",
    )
    parser.add_argument("--seed", type=int, action="append", help="seeds the episodes")
    given = parser.parse_args(arguments)
    if len(seeds := given.seed or [None]) > 1:
        parser.error(f"--seed is given {len(seeds)} times")
    try:
        seed = None if seeds[0] is None else check_integer("--seed", seeds[0])
        play(make_env(given.env_id, given.settings, render_mode="human"), seed=seed)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except (ValueError, TypeError, OSError, MemoryError, gym.error.Error) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
