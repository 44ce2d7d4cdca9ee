"""TerrainMaze-v0: an open grid with heights in two dimensions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.envs.maze import MazeEnv, Plan, make_plan
from aggmaze.layouts.given_heights import heights_from_image, layout_from_heights
from aggmaze.recipes import MazeOptions, Start, TerrainRecipe

DEFAULT_SHAPE = (20, 20)


class TerrainMazeEnv(MazeEnv):
    """Cross a landscape in which climbing costs.

    ## Description
    The terrain maze of Chen et al., "An Adaptive State Aggregation Algorithm for Markov Decision
    Processes", section "MDP problems": an open grid whose positions have heights in [0, 1].  The
    agent walks from the top right corner to the goal at the bottom left.  `layout=` takes walls and
    blocked cells as text; `TerrainMazeEnv.from_heights` and `from_image` make terrains from heights
    that are given.  With `shape=(4, 3)` and `render_mode="ansi"` it looks like this, digits being
    the first decimal of the heights:

    ```text
    +---+---+---+---+
    | 7   6   2   A |
    +   +   +   +   +
    | 4   2   8   2 |
    +   +   +   +   +
    | G   5   9   0 |
    +---+---+---+---+
    ```

    ## Action Space
    `Discrete(4)`: 0 LEFT, 1 RIGHT, 2 DOWN, 3 UP, one position each.

    ## Observation Space
    `Discrete(nx * ny)`: the state `x * ny + y`, with `(x, y)` counted from the bottom left.

    ## Starting State
    The `S` of the text, or else the corner opposite the goal (`start="corner"`); uniformly any
    free position but the goal (`start="uniform"`); or the coordinates given as `start`.
    `reset(options=...)` takes `state` or `coords` of a free position, and `layout_seed` for another
    terrain (between the same walls; refused where the heights are given).

    ## Rewards
    With `climb = H(next) - H(here)` a move gives `-(step_cost + climb)` for `cost="shifted"`
    (never positive at the default step cost; the paper's difference of heights, "normalized
    appropriately"), `-climb` for "difference", `-(step_cost + max(0, climb))` for "climb"; a move
    into the goal `goal_reward` more; all times `cost_scale`, in whose unit values and returns are
    then; heights lie in [0, 1].  Choosing an unavailable move stays in place and gives
    `-max(0, largest move cost)`, so it never pays.

    ## Episode End
    Terminates at the goal: state 0 unless `goal` or the text says otherwise.  Truncates after 1000
    steps as registered; larger terrains take more: `gym.make(..., max_episode_steps=...)`.
    A goal far beyond `1 / (1 - gamma)` steps is hardly worth reaching for a planner that discounts
    by `gamma`: it may settle in a valley.

    ## Transition Model
    The chosen move happens with probability `p`, else one of the other available moves, uniformly;
    where only one move is available it always happens.  `env.unwrapped.transition_model()` returns
    the exact model, the very tables that `step` draws from.  Blocked cells keep their index; they
    are never entered, and have no move and value 0.

    ## Information
    `state` (int), `coords` (int array (2,)), `action_mask` (int8 array (4,)), `prob` (probability
    of what happened).

    ## Arguments
    - `shape`: positions along x and y, (20, 20) by default.
    - `layout`: a maze as text, or a file with one (a `pathlib.Path`, or a name that ends in .txt
      or .map).  Thin walls are what `render_mode="ansi"` writes (`+---+`, `|`;
      cells three characters wide, `###` where blocked); or one character a cell, `#` blocked and
      `.` or a space free.  `G` is the goal and `S` the start; the last line is y = 0.  Every free
      cell must reach the goal.  It settles the shape; heights are drawn as without it.
    - `layout_seed`: makes the heights, 0 by default; `reset(seed=...)` never changes it.
    - `terrain`: "smooth" (default; Gaussian field), "fractal" (fractional Brownian motion with
      Hurst exponent 0.8: hills on hills of every size) or "uniform" (independent heights), scaled
      to [0, 1]; or "noise" (smooth between heights drawn on four lattices, each twice as fine), in
      [0, 1] without scaling.  Of the last two `aggmaze.model_by_rows` makes any part alone.
    - `smoothness`: standard deviation of the Gaussian in positions, a twentieth of the shape by
      default; for "smooth", and for "noise", which is correlated as far.
    - `cost`: "shifted" (default), "difference" or "climb".
    - `step_cost`, `goal_reward`, `cost_scale`: 1 by default.
    - `p`: in (0, 1], 1 by default.
    - `start`: "corner" (default), "uniform", or coordinates such as (3, 4).
    - `goal`: coordinates, which come before the `G` of the text; (0, 0) without either.  The corner
      opposite a goal that is in no corner is the one farthest from it, the right and the upper one
      where two are as far.
    - `render_mode`: None (default), "human" (a window), "rgb_array" or "ansi"; in each,
      `env.unwrapped.set_overlay` shows values, a policy, mega-states or a path.

    The defaults, in full:

    ```python
    import gymnasium as gym
    import aggmaze

    env = gym.make(
        "TerrainMaze-v0",
        shape=(20, 20),
        layout=None,
        layout_seed=0,
        terrain="smooth",
        smoothness=None,
        cost="shifted",
        step_cost=1.0,
        goal_reward=1.0,
        cost_scale=1.0,
        p=1.0,
        start="corner",
        goal=None,
        render_mode=None,
    )
    ```

    Mountains in which the agent starts anywhere:

    ```python
    env = gym.make("TerrainMaze-v0", terrain="fractal", cost="climb", start="uniform", p=0.95)
    observation, info = env.reset(seed=0)
    assert env.unwrapped.layout.heights.max() == 1.0
    ```

    ## Version History
    - v0: first version.
    """

    def __init__(
        self,
        shape: Iterable[int] = DEFAULT_SHAPE,
        *,
        layout: str | os.PathLike[str] | None = None,
        layout_seed: int = 0,
        terrain: str = "smooth",
        smoothness: float | None = None,
        cost: str = "shifted",
        step_cost: float = 1.0,
        goal_reward: float = 1.0,
        cost_scale: float = 1.0,
        p: float = 1.0,
        start: Start = "corner",
        goal: Sequence[int] | None = None,
        render_mode: str | None = None,
    ) -> None:
        recipe = TerrainRecipe(terrain, smoothness, cost, step_cost, goal_reward)
        super().__init__(
            lambda: make_plan(shape, layout, default_shape=DEFAULT_SHAPE, num_dims=2),
            MazeOptions(recipe, layout_seed, p, start, goal, cost_scale),
            render_mode=render_mode,
        )

    @classmethod
    def from_heights(
        cls,
        heights: ArrayLike,
        *,
        scale: bool = True,
        cost: str = "shifted",
        step_cost: float = 1.0,
        goal_reward: float = 1.0,
        cost_scale: float = 1.0,
        p: float = 1.0,
        start: Start = "corner",
        goal: Sequence[int] | None = None,
        render_mode: str | None = None,
    ) -> Self:
        """Make a terrain from heights that are given.

        The environment is like one of TerrainMaze-v0 but for its spec, which is None: it has no
        limit of steps (`gymnasium.wrappers.TimeLimit` gives it one), and `reset` refuses
        ``layout_seed``, since nothing is drawn.

        Parameters
        ----------
        heights : array_like of bool, int or float, shape (nx, ny)
            Height of the position ``(x, y)`` at ``[x, y]``; NaN where it is blocked.
        scale : bool
            Whether heights are shifted and stretched so that the lowest free position has 0 and
            the highest 1.  With False they are taken as they are, and must lie in [0, 1].
        cost, step_cost, goal_reward, cost_scale, p, start, render_mode
            As for TerrainMaze-v0.
        goal : sequence of int, optional
            Coordinates, (0, 0) by default.

        Raises
        ------
        TypeError
            If the heights are not real numbers.
        ValueError
            If they are not a table of finite numbers and NaN, if they leave [0, 1] with
            ``scale=False``, or if a free position does not reach the goal.
        """
        recipe = TerrainRecipe(cost=cost, step_cost=step_cost, goal_reward=goal_reward)
        options = MazeOptions(recipe, 0, p, start, goal, cost_scale)
        return cls._from_field(options, lambda: heights, scale, render_mode)

    @classmethod
    def from_image(
        cls,
        image: str | os.PathLike[str] | NDArray[np.generic],
        shape: Sequence[int] | None = None,
        *,
        scale: bool = True,
        cost: str = "shifted",
        step_cost: float = 1.0,
        goal_reward: float = 1.0,
        cost_scale: float = 1.0,
        p: float = 1.0,
        start: Start = "corner",
        goal: Sequence[int] | None = None,
        render_mode: str | None = None,
    ) -> Self:
        """Make a terrain from a picture whose brightness is the height.

        Parameters
        ----------
        image : path, or ndarray, shape (rows, columns) or (rows, columns, channels)
            A picture's file, or its pixels, top row first: grey, grey and opacity, RGB or RGBA (1,
            2, 3 or 4 channels; opacity is passed over).  Each pixel is a position; the lower left
            one is ``(0, 0)``.  Of floats, NaN is blocked.
        shape : pair of int, optional
            Positions ``(nx, ny)`` to which the picture is resampled, columns first.
        scale : bool
            Whether the darkest pixel becomes height 0 and the brightest 1.  With False black is 0
            and white is 1.
        cost, step_cost, goal_reward, cost_scale, p, start, goal, render_mode
            As for `from_heights`, which tells how the environment differs from a registered one.

        Raises
        ------
        OSError
            If the file cannot be read as a picture.
        TypeError, ValueError
            If the array is not a picture, or as `from_heights`.
        """
        recipe = TerrainRecipe(cost=cost, step_cost=step_cost, goal_reward=goal_reward)
        options = MazeOptions(recipe, 0, p, start, goal, cost_scale)
        return cls._from_field(
            options, lambda: heights_from_image(image, shape), scale, render_mode
        )

    @classmethod
    def _from_field(
        cls,
        options: MazeOptions,
        find_heights: Callable[[], ArrayLike],
        scale: bool,
        render_mode: str | None,
    ) -> Self:
        def find_plan() -> Plan:
            layout = layout_from_heights(find_heights(), goal=options.goal, scale=scale)
            return Plan(layout.grid, layout)

        # `__init__` draws, and takes what says how; all that remains is to walk through a plan.
        env = cls.__new__(cls)
        MazeEnv.__init__(env, find_plan, options, render_mode=render_mode)
        return env
