"""Another maze in each episode, for agents that are to find their way in any."""

from __future__ import annotations

import copy
from typing import Any, Self

import gymnasium as gym
import numpy as np

from aggmaze.checks import check_integer
from aggmaze.env_model import env_model
from aggmaze.envs.maze import MazeEnv
from aggmaze.models.model import Model

#: A thousand mazes to train on, and a thousand others to test on.
TRAIN = {"first_seed": 0, "num_mazes": 1000}
TEST = {"first_seed": 1_000_000, "num_mazes": 1000}

_END_OF_SEEDS = 2**31


class LayoutSeeds:
    """A sequence of layout seeds.

    Parameters
    ----------
    env : gymnasium.Env
        A maze that is drawn.
    first_seed, num_mazes
        As for `NewMazeEachEpisode`.
    """

    def __init__(self, env: gym.Env[Any, Any], first_seed: int, num_mazes: int | None) -> None:
        bare = env.unwrapped
        if not isinstance(bare, MazeEnv):
            raise TypeError(f"{env} is no maze: there is none to be drawn anew")
        if not bare.is_drawn:
            raise ValueError("nothing of this maze is drawn: its walls or its heights are given")
        self._first_seed = check_integer("first_seed", first_seed, below=_END_OF_SEEDS)
        if num_mazes is None:
            self._num_mazes = _END_OF_SEEDS - self._first_seed
        else:
            self._num_mazes = check_integer("num_mazes", num_mazes, least=1)
        self._rng = np.random.default_rng()

    def after(self, seed: int | None) -> Self:
        """Return the sequence that a reset with a seed begins, or goes on with where it is None.

        The present one stays as it is: a reset that is refused takes no draw.
        """
        seeds = copy.deepcopy(self)
        if seed is not None:
            # A stream of its own: slips are drawn from the seed itself.
            (child,) = np.random.SeedSequence(check_integer("seed", seed)).spawn(1)
            seeds._rng = np.random.default_rng(child)
        return seeds

    def draw(self, count: int) -> list[int]:
        """Return the next layout seeds."""
        return [self._first_seed + int(self._rng.integers(self._num_mazes)) for _ in range(count)]


class NewMazeEachEpisode(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Draw a new maze, or terrain, at every reset.

    ``reset(seed=...)`` settles the sequence of mazes as well as what happens in them; without a
    seed the sequence goes on.  ``info["layout_seed"]`` names the maze; ``options={"layout_seed":
    7}`` asks for one, which takes no draw.  `transition_model` is the model of the present maze.

    To see whether an agent generalises, train and test on mazes that have none in common::

        train = NewMazeEachEpisode(gym.make("StandardMaze-v0"), **TRAIN)  # seeds 0 to 999
        test = NewMazeEachEpisode(gym.make("StandardMaze-v0"), **TEST)  # 1000000 to 1000999

    Parameters
    ----------
    env : gymnasium.Env
        A maze that is drawn, not given as text or as heights.
    first_seed : int
        The least layout seed.
    num_mazes : int, optional
        Number of layout seeds, from the least one on, each as likely as the others; by default all
        below 2**31.

    Raises
    ------
    TypeError
        If the environment is no maze, or a number is no integer.
    ValueError
        If nothing of the maze is drawn, or a number is negative or leaves no maze.
    """

    def __init__(
        self, env: gym.Env[Any, Any], *, first_seed: int = 0, num_mazes: int | None = None
    ) -> None:
        self._seeds = LayoutSeeds(env, first_seed, num_mazes)
        gym.utils.RecordConstructorArgs.__init__(
            self, first_seed=int(first_seed), num_mazes=num_mazes
        )
        gym.Wrapper.__init__(self, env)

    def transition_model(self) -> Model:
        """Return the exact model of the present maze."""
        return env_model(self.env)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Draw a maze and start an episode in it.

        Parameters
        ----------
        seed : int, optional
            Seeds the sequence of mazes, and start and slips.
        options : dict, optional
            As for the maze; ``layout_seed`` asks for a maze.
        """
        options = dict(options or {})
        seeds = self._seeds.after(seed)
        if "layout_seed" not in options:
            (options["layout_seed"],) = seeds.draw(1)
        observation, info = self.env.reset(seed=seed, options=options)
        self._seeds = seeds
        return observation, {**info, "layout_seed": options["layout_seed"]}
